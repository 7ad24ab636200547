//! Space and speed of one structure at one size.

use super::adapter::{Adapter, Candidate, Contract};
use super::allocator;
use super::stream::{BLOCK, Block, Stream, arrivals_of_mixture, stranger};
use crate::figures::clock;
use crate::workload::mix;

/// How much is timed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of a pass, at the least.
    pub least: u64,
    /// Passes: the quietest counts, as something else may run on the machine.
    pub passes: u32,
}

/// What was measured. Times are means over a pass, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Speeds {
    /// Bits allocated a key, with the window full.
    pub bits: f64,
    /// The same at the worst moment.
    pub peak_bits: f64,
    /// Arrivals of keys that were never seen.
    pub fresh: f64,
    /// The same as batches.
    pub fresh_batch: Option<f64>,
    /// Arrivals of keys seen one window ago.
    pub repeat: f64,
    /// The same as batches.
    pub repeat_batch: Option<f64>,
    /// Half of one, half of the other.
    pub mixed: f64,
    /// The same as batches.
    pub mixed_batch: Option<f64>,
    /// Questions for keys of the window.
    pub hit: f64,
    /// Questions for strangers.
    pub miss: f64,
    /// Share of strangers that were taken for known.
    pub fpr: f64,
    /// Keys of the window that were not found or called fresh.
    pub missed: u64,
}

/// Measures one structure.
///
/// # Errors
/// Why it cannot be built.
pub fn measure(candidate: &Candidate, n: u64, fpr: f64, effort: Effort) -> Result<Speeds, String> {
    let mut feed = Feed { block: Block::default(), overhead: clock::overhead(), missed: 0 };
    match candidate.contract {
        Contract::Window(_) => feed.window(candidate, n, fpr, effort),
        Contract::Forever => feed.forever(candidate, n, fpr, effort),
    }
}

/// How arrivals are given.
#[derive(Clone, Copy)]
enum How {
    Each,
    Batch,
}

struct Feed {
    block: Block,
    /// Seconds that reading the clock adds to a block.
    overhead: f64,
    missed: u64,
}

/// Calls answered with yes, and the nanoseconds of each call.
struct Pass {
    yes: u64,
    nanoseconds: f64,
}

impl Feed {
    /// Gives keys in blocks, timing what is done with them and not their making.
    fn pass(
        &mut self,
        count: u64,
        index: impl Fn(u64) -> u64,
        mut give: impl FnMut(&Block) -> Option<usize>,
    ) -> Option<Pass> {
        let (mut yes, mut seconds, mut at) = (0, 0.0, 0);
        while at < count {
            let end = (at + BLOCK as u64).min(count);
            self.block.fill((at..end).map(&index));
            let start = clock::processor();
            yes += std::hint::black_box(give(&self.block))? as u64;
            seconds += (clock::processor() - start - self.overhead).max(0.0);
            at = end;
        }
        Some(Pass { yes, nanoseconds: seconds * 1e9 / count.max(1) as f64 })
    }

    /// Gives the next arrivals of a stream.
    fn observe(
        &mut self,
        adapter: &mut dyn Adapter,
        stream: &Stream,
        arrival: &mut u64,
        count: u64,
        how: How,
    ) -> Option<Pass> {
        let from = *arrival;
        let pass = self.pass(
            count,
            |at| stream.index(from + at),
            |block| match how {
                How::Each => Some(adapter.observe_each(block)),
                How::Batch => adapter.observe_batch(block),
            },
        )?;
        *arrival += count;
        Some(pass)
    }

    /// Times of the quietest pass of questions: hits, then misses; and how many strangers were known.
    fn questions(
        &mut self,
        adapter: &dyn Adapter,
        (n, arrival): (u64, u64),
        effort: Effort,
    ) -> (f64, f64, f64) {
        let count = effort.least.max(n / 8);
        let (mut hit, mut miss, mut known) = (f64::INFINITY, f64::INFINITY, 0);
        for number in 0..u64::from(effort.passes) {
            let first = number * count;
            // Any of the last n, in no order.
            let old =
                |at| arrival - 1 - ((u128::from(mix(first + at)) * u128::from(n)) >> 64) as u64;
            if let Some(pass) = self.pass(count, old, |block| Some(adapter.contains_each(block))) {
                hit = hit.min(pass.nanoseconds);
                self.missed += count - pass.yes;
            }
            let strange = |at| stranger(first + at);
            if let Some(pass) =
                self.pass(count, strange, |block| Some(adapter.contains_each(block)))
            {
                miss = miss.min(pass.nanoseconds);
                known += pass.yes;
            }
        }
        (hit, miss, known as f64 / (count * u64::from(effort.passes)) as f64)
    }

    /// A window, full all the time.
    fn window(
        &mut self,
        candidate: &Candidate,
        n: u64,
        fpr: f64,
        effort: Effort,
    ) -> Result<Speeds, String> {
        let before = allocator::live();
        allocator::forget_peak();
        let mut adapter = (candidate.build)(n, fpr)?;
        let adapter = adapter.as_mut();
        // Whole eighths of the window: what is done once an eighth is in each pass as often.
        let eighth = n.div_ceil(8);
        let count = effort.least.div_ceil(eighth).max(1) * eighth;
        let (mut stream, mut arrival) = (Stream::fresh(n), 0);
        let best = |feed: &mut Self,
                    adapter: &mut dyn Adapter,
                    stream: &Stream,
                    arrival: &mut u64,
                    how| {
            let mut least: Option<f64> = None;
            for _ in 0..effort.passes {
                let Some(pass) = feed.observe(adapter, stream, arrival, count, how) else { break };
                least = Some(least.map_or(pass.nanoseconds, |least| least.min(pass.nanoseconds)));
                if stream.repeats_from < u64::MAX && stream.mixed_from == u64::MAX {
                    feed.missed += count - pass.yes;
                }
            }
            least
        };
        self.observe(adapter, &stream, &mut arrival, n + n.div_ceil(2), How::Each);
        let fresh = best(self, adapter, &stream, &mut arrival, How::Each).unwrap_or(f64::NAN);
        let fresh_batch = best(self, adapter, &stream, &mut arrival, How::Batch);
        let bits = allocator::live().saturating_sub(before) as f64 * 8.0 / n as f64;
        let peak_bits = allocator::peak().saturating_sub(before) as f64 * 8.0 / n as f64;
        let (hit, miss, fpr) = self.questions(adapter, (n, arrival), effort);
        stream.repeats_from = arrival;
        let repeat = best(self, adapter, &stream, &mut arrival, How::Each).unwrap_or(f64::NAN);
        let repeat_batch = best(self, adapter, &stream, &mut arrival, How::Batch);
        stream.mixed_from = arrival;
        let mixed = best(self, adapter, &stream, &mut arrival, How::Each).unwrap_or(f64::NAN);
        let mixed_batch = best(self, adapter, &stream, &mut arrival, How::Batch);
        let missed = self.missed;
        Ok(Speeds {
            bits,
            peak_bits,
            fresh,
            fresh_batch,
            repeat,
            repeat_batch,
            mixed,
            mixed_batch,
            hit,
            miss,
            fpr,
            missed,
        })
    }

    /// Filled from empty to `n` keys as often as needed; there is no other steady state.
    fn forever(
        &mut self,
        candidate: &Candidate,
        n: u64,
        fpr: f64,
        effort: Effort,
    ) -> Result<Speeds, String> {
        let rounds = effort.least.div_ceil(n).max(1);
        let arrivals_mixed = arrivals_of_mixture(n);
        let fill =
            |feed: &mut Self, stream: &Stream, count: u64, how| -> Result<Option<f64>, String> {
                let mut least: Option<f64> = None;
                // One fill of this many keys is long enough.
                let passes = if rounds > 1 { effort.passes.min(2) } else { 1 };
                for _ in 0..passes {
                    let mut sum = 0.0;
                    for _ in 0..rounds {
                        let mut adapter = (candidate.build)(n, fpr)?;
                        let pass = feed.observe(adapter.as_mut(), stream, &mut 0, count, how);
                        let Some(pass) = pass else { return Ok(None) };
                        sum += pass.nanoseconds / rounds as f64;
                    }
                    least = Some(least.map_or(sum, |least| least.min(sum)));
                }
                Ok(least)
            };
        let fresh = fill(self, &Stream::fresh(n), n, How::Each)?.unwrap_or(f64::NAN);
        let fresh_batch = fill(self, &Stream::fresh(n), n, How::Batch)?;
        let mixed = fill(self, &Stream::mixed(n), arrivals_mixed, How::Each)?.unwrap_or(f64::NAN);
        let mixed_batch = fill(self, &Stream::mixed(n), arrivals_mixed, How::Batch)?;
        let before = allocator::live();
        allocator::forget_peak();
        let mut adapter = (candidate.build)(n, fpr)?;
        let adapter = adapter.as_mut();
        let (mut stream, mut arrival) = (Stream::fresh(n), 0);
        self.observe(adapter, &stream, &mut arrival, n, How::Each);
        let bits = allocator::live().saturating_sub(before) as f64 * 8.0 / n as f64;
        let peak_bits = allocator::peak().saturating_sub(before) as f64 * 8.0 / n as f64;
        let (hit, miss, fpr) = self.questions(adapter, (n, arrival), effort);
        stream.repeats_from = arrival;
        let mut repeats = [None; 2];
        let count = effort.least.max(n / 8);
        for (least, how) in repeats.iter_mut().zip([How::Each, How::Batch]) {
            for _ in 0..effort.passes {
                let pass = self.observe(adapter, &stream, &mut arrival, count, how);
                let Some(pass) = pass else { break };
                *least =
                    Some(least.map_or(pass.nanoseconds, |time: f64| time.min(pass.nanoseconds)));
                self.missed += count - pass.yes;
            }
        }
        let [repeat, repeat_batch] = repeats;
        let (repeat, missed) = (repeat.unwrap_or(f64::NAN), self.missed);
        Ok(Speeds {
            bits,
            peak_bits,
            fresh,
            fresh_batch,
            repeat,
            repeat_batch,
            mixed,
            mixed_batch,
            hit,
            miss,
            fpr,
            missed,
        })
    }
}
