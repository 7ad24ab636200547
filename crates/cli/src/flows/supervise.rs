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

/// A flow that runs for so long has understood what it is to do.
const READY: Duration = Duration::from_secs(1);

/// How long a flow that is to end may take when the file was read again.
const END: Duration = Duration::from_secs(30);

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
    begun: Instant,
    is_ready: bool,
    /// All are to end.
    is_ending: bool,
    watchdog: Option<Duration>,
    barked: Instant,
}

impl Supervisor {
    fn start(path: PathBuf, program: PathBuf, config: Config) -> Self {
        let flows = config.flows.into_iter().map(|flow| Running::start(&program, flow)).collect();
        Self {
            path,
            program,
            flows,
            begun: Instant::now(),
            is_ready: false,
            is_ending: false,
            watchdog: sd_notify::watchdog_enabled(),
            barked: Instant::now(),
        }
    }

    /// Looks after all flows; whether all have ended.
    fn look(&mut self) -> bool {
        let may_start = !self.is_ending;
        for flow in &mut self.flows {
            flow.look(&self.program, may_start);
            if self.is_ending {
                flow.give_up();
            }
        }
        if !self.is_ready && self.begun.elapsed() >= READY {
            self.is_ready = true;
            notify(&[NotifyState::Ready]);
            self.status();
        }
        if self.watchdog.is_some_and(|every| self.barked.elapsed() >= every / 3) {
            self.barked = Instant::now();
            notify(&[NotifyState::Watchdog]);
        }
        self.flows.iter().all(|flow| flow.has_ended().is_some())
    }

    fn status(&self) {
        let up = self.flows.iter().filter(|flow| flow.is_up()).count();
        let text = format!("{up} of {} running", many(self.flows.len() as u64, "flow"));
        notify(&[NotifyState::Status(&text)]);
    }

    /// Asks all to end in good order; the second time, ends them at once.
    fn stop(&mut self) {
        if !self.is_ending {
            notify(&[NotifyState::Stopping]);
            self.flows.iter_mut().for_each(Running::stop);
        } else {
            self.flows.iter_mut().for_each(Running::kill);
        }
        self.is_ending = true;
    }

    /// Reads the file again: flows that are as they were go on, others end or start. A file that cannot be used changes
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
        notify(&[NotifyState::Reloading]);
        let is_wanted = |running: &Running| config.flows.contains(&running.flow);
        let (stay, mut leave): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flows).into_iter().partition(is_wanted);
        // One that starts may need what another has: its state, its output.
        leave.iter_mut().for_each(Running::stop);
        let left = leave.len();
        self.wait_for(leave);
        self.flows = stay;
        let is_new = |flow: &Flow| !self.flows.iter().any(|running| running.flow == *flow);
        let new: Vec<Flow> = config.flows.iter().filter(|flow| is_new(flow)).cloned().collect();
        let started = new.len();
        self.flows.extend(new.into_iter().map(|flow| Running::start(&self.program, flow)));
        eprintln!(
            "lately: SIGHUP: {left} ended, {started} started, {} as they were",
            self.flows.len() - started
        );
        notify(&[NotifyState::Ready]);
        self.status();
    }

    /// Waits until these have ended, a while in good order.
    fn wait_for(&self, mut flows: Vec<Running>) {
        let begun = Instant::now();
        while flows.iter().any(|flow| flow.has_ended().is_none()) {
            if begun.elapsed() >= END {
                flows.iter_mut().for_each(Running::kill);
            }
            for flow in &mut flows {
                flow.look(&self.program, false);
                flow.give_up();
            }
            thread::sleep(TICK);
        }
    }

    fn end(self) -> Result<(), Failure> {
        let failed: Vec<_> =
            self.flows.iter().filter(|flow| flow.has_ended() == Some(false)).collect();
        for flow in &self.flows {
            eprintln!("lately: {}: started {}", flow.flow.name, many(flow.starts, "time"));
        }
        match failed.len() {
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
