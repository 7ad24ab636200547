//! Figures 8 to 12: what a whole day takes, and who is a worker in it.

use super::claims::{FIGURES, Figure, MOST_REDUNDANT};
use super::page::{as_percent, axis, chart};
use super::{SIX_PERSONS, Source, TWO_PERSONS};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section};
use crate::figures::sheet::Sheet;
use crate::plot::{Line, Scale};

/// Why there are two simulations.
pub fn who(person: &Sheet, day: &Sheet) -> String {
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

/// All figures, each with what belongs to it alone.
pub fn sections(facts: &Facts, person: &Sheet, day: &Sheet) -> Vec<Section> {
    let of = |figure: &Figure| {
        let mut section = section(figure, person, day);
        match figure.name {
            "Figure 9" => section.numbers += &budget(person),
            "Figure 12a" => {
                section.why = format!("{} {}", company(facts), section.why).trim().to_owned();
            }
            _ => {}
        }
        section
    };
    FIGURES.iter().map(of).collect()
}

fn section(figure: &Figure, person: &Sheet, day: &Sheet) -> Section {
    let Figure { name, quantity, lines: (parameter, values), held, claim, why, .. } = *figure;
    // All lines could not be distinguished.
    let drawn = if parameter == "m_mec" { &[1, 5, 15] } else { values };
    let line = |sheet: &Sheet, source, who: &str, value: u16| {
        let points = figure.line(sheet, source, value);
        (!points.is_empty()).then(|| report::line(format!("{who}, {parameter} = {value}"), points))
    };
    let mut lines: Vec<Line> = Vec::new();
    // What was run at the two ends only makes no line, and six lines are distinguishable.
    let shown = [
        (person, Source::City, "person"),
        (person, Source::Hubs, "hubs, person"),
        (day, Source::City, "day"),
    ];
    for (sheet, source, who) in shown {
        let of_this = drawn.iter().filter_map(|&value| line(sheet, source, who, value));
        merge(&mut lines, quantity.scale, of_this);
    }
    lines.truncate(5);
    let low = if quantity.column == "saving" { floor_lines(&mut lines) } else { "" };
    let known: Vec<(f64, f64)> =
        figure.named.iter().flat_map(|&(_, at, least, most)| [(at, least), (at, most)]).collect();
    if !known.is_empty() {
        lines.push(Line::crosses("the paper", known));
    }
    if quantity.column == "redundant_share" {
        let most = vec![(1.0, MOST_REDUNDANT), (120.0, MOST_REDUNDANT)];
        lines.push(Line::crosses("the paper: none above, m_mec ≥ 5", most));
    }
    let title = format!("{name}: {}, {} = {}, city", quantity.label, held.0, held.1);
    let mut rows = Vec::new();
    for (sheet, who, source) in [
        (person, "person", Source::City),
        (person, "person", Source::Hubs),
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
            chart(title, axis(quantity.label, quantity.scale, as_percent), lines),
        )],
        claim: claim.to_owned(),
        checks: figure.checks(person, Source::City),
        why: [why, low].join(" ").trim().to_owned(),
        numbers: report::table(&head, rows),
    }
}

/// Adds lines; one that would cover the one before it only adds its value to that one's name.
fn merge(lines: &mut Vec<Line>, scale: Scale, more: impl Iterator<Item = Line>) {
    let from = lines.len();
    for line in more {
        let before = lines.iter_mut().skip(from).last();
        let covers = |before: &&mut Line| {
            let pairs = before.points.iter().zip(&line.points);
            before.points.len() == line.points.len()
                && pairs.clone().all(|(one, other)| match scale {
                    Scale::Log => one.1 == other.1 || (one.1 / other.1).ln().abs() < 0.1,
                    _ => (one.1 - other.1).abs() < 0.005,
                })
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
         or more visit {} ({} and {} with hubs, {} and {} in the crowd): the people of the city have separate homes and workplaces.",
        of(Source::City, two),
        of(Source::City, six),
        of(Source::Hubs, two),
        of(Source::Hubs, six),
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
    for source in [Source::City, Source::Hubs, Source::Crowd] {
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
