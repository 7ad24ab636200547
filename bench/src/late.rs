//! What lateness costs the aged table: bits per key, and the time of arrivals in order and in any order.

use crate::figures::clock;
use crate::workload::mix;
use lately::{
    AnyFilter, Digest, Digester, Filter, PlanError, Spec, Structure, Tick, Verdict, Window,
    WindowFilter,
};
use std::collections::{BTreeSet, HashMap};

/// Arrivals that are judged together.
const BATCH: usize = 4_096;

/// Ticks of a window: exactly divisible by what is done with it.
const SPAN: u64 = 1 << 36;

/// A window, and arrivals.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Keys per window that are planned for; about two thirds of them arrive anew in each, and each of the others again.
    pub keys: u64,
    /// The false positive rate.
    pub fpr: f64,
    /// The lateness in windows.
    pub windows: u64,
    /// Do arrivals come at any moment within the lateness? Otherwise in order.
    pub any_order: bool,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Bits allocated per key of the capacity.
    pub bits: f64,
    /// Nanoseconds per arrival, of the quietest window.
    pub nanoseconds: f64,
    /// Share of arrivals that were called duplicates.
    pub duplicates: f64,
}

/// The arrivals of a case: one after the other, half of them with new keys.
#[derive(Clone, Debug)]
struct Arrivals {
    case: Case,
    digester: Digester,
    number: u64,
    newest_key: u64,
}

impl Arrivals {
    fn new(case: Case) -> Self {
        Self { case, digester: Digester::new(0), number: 0, newest_key: 0 }
    }

    /// As many as a window has.
    fn per_window(&self) -> u64 {
        self.case.keys * 4 / 3
    }

    /// The next one's key, and its moment.
    fn next(&mut self) -> (u64, Tick) {
        let random = mix(self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED);
        // The first windows are those of the lateness, so that all moments are after the first tick.
        let (per_window, first) = (self.per_window(), self.case.windows + 1);
        let (windows, rest) = (self.number / per_window, self.number % per_window);
        let part = u128::from(SPAN) * u128::from(rest) / u128::from(per_window);
        let mut at = (first + windows) * SPAN + part as u64;
        if self.case.any_order {
            let lateness = self.case.windows * SPAN;
            at -= ((u128::from(mix(random)) * u128::from(lateness + 1)) >> 64) as u64;
        }
        self.number += 1;
        let recent = (per_window / 4).min(self.newest_key);
        if random & 1 == 0 || recent == 0 {
            self.newest_key += 1;
            (self.newest_key, Tick(at))
        } else {
            // One of the last half window.
            (self.newest_key - (random >> 1) % recent, Tick(at))
        }
    }

    fn digest(&self, key: u64) -> Digest {
        self.digester.digest(&mix(key).to_le_bytes())
    }
}

/// Arrivals that are given together, and what became of them.
#[derive(Default)]
struct Batch {
    keys: Vec<u64>,
    digests: Vec<Digest>,
    moments: Vec<Tick>,
    verdicts: Vec<Verdict>,
}

impl Batch {
    fn fill(&mut self, arrivals: &mut Arrivals, most: u64) {
        let count = most.min(BATCH as u64) as usize;
        self.keys.clear();
        self.digests.clear();
        self.moments.clear();
        for _ in 0..count {
            let (key, at) = arrivals.next();
            self.keys.push(key);
            self.digests.push(arrivals.digest(key));
            self.moments.push(at);
        }
        self.verdicts.clear();
        self.verdicts.resize(count, Verdict::Fresh);
    }

    fn observe(&mut self, filter: &mut AnyFilter) {
        filter.observe_batch(&self.digests, &self.moments, &mut self.verdicts);
    }

    fn duplicates(&self) -> u64 {
        self.verdicts.iter().filter(|verdict| verdict.is_duplicate()).count() as u64
    }
}

fn filter(case: Case) -> Result<AnyFilter, PlanError> {
    let spec = Spec::new(Window::time(SPAN, case.keys)).structure(Structure::AgedTable);
    let spec = spec.fpr(case.fpr).slack(SPAN / 8).lateness(case.windows * SPAN);
    spec.plan()?.try_build()
}

/// Fills the window and its lateness, then times so many windows of arrivals in batches.
///
/// # Errors
/// Where there is no such filter.
pub fn measure(case: Case, passes: u64) -> Result<Measured, PlanError> {
    let mut filter = filter(case)?;
    let (mut arrivals, mut batch) = (Arrivals::new(case), Batch::default());
    let (per_window, overhead) = (arrivals.per_window(), clock::overhead());
    let (mut quietest, mut duplicates) = (f64::INFINITY, 0);
    for pass in 0..case.windows + 2 + passes {
        let (mut seconds, mut left) = (0.0, per_window);
        duplicates = 0;
        while left > 0 {
            batch.fill(&mut arrivals, left);
            let start = clock::processor();
            batch.observe(&mut filter);
            seconds += (clock::processor() - start - overhead).max(0.0);
            duplicates += batch.duplicates();
            left -= batch.keys.len() as u64;
        }
        if pass >= case.windows + 2 {
            quietest = quietest.min(seconds * 1e9 / per_window as f64);
        }
    }
    let duplicates = duplicates as f64 / per_window as f64;
    let bits = filter.memory() as f64 * 8.0 / case.keys as f64;
    Ok(Measured { bits, nanoseconds: quietest, duplicates })
}

/// All cases, as a table.
///
/// # Errors
/// Where there is no such filter.
pub fn table(keys: u64, passes: u64) -> Result<String, PlanError> {
    let mut table = "| rate | lateness | bits per key | in order | any order |\n".to_owned();
    table += "|---|---|---:|---:|---:|\n";
    for fpr in [1e-3, 1e-6] {
        for windows in [0, 1, 10] {
            let case = Case { keys, fpr, windows, any_order: false };
            let in_order = measure(case, passes)?;
            let any_order = if windows == 0 {
                "-".to_owned()
            } else {
                let measured = measure(Case { any_order: true, ..case }, passes)?;
                format!("{:.1}", measured.nanoseconds)
            };
            let row = format!(
                "| {fpr:e} | {windows} W | {:.1} | {:.1} | {any_order} |\n",
                in_order.bits, in_order.nanoseconds
            );
            eprint!("{row}");
            table += &row;
        }
    }
    Ok(table)
}

/// What the law says of each arrival: all sightings of all keys.
#[derive(Default)]
struct Exact {
    newest: u64,
    seen: HashMap<u64, BTreeSet<u64>>,
}

impl Exact {
    /// Is there a sighting no further than this from an arrival?
    fn is_near(&self, key: u64, at: u64, reach: u64) -> bool {
        let around = at.saturating_sub(reach)..=at + reach;
        self.seen.get(&key).is_some_and(|seen| seen.range(around).next().is_some())
    }
}

/// How the answers of a case compare with the law's, in so many windows of arrivals: false negatives, strangers, and those
/// of them that were called duplicates.
///
/// # Errors
/// Where there is no such filter.
pub fn check(case: Case, windows: u64) -> Result<(u64, u64, u64), PlanError> {
    let mut filter = filter(case)?;
    let (mut arrivals, mut batch, mut exact) =
        (Arrivals::new(case), Batch::default(), Exact::default());
    let (mut missed, mut strangers, mut wrong) = (0, 0, 0);
    let mut left = arrivals.per_window() * windows;
    let beyond = SPAN + filter.slack();
    while left > 0 {
        batch.fill(&mut arrivals, left);
        left -= batch.keys.len() as u64;
        batch.observe(&mut filter);
        for ((&key, at), verdict) in batch.keys.iter().zip(&batch.moments).zip(&batch.verdicts) {
            exact.newest = exact.newest.max(at.0);
            let must = exact.is_near(key, at.0, SPAN);
            missed += u64::from(must && !verdict.is_duplicate());
            if !exact.is_near(key, at.0, beyond) {
                strangers += 1;
                wrong += u64::from(verdict.is_duplicate());
            }
            exact.seen.entry(key).or_default().insert(at.0);
        }
    }
    Ok((missed, strangers, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filters that are measured answer as the law says.
    #[test]
    fn what_is_measured_is_right() {
        for fpr in [1e-3, 1e-6] {
            for (windows, any_order) in [(0, false), (1, false), (1, true), (10, false), (10, true)]
            {
                let case = Case { keys: 3_000, fpr, windows, any_order };
                let (missed, strangers, wrong) = check(case, 2 * windows + 4).unwrap();
                let most = strangers as f64 * fpr;
                assert_eq!(missed, 0, "{case:?}");
                assert!(strangers > 7_000, "{case:?}: {strangers}");
                assert!(wrong as f64 <= most + 5.0 * most.sqrt() + 3.0, "{case:?}: {wrong}");
            }
        }
    }

    #[test]
    fn every_case_is_in_the_table() {
        let table = table(2_000, 1).unwrap();
        assert_eq!(table.lines().count(), 8);
        for line in table.lines().skip(2) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(cells[3].parse::<f64>().unwrap() > 15.0, "{line}");
            assert!(cells[4].parse::<f64>().unwrap() > 0.0, "{line}");
            assert!(cells[5] == "-" || cells[5].parse::<f64>().unwrap() > 0.0, "{line}");
        }
        let measured =
            measure(Case { keys: 2_000, fpr: 1e-3, windows: 1, any_order: true }, 1).unwrap();
        assert!((0.2..0.6).contains(&measured.duplicates), "{measured:?}");
    }
}
