//! The filter of a cell of 1 km: what host and workers share.

mod aged;
mod bits;
mod positions;
mod share;
pub(crate) mod size;

pub use aged::AgedFilter;
pub use bits::BitFilter;
pub use share::{Contents, Group, Named, Share, ShareError, Stamp};
pub use size::{FilterSize, MAX_BITS};

use crate::rules::{Mode, Rules};
use alloc::vec::Vec;
use lately::Digest;

/// A filter of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellFilter {
    Bits(BitFilter),
    Aged(AgedFilter),
}

impl CellFilter {
    pub(crate) fn new(rules: &Rules, grain: u64) -> Self {
        match rules.mode {
            Mode::Reset => Self::Bits(BitFilter::new(rules.size)),
            Mode::Ageing { steps } => {
                let mut filter = AgedFilter::new(rules.size, steps);
                filter.advance(grain);
                Self::Aged(filter)
            }
        }
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest, grain: u64) -> bool {
        match self {
            Self::Bits(filter) => filter.contains(digest),
            Self::Aged(filter) => filter.contains(digest, grain),
        }
    }

    pub(crate) fn add(&mut self, digest: Digest, grain: u64) {
        match self {
            Self::Bits(filter) => filter.add(digest),
            Self::Aged(filter) => filter.add(digest, grain),
        }
    }

    pub(crate) fn set(&mut self, at: u32, age: u64) {
        match self {
            Self::Bits(filter) => filter.set(at),
            Self::Aged(filter) => filter.set(at, age),
        }
    }

    pub(crate) fn advance(&mut self, grain: u64) {
        if let Self::Aged(filter) = self {
            filter.advance(grain);
        }
    }

    pub(crate) fn clear(&mut self, grain: u64) {
        match self {
            Self::Bits(filter) => filter.clear(),
            Self::Aged(filter) => filter.clear(grain),
        }
    }

    /// How many bits are set.
    pub(crate) fn ones(&self) -> u32 {
        match self {
            Self::Bits(filter) => filter.ones(),
            Self::Aged(filter) => filter.ones(),
        }
    }

    /// All of its contents, as of a grain.
    pub(crate) fn contents(&mut self, grain: u64) -> Vec<Group> {
        match self {
            Self::Bits(filter) => {
                let positions: Vec<u32> = filter.positions().collect();
                if positions.is_empty() {
                    return Vec::new();
                }
                alloc::vec![Group::new(0, &positions, filter.size())]
            }
            Self::Aged(filter) => {
                filter.advance(grain);
                let mut live = Vec::new();
                filter.live(&mut live);
                by_age(live, filter.size())
            }
        }
    }
}

/// Positions by age, the youngest first, in any order and repeated or not. Ages are below 256.
pub(crate) fn group(live: impl Iterator<Item = (u32, u64)>, size: FilterSize) -> Vec<Group> {
    by_age(live.map(|(at, age)| (age as u32) << 16 | at).collect(), size)
}

/// The same of one number each, age before position: they are sorted at every assignment.
fn by_age(mut live: Vec<u32>, size: FilterSize) -> Vec<Group> {
    live.sort_unstable();
    live.dedup();
    let mut positions = Vec::with_capacity(live.len());
    let of_one_age = live.chunk_by(|one, other| one >> 16 == other >> 16);
    let groups = of_one_age.map(|group| {
        let age = group.first().map_or(0, |&first| first >> 16);
        positions.clear();
        positions.extend(group.iter().map(|&packed| packed & 0xFFFF));
        Group::new(age as u8, &positions, size)
    });
    groups.collect()
}

/// A position fits into what [`by_age`] has for it.
const _: () = assert!(MAX_BITS <= 1 << 16);
