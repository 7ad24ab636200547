//! The keys of one time to live.

use crate::store::Outcome;
use crate::store::bounded::{Bounded, Scratch};
use lately::{Digest, Tick};
use std::num::NonZeroU64;

/// The keys of one time to live.
#[derive(Debug)]
pub(crate) struct Table {
    /// Milliseconds; `None`: for ever.
    pub(crate) ttl: Option<NonZeroU64>,
    pub(crate) is_exact: bool,
    pub(crate) filter: Bounded,
    /// When it last took or renewed a key.
    pub(crate) last: u64,
    /// Changes before this place of the journal are in it.
    pub(crate) since: u64,
}

impl Table {
    /// Arrivals, all at one moment. Adds an outcome for each.
    pub(super) fn observe(
        &mut self,
        digests: &[Digest],
        now: u64,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        self.filter.observe(digests, Tick(now), scratch, outcomes);
        self.last = self.last.max(now);
    }
}

/// Is the key in a table that cannot forget it? Such were saved by earlier versions.
pub(super) fn is_kept(tables: &[Table], digest: Digest, now: u64) -> bool {
    let is_kept =
        |table: &Table| !table.filter.can_forget() && table.filter.contains(digest, Tick(now));
    tables.iter().any(is_kept)
}

/// Drops the tables whose last key has expired, and gives back what others no longer need.
pub(super) fn tidy(tables: &mut Vec<Table>, now: u64) {
    tables.retain_mut(|table| {
        table.filter.advance(Tick(now));
        let Some(ttl) = table.ttl else { return true };
        let slack = table.filter.filter().plan().slack();
        table.last.saturating_add(ttl.get()).saturating_add(slack) >= now
    });
}
