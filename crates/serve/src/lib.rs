//! "Seen lately?" for many processes: a server that speaks the Redis protocol.
//!
//! Bytes come in at `net`, `resp` finds the words of a command in them, `command` does what it says with the filters
//! of `store`, and `durable` keeps those on disk. Only `net` and `durable` do I/O; everything else takes bytes and a
//! moment and gives bytes.

mod auth;
mod command;
mod config;
mod durable;
mod net;
mod resp;
mod serve;
mod store;

pub use config::{Config, ConfigError, DEFAULT_ADDRESS, Durability, password};
pub use serve::{Bound, Restored, ServeError, Stop};
