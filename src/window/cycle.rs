//! Cyclic time: stamps of few bits that stay right for ever.

use crate::snapshot::{Reader, Writer};
use crate::window::Shape;
use crate::{SnapshotError, Tick};
use core::ops::Range;

/// The present moment of a table whose cells hold stamps `1..=length`, 0 being "unset".
///
/// A stamp names the moment it was set modulo `length`, so its age is right as long as it is below
/// `length`. Cells that have expired are cleared by a sweep that goes round the table once in
/// `period` grains. A cell that was live when the sweep passed is at most
/// `steps + (period - 1)` grains old before the last step that brings the sweep back to it, and
/// that step is of less than `period` grains (a longer one clears the whole table), so it is
/// younger than `steps + 2·period - 1 <= length` when it is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cycle {
    grain: u64,
    steps: u64,
    length: u64,
    period: u64,
    cells: u64,
    /// The present moment in grains.
    now: u64,
    /// `now` as a stamp.
    stamp: u64,
    /// The first tick after the present grain.
    grain_end: u64,
    /// The cell that the sweep looks at next.
    cursor: u64,
}

/// What time's passing asks of a table.
pub(crate) enum Sweep {
    /// Nothing.
    Nothing,
    /// Every cell has expired.
    Everything,
    /// Clear what has expired in these two ranges of cells.
    Cells(Range<u64>, Range<u64>),
}

impl Cycle {
    pub(crate) fn new(shape: &Shape) -> Self {
        let length = (1u64 << shape.stamp_bits()) - 1;
        Self {
            grain: shape.grain,
            steps: shape.steps(),
            length,
            period: (length - shape.steps()).div_ceil(2),
            cells: shape.cells,
            now: 0,
            stamp: 1,
            grain_end: shape.grain,
            cursor: 0,
        }
    }

    /// The stamp of the present moment.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The present moment in grains.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The first tick of the present grain.
    pub(crate) fn newest(&self) -> Tick {
        Tick(self.now * self.grain)
    }

    /// Grains that make up the window.
    #[inline]
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The age of a stamp in grains.
    #[inline]
    pub(crate) fn age(&self, stamp: u64) -> u64 {
        let wrapped = if stamp > self.stamp { self.length } else { 0 };
        self.stamp.wrapping_sub(stamp).wrapping_add(wrapped)
    }

    /// Is this stamp set and within the window?
    #[inline]
    pub(crate) fn is_live(&self, stamp: u64) -> bool {
        (stamp != 0) & (self.age(stamp) <= self.steps)
    }

    /// Is this stamp set and still within the window so many grains later?
    #[inline]
    pub(crate) fn is_live_later(&self, stamp: u64, later: u64) -> bool {
        // Any tick may be asked about: the sum may be beyond 64 bits.
        (stamp != 0) & (self.age(stamp).saturating_add(later) <= self.steps)
    }

    /// Grains from the present moment to a tick; 0 for one in the past.
    #[inline]
    pub(crate) fn grains_until(&self, tick: Tick) -> u64 {
        if tick.0 < self.grain_end { 0 } else { tick.0 / self.grain - self.now }
    }

    /// Moves the present moment on. One before it changes nothing: time never goes back.
    #[inline]
    pub(crate) fn advance(&mut self, tick: Tick) -> Sweep {
        if tick.0 < self.grain_end { Sweep::Nothing } else { self.step(tick) }
    }

    fn step(&mut self, tick: Tick) -> Sweep {
        let now = tick.0 / self.grain;
        let passed = now - self.now;
        self.now = now;
        self.grain_end = now.saturating_add(1).saturating_mul(self.grain);
        self.stamp = (self.stamp - 1 + passed % self.length) % self.length + 1;
        if passed >= self.period {
            self.cursor = 0;
            return Sweep::Everything;
        }
        let share = u128::from(self.cells) * u128::from(passed);
        let count = (share.div_ceil(u128::from(self.period)) as u64).min(self.cells);
        let first = self.cursor..(self.cursor + count).min(self.cells);
        let second = 0..count - (first.end - first.start);
        self.cursor = if first.end == self.cells { second.end } else { first.end };
        Sweep::Cells(first, second)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.u64(self.now);
        out.u64(self.stamp);
        out.u64(self.cursor);
    }

    pub(crate) fn read(shape: &Shape, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let mut cycle = Self::new(shape);
        (cycle.now, cycle.stamp, cycle.cursor) = (input.u64()?, input.u64()?, input.u64()?);
        let in_range = (1..=cycle.length).contains(&cycle.stamp)
            && cycle.cursor <= cycle.cells
            && cycle.now <= u64::MAX / cycle.grain;
        cycle.grain_end = cycle.now.saturating_add(1).saturating_mul(cycle.grain);
        in_range.then_some(cycle).ok_or(SnapshotError::Invalid("a moment outside its cycle"))
    }
}
