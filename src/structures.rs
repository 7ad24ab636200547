//! The registry: one line for each structure.

/// Hands all structures to a macro, after whatever else it is to be handed.
///
/// A line is documentation, the name of the variant, the number that stands for it in snapshots (never to be
/// used for another), the name in flags and summaries, and the [`Recipe`](crate::table::Recipe) it is made by.
macro_rules! structures {
    ($to:ident $($more:tt)*) => {
        $to! {
            $($more)*
            /// [`forever::Bloom`](crate::forever::Bloom): never forgets, smallest.
            Bloom = 0 "bloom" crate::forever::Bloom;
            /// [`forever::BlockedBloom`](crate::forever::BlockedBloom): never forgets, fastest.
            BlockedBloom = 1 "blocked-bloom" crate::forever::BlockedBloom;
            /// [`window::TimeBloom`](crate::window::TimeBloom).
            TimeBloom = 2 "time-bloom" crate::window::TimeBloom;
            /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) with space optimisation.
            IntervalBloom = 3 "interval-bloom" crate::window::TimeIntervalBloom;
            /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) as first described.
            IntervalBloomPlain = 4 "interval-bloom-plain" crate::window::PlainIntervals;
            /// [`window::TimingBloom`](crate::window::TimingBloom): the last n arrivals.
            TimingBloom = 5 "timing-bloom" crate::window::TimingBloom;
            /// [`window::CuckooWindow`](crate::window::CuckooWindow).
            CuckooWindow = 6 "cuckoo-window" crate::window::CuckooWindow;
            /// [`window::DleftWindow`](crate::window::DleftWindow).
            DleftWindow = 7 "dleft-window" crate::window::DleftWindow;
            /// [`forever::DynamicBloom`](crate::forever::DynamicBloom): never forgets, grows by equal parts.
            DynamicBloom = 8 "dynamic-bloom" crate::forever::DynamicBloom;
            /// [`forever::ScalableBloom`](crate::forever::ScalableBloom): never forgets, grows by doubling.
            ScalableBloom = 9 "scalable-bloom" crate::forever::ScalableBloom;
            /// [`forever::AccommodativeBloom`](crate::forever::AccommodativeBloom): never forgets, grows
            /// bucket by bucket.
            AccommodativeBloom = 10 "accommodative-bloom" crate::forever::AccommodativeBloom;
            /// [`window::AgedTable`](crate::window::AgedTable): the fastest with a window.
            AgedTable = 11 "aged-table" crate::window::AgedTable;
            /// [`window::AgedBuckets`](crate::window::AgedBuckets): the smallest with a window; new keys take long.
            AgedBuckets = 12 "aged-buckets" crate::window::AgedBuckets;
        }
    };
}
pub(crate) use structures;
