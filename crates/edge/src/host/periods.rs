//! When filters are emptied, and who is told.

use super::{CLEAN_EVERY, Host, ResetBy, WRONG_CLOCK};
use crate::Millis;
use crate::cell::KmCell;
use crate::filter::Stamp;
use crate::message::{Message, Outgoing, Peer};
use crate::rules::{Mode, Rules};
use alloc::vec::Vec;

impl Host {
    /// Empties a cell's filter before the period ends, once so many of its bits are set, and tells its workers.
    /// For the simulator, which tries what the paper leaves to the future.
    #[cfg(feature = "std")]
    pub(crate) fn reset_at(&mut self, cell: KmCell, ones: u32, out: &mut Vec<Outgoing>) {
        let rules = self.config.rules;
        let Some(state) = self.cells.get_mut(&cell) else { return };
        if state.filter.ones() >= ones && state.begin_period(&rules) {
            state.resets = state.resets.saturating_add(1);
            let incarnation = self.incarnation.saturating_add(state.resets);
            let stamp = Stamp { epoch: self.epoch, incarnation, version: 0 };
            out.push(Outgoing { to: Peer::Cell(cell), message: Message::Reset { cell, stamp } });
        }
    }

    /// Switches to other rules: filters start empty, readings stay, and workers are told. The rules
    /// must have been checked with [`Rules::check`].
    pub fn set_rules(&mut self, rules: Rules, out: &mut Vec<Outgoing>) {
        if rules == self.config.rules {
            return;
        }
        self.config.rules = rules;
        self.restart_filters();
        let workers = core::mem::take(&mut self.workers);
        for (&worker, known) in workers.iter().filter(|(_, known)| !known.away) {
            self.assign(worker, known.cell, &known.properties, None, out);
        }
        self.workers = workers;
    }

    /// Forgets all filters, and makes those that workers have incomparable with what follows.
    pub(super) fn restart_filters(&mut self) {
        self.incarnation = self.incarnation.saturating_add(1);
        (self.epoch, self.floor) = (self.config.rules.epoch(self.now), 0);
        (self.since, self.untold) = (self.incarnation, true);
        self.cells.clear();
        self.count_present();
    }

    /// It runs again after another process may have run its square: workers may know that one's filters.
    pub fn begin_life(&mut self, now: Millis) {
        self.raise_incarnation(now);
        (self.since, self.untold) = (self.incarnation, true);
    }

    /// What it says of filters from now on is newer than what workers know.
    pub(super) fn raise_incarnation(&mut self, now: Millis) {
        let by_clock = (now / 1000).min(u64::from(u32::MAX)) as u32;
        self.incarnation = self.incarnation.saturating_add(1).max(by_clock);
    }

    /// Ends the validity period when its time is over (Algorithm 5).
    pub(super) fn advance(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        if now.saturating_add(WRONG_CLOCK) < self.now {
            self.correct_clock(now);
        }
        self.now = self.now.max(now);
        let epoch = self.config.rules.epoch(self.now);
        if epoch == self.epoch {
            return;
        }
        let ended = u64::from(core::mem::replace(&mut self.epoch, epoch));
        self.floor = 0;
        self.since = self.incarnation;
        let oldest = self.oldest_period();
        let past = &mut self.past;
        let mut emptied: Vec<KmCell> = Vec::new();
        self.cells.retain(|&cell, state| {
            // Where nobody sent anything in this period, everybody's filter is empty already.
            if ended >= oldest {
                state.kept.iter().for_each(|(&element, kept)| past.add(ended, element, kept.count));
            }
            let present = state.present > 0;
            if state.begin_period(&self.config.rules) {
                // Whoever is in none of them at present may come back, and asks the broker alone if the host is away then.
                self.untold = true;
                emptied.extend(present.then_some(cell));
            }
            present
        });
        self.tell_emptied(&emptied, out);
        self.past.forget(oldest);
    }

    /// Tells workers in these cells that the filter is empty; or all of the square at once.
    fn tell_emptied(&mut self, emptied: &[KmCell], out: &mut Vec<Outgoing>) {
        let stamp = self.empty_stamp();
        let reset = |to, cell| Outgoing { to, message: Message::Reset { cell, stamp } };
        match self.config.reset_by {
            ResetBy::Square => self.tell_where_filters_stand(out),
            ResetBy::Cell => out.extend(emptied.iter().map(|&cell| reset(Peer::Cell(cell), cell))),
            ResetBy::Worker => {
                let here = self.workers.iter().filter(|(_, known)| !known.away);
                // They are in order, as the host's cells are.
                let told = here.filter(|(_, known)| emptied.binary_search(&known.cell).is_ok());
                out.extend(told.map(|(&worker, known)| reset(Peer::Worker(worker), known.cell)));
            }
        }
    }

    /// Tells all workers of the square which filters are valid, if that has changed or they may not know it.
    pub(super) fn tell_where_filters_stand(&mut self, out: &mut Vec<Outgoing>) {
        let untold = core::mem::take(&mut self.untold);
        let resets = matches!(self.config.rules.mode, Mode::Reset);
        if untold && resets && self.config.reset_by == ResetBy::Square {
            let (square, stamp, since) = (self.square, self.empty_stamp(), self.since);
            let message = Message::ResetAll { square, stamp, since };
            out.push(Outgoing { to: Peer::Square(square), message });
        }
    }

    fn empty_stamp(&self) -> Stamp {
        Stamp { epoch: self.epoch, incarnation: self.incarnation, version: 0 }
    }

    /// The connection to the broker was lost and is there again: the broker may have forgotten what it kept for workers
    /// that come later.
    pub fn reconnected(&mut self) {
        self.untold = true;
    }

    /// The clock was wrong before: what was noted by it would hold for as long as it was ahead.
    pub(super) fn correct_clock(&mut self, now: Millis) {
        self.now = now;
        self.restart_filters();
        self.workers.values_mut().for_each(|known| known.heard = known.heard.min(now));
        self.all_heard = 0;
        self.lives.correct_clock(now);
        self.next_tally = now;
        self.outbox.correct_clock(now);
        self.ended.clear();
        self.next_aggregate = now.saturating_add(self.config.aggregate_every);
        self.next_cleaning = now.saturating_add(CLEAN_EVERY);
        self.counts.clock_corrections += 1;
    }
}
