//! The aged table: a fingerprint and a stamp a key, in small buckets that are nearly full.

use crate::bits::fields::Fields;
use crate::bits::pages::Pages;
use crate::codec::{Reader, Writer};
use crate::plan::formulas::TOO_LOW;
use crate::table::{Contract, Recipe, Windows};
use crate::window::cycle::{Cycle, Pace};
use crate::window::slots::core::{Keeps, Placed, Slots, Slotted};
use crate::window::slots::paired::{Name, paired_fpr};
use crate::window::traits::window_traits;
use crate::{Digest, Overload, PlanError, SnapshotError, Spec};
use core::ops::Range;

/// Slots a bucket: with fewer, fewer can be filled; with more, more fingerprints are compared.
const SLOTS: usize = 4;

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
        let bits = Fields::new(bits_for(buckets, fingerprint_bits + stamp_bits))?;
        let pages = Pages::new(buckets, SLOTS as u32 * (fingerprint_bits + stamp_bits))?;
        let table = Buckets { bits, pages, buckets, fingerprint_bits, stamp_bits, occupied: 0 };
        Ok(Self(Slotted::new(keeps, table)))
    }

    pub(crate) fn bytes_for(keeps: &Keeps, buckets: u64, fingerprint_bits: u32) -> Option<usize> {
        let slot_bits = fingerprint_bits + keeps.pace().stamp_bits();
        let pages = usize::try_from(Pages::bytes_for(buckets, SLOTS as u32 * slot_bits)).ok()?;
        Fields::bytes_for(bits_for(buckets, slot_bits))?.checked_add(pages)
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

fn bits_for(buckets: u64, slot_bits: u32) -> u128 {
    u128::from(buckets) * SLOTS as u128 * u128::from(slot_bits)
}

/// The bit at which a bucket begins.
#[inline(always)]
fn first_bit(bucket: u64, slot_bits: u32) -> u64 {
    bucket * (SLOTS as u64 * u64::from(slot_bits))
}

/// Four fingerprints, then four stamps (0: empty) in each bucket.
#[derive(Clone, Debug, PartialEq)]
struct Buckets {
    bits: Fields,
    /// Where stamps may be other than 0.
    pages: Pages,
    buckets: u64,
    fingerprint_bits: u32,
    stamp_bits: u32,
    /// Slots whose stamp is not 0.
    occupied: u64,
}

/// Bytes of a table that is hardly ever in the cache.
const LARGE: usize = 4 << 20;

/// One of a bucket's slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    bucket: u64,
    at: usize,
}

/// What a bucket has to offer.
#[derive(Clone, Copy)]
struct Room {
    /// Live entries.
    live: usize,
    /// The first slot that is empty or has expired; none if all are live.
    slot: Slot,
    is_empty: bool,
}

/// Buckets that an insertion looks at for room, at first and at most. Most find it soon, and the list
/// of what has been looked at takes time to lay out.
const FEW_LOOKS: usize = 24;
const LOOKS: usize = 512;

/// A bucket on the way to room: its entry `slot` of bucket `from` in the list would move here.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u64,
    from: u16,
    slot: u8,
}

impl Buckets {
    #[inline(always)]
    fn name(&self, digest: Digest) -> Name {
        Name::of(digest, self.buckets, self.fingerprint_bits)
    }

    /// The other bucket of an entry.
    #[inline(always)]
    fn other(&self, name: Name) -> u64 {
        name.other(self.buckets)
    }

    /// The bit at which a bucket's fingerprints begin.
    #[inline(always)]
    fn fingerprints(&self, bucket: u64) -> u64 {
        first_bit(bucket, self.fingerprint_bits + self.stamp_bits)
    }

    /// The bit at which a bucket's stamps begin.
    #[inline(always)]
    fn stamps(&self, bucket: u64) -> u64 {
        self.fingerprints(bucket) + SLOTS as u64 * u64::from(self.fingerprint_bits)
    }

    #[inline(always)]
    fn fingerprint(&self, slot: Slot) -> u64 {
        let from =
            self.fingerprints(slot.bucket) + slot.at as u64 * u64::from(self.fingerprint_bits);
        self.bits.get(from, self.fingerprint_bits)
    }

    #[inline(always)]
    fn stamp(&self, slot: Slot) -> u64 {
        let from = self.stamps(slot.bucket) + slot.at as u64 * u64::from(self.stamp_bits);
        self.bits.get(from, self.stamp_bits)
    }

    #[inline(always)]
    fn set_stamp(&mut self, slot: Slot, stamp: u64) {
        let from = self.stamps(slot.bucket) + slot.at as u64 * u64::from(self.stamp_bits);
        self.bits.set(from, self.stamp_bits, stamp);
        self.pages.mark(slot.bucket);
    }

    #[inline(always)]
    fn set(&mut self, slot: Slot, fingerprint: u64, stamp: u64) {
        let from =
            self.fingerprints(slot.bucket) + slot.at as u64 * u64::from(self.fingerprint_bits);
        self.bits.set(from, self.fingerprint_bits, fingerprint);
        self.set_stamp(slot, stamp);
    }

    /// The youngest entry of a bucket with this fingerprint, and its age.
    #[inline(always)]
    fn find_in(&self, name: Name, cycle: &Cycle) -> Option<(Slot, u64)> {
        let bucket = name.place;
        let found = self.bits.four(self.fingerprints(bucket), self.fingerprint_bits);
        let same = found.map(|fingerprint| fingerprint == name.fingerprint);
        // Most buckets have none: one branch for all four.
        if !(same[0] | same[1] | same[2] | same[3]) {
            return None;
        }
        let stamps = self.bits.four(self.stamps(bucket), self.stamp_bits);
        let mut youngest = None;
        for (at, (same, stamp)) in same.into_iter().zip(stamps).enumerate() {
            let age = cycle.age(stamp);
            if same && stamp != 0 && youngest.is_none_or(|(_, least)| age < least) {
                youngest = Some((Slot { bucket, at }, age));
            }
        }
        youngest
    }

    #[inline(always)]
    fn find_name(&self, name: Name, cycle: &Cycle) -> Option<(Slot, u64)> {
        let home = self.find_in(name, cycle);
        let other = self.find_in(Name { place: self.other(name), ..name }, cycle);
        match (home, other) {
            (Some((_, a)), Some((_, b))) if b < a => other,
            (None, _) => other,
            _ => home,
        }
    }

    /// How full a bucket is, and which of its slots is empty or has expired.
    #[inline(always)]
    fn room_in(&self, bucket: u64, cycle: &Cycle) -> Room {
        let stamps = self.bits.four(self.stamps(bucket), self.stamp_bits);
        let [a, b, c, d] = cycle.are_live(stamps).map(usize::from);
        let at = a + (a & b) + (a & b & c);
        let is_empty = stamps[at.min(3)] == 0;
        Room { live: a + b + c + d, slot: Slot { bucket, at }, is_empty }
    }

    #[inline]
    fn clear_expired_in(&mut self, bucket: u64, cycle: &Cycle) {
        let stamps = self.bits.four(self.stamps(bucket), self.stamp_bits);
        let live = cycle.are_live(stamps);
        for (at, (stamp, live)) in stamps.into_iter().zip(live).enumerate() {
            if stamp != 0 && !live {
                // The fingerprint may stay: without a stamp it says nothing.
                self.set_stamp(Slot { bucket, at }, 0);
                self.occupied -= 1;
            }
        }
    }

    fn put(&mut self, room: Room, fingerprint: u64, stamp: u64) -> Placed {
        self.set(room.slot, fingerprint, stamp);
        self.occupied += u64::from(room.is_empty);
        if room.is_empty { Placed::New } else { Placed::Instead }
    }

    /// Into the emptier of its buckets.
    #[inline(always)]
    fn insert_name(&mut self, name: Name, stamp: u64, cycle: &Cycle) -> Placed {
        let home = self.room_in(name.place, cycle);
        let other = self.room_in(self.other(name), cycle);
        let room = if other.live < home.live { other } else { home };
        if room.live < SLOTS {
            self.put(room, name.fingerprint, stamp)
        } else {
            self.make_room::<FEW_LOOKS>(name, stamp, cycle)
                .or_else(|| self.make_room::<LOOKS>(name, stamp, cycle))
                .unwrap_or(Placed::Nowhere)
        }
    }

    /// Moves entries to their other buckets, as few as lead to room: buckets are looked at in the
    /// order of how many moves they are away.
    #[inline(never)]
    fn make_room<const LOOKS: usize>(
        &mut self,
        name: Name,
        stamp: u64,
        cycle: &Cycle,
    ) -> Option<Placed> {
        let mut steps = [Step::default(); LOOKS];
        steps[0].bucket = name.place;
        steps[1].bucket = self.other(name);
        let mut known = 2;
        for from in 0..LOOKS {
            if from == known {
                break;
            }
            let bucket = steps[from].bucket;
            let entries = self.bits.four(self.fingerprints(bucket), self.fingerprint_bits);
            for (at, fingerprint) in entries.into_iter().enumerate() {
                let bucket = self.other(Name { place: bucket, fingerprint });
                let room = self.room_in(bucket, cycle);
                if room.live < SLOTS {
                    return Some(self.move_along(&steps, (from, at), room, name, stamp));
                }
                if known < LOOKS {
                    steps[known] = Step { bucket, from: from as u16, slot: at as u8 };
                    known += 1;
                }
            }
        }
        None
    }

    /// Moves the last entry of a way into the room at its end, the one before into its place, and so
    /// on, and puts the key where the first was. Should a way meet itself, an entry moves twice.
    fn move_along(
        &mut self,
        steps: &[Step],
        last: (usize, usize),
        room: Room,
        name: Name,
        stamp: u64,
    ) -> Placed {
        let (mut from, mut at) = last;
        let placed = if room.is_empty { Placed::New } else { Placed::Instead };
        self.occupied += u64::from(room.is_empty);
        let mut to = room.slot;
        loop {
            let slot = Slot { bucket: steps[from].bucket, at };
            self.set(to, self.fingerprint(slot), self.stamp(slot));
            to = slot;
            if from < 2 {
                break;
            }
            (from, at) = (usize::from(steps[from].from), usize::from(steps[from].slot));
        }
        self.set(to, name.fingerprint, stamp);
        placed
    }

    fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (buckets, fingerprint_bits) = (input.u64()?, input.u32()?);
        if buckets == 0 || buckets > 1 << 50 || !(1..=64).contains(&fingerprint_bits) {
            return Err(SnapshotError::Invalid("an aged table of an impossible size"));
        }
        let stamp_bits = keeps.pace().stamp_bits();
        let len = bits_for(buckets, fingerprint_bits + stamp_bits);
        let bytes = input.bytes(Fields::bytes_for(len))?;
        let bits = Fields::from_bytes(bytes, len)
            .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
        let pages = Pages::new(buckets, SLOTS as u32 * (fingerprint_bits + stamp_bits))
            .map_err(|_| SnapshotError::Invalid("a table larger than any memory"))?;
        let mut table = Self { bits, pages, buckets, fingerprint_bits, stamp_bits, occupied: 0 };
        for bucket in 0..buckets {
            let stamps = table.bits.four(table.stamps(bucket), stamp_bits);
            let in_use = stamps.into_iter().filter(|&stamp| stamp != 0).count() as u64;
            if in_use > 0 {
                table.pages.mark(bucket);
                table.occupied += in_use;
            }
        }
        Ok(table)
    }
}

impl Slots for Buckets {
    type Place = Slot;

    /// What has expired is as good as free.
    const ROUNDS: u64 = 1;

    fn cells(&self) -> u64 {
        self.buckets * SLOTS as u64
    }

    fn occupied(&self) -> u64 {
        self.occupied
    }

    #[inline(always)]
    fn find(&self, digest: Digest, cycle: &Cycle) -> Option<(Slot, u64)> {
        self.find_name(self.name(digest), cycle)
    }

    #[inline(always)]
    fn renew(&mut self, slot: Slot, cycle: &Cycle) {
        self.set_stamp(slot, cycle.stamp());
    }

    #[inline(always)]
    fn insert(&mut self, digest: Digest, cycle: &Cycle) -> Placed {
        self.insert_name(self.name(digest), cycle.stamp(), cycle)
    }

    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128> {
        core::iter::once(self.name(digest).id(self.buckets))
    }

    fn is_name(&self, id: u128) -> bool {
        let name = Name::from_id(id);
        let beyond = name.fingerprint.checked_shr(self.fingerprint_bits).unwrap_or(0);
        name.place < self.buckets && beyond == 0
    }

    fn for_each(&self, cycle: &Cycle, mut each: impl FnMut(u128, u64)) {
        for bucket in 0..self.buckets {
            for at in 0..SLOTS {
                let slot = Slot { bucket, at };
                let stamp = self.stamp(slot);
                if cycle.is_live(stamp) {
                    let fingerprint = self.fingerprint(slot);
                    let name = Name { place: bucket, fingerprint };
                    each(name.id(self.buckets), cycle.age(stamp));
                }
            }
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.buckets, self.fingerprint_bits) == (other.buckets, other.fingerprint_bits)
    }

    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let name = Name::from_id(id);
        match self.find_name(name, cycle) {
            Some((slot, ours)) => {
                self.set_stamp(slot, cycle.stamp_of(age.min(ours)));
                Placed::Instead
            }
            None => self.insert_name(name, cycle.stamp_of(age), cycle),
        }
    }

    fn each(&self, id: u128, cycle: &Cycle, mut each: impl FnMut(Slot, u64)) {
        let name = Name::from_id(id);
        for bucket in [name.place, self.other(name)] {
            let found = self.bits.four(self.fingerprints(bucket), self.fingerprint_bits);
            let stamps = self.bits.four(self.stamps(bucket), self.stamp_bits);
            for (at, (fingerprint, stamp)) in found.into_iter().zip(stamps).enumerate() {
                if fingerprint == name.fingerprint && cycle.is_live(stamp) {
                    each(Slot { bucket, at }, cycle.age(stamp));
                }
            }
        }
    }

    fn set_age(&mut self, slot: Slot, age: u64, cycle: &Cycle) {
        self.set_stamp(slot, cycle.stamp_of(age));
    }

    fn insert_aged(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let name = Name::from_id_at_random(id, self.buckets);
        self.insert_name(name, cycle.stamp_of(age), cycle)
    }

    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        // Whole buckets: a slot too many is looked at sooner, which does no harm.
        let buckets = range.start / SLOTS as u64..range.end.div_ceil(SLOTS as u64);
        let mut at = buckets.start;
        while let Some(run) = self.pages.next_run(at..buckets.end) {
            at = run.end;
            run.for_each(|bucket| self.clear_expired_in(bucket, cycle));
        }
        let Self { bits, pages, fingerprint_bits, stamp_bits, .. } = self;
        let fingerprints = SLOTS as u64 * u64::from(*fingerprint_bits);
        let stamps = |bucket| first_bit(bucket, *fingerprint_bits + *stamp_bits) + fingerprints;
        pages.tidy(buckets, self.buckets, |mut run| {
            run.all(|bucket| bits.four(stamps(bucket), *stamp_bits) == [0; SLOTS])
        });
    }

    fn clear(&mut self) {
        let (bits, slot_bits) = (&mut self.bits, self.fingerprint_bits + self.stamp_bits);
        self.pages.drain(self.buckets, |run| {
            bits.clear_bytes_with(first_bit(run.start, slot_bits)..first_bit(run.end, slot_bits));
        });
        self.occupied = 0;
    }

    #[inline(always)]
    fn prefetch(&self, digest: Digest) {
        let name = self.name(digest);
        self.bits.prefetch(self.fingerprints(name.place));
        self.bits.prefetch(self.fingerprints(self.other(name)));
    }

    /// Where both buckets are full: the other buckets of all eight entries.
    #[inline(always)]
    fn prefetch_more(&self, digest: Digest, cycle: &Cycle) {
        // In a table that lies in the cache it would only cost time.
        if self.bits.memory() < LARGE {
            return;
        }
        let name = self.name(digest);
        let buckets = [name.place, self.other(name)];
        if buckets.iter().any(|&bucket| self.room_in(bucket, cycle).live < SLOTS) {
            return;
        }
        for bucket in buckets {
            for fingerprint in self.bits.four(self.fingerprints(bucket), self.fingerprint_bits) {
                let other = self.other(Name { place: bucket, fingerprint });
                self.bits.prefetch(self.stamps(other));
            }
        }
    }

    fn fpr(&self, keys: f64) -> f64 {
        paired_fpr(self.buckets, self.fingerprint_bits, keys)
    }

    fn memory(&self) -> usize {
        self.bits.memory() + self.pages.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.buckets);
        out.u32(self.fingerprint_bits);
        out.bytes(self.bits.bytes());
    }
}
