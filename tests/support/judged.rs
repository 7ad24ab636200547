//! A filter whose every verdict is compared with the exact one.
// Each test program uses a part.
#![allow(dead_code)]

use crate::support::{Oracle, at_most, key};
use lately::{AnyFilter, Filter, Renewal, Spec, Tick, Verdict, WindowFilter};

/// A filter and its oracle side by side.
pub(crate) struct Pair {
    pub(crate) filter: AnyFilter,
    pub(crate) oracle: Oracle,
    pub(crate) renewal: Renewal,
    /// Live keys that an arrival was called fresh for.
    pub(crate) missed: u64,
    pub(crate) questions: u64,
    pub(crate) false_positives: u64,
}

impl Pair {
    pub(crate) fn new(spec: Spec, renewal: Renewal) -> Self {
        let filter = spec.plan().unwrap().build();
        let oracle = Oracle::new(filter.window(), renewal);
        Self { filter, oracle, renewal, missed: 0, questions: 0, false_positives: 0 }
    }

    /// Live keys that the policy may have given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.filter.overload().forgotten + self.filter.overload().refused
    }

    pub(crate) fn judge(&mut self, n: u64, tick: Tick, duplicate: bool) {
        if !self.oracle.may_be_found(n, tick, self.filter.slack()) {
            self.questions += 1;
            self.false_positives += u64::from(duplicate);
        }
        if self.oracle.is_live(n, tick) && !duplicate {
            self.missed += 1;
            assert!(self.missed <= self.given_up(), "{}", self.tell(n, tick));
        }
    }

    pub(crate) fn observe(&mut self, n: u64, tick: Tick) -> Verdict {
        let verdict = self.filter.observe(key(n), tick);
        self.judge(n, tick, verdict.is_duplicate());
        self.oracle.observe(n, tick, verdict);
        verdict
    }

    /// What a caller does who hands a record on before it is marked.
    pub(crate) fn ask_then_remember(&mut self, n: u64, tick: Tick) -> Verdict {
        let duplicate = self.filter.contains(key(n), tick);
        self.judge(n, tick, duplicate);
        let verdict = if duplicate { Verdict::Duplicate } else { Verdict::Fresh };
        self.filter.count_arrival();
        if !duplicate || self.renewal == Renewal::Always {
            self.filter.remember(key(n), tick);
        } else {
            self.filter.advance(tick);
        }
        self.oracle.observe(n, tick, verdict);
        verdict
    }

    /// Asks for every key that must be found.
    pub(crate) fn ask_all(&self, tick: Tick) {
        if self.given_up() > 0 {
            return;
        }
        for n in self.oracle.live(tick) {
            assert!(self.filter.contains(key(n), tick), "{}", self.tell(n, tick));
        }
    }

    pub(crate) fn check_rate(&self, fpr: f64) {
        let most = at_most(self.questions, fpr);
        assert!(self.false_positives as f64 <= most, "{} {:?}", self.false_positives, self.filter);
    }

    pub(crate) fn tell(&self, n: u64, tick: Tick) -> String {
        let age = self.oracle.age(n, tick);
        let (plan, overload) = (self.filter.plan(), self.filter.overload());
        format!("key {n} of age {age:?} not found at {tick:?}: {plan:?} {overload:?}")
    }
}

pub(crate) fn renewal_of(spec: &Spec) -> Renewal {
    // A spec does not tell what it was given; its text does.
    let text = format!("{spec:?}");
    if text.contains("OnFresh") { Renewal::OnFresh } else { Renewal::Always }
}
