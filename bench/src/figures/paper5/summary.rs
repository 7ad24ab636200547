//! Every number the paper names of its trace, in one table.

use super::claims::{ALIKE, FIGURES, points};
use super::{Source, steps};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, tally};
use crate::figures::sheet::Sheet;
use std::fmt::Write;

/// A share of a whole day that the paper names: what it is, column, m_worker, m_MEC from and to, window,
/// from and to.
type Named = (&'static str, &'static str, &'static str, [&'static str; 2], f64, f64, f64);

const NAMED: [Named; 6] = [
    (
        "readings sent, m_worker 1, m_MEC 1–15, 1 min",
        "sent_share",
        "1",
        ["1", "15"],
        1.0,
        0.18,
        0.19,
    ),
    ("the same, 120 min", "sent_share", "1", ["1", "15"], 120.0, 0.11, 0.155),
    ("saving, m_worker 1, m_MEC 1–5, 1 min", "saving", "1", ["1", "5"], 1.0, 0.53, 0.53),
    ("the same, 120 min", "saving", "1", ["1", "5"], 120.0, 0.612, 0.62),
    ("saving, m_worker 5, m_MEC 5, 1 min", "saving", "5", ["5", "5"], 1.0, 0.35, 0.35),
    ("the same, 120 min", "saving", "5", ["5", "5"], 120.0, 0.55, 0.55),
];

fn percent(least: f64, most: f64) -> String {
    if most - least < 0.0005 {
        format!("{:.1} %", 100.0 * most)
    } else {
        format!("{:.1} to {:.1} %", 100.0 * least, 100.0 * most)
    }
}

/// How many of the paper's statements and numbers agree with ours where nothing was fitted, in both cities: by section, and
/// together. Of sections about hosts there is one for each city.
pub fn agreement<const N: usize>(
    of_hosts: &dyn Fn(Source) -> [Section; N],
    of_days: &[Section],
    person: &Sheet,
) -> String {
    let short = |section: &Section| section.title.split(':').next().unwrap_or_default().to_owned();
    let (city, hubs) = (of_hosts(Source::City), of_hosts(Source::Hubs));
    let mut rows: Vec<Tallies> = Vec::new();
    for (city, hubs) in city.iter().zip(&hubs) {
        rows.push((short(city), city.tally(), hubs.tally()));
    }
    for (figure, city) in FIGURES.iter().zip(of_days) {
        rows.push((short(city), city.tally(), tally(&figure.checks(person, Source::Hubs))));
    }
    let tables = [Source::City, Source::Hubs].map(|source| steps::tallies(person, source));
    for (at, name) in ["Table 2, numbers", "Table 3, numbers"].into_iter().enumerate() {
        rows.push((name.to_owned(), tables[0][at], tables[1][at]));
    }
    let [city_total, hubs_total] = totals(&rows);
    rows.push(("all".to_owned(), city_total, hubs_total));
    let mut page = format!(
        "{AGREEMENT}{}\nOf what was not fitted, **{}** agrees in the city.",
        tally_table(rows),
        share(city_total),
    );
    if hubs_total != [0; 3] {
        let _ = write!(
            page,
            " With hubs, of what was measured, **{}** does. The statements of Figures 4 to 7 with hubs:\n\n",
            share(hubs_total)
        );
    }
    for check in hubs.iter().flat_map(|section| &section.checks) {
        page += &check.line();
    }
    page + "\n"
}

/// What agrees, does not, and was fitted, in the city and with hubs.
type Tallies = (String, [usize; 3], [usize; 3]);

fn totals(rows: &[Tallies]) -> [[usize; 3]; 2] {
    let mut totals = [[0; 3]; 2];
    for (_, city, hubs) in rows {
        for (total, counts) in totals.iter_mut().zip([city, hubs]) {
            *total = [0, 1, 2].map(|at| total[at] + counts[at]);
        }
    }
    totals
}

fn share([agree, not, _]: [usize; 3]) -> String {
    report::percent(agree as f64 / (agree + not).max(1) as f64)
}

fn tally_table(rows: Vec<Tallies>) -> String {
    let with_hubs = rows.iter().any(|(_, _, hubs)| *hubs != [0; 3]);
    let cells = |(title, city, hubs): Tallies| {
        // Not every figure is measured with hubs.
        let text = |count: usize| if hubs == [0; 3] { String::new() } else { count.to_string() };
        let counts = city.map(|count| count.to_string()).into_iter();
        let counts = counts.chain(hubs.map(text).into_iter().filter(|_| with_hubs));
        std::iter::once(title).chain(counts).collect()
    };
    let head = ["", "city: agree", "do not", "fitted", "hubs: agree", "do not", "fitted"];
    report::table(if with_hubs { &head } else { &head[..4] }, rows.into_iter().map(cells))
}

const AGREEMENT: &str = "
## How much agrees

The paper's numbers and statements, as they are listed under each figure, for the generated city with persons as workers: those that agree, those
that do not, and those that the city was fitted to and that agree, which count on neither side. Named shares agree within 3 points, losses and the fullest
filters within a factor of two, the numbers of Tables 2 and 3 within one point. Some shapes follow from the method alone
(a filter with more elements errs more often), so that the share says less about the city than it seems.

";

/// The table: the paper's number, ours on the made-up city with persons as workers, whether the two are alike,
/// and the other runs.
pub fn section(facts: &Facts, lost: &Sheet, person: &Sheet, day: &Sheet) -> String {
    let mut rows = vec![
        count("readings", "4709259", facts, "fixes"),
        count("announces", "579040", facts, "arrivals"),
    ];
    for (window, paper) in [(30.0, 0.006), (60.0, 0.008)] {
        let of = |source: Source| {
            let held = [("n", "100"), ("p", "0.001")];
            let points = points(lost, source, "lost_per_mille", &held);
            points.iter().find(|point| point.0 == window).map_or(f64::NAN, |point| point.1)
        };
        let alike = (of(Source::City) - paper).abs() <= 0.01;
        let ours = |source| format!("{} ‰", of(source));
        rows.push(row(
            format!("elements lost, n 100, p 0.001, {window} min"),
            format!("{paper} ‰"),
            [ours(Source::City), "the same".into(), ours(Source::Crowd), "the same".into()],
            alike,
        ));
    }
    for (name, column, worker, wanted, window, least, most) in NAMED {
        let of = |sheet: &Sheet, source: Source| {
            let at = |m_mec: &str| {
                let held = [("m_worker", worker), ("m_mec", m_mec)];
                let points = points(sheet, source, column, &held);
                points.iter().find(|point| point.0 == window).map(|point| point.1)
            };
            // Days were not run with 15 readings wanted: 5 then, beyond which little changes.
            let ends = [at(wanted[0]), at(wanted[1]).or_else(|| at("5"))];
            let ends = ends.map(|share| share.unwrap_or(f64::NAN));
            (ends[0].min(ends[1]), ends[0].max(ends[1]))
        };
        let city = of(person, Source::City);
        let alike = city.0 >= least - ALIKE && city.1 <= most + ALIKE;
        let text = |sheet, source| {
            let (least, most) = of(sheet, source);
            percent(least, most)
        };
        let ours = [
            percent(city.0, city.1),
            text(day, Source::City),
            text(person, Source::Crowd),
            text(day, Source::Crowd),
        ];
        rows.push(row(name.to_owned(), percent(least, most), ours, alike));
    }
    let redundant = |sheet: &Sheet, source: Source| {
        let of_trace = sheet.of(&[("trace", source.name())]);
        let many = of_trace.iter().filter(|row| row.number("m_mec") >= 5.0);
        many.map(|row| row.number("redundant_share")).fold(0.0, f64::max)
    };
    let ours = [
        redundant(person, Source::City),
        redundant(day, Source::City),
        redundant(person, Source::Crowd),
        redundant(day, Source::Crowd),
    ];
    let alike = ours[0] <= 0.06;
    let ours = ours.map(|share| percent(share, share));
    rows.push(row("redundant, m_MEC 5 and more, maximum".into(), "6 %".into(), ours, alike));
    let head =
        ["", "the paper", "city, person", "similar", "city, day", "crowd, person", "crowd, day"];
    format!("{TEXT}{}", report::table(&head, rows))
}

const TEXT: &str = "
## Summary

The numbers that the paper states. *Similar*: in the city with persons as workers (see below), shares
within 3 points, elements lost within 0.01 ‰; what the city was fitted to is called so.

";

fn row(name: String, paper: String, ours: [String; 4], alike: bool) -> Vec<String> {
    let [city, city_day, crowd, crowd_day] = ours;
    let alike = if alike { "yes" } else { "**no**" };
    vec![name, paper, city, alike.to_owned(), city_day, crowd, crowd_day]
}

fn count(name: &str, paper: &str, facts: &Facts, fact: &str) -> Vec<String> {
    let of = |source: Source| facts.get(&format!("{} {fact}", source.name())).to_owned();
    let same = || "the same".to_owned();
    let mut cells =
        row(name.into(), paper.into(), [of(Source::City), same(), of(Source::Crowd), same()], true);
    cells[3] = "fitted".to_owned();
    cells
}
