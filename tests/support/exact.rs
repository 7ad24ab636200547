//! The exact law of arrivals out of order, and a filter that is compared with it.
//!
//! An arrival at `t`, no more than the lateness behind the newest moment, is a duplicate exactly when an
//! earlier arrival of its key at `s` has `|t - s| <= W`; under `OnFresh` only those that were fresh count.
// Each test program uses a part.
#![allow(dead_code)]

use crate::support::{at_most, key};
use lately::{LastSeen, Renewal, Tick, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// All sightings of all keys. It follows the filter's verdicts, as a false positive is not remembered
/// under `OnFresh`.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) span: u64,
    pub(crate) lateness: u64,
    pub(crate) renewal: Renewal,
    pub(crate) newest: u64,
    pub(crate) seen: BTreeMap<u64, BTreeSet<u64>>,
}

impl Exact {
    pub(crate) fn new(span: u64, lateness: u64, renewal: Renewal) -> Self {
        Self { span, lateness, renewal, newest: 0, seen: BTreeMap::new() }
    }

    /// The moment at which an arrival is judged.
    pub(crate) fn moment(&self, at: u64) -> u64 {
        at.max(self.newest.max(at).saturating_sub(self.lateness))
    }

    /// Is there a sighting no further than this from a moment?
    pub(crate) fn near(&self, key: u64, moment: u64, reach: u64) -> bool {
        let around = moment.saturating_sub(reach)..=moment.saturating_add(reach);
        self.seen.get(&key).is_some_and(|seen| seen.range(around).next().is_some())
    }

    pub(crate) fn is_duplicate(&self, key: u64, at: u64) -> bool {
        self.near(key, self.moment(at), self.span)
    }

    pub(crate) fn may_be_found(&self, key: u64, at: u64, slack: u64) -> bool {
        self.near(key, self.moment(at), self.span.saturating_add(slack))
    }

    pub(crate) fn remember(&mut self, key: u64, at: u64) {
        let moment = self.moment(at);
        self.newest = self.newest.max(at);
        self.seen.entry(key).or_default().insert(moment);
    }

    pub(crate) fn observe(&mut self, key: u64, at: u64, verdict: Verdict) {
        if verdict == Verdict::Fresh || self.renewal == Renewal::Always {
            self.remember(key, at);
        }
        self.newest = self.newest.max(at);
    }

    pub(crate) fn unite(&mut self, other: &Self) {
        for (&key, seen) in &other.seen {
            self.seen.entry(key).or_default().extend(seen);
        }
        self.newest = self.newest.max(other.newest);
    }

    pub(crate) fn forget_expired(&mut self, slack: u64) {
        let reach = self.span.saturating_add(self.lateness).saturating_add(slack);
        let oldest = self.newest.saturating_sub(reach.saturating_mul(2));
        self.seen.retain(|_, seen| {
            *seen = seen.split_off(&oldest);
            !seen.is_empty()
        });
    }
}

/// A filter and the exact program.
pub(crate) struct Pair<F> {
    pub(crate) filter: F,
    pub(crate) exact: Exact,
    pub(crate) questions: u64,
    pub(crate) wrong: u64,
    pub(crate) duplicates: u64,
}

impl<F: LastSeen> Pair<F> {
    pub(crate) fn new(filter: F, span: u64, lateness: u64, renewal: Renewal) -> Self {
        let exact = Exact::new(span, lateness, renewal);
        Self { filter, exact, questions: 0, wrong: 0, duplicates: 0 }
    }

    pub(crate) fn judge(&mut self, n: u64, at: u64, duplicate: bool) {
        let must = self.exact.is_duplicate(n, at);
        assert!(
            duplicate || !must,
            "{n} at {at}: {:?} of {:?}",
            self.exact.seen[&n],
            self.exact.newest
        );
        if !self.exact.may_be_found(n, at, self.filter.slack()) {
            self.questions += 1;
            self.wrong += u64::from(duplicate);
        }
        self.duplicates += u64::from(must);
    }

    pub(crate) fn observe(&mut self, n: u64, at: u64) -> Verdict {
        let expected = self.filter.contains(key(n), Tick(at));
        let verdict = self.filter.observe(key(n), Tick(at));
        assert_eq!(expected, verdict.is_duplicate(), "asked, then observed");
        self.judge(n, at, verdict.is_duplicate());
        self.exact.observe(n, at, verdict);
        verdict
    }

    pub(crate) fn ask_then_remember(&mut self, n: u64, at: u64) {
        let duplicate = self.filter.contains(key(n), Tick(at));
        self.judge(n, at, duplicate);
        if !duplicate || self.exact.renewal == Renewal::Always {
            self.filter.remember(key(n), Tick(at));
            self.exact.remember(n, at);
        } else {
            self.filter.advance(Tick(at));
            self.exact.newest = self.exact.newest.max(at);
        }
    }

    pub(crate) fn ask(&mut self, n: u64, at: u64) {
        let found = self.filter.contains(key(n), Tick(at));
        self.judge(n, at, found);
        let moment = self.exact.moment(at);
        let seen = self.filter.last_seen(key(n), Tick(at));
        assert_eq!(seen.is_some(), found);
        let Some(seen) = seen else { return };
        assert!(seen.from <= seen.to, "{seen:?}");
        for within in [0, 1, self.exact.span / 2, self.exact.span, u64::MAX] {
            let found = self.filter.contains_within(key(n), within, Tick(at));
            let must = self.exact.near(n, moment, within.min(self.exact.span));
            assert!(found || !must, "{n} within {within} of {at}");
        }
    }

    /// The interval holds the last sighting within the window of a question: for keys of which none is
    /// taken for another.
    pub(crate) fn ask_when(&self, n: u64, at: u64) {
        let (moment, span) = (self.exact.moment(at), self.exact.span);
        let Some(all) = self.exact.seen.get(&n) else { return };
        let around = moment.saturating_sub(span)..=moment.saturating_add(span);
        if let Some(&last) = all.range(around).next_back() {
            let seen = self.filter.last_seen(key(n), Tick(at)).unwrap();
            // One of the slack, ahead of the window, may be the one that is told.
            let beyond =
                moment.saturating_add(span)..=moment.saturating_add(span + self.filter.slack());
            let later = all.range(beyond).next_back().copied().unwrap_or(last);
            assert!(seen.from.0 <= later && seen.to.0 >= last, "{seen:?} {last} {later}");
        }
    }

    pub(crate) fn check_rate(&self, fpr: f64) {
        let most = at_most(self.questions, fpr);
        assert!(self.wrong as f64 <= most, "{} of {} at {fpr}", self.wrong, self.questions);
    }
}
