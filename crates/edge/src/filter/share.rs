//! What of a filter is sent: all of it, or what was added since.

use super::{FilterSize, positions};
use crate::element::Element;
use crate::rules::Rules;
use alloc::vec::Vec;
use core::fmt;

/// Which state of which filter.
///
/// Two stamps can be compared only if epoch and incarnation agree; then the higher version holds all that
/// the lower one holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The validity period, counted from time 0. Always 0 for a filter that ages.
    pub epoch: u32,
    /// Which life of the host: one restored from an older state may reuse versions.
    pub incarnation: u32,
    /// Elements added in this epoch and incarnation.
    pub version: u32,
}

impl Stamp {
    /// Do both count versions of the same filter?
    pub const fn is_comparable(self, other: Self) -> bool {
        self.epoch == other.epoch && self.incarnation == other.incarnation
    }
}

/// Positions that were set at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Grains ago; 0 in a filter that does not age.
    pub age: u8,
    /// The positions, in the form of `docs/edge.md`.
    pub positions: Vec<u8>,
}

/// An element by name: shorter than its positions, as a cell of 1 km has only 100 places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The element; it lies in the filter's cell of 1 km.
    pub element: Element,
    /// Grains ago; 0 in a filter that does not age.
    pub age: u8,
}

/// What is in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Its bits, by age.
    Positions(Vec<Group>),
    /// Its elements.
    Elements(Vec<Named>),
}

/// A filter's contents, or those that were added after a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which state this leads to.
    pub stamp: Stamp,
    /// The version it is to be added to; `None` for the whole filter.
    pub since: Option<u32>,
    /// The contents.
    pub contents: Contents,
}

/// Why a share cannot be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareError {
    /// Positions that the filter does not have, or that cannot be read.
    Malformed,
    /// Older than what is there.
    Stale,
    /// A delta to a state that is not there.
    Gap,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a filter whose positions cannot be read",
            Self::Stale => "a filter older than the one that is there",
            Self::Gap => "what was added to a filter that is not there",
        })
    }
}

impl core::error::Error for ShareError {}

impl Group {
    /// A group of positions, ascending and different.
    pub(crate) fn new(age: u8, positions: &[u32], size: FilterSize) -> Self {
        Self { age, positions: positions::encode(positions, size.bits) }
    }
}

impl Share {
    /// Can all positions be read, for a filter of this size?
    pub fn is_readable(&self, size: FilterSize) -> bool {
        match &self.contents {
            Contents::Positions(groups) => groups
                .iter()
                .all(|group| positions::decode(&group.positions, size.bits, |_| ()).is_some()),
            Contents::Elements(_) => true,
        }
    }

    /// Gives every position and its age.
    pub(crate) fn for_each(&self, size: FilterSize, mut each: impl FnMut(u32, u64)) {
        match &self.contents {
            Contents::Positions(groups) => {
                for group in groups {
                    let age = u64::from(group.age);
                    // Whether it can be read was asked before.
                    let _ = positions::decode(&group.positions, size.bits, |at| each(at, age));
                }
            }
            Contents::Elements(elements) => {
                let salt = Rules::salt(self.stamp.epoch);
                for named in elements {
                    let positions = size.positions(named.element.digest(salt));
                    positions.for_each(|at| each(at, named.age.into()));
                }
            }
        }
    }
}
