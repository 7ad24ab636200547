//! The keys of `SET key value NX EX …`: one filter for each time to live.
//!
//! All of them are behind one lock: whether a key is fresh depends on all.

use super::bounded::{Bounded, Scratch};
use super::budget::Budget;
use super::change::Change;
use super::changes::Changes;
use super::template::AN_AGE;
use super::{Outcome, Refusal};
use lately::{Digest, Renewal, Spec, Tick, WhenFull, Window};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the key space is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeySpaceOptions {
    /// Keys expected within each time to live.
    pub(crate) capacity: u64,
    /// The false positive rate of all its filters together.
    pub(crate) fpr: f64,
    /// Times to live that are kept exactly; others are rounded up.
    pub(crate) ttls: usize,
    /// Whether keys without a time to live are taken.
    pub(crate) forever: bool,
}

impl Default for KeySpaceOptions {
    fn default() -> Self {
        Self { capacity: 1_000_000, fpr: 1e-9, ttls: 32, forever: false }
    }
}

/// Rounded times to live that are kept in steps of an eighth; past that they are rounded up to a power of two.
const FINE: usize = 64;
/// Filters that rounded times to live, and keys without one, may need: one for each power of two there is, too.
const ROUNDED: usize = 128;
/// Keys that the filter of a rounded time to live is made for, as a part of the capacity. It grows.
const PART: u64 = 16;

/// A key may be there for such a part of its time to live longer: 18 ms of ten minutes. The bits that ages are kept in would
/// otherwise be more, for long lives, than those that tell keys apart.
const EXACTNESS: u64 = 1 << 15;

/// How long a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Forever,
    /// Milliseconds. `exact`: asked for as a length, of which there are few. Ends at a stated moment are all
    /// different.
    Ms {
        ttl: NonZeroU64,
        exact: bool,
    },
}

/// What is left of a key's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Forever,
    Ms(u64),
}

/// The keys that live for some time, or for ever.
#[derive(Debug)]
pub(crate) struct KeySpace {
    options: KeySpaceOptions,
    seed: u64,
    budget: Arc<Budget>,
    tables: Mutex<Vec<Table>>,
    changes: Arc<Changes>,
}

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

impl KeySpace {
    pub(crate) fn new(
        options: KeySpaceOptions,
        seed: u64,
        budget: &Arc<Budget>,
        changes: &Arc<Changes>,
    ) -> Self {
        let (budget, changes) = (Arc::clone(budget), Arc::clone(changes));
        Self { options, seed, budget, tables: Mutex::default(), changes }
    }

    pub(crate) fn takes_keys_for_ever(&self) -> bool {
        self.options.forever
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks each key that is in no table; says for each whether it was. Keys in the same call see each other.
    pub(crate) fn set_fresh(
        &self,
        digests: &[Digest],
        life: Life,
        now: u64,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Refusal> {
        let mut tables = self.lock();
        let own = self.table(&mut tables, life, now)?;
        let is_only = tables.len() == 1;
        if is_only {
            let from = outcomes.len();
            tables[own].observe(digests, now, scratch, outcomes);
            self.add_change(&tables[own], digests, now, &outcomes[from..], scratch);
            return Ok(());
        }
        let (mut known, mut found) = (vec![false; digests.len()], vec![false; digests.len()]);
        for (_, table) in tables.iter().enumerate().filter(|(at, _)| *at != own) {
            table.filter.contains_batch(digests, Tick(now), &mut found);
            known.iter_mut().zip(&found).for_each(|(known, found)| *known |= found);
        }
        let unknown = digests.iter().zip(&known).filter(|(_, known)| !**known);
        let unknown: Vec<Digest> = unknown.map(|(digest, _)| *digest).collect();
        let mut verdicts = Vec::with_capacity(unknown.len());
        tables[own].observe(&unknown, now, scratch, &mut verdicts);
        self.add_change(&tables[own], &unknown, now, &verdicts, scratch);
        let mut verdicts = verdicts.into_iter();
        let outcome = |known| if known { None } else { verdicts.next() };
        outcomes
            .extend(known.into_iter().map(outcome).map(|outcome| outcome.unwrap_or(Outcome::Seen)));
        Ok(())
    }

    /// Adds to the changes what arrivals have changed in a table.
    fn add_change(
        &self,
        table: &Table,
        digests: &[Digest],
        moment: u64,
        outcomes: &[Outcome],
        scratch: &mut Scratch,
    ) {
        if self.changes.are_gathered() {
            let digests = scratch.select(digests, outcomes, |outcome| *outcome == Outcome::Fresh);
            let (ttl, is_exact) = (table.ttl, table.is_exact);
            if !digests.is_empty() {
                self.changes.add(&Change::Set { ttl, is_exact, moment, digests });
            }
        }
    }

    /// Marks a key, whether it was there or not. A longer life that it had before is not cut short.
    pub(crate) fn set(&self, digest: Digest, life: Life, now: u64) -> Result<(), Refusal> {
        let mut tables = self.lock();
        let own = self.table(&mut tables, life, now)?;
        self.mark(&mut tables[own], digest, now)
    }

    /// Marks a key in one table, whether it was there or not.
    fn mark(&self, table: &mut Table, digest: Digest, now: u64) -> Result<(), Refusal> {
        table.last = table.last.max(now);
        if !table.filter.remember(digest, Tick(now)) {
            return Err(Refusal::NoMemory);
        }
        let (ttl, is_exact) = (table.ttl, table.is_exact);
        self.changes.add(&Change::Set { ttl, is_exact, moment: now, digests: &[digest] });
        Ok(())
    }

    /// Marks keys again that were marked before, unless the table has them already: those before place `at` of the
    /// journal are in it.
    pub(crate) fn set_again(
        &self,
        digests: &[Digest],
        (ttl, is_exact): (Option<NonZeroU64>, bool),
        moment: u64,
        at: u64,
    ) -> Result<(), Refusal> {
        let mut tables = self.lock();
        let own = match tables.iter().position(|table| table.ttl == ttl) {
            Some(own) => own,
            None => {
                tidy(&mut tables, moment);
                self.add_table(&mut tables, ttl, is_exact, moment)?
            }
        };
        let table = &mut tables[own];
        if at >= table.since {
            table.last = table.last.max(moment);
            let remember = |digest: &Digest| table.filter.remember(*digest, Tick(moment));
            digests.iter().all(remember).then_some(()).ok_or(Refusal::NoMemory)?;
        }
        Ok(())
    }

    /// Is the key there?
    pub(crate) fn contains(&self, digest: Digest, now: u64) -> bool {
        self.lock().iter().any(|table| table.filter.contains(digest, Tick(now)))
    }

    /// Takes keys out before their lives are over; how many were there. None is, if one of them is in a table that cannot
    /// forget.
    pub(crate) fn forget(&self, digests: &[Digest], now: u64) -> Result<u64, Refusal> {
        let mut tables = self.lock();
        if digests.iter().any(|digest| is_kept(&tables, *digest, now)) {
            return Err(Refusal::CannotForget);
        }
        let mut found = 0;
        for digest in digests {
            let mut was_there = false;
            for table in tables.iter_mut() {
                was_there |= self.take_out(table, *digest, now);
            }
            found += u64::from(was_there);
        }
        Ok(found)
    }

    /// Takes a key out of one table. Was it there?
    fn take_out(&self, table: &mut Table, digest: Digest, now: u64) -> bool {
        let was_there = table.filter.forget(digest, Tick(now));
        if was_there {
            self.changes.add(&Change::Unset { ttl: table.ttl, digests: &[digest] });
        }
        was_there
    }

    /// Takes keys out again that were taken out before, unless the table is without them already: changes before place
    /// `at` of the journal are in it.
    pub(crate) fn forget_again(&self, digests: &[Digest], ttl: Option<NonZeroU64>, at: u64) {
        let mut tables = self.lock();
        let mut own = tables.iter_mut().filter(|table| table.ttl == ttl && at >= table.since);
        if let Some(table) = own.next() {
            digests.iter().for_each(|digest| table.filter.forget_again(*digest));
        }
    }

    /// Gives a key that is there another life, which begins now. `false`: it is not there.
    pub(crate) fn change_life(
        &self,
        digest: Digest,
        life: Life,
        now: u64,
    ) -> Result<bool, Refusal> {
        let mut tables = self.lock();
        if is_kept(&tables, digest, now) {
            return Err(Refusal::CannotForget);
        }
        if !tables.iter().any(|table| table.filter.contains(digest, Tick(now))) {
            return Ok(false);
        }
        // The longer life of the two is written down first: half of a change loses no key.
        let own = self.table(&mut tables, life, now)?;
        self.mark(&mut tables[own], digest, now)?;
        for (_, table) in tables.iter_mut().enumerate().filter(|(at, _)| *at != own) {
            self.take_out(table, digest, now);
        }
        Ok(true)
    }

    /// How much longer the key lives. `None`: it is not there.
    pub(crate) fn left(&self, digest: Digest, now: u64) -> Option<Left> {
        let tables = self.lock();
        let lives = tables.iter().filter_map(|table| {
            let seen = table.filter.last_seen(digest, Tick(now))?;
            let Some(ttl) = table.ttl else { return Some(Left::Forever) };
            let end = seen.to.0.min(now).saturating_add(ttl.get());
            Some(Left::Ms(end.saturating_sub(now)))
        });
        lives.reduce(|one, other| match (one, other) {
            (Left::Ms(one), Left::Ms(other)) => Left::Ms(one.max(other)),
            _ => Left::Forever,
        })
    }

    /// Does so many of the acts that wait because keys are being saved, or were. `true`: none is left.
    pub(crate) fn catch_up(&self, most: usize) -> bool {
        self.lock().iter_mut().all(|table| table.filter.catch_up(most))
    }

    /// Drops the tables whose last key has expired, and gives back what others no longer need.
    pub(crate) fn tidy(&self, now: u64) {
        tidy(&mut self.lock(), now);
    }

    /// Drops all, while what else is to be done is done.
    pub(crate) fn clear(&self, meanwhile: impl FnOnce()) {
        let mut tables = self.lock();
        meanwhile();
        tables.clear();
    }

    /// Drops the tables that are no younger than place `at` of the journal.
    pub(crate) fn clear_again(&self, at: u64) {
        self.lock().retain(|table| table.since > at);
    }

    /// The place of the table for this life, which is made if need be.
    fn table(&self, tables: &mut Vec<Table>, life: Life, now: u64) -> Result<usize, Refusal> {
        if let Some(at) = self.find(tables, life) {
            return Ok(at);
        }
        tidy(tables, now);
        let (ttl, is_exact) = match life {
            Life::Forever => (None, false),
            Life::Ms { ttl, exact } => {
                let (ttl, is_exact) = self.round(tables, ttl, exact);
                (Some(ttl), is_exact)
            }
        };
        if let Some(at) = tables.iter().position(|table| table.ttl == ttl) {
            return Ok(at);
        }
        self.add_table(tables, ttl, is_exact, now)
    }

    /// Makes a table; its place.
    fn add_table(
        &self,
        tables: &mut Vec<Table>,
        ttl: Option<NonZeroU64>,
        is_exact: bool,
        now: u64,
    ) -> Result<usize, Refusal> {
        let fpr = self.fpr_of_next(tables, is_exact);
        let filter = Bounded::new(self.spec(ttl, is_exact, fpr), &self.budget);
        let filter = filter.map_err(|refusal| match refusal {
            // More milliseconds than can be planned for.
            Refusal::Plan(_) => Refusal::Expire,
            other => other,
        })?;
        tables.push(Table { ttl, is_exact, filter, last: now, since: 0 });
        Ok(tables.len() - 1)
    }

    /// The table that this life leads to without another one being made.
    fn find(&self, tables: &[Table], life: Life) -> Option<usize> {
        match life {
            Life::Forever => tables.iter().position(|table| table.ttl.is_none()),
            Life::Ms { ttl, exact: true } => tables.iter().position(|table| table.ttl == Some(ttl)),
            Life::Ms { .. } => None,
        }
    }

    /// The time to live under which a key is kept: itself or a longer one.
    fn round(&self, tables: &[Table], ttl: NonZeroU64, exact: bool) -> (NonZeroU64, bool) {
        let exact_ones = tables.iter().filter(|table| table.is_exact).count();
        if exact && exact_ones < self.options.ttls {
            return (ttl, true);
        }
        let fine = eighths(ttl);
        let rounded = tables.iter().filter(|table| !table.is_exact).count();
        if rounded < FINE || tables.iter().any(|table| table.ttl == Some(fine)) {
            return (fine, false);
        }
        (ttl.checked_next_power_of_two().unwrap_or(NonZeroU64::MAX), false)
    }

    /// The false positive rate for a further table. Those of all that there can be add up to the one that was promised:
    /// half of it is for times to live that are kept exactly, half for those that are rounded.
    ///
    /// Most have one time to live, or a few. So the first table may take a half of what there is, the second a third of
    /// what is left then, the next a fourth, which is a sixth and a twelfth of the whole: each costs a bit or two per key more
    /// than the one before, and not all of them what the last one does.
    fn fpr_of_next(&self, tables: &[Table], is_exact: bool) -> f64 {
        let all = self.options.fpr / 2.0;
        if !is_exact {
            return all / ROUNDED as f64;
        }
        let rates = tables.iter().filter(|table| table.is_exact);
        let rates = rates.map(|table| table.filter.filter().plan().fpr());
        let (others, taken) = rates.fold((0, 0.0), |(others, sum), fpr| (others + 1, sum + fpr));
        // Tables that were saved when more was promised may have taken all.
        let least = all / (self.options.ttls.max(1) as f64 + 1.0).powi(2);
        ((all - taken) / f64::from(others + 2)).max(least)
    }

    /// What is asked of the library for such a table.
    pub(crate) fn spec(&self, ttl: Option<NonZeroU64>, is_exact: bool, fpr: f64) -> Spec {
        let part = if is_exact { 1 } else { PART };
        let capacity = NonZeroU64::new(self.options.capacity / part).unwrap_or(NonZeroU64::MIN);
        let span = ttl.unwrap_or(AN_AGE);
        let slack = ttl.map_or(AN_AGE.get(), |ttl| ttl.get() / EXACTNESS);
        let spec = Spec::new(Window::Time { span, capacity }).seed(self.seed).fpr(fpr);
        spec.slack(slack).renewal(Renewal::OnFresh).when_full(WhenFull::Grow)
    }
}

impl Table {
    fn observe(
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
fn is_kept(tables: &[Table], digest: Digest, now: u64) -> bool {
    let is_kept =
        |table: &Table| !table.filter.can_forget() && table.filter.contains(digest, Tick(now));
    tables.iter().any(is_kept)
}

fn tidy(tables: &mut Vec<Table>, now: u64) {
    tables.retain_mut(|table| {
        table.filter.advance(Tick(now));
        let Some(ttl) = table.ttl else { return true };
        let slack = table.filter.filter().plan().slack();
        table.last.saturating_add(ttl.get()).saturating_add(slack) >= now
    });
}

/// Rounded up to a multiple of an eighth of the power of two below it.
fn eighths(ttl: NonZeroU64) -> NonZeroU64 {
    let step = (1u64 << (63 - ttl.leading_zeros()) >> 3).max(1);
    let rounded = ttl.get().div_ceil(step).checked_mul(step);
    rounded.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lately::Digester;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(n: u64) -> Digest {
        Digester::new(5).digest(&n.to_le_bytes())
    }

    fn lasting(ttl: u64, exact: bool) -> Life {
        Life::Ms { ttl: NonZeroU64::new(ttl).unwrap(), exact }
    }

    fn space(ttls: usize) -> KeySpace {
        let options = KeySpaceOptions { capacity: 1_000, ttls, ..KeySpaceOptions::default() };
        KeySpace::new(options, 5, &Budget::new(1 << 30), &Changes::new())
    }

    fn set(space: &KeySpace, n: u64, life: Life, now: u64) -> Outcome {
        let mut outcomes = Vec::new();
        space.set_fresh(&[key(n)], life, now, &mut Scratch::default(), &mut outcomes).unwrap();
        outcomes[0]
    }

    #[test]
    fn rounded_up_by_at_most_an_eighth() {
        for ttl in [1, 7, 8, 9, 17, 600_000, 86_400_000, u64::MAX / 2 + 1, u64::MAX] {
            let rounded = eighths(NonZeroU64::new(ttl).unwrap()).get();
            assert!(rounded >= ttl && rounded - ttl <= ttl / 8, "{ttl} {rounded}");
        }
    }

    /// However many times to live there are, the tables stay few, their rates add up to what is promised, and those
    /// that have expired go.
    #[test]
    fn few_tables() {
        let space = space(4);
        for n in 0..5_000 {
            assert_eq!(set(&space, n, lasting(1_000 + 997 * n, n % 2 == 0), 0), Outcome::Fresh);
        }
        let tables = space.lock();
        let rate: f64 = tables.iter().map(|table| table.filter.filter().plan().fpr()).sum();
        assert!(tables.len() <= 4 + ROUNDED && rate <= 1e-9, "{} {rate}", tables.len());
        drop(tables);
        assert!((0..5_000).all(|n| space.contains(key(n), 1_000)));
        space.tidy(20_000_000);
        assert!(space.lock().is_empty());
        assert_eq!(space.budget.used(), 0);
    }

    /// However times to live come and go, their rates never add up to more than was promised, and none is too low to be had.
    #[test]
    fn rates_add_up_while_tables_come_and_go() {
        let space = space(32);
        for n in 0..2_000u64 {
            // Ever other ones of forty lives, of which the short ones go first.
            let ttl = 1_000 * (1 + n * n % 40);
            assert_eq!(set(&space, n, lasting(ttl, true), 300 * n), Outcome::Fresh);
            let tables = space.lock();
            let exact = tables.iter().filter(|table| table.is_exact);
            let rates: Vec<f64> = exact.map(|table| table.filter.filter().plan().fpr()).collect();
            let (sum, least) =
                (rates.iter().sum::<f64>(), rates.iter().copied().fold(1.0, f64::min));
            assert!(sum <= 0.5e-9 && least > 0.5e-9 / 33.0 / 33.0, "{n}: {sum} {least}");
        }
    }

    /// What the rate and the exactness of lives cost: a key of the usual kind takes no more than nine bytes.
    #[test]
    fn nine_bytes_a_key() {
        const KEYS: u64 = 10_000_000;
        let options = KeySpaceOptions { capacity: KEYS, ..KeySpaceOptions::default() };
        for ttl in [60, 600, 3_600, 86_400, 7 * 86_400] {
            let space = KeySpace::new(options, 5, &Budget::new(1 << 30), &Changes::new());
            set(&space, 1, lasting(1_000 * ttl, true), 0);
            assert!(space.budget.used() <= 9 * KEYS, "{ttl} s: {}", space.budget.used());
        }
    }

    /// A life is exact to a 32,768th: a key is there until it ends, and not much longer.
    #[test]
    fn lives_end_when_they_should() {
        for ttl in [1, 100, 20_000, 600_000, 86_400_000] {
            let space = space(4);
            set(&space, 1, lasting(ttl, true), 1_000_000);
            let end = 1_000_000 + ttl;
            assert!(space.contains(key(1), end), "{ttl}");
            assert!(!space.contains(key(1), end + ttl / EXACTNESS + 1), "{ttl}");
            assert_eq!(space.left(key(1), 1_000_000), Some(Left::Ms(ttl)));
        }
    }

    #[test]
    fn absurd_lives_are_refused() {
        let mut outcomes = Vec::new();
        for ttl in [u64::MAX, 1 << 63, i64::MAX as u64] {
            let set = space(4).set_fresh(
                &[key(1)],
                lasting(ttl, true),
                0,
                &mut Scratch::default(),
                &mut outcomes,
            );
            assert!(matches!(set, Err(Refusal::Expire)), "{set:?}");
        }
    }

    /// Of many keys in tables that have grown, those that are taken out are gone, and all others are there.
    #[test]
    fn those_taken_out_and_no_others() {
        let space = space(4);
        let life = |n| if n % 3 == 0 { Life::Forever } else { lasting(1_000 * (n % 3), true) };
        for n in 0..30_000 {
            assert_eq!(set(&space, n, life(n), n / 100), Outcome::Fresh, "{n}");
        }
        assert!(space.lock().iter().all(|table| table.filter.filter().tables() > 1));
        let removed: Vec<_> = (0..30_000).step_by(7).map(key).collect();
        assert_eq!(space.forget(&removed, 300), Ok(removed.len() as u64));
        assert_eq!(space.forget(&removed, 300), Ok(0));
        for n in 0..30_000 {
            assert_eq!(space.contains(key(n), 300), n % 7 != 0, "{n}");
        }
        for n in (0..30_000).step_by(7) {
            assert_eq!(set(&space, n, life(n), 300), Outcome::Fresh, "{n}");
        }
    }

    proptest! {
        /// Against a map of keys to the ends of their lives: what is there is never called fresh; what is called seen
        /// is there, or its life was rounded up, by at most an eighth.
        #[test]
        fn as_a_map_of_ends(steps in prop::collection::vec(
            (0u64..12, 1u64..60, any::<bool>(), 0u64..12, 0..6), 1..150))
        {
            let space = space(3);
            let mut ends: HashMap<u64, (u64, u64)> = HashMap::new();
            let mut now = 1_000;
            for (n, ttl, exact, passes, what) in steps {
                now += passes;
                let (at_least, at_most) = ends.get(&n).copied().unwrap_or((0, 0));
                let life = lasting(ttl, exact);
                // A key is there up to and with the moment its life ends.
                let was_there = at_least >= now;
                prop_assert!(!was_there || space.contains(key(n), now));
                if let Some(Left::Ms(left)) = space.left(key(n), now) {
                    prop_assert!(now + left >= at_least && now + left <= at_most.max(now) + 1, "{left}");
                } else {
                    prop_assert!(!was_there);
                }
                let new = (now + ttl, now + eighths(NonZeroU64::new(ttl).unwrap()).get());
                let may_be_there = |found| if found { now <= at_most + 1 } else { !was_there };
                if what < 2 {
                    space.set(key(n), life, now).unwrap();
                    ends.insert(n, (at_least.max(new.0), at_most.max(new.1)));
                } else if what == 2 {
                    let found = space.forget(&[key(n), key(n)], now).unwrap();
                    prop_assert!(found <= 1 && may_be_there(found == 1));
                    prop_assert!(!space.contains(key(n), now));
                    ends.remove(&n);
                } else if what == 3 {
                    let found = space.change_life(key(n), life, now).unwrap();
                    prop_assert!(may_be_there(found));
                    if found {
                        ends.insert(n, new);
                    }
                } else {
                    match set(&space, n, life, now) {
                        Outcome::Fresh => {
                            prop_assert!(!was_there);
                            ends.insert(n, new);
                        }
                        Outcome::Seen => prop_assert!(now <= at_most + 1, "{now} {at_most}"),
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
            }
        }
    }
}
