//! Have I seen this lately? Filters over sliding windows, in one pass and bounded memory.
//!
//! Say what you need with a [`Spec`]; its [`Plan`] tells what that costs and builds an
//! [`AnyFilter`], which you ask through [`WindowFilter`].
//!
//! | you want | [`Window`] | structure chosen | forgets |
//! |---|---|---|---|
//! | duplicates within 10 s | [`Window::Time`] | [`window::AgedTable`] | each key one window after its last sighting |
//! | duplicates among the last n arrivals | [`Window::Count`] | [`window::AgedTable`] | as above, by arrivals |
//! | every key once, ever | [`Window::Unbounded`] | [`forever::BlockedBloom`] | nothing |
//!
//! No structure ever has a false negative within its window. A false positive, a record wrongly
//! called duplicate, has at most the probability asked for with [`Spec::fpr`].
//!
//! # A first example
//! ```
//! use lately::{Spec, Tick, Window, WindowFilter};
//! // Duplicates within 10,000 ticks (here: milliseconds), about 5,000 keys at a time.
//! let mut seen = Spec::new(Window::time(10_000, 5_000)).fpr(1e-4).plan()?.build();
//! let tag = seen.digester().digest(b"tag 17");
//! assert!(!seen.observe(tag, Tick(1_000)).is_duplicate());
//! assert!(seen.observe(tag, Tick(9_000)).is_duplicate());
//! # Ok::<(), lately::PlanError>(())
//! ```
//! With the feature `std`, which is on by default, [`Deduper`] does the same with the machine's clock: `Deduper::within(Duration::from_secs(10))?.insert("tag 17")`.
//!
//! # Which structure
//! The one that is chosen, mostly. [`window::AgedBuckets`] is smaller where new keys may take longer; the growing ones of [`forever`]
//! are for numbers of keys that nobody knows. `docs/structures.md` in the repository compares all of them. Keys of intervals, such as
//! addresses of a network, are what [`range`] is for.
//!
//! # Keys
//! [`Digester::digest`] takes bytes, and is the way that other languages can follow. [`Digester::digest_hash`] takes any
//! value that implements `Hash`, without allocation. Where somebody else may choose the keys, give the spec a seed
//! ([`Spec::seed`]) that is secret: with a known one, keys can be made that the filter takes for each other, or that want one place.
//!
//! # Threads and shards
//! A filter is `Send`, and changed by one thread at a time. [`Shared`] spreads keys over shards with a lock each, for any
//! number of threads. Across machines, let [`Digest::shard`] say which machine a key belongs to; the bits of a digest that
//! structures use must not, as that breaks the false positive rate.
//!
//! # Bursts, growth and time
//! Capacity is the number of distinct keys in a window. Keys that have expired but may still be reported (the slack) need room
//! too, and have it as long as keys come evenly. If they come in bursts, one that has expired makes room for the next, in every structure:
//! a filter notes when each grain of its time (with a slack, a moment is known to a grain of at most slack + 1 ticks) was last
//! marked, and gives up a grain whose last key has expired. But what has expired holds room as long as something else of
//! its grain is live: a burst that lasts for a part of a grain may need room for up to twice its keys while the one before it
//! expires. Plan for these, or for no slack, where moments are exact and nothing that has expired holds any room.
//! What comes beyond is up to [`WhenFull`]: the filter grows, forgets the oldest, or refuses new ones, and [`AnyFilter::overload`]
//! counts it. Time never goes back: one moment far in the future would make a filter forget everything and stay there. Where
//! moments come from others, let [`Spec::most_leap`] doubt it.
//!
//! # Errors
//! Plans that cannot be kept are a [`PlanError`], bytes that are no snapshot a [`SnapshotError`]. Judging never fails. A filter that has
//! no memory to grow forgets or refuses, and counts it.
//!
//! # Features
//! `std` (default): [`Shared`], [`Deduper`], snapshots to writers and from readers. `serde`: specs and what they consist of.
//! Without features the crate needs `alloc` alone, and runs on targets of 32 bits and of either byte order.
//!
//! Ask when a key was last seen, or about a shorter window, through [`LastSeen`]; join two filters
//! with [`Merge`]; ask for intervals of whole numbers with [`range`].
//!
//! The crate is `no_std` with `alloc`, and has no clock and does no I/O: callers name the moment
//! of every call as a [`Tick`]. Bytes are hashed once, by a [`Digester`].
#![no_std]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod any;
mod bits;
pub mod codec;
#[cfg(feature = "std")]
mod deduper;
mod digest;
mod engine;
mod error;
mod filter;
pub mod forever;
mod generations;
mod hashed;
mod leaps;
mod observe_all;
pub mod plan;
pub mod range;
#[cfg(feature = "std")]
mod shared;
mod spec;
mod structures;
mod table;
mod time;
pub mod window;

pub use any::AnyFilter;
#[cfg(feature = "std")]
pub use deduper::Deduper;
pub use digest::{Digest, Digester, Probes};
pub use error::{MergeError, PlanError, RestoreError, SnapshotError};
pub use filter::{Filter, LastSeen, Merge, Overload, Seen, Verdict, WindowFilter};
pub use leaps::Leaps;
pub use observe_all::ObserveAll;
pub use plan::Plan;
#[cfg(feature = "std")]
pub use shared::Shared;
pub use spec::{Spec, Structure, Terms, UnknownStructure, WhenFull};
pub use time::{Renewal, Tick, Window};

/// Which instruction sets are used, for the fuzz targets, which try each.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use bits::kernel::use_no_more_than;

/// What [`Shared`] is made of. The tests of its locks put others in their place.
#[cfg(feature = "std")]
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

/// The example of README is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
