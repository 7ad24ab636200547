//! Very many arrivals at irregular times, against an exact answer.

use crate::workload::mix;
use crate::workload::zipf::Zipf;
use core::num::NonZeroU64;
use lately::{AnyFilter, Digest, Digester, Filter, Spec, Tick, Verdict, Window, WindowFilter};
use std::error::Error;
use std::time::Instant;

/// Arrivals that are made, asked and judged at a time.
const BLOCK: usize = 1024;

/// Ticks between arrivals, in the mean and without lulls.
const MEAN_GAP: f64 = 10.25;

/// Which keys arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// By Zipf's law with exponent 1.
    Zipf,
    /// All alike.
    Uniform,
}

impl Law {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Zipf, Self::Uniform];

    /// As tables write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zipf => "Zipf 1",
            Self::Uniform => "uniform",
        }
    }

    const fn exponent(self) -> f64 {
        match self {
            Self::Zipf => 1.0,
            Self::Uniform => 0.0,
        }
    }

    /// The size of the universe, for this many keys in a window.
    const fn universe(self, n: u64) -> u64 {
        match self {
            Self::Zipf => 10 * n,
            Self::Uniform => 4 * n,
        }
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Arrivals.
    pub arrivals: u64,
    /// Arrivals in a window without lulls, so that 0.97 n distinct keys are among them.
    pub in_a_window: u64,
    /// Ticks that passed, in windows.
    pub windows: f64,
    /// Arrivals of keys seen within the window.
    pub repeats: u64,
    /// Those of them that were called fresh.
    pub missed: u64,
    /// Arrivals of keys not seen within window and slack.
    pub strangers: u64,
    /// Those of them that were called duplicates.
    pub wrong: u64,
    /// Keys that the filter had to forget or refuse.
    pub given_up: u64,
    /// How often it grew.
    pub grown: u64,
    /// Its fill at the end.
    pub fill: f64,
    /// Bits per key.
    pub bits: f64,
    /// Seconds in the filter.
    pub filter_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
}

/// Times of arrivals: many at once, gaps of all lengths, lulls within the window and past it.
struct Times {
    tick: u64,
    state: u64,
    span: u64,
    /// Of 2^32: the chance of a lull.
    lull: u64,
}

impl Times {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let random = mix(self.state);
        if random & 1 == 1 {
            self.tick += 1 + (random >> 1) % 40;
        }
        if random >> 32 < self.lull {
            let length = mix(random);
            // Most end within a part of the window, one of 32 may outlast it.
            let most = if length.is_multiple_of(32) { 3 * self.span } else { self.span / 8 };
            self.tick += (length >> 8) % most.max(1);
        }
        self.tick
    }
}

/// Arrivals among which this many distinct keys are expected.
fn arrivals_for(distinct: f64, law: Law, universe: u64) -> u64 {
    let sum = |weight: &dyn Fn(f64) -> f64| {
        // Steps of a thousandth: keys of like weight are counted together.
        let (mut total, mut first) = (0.0, 1.0);
        while first <= universe as f64 {
            let end = (first * 1.001_f64).floor().max(first).min(universe as f64);
            total += (end - first + 1.0) * weight((first + end) / 2.0);
            first = end + 1.0;
        }
        total
    };
    let density = |key: f64| key.powf(-law.exponent());
    let all = sum(&density);
    let expected = |arrivals: f64| sum(&|key| -(-arrivals * density(key) / all).exp_m1());
    let (mut low, mut high) = (1.0, distinct);
    while expected(high) < distinct {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if expected(middle) < distinct { low = middle } else { high = middle }
    }
    low as u64
}

/// Feeds the default structure this many arrivals, with at most `n` distinct keys per window.
///
/// # Errors
/// When there is no plan.
pub fn run(law: Law, n: u64, fpr: f64, arrivals: u64) -> Result<Outcome, Box<dyn Error>> {
    let start = Instant::now();
    let universe = law.universe(n);
    let in_a_window = arrivals_for(0.97 * n as f64, law, universe);
    let span = (in_a_window as f64 * MEAN_GAP) as u64;
    let positive = |number| NonZeroU64::new(number).ok_or("a window of nothing");
    let window = Window::Time { span: positive(span)?, capacity: positive(n)? };
    let mut filter = Spec::new(window).fpr(fpr).slack(span / 8).plan()?.build();
    let reach = span + filter.slack();
    // 0 for never, else the tick and one.
    let mut last = vec![0_u64; usize::try_from(universe)? + 1];
    let lull = (4 << 32) / in_a_window.max(4);
    let mut times = Times { tick: 0, state: 1, span, lull };
    let mut keys = Zipf::new(universe, law.exponent(), 1);
    let digester = Digester::new(0);
    let mut outcome = Outcome {
        arrivals,
        in_a_window,
        windows: 0.0,
        repeats: 0,
        missed: 0,
        strangers: 0,
        wrong: 0,
        given_up: 0,
        grown: 0,
        fill: 0.0,
        bits: filter.memory() as f64 * 8.0 / n as f64,
        filter_seconds: 0.0,
        seconds: 0.0,
    };
    let mut ids = [0_usize; BLOCK];
    let (mut digests, mut now) = ([Digest::new(0, 0); BLOCK], [Tick(0); BLOCK]);
    let mut verdicts = [Verdict::Fresh; BLOCK];
    let mut done = 0;
    while done < arrivals {
        let count = BLOCK.min(usize::try_from(arrivals - done)?);
        for i in 0..count {
            let id = match law {
                Law::Zipf => keys.next().unwrap_or(1),
                // Zipf's generator would take logarithms for it.
                Law::Uniform => {
                    1 + ((u128::from(mix(mix(done + i as u64))) * u128::from(universe)) >> 64)
                        as u64
                }
            };
            ids[i] = usize::try_from(id)?;
            digests[i] = digester.digest(&id.to_le_bytes());
            now[i] = Tick(times.next());
        }
        let before = Instant::now();
        observe(&mut filter, done, &digests[..count], &now[..count], &mut verdicts[..count]);
        outcome.filter_seconds += before.elapsed().as_secs_f64();
        for i in 0..count {
            let (tick, called) = (now[i].0, verdicts[i].is_duplicate());
            let known = core::mem::replace(&mut last[ids[i]], tick + 1);
            let age = if known == 0 { u64::MAX } else { tick + 1 - known };
            if age <= span {
                outcome.repeats += 1;
                outcome.missed += u64::from(!called);
            } else if age > reach {
                outcome.strangers += 1;
                outcome.wrong += u64::from(called);
            }
        }
        done += count as u64;
    }
    let overload = filter.overload();
    outcome.given_up = overload.forgotten + overload.refused;
    outcome.grown = overload.grown;
    outcome.fill = filter.fill();
    outcome.windows = times.tick as f64 / span as f64;
    outcome.seconds = start.elapsed().as_secs_f64();
    Ok(outcome)
}

/// One by one and as batches by turns: both have to be right.
fn observe(
    filter: &mut AnyFilter,
    done: u64,
    digests: &[Digest],
    now: &[Tick],
    verdicts: &mut [Verdict],
) {
    if done / BLOCK as u64 % 8 == 7 {
        for ((&digest, &tick), verdict) in digests.iter().zip(now).zip(verdicts) {
            *verdict = filter.observe(digest, tick);
        }
    } else {
        filter.observe_batch(digests, now, verdicts);
    }
}

impl Outcome {
    /// Does the rate exceed what was asked by more than chance explains?
    pub fn exceeds(&self, fpr: f64) -> bool {
        let mean = fpr * self.strangers as f64;
        self.wrong as f64 > mean + 5.0 * mean.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_one() {
        for law in Law::ALL {
            let outcome = run(law, 2_000, 0.01, 100_000).unwrap();
            assert_eq!((outcome.missed, outcome.given_up), (0, 0), "{outcome:?}");
            assert!(!outcome.exceeds(0.01), "{outcome:?}");
            assert!(outcome.strangers > 10_000 && outcome.repeats > 10_000, "{outcome:?}");
        }
    }

    #[test]
    fn as_many_arrivals_as_make_the_distinct_keys() {
        // n keys, each met with a chance of 1 - 1/e after n arrivals.
        let arrivals = arrivals_for(63_212.0, Law::Uniform, 100_000) as f64;
        assert!((arrivals / 100_000.0 - 1.0).abs() < 0.001, "{arrivals}");
        let zipf = arrivals_for(5_000.0, Law::Zipf, 50_000);
        let mut keys: Vec<u64> = Zipf::new(50_000, 1.0, 3).take(zipf as usize).collect();
        keys.sort_unstable();
        keys.dedup();
        assert!((4_800..5_200).contains(&keys.len()), "{}", keys.len());
    }
}
