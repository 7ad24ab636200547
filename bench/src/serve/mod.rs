//! `lately serve` compared with Redis and RedisBloom: processor time, throughput, latency and memory.
//!
//! Servers run by turns, on processor 0; the clients are one thread of this program, on processor 1.

mod load;
mod measure;
mod server;

pub use measure::{memory, saving, speed};

use std::path::PathBuf;

/// What the measurements need to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program `lately`, built with `serve`.
    pub lately: PathBuf,
    /// The program `redis-server`.
    pub redis: PathBuf,
    /// RedisBloom's library; without it, it is left out.
    pub module: Option<PathBuf>,
    /// The structure of `lately`'s filters, if not what it chooses itself.
    pub structure: Option<String>,
    /// How often each pair is measured.
    pub rounds: usize,
    /// How long each load lasts.
    pub seconds: f64,
    /// Keys of the measurements of memory and of saving.
    pub keys: u64,
}
