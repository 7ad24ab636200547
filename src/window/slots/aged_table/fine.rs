//! Lines in the order of age, the oldest entry first, that tell finer moments than generations.

use super::is_size;
use super::line::{self, LANE, Layout, Moment, TURNS};
use super::marks::Marks;
use crate::bits::lines::{Line, Lines};
use crate::codec::{Reader, Writer};
use crate::window::cycle::{Cycle, Pace, Sweep};
use crate::window::slots::keeps::Keeps;
use crate::window::slots::moves::{self, Rooms};
use crate::window::slots::paired::{Name, paired_fpr};
use crate::window::slots::table::{Placed, Slots};
use crate::{Digest, PlanError, SnapshotError};
use core::ops::Range;

fn layout(keeps: &Keeps, fingerprint_bits: u32) -> Layout {
    Layout::new(fingerprint_bits, keeps.pace().steps())
}

/// Entries of a line.
pub(super) fn slots_for(keeps: &Keeps, fingerprint_bits: u32) -> u32 {
    layout(keeps, fingerprint_bits).slots
}

/// Bytes of so many lines, or `None` where that is beyond any memory.
pub(super) fn bytes_for(lines: u64) -> Option<u64> {
    Some(Lines::bytes_for(lines)? as u64 + Marks::bytes_for(lines))
}

/// Lines that hold entries, and how many those are.
#[derive(Clone, Debug)]
pub(super) struct Table {
    lines: Lines,
    layout: Layout,
    /// Entries, of expired ones those among them that were not dropped yet.
    occupied: u64,
    /// Where there may be any.
    marks: Marks,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        (self.layout, self.occupied) == (other.layout, other.occupied) && self.lines == other.lines
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
        let (layout, marks) = (layout(keeps, fingerprint_bits), Marks::new(lines)?);
        Ok(Self { lines: Lines::new(lines)?, layout, occupied: 0, marks })
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
    fn name(&self, digest: Digest) -> Name {
        Name::of(digest, self.lines.len(), self.layout.fingerprint_bits())
    }

    /// The other line of an entry.
    #[inline(always)]
    fn other(&self, name: Name) -> u64 {
        name.other(self.lines.len())
    }

    #[inline(always)]
    fn find_name(&self, name: Name, cycle: &Cycle) -> Option<(Spot, u64)> {
        let Name { place, fingerprint } = name;
        let lines = [place, self.other(name)];
        let home = self.layout.candidates(self.lines.line(lines[0]), fingerprint);
        let other = self.layout.candidates(self.lines.line(lines[1]), fingerprint);
        // In one row, as nobody can foretell which of the two has it.
        let mut candidates = u64::from(home) | u64::from(other) << 32;
        let mut youngest = None;
        while candidates != 0 {
            let place = candidates.trailing_zeros();
            candidates &= candidates - 1;
            let spot = Spot { line: lines[place as usize / 32], at: place % 32 };
            let now = self.layout.moment(cycle.now());
            let line = self.lines.line(spot.line);
            let age = self.layout.age_if_same(line, spot.at, fingerprint, now);
            if let Some(age) = age
                && youngest.is_none_or(|(_, least)| age < least)
            {
                youngest = Some((spot, age));
            }
        }
        // What has expired before its grain has may be dropped whenever its line is turned.
        youngest.filter(|&(_, age)| age <= cycle.kept())
    }

    /// Brings a line up to date, and tells how many entries it has then.
    #[inline(always)]
    fn turn(&mut self, line: u64, cycle: &Cycle) -> u32 {
        let now = self.layout.moment(cycle.now());
        let line = self.lines.line_mut(line);
        self.occupied -= u64::from(self.layout.turn(line, now, cycle.kept()));
        line::count(line)
    }

    /// Brings a line up to date, drops whatever has expired, and tells how many entries are left.
    fn clear_line(&mut self, line: u64, cycle: &Cycle) -> u32 {
        if self.turn(line, cycle) == 0 {
            return 0;
        }
        let now = self.layout.moment(cycle.now());
        let line = self.lines.line_mut(line);
        self.occupied -= u64::from(self.layout.drop_hidden(line, now, cycle.kept()));
        line::count(line)
    }

    /// Takes a live entry out of its line, to be put in again: the line is up to date then.
    #[inline(always)]
    fn take_out(&mut self, spot: Spot, now: Moment) -> &mut Line {
        let line = self.lines.line_mut(spot.line);
        // What lies before it may be dropped; it is live itself.
        let gone = self.layout.turn(line, now, self.layout.steps);
        self.occupied -= u64::from(gone);
        self.layout.remove(line, spot.at - gone);
        line
    }

    /// The emptier of a key's lines, if it has room; both are brought up to date.
    #[inline(always)]
    fn room_for(&mut self, name: Name, cycle: &Cycle) -> Option<u64> {
        let other = self.other(name);
        let (home_entries, other_entries) = (self.turn(name.place, cycle), self.turn(other, cycle));
        let line = if other_entries < home_entries { other } else { name.place };
        (home_entries.min(other_entries) < self.layout.slots).then_some(line)
    }

    /// The line of the key that has room after entries have moved, if there are any that can.
    fn make_room(&mut self, name: Name, cycle: &Cycle) -> Option<u64> {
        let lines = [name.place, self.other(name)];
        let mut table = Turning { table: self, cycle };
        let has_room = lines.into_iter().find(|&line| table.has_room(line));
        has_room.or_else(|| moves::make_room(&mut table, lines))
    }

    /// A new entry, in a line that has room or in one where room can be made.
    #[inline(always)]
    fn insert_name(
        &mut self,
        name: Name,
        cycle: &Cycle,
        put: impl FnOnce(&mut Self, u64),
    ) -> Placed {
        let Some(line) = self.room_for(name, cycle).or_else(|| self.make_room(name, cycle)) else {
            return Placed::Nowhere;
        };
        put(self, line);
        self.marks.set(line);
        self.occupied += 1;
        Placed::New
    }

    fn insert_entry(&mut self, name: Name, age: u64, cycle: &Cycle) -> Placed {
        let entry = self.layout.aged(name.fingerprint, age, self.layout.moment(cycle.now()));
        self.insert_name(name, cycle, |table, line| {
            table.layout.insert(table.lines.line_mut(line), entry);
        })
    }

    pub(super) fn read(keeps: &Keeps, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (lines, fingerprint_bits) = (input.u64()?, input.u32()?);
        if !is_size(lines, fingerprint_bits) {
            return Err(SnapshotError::Invalid("an aged table of an impossible size"));
        }
        let layout = layout(keeps, fingerprint_bits);
        let count = usize::try_from(lines).ok().and_then(|lines| lines.checked_mul(8));
        let words = input.words_and(count, Lines::SPARE)?;
        let lines = Lines::from_words(words, lines)
            .ok_or(SnapshotError::Invalid("lines of another number, or no memory for them"))?;
        let sound = (0..lines.len()).all(|line| layout.is_sound(lines.line(line)));
        if !sound {
            return Err(SnapshotError::Invalid(
                "a line of an aged table whose head does not fit it",
            ));
        }
        let no_memory = |_| SnapshotError::Invalid("no memory for the table");
        let mut marks = Marks::new(lines.len()).map_err(no_memory)?;
        let mut occupied = 0;
        for at in 0..lines.len() {
            let count = line::count(lines.line(at));
            occupied += u64::from(count);
            if count > 0 {
                marks.set(at);
            }
        }
        Ok(Self { lines, layout, occupied, marks })
    }
}

/// A table whose lines are turned to the present when they are looked at.
struct Turning<'a> {
    table: &'a mut Table,
    cycle: &'a Cycle,
}

impl Rooms for Turning<'_> {
    fn slots(&self) -> u32 {
        self.table.layout.slots
    }

    fn other_of(&self, line: u64, at: u32) -> u64 {
        let entry = self.table.layout.entry(self.table.lines.line(line), at);
        self.table.other(Name { place: line, fingerprint: entry.fingerprint })
    }

    fn has_room(&mut self, line: u64) -> bool {
        let (slots, table) = (self.slots(), &mut *self.table);
        table.turn(line, self.cycle) < slots || table.clear_line(line, self.cycle) < slots
    }

    fn move_entry(&mut self, line: u64, at: u32, to: u64) {
        let Table { lines, layout, marks, .. } = &mut *self.table;
        let from = lines.line_mut(line);
        let entry = layout.entry(from, at);
        layout.remove(from, at);
        layout.insert(lines.line_mut(to), entry);
        marks.set(to);
    }
}

impl Sweep for Table {
    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        let mut at = range.start;
        while let Some(block) = self.marks.next(at, range.end) {
            let lines = block.start.max(at)..block.end.min(range.end);
            let mut left = 0;
            for line in lines.clone() {
                // Most often it is fetched for this, the next one by the processor itself.
                if line::count(self.lines.line(line)) > 0 {
                    left += self.clear_line(line, cycle);
                }
            }
            at = lines.end;
            if left == 0 && lines == block {
                self.marks.unset(block.start);
            }
        }
    }

    fn clear(&mut self) {
        self.marks.clear();
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

    /// Lines tell time by generations, and are looked at before those go round.
    fn pace(keeps: &Keeps) -> Pace {
        let steps = keeps.pace().steps();
        keeps.pace().turning(1 << Layout::new(LANE, steps).fine, TURNS)
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
    fn find(&self, digest: Digest, cycle: &Cycle) -> Option<(Spot, u64)> {
        self.find_name(self.name(digest), cycle)
    }

    #[inline(always)]
    fn renew(&mut self, spot: Spot, cycle: &Cycle) {
        let (layout, now) = (self.layout, self.layout.moment(cycle.now()));
        let line = self.lines.line_mut(spot.line);
        if !layout.touch(line, spot.at, now) {
            let fingerprint = layout.entry(line, spot.at).fingerprint;
            let line = self.take_out(spot, now);
            layout.append(line, fingerprint, now);
        }
    }

    #[inline(always)]
    fn insert(&mut self, digest: Digest, cycle: &Cycle) -> Placed {
        let name = self.name(digest);
        let now = self.layout.moment(cycle.now());
        self.insert_name(name, cycle, |table, line| {
            table.layout.append(table.lines.line_mut(line), name.fingerprint, now);
        })
    }

    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128> {
        core::iter::once(self.name(digest).id(self.lines.len()))
    }

    fn is_name(&self, id: u128) -> bool {
        let name = Name::from_id(id);
        let beyond = name.fingerprint.checked_shr(self.layout.fingerprint_bits()).unwrap_or(0);
        name.place < self.lines.len() && beyond == 0
    }

    fn for_each(&self, cycle: &Cycle, mut each: impl FnMut(u128, u64)) {
        let now = self.layout.moment(cycle.now());
        for line in 0..self.lines.len() {
            for (fingerprint, age) in self.layout.entries(self.lines.line(line), now) {
                each(Name { place: line, fingerprint }.id(self.lines.len()), age);
            }
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.lines.len(), self.layout) == (other.lines.len(), other.layout)
    }

    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        let name = Name::from_id(id);
        match self.find_name(name, cycle) {
            Some((_, ours)) if ours <= age => Placed::Instead,
            Some((spot, _)) => {
                self.set_age(spot, age, cycle);
                Placed::Instead
            }
            None => self.insert_entry(name, age, cycle),
        }
    }

    fn each(&self, id: u128, cycle: &Cycle, mut each: impl FnMut(Spot, u64)) {
        let name = Name::from_id(id);
        let now = self.layout.moment(cycle.now());
        for line in [name.place, self.other(name)] {
            let entries = self.lines.line(line);
            let mut candidates = self.layout.candidates(entries, name.fingerprint);
            while candidates != 0 {
                let at = candidates.trailing_zeros();
                candidates &= candidates - 1;
                let age = self.layout.age_if_same(entries, at, name.fingerprint, now);
                if let Some(age) = age.filter(|&age| age <= cycle.kept()) {
                    each(Spot { line, at }, age);
                }
            }
        }
    }

    fn set_age(&mut self, spot: Spot, age: u64, cycle: &Cycle) {
        let (layout, now) = (self.layout, self.layout.moment(cycle.now()));
        let fingerprint = layout.entry(self.lines.line(spot.line), spot.at).fingerprint;
        // No room needs to be made: its own is there.
        let line = self.take_out(spot, now);
        layout.insert(line, layout.aged(fingerprint, age, now));
    }

    fn insert_aged(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed {
        self.insert_entry(Name::from_id_at_random(id, self.lines.len()), age, cycle)
    }

    fn take_out(&mut self, id: u128, cycle: &Cycle, mut each: impl FnMut(u64)) {
        let name = Name::from_id(id);
        self.turn(name.place, cycle);
        self.turn(self.other(name), cycle);
        while let Some((spot, age)) = self.find_name(name, cycle) {
            each(age);
            self.layout.remove(self.lines.line_mut(spot.line), spot.at);
            self.occupied -= 1;
        }
    }

    #[inline(always)]
    fn prefetch(&self, digest: Digest) {
        // However small it is: there may be many of them.
        let name = self.name(digest);
        self.lines.prefetch(name.place);
        self.lines.prefetch(self.other(name));
    }

    fn fpr(&self, keys: f64) -> f64 {
        paired_fpr(self.lines.len(), self.layout.fingerprint_bits(), keys)
    }

    fn memory(&self) -> usize {
        self.lines.memory() + self.marks.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.lines.len());
        out.u32(self.layout.fingerprint_bits());
        for line in 0..self.lines.len() {
            out.words(self.lines.line(line));
        }
    }
}
