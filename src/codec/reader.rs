//! Reads an envelope.

use super::writer::certainly;
use super::{BLOCK, CHECKSUM, FRAME, Format, HEADER, NAME};
use crate::{RestoreError, SnapshotError};
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use xxhash_rust::xxh3::Xxh3;

const TOO_LARGE: SnapshotError = SnapshotError::Invalid("a table larger than any memory");
const SHORT: SnapshotError = SnapshotError::Invalid("it ends before the tables that it promises");
/// Stands for the source's own error, which [`read`] returns in its place.
const FAILED: SnapshotError = SnapshotError::Invalid("its source failed");

/// Reads an envelope of `len` bytes from a source that works as `std::io::Read::read` does: it fills some of what
/// it is given and says how much, 0 at its end.
///
/// `len` is how many bytes the source has, such as the length of a file. It is believed: the envelope must be
/// exactly as long, and memory is taken for what the body announces as far as `len` backs that up. `body` must read
/// all of the body; what it makes is returned only if the checksum is right. Besides that, this takes a
/// buffer of 64 KiB.
///
/// # Errors
/// [`RestoreError::Source`] is the source's error, unchanged. [`RestoreError::Content`] is that of `body`, or a
/// [`SnapshotError`] for bytes that are cut off, damaged, foreign, or of a version not known. For damaged bytes it is
/// [`SnapshotError::Checksum`], whatever `body` made of them.
pub fn read<T, X: From<SnapshotError>, E>(
    format: Format,
    len: u64,
    source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
) -> Result<T, RestoreError<E, X>> {
    with_source(source, |source| framed(format, len, source, body))
}

/// [`read`] from memory.
///
/// # Errors
/// As [`RestoreError::Content`] of [`read`].
pub fn from_slice<T, X: From<SnapshotError>>(
    format: Format,
    mut bytes: &[u8],
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
) -> Result<T, X> {
    let len = bytes.len() as u64;
    let source = |into: &mut [u8]| {
        let (taken, rest) = bytes.split_at(into.len().min(bytes.len()));
        into[..taken.len()].copy_from_slice(taken);
        bytes = rest;
        Ok::<_, Infallible>(taken.len())
    };
    read(format, len, source, body).map_err(|error| match error {
        RestoreError::Content(error) => error,
        RestoreError::Source(never) => certainly(Err(never)),
    })
}

/// [`read`], for what was written before there was one envelope: magic, version, body, and the low half of the
/// XXH3-128 of all before. State and index files of version 1 are like that.
///
/// # Errors
/// As [`read`]. Bytes that were cut off are not known from damaged ones.
pub fn read_unframed<T, X: From<SnapshotError>, E>(
    format: Format,
    len: u64,
    source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
) -> Result<T, RestoreError<E, X>> {
    with_source(source, |source| unframed(format, len, source, body))
}

/// Fills some of what it is given and says how much; `None` if it cannot.
type Gives<'a> = dyn FnMut(&mut [u8]) -> Option<usize> + 'a;

/// Keeps the source's error apart from those of what is read.
fn with_source<T, X, E>(
    mut source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    read: impl FnOnce(&mut Gives<'_>) -> Result<T, X>,
) -> Result<T, RestoreError<E, X>> {
    let mut failure = None;
    let result = read(&mut |into: &mut [u8]| match source(into) {
        Ok(filled) => Some(filled.min(into.len())),
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    match failure {
        Some(error) => Err(RestoreError::Source(error)),
        None => result.map_err(RestoreError::Content),
    }
}

fn framed<T, X: From<SnapshotError>>(
    format: Format,
    len: u64,
    source: &mut Gives<'_>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
) -> Result<T, X> {
    let too_short = SnapshotError::Length { expected: FRAME, found: len };
    let mut input = Reader::open(format, len, source, &too_short)?;
    let left = len.checked_sub(FRAME).ok_or(too_short)?;
    input.unread += (HEADER - NAME) as u64;
    let reserved: [u8; 2] = input.array()?;
    if reserved[0] != format.kind && format.kind != 0 {
        return Err(X::from(SnapshotError::Foreign));
    }
    let announced = input.u64()?;
    if announced != left {
        let expected = announced.saturating_add(FRAME);
        return Err(X::from(SnapshotError::Length { expected, found: len }));
    }
    input.unread += left;
    input.checked(Xxh3::digest, |input| {
        if reserved == [format.kind, 0] {
            body(input)
        } else {
            Err(X::from(SnapshotError::Invalid("reserved bytes are not zero")))
        }
    })
}

fn unframed<T, X: From<SnapshotError>>(
    format: Format,
    len: u64,
    source: &mut Gives<'_>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
) -> Result<T, X> {
    let frame = (NAME + CHECKSUM) as u64;
    let too_short = SnapshotError::Length { expected: frame, found: len };
    let mut input = Reader::open(format, len, source, &too_short)?;
    input.unread += len.checked_sub(frame).ok_or(too_short)?;
    input.checked(|sum| sum.digest128() as u64, body)
}

/// Reads the body of an envelope. Handed out by [`read`] and [`from_slice`].
pub struct Reader<'s> {
    source: &'s mut Gives<'s>,
    sum: Xxh3,
    /// What has been read and not yet been taken lies from `at` on.
    buffer: Vec<u8>,
    at: usize,
    /// Bytes that are to be read, but for the checksum.
    unread: u64,
    /// Bytes that came from the source.
    seen: u64,
    /// Bytes that the source is said to have.
    len: u64,
    version: u16,
    /// Why no more bytes come.
    broken: Option<SnapshotError>,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("left", &self.left()).finish_non_exhaustive()
    }
}

impl<'s> Reader<'s> {
    /// Reads magic and version.
    fn open(
        format: Format,
        len: u64,
        source: &'s mut Gives<'s>,
        too_short: &SnapshotError,
    ) -> Result<Self, SnapshotError> {
        let mut input = Self {
            source,
            sum: Xxh3::new(),
            buffer: Vec::new(),
            at: 0,
            unread: len.min(NAME as u64),
            seen: 0,
            len,
            version: 0,
            broken: None,
        };
        input.fetch()?;
        let magic = &format.magic[..input.buffer.len().min(format.magic.len())];
        if input.buffer.is_empty() || !input.buffer.starts_with(magic) {
            return Err(SnapshotError::Foreign);
        }
        if input.buffer.len() < NAME {
            return Err(too_short.clone());
        }
        let _: [u8; 8] = input.array()?;
        input.version = u16::from_le_bytes(input.array()?);
        if (format.oldest..=format.version).contains(&input.version) {
            return Ok(input);
        }
        Err(SnapshotError::Version { found: input.version, newest: format.version })
    }

    /// What the body makes of the bytes, if it reads all of them and the checksum is right.
    fn checked<T, X: From<SnapshotError>>(
        mut self,
        sum_of: impl FnOnce(&Xxh3) -> u64,
        body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
    ) -> Result<T, X> {
        let result = body(&mut self);
        let is_read = self.left() == 0;
        // Where the bytes are damaged, that is the reason, whatever the body made of them.
        while self.unread > 0 {
            self.at = self.buffer.len();
            self.fetch()?;
        }
        let sum = sum_of(&self.sum);
        let mut found = [0; CHECKSUM];
        self.pull(&mut found)?;
        if u64::from_le_bytes(found) != sum {
            return Err(X::from(SnapshotError::Checksum));
        }
        match result {
            Ok(_) if !is_read => Err(X::from(SnapshotError::Invalid("bytes after the end"))),
            result => result,
        }
    }

    /// Reads so many bytes from the source.
    fn pull(&mut self, mut into: &mut [u8]) -> Result<(), SnapshotError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        while !into.is_empty() {
            match (self.source)(into) {
                None => self.broken = Some(FAILED),
                Some(0) => {
                    let (expected, found) = (self.len, self.seen);
                    self.broken = Some(SnapshotError::Length { expected, found });
                }
                Some(filled) => {
                    self.seen += filled as u64;
                    into = &mut into[filled..];
                    continue;
                }
            }
            return Err(self.broken.clone().unwrap_or(FAILED));
        }
        Ok(())
    }

    /// Reads more into the buffer, as much as it holds.
    fn fetch(&mut self) -> Result<(), SnapshotError> {
        let mut buffer = core::mem::take(&mut self.buffer);
        buffer.drain(..self.at);
        self.at = 0;
        let (old, room) = (buffer.len(), BLOCK - buffer.len());
        buffer.resize(old + self.unread.min(room as u64) as usize, 0);
        let fetched = &mut buffer[old..];
        let result = self.pull(fetched);
        self.sum.update(fetched);
        self.unread -= fetched.len() as u64;
        self.buffer = buffer;
        result
    }

    /// Fills this with the bytes that come next.
    pub(crate) fn fill(&mut self, mut into: &mut [u8]) -> Result<(), SnapshotError> {
        self.expect(Some(into.len()))?;
        while !into.is_empty() {
            if self.at == self.buffer.len() && into.len() >= BLOCK {
                // All of it is part of the body, so it need not go through the buffer.
                self.pull(into)?;
                self.sum.update(into);
                self.unread -= into.len() as u64;
                return Ok(());
            }
            let taken = self.some(into)?;
            into = &mut into[taken..];
        }
        Ok(())
    }

    /// Fills a part of this, and says how much; 0 at the end of the body.
    fn some(&mut self, into: &mut [u8]) -> Result<usize, SnapshotError> {
        if self.at == self.buffer.len() {
            self.fetch()?;
        }
        let there = &self.buffer[self.at..];
        let taken = there.len().min(into.len());
        into[..taken].copy_from_slice(&there[..taken]);
        self.at += taken;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut array = [0; N];
        self.fill(&mut array)?;
        Ok(array)
    }

    /// The version of the body.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Bytes of the body that are left.
    pub fn left(&self) -> u64 {
        (self.buffer.len() - self.at) as u64 + self.unread
    }

    /// So many bytes must be left. `None` is a number beyond any memory.
    ///
    /// # Errors
    /// [`SnapshotError::Invalid`] where they are not.
    pub fn expect(&self, bytes: Option<usize>) -> Result<usize, SnapshotError> {
        let bytes = bytes.ok_or(TOO_LARGE)?;
        if bytes as u64 <= self.left() { Ok(bytes) } else { Err(SHORT) }
    }

    /// One byte.
    ///
    /// # Errors
    /// [`SnapshotError::Invalid`] where the body ends before.
    pub fn u8(&mut self) -> Result<u8, SnapshotError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u16(&mut self) -> Result<u16, SnapshotError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes.
    ///
    /// # Errors
    /// As [`Reader::u8`].
    pub fn u128(&mut self) -> Result<u128, SnapshotError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// A number of things that were counted one by one, which is therefore below 2^63.
    ///
    /// # Errors
    /// As [`Reader::u8`], and for a larger number.
    pub fn count(&mut self) -> Result<u64, SnapshotError> {
        let count = self.u64()?;
        (count < 1 << 63).then_some(count).ok_or(SnapshotError::Invalid("a count beyond 2^63"))
    }

    /// A byte that is 0 or 1.
    ///
    /// # Errors
    /// As [`Reader::u8`], and for another byte.
    pub fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::Invalid("a flag that is neither 0 nor 1")),
        }
    }

    /// A finite double.
    ///
    /// # Errors
    /// As [`Reader::u8`], and for an infinite one or none.
    pub fn f64(&mut self) -> Result<f64, SnapshotError> {
        let value = f64::from_bits(self.u64()?);
        value.is_finite().then_some(value).ok_or(SnapshotError::Invalid("a number is not finite"))
    }

    /// The bytes of a [`Writer::block`](super::Writer::block).
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn block(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let len = self.u64()?;
        self.bytes(usize::try_from(len).ok())
    }

    /// A block that is text.
    ///
    /// # Errors
    /// As [`Reader::bytes`], and for bytes that are not UTF-8.
    pub fn text(&mut self) -> Result<String, SnapshotError> {
        let bytes = self.block()?;
        String::from_utf8(bytes).map_err(|_| SnapshotError::Invalid("a text that is not UTF-8"))
    }

    /// So many bytes, which must be left before memory is taken for them. `None` is a number beyond any memory.
    ///
    /// # Errors
    /// As [`Reader::u8`], and where there is no memory for them.
    pub fn bytes(&mut self, len: Option<usize>) -> Result<Vec<u8>, SnapshotError> {
        let len = self.expect(len)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| TOO_LARGE)?;
        bytes.resize(len, 0);
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// So many words, which must be left before memory is taken for them. `None` is a number beyond any memory.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn words(&mut self, len: Option<usize>) -> Result<Vec<u64>, SnapshotError> {
        self.words_and(len, 0)
    }

    /// [`Reader::words`], with so many zeros after them.
    pub(crate) fn words_and(
        &mut self,
        len: Option<usize>,
        more: usize,
    ) -> Result<Vec<u64>, SnapshotError> {
        let bytes = self.expect(len.and_then(|len| len.checked_mul(8)))?;
        let mut words = Vec::new();
        words.try_reserve_exact(bytes / 8 + more).map_err(|_| TOO_LARGE)?;
        while words.len() < bytes / 8 {
            if self.buffer.len() - self.at < 8 {
                self.fetch()?;
            }
            let there = self.buffer[self.at..].as_chunks().0;
            let taken = there.len().min(bytes / 8 - words.len());
            words.extend(there[..taken].iter().map(|&word| u64::from_le_bytes(word)));
            self.at += taken * 8;
        }
        words.resize(words.len() + more, 0);
        Ok(words)
    }

    /// The envelope that [`Writer::envelope`](super::Writer::envelope) has put here.
    ///
    /// # Errors
    /// As [`from_slice`].
    pub fn envelope<T, X: From<SnapshotError>>(
        &mut self,
        format: Format,
        body: impl FnOnce(&mut Reader<'_>) -> Result<T, X>,
    ) -> Result<T, X> {
        if self.buffer.len() - self.at < HEADER {
            self.fetch()?;
        }
        let announced = self.buffer[self.at..].first_chunk().map_or(0, |header: &[u8; HEADER]| {
            header[NAME + 2..].first_chunk().map_or(0, |length| u64::from_le_bytes(*length))
        });
        let len = announced.saturating_add(FRAME).min(self.left());
        read(format, len, |into| self.some(into), body).map_err(|error| match error {
            RestoreError::Content(error) => error,
            RestoreError::Source(error) => X::from(error),
        })
    }
}
