//! What the aged Bloom filters share: time, fill, and the order of one step.

use crate::codec::{Reader, Writer};
use crate::window::cells::fill::{self, FillSample};
use crate::window::cells::shape::Shape;
use crate::window::cycle::{Cycle, Pace, Passed, Sweep};
use crate::window::late::Late;
use crate::{
    Digest, MergeError, Overload, Renewal, Seen, SnapshotError, Spec, Tick, Verdict, Window,
};
use core::num::NonZeroU64;
use core::ops::RangeInclusive;

/// Cells that remember when they were set.
pub(super) trait Cells: Sweep {
    /// Looks at cells as they are `later` grains from now: how many are live, and is a key with
    /// just these cells a duplicate?
    fn judge(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> (u32, bool);

    /// Is a key with just these cells a duplicate? May stop at the first cell that says no.
    fn holds(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> bool {
        self.judge(cells, cycle, later).1
    }

    /// How many grains ago, at the earliest and at the latest, a key with just these cells was seen:
    /// for one that [`Cells::holds`] says yes to.
    fn ages(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle) -> Ages;

    /// Takes over the cells of another table of the same shape at the same moment.
    fn merge(&mut self, other: &Self, cycle: &Cycle);

    /// Sets cells now.
    fn mark(&mut self, cells: impl Iterator<Item = u64>, cycle: &Cycle);

    /// How many cells are live, and the moments that all of them have in common, as grains: none where
    /// one is not. Only of cells that take late arrivals, as the one that follows: [`Shape::check_in_order`]
    /// refuses lateness for the others, which are never asked.
    fn moments(
        &self,
        _cells: impl Iterator<Item = u64>,
        _cycle: &Cycle,
    ) -> (u32, Option<RangeInclusive<u64>>) {
        (0, None)
    }

    /// Takes the moment of so many grains ago into cells.
    fn mark_at(&mut self, _cells: impl Iterator<Item = u64>, _age: u64, _cycle: &Cycle) {}

    /// Begins to fetch the memory of a cell.
    fn prefetch(&self, cell: u64);

    /// Bytes allocated.
    fn memory(&self) -> usize;

    /// Writes the cells; what the shape implies is known to who reads them.
    fn write(&self, out: &mut Writer<'_>);
}

/// Cells that are looked at to tell how many keys there are.
const COUNTED: u64 = 1 << 16;

/// Grains ago: an interval, from its older to its younger end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ages {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// An aged Bloom filter over some kind of cells.
#[derive(Clone, Debug)]
pub(super) struct Aged<T> {
    pub(super) shape: Shape,
    pub(super) cycle: Cycle,
    pub(super) table: T,
    /// How late arrivals are taken; none where they come in order.
    late: Option<Late>,
    sample: FillSample,
}

/// Equal in all that verdicts follow from: not in how far the sweep has come.
impl<T: Cells + Clone + PartialEq> PartialEq for Aged<T> {
    fn eq(&self, other: &Self) -> bool {
        if self.table.is_behind() || other.table.is_behind() {
            return self.swept() == other.swept();
        }
        self.shape == other.shape
            && self.cycle == other.cycle
            && self.sample == other.sample
            && self.table == other.table
    }
}

impl<T: Cells + Clone> Aged<T> {
    /// An empty filter; the shape has been checked and the table is of that shape.
    pub(super) fn new(shape: Shape, pace: Pace, mut table: T) -> Self {
        let (mut cycle, sample) = (Cycle::new(pace, shape.cells), FillSample::new(&shape));
        cycle.begin(&mut table, true);
        Self { shape, cycle, table, late: shape.late(), sample }
    }

    /// The same, without what has expired.
    fn swept(&self) -> Self {
        let mut swept = self.clone();
        swept.cycle.sweep_all(&mut swept.table);
        swept
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.sample.is_full()
    }

    /// What has expired is no part of what fresh keys see.
    pub(super) fn is_full_now(&mut self) -> bool {
        self.is_full()
    }

    pub(super) fn notes_ends(&self) -> bool {
        self.cycle.pace().notes_ends()
    }

    #[inline]
    fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> + Clone + use<T> {
        digest.probes(self.shape.cells).take(self.shape.hashes as usize)
    }

    #[inline]
    pub(super) fn contains(&self, digest: Digest, now: Tick) -> bool {
        if let Some(late) = self.late {
            return self.holds_near(late, digest, u64::MAX, now).is_some();
        }
        self.table.holds(self.positions(digest), &self.cycle, self.cycle.margin(now))
    }

    /// [`Filter::contains`](crate::Filter::contains) for the last `within` ticks.
    pub(super) fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        if let Some(late) = self.late {
            return self.holds_near(late, digest, within, now).is_some();
        }
        let (steps, later) = (self.cycle.steps(), self.cycle.grains_until(now));
        // A shorter window is the same as the whole one that much later.
        let earlier = steps - self.cycle.steps_within(within);
        let margin = later.saturating_add(earlier).max(self.cycle.margin(now));
        self.table.holds(self.positions(digest), &self.cycle, margin)
    }

    pub(super) fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        if let Some(late) = self.late {
            return self.holds_near(late, digest, u64::MAX, now);
        }
        self.contains(digest, now).then(|| {
            let Ages { start, end } = self.table.ages(self.positions(digest), &self.cycle);
            Seen { from: self.cycle.seen(start).from, to: self.cycle.seen(end).to }
        })
    }

    /// Takes over all that the other remembers.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.shape != other.shape || self.cycle.pace() != other.cycle.pace() {
            return Err(MergeError::Shape);
        }
        if self.cycle.pace().is_counting() {
            return Err(MergeError::Counting);
        }
        let mut other = other.clone();
        self.advance(other.newest());
        other.advance(self.newest());
        // Each knows of its own cells which have expired before their grain has.
        self.cycle.sweep_all(&mut self.table);
        other.cycle.sweep_all(&mut other.table);
        self.cycle.unite(&other.cycle);
        self.table.merge(&other.table, &self.cycle);
        // Neither has seen the sum. What new keys see will tell, and soon.
        self.sample.reset();
        Ok(())
    }

    /// The first tick of the newest grain seen.
    pub(super) fn newest(&self) -> Tick {
        self.cycle.newest()
    }

    /// The share of live cells, looked at here and now, and how far it is a fill of planned keys.
    pub(super) fn look_at_fill(&self, digest: Digest) -> Option<(f64, f64)> {
        let cells = digest.probes(self.shape.cells).take(fill::LOOKS);
        let fill = f64::from(self.table.judge(cells, &self.cycle, 0).0) / fill::LOOKS as f64;
        Some((fill, self.shape.load_at(fill)))
    }

    /// The share of live cells as far as fresh keys have seen it.
    pub(super) fn fill(&self) -> f64 {
        self.sample.fill(self.shape.hashes)
    }

    /// The false positive rate of a Time Bloom filter with this fill.
    pub(super) fn estimated_fpr(&self) -> f64 {
        self.shape.rate_of(self.fill())
    }

    /// One arrival.
    #[inline]
    pub(super) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        if let Some(late) = self.late {
            return self.observe_late(late, digest, now);
        }
        let mut spare = [0; 64];
        let probes = digest.probes(self.shape.cells);
        let positions = probes.write_down(self.shape.hashes, &mut spare);
        self.observe_at(positions.iter().copied(), now)
    }

    /// One arrival at given cells: advance, query, insert or renew.
    #[inline]
    pub(super) fn observe_at(
        &mut self,
        positions: impl Iterator<Item = u64> + Clone,
        now: Tick,
    ) -> Verdict {
        self.advance(self.cycle.arrival(now));
        let (live, duplicate) = self.table.judge(positions.clone(), &self.cycle, 0);
        self.note(live);
        if !duplicate || self.shape.renewal == Renewal::Always {
            self.mark(positions);
        }
        if duplicate { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// One arrival at its own moment: advance, query, insert or renew.
    #[inline(never)]
    fn observe_late(&mut self, late: Late, digest: Digest, at: Tick) -> Verdict {
        self.advance(at);
        let moment = late.moment(at, self.cycle.newest());
        let key = late.key(digest, late.block_of(moment));
        let (live, _) = self.table.moments(self.positions(key), &self.cycle);
        self.note(live);
        let known = self.holds_near(late, digest, u64::MAX, at).is_some();
        if !known || self.shape.renewal == Renewal::Always {
            self.mark_late(late, key, at);
        }
        if known { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Marks a key, or what it is in the block of an arrival, at the arrival's moment.
    fn mark_late(&mut self, late: Late, key: Digest, at: Tick) {
        let at = late.judged(at, self.cycle.newest());
        let moment = late.grain_of(at);
        self.cycle.note_mark_at(at, moment);
        let age = self.cycle.now() - moment;
        self.table.mark_at(self.positions(key), age, &self.cycle);
    }

    /// The last sighting within the window around a question, no more than so many ticks before it.
    #[inline(never)]
    fn holds_near(&self, late: Late, digest: Digest, within: u64, at: Tick) -> Option<Seen> {
        let around = late.around(late.moment(at, self.cycle.newest()), within);
        let around = self.cycle.first_kept(at).max(*around.start())..=*around.end();
        let mut seen: Option<Seen> = None;
        // One of the two blocks may take the key for another, and must not hide what the other says.
        for block in late.blocks(&around) {
            let cells = self.positions(late.key(digest, block));
            let Some(common) = self.table.moments(cells, &self.cycle).1 else { continue };
            let sought = late.part_of(block, &around);
            let from = *common.start().max(sought.start());
            let to = *common.end().min(sought.end());
            if from <= to {
                let now = self.cycle.seen_between(from, to);
                seen = Some(Seen { from: seen.map_or(now.from, |before| before.from), ..now });
            }
        }
        seen
    }

    /// Marks a key as seen, whatever was known of it.
    pub(super) fn remember(&mut self, digest: Digest, now: Tick) {
        self.advance(now);
        if let Some(late) = self.late {
            let moment = late.moment(now, self.cycle.newest());
            let key = late.key(digest, late.block_of(moment));
            self.sample(key);
            return self.mark_late(late, key, now);
        }
        self.sample(digest);
        self.mark(self.positions(digest));
    }

    /// Notes the fill that a key sees without remembering it.
    pub(super) fn sample(&mut self, digest: Digest) {
        let (live, _) = self.table.judge(self.positions(digest), &self.cycle, 0);
        self.note(live);
    }

    /// Keys whose cells are all live are left out, as `FillSample` expects.
    #[inline]
    fn note(&mut self, live: u32) {
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
    }

    /// Forgets everything, the time too.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.cycle = Cycle::new(*self.cycle.pace(), self.shape.cells);
        self.cycle.begin(&mut self.table, true);
        self.sample = FillSample::new(&self.shape);
    }

    /// About how many keys have set the cells that are live, from a look at [`COUNTED`] of them.
    pub(super) fn keys_now(&self) -> u64 {
        let counted = self.shape.cells.min(COUNTED);
        let apart = self.shape.cells / counted;
        let (live, _) = self.table.judge((0..counted).map(|at| at * apart), &self.cycle, 0);
        let fill = (f64::from(live) / counted as f64).min(0.9999);
        let keys = -libm::log1p(-fill) * self.shape.cells as f64 / f64::from(self.shape.hashes);
        libm::round(keys) as u64
    }

    /// Continues from this fill.
    pub(super) fn resume(&mut self, fill: f64) {
        self.sample.resume(fill::seen_at(fill, self.shape.hashes));
    }

    #[inline]
    fn mark(&mut self, positions: impl Iterator<Item = u64>) {
        self.cycle.note_mark();
        self.table.mark(positions, &self.cycle);
    }

    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        if let Some(late) = self.late.filter(|late| !late.newest_only()) {
            for block in late.blocks(&late.around(self.cycle.now(), u64::MAX)) {
                self.positions(late.key(digest, block)).for_each(|cell| self.table.prefetch(cell));
            }
            return;
        }
        self.positions(digest).for_each(|cell| self.table.prefetch(cell));
    }

    /// All that a key looks at is known from the start.
    #[inline]
    pub(super) fn prefetch_more(&self, _digest: Digest) {}

    /// Lets time pass, and clears what has expired meanwhile.
    #[inline]
    pub(super) fn advance(&mut self, now: Tick) {
        if self.cycle.advance(now, &mut self.table) == Passed::Everything {
            self.sample.reset();
        }
    }

    /// The window of the shape, whose numbers are known not to be 0.
    pub(super) fn window(&self) -> Window {
        let at_least_one = |n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN);
        let span = at_least_one(self.shape.span);
        if self.cycle.pace().is_counting() {
            return Window::Count(span);
        }
        Window::Time { span, capacity: at_least_one(self.shape.capacity) }
    }

    pub(super) fn slack(&self) -> u64 {
        self.cycle.pace().slack(self.shape.span)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.shape.capacity
    }

    pub(super) fn fpr(&self) -> f64 {
        self.shape.fpr()
    }

    pub(super) fn fpr_at_capacity(&self) -> f64 {
        self.shape.fpr_at_capacity()
    }

    /// Cells take every key.
    pub(super) fn overload(&self) -> Overload {
        Overload::default()
    }

    pub(super) fn suits(&self, spec: &Spec) -> bool {
        self.shape.keeps(spec)
    }

    pub(super) fn memory(&self) -> usize {
        self.table.memory()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        if self.table.is_behind() {
            return self.swept().write(out);
        }
        self.shape.write(out);
        self.cycle.write(out);
        self.sample.write(out);
        self.table.write(out);
    }

    /// Reads what [`Aged::write`] wrote, the cells with `table`.
    pub(super) fn read(
        input: &mut Reader<'_>,
        pace: impl FnOnce(&Shape) -> Pace,
        table: impl FnOnce(&Shape, &Cycle, &mut Reader<'_>) -> Result<T, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let shape = Shape::read(input)?;
        let mut cycle = Cycle::read(pace(&shape), shape.cells, input)?;
        let sample = FillSample::read(&shape, input)?;
        let mut table = table(&shape, &cycle, input)?;
        cycle.begin(&mut table, false);
        Ok(Self { shape, cycle, table, late: shape.late(), sample })
    }
}
