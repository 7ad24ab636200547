//! How large tables are, and when there is another: all that is decided about size and growth.
//!
//! How large one table of a structure must be for its keys says that structure's
//! [`Recipe`](crate::table::Recipe).

use crate::engine::Size;
use crate::spec::TABLES_KEPT;
use crate::{PlanError, Spec, Structure, WhenFull, Window};

/// How many times as many keys the next table takes: the second, as the number expected may have been
/// a wild guess, and all that follow.
const GROWTH: (u64, u64) = (4, 2);

/// Does a filter add tables, or keep to one?
pub(crate) fn adds_tables(spec: &Spec) -> bool {
    spec.can_overflow() && spec.terms.when_full != WhenFull::Refuse
}

/// The first table's share of the false positive rate.
pub(crate) fn first_share(spec: &Spec, structure: Structure) -> f64 {
    let fpr = spec.terms.fpr;
    let only_table =
        spec.terms.memory.is_none() && spec.structure.is_some_and(Structure::keeps_its_rate);
    match spec.terms.when_full {
        _ if !adds_tables(spec) => fpr,
        WhenFull::Grow if only_table => fpr,
        WhenFull::Forget => fpr / TABLES_KEPT as f64,
        WhenFull::Grow if is_mostly_one(spec, structure) => fpr * MOST,
        WhenFull::Grow | WhenFull::Refuse => fpr / 2.0,
    }
}

/// The share of a table that seldom has another next to it.
const MOST: f64 = 0.875;

/// Is the first table all that such filters have, as a rule? Where tables expire there are seldom several, and never for long;
/// but not where the first one is to be small, as a memory limit leaves no room for all keys in it and in a second one.
fn is_mostly_one(spec: &Spec, structure: Structure) -> bool {
    let Window::Time { capacity, .. } = spec.terms.window else { return false };
    spec.terms.memory.is_none_or(|limit| {
        let all = Size::new(spec, structure, capacity.get(), spec.terms.fpr * MOST);
        all.is_ok_and(|size| size.memory() <= limit / TABLES_KEPT)
    })
}

/// The size of the first table.
pub(crate) fn first_size(spec: &Spec, structure: Structure) -> Result<Size, PlanError> {
    let capacity = first_capacity(spec, structure)?;
    let size = Size::new(spec, structure, capacity, first_share(spec, structure))?;
    spec.terms.check_memory(size.memory()).map(|()| size)
}

/// The first table's capacity: all keys, unless tables are to be dropped one by one under a limit.
fn first_capacity(spec: &Spec, structure: Structure) -> Result<u64, PlanError> {
    let keys = spec.terms.window.capacity();
    if !adds_tables(spec) {
        return Ok(keys);
    }
    let forgets = spec.terms.when_full == WhenFull::Forget;
    // A table that is dropped whole must be a part of the whole.
    let wanted = if forgets { keys.div_ceil(TABLES_KEPT - 1) } else { keys };
    let Some(limit) = spec.terms.memory else { return Ok(wanted) };
    // A table that is dropped must leave room for one that is worth it.
    let part = limit / TABLES_KEPT;
    let share = first_share(spec, structure);
    if Size::new(spec, structure, wanted, share).is_ok_and(|size| size.memory() <= part) {
        return Ok(wanted);
    }
    let first = capacity_within(spec, structure, part, share).unwrap_or(0);
    if forgets {
        let table = Size::new(spec, structure, wanted, share)?;
        return Err(PlanError::Memory {
            needed: table.memory().saturating_mul(TABLES_KEPT),
            limit,
        });
    }
    // A growing filter begins with what fits, if its second table then takes all. That one is looked at with half of what is left
    // of the rate, whatever its share will be: what was planned before plans again, and it takes fewer keys where not all fit.
    let second = Size::new(spec, structure, keys, share / 2.0)?.memory();
    if first == 0 || second > largest_table(limit) {
        let needed = second.saturating_add(second.div_ceil(TABLES_KEPT - 1));
        return Err(PlanError::Memory { needed: needed.saturating_add(TABLES_KEPT), limit });
    }
    Ok(first)
}

/// The most bytes a table may take under a limit: when all others are dropped, one worth having
/// must still fit.
fn largest_table(limit: u64) -> u64 {
    limit - limit.div_ceil(TABLES_KEPT)
}

/// Tables that are in use when another is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse {
    /// Keys that the first one was for.
    pub(crate) first: u64,
    /// Keys that the newest one is for.
    pub(crate) capacity: u64,
    /// Bytes that all of them take.
    pub(crate) memory: u64,
    /// Their shares of the false positive rate.
    pub(crate) share: f64,
}

/// The most tables that a filter keeps while it adds another.
pub(crate) fn most_older(spec: &Spec) -> u64 {
    if spec.terms.when_full == WhenFull::Forget { TABLES_KEPT - 1 } else { u64::MAX }
}

/// Keys of the table after one of so many.
pub(crate) fn next_capacity(keys: u64, is_second: bool) -> u64 {
    keys.saturating_mul(if is_second { GROWTH.0 } else { GROWTH.1 })
}

/// The next table's share of the false positive rate, of which this much is left: half of it, where tables expire.
///
/// Tables that never forget are dropped only at the limit of memory, so there may be many of them. Their shares shrink slower
/// than by halves, each of which would cost a bit and a half per key more: a half, a sixth, a twelfth, …: 1 / n(n + 1), which
/// add up to 1.
fn next_share(spec: &Spec, left: f64) -> f64 {
    let divisor = match spec.terms.window {
        Window::Unbounded { .. } => 1.0 + spec.terms.fpr / left,
        Window::Count(_) | Window::Time { .. } => 2.0,
    };
    left / divisor
}

/// The next table and its share of the false positive rate. `None` where none fits.
pub(crate) fn next_size(spec: &Spec, structure: Structure, tables: InUse) -> Option<(Size, f64)> {
    let fpr = spec.terms.fpr;
    let limit = spec.terms.memory;
    let free = limit
        .map_or(u64::MAX, |limit| limit.saturating_sub(tables.memory).min(largest_table(limit)));
    let is_second = tables.capacity <= tables.first;
    let left = fpr - tables.share;
    let (capacity, share) = match spec.terms.when_full {
        WhenFull::Forget => (tables.capacity, (fpr / TABLES_KEPT as f64).min(left)),
        _ => (next_capacity(tables.capacity, is_second), next_share(spec, left)),
    };
    if share <= 0.0 {
        return None;
    }
    // What grows by itself begins small, and must have room to grow.
    if structure.grows() && limit.is_some_and(|limit| free < limit / TABLES_KEPT) {
        return None;
    }
    let wanted = Size::new(spec, structure, capacity, share).ok();
    if let Some(size) = wanted.filter(|size| size.memory() <= free) {
        return Some((size, share));
    }
    // Not all that was wanted fits: take what there is, if that is worth a table.
    let worth = limit.is_some_and(|limit| free >= limit / TABLES_KEPT);
    let keys = worth.then(|| capacity_within(spec, structure, free, share)).flatten()?;
    Some((Size::new(spec, structure, keys.min(capacity), share).ok()?, share))
}

/// The most keys that fit into `bytes` at this rate, at least 1.
fn capacity_within(spec: &Spec, structure: Structure, bytes: u64, fpr: f64) -> Option<u64> {
    let fits =
        |keys: u64| Size::new(spec, structure, keys, fpr).is_ok_and(|size| size.memory() <= bytes);
    if let Some(keys) = Size::capacity_of(structure, bytes, fpr) {
        return [keys, keys.saturating_sub(1)].into_iter().find(|&keys| keys > 0 && fits(keys));
    }
    // Bits per key hardly depend on the number of keys, so those of a million lead close.
    let million = Size::new(spec, structure, 1 << 20, fpr).ok()?.memory();
    let guess = u128::from(bytes) * (1 << 20) / u128::from(million.max(1));
    let (mut low, mut high) = (0u64, u64::try_from(guess).unwrap_or(u64::MAX).max(1));
    while fits(high) {
        (low, high) = (high, high.checked_mul(2)?);
    }
    // To the last key where they are few, and as close as matters where they are many.
    while high - low > 1 + low / 4096 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}

/// A plan for so many keys, or where these do not fit into the memory limit, for about as many as do (to
/// one part in 256).
pub(crate) fn fit<P>(
    keys: u64,
    plan: impl Fn(u64) -> Result<P, PlanError>,
) -> Result<P, PlanError> {
    let (mut low, mut high) = (keys, keys);
    let mut best = loop {
        match plan(low) {
            Err(PlanError::Memory { .. }) if low > 1 => (low, high) = (low / 2, low),
            other => break other?,
        }
    };
    while high - low > 1 + low / 256 {
        let middle = low + (high - low) / 2;
        match plan(middle) {
            Ok(plan) => (low, best) = (middle, plan),
            Err(_) => high = middle,
        }
    }
    Ok(best)
}
