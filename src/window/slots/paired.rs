//! Keys that may be in one of two places, of which each follows from the other and the fingerprint.

use crate::Digest;
use crate::digest::{mix, reduce};

/// A fingerprint and one of its two places; the other follows. So an entry can be moved, and merged, when
/// its key is gone.
///
/// # Reference
/// B. Fan, D. G. Andersen, M. Kaminsky, M. D. Mitzenmacher, "Cuckoo filter: practically better than
/// Bloom", CoNEXT 2014, section 3; with a difference for their exclusive or, so that there may be any
/// number of places.
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub(super) place: u64,
    pub(super) fingerprint: u64,
}

impl Name {
    /// A key's, in a table of so many places and with fingerprints of so many bits (1 to 64).
    #[inline(always)]
    pub(super) fn of(digest: Digest, places: u64, bits: u32) -> Self {
        // The low half's high bits: independent of the place, which follows from the high half.
        Self { place: reduce(digest.hi(), places), fingerprint: digest.lo() >> (64 - bits) }
    }

    /// The other place: the same call leads back.
    #[inline(always)]
    pub(super) fn other(self, places: u64) -> u64 {
        let sum = reduce(mix(self.fingerprint), places);
        let wrapped = if sum < self.place { places } else { 0 };
        sum.wrapping_sub(self.place).wrapping_add(wrapped)
    }

    /// The name as a number, the same from either place: the first of them, then the fingerprint.
    pub(super) fn id(self, places: u64) -> u128 {
        u128::from(self.place.min(self.other(places))) << 64 | u128::from(self.fingerprint)
    }

    /// The name that a number stands for, from one of its places: as often the one as the other, where an
    /// entry is put that finds both alike.
    pub(super) fn from_id_at_random(id: u128, places: u64) -> Self {
        let name = Self::from_id(id);
        let place = if name.fingerprint & 1 == 0 { name.place } else { name.other(places) };
        Self { place, ..name }
    }

    /// The name that a number stands for.
    pub(super) fn from_id(id: u128) -> Self {
        Self { place: (id >> 64) as u64, fingerprint: id as u64 }
    }
}

/// The chance that a key is found among so many others: all that is in its two places is compared.
pub(crate) fn paired_fpr(places: u64, fingerprint_bits: u32, keys: f64) -> f64 {
    let same = libm::exp2(-f64::from(fingerprint_bits));
    -libm::expm1(2.0 * keys / places as f64 * libm::log1p(-same))
}
