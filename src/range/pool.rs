//! Memory for blocks, taken as it is needed.

use super::block::Block;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Blocks by number. Those given back are used again; memory grows by chunks and never moves.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    chunks: Vec<Box<[Block]>>,
    /// Blocks a chunk, as a power of two.
    chunk_bits: u32,
    free: Vec<u32>,
    /// Chunks that there may be.
    limit: usize,
}

impl Pool {
    pub(super) fn new(chunk_bits: u32, limit: usize) -> Self {
        Self { chunks: Vec::new(), chunk_bits, free: Vec::new(), limit }
    }

    #[inline(always)]
    pub(super) fn block(&self, number: u32) -> &Block {
        let in_chunk = (1 << self.chunk_bits) - 1;
        &self.chunks[(number >> self.chunk_bits) as usize][(number & in_chunk) as usize]
    }

    #[inline(always)]
    pub(super) fn block_mut(&mut self, number: u32) -> &mut Block {
        let in_chunk = (1 << self.chunk_bits) - 1;
        &mut self.chunks[(number >> self.chunk_bits) as usize][(number & in_chunk) as usize]
    }

    /// A block, with anything in it. `None` at the limit, or where the system has no memory.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow()?;
        }
        self.free.pop()
    }

    fn grow(&mut self) -> Option<()> {
        if self.chunks.len() >= self.limit {
            return None;
        }
        let blocks = 1usize << self.chunk_bits;
        let mut chunk: Vec<Block> = Vec::new();
        chunk.try_reserve_exact(blocks).ok()?;
        chunk.resize(blocks, Block::EMPTY);
        self.free.try_reserve(blocks).ok()?;
        self.chunks.try_reserve(1).ok()?;
        let first = u32::try_from(self.chunks.len() << self.chunk_bits).ok()?;
        let last = first.checked_add(blocks as u32)?;
        self.free.extend((first..last).rev());
        self.chunks.push(chunk.into_boxed_slice());
        Some(())
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Blocks that it has, free ones among them.
    pub(super) fn blocks(&self) -> usize {
        self.chunks.len() << self.chunk_bits
    }

    /// Blocks in use.
    pub(super) fn used(&self) -> usize {
        self.blocks() - self.free.len()
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.blocks() * size_of::<Block>()
            + self.free.capacity() * 4
            + self.chunks.capacity() * size_of::<Box<[Block]>>()
    }
}
