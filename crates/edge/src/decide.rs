//! A worker's decision: is this reading worth sending?

use crate::Millis;
use crate::element::Element;
use crate::filter::{CellFilter, Share, ShareError, Stamp};
use crate::ids::WorkerId;
use crate::rules::{Mode, Rules, RulesError};
use alloc::vec::Vec;
use lately::Digest;

/// What to do with a reading, or with the wish to take one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Others have sent enough of it: neither send nor sense.
    Skip,
    /// It is wanted.
    Send,
    /// It seems not to be wanted, but is to be sent to make sure.
    Refresh,
}

/// What a worker knows of a cell of 1 km, and how it decides there.
///
/// # Guarantee
/// A reading of an element that nobody sent in this period is skipped only if the filter takes it for
/// another: the chance is that of the filter at its fill. (Algorithm 2 of the paper, by its prose: the
/// element counts as added *with* the `m_worker`-th reading, not with the one after it.)
///
/// Three things keep such a mistake from silencing a place for ever:
/// - The positions of an element depend on the period (in filters that are reset), so that it is another
///   element's turn in the next one.
/// - Of the elements that a worker skips, it sends a share all the same, [`Rules::refresh`], marked so that
///   the host judges it by what it has, not by its filter. Which ones is drawn from worker, element and
///   period, not at random for each reading: a worker at rest would else repeat itself every minute. So a
///   refresh costs at most one reading a worker, element and period, needs no random numbers, and each
///   period draws again: a place with `w` workers stays silenced for `j` periods with a chance of
///   `(1 - q)^(j·w)`. A salt of each worker's own in its filter would do without the extra readings,
///   but then no two workers could share a filter, and no multicast would be left.
/// - A filter of which no news came for two validity periods is forgotten.
///
/// # Cost
/// One digest and `k` positions a question; memory for the filter and for the elements that this worker
/// sent in this period, at most [`Decider::MAX_OWN`].
///
/// # Differs from the paper
/// What a worker sent itself is kept separately from the filter. So an update can replace the filter and
/// nothing of the worker's own is lost (the paper leaves open what happens), it causes no false positives,
/// and in a filter that ages it can be taken back: a worker whose reading was redundant would else be
/// silent for one validity period after *its* reading, not after the one that the host has.
#[derive(Clone, Debug)]
pub struct Decider {
    worker: WorkerId,
    rules: Rules,
    stamp: Stamp,
    filter: CellFilter,
    /// What this worker sent in this period.
    own: Vec<Own>,
    /// When the filter was last heard of.
    heard: Millis,
}

/// Readings that this worker sent of an element.
#[derive(Clone, Copy, Debug)]
struct Own {
    digest: Digest,
    sent: u8,
    refreshed: bool,
    /// Did the host's filter speak for it then or afterwards? Then the host knows better how old it is.
    known: bool,
    /// The grain of the first, or of the one that made it enough.
    since: u64,
}

impl Decider {
    /// The most elements of its own that a worker remembers in a period; past that, it forgets the oldest
    /// and may send them again.
    pub const MAX_OWN: usize = 1024;

    /// What a worker knows when a host has assigned it to a cell.
    ///
    /// # Errors
    /// [`RulesError`] for rules that cannot be followed, or a share that cannot be read.
    pub fn new(
        worker: WorkerId,
        rules: Rules,
        share: &Share,
        now: Millis,
    ) -> Result<Self, RulesError> {
        rules.check()?;
        let filter = CellFilter::new(&rules, rules.grain(now));
        let stamp = Stamp { version: 0, ..share.stamp };
        let mut decider = Self { worker, rules, stamp, filter, own: Vec::new(), heard: now };
        let whole = share.since.is_none() && decider.update(share, now).is_ok();
        if whole { Ok(decider) } else { Err(RulesError("a filter that cannot be read")) }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Which state of the host's filter it knows.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Takes other rules; what cannot be kept under them is forgotten.
    pub(crate) fn set_rules(&mut self, rules: Rules, now: Millis) {
        if rules != self.rules {
            self.rules = rules;
            self.filter = CellFilter::new(&rules, rules.grain(now));
            self.own.clear();
            self.stamp = Stamp::default();
        }
    }

    fn digest(&self, element: &Element) -> Digest {
        element.digest(Rules::salt(self.stamp.epoch))
    }

    /// Decides about an element: before its reading is taken, or before it is sent.
    #[inline]
    pub fn decide(&self, element: &Element, now: Millis) -> Decision {
        if now.abs_diff(self.heard) > 2 * self.rules.validity {
            return Decision::Send;
        }
        let digest = self.digest(element);
        let grain = self.rules.grain(now);
        if !self.filter.contains(digest, grain) {
            let own = self.own(digest, grain).filter(|own| !own.known);
            let enough = own.is_some_and(|own| own.sent >= self.rules.m_worker);
            return if enough { Decision::Skip } else { Decision::Send };
        }
        if self.rules.refresh > 0 && self.is_drawn(digest, now) {
            let done = self.own(digest, grain).is_some_and(|own| own.refreshed);
            return if done { Decision::Skip } else { Decision::Refresh };
        }
        Decision::Skip
    }

    /// Is this worker to refresh this element in this period?
    fn is_drawn(&self, digest: Digest, now: Millis) -> bool {
        let period = Rules::salt(self.rules.period(now) as u32);
        let lot =
            Digest::new(digest.hi() ^ self.worker.0, digest.lo() ^ period).probes(1 << 16).next();
        lot.is_some_and(|lot| lot < u64::from(self.rules.refresh))
    }

    /// How many readings of the element this worker sent in this period.
    pub fn sent_of(&self, element: &Element, now: Millis) -> u8 {
        let (digest, grain) = (self.digest(element), self.rules.grain(now));
        let own = self.own(digest, grain).filter(|own| !self.is_settled(own, grain));
        own.map_or(0, |own| own.sent)
    }

    fn own(&self, digest: Digest, grain: u64) -> Option<&Own> {
        let own = self.own.iter().find(|own| own.digest == digest)?;
        (!self.is_over(own, grain)).then_some(own)
    }

    /// Has the period in which these readings were sent ended?
    fn is_over(&self, own: &Own, grain: u64) -> bool {
        matches!(self.rules.mode, Mode::Ageing { steps } if grain.saturating_sub(own.since) >= u64::from(steps))
    }

    /// Did the host's filter speak for it once, and no longer does?
    fn is_settled(&self, own: &Own, grain: u64) -> bool {
        own.known && !self.filter.contains(own.digest, grain)
    }

    /// Notes that a reading was sent. After the `m_worker`-th, further ones are skipped.
    pub fn sent(&mut self, element: &Element, decision: Decision, now: Millis) {
        if now.abs_diff(self.heard) > 2 * self.rules.validity {
            self.forget(self.stamp, now);
        }
        let (digest, grain) = (self.digest(element), self.rules.grain(now));
        let at = match self.own.iter().position(|own| own.digest == digest) {
            Some(at)
                if self
                    .own
                    .get(at)
                    .is_some_and(|own| self.is_over(own, grain) || self.is_settled(own, grain)) =>
            {
                self.own.swap_remove(at);
                None
            }
            other => other,
        };
        let at = at.unwrap_or_else(|| {
            if self.own.len() >= Self::MAX_OWN {
                self.own.remove(0);
            }
            self.own.push(Own { digest, sent: 0, refreshed: false, known: false, since: grain });
            self.own.len() - 1
        });
        let Some(own) = self.own.get_mut(at) else { return };
        if decision == Decision::Refresh {
            (own.refreshed, own.known) = (true, true);
        }
        own.sent = own.sent.saturating_add(1);
        if own.sent == self.rules.m_worker {
            own.since = grain;
        }
    }

    /// Takes over what the host sent: it replaces the filter, or is added to it, and what this worker
    /// added itself in this period stays.
    ///
    /// # Errors
    /// [`ShareError`]; then nothing has changed.
    pub fn update(&mut self, share: &Share, now: Millis) -> Result<(), ShareError> {
        if !share.is_readable(self.rules.size) {
            return Err(ShareError::Malformed);
        }
        let comparable = share.stamp.is_comparable(self.stamp);
        let older = share.stamp.epoch < self.stamp.epoch
            || (share.stamp.epoch == self.stamp.epoch
                && share.stamp.incarnation < self.stamp.incarnation)
            || (comparable && share.stamp.version < self.stamp.version);
        if older {
            return Err(ShareError::Stale);
        }
        match share.since {
            Some(since) if !comparable || since > self.stamp.version => {
                return Err(ShareError::Gap);
            }
            Some(_) => {}
            None if share.stamp.epoch != self.stamp.epoch => self.forget(share.stamp, now),
            None => self.filter.clear(self.rules.grain(now)),
        }
        let grain = self.rules.grain(now);
        self.filter.advance(grain);
        let filter = &mut self.filter;
        share.for_each(self.rules.size, |at, age| filter.set(at, age));
        for at in 0..self.own.len() {
            let Some(&own) = self.own.get(at) else { continue };
            let known = own.known || self.filter.contains(own.digest, grain);
            self.own.get_mut(at).into_iter().for_each(|own| own.known = known);
        }
        (self.stamp, self.heard) = (share.stamp, now);
        Ok(())
    }

    /// The host has emptied its filter. An older epoch than the one known changes nothing.
    pub fn reset(&mut self, stamp: Stamp, now: Millis) -> Result<(), ShareError> {
        if stamp.epoch < self.stamp.epoch
            || (stamp.epoch == self.stamp.epoch && stamp.incarnation <= self.stamp.incarnation)
        {
            return Err(ShareError::Stale);
        }
        self.forget(stamp, now);
        Ok(())
    }

    /// The host has emptied all filters of its square: of earlier periods, and of earlier incarnations than `since`. Was
    /// this one of them? One that was emptied, or taken over from the host, since then stays as it is.
    ///
    /// What stays is not thereby heard of: the broker delivers the newest reset to whoever comes, also where the host is
    /// long gone.
    pub fn reset_all(&mut self, stamp: Stamp, since: u32, now: Millis) -> bool {
        let resets = matches!(self.rules.mode, Mode::Reset);
        let older = self.stamp.epoch < stamp.epoch || self.stamp.incarnation < since;
        if resets && older {
            self.forget(stamp, now);
        }
        resets && older
    }

    /// Begins a new period with an empty filter.
    fn forget(&mut self, stamp: Stamp, now: Millis) {
        self.own.clear();
        self.filter.clear(self.rules.grain(now));
        self.stamp = Stamp { version: 0, ..stamp };
        self.heard = now;
    }
}
