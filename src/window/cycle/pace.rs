//! How a table tells time.

use crate::Window;
use crate::window::Shape;
use crate::window::ends;

/// Cells that the sweep looks at together, where it can.
const PORTION: u64 = 64;

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
    pub(super) grain: u64,
    /// Grains for which a key is kept: the window's, and those of the lateness.
    pub(super) steps: u64,
    /// Stamps are `1..=length`, 0 being "unset".
    pub(super) length: u64,
    pub(super) period: u64,
    pub(super) stride: u64,
    /// After a pause of so many grains every cell has expired and the table is cleared at once.
    pub(super) long_pause: u64,
    /// Is a tick an arrival, which only the next one can ask about?
    pub(super) counting: bool,
    /// Ticks for which a key is kept, where it is noted when grains were marked and so when all in them has expired;
    /// [`NEVER`] elsewhere.
    pub(super) reach: u64,
    /// Grains that an arrival is late at most.
    pub(super) late: u64,
}

/// Where grains are moments, arrivals are counted, or the table has a clock of its own.
const NEVER: u64 = u64::MAX;

/// [`Pace::reach`] of a window of time.
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

    /// The same, for tables in which what has expired goes by a clock of their own.
    pub(crate) fn without_sweep(self) -> Self {
        let period = ((1 << 62) / self.grain).max(1);
        Self { length: u64::MAX, period, stride: u64::MAX, reach: NEVER, ..self }
    }

    /// Is it noted when grains were last marked?
    pub(crate) fn notes_ends(&self) -> bool {
        self.reach != NEVER
    }

    /// Grains of a part of which that is noted, as a power of two: one, unless a window has too many.
    pub(super) fn part_bits(&self) -> u32 {
        (0..64).find(|bits| self.steps >> bits <= ends::PARTS - 2).unwrap_or(63)
    }

    /// Parts in which the grains lie for which a key is kept.
    pub(super) fn parts(&self) -> u64 {
        (self.steps >> self.part_bits()) + 2
    }

    /// Grains for which a key is kept: the window's, and those of the lateness.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// A bit for each stamp that is no older than so many grains at a present one, if stamps have at most 6 bits.
    pub(super) fn live_at(&self, stamp: u64, kept: u64) -> u64 {
        if self.length > 63 {
            return 0;
        }
        let age = |other| if other > stamp { stamp + self.length - other } else { stamp - other };
        let live = (1..=self.length).filter(|&other| age(other) <= kept);
        live.fold(0, |bits, other| bits | 1 << other)
    }

    /// How many cells of a table are swept every how many ticks, so that the sweep goes round in a
    /// period: a few often, for no arrival is to wait long.
    pub(super) fn portions(&self, cells: u64) -> (u64, u64) {
        let ticks = u128::from(self.period_of_pages()) * u128::from(self.grain);
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

/// A grain whose slack is at most `slack`, and nearly as large as that allows.
pub(crate) fn coarsest_grain(span: u64, slack: u64) -> u64 {
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
