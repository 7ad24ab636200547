//! A day of a city in memory: the same roles that run over a network, driven minute by minute.
//!
//! A [`Trace`](trace::Trace) says where everybody is; [`run`](run::run) lets a coordinator, hosts, workers
//! and a requester talk to each other, encodes and counts every message, and keeps exact tables alongside, which
//! know what the filters only assume.

mod generate;
mod ledger;
mod oracle;
mod run;
pub mod trace;

pub use generate::{City, generate};
pub use ledger::{Ledger, Messages, Slot};
pub use run::{Identity, Resets, Sending, Setting, run, run_watched};
