//! Plots and the results page, from the tables.

use super::claims::{Difference, FIGURES, Figure, TABLE_2, TABLE_3, difference};
use super::measure::{self, DAYS, LOST, OCCUPANCY, SLOTS, SPEED, WINDOWS};
use super::{Experiment, SIX_PERSONS, Source, TWO_PERSONS};
use super::{city, future, modes, summary};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Check, Section, ends, extremes, heights};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Line, Mark, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots next to them, and the page next to the folder, under
/// its name.
///
/// # Errors
/// When a table is missing or damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let read = |experiment: Experiment, columns: &[&str]| {
        Sheet::read(&folder.join(experiment.file()), columns)
    };
    let slots = read(Experiment::Slots, &SLOTS)?;
    let occupancy = read(Experiment::Occupancy, &OCCUPANCY)?;
    let lost = read(Experiment::Lost, &DAYS)?;
    let person = read(Experiment::Person, &DAYS)?;
    let day = read(Experiment::Day, &DAYS)?;
    let ways = read(Experiment::Modes, &measure::columns(Experiment::Modes))?;
    let speed = read(Experiment::Speed, &SPEED)?;
    let facts = Facts::read(folder)?;
    let future = read(Experiment::Future, &measure::columns(Experiment::Future))?;
    let mut page = heading(&facts, &speed);
    let measured = [slots_section(&slots), lost_section(&lost), occupancy_section(&occupancy)];
    let shown: Vec<Section> = FIGURES
        .iter()
        .map(|figure| {
            let mut section = figure_section(figure, &person, &day);
            if figure.name == "Figure 9" {
                section.numbers += &budget(&person);
            }
            if figure.name == "Figure 12a" {
                section.why = format!("{} {}", company(&facts), section.why).trim().to_owned();
            }
            section
        })
        .collect();
    let tables = [table_2(&person), table_3(&person)];
    page += &summary::section(&facts, &lost, &person, &day);
    let points = [(&TABLE_2[..], ("m_worker", "m_mec")), (&TABLE_3[..], ("m_mec", "m_worker"))]
        .map(|(cells, parameters)| (cells, differences(&person, cells, parameters).1));
    page += &summary::agreement(measured.iter().chain(&shown), &points);
    for section in &measured {
        page += &section.write(folder)?;
    }
    let counted = read(Experiment::City, &city::COLUMNS)?;
    page += &format!("{TOGETHER}{}", city::table(&counted));
    page += &who(&person, &day);
    for section in shown.iter().chain(&tables) {
        page += &section.write(folder)?;
    }
    page += &future::section(&future, &person, &day);
    page += &modes::section(&ways).write(folder)?;
    page += &modes::speed_section(&speed);
    report::write(folder, &page)
}

pub(super) fn axis(label: &str, scale: Scale, tick: fn(f64) -> String) -> Axis {
    Axis { label: label.to_owned(), scale, tick }
}

fn as_percent(value: f64) -> String {
    let percent = 100.0 * value;
    // A share below 1 % has two digits, so that the ticks of a low axis differ.
    let digits = match percent.abs() {
        small if (1e-6..0.95).contains(&small) => 1 - small.log10().floor() as i32,
        _ => 1,
    };
    let unit = 10_f64.powi(digits);
    // Without a minus before 0.
    format!("{} %", plain((percent * unit).round() / unit + 0.0))
}

pub(super) fn chart(title: String, y: Axis, lines: Vec<Line>) -> Chart {
    Chart { title, x: axis("window in minutes", Scale::Log, plain), y, lines }
}

const INTRODUCTION: &str = "# Antonić et al. (2022), Figures 4–12 and Tables 1–3

<!-- Written by `lately-bench figures paper5`; change bench/src/figures/paper5. -->

M. Antonić, A. Antonić, I. Podnar Žarko, “Bloom Filter Approach for Autonomous Data Acquisition in the
Edge-Based MCS Scenario”, Sensors 22, 879, 2022. Devices hold a Bloom filter of what others have sent
from their square kilometre, and send only what is not in it. We run the same experiments with the
roles of `crates/edge`, which are those of the real system: each message is encoded, counted and
delivered, in memory. Exact tables alongside distinguish readings that were rightly suppressed from those lost to a
false positive.

## Setup

";

fn heading(facts: &Facts, speed: &Sheet) -> String {
    let mut page = INTRODUCTION.to_owned();
    let row = |source: &str, name: &str| {
        let fact = |what: &str| facts.get(&format!("{source} {what}")).to_owned();
        vec![name.to_owned(), fact("people"), fact("days"), fact("fixes"), fact("arrivals")]
    };
    page += "The paper's trace (67 phones in Seoul) is not public. Like the paper, we cut traces into days, overlay all \
             days, interpolate each linearly to one fix per minute, and treat every fix as a reading. \
             *crowd* is the e-mission trace of the InterSCity challenge 2017, without fixes less accurate than \
             100 m: about forty times smaller. *city* is synthetic (`simulate::City`): its numbers of days \
             and fixes, of cells entered, and of distinct elements in ten minutes of the afternoon were fitted to \
             the paper's; everything else is a result.\n\n";
    let paper = ["the paper", "67", "7724", "4709259", "579040"].map(str::to_owned).to_vec();
    page += &report::table(
        &["trace (Table 1)", "people", "days", "readings", "announces"],
        [paper, row("crowd", "crowd"), row("city", "city")],
    );
    let of = |variant| {
        let rows = speed.of(&[("trace", "city"), ("variant", variant)]);
        rows.first().map_or(String::from("?"), |row| row.text("seconds").to_owned())
    };
    let _ = write!(
        page,
        "\nScale {}; processor: {}. A day of the city takes {} s of processor time with filters that are reset, {} s \
         with filters that age (last table).\n",
        facts.get("scale"),
        facts.get("processor"),
        of("reset"),
        of("ageing"),
    );
    page
}

/// The sum of a column over rows.
fn sum(rows: &[Row<'_>], column: &str) -> f64 {
    rows.iter().map(|row| row.number(column)).sum()
}

fn slots_section(sheet: &Sheet) -> Section {
    let of = |source: Source, n: &str, p: &str| {
        sheet.of(&[("trace", source.name()), ("n", n), ("p", p)])
    };
    let hours = |rows: &[Row<'_>], column: &str| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (row.number("start") - 960.0, row.number(column))).collect()
    };
    let city = of(Source::City, "50", "0.1");
    let hour = || axis("minutes after 4 pm", Scale::Linear, plain);
    let figure_4 = Chart {
        title: "Figure 4: readings and distinct elements in ten minutes, city".into(),
        x: hour(),
        y: axis("in ten minutes", Scale::Log, si),
        lines: vec![
            report::line("readings", hours(&city, "readings")),
            report::line("distinct elements", hours(&city, "elements")),
            Line::crosses(
                "the paper: least and most",
                vec![(90.0, 30_000.0), (90.0, 42_000.0), (90.0, 4_400.0), (90.0, 7_200.0)],
            ),
        ],
    };
    let lost = |n: &str, p: &str| sum(&of(Source::City, n, p), "lost");
    let rates = ["0.1", "0.05", "0.01", "0.001"];
    let figure_5 = |part: &str, n: &str, most: f64| Chart {
        title: format!("Figure 5{part}: elements lost in ten minutes, n = {n}, city"),
        x: hour(),
        y: axis("elements lost", Scale::Linear, plain),
        lines: rates
            .map(|p| {
                let lost = hours(&of(Source::City, n, p), "lost");
                let events = heights(&lost);
                report::bars(report::line(format!("p = {p}"), lost), &events)
            })
            .into_iter()
            .chain([Line::crosses("the paper, p = 0.1: the most", vec![(140.0, most)])])
            .collect(),
    };
    let between = |column: &str| extremes(&heights(&hours(&city, column)));
    let (readings, elements) = (between("readings"), between("elements"));
    let most = |n: &str| extremes(&heights(&hours(&of(Source::City, n, "0.1"), "lost"))).1;
    let share = sum(&city, "elements") / sum(&city, "readings");
    let by_rate = |n: &str| rates.map(|p| lost(n, p));
    let (fifty, hundred) = (by_rate("50"), by_rate("100"));
    let numbers = ["crowd", "city"].into_iter().flat_map(|trace| {
        ["50", "100"].into_iter().flat_map(move |n| {
            rates.into_iter().map(move |p| {
                let rows = sheet.of(&[("trace", trace), ("n", n), ("p", p)]);
                let cell = |column| format!("{}", sum(&rows, column));
                let lost = cell("lost");
                vec![trace.into(), n.into(), p.into(), cell("readings"), cell("elements"), lost]
            })
        })
    });
    Section {
        title: "Figures 4 and 5: from 4 to 7 pm, filters reset every ten minutes".into(),
        plots: vec![
            ("figure-4.svg".into(), figure_4),
            ("figure-5a.svg".into(), figure_5("a", "50", 79.0)),
            ("figure-5b.svg".into(), figure_5("b", "100", 22.0)),
        ],
        claim: "In ten minutes there are 30 to 42 thousand readings of 4.4 to 7.2 thousand distinct elements. All readings \
                are added to the hosts' filters (section 4.1). With n = 50 and p = 0.1, up to 79 elements are lost in \
                a slot (22 with n = 100); with p = 0.001, 18 in all slots together, and none with n = 100."
            .into(),
        checks: vec![
            Check::new(
                readings.0 >= 27_000.0 && readings.1 <= 46_000.0,
                format!("{} to {} readings per slot (the paper: 30 to 42 thousand)", readings.0, readings.1),
            ),
            Check::fitted(format!(
                "of {} to {} distinct elements, {:.1} % overall (the paper: 4.4 to 7.2 thousand)",
                elements.0,
                elements.1,
                100.0 * share
            )),
            Check::new(
                within(most("50"), 79.0) && within(most("100"), 22.0),
                format!(
                    "at p = 0.1 at most {} are lost per slot with n = 50 (the paper: 79), {} with n = 100 (22)",
                    most("50"),
                    most("100")
                ),
            ),
            Check::new(
                fifty.windows(2).all(|pair| pair[0] >= pair[1]) && fifty[0] > fifty[3],
                format!("with n = 50, losses fall with p: {} for p = {}", counts(&fifty), rates.join(", ")),
            ),
            Check::new(
                hundred[0] < fifty[0],
                format!("with n = 100, fewer: {}", counts(&hundred)),
            ),
            Check::new(hundred[3] == 0.0, "none with n = 100 and p = 0.001"),
        ],
        why: WHY_SLOTS.into(),
        numbers: report::table(&["trace", "n", "p", "readings", "elements", "lost"], numbers),
    }
}

/// Is it between half of the paper's number and twice that?
fn within(ours: f64, paper: f64) -> bool {
    (paper / 2.0..=paper * 2.0).contains(&ours)
}

fn counts(values: &[f64]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn lost_section(sheet: &Sheet) -> Section {
    let line = |n: &str, p: &str| {
        sheet.line(&[("trace", "city"), ("n", n), ("p", p)], "window", "lost_per_mille")
    };
    let pairs = [("50", "0.1"), ("50", "0.01"), ("50", "0.001"), ("100", "0.1"), ("100", "0.001")];
    let with_bars = |(n, p): (&str, &str)| {
        let wanted = [("trace", "city"), ("n", n), ("p", p)];
        let events = heights(&sheet.line(&wanted, "window", "elements_lost"));
        report::bars(report::line(format!("n = {n}, p = {p}"), line(n, p)), &events)
    };
    let mut lines: Vec<Line> = pairs.map(with_bars).into();
    let known = vec![(1.0, 1.1), (15.0, 7.6), (60.0, 17.0), (30.0, 0.006), (60.0, 0.008)];
    lines.push(Line::crosses("the paper: n = 50, p = 0.1; n = 100, p = 0.001", known));
    let at = |n: &str, p: &str, window: f64| {
        let points = line(n, p);
        points.iter().find(|point| point.0 == window).map_or(f64::NAN, |point| point.1)
    };
    let worst = heights(&line("50", "0.1"));
    let (half, hour) = (at("100", "0.001", 30.0), at("100", "0.001", 60.0));
    let mut checks: Vec<Check> = [(1.0, 1.1), (15.0, 7.6), (60.0, 17.0)]
        .map(|(window, paper)| {
            let ours = at("50", "0.1", window);
            let text = format!("n = 50, p = 0.1, {window} min: {ours} ‰ (the paper: {paper})");
            Check::new(within(ours, paper), text)
        })
        .into();
    checks.extend([
        Check::new(
            worst.windows(2).all(|pair| pair[0] < pair[1]),
            "the share grows with the window: fuller filters have more false positives",
        ),
        Check::new(
            at("50", "0.01", 60.0) < 5.0,
            format!("n = 50, p = 0.01, 60 min: {} ‰, below 5", at("50", "0.01", 60.0)),
        ),
        Check::new(
            half <= 0.02 && hour <= 0.02,
            format!("n = 100, p = 0.001: {half} ‰ at 30 minutes (the paper: 0.006), {hour} at 60 (0.008), almost none"),
        ),
    ]);
    let numbers = ["crowd", "city"].into_iter().flat_map(|trace| {
        LOST.into_iter().map(move |(n, p)| {
            let (n, p) = (n.to_string(), p.to_string());
            let rows = sheet.of(&[("trace", trace), ("n", &n), ("p", &p)]);
            let of = |window: f64| rows.iter().find(|row| row.number("window") == window);
            let cell = |window| of(window).map_or("", |row| row.text("lost_per_mille")).to_owned();
            let expected = |row: &Row<'_>| {
                format!("{} / {}", row.text("elements_lost"), row.text("expected_lost"))
            };
            let last = of(60.0).map(expected).unwrap_or_default();
            let head = [trace.to_owned(), n, p];
            head.into_iter().chain([1.0, 15.0, 30.0, 60.0].map(cell)).chain([last]).collect()
        })
    });
    Section {
        title: "Figure 6: elements lost over the day".into(),
        plots: vec![(
            "figure-6.svg".into(),
            chart("Figure 6: elements lost, city".into(), axis("elements lost in ‰", Scale::Log, plain), lines),
        )],
        claim: "With n = 50 and p = 0.1: 1.1 ‰ at one minute, 7.6 at 15, 17 at 60. With n = 50 and p = 0.01 below 5 ‰. \
                With n = 100 and p = 0.001: 0.006 ‰ at 30 minutes, 0.008 at 60."
            .into(),
        checks,
        why: WHY_LOST.into(),
        numbers: report::table(
            &["trace", "n", "p", "1 min ‰", "15 min ‰", "30 min ‰", "60 min ‰", "lost / expected, 60 min"],
            numbers,
        ),
    }
}

fn occupancy_section(sheet: &Sheet) -> Section {
    let plot = |p: &str, part: &str| {
        let of = |column: &str| sheet.line(&[("trace", "city"), ("p", p)], "window", column);
        // Boxes from quartile to quartile, whiskers from the first decile to the ninth, as in the paper.
        let bounds = ["first", "quarter", "three_quarters", "ninth"].map(of);
        let mut boxes = report::line("deciles, quartiles, median", of("median"));
        for at in 0..boxes.points.len() {
            let bound = |line: &Vec<(f64, f64)>| line.get(at).map_or(f64::NAN, |point| point.1);
            let bounds = bounds.each_ref().map(bound);
            // Some windows were measured before quartiles were noted.
            let whole = bounds.iter().all(|bound| bound.is_finite());
            let whiskers = Mark::Bar(bounds[0], bounds[3]);
            boxes.marks.push((at, if whole { Mark::Box(bounds) } else { whiskers }));
        }
        let fullest = Line::crosses("fullest", of("most"));
        let (highest, one) = if p == "0.1" { (40.0, Some(174.0)) } else { (132.0, None) };
        let paper = WINDOWS.map(|window| (window as f64, highest)).to_vec();
        let mut lines =
            vec![boxes, fullest, report::line("the paper: no ninth decile above", paper)];
        lines.extend(one.map(|bits| Line::crosses("the paper: the fullest", vec![(15.0, bits)])));
        let title =
            format!("Figure 7{part}: bits set at the end of a window, n = 50, p = {p}, city");
        let file = format!("figure-7{part}.svg");
        (file, chart(title, axis("bits set", Scale::Log, plain), lines))
    };
    let ninth = |p| heights(&sheet.line(&[("trace", "city"), ("p", p)], "window", "ninth"));
    let (coarse, fine) = (ninth("0.1"), ninth("0.001"));
    let fullest = [("trace", "city"), ("p", "0.1"), ("window", "15")];
    let fullest = sheet.of(&fullest).first().map_or(f64::NAN, |row| row.number("most"));
    let grows = |line: &[f64]| ends(line).0 < ends(line).1;
    let apart =
        coarse.iter().zip(&fine).map(|(coarse, fine)| (coarse / 239.0 - fine / 718.0).abs());
    let apart = apart.fold(0.0, f64::max);
    let columns = OCCUPANCY;
    let rows = sheet.rows().map(|row| columns.map(|column| row.text(column).to_owned()).to_vec());
    Section {
        title: "Figure 7: how full filters are".into(),
        plots: vec![plot("0.1", "a"), plot("0.001", "b")],
        claim: "With n = 50, nine tenths of the filters have at most 40 of 239 bits set (p = 0.1), or 132 of 718 \
                (p = 0.001), which are similar shares; few are much fuller. The fewest bits are set at one minute; longer windows \
                hardly differ."
            .into(),
        checks: vec![
            Check::new(
                coarse.iter().all(|&bits| bits <= 40.0),
                format!("p = 0.1: ninth deciles {} of 239 bits, none above 40", counts(&coarse)),
            ),
            Check::new(
                fine.iter().all(|&bits| bits <= 132.0),
                format!("p = 0.001: ninth deciles {} of 718 bits, none above 132", counts(&fine)),
            ),
            Check::new(grows(&coarse) && grows(&fine), "fewest at one minute"),
            Check::new(
                within(fullest, 174.0),
                format!("the fullest at 15 minutes has {fullest} of 239 bits set (the paper: 174)"),
            ),
            Check::new(
                apart < 0.05,
                format!("the share of set bits hardly depends on p: ninth deciles differ by at most {:.1} points", 100.0 * apart),
            ),
            Check::new(
                ends(&coarse).1 <= 1.5 * coarse.get(3).copied().unwrap_or(0.0),
                "and hardly on the window beyond 15 minutes",
            ),
        ],
        why: WHY_OCCUPANCY.into(),
        numbers: report::table(&columns, rows),
    }
}

/// What of the paper's numbers no city has together, and what hubs explain.
const TOGETHER: &str = "
## What places that people share explain

Our city's people move independently: fitted to the counts, it loses 0.003 ‰ at one minute, where the paper says 1.1. So we generated another one (`City::with_hubs`),
in which each person has a home, a workplace and two other places to stay at; six of ten of these, and three of ten of the places people explore, lie in one of fourteen *hubs*, areas of about
a square kilometre (a campus, a station) where people also walk about; elsewhere they only pass through. How often people leave, how fast they are and how busy hubs are was fitted to the numbers
marked below. The table is counted in the traces, without any message (losses are those that the fill of the filters makes one expect); percentages are of the readings. *Of a person* is what is sent if all days of a
person are one worker and hosts want any number of readings: the paper's numbers are those of Figure 8, and of Table 2 with m_MEC = 15.

Hubs give the paper's losses and its fullest filters at all windows at once. Two things remain, whatever was tried:

- **Readings sent at one minute.** 12.3 % of all fixes enter another square kilometre, and are nearly all the only ones of their person, element and minute; by Table 2 another 6.9 % are the first at places where
  two days of a person meet. That is all of the 18 to 19 % of Figure 8, and leaves none for people who are alone at a place, or for two minutes on the way in one square kilometre.
- **Repeats in two hours.** By Table 2, 4.3 % of the readings are the second of their person and element within two hours, three times as many as with hubs or without.

The rest of this page is measured in the city without hubs.

";

/// Why there are two simulations.
fn who(person: &Sheet, day: &Sheet) -> String {
    let of = |sheet: &Sheet, window: &str, worker: &str, column: &str| {
        let wanted = [("trace", "city"), ("window", window), ("m_worker", worker), ("m_mec", "5")];
        sheet.of(&wanted).first().map_or(f64::NAN, |row| row.number(column))
    };
    let sent = |sheet| as_percent(of(sheet, "1", "1", "sent_share"));
    let cost = |sheet| 100.0 * (of(sheet, "1", "1", "saving") - of(sheet, "1", "5", "saving"));
    let resets = |window| {
        let more = of(person, window, "1", "reset") - of(day, window, "1", "reset");
        100.0 * more / of(person, window, "1", "readings")
    };
    format!(
        "
## Who is a worker?

The paper says that each of the 7,724 user-days is a separate worker, with one fix per minute. Its numbers suggest
otherwise. If filters are reset every minute, a worker's filter is empty at each of its readings, unless it
has just arrived: nearly every reading is sent, and m_worker cannot matter, as no worker has a second reading within the
minute. Yet in Figure 8, 18 to 19 % are sent at one minute, and in Figure 11, m_worker = 5 costs 18 points there. Both are
possible only if days share a worker's filter and counters. We let all days of one *person* in a square kilometre share them:
when days are overlaid, about fifty of a person's days are active at a time, most of them at the same few places. So we
run both: **person**, which comes close to the paper's figures, and **day**, which is what its text says and what a real
system would see. In the city, at one minute and m_MEC = 5, {} are sent with persons and {} with days, and m_worker = 5
costs {:.1} and {:.1} points.

A person's worker never leaves its square kilometre, since another of its days may arrive: so filters are also reset where
nobody is left. That costs {:.2} points of saving at ten minutes and {:.2} at two hours, and nothing at one minute.

",
        sent(person),
        sent(day),
        cost(person),
        cost(day),
        resets("10"),
        resets("120"),
    )
}

fn figure_section(figure: &Figure, person: &Sheet, day: &Sheet) -> Section {
    let Figure { name, quantity, lines: (parameter, values), held, claim, why, .. } = *figure;
    // All lines could not be distinguished.
    let drawn = if parameter == "m_mec" { &[1, 5, 15] } else { values };
    let line = |sheet: &Sheet, source, who: &str, value: u16| {
        let points = figure.line(sheet, source, value);
        (!points.is_empty()).then(|| report::line(format!("{who}, {parameter} = {value}"), points))
    };
    let mut lines: Vec<Line> = Vec::new();
    // What was run at the two ends only makes no line, and six lines are distinguishable.
    for (sheet, who) in [(person, "person"), (day, "day")] {
        let of_this = drawn.iter().filter_map(|&value| line(sheet, Source::City, who, value));
        merge(&mut lines, of_this);
    }
    lines.truncate(5);
    let low = if quantity.column == "saving" { floor_lines(&mut lines) } else { "" };
    let known: Vec<(f64, f64)> =
        figure.named.iter().flat_map(|&(_, at, least, most)| [(at, least), (at, most)]).collect();
    if !known.is_empty() {
        lines.push(Line::crosses("the paper", known));
    }
    let title = format!("{name}: {}, {} = {}, city", quantity.label, held.0, held.1);
    let mut rows = Vec::new();
    for (sheet, who, source) in [
        (person, "person", Source::City),
        (day, "day", Source::City),
        (person, "person", Source::Crowd),
        (day, "day", Source::Crowd),
    ] {
        for &value in values {
            let points = figure.line(sheet, source, value);
            if points.is_empty() {
                continue;
            }
            let at = |window: f64| points.iter().find(|point| point.0 == window);
            let cell = |window| at(window).map_or(String::new(), |point| as_percent(point.1));
            let head = [source.name().to_owned(), who.to_owned(), value.to_string()];
            let cells = [1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0].map(cell);
            rows.push(head.into_iter().chain(cells).collect());
        }
    }
    let head = ["trace", "worker", parameter, "1 min", "5", "10", "15", "30", "60", "120"];
    Section {
        title: format!("{name}: {}, {} = {}", quantity.label, held.0, held.1),
        plots: vec![(
            format!("{}.svg", name.to_lowercase().replace(' ', "-")),
            chart(title, axis(quantity.label, Scale::Linear, as_percent), lines),
        )],
        claim: claim.to_owned(),
        checks: figure.checks(person),
        why: [why, low].join(" ").trim().to_owned(),
        numbers: report::table(&head, rows),
    }
}

/// Adds lines; one that would cover the one before it only adds its value to that one's name.
fn merge(lines: &mut Vec<Line>, more: impl Iterator<Item = Line>) {
    let from = lines.len();
    for line in more {
        let before = lines.iter_mut().skip(from).last();
        let covers = |before: &&mut Line| {
            let pairs = before.points.iter().zip(&line.points);
            before.points.len() == line.points.len()
                && pairs.clone().all(|(one, other)| (one.1 - other.1).abs() < 0.005)
        };
        match before.filter(covers) {
            Some(before) => {
                let value = line.name.rsplit(' ').next().unwrap_or_default();
                before.name = format!("{}, {value}", before.name);
            }
            None => lines.push(line),
        }
    }
}

/// How many persons visit an element: what m_MEC can count.
fn company(facts: &Facts) -> String {
    let of =
        |source: Source, what: &str| facts.get(&format!("{} {what}", source.name())).to_owned();
    let [two, six] = [TWO_PERSONS, SIX_PERSONS];
    format!(
        "A person sends m_worker readings of an element per window, so with m_MEC = 5 and m_worker = 1 only a \
         sixth person can be redundant there. In two hours, two or more persons visit {} of the city's elements, six \
         or more visit {} ({} and {} in the crowd): the people of the city have separate homes and workplaces.",
        of(Source::City, two),
        of(Source::City, six),
        of(Source::Crowd, two),
        of(Source::Crowd, six),
    )
}

/// Of which messages the saving is made up.
fn budget(person: &Sheet) -> String {
    let mut rows = vec![
        ["the paper", "1", "", "12.3", "12.3", "18", "4.4 ± 1, with resets", "", "53"],
        ["the paper", "120", "", "12.3", "12.3", "11", "2.4 ± 1, with resets", "", "62"],
    ]
    .into_iter()
    .map(|row| row.map(str::to_owned).to_vec())
    .collect::<Vec<_>>();
    for source in [Source::City, Source::Crowd] {
        for window in ["1", "120"] {
            let wanted =
                [("trace", source.name()), ("window", window), ("m_worker", "1"), ("m_mec", "1")];
            for row in person.of(&wanted) {
                let share =
                    |column| format!("{:.1}", 100.0 * row.number(column) / row.number("readings"));
                let saving = format!("{:.1}", 100.0 * row.number("saving"));
                let columns =
                    ["elements", "announce", "assign", "sent", "update", "reset"].map(share);
                let head = [source.name().to_owned(), window.to_owned()];
                rows.push(head.into_iter().chain(columns).chain([saving]).collect());
            }
        }
    }
    let head =
        ["trace", "window", "elements", "announce", "assign", "sent", "update", "reset", "saving"];
    format!(
        "\nAs a percentage of the readings, with m_worker = 1, m_MEC = 1, and persons as workers; the paper's updates and \
         resets are derived from its other numbers:\n\n{}",
        report::table(&head, rows)
    )
}

/// The chart begins at 0: what lies below is only in the table.
fn floor_lines(lines: &mut [Line]) -> &'static str {
    let mut below = false;
    for line in lines.iter_mut() {
        let before = line.points.len();
        line.points.retain(|point| point.1 >= 0.0);
        below |= line.points.len() < before;
    }
    if below {
        "Points below 0, where more messages are sent than readings taken, are only in the table."
    } else {
        ""
    }
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
            text(Source::Crowd, cell),
        ]
    });
    let table = report::table(&["window", held, varied, "the paper", "city", "crowd"], rows);
    let city = cells.iter().map(|cell| difference(sheet, Source::City, parameters, cell));
    (table, city.map(|ours| ours.unwrap_or(f64::NAN)).collect())
}

/// How many of our points are near the paper's.
fn near(cells: &[Difference], ours: &[f64]) -> Check {
    let near = cells.iter().zip(ours).filter(|(cell, ours)| (cell.4 - **ours).abs() <= 1.0).count();
    let text = format!("{near} of {} numbers are within one point of the paper's", cells.len());
    Check::new(near == cells.len(), text)
}

fn table_2(sheet: &Sheet) -> Section {
    let (numbers, ours) = differences(sheet, &TABLE_2, ("m_worker", "m_mec"));
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

fn table_3(sheet: &Sheet) -> Section {
    let (numbers, ours) = differences(sheet, &TABLE_3, ("m_mec", "m_worker"));
    let of_workers = differences(sheet, &TABLE_2, ("m_worker", "m_mec")).1;
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

const WHY_SLOTS: &str = "The shares were fitted over the three hours, not for each slot: the synthetic days begin around half past \
     seven and last ten hours, so the city empties during these three hours, which the paper's figure does not show. Losses require many \
     elements in one square kilometre at a time, and the city's people are spread more evenly than the paper's: its fullest \
     filter has fewer bits set (Figure 7). The crowd has fewer readings than one of the paper's slots, and still loses some.";

const WHY_LOST: &str = "At one hour the city loses as much as in the paper, and less with shorter windows. The paper's 1.1 ‰ at \
     one minute is the rate of a filter with nine elements (3 hashes, 239 bits): its readings came from square kilometres \
     with nine others in that minute. Nine tenths of the city's filters have three or fewer (Figure 7), as its people move \
     independently; the people of the crowd are close together somewhere, and lose 0.2 ‰ in a trace forty times smaller. The last column shows, at 60 minutes, how many elements were lost and how many the hosts themselves expect to \
     have lost, judging only by the fill of their filters: the two agree, so the difference is in the fill, not in the filters.";

const WHY_OCCUPANCY: &str = "Filters without any bit set are omitted, as in the paper. *over* counts filters more than half full, \
     whose false positive rate exceeds the one they were designed for. The city's filters are fuller than the paper's \
     overall, but the fullest are not as full: the same elements are spread more evenly over square kilometres. The paper's \
     whiskers no longer move beyond some window, which suggests that most of its cells are places where people \
     stay; the city's cells also fill with people passing through.";

const WHY_TABLE_2: &str = "Workers are persons; with days, the rows at one minute would be 0, as no day has two fixes in a minute. \
     The city's numbers are a quarter to nine tenths of the paper's: the cost of a step is the share of readings that are the second, \
     third, … of their person, element and window, and fewer of the synthetic days overlap with others of the same person. The crowd has \
     seven days per person, not 115, and still m_worker costs as much at two hours as in the paper.";

const WHY_TABLE_3: &str = "Workers are persons. Beyond 5 there is nothing more to save in the city, as hardly any element is visited by more persons \
     (see Figure 12); the paper's 67 people shared more places. Numbers below 0: the more readings the host wants, the fewer updates \
     it sends, and at one minute that may save more than those updates would suppress.";
