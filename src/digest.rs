//! Bytes to [`Digest`]: the only place that hashes keys.
//!
//! A key is hashed once, to 128 bits, and every structure works from the digest alone. So one hash
//! serves any number of filters, and keys of any length cost the same from there on.

use crate::SnapshotError;
use crate::codec::{Reader, Writer};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The 128-bit digest of a key.
///
/// Two keys with equal digests are one key to every structure. With XXH3-128 that happens by
/// chance once in about 2^64 keys; the filters' own false positive rate is far above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Digest {
    hi: u64,
    lo: u64,
}

impl Digest {
    /// A digest from its two halves, for callers that hash elsewhere.
    ///
    /// Both halves must be uniformly distributed: structures use them as they are.
    pub const fn new(hi: u64, lo: u64) -> Self {
        Self { hi, lo }
    }

    /// The high half. Structures take a key's place from it, so it is no way to choose a shard: [`Digest::shard`] is.
    pub const fn hi(self) -> u64 {
        self.hi
    }

    /// The low half. Structures take fingerprints from it, so it is no way to choose a shard: [`Digest::shard`] is.
    pub const fn lo(self) -> u64 {
        self.lo
    }

    /// Which of `shards` filters a key belongs to: a number below `shards`, and 0 where there are none.
    ///
    /// *Guarantee:* spread evenly, and independent of all that a structure makes of a digest, so that a filter which is given the
    /// keys of one shard alone keeps its false positive rate. The upper bits of a half would not do: a table that
    /// takes places from them has one part filled with all keys, and the rate is many times what was promised. The same key
    /// has the same shard on every machine.
    ///
    /// # Example
    /// ```
    /// use lately::Digester;
    /// let machines = ["a", "b", "c"];
    /// let key = Digester::new(0).digest(b"tag 17");
    /// assert!(machines.get(key.shard(machines.len())).is_some());
    /// ```
    #[inline]
    pub const fn shard(self, shards: usize) -> usize {
        // Both halves, mixed together twice, which no structure does.
        let both = mix(self.hi ^ 0x5BD1_E995_7F4A_7C15).wrapping_add(self.lo.rotate_left(23));
        reduce(mix(both.wrapping_mul(0xD6E8_FEB8_6659_FD93)), shards as u64) as usize
    }

    /// An endless series of positions in `0..cells`, the same for every structure that asks.
    ///
    /// *Cost:* two multiplications a position. `cells` must not be 0.
    ///
    /// Plain double hashing (`hi + i·lo mod m`) is not used: on a small table two keys whose
    /// halves nearly agree share all positions, and that sets a floor under the false positive
    /// rate which a target of 1e-9 meets. Here every position is mixed on its own.
    #[inline]
    pub const fn probes(self, cells: u64) -> Probes {
        Probes { state: self.hi, step: self.lo | 1, cells }
    }
}

/// The positions of one digest in a table. See [`Digest::probes`].
#[derive(Clone, Debug)]
pub struct Probes {
    state: u64,
    step: u64,
    cells: u64,
}

impl Iterator for Probes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.state = self.state.wrapping_add(self.step);
        Some(reduce(mix(self.state), self.cells))
    }
}

impl Probes {
    /// The first `count` (at most 64) positions, written down: for operations that go through them
    /// twice. Their memory is also fetched sooner when no position waits for the one before.
    #[inline]
    pub(crate) fn write_down(self, count: u32, spare: &mut [u64; 64]) -> &[u64] {
        let count = (count as usize).min(spare.len());
        for (at, position) in spare[..count].iter_mut().zip(self) {
            *at = position;
        }
        &spare[..count]
    }
}

/// A bijective mixer: every output bit depends on every input bit.
/// (One multiply-xorshift round more than a Weyl sequence needs to look random in its high bits.)
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 32)).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    x ^ (x >> 29)
}

/// `hash` scaled to `0..n` by its high bits (Lemire's multiply-shift): any `n`, no division.
#[inline]
pub(crate) const fn reduce(hash: u64, n: u64) -> u64 {
    ((hash as u128 * n as u128) >> 64) as u64
}

/// How snapshots name [`Digester::ALGORITHM`].
const XXH3_128: u8 = 1;

/// Hashes keys with one stored seed.
///
/// *Guarantee:* XXH3-128 of exactly the bytes given, with the seed; the values are pinned by
/// golden tests (`tests/golden/digests.tsv`), so that another language can match them.
///
/// # Example
/// ```
/// use lately::Digester;
/// let digester = Digester::new(0);
/// assert_eq!(digester.digest(b"tag 1"), digester.digest(b"tag 1"));
/// // Several fields: lengths are part of the key, so ("ab", "c") is not ("a", "bc").
/// assert_ne!(
///     digester.digest_fields([b"ab".as_slice(), b"c"]),
///     digester.digest_fields([b"a".as_slice(), b"bc"]),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digester {
    seed: u64,
}

impl Digester {
    /// The name of the hash, as snapshots store it.
    pub const ALGORITHM: &'static str = "xxh3-128";

    /// Names the hash in a snapshot.
    pub(crate) fn write_algorithm(out: &mut Writer<'_>) {
        out.u8(XXH3_128);
    }

    /// Refuses a snapshot of another hash.
    pub(crate) fn check_algorithm(input: &mut Reader<'_>) -> Result<(), SnapshotError> {
        let known = input.u8()? == XXH3_128;
        known.then_some(()).ok_or(SnapshotError::Invalid("unknown hash algorithm"))
    }

    /// A digester with this seed. Filters that are to be compared or merged need the same seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The digest of one key.
    #[inline]
    pub fn digest(&self, key: &[u8]) -> Digest {
        let hash = xxh3_128_with_seed(key, self.seed);
        Digest { hi: (hash >> 64) as u64, lo: hash as u64 }
    }

    /// The digest of a key that is a whole number: of its 16 bytes, little endian.
    #[inline]
    pub fn digest_integer(&self, key: u128) -> Digest {
        self.digest(&key.to_le_bytes())
    }

    /// The digest of a value of Rust, without allocation: of the bytes that its [`Hash`](core::hash::Hash) writes, numbers as little-endian bytes
    /// and `usize` as 64 bits.
    ///
    /// *Guarantee:* stable across runs, machines and releases for whole numbers (of their own width: `7u32` and `7u64` are
    /// different keys), `bool`, `char`, `str`, `String`, `[u8]`, `Vec<u8>`, references to these, and tuples of them. A
    /// text is its bytes and `0xFF`; a list of bytes is preceded by its length in 64 bits. What other types write is up
    /// to them, and may change with them: use it for filters that live no longer than the process.
    ///
    /// # Example
    /// ```
    /// use lately::Digester;
    /// let digester = Digester::new(0);
    /// assert_eq!(digester.digest_hash(&7u64), digester.digest(&7u64.to_le_bytes()));
    /// assert_eq!(digester.digest_hash("tag"), digester.digest(b"tag\xFF"));
    /// assert_eq!(digester.digest_hash(&(7u8, "tag")), digester.digest(b"\x07tag\xFF"));
    /// ```
    #[inline]
    pub fn digest_hash<K: core::hash::Hash + ?Sized>(&self, key: &K) -> Digest {
        let mut hasher = crate::hashed::KeyHasher::new(self.seed);
        key.hash(&mut hasher);
        hasher.digest()
    }

    /// The digest of a key made of several fields, each prefixed by its length
    /// (64 bits, little endian) so that no two different lists of fields look the same.
    pub fn digest_fields<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut key = alloc::vec::Vec::with_capacity(64);
        for field in fields {
            key.extend_from_slice(&(field.len() as u64).to_le_bytes());
            key.extend_from_slice(field);
        }
        self.digest(&key)
    }
}
