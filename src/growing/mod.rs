//! Filters that never forget: of one size (the classic Bloom filter and its cache-line form), and
//! such as grow with their keys.

mod blocked_bloom;
mod bloom;
#[cfg(test)]
mod body;
mod chain;
// Until `Structure` names them, nothing calls their snapshots and prefetches.
#[expect(dead_code)]
mod dynamic_bloom;
mod partitioned;
#[expect(dead_code)]
mod scalable_bloom;

pub use blocked_bloom::BlockedBloom;
pub use bloom::Bloom;
pub use dynamic_bloom::DynamicBloom;
pub use scalable_bloom::{ScalableBloom, ScalableShape};
