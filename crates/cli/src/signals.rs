//! Signals: end in good order, and save on demand.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// How long an output may take nothing after the first signal.
pub const STALLED: Duration = Duration::from_secs(5);

/// The variable by which a run is told that it has a supervisor, with which it ends, and its name there.
pub const SUPERVISED: &str = "LATELY_SUPERVISED";

/// What signals have asked for.
#[derive(Clone, Default)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    save: Arc<AtomicBool>,
    writing: Writing,
    last: Last,
}

/// What is done when the program ends without the thread that runs it.
#[derive(Clone, Default)]
struct Last(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Last {
    /// Does it, unless that takes long: a terminal may have been stopped.
    fn act(&self) {
        let (last, (done, ended)) = (self.clone(), mpsc::channel());
        let act = move || {
            if let Some(act) = last.0.get() {
                act();
            }
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(act).is_ok() {
            let _ = ended.recv_timeout(Duration::from_millis(200));
        }
    }
}

impl Signals {
    /// Listens: SIGINT, SIGTERM and SIGHUP end the run as the end of its input would, or, if an output
    /// takes nothing meanwhile, after [`STALLED`]; a second SIGINT or SIGTERM ends it at once. SIGUSR1
    /// saves the state. Those of the first three that were ignored when the run was started stay so.
    pub fn listen() -> io::Result<Self> {
        let signals = Self::of_system()?;
        if std::env::var_os(SUPERVISED).is_some() {
            signals.follow_supervisor()?;
        }
        Ok(signals)
    }

    /// Ends the run, too, when standard input ends: the other end of that pipe is the supervisor's.
    fn follow_supervisor(&self) -> io::Result<()> {
        let (stop, writing, last) =
            (Arc::clone(&self.stop), self.writing.clone(), self.last.clone());
        let follow = move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            if !stop.swap(true, Ordering::Relaxed) {
                writing.watch(&last);
            }
        };
        std::thread::Builder::new().name("supervisor".into()).spawn(follow).map(drop)
    }

    #[cfg(unix)]
    fn of_system() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        let signals = Self::default();
        let ignored = ignored();
        let ends = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.contains(signal));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&signals.save))?;
        // One thread takes all of them, so none falls between two handlers.
        let mut incoming = signal_hook::iterator::Signals::new(ends)?;
        let (stop, writing) = (Arc::clone(&signals.stop), signals.writing.clone());
        let last = signals.last.clone();
        let take = move || {
            for signal in incoming.forever() {
                let is_first = !stop.swap(true, Ordering::Relaxed);
                if is_first {
                    let (writing, last) = (writing.clone(), last.clone());
                    let _ = std::thread::Builder::new().spawn(move || writing.watch(&last));
                } else if signal != SIGHUP {
                    // When a terminal closes, SIGHUP may come from the shell and from the system: two
                    // are no second.
                    last.act();
                    signal_hook::low_level::exit(128 + signal);
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(take)?;
        Ok(signals)
    }

    /// There are no such signals here.
    #[cfg(not(unix))]
    fn of_system() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Does this before the program ends because of a second signal or an output that takes nothing.
    pub fn before_end(&self, act: impl Fn() + Send + Sync + 'static) {
        let _ = self.last.0.set(Box::new(act));
    }

    /// Is the run to end?
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Is the state to be saved now? Asked once a signal.
    pub fn save(&self) -> bool {
        self.save.swap(false, Ordering::Relaxed)
    }

    /// Where outputs say that they are being written to.
    pub fn writing(&self) -> Writing {
        self.writing.clone()
    }
}

/// Signals that whoever started this run has it ignore: `nohup` hangups, a shell script the interrupts of
/// what it starts in the background. That must not be undone: one that came before this listens would be
/// lost and one that came after it would not, and an interrupt meant for others would end the run.
/// Where it cannot be told, hangups are left as they are.
#[cfg(unix)]
fn ignored() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    match mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) {
        Some(mask) => (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect(),
        None => vec![signal_hook::consts::SIGHUP],
    }
}

/// Whether an output is being written to: an odd number while it is.
#[derive(Clone, Default)]
pub struct Writing(Arc<AtomicU64>);

impl Writing {
    /// Does something that takes as long as a reader likes.
    pub fn guard<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::Relaxed);
        let result = write();
        self.0.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Ends the program if an output takes nothing for [`STALLED`].
    fn watch(&self, last: &Last) -> ! {
        let tick = Duration::from_millis(100);
        let (mut seen, mut since) = (self.0.load(Ordering::Relaxed), Duration::ZERO);
        loop {
            std::thread::sleep(tick);
            let now = self.0.load(Ordering::Relaxed);
            let is_stuck = now == seen && now % 2 == 1;
            (seen, since) = (now, if is_stuck { since + tick } else { Duration::ZERO });
            if since >= STALLED {
                last.act();
                eprintln!(
                    "lately: an output has taken nothing for {} s: ended; what it did not take is lost, and the state, if there is one, is that of the last save",
                    STALLED.as_secs()
                );
                std::process::exit(1);
            }
        }
    }
}
