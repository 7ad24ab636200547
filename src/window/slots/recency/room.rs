//! Room for new entries: what has expired before its generation has, and entries that move to their other line.

use super::{Name, Table};
use crate::bits::kernel::Scalar;
use crate::window::slots::core::Keeps;
use crate::{Tick, Window};
use alloc::vec::Vec;

/// Lines that an insertion looks at for room, at the most.
const LOOKS: usize = 256;

/// Blocks that an insertion looks through for what has expired, at the most.
const MOST_SWEPT: u64 = 32;

/// When a table is full, and what may go before its generation has expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// More entries than this are looked through for what has expired.
    pub(super) roomy: u64,
    /// So many are called full.
    pub(super) full_at: u64,
    /// Ticks for which a key is live, where generations may expire before their time.
    span: Option<u64>,
    /// The newest tick when time last passed.
    pub(super) tick: Tick,
}

impl Room {
    pub(super) fn new(keeps: &Keeps) -> Self {
        match keeps.window {
            // It never holds more than it was planned for.
            Window::Count(_) => {
                Self { roomy: u64::MAX, full_at: u64::MAX, span: None, tick: Tick(0) }
            }
            Window::Time { .. } | Window::Unbounded { .. } => {
                let full_at = keeps.full_at() as u64;
                // Late arrivals may be of any tick of a generation that has ended.
                let span = keeps.window.span().filter(|_| keeps.lateness == 0);
                Self { roomy: full_at / 17 * 16, full_at, span, tick: Tick(0) }
            }
        }
    }
}

/// A line on the way to room: the entry `at` of line `from` in the list would move here.
#[derive(Clone, Copy)]
struct Move {
    line: u64,
    from: usize,
    at: u32,
}

impl Table {
    /// The most generations that an entry can be old and live at a tick. Fewer than the window has where the newest
    /// entry of some generation has expired: keys come in bursts, and those of the next one need the room.
    pub(super) fn live_steps(&self, tick: Tick) -> u64 {
        let mut most = self.clock.oldest();
        let Some(span) = self.room.span else { return most };
        while most > 0
            && self.clock.end_of(most).is_some_and(|end| end.saturating_add(span) < tick.0)
        {
            most -= 1;
        }
        most
    }

    /// The first tick at which a generation has expired before its time.
    pub(super) fn evict_at(&self) -> u64 {
        let oldest = self.clock.oldest();
        match (self.room.span, self.clock.end_of(oldest)) {
            (Some(span), Some(end)) if oldest > 0 => end.saturating_add(span).saturating_add(1),
            _ => u64::MAX,
        }
    }

    /// Above its capacity a table looks for what has expired, so that it is not called full for that: all of it is
    /// looked at before a sixteenth more has come in.
    pub(super) fn sweep_if_full(&mut self, tick: Tick) {
        if self.occupied <= self.room.roomy {
            return;
        }
        let most = self.live_steps(tick);
        if most < self.clock.oldest() {
            self.clock.kept = most;
            self.sweep_again();
        }
        let blocks = self.lines.len().div_ceil(super::time::BLOCK);
        let blocks = if self.occupied < self.room.full_at {
            blocks.div_ceil((self.room.full_at - self.room.roomy).max(1))
        } else {
            blocks
        };
        self.sweep(blocks.min(MOST_SWEPT));
    }

    /// A line of a key that has room, or where room was made.
    pub(super) fn room_for(&mut self, name: Name) -> Option<u64> {
        let other = self.other(name);
        let (in_home, in_other) = (self.count_aged(name.home), self.count_aged(other));
        let line = if in_other < in_home { other } else { name.home };
        if in_home.min(in_other) < self.layout.slots {
            return Some(line);
        }
        self.make_room(name)
    }

    /// Has a line room, if what has expired in it goes?
    fn has_room(&mut self, line: u64) -> bool {
        if self.count_aged(line) < self.layout.slots {
            return true;
        }
        let most = self.live_steps(self.room.tick);
        if most == self.clock.oldest() {
            return false;
        }
        let gone = self.layout.age(Scalar, self.lines.line_mut(line), 0, most as u32);
        self.occupied -= u64::from(gone);
        gone > 0
    }

    /// Moves an entry to its other line, where there is room, and its like to where it was, and so on, as few as lead
    /// to room; returns the line of the key that has room then. Lines are looked at in the order of how many moves
    /// they are away.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, name: Name) -> Option<u64> {
        for line in [name.home, self.other(name)] {
            if self.has_room(line) {
                return Some(line);
            }
        }
        let first = |line| Move { line, from: usize::MAX, at: 0 };
        let mut moves = Vec::new();
        // Without memory for the list there is no way.
        moves.try_reserve_exact(LOOKS).ok()?;
        moves.extend([first(name.home), first(self.other(name))]);
        let mut from = 0;
        while let Some(&Move { line, .. }) = moves.get(from) {
            for at in 0..self.layout.slots {
                let fingerprint = self.layout.entry(self.lines.line(line), at).fingerprint;
                let to = self.other(Name { home: line, fingerprint });
                if is_on_the_way(&moves, from, to) {
                    continue;
                }
                if self.has_room(to) {
                    return Some(self.move_along(&moves, (from, at), to));
                }
                if moves.len() == LOOKS {
                    return None;
                }
                moves.push(Move { line: to, from, at });
            }
            from += 1;
        }
        None
    }

    /// Moves the last entry of a way to the line at its end, and the one before into its place.
    fn move_along(&mut self, moves: &[Move], last: (usize, u32), end: u64) -> u64 {
        let ((mut from, mut at), mut to) = (last, end);
        // All lines of the way differ, so places stay what they were until it is their turn.
        while let Some(step) = moves.get(from) {
            let line = self.lines.line_mut(step.line);
            let entry = self.layout.entry(line, at);
            self.layout.remove(line, at);
            self.layout.insert(self.lines.line_mut(to), entry);
            (to, from, at) = (step.line, step.from, step.at);
        }
        to
    }
}

/// Is a line one of those on the way that leads to this move?
fn is_on_the_way(moves: &[Move], mut at: usize, line: u64) -> bool {
    while let Some(&Move { line: passed, from, .. }) = moves.get(at) {
        if passed == line {
            return true;
        }
        at = from;
    }
    false
}
