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
//! Ask when a key was last seen, or about a shorter window, through [`LastSeen`]; join two filters
//! with [`Merge`]; ask for intervals of whole numbers with [`range`].
//!
//! The crate is `no_std` with `alloc`, and has no clock and does no I/O: callers name the moment
//! of every call as a [`Tick`]. Bytes are hashed once, by a [`Digester`].
#![no_std]
extern crate alloc;

mod any;
mod bits;
pub mod codec;
mod digest;
mod engine;
mod error;
mod filter;
pub mod forever;
mod generations;
pub mod plan;
pub mod range;
mod spec;
mod structures;
mod table;
mod time;
pub mod window;

pub use any::AnyFilter;
pub use digest::{Digest, Digester, Probes};
pub use error::{MergeError, PlanError, RestoreError, SnapshotError};
pub use filter::{Filter, LastSeen, Merge, Overload, Seen, Verdict, WindowFilter};
pub use plan::Plan;
pub use spec::{Spec, Structure, Terms, UnknownStructure, WhenFull};
pub use time::{Renewal, Tick, Window};

/// The example of README is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
