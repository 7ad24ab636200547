//! Arrivals while there are several tables, and what happens when the one that takes new keys is full.

use super::AnyFilter;
use crate::generations;
use crate::{Digest, Renewal, Tick, Verdict, WhenFull};

impl AnyFilter {
    /// Does a sighting of a key that is already known change anything?
    pub(super) fn renews(&self) -> bool {
        self.plan.spec.renewal == Renewal::Always && self.plan.spec.terms.window.span().is_some()
    }

    /// Does a further sighting of a key take no more room than it has? Where lateness is longer than the
    /// window a key has several entries, and those of an older or a full table cannot become more.
    pub(super) fn renews_in_place(&self) -> bool {
        self.plan.spec.lateness <= self.plan.spec.terms.window.span().unwrap_or(u64::MAX)
    }

    /// Remembers a further sighting of a key wherever there is room.
    #[cold]
    pub(super) fn take_besides(&mut self, digest: Digest, now: Tick) {
        if self.is_full_now() && self.plan.spec.terms.when_full != WhenFull::Refuse {
            self.take_beyond_capacity(digest, now);
        } else {
            self.active.take(digest, now);
        }
    }

    /// Lets time pass in all tables, and drops those whose last key has expired.
    pub(super) fn pass_time(&mut self) {
        let now = self.newest;
        self.active.engine.advance(now);
        if let Some(span) = self.plan.spec.terms.window.span() {
            let reach = span.saturating_add(self.plan.slack());
            let reach = reach.saturating_add(self.plan.spec.lateness);
            self.older.retain_mut(|table| {
                table.engine.advance(now);
                table.last.0.saturating_add(reach) >= now.0
            });
        }
    }

    /// An arrival while there are several tables, or the one there is was full.
    pub(super) fn observe_tables(&mut self, digest: Digest, now: Tick) -> Verdict {
        self.pass_time();
        self.active.last = self.active.last.max(now);
        if !self.renews_in_place() {
            return self.observe_besides(digest, now);
        }
        if let Some(table) = self.older_with(digest, now) {
            // In its place: copies of keys that are seen often would crowd out others.
            if self.renews() {
                self.older[table].take(digest, now);
            }
            return Verdict::Duplicate;
        }
        // Time may have emptied the table that was full.
        if !self.is_full_now() {
            return self.active.observe(digest, now);
        }
        if self.active.engine.contains(digest, now) {
            if self.renews() {
                self.active.take(digest, now);
            }
            return Verdict::Duplicate;
        }
        self.take_beyond_capacity(digest, now);
        Verdict::Fresh
    }

    /// An arrival while there are several tables, where a key may have entries in all of them.
    pub(super) fn observe_besides(&mut self, digest: Digest, now: Tick) -> Verdict {
        if !self.is_known(digest, now) {
            if !self.is_full_now() {
                return self.active.observe(digest, now);
            }
            self.take_beyond_capacity(digest, now);
            return Verdict::Fresh;
        }
        if self.renews() {
            self.take_besides(digest, now);
        }
        Verdict::Duplicate
    }

    /// Is it found in any of the tables?
    #[inline(never)]
    pub(super) fn is_known(&self, digest: Digest, now: Tick) -> bool {
        match self.active.engine.contains_quickly(digest, now) {
            Some(true) => true,
            Some(false) => !self.older.is_empty() && self.older_with(digest, now).is_some(),
            None => self.is_in_any(digest, now),
        }
    }

    #[inline(never)]
    fn is_in_any(&self, digest: Digest, now: Tick) -> bool {
        self.active.engine.contains(digest, now) || self.older_with(digest, now).is_some()
    }

    /// Does the policy have to be asked before a fresh key is remembered?
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.can_overflow && self.active.engine.is_full()
    }

    /// [`AnyFilter::is_full`], where time has passed to the newest moment.
    #[inline]
    pub(super) fn is_full_now(&mut self) -> bool {
        self.is_full() && self.active.engine.is_full_now()
    }

    /// Remembers a fresh key though the active table is full, if the policy allows it.
    #[cold]
    pub(super) fn take_beyond_capacity(&mut self, digest: Digest, now: Tick) {
        self.active.engine.table_mut().sample(digest);
        if self.plan.spec.terms.when_full != WhenFull::Refuse
            && (self.reuse_table(digest) || self.add_table())
        {
            self.active.take(digest, now);
        } else {
            self.overload.refused += 1;
        }
    }

    /// Puts an older table that time has emptied in the active one's place. `false` where none is.
    /// Renewals may keep few keys of a table alive for long, and it cannot be dropped.
    pub(super) fn reuse_table(&mut self, digest: Digest) -> bool {
        let most_room = generations::most_room(&self.older, &self.active, digest);
        let Some((at, fill)) = most_room else { return false };
        let mut table = self.older.remove(at);
        table.engine.table_mut().resume(fill);
        self.older.push(core::mem::replace(&mut self.active, table));
        true
    }

    /// Puts a new table in the active one's place. `false` where none fits.
    pub(super) fn add_table(&mut self) -> bool {
        let (table, forgotten) = generations::next(&self.plan, &mut self.older, &self.active);
        self.overload.forgotten = self.overload.forgotten.saturating_add(forgotten);
        let Some(table) = table else { return false };
        self.older.push(core::mem::replace(&mut self.active, table));
        self.overload.grown += 1;
        true
    }

    /// The newest of the older tables in which a key is found.
    pub(super) fn older_with(&self, digest: Digest, now: Tick) -> Option<usize> {
        self.older.iter().rposition(|table| table.engine.contains(digest, now))
    }
}
