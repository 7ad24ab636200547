//! Theorem 2, and the paper's chain of reads, with both ways to renew.

use crate::figures::report;
use lately::window::{IntervalLayout, Shape, TimeBloom, TimeIntervalBloom};
use lately::{Digester, PlanError, Renewal, Tick, WindowFilter};
use oorandom::Rand64;

const RENEWALS: [(&str, Renewal); 2] =
    [("every read renews", Renewal::Always), ("only the first", Renewal::OnFresh)];

/// A time filter and an interval filter of equal cells and hashes.
struct Pair(TimeBloom, TimeIntervalBloom);

impl Pair {
    fn new(cells: u64, span: u64, renewal: Renewal) -> Result<Self, PlanError> {
        let shape = Shape { cells, hashes: 3, span, grain: 1, lateness: 0, capacity: 10, renewal };
        Ok(Self(TimeBloom::new(shape)?, TimeIntervalBloom::new(shape, IntervalLayout::Compact)?))
    }

    /// Is it a duplicate for the one, and for the other?
    fn read(&mut self, key: u64, now: u64) -> [bool; 2] {
        let key = Digester::new(0).digest(&key.to_le_bytes());
        let verdicts = [self.0.observe(key, Tick(now)), self.1.observe(key, Tick(now))];
        verdicts.map(|verdict| verdict.is_duplicate())
    }
}

/// How many reads there are, and how many are a duplicate for the interval filter alone and for the time filter alone.
fn counted(renewal: Renewal) -> Result<[u64; 3], PlanError> {
    let mut counts = [0; 3];
    for seed in 0..200 {
        // So few cells that a good part of the verdicts is wrong.
        let mut pair = Pair::new(40, 20, renewal)?;
        let (mut random, mut now) = (Rand64::new(seed), 1);
        for _ in 0..300 {
            now += random.rand_range(0..3);
            let [time, interval] = pair.read(random.rand_range(0..30), now);
            counts[0] += 1;
            counts[1] += u64::from(interval && !time);
            counts[2] += u64::from(time && !interval);
        }
    }
    Ok(counts)
}

/// Which of the reads of one tag at 5, 10 and 15 pass, for the two filters, with a window of 8.
fn chain(renewal: Renewal) -> Result<[String; 2], PlanError> {
    let mut pair = Pair::new(1_000, 8, renewal)?;
    let verdicts = [5, 10, 15].map(|now| (now, pair.read(1, now)));
    Ok([0, 1].map(|filter| {
        let passed = verdicts.iter().filter(|(_, duplicate)| !duplicate[filter]);
        passed.map(|(now, _)| now.to_string()).collect::<Vec<_>>().join(", ")
    }))
}

/// The section of the page.
///
/// # Errors
/// When a filter cannot be built.
pub fn section() -> Result<String, PlanError> {
    let mut rows = Vec::new();
    for (name, renewal) in RENEWALS {
        let counts = counted(renewal)?.map(|count| count.to_string());
        rows.push([name.to_owned()].into_iter().chain(counts).chain(chain(renewal)?).collect());
    }
    let head = [
        "renewal",
        "reads",
        "duplicates for TIBF alone",
        "for TBF alone",
        "TBF passes of 5, 10, 15",
        "TIBF passes",
    ];
    Ok(format!("{TEXT}{}", report::table(&head, rows)))
}

const TEXT: &str = "
## Theorem 2, and a chain of reads

Theorem 2 says that with the same cells and hashes, what TIBF calls a duplicate TBF does too. It holds if every read
renews its cells, as in the paper. If only reads that pass do (`Renewal::OnFresh`), verdicts change what is in the cells, and the theorem
does not hold: TIBF drops reads that TBF lets pass, though far fewer than the other way round. 40 cells, k = 3, τ = 20, 30 tags
at random times, so that many verdicts are wrong. The last columns are one tag at times 5, 10 and 15 with τ = 8: each read is within τ of the one
before it, so if every read renews, all are one visit; else the third is 10 after the one that passed. As tests: `tests/flaws/paper1.rs`.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_where_every_read_renews() {
        let [always, fresh] = RENEWALS.map(|(_, renewal)| counted(renewal).unwrap());
        assert!(always[1] == 0 && always[2] > 1_000, "{always:?}");
        assert!(fresh[1] > 100 && fresh[2] > fresh[1], "{fresh:?}");
        assert_eq!(chain(Renewal::Always).unwrap(), ["5", "5"]);
        assert_eq!(chain(Renewal::OnFresh).unwrap(), ["5, 15", "5, 15"]);
    }
}
