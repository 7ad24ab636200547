//! What happens past the capacity: tables are added, and the oldest dropped.
//!
//! A filter is one table until that table is full. Then a further one takes the new keys while the
//! older ones are still asked. Each has its share of the false positive rate, so that their sum
//! stays within what was promised.

use crate::codec::{Reader, Writer};
use crate::engine::{Engine, Size};
use crate::plan::growth::{self, InUse};
use crate::{Digest, Plan, PlanError, SnapshotError, Spec, Structure, Tick, Verdict};
use alloc::vec::Vec;

/// One table of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generation {
    pub(crate) engine: Engine,
    /// Its share of the promised false positive rate.
    pub(crate) share: f64,
    pub(crate) capacity: u64,
    /// Keys that were fresh when it took them.
    pub(crate) keys: u64,
    /// When it last took or renewed one, or could have: the last arrival while it was the active.
    pub(crate) last: Tick,
}

impl Generation {
    pub(crate) fn new(size: &Size, share: f64) -> Result<Self, PlanError> {
        let engine = size.build()?;
        Ok(Self { engine, share, capacity: size.contract().capacity, keys: 0, last: Tick(0) })
    }

    /// [`Generation::observe`], as [`Table::observe_quickly`](crate::table::Table::observe_quickly).
    #[inline]
    pub(crate) fn observe_quickly(&mut self, digest: Digest, now: Tick) -> Option<Verdict> {
        let verdict = self.engine.observe_quickly(digest, now)?;
        self.keys += u64::from(!verdict.is_duplicate());
        self.last = self.last.max(now);
        Some(verdict)
    }

    #[inline]
    pub(crate) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        let verdict = self.engine.observe(digest, now);
        self.keys += u64::from(!verdict.is_duplicate());
        self.last = self.last.max(now);
        verdict
    }

    pub(crate) fn take(&mut self, digest: Digest, now: Tick) {
        self.keys += u64::from(!self.engine.contains(digest, now));
        self.engine.table_mut().remember(digest, now);
        self.last = self.last.max(now);
    }

    pub(crate) fn forget(&mut self, digest: Digest) -> bool {
        let known = self.engine.table_mut().forget(digest);
        self.keys = self.keys.saturating_sub(u64::from(known));
        known
    }

    pub(crate) fn clear(&mut self) {
        self.engine.table_mut().clear();
        (self.keys, self.last) = (0, Tick(0));
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.f64(self.share);
        out.u64(self.capacity);
        out.u64(self.keys);
        out.u64(self.last.0);
        self.engine.table().write(out);
    }

    pub(crate) fn read(
        spec: &Spec,
        structure: Structure,
        newest: Tick,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let (share, capacity) = (input.f64()?, input.u64()?);
        let (keys, last) = (input.count()?, Tick(input.u64()?));
        let engine = Engine::read(structure, input)?;
        let table = engine.table();
        if !table.suits(spec) {
            return Err(SnapshotError::Invalid("a table whose window is not its filter's"));
        }
        if last > newest || table.newest() > newest {
            return Err(SnapshotError::Invalid("a table that is ahead of its filter"));
        }
        // A table grows by its capacity, so that must be one that its bytes can hold.
        if capacity != table.capacity() || table.fpr_at_capacity() > share * 1.001 {
            return Err(SnapshotError::Invalid("a table too small for its capacity"));
        }
        Ok(Self { engine, share, capacity, keys, last })
    }
}

/// Can these be the tables of a filter of this plan? Otherwise says what is wrong.
pub(crate) fn check(
    plan: &Plan,
    older: &[Generation],
    active: &Generation,
) -> Result<(), &'static str> {
    let tables = || older.iter().chain([active]);
    if tables().any(|table| table.share <= 0.0)
        || tables().map(|table| table.share).sum::<f64>() > plan.spec.terms.fpr
    {
        return Err("tables with more false positives than their filter may have");
    }
    let planned_only = !growth::adds_tables(&plan.spec);
    if planned_only && !(older.is_empty() && active.capacity == plan.capacity()) {
        return Err("tables that their filter does not add");
    }
    Ok(())
}

/// The older table with the most room for new keys, and its fill: if that is worth changing to.
pub(crate) fn most_room(
    older: &[Generation],
    active: &Generation,
    digest: Digest,
) -> Option<(usize, f64)> {
    let room = |(at, table): (usize, &Generation)| {
        let (fill, load) = table.engine.table().look_at_fill(digest)?;
        Some((at, fill, table.capacity as f64 * (1.0 - load)))
    };
    let rooms = older.iter().enumerate().filter_map(room);
    let most = rooms.max_by(|a, b| a.2.total_cmp(&b.2));
    most.filter(|&(_, _, room)| room >= active.capacity as f64 / 8.0)
        .map(|(at, fill, _)| (at, fill))
}

/// The tables' bookkeeping when one more is needed: drops the oldest as far as room is needed, and
/// returns the new table and how many keys were forgotten. `None` where no table fits.
pub(crate) fn next(
    plan: &Plan,
    older: &mut Vec<Generation>,
    active: &Generation,
) -> (Option<Generation>, u64) {
    let (spec, structure) = (&plan.spec, plan.structure());
    let mut forgotten = 0;
    while older.len() as u64 >= growth::most_older(spec) {
        forgotten = older.remove(0).keys.saturating_add(forgotten);
    }
    loop {
        let all = || older.iter().chain([active]);
        let tables = InUse {
            first: plan.capacity(),
            capacity: active.capacity,
            memory: all().map(|table| table.engine.table().memory() as u64).sum(),
            share: all().map(|table| table.share).sum(),
        };
        if let Some((size, share)) = growth::next_size(spec, structure, tables) {
            return (Generation::new(&size, share).ok(), forgotten);
        }
        if older.is_empty() {
            return (None, forgotten);
        }
        forgotten = older.remove(0).keys.saturating_add(forgotten);
    }
}
