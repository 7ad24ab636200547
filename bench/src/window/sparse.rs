//! Few keys in a large window: what a sweep costs that finds nearly nothing.

use super::page::Tables;
use crate::figures::report;
use crate::figures::sheet::Row;
use crate::plot::si;
use crate::workload::mix;
use lately::{AnyFilter, Digester, Spec, Structure, Tick, Window, WindowFilter};
use std::time::Instant;

/// Ticks of the window.
pub const SPAN: u64 = 1_000;

/// Ticks from one arrival to the next.
pub const GAPS: [u64; 5] = [1, 100, 999, 1_001, 2_500];

/// Ticks without an arrival after a window full of keys.
pub const PAUSES: [u64; 2] = [999, 2_500];

/// Arrivals before the ones that are timed: they sweep what the table was filled with.
const WARM_UP: u64 = 20;

/// Nanoseconds of an arrival.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The mean.
    pub mean: f64,
    /// The slowest: the faster of two equal runs at each arrival, as the machine interrupts at other times.
    pub slowest: u64,
}

/// An empty window of time for `n` keys; an error where the structure keeps none.
fn build(structure: Structure, n: u64, fpr: f64) -> Result<AnyFilter, String> {
    let spec = Spec::new(Window::time(SPAN, n)).structure(structure).fpr(fpr).slack(SPAN / 8);
    spec.plan().and_then(|plan| plan.try_build()).map_err(|error| error.to_string())
}

/// One new key every `gap` ticks.
///
/// # Errors
/// Why the structure cannot be built.
pub fn regular(
    structure: Structure,
    n: u64,
    fpr: f64,
    gap: u64,
    arrivals: u64,
) -> Result<Cost, String> {
    let run = || {
        let mut filter = build(structure, n, fpr)?;
        let mut arrive = |at: u64| time(&mut filter, at, at * gap);
        for at in 0..WARM_UP {
            let _ = arrive(at);
        }
        Ok::<_, String>((WARM_UP..WARM_UP + arrivals).map(arrive).collect::<Vec<u64>>())
    };
    let (one, other) = (run()?, run()?);
    let least: Vec<u64> = one.into_iter().zip(other).map(|(a, b)| a.min(b)).collect();
    let mean = least.iter().sum::<u64>() as f64 / least.len().max(1) as f64;
    Ok(Cost { mean, slowest: least.into_iter().max().unwrap_or(0) })
}

/// Arrivals after the pause, a tick apart: the sweep is not to have been put off to one of them.
const FOLLOWING: u64 = 500;

/// The slowest of the first arrivals after a window of `n` keys and a pause: of three equal runs the fastest of each.
///
/// # Errors
/// Why the structure cannot be built.
pub fn after_pause(structure: Structure, n: u64, fpr: f64, pause: u64) -> Result<u64, String> {
    let mut least = vec![u64::MAX; FOLLOWING as usize];
    for _ in 0..3 {
        let mut filter = build(structure, n, fpr)?;
        let digester = Digester::new(0);
        for at in 0..n {
            let now = Tick((u128::from(at) * u128::from(SPAN) / u128::from(n)) as u64);
            let _ = filter.observe(digester.digest_integer(mix(at).into()), now);
        }
        for (at, least) in (0u64..).zip(&mut least) {
            *least = time(&mut filter, n + at, SPAN + pause + at).min(*least);
        }
    }
    Ok(least.into_iter().max().unwrap_or(0))
}

/// Nanoseconds that one arrival takes.
fn time(filter: &mut AnyFilter, number: u64, tick: u64) -> u64 {
    let digest = Digester::new(0).digest_integer(mix(number).into());
    let start = Instant::now();
    let verdict = filter.observe(digest, Tick(tick));
    let elapsed = start.elapsed().as_nanos() as u64;
    let _ = std::hint::black_box(verdict);
    elapsed
}

impl Tables {
    /// What an arrival costs in a stream of few keys, by structures and gaps.
    pub(super) fn sparse(&self) -> String {
        let Some(sheet) = &self.sparse else { return String::new() };
        let gaps = GAPS.map(|gap| format!("a key every {gap} of {SPAN} ticks"));
        let pauses = PAUSES.map(|pause| {
            format!("after n keys and {pause} ticks without any: the slowest of {FOLLOWING}")
        });
        let mut head = vec!["structure"];
        head.extend(gaps.iter().chain(&pauses).map(String::as_str));
        let mut names: Vec<&str> = sheet.rows().map(|row| row.text("structure")).collect();
        names.dedup();
        let cells = |name: &str| {
            let time = |arrivals, gap: u64, text: fn(&Row<'_>) -> String| {
                let gap = gap.to_string();
                let wanted = [("structure", name), ("arrivals", arrivals), ("gap", &gap)];
                sheet.of(&wanted).first().map_or(String::new(), text)
            };
            let both = |row: &Row<'_>| {
                format!(
                    "{} / {}",
                    report::time(row.number("mean")),
                    report::time(row.number("slowest"))
                )
            };
            let one = |row: &Row<'_>| report::time(row.number("slowest"));
            let mut cells = vec![format!("`{name}`")];
            cells.extend(GAPS.map(|gap| time("every", gap, both)));
            cells.extend(PAUSES.map(|pause| time("after a full window", pause, one)));
            cells
        };
        let n = sheet.rows().next().map_or(0.0, |row| row.number("n"));
        format!(
            "\n## Few keys in a large window\n\nTables for n = {}, ε = 0.1 %, slack of an eighth of the window; the mean and the slowest of 500 arrivals that come one by one, the clock included (the faster of two equal runs at each arrival). Last: the slowest of the first {FOLLOWING} arrivals, a tick apart, after a full window and a pause (of three equal runs the fastest at each arrival). The slowest are goals of 20 µs, the means of 1 µs.\n\n",
            si(n)
        ) + &report::table(&head, names.into_iter().map(cells))
    }
}
