//! The goals, and what was reached.

use super::page::{OURS, Tables, of};
use crate::figures::report;
use crate::figures::sheet::Sheet;
use crate::plot::si;

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
            let at = |n: u64, columns: &[&str]| -> Vec<f64> {
                let row = of(speed, OURS, n, 1e-3);
                columns
                    .iter()
                    .map(|column| row.map_or(f64::NAN, |row| row.number(column)))
                    .collect()
            };
            let named = |n, pairs: &[(&'static str, &str)]| -> Vec<(&'static str, f64)> {
                let columns: Vec<&str> = pairs.iter().map(|pair| pair.1).collect();
                pairs.iter().map(|pair| pair.0).zip(at(n, &columns)).collect()
            };
            let many = si(*large as f64);
            aims.push(Aim::most(
                format!("bits per key, n = {many} (stretch goal 17.5)"),
                19.0,
                "",
                &named(*large, &[("", "bits")]),
            ));
            aims.push(Aim::most(
                format!("observe, batched, n = {many}"),
                20.0,
                " ns",
                &named(
                    *large,
                    &[
                        ("fresh", "fresh_batch"),
                        ("repeated", "repeat_batch"),
                        ("mixed", "mixed_batch"),
                    ],
                ),
            ));
            aims.push(Aim::most(
                format!("contains, unbatched, n = {many}"),
                25.0,
                " ns",
                &named(*large, &[("hit", "hit"), ("miss", "miss")]),
            ));
            let few = si(*small as f64);
            aims.push(Aim::most(
                format!("observe, one by one, n = {few}"),
                4.0,
                " ns",
                &named(*small, &[("fresh", "fresh"), ("repeated", "repeat"), ("mixed", "mixed")]),
            ));
            aims.push(Aim::most(
                format!("observe, batched, n = {few}"),
                4.0,
                " ns",
                &named(
                    *small,
                    &[
                        ("fresh", "fresh_batch"),
                        ("repeated", "repeat_batch"),
                        ("mixed", "mixed_batch"),
                    ],
                ),
            ));
            aims.push(Aim::most(
                format!("contains, unbatched, n = {few}"),
                4.0,
                " ns",
                &named(*small, &[("hit", "hit"), ("miss", "miss")]),
            ));
        }
        let name = format!("{OURS} exact");
        for row in
            self.exact.iter().flat_map(Sheet::rows).filter(|row| row.text("structure") == name)
        {
            let ratio = row.number("bits") / row.number("bound");
            let what = format!(
                "exact count-based window, n = {}, ε = 1 %: bits over n(log2 1/ε + log2 n)",
                si(row.number("n"))
            );
            aims.push(Aim::most(what, 1.2, "", &[("", ratio)]));
        }
        for row in
            self.rates.iter().flat_map(Sheet::rows).filter(|row| row.text("structure") == OURS)
        {
            let bound = row.number("bound");
            let what = format!(
                "bits per key, ε = {:e}, n = {}: bound {bound:.1} + 6",
                row.number("fpr_asked"),
                si(row.number("n"))
            );
            let most = (10.0 * (bound + 6.0)).round() / 10.0;
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
