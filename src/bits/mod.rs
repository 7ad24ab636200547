//! Bit-level storage: packed integers, aligned blocks, and the one module with `unsafe`.

pub(crate) mod packed;
pub(crate) mod prefetch;
