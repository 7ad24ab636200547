//! The traits of a window that is a struct around a core.

/// The traits of a struct whose first field does it all: an [`Aged`](super::cells::core::Aged) or a
/// [`Slotted`](super::slots::core::Slotted).
macro_rules! window_traits {
    ($filter:ident $(, $more:ident)*) => {
        impl $filter {
            /// Does it hold more keys than it was planned for? A window of arrivals never does, and
            /// a Bloom filter with one hash cannot tell.
            #[inline]
            pub fn is_full(&self) -> bool {
                self.0.is_full()
            }
        }

        impl crate::filter::sealed::Sealed for $filter {}

        impl crate::Filter for $filter {
            #[inline]
            fn contains(&self, digest: crate::Digest, now: crate::Tick) -> bool {
                self.0.contains(digest, now)
            }

            fn fpr(&self) -> f64 {
                self.0.fpr()
            }

            fn estimated_fpr(&self) -> f64 {
                self.0.estimated_fpr()
            }

            /// Of cells sampled: from the share of live ones that recent fresh keys saw, 0 with one
            /// hash. Of slots counted, of keys that have just expired among them.
            fn fill(&self) -> f64 {
                self.0.fill()
            }

            fn memory(&self) -> usize {
                self.0.memory()
            }
        }

        impl crate::WindowFilter for $filter {
            fn remember(&mut self, digest: crate::Digest, now: crate::Tick) {
                self.0.remember(digest, now);
            }

            #[inline]
            fn observe(&mut self, digest: crate::Digest, now: crate::Tick) -> crate::Verdict {
                self.0.observe(digest, now)
            }

            #[inline]
            fn advance(&mut self, now: crate::Tick) {
                self.0.advance(now);
            }

            fn window(&self) -> crate::Window {
                self.0.window()
            }

            fn slack(&self) -> u64 {
                self.0.slack()
            }
        }

        impl crate::LastSeen for $filter {
            fn contains_within(
                &self,
                digest: crate::Digest,
                within: u64,
                now: crate::Tick,
            ) -> bool {
                self.0.contains_within(digest, within, now)
            }

            fn last_seen(&self, digest: crate::Digest, now: crate::Tick) -> Option<crate::Seen> {
                self.0.last_seen(digest, now)
            }
        }

        impl crate::Merge for $filter {
            fn merge(&mut self, other: &Self) -> Result<(), crate::MergeError> {
                self.0.merge(&other.0)
            }
        }

        impl crate::table::Table for $filter {
            #[inline]
            fn observe(&mut self, digest: crate::Digest, now: crate::Tick) -> crate::Verdict {
                self.0.observe(digest, now)
            }

            fn remember(&mut self, digest: crate::Digest, now: crate::Tick) {
                self.0.remember(digest, now);
            }

            #[inline]
            fn advance(&mut self, now: crate::Tick) {
                self.0.advance(now);
            }

            #[inline]
            fn is_full(&self) -> bool {
                self.0.is_full()
            }

            fn is_full_now(&mut self) -> bool {
                self.0.is_full_now()
            }

            fn notes_ends(&self) -> bool {
                self.0.notes_ends()
            }

            $(crate::window::traits::$more!();)*

            fn clear(&mut self) {
                self.0.clear();
            }

            fn keys_now(&self) -> u64 {
                self.0.keys_now()
            }

            fn sample(&mut self, digest: crate::Digest) {
                self.0.sample(digest);
            }

            fn look_at_fill(&self, digest: crate::Digest) -> Option<(f64, f64)> {
                self.0.look_at_fill(digest)
            }

            fn resume(&mut self, fill: f64) {
                self.0.resume(fill);
            }

            #[inline]
            fn prefetch(&self, digest: crate::Digest) {
                self.0.prefetch(digest);
            }

            #[inline]
            fn prefetch_more(&self, digest: crate::Digest) {
                self.0.prefetch_more(digest);
            }

            fn capacity(&self) -> u64 {
                self.0.capacity()
            }

            fn fpr_at_capacity(&self) -> f64 {
                self.0.fpr_at_capacity()
            }

            fn newest(&self) -> crate::Tick {
                self.0.newest()
            }

            fn overload(&self) -> crate::Overload {
                self.0.overload()
            }

            fn suits(&self, spec: &crate::Spec) -> bool {
                self.0.suits(spec)
            }

            fn contains_within(
                &self,
                digest: crate::Digest,
                within: u64,
                now: crate::Tick,
            ) -> bool {
                self.0.contains_within(digest, within, now)
            }

            fn last_seen(&self, digest: crate::Digest, now: crate::Tick) -> Option<crate::Seen> {
                self.0.last_seen(digest, now)
            }

            fn merge(&mut self, other: &Self) -> Result<(), crate::MergeError> {
                self.0.merge(&other.0)
            }

            fn write(&self, out: &mut crate::codec::Writer<'_>) {
                self.0.write(out);
            }
        }
    };
}

/// What a table does with many keys at once.
macro_rules! runs {
    () => {
        #[inline(always)]
        fn observe_quickly(
            &mut self,
            digest: crate::Digest,
            now: crate::Tick,
        ) -> Option<crate::Verdict> {
            self.0.observe_quickly(digest, now)
        }

        #[inline(always)]
        fn contains_quickly(&self, digest: crate::Digest, now: crate::Tick) -> Option<bool> {
            self.0.contains_quickly(digest, now)
        }

        #[inline]
        fn prefetch_at(&self, digest: crate::Digest, at: crate::Tick) {
            self.0.prefetch_at(digest, at);
        }

        #[inline]
        fn observe_run(
            &mut self,
            digests: &[crate::Digest],
            moment: impl Fn(usize) -> crate::Tick,
            verdicts: &mut [crate::Verdict],
        ) -> usize {
            self.0.observe_run(digests, moment, verdicts)
        }

        #[inline]
        fn contains_run(
            &self,
            digests: &[crate::Digest],
            now: crate::Tick,
            found: &mut [bool],
        ) -> bool {
            self.0.contains_run(digests, now, found)
        }
    };
}

/// What a table does that can forget single keys.
macro_rules! forgets {
    () => {
        fn forget(&mut self, digest: crate::Digest) -> bool {
            self.0.forget(digest)
        }
    };
}

pub(super) use {forgets, runs, window_traits};
