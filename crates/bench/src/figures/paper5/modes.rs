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
        line("reset: readings among them", "reset", "peak_sent"),
        line("ageing: messages", "ageing", "peak"),
        line("ageing: readings among them", "ageing", "peak_sent"),
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
            plot("peak", "most in a second", Scale::Log, plain, peaks),
            plot("bytes", "bytes of all messages", Scale::Linear, si, bytes.map(|name| line(name, name, "bytes")).into()),
            plot("messages", "messages", Scale::Linear, si, kinds),
        ],
        claim: "Filters are reset, and sent whole. “One can expect high data redundancy, especially after BF reset, \
                because all workers would simultaneously start data transmission” (future work; its remedy: empty \
                filters for a few workers only)."
            .into(),
        checks: vec![
            Check::new(
                storm > 1.5,
                format!(
                    "there is a storm of readings after a reset: {} in the worst second, {} with ageing filters \
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
            "{WHY_MODES} At 30 minutes *names* take {:.2} of the bytes of whole filters with resets, {:.2} with \
             ageing; *deltas* alone {:.3} and {:.3}; ageing {:.2} of the bytes of resets with whole filters, {:.2} with \
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
        "\n## What a day takes\n\nSeconds of one processor for one setting (n = 100, p = 0.001, a window in minutes, the \
         shorter of two runs): every message encoded, counted and delivered, the exact tables kept.\n\n{}",
        report::table(&columns, rows)
    )
}

const WHY_MODES: &str = "WHYMODES";
