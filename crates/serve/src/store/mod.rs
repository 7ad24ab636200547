//! What the server remembers: filters by name, and the keys of `SET`. No I/O and no clock: callers name the moment, in
//! milliseconds since 1970.

mod bounded;
mod budget;
pub(crate) mod change;
mod changes;
mod clock;
mod dump;
mod entry;
mod facts;
mod intervals;
mod kept;
mod keyspace;
mod names;
mod numbers;
mod queue;
mod record;
mod replay;
mod template;
mod waiting;

pub(crate) use bounded::{Bounded, Scratch};
pub(crate) use budget::{Budget, Share};
pub(crate) use changes::Changes;
pub(crate) use clock::Clock;
pub(crate) use entry::{Counts, Entry, Inner, SavedEntry};
pub(crate) use facts::{Facts, Fullness};
pub(crate) use kept::{Held, Kept, Tables};
pub(crate) use keyspace::{KeySpace, KeySpaceOptions, Left, Life, Table};
pub(crate) use names::Names;
pub(crate) use numbers::{Numbers, as_digest, shown};
pub(crate) use record::{Record, WITH_REMOVED, WITHOUT_JOURNAL, What};
pub(crate) use replay::Replay;
pub(crate) use template::{Family, Options, Planned, Reach, Slack, Template, is_match};

use change::Change;
use lately::{Digest, Digester, PlanError, SnapshotError, Verdict};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Fresh,
    Seen,
    /// Fresh, but the filter takes no more.
    Full,
    /// Fresh, but there is no memory to remember it.
    NoMemory,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        if verdict.is_duplicate() { Self::Seen } else { Self::Fresh }
    }
}

/// Why the store does not do what it is asked. Shown as the error that clients get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    Exists,
    WrongType,
    NotFound,
    Name,
    TooMany,
    Capacity,
    Full,
    NoMemory,
    /// `SADD` to a name that is no set.
    NoSet,
    /// The structure cannot take out single keys.
    CannotForget,
    /// A filter that is asked for intervals cannot either.
    CannotForgetNumbers,
    /// A command of another family, for a filter that is asked for intervals.
    Intervals,
    /// An interval, for a filter that is not asked for any.
    NoIntervals,
    /// A filter that is asked for intervals does not tell when a key was seen.
    NoMoments,
    /// A filter of another kind has come in its place since the command was taken.
    Replaced,
    Memory {
        needed: u64,
        left: u64,
    },
    Plan(PlanError),
    /// A time to live that cannot be kept. The caller knows the command that the error names.
    Expire,
    /// Bytes that are no dump of a filter.
    Dump(SnapshotError),
    /// A dump whose digests are made with this seed.
    Seed(u64),
    /// A dump from the future.
    Ahead,
    /// It cannot be written down.
    Journal(String),
}

impl From<SnapshotError> for Refusal {
    fn from(error: SnapshotError) -> Self {
        Self::Dump(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "ERR item exists",
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::NotFound => "ERR not found",
            Self::Name => "ERR the name of a filter has at most 512 bytes",
            Self::TooMany => "ERR there are as many filters as this server takes",
            Self::Capacity => "ERR (capacity should be larger than 0)",
            Self::Full => "ERR non scaling filter is full",
            Self::NoMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::NoSet => {
                "ERR lately keeps the sets that its configuration names: a [[filter]] that matches, with set = true"
            }
            Self::CannotForget => {
                "ERR this structure cannot forget single keys; 'aged-table' can, the default of windows"
            }
            Self::CannotForgetNumbers => {
                "ERR a filter of intervals cannot forget single keys; windows without RANGE can"
            }
            Self::Intervals => {
                "WRONGTYPE this filter is asked for intervals: LATELY.OBSERVE and LATELY.REMEMBER mark its keys, LATELY.SEEN and LATELY.RANGE ask for them"
            }
            Self::NoIntervals => {
                "ERR this filter knows single keys only: intervals are for filters made with LATELY.RESERVE key … RANGE NUMBER|IP|EPC"
            }
            Self::NoMoments => {
                "ERR a filter of intervals does not tell when a key was seen: ask LATELY.SEEN or LATELY.RANGE … WITHIN dur"
            }
            Self::Replaced => {
                "ERR another filter has taken the place of this one meanwhile: give the command again"
            }
            Self::Memory { needed, left } => {
                return write!(f, "ERR not enough memory: needs {needed} bytes, {left} are left");
            }
            Self::Plan(error) => return write!(f, "ERR {error}"),
            Self::Expire => "ERR invalid expire time",
            Self::Dump(error) => return write!(f, "ERR this is no dump of a filter: {error}"),
            Self::Seed(seed) => {
                return write!(
                    f,
                    "ERR this filter was made with another seed (start with --seed {seed})"
                );
            }
            Self::Journal(why) => {
                return write!(f, "MISCONF Errors writing to the journal: {why}");
            }
            Self::Ahead => {
                "ERR the newest moment of this filter is more than a minute ahead of this server's clock"
            }
        })
    }
}

impl Refusal {
    /// A filter cannot be planned.
    fn of_plan(error: PlanError) -> Self {
        match error {
            PlanError::Memory { needed, limit } => Self::Memory { needed, left: limit },
            error => Self::Plan(error),
        }
    }
}

/// The longest name of a filter.
const NAME: usize = 512;

/// Everything that the server remembers.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) names: Names,
    pub(crate) keys: KeySpace,
    pub(crate) budget: Arc<Budget>,
    pub(crate) changes: Arc<Changes>,
    templates: Vec<Template>,
    digester: Digester,
    /// The number of the last filter that was made.
    last_id: AtomicU64,
    /// Where the changes ended when what had expired was last dropped.
    tidied: AtomicU64,
}

impl Store {
    pub(crate) fn new(
        seed: u64,
        memory: u64,
        filters: usize,
        templates: Vec<Template>,
        keys: KeySpaceOptions,
    ) -> Self {
        let budget = Budget::new(memory);
        let changes = Changes::new();
        let keys = KeySpace::new(keys, seed, &budget, &changes);
        let names = Names::new(seed, filters, &changes);
        if templates.iter().any(|template| template.options.family.numbers().is_some()) {
            names.expect_numbers();
        }
        let digester = Digester::new(seed);
        let (last_id, tidied) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { names, keys, budget, changes, templates, digester, last_id, tidied }
    }

    /// A number for another filter.
    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes in a filter that was saved. Returns it, and the one whose place it takes.
    pub(crate) fn take_in(
        &self,
        saved: SavedEntry,
        filter: Kept,
    ) -> (Arc<Entry>, Option<Arc<Entry>>) {
        self.last_id.fetch_max(saved.id, Ordering::Relaxed);
        let entry = Arc::new(Entry::with(saved, filter, &self.changes));
        let before = self.names.replace(Arc::clone(&entry));
        (entry, before)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.digester.seed()
    }

    pub(crate) fn digest(&self, key: &[u8]) -> Digest {
        self.digester.digest(key)
    }

    /// The options for a name that a template matches.
    pub(crate) fn template(&self, name: &[u8]) -> Option<Options> {
        template::options_for(&self.templates, name)
    }

    /// The filter of this name.
    pub(crate) fn filter(&self, name: &[u8], now: u64) -> Option<Arc<Entry>> {
        self.names.get(name, now)
    }

    /// The filter of this name, or an error where there is none.
    pub(crate) fn existing(&self, name: &[u8], now: u64) -> Result<Arc<Entry>, Refusal> {
        let missing = || match self.keys.contains(self.digest(name), now) {
            true => Refusal::WrongType,
            false => Refusal::NotFound,
        };
        self.filter(name, now).ok_or_else(missing)
    }

    /// The filter of this name and family; `None` where there is nothing of that name.
    pub(crate) fn of_family(
        &self,
        name: &[u8],
        family: Family,
        now: u64,
    ) -> Result<Option<Arc<Entry>>, Refusal> {
        match self.existing(name, now) {
            Ok(entry) if entry.numbers().is_some() => Err(Refusal::Intervals),
            Ok(entry) if entry.lock().options.family == family => Ok(Some(entry)),
            Ok(_) => Err(Refusal::WrongType),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// How the keys of this filter are spelt, if it is asked for intervals; or of the one that a template would make. Costs next
    /// to nothing where there are no such filters.
    pub(crate) fn numbers(&self, name: &[u8], now: u64) -> Option<Numbers> {
        if !self.names.may_have_numbers() {
            return None;
        }
        match self.filter(name, now) {
            Some(entry) => entry.numbers(),
            None => self.template(name)?.family.numbers(),
        }
    }

    /// The filter of this name, which is made as its template says if there is none.
    pub(crate) fn filter_or_new(&self, name: &[u8], now: u64) -> Result<Arc<Entry>, Refusal> {
        self.filter_or_new_of(name, None, now)
    }

    /// The same, for commands of one family, which make no filter of another. One that is there may be of another.
    pub(crate) fn filter_or_new_of(
        &self,
        name: &[u8],
        family: Option<Family>,
        now: u64,
    ) -> Result<Arc<Entry>, Refusal> {
        if let Some(found) = self.filter(name, now) {
            return Ok(found);
        }
        let options = self.template(name).unwrap_or_default();
        if family.is_some_and(|family| family != options.family) {
            return Err(options.family.wrong_type());
        }
        match self.create(name, options, now) {
            // Somebody else was faster.
            Err(Refusal::Exists) => self.existing(name, now),
            made => made,
        }
    }

    /// May there be a new filter of this name, in the place of one that is there if it `replaces` that?
    pub(crate) fn check_name(&self, name: &[u8], now: u64, replaces: bool) -> Result<(), Refusal> {
        if name.len() > NAME {
            return Err(Refusal::Name);
        }
        if !replaces && self.filter(name, now).is_some() {
            return Err(Refusal::Exists);
        }
        match self.keys.contains(self.digest(name), now) {
            true => Err(Refusal::WrongType),
            false => Ok(()),
        }
    }

    /// Makes a filter.
    pub(crate) fn create(
        &self,
        name: &[u8],
        options: Options,
        now: u64,
    ) -> Result<Arc<Entry>, Refusal> {
        self.check_name(name, now, false)?;
        let filter = Kept::new(&options, self.seed(), &self.budget)?;
        self.names.add(Entry::new(self.next_id(), name, options, filter, &self.changes), now)
    }

    /// Drops what has expired. That is a change too: without it, repeating the others could take more memory than
    /// making them did.
    pub(crate) fn tidy(&self, now: u64) {
        if self.changes.end() != self.tidied.load(Ordering::Relaxed) {
            self.changes.add(&Change::Tidied { moment: now });
            self.tidied.store(self.changes.end(), Ordering::Relaxed);
        }
        self.names.tidy(now);
        for entry in self.names.all() {
            entry.tidy(now);
        }
        self.keys.tidy(now);
    }

    /// Takes up what was kept, and drops what has expired at the newest moment in it, which `load` returns. It may take more memory
    /// than there is meanwhile, but not after that.
    pub(crate) fn load<T>(
        &self,
        load: impl FnOnce() -> Result<(T, u64), String>,
    ) -> Result<(T, u64), String> {
        self.budget.begin_loading();
        let (loaded, newest) = load()?;
        self.tidy(newest);
        let (limit, used) = (self.budget.limit(), self.budget.used());
        match self.budget.end_loading() {
            true => Ok((loaded, newest)),
            false => Err(format!(
                "what is kept takes {used} bytes, more than --memory, {limit} bytes: raise it; nothing was changed"
            )),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.names.clear(|| self.keys.clear(|| self.changes.add(&Change::Cleared)));
    }
}
