//! The goals, and whether they were reached.

use super::adapter::{DLEFT, OURS};
use super::page::Tables;
use crate::figures::report;
use crate::figures::sheet::{Row, Sheet};

/// An aim, what was measured, and whether that reaches it.
struct Aim {
    aim: &'static str,
    measured: String,
    reached: Option<bool>,
}

/// The row of a structure at a place.
fn at<'a>(
    sheet: Option<&'a Sheet>,
    structure: &str,
    n: f64,
    length: f64,
    workload: &str,
) -> Option<Row<'a>> {
    sheet?.rows().find(|row| {
        row.text("structure") == structure
            && row.number("n") == n
            && row.number("length") == length
            && row.text("workload") == workload
    })
}

/// The table of aims.
pub(super) fn table(tables: &Tables) -> String {
    let speed = tables.speed.as_ref();
    let ours = |n, length| at(speed, OURS.name, n, length, "uniform");
    let lengths = [1.0, 1e3, 1e9];
    let empties = |n| lengths.map(|length| ours(n, length).map(|row| row.number("empty_ns")));
    let list = |values: &[Option<f64>], digits: usize| {
        let one =
            |value: &Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.digits$}"));
        values.iter().map(one).collect::<Vec<_>>().join(" / ")
    };
    let within = |values: &[Option<f64>], most: f64| {
        values.iter().copied().collect::<Option<Vec<_>>>().map(|all| all.iter().all(|&v| v <= most))
    };
    let ratios =
        lengths.map(|length| ours(1e6, length).map(|row| row.number("bits") / row.number("bound")));
    let spread = |n| {
        let all: Option<Vec<f64>> = empties(n).into_iter().collect();
        all.map(|all| {
            let (least, most) = report::extremes(&all);
            most / least
        })
    };
    let spreads = [1e5, 1e6, 2e7].map(spread);
    let faster = at(tables.paper.as_ref(), OURS.name, 1e6, 1e4, "uniform")
        .zip(at(tables.paper.as_ref(), DLEFT.name, 1e6, 1e4, "uniform"))
        .map(|(ours, theirs)| theirs.number("empty_ns") / ours.number("empty_ns"));
    let inserts: Vec<Option<f64>> = [1e5, 1e6, 2e7]
        .into_iter()
        .flat_map(|n| lengths.map(|length| ours(n, length).map(|row| row.number("insert_ns"))))
        .collect();
    let missed = |sheet: &Option<Sheet>| {
        sheet
            .iter()
            .flat_map(Sheet::rows)
            .filter(|row| row.text("structure") == OURS.name)
            .fold((0.0, 0.0), |(hits, missed), row| {
                (hits + row.number("hits"), missed + row.number("missed"))
            })
    };
    let all = [&tables.speed, &tables.paper, &tables.check].map(missed);
    let (hits, denied) = all.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let aims = [
        Aim {
            aim: "bits per key at n = 10^6: at most 1.25 × the bound with slack n/8 (L = 1 / 10^3 / 10^9)",
            measured: format!("{} ×", list(&ratios, 2)),
            reached: within(&ratios, 1.25),
        },
        Aim {
            aim: "query of an empty interval at n = 10^5: at most 150 ns (same L)",
            measured: format!("{} ns", list(&empties(1e5), 0)),
            reached: within(&empties(1e5), 150.0),
        },
        Aim {
            aim: "the same at n = 2·10^7: at most 400 ns",
            measured: format!("{} ns", list(&empties(2e7), 0)),
            reached: within(&empties(2e7), 400.0),
        },
        Aim {
            aim: "the times of the three L within 20 % of each other (n = 10^5 / 10^6 / 2·10^7)",
            measured: format!("largest ÷ smallest: {}", list(&spreads, 2)),
            reached: within(&spreads, 1.2),
        },
        Aim {
            aim: "at L = 10^4, n = 10^6: at least 500 × as fast as the d-left structure",
            measured: faster.map_or("?".into(), |faster| format!("{faster:.0} ×")),
            reached: faster.map(|faster| faster >= 500.0),
        },
        Aim {
            aim: "an arrival: at most 100 ns (n = 10^5, 10^6, 2·10^7, each with the three L)",
            measured: format!("{} ns", list(&inserts, 0)),
            reached: within(&inserts, 100.0),
        },
        Aim {
            aim: "no false negative",
            measured: format!("{denied} of {hits} intervals"),
            reached: (hits > 0.0).then_some(denied == 0.0),
        },
    ];
    let cells = aims.map(|aim| {
        let reached = match aim.reached {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not measured",
        };
        vec![aim.aim.to_owned(), aim.measured, reached.to_owned()]
    });
    format!("\n## Goals\n\n{}", report::table(&["goal", "measured", "reached"], cells))
}
