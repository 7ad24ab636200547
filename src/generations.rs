//! What happens past the capacity: tables are added, and the oldest dropped.
//!
//! A filter is one table until that table is full. Then a further one takes the new keys while the
//! older ones are still asked. Each has its share of the false positive rate, so that their sum
//! stays within what was promised.

use crate::plan::{Size, capacity_within};
use crate::structure::Engine;
use crate::{PlanError, Spec, Structure, Tick, Window};

/// What a filter does with new keys when it holds as many as it was planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// Add a table of four times the keys. Under a memory limit this ends at the limit, and from
    /// there on the oldest table is dropped to make room.
    #[default]
    Grow,
    /// Keep to the planned size: the oldest quarter of the keys is forgotten to make room.
    /// Duplicates of them may pass, nothing new is lost.
    Forget,
    /// Keep what is there: new keys are judged rightly, but not remembered.
    Refuse,
}

/// How many times as many keys the next table takes.
const GROWTH: u64 = 4;

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
    /// When it last took or renewed one.
    pub(crate) last: Tick,
}

impl Generation {
    pub(crate) fn new(size: &Size, share: f64) -> Result<Self, PlanError> {
        let engine = size.build()?;
        Ok(Self { engine, share, capacity: size.capacity(), keys: 0, last: Tick(0) })
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

/// The first table's share of the false positive rate.
pub(crate) fn first_share(spec: &Spec) -> f64 {
    match spec.when_full {
        _ if !adds_tables(spec) => spec.fpr,
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
    let shares = (0..KEPT as i32).map(|table| match spec.when_full {
        WhenFull::Forget => first_share(spec),
        _ => first_share(spec) / f64::from(1 << table),
    });
    let fitting = shares
        .map(|share| capacity_within(spec, structure, limit / KEPT, share).unwrap_or(0))
        .collect::<alloc::vec::Vec<u64>>();
    // The last table is being filled when the first is dropped: three hold what is remembered.
    let held: u64 = fitting.iter().take(KEPT as usize - 1).fold(0, |sum, n| sum.saturating_add(*n));
    let first = fitting.first().copied().unwrap_or(0);
    if wanted > first && held < keys {
        let share = first_share(spec) / KEPT as f64;
        let table = Size::new(spec, structure, keys.div_ceil(KEPT - 1), share)?;
        return Err(PlanError::Memory { needed: table.memory().saturating_mul(KEPT), limit });
    }
    Ok(wanted.min(first))
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
            older.iter().chain([active]).map(|table| table.engine.memory() as u64).sum();
        let free = spec.memory.map_or(u64::MAX, |limit| limit.saturating_sub(used));
        let spent: f64 = older.iter().chain([active]).map(|table| table.share).sum();
        if let Some(size) = size_of_next(spec, structure, active, free, spent) {
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
    free: u64,
    spent: f64,
) -> Option<(Size, f64)> {
    let (capacity, share) = match spec.when_full {
        WhenFull::Forget => (active.capacity, spec.fpr / KEPT as f64),
        _ => (active.capacity.saturating_mul(GROWTH), (spec.fpr - spent) / 2.0),
    };
    let wanted = Size::new(spec, structure, capacity, share).ok();
    if let Some(size) = wanted.filter(|size| size.memory() <= free) {
        return Some((size, share));
    }
    // Not all that was wanted fits: take what there is, if that is worth a table.
    let worth = spec.memory.is_some_and(|limit| free >= limit / KEPT);
    let keys = worth.then(|| capacity_within(spec, structure, free, share)).flatten()?;
    Some((Size::new(spec, structure, keys.min(capacity), share).ok()?, share))
}
