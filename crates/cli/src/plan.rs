//! `lately plan`: what a window costs, and what it loses.

use crate::Failure;
use crate::arguments::{FilterArguments, LatenessArguments, WindowArguments, usage};
use clap::Args;
use lately::plan::time_decaying_bound;
use lately::{Plan, Window};
use lately_stream::quantity;
use lately_stream::session::{DEFAULT_FPR, DedupSpec, PlanRow, PlanTable};
use serde_json::{Value, json};
use std::io::Write;

/// Show what a filter would cost, for each structure
///
/// Memory is what `lately dedup` with the same flags allocates at the start; with --memory, a single
/// table that uses all of it, at the lowest error rate this allows if --fpr is not given. `bound` is the
/// minimum that any structure with this contract needs, in bits per key: log2(1/fpr) to distinguish
/// keys, log2(window/resolution) to distinguish ages, and log2(length) for intervals; `times` is how
/// many times that each structure uses. `dropped` is how many of a million new records are dropped by
/// mistake at most, when the filter holds as many keys as it was planned for. With --within, filters are planned for
/// records as late as --lateness; structures that cannot judge them are for records in order only.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    window: WindowArguments,

    #[command(flatten)]
    filter: FilterArguments,

    #[command(flatten)]
    lateness: LatenessArguments,

    /// Plan for questions about intervals of COUNT whole numbers, asked number by number, each at a rate
    /// of fpr/COUNT, and compare with the bound for intervals
    #[arg(long, value_name = "COUNT", value_parser = quantity::count, default_value = "1", help_heading = "Window")]
    interval: u64,

    /// The number of different keys that exist: shows the bound for filters that also answer for every
    /// shorter window. It is of use only if fpr × COUNT is less than --last
    #[arg(long, value_name = "COUNT", value_parser = quantity::count, requires = "last", help_heading = "Window")]
    universe: Option<u64>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.interval == 0 {
        return Err(Failure::Usage("--interval: an interval has at least 1 number".into()));
    }
    let asked = single_number(arguments)?;
    let rows = asked.plans();
    if rows.iter().all(|row| row.plan.is_err()) {
        let error = rows.iter().find_map(|row| row.plan.as_ref().err());
        return error.map_or(Ok(()), |error| Err(usage(error)));
    }
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(|row| to_json(row, arguments)).collect();
        writeln!(out, "{:#}", Value::Array(rows))?;
        return Ok(());
    }
    let plan = rows.iter().find_map(|row| row.plan.as_ref().ok());
    let window = plan.map_or_else(|| "none fits".into(), |plan| describe_window(plan.window()));
    writeln!(out, "window: {window}")?;
    writeln!(out, "{}", PlanTable { rows: &rows, prefix: "--" })?;
    let chosen = rows.iter().find(|row| row.chosen).map(|row| row.structure);
    if chosen.is_some() {
        write!(out, "* is what `lately dedup` uses. ")?;
    }
    writeln!(out, "dropped: new records dropped by mistake, at most, per million.")?;
    if arguments.interval > 1 {
        let length = quantity::display_count(arguments.interval);
        writeln!(
            out,
            "intervals of {length} numbers are asked number by number; --fpr holds for each interval as a whole."
        )?;
    }
    if let Some(structure) = chosen {
        say_what_lateness_costs(&DedupSpec { structure: Some(structure), ..asked }, &mut out)?;
    }
    if let Some(bound) = plan.and_then(|plan| bound_for_every_window(plan, arguments)) {
        writeln!(
            out,
            "bound for every shorter window too, given the size of the universe: {bound:.1} bits/key."
        )?;
    }
    Ok(())
}

/// Compares with a plan for records that come in order.
fn say_what_lateness_costs(asked: &DedupSpec, out: &mut impl Write) -> Result<(), Failure> {
    let mut in_order = asked.clone();
    in_order.clock.lateness = Some(0);
    let (Ok(plan), Ok(in_order)) = (asked.plan(), in_order.plan()) else { return Ok(()) };
    if plan.lateness() > 0 {
        writeln!(
            out,
            "records up to {} late are judged by their own time; in order (--lateness 0s) it takes {:.1} bits/key.",
            quantity::display_duration(plan.lateness()),
            in_order.bits_per_key(),
        )?;
    }
    Ok(())
}

/// What is asked for a single number, when intervals are asked about.
fn single_number(arguments: &Arguments) -> Result<DedupSpec, Failure> {
    let mut spec = arguments.filter.spec(&arguments.window)?;
    spec.clock.lateness = arguments.lateness.lateness;
    if arguments.interval > 1 {
        spec.fpr = Some(spec.fpr.unwrap_or(DEFAULT_FPR) / arguments.interval as f64);
    }
    Ok(spec)
}

/// Bits per key that any filter of the last `n` records needs that also answers for shorter windows.
fn bound_for_every_window(plan: &Plan, arguments: &Arguments) -> Option<f64> {
    let n = plan.window().span()?;
    let fpr = plan.fpr() * arguments.interval as f64;
    Some(time_decaying_bound(n, fpr, arguments.universe? as f64) / n as f64)
}

fn to_json(row: &PlanRow, arguments: &Arguments) -> Value {
    let mut shown = row.to_json();
    match &row.plan {
        Ok(plan) => {
            shown["interval"] = json!(arguments.interval);
            shown["every_window_bound_bits_per_key"] =
                json!(bound_for_every_window(plan, arguments));
        }
        Err(error) => shown["error"] = json!(format!("--{error}")),
    }
    shown
}

/// A window, in words.
pub fn describe_window(window: Window) -> String {
    match window {
        Window::Count(n) => format!("the last {} records", quantity::display_count(n.get())),
        Window::Time { span, .. } => quantity::display_duration(span.get()),
        Window::Unbounded { .. } => "everything ever seen".into(),
    }
}
