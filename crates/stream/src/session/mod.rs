//! A stream's memory, without its bytes: what the program, a server, a connector or a binding hands keys
//! to.
//!
//! A [`DedupSpec`] holds all rules of the product as data: the window, what is expected, what may be
//! used, the clock, and the defaults for whatever nobody said. It makes a [`Dedup`], which answers key by
//! key or batch by batch, and saves to and loads from the files of `lately dedup --state`. An
//! [`IndexSpec`] and an [`Index`] are the same for intervals of numbers and `lately index`, a [`VisitSpec`]
//! and [`Visits`] for `lately visits`.
//!
//! # Example
//! ```
//! use lately_stream::judge::class::Class;
//! use lately_stream::session::{Dedup, DedupSpec};
//! use std::time::Duration;
//!
//! # let folder = std::env::temp_dir().join(format!("lately-session-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("reads.state");
//! const SECOND: i64 = 1_000_000_000;
//! let start = 1_700_000_000 * SECOND;
//! let mut reads = DedupSpec::within(Duration::from_secs(10)).build()?;
//! assert_eq!(reads.observe(b"tag 1", Some(start)), Class::Fresh);
//! assert_eq!(reads.observe(b"tag 1", Some(start + 9 * SECOND)), Class::Duplicate);
//! assert_eq!(reads.observe(b"tag 2", Some(start - 9 * SECOND)), Class::Late);
//! reads.save(&path)?;
//!
//! // Another process, or `lately dedup --within 10s --state reads.state`, resumes where this one stopped.
//! let mut reads = Dedup::load(&path)?.ok_or("no such file")?;
//! assert_eq!(reads.observe(b"tag 1", Some(start + 18 * SECOND)), Class::Duplicate);
//! assert_eq!(reads.observe(b"tag 1", Some(start + 29 * SECOND)), Class::Fresh);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dedup;
mod identity;
mod index;
mod input;
mod plans;
mod terms;
mod visits;

pub use crate::judge::moment::UNTIMED;
pub use dedup::{CountSpec, Dedup, DedupSpec, HoldSpec, MergeError};
pub use identity::{Difference, Identity, Reading};
pub use index::{Index, IndexSpec};
pub use input::{DEFAULT_ZONE, InputError, InputSpec};
pub use plans::{PlanRow, PlanTable};
pub use terms::{ClockSpec, DEFAULT_FPR, DEFAULT_MEMORY, Slack, Span, SpecError, Term};
pub use visits::{VisitSpec, Visits};
