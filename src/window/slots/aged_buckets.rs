//! The aged table: a fingerprint and a stamp a key, in small buckets that are nearly full.

mod buckets;

use self::buckets::Buckets;
use crate::codec::Reader;
use crate::plan::formulas::TOO_LOW;
use crate::table::{Contract, Recipe, Windows};
use crate::window::cycle::Pace;
use crate::window::slots::core::{Keeps, Slotted};
use crate::window::slots::paired::paired_fpr;
use crate::window::traits::window_traits;
use crate::{Overload, PlanError, SnapshotError, Spec};

/// Share of the slots that are planned to be live at most.
pub(crate) const LOAD: f64 = 0.95;

/// A cuckoo hash table of fingerprints and stamps in buckets of four, nearly full, in which what has
/// expired is free: the smallest window.
///
/// A key is a duplicate when one of its two buckets has a live entry with its fingerprint. The second
/// bucket follows from the first and the fingerprint, and the first from the second, so entries can
/// be moved to make room, and merged, when their keys are gone.
///
/// # Guarantee
/// A key remembered within the window is always found: one for which moving makes no room is kept in
/// a stash. One last remembered more than `window + slack` ago is found with probability at most
/// [`Filter::fpr`](crate::Filter::fpr): `1 - (1 - 2^-f)^(2n/b)` for `n` keys in `b` buckets and
/// fingerprints of `f` bits. Should the stash be full too, keys are not remembered, and
/// [`AgedBuckets::overload`] counts them.
///
/// # Late arrivals
/// With [`Keeps::lateness`] an entry is kept for window and lateness, and an arrival compares its own moment
/// with those of its key's entries. As long as the lateness is no longer than the window, a key has one
/// entry, that of its newest sighting. Beyond that it has two for each block of two windows that it was seen
/// in, and an arrival looks in two blocks, which are four places. `docs/late.md` has the proof.
///
/// # Cost
/// Two cache lines a question, a third where a bucket lies across two; a key that is new moves others
/// at one arrival in two, when the table is as full as planned. `f + t` bits per slot, 95 % of them in use:
/// with a stamp of `t` bits a window has up to `8/9·2^t` grains (12 with 4 bits), so that
/// slack is bought with few bits and little else: keys stay a grain longer. `t = ceil(log2(9/8·n + 3))`
/// where every arrival counts. The sweep looks at two to four buckets an arrival.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Spec, Structure, Tick, Verdict, Window, WindowFilter};
/// let million = NonZeroU64::new(1_000_000).unwrap();
/// let spec = Spec::new(Window::Count(million)).structure(Structure::AgedBuckets);
/// let plan = spec.fpr(1e-3).slack(125_000).plan()?;
/// assert!(plan.bits_per_key() < 20.0);
/// let mut seen = plan.build();
/// let tag = seen.digester().digest(b"tag");
/// assert_eq!(seen.observe(tag, Tick(0)), Verdict::Fresh);
/// assert_eq!(seen.observe(tag, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// Ours. It joins what papers 2 and 4 have in common (a fingerprint and a stamp a key, see
/// [`CuckooWindow`](super::CuckooWindow) and [`DleftWindow`](super::DleftWindow)) with partial-key cuckoo hashing:
/// B. Fan, D. G. Andersen, M. Kaminsky, M. D. Mitzenmacher, "Cuckoo filter: practically better than
/// Bloom", CoNEXT 2014, doi:10.1145/2674005.2674994.
#[derive(Clone, Debug, PartialEq)]
pub struct AgedBuckets(Slotted<Buckets>);

impl AgedBuckets {
    /// An empty window of so many buckets of four slots, and fingerprints of so many bits (1 to 64).
    ///
    /// # Errors
    /// [`PlanError`] for sizes that cannot be, or that there is no memory for.
    pub fn new(keeps: Keeps, buckets: u64, fingerprint_bits: u32) -> Result<Self, PlanError> {
        keeps.check()?;
        let stamp_bits = keeps.pace().stamp_bits();
        if buckets == 0 || buckets > 1 << 50 || !(1..=64).contains(&fingerprint_bits) {
            return Err(PlanError::TooLarge(
                "aged buckets are 1 to 2^50 buckets and fingerprints of 1 to 64 bits",
            ));
        }
        let table = Buckets::new(buckets, fingerprint_bits, stamp_bits)?;
        Ok(Self(Slotted::new(keeps, table)))
    }

    pub(crate) fn bytes_for(keeps: &Keeps, buckets: u64, fingerprint_bits: u32) -> Option<usize> {
        Buckets::bytes_for(buckets, fingerprint_bits + keeps.pace().stamp_bits())
    }

    /// The window, and how it is kept.
    pub fn keeps(&self) -> &Keeps {
        &self.0.keeps
    }

    /// Buckets of four slots.
    pub fn buckets(&self) -> u64 {
        self.0.slots.buckets
    }

    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.slots.fingerprint_bits
    }

    /// Keys that found no slot and are kept outside the table.
    pub fn stashed(&self) -> u64 {
        self.0.stashed()
    }

    /// Keys that were not remembered, as neither table nor stash had room for them.
    pub fn overload(&self) -> Overload {
        self.0.overload()
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Slotted::read(input, Buckets::read).map(Self)
    }
}

impl Recipe for AgedBuckets {
    type Table = Self;
    /// Buckets, bits of a fingerprint.
    type Size = (Keeps, u64, u32);

    const WINDOWS: Windows = Windows::Any;
    const LATE: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        // The coarsest grain says how wide a stamp is, and so wide a stamp allows a finer one, which leaves
        // fewer expired keys in the table.
        let coarse = Keeps::coarsest(spec, capacity)?;
        let stamp_bits = coarse.pace().stamp_bits();
        let steps = Pace::most_steps(stamp_bits).max(1);
        let fine = coarse.in_steps(steps);
        let better = fine.grain < coarse.grain && fine.pace().stamp_bits() <= stamp_bits;
        let keeps = if better && fine.slack() <= spec.terms.slack { fine } else { coarse };
        let keys = keeps.full_at();
        // A few more, as chance fills small tables less evenly.
        let buckets = (libm::ceil(keys / (4.0 * LOAD)) as u64).saturating_add(1);
        let rate = |bits: &u32| paired_fpr(buckets, *bits, keys) <= fpr;
        Ok((keeps, buckets, (1..=64).find(rate).ok_or(TOO_LOW)?))
    }

    fn contract((keeps, ..): &Self::Size) -> Contract {
        keeps.contract()
    }

    fn memory(&(ref keeps, buckets, bits): &Self::Size) -> Option<u64> {
        Some(Self::bytes_for(keeps, buckets, bits)? as u64 + keeps.stash_memory())
    }

    fn cell_bits_and_hashes(&(ref keeps, _, bits): &Self::Size) -> (u32, u32) {
        (bits + keeps.pace().stamp_bits(), 2)
    }

    fn limit_stash((keeps, ..): &mut Self::Size, bytes: u64) {
        keeps.limit_stash(bytes);
    }

    fn build((keeps, buckets, bits): Self::Size) -> Result<Self, PlanError> {
        Self::new(keeps, buckets, bits)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

window_traits!(AgedBuckets);
