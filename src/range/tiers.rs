//! The levels of a range window, from the newest items to the oldest.

use super::ages::{Ages, Live};
use super::level::{Desk, Drop, INTAKE, Level, LevelShape};
use super::pool::Pool;
use super::word::Word;
use crate::bits::dispatch::{Bits, Work, dispatch};
use alloc::vec::Vec;
use core::ops::ControlFlow;

/// Levels that there are at most.
pub(super) const MOST_LEVELS: usize = 8;

/// Steps of a level that one arrival does at most, unless stamps would become ambiguous.
const STEPS_AT_ONCE: u32 = 3;

/// Items sorted by code, in levels: new ones come into a small buffer, and each level takes from the one above
/// what lies where its sweep is. The last one keeps nearly all.
///
/// So an arrival costs a fixed share of a round of each level, and never waits for a whole one.
#[derive(Clone, Debug)]
pub(super) struct Tiers<W> {
    pub(super) ages: Ages,
    /// The newest items, sorted.
    pub(super) buffer: Vec<W>,
    /// From the small ones to the large one.
    pub(super) levels: Vec<Level<W>>,
    pub(super) pool: Pool,
    desk: Desk<W>,
    /// The grain that stamps are read as of.
    pub(super) index: u64,
}

/// The present, for a sweep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) moment: u64,
    /// Moments before this are forgotten even if the window has them.
    pub(super) horizon: u64,
}

impl<W: Word> Tiers<W> {
    pub(super) fn new(ages: Ages, shapes: &[(LevelShape, usize)], pool: Pool) -> Self {
        let levels: Vec<Level<W>> =
            shapes.iter().map(|&(shape, blocks)| Level::new(shape, blocks)).collect();
        let buffer = Vec::with_capacity(Self::room(&levels));
        let most = shapes.iter().map(|(shape, _)| shape.layout.most_items()).max();
        Self { ages, buffer, levels, pool, desk: Desk::new(most.unwrap_or(0)), index: 0 }
    }

    /// Items that the buffer has room for.
    fn room(levels: &[Level<W>]) -> usize {
        levels.first().map_or(0, |level| level.shape.period as usize) * 2 + 8
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        let levels = self.levels.iter().map(Level::memory).sum::<usize>();
        let structs = self.levels.capacity() * size_of::<Level<W>>();
        let buffer = self.buffer.capacity() * size_of::<W>();
        buffer + self.desk.memory() + levels + structs + self.pool.memory()
    }

    /// Items in all levels; one that was taken from a level and not yet dropped there counts twice.
    pub(super) fn items(&self) -> u64 {
        self.levels.iter().map(|level| level.items).sum::<u64>() + self.buffer.len() as u64
    }

    #[inline]
    fn item(&self, code: u128, stamp: u64) -> W {
        W::from_wide(code << self.ages.bits | u128::from(stamp))
    }

    /// Is an item of these codes (both included) live?
    #[inline(always)]
    pub(super) fn finds(&self, codes: (u128, u128), live: &Live) -> bool {
        dispatch(Ask { tiers: self, codes, live })
    }

    #[inline(always)]
    fn any(&self, (first, last): (u128, u128), live: &Live, processor: impl Bits) -> bool {
        let ends = (self.item(first, 0), self.item(last, self.ages.mask()));
        let mut aims = [usize::MAX; MOST_LEVELS];
        let levels = self.levels.as_slice();
        let count = levels.len().min(MOST_LEVELS);
        // Loops, as closures would not be compiled for the bit instructions. The last level's memory is the
        // farthest away.
        for at in (0..count).rev() {
            aims[at] = levels[at].aim(ends.0, &self.pool);
        }
        if self.is_in_buffer(ends, live) {
            return true;
        }
        for at in 0..count {
            if levels[at].finds(aims[at], ends, live, &self.pool, processor) {
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn is_in_buffer(&self, (from, to): (W, W), live: &Live) -> bool {
        let items = self.buffer.as_slice();
        let mut first = items.partition_point(|&item| item < from);
        while first < items.len() && items[first] <= to {
            if live.has(items[first].low()) {
                return true;
            }
            first += 1;
        }
        false
    }

    /// Remembers a code as of a grain that is not after the present one. There is room for it: always `true`.
    pub(super) fn insert(&mut self, code: u128, index: u64) -> bool {
        let item = self.item(code, index & self.ages.mask());
        let bits = self.ages.bits;
        let at = self.buffer.partition_point(|&other| other >> bits < item >> bits);
        let live = Live { index: self.index, mask: self.ages.mask(), ages: 0 };
        match self.buffer.get_mut(at) {
            Some(same) if *same >> bits == item >> bits => {
                if live.age(item.low()) < live.age(same.low()) {
                    *same = item;
                }
            }
            _ => self.buffer.insert(at, item),
        }
        true
    }

    /// Is the buffer as full as it may be?
    pub(super) fn is_crowded(&self) -> bool {
        self.buffer.len() + 1 >= Self::room(&self.levels)
    }

    /// Lets a part of the sweeps go by: `pace` 256ths of an arrival. Gives what was live and yet dropped.
    pub(super) fn pace(&mut self, pace: i64, now: Now) -> u64 {
        let mut forgotten = 0;
        for at in 0..self.levels.len() {
            let level = &mut self.levels[at];
            level.wait = level.wait.saturating_sub(pace);
            if level.wait > 0 {
                continue;
            }
            // More than a round need not be made up for.
            let round = i64::try_from(level.shape.period.saturating_mul(256)).unwrap_or(i64::MAX);
            level.wait = level.wait.max(-round);
            for _ in 0..STEPS_AT_ONCE {
                forgotten += self.step(at, now);
                let level = &mut self.levels[at];
                level.wait = level.wait.saturating_add(level.pause);
                if level.wait > 0 {
                    break;
                }
            }
        }
        while self.is_crowded() {
            forgotten += self.step(0, now);
        }
        forgotten
    }

    /// Moves on to a later moment, before anything of it is remembered.
    ///
    /// Mostly that is nothing but a number. After a gap without arrivals, sweeps are finished first which would
    /// else find stamps that have come round.
    pub(super) fn advance(&mut self, now: Now) -> u64 {
        let index = self.ages.index(now.moment);
        if index <= self.index {
            return 0;
        }
        let mut forgotten = 0;
        if self.ages.live(self.index, now.moment, u64::MAX).ages == 0 {
            self.clear(now.moment);
        }
        for at in 0..self.levels.len() {
            while index - self.levels[at].began[0] > self.ages.spare {
                forgotten += self.finish_round(at, now);
            }
        }
        self.index = index;
        forgotten
    }

    /// Drops all, as of this moment.
    pub(super) fn clear(&mut self, moment: u64) {
        let index = self.ages.index(moment);
        self.buffer.clear();
        for level in &mut self.levels {
            level.clear(&mut self.pool, index);
        }
    }

    pub(super) fn finish_round(&mut self, at: usize, now: Now) -> u64 {
        let (mut forgotten, round) = (0, self.levels[at].rounds);
        while self.levels[at].rounds == round {
            forgotten += self.step(at, now);
        }
        forgotten
    }

    /// Two rounds of each level, after which nothing is left that has expired.
    #[cold]
    pub(super) fn sweep_all(&mut self, now: Now) -> u64 {
        let levels = 0..self.levels.len();
        levels.map(|at| self.finish_round(at, now) + self.finish_round(at, now)).sum()
    }

    /// How far a level may go so as not to take twice what the one above still has to drop.
    fn limit(&mut self, at: usize, now: Now, forgotten: &mut u64) -> W {
        let Some(above) = at.checked_sub(1) else { return W::END };
        let (cursor, round) = (self.levels[at].cursor, self.levels[at].rounds);
        let (overtaken, when) = self.levels[above].overtook;
        if when == round {
            return W::END;
        }
        if when + 1 == round && cursor < overtaken {
            return overtaken;
        }
        // The one above is swept far more often; only gaps of time can bring it here.
        while self.levels[above].overtook != (cursor, round) {
            *forgotten += self.step(above, now);
        }
        W::END
    }

    /// Rounds that the last level has completed.
    pub(super) fn last_rounds(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.rounds)
    }

    /// Two steps of the last level's sweep. Gives what was live and yet dropped.
    pub(super) fn hasten(&mut self, now: Now) -> u64 {
        let last = self.levels.len() - 1;
        self.step(last, now) + self.step(last, now)
    }

    /// One step of a level's sweep.
    pub(super) fn step(&mut self, at: usize, now: Now) -> u64 {
        let mut forgotten = 0;
        let limit = self.limit(at, now, &mut forgotten);
        let from = self.levels[at].cursor;
        let mut until = self.levels[at].reach(&self.pool).min(limit);
        self.take_in(at, from, until);
        if let Some(&beyond) = self.desk.intake.get(INTAKE) {
            let bits = self.ages.bits;
            until = beyond >> bits << bits;
            self.desk.intake.truncate(INTAKE);
        }
        let mut drop = self.drop(at, now);
        let index = self.ages.index(now.moment).max(self.index);
        let (level, pool) = (&mut self.levels[at], &mut self.pool);
        let (desk, dropped) = (&mut self.desk, &mut drop);
        let lost = dispatch(Step { level, until, desk, drop: dropped, pool, index });
        if at == 0 {
            let from = self.buffer.partition_point(|&item| item < from);
            let to = self.buffer.partition_point(|&item| item < until);
            self.buffer.drain(from..to);
        }
        if let Some(below) = self.levels.get(at + 1) {
            let (there, round) = (below.cursor, below.rounds);
            if from <= there && there < until {
                self.levels[at].overtook = (there, round);
            }
        }
        let above = at.checked_sub(1).map(|above| self.levels[above].items);
        self.levels[at].set_pace(above.unwrap_or(self.buffer.len() as u64));
        forgotten + lost + drop.forgotten
    }

    /// Reads what a level takes from above: one item more than it can take at once, if there are so many.
    fn take_in(&mut self, at: usize, from: W, until: W) {
        let Self { desk: Desk { intake, .. }, buffer, levels, pool, .. } = self;
        intake.clear();
        match at.checked_sub(1) {
            None => {
                let first = buffer.partition_point(|&item| item < from);
                let items = buffer[first..].iter().take_while(|&&item| item < until);
                intake.extend(items.take(INTAKE + 1));
            }
            Some(above) => {
                let _ = levels[above].walk(from, until, pool, |item| {
                    if item >= until || intake.len() > INTAKE {
                        return ControlFlow::Break(());
                    }
                    intake.push(item);
                    ControlFlow::Continue(())
                });
            }
        }
    }

    fn drop(&self, at: usize, now: Now) -> Drop<W> {
        let level = &self.levels[at];
        let taken = self.levels.get(at + 1).map(|below| (level.overtook.0, below.cursor));
        let overtakes = taken.map(|(_, there)| there).filter(|&there| there >= level.cursor);
        let by_window = self.ages.live(self.index, now.moment, u64::MAX);
        let by_policy =
            self.ages.live(self.index, now.moment, now.moment.saturating_sub(now.horizon));
        Drop {
            taken: taken.unwrap_or_default(),
            overtakes: overtakes.unwrap_or(W::END),
            live: if now.horizon > 0 { by_policy } else { by_window },
            by_window,
            forgotten: 0,
        }
    }

    /// Blocks in use.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.pool.used()
    }

    /// Goes through all codes and stamps, those that have expired among them.
    pub(super) fn for_each(&self, mut each: impl FnMut(u128, u64)) {
        let mut each = |item: W| {
            each((item >> self.ages.bits).wide(), item.low() & self.ages.mask());
        };
        self.buffer.iter().for_each(|&item| each(item));
        for level in &self.levels {
            let _ = level.walk(W::default(), W::END, &self.pool, |item| {
                each(item);
                ControlFlow::Continue(())
            });
        }
    }
}

/// [`Tiers::any`].
struct Ask<'a, W> {
    tiers: &'a Tiers<W>,
    codes: (u128, u128),
    live: &'a Live,
}

impl<W: Word> Work for Ask<'_, W> {
    type Result = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        self.tiers.any(self.codes, self.live, bits)
    }
}

/// [`Level::step`].
struct Step<'a, W> {
    level: &'a mut Level<W>,
    until: W,
    desk: &'a mut Desk<W>,
    drop: &'a mut Drop<W>,
    pool: &'a mut Pool,
    index: u64,
}

impl<W: Word> Work for Step<'_, W> {
    type Result = u64;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> u64 {
        self.level.step(self.until, self.desk, self.drop, self.pool, self.index, bits)
    }
}
