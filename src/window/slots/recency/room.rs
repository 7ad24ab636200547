//! Room for new entries: what has expired before its generation has, and entries that move to their other line.

use super::line::age_of;
use super::{Name, Table};
use crate::bits::kernel::{BASE, Kernel, Work};
use crate::window::slots::keeps::Keeps;
use crate::window::slots::moves::{self, Rooms};
use crate::{Tick, Window};

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

impl Table {
    /// The most generations that an entry can be old and live at a tick. Fewer than the window has where the newest
    /// entry of some generation has expired: keys come in bursts, and those of the next one need the room.
    pub(super) fn live_steps(&self, tick: Tick) -> u64 {
        let (most, now) = (self.clock.oldest(), self.clock.now());
        let Some(span) = self.room.span else { return most };
        now - self.clock.ends.first_since(tick.0.saturating_sub(span), now - most..now)
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

    /// A new key that finds both of its lines full, though all lines have aged: puts it where entries can move; `false`, and
    /// nothing has changed, where none can. With its own the newest tick is this.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_by_moves(&mut self, name: Name, newest: Tick) -> bool {
        self.room.tick = newest;
        let Some(line) = self.make_room(name) else { return false };
        self.layout.push(BASE, self.lines.line_mut(line), 0, name.fingerprint);
        self.occupied += 1;
        true
    }

    /// The line of the key that has room after entries have moved, if there are any that can.
    fn make_room(&mut self, name: Name) -> Option<u64> {
        let lines = [name.home, self.other(name)];
        lines
            .into_iter()
            .find(|line| self.has_room(*line))
            .or_else(|| moves::make_room(self, lines))
    }
}

impl Rooms for Table {
    fn slots(&self) -> u32 {
        self.layout.slots
    }

    fn other_of(&self, line: u64, at: u32) -> u64 {
        let fingerprint = self.layout.fingerprint(self.lines.line(line), at);
        self.other(Name { home: line, fingerprint })
    }

    fn has_room(&mut self, line: u64) -> bool {
        if self.count_aged(line) < self.layout.slots {
            return true;
        }
        let most = self.live_steps(self.room.tick);
        if most == self.clock.oldest() {
            return false;
        }
        let gone = self.layout.age(BASE, self.lines.line_mut(line), 0, most as u32);
        self.occupied -= u64::from(gone);
        gone > 0
    }

    fn move_entry(&mut self, line: u64, at: u32, to: u64) {
        self.level.run(Move { table: self, line, at, to });
    }
}

/// An entry that moves to another line.
struct Move<'a> {
    table: &'a mut Table,
    line: u64,
    at: u32,
    to: u64,
}

impl Work for Move<'_> {
    type Result = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        let Self { table, line, at, to } = self;
        let (layout, from) = (table.layout, table.lines.line_mut(line));
        let (fingerprint, age) = (layout.fingerprint(from, at), age_of(kernel, from, 1 << at));
        layout.remove(kernel, from, at);
        layout.place(kernel, table.lines.line_mut(to), age, 0, fingerprint);
    }
}
