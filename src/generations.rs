//! What happens past the capacity: tables are added, and the oldest dropped.
//!
//! A filter is one table until that table is full. Then a further one takes the new keys while the
//! older ones are still asked. Each has its share of the false positive rate, so that their sum
//! stays within what was promised.

use crate::codec::{Reader, Writer};
use crate::plan::{Size, capacity_within};
use crate::structure::Engine;
use crate::{Digest, Plan, PlanError, SnapshotError, Spec, Structure, Tick, Verdict, Window};

/// What a filter does with new keys when it holds as many as it was planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// Add a table, the second of four times the keys, others of twice those of the one before. Under a
    /// memory limit this ends at the limit, and from
    /// there on the oldest table is dropped to make room.
    #[default]
    Grow,
    /// Keep to the planned size: the oldest quarter of the keys is forgotten to make room. It is
    /// counted with all the keys it ever took, those that had expired among them.
    /// Duplicates of them may pass, nothing new is lost.
    Forget,
    /// Keep what is there: new keys are judged rightly, but not remembered.
    Refuse,
}

impl WhenFull {
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        match input.u8()? {
            0 => Ok(Self::Grow),
            1 => Ok(Self::Forget),
            2 => Ok(Self::Refuse),
            _ => Err(SnapshotError::Invalid("unknown policy")),
        }
    }
}

/// How many times as many keys the next table takes: the second, as the number expected may have been
/// a wild guess, and all that follow.
const GROWTH: (u64, u64) = (4, 2);

/// Tables that a forgetting filter keeps.
const KEPT: u64 = 4;

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
        Ok(Self { engine, share, capacity: size.capacity(), keys: 0, last: Tick(0) })
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

/// Can the filter of this spec ever hold more keys than planned? A count window cannot.
pub(crate) fn can_overflow(spec: &Spec) -> bool {
    !matches!(spec.window, Window::Count(_))
}

/// Does it add tables, or keep to one?
pub(crate) fn adds_tables(spec: &Spec) -> bool {
    can_overflow(spec) && spec.when_full != WhenFull::Refuse
}

/// May it take more than was planned?
pub(crate) fn grows(spec: &Spec) -> bool {
    can_overflow(spec) && spec.when_full == WhenFull::Grow
}

/// The most bytes a table of a structure that grows by itself may grow to. Under a limit it is a
/// part, as others are, so that dropping the oldest table never forgets everything.
pub(crate) fn limit_of_growth(spec: &Spec) -> u64 {
    match spec.memory {
        _ if !grows(spec) => 0,
        Some(limit) => limit / KEPT,
        None => u64::MAX,
    }
}

/// The first table's share of the false positive rate.
pub(crate) fn first_share(spec: &Spec) -> f64 {
    let only_table = spec.memory.is_none()
        && matches!(spec.structure, Some(Structure::ScalableBloom | Structure::AccommodativeBloom));
    match spec.when_full {
        _ if !adds_tables(spec) => spec.fpr,
        WhenFull::Grow if only_table => spec.fpr,
        WhenFull::Forget => spec.fpr / KEPT as f64,
        WhenFull::Grow | WhenFull::Refuse => spec.fpr / 2.0,
    }
}

/// The first table's capacity: all keys, unless tables are to be dropped one by one under a limit.
pub(crate) fn first_capacity(spec: &Spec, structure: Structure) -> Result<u64, PlanError> {
    let keys = spec.window.capacity();
    if !adds_tables(spec) {
        return Ok(keys);
    }
    // A table that is dropped whole must be a part of the whole.
    let wanted = if spec.when_full == WhenFull::Forget { keys.div_ceil(KEPT - 1) } else { keys };
    let Some(limit) = spec.memory else { return Ok(wanted) };
    // A table that is dropped must leave room for one that is worth it.
    let part = limit / KEPT;
    if Size::new(spec, structure, wanted, first_share(spec)).is_ok_and(|s| s.memory() <= part) {
        return Ok(wanted);
    }
    let first = capacity_within(spec, structure, part, first_share(spec)).unwrap_or(0);
    if spec.when_full == WhenFull::Forget {
        let table = Size::new(spec, structure, wanted, first_share(spec))?;
        return Err(PlanError::Memory { needed: table.memory().saturating_mul(KEPT), limit });
    }
    // A growing filter begins with what fits, if its second table then takes all.
    let second = Size::new(spec, structure, keys, first_share(spec) / 2.0)?.memory();
    if first == 0 || second > largest_table(limit) {
        let needed = second.saturating_add(second.div_ceil(KEPT - 1)).saturating_add(KEPT);
        return Err(PlanError::Memory { needed, limit });
    }
    Ok(first)
}

/// The most bytes a table may take under a limit: when all others are dropped, one worth having
/// must fit beside it.
fn largest_table(limit: u64) -> u64 {
    limit - limit.div_ceil(KEPT)
}

/// Can these be the tables of a filter of this plan? Otherwise says what is wrong.
pub(crate) fn check(
    plan: &Plan,
    older: &[Generation],
    active: &Generation,
) -> Result<(), &'static str> {
    let tables = || older.iter().chain([active]);
    if tables().any(|table| table.share <= 0.0)
        || tables().map(|table| table.share).sum::<f64>() > plan.spec.fpr
    {
        return Err("tables with more false positives than their filter may have");
    }
    let planned_only = !adds_tables(&plan.spec);
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
    spec: &Spec,
    structure: Structure,
    older: &mut alloc::vec::Vec<Generation>,
    active: &Generation,
) -> (Option<Generation>, u64) {
    let mut forgotten = 0;
    let mut drop_oldest = |older: &mut alloc::vec::Vec<Generation>| {
        forgotten += older.remove(0).keys;
    };
    if spec.when_full == WhenFull::Forget {
        while older.len() as u64 + 1 >= KEPT {
            drop_oldest(older);
        }
    }
    let table = loop {
        let used: u64 =
            older.iter().chain([active]).map(|table| table.engine.table().memory() as u64).sum();
        let free = spec
            .memory
            .map_or(u64::MAX, |limit| limit.saturating_sub(used).min(largest_table(limit)));
        let spent: f64 = older.iter().chain([active]).map(|table| table.share).sum();
        let growth = if spent > first_share(spec) { GROWTH.1 } else { GROWTH.0 };
        if let Some(size) = size_of_next(spec, structure, active, growth, free, spent) {
            break Generation::new(&size.0, size.1).ok();
        }
        if older.is_empty() {
            break None;
        }
        drop_oldest(older);
    };
    (table, forgotten)
}

/// The next table in `free` bytes, when `spent` of the false positive rate is taken.
fn size_of_next(
    spec: &Spec,
    structure: Structure,
    active: &Generation,
    growth: u64,
    free: u64,
    spent: f64,
) -> Option<(Size, f64)> {
    let (capacity, share) = match spec.when_full {
        WhenFull::Forget => (active.capacity, (spec.fpr / KEPT as f64).min(spec.fpr - spent)),
        _ => (active.capacity.saturating_mul(growth), (spec.fpr - spent) / 2.0),
    };
    if share <= 0.0 {
        return None;
    }
    // What grows by itself begins small, and must have room to grow.
    if structure.grows() && spec.memory.is_some_and(|limit| free < limit / KEPT) {
        return None;
    }
    let wanted = Size::new(spec, structure, capacity, share).ok();
    if let Some(size) = wanted.filter(|size| size.memory() <= free) {
        return Some((size, share));
    }
    // Not all that was wanted fits: take what there is, if that is worth a table.
    let worth = spec.memory.is_some_and(|limit| free >= limit / KEPT);
    let keys = worth.then(|| capacity_within(spec, structure, free, share)).flatten()?;
    Some((Size::new(spec, structure, keys.min(capacity), share).ok()?, share))
}
