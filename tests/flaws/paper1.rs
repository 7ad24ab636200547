//! Lee & Chung 2011: cells of time, and cells of intervals of time.

use crate::support::{Chance, key, time};
use lately::window::{IntervalLayout, Shape, TimeBloom, TimeIntervalBloom};
use lately::{Digest, Renewal, Structure, Tick, Verdict, WindowFilter};

/// A time as the paper keeps it: 0 is "unset".
type Time = u64;

/// The paper's two filters, by its rules. A cell is `[start, end]`; the Time Bloom filter needs the end alone.
struct Paper {
    cells: Vec<[Time; 2]>,
    hashes: usize,
    span: Time,
    renewal: Renewal,
    intervals: bool,
}

impl Paper {
    fn new(shape: &Shape, intervals: bool) -> Self {
        Self {
            cells: vec![[0, 0]; shape.cells as usize],
            hashes: shape.hashes as usize,
            span: shape.span,
            renewal: shape.renewal,
            intervals,
        }
    }

    fn is_live(&self, [_, end]: [Time; 2], now: Time) -> bool {
        end != 0 && now.saturating_sub(end) <= self.span
    }

    fn read(&mut self, key: Digest, now: Time) -> Verdict {
        let at: Vec<usize> = key
            .probes(self.cells.len() as u64)
            .take(self.hashes)
            .map(|cell| cell as usize)
            .collect();
        let cells = at.iter().map(|&cell| self.cells[cell]);
        let all_live = cells.clone().all(|cell| self.is_live(cell, now));
        let start = cells.clone().map(|[start, _]| start).max().unwrap_or(0);
        let end = cells.map(|[_, end]| end).min().unwrap_or(0);
        let duplicate = all_live && (!self.intervals || start <= end);
        if !duplicate || self.renewal == Renewal::Always {
            for cell in at {
                let live = self.is_live(self.cells[cell], now);
                self.cells[cell][1] = now;
                if !live {
                    self.cells[cell][0] = now;
                }
            }
        }
        if duplicate { Verdict::Duplicate } else { Verdict::Fresh }
    }
}

fn shape(cells: u64, hashes: u32, span: u64, renewal: Renewal) -> Shape {
    Shape { cells, hashes, span, grain: 1, lateness: 0, capacity: 10, renewal }
}

/// The paper's filters and ours, of one shape.
struct Both {
    paper: [Paper; 2],
    ours: [Box<dyn FnMut(Digest, Time) -> Verdict>; 3],
}

impl Both {
    fn new(shape: Shape) -> Self {
        let mut point = TimeBloom::new(shape).unwrap();
        let [mut plain, mut compact] = [IntervalLayout::Plain, IntervalLayout::Compact]
            .map(|layout| TimeIntervalBloom::new(shape, layout).unwrap());
        Self {
            paper: [false, true].map(|intervals| Paper::new(&shape, intervals)),
            ours: [
                Box::new(move |key, now| point.observe(key, Tick(now))),
                Box::new(move |key, now| plain.observe(key, Tick(now))),
                Box::new(move |key, now| compact.observe(key, Tick(now))),
            ],
        }
    }

    /// Verdicts of the paper's Time Bloom filter and Time Interval Bloom filter, then of ours: time, plain
    /// intervals, compact intervals.
    fn read(&mut self, key: Digest, now: Time) -> ([Verdict; 2], [Verdict; 3]) {
        (
            self.paper.each_mut().map(|filter| filter.read(key, now)),
            self.ours.each_mut().map(|filter| filter(key, now)),
        )
    }
}

use Verdict::{Duplicate, Fresh};

/// "0" is the paper's "unset": what is read at time 0 passes again and again.
#[test]
fn a_read_at_time_0_is_lost_by_the_paper_only() {
    let mut both = Both::new(shape(1_000, 3, 8, Renewal::Always));
    assert_eq!(both.read(key(1), 0), ([Fresh; 2], [Fresh; 3]));
    assert_eq!(both.read(key(1), 0), ([Fresh; 2], [Duplicate; 3]));
    assert_eq!(both.read(key(1), 8), ([Fresh; 2], [Duplicate; 3]));
}

/// A read that comes late moves the paper's cells back in time, and turns its intervals round: the read
/// that is nearest is forgotten.
#[test]
fn a_late_read_makes_the_paper_forget() {
    let mut both = Both::new(shape(1_000, 3, 100, Renewal::Always));
    assert_eq!(both.read(key(1), 1_000), ([Fresh; 2], [Fresh; 3]));
    let (paper, ours) = both.read(key(1), 990);
    assert_eq!((paper, ours), ([Duplicate; 2], [Duplicate; 3]));
    // 95 after the newest read, but 105 after the late one.
    let (paper, ours) = both.read(key(1), 1_095);
    assert_eq!((paper, ours), ([Fresh; 2], [Duplicate; 3]));
}

/// On sorted times from 1 on, ours answers as the paper's rules do, read by read, in both layouts and
/// with both renewals: false positives included.
#[test]
fn sorted_reads_are_judged_by_the_papers_rules() {
    for renewal in [Renewal::Always, Renewal::OnFresh] {
        let (mut duplicates, mut differ) = (0, 0);
        for seed in 0..60 {
            // So few cells that a good part of the verdicts is wrong.
            let mut both = Both::new(shape(40, 3, 20, renewal));
            let mut chance = Chance(seed);
            let mut now = 1;
            for _ in 0..400 {
                now += chance.below(4);
                let (paper, ours) = both.read(key(chance.below(30)), now);
                assert_eq!([ours[0], ours[1], ours[2]], [paper[0], paper[1], paper[1]], "{now}");
                duplicates += u64::from(paper[0] == Duplicate);
                differ += u64::from(paper[0] != paper[1]);
            }
        }
        assert!(duplicates > 1_000 && differ > 100, "{renewal:?}: {duplicates}, {differ}");
    }
}

/// Theorem 2: what the interval filter calls a duplicate, the time filter does too. It holds where every
/// read renews its cells. Where duplicates do not, the verdicts change what is in the cells, and the
/// interval filter calls reads duplicates that the other lets pass.
#[test]
fn theorem_2_holds_if_every_read_renews_and_not_on_fresh() {
    let counted = |renewal| {
        let (mut interval_alone, mut time_alone) = (0u64, 0u64);
        for seed in 0..200 {
            let mut both = Both::new(shape(40, 3, 20, renewal));
            let mut chance = Chance(1_000 + seed);
            let mut now = 1;
            for _ in 0..300 {
                now += chance.below(3);
                let (_, [time, interval, _]) = both.read(key(chance.below(30)), now);
                interval_alone += u64::from(interval == Duplicate && time == Fresh);
                time_alone += u64::from(interval == Fresh && time == Duplicate);
            }
        }
        (interval_alone, time_alone)
    };
    let (always, fresh) = (counted(Renewal::Always), counted(Renewal::OnFresh));
    println!("the interval filter alone, the time filter alone: {always:?}, on fresh {fresh:?}");
    assert_eq!(always.0, 0);
    assert!(always.1 > 1_000, "{always:?}");
    assert!(fresh.0 > 100, "{fresh:?}");
    // On the whole it still errs less.
    assert!(fresh.1 > fresh.0, "{fresh:?}");
}

/// One tag at 5, 10 and 15 within a window of 8: one visit, of which the first read passes. Where
/// duplicates do not renew, the third is 10 after the one that passed.
#[test]
fn a_chain_of_reads_is_one_visit() {
    let verdicts = |renewal| {
        let mut both = Both::new(shape(1_000, 3, 8, renewal));
        [5, 10, 15].map(|now| both.read(key(1), now))
    };
    assert_eq!(
        verdicts(Renewal::Always),
        [
            ([Fresh; 2], [Fresh; 3]),
            ([Duplicate; 2], [Duplicate; 3]),
            ([Duplicate; 2], [Duplicate; 3])
        ]
    );
    assert_eq!(
        verdicts(Renewal::OnFresh),
        [([Fresh; 2], [Fresh; 3]), ([Duplicate; 2], [Duplicate; 3]), ([Fresh; 2], [Fresh; 3])]
    );
    // As planned, too.
    for structure in [Structure::TimeBloom, Structure::IntervalBloom] {
        let spec = lately::Spec::new(time(8, 10)).structure(structure).fpr(1e-6);
        let mut filter = spec.plan().unwrap().build();
        let verdicts = [5, 10, 15].map(|now| filter.observe(key(1), Tick(now)));
        assert_eq!(verdicts, [Fresh, Duplicate, Duplicate], "{structure:?}");
    }
}
