//! What the paper does not have: filters that age, deltas, names, refreshes; and what a day takes.

use super::measure::MODES;
use super::page::{axis, chart};
use crate::figures::report::{self, Check, Section};
use crate::figures::sheet::Sheet;
use crate::plot::{Line, Scale, plain, si};

/// Reset against ageing, and what each way of sending filters takes.
pub fn section(sheet: &Sheet) -> Section {
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
        ("sent/s", "peak_sent"),
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
    let line = |name: &str, variant: &str, column: &str| {
        let wanted = [("trace", "city"), ("n", "100"), ("variant", variant)];
        report::line(name, sheet.line(&wanted, "window", column))
    };
    let plot = |file: &str, label: &str, scale, tick: fn(f64) -> String, lines: Vec<Line>| {
        let title = format!("{label}, city, n = 100, p = 0.001");
        (format!("modes-{file}.svg"), chart(title, axis(label, scale, tick), lines))
    };
    let peaks = vec![
        line("reset: messages", "reset", "peak"),
        line("reset: readings alone", "reset", "peak_sent"),
        line("ageing: messages", "ageing", "peak"),
        line("ageing: readings alone", "ageing", "peak_sent"),
    ];
    let bytes = ["reset", "reset names", "ageing", "ageing deltas", "ageing names"];
    let kinds = vec![
        line("reset: all", "reset", "messages"),
        line("reset: readings", "reset", "sent"),
        line("ageing: all", "ageing", "messages"),
        line("ageing: readings", "ageing", "sent"),
    ];
    let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 0.0 };
    let storm = ratio(of("reset", "peak_sent"), of("ageing", "peak_sent"));
    let bytes_of = |one: &str, other: &str| ratio(of(one, "bytes"), of(other, "bytes"));
    Section {
        title: "Reset, ageing, deltas, names, refreshes".into(),
        plots: vec![
            plot("peak", "peak per second", Scale::Log, plain, peaks),
            plot("bytes", "bytes of all messages", Scale::Linear, si, bytes.map(|name| line(name, name, "bytes")).into()),
            plot("messages", "messages", Scale::Linear, si, kinds),
        ],
        claim: "Filters are reset, and sent in full. “One can expect high data redundancy, especially after BF reset, \
                because all workers would simultaneously start data transmission” (future work; its remedy: empty \
                filters for a few workers only)."
            .into(),
        checks: vec![
            Check::new(
                storm > 1.5,
                format!(
                    "a reset causes a burst of readings: {} in the worst second, {} with ageing filters \
                     (30 minutes)",
                    of("reset", "peak_sent"),
                    of("ageing", "peak_sent")
                ),
            ),
            Check::new(
                of("reset", "redundant") > of("ageing", "redundant"),
                format!(
                    "resets make readings redundant: {} with resets, {} with ageing filters (30 minutes)",
                    of("reset", "redundant"),
                    of("ageing", "redundant")
                ),
            ),
        ],
        why: format!(
            "{WHY_MODES} At 30 minutes *names* take {:.2} of the bytes of full filters with resets, {:.2} with \
             ageing; *deltas* alone {:.3} and {:.3}; ageing takes {:.2} of the bytes of resets with full filters, {:.2} with \
             names. Variants: {}.",
            bytes_of("reset names", "reset"),
            bytes_of("ageing names", "ageing"),
            bytes_of("reset deltas", "reset"),
            bytes_of("ageing deltas", "ageing"),
            bytes_of("ageing", "reset"),
            bytes_of("ageing names", "reset names"),
            MODES.map(|mode| mode.0).join(", ")
        ),
        numbers: report::table(&head, rows),
    }
}

/// What a day takes.
pub fn speed_section(sheet: &Sheet) -> String {
    let columns = ["trace", "variant", "window", "fixes", "seconds"];
    let rows = sheet.rows().map(|row| columns.map(|column| row.text(column).to_owned()).to_vec());
    format!(
        "\n## Time to simulate a day\n\nSeconds of processor time for one configuration (n = 100, p = 0.001, a window in minutes, the \
         shorter of two runs): every message is encoded, counted and delivered, and the exact tables are kept. Other programs were running, \
         so the same run may take up to a fifth more or less.\n\n{}",
        report::table(&columns, rows)
    )
}

const WHY_MODES: &str = "Workers are days here. *peak/s* is the highest number of messages of the paper's kinds in a second, counting a multicast reset as one; *sent/s* \
     is the highest number of readings. Each worker measures at a second of its own, so the readings after a reset are \
     already spread over a minute. With resets the worst second is the reset itself, with a message for each square kilometre; \
     the burst of readings comes in addition. There are about as many redundant readings with ageing filters, only at other \
     times: a worker that has not been told sends either way. *covered* is the share of elements and calendar windows for which a reading was \
     kept. Ageing filters cover fewer, as they request a reading one window after the last one, not in each calendar window; that is \
     also why they send fewer. *fresh* is the fair measure for both: the share of readings at whose time a reading of the same element had been kept at \
     most one window ago. With small filters (n = 50, p = 0.1) ageing loses more: a filter that is emptied is half full on average, one \
     that ages always holds a whole window, and the positions of its elements do not change from one window to the next. \
     *Deltas* send what was added since the state that a worker names; they save almost nothing, and may cost a byte, because a worker that receives a \
     filter usually did not have it before (it was reset, or the worker comes from elsewhere). *Names* (with deltas) send \
     elements by name: a square kilometre has 100 places, so a name takes one byte, and an age another, while ten positions take \
     five to nine bits each. By the same calculation an exact table of 100 bits per property would be smaller than the paper's 1,437 \
     bits for up to 14 properties, and would lose nothing. Positions are coded by age, which costs ageing filters far more bytes \
     than names do. *Refresh* (with names) sends 1 % of the suppressed elements as a check and lets the host look again.";
