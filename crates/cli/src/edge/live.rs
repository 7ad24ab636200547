//! What the commands that talk to a broker share: how to get there, what time it is, how to end.

use crate::signals::Signals;
use crate::{Failure, many};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lately_edge_mqtt::Status;
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::run::{RunError, Stop, stop};
use lately_edge_mqtt::traffic::Traffic;
use lately_stream::quantity;
use std::fs;
use std::future::Future;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DAY: u64 = 86_400_000;

/// How to get to the broker.
#[derive(Args, Clone)]
#[command(next_help_heading = "Broker")]
pub struct BrokerArguments {
    /// MQTT 5 broker: mqtt://host:1883, or mqtts://host:8883 with TLS; these are the default ports
    #[arg(long, value_name = "URL", default_value = "mqtt://localhost:1883")]
    broker: String,

    /// Certificates of the authority that issued the broker's certificate (PEM) [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// User name at the broker
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,

    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
}

impl BrokerArguments {
    pub fn broker(&self) -> Result<Broker, Failure> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
        };
        let authorities = self.ca.as_ref().map(read).transpose()?;
        let broker = Broker::new(&self.broker, authorities.as_deref())
            .map_err(|error| Failure::Usage(format!("--broker: {error}")))?;
        let (Some(user), Some(file)) = (&self.user, &self.password_file) else { return Ok(broker) };
        let bytes = read(file)?;
        let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.lines().next());
        let password =
            text.ok_or_else(|| Failure::Usage(format!("{}: no password in it", file.display())))?;
        if !broker.is_encrypted() {
            eprintln!(
                "lately: the password is sent to {broker} unencrypted; use mqtts:// if possible"
            );
        }
        Ok(broker.with_login(user, password))
    }
}

/// What time it is.
#[derive(Args, Clone)]
#[command(next_help_heading = "Time")]
pub struct ClockArguments {
    /// Run this many times faster than real time, to replay a day in minutes. Must be the same for all parts
    /// of a system
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,

    /// When accelerated time began, in seconds since 1970. Must be the same for all parts of a system
    /// [default: the last midnight, UTC]
    #[arg(long, value_name = "SECONDS")]
    since: Option<u64>,
}

impl ClockArguments {
    pub fn clock(&self) -> Result<Clock, Failure> {
        let now = Clock::system();
        let since = self.since.map_or(now - now % DAY, |seconds| seconds.saturating_mul(1000));
        if since > now {
            return Err(Failure::Usage("--since is in the future".into()));
        }
        // At this speed times would leave what the messages can hold.
        if (now - since) as f64 * self.speed > 1e14 {
            return Err(Failure::Usage("--since is too long ago for this --speed".into()));
        }
        Clock::new(self.speed, since)
            .ok_or_else(|| Failure::Usage(format!("--speed must be 1 to {}", Clock::FASTEST)))
    }
}

/// Runs something until it ends or a signal asks it to.
pub fn block_on<F, T>(run: impl FnOnce(Stop) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let signals = Signals::listen()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stopper, stop) = stop();
    runtime.block_on(async {
        tokio::spawn(async move {
            while !signals.stop() {
                ASKED.fetch_or(signals.save(), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stopper.stop();
        });
        run(stop).await
    })
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Storage(error) => error.into(),
            other => Self::Trouble(other.to_string()),
        }
    }
}

/// Somebody wants to see the counts: SIGUSR1 came.
static ASKED: AtomicBool = AtomicBool::new(false);
/// How often the counts are told where no terminal shows them.
const EVERY: Duration = Duration::from_secs(60);

/// Are the counts to be told in a line of their own: when somebody asks, and where no terminal has shown them for a minute?
fn is_to_be_told(is_asked: bool, on_terminal: bool, since: Duration) -> bool {
    is_asked || (!on_terminal && since >= EVERY)
}

/// One line on a terminal that is always up to date, and news of the connection anywhere.
pub struct Line {
    bar: Option<ProgressBar>,
    broker: String,
    trouble: Option<String>,
    was_up: bool,
    /// When the counts were told last.
    told: Instant,
}

impl Line {
    /// A line, unless readings go to the same terminal.
    pub fn new(broker: &Broker, to_stdout: bool) -> Self {
        let wanted = stderr().is_terminal() && !(to_stdout && stdout().is_terminal());
        let bar = wanted.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, broker: broker.to_string(), trouble: None, was_up: false, told: Instant::now() }
    }

    /// Says what is new about the connection, and shows the counts.
    pub fn show(&mut self, link: Status<'_>, counts: impl FnOnce() -> String) {
        self.news(link.up, link.trouble);
        self.message(counts);
    }

    /// Shows the counts.
    pub fn message(&mut self, counts: impl FnOnce() -> String) {
        let is_asked = ASKED.swap(false, Ordering::Relaxed);
        let is_told = is_to_be_told(is_asked, self.bar.is_some(), self.told.elapsed());
        if self.bar.is_none() && !is_told {
            return;
        }
        let counts = counts();
        if is_told {
            self.told = Instant::now();
            self.say(&counts);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(counts);
            bar.tick();
        }
    }

    /// Says what is new about the connection.
    pub fn news(&mut self, up: bool, trouble: Option<&str>) {
        let is_new = self.trouble.as_deref() != trouble;
        if !up
            && is_new
            && let Some(why) = trouble
        {
            self.say(&format!("no connection to {}: {why}; retrying", self.broker));
        }
        if up && !self.was_up {
            self.say(&format!("connected to {}", self.broker));
        }
        self.was_up = up;
        self.trouble = trouble.map(str::to_owned);
    }

    pub fn say(&self, words: &str) {
        let tell = || eprintln!("lately: {words}");
        self.bar.as_ref().map_or_else(tell, |bar| bar.suspend(tell));
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What went over connections, for the summary at the end.
pub fn summary_of(traffic: &Traffic) -> String {
    let mut text = format!(
        "{} sent ({}), {} received ({})",
        many(traffic.all_sent(), "message"),
        quantity::display_bytes(traffic.bytes_sent),
        quantity::display_count(traffic.all_received()),
        quantity::display_bytes(traffic.bytes_received),
    );
    let dropped: Vec<String> =
        traffic.dropped().map(|(reason, count)| format!("{reason} {count}")).collect();
    if !dropped.is_empty() {
        text += &format!("; discarded: {}", dropped.join(", "));
    }
    text
}

/// Where a role keeps its state unless it is told: the same place whatever the working folder is. Under systemd the
/// service's `StateDirectory=`, for root `/var/lib/lately`, and else the user's folder for states.
pub fn state_folder(given: Option<&PathBuf>, role: &str) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let service =
        variable("STATE_DIRECTORY").and_then(|folders| std::env::split_paths(&folders).next());
    let of_user = || {
        let states =
            variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || variable("HOME").map(PathBuf::from);
        let of_root =
            || home().filter(|home| home == Path::new("/root")).map(|_| "/var/lib".into());
        Some(states.or_else(of_root).or_else(|| Some(home()?.join(".local/state")))?.join("lately"))
    };
    let folder = service.or_else(of_user).ok_or_else(|| {
        Failure::Usage("--state is needed: neither STATE_DIRECTORY nor HOME is set".into())
    })?;
    let before = Path::new("edge-state").join(role);
    let folder = folder.join("edge").join(role);
    if before.is_dir() && !folder.exists() {
        eprintln!(
            "lately: {} holds a state of an earlier version, which is not used; move it to {}, or give --state",
            before.display(),
            folder.display()
        );
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_each_minute_where_no_terminal_shows_them() {
        let almost = EVERY - Duration::from_millis(1);
        for (is_asked, on_terminal, since, told) in [
            (false, false, almost, false),
            (false, false, EVERY, true),
            (false, true, EVERY * 60, false),
            (true, false, Duration::ZERO, true),
            (true, true, Duration::ZERO, true),
        ] {
            let words = format!("{is_asked} {on_terminal} {since:?}");
            assert_eq!(is_to_be_told(is_asked, on_terminal, since), told, "{words}");
        }
    }

    /// Once a minute, not at each look after that.
    #[test]
    fn a_line_tells_the_counts_once_a_minute() {
        let now = Instant::now();
        // A machine that has just started has no time of a minute ago.
        let Some(before) = now.checked_sub(EVERY) else { return };
        let broker = String::from("mqtt://localhost");
        let mut line = Line { bar: None, broker, trouble: None, was_up: true, told: before };
        let mut told = 0;
        for _ in 0..3 {
            line.message(|| {
                told += 1;
                "counts of a test".into()
            });
        }
        assert_eq!(told, 1);
    }
}
