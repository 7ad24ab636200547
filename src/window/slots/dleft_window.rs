//! The d-left window of Wang et al.: four tables of buckets of eight slots.

use crate::bits::packed::Packed;
use crate::bits::pages::Pages;
use crate::bits::swept::Swept;
use crate::codec::{Reader, Writer};
use crate::plan::formulas::TOO_LOW;
use crate::table::{Contract, Recipe, Windows};
use crate::window::cycle::{Cycle, Sweep};
use crate::window::slots::core::{Keeps, Placed, Slots, Slotted};
use crate::window::traits::window_traits;
use crate::{Digest, Overload, PlanError, SnapshotError, Spec};
use core::ops::Range;

/// Tables, each with a bucket for every key.
const TABLES: u64 = 4;

/// Slots a bucket.
const SLOTS: u64 = 8;

/// Planned keys a bucket and table: `4·8` slots for 24 keys, so that they are three quarters full.
pub(crate) const KEYS_A_BUCKET: u64 = 24;

/// A hash table of fingerprints and stamps: a key goes into the least loaded of its four buckets.
///
/// A key is a duplicate when a live slot of one of its four buckets has its fingerprint. Of keys
/// that are whole numbers, intervals are asked for with a [`KeyByKey`](crate::range::KeyByKey).
///
/// # Guarantee
/// A key remembered within the window is always found: one whose 32 slots are all taken is kept in
/// a stash. One last remembered more than `window + slack` ago is found with probability at most
/// [`Filter::fpr`](crate::Filter::fpr): `1 - (1 - 2^-f)^(n/b)` for `n` keys, `b` buckets a table and fingerprints of `f`
/// bits. Should the stash be full too, keys are not remembered, and [`DleftWindow::overload`]
/// counts them.
///
/// # Cost
/// Four buckets an operation, of 8 slots of `f + t` bits: one or two cache lines each. `4/3` slots a
/// key when `b = n/24`. `t = ceil(log2(9/8·n + 3))` bits for a stamp of the last `n` arrivals,
/// `ceil(log2(5/4·steps + 3))` for time in `steps` grains. The sweep looks at some 11 slots an arrival.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Digester, LastSeen, Tick, Verdict, Window, WindowFilter};
/// use lately::window::{DleftWindow, Keeps};
/// let last_thousand = Window::Count(NonZeroU64::new(1_000).unwrap());
/// let mut seen = DleftWindow::new(Keeps::exactly(last_thousand), 42, 20)?;
/// let tag = Digester::new(0).digest(b"tag");
/// assert_eq!(seen.observe(tag, Tick(1)), Verdict::Fresh);
/// assert_eq!(seen.observe(tag, Tick(2)), Verdict::Duplicate);
/// assert!(seen.last_seen(tag, Tick(3)).is_some_and(|seen| seen.to == Tick(2)));
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// X. Wang, Z. Liu, Y. Gao, X. Zheng, X. Chen, C. Wu, "Near-optimal data structure for approximate
/// range emptiness problem in information-centric Internet of Things", IEEE Access 7, 2019,
/// section IV, doi:10.1109/ACCESS.2019.2897154; after B. Vöcking, "How asymmetry helps load
/// balancing", FOCS 1999.
///
/// # Differs from the paper
/// - A key whose 32 slots are taken is stashed; the paper omits it, and so loses it.
/// - Stamps are cyclic and a few slots are swept at each arrival. The paper subtracts `n` from every
///   stamp at every `n`-th arrival, all at once; done bit by bit with the paper's stamps that is wrong.
/// - A slot is free when its stamp is more than the window ago. The paper's rule is wrong at every
///   `n`-th arrival, before the subtraction.
/// - Fingerprints are of `log2(24/ε)` bits; the paper's formula for their range is misprinted.
/// - Windows of time too, and duplicates may be left out of the renewal.
#[derive(Clone, Debug, PartialEq)]
pub struct DleftWindow(Slotted<Buckets>);

impl DleftWindow {
    /// An empty window of four tables of `buckets` buckets each, and fingerprints of so many bits
    /// (1 to 64).
    ///
    /// # Errors
    /// [`PlanError`] for sizes that cannot be, or that there is no memory for.
    pub fn new(keeps: Keeps, buckets: u64, fingerprint_bits: u32) -> Result<Self, PlanError> {
        keeps.check_in_order("dleft-window")?;
        let stamp_bits = keeps.pace().stamp_bits();
        if buckets == 0 || buckets > 1 << 50 || !(1..=64).contains(&fingerprint_bits) {
            return Err(PlanError::TooLarge(
                "a d-left window has 1 to 2^50 buckets a table and fingerprints of 1 to 64 bits",
            ));
        }
        let slots = Swept::new(buckets * TABLES * SLOTS, fingerprint_bits + stamp_bits)?;
        Ok(Self(Slotted::new(
            keeps,
            Buckets { slots, buckets, fingerprint_bits, stamp_bits, occupied: 0 },
        )))
    }

    pub(crate) fn bytes_for(keeps: &Keeps, buckets: u64, fingerprint_bits: u32) -> Option<u64> {
        let slots = buckets.checked_mul(TABLES * SLOTS)?;
        Swept::bytes_for(slots, fingerprint_bits + keeps.pace().stamp_bits())
    }

    /// Buckets in each of the four tables.
    pub fn buckets(&self) -> u64 {
        self.0.slots.buckets
    }

    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.slots.fingerprint_bits
    }

    /// The window, and how it is kept.
    pub fn keeps(&self) -> &Keeps {
        &self.0.keeps
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

impl Recipe for DleftWindow {
    type Table = Self;
    /// Buckets of each table, bits of a fingerprint.
    type Size = (Keeps, u64, u32);

    const WINDOWS: Windows = Windows::Any;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        let keeps = Keeps::of(spec, capacity)?;
        let keys = keeps.full_at();
        let buckets = libm::ceil(keys / KEYS_A_BUCKET as f64) as u64;
        let rate = |bits: &u32| dleft_fpr(buckets, *bits, keys) <= fpr;
        Ok((keeps, buckets, (1..=64).find(rate).ok_or(TOO_LOW)?))
    }

    fn contract((keeps, ..): &Self::Size) -> Contract {
        keeps.contract()
    }

    fn memory(&(ref keeps, buckets, bits): &Self::Size) -> Option<u64> {
        Some(Self::bytes_for(keeps, buckets, bits)? + keeps.stash_memory())
    }

    fn cell_bits_and_hashes(&(ref keeps, _, bits): &Self::Size) -> (u32, u32) {
        (bits + keeps.pace().stamp_bits(), TABLES as u32)
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

window_traits!(DleftWindow);

/// The chance that a key is found among so many others.
pub(crate) fn dleft_fpr(buckets: u64, fingerprint_bits: u32, keys: f64) -> f64 {
    let same = libm::exp2(-f64::from(fingerprint_bits));
    -libm::expm1(keys / buckets as f64 * libm::log1p(-same))
}

/// A fingerprint, then a stamp (0: empty) in each slot.
#[derive(Clone, Debug, PartialEq)]
struct Buckets {
    slots: Swept,
    /// Buckets a table.
    buckets: u64,
    fingerprint_bits: u32,
    stamp_bits: u32,
    /// Slots whose stamp is not 0.
    occupied: u64,
}

/// The name of an entry: its bucket, then its fingerprint.
fn id_of(bucket: u64, fingerprint: u64) -> u128 {
    u128::from(bucket) << 64 | u128::from(fingerprint)
}

impl Buckets {
    /// The key's bucket in each table, counted through all tables.
    #[inline]
    fn buckets(&self, digest: Digest) -> impl Iterator<Item = u64> + use<> {
        let buckets = self.buckets;
        digest.probes(buckets).zip(0..TABLES).map(move |(at, table)| table * buckets + at)
    }

    /// The low half's high bits. Buckets follow from both halves, but the high one alone makes
    /// them independent of these.
    #[inline]
    fn fingerprint(&self, digest: Digest) -> u64 {
        digest.lo() >> (64 - self.fingerprint_bits)
    }

    #[inline]
    fn set_stamp(&mut self, slot: u64, stamp: u64) {
        self.slots.set_bits(slot, self.fingerprint_bits, self.stamp_bits, stamp);
    }

    fn stamp(&self, slot: u64) -> u64 {
        self.slots.bits(slot, self.fingerprint_bits, self.stamp_bits)
    }

    #[inline]
    fn fingerprint_in(&self, slot: u64) -> u64 {
        self.slots.bits(slot, 0, self.fingerprint_bits)
    }

    fn set(&mut self, slot: u64, fingerprint: u64, stamp: u64) {
        self.slots.set_bits(slot, 0, self.fingerprint_bits, fingerprint);
        self.slots.set_bits(slot, self.fingerprint_bits, self.stamp_bits, stamp);
    }

    /// Live entries of a bucket, and its first slot that is free or has expired.
    #[inline]
    fn load(&self, bucket: u64, cycle: &Cycle) -> (u64, Option<u64>) {
        let (mut live, mut free) = (0, None);
        for slot in slots_of(bucket).rev() {
            if cycle.view().is_live(self.stamp(slot)) {
                live += 1;
            } else {
                free = Some(slot);
            }
        }
        (live, free)
    }

    fn put(&mut self, slot: u64, fingerprint: u64, stamp: u64) -> Placed {
        let was_empty = self.stamp(slot) == 0;
        self.set(slot, fingerprint, stamp);
        self.occupied += u64::from(was_empty);
        if was_empty { Placed::New } else { Placed::Instead }
    }

    fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (buckets, fingerprint_bits) = (input.u64()?, input.u32()?);
        if buckets == 0 || buckets > 1 << 50 || !(1..=64).contains(&fingerprint_bits) {
            return Err(SnapshotError::Invalid("a d-left window of an impossible size"));
        }
        let stamp_bits = keeps.pace().stamp_bits();
        let len = buckets * TABLES * SLOTS;
        let words = input.words(Packed::words_for(len, fingerprint_bits + stamp_bits))?;
        let slots = Swept::from_words(words, len, fingerprint_bits + stamp_bits)
            .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
        let mut buckets = Self { slots, buckets, fingerprint_bits, stamp_bits, occupied: 0 };
        buckets.occupied = (0..len).filter(|&slot| buckets.stamp(slot) != 0).count() as u64;
        Ok(buckets)
    }
}

/// The slots of a bucket.
#[inline]
fn slots_of(bucket: u64) -> Range<u64> {
    bucket * SLOTS..(bucket + 1) * SLOTS
}

impl Sweep for Buckets {
    #[inline(always)]
    fn pages(&self) -> Option<&Pages> {
        Some(self.slots.pages())
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        Some(self.slots.pages_mut())
    }

    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        let mut at = range.start;
        while let Some(run) = self.slots.next_run(at..range.end) {
            at = run.end;
            let view = cycle.view_of(self.slots.pages().age(run.start));
            if view.is_past() {
                self.occupied -= run.clone().filter(|&slot| self.stamp(slot) != 0).count() as u64;
                self.slots.clear_cells(run);
                continue;
            }
            for slot in run {
                let stamp = self.stamp(slot);
                if stamp != 0 && !view.is_live(stamp) {
                    self.set(slot, 0, 0);
                    self.occupied -= 1;
                }
            }
        }
        self.slots.tidy(range);
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.occupied = 0;
    }
}

impl Slots for Buckets {
    type Place = u64;

    /// What has expired is as good as free.
    const ROUNDS: u64 = 1;

    fn cells(&self) -> u64 {
        self.slots.len()
    }

    fn occupied(&self) -> u64 {
        self.occupied
    }

    #[inline]
    fn find(&self, digest: Digest, cycle: &Cycle) -> Option<(u64, u64)> {
        let fingerprint = self.fingerprint(digest);
        let mut youngest: Option<(u64, u64)> = None;
        for slot in self.buckets(digest).flat_map(slots_of) {
            if self.fingerprint_in(slot) == fingerprint {
                let stamp = self.stamp(slot);
                let age = self.view(slot, cycle).age(stamp);
                if stamp != 0 && youngest.is_none_or(|(_, least)| age < least) {
                    youngest = Some((slot, age));
                }
            }
        }
        youngest
    }

    fn settle_places(&mut self, digest: Digest, cycle: &Cycle) {
        for bucket in self.buckets(digest) {
            // It may lie across two pages.
            self.settle_page(bucket * SLOTS, cycle);
            self.settle_page(bucket * SLOTS + SLOTS - 1, cycle);
        }
    }

    #[inline]
    fn renew(&mut self, slot: u64, cycle: &Cycle) {
        self.set_stamp(slot, cycle.stamp());
    }

    /// Into the least loaded bucket, the leftmost on a tie.
    fn insert(&mut self, digest: Digest, cycle: &Cycle) -> Placed {
        let loads = self.buckets(digest).map(|bucket| self.load(bucket, cycle));
        let least = loads.min_by_key(|&(live, _)| live);
        match least.and_then(|(_, free)| free) {
            Some(slot) => self.put(slot, self.fingerprint(digest), cycle.stamp()),
            None => Placed::Nowhere,
        }
    }

    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128> {
        let fingerprint = self.fingerprint(digest);
        self.buckets(digest).map(move |bucket| id_of(bucket, fingerprint))
    }

    fn is_name(&self, id: u128) -> bool {
        let (bucket, fingerprint) = ((id >> 64) as u64, id as u64);
        let beyond = fingerprint.checked_shr(self.fingerprint_bits).unwrap_or(0);
        bucket < self.buckets * TABLES && beyond == 0
    }

    fn for_each(&self, cycle: &Cycle, mut each: impl FnMut(u128, u64)) {
        for slot in 0..self.slots.len() {
            let (stamp, view) = (self.stamp(slot), self.view(slot, cycle));
            if view.is_live(stamp) {
                each(id_of(slot / SLOTS, self.fingerprint_in(slot)), view.age(stamp));
            }
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.buckets, self.fingerprint_bits) == (other.buckets, other.fingerprint_bits)
    }

    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let (bucket, fingerprint) = ((id >> 64) as u64, id as u64);
        let same = |slot: &u64| {
            cycle.view().is_live(self.stamp(*slot)) && self.fingerprint_in(*slot) == fingerprint
        };
        match slots_of(bucket).find(same) {
            Some(slot) => {
                let younger = age.min(cycle.view().age(self.stamp(slot)));
                self.set_stamp(slot, cycle.stamp_of(younger));
                Placed::Instead
            }
            None => match self.load(bucket, cycle).1 {
                Some(slot) => self.put(slot, fingerprint, cycle.stamp_of(age)),
                None => Placed::Nowhere,
            },
        }
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        for bucket in self.buckets(digest) {
            self.slots.prefetch(bucket * SLOTS);
            self.slots.prefetch(bucket * SLOTS + SLOTS - 1);
        }
    }

    fn fpr(&self, keys: f64) -> f64 {
        dleft_fpr(self.buckets, self.fingerprint_bits, keys)
    }

    fn memory(&self) -> usize {
        self.slots.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.buckets);
        out.u32(self.fingerprint_bits);
        out.words(self.slots.words());
    }
}
