//! Cyclic time: stamps of few bits that stay right for ever.

use crate::codec::{Reader, Writer};
use crate::window::Shape;
use crate::window::ends::{self, Ends};
use crate::{Seen, SnapshotError, Tick, Window};
use core::ops::Range;

/// How a table tells time: what a grain is, how many make a window, how stamps go round.
///
/// A stamp names the moment it was set modulo `length`, so its age is right as long as it is below
/// `length`. Cells that have expired are cleared by a sweep that goes round the table once in
/// `period` grains. A cell that was live when the sweep passed is at most `steps + period` grains old
/// when it falls due again, and is looked at no later than `stride - 1` grains after that, as a longer
/// step is taken in strides of so many. So every pace keeps `steps + period + stride - 1 < length`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// Ticks that count as one moment.
    grain: u64,
    /// Grains for which a key is kept: the window's, and those of the lateness.
    steps: u64,
    /// Stamps are `1..=length`, 0 being "unset".
    length: u64,
    period: u64,
    stride: u64,
    /// After a pause of so many grains every cell has expired and the table is cleared at once.
    long_pause: u64,
    /// Is a tick an arrival, which only the next one can ask about?
    counting: bool,
    /// Ticks for which a key is kept, where a grain is known to have expired by its newest tick; [`NEVER`] elsewhere.
    reach: u64,
    /// Grains that an arrival is late at most.
    late: u64,
}

/// Where grains tell moments, or the table has its own way to tell when they have expired.
const NEVER: u64 = u64::MAX;

/// How long a key is kept in ticks, if grains of so many are more than moments.
fn reach_of(grain: u64, span: u64, lateness: u64) -> u64 {
    if grain > 1 { span.saturating_add(lateness) } else { NEVER }
}

/// Stamps for so many moments, and one more value for "unset".
fn length_for(moments: u64) -> u64 {
    u64::MAX >> moments.leading_zeros()
}

impl Pace {
    /// Time in ticks: stamps of `ceil(log2(3·steps + 3))` bits. With a period of at least one
    /// window and a tick, a table is swept about once a window, which costs less time an arrival
    /// than setting cells did.
    pub(crate) fn ticking(shape: &Shape) -> Self {
        let steps = shape.steps();
        let length = length_for(3 * steps + 2);
        let period = (length - steps).div_ceil(2);
        let stride = period - 1;
        let Shape { grain, span, lateness, .. } = *shape;
        let (reach, late) = (reach_of(grain, span, lateness), lateness.div_ceil(grain));
        let (long_pause, counting) = (period, false);
        Self { grain, steps, length, period, stride, long_pause, counting, reach, late }
    }

    /// The last `n` arrivals, as in the papers: stamps of `ceil(log2(2·n + 1))` bits.
    ///
    /// Their number is odd, so that one more than `2·n` is there, and the sweep has `n` steps.
    pub(crate) fn counting(n: u64) -> Self {
        let length = length_for(2 * n);
        let period = length - n - 1;
        let long_pause = n + 1;
        let (grain, steps, stride, counting, reach, late) = (1, n, 1, true, NEVER, 0);
        Self { grain, steps, length, period, stride, long_pause, counting, reach, late }
    }

    /// For tables in which what has expired makes room by itself: the sweep is there for the stamps
    /// alone, and as slow as they allow. Stamps have `ceil(log2(9/8·steps + 3))` bits.
    /// Arrivals that may be late are kept for that much longer.
    pub(crate) fn lazy(window: Window, grain: u64, lateness: u64) -> Self {
        let counts = matches!(window, Window::Count(_));
        let (counting, span) = (counts && grain == 1, window.span().unwrap_or(1));
        let late = lateness.div_ceil(grain);
        let steps = span.div_ceil(grain) + late;
        let length = length_for(steps + (steps / 8).max(2) + 1);
        // Ticks may come many at once; they are then taken in a few strides.
        let stride = if counting { 1 } else { ((length - steps) / 5).max(1) };
        let period = length - steps - stride;
        // The last so many arrivals are never more than planned for.
        let reach = if counts { NEVER } else { reach_of(grain, span, lateness) };
        let long_pause = steps + 1;
        Self { grain, steps, length, period, stride, long_pause, counting, reach, late }
    }

    /// The most grains for which [`Pace::lazy`] has stamps of so many bits.
    pub(crate) fn most_steps(bits: u32) -> u64 {
        let length = u64::MAX >> (64 - bits.clamp(3, 63));
        let fits = |steps: u64| steps + (steps / 8).max(2) < length;
        let (mut low, mut high) = (0, length);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// The same, with the sweep going round at least so many times a window: where what has expired is
    /// in the way.
    pub(crate) fn swept(self, rounds: u64) -> Self {
        Self { period: self.period.min((self.steps / rounds).max(1)), ..self }
    }

    /// The same, for tables without stamps whose cells are to be looked at before `turns` generations
    /// of so many grains have passed.
    pub(crate) fn turning(self, generation: u64, turns: u64) -> Self {
        let stride = if self.counting { 1 } else { generation };
        let most = generation.saturating_mul(turns - 1);
        Self { length: u64::MAX, period: most - stride, stride, ..self }
    }

    /// The same, for tables in which what has expired goes by itself, by a clock of their own.
    pub(crate) fn without_sweep(self) -> Self {
        let period = ((1 << 62) / self.grain).max(1);
        Self { length: u64::MAX, period, stride: u64::MAX, reach: NEVER, ..self }
    }

    /// Is it known of grains when they were last marked?
    pub(crate) fn notes_ends(&self) -> bool {
        self.reach != NEVER
    }

    /// Grains of a part of which that is known, as a power of two: one, unless those of a window are too many.
    fn part_bits(&self) -> u32 {
        (0..64).find(|bits| self.steps >> bits <= ends::PARTS - 2).unwrap_or(63)
    }

    /// Parts that grains for which a key is kept may lie in.
    fn parts(&self) -> u64 {
        (self.steps >> self.part_bits()) + 2
    }

    /// Grains for which a key is kept: the window's, and those of the lateness.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// A bit for each stamp that is no older than so many grains at a present one, if stamps have at most 6 bits.
    fn live_at(&self, stamp: u64, kept: u64) -> u64 {
        if self.length > 63 {
            return 0;
        }
        let age = |other| if other > stamp { stamp + self.length - other } else { stamp - other };
        let live = (1..=self.length).filter(|&other| age(other) <= kept);
        live.fold(0, |bits, other| bits | 1 << other)
    }

    /// How many cells of a table are swept every how many ticks, so that the sweep goes round in a
    /// period: a few often, for no arrival is to wait long.
    fn portions(&self, cells: u64) -> (u64, u64) {
        let ticks = u128::from(self.period) * u128::from(self.grain);
        let cells = u128::from(cells);
        // A portion is late by as much as it waits, so the round must be that much shorter.
        let wait = (ticks * u128::from(PORTION) / cells).min(ticks / 8).max(1);
        let round = if wait == 1 { ticks } else { ticks - wait };
        let portion = (cells * wait).div_ceil(round);
        // Neither is more than what it was computed from.
        (portion as u64, wait as u64)
    }

    /// Are ticks arrivals?
    pub(crate) fn is_counting(&self) -> bool {
        self.counting
    }

    /// Bits of a stamp.
    pub(crate) fn stamp_bits(&self) -> u32 {
        self.length.trailing_ones()
    }

    /// How much longer than a span a key may still be found, in ticks: one seen at the first tick of
    /// its grain, asked for at the last of the last live one.
    pub(crate) fn slack(&self, span: u64) -> u64 {
        (span.div_ceil(self.grain) + 1).saturating_mul(self.grain) - 1 - span
    }
}

/// The present moment of a table whose cells hold stamps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cycle {
    pace: Pace,
    cells: u64,
    /// The newest tick.
    tick: u64,
    /// It in grains.
    now: u64,
    /// `now` as a stamp.
    stamp: u64,
    /// The most grains that something live is old: fewer than a window has where all of the oldest ones has expired.
    kept: u64,
    /// Where stamps have at most 6 bits, a bit for each that is live; 0 where they have more.
    live: u64,
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
    /// The first tick at which there is anything to do.
    next: u64,
}

/// What time's passing did to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Nothing that matters, or cells were cleared.
    Little,
    /// Every cell has expired: the caller clears the table.
    Everything,
}

/// Cells that the sweep looks at together, where it can.
const PORTION: u64 = 64;

impl Cycle {
    pub(crate) fn new(pace: Pace, cells: u64) -> Self {
        let (portion, every) = pace.portions(cells);
        let (tick, now, stamp, cursor) = (0, 0, 1, 0);
        let (kept, grain_end, due) = (pace.steps, pace.grain, every);
        Self {
            pace,
            cells,
            tick,
            now,
            stamp,
            kept,
            live: pace.live_at(stamp, kept),
            grain_end,
            portion,
            every,
            due,
            cursor,
            ends: Ends::NONE,
            part_bits: pace.part_bits(),
            evict_at: u64::MAX,
            next: grain_end.min(due),
        }
    }

    /// How time is told.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
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
        self.kept
    }

    /// The first grain in which something may be live for a question at a tick.
    #[inline]
    pub(crate) fn first_kept(&self, at: Tick) -> u64 {
        if at.0 < self.next || !self.pace.notes_ends() {
            return self.now.saturating_sub(self.kept);
        }
        let tick = at.0.max(self.tick);
        self.first_live(tick, tick / self.pace.grain).0
    }

    /// Is something of that many grains' age live for a question at a tick?
    #[inline]
    pub(crate) fn is_kept(&self, age: u64, at: Tick) -> bool {
        age <= self.kept
            && (at.0 < self.next || self.now.saturating_sub(age) >= self.first_kept(at))
    }

    /// Grains by which something must be younger than the window to be live for a question at a tick.
    #[inline]
    pub(crate) fn margin(&self, at: Tick) -> u64 {
        let later = self.grains_until(at);
        if at.0 < self.next || !self.pace.notes_ends() {
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

    /// Something is marked at a tick, no later than the newest and no earlier than the lateness allows.
    pub(crate) fn note_mark_at(&mut self, tick: Tick) {
        if self.pace.notes_ends() {
            self.ends.note((tick.0 / self.pace.grain) >> self.part_bits, tick.0);
        }
    }

    /// Takes over when the cells of another one, of the same pace and moment, were marked.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.ends.unite(&other.ends);
        // What the other holds may be older than what was left here.
        self.kept = self.pace.steps;
        self.give_up();
    }

    /// Grains that make up a window of so many ticks, and no more than the window kept.
    pub(crate) fn steps_within(&self, ticks: u64) -> u64 {
        ticks.div_ceil(self.pace.grain).min(self.pace.steps)
    }

    /// The age of a stamp in grains.
    #[inline]
    pub(crate) fn age(&self, stamp: u64) -> u64 {
        let wrapped = if stamp > self.stamp { self.pace.length } else { 0 };
        self.stamp.wrapping_sub(stamp).wrapping_add(wrapped)
    }

    /// The stamp of so many grains ago, less than a cycle.
    #[inline]
    pub(crate) fn stamp_of(&self, age: u64) -> u64 {
        let wrapped = if age >= self.stamp { self.pace.length } else { 0 };
        self.stamp.wrapping_add(wrapped) - age
    }

    /// Which of these stamps are set and within the window?
    #[inline(always)]
    pub(crate) fn are_live(&self, stamps: [u64; 4]) -> [bool; 4] {
        if self.live != 0 {
            stamps.map(|stamp| self.live >> (stamp & 63) & 1 == 1)
        } else {
            stamps.map(|stamp| self.is_live(stamp))
        }
    }

    /// Is this stamp set and within the window?
    #[inline]
    pub(crate) fn is_live(&self, stamp: u64) -> bool {
        (stamp != 0) & (self.age(stamp) <= self.kept)
    }

    /// Is this stamp set and still within the window so many grains later?
    #[inline]
    pub(crate) fn is_live_later(&self, stamp: u64, later: u64) -> bool {
        (stamp != 0) & self.is_kept_later(self.age(stamp), later)
    }

    /// Is something of that many grains' age still within the window so many grains later?
    #[inline]
    pub(crate) fn is_kept_later(&self, age: u64, later: u64) -> bool {
        // Any tick may be asked about: the sum may be beyond 64 bits.
        (age <= self.kept) & (age.saturating_add(later) <= self.pace.steps)
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

    /// Moves the present moment on, and names ranges of cells in which what has expired is to be
    /// cleared. A moment before the present one changes nothing: time never goes back.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        tick: Tick,
        clear_expired: impl FnMut(Range<u64>, &Self),
    ) -> Passed {
        if tick.0 <= self.tick {
            return Passed::Little;
        }
        self.tick = tick.0;
        if tick.0 < self.next {
            return Passed::Little;
        }
        self.step(clear_expired)
    }

    fn step(&mut self, mut clear_expired: impl FnMut(Range<u64>, &Self)) -> Passed {
        let now = self.tick / self.pace.grain;
        let mut left = now - self.now;
        let passed = left > 0;
        if left >= self.pace.long_pause {
            self.cursor = 0;
            self.pass(left);
            self.due = self.next_due();
            self.give_up();
            return Passed::Everything;
        }
        while left > 0 {
            let stride = left.min(self.pace.stride);
            left -= stride;
            self.sweep_due(self.grain_end - 1, &mut clear_expired);
            self.pass(stride);
        }
        if passed || self.tick >= self.evict_at {
            self.give_up();
        }
        self.sweep_due(self.tick, &mut clear_expired);
        self.settle();
        Passed::Little
    }

    /// Looks from when on something may be live: what is older has expired, though its grains have not.
    fn give_up(&mut self) {
        if self.pace.notes_ends() {
            let (first, end) = self.first_live(self.tick, self.now);
            if first > self.now.saturating_sub(self.kept) {
                self.kept = self.now - first;
            }
            self.live = self.pace.live_at(self.stamp, self.kept);
            self.evict_at = end.saturating_add(self.pace.reach).saturating_add(1);
        }
        self.settle();
    }

    /// Says from now on when there is something to do.
    fn settle(&mut self) {
        self.next = self.grain_end.min(self.due).min(self.evict_at);
    }

    /// The first grain in which something may be live at a tick of a grain that is not before the present one, and when
    /// its part ends, if that is known.
    fn first_live(&self, tick: u64, grain: u64) -> (u64, u64) {
        let (Pace { reach, late, steps, .. }, bits) = (self.pace, self.part_bits);
        let kept = self.kept.saturating_add(grain - self.now).min(steps);
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

    fn sweep_due(&mut self, tick: u64, clear_expired: &mut impl FnMut(Range<u64>, &Self)) {
        if tick < self.due {
            return;
        }
        // Most often one: a division is dear.
        let late = tick - self.due;
        let portions = 1 + if late < self.every { 0 } else { late / self.every };
        self.due = self.due.saturating_add(portions.saturating_mul(self.every));
        self.sweep(portions.saturating_mul(self.portion), clear_expired);
    }

    fn pass(&mut self, grains: u64) {
        if grains > 0 {
            let part = self.now >> self.part_bits;
            self.now += grains;
            self.grain_end = self.now.saturating_add(1).saturating_mul(self.pace.grain);
            self.stamp = (self.stamp - 1 + grains % self.pace.length) % self.pace.length + 1;
            self.kept = self.kept.saturating_add(grains).min(self.pace.steps);
            self.live = self.pace.live_at(self.stamp, self.kept);
            if self.pace.notes_ends() {
                self.begin_parts(part);
            }
        }
    }

    /// Nothing was marked yet in the parts after this one, nor is any mark left of those before all that is kept.
    fn begin_parts(&mut self, last: u64) {
        let (begun, parts) = (last + 1, self.pace.parts());
        let end = (self.now >> self.part_bits) + 1;
        self.ends.set(begun..end, 0);
        self.ends.set(begun.saturating_sub(parts)..end.saturating_sub(parts), 0);
    }

    /// Names the next `count` cells for clearing.
    #[inline]
    pub(crate) fn sweep(&mut self, count: u64, mut clear_expired: impl FnMut(Range<u64>, &Self)) {
        let count = count.min(self.cells);
        let first = self.cursor..(self.cursor + count).min(self.cells);
        let second = 0..count - (first.end - first.start);
        self.cursor = if first.end == self.cells { second.end } else { first.end };
        clear_expired(first, self);
        if !second.is_empty() {
            clear_expired(second, self);
        }
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

/// A grain whose slack is at most `slack`, and nearly as large as that allows.
pub(super) fn coarsest_grain(span: u64, slack: u64) -> u64 {
    let slack_of = |grain: u64| {
        let reach = (u128::from(span.div_ceil(grain)) + 1) * u128::from(grain);
        reach - 1 - u128::from(span)
    };
    // Steps of equal length overlap the window least; a few more of them may be needed to fit.
    let fewest = span.div_ceil(slack.saturating_add(1));
    (fewest..fewest.saturating_add(8))
        .map(|steps| span.div_ceil(steps))
        .find(|&grain| slack_of(grain) <= u128::from(slack))
        // Any grain costs at most twice itself, less 2.
        .unwrap_or(slack / 2 + 1)
}
