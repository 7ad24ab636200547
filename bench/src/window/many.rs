//! Many filters, as a filter for each tenant: each arrival is another one's.

use super::measure::Effort;
use super::page::Tables;
use crate::figures::report;
use crate::figures::{clock, sheet::Row};
use crate::plot::si;
use crate::workload::mix;
use lately::{AnyFilter, Digest, Filter, Spec, Structure, Tick, Window, WindowFilter};
use std::num::NonZeroU64;

/// Filters, and keys of each: 10 MB or 40 MB in all. Tables of 500 KB and of 537 KB once took different ways.
pub const SIZES: [(u64, u64); 6] =
    [(1, 13_000_000), (64, 203_000), (64, 218_000), (4_096, 3_200), (1, 4_000_000), (4_096, 1_000)];

/// Arrivals whose memory is fetched before the first of them is judged.
const AHEAD: usize = 64;

/// Arrivals that are timed together.
const BLOCK: usize = 2_048;

/// Nanoseconds of an arrival, half of the keys new.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Bytes of a filter.
    pub bytes: usize,
    /// One after the other.
    pub each: f64,
    /// In batches of [`AHEAD`], the memory of all of them asked for first.
    pub ahead: f64,
}

/// So many filters for `n` keys each.
///
/// # Errors
/// Why they cannot be built.
pub fn cost(filters: u64, n: u64, fpr: f64, effort: Effort) -> Result<Cost, String> {
    let window = Window::Count(NonZeroU64::new(n).ok_or("filters for no keys")?);
    let spec = Spec::new(window).structure(Structure::AgedTable).fpr(fpr).slack(n / 8);
    let plan = spec.plan().map_err(|error| error.to_string())?;
    let build = || plan.try_build().map_err(|error| error.to_string());
    let filters = (0..filters).map(|_| build()).collect::<Result<Vec<_>, _>>()?;
    let bytes = filters.first().map_or(0, Filter::memory);
    let mut run = Run { filters, n, arrived: 0, overhead: clock::overhead() };
    let full = run.filters.len() as u64 * n * 3 / 2;
    let _ = run.pass(full, true);
    let mut least = |ahead| {
        let passes = (0..effort.passes).map(|_| run.pass(effort.least, ahead));
        passes.fold(f64::INFINITY, f64::min)
    };
    Ok(Cost { bytes, each: least(false), ahead: least(true) })
}

struct Run {
    filters: Vec<AnyFilter>,
    n: u64,
    arrived: u64,
    /// Seconds that reading the clock adds.
    overhead: f64,
}

impl Run {
    /// Nanoseconds of each of so many arrivals.
    fn pass(&mut self, arrivals: u64, ahead: bool) -> f64 {
        let mut seconds = 0.0;
        let mut block = Vec::with_capacity(BLOCK);
        let blocks = arrivals.div_ceil(BLOCK as u64);
        for _ in 0..blocks {
            block.clear();
            block.extend((0..BLOCK as u64).map(|at| self.arrival(self.arrived + at)));
            self.arrived += BLOCK as u64;
            let start = clock::processor();
            for some in block.chunks(AHEAD) {
                if ahead {
                    some.iter().for_each(|&(filter, digest)| self.filters[filter].prefetch(digest));
                }
                for &(filter, digest) in some {
                    let _ = std::hint::black_box(self.filters[filter].observe(digest, Tick(0)));
                }
            }
            seconds += (clock::processor() - start - self.overhead).max(0.0);
        }
        seconds * 1e9 / (blocks * BLOCK as u64) as f64
    }

    /// The filter and the digest of an arrival: every second one is a repetition of one that is at most half a window old.
    fn arrival(&self, number: u64) -> (usize, Digest) {
        let all = self.filters.len() as u64;
        let back = 1 + mix(number ^ 0x5EED) % (all * self.n / 2).max(1);
        let key = if number % 2 == 1 { number.saturating_sub(back) & !1 } else { number };
        let random = mix(key);
        ((mix(random) % all) as usize, Digest::new(random, mix(key ^ 0xD1CE)))
    }
}

impl Tables {
    /// What an arrival costs where there are many filters.
    pub(super) fn many(&self) -> String {
        let Some(sheet) = &self.many else { return String::new() };
        let cells = |row: Row<'_>| {
            vec![
                row.text("filters").to_owned(),
                si(row.number("n")),
                format!("{:.0} kB", row.number("bytes") / 1e3),
                format!("{:.1}", row.number("each")),
                format!("{:.1}", row.number("ahead")),
            ]
        };
        let head = ["filters", "keys of each", "each takes", "one by one", "fetched ahead"];
        format!(
            "\n## Many filters\n\n`aged-table`, slack n/8, ε = 0.1 %, windows of arrivals; each arrival is that of another filter, half of the keys are new. ns of processor time; last: {AHEAD} at a time, `AnyFilter::prefetch` for all of them first.\n\n"
        ) + &report::table(&head, sheet.rows().map(cells))
    }
}
