//! One flow that runs: a process, its messages, and when it is started again.

use super::config::Flow;
use crate::signals::SUPERVISED;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a flow that failed waits before it is started again: at first, and at most.
const WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A flow that ran for so long had nothing wrong with it from the start.
const STEADY: Duration = Duration::from_secs(60);

/// Exit statuses after which a flow would not do better: wrong usage, and invalid records under `--strict`.
const FINAL: [i32; 2] = [2, 3];

/// A flow and its process.
pub struct Running {
    pub flow: Flow,
    state: State,
    /// Starts so far.
    pub starts: u64,
    wait: Duration,
}

enum State {
    Runs(Process),
    /// It is started again then.
    Waits(Instant),
    /// It is not: it has ended in good order, or not.
    Ended {
        well: bool,
    },
}

struct Process {
    child: Child,
    /// It ends when this is closed.
    hold: Option<ChildStdin>,
    messages: Option<JoinHandle<()>>,
    since: Instant,
}

impl Running {
    /// Starts it.
    pub fn start(program: &Path, flow: Flow) -> Self {
        let mut running =
            Self { flow, state: State::Waits(Instant::now()), starts: 0, wait: WAIT.0 };
        running.look(program, true);
        running
    }

    /// Takes note if its process has ended, and starts it again if it is time and `may_start`.
    pub fn look(&mut self, program: &Path, may_start: bool) {
        if let State::Runs(process) = &mut self.state {
            match process.child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) => {
                    process.hear_all();
                    let ran = process.since.elapsed();
                    self.ended(status, ran, may_start);
                }
                Err(error) => self.failed(&error),
            }
        }
        if let State::Waits(then) = self.state
            && may_start
            && Instant::now() >= then
        {
            match Process::start(program, &self.flow) {
                Ok(process) => {
                    self.starts += 1;
                    self.state = State::Runs(process);
                }
                Err(error) => self.failed(&error),
            }
        }
    }

    fn ended(&mut self, status: ExitStatus, ran: Duration, may_start: bool) {
        let name = &self.flow.name;
        if status.success() {
            self.state = State::Ended { well: true };
        } else if !may_start || status.code().is_some_and(|code| FINAL.contains(&code)) {
            eprintln!("{name}: {status}; it is not started again");
            self.state = State::Ended { well: false };
        } else {
            if ran >= STEADY {
                self.wait = WAIT.0;
            }
            eprintln!("{name}: {status}; it is started again in {} s", self.wait.as_secs());
            self.again();
        }
    }

    fn failed(&mut self, error: &io::Error) {
        eprintln!("{}: it cannot be started: {error}", self.flow.name);
        self.again();
    }

    fn again(&mut self) {
        self.state = State::Waits(Instant::now() + self.wait);
        self.wait = (self.wait * 2).min(WAIT.1);
    }

    /// Asks it to end in good order, and not to be started again.
    pub fn stop(&mut self) {
        match &mut self.state {
            State::Runs(process) => process.hold = None,
            State::Waits(_) => self.state = State::Ended { well: true },
            State::Ended { .. } => {}
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let State::Runs(process) = &mut self.state {
            // It may have ended by itself.
            let _ = process.child.kill();
        }
    }

    /// Has it ended, and in good order?
    pub fn has_ended(&self) -> Option<bool> {
        match self.state {
            State::Ended { well } => Some(well),
            _ => None,
        }
    }

    /// Does its process run?
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Runs(_))
    }

    /// Has it save its state.
    pub fn save(&self) {
        if let State::Runs(process) = &self.state
            && let Some(pid) = i32::try_from(process.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::USR1);
        }
    }
}

impl Process {
    fn start(program: &Path, flow: &Flow) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .args(flow.arguments())
            .env(SUPERVISED, &flow.name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // What a terminal sends to all that run there is for the supervisor alone.
        command.process_group(0);
        let mut child = command.spawn()?;
        let (hold, name) = (child.stdin.take(), flow.name.clone());
        let messages = child.stderr.take().map(|messages| {
            thread::spawn(move || {
                for line in BufReader::new(messages).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line);
                    eprintln!("{name}: {}", line.strip_prefix("lately: ").unwrap_or(&line));
                }
            })
        });
        Ok(Self { child, hold, messages, since: Instant::now() })
    }

    /// Waits until all that it has said is forwarded.
    fn hear_all(&mut self) {
        if let Some(messages) = self.messages.take() {
            let _ = messages.join();
        }
    }
}
