//! Cyclic time: stamps of few bits that stay right for ever.

mod laps;
mod pace;
mod sweep;
mod view;

use self::laps::Laps;
pub(crate) use self::pace::{Pace, coarsest_grain};
pub(crate) use self::sweep::Sweep;
pub(crate) use self::view::View;

use crate::codec::{Reader, Writer};
use crate::window::ends::{self, Ends};
use crate::{Seen, SnapshotError, Tick};

/// The present moment of a table whose cells hold stamps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cycle {
    pace: Pace,
    cells: u64,
    /// The newest tick.
    tick: u64,
    /// It in grains.
    now: u64,
    /// How stamps are read now.
    view: View,
    /// The first tick after the present grain.
    grain_end: u64,
    /// Cells that are swept every so many ticks.
    portion: u64,
    every: u64,
    /// The tick at which the next portion is swept, a multiple of `every`.
    due: u64,
    /// The cell that the sweep looks at next.
    cursor: u64,
    /// When parts of the window were last marked, where that is noted.
    ends: Ends,
    /// Grains of a part, as a power of two.
    part_bits: u32,
    /// The tick at which something has expired before its grain has.
    evict_at: u64,
    /// How far the sweep is behind.
    laps: Laps,
}

/// What time's passing did to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Nothing that matters, or cells were cleared.
    Little,
    /// Every cell has expired.
    Everything,
}

impl Cycle {
    pub(crate) fn new(pace: Pace, cells: u64) -> Self {
        let (portion, every) = pace.portions(cells);
        let (tick, now, stamp, cursor) = (0, 0, 1, 0);
        let (grain_end, due) = (pace.grain, every);
        let Pace { steps, length, .. } = pace;
        let live = pace.live_at(stamp, steps);
        Self {
            pace,
            cells,
            tick,
            now,
            view: View { stamp, behind: 0, length, steps, kept: steps, live },
            grain_end,
            portion,
            every,
            due,
            cursor,
            ends: Ends::NONE,
            part_bits: pace.part_bits(),
            evict_at: u64::MAX,
            laps: Laps::new(grain_end.min(due)),
        }
    }

    /// How time is told.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The stamp of the present moment.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.view.stamp
    }

    /// The present moment in grains.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The first tick of the present grain.
    pub(crate) fn grain_start(&self) -> u64 {
        self.now * self.pace.grain
    }

    /// The first tick after the present grain.
    pub(crate) fn grain_end(&self) -> u64 {
        self.grain_end
    }

    /// Notes a tick of the present grain.
    #[inline(always)]
    pub(crate) fn note(&mut self, tick: Tick) {
        self.tick = self.tick.max(tick.0);
    }

    /// The newest tick.
    pub(crate) fn newest(&self) -> Tick {
        Tick(self.tick)
    }

    /// The ticks in which something of that many grains' age was seen.
    pub(crate) fn seen(&self, age: u64) -> Seen {
        let moment = self.now.saturating_sub(age);
        self.seen_between(moment, moment)
    }

    /// The ticks from one grain to another, none of them after the newest.
    pub(crate) fn seen_between(&self, from: u64, to: u64) -> Seen {
        let first = |grain: u64| grain.saturating_mul(self.pace.grain);
        let last = first(to).saturating_add(self.pace.grain - 1);
        Seen { from: Tick(first(from)), to: Tick(last.min(self.tick)) }
    }

    /// Grains for which a key is kept: the window's, and those of the lateness.
    #[inline]
    pub(crate) fn steps(&self) -> u64 {
        self.pace.steps
    }

    /// The most grains that something live is old at the present moment: no more than [`Cycle::steps`].
    #[inline]
    pub(crate) fn kept(&self) -> u64 {
        self.view.kept
    }

    /// How stamps are read that were set now, or in cells that the sweep is not behind with.
    #[inline(always)]
    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// The first grain in which something may be live for a question at a tick.
    #[inline]
    pub(crate) fn first_kept(&self, at: Tick) -> u64 {
        if at.0 < self.laps.next || !self.pace.notes_ends() {
            return self.now.saturating_sub(self.view.kept);
        }
        let tick = at.0.max(self.tick);
        self.first_live(tick, tick / self.pace.grain).0
    }

    /// Is something of that many grains' age live for a question at a tick?
    #[inline]
    pub(crate) fn is_kept(&self, age: u64, at: Tick) -> bool {
        age <= self.view.kept
            && (at.0 < self.laps.next || self.now.saturating_sub(age) >= self.first_kept(at))
    }

    /// Grains by which something must be younger than the window to be live for a question at a tick.
    #[inline]
    pub(crate) fn margin(&self, at: Tick) -> u64 {
        let later = self.grains_until(at);
        if at.0 < self.laps.next || !self.pace.notes_ends() {
            return later;
        }
        match self.now.checked_sub(self.first_kept(at)) {
            Some(age) => later.max(self.pace.steps.saturating_sub(age)),
            None => u64::MAX,
        }
    }

    /// Something is marked at the newest tick.
    #[inline(always)]
    pub(crate) fn note_mark(&mut self) {
        if self.pace.notes_ends() {
            self.ends.note(self.now >> self.part_bits, self.tick);
        }
    }

    /// Something is marked at a tick of a grain, no later than the newest and no earlier than the lateness allows.
    #[inline]
    pub(crate) fn note_mark_at(&mut self, tick: Tick, grain: u64) {
        if self.pace.notes_ends() {
            self.ends.note(grain >> self.part_bits, tick.0);
        }
    }

    /// Takes over when the cells of another one, of the same pace and moment, were marked.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.ends.unite(&other.ends);
        // What the other holds may be older than what was left here.
        self.keep(self.pace.steps);
        self.give_up();
    }

    /// Grains that make up a window of so many ticks, and no more than the window kept.
    pub(crate) fn steps_within(&self, ticks: u64) -> u64 {
        ticks.div_ceil(self.pace.grain).min(self.pace.steps)
    }

    /// The stamp of so many grains ago, less than a cycle.
    #[inline]
    pub(crate) fn stamp_of(&self, age: u64) -> u64 {
        let stamp = self.view.stamp;
        let wrapped = if age >= stamp { self.pace.length } else { 0 };
        stamp.wrapping_add(wrapped) - age
    }

    /// Grains from the present moment to a question; 0 for one in the past. Where ticks are
    /// arrivals the question is the next arrival's, at the earliest.
    #[inline]
    pub(crate) fn grains_until(&self, tick: Tick) -> u64 {
        if tick.0 < self.grain_end {
            u64::from(self.pace.counting)
        } else {
            tick.0 / self.pace.grain - self.now
        }
    }

    /// The tick of an arrival: where ticks are arrivals no two have the same.
    #[inline]
    pub(crate) fn arrival(&self, tick: Tick) -> Tick {
        if self.pace.counting { Tick(tick.0.max(self.grain_end)) } else { tick }
    }

    /// Moves the present moment on, and sweeps the table meanwhile. A moment before the present one changes nothing:
    /// time never goes back.
    #[inline]
    pub(crate) fn advance(&mut self, tick: Tick, table: &mut impl Sweep) -> Passed {
        if tick.0 <= self.tick {
            return Passed::Little;
        }
        self.tick = tick.0;
        if tick.0 < self.laps.next {
            return Passed::Little;
        }
        if table.many_pages().is_some() { self.step(table) } else { self.step_in_strides(table) }
    }

    /// One step, however long: cells whose turn it was meanwhile are swept as of then, or later, as many at a time
    /// as an arrival has time for.
    fn step(&mut self, table: &mut impl Sweep) -> Passed {
        let left = self.grains_passed();
        let everything = left >= self.pace.long_pause;
        if left > 0 && !everything {
            self.owe(self.grain_end - 1);
            self.catch_up(table);
        }
        if left > 0 {
            self.pass(left);
            self.tell(table);
        }
        if everything {
            self.expire_all(table);
        } else {
            self.owe(self.tick);
        }
        if left > 0 || self.tick >= self.evict_at {
            self.give_up();
        }
        self.catch_up(table);
        self.settle();
        if everything { Passed::Everything } else { Passed::Little }
    }

    /// For small tables, and those whose cells all have to be swept in time.
    fn step_in_strides(&mut self, table: &mut impl Sweep) -> Passed {
        let mut left = self.grains_passed();
        let passed = left > 0;
        if left >= self.pace.long_pause {
            self.cursor = 0;
            self.pass(left);
            self.due = self.next_due();
            self.give_up();
            table.expire_all();
            return Passed::Everything;
        }
        while left > 0 {
            let stride = left.min(self.pace.stride);
            left -= stride;
            self.sweep_due(self.grain_end - 1, table);
            self.pass(stride);
        }
        if passed || self.tick >= self.evict_at {
            self.give_up();
        }
        self.sweep_due(self.tick, table);
        self.settle();
        Passed::Little
    }

    fn sweep_due(&mut self, tick: u64, table: &mut impl Sweep) {
        self.owe(tick);
        let count = core::mem::take(&mut self.laps.owed);
        if count > 0 {
            self.sweep(count, table);
        }
    }

    /// Grains from the present moment to the newest tick.
    #[inline]
    fn grains_passed(&self) -> u64 {
        let (ticks, grain) = (self.tick - self.grain_start(), self.pace.grain);
        // Most often none or one: a division is dear.
        if ticks < grain {
            0
        } else if ticks - grain < grain {
            1
        } else {
            ticks / grain
        }
    }

    /// Looks from when on something may be live: what is older has expired, though its grains have not.
    fn give_up(&mut self) {
        if self.pace.notes_ends() {
            let (first, end) = self.first_live(self.tick, self.now);
            if first > self.now.saturating_sub(self.view.kept) {
                self.keep(self.now - first);
            }
            self.evict_at = end.saturating_add(self.pace.reach).saturating_add(1);
        }
        self.settle();
    }

    /// What is older than so many grains has expired.
    fn keep(&mut self, grains: u64) {
        self.view.kept = grains;
        self.view.live = self.pace.live_at(self.view.stamp, grains);
    }

    /// Says from now on when there is something to do.
    fn settle(&mut self) {
        let next = self.grain_end.min(self.due).min(self.evict_at);
        self.laps.next = if self.laps.busy { 0 } else { next };
    }

    /// The first grain in which something may be live at a tick of a grain that is not before the present one, and when
    /// its part ends, if that is known.
    fn first_live(&self, tick: u64, grain: u64) -> (u64, u64) {
        let (Pace { reach, late, steps, .. }, bits) = (self.pace, self.part_bits);
        let kept = self.view.kept.saturating_add(grain - self.now).min(steps);
        let oldest = grain.saturating_sub(kept);
        // Nothing is marked any more in the parts before this one.
        let marked = grain.saturating_sub(late) >> bits;
        let known = marked.min((self.now >> bits) + 1);
        let part = self.ends.first_since(tick.saturating_sub(reach), oldest >> bits..known);
        if part < known {
            return (oldest.max(part << bits), self.ends.of(part));
        }
        (oldest.max(marked << bits), u64::MAX)
    }

    /// The first multiple of `every` after the newest tick.
    fn next_due(&self) -> u64 {
        (self.tick / self.every).saturating_add(1).saturating_mul(self.every)
    }

    /// Notes what is to be swept by a tick.
    fn owe(&mut self, tick: u64) {
        if tick < self.due {
            return;
        }
        // Most often one: a division is dear.
        let late = tick - self.due;
        let portions = 1 + if late < self.every { 0 } else { late / self.every };
        self.due = self.due.saturating_add(portions.saturating_mul(self.every));
        let cells = portions.saturating_mul(self.portion);
        self.laps.owed = self.laps.owed.saturating_add(cells).min(self.cells);
    }

    fn pass(&mut self, grains: u64) {
        if grains > 0 {
            let part = self.now >> self.part_bits;
            self.now += grains;
            self.grain_end = self.now.saturating_add(1).saturating_mul(self.pace.grain);
            self.view.stamp = self.stamp_after(grains);
            self.laps.clock = self.laps.clock.wrapping_add(grains.min(self.pace.length));
            self.keep(self.view.kept.saturating_add(grains).min(self.pace.steps));
            if self.pace.notes_ends() && self.now >> self.part_bits > part {
                self.begin_parts(part);
            }
        }
    }

    /// The stamp so many grains after the present one.
    #[inline]
    fn stamp_after(&self, grains: u64) -> u64 {
        let length = self.pace.length;
        let grains = if grains < length { grains } else { grains % length };
        // Below 2^64, as `length` is at most half of that, or else this is the moment itself.
        let moment = self.view.stamp - 1 + grains;
        1 + if moment < length { moment } else { moment - length }
    }

    /// Nothing was marked yet in the parts after this one, nor is any mark left of those before all that is kept.
    fn begin_parts(&mut self, last: u64) {
        let (begun, parts) = (last + 1, self.pace.parts());
        let end = (self.now >> self.part_bits) + 1;
        self.ends.set(begun..end, 0);
        self.ends.set(begun.saturating_sub(parts)..end.saturating_sub(parts), 0);
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.tick);
        out.u64(self.cursor);
        if self.pace.notes_ends() {
            self.parts().for_each(|part| out.u64(part.map_or(0, |part| self.ends.of(part))));
        }
    }

    /// The parts that grains for which a key is kept may lie in, the present one first; none before the first tick.
    fn parts(&self) -> impl Iterator<Item = Option<u64>> + use<> {
        let present = self.now >> self.part_bits;
        (0..self.pace.parts()).map(move |back| present.checked_sub(back))
    }

    pub(crate) fn read(
        pace: Pace,
        cells: u64,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let mut cycle = Self::new(pace, cells);
        (cycle.tick, cycle.cursor) = (input.u64()?, input.u64()?);
        if cycle.cursor > cycle.cells {
            return Err(SnapshotError::Invalid("a sweep outside its table"));
        }
        cycle.pass(cycle.tick / pace.grain);
        cycle.due = cycle.next_due();
        if pace.notes_ends() {
            cycle.read_ends(input)?;
        }
        cycle.give_up();
        Ok(cycle)
    }

    /// Reads when parts were last marked; in snapshots of before that was not told, and may have been until their end.
    fn read_ends(&mut self, input: &mut Reader<'_>) -> Result<(), SnapshotError> {
        let is_told = ends::are_told(input);
        for part in self.parts() {
            let (first, last) = match part {
                Some(part) => self.ticks_of(part),
                None => (0, 0),
            };
            let end = if is_told { input.u64()? } else { last };
            if end != 0 && !(first..=last).contains(&end) {
                return Err(SnapshotError::Invalid("a window marked outside its time"));
            }
            if let Some(part) = part {
                self.ends.note(part, end);
            }
        }
        Ok(())
    }

    /// The first tick of a part, and the last one, or the newest.
    fn ticks_of(&self, part: u64) -> (u64, u64) {
        let Seen { from, to } =
            self.seen_between(part << self.part_bits, ((part + 1) << self.part_bits) - 1);
        (from.0, to.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;
    use crate::codec::{self, Format};
    use alloc::vec::Vec;
    use core::ops::Range;
    use proptest::prelude::*;

    /// A table without cells.
    struct Nothing;

    impl Sweep for Nothing {
        fn clear_expired(&mut self, _: Range<u64>, _: &Cycle) {}

        fn clear(&mut self) {}
    }

    /// A version that tells marks.
    const FORMAT: Format = Format::new(*b"\x89CYCLE\r\n", 1 + ends::VERSION);

    proptest! {
        /// The stamp is that of the moment, also where it is of 64 bits and time ends.
        #[test]
        fn stamps_go_round_with_time(
            exponent in 1u32..64, to_end in any::<bool>(), steps in prop::collection::vec(any::<u64>(), 1..20),
        ) {
            let pace = Pace::lazy(Window::time(u64::MAX >> exponent, 1), 1, 0);
            let mut cycle = Cycle::new(pace, 1);
            let mut now = 0u64;
            for (at, step) in steps.into_iter().enumerate() {
                now = now.saturating_add(step >> (at % 8 * 8));
                cycle.pass(now - cycle.now);
                prop_assert_eq!(cycle.stamp(), now % pace.length + 1);
            }
            if to_end {
                cycle.pass(u64::MAX - cycle.now);
                prop_assert_eq!(cycle.stamp(), u64::MAX % pace.length + 1);
            }
        }

        /// Against a list of marks: the grain of whatever is live is kept, for questions to come too, and no part is
        /// kept in which nothing is live and nothing can be marked any more.
        #[test]
        fn what_is_live_is_kept_and_no_more(
            span in 1u64..4_000, grain in 2u64..40, lateness in prop_oneof![Just(0), 0u64..3_000],
            steps in prop::collection::vec((0u64..700, 0u64..3_000, any::<bool>()), 1..60),
        ) {
            let pace = Pace::lazy(Window::time(span, 1), grain, lateness);
            let (mut cycle, reach) = (Cycle::new(pace, 1_000), span + lateness);
            let (mut marks, mut now) = (Vec::new(), 0);
            for (gap, late, is_mark) in steps {
                now += gap;
                cycle.advance(Tick(now), &mut Nothing);
                if is_mark {
                    let at = now.saturating_sub(late.min(lateness));
                    cycle.note_mark_at(Tick(at), at / grain);
                    marks.push(at);
                }
                for at in [0, 1, grain, span / 2, span].map(|ahead| now + ahead) {
                    let first = cycle.first_kept(Tick(at));
                    let kept = |&mark: &u64| mark + reach < at || mark / grain >= first;
                    prop_assert!(marks.iter().all(kept), "{} {} {:?}", at, first, marks);
                }
                if now > reach {
                    let live = marks.iter().filter(|&&mark| mark + reach >= now);
                    let open = (now / grain).saturating_sub(lateness.div_ceil(grain));
                    let first = live.map(|mark| mark / grain).fold(open, u64::min);
                    let part = first >> cycle.part_bits << cycle.part_bits;
                    prop_assert!(cycle.now.saturating_sub(cycle.kept()) >= part, "{} {:?} {:?}", now, marks, cycle);
                }
                let bytes = codec::to_vec(FORMAT, |out| cycle.write(out));
                let read = codec::from_slice(FORMAT, &bytes, |input| Cycle::read(pace, 1_000, input));
                prop_assert_eq!(read.as_ref(), Ok(&cycle));
            }
        }
    }
}
