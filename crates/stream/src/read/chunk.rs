//! Pieces of inputs, cut at record boundaries.

use crate::schema::Schema;
use std::sync::Arc;

/// A piece of one input, cut at record boundaries.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Which input, counted from 0 in the order given.
    pub source: usize,
    /// The piece, decompressed and without a byte order mark.
    pub bytes: Vec<u8>,
    /// How to read it.
    pub schema: Arc<Schema>,
    /// The first record is a header line.
    pub header: bool,
    /// What is in it.
    pub fate: Fate,
    /// So many bytes at its beginning are the beginning of its first record that the last run has
    /// forwarded.
    pub begun: usize,
}

/// What is in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Complete records.
    Records,
    /// The beginning of one record of this many bytes, and its line end: it was too long to hold.
    Overlong(u64),
    /// One record in which the input broke off with an error.
    Torn,
    /// Complete records up to there, and then the beginning of one that the run was told to end in.
    Left(usize),
}
