//! Versioned little-endian bytes with a checksum. The layout is written down in `docs/format.md`.

use crate::SnapshotError;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64;

/// First bytes of every snapshot. The high bit and the line ends show transfers that mangle text.
const MAGIC: [u8; 8] = *b"\x89LATE\r\n\x1a";
/// The oldest format version, which is written wherever it can say all there is to say.
const VERSION: u16 = 1;
/// The version that says how late arrivals may come, and the newest that this build reads.
const LATENESS: u16 = 2;
/// Magic, version, two reserved bytes, body length.
const HEADER: usize = 20;
const CHECKSUM: usize = 8;

/// Writes a snapshot.
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(body_hint: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER + body_hint + CHECKSUM);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; HEADER - MAGIC.len() - 2]);
        Self { bytes }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// The words alone: their number follows from the shape written before them.
    pub(crate) fn words(&mut self, words: &[u64]) {
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Bytes alone: their number follows from the shape written before them.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A part that version 1 has no place for: how late arrivals may come, if they may.
    pub(crate) fn lateness(&mut self, ticks: u64) {
        if ticks > 0 {
            self.bytes[MAGIC.len()..MAGIC.len() + 2].copy_from_slice(&LATENESS.to_le_bytes());
            self.u64(ticks);
        }
    }

    /// Fills in the length and appends the checksum.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let body = (self.bytes.len() - HEADER) as u64;
        self.bytes[HEADER - 8..HEADER].copy_from_slice(&body.to_le_bytes());
        let checksum = xxh3_64(&self.bytes);
        self.u64(checksum);
        self.bytes
    }
}

/// Reads a snapshot whose length and checksum have been checked.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    version: u16,
}

impl<'a> Reader<'a> {
    /// Checks everything that can be known before the body is looked at.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let found = bytes.len() as u64;
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) || bytes.is_empty() {
            return Err(SnapshotError::Foreign);
        }
        let mut header = Reader { rest: bytes, version: VERSION };
        let too_short = |_| SnapshotError::Length { expected: (HEADER + CHECKSUM) as u64, found };
        header.take(MAGIC.len()).map_err(too_short)?;
        let version = u16::from_le_bytes(header.array().map_err(too_short)?);
        if !(VERSION..=LATENESS).contains(&version) {
            return Err(SnapshotError::Version { found: version, newest: LATENESS });
        }
        let reserved: [u8; 2] = header.array().map_err(too_short)?;
        let body = header.u64().map_err(too_short)?;
        let expected = body.saturating_add((HEADER + CHECKSUM) as u64);
        if expected != found {
            return Err(SnapshotError::Length { expected, found });
        }
        let (summed, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if xxh3_64(summed).to_le_bytes() != checksum {
            return Err(SnapshotError::Checksum);
        }
        if reserved != [0, 0] {
            return Err(SnapshotError::Invalid("reserved bytes are not zero"));
        }
        Ok(Self { rest: &summed[HEADER..], version })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let short = SnapshotError::Invalid("it ends before the tables that it promises");
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SnapshotError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of things counted one by one, which so never comes near the end of its type.
    pub(crate) fn count(&mut self) -> Result<u64, SnapshotError> {
        let count = self.u64()?;
        (count < 1 << 63).then_some(count).ok_or(SnapshotError::Invalid("a count beyond 2^63"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::Invalid("neither yes nor no")),
        }
    }

    /// A finite number.
    pub(crate) fn f64(&mut self) -> Result<f64, SnapshotError> {
        let value = f64::from_bits(self.u64()?);
        value.is_finite().then_some(value).ok_or(SnapshotError::Invalid("a number is not finite"))
    }

    /// So many words, which must be there before memory is taken for them.
    /// `None` is a number of words beyond any memory.
    pub(crate) fn words(&mut self, len: Option<usize>) -> Result<Vec<u64>, SnapshotError> {
        let bytes = len
            .and_then(|len| len.checked_mul(8))
            .ok_or(SnapshotError::Invalid("a table larger than any memory"))?;
        let words = self.take(bytes)?.chunks_exact(8);
        Ok(words
            .map(|word| {
                let mut array = [0; 8];
                array.copy_from_slice(word);
                u64::from_le_bytes(array)
            })
            .collect())
    }

    /// So many bytes, which must be there before memory is taken for them.
    pub(crate) fn bytes(&mut self, len: Option<usize>) -> Result<Vec<u8>, SnapshotError> {
        let len = len.ok_or(SnapshotError::Invalid("a table larger than any memory"))?;
        Ok(self.take(len)?.to_vec())
    }

    /// What [`Writer::lateness`] wrote, or 0 where it wrote nothing.
    pub(crate) fn lateness(&mut self) -> Result<u64, SnapshotError> {
        if self.version < LATENESS {
            return Ok(0);
        }
        // What version 1 could have said is not said in another way.
        let ticks = self.u64()?;
        (ticks > 0).then_some(ticks).ok_or(SnapshotError::Invalid("a lateness of nothing"))
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The body has been read to its end.
    pub(crate) fn finish(self) -> Result<(), SnapshotError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(SnapshotError::Invalid("bytes after the end"))
        }
    }
}
