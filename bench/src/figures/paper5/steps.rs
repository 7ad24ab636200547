//! Tables 2 and 3: what more readings per worker, and more that hosts want, cost.

use super::Source;
use super::claims::{Difference, TABLE_2, TABLE_3, difference};
use crate::figures::report::{self, Check, Section, extremes};
use crate::figures::sheet::Sheet;

/// Table 2.
pub fn workers(sheet: &Sheet) -> Section {
    let (numbers, ours) = differences(sheet, &TABLE_2, PARAMETERS[0]);
    let (short, long) = ours.split_at(TABLE_2.len() / 2);
    Section {
        title: "Table 2: what m_worker costs".into(),
        plots: Vec::new(),
        claim: "In points of saving. More readings per worker reduce the saving, at one minute more than at two \
                hours."
            .into(),
        checks: vec![
            near(&TABLE_2, &ours),
            Check::new(ours.iter().all(|&points| points > 0.0), "each step costs savings"),
            Check::new(
                short.iter().zip(long).all(|(short, long)| short > long),
                "each costs more at one minute than at two hours",
            ),
        ],
        why: WHY_TABLE_2.into(),
        numbers,
    }
}

const WHY_TABLE_2: &str = "Workers are persons; with days, the rows at one minute would be 0, as no day has two fixes in a minute. \
     The city's numbers are a quarter to nine tenths of the paper's: the cost of a step is the share of readings that are the second, \
     third, … of their person, element and window, and fewer of the synthetic days overlap with others of the same person. The crowd has \
     seven days per person, not 115, and still m_worker costs as much at two hours as in the paper.";

/// Table 3.
pub fn wanted(sheet: &Sheet) -> Section {
    let (numbers, ours) = differences(sheet, &TABLE_3, PARAMETERS[1]);
    let of_workers = differences(sheet, &TABLE_2, PARAMETERS[0]).1;
    let (most, least) = (extremes(&ours).1, extremes(&of_workers).0);
    Section {
        title: "Table 3: what m_MEC costs".into(),
        plots: Vec::new(),
        claim: "In points of saving. Hosts that want more readings reduce the saving far less than more readings per worker \
                do; mostly where the window is long."
            .into(),
        checks: vec![
            near(&TABLE_3, &ours),
            Check::new(
                most < least,
                format!("no step of m_MEC costs as much (at most {most:.2} points) as the smallest of m_worker ({least:.2})"),
            ),
            Check::new(
                ours.iter().all(|&points| points > 0.0),
                "each step costs savings",
            ),
        ],
        why: WHY_TABLE_3.into(),
        numbers,
    }
}

const WHY_TABLE_3: &str = "Workers are persons. Beyond 5 there is nothing more to save in the city, as hardly any element is visited by more persons \
     (see Figure 12); the paper's 67 people shared more places. Numbers below 0: the more readings the host wants, the fewer updates \
     it sends, and at one minute that may save more than those updates would suppress.";

/// What is varied and what is held in Table 2, and in Table 3.
const PARAMETERS: [(&str, &str); 2] = [("m_worker", "m_mec"), ("m_mec", "m_worker")];

/// How many numbers of Tables 2 and 3 are within a point of the paper's, how many are not, and how many were fitted.
pub fn tallies(sheet: &Sheet, judged: Source) -> [[usize; 3]; 2] {
    let tables = [&TABLE_2[..], &TABLE_3[..]];
    std::array::from_fn(|table| {
        let mut tally = [0; 3];
        for cell in tables[table] {
            let Some(ours) = difference(sheet, judged, PARAMETERS[table], cell) else { continue };
            // How often a person's days meet within a minute is what the hubs were fitted to.
            let fitted = judged == Source::Hubs && table == 0 && cell.0 == "1";
            match (is_near(cell, ours), fitted) {
                (true, true) => tally[2] += 1,
                (true, false) => tally[0] += 1,
                (false, _) => tally[1] += 1,
            }
        }
        tally
    })
}

fn is_near(cell: &Difference, ours: f64) -> bool {
    (cell.4 - ours).abs() <= 1.0
}

/// Rows of Table 2 or 3, and our points on the city.
fn differences(
    sheet: &Sheet,
    cells: &[Difference],
    parameters: (&str, &str),
) -> (String, Vec<f64>) {
    let (varied, held) = parameters;
    let text = |source, cell| {
        difference(sheet, source, parameters, cell)
            .map_or(String::new(), |ours| format!("{ours:.2}"))
    };
    let rows = cells.iter().map(|cell| {
        let &(window, fixed, from, to, paper) = cell;
        vec![
            window.to_owned(),
            fixed.to_owned(),
            format!("{from} → {to}"),
            format!("{paper:.2}"),
            text(Source::City, cell),
            text(Source::Hubs, cell),
            text(Source::Crowd, cell),
        ]
    });
    let table =
        report::table(&["window", held, varied, "the paper", "city", "with hubs", "crowd"], rows);
    let city = cells.iter().map(|cell| difference(sheet, Source::City, parameters, cell));
    (table, city.map(|ours| ours.unwrap_or(f64::NAN)).collect())
}

/// How many of our points are near the paper's.
fn near(cells: &[Difference], ours: &[f64]) -> Check {
    let near = cells.iter().zip(ours).filter(|&(cell, &ours)| is_near(cell, ours)).count();
    let text = format!("{near} of {} numbers are within one point of the paper's", cells.len());
    Check::new(near == cells.len(), text)
}
