//! Filters that never forget: the classic Bloom filter and its cache-line form.

mod blocked_bloom;
mod bloom;

pub use blocked_bloom::BlockedBloom;
pub use bloom::Bloom;
