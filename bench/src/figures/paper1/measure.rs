//! One structure over one data set: how fast, and how often wrong.

use super::data::{Data, SPAN};
use lately::forever::Bloom;
use lately::plan::bloom_hashes;
use lately::window::{IntervalLayout, Shape, TimeBloom, TimeIntervalBloom};
use lately::{Digest, PlanError, Renewal, Tick, Verdict, WindowFilter};
use std::time::{Duration, Instant};

/// The three structures compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The classic Bloom filter.
    Bloom,
    /// The Time Bloom filter.
    Time,
    /// The Time Interval Bloom filter with space optimisation.
    Interval,
}

/// How many bits a cell counts for, when space is turned into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// What the library's packed cells take: cyclic stamps.
    Library,
    /// A whole time of 32 bits in each cell, as in the paper's integer arrays; a time interval adds
    /// the bits of its length.
    WholeTimes,
}

impl Structure {
    /// All of them, in the order of the legends.
    pub const ALL: [Self; 3] = [Self::Bloom, Self::Time, Self::Interval];

    /// The paper's abbreviation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bloom => "BF",
            Self::Time => "TBF",
            Self::Interval => "TIBF",
        }
    }

    /// Bits a cell.
    pub fn width(self, widths: Widths) -> u64 {
        let shape = shape(1, 1, 1);
        let stamp = match widths {
            Widths::Library => shape.stamp_bits(),
            Widths::WholeTimes => 32,
        };
        u64::from(match self {
            Self::Bloom => 1,
            Self::Time => stamp,
            Self::Interval => stamp + shape.length_bits(),
        })
    }

    /// The formula's number of hashes: `ln 2 · m / n` with the keys that this structure holds, all
    /// distinct ones for a Bloom filter, those within τ for the others.
    pub fn hashes(self, cells: u64, keys: Keys) -> u32 {
        bloom_hashes(cells, if self == Self::Bloom { keys.distinct } else { keys.live } as f64)
    }

    /// Runs a new filter of this structure over the reads, `repeats` times, and tells what came of it at each
    /// number of reads in `stops`, which rise: one pass serves all sizes that the same filter is measured at.
    ///
    /// # Errors
    /// For a filter that cannot be built.
    pub fn run(
        self,
        setup: Setup,
        stops: &[usize],
        data: &Data,
        repeats: u32,
    ) -> Result<Vec<Outcome>, PlanError> {
        let Setup { cells, hashes, live } = setup;
        let once = || {
            Ok(match self {
                Self::Bloom => {
                    let mut filter = Bloom::new(cells, hashes, live)?;
                    judge(data, stops, |digest, _| filter.observe(digest))
                }
                Self::Time => {
                    let mut filter = TimeBloom::new(shape(cells, hashes, live))?;
                    judge(data, stops, |digest, now| filter.observe(digest, now))
                }
                Self::Interval => {
                    let shape = shape(cells, hashes, live);
                    let mut filter = TimeIntervalBloom::new(shape, IntervalLayout::Compact)?;
                    judge(data, stops, |digest, now| filter.observe(digest, now))
                }
            })
        };
        let mut outcomes: Vec<Outcome> = once()?;
        for _ in 1..repeats {
            for (outcome, again) in outcomes.iter_mut().zip(once()?) {
                outcome.time = outcome.time.min(again.time);
                outcome.slowest = outcome.slowest.max(again.slowest);
            }
        }
        Ok(outcomes)
    }
}

fn shape(cells: u64, hashes: u32, live: u64) -> Shape {
    Shape {
        cells,
        hashes,
        span: SPAN,
        grain: 1,
        lateness: 0,
        capacity: live,
        renewal: Renewal::Always,
    }
}

/// Numbers of distinct keys that a filter is sized by.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// In the whole data set, n.
    pub distinct: usize,
    /// Within τ, at the busiest moment, n'.
    pub live: usize,
}

/// The size of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Cells, m.
    pub cells: u64,
    /// Cells a key sets, k.
    pub hashes: u32,
    /// Keys within τ, n'.
    pub live: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Time in the filter, best of all repeats.
    pub time: Duration,
    /// The same, worst of all repeats.
    pub slowest: Duration,
    /// Non-duplicates that the filter dropped: |S' − Ŝ|.
    pub dropped: usize,
    /// Duplicates that the filter let pass; a filter that keeps its promise has none.
    pub passed: usize,
}

/// Times a filter in blocks, up to each stop; verdicts are compared with the exact ones outside of the time.
fn judge(
    data: &Data,
    stops: &[usize],
    mut observe: impl FnMut(Digest, Tick) -> Verdict,
) -> Vec<Outcome> {
    const BLOCK: usize = 1 << 14;
    let mut verdicts = vec![Verdict::Fresh; BLOCK];
    let (mut outcome, mut from) = (Outcome::default(), 0);
    let mut outcomes = Vec::with_capacity(stops.len());
    for &stop in stops {
        let stop = stop.clamp(from, data.digests.len());
        let blocks = data.digests[from..stop].chunks(BLOCK).zip(data.ticks[from..].chunks(BLOCK));
        for ((digests, ticks), truth) in blocks.zip(data.fresh[from..].chunks(BLOCK)) {
            let start = Instant::now();
            for ((&digest, &tick), verdict) in digests.iter().zip(ticks).zip(&mut verdicts) {
                *verdict = observe(digest, tick);
            }
            outcome.time += start.elapsed();
            for ((_, &fresh), verdict) in digests.iter().zip(truth).zip(&verdicts) {
                outcome.dropped += usize::from(fresh && verdict.is_duplicate());
                outcome.passed += usize::from(!fresh && !verdict.is_duplicate());
            }
        }
        from = stop;
        outcomes.push(Outcome { slowest: outcome.time, ..outcome });
    }
    outcomes
}
