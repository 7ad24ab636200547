//! How lines grow older: all together, block by block.

use super::{Table, line};
use crate::bits::kernel::{Kernel, Work};
use crate::bits::{prefetch::prefetch, zeroed_bytes};
use crate::codec::{Reader, Writer};
use crate::window::cycle::Cycle;
use crate::window::ends::{Ends, PARTS};
use crate::{PlanError, SnapshotError, Tick};
use alloc::vec::Vec;

/// Lines that age together: a kibibyte, so that an arrival which ages the blocks of its lines is not held up.
pub(super) const BLOCK: u64 = 16;

/// Blocks that an arrival ages besides those it touches.
const SWEPT: u64 = 4;

/// Up to which generation each block has aged, and when generations ended.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// For each block the generation up to which it has aged, modulo 256.
    phases: Vec<u8>,
    /// The present generation.
    now: u64,
    /// No block is further behind than this generation.
    floor: u64,
    /// The block that is aged next.
    cursor: u64,
    /// Blocks from there on that may not have aged yet.
    left: u64,
    /// Entries of more generations than this are gone, or going: fewer than are live where the table needs room.
    pub(super) kept: u64,
    /// The newest tick of each generation: of more than lines can tell.
    pub(super) ends: Ends,
}

impl Clock {
    /// For so many lines.
    ///
    /// # Errors
    /// As [`zeroed_bytes`].
    pub(super) fn new(lines: u64, steps: u64) -> Result<Self, PlanError> {
        let phases = zeroed_bytes(usize::try_from(lines.div_ceil(BLOCK)).ok())?;
        let (now, floor, cursor, left, kept, ends) = (0, 0, 0, 0, steps, Ends::NONE);
        Ok(Self { phases, now, floor, cursor, left, kept, ends })
    }

    /// The present generation.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The most generations that an entry is old: nothing is from before the first one.
    pub(super) fn oldest(&self) -> u64 {
        self.kept.min(self.now)
    }

    /// Generations that a line has not aged yet.
    #[inline]
    pub(super) fn behind(&self, line: u64) -> u64 {
        let phase = self.phases[(line / BLOCK) as usize];
        u64::from((self.now as u8).wrapping_sub(phase))
    }

    /// The newest tick of the generation that is so many generations old, if that began.
    pub(super) fn end_of(&self, age: u64) -> Option<u64> {
        Some(self.ends.of(self.now.checked_sub(age)?))
    }

    /// Begins another generation; `before` is the newest tick that there was.
    fn begin(&mut self, now: u64, before: Tick, steps: u64) {
        let passed = now - self.now;
        self.ends.set(self.now..now, before.0);
        self.kept = (self.kept + passed.min(steps)).min(steps);
        if now - self.floor > 255 {
            // Before a phase says something else.
            let old = self.now as u8;
            for phase in &mut self.phases {
                let behind = u64::from(old.wrapping_sub(*phase)).saturating_add(passed);
                *phase = (now as u8).wrapping_sub(behind.min(steps + 1) as u8);
            }
            self.floor = now.saturating_sub(steps + 1);
        }
        self.now = now;
    }

    /// Begins at the first tick.
    pub(super) fn restart(&mut self, steps: u64) {
        self.phases.fill(0);
        (self.now, self.floor, self.cursor, self.left) = (0, 0, 0, 0);
        (self.kept, self.ends) = (steps, Ends::NONE);
    }

    /// Takes over when another one of the same generation has had arrivals.
    pub(super) fn unite(&mut self, other: &Self, steps: u64) {
        self.ends.unite(&other.ends);
        // What is adopted may be older than what was given up.
        self.kept = steps;
    }

    /// Is another one the same, as far as so many generations back?
    pub(super) fn is_like(&self, other: &Self, steps: u64) -> bool {
        let parts = |clock: &Self| (clock.now, clock.floor, clock.cursor, clock.left, clock.kept);
        parts(self) == parts(other)
            && self.phases == other.phases
            && (1..=steps).all(|age| self.end_of(age) == other.end_of(age))
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.phases.capacity()
    }

    pub(super) fn write(&self, steps: u64, out: &mut Writer<'_>) {
        out.bytes(&self.phases);
        out.u64(self.now - self.floor);
        out.u64(self.cursor);
        out.u64(self.left);
        out.u64(self.kept);
        for age in 1..=steps {
            out.u64(self.end_of(age).unwrap_or(0));
        }
    }

    /// Reads what [`Clock::write`] has written, to be [resumed](Clock::resume).
    pub(super) fn read(
        lines: u64,
        steps: u64,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let blocks = lines.div_ceil(BLOCK);
        let phases = input.bytes(usize::try_from(blocks).ok())?;
        let (floor, cursor, left, kept) = (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
        if floor > 255 || cursor >= blocks || left > blocks || kept > steps {
            return Err(SnapshotError::Invalid("an aged table that is outside itself"));
        }
        // Which generations those are is known when it is resumed.
        let mut ends = Ends::NONE;
        for age in 1..=steps {
            ends.note(age, input.u64()?);
        }
        Ok(Self { phases, now: 0, floor, cursor, left, kept, ends })
    }

    /// Goes on at a generation.
    ///
    /// # Errors
    /// Where it cannot be that one.
    pub(super) fn resume(&mut self, now: u64) -> Result<(), SnapshotError> {
        let ends = core::mem::replace(&mut self.ends, Ends::NONE);
        self.floor = now
            .checked_sub(self.floor)
            .ok_or(SnapshotError::Invalid("an aged table from before the first tick"))?;
        self.now = now;
        for age in 0..PARTS.min(now.saturating_add(1)) {
            self.ends.note(now - age, ends.of(age));
        }
        let most = now - self.floor;
        let is_behind = |&phase: &u8| u64::from((now as u8).wrapping_sub(phase)) > most;
        if self.phases.iter().any(is_behind) {
            return Err(SnapshotError::Invalid("an aged table whose lines are older than itself"));
        }
        Ok(())
    }
}

/// Lines of one block that age.
struct Age<'a> {
    table: &'a mut Table,
    block: u64,
    passed: u32,
    most: u32,
}

impl Work for Age<'_> {
    type Result = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        let layout = self.table.layout;
        let lines = self.table.lines.settled_mut();
        let from = (self.block * BLOCK) as usize;
        let to = (from + BLOCK as usize).min(lines.len());
        let mut gone = 0;
        for line in &mut lines[from..to] {
            gone += layout.age(kernel, line, self.passed, self.most);
        }
        self.table.occupied -= u64::from(gone);
    }
}

impl Table {
    /// Has every line aged?
    pub(super) fn has_aged(&self) -> bool {
        self.clock.left == 0 && !self.lines.has_stale()
    }

    /// Time has passed, or has not; `before` is the newest tick that there was.
    pub(super) fn pass_time(&mut self, before: Tick, cycle: &Cycle) {
        if cycle.now() > self.clock.now {
            self.clock.begin(cycle.now(), before, u64::from(self.layout.steps));
            self.clock.left = self.clock.phases.len() as u64;
            if self.occupied == 0 {
                // Nothing can be old.
                self.clock.phases.fill(self.clock.now as u8);
                self.clock.floor = self.clock.now;
                if !self.lines.has_stale() {
                    self.clock.left = 0;
                }
            }
        }
        self.room.tick = cycle.newest();
        self.sweep(SWEPT);
    }

    /// Ages so many of the blocks that may not have aged.
    pub(super) fn sweep(&mut self, blocks: u64) {
        let all = self.clock.phases.len() as u64;
        let mut left = blocks.min(self.clock.left);
        if left == 0 {
            return;
        }
        while left > 0 {
            self.fetch_block(self.clock.cursor + 1);
            self.age(self.clock.cursor, true);
            self.clock.cursor =
                if self.clock.cursor + 1 == all { 0 } else { self.clock.cursor + 1 };
            (self.clock.left, left) = (self.clock.left - 1, left - 1);
        }
        if self.clock.left == 0 {
            self.clock.floor = self.clock.now;
        }
    }

    /// Ages so many blocks, from the first on, whatever is known of them, so that what lies behind is gone.
    pub(super) fn sweep_again(&mut self) {
        self.clock.left = self.clock.phases.len() as u64;
    }

    /// Ages the block of a line, if it has not aged yet.
    #[inline]
    pub(super) fn age_block(&mut self, line: u64) {
        self.age(line / BLOCK, false);
    }

    /// Ages a block. One that has aged is looked at again for what was to be given up meanwhile, `for_room`.
    fn age(&mut self, block: u64, for_room: bool) {
        let lines = block * BLOCK..((block + 1) * BLOCK).min(self.lines.len());
        self.lines.finish_clearing(lines);
        let phase = &mut self.clock.phases[block as usize];
        let passed = (self.clock.now as u8).wrapping_sub(*phase);
        *phase = self.clock.now as u8;
        let steps = self.layout.steps;
        let most = self.clock.kept as u32;
        if passed > 0 || (for_room && most < steps) {
            let passed = u32::from(passed).min(steps + 1);
            self.level.run(Age { table: self, block, passed, most });
        }
    }

    fn fetch_block(&self, block: u64) {
        let lines = self.lines.settled();
        let from = (block * BLOCK) as usize;
        for line in from..(from + BLOCK as usize).min(lines.len()) {
            prefetch(lines, line);
        }
    }

    /// Entries in a line that has aged.
    pub(super) fn count_aged(&mut self, line: u64) -> u32 {
        self.age_block(line);
        line::count(self.lines.line(line))
    }
}
