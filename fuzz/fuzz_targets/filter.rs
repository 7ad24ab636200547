//! Any calls in any order on a small filter, compared with an exact oracle: no false negative, ever. Windows of
//! time take late arrivals too, where their structure does.
#![no_main]

use arbitrary::Arbitrary;
use lately::{
    AnyFilter, Digest, Digester, Filter, LastSeen, Merge, MergeError, Renewal, Spec, Structure,
    Tick, Verdict, WhenFull, Window, WindowFilter,
};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Which instruction sets the processor has.
    level: u8,
    structure: u8,
    count: bool,
    span: u8,
    long: bool,
    capacity: u8,
    slack: Slack,
    lateness: Lateness,
    always: bool,
    when_full: u8,
    rough: bool,
    crowded: bool,
    limit: Option<u16>,
    late_start: bool,
    calls: Vec<Call>,
}

/// Each as likely as the others: exact moments, eighths of a window, and any.
#[derive(Arbitrary, Debug)]
enum Slack {
    Zero,
    Eighth,
    Any(u8),
}

/// In order, up to a window late, and up to a hundred windows.
#[derive(Arbitrary, Debug)]
enum Lateness {
    Zero,
    Ticks(u8),
    Windows { windows: u8, more: u8 },
}

#[derive(Arbitrary, Debug)]
enum Call {
    Observe { key: u8, gap: u8 },
    Back { key: u8, gap: u16 },
    Batch { first: u8, len: u8, gap: u8 },
    Remember { key: u8, gap: u8 },
    AskThenRemember { key: u8, gap: u8 },
    Advance { gap: u8 },
    Pause { windows: u8, more: u8 },
    Eighths { eighths: u8, more: u8 },
    Within { key: u8, within: u16, later: u8 },
    LastSeen { key: u8, later: u8 },
    Merge { keys: Vec<(u8, u8)>, late: u8, other_seed: bool },
    Forget { key: u8 },
    Restore,
}

/// Every sighting of every key.
#[derive(Clone)]
struct Oracle {
    window: Window,
    lateness: u64,
    always: bool,
    newest: u64,
    seen: HashMap<u64, BTreeSet<u64>>,
}

impl Oracle {
    fn is_count(&self) -> bool {
        matches!(self.window, Window::Count(_))
    }

    fn span(&self) -> u64 {
        self.window.span().unwrap_or(u64::MAX)
    }

    fn moment(&self, tick: u64) -> u64 {
        if self.is_count() {
            self.newest + 1
        } else {
            tick.max(self.newest.saturating_sub(self.lateness))
        }
    }

    /// The last sighting no further than so much before a tick, and so much after it.
    fn last(&self, key: u64, tick: u64, before: u64, after: u64) -> Option<u64> {
        let moment = self.moment(tick);
        let around = moment.saturating_sub(before)..=moment.saturating_add(after);
        self.seen.get(&key)?.range(around).next_back().copied()
    }

    fn is_live(&self, key: u64, tick: u64) -> bool {
        self.last(key, tick, self.span(), self.span()).is_some()
    }

    fn remember(&mut self, key: u64, moment: u64) {
        self.newest = self.newest.max(moment);
        self.seen.entry(key).or_default().insert(moment);
    }

    fn observe(&mut self, key: u64, tick: u64, verdict: Verdict) {
        let moment = self.moment(tick);
        if self.always || verdict == Verdict::Fresh {
            self.remember(key, moment);
        }
        self.newest = self.newest.max(moment);
    }
}

/// Crowded ones all begin with the same half, by which structures choose their buckets.
fn digest_of(key: u64, crowded: bool) -> Digest {
    let digest = Digester::new(0).digest(&key.to_le_bytes());
    if crowded { Digest::new(1 << 62, digest.lo()) } else { digest }
}

fuzz_target!(|input: Input| {
    lately::use_no_more_than(1 + input.level % 3);
    let least = |n: u8| NonZeroU64::new(u64::from(n)).unwrap_or(NonZeroU64::MIN);
    let structure = Structure::ALL[usize::from(input.structure) % Structure::ALL.len()];
    let window = match (structure.is_unbounded(), input.count) {
        (true, _) => Window::Unbounded { capacity: least(input.capacity) },
        (false, true) => Window::Count(least(input.span)),
        (false, false) => {
            let span = least(input.span).saturating_mul(least(if input.long { 251 } else { 1 }));
            Window::Time { span, capacity: least(input.capacity) }
        }
    };
    let slack = match input.slack {
        Slack::Zero => 0,
        Slack::Eighth => window.span().unwrap_or(0) / 8,
        Slack::Any(slack) => u64::from(slack),
    };
    let lateness = match input.lateness {
        Lateness::Ticks(ticks) => u64::from(ticks),
        Lateness::Windows { windows, more } => {
            window.span().unwrap_or(0) * u64::from(windows % 101) + u64::from(more)
        }
        Lateness::Zero => 0,
    };
    let takes = matches!(window, Window::Time { .. }) && structure.takes_late_arrivals();
    let lateness = if takes { lateness } else { 0 };
    let digest = |key| digest_of(key, input.crowded);
    let when_full =
        [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse][usize::from(input.when_full) % 3];
    let renewal = if input.always { Renewal::Always } else { Renewal::OnFresh };
    let spec = Spec::new(window).structure(structure).renewal(renewal).when_full(when_full);
    let spec = spec.slack(slack).lateness(lateness).fpr(if input.rough { 0.5 } else { 1e-6 });
    let spec = input.limit.map_or(spec, |limit| spec.memory(u64::from(limit) * 16));
    let Ok(plan) = spec.plan() else { return };
    let mut filter = plan.build();
    assert_eq!(filter.memory() as u64, plan.memory());
    // What never forgets does not take a key again that it takes for known: one it was wrong about may
    // pass when the table that it was wrong by is dropped.
    let always = input.always && !structure.is_unbounded();
    let mut oracle = Oracle { window, lateness, always, newest: 0, seen: HashMap::new() };
    let mut now = if input.late_start { u64::MAX - 1_000 } else { 0 };
    let mut missed = 0;
    for call in input.calls.into_iter().take(200) {
        let span = window.span().unwrap_or(1);
        let mut arrive = |filter: &mut AnyFilter, oracle: &mut Oracle, key: u64, tick: u64| {
            let expected = filter.contains(digest(key), Tick(tick));
            let live = oracle.is_live(key, tick);
            let verdict = filter.observe(digest(key), Tick(tick));
            assert_eq!(expected, verdict.is_duplicate());
            missed += u64::from(live && !verdict.is_duplicate());
            oracle.observe(key, tick, verdict);
        };
        match call {
            Call::Observe { key, gap } => {
                now = now.saturating_add(u64::from(gap));
                arrive(&mut filter, &mut oracle, u64::from(key), now);
            }
            Call::Back { key, gap } => {
                let tick = now.saturating_sub(u64::from(gap));
                arrive(&mut filter, &mut oracle, u64::from(key), tick);
            }
            Call::Batch { first, len, gap } => {
                now = now.saturating_add(u64::from(gap));
                for key in 0..u64::from(len) {
                    arrive(&mut filter, &mut oracle, u64::from(first) * 256 + key, now);
                }
            }
            Call::Remember { key, gap } => {
                now = now.saturating_add(u64::from(gap));
                filter.remember(digest(u64::from(key)), Tick(now));
                let moment = if oracle.is_count() { oracle.newest } else { oracle.moment(now) };
                oracle.remember(u64::from(key), moment);
            }
            Call::AskThenRemember { key, gap } => {
                now = now.saturating_add(u64::from(gap));
                if !filter.contains(digest(u64::from(key)), Tick(now)) {
                    missed += u64::from(oracle.is_live(u64::from(key), now));
                    filter.count_arrival();
                    filter.remember(digest(u64::from(key)), Tick(now));
                    oracle.observe(u64::from(key), now, Verdict::Fresh);
                }
            }
            Call::Advance { gap } => {
                now = now.saturating_add(u64::from(gap));
                filter.advance(Tick(now));
                if matches!(window, Window::Time { .. }) {
                    oracle.newest = oracle.newest.max(now);
                }
            }
            Call::Pause { windows, more } => {
                now = now.saturating_add(span * u64::from(windows) + u64::from(more));
            }
            Call::Eighths { eighths, more } => {
                // Around where generations of an aged table begin: one less to one more.
                let length = span * u64::from(eighths % 24) / 8 + u64::from(more % 3);
                now = now.saturating_add(length.saturating_sub(1));
            }
            Call::Within { key, within, later } => {
                let (key, tick) = (u64::from(key), now.saturating_add(u64::from(later)));
                let within = if within == u16::MAX { u64::MAX } else { u64::from(within) };
                let found = filter.contains_within(digest(key), within, Tick(tick));
                assert!(!found || filter.contains(digest(key), Tick(tick)));
                let within = within.min(oracle.span());
                let live = oracle.last(key, tick, within, within).is_some();
                let overload = filter.overload();
                assert!(found || !live || overload.forgotten + overload.refused > 0);
            }
            Call::LastSeen { key, later } => {
                let (key, tick) = (u64::from(key), now.saturating_add(u64::from(later)));
                let seen = filter.last_seen(digest(key), Tick(tick));
                assert_eq!(seen.is_some(), filter.contains(digest(key), Tick(tick)));
                assert!(seen.is_none_or(|seen| seen.from <= seen.to));
                let overload = filter.overload();
                // With many false positives a slot may be another key's.
                if oracle.is_live(key, tick)
                    && !input.rough
                    && !input.crowded
                    && overload.forgotten + overload.refused == 0
                {
                    let seen = seen.expect("a live key");
                    // Ahead of a question from the past one of the slack may be the one that is told.
                    let beyond = oracle.span().saturating_add(filter.slack());
                    let last = oracle.last(key, tick, oracle.span(), oracle.span());
                    let later = oracle.last(key, tick, oracle.span(), beyond);
                    assert!(Some(seen.from.0) <= later, "{seen:?} {later:?}");
                    assert!(Some(seen.to.0) >= last, "{seen:?} {last:?}");
                }
            }
            Call::Merge { keys, late, other_seed } => {
                let plan = spec.seed(u64::from(other_seed)).plan().expect("it was planned before");
                let (mut other, mut theirs) =
                    (plan.build(), Oracle { newest: 0, ..oracle.clone() });
                theirs.seen.clear();
                let (mut moment, mut missed_there) = (now.saturating_sub(u64::from(late)), 0);
                for (key, gap) in keys.into_iter().take(40) {
                    moment = moment.saturating_add(u64::from(gap));
                    let key = u64::from(key);
                    let live = theirs.is_live(key, moment);
                    let verdict = other.observe(digest(key), Tick(moment));
                    missed_there += u64::from(live && !verdict.is_duplicate());
                    theirs.observe(key, moment, verdict);
                }
                let before = filter.clone();
                match filter.merge(&other) {
                    Ok(()) => {
                        assert!(!oracle.is_count() && !other_seed);
                        missed += missed_there;
                        now = now.max(theirs.newest);
                        oracle.newest = oracle.newest.max(theirs.newest);
                        for (key, seen) in theirs.seen {
                            oracle.seen.entry(key).or_default().extend(seen);
                        }
                        for n in 0..=255 {
                            let either = before.contains(digest(n), Tick(now))
                                || other.contains(digest(n), Tick(now));
                            assert!(!either || filter.contains(digest(n), Tick(now)));
                        }
                    }
                    Err(why) => {
                        assert_eq!(why == MergeError::Shape, other_seed);
                        assert!(other_seed || oracle.is_count() == (why == MergeError::Counting));
                        assert_eq!(before, filter, "refused, and changed");
                    }
                }
            }
            // With fingerprints of few bits other keys would go with it all the time.
            Call::Forget { .. } if input.rough || !structure.can_forget() => {}
            Call::Forget { key } => {
                let key = u64::from(key);
                let others = |filter: &AnyFilter| {
                    let at = [now, now.saturating_sub(lateness / 2), now.saturating_sub(lateness)];
                    let others = oracle.seen.keys().filter(|&&other| other != key);
                    let found =
                        others.map(|&other| at.map(|at| filter.contains(digest(other), Tick(at))));
                    found.collect::<Vec<_>>()
                };
                let before = others(&filter);
                let live = oracle.is_live(key, now);
                let known = filter.forget(digest(key));
                let overload = filter.overload();
                assert!(known || !live || overload.forgotten + overload.refused > 0);
                assert!(!filter.contains(digest(key), Tick(now)));
                if others(&filter) != before {
                    // It looked like another one, which may happen once in a million times.
                    return;
                }
                oracle.seen.remove(&key);
            }
            Call::Restore => {
                let bytes = filter.snapshot();
                filter = AnyFilter::restore(&bytes).expect("its own snapshot");
                assert_eq!(filter.snapshot(), bytes);
            }
        }
        let overload = filter.overload();
        let given_up = overload.forgotten + overload.refused;
        // One sighting that was given up may be missed by several late arrivals about it.
        assert!(missed <= given_up || (lateness > 0 && given_up > 0));
        if let Some(limit) = input.limit {
            assert!(filter.memory() as u64 <= u64::from(limit) * 16);
        }
        if overload.forgotten + overload.refused == 0 {
            for at in [now, now.saturating_sub(lateness / 2), now.saturating_sub(lateness)] {
                for &key in oracle.seen.keys().filter(|&&key| oracle.is_live(key, at)) {
                    assert!(filter.contains(digest(key), Tick(at)));
                }
            }
        }
    }
});
