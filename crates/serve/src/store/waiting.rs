//! What is to be done to a filter that may not change, because it is being saved.
//!
//! Each act on a key waits in a queue, in the order in which it came, and the last one of each key is found by the key. So
//! a question is answered from here if there is anything about the key, and else by the filter. When the filter
//! may change again the acts are done, a few at a time, while others still come in behind them.

use super::Outcome;
use super::budget::{Budget, Share};
use super::kept::{Held, Tables};
use lately::{AnyFilter, Digest, Filter, LastSeen, Renewal, Seen, Tick, Window, WindowFilter};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

/// Acts that lie in one piece of memory. So none is moved when there are more.
const CHUNK: usize = 256;
/// Bytes that an act takes, with its place among the keys.
const ACT: u64 = 96;
/// Maps that the keys are divided among, so that none takes long to grow.
const PARTS: usize = 256;

/// Acts on keys that wait until their filter may change.
#[derive(Debug)]
pub(crate) struct Waiting {
    window: Window,
    renewal: Renewal,
    acts: VecDeque<Vec<Act>>,
    /// Acts that were done, and that ever came.
    done: u64,
    came: u64,
    /// The last act on each key that waits.
    keys: Vec<HashMap<Digest, Last, BuildHasherDefault<ByItself>>>,
    /// The newest moment, or the number of the last arrival, when all acts are done.
    newest: u64,
    /// Keys that were added, and keys that were taken out.
    added: u64,
    removed: u64,
    /// Keys that the filter can take for certain.
    room: u64,
    /// More room was asked for.
    is_room_taken: bool,
    /// Memory that this takes from the budget.
    share: Share,
    /// What becomes of the filter's memory if it is dropped while it is being saved.
    left: Arc<OnceLock<Share>>,
    end: Receiver<Infallible>,
}

/// What is to be done with a key.
#[derive(Clone, Copy, Debug)]
struct Act {
    digest: Digest,
    /// The moment; in a window of arrivals the number of the newest one.
    at: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It arrived, and is marked as seen.
    Arrived,
    /// It arrived, which changes nothing but the number of arrivals.
    Counted,
    /// It is marked as seen.
    Marked,
    /// It is taken out.
    Forgotten,
}

/// The last act on a key.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Which one it is of all that ever came.
    number: u64,
    /// When the key was seen. `None`: it was taken out.
    at: Option<u64>,
}

/// Digests are their own hashes.
#[derive(Clone, Copy, Debug, Default)]
struct ByItself(u64);

impl Hasher for ByItself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = half;
    }
}

impl Waiting {
    /// For a filter that is held from here on, and has room for so many keys.
    pub(super) fn begin(filter: &Arc<AnyFilter>, room: u64, budget: &Arc<Budget>) -> (Self, Held) {
        let (held, left, end) = Held::begin(Tables::Points(Arc::clone(filter)));
        let waiting = Self {
            window: filter.window(),
            renewal: filter.plan().renewal(),
            acts: VecDeque::new(),
            done: 0,
            came: 0,
            keys: Vec::new(),
            newest: filter.newest().0,
            added: 0,
            removed: 0,
            room,
            is_room_taken: false,
            share: Share::none(budget),
            left,
            end,
        };
        (waiting, held)
    }

    /// Returns once nobody saves the filter.
    pub(super) fn wait(&self) {
        // Nothing is ever sent: this ends when the other side is dropped.
        let _ = self.end.recv();
    }

    /// Leaves the filter's memory to whoever is saving it.
    pub(super) fn leave(&self, share: Share) {
        // Set once at most, by the one filter that there is.
        let _ = self.left.set(share);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.done == self.came
    }

    /// Of so many keys, those that will be in the filter when all acts are done.
    pub(super) fn keys_after(&self, keys: u64) -> u64 {
        (keys + self.added).saturating_sub(self.removed)
    }

    /// Is there room for so many keys more in the filter? Half of it is for those that come after it was saved, while what
    /// waits is done.
    pub(super) fn has_room(&self, keys: u64, is_held: bool) -> bool {
        let room = if is_held { self.room / 2 } else { self.room };
        self.added.saturating_add(keys) <= room
    }

    pub(super) fn is_room_taken(&self) -> bool {
        self.is_room_taken
    }

    /// The filter can take so many keys after all.
    pub(super) fn room_taken(&mut self, room: u64) {
        (self.room, self.is_room_taken) = (self.room.max(room), true);
    }

    /// Is there memory for so many acts more?
    pub(super) fn has_memory(&mut self, acts: u64) -> bool {
        let acts = (self.came - self.done).saturating_add(acts).next_multiple_of(CHUNK as u64);
        let more = acts.saturating_mul(ACT).saturating_sub(self.share.bytes());
        more == 0 || self.share.extend(more)
    }

    /// Does up to so many acts, the oldest first.
    pub(super) fn apply(&mut self, filter: &mut AnyFilter, most: usize) {
        for _ in 0..most {
            let Some(chunk) = self.acts.front() else { return };
            let at = (self.done % CHUNK as u64) as usize;
            let Some(&act) = chunk.get(at) else { return };
            self.apply_one(filter, act);
            self.done += 1;
            if at + 1 == CHUNK {
                self.acts.pop_front();
            }
        }
    }

    fn apply_one(&mut self, filter: &mut AnyFilter, Act { digest, at, what }: Act) {
        if matches!(what, What::Arrived | What::Counted) {
            filter.count_arrival();
        }
        match what {
            // Not observed: it is marked even if the filter takes it for another key that came before it.
            What::Arrived | What::Marked => filter.remember(digest, Tick(at)),
            What::Counted => {}
            What::Forgotten => {
                filter.forget(digest);
            }
        }
        let number = self.done;
        let Some(keys) = self.keys.get_mut(part(digest)) else { return };
        if keys.get(&digest).is_some_and(|last| last.number == number) {
            keys.remove(&digest);
        }
    }

    fn push(&mut self, digest: Digest, at: u64, what: What) {
        if self.came.is_multiple_of(CHUNK as u64) {
            self.acts.push_back(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.acts.back_mut() {
            chunk.push(Act { digest, at, what });
        }
        if what != What::Counted {
            self.keys.resize_with(PARTS, HashMap::default);
            let at = (what != What::Forgotten).then_some(at);
            self.keys[part(digest)].insert(digest, Last { number: self.came, at });
        }
        self.came += 1;
    }

    fn last(&self, digest: Digest) -> Option<Last> {
        self.keys.get(part(digest))?.get(&digest).copied()
    }

    fn is_counting(&self) -> bool {
        matches!(self.window, Window::Count(_))
    }

    /// The moment of a question, or of an arrival.
    fn moment(&self, now: Tick) -> u64 {
        match self.window {
            Window::Count(_) => self.newest + 1,
            Window::Time { .. } | Window::Unbounded { .. } => now.0.max(self.newest),
        }
    }

    /// What the filter itself says of a key, within the last so many ticks or arrivals.
    fn ask(&self, filter: &AnyFilter, digest: Digest, within: Option<u64>, now: Tick) -> bool {
        let span = self.window.span().unwrap_or(u64::MAX);
        let within = within.unwrap_or(span).min(span);
        // Arrivals that the filter does not know of yet.
        let ahead = if self.is_counting() { self.newest - filter.newest().0 } else { 0 };
        match within.checked_sub(ahead) {
            Some(within) if within < span => filter.contains_within(digest, within, now),
            Some(_) => filter.contains(digest, now),
            None => false,
        }
    }

    pub(super) fn contains(&self, filter: &AnyFilter, digest: Digest, now: Tick) -> bool {
        self.contains_within(filter, digest, None, now)
    }

    pub(super) fn contains_within(
        &self,
        filter: &AnyFilter,
        digest: Digest,
        within: Option<u64>,
        now: Tick,
    ) -> bool {
        match self.last(digest) {
            Some(last) => last.at.is_some_and(|at| self.is_within(at, within, now)),
            None => self.ask(filter, digest, within, now),
        }
    }

    /// Was that within the window, or within a shorter one?
    fn is_within(&self, at: u64, within: Option<u64>, now: Tick) -> bool {
        let Some(span) = self.window.span() else { return true };
        at.saturating_add(within.unwrap_or(span).min(span)) >= self.moment(now)
    }

    pub(super) fn contains_batch(
        &self,
        filter: &AnyFilter,
        digests: &[Digest],
        now: Tick,
        found: &mut [bool],
    ) {
        if self.is_counting() {
            let asked = digests.iter().zip(found);
            asked.for_each(|(&digest, found)| *found = self.contains(filter, digest, now));
            return;
        }
        filter.contains_batch(digests, Tick(self.moment(now)), found);
        for (&digest, found) in digests.iter().zip(found) {
            if let Some(last) = self.last(digest) {
                *found = last.at.is_some_and(|at| self.is_within(at, None, now));
            }
        }
    }

    pub(super) fn last_seen(&self, filter: &AnyFilter, digest: Digest, now: Tick) -> Option<Seen> {
        if !self.contains(filter, digest, now) {
            return None;
        }
        match self.last(digest).and_then(|last| last.at) {
            Some(at) => Some(Seen { from: Tick(at), to: Tick(at) }),
            None => filter.last_seen(digest, Tick(self.moment(now))),
        }
    }

    /// Arrivals at one moment. Adds an outcome for each; how many are fresh.
    pub(super) fn observe(
        &mut self,
        filter: &AnyFilter,
        digests: &[Digest],
        now: Tick,
        outcomes: &mut Vec<Outcome>,
    ) -> u64 {
        let added = self.added;
        let mut found = vec![false; digests.len()];
        if !self.is_counting() {
            filter.contains_batch(digests, Tick(self.moment(now)), &mut found);
        }
        for (&digest, found) in digests.iter().zip(found) {
            let is_known = match self.last(digest) {
                Some(last) => last.at.is_some_and(|at| self.is_within(at, None, now)),
                None if self.is_counting() => self.ask(filter, digest, None, now),
                None => found,
            };
            self.arrive(digest, now, is_known);
            outcomes.push(if is_known { Outcome::Seen } else { Outcome::Fresh });
        }
        self.added - added
    }

    /// An arrival of a key that is known or not.
    fn arrive(&mut self, digest: Digest, now: Tick, is_known: bool) {
        let at = self.moment(now);
        let renews = self.renewal == Renewal::Always && self.window.span().is_some();
        self.newest = at;
        self.added += u64::from(!is_known);
        if !is_known || renews {
            self.push(digest, at, What::Arrived);
        } else if self.is_counting() {
            self.push(digest, at, What::Counted);
        }
    }

    /// Marks a key as seen, which is known or not.
    pub(super) fn remember(&mut self, digest: Digest, now: Tick, is_known: bool) {
        if !self.is_counting() {
            self.newest = self.moment(now);
        }
        self.added += u64::from(!is_known);
        self.push(digest, self.newest, What::Marked);
    }

    /// Takes out a key that is known.
    pub(super) fn forget(&mut self, digest: Digest) {
        self.removed += 1;
        self.push(digest, self.newest, What::Forgotten);
    }
}

/// Which of the maps a key is in. The maps use other bits.
fn part(digest: Digest) -> usize {
    (digest.hi() >> 56) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::super::bounded::Scratch;
    use super::super::{Bounded, Held, Tables};
    use super::*;
    use lately::{Digester, Spec};
    use proptest::prelude::*;
    use std::num::NonZeroU64;

    const SPAN: u64 = 50;

    fn filter_of(held: &Held) -> &AnyFilter {
        match held.tables() {
            Tables::Points(filter) => filter,
            Tables::Ranges(_) => panic!("{held:?}"),
        }
    }

    fn key(n: u64) -> Digest {
        Digester::new(3).digest(&n.to_le_bytes())
    }

    fn bounded(window: usize, capacity: u64, budget: &Arc<Budget>) -> Bounded {
        let (span, capacity) = (NonZeroU64::new(SPAN).unwrap(), NonZeroU64::new(capacity).unwrap());
        let spec = match window {
            0 => Spec::new(Window::Time { span, capacity }).slack(0),
            1 => Spec::new(Window::Time { span, capacity }).slack(0).renewal(Renewal::OnFresh),
            2 => Spec::new(Window::Count(span)).slack(0),
            3 => Spec::new(Window::Count(span)).slack(0).renewal(Renewal::OnFresh),
            _ => Spec::new(Window::Unbounded { capacity }),
        };
        Bounded::new(spec.fpr(1e-9).seed(3), budget).unwrap()
    }

    /// When each key was marked, and what time it is.
    #[derive(Default)]
    struct Exact {
        at: HashMap<u64, u64>,
        now: u64,
    }

    impl Exact {
        fn has(&self, window: usize, key: u64, within: u64) -> bool {
            // An arrival would be the next one.
            let now = self.now + u64::from(matches!(window, 2 | 3));
            self.at.get(&key).is_some_and(|at| window > 3 || now - at <= within)
        }

        fn arrive(&mut self, window: usize, key: u64) -> bool {
            let is_known = self.has(window, key, SPAN);
            self.now += u64::from(matches!(window, 2 | 3));
            if !is_known || matches!(window, 0 | 2) {
                self.at.insert(key, self.now);
            }
            is_known
        }
    }

    proptest! {
        /// Whether it is being saved, was, or is not: a filter answers as an exact set does; and what was saved is what it was
        /// when it was held. There is room enough that nobody has to wait.
        #[test]
        fn held_or_not_it_answers_alike(window in 0usize..5, capacity in 7_000u64..9_000, steps in prop::collection::vec(
            (0usize..12, 0u64..60, 0u64..12, 1u64..5), 1..400))
        {
            let budget = Budget::new(1 << 26);
            let mut filter = bounded(window, capacity, &budget);
            let (mut exact, mut held, mut scratch) = (Exact::default(), None, Scratch::default());
            for (what, n, passes, many) in steps {
                if window != 2 && window != 3 {
                    exact.now += passes;
                }
                let now = Tick(exact.now);
                match what {
                    0..=2 => {
                        let keys: Vec<u64> = (n..n + many).collect();
                        let digests: Vec<_> = keys.iter().map(|&n| key(n)).collect();
                        let mut outcomes = Vec::new();
                        filter.observe(&digests, now, &mut scratch, &mut outcomes);
                        for (n, outcome) in keys.into_iter().zip(outcomes) {
                            let known = exact.arrive(window, n);
                            prop_assert_eq!(outcome, if known { Outcome::Seen } else { Outcome::Fresh }, "{}", n);
                        }
                    }
                    3 => {
                        prop_assert!(filter.remember(key(n), now));
                        exact.at.insert(n, exact.now);
                    }
                    4 | 5 if window < 4 => {
                        let known = exact.has(window, n, SPAN);
                        prop_assert_eq!(filter.forget(key(n), now), known);
                        exact.at.remove(&n);
                    }
                    6 => {
                        let within = many * 9;
                        prop_assert_eq!(filter.contains_within(key(n), within, now), exact.has(window, n, within));
                    }
                    7 if window < 4 => {
                        let at = filter.last_seen(key(n), now).map(|seen| (seen.from.0, seen.to.0));
                        let expected = exact.at.get(&n).filter(|_| exact.has(window, n, SPAN));
                        prop_assert_eq!(at, expected.map(|&at| (at, at)));
                    }
                    8 => held = filter.hold().or(held),
                    9 => held = None,
                    10 => {
                        filter.catch_up(many as usize);
                    }
                    _ => filter.advance(now),
                }
                let digests: Vec<_> = (0..64).map(key).collect();
                let mut found = vec![false; digests.len()];
                filter.contains_batch(&digests, Tick(exact.now), &mut found);
                for (n, found) in found.into_iter().enumerate() {
                    prop_assert_eq!(found, exact.has(window, n as u64, SPAN), "{} at {}", n, exact.now);
                    prop_assert_eq!(found, filter.contains(digests[n], Tick(exact.now)));
                }
            }
            drop(held);
            prop_assert!(filter.catch_up(usize::MAX));
            for n in 0..64 {
                prop_assert_eq!(filter.filter().contains(key(n), Tick(exact.now)), exact.has(window, n, SPAN), "{}", n);
            }
            prop_assert_eq!(budget.used(), filter.memory());
        }
    }

    /// What is held does not change; many keys that come meanwhile are all there, at once and later, within the budget.
    #[test]
    fn many_keys_come_while_it_is_held() {
        let budget = Budget::new(16 << 20);
        for window in [0, 1, 4] {
            let mut filter = bounded(window, 20_000, &budget);
            let observe = |filter: &mut Bounded, keys: std::ops::Range<u64>| {
                let digests: Vec<_> = keys.map(key).collect();
                let mut outcomes = Vec::new();
                filter.observe(&digests, Tick(5), &mut Scratch::default(), &mut outcomes);
                assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Fresh));
            };
            observe(&mut filter, 0..18_000);
            let before = filter.filter().snapshot();
            let held = filter.hold().unwrap();
            assert!(filter.hold().is_none());
            for part in 18..23 {
                observe(&mut filter, part * 1_000..part * 1_000 + 1_000);
            }
            assert_eq!(filter_of(&held).snapshot(), before);
            assert!((0..23_000).all(|n| filter.contains(key(n), Tick(5))), "{window}");
            assert!(!(23_000..24_000).any(|n| filter.contains(key(n), Tick(5))));
            assert!(!filter.catch_up(usize::MAX) && budget.used() <= budget.limit());
            drop(held);
            // Those that come later catch up, too.
            let mut key_no = 23_000;
            while !filter.catch_up(1) {
                observe(&mut filter, key_no..key_no + 10);
                key_no += 10;
            }
            assert!(key_no < 23_000 + 5_000, "{key_no}");
            assert!((0..key_no).all(|n| filter.contains(key(n), Tick(5))), "{window}");
            assert_eq!(budget.used(), filter.memory());
        }
    }

    /// Where there is no memory for more, callers wait until the filter was saved, and then hear the truth.
    #[test]
    fn without_memory_callers_wait() {
        let budget = Budget::new(1 << 18);
        let mut filter = bounded(0, 2_000, &budget);
        let (mut scratch, mut outcomes, mut n) = (Scratch::default(), Vec::new(), 0);
        while !outcomes.contains(&Outcome::NoMemory) {
            outcomes.clear();
            filter.observe(&[key(n)], Tick(5), &mut scratch, &mut outcomes);
            n += 1;
        }
        let held = filter.hold().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let asked = filter_of(&held).contains(key(0), Tick(5));
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(asked);
                drop(held);
            });
            for n in n..n + 100 {
                outcomes.clear();
                filter.observe(&[key(n), key(0)], Tick(5), &mut scratch, &mut outcomes);
                assert_eq!(outcomes, [Outcome::NoMemory, Outcome::Seen]);
            }
        });
        assert!(budget.used() <= budget.limit() && filter.catch_up(0));
    }

    /// Memory of a filter that was dropped while it is being saved is taken until that is done.
    #[test]
    fn what_is_held_takes_memory() {
        let budget = Budget::new(1 << 20);
        let mut filter = bounded(0, 2_000, &budget);
        let (memory, held) = (filter.memory(), filter.hold().unwrap());
        drop(filter);
        assert_eq!(budget.used(), memory);
        drop(held);
        assert_eq!(budget.used(), 0);
    }
}
