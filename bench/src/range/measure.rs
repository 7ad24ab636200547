//! Space, speed and errors of one structure at one place.

use super::adapter::{Candidate, Contract, RangeAdapter};
use super::workload::{Stream, Workload};
use crate::figures::clock::{Blocks, processor};
use crate::window::allocator;
use oorandom::Rand64;
use std::collections::HashSet;
use std::time::Instant;

/// Where it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which keys and intervals.
    pub workload: Workload,
    /// Arrivals in the window.
    pub n: u64,
    /// Numbers in an interval.
    pub length: u64,
}

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Questions of each kind, at the most.
    pub questions: u64,
    /// Numbers looked at by a structure that goes through an interval one by one, at the most.
    pub numbers: u64,
    /// Times that the stream stands still to be asked.
    pub turns: u64,
}

/// Keys and questions given at a time.
const BLOCK: usize = 2048;

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Bits allocated a key with the window full, on average over the turns.
    pub bits: f64,
    /// The same at the worst moment.
    pub peak_bits: f64,
    /// Nanoseconds a question for an interval without a key of the window and its slack.
    pub empty: f64,
    /// The same for one that holds a key of the window.
    pub hit: f64,
    /// Nanoseconds an arrival, everything included; where it is built at once, its share of that.
    pub insert: f64,
    /// What one arrival of ten thousand exceeds.
    pub insert_late: f64,
    /// Empty intervals asked for.
    pub questions: u64,
    /// Those of them that were called occupied.
    pub false_positives: u64,
    /// Occupied intervals asked for.
    pub hits: u64,
    /// Those of them that were called empty: there must be none.
    pub missed: u64,
}

impl Outcome {
    /// Share of the empty intervals that were called occupied.
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.questions.max(1) as f64
    }
}

/// Measures one structure.
///
/// # Errors
/// Why it cannot be built.
pub fn measure(candidate: &Candidate, place: Place, effort: Effort) -> Result<Outcome, String> {
    let Place { workload, n, length } = place;
    let remembered = candidate.contract.remembered(n) as usize;
    let questions = match candidate.by_number {
        true => effort.questions.min(effort.numbers / length).max(effort.turns),
        false => effort.questions,
    };
    let mut run = Run {
        stream: Stream::new(workload, remembered),
        keys: Vec::with_capacity(BLOCK),
        random: Rand64::new(u128::from(n ^ length << 32)),
        asked: HashSet::new(),
        inserting: (0.0, 0),
        singly: Vec::new(),
        taken: 0,
        peak: 0,
        outcome: Outcome::default(),
    };
    let window = if candidate.contract == Contract::Static {
        run.stream.fill(&mut Vec::new(), 2 * remembered);
        None
    } else {
        // The slice at hand is not always at its beginning.
        let before = allocator::live();
        let mut window = (candidate.build)(n, length, &[])?;
        run.taken = allocator::live().saturating_sub(before);
        run.feed(&mut *window, 2 * remembered as u64 + n / 19, false);
        Some(window)
    };
    run.turns(candidate, place, Effort { questions, ..effort }, window)
}

struct Run {
    stream: Stream,
    keys: Vec<u64>,
    random: Rand64,
    /// Where empty intervals began: the same one again would tell nothing new of the rate.
    asked: HashSet<u64>,
    /// Seconds, and arrivals in them.
    inserting: (f64, u64),
    /// Nanoseconds of single arrivals.
    singly: Vec<u64>,
    /// Bytes that the structure has taken, counted while nothing else could take any.
    taken: usize,
    /// The most of them at a time, since it was asked last.
    peak: usize,
    outcome: Outcome,
}

impl Run {
    fn turns(
        mut self,
        candidate: &Candidate,
        place: Place,
        effort: Effort,
        mut window: Option<Box<dyn RangeAdapter>>,
    ) -> Result<Outcome, String> {
        let Place { n, length, .. } = place;
        let remembered = candidate.contract.remembered(n) as usize;
        let (mut empty, mut hit) = (Blocks::default(), Blocks::default());
        let mut bits = 0.0;
        let count = (effort.questions / effort.turns).max(1) as usize;
        for _ in 0..effort.turns {
            // An odd part of the window further on.
            let held;
            let adapter: &dyn RangeAdapter = match &mut window {
                Some(window) => {
                    let further = n * 7 / (5 * effort.turns) + 1;
                    self.peak = 0;
                    self.feed(&mut **window, further, true);
                    self.singly(&mut **window, (further / 4).clamp(1, 1 << 18));
                    bits += self.taken as f64 * 8.0 / n as f64;
                    let peak = self.peak as f64 * 8.0 / n as f64;
                    self.outcome.peak_bits = self.outcome.peak_bits.max(peak);
                    &**window
                }
                None => {
                    let keys: Vec<u64> = self.stream.in_order(n as usize).collect();
                    let before = allocator::live();
                    let start = processor();
                    held = (candidate.build)(n, length, &keys)?;
                    self.inserting.0 += processor() - start;
                    self.inserting.1 += n;
                    let taken = allocator::live().saturating_sub(before) as f64 * 8.0 / n as f64;
                    bits += taken;
                    self.outcome.peak_bits = self.outcome.peak_bits.max(taken);
                    &*held
                }
            };
            let (live, all) = (self.stream.newest(n as usize), self.stream.newest(remembered));
            let mut starts = Vec::with_capacity(count);
            // Where most places are taken, that is no workload of empty intervals: enough of it.
            for _ in 0..4 * count {
                let start = self.stream.empty(length, &mut self.random);
                if !all.any(start, length) && self.asked.insert(start) {
                    starts.push(start);
                }
                if starts.len() == count {
                    break;
                }
            }
            let wrong = Self::ask(adapter, &starts, length, &mut empty);
            self.outcome.questions += starts.len() as u64;
            self.outcome.false_positives += wrong;
            starts.clear();
            starts
                .extend((0..count).map(|_| self.stream.full(n as usize, length, &mut self.random)));
            starts.retain(|&start| live.any(start, length));
            self.outcome.hits += starts.len() as u64;
            self.outcome.missed +=
                starts.len() as u64 - Self::ask(adapter, &starts, length, &mut hit);
        }
        self.outcome.bits = bits / effort.turns as f64;
        self.outcome.empty = empty.median();
        self.outcome.hit = hit.median();
        self.outcome.insert = self.inserting.0 * 1e9 / self.inserting.1.max(1) as f64;
        self.singly.sort_unstable();
        let late = self.singly.get(self.singly.len() - self.singly.len() / 10_000 - 1);
        self.outcome.insert_late = late.copied().unwrap_or(0) as f64;
        Ok(self.outcome)
    }

    fn feed(&mut self, adapter: &mut dyn RangeAdapter, count: u64, timed: bool) {
        let before = allocator::live();
        allocator::forget_peak();
        let mut left = count;
        while left > 0 {
            let now = left.min(BLOCK as u64);
            self.stream.fill(&mut self.keys, now as usize);
            let start = processor();
            adapter.insert_all(&self.keys);
            if timed {
                self.inserting.0 += processor() - start;
                self.inserting.1 += now;
            }
            left -= now;
        }
        self.account(before);
    }

    /// What the structure has allocated or freed since this many bytes were allocated in all.
    fn account(&mut self, before: usize) {
        self.peak = self.peak.max((self.taken + allocator::peak()).saturating_sub(before));
        self.taken = (self.taken + allocator::live()).saturating_sub(before);
    }

    fn singly(&mut self, adapter: &mut dyn RangeAdapter, count: u64) {
        self.singly.reserve_exact(count as usize);
        let before = allocator::live();
        allocator::forget_peak();
        for _ in 0..count {
            self.stream.fill(&mut self.keys, 1);
            let start = Instant::now();
            adapter.insert_all(&self.keys);
            self.singly.push(start.elapsed().as_nanos() as u64);
        }
        self.account(before);
    }

    /// Asks in blocks, and how many were called occupied.
    fn ask(adapter: &dyn RangeAdapter, starts: &[u64], length: u64, blocks: &mut Blocks) -> u64 {
        let mut answers = Vec::with_capacity(BLOCK);
        let mut yes = 0;
        for block in starts.chunks(BLOCK) {
            answers.clear();
            blocks.time_processor(block.len(), || adapter.ask(block, length, None, &mut answers));
            yes += answers.iter().filter(|&&answer| answer).count() as u64;
        }
        yes
    }
}
