//! Writes an envelope.

use super::{BLOCK, FRAME, Format, HEADER};
use alloc::vec::Vec;
use core::convert::Infallible;
use xxhash_rust::xxh3::Xxh3;

/// Writes the body that `body` describes, in an envelope.
///
/// The sink is handed at most 64 KiB at a time. `body` is called twice, first to count its bytes, and must write the
/// same both times.
///
/// # Errors
/// The first error of the sink; it is not called again after that.
pub fn write<E>(
    format: Format,
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    body: impl Fn(&mut Writer<'_>),
) -> Result<(), E> {
    let mut error = None;
    let mut takes = |bytes: &[u8]| {
        error = sink(bytes).err();
        error.is_none()
    };
    frame(format, counted(&body), &mut takes, &body);
    error.map_or(Ok(()), Err)
}

/// [`write()`] into memory, allocated once.
pub fn to_vec(format: Format, body: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let len = counted(&body);
    let mut bytes = Vec::with_capacity(usize::try_from(len + FRAME).unwrap_or(usize::MAX));
    let mut takes = |part: &[u8]| {
        bytes.extend_from_slice(part);
        true
    };
    frame(format, len, &mut takes, &body);
    bytes
}

/// How many bytes [`write()`] hands to its sink for this body.
pub fn length(body: impl Fn(&mut Writer<'_>)) -> u64 {
    counted(&body) + FRAME
}

/// The bytes of a body.
fn counted(body: &impl Fn(&mut Writer<'_>)) -> u64 {
    let mut out = Writer { sink: None, sum: Xxh3::new(), buffer: Vec::new(), written: 0 };
    body(&mut out);
    out.written
}

fn frame(format: Format, len: u64, sink: &mut Takes<'_>, body: &impl Fn(&mut Writer<'_>)) {
    let room = (len + FRAME).min(BLOCK as u64) as usize;
    let buffer = Vec::with_capacity(room);
    let mut out = Writer { sink: Some(sink), sum: Xxh3::new(), buffer, written: 0 };
    out.bytes(&format.magic);
    out.u16(format.version);
    out.bytes(&[format.kind, 0]);
    out.u64(len);
    body(&mut out);
    // A sink that fails in the middle leaves what was written uncounted.
    let is_alike = out.sink.is_none() || out.written == len + HEADER as u64;
    debug_assert!(is_alike, "a body that is not written twice alike");
    out.seal();
}

/// Takes some bytes; `false` if it cannot.
type Takes<'a> = dyn FnMut(&[u8]) -> bool + 'a;

/// Writes the body of an envelope. Handed out by [`write()`], [`to_vec`] and [`length`].
///
/// Its calls do not fail: once the sink has failed the rest goes nowhere, and [`write()`] returns the error.
pub struct Writer<'s> {
    /// `None`: bytes are only counted. Also after the sink has failed.
    sink: Option<&'s mut Takes<'s>>,
    sum: Xxh3,
    /// What the sink has not been handed yet, at most a block.
    buffer: Vec<u8>,
    written: u64,
}

impl core::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Writer").field("written", &self.written).finish_non_exhaustive()
    }
}

impl Writer<'_> {
    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.bytes(&value.to_le_bytes());
    }

    /// The eight bytes of a double.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Bytes and how many they are, which is written first as a `u64`.
    pub fn block(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Bytes alone, for a reader that knows their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        if self.sink.is_none() {
            return;
        }
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.flush();
            if bytes.len() >= BLOCK {
                return self.hand_over(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Words alone, for a reader that knows their number.
    pub fn words(&mut self, words: &[u64]) {
        self.written += words.len() as u64 * 8;
        if self.sink.is_none() {
            return;
        }
        for words in words.chunks(BLOCK / 8) {
            if self.buffer.len() + words.len() * 8 > self.buffer.capacity() {
                self.flush();
            }
            let used = self.buffer.len();
            self.buffer.resize(used + words.len() * 8, 0);
            let places = self.buffer[used..].as_chunks_mut().0;
            places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
        }
    }

    /// Another envelope, within this body.
    pub fn envelope(&mut self, format: Format, body: impl Fn(&mut Writer<'_>)) {
        let len = counted(&body);
        if self.sink.is_none() {
            self.written += len + FRAME;
            return;
        }
        let mut takes = |bytes: &[u8]| {
            self.bytes(bytes);
            self.sink.is_some()
        };
        frame(format, len, &mut takes, &body);
    }

    fn flush(&mut self) {
        let mut buffer = core::mem::take(&mut self.buffer);
        self.hand_over(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn hand_over(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(BLOCK) {
            self.sum.update(part);
            if self.sink.as_mut().is_some_and(|sink| !sink(part)) {
                self.sink = None;
            }
        }
    }

    /// Writes the checksum, and what is still in the buffer.
    fn seal(mut self) {
        self.flush();
        let sum = self.sum.digest();
        self.bytes(&sum.to_le_bytes());
        self.flush();
    }
}

/// A sink or a source that has no errors.
pub(super) fn certainly<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
    }
}
