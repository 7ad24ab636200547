//! Lines in the order of last sight: the aged table's core, where generations tell time finely enough.
//!
//! All lines change generation together, block by block: for each block of lines a byte says up to which generation
//! its lines have aged. When a generation begins, every arrival ages the blocks that it touches and a few more, until
//! all have. From then on no age is looked at until the next one begins: what is in a line is live, and a
//! question or an arrival is one step of [`Kernel`](crate::bits::kernel::Kernel)s.

mod batch;
mod line;
mod room;
mod step;
mod time;

use self::line::{Entry, LANE, Layout};
use self::room::Room;
use self::step::{Ask, Quick, Step};
use self::time::Clock;
use crate::bits::kernel::{self, BASE, GROUP, Group, Level};
use crate::bits::lines::Lines;
use crate::codec::{Reader, Writer};
use crate::digest::reduce;
use crate::window::cycle::{Cycle, Pace, Sweep};
use crate::window::slots::keeps::Keeps;
use crate::window::slots::table::{Placed, Slots};
use crate::{Digest, PlanError, SnapshotError, Tick};
use core::ops::Range;

/// The most lines that a table has.
const MOST_LINES: u64 = 1 << 50;

/// Can generations of one grain tell time for such a window, in lines with fingerprints of so many bits?
///
/// Where every arrival is a moment of its own nothing is gained: all lines would grow older at each.
pub(super) fn tells(keeps: &Keeps, fingerprint_bits: u32) -> bool {
    let pace = keeps.pace();
    !pace.is_counting() && pace.steps() <= u64::from(line::most_steps(fingerprint_bits))
}

/// Entries of a line with fingerprints of so many bits.
pub(super) fn slots_for(fingerprint_bits: u32) -> u32 {
    line::slots_for(fingerprint_bits)
}

/// The most generations that lines with such fingerprints can tell.
pub(super) fn most_steps(fingerprint_bits: u32) -> u32 {
    line::most_steps(fingerprint_bits)
}

/// The chance that a key is found among so many others.
pub(super) fn fpr(lines: u64, fingerprint_bits: u32, keys: f64) -> f64 {
    -libm::expm1(2.0 * keys / lines as f64 * libm::log1p(-same(fingerprint_bits)))
}

/// The fewest lines in which a key is found among so many others at no more than a rate; none if those are too many.
pub(super) fn lines_for(rate: f64, fingerprint_bits: u32, keys: f64) -> Option<u64> {
    let lines = libm::ceil(2.0 * keys * libm::log1p(-same(fingerprint_bits)) / libm::log1p(-rate));
    // What is rounded may be a line less than enough.
    (lines < MOST_LINES as f64).then(|| lines as u64 + 1)
}

/// The chance that two keys have the same fingerprint.
fn same(fingerprint_bits: u32) -> f64 {
    // A lane of 0 counts as 1, so two keys agree in it by a little more than one in 2^16.
    libm::exp2(-f64::from(fingerprint_bits)) * (1.0 + 1.0 / 32_768.0)
}

/// Bytes of so many lines, or `None` where that is beyond any memory.
pub(super) fn bytes_for(lines: u64) -> Option<u64> {
    Some(Lines::bytes_for(lines)? as u64 + lines.div_ceil(time::BLOCK))
}

/// Lines that hold entries.
#[derive(Clone, Debug)]
pub(super) struct Table {
    lines: Lines,
    layout: Layout,
    clock: Clock,
    room: Room,
    /// Entries, of expired ones those among them that were not dropped yet.
    occupied: u64,
    /// Those bits of a hash that a line is chosen by.
    chosen_by: u64,
    level: Level,
    /// What arrivals need nothing but a step.
    quick: Quick,
    /// Is a step one of [`Level::arrive`] and [`Level::is_in_either`]? As [`Naming::is_plain`], with nothing late.
    is_plain: bool,
}

/// A key's fingerprint and one of its lines.
#[derive(Clone, Copy, Debug)]
struct Name {
    home: u64,
    fingerprint: u64,
}

/// How keys get their names.
#[derive(Clone, Copy, Debug)]
struct Naming {
    /// Lines of the table.
    lines: u64,
    /// As [`Table::chosen_by`].
    chosen_by: u64,
    /// As [`Layout::rest`].
    rest: u32,
}

impl Naming {
    /// Bits of a hash that are no fingerprint.
    #[inline(always)]
    fn shift(self) -> u32 {
        64 - LANE - self.rest
    }

    #[inline(always)]
    fn name(self, digest: Digest) -> Name {
        let fingerprint = digest.lo() >> self.shift();
        // No lane is 0.
        let least = if fingerprint >> self.rest == 0 { 1 << self.rest } else { 0 };
        Name {
            home: reduce(digest.hi() & self.chosen_by, self.lines),
            fingerprint: fingerprint | least,
        }
    }

    #[inline(always)]
    fn other(self, name: Name) -> u64 {
        let high = name.fingerprint << self.shift();
        let less = reduce(high & self.chosen_by, self.lines).wrapping_sub(name.home);
        less.min(less.wrapping_add(self.lines))
    }

    /// The name of a key, as one of a group, and its other line.
    #[inline(always)]
    fn name_one(self, digest: Digest, group: &mut Group, at: usize) {
        let name = self.name(digest);
        (group.lines[at], group.lines[GROUP + at]) = (name.home, self.other(name));
        group.lanes[at] = name.fingerprint;
    }

    /// Are fingerprints lanes, and lines chosen by half a hash? Names are then what [`kernel::lines_and_lane`] says, by products of
    /// 32 bits, which a processor has for several keys at a time.
    #[inline(always)]
    fn is_plain(self) -> bool {
        self.rest == 0 && self.chosen_by != !0
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    line: u64,
    at: u32,
}

impl Table {
    /// Empty.
    ///
    /// # Errors
    /// [`PlanError`] where there is no memory for so many lines.
    pub(super) fn new(keeps: &Keeps, lines: u64, fingerprint_bits: u32) -> Result<Self, PlanError> {
        let clock = Clock::new(lines, keeps.pace().steps())?;
        Ok(Self::with(keeps, Lines::new(lines)?, fingerprint_bits, clock))
    }

    fn with(keeps: &Keeps, lines: Lines, fingerprint_bits: u32, clock: Clock) -> Self {
        let layout = Layout::new(fingerprint_bits, keeps.pace().steps() as u32);
        // Half of a hash is enough for tables of which each line is still chosen by many, and one product of 64 bits
        // then does.
        let chosen_by = if lines.len() < 1 << 24 { !0 << 32 } else { !0 };
        let room = Room::new(keeps);
        let quick = Quick::new(keeps, &room);
        let level = Level::best();
        let (occupied, is_plain) = (0, false);
        let mut table =
            Self { lines, layout, clock, room, occupied, chosen_by, level, quick, is_plain };
        table.is_plain = table.naming().is_plain() && keeps.lateness == 0;
        table
    }

    /// Lines.
    pub(super) fn lines(&self) -> u64 {
        self.lines.len()
    }

    /// Bits of a fingerprint.
    pub(super) fn fingerprint_bits(&self) -> u32 {
        self.layout.fingerprint_bits()
    }

    #[inline(always)]
    fn naming(&self) -> Naming {
        let Self { chosen_by, layout, .. } = *self;
        Naming { lines: self.lines.len(), chosen_by, rest: layout.rest }
    }

    #[inline(always)]
    fn name(&self, digest: Digest) -> Name {
        self.naming().name(digest)
    }

    /// One arrival by a step, of any table.
    #[inline(never)]
    fn step_by_age(
        &mut self,
        digest: Digest,
        at: Tick,
        newest: Tick,
        with_renewal: bool,
    ) -> Option<bool> {
        let age = self.quick.age_at(at, newest);
        self.level.run(Step { table: self, digest, age, with_renewal })
    }

    /// One question by a step, of any table.
    #[inline(never)]
    fn ask_by_age(&self, digest: Digest, at: Tick, newest: Tick) -> bool {
        let age = self.quick.age_at(at, newest);
        self.level.run(Ask { table: self, digest, age })
    }

    /// The other line of an entry: the same call leads back.
    #[inline(always)]
    fn other(&self, name: Name) -> u64 {
        self.naming().other(name)
    }

    /// The name as a number, the same from either line: the first of them, then the fingerprint.
    fn id(&self, name: Name) -> u128 {
        u128::from(name.home.min(self.other(name))) << 64 | u128::from(name.fingerprint)
    }

    /// The name that a number stands for; one that a snapshot made up may be outside the table.
    fn named(&self, id: u128) -> Name {
        Name { home: ((id >> 64) as u64).min(self.lines.len() - 1), fingerprint: id as u64 }
    }

    /// The youngest live entry of a name, and its age.
    fn find_name(&self, name: Name) -> Option<(Spot, u64)> {
        let [home, other] = [name.home, self.other(name)].map(|line| self.first_in(line, name));
        match (home, other) {
            (Some(home), Some(other)) => Some(if other.1 < home.1 { other } else { home }),
            (home, other) => home.or(other),
        }
    }

    /// The youngest live entry of a name in a line, and its age.
    fn first_in(&self, line: u64, name: Name) -> Option<(Spot, u64)> {
        let entries = self.lines.line(line);
        let matches = self.layout.matches(BASE, entries, name.fingerprint);
        if matches == 0 {
            return None;
        }
        let at = matches.trailing_zeros();
        let age = self.clock.behind(line) + u64::from(self.layout.age_of(entries, at));
        (age <= self.clock.kept).then_some((Spot { line, at }, age))
    }

    /// A new entry, in the emptier of its lines or where room can be made.
    fn insert_name(&mut self, name: Name, age: u32) -> Placed {
        let Some(line) = self.room_for(name) else { return Placed::Nowhere };
        let fingerprint = name.fingerprint;
        let entries = self.lines.line_mut(line);
        if age == 0 {
            self.layout.push(BASE, entries, 0, fingerprint);
        } else {
            self.layout.insert(entries, Entry { fingerprint, age });
        }
        self.occupied += 1;
        Placed::New
    }

    pub(super) fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (lines, fingerprint_bits) = (input.u64()?, input.u32()?);
        let is_size = (1..=MOST_LINES).contains(&lines) && (LANE..=64).contains(&fingerprint_bits);
        if !is_size || !tells(keeps, fingerprint_bits) {
            return Err(SnapshotError::Invalid("an aged table of an impossible size"));
        }
        let clock = Clock::read(lines, keeps.pace().steps(), input)?;
        let count = usize::try_from(lines).ok().and_then(|lines| lines.checked_mul(8));
        let words = input.words_and(count, Lines::SPARE)?;
        let lines = Lines::from_words(words, lines)
            .ok_or(SnapshotError::Invalid("lines of another number, or no memory for them"))?;
        let mut table = Self::with(keeps, lines, fingerprint_bits, clock);
        for at in 0..table.lines.len() {
            let line = table.lines.line(at);
            if !table.layout.is_sound(line) {
                return Err(SnapshotError::Invalid(
                    "a line of an aged table whose ages do not fit its entries",
                ));
            }
            table.occupied += u64::from(line::count(line));
        }
        Ok(table)
    }
}

/// Equal are tables that hold the same and will do the same.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        (self.layout, self.occupied) == (other.layout, other.occupied)
            && self.clock.is_like(&other.clock, u64::from(self.layout.steps))
            && self.lines == other.lines
    }
}

impl Sweep for Table {
    fn clear_expired(&mut self, _range: Range<u64>, _cycle: &Cycle) {}

    fn clear(&mut self) {
        self.lines.clear();
        self.occupied = 0;
    }

    fn expire_all(&mut self) {
        if self.occupied > 0 {
            self.clear();
        }
    }
}

impl Slots for Table {
    type Place = Spot;

    const ROUNDS: u64 = 1;
    const QUICK: bool = true;

    /// Blocks age by themselves, so there is no sweep.
    fn pace(keeps: &Keeps) -> Pace {
        keeps.pace().without_sweep()
    }

    fn cells(&self) -> u64 {
        self.lines.len()
    }

    fn slots(&self) -> u64 {
        self.lines.len() * u64::from(self.layout.slots)
    }

    fn occupied(&self) -> u64 {
        self.occupied
    }

    #[inline(always)]
    fn is_quick(&self, tick: Tick) -> bool {
        self.quick.allows(tick, self.occupied)
    }

    #[inline(always)]
    fn observe_quickly(
        &mut self,
        digest: Digest,
        at: Tick,
        newest: Tick,
        with_renewal: bool,
    ) -> Option<bool> {
        if !self.is_plain {
            return self.step_by_age(digest, at, newest, with_renewal);
        }
        let (a, b, lane) = kernel::lines_and_lane(digest, self.lines.len());
        let (lines, places) = (self.lines.settled_mut(), (a as usize, b as usize));
        match self.level.arrive(lines, places, lane as u16, with_renewal) {
            Some(is_known) => {
                self.occupied += u64::from(!is_known);
                Some(is_known)
            }
            None => {
                let name = Name { home: a, fingerprint: lane };
                self.insert_by_moves(name, newest.max(at)).then_some(false)
            }
        }
    }

    #[inline(always)]
    fn contains_quickly(&self, digest: Digest, at: Tick, newest: Tick) -> bool {
        if !self.is_plain {
            return self.ask_by_age(digest, at, newest);
        }
        let lines = self.lines.settled();
        let (a, b, lane) = kernel::lines_and_lane(digest, self.lines.len());
        self.level.is_in_either(&lines[a as usize], &lines[b as usize], lane as u16)
    }

    fn observe_run<M: Fn(usize) -> Tick>(
        &mut self,
        digests: &[Digest],
        moment: M,
        newest: Tick,
        verdicts: &mut [crate::Verdict],
        with_renewal: bool,
    ) -> (usize, Tick) {
        self.run_of_arrivals(digests, moment, newest, verdicts, with_renewal)
    }

    fn contains_run(&self, digests: &[Digest], at: Tick, newest: Tick, found: &mut [bool]) {
        self.run_of_questions(digests, self.quick.age_at(at, newest), found);
    }

    fn pass(&mut self, before: Tick, cycle: &Cycle) {
        self.pass_time(before, cycle);
    }

    fn settle(&mut self, cycle: &Cycle, by_steps: bool) {
        let until = if by_steps && self.has_aged() { cycle.grain_end() } else { 0 };
        self.quick.settle(cycle.grain_start(), until, self.evict_at());
    }

    fn look_for_room(&mut self, cycle: &Cycle) -> bool {
        self.sweep_if_full(cycle.newest());
        true
    }

    fn holds_expired(&self, cycle: &Cycle) -> bool {
        !self.has_aged() || self.live_steps(cycle.newest()) < self.clock.oldest()
    }

    fn unite_times(&mut self, other: &Self) {
        // What either found is to be found, expired or not.
        self.room.tick = Tick(0);
        self.clock.unite(&other.clock, u64::from(self.layout.steps));
    }

    fn resume(&mut self, cycle: &Cycle) -> Result<(), SnapshotError> {
        self.clock.resume(cycle.now())
    }

    #[inline(always)]
    fn find(&self, digest: Digest, _cycle: &Cycle) -> Option<(Spot, u64)> {
        self.find_name(self.name(digest))
    }

    fn renew(&mut self, spot: Spot, _cycle: &Cycle) {
        // What ages away lies behind it: it stays where it is.
        self.age_block(spot.line);
        let line = self.lines.line_mut(spot.line);
        let fingerprint = self.layout.fingerprint(line, spot.at);
        self.layout.push(BASE, line, 1 << spot.at, fingerprint);
    }

    fn insert(&mut self, digest: Digest, _cycle: &Cycle) -> Placed {
        self.insert_name(self.name(digest), 0)
    }

    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128> {
        core::iter::once(self.id(self.name(digest)))
    }

    fn is_name(&self, id: u128) -> bool {
        let name = Name { home: (id >> 64) as u64, fingerprint: id as u64 };
        let beyond = name.fingerprint.checked_shr(self.layout.fingerprint_bits()).unwrap_or(0);
        name.home < self.lines.len() && beyond == 0 && self.layout.lane(name.fingerprint) != 0
    }

    fn for_each(&self, _cycle: &Cycle, mut each: impl FnMut(u128, u64)) {
        for home in 0..self.lines.len() {
            let (line, behind) = (self.lines.line(home), self.clock.behind(home));
            for at in 0..line::count(line) {
                let Entry { fingerprint, age } = self.layout.entry(line, at);
                let age = u64::from(age) + behind;
                if age <= u64::from(self.layout.steps) {
                    each(self.id(Name { home, fingerprint }), age);
                }
            }
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.lines.len(), self.layout) == (other.lines.len(), other.layout)
    }

    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let name = self.named(id);
        match self.find_name(name) {
            Some((_, ours)) if ours <= age => Placed::Instead,
            Some((spot, _)) => {
                self.set_age(spot, age, cycle);
                Placed::Instead
            }
            None => self.insert_name(name, age as u32),
        }
    }

    fn each(&self, id: u128, _cycle: &Cycle, mut each: impl FnMut(Spot, u64)) {
        let name = self.named(id);
        for line in [name.home, self.other(name)] {
            let entries = self.lines.line(line);
            let behind = self.clock.behind(line);
            let mut matches = self.layout.matches(BASE, entries, name.fingerprint);
            while matches != 0 {
                let at = matches.trailing_zeros();
                matches &= matches - 1;
                let age = behind + u64::from(self.layout.age_of(entries, at));
                if age <= u64::from(self.layout.steps) {
                    each(Spot { line, at }, age);
                }
            }
        }
    }

    fn set_age(&mut self, spot: Spot, age: u64, _cycle: &Cycle) {
        self.age_block(spot.line);
        let line = self.lines.line_mut(spot.line);
        let fingerprint = self.layout.fingerprint(line, spot.at);
        self.layout.remove(BASE, line, spot.at);
        self.layout.insert(line, Entry { fingerprint, age: age as u32 });
    }

    fn insert_aged(&mut self, id: u128, age: u64, _cycle: &Cycle) -> Placed {
        let name = self.named(id);
        // As often the one line as the other, where both are as full.
        let home = if name.fingerprint & 1 == 0 { name.home } else { self.other(name) };
        self.insert_name(Name { home, ..name }, age as u32)
    }

    fn take_out(&mut self, id: u128, _cycle: &Cycle, mut each: impl FnMut(u64)) {
        let name = self.named(id);
        for home in [name.home, self.other(name)] {
            self.age_block(home);
            let line = self.lines.line_mut(home);
            loop {
                let matches = self.layout.matches(BASE, line, name.fingerprint);
                if matches == 0 {
                    break;
                }
                let at = matches.trailing_zeros();
                let age = u64::from(self.layout.age_of(line, at));
                if age <= self.clock.kept {
                    each(age);
                }
                self.layout.remove(BASE, line, at);
                self.occupied -= 1;
            }
        }
    }

    fn restart(&mut self) {
        self.lines.finish_clearing(0..self.lines.len());
        self.clock.restart(u64::from(self.layout.steps));
    }

    #[inline(always)]
    fn prefetch(&self, digest: Digest) {
        let name = self.name(digest);
        self.lines.prefetch(name.home);
        self.lines.prefetch(self.other(name));
    }

    fn fpr(&self, keys: f64) -> f64 {
        fpr(self.lines.len(), self.layout.fingerprint_bits(), keys)
    }

    fn memory(&self) -> usize {
        self.lines.memory() + self.clock.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.lines.len());
        out.u32(self.layout.fingerprint_bits());
        self.clock.write(u64::from(self.layout.steps), out);
        for line in 0..self.lines.len() {
            out.words(self.lines.line(line));
        }
    }
}

#[cfg(test)]
mod tests;
