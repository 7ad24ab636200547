//! Arguments that several subcommands share: the window and the filter.

use crate::Failure;
use clap::{Args, ValueEnum};
use lately::{Plan, PlanError, Renewal, Spec, Structure, WhenFull, Window};
use lately_stream::clock::StreamClock;
use lately_stream::quantity;
use std::num::{NonZero, NonZeroU64};
use std::thread;

/// Distinct keys a filter is planned for when nothing is said: it grows.
const EXPECTED_EVER: u64 = 1_000_000;
pub const EXPECTED_IN_WINDOW: u64 = 4096;

/// The chance that a new record is dropped when nothing is said.
pub const DEFAULT_FPR: f64 = 1e-6;

/// The most memory a filter takes when nothing is said.
pub const MEMORY: u64 = 1 << 30;

/// The most bytes of records that wait under `--best`.
pub const HELD_BYTES: usize = 64 << 20;

/// Times are told apart to the microsecond when nothing is said.
const SLACK: u64 = 999;

const LONGEST: &str = "too long a window; it can have less than 2^62 ns (146 years), and at most 2^60 times what --slack allows";
const MOST: &str = "too large a window; it can have at most 2^60 records. Without --last, keys are remembered for ever";

/// Which sightings count, for how long, and what renews them.
#[derive(Args, Clone)]
#[command(next_help_heading = "Window")]
pub struct WindowArguments {
    #[command(flatten)]
    pub span: SpanArguments,

    /// Does a duplicate renew its key's age? `always`: a chain of reads is one visit, however
    /// long. `fresh`: a key passes again one window after it last passed
    #[arg(long, value_enum, default_value_t = Renew::Always)]
    pub renew: Renew,
}

/// How long a sighting counts.
#[derive(Args, Clone)]
#[command(next_help_heading = "Window")]
pub struct SpanArguments {
    /// A key is a duplicate if last seen at most this long ago (10s, 1m30s, 200ms)
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, conflicts_with = "last")]
    pub within: Option<u64>,

    /// A key is a duplicate if it is among the last so many records (100k, 2.5M)
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    pub last: Option<u64>,

    /// How much longer than the window a key may be reported, to save memory: a duration, a count
    /// or a share of the window (1%) [default: 1us, times are told apart to the microsecond]
    #[arg(long, value_name = "QUANTITY")]
    pub slack: Option<String>,
}

/// `--renew`.
#[derive(Clone, Copy, ValueEnum)]
pub enum Renew {
    Always,
    Fresh,
}

impl From<Renew> for Renewal {
    fn from(renew: Renew) -> Self {
        match renew {
            Renew::Always => Self::Always,
            Renew::Fresh => Self::OnFresh,
        }
    }
}

/// How large the filter is and how sure.
#[derive(Args, Clone)]
#[command(next_help_heading = "Filter")]
pub struct FilterArguments {
    /// Distinct keys expected within the window: a hint, the filter grows
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    pub expect: Option<u64>,

    /// The most memory the filter may take (64MiB, 1GB) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    pub memory: Option<u64>,

    /// The chance that a record that is new is wrongly dropped [default: 1e-6]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub fpr: Option<f64>,

    /// What to do with more keys than planned. `grow`: take more memory up to --memory, then
    /// forget the oldest. `forget`: forget the oldest at once. `refuse`: pass new keys on without
    /// remembering them. Nothing new is ever dropped for lack of room [default: grow]
    #[arg(long, value_enum)]
    pub on_full: Option<OnFull>,

    /// The structure [default: the smallest for the window; see `lately plan`]
    #[arg(long, value_name = "NAME")]
    pub structure: Option<Structure>,

    /// Seed of the hash; filters that are to know each other's keys need the same
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
}

/// `--on-full`.
#[derive(Clone, Copy, ValueEnum)]
pub enum OnFull {
    Grow,
    Forget,
    Refuse,
}

impl From<OnFull> for WhenFull {
    fn from(on_full: OnFull) -> Self {
        match on_full {
            OnFull::Grow => Self::Grow,
            OnFull::Forget => Self::Forget,
            OnFull::Refuse => Self::Refuse,
        }
    }
}

impl SpanArguments {
    /// The window, of so many keys at a time if it is one of time.
    pub fn window(&self, keys: u64) -> Result<Window, Failure> {
        let positive = |n: u64, flag: &str| {
            NonZeroU64::new(n).ok_or_else(|| Failure::Usage(format!("{flag} must be more than 0")))
        };
        let capacity = positive(keys, "--expect")?;
        Ok(match (self.within, self.last) {
            (Some(span), _) => Window::Time { span: positive(span, "--within")?, capacity },
            (None, Some(n)) => Window::Count(positive(n, "--last")?),
            (None, None) => Window::Unbounded { capacity },
        })
    }

    /// `--slack`, or as little as microseconds allow.
    pub fn slack(&self) -> Result<u64, Failure> {
        let usage = |error: quantity::QuantityError| Failure::Usage(format!("--slack: {error}"));
        let share = |slack: &str, window: u64| {
            quantity::share(slack).map(|share| (share * window as f64) as u64).map_err(usage)
        };
        match (&self.slack, self.within, self.last) {
            (None, Some(span), _) if span.is_multiple_of(SLACK + 1) => Ok(SLACK),
            (None, ..) => Ok(0),
            (Some(slack), Some(window), _) | (Some(slack), None, Some(window))
                if slack.ends_with('%') =>
            {
                share(slack, window)
            }
            (Some(slack), Some(_), _) => quantity::duration(slack).map_err(usage),
            (Some(slack), None, Some(_)) => quantity::count(slack).map_err(usage),
            (Some(_), None, None) => {
                Err(Failure::Usage("--slack needs a window: --within or --last".into()))
            }
        }
    }

    /// What a state is begun with, as text.
    pub fn settings(&self) -> String {
        match (self.within, self.last) {
            (Some(span), _) => format!(" within={}", quantity::display_duration(span)),
            (None, Some(n)) => format!(" last={}", quantity::display_count(n)),
            (None, None) => " within=ever".into(),
        }
    }
}

/// When records are, and what of it is believed.
#[derive(Args)]
#[command(next_help_heading = "Stream clock")]
pub struct TimeArguments {
    /// How far behind the newest time a record may be to be judged [default: the window; without
    /// --within, none is late]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub lateness: Option<u64>,

    /// How far ahead of the clock a time is believed, if the records after it do not follow
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "1h")]
    max_skew: u64,
}

impl TimeArguments {
    /// The stream clock of a run over this window.
    pub fn clock(&self, span: &SpanArguments) -> StreamClock {
        StreamClock::new(self.lateness.or(span.within).unwrap_or(u64::MAX), self.max_skew)
    }
}

/// How many threads parse: as many as there are, but no more than are of use.
pub fn parsers(asked: Option<usize>) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get).min(8);
    asked.unwrap_or_else(cores)
}

impl FilterArguments {
    /// What the filter is to do.
    pub fn spec(&self, window: &WindowArguments) -> Result<Spec, Failure> {
        let expected =
            if window.span.within.is_some() { EXPECTED_IN_WINDOW } else { EXPECTED_EVER };
        let mut spec = Spec::new(window.span.window(self.expect.unwrap_or(expected))?)
            .fpr(self.fpr.unwrap_or(DEFAULT_FPR))
            .memory(self.memory.unwrap_or(MEMORY))
            .renewal(window.renew.into())
            .slack(window.span.slack()?)
            .when_full(self.on_full.unwrap_or(OnFull::Grow).into())
            .seed(self.seed);
        if let Some(structure) = self.structure {
            spec = spec.structure(structure);
        }
        Ok(spec)
    }

    /// A plan for that. What was not asked for gives way: a capacity nobody named shrinks until it
    /// fits into the memory.
    pub fn plan(&self, window: &WindowArguments) -> Result<Plan, Failure> {
        let spec = self.spec(window)?;
        let mut keys = spec.window().capacity();
        loop {
            let planned = spec.capacity(NonZeroU64::new(keys).unwrap_or(NonZeroU64::MIN)).plan();
            match planned {
                Err(PlanError::Memory { .. }) if self.expect.is_none() && keys > 1 => keys /= 2,
                other => {
                    return other.map_err(|error| {
                        let flag = self.to_blame(window, &error);
                        Failure::Usage(match (flag, error) {
                            ("--within", PlanError::TooLarge(_)) => format!("{flag}: {LONGEST}"),
                            ("--last", PlanError::TooLarge(_)) => format!("{flag}: {MOST}"),
                            (flag, error) => format!("{flag}: {error}"),
                        })
                    });
                }
            }
        }
    }

    /// The flag that asks for more than can be had.
    fn to_blame(&self, window: &WindowArguments, error: &PlanError) -> &'static str {
        let span = if window.span.last.is_some() { "--last" } else { "--within" };
        // Would it do for a few keys?
        let small = || {
            let small = Self { expect: Some(1), fpr: None, memory: None, ..self.clone() };
            small.spec(window).is_ok_and(|spec| spec.plan().is_ok())
        };
        match error {
            PlanError::Fpr(_) => "--fpr",
            PlanError::Window { .. } => "--structure",
            PlanError::Memory { .. } if self.memory.is_some() => "--memory",
            _ if window.span.last.is_some() || (window.span.within.is_some() && !small()) => span,
            _ if self.expect.is_some() => "--expect",
            _ if self.fpr.is_some() => "--fpr",
            _ => span,
        }
    }
}
