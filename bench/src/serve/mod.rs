//! `lately serve` compared with Redis and RedisBloom: processor time, throughput, latency and memory.
//!
//! Servers run by turns, on processor 0; the clients are one thread of this program, on processor 1.

mod load;
mod memory;
mod page;
mod saving;
mod server;
mod speed;
#[cfg(test)]
mod tests;

pub use page::Page;

use std::error::Error;
use std::path::PathBuf;

/// What the measurements need to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program `lately`, built with `serve`.
    pub lately: PathBuf,
    /// The program `redis-server`.
    pub redis: PathBuf,
    /// RedisBloom; without it, `BF.*` is left out.
    pub bloom: Option<RedisBloom>,
    /// The structure of `lately`'s filters, if not what it chooses itself.
    pub structure: Option<String>,
    /// `lately` may ask for huge pages, except where memory is measured: they round it up.
    pub huge_pages: bool,
    /// How often each pair is measured.
    pub rounds: usize,
    /// How long each load lasts.
    pub seconds: f64,
    /// Keys of the measurements of memory and of saving.
    pub keys: u64,
}

/// The module and the server that it is loaded into.
#[derive(Clone, Debug)]
pub struct RedisBloom {
    /// A `redis-server`.
    pub server: PathBuf,
    /// `redisbloom.so`.
    pub module: PathBuf,
}

/// What is measured of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Processor time, throughput and latency.
    Speed,
    /// What the journal costs.
    Journal,
    /// Memory per key.
    Memory,
    /// Latency while a snapshot is taken.
    Saving,
}

impl Measured {
    /// All of it, the quickest first.
    pub const ALL: [Self; 4] = [Self::Speed, Self::Journal, Self::Memory, Self::Saving];

    /// The name of its part of a page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Journal => "journal",
            Self::Memory => "memory",
            Self::Saving => "saving",
        }
    }

    /// Measures it, into a table. Of [`Measured::Speed`], only pairs whose names contain `only`.
    ///
    /// # Errors
    /// A server does not start, or answers wrongly; there is no second processor.
    pub fn run(self, settings: &Settings, only: &str) -> Result<String, Box<dyn Error>> {
        keep_off_processor_0()?;
        match self {
            Self::Speed => speed::table(settings, only),
            Self::Journal => speed::journal(settings),
            Self::Memory => memory::table(settings),
            Self::Saving => saving::table(settings),
        }
    }
}

/// Keeps this thread off the processor that the server has.
fn keep_off_processor_0() -> Result<(), Box<dyn Error>> {
    let mut processors = rustix::thread::CpuSet::new();
    processors.set(1);
    rustix::thread::sched_setaffinity(None, &processors).map_err(|error| {
        format!("the clients need a processor of their own, the second: {error}").into()
    })
}

/// Least, median and greatest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |n: usize| values.get(n).copied().unwrap_or(f64::NAN);
    [at(0), at(values.len() / 2), at(values.len().saturating_sub(1))]
}

/// Whether an aim was met, as tables say it.
fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "**missed**" }
}

/// Shows a row at once, with the load of the machine: others that ran at the same time have spoiled it.
fn show(row: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    eprintln!("{row} load {}", load.split(' ').next().unwrap_or_default());
}
