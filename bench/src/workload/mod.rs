//! Generated inputs, streamed: any size in constant memory, the same bytes for the same seed.

pub mod events;
pub mod lines;
pub mod traces;
pub mod zipf;

use std::io::{self, Write};

/// What a workload wrote: the exact answer that a program's output is checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records written, without a header.
    pub records: u64,
    /// Distinct records among them.
    pub distinct: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// A bijective mixer: different numbers give different results, neighbours unlike ones.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Buffers much, and counts the bytes that went through.
pub(crate) struct Counted<W: Write> {
    out: io::BufWriter<W>,
    bytes: u64,
}

impl<W: Write> Counted<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out: io::BufWriter::with_capacity(1 << 18, out), bytes: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.bytes)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
