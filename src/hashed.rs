//! Keys that are values of Rust: whatever implements [`Hash`].

use crate::Digest;
use core::hash::Hasher;
use xxhash_rust::xxh3::{Xxh3, xxh3_128_with_seed};

/// Bytes of a key that are gathered before they are hashed as a stream: the same hash, and faster for short ones.
const GATHERED: usize = 128;

/// Gathers what a value says of itself, the same on every machine: numbers as little-endian bytes, and `usize` as 64 bits.
pub(crate) struct KeyHasher {
    seed: u64,
    gathered: [u8; GATHERED],
    len: usize,
    stream: Option<Xxh3>,
}

impl KeyHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, gathered: [0; GATHERED], len: 0, stream: None }
    }

    /// XXH3-128 of all that was written.
    pub(crate) fn digest(&self) -> Digest {
        let hash = match &self.stream {
            Some(stream) => stream.digest128(),
            None => xxh3_128_with_seed(&self.gathered[..self.len], self.seed),
        };
        Digest::new((hash >> 64) as u64, hash as u64)
    }

    #[cold]
    fn write_to_stream(&mut self, bytes: &[u8]) {
        let gathered = &self.gathered[..self.len];
        let stream = self.stream.get_or_insert_with(|| {
            let mut stream = Xxh3::with_seed(self.seed);
            stream.update(gathered);
            stream
        });
        stream.update(bytes);
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.stream.is_none() && end <= GATHERED {
            self.gathered[self.len..end].copy_from_slice(bytes);
            self.len = end;
        } else {
            self.write_to_stream(bytes);
        }
    }

    fn finish(&self) -> u64 {
        self.digest().lo()
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_i16(&mut self, number: i16) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_i32(&mut self, number: i32) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_i64(&mut self, number: i64) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_i128(&mut self, number: i128) {
        self.write(&number.to_le_bytes());
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_i64(number as i64);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Digest, Digester};
    use alloc::vec::Vec;

    fn bytes(bytes: &[u8]) -> Digest {
        Digester::new(5).digest(bytes)
    }

    /// The bytes that stand for a value, which must never change. `cargo test` runs this on targets of 32 bits and with
    /// the highest byte first, too.
    #[test]
    fn values_are_the_same_bytes_on_every_machine() {
        let digester = Digester::new(5);
        assert_eq!(
            digester.digest_hash(&0x0102_0304_0506_0708u64),
            bytes(&[8, 7, 6, 5, 4, 3, 2, 1])
        );
        assert_eq!(digester.digest_hash(&0x0102_0304u32), bytes(&[4, 3, 2, 1]));
        assert_eq!(digester.digest_hash(&0x0102u16), bytes(&[2, 1]));
        assert_eq!(digester.digest_hash(&7u8), bytes(&[7]));
        assert_eq!(digester.digest_hash(&-2i32), bytes(&[254, 255, 255, 255]));
        assert_eq!(digester.digest_hash(&-2i64), digester.digest_hash(&-2isize));
        assert_eq!(digester.digest_hash(&7usize), digester.digest_hash(&7u64));
        assert_eq!(digester.digest_hash(&7u128), digester.digest_integer(7));
        assert_eq!(digester.digest_hash(&true), bytes(&[1]));
        assert_eq!(digester.digest_hash(&'a'), bytes(&[97, 0, 0, 0]));
        assert_eq!(digester.digest_hash("tag"), bytes(b"tag\xFF"));
        assert_eq!(digester.digest_hash(&alloc::string::String::from("tag")), bytes(b"tag\xFF"));
        assert_eq!(digester.digest_hash(&(1u16, "a", 2u8)), bytes(b"\x01\x00a\xFF\x02"));
        let listed = [&3u64.to_le_bytes()[..], b"abc"].concat();
        assert_eq!(digester.digest_hash(&b"abc"[..]), bytes(&listed));
        assert_eq!(digester.digest_hash(&Vec::from(*b"abc")), bytes(&listed));
        assert_ne!(digester.digest_hash(&("ab", "c")), digester.digest_hash(&("a", "bc")));
    }

    #[test]
    fn long_keys_are_hashed_as_the_bytes_they_are() {
        for len in [126, 127, 128, 129, 200, 300, 1_000, 5_000] {
            let text: alloc::string::String = ('a'..='z').cycle().take(len).collect();
            let mut written = Vec::from(text.as_bytes());
            written.push(255);
            assert_eq!(Digester::new(5).digest_hash(&text), bytes(&written), "{len}");
            written.extend(7u64.to_le_bytes());
            assert_eq!(Digester::new(5).digest_hash(&(&text, 7u64)), bytes(&written), "{len}");
        }
    }
}
