//! The supervisor: keeps flows running, and does what signals ask for.

use super::child::Running;
use super::config::{Config, Flow};
use super::read;
use crate::{Failure, many};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at the flows.
const TICK: Duration = Duration::from_millis(50);

/// Flows that have run for so long have understood what they are to do.
const READY: Duration = Duration::from_secs(1);

/// How long flows may take that are to end since the file was read again. A large state takes its time.
const END: Duration = Duration::from_secs(300);

/// Runs the flows of a file until all have ended.
pub fn supervise(path: &Path, config: Config) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1])?;
    let program = std::env::current_exe()?;
    let mut supervisor = Supervisor::start(path.into(), program, config);
    loop {
        for signal in signals.pending() {
            match signal {
                SIGHUP => supervisor.reload(),
                SIGUSR1 => supervisor.flows.iter().for_each(Running::save),
                _ => supervisor.stop(),
            }
        }
        if supervisor.look() {
            return supervisor.end();
        }
        thread::sleep(TICK);
    }
}

struct Supervisor {
    path: PathBuf,
    program: PathBuf,
    flows: Vec<Running>,
    /// Those that end since the file was read again, and when that was.
    leaving: Vec<Running>,
    since: Instant,
    /// Those that start when these have ended: they may need what those have, a state or an output.
    coming: Vec<Flow>,
    begun: Instant,
    is_ready: bool,
    /// All are to end.
    is_ending: bool,
    watchdog: Option<Duration>,
    barked: Instant,
}

impl Supervisor {
    fn start(path: PathBuf, program: PathBuf, config: Config) -> Self {
        let now = Instant::now();
        let flows = config.flows.into_iter().map(|flow| Running::start(&program, flow)).collect();
        Self {
            path,
            program,
            flows,
            leaving: Vec::new(),
            since: now,
            coming: Vec::new(),
            begun: now,
            is_ready: false,
            is_ending: false,
            watchdog: sd_notify::watchdog_enabled(),
            barked: now,
        }
    }

    /// Looks after all flows; whether all have ended.
    fn look(&mut self) -> bool {
        let may_start = !self.is_ending;
        self.flows.iter_mut().for_each(|flow| flow.look(&self.program, may_start));
        self.leaving.iter_mut().for_each(|flow| flow.look(&self.program, false));
        if self.since.elapsed() >= END {
            self.leaving.iter_mut().for_each(Running::kill);
        }
        self.leaving.retain(|flow| flow.has_ended().is_none());
        if self.leaving.is_empty() && !self.coming.is_empty() && may_start {
            let coming = std::mem::take(&mut self.coming);
            self.flows.extend(coming.into_iter().map(|flow| Running::start(&self.program, flow)));
            self.status();
        }
        if !self.is_ready && self.begun.elapsed() >= READY {
            self.ready();
        }
        if self.watchdog.is_some_and(|every| self.barked.elapsed() >= every / 3) {
            self.barked = Instant::now();
            notify(&[NotifyState::Watchdog]);
        }
        let is_left = !self.leaving.is_empty() || may_start && !self.coming.is_empty();
        !is_left && self.flows.iter().all(|flow| flow.has_ended().is_some())
    }

    fn ready(&mut self) {
        self.is_ready = true;
        notify(&[NotifyState::Ready]);
        self.status();
    }

    fn status(&self) {
        let up = self.flows.iter().filter(|flow| flow.is_up()).count();
        let text = format!("{up} of {} running", many(self.flows.len() as u64, "flow"));
        notify(&[NotifyState::Status(&text)]);
    }

    /// Asks all to end in good order; the second time, ends them at once.
    fn stop(&mut self) {
        if self.is_ending {
            self.flows.iter_mut().chain(&mut self.leaving).for_each(Running::kill);
        } else {
            notify(&[NotifyState::Stopping]);
            self.flows.iter_mut().for_each(Running::stop);
        }
        self.is_ending = true;
    }

    /// Reads the file again: flows that are as they were continue, others end or start. A file that cannot be used changes
    /// nothing.
    fn reload(&mut self) {
        if self.is_ending {
            return;
        }
        let config = match read(&self.path) {
            Ok(config) => config,
            Err(mistakes) => {
                mistakes.iter().for_each(|mistake| eprintln!("lately: {mistake}"));
                eprintln!("lately: SIGHUP: the flows stay as they were");
                return;
            }
        };
        let is_wanted = |running: &Running| config.flows.contains(&running.flow);
        let (stay, mut leave): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flows).into_iter().partition(is_wanted);
        leave.iter_mut().for_each(Running::stop);
        let is_new = |flow: &Flow| !stay.iter().any(|running| running.flow == *flow);
        self.coming = config.flows.iter().filter(|flow| is_new(flow)).cloned().collect();
        eprintln!(
            "lately: SIGHUP: {} to end, {} to start, {} as they were",
            leave.len(),
            self.coming.len(),
            stay.len()
        );
        (self.flows, self.since) = (stay, Instant::now());
        self.leaving.append(&mut leave);
    }

    fn end(mut self) -> Result<(), Failure> {
        if !self.is_ready {
            self.ready();
        }
        for flow in &self.flows {
            eprintln!("lately: {}: started {}", flow.flow.name, many(flow.starts, "time"));
        }
        let failed = self.flows.iter().filter(|flow| flow.has_ended() == Some(false)).count();
        match failed {
            0 => Ok(()),
            count => Err(Failure::Trouble(format!("{} failed", many(count as u64, "flow")))),
        }
    }
}

/// Tells systemd, if it listens.
fn notify(states: &[NotifyState<'_>]) {
    if std::env::var_os("NOTIFY_SOCKET").is_some()
        && let Err(error) = sd_notify::notify(states)
    {
        eprintln!("lately: systemd cannot be told: {error}");
    }
}
