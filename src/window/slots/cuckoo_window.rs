//! The cuckoo window of Liu, Chen & Guan: two tables, moves without keys.

mod blocks;

use self::blocks::{Blocks, Entry, Position};
use crate::bits::pages::Pages;
use crate::codec::{Reader, Writer};
use crate::table::{Contract, Recipe, Windows};
use crate::window::cycle::{Cycle, Sweep};
use crate::window::slots::core::{Keeps, Placed, Slots, Slotted};
use crate::window::traits::window_traits;
use crate::{Digest, Overload, PlanError, SnapshotError, Spec};
use core::ops::Range;

/// The size of a [`CuckooWindow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooSize {
    /// Positions in each of the two tables, `ℓ`. Twice the keys make insertion fast; below 1.1 times
    /// the keys the stash fills.
    pub positions: u64,
    /// Bits of a signature, `s`: 0 to 64.
    pub signature_bits: u32,
    /// Entries that a block of 64 positions has room for, 1 to 64.
    pub entries_a_block: u32,
}

impl CuckooSize {
    /// As in the paper, with `2n` positions a table for `n` keys, and room in the blocks as measured.
    pub(crate) fn for_keys(keys: f64, fpr: f64) -> Self {
        // Whole blocks, as a part of one would have to be as large.
        let positions = (libm::ceil(2.0 * keys / 64.0) as u64).clamp(1, 1 << 50) * 64;
        let needed = libm::log2(keys / (positions as f64 * positions as f64 * fpr));
        let signature_bits = libm::ceil(needed).clamp(0.0, 64.0) as u32;
        Self { positions, signature_bits, entries_a_block: ENTRIES_A_BLOCK }
    }

    /// Bits of an entry.
    pub(crate) fn entry_bits(&self, keeps: &Keeps) -> u32 {
        keeps.pace().stamp_bits() + self.signature_bits + partner_bits(self.positions)
    }

    fn check(&self, keeps: &Keeps) -> Result<(), PlanError> {
        let simple = (1..=1 << 50).contains(&self.positions)
            && self.signature_bits <= 64
            && (1..=64).contains(&self.entries_a_block);
        let fits = simple && {
            let named = 2 * partner_bits(self.positions) + self.signature_bits;
            // The stash has both positions and the signature.
            self.entry_bits(keeps) <= 128 && named <= 128
        };
        fits.then_some(()).ok_or(PlanError::TooLarge(
            "a cuckoo window has 1 to 2^50 positions a table, 1 to 64 entries in 64 of them, and entries of at most 128 bits",
        ))
    }
}

/// With a quarter of all positions in use a block of 64 holds 16 live entries on average, and the
/// emptier of two blocks takes the next. Measured with a million keys: with room for 22 some blocks are
/// full and keys are stashed, with 24 none.
const ENTRIES_A_BLOCK: u32 = 24;

/// Bits that name a position in the other table.
fn partner_bits(positions: u64) -> u32 {
    64 - (positions - 1).leading_zeros()
}

/// The most entries that an insertion moves: `O(log ℓ)`, as the paper says.
fn most_moves(positions: u64) -> usize {
    4 * partner_bits(positions) as usize + 8
}

/// A cuckoo hash table in which an entry knows its position in the other table, so that it can be
/// moved when its key is gone.
///
/// A key is a duplicate when one of its two positions, one in each table, holds an entry with its
/// signature and its other position, set within the window. Any smaller window can be asked for
/// ([`LastSeen::contains_within`](crate::LastSeen::contains_within)).
///
/// # Guarantee
/// A key remembered within the window is always found: one for which moving makes no room is kept in
/// a stash. One last remembered more than `window + slack` ago is found with probability at most
/// [`Filter::fpr`](crate::Filter::fpr): `n / (ℓ²·2^s)` for `n` keys. Should the stash be full too, keys are not
/// remembered, and [`CuckooWindow::overload`] counts them.
///
/// # Cost
/// Two positions a question, of two cache lines each; expected constant time for an insertion when
/// `ℓ = 2n`. An empty position costs one bit, an entry `t + s + log2(ℓ)`, and room is made for
/// `entries_a_block / 16` entries a key. Stamps have `t = ceil(log2(9/8·n + 3))` bits for the last `n`
/// arrivals, or for time in `n` grains. The sweep passes 16 to 32 positions an arrival.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Digester, LastSeen, Tick, Verdict, Window, WindowFilter};
/// use lately::window::{CuckooSize, CuckooWindow, Keeps};
/// let last_thousand = Window::Count(NonZeroU64::new(1_000).unwrap());
/// let size = CuckooSize { positions: 2_048, signature_bits: 8, entries_a_block: 24 };
/// let mut seen = CuckooWindow::new(Keeps::exactly(last_thousand), size)?;
/// let tag = Digester::new(0).digest(b"tag");
/// assert_eq!(seen.observe(tag, Tick(1)), Verdict::Fresh);
/// assert_eq!(seen.observe(tag, Tick(2)), Verdict::Duplicate);
/// assert!(seen.contains_within(tag, 10, Tick(12)));
/// assert!(!seen.contains_within(tag, 10, Tick(13)));
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// Y. Liu, W. Chen, Y. Guan, "Near-optimal approximate membership query over time-decaying windows",
/// IEEE INFOCOM 2013, sections IV and VI; after R. Pagh, F. F. Rodler, "Cuckoo hashing",
/// J. Algorithms 51, 2004.
///
/// # Differs from the paper
/// - The paper's variable-bit-length array is 64 positions a block: a bit each, then the entries
///   packed in order, with room for some of them. A position in a full block counts as taken.
/// - Where both positions are free the emptier block takes the key, so that blocks fill evenly.
/// - The list of keys without a position holds positions and signature instead of the key, is bounded,
///   and a key in it goes into the table when it is seen again and finds room.
/// - A full block drops what has expired in it before it is called full.
/// - Stamps need not reach to `2n`: the sweep goes round faster when there are fewer.
/// - The signature has `log2(n / (ε·ℓ²))` bits, two fewer than the paper's `log2(2 / (ε·ℓ))`: the
///   paper's bound counts every position as in use, of which a quarter are.
/// - Windows of time too, and duplicates may be left out of the renewal.
#[derive(Clone, Debug, PartialEq)]
pub struct CuckooWindow(Slotted<Cuckoo>);

impl CuckooWindow {
    /// An empty window.
    ///
    /// # Errors
    /// [`PlanError`] for sizes that cannot be, or that there is no memory for.
    pub fn new(keeps: Keeps, size: CuckooSize) -> Result<Self, PlanError> {
        keeps.check_in_order("cuckoo-window")?;
        size.check(&keeps)?;
        let blocks = Blocks::new(2 * size.positions.div_ceil(64), layout(&keeps, &size))?;
        Ok(Self(Slotted::new(keeps, Cuckoo { blocks, size })))
    }

    pub(crate) fn bytes_for(keeps: &Keeps, size: &CuckooSize) -> Option<u64> {
        size.check(keeps).ok()?;
        Blocks::bytes_for(2 * size.positions.div_ceil(64), layout(keeps, size))
    }

    /// The size it was built with.
    pub fn size(&self) -> &CuckooSize {
        &self.0.slots.size
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
        Slotted::read(input, Cuckoo::read).map(Self)
    }
}

impl Recipe for CuckooWindow {
    type Table = Self;
    type Size = (Keeps, CuckooSize);

    const WINDOWS: Windows = Windows::Any;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        let keeps = Keeps::of(spec, capacity)?;
        Ok((keeps, CuckooSize::for_keys(keeps.full_at(), fpr)))
    }

    fn contract((keeps, _): &Self::Size) -> Contract {
        keeps.contract()
    }

    fn memory((keeps, size): &Self::Size) -> Option<u64> {
        Some(Self::bytes_for(keeps, size)? + keeps.stash_memory())
    }

    fn cell_bits_and_hashes((keeps, size): &Self::Size) -> (u32, u32) {
        (size.entry_bits(keeps), 2)
    }

    fn limit_stash((keeps, _): &mut Self::Size, bytes: u64) {
        keeps.limit_stash(bytes);
    }

    fn build((keeps, size): Self::Size) -> Result<Self, PlanError> {
        Self::new(keeps, size)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

window_traits!(CuckooWindow);

/// The chance that a key is found among so many others: one of its two positions is in use with
/// probability `n / 2ℓ` each, with its other position in `1/ℓ` and its signature in `2^-s` of them.
fn cuckoo_fpr(positions: u64, signature_bits: u32, keys: f64) -> f64 {
    let pairs = positions as f64 * positions as f64;
    -libm::expm1(-keys / pairs * libm::exp2(-f64::from(signature_bits)))
}

/// Bits of stamp, signature and partner, and room in a block.
fn layout(keeps: &Keeps, size: &CuckooSize) -> ([u32; 3], u32) {
    let fields = [keeps.pace().stamp_bits(), size.signature_bits, partner_bits(size.positions)];
    (fields, size.entries_a_block)
}

/// Two tables, the second one's blocks after the first one's.
#[derive(Clone, Debug, PartialEq)]
struct Cuckoo {
    blocks: Blocks,
    size: CuckooSize,
}

/// What a key has in the tables: a position in each, and its signature.
#[derive(Clone, Copy)]
struct Name {
    positions: [u64; 2],
    signature: u64,
}

impl Cuckoo {
    #[inline]
    fn name(&self, digest: Digest) -> Name {
        let mut probes = digest.probes(self.size.positions);
        let positions = [probes.next().unwrap_or(0), probes.next().unwrap_or(0)];
        // The low half's high bits; the high half makes the positions independent of them.
        let signature = digest.lo().checked_shr(64 - self.size.signature_bits).unwrap_or(0);
        Name { positions, signature }
    }

    fn id(&self, name: Name) -> u128 {
        let (partner, signature) = (partner_bits(self.size.positions), self.size.signature_bits);
        let positions = u128::from(name.positions[0]) << partner | u128::from(name.positions[1]);
        positions << signature | u128::from(name.signature)
    }

    fn name_of(&self, id: u128) -> Name {
        let (partner, signature) = (partner_bits(self.size.positions), self.size.signature_bits);
        let field = |shift: u32, bits: u32| (id >> shift) as u64 & mask(bits);
        Name {
            positions: [field(partner + signature, partner), field(signature, partner)],
            signature: field(0, signature),
        }
    }

    /// A position in the blocks.
    #[inline]
    fn position(&self, table: usize, at: u64) -> Position {
        let first = if table == 0 { 0 } else { self.size.positions.div_ceil(64) };
        Position { block: first + at / 64, bit: (at % 64) as u32 }
    }

    /// The key's entry, which is in one table at most.
    #[inline]
    fn find_name(&self, name: Name) -> Option<(Position, u64)> {
        (0..2).find_map(|table| {
            let position = self.position(table, name.positions[table]);
            let entry = self.blocks.get(position)?;
            let same =
                entry.signature == name.signature && entry.partner == name.positions[1 - table];
            same.then_some((position, entry.stamp))
        })
    }

    fn insert_name(&mut self, name: Name, stamp: u64, cycle: &Cycle) -> Placed {
        let places = [0, 1].map(|table| self.position(table, name.positions[table]));
        let view = cycle.view();
        for place in places {
            self.blocks.make_room(place.block, |stamp| view.is_live(stamp));
        }
        let room = places.map(|place| self.room(place, cycle));
        let table = match room {
            [Room::Expired, _] => 0,
            [_, Room::Expired] => 1,
            [Room::Free(a), Room::Free(b)] => usize::from(b < a),
            [Room::Free(_), _] => 0,
            [_, Room::Free(_)] => 1,
            _ => return self.make_room(name, stamp, cycle),
        };
        self.put(table, name, stamp)
    }

    fn room(&self, position: Position, cycle: &Cycle) -> Room {
        match self.blocks.get(position) {
            Some(entry) if cycle.view().is_live(entry.stamp) => Room::Taken(entry.partner),
            Some(_) => Room::Expired,
            None => self.blocks.room(position.block).map_or(Room::Full, Room::Free),
        }
    }

    fn put(&mut self, table: usize, name: Name, stamp: u64) -> Placed {
        let entry = Entry { stamp, signature: name.signature, partner: name.positions[1 - table] };
        let position = self.position(table, name.positions[table]);
        if self.blocks.set(position, entry) { Placed::New } else { Placed::Instead }
    }

    /// Moves entries along to their other positions until one falls free, beginning with either of
    /// the key's. The way is found before anything moves, so that nothing has to be put back.
    #[cold]
    fn make_room(&mut self, name: Name, stamp: u64, cycle: &Cycle) -> Placed {
        let mut way = [(0usize, 0u64); 4 * 50 + 8];
        let most = most_moves(self.size.positions).min(way.len());
        // Either table may be the first: which is as good as random.
        let first = (name.signature ^ name.positions[0]) as usize & 1;
        for start in [first, 1 - first] {
            if let Some(moves) = self.way_to_room(start, name, &mut way[..most], cycle) {
                return self.move_along(&way[..moves], name, stamp);
            }
        }
        Placed::Nowhere
    }

    /// The positions from the key's first one to one with room, that one included.
    fn way_to_room(
        &mut self,
        start: usize,
        name: Name,
        way: &mut [(usize, u64)],
        cycle: &Cycle,
    ) -> Option<usize> {
        let (mut table, mut at) = (start, name.positions[start]);
        for steps in 0..way.len() {
            // A way that meets itself leads round for ever.
            if way[..steps].contains(&(table, at)) {
                return None;
            }
            way[steps] = (table, at);
            let position = self.position(table, at);
            self.settle_page(position.block, cycle);
            match self.room(position, cycle) {
                Room::Taken(partner) => (table, at) = (1 - table, partner),
                Room::Free(_) | Room::Expired => return Some(steps + 1),
                Room::Full => return None,
            }
        }
        None
    }

    /// Moves the entries of a way, the last one first, and puts the key where the way begins.
    fn move_along(&mut self, way: &[(usize, u64)], name: Name, stamp: u64) -> Placed {
        let mut placed = Placed::Instead;
        for pair in way.windows(2).rev() {
            let [(table, at), (other_table, other_at)] = [pair[0], pair[1]];
            let Some(entry) = self.blocks.get(self.position(table, at)) else { continue };
            let moved = Entry { partner: at, ..entry };
            if self.blocks.set(self.position(other_table, other_at), moved) {
                placed = Placed::New;
            }
        }
        let Some(&(table, _)) = way.first() else { return Placed::Nowhere };
        match self.put(table, name, stamp) {
            Placed::New => Placed::New,
            _ => placed,
        }
    }

    fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let size = CuckooSize {
            positions: input.u64()?,
            signature_bits: input.u32()?,
            entries_a_block: input.u32()?,
        };
        if size.positions == 0 || size.check(keeps).is_err() {
            return Err(SnapshotError::Invalid("a cuckoo window of an impossible size"));
        }
        let blocks = Blocks::read(2 * size.positions.div_ceil(64), layout(keeps, &size), input)?;
        let cuckoo = Self { blocks, size };
        // An entry that names a position beyond the table could not be moved there.
        let in_range = |position: Position, entry: Entry| {
            let half = size.positions.div_ceil(64);
            position.block % half * 64 + u64::from(position.bit) < size.positions
                && entry.partner < size.positions
                && entry.stamp != 0
        };
        let mut sound = true;
        cuckoo.blocks.for_each(|position, entry| sound &= in_range(position, entry));
        sound.then_some(cuckoo).ok_or(SnapshotError::Invalid("an entry outside its table"))
    }
}

/// What a position has to offer.
enum Room {
    /// It is empty, in a block that holds so many entries.
    Free(u32),
    /// Its entry has expired.
    Expired,
    /// It is empty, but its block is full.
    Full,
    /// It is taken; the entry's other position.
    Taken(u64),
}

fn mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

impl Sweep for Cuckoo {
    /// Positions of a block.
    const CELLS: u64 = 64;

    #[inline(always)]
    fn pages(&self) -> Option<&Pages> {
        Some(self.blocks.pages())
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        Some(self.blocks.pages_mut())
    }

    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        self.blocks.retain(range, |age| {
            let view = cycle.view_of(age);
            move |stamp| view.is_live(stamp)
        });
    }

    fn clear(&mut self) {
        self.blocks.clear();
    }
}

impl Slots for Cuckoo {
    type Place = Position;

    /// What has expired takes up room in a block, and blocks are chosen by their room.
    const ROUNDS: u64 = 4;

    fn cells(&self) -> u64 {
        2 * self.size.positions.div_ceil(64) * 64
    }

    #[inline]
    fn find(&self, digest: Digest, cycle: &Cycle) -> Option<(Position, u64)> {
        let (position, stamp) = self.find_name(self.name(digest))?;
        Some((position, self.view(position.block, cycle).age(stamp)))
    }

    fn settle_places(&mut self, digest: Digest, cycle: &Cycle) {
        let name = self.name(digest);
        for table in 0..2 {
            self.settle_page(self.position(table, name.positions[table]).block, cycle);
        }
    }

    #[inline]
    fn renew(&mut self, position: Position, cycle: &Cycle) {
        self.blocks.set_stamp(position, cycle.stamp());
    }

    fn insert(&mut self, digest: Digest, cycle: &Cycle) -> Placed {
        self.insert_name(self.name(digest), cycle.stamp(), cycle)
    }

    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128> {
        core::iter::once(self.id(self.name(digest)))
    }

    fn is_name(&self, id: u128) -> bool {
        let name = self.name_of(id);
        name.positions.iter().all(|&at| at < self.size.positions) && self.id(name) == id
    }

    fn for_each(&self, cycle: &Cycle, mut each: impl FnMut(u128, u64)) {
        let half = self.size.positions.div_ceil(64);
        self.blocks.for_each(|position, entry| {
            let view = self.view(position.block, cycle);
            if !view.is_live(entry.stamp) {
                return;
            }
            let at = position.block % half * 64 + u64::from(position.bit);
            let mut positions = [at, entry.partner];
            if position.block >= half {
                positions.reverse();
            }
            each(self.id(Name { positions, signature: entry.signature }), view.age(entry.stamp));
        });
    }

    fn is_alike(&self, other: &Self) -> bool {
        self.size == other.size
    }

    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let name = self.name_of(id);
        match self.find_name(name) {
            Some((position, stamp)) => {
                // One that has expired is no younger, however its age is told.
                let view = cycle.view();
                let ours = if view.is_live(stamp) { view.age(stamp) } else { u64::MAX };
                self.blocks.set_stamp(position, cycle.stamp_of(age.min(ours)));
                Placed::Instead
            }
            None => self.insert_name(name, cycle.stamp_of(age), cycle),
        }
    }

    fn occupied(&self) -> u64 {
        self.blocks.occupied()
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        let name = self.name(digest);
        for table in 0..2 {
            self.blocks.prefetch(self.position(table, name.positions[table]));
        }
    }

    fn fpr(&self, keys: f64) -> f64 {
        cuckoo_fpr(self.size.positions, self.size.signature_bits, keys)
    }

    fn memory(&self) -> usize {
        self.blocks.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.size.positions);
        out.u32(self.size.signature_bits);
        out.u32(self.size.entries_a_block);
        self.blocks.write(out);
    }
}
