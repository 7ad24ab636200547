//! Plots and the results page, from the tables.

use super::claims::{FIGURES, Figure, TABLE_2, TABLE_3, difference};
use super::measure::{DAYS, LOST, MODES, OCCUPANCY, SLOTS};
use super::{Experiment, Source};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Check, Section, ends, heights};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Line, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots beside them, and the page beside the folder, under
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
    let [lost, person, day, modes] =
        [Experiment::Lost, Experiment::Person, Experiment::Day, Experiment::Modes]
            .map(|experiment| read(experiment, &DAYS));
    let (lost, person, day, modes) = (lost?, person?, day?, modes?);
    let mut page = heading(&Facts::read(folder)?);
    page += &slots_section(&slots).write(folder)?;
    page += &lost_section(&lost).write(folder)?;
    page += &occupancy_section(&occupancy).write(folder)?;
    page += WHO;
    for figure in &FIGURES {
        page += &figure_section(figure, &person, &day).write(folder)?;
    }
    page += &table("Table 2: what m_worker costs", &person, &TABLE_2, ("m_worker", "m_mec"))?;
    page += &table("Table 3: what m_MEC costs", &person, &TABLE_3, ("m_mec", "m_worker"))?;
    page += &modes_section(&modes).write(folder)?;
    std::fs::write(folder.with_extension("md"), page.trim_end().to_owned() + "\n")?;
    Ok(())
}

fn axis(label: &str, scale: Scale, tick: fn(f64) -> String) -> Axis {
    Axis { label: label.to_owned(), scale, tick }
}

fn as_percent(value: f64) -> String {
    format!("{} %", plain((value * 1000.0).round() / 10.0))
}

fn chart(title: String, y: Axis, lines: Vec<Line>) -> Chart {
    Chart { title, x: axis("window in minutes", Scale::Log, plain), y, lines }
}

const INTRODUCTION: &str = "# Antonić et al. (2022), Figures 4–12 and Tables 1–3

<!-- Written by `lately-bench figures paper5`; change crates/bench/src/figures/paper5. -->

M. Antonić, A. Antonić, I. Podnar Žarko, “Bloom Filter Approach for Autonomous Data Acquisition in the
Edge-Based MCS Scenario”, Sensors 22, 879, 2022. Devices hold a Bloom filter of what others have sent
from their square kilometre, and send only what is not in it. We run the same experiments with the
roles of `crates/edge`, which are those of the real system: each message is encoded, counted and
delivered, in memory. Exact tables beside them tell a reading that was rightly suppressed from one lost to a
false positive.

## Set-up

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned();
    let row = |source: &str, name: &str| {
        let fact = |what: &str| facts.get(&format!("{source} {what}")).to_owned();
        vec![name.to_owned(), fact("people"), fact("days"), fact("fixes"), fact("arrivals")]
    };
    page += "The paper's trace (67 phones in Seoul) is not public here. As it does, we cut traces into days, lay \
             all days over one, fill each to a fix a minute by straight lines, and let every fix be a reading. \
             *crowd* is the e-mission trace of the InterSCity challenge 2017, without fixes less accurate than \
             100 m: two orders of magnitude smaller. *city* is made up (`simulate::City`): its number of days \
             and fixes, of cells entered, and of different elements in ten minutes of the afternoon were fitted to \
             the paper's; all else is what comes out.\n\n";
    let paper = ["the paper", "67", "7724", "4709259", "579040"].map(str::to_owned).to_vec();
    page += &report::table(
        &["trace (Table 1)", "people", "days", "readings", "announces"],
        [paper, row("crowd", "crowd"), row("city", "city")],
    );
    let longest = facts.get("person.csv city: longest run in s");
    let _ = write!(
        page,
        "\nScale {}; processor: {}. The longest simulated day of the city took {longest} s, one thread a day, \
         other programs running beside it.\n",
        facts.get("scale"),
        facts.get("processor"),
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
        title: "Figure 4: readings and different elements in ten minutes, city".into(),
        x: hour(),
        y: axis("in ten minutes", Scale::Log, si),
        lines: vec![
            report::line("readings", hours(&city, "readings")),
            report::line("different elements", hours(&city, "elements")),
        ],
    };
    let lost = |n: &str, p: &str| sum(&of(Source::City, n, p), "lost");
    let rates = ["0.1", "0.05", "0.01", "0.001"];
    let figure_5 = Chart {
        title: "Figure 5a: elements lost in ten minutes, n = 50, city".into(),
        x: hour(),
        y: axis("elements lost", Scale::Linear, plain),
        lines: rates
            .map(|p| report::line(format!("p = {p}"), hours(&of(Source::City, "50", p), "lost")))
            .into(),
    };
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
        plots: vec![("figure-4.svg".into(), figure_4), ("figure-5a.svg".into(), figure_5)],
        claim: "In ten minutes 30 to 42 thousand readings of 4.4 to 7.2 thousand different elements. All readings \
                go into the hosts' filters (section 4.1). With n = 50 and p = 0.1, up to 79 elements are lost in \
                a slot (22 with n = 100); with p = 0.001, 18 in all slots together, and none with n = 100."
            .into(),
        checks: vec![
            Check::new(
                (0.10..0.20).contains(&share),
                format!("{:.1} % of the readings are of different elements (fitted)", 100.0 * share),
            ),
            Check::new(
                fifty.windows(2).all(|pair| pair[0] >= pair[1]),
                format!("with n = 50, {fifty:?} elements lost for p = {}", rates.join(", ")),
            ),
            Check::new(
                hundred[0] < fifty[0] && hundred[3] == 0.0,
                format!("with n = 100, {hundred:?}: fewer, and none at 0.001"),
            ),
        ],
        why: "Losses need many elements in one square kilometre at a time. The paper's largest cell had 100 in 15 \
              minutes; ours are as crowded as the made-up people make them."
            .into(),
        numbers: report::table(&["trace", "n", "p", "readings", "elements", "lost"], numbers),
    }
}

fn lost_section(sheet: &Sheet) -> Section {
    let line = |n: &str, p: &str| {
        sheet.line(&[("trace", "city"), ("n", n), ("p", p)], "window", "lost_per_mille")
    };
    let pairs = [("50", "0.1"), ("50", "0.01"), ("50", "0.001"), ("100", "0.1"), ("100", "0.001")];
    let lines: Vec<Line> =
        pairs.map(|(n, p)| report::line(format!("n = {n}, p = {p}"), line(n, p))).into();
    let worst = heights(&line("50", "0.1"));
    let best = heights(&line("100", "0.001"));
    let numbers = ["crowd", "city"].into_iter().flat_map(|trace| {
        LOST.into_iter().map(move |(n, p)| {
            let (n, p) = (n.to_string(), p.to_string());
            let rows = sheet.of(&[("trace", trace), ("n", &n), ("p", &p)]);
            let cell = |row: &Row<'_>| row.text("lost_per_mille").to_owned();
            let expected = |row: &Row<'_>| {
                format!("{} / {}", row.text("elements_lost"), row.text("expected_lost"))
            };
            let last = rows.last().map(expected);
            let head = [trace.to_owned(), n, p];
            head.into_iter().chain(rows.iter().map(cell)).chain(last).collect()
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
        checks: vec![
            Check::new(
                worst.windows(2).all(|pair| pair[0] < pair[1]),
                format!("n = 50, p = 0.1: {worst:?} ‰, growing with the window"),
            ),
            Check::new(
                best.iter().all(|&lost| lost <= 0.01),
                format!("n = 100, p = 0.001: {best:?} ‰, next to nothing"),
            ),
        ],
        why: "The error depends on how many elements the fullest cells hold, which our traces share with the paper's \
              only on average. The last column shows, at 60 minutes, how many elements were lost and how many the \
              hosts themselves expect to have lost, from nothing but the fill of their filters."
            .into(),
        numbers: report::table(
            &["trace", "n", "p", "1 min ‰", "15 min ‰", "30 min ‰", "60 min ‰", "lost / expected, 60 min"],
            numbers,
        ),
    }
}

fn occupancy_section(sheet: &Sheet) -> Section {
    let plot = |p: &str, part: &str| {
        let line = |column: &str, name: &str| {
            report::line(name, sheet.line(&[("trace", "city"), ("p", p)], "window", column))
        };
        let lines = [
            ("first", "first decile"),
            ("median", "median"),
            ("ninth", "ninth decile"),
            ("most", "fullest"),
        ]
        .map(|(column, name)| line(column, name));
        let title =
            format!("Figure 7{part}: bits set at the end of a window, n = 50, p = {p}, city");
        let file = format!("figure-7{part}.svg");
        (file, chart(title, axis("bits set", Scale::Log, plain), lines.into()))
    };
    let ninth = |p| heights(&sheet.line(&[("trace", "city"), ("p", p)], "window", "ninth"));
    let (coarse, fine) = (ninth("0.1"), ninth("0.001"));
    let grows = |line: &[f64]| ends(line).0 < ends(line).1;
    let columns =
        ["trace", "p", "bits", "window", "filters", "first", "median", "ninth", "most", "over"];
    let rows = sheet.rows().map(|row| columns.map(|column| row.text(column).to_owned()).to_vec());
    Section {
        title: "Figure 7: how full filters are".into(),
        plots: vec![plot("0.1", "a"), plot("0.001", "b")],
        claim: "With n = 50, nine tenths of the filters have at most 40 of 239 bits set (p = 0.1), or 132 of 718 \
                (p = 0.001); few are much fuller. The least are set at one minute."
            .into(),
        checks: vec![
            Check::new(
                coarse.iter().all(|&bits| bits <= 120.0) && grows(&coarse),
                format!("p = 0.1: ninth deciles {coarse:?} of 239 bits"),
            ),
            Check::new(
                fine.iter().all(|&bits| bits <= 359.0) && grows(&fine),
                format!("p = 0.001: ninth deciles {fine:?} of 718 bits"),
            ),
        ],
        why: "Filters without any bit set are left out, as in the paper. *over* counts filters more than half full, \
              whose false positive rate is above the one they were made for."
            .into(),
        numbers: report::table(&columns, rows),
    }
}

/// Why two simulations stand side by side.
const WHO: &str = "
## Who is a worker?

The paper says that each of the 7,724 user-days is a worker of its own, with a fix a minute. Its numbers say
otherwise. With filters that are reset every minute, each worker's filter is empty at each of its readings: every
one of them is sent, and m_worker cannot matter, as no worker has a second reading in the minute. Yet Figure 8 has
18 to 19 % sent at one minute, and Table 2 has m_worker cost 18 points there. Both come out if all days of one *person*
share a worker's filter and counters: laid over one day, some fifty of a person's days are under way at a time, most
of them at the same few places. So we run both: **person** (all days of a person in a square kilometre are one worker),
which is what the paper's figures show, and **day**, which is what its text says and what a real system would see.

";

fn figure_section(figure: &Figure, person: &Sheet, day: &Sheet) -> Section {
    let Figure { name, quantity, lines: (parameter, values), held, claim } = *figure;
    let line = |sheet: &Sheet, source, who: &str, value: u16| {
        let points = figure.line(sheet, source, value);
        (!points.is_empty()).then(|| report::line(format!("{who}, {parameter} = {value}"), points))
    };
    let mut lines: Vec<Line> = Vec::new();
    // What was run at the two ends only makes no line, and six lines can be told apart.
    for (sheet, who) in [(person, "person"), (day, "day")] {
        let of_this = values.iter().filter_map(|&value| line(sheet, Source::City, who, value));
        lines.extend(of_this.filter(|line| line.points.len() >= 4));
    }
    lines.truncate(6);
    let low = if quantity.column == "saving" { floor_lines(&mut lines) } else { String::new() };
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
        why: low,
        numbers: report::table(&head, rows),
    }
}

/// The chart begins at 0: what lies below is only in the table.
fn floor_lines(lines: &mut [Line]) -> String {
    let mut below = false;
    for line in lines.iter_mut() {
        let before = line.points.len();
        line.points.retain(|point| point.1 >= 0.0);
        below |= line.points.len() < before;
    }
    if below {
        "Points below 0, where more messages are sent than readings taken, are in the table only."
            .into()
    } else {
        String::new()
    }
}

fn table(
    title: &str,
    sheet: &Sheet,
    cells: &[super::claims::Difference],
    parameters: (&str, &str),
) -> Result<String, Box<dyn Error>> {
    let (varied, held) = parameters;
    let ours = |source, cell| {
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
            ours(Source::City, cell),
            ours(Source::Crowd, cell),
        ]
    });
    let mut page = String::new();
    write!(
        page,
        "\n## {title}\n\nPoints of saving that the change costs, workers being persons.\n\n{}",
        report::table(&["window", held, varied, "the paper", "city", "crowd"], rows)
    )?;
    Ok(page)
}

fn modes_section(sheet: &Sheet) -> Section {
    let columns = [
        ("messages", "messages"),
        ("bytes", "bytes"),
        ("submit", "sent"),
        ("redundant", "redundant"),
        ("update", "update"),
        ("reset", "reset"),
        ("to workers", "reset_deliveries"),
        ("lost ‰", "lost_per_mille"),
        ("covered", "coverage"),
        ("fresh", "fresh"),
        ("peak/s", "peak"),
    ];
    let rows = sheet.rows().map(|row| {
        let head =
            ["trace", "n", "p", "window", "variant"].map(|column| row.text(column).to_owned());
        let saving = format!("{:.1} %", 100.0 * row.number("saving"));
        let cells = columns.map(|(_, column)| row.text(column).to_owned());
        head.into_iter().chain([saving]).chain(cells).collect()
    });
    let head: Vec<&str> = ["trace", "n", "p", "window", "variant", "saving"]
        .into_iter()
        .chain(columns.map(|(name, _)| name))
        .collect();
    let of = |variant: &str, column: &str| {
        let wanted = [("trace", "city"), ("n", "100"), ("window", "30"), ("variant", variant)];
        sheet.of(&wanted).first().map_or(0.0, |row| row.number(column))
    };
    let plot = |column: &str, label: &str, scale, tick: fn(f64) -> String| {
        let names = ["reset", "reset names", "ageing", "ageing names"];
        let lines = names.map(|name| {
            let wanted = [("trace", "city"), ("n", "100"), ("variant", name)];
            report::line(name, sheet.line(&wanted, "window", column))
        });
        let chart = chart(
            format!("{label}, city, n = 100, p = 0.001"),
            axis(label, scale, tick),
            lines.into(),
        );
        (format!("modes-{column}.svg"), chart)
    };
    let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 0.0 };
    Section {
        title: "Reset, ageing, deltas, names, refreshes".into(),
        plots: vec![
            plot("peak", "most messages in a second", Scale::Log, plain),
            plot("bytes", "bytes of all messages", Scale::Log, si),
            plot("messages", "messages", Scale::Linear, si),
        ],
        claim: "Filters are reset; “all workers would simultaneously start data transmission” is named as future work \
                (its remedy: reset for preferred workers first). Whole filters are sent."
            .into(),
        checks: vec![
            Check::new(
                of("reset", "peak") > of("ageing", "peak"),
                format!(
                    "there is a storm: {} messages in the worst second with resets, {} with ageing filters (30 \
                     minutes)",
                    of("reset", "peak"),
                    of("ageing", "peak")
                ),
            ),
            Check::new(
                of("reset names", "bytes") < of("reset", "bytes"),
                format!(
                    "names and deltas take {:.2} of the bytes of whole filters with resets, {:.2} with ageing",
                    ratio(of("reset names", "bytes"), of("reset", "bytes")),
                    ratio(of("ageing names", "bytes"), of("ageing", "bytes"))
                ),
            ),
        ],
        why: format!(
            "Workers are days here. Variants: {}. *Deltas* send what was added since the state a worker \
             names; they save little, as a worker that hears of a filter mostly knew nothing of it (it was reset, \
             or the worker comes from elsewhere). *Names* (with deltas) send elements by name: a square kilometre \
             has 100 places, so a name is a byte and a property's number, where ten positions take five to nine \
             bits each. By the same count an exact table of 100 bits a property would be smaller than the paper's \
             1,437 bits up to 14 properties, and lose nothing. Ageing filters carry ages, which costs bytes where \
             bits are sent, and hardly any where names are. *Refresh* sends 1 % of the suppressed elements to make \
             sure and lets the host look twice. *Covered*: elements and calendar windows with a reading kept; an ageing \
             filter keeps readings one window apart, which need not fall into each calendar window. *Fresh* is the fair \
             measure for both: readings at whose moment one of their element was kept at most a window ago. *Peak* \
             counts the paper's kinds, a multicast reset as one; each worker measures at a second of its own.",
            MODES.map(|mode| mode.0).join(", ")
        ),
        numbers: report::table(&head, rows),
    }
}
