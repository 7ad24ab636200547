//! "Seen lately?" for many processes: a server that speaks the Redis protocol, and JSON over HTTP.
//!
//! Bytes come in at `net`, `resp` finds the words of a command in them, `command` does what it says with the filters
//! of `store`, and `durable` keeps those on disk. `http` makes commands of requests, and has what operators look at.
//! Only `net`, `http` and `durable` do I/O; everything else takes bytes and a moment and gives bytes.

mod auth;
mod command;
mod config;
mod durable;
mod fuzzing;
mod http;
mod net;
mod resp;
mod serve;
mod store;
mod users;

pub use config::{
    Config, ConfigError, DEFAULT_ADDRESS, DEFAULT_HTTP_ADDRESS, Durability, TlsFiles, password,
    tls_files,
};
#[doc(hidden)]
pub use fuzzing::{feed as fuzz_feed, journal as fuzz_journal};
#[doc(hidden)]
pub use http::fuzz as fuzz_http;
pub use serve::{Bound, Files, Reload, Restored, ServeError, Stop};
