//! The keys of `SET key value NX EX …`: one filter for each time to live.
//!
//! All of them are behind one lock: whether a key is fresh depends on all.

mod life;
mod options;
mod table;

pub(crate) use life::{Left, Life};
pub(crate) use options::KeySpaceOptions;
pub(crate) use table::Table;

use super::bounded::{Bounded, Scratch};
use super::budget::Budget;
use super::change::Change;
use super::changes::Changes;
use super::{Outcome, Refusal};
use lately::{Digest, Spec, Tick};

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::{is_kept, tidy};

/// The keys that live for some time, or for ever.
#[derive(Debug)]
pub(crate) struct KeySpace {
    options: KeySpaceOptions,
    seed: u64,
    budget: Arc<Budget>,
    tables: Mutex<Vec<Table>>,
    changes: Arc<Changes>,
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
                let (ttl, is_exact) = self.options.round(tables, ttl, exact);
                (Some(ttl), is_exact)
            }
        };
        if let Some(at) = tables.iter().position(|table| table.ttl == ttl) {
            return Ok(at);
        }
        self.add_table(tables, ttl, is_exact, now)
    }

    /// What is asked of the library for such a table.
    pub(crate) fn spec(&self, ttl: Option<NonZeroU64>, is_exact: bool, fpr: f64) -> Spec {
        self.options.spec((ttl, is_exact), fpr, self.seed)
    }

    /// Makes a table; its place.
    fn add_table(
        &self,
        tables: &mut Vec<Table>,
        ttl: Option<NonZeroU64>,
        is_exact: bool,
        now: u64,
    ) -> Result<usize, Refusal> {
        let fpr = self.options.fpr_of_next(tables, is_exact);
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
}

#[cfg(test)]
mod tests;
