//! The goals, and what was reached.

use super::page::{OURS, Tables, of};
use crate::figures::report;
use crate::figures::sheet::Sheet;
use crate::plot::si;

/// Goals for the fewest and the most keys.
struct Goal {
    what: &'static str,
    unit: &'static str,
    /// Names of values, and the columns with them.
    columns: &'static [(&'static str, &'static str)],
    small_most: f64,
    large_most: f64,
}

const GOALS: [Goal; 4] = [
    Goal {
        what: "bits per key",
        unit: "",
        columns: &[("", "bits")],
        small_most: 19.6,
        large_most: 19.6,
    },
    Goal {
        what: "observe, batched",
        unit: " ns",
        columns: &[
            ("fresh", "fresh_batch"),
            ("repeated", "repeat_batch"),
            ("mixed", "mixed_batch"),
        ],
        small_most: 9.0,
        large_most: 25.0,
    },
    Goal {
        what: "observe, one by one",
        unit: " ns",
        columns: &[("fresh", "fresh"), ("repeated", "repeat"), ("mixed", "mixed")],
        small_most: 17.0,
        large_most: 110.0,
    },
    Goal {
        what: "contains, one by one",
        unit: " ns",
        columns: &[("hit", "hit"), ("miss", "miss")],
        small_most: 3.0,
        large_most: 28.0,
    },
];

/// One line of the table of aims.
struct Aim {
    what: String,
    aim: String,
    ours: String,
    /// What was reached over what was allowed.
    ratio: f64,
}

impl Aim {
    fn most(what: impl Into<String>, most: f64, unit: &str, values: &[(&str, f64)]) -> Self {
        let worst = values.iter().map(|&(_, value)| value).fold(f64::NAN, f64::max);
        let list: Vec<String> = values
            .iter()
            .map(|(name, value)| {
                let space = if name.is_empty() { "" } else { " " };
                format!("{name}{space}{value:.*}", digits(*value))
            })
            .collect();
        let ours = format!("{}{unit}", list.join(", "));
        Self { what: what.into(), aim: format!("≤ {most}{unit}"), ours, ratio: worst / most }
    }

    fn cells(self) -> Vec<String> {
        let outcome = match self.ratio {
            ratio if ratio.is_nan() => "not measured".to_owned(),
            ratio if ratio <= 1.0 => "met".to_owned(),
            ratio => format!("**missed** by {:.0} %", 100.0 * (ratio - 1.0)),
        };
        vec![self.what, self.aim, self.ours, outcome]
    }
}

const fn digits(value: f64) -> usize {
    if value < 10.0 { 2 } else { 1 }
}

impl Tables {
    pub(super) fn aims(&self) -> String {
        let mut aims: Vec<Aim> = Vec::new();
        let sizes = self.sizes();
        if let (Some(speed), [small, .., large]) = (&self.speed, sizes.as_slice()) {
            for Goal { what, unit, columns, small_most, large_most } in &GOALS {
                for (&n, &most) in [(small, small_most), (large, large_most)] {
                    let row = of(speed, OURS, n, 1e-3);
                    let value = |column| row.map_or(f64::NAN, |row| row.number(column));
                    let values: Vec<_> =
                        columns.iter().map(|&(name, column)| (name, value(column))).collect();
                    let what = format!("{what}, n = {}", si(n as f64));
                    aims.push(Aim::most(what, most, unit, &values));
                }
            }
        }
        // The smallest of ours is another structure than the fastest.
        for name in [OURS, "aged-buckets"] {
            let exact = format!("{name} exact");
            let rows = self.exact.iter().flat_map(Sheet::rows);
            for row in rows.filter(|row| row.text("structure") == exact) {
                let ratio = row.number("bits") / row.number("bound");
                let what = format!(
                    "exact count-based window, `{name}`, n = {}, ε = 1 %: bits over n(log2 1/ε + log2 n)",
                    si(row.number("n"))
                );
                aims.push(Aim::most(what, 1.25, "", &[("", ratio)]));
            }
        }
        for row in
            self.rates.iter().flat_map(Sheet::rows).filter(|row| row.text("structure") == OURS)
        {
            let bound = row.number("bound");
            let what = format!(
                "bits per key, ε = {:e}, n = {}: bound {bound:.1} + 7",
                row.number("fpr_asked"),
                si(row.number("n"))
            );
            let most = (10.0 * (bound + 7.0)).round() / 10.0;
            aims.push(Aim::most(what, most, "", &[("", row.number("bits"))]));
        }
        if aims.is_empty() {
            return String::new();
        }
        let head = [
            &format!("`{OURS}`, slack n/8, ε = 0.1 % unless stated otherwise"),
            "goal",
            "ours",
            "",
        ];
        "\n## Goals\n\nWhere there are several times, the slowest one counts.\n\n".to_owned()
            + &report::table(&head, aims.into_iter().map(Aim::cells))
    }
}
