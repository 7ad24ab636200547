//! Arguments that several subcommands share: the window, the clock and the filter.

use crate::Failure;
use crate::fields::{self, Names};
use clap::{Args, ValueEnum};
use lately::{Renewal, Structure, WhenFull};
use lately_stream::judge::moment::OnLate;
use lately_stream::options::Options;
use lately_stream::quantity;
use lately_stream::session::{ClockSpec, DedupSpec, Slack, Span, SpecError};
use std::num::NonZero;
use std::thread;

/// Which sightings count, for how long, and what renews them.
#[derive(Args, Clone)]
#[command(next_help_heading = "Window")]
pub struct WindowArguments {
    #[command(flatten)]
    pub span: SpanArguments,

    /// Whether a duplicate renews its key. `always`: a chain of reads is one visit, however long.
    /// `fresh`: a key is forwarded again one window after it was last forwarded
    #[arg(long, value_enum, default_value_t = Renew::Always)]
    pub renew: Renew,

    /// What other programs call it.
    #[arg(long = "window", hide = true, value_name = "DURATION", value_parser = no_window)]
    _window: Option<String>,
}

/// How long a sighting counts.
#[derive(Args, Clone)]
#[command(next_help_heading = "Window")]
pub struct SpanArguments {
    /// A key is a duplicate if last seen at most this long ago (10s, 1m30s, 200ms)
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, conflicts_with = "last")]
    pub within: Option<u64>,

    /// A key is a duplicate if it is among the last COUNT records (100k, 2.5M)
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    pub last: Option<u64>,

    /// How much longer than the window a key may still count as seen, to save memory: a duration, a
    /// count or a share of the window (1%) [default: 1us, the resolution of times]
    #[arg(long, value_name = "QUANTITY")]
    pub slack: Option<String>,
}

/// `--window`, which is not what it is called here.
pub fn no_window(text: &str) -> Result<String, String> {
    let within = quantity::duration(text).is_ok();
    Err(if within {
        format!("the window is named by its kind: --within {text}")
    } else {
        format!(
            "the window is named by its kind: --within 10s, or --last {text} for a count of records"
        )
    })
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

/// How large the filter is and how certain.
#[derive(Args, Clone)]
#[command(next_help_heading = "Filter")]
pub struct FilterArguments {
    /// Distinct keys expected within the window: a hint, the filter grows [default: 4096 with --within,
    /// else 1M, or for dedup without --state up to 16M by the size of its files; fewer if --memory is small]
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    pub expect: Option<u64>,

    /// Memory limit of the filter (64MiB, 1GB) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    pub memory: Option<u64>,

    /// Highest rate at which new records are dropped by mistake [default: 1e-6]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub fpr: Option<f64>,

    /// What to do with more keys than planned. `grow`: use more memory up to --memory, then forget the
    /// oldest. `forget`: forget the oldest at once. `refuse`: forward new keys without remembering
    /// them. No new record is ever dropped for lack of room [default: grow]
    #[arg(long, value_enum)]
    pub on_full: Option<OnFull>,

    /// The structure [default: aged-table with a window, else blocked-bloom; `lately plan` compares them]
    #[arg(long, value_name = "NAME")]
    pub structure: Option<Structure>,

    /// Seed of the hash; filters can only be merged or compared if they have the same seed
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
    /// How long a key is remembered.
    pub fn span(&self) -> Span {
        match (self.within, self.last) {
            (Some(length), _) => Span::Within(length),
            (None, Some(n)) => Span::Last(n),
            (None, None) => Span::Ever,
        }
    }

    /// `--slack`.
    pub fn slack(&self) -> Result<Option<Slack>, Failure> {
        let Some(slack) = &self.slack else { return Ok(None) };
        if self.span() == Span::Ever {
            let message = "--slack needs a window: --within or --last";
            return Err(Failure::Usage(message.into()));
        }
        let slack = Slack::parse(slack, self.span());
        slack.map(Some).map_err(|error| Failure::Usage(format!("--slack: {error}")))
    }
}

/// Names the flag of a term that cannot be kept.
pub fn usage(error: &SpecError) -> Failure {
    Failure::Usage(format!("--{error}"))
}

/// When records happened, and how far their times are trusted.
#[derive(Args)]
#[command(next_help_heading = "Stream clock")]
pub struct TimeArguments {
    #[command(flatten)]
    pub lateness: LatenessArguments,

    /// Largest forward jump in time accepted from a single record; a larger one must be confirmed by
    /// the records after it [default: the window, at least 1s and at most 1h]. Jumps up to
    /// --lateness are always accepted, as they make no other record late
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    max_skew: Option<u64>,

    #[command(flatten)]
    source: SourceArguments,

    /// What to do with late records. `pass`: forward them without judging. `judge`: judge them by when
    /// they arrive, so that those whose key was seen within the window of the clock are dropped
    #[arg(long, value_enum, default_value_t = Late::Pass)]
    on_late: Late,

    /// What to do with records whose time is missing or cannot be read. `pass`: judge them by when they
    /// arrive. `drop`: they are invalid
    #[arg(long, value_enum, default_value_t = BadTime::Pass)]
    pub on_bad_time: BadTime,
}

/// Whose clocks there are.
#[derive(Args)]
#[command(next_help_heading = "Stream clock")]
pub struct SourceArguments {
    /// The fields that name a record's source (reader, gateway, host): each source gets a clock of its
    /// own, so that one whose clock is wrong is judged by its own time instead of being late forever
    #[arg(long, value_name = "FIELD,..", value_parser = fields::names)]
    clock_by: Vec<Names>,
}

impl SourceArguments {
    /// The fields that name a record's source.
    pub fn clock_by(&self) -> Vec<String> {
        fields::all(&self.clock_by)
    }
}

/// How far records may be out of order.
#[derive(Args, Clone)]
#[command(next_help_heading = "Stream clock")]
pub struct LatenessArguments {
    /// How far behind the newest time a record may be and still be judged, by its own time. Keys are
    /// remembered for the window plus this; `lately plan` shows what it costs [default: the window;
    /// without --within, no record is late]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub lateness: Option<u64>,
}

/// `--on-late`.
#[derive(Clone, Copy, ValueEnum)]
enum Late {
    Pass,
    Judge,
}

/// `--on-bad-time`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BadTime {
    Pass,
    Drop,
}

impl TimeArguments {
    /// The fields that name a record's source.
    pub fn clock_by(&self) -> Vec<String> {
        self.source.clock_by()
    }

    /// Asks for what the clock needs of records.
    pub fn apply(&self, options: &mut Options) {
        options.source = self.clock_by();
        options.drop_untimed = self.on_bad_time == BadTime::Drop;
    }

    /// The clock of a run; `timed` says that records may bring times.
    pub fn clock(&self, timed: bool) -> ClockSpec {
        ClockSpec {
            timed: Some(timed),
            lateness: self.lateness.lateness,
            max_skew: self.max_skew,
            by_source: !self.clock_by().is_empty(),
            on_late: match self.on_late {
                Late::Pass => OnLate::Pass,
                Late::Judge => OnLate::Judge,
            },
        }
    }
}

/// The most threads that can be asked for.
const MAX_THREADS: usize = 256;

/// `--threads`.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=MAX_THREADS) => Ok(threads),
        Ok(_) => Err(format!("must be 1 to {MAX_THREADS}; more than one per core are of no use")),
        Err(error) => Err(format!("{error}")),
    }
}

/// How many threads parse: one for each core, but no more than are of use.
pub fn parsers(asked: Option<usize>) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get).min(8);
    asked.unwrap_or_else(cores)
}

impl FilterArguments {
    /// What is asked of the filter.
    pub fn spec(&self, window: &WindowArguments) -> Result<DedupSpec, Failure> {
        Ok(DedupSpec {
            span: window.span.span(),
            expect: self.expect,
            memory: self.memory,
            fpr: self.fpr,
            slack: window.span.slack()?,
            renewal: window.renew.into(),
            when_full: self.on_full.map(Into::into),
            structure: self.structure,
            seed: self.seed,
            ..DedupSpec::default()
        })
    }
}
