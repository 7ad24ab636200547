//! One structure, whichever it is: what the lines of the registry are made into.

use crate::bits::{TOO_LARGE, addressable};
use crate::codec::Reader;
use crate::structures::structures;
use crate::table::{Contract, Recipe, Table, Windows};
use crate::window::late::IN_ORDER;
use crate::{
    Digest, Filter, MergeError, PlanError, Seen, SnapshotError, Spec, Structure, Tick, Verdict,
    Window,
};

/// How many keys ahead of the one being judged a batch begins to fetch memory.
pub(crate) const AHEAD: usize = 16;

/// How many keys ahead what was fetched has come.
const NEAR: usize = 6;

/// Begins to fetch memory for the first keys of a batch, for which none before them does.
fn prefetch_first(table: &impl Table, digests: &[Digest]) {
    if digests.len() > 1 {
        digests.iter().take(AHEAD).for_each(|&digest| table.prefetch(digest));
    }
}

macro_rules! engines {
    ($d:tt $($(#[$doc:meta])* $name:ident = $tag:literal $text:literal $recipe:ty;)*) => {
        /// A table of one structure, whichever it is.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "there is one of it in a table")]
        pub(crate) enum Engine {
            $($name(<$recipe as Recipe>::Table),)*
        }

        /// The size of one, from which it is built.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) enum Size {
            $($name(<$recipe as Recipe>::Size),)*
        }

        /// The same call on whichever structure it is.
        macro_rules! each {
            ($d engine:expr, $d inner:ident => $d call:expr) => {
                match $d engine {
                    $(Engine::$name($d inner) => $d call,)*
                }
            };
        }

        /// The same call on whichever size it is; `R` is its recipe.
        macro_rules! each_size {
            ($d size:expr, $d inner:ident, $d recipe:ident => $d call:expr) => {
                match $d size {
                    $(Size::$name($d inner) => {
                        type $d recipe = $recipe;
                        $d call
                    })*
                }
            };
        }

        impl Size {
            fn of(
                structure: Structure,
                spec: &Spec,
                capacity: u64,
                fpr: f64,
            ) -> Result<Self, PlanError> {
                Ok(match structure {
                    $(Structure::$name => {
                        Self::$name(<$recipe as Recipe>::size(spec, capacity, fpr)?)
                    })*
                })
            }

            /// [`Recipe::capacity_of`].
            pub(crate) fn capacity_of(structure: Structure, bytes: u64, fpr: f64) -> Option<u64> {
                match structure {
                    $(Structure::$name => <$recipe as Recipe>::capacity_of(bytes, fpr),)*
                }
            }

            /// The empty table.
            pub(crate) fn build(&self) -> Result<Engine, PlanError> {
                Ok(match *self {
                    $(Self::$name(size) => Engine::$name(<$recipe as Recipe>::build(size)?),)*
                })
            }
        }

        impl Engine {
            pub(crate) fn read(
                structure: Structure,
                input: &mut Reader<'_>,
            ) -> Result<Self, SnapshotError> {
                Ok(match structure {
                    $(Structure::$name => Self::$name(<$recipe as Recipe>::read(input)?),)*
                })
            }

            /// Takes over what another table of the same shape remembers.
            pub(crate) fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
                match (self, other) {
                    $((Self::$name(ours), Self::$name(theirs)) => Table::merge(ours, theirs),)*
                    _ => Err(MergeError::Shape),
                }
            }
        }

        impl Structure {
            const fn windows(self) -> Windows {
                match self {
                    $(Self::$name => <$recipe as Recipe>::WINDOWS,)*
                }
            }

            /// Can it judge arrivals at moments behind the newest ([`Spec::lateness`])?
            pub const fn takes_late_arrivals(self) -> bool {
                match self {
                    $(Self::$name => <$recipe as Recipe>::LATE,)*
                }
            }

            /// Can it forget single keys ([`AnyFilter::forget`](crate::AnyFilter::forget))? Where keys share bits
            /// with each other it cannot.
            pub const fn can_forget(self) -> bool {
                match self {
                    $(Self::$name => <$recipe as Recipe>::FORGETS,)*
                }
            }

            /// Does it grow by itself, instead of being one of several tables?
            pub(crate) const fn grows(self) -> bool {
                match self {
                    $(Self::$name => <$recipe as Recipe>::GROWS,)*
                }
            }

            /// While it grows by itself, does it stay within its rate for ever?
            pub(crate) const fn keeps_its_rate(self) -> bool {
                match self {
                    $(Self::$name => <$recipe as Recipe>::KEEPS_ITS_RATE,)*
                }
            }
        }
    };
}
structures!(engines $);

impl Structure {
    /// Does it remember for ever?
    pub const fn is_unbounded(self) -> bool {
        matches!(self.windows(), Windows::Forever)
    }

    /// Can it keep this window?
    pub const fn keeps(self, window: Window) -> bool {
        match (self.windows(), window) {
            (Windows::Forever, Window::Unbounded { .. })
            | (Windows::Any, Window::Count(_) | Window::Time { .. })
            | (Windows::Arrivals, Window::Count(_)) => true,
            (Windows::Forever | Windows::Any | Windows::Arrivals, _) => false,
        }
    }

    /// [`Structure::keeps`], with the reason if it does not.
    pub(crate) fn check(self, window: Window) -> Result<(), PlanError> {
        if self.keeps(window) {
            return Ok(());
        }
        let reason = match (self.windows(), window) {
            (Windows::Forever, _) => {
                "it never forgets, so it keeps no window; `aged-table` and `time-bloom` do"
            }
            (Windows::Arrivals, Window::Time { .. }) => {
                "it counts arrivals, so its window is the last so many of them; `time-bloom` keeps times"
            }
            _ => {
                "its keys age, so it needs a window; `bloom` and `blocked-bloom` remember for ever"
            }
        };
        Err(PlanError::Window { structure: self.name(), reason })
    }

    /// Can arrivals in such a window be that late? Otherwise says why not.
    pub(crate) fn check_lateness(self, window: Window, lateness: u64) -> Result<(), PlanError> {
        let reason = match window {
            _ if lateness == 0 => return Ok(()),
            Window::Time { .. } if self.takes_late_arrivals() => return Ok(()),
            Window::Time { .. } => IN_ORDER,
            Window::Count(_) => {
                "a window that counts arrivals takes no lateness, as they are in order by definition: leave it out, or give a window of time"
            }
            Window::Unbounded { .. } => {
                "what is never forgotten is found however late it comes, so it takes no lateness: leave it out, or give a window of time"
            }
        };
        Err(PlanError::Window { structure: self.name(), reason })
    }
}

impl Size {
    /// The smallest table that keeps `fpr` for `capacity` keys.
    pub(crate) fn new(
        spec: &Spec,
        structure: Structure,
        capacity: u64,
        fpr: f64,
    ) -> Result<Self, PlanError> {
        let mut size = Self::of(structure, spec, capacity, fpr)?;
        let bytes = size.checked_memory().filter(|&bytes| addressable(bytes.into()).is_some());
        let bytes = bytes.ok_or(TOO_LARGE)?;
        // The stash of a count window may grow as far as the table leaves room under the memory limit.
        if let (Window::Count(_), Some(limit)) = (spec.terms.window, spec.terms.memory) {
            let left = limit.saturating_sub(bytes);
            each_size!(&mut size, size, R => <R as Recipe>::limit_stash(size, left));
        }
        Ok(size)
    }

    fn checked_memory(&self) -> Option<u64> {
        each_size!(self, size, R => <R as Recipe>::memory(size))
    }

    /// Bytes that [`Size::build`] allocates.
    pub(crate) fn memory(&self) -> u64 {
        self.checked_memory().unwrap_or(u64::MAX)
    }

    /// What a table of this size promises.
    pub(crate) fn contract(&self) -> Contract {
        each_size!(self, size, R => <R as Recipe>::contract(size))
    }

    /// [`Recipe::cell_bits_and_hashes`].
    pub(crate) fn cell_bits_and_hashes(&self) -> (u32, u32) {
        each_size!(self, size, R => <R as Recipe>::cell_bits_and_hashes(size))
    }
}

impl Engine {
    /// [`Table::observe_quickly`].
    #[inline]
    pub(crate) fn observe_quickly(&mut self, digest: Digest, now: Tick) -> Option<Verdict> {
        each!(self, inner => Table::observe_quickly(inner, digest, now))
    }

    #[inline]
    pub(crate) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        each!(self, inner => Table::observe(inner, digest, now))
    }

    /// [`Table::contains_quickly`].
    #[inline]
    pub(crate) fn contains_quickly(&self, digest: Digest, now: Tick) -> Option<bool> {
        each!(self, inner => Table::contains_quickly(inner, digest, now))
    }

    pub(crate) fn contains(&self, digest: Digest, now: Tick) -> bool {
        each!(self, inner => Filter::contains(inner, digest, now))
    }

    /// The structure as what all have in common, for calls that are not made for every key.
    pub(crate) fn table(&self) -> &dyn Table {
        each!(self, inner => inner)
    }

    /// [`Engine::table`], to be changed.
    pub(crate) fn table_mut(&mut self) -> &mut dyn Table {
        each!(self, inner => inner)
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Tick) {
        each!(self, inner => Table::advance(inner, now));
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        each!(self, inner => Table::is_full(inner))
    }

    /// [`Table::is_full_now`].
    pub(crate) fn is_full_now(&mut self) -> bool {
        self.table_mut().is_full_now()
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        each!(self, inner => Table::prefetch(inner, digest));
    }

    /// Was it seen within a shorter window?
    pub(crate) fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        each!(self, inner => Table::contains_within(inner, digest, within, now))
    }

    /// When it was last seen.
    pub(crate) fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        each!(self, inner => Table::last_seen(inner, digest, now))
    }

    /// Calls those keys duplicates that the table holds; nothing changes in it.
    pub(crate) fn find_all(&self, digests: &[Digest], now: Tick, verdicts: &mut [Verdict]) {
        each!(self, inner => {
            prefetch_first(inner, digests);
            for (i, (&digest, verdict)) in digests.iter().zip(verdicts).enumerate() {
                if let Some(&ahead) = digests.get(i + AHEAD) {
                    Table::prefetch(inner, ahead);
                }
                if inner.contains(digest, now) {
                    *verdict = Verdict::Duplicate;
                }
            }
        });
    }

    /// Notes of those keys that are not found yet whether the table holds them.
    pub(crate) fn contains_all(&self, digests: &[Digest], now: Tick, found: &mut [bool]) {
        each!(self, inner => if !Table::contains_run(inner, digests, now, found) {
            prefetch_first(inner, digests);
            for (i, (&digest, found)) in digests.iter().zip(found).enumerate() {
                if let Some(&ahead) = digests.get(i + AHEAD) {
                    Table::prefetch(inner, ahead);
                }
                *found = *found || inner.contains(digest, now);
            }
        });
    }

    /// Observes, in order, the keys that are not called duplicates yet, and returns how many it
    /// has dealt with: all, unless it is full before, as far as `may_fill` lets it care.
    pub(crate) fn observe_all(
        &mut self,
        digests: &[Digest],
        moment: impl Fn(usize) -> Tick,
        verdicts: &mut [Verdict],
        may_fill: bool,
    ) -> usize {
        // One loop for each structure, so that nothing in it is looked up per key.
        each!(self, inner => {
            let mut i = 0;
            while i < digests.len() {
                let from = i;
                i += Table::observe_run(inner, &digests[i..], |at| moment(from + at), &mut verdicts[i..]);
                if i == digests.len() {
                    break;
                }
                if i == 0 {
                    prefetch_first(inner, digests);
                }
                if let Some(&ahead) = digests.get(i + AHEAD) {
                    Table::prefetch_at(inner, ahead, moment(i + AHEAD));
                }
                if let Some(&near) = digests.get(i + NEAR) {
                    Table::prefetch_more(inner, near);
                }
                if may_fill && Table::is_full(inner) {
                    return i;
                }
                if !verdicts[i].is_duplicate() {
                    verdicts[i] = Table::observe(inner, digests[i], moment(i));
                }
                i += 1;
            }
        });
        digests.len()
    }
}
