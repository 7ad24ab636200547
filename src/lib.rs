//! placeholder crate doc (written with the structures)
#![no_std]
extern crate alloc;

mod digest;
mod error;
mod filter;
mod time;

pub use digest::{Digest, Digester, Probes};
pub use error::{PlanError, SnapshotError};
pub use filter::{Filter, Overload, Verdict, WindowFilter};
pub use time::{Renewal, Tick, Window};
