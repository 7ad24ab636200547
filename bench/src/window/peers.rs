//! Crates that do what this library does, or the part of it that never forgets.
//!
//! Each is built as its documentation says for the contract and the rate; where it leaves open when
//! to age, eight times a window, which is the slack that all are given.

use super::adapter::{Adapter, Candidate, Contract};
use super::stream::Key;
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, InsertValues, LookupValues};
use probabilistic_rs::ebloom::{
    ExpiringBloomFilter, ExpiringBloomFilterOps, ExpiringFilterConfigBuilder,
};
use std::future::Future;
use std::hash::RandomState;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Steps that a window is cut into where the peer asks for it.
const STEPS: u64 = 8;

pub(super) fn candidates() -> Vec<Candidate> {
    let (forever, eighth) = (Contract::Forever, Contract::Window(1.0 / STEPS as f64));
    vec![
        Candidate::peer("fastbloom", forever, "takes a 64-bit hash", |n, fpr| {
            let builder = fastbloom::BloomFilter::with_false_pos(fpr);
            Ok(Fastbloom(builder.seed(&1).expected_items(size(n)?)))
        }),
        Candidate::peer(
            "sbbf-rs-safe",
            forever,
            "takes a 64-bit hash; bits per key from the formula for split blocks",
            |n, fpr| {
                let bits = split_block_bits(fpr).ok_or("more than 4096 bits per key")?;
                Ok(SplitBlock(sbbf_rs_safe::Filter::new(bits, size(n)?)))
            },
        ),
        Candidate::peer("qfilter", forever, "takes a 64-bit hash", |n, fpr| {
            qfilter::Filter::new(n, fpr).map(Quotient).map_err(|error| format!("{error:?}"))
        }),
        Candidate::peer(
            "rotating-bloom-filter",
            Contract::Window(1.0),
            "does its own hashing (SipHash)",
            |n, fpr| {
                let mut seeds = Seeds(1);
                let filter =
                    rotating_bloom_filter::RotatingBloomFilter::new(fpr, size(n)?, &mut seeds);
                Ok(Rotating(filter))
            },
        ),
        Candidate::peer(
            "cuckoo-clock",
            eighth,
            "does its own hashing (SipHash); a time to live of 9 scans, one of the whole filter every n/8 arrivals",
            CuckooClock::new,
        ),
        Candidate::peer(
            "probabilistic-rs",
            eighth,
            "does its own hashing (Murmur3 and 32-bit FNV); 9 levels of n/8 keys and ε/9 each, rotated every n/8 arrivals; it rotates only by the system clock, at most once per millisecond, so small sizes have to wait for it",
            Levels::new,
        ),
        Candidate::peer(
            "lru",
            Contract::Window(0.0),
            "does its own hashing (foldhash); keys of 8 bytes; holds the last n distinct keys, so more than n arrivals where some repeat; no false positives",
            |n, _| {
                let room = NonZeroUsize::new(size(n)?).ok_or("no room")?;
                Ok(Lru(lru::LruCache::new(room)))
            },
        ),
    ]
}

fn size(n: u64) -> Result<usize, String> {
    usize::try_from(n).map_err(|error| error.to_string())
}

struct Fastbloom(fastbloom::BloomFilter);

impl Adapter for Fastbloom {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        self.0.insert_hash(key.digest.hi())
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains_hash(key.digest.hi())
    }
}

struct SplitBlock(sbbf_rs_safe::Filter);

/// The fewest whole bits per key with which blocks of eight words of 32 bits keep the rate.
fn split_block_bits(fpr: f64) -> Option<usize> {
    (4..4096)
        .find(|&bits| {
            let load = 256.0 / f64::from(bits);
            let mut chance = (-load).exp();
            let mut rate = 0.0;
            for keys in 0..400 {
                rate += chance * (1.0 - (31.0_f64 / 32.0).powi(keys)).powi(8);
                chance *= load / f64::from(keys + 1);
            }
            rate <= fpr
        })
        .map(|bits| bits as usize)
}

impl Adapter for SplitBlock {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        self.0.insert_hash(key.digest.hi())
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains_hash(key.digest.hi())
    }
}

struct Quotient(qfilter::Filter);

impl Adapter for Quotient {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        // A full one forgets the key, and the check will find it missing.
        self.0.insert_fingerprint(false, key.digest.hi()).is_ok_and(|inserted| !inserted)
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains_fingerprint(key.digest.hi())
    }
}

struct Rotating(rotating_bloom_filter::RotatingBloomFilter);

impl Adapter for Rotating {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        let (current, next) = self.0.insert(&key.id);
        current | next
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains(&key.id)
    }
}

/// The seed that the rotating filter asks a generator for.
struct Seeds(u64);

impl rand_core::TryRng for Seeds {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.try_next_u64().map(|seed| seed as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0 = crate::workload::mix(self.0.wrapping_add(0x9E37_79B9_7F4A_7C15));
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            let seed = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&seed[..chunk.len()]);
        }
        Ok(())
    }
}

/// Scans that a key outlives, and the one that removes it: the first may come at once.
const TIME_TO_LIVE: u32 = STEPS as u32 + 1;

struct CuckooClock {
    filter: CuckooFilter<RandomState>,
    step: u64,
    arrivals: u64,
}

impl CuckooClock {
    fn new(n: u64, fpr: f64) -> Result<Self, String> {
        let explain = |error: cuckoo_clock::config::ConfigError| format!("{error:?}");
        // Two buckets of four slots, nearly full; what is left of the last byte is used as well.
        let needed = (8.0 / fpr).log2().ceil() as usize;
        if needed > 32 {
            return Err("its fingerprints end at 32 bits".to_owned());
        }
        let ttl_bits = 4;
        let bits = ((needed + ttl_bits).div_ceil(8) * 8 - ttl_bits).min(32);
        let ttl = TtlConfig {
            ttl: TIME_TO_LIVE.try_into().map_err(|_| "no time to live")?,
            ttl_bits: ttl_bits.try_into().map_err(explain)?,
        };
        let live = n + n.div_ceil(STEPS);
        let configuration = CuckooConfiguration::builder(size(live + live / 19)?)
            .fingerprint_bits(bits.try_into().map_err(explain)?)
            .with_ttl(ttl)
            .build()
            .map_err(explain)?;
        let filter = CuckooFilter::new_random(configuration);
        Ok(Self { filter, step: n.div_ceil(STEPS), arrivals: 0 })
    }
}

impl Adapter for CuckooClock {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        if self.arrivals.is_multiple_of(self.step) {
            self.filter.scan_and_update_full();
        }
        self.arrivals += 1;
        let renewed = LookupValues { ttl: Some(TIME_TO_LIVE), counter_diff: None };
        let seen = self.filter.contains_with_update(&key.id, renewed);
        if !seen {
            self.filter.insert_with_defaults(&key.id, InsertValues::default());
        }
        seen
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.filter.contains(&key.id)
    }
}

struct Levels {
    filter: ExpiringBloomFilter,
    step: u64,
    arrivals: u64,
    rotated: Instant,
}

/// A level can be rotated when it is this old: more than one whole millisecond.
const LEVEL: Duration = Duration::from_millis(2);

impl Levels {
    fn new(n: u64, fpr: f64) -> Result<Self, String> {
        let step = n.div_ceil(STEPS);
        let levels = STEPS as usize + 1;
        let config = ExpiringFilterConfigBuilder::default()
            .capacity_per_level(size(step)?)
            .target_fpr(fpr / levels as f64)
            .level_duration(LEVEL / 2)
            .num_levels(levels)
            .build()
            .map_err(|error| error.to_string())?;
        let filter = ExpiringBloomFilter::new(config).map_err(|error| error.to_string())?;
        Ok(Self { filter, step, arrivals: 0, rotated: Instant::now() })
    }

    #[cold]
    fn rotate(&mut self) {
        std::thread::sleep(LEVEL.saturating_sub(self.rotated.elapsed()));
        let mut done = pin!(self.filter.cleanup_expired_levels());
        // Nothing in it waits.
        let outcome = done.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        debug_assert!(matches!(outcome, Poll::Ready(Ok(()))));
        self.rotated = Instant::now();
    }
}

impl Adapter for Levels {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        if self.arrivals.is_multiple_of(self.step) && self.arrivals > 0 {
            self.rotate();
        }
        self.arrivals += 1;
        let bytes = key.id.to_le_bytes();
        let seen = self.filter.contains(&bytes).unwrap_or(false);
        // What could not be put in will be found missing.
        let _ = self.filter.insert(&bytes);
        seen
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.filter.contains(&key.id.to_le_bytes()).unwrap_or(false)
    }
}

struct Lru(lru::LruCache<u64, ()>);

impl Adapter for Lru {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        self.0.put(key.id, ()).is_some()
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains(&key.id)
    }
}

#[cfg(test)]
mod tests {
    use super::split_block_bits;

    #[test]
    fn split_blocks_need_the_bits_they_are_known_to() {
        assert!(matches!(split_block_bits(1e-2), Some(10..=11)));
        assert!(matches!(split_block_bits(1e-3), Some(16..=18)));
    }
}
