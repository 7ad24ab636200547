//! What the paper leaves to the future, and what a reset may be sent to.

use crate::figures::report;
use crate::figures::sheet::{Row, Sheet};

/// The section of the page: `person` and `day` have what the others are compared with.
pub fn section(future: &Sheet, person: &Sheet, day: &Sheet) -> String {
    let head = [
        "trace",
        "window",
        "variant",
        "m_worker",
        "saving",
        "sent",
        "redundant",
        "update",
        "reset",
        "lost ‰",
        "covered",
        "fresh",
    ];
    let cells = |variant: &str, row: &Row<'_>| {
        let percent = |column| report::percent(row.number(column));
        let share = |column| report::percent(row.number(column) / row.number("readings"));
        let text = |column| row.text(column).to_owned();
        vec![
            text("trace"),
            text("window"),
            variant.to_owned(),
            text("m_worker"),
            format!("{:.1} %", 100.0 * row.number("saving")),
            percent("sent_share"),
            percent("redundant_share"),
            share("update"),
            share("reset"),
            format!("{:.3}", row.number("lost_per_mille")),
            format!("{:.4}", row.number("coverage")),
            format!("{:.4}", row.number("fresh")),
        ]
    };
    let mut rows = Vec::new();
    for trace in ["city", "crowd"] {
        for (m_worker, window) in [("1", "1"), ("5", "1"), ("1", "120"), ("5", "120")] {
            let wanted =
                [("trace", trace), ("window", window), ("m_worker", m_worker), ("m_mec", "5")];
            for row in person.of(&wanted) {
                let by_worker = format!("{:.1} %", 100.0 * row.number("saving_unicast"));
                let mut each = cells("person by worker", &row);
                each[4] = by_worker;
                each[8] = report::percent(row.number("reset_deliveries") / row.number("readings"));
                rows.push(each);
                rows.push(cells("person by cell", &row));
            }
            let mut wanted = wanted.to_vec();
            wanted.push(("variant", "person by square"));
            rows.extend(future.of(&wanted).iter().map(|row| cells(row.text("variant"), row)));
        }
        let usual = [("trace", trace), ("window", "30"), ("m_worker", "1"), ("m_mec", "5")];
        rows.extend(day.of(&usual).iter().map(|row| cells("day by the clock", row)));
        let others = future.of(&[("trace", trace), ("window", "30")]);
        rows.extend(others.iter().map(|row| cells(row.text("variant"), row)));
    }
    let city = |variant: &str| future.of(&[("trace", "city"), ("variant", variant)]);
    let stale = city("day preferred 1")
        .first()
        .map_or(f64::NAN, |row| row.number("suppressed_stale") / row.number("readings"));
    // The savings of m_worker = 1 and 5 at one minute.
    let at_a_minute = |rows: Vec<Row<'_>>, column: &str| {
        let savings = ["1", "5"].map(|m_worker| {
            let is_it =
                |row: &&Row<'_>| row.text("window") == "1" && row.text("m_worker") == m_worker;
            rows.iter().find(is_it).map_or(f64::NAN, |row| 100.0 * row.number(column))
        });
        format!("{:.1} and {:.1} %", savings[0], savings[1])
    };
    let cells = || person.of(&[("trace", "city"), ("m_mec", "5")]);
    format!(
        "\n## What a reset is sent to, and the paper's future work\n\n{RESETS} In the city at one minute: {} if each worker is \
         written to, {} by cell, {} by square. Only the last is near the paper's numbers.\n\n{FUTURE} With one preferred worker per \
         cell, {} of the city's readings are not sent because of that.\n\nn = 100, p = 0.001, m_MEC = 5:\n\n{}",
        at_a_minute(cells(), "saving_unicast"),
        at_a_minute(cells(), "saving"),
        at_a_minute(city("person by square"), "saving"),
        report::percent(stale),
        report::table(&head, rows)
    )
}

const RESETS: &str = "**A reset** may be sent to each worker, to a topic that the workers of a square kilometre share, or to one that all workers of a \
host share: one message then says that all filters of the host's square are empty, as they all have the same stamp. The paper's text supports the first: its Algorithm 5 sends the \
filter in a loop over the workers of each area, and it never speaks of multicast. Its numbers: 53 % with m_worker = 1 and 35 % with 5 at one minute; 61.2 and around 55 % at two hours. \
Our service can do all three (`lately edge host --reset-by`): one per square kilometre, unless it is told otherwise.";

const FUTURE: &str = "**Resets at a bound of fill** (“reset BF after it has been filled to a certain extent instead of periodical reset”): a cell's filter is emptied when this share of its bits is \
set, and never by the clock. That saves messages, and readings grow old where few people come: *covered* and *fresh* (the share of readings at whose time one of the same element had been \
kept within the window) are counted by windows of 30 minutes.\n\n\
**Preferred workers first** (“choosing only top-k workers in the area, based on a valuation function, who will receive an empty filter after reset”): the k workers in the cell of whom the host kept most readings so far; \
each is written to by itself. The others continue with their previous filter until they send something redundant, move, or have heard nothing for two windows. With days as workers, since a person's worker never leaves a cell.";
