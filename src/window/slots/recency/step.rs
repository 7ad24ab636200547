//! One arrival, or one question, in the simplest case: both lines of the key have aged.

use super::{Name, Room, Table, line};
use crate::bits::kernel::{Kernel, Work};
use crate::bits::lines::Line;
use crate::window::slots::keeps::Keeps;
use crate::{Digest, Tick};
use core::hint::select_unpredictable;

/// Which arrivals need nothing but a step, and how old they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    /// Those before this tick; 0 while lines age, or something is stashed.
    until: u64,
    /// The first tick of the present generation, where arrivals may be late: the others are as old as they come. 0 where
    /// all are of the present.
    start: u64,
    /// Ticks of a generation.
    grain: u64,
    /// The most ticks that an arrival is late.
    pub(super) lateness: u64,
    /// The most generations that a sighting is older than an arrival that it makes a duplicate.
    window: u32,
    /// Those that find fewer entries than this, or else come before a tick and find fewer than is full.
    roomy: u64,
    evict_at: u64,
    full_at: u64,
}

impl Quick {
    pub(super) fn new(keeps: &Keeps, room: &Room) -> Self {
        let Keeps { grain, lateness, .. } = *keeps;
        let window = keeps.window.span().unwrap_or(1).div_ceil(grain) as u32;
        let (roomy, full_at) = (room.roomy, room.full_at);
        Self { until: 0, start: 0, grain, lateness, window, roomy, evict_at: u64::MAX, full_at }
    }

    /// From now on.
    pub(super) fn settle(&mut self, start: u64, until: u64, evict_at: u64) {
        self.start = if self.lateness > 0 { start } else { 0 };
        (self.until, self.evict_at) = (until, evict_at);
    }

    #[inline(always)]
    pub(super) fn allows(&self, tick: Tick, occupied: u64) -> bool {
        tick.0 < self.until
            && (occupied < self.roomy || (tick.0 < self.evict_at && occupied < self.full_at))
    }

    /// How many generations before the present one an arrival is judged.
    #[inline(always)]
    pub(super) fn age_at(&self, tick: Tick, newest: Tick) -> u32 {
        if tick.0 >= self.start {
            return 0;
        }
        let at = tick.0.max(newest.0.saturating_sub(self.lateness));
        self.start.saturating_sub(at).div_ceil(self.grain) as u32
    }
}

impl Table {
    /// One arrival. `None`, and nothing has changed, where it is new and finds no room. `with_renewal` a known key
    /// becomes as young as the arrival, if it is not younger.
    #[inline(always)]
    pub(super) fn step<K: Kernel>(
        &mut self,
        kernel: K,
        (name, other): (Name, u64),
        age: u32,
        with_renewal: bool,
    ) -> Option<bool> {
        let (layout, quick) = (self.layout, self.quick);
        let lines = self.lines.settled_mut();
        let (a, b) = (name.home as usize, other as usize);
        let in_a = layout.matches(kernel, &lines[a], name.fingerprint);
        let in_b = layout.matches(kernel, &lines[b], name.fingerprint);
        let (count_a, count_b) = (line::count(&lines[a]) as i32, line::count(&lines[b]) as i32);
        // The line with the key, or the one with fewer entries.
        let full_a = if in_a != 0 { -1 } else { count_a };
        let full_b = if in_b != 0 { -1 } else { count_b };
        let is_b = full_b < full_a;
        if full_a.min(full_b) >= layout.slots as i32 {
            return None;
        }
        let matches = select_unpredictable(is_b, in_b, in_a);
        let line = &mut lines[select_unpredictable(is_b, b, a)];
        let is_there = matches != 0;
        let mut is_known = is_there;
        if quick.lateness > 0 {
            let known_age = line::age_of(kernel, line, matches);
            is_known &= known_age <= age + quick.window;
            if age > 0 {
                if is_known && (known_age <= age || !with_renewal) {
                    return Some(true);
                }
                layout.place(kernel, line, age, matches, name.fingerprint);
                self.occupied += u64::from(!is_there);
                return Some(is_known);
            }
        }
        if is_known && !with_renewal {
            return Some(true);
        }
        layout.push(kernel, line, matches, name.fingerprint);
        self.occupied += u64::from(!is_there);
        Some(is_known)
    }

    /// Was a key seen within the window around a question?
    #[inline(always)]
    pub(super) fn is_in<K: Kernel>(&self, kernel: K, (name, other): (Name, u64), age: u32) -> bool {
        let lines = self.lines.settled();
        let (a, b) = (name.home as usize, other as usize);
        let in_a = self.layout.matches(kernel, &lines[a], name.fingerprint);
        let in_b = self.layout.matches(kernel, &lines[b], name.fingerprint);
        let matches = in_a | in_b;
        if self.quick.lateness == 0 {
            return matches != 0;
        }
        // One of them has it, if any.
        let line: &Line = &lines[select_unpredictable(in_b != 0, b, a)];
        (matches != 0) & (line::age_of(kernel, line, matches) <= age + self.quick.window)
    }
}

pub(super) struct Step<'a> {
    pub(super) table: &'a mut Table,
    pub(super) digest: Digest,
    /// [`Quick::age_at`].
    pub(super) age: u32,
    pub(super) with_renewal: bool,
}

impl Work for Step<'_> {
    type Result = Option<bool>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Option<bool> {
        let name = self.table.name(self.digest);
        let names = (name, self.table.other(name));
        self.table.step(kernel, names, self.age, self.with_renewal)
    }
}

pub(super) struct Ask<'a> {
    pub(super) table: &'a Table,
    pub(super) digest: Digest,
    /// [`Quick::age_at`].
    pub(super) age: u32,
}

impl Work for Ask<'_> {
    type Result = bool;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> bool {
        let name = self.table.name(self.digest);
        self.table.is_in(kernel, (name, self.table.other(name)), self.age)
    }
}
