//! Many threads and one filter: the shared filter of the library compared with what others share among threads.
//!
//! ```sh
//! cargo run --release --manifest-path bench/Cargo.toml --features threads --bin lately-bench-threads > docs/results/threads.md
//! ```
//!
//! Every structure is asked the same: was this key seen before? It is now. The keys are whole numbers at random out of twice
//! as many as the window has, the same for each structure. What is measured is the time from when all threads start until the last one is done.

use clap::Parser;
use dashmap::DashMap;
use fastbloom::AtomicBloomFilter;
use lately::{AnyFilter, Digester, Shared, Spec, Tick, Window, WindowFilter};
use std::error::Error;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Keys of a window.
const KEYS: u64 = 1_000_000;
/// Arrivals that all threads bring together.
const ARRIVALS: u64 = 8_000_000;
/// The false positive rate of the filters.
const FPR: f64 = 1e-3;
/// Runs, of which the fastest counts.
const RUNS: usize = 3;
/// Arrivals that are judged together, where that is possible.
const BATCH: usize = 256;

/// What is shared. Says how many of some keys, at some moments, it had not seen.
trait Peer: Sync {
    fn observe(&self, keys: &[u64], now: u64) -> u64;
}

/// The window: a tick an arrival, as the threads count them.
fn spec() -> Spec {
    Spec::new(Window::time(KEYS, KEYS)).fpr(FPR).slack(KEYS / 16)
}

struct OneByOne(Shared);

impl Peer for OneByOne {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let is_fresh = |&&key: &&u64| {
            let digest = self.0.digester().digest_integer(key.into());
            !self.0.observe(digest, Tick(now)).is_duplicate()
        };
        keys.iter().filter(is_fresh).count() as u64
    }
}

struct Batched(Shared);

impl Peer for Batched {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let digester = self.0.digester();
        let digests: Vec<_> = keys.iter().map(|&key| digester.digest_integer(key.into())).collect();
        let mut verdicts = vec![lately::Verdict::Duplicate; keys.len()];
        self.0.observe_batch(&digests, &vec![Tick(now); keys.len()], &mut verdicts);
        verdicts.iter().filter(|verdict| !verdict.is_duplicate()).count() as u64
    }
}

struct OneLock(Digester, Mutex<AnyFilter>);

impl Peer for OneLock {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let is_fresh = |&&key: &&u64| {
            let digest = self.0.digest_integer(key.into());
            let mut filter = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            !filter.observe(digest, Tick(now)).is_duplicate()
        };
        keys.iter().filter(is_fresh).count() as u64
    }
}

/// Exact, and it never forgets a key: only its time tells that it has expired.
struct Dash(DashMap<u64, u64>);

impl Peer for Dash {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let is_fresh = |&&key: &&u64| {
            self.0.insert(key, now).is_none_or(|last| now.saturating_sub(last) > KEYS)
        };
        keys.iter().filter(is_fresh).count() as u64
    }
}

/// It keeps the most useful keys, not those of a window.
struct Moka(moka::sync::Cache<u64, u64>);

impl Peer for Moka {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let is_fresh = |&&key: &&u64| self.0.entry(key).or_insert(now).is_fresh();
        keys.iter().filter(is_fresh).count() as u64
    }
}

/// As moka.
struct Quick(quick_cache::sync::Cache<u64, u64>);

impl Peer for Quick {
    fn observe(&self, keys: &[u64], now: u64) -> u64 {
        let is_fresh = |&&key: &&u64| {
            let is_fresh = self.0.get(&key).is_none();
            if is_fresh {
                self.0.insert(key, now);
            }
            is_fresh
        };
        keys.iter().filter(is_fresh).count() as u64
    }
}

/// It never forgets.
struct Atomic(AtomicBloomFilter);

impl Peer for Atomic {
    fn observe(&self, keys: &[u64], _now: u64) -> u64 {
        keys.iter().filter(|key| !self.0.insert(*key)).count() as u64
    }
}

/// A name, and how an empty one is made.
type Candidate = (&'static str, fn() -> Result<Box<dyn Peer>, Box<dyn Error>>);

const CANDIDATES: [Candidate; 7] = [
    ("lately `Shared`, 64 shards, in batches", || Ok(Box::new(Batched(Shared::new(spec(), 64)?)))),
    ("lately `Shared`, 64 shards", || Ok(Box::new(OneByOne(Shared::new(spec(), 64)?)))),
    ("lately, one lock around one filter", || {
        let filter = spec().plan()?.try_build()?;
        Ok(Box::new(OneLock(filter.digester(), Mutex::new(filter))))
    }),
    ("dashmap with times, exact", || Ok(Box::new(Dash(DashMap::new())))),
    ("moka", || Ok(Box::new(Moka(moka::sync::Cache::new(KEYS))))),
    ("quick_cache", || Ok(Box::new(Quick(quick_cache::sync::Cache::new(KEYS as usize))))),
    ("fastbloom, atomic, never forgets", || {
        let filter = AtomicBloomFilter::with_false_pos(FPR).expected_items(2 * KEYS as usize);
        Ok(Box::new(Atomic(filter)))
    }),
];

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Nanoseconds of wall time per arrival, and the share of arrivals that were called new.
fn measure(peer: &dyn Peer, threads: u64) -> (f64, f64) {
    let barrier = Barrier::new(threads as usize + 1);
    let (elapsed, fresh) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut state = worker << 40;
                    let keys: Vec<u64> =
                        (0..ARRIVALS / threads).map(|_| random(&mut state) % (2 * KEYS)).collect();
                    barrier.wait();
                    let blocks = keys.chunks(BATCH).zip((0u64..).step_by(BATCH));
                    blocks.map(|(keys, at)| peer.observe(keys, at * threads)).sum::<u64>()
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let fresh: u64 = workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum();
        (start.elapsed(), fresh)
    });
    (elapsed.as_nanos() as f64 / ARRIVALS as f64, fresh as f64 / ARRIVALS as f64)
}

/// Compares filters and caches that threads share, into a page on standard output
#[derive(Parser)]
#[command(version, about)]
struct Arguments {}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments {} = Arguments::parse();
    println!("# One filter for many threads\n");
    println!(
        "{ARRIVALS} arrivals of keys out of {}, a window of {KEYS}, false positive rate {FPR}; {} processors. Nanoseconds of wall time per arrival,\nthe least of {RUNS} runs, and with one thread the share called new. Only lately and dashmap keep the window: dashmap exactly, and without ever\ngiving memory back; the caches keep what is asked for often, and fastbloom never forgets. Made by\n`cargo run --release --manifest-path bench/Cargo.toml --features threads --bin lately-bench-threads`.\n",
        2 * KEYS,
        thread::available_parallelism()?,
    );
    println!("| | 1 thread | 2 threads | 4 threads | called new |");
    println!("|---|---:|---:|---:|---:|");
    for (name, make) in CANDIDATES {
        let mut line = format!("| {name} |");
        let mut share = 0.0;
        for threads in [1, 2, 4] {
            let mut least = f64::INFINITY;
            for _ in 0..RUNS {
                let (time, fresh) = measure(make()?.as_ref(), threads);
                least = least.min(time);
                share = if threads == 1 { fresh } else { share };
            }
            line += &format!(" {least:.1} |");
        }
        println!("{line} {:.1} % |", 100.0 * share);
    }
    Ok(())
}
