//! Filters that never forget: of one size (the classic Bloom filter and its cache-line form), and
//! such as grow with their keys.

mod accommodative_bloom;
mod blocked_bloom;
mod bloom;
#[cfg(test)]
mod body;
mod chain;
mod dynamic_bloom;
mod partitioned;
mod scalable_bloom;

pub use accommodative_bloom::{AccommodativeBloom, AccommodativeShape};
pub use blocked_bloom::BlockedBloom;
pub use bloom::Bloom;
pub use dynamic_bloom::DynamicBloom;
pub use scalable_bloom::{ScalableBloom, ScalableShape};
