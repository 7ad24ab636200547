//! Buckets of four slots, of which a key has two.

use crate::bits::fields::Fields;
use crate::bits::pages::Pages;
use crate::codec::{Reader, Writer};
use crate::window::cycle::{Cycle, Sweep, View};
use crate::window::slots::core::{Keeps, Placed, Slots};
use crate::window::slots::paired::{Name, paired_fpr};
use crate::{Digest, PlanError, SnapshotError};
use core::ops::Range;

/// Slots a bucket: with fewer, fewer can be filled; with more, more fingerprints are compared.
const SLOTS: usize = 4;

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
pub(super) struct Buckets {
    bits: Fields,
    /// Where stamps may be other than 0.
    pages: Pages,
    pub(super) buckets: u64,
    pub(super) fingerprint_bits: u32,
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
    /// Empty.
    ///
    /// # Errors
    /// [`PlanError`] where there is no memory for so many buckets.
    pub(super) fn new(
        buckets: u64,
        fingerprint_bits: u32,
        stamp_bits: u32,
    ) -> Result<Self, PlanError> {
        let slot_bits = fingerprint_bits + stamp_bits;
        let bits = Fields::new(bits_for(buckets, slot_bits))?;
        let pages = Pages::new(buckets, SLOTS as u32 * slot_bits)?;
        Ok(Self { bits, pages, buckets, fingerprint_bits, stamp_bits, occupied: 0 })
    }

    /// Bytes of so many, or `None` where that is beyond any memory.
    pub(super) fn bytes_for(buckets: u64, slot_bits: u32) -> Option<usize> {
        let pages = usize::try_from(Pages::bytes_for(buckets, SLOTS as u32 * slot_bits)).ok()?;
        Fields::bytes_for(bits_for(buckets, slot_bits))?.checked_add(pages)
    }

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
        let (mut youngest, view) = (None, self.view(bucket, cycle));
        for (at, (same, stamp)) in same.into_iter().zip(stamps).enumerate() {
            let age = view.age(stamp);
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
        let [a, b, c, d] = self.view(bucket, cycle).are_live(stamps).map(usize::from);
        let at = a + (a & b) + (a & b & c);
        let is_empty = stamps[at.min(3)] == 0;
        Room { live: a + b + c + d, slot: Slot { bucket, at }, is_empty }
    }

    #[inline]
    fn clear_expired_in(&mut self, bucket: u64, view: View) {
        let stamps = self.bits.four(self.stamps(bucket), self.stamp_bits);
        let live = view.are_live(stamps);
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
                self.settle_page(bucket, cycle);
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

    pub(super) fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
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

impl Sweep for Buckets {
    const CELLS: u64 = SLOTS as u64;

    #[inline(always)]
    fn pages(&self) -> Option<&Pages> {
        Some(&self.pages)
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        Some(&mut self.pages)
    }

    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        // Whole buckets: a slot too many is looked at sooner, which does no harm.
        let buckets = range.start / SLOTS as u64..range.end.div_ceil(SLOTS as u64);
        let mut at = buckets.start;
        while let Some(run) = self.pages.next_run(at..buckets.end) {
            at = run.end;
            let view = cycle.view_of(self.pages.age(run.start));
            run.for_each(|bucket| self.clear_expired_in(bucket, view));
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

    fn settle_places(&mut self, digest: Digest, cycle: &Cycle) {
        let name = self.name(digest);
        for bucket in [name.place, self.other(name)] {
            self.settle_page(bucket, cycle);
        }
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
            let view = self.view(bucket, cycle);
            for at in 0..SLOTS {
                let slot = Slot { bucket, at };
                let stamp = self.stamp(slot);
                if view.is_live(stamp) {
                    let fingerprint = self.fingerprint(slot);
                    let name = Name { place: bucket, fingerprint };
                    each(name.id(self.buckets), view.age(stamp));
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
            let view = self.view(bucket, cycle);
            for (at, (fingerprint, stamp)) in found.into_iter().zip(stamps).enumerate() {
                if fingerprint == name.fingerprint && view.is_live(stamp) {
                    each(Slot { bucket, at }, view.age(stamp));
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
