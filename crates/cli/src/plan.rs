//! `lately plan`: what a window costs, and what it loses.

use crate::Failure;
use crate::arguments::{FilterArguments, OnFull, WindowArguments};
use clap::Args;
use lately::{Plan, Structure, Window};
use lately_stream::quantity;
use serde_json::{Value, json};
use std::io::Write;

/// Show what a filter would cost, for each structure
///
/// Memory is what `lately dedup` with the same flags allocates at first; with --memory, one table
/// that takes all of it, and the lowest rate that it allows if --fpr is not given. The lower bound is the
/// least that any structure with this contract needs: log2(1/fpr) bits to tell keys apart and
/// log2(window/grain) to tell ages apart. Wrongly dropped is the most that is lost of a million
/// records that are all new, when the filter holds as many keys as it was planned for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    window: WindowArguments,

    #[command(flatten)]
    filter: FilterArguments,

    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let structures: Vec<Structure> = match arguments.filter.structure {
        Some(structure) => vec![structure],
        None => Structure::ALL
            .into_iter()
            .filter(|structure| structure.is_unbounded() == is_unbounded(&arguments.window))
            .collect(),
    };
    let plans = structures.into_iter().map(|structure| {
        let filter = FilterArguments { structure: Some(structure), ..arguments.filter.clone() };
        (structure, plan_for(&filter, &arguments.window))
    });
    let plans: Vec<_> = plans.collect();
    if plans.iter().all(|(_, plan)| plan.is_err()) {
        return plans.into_iter().next().map_or(Ok(()), |(_, plan)| plan.map(drop));
    }
    // With --memory these are tables that take all of it, and `lately dedup` begins with a small one.
    let chosen = plan_for(&arguments.filter, &arguments.window).ok();
    let chosen = chosen.filter(|_| arguments.filter.memory.is_none()).map(|plan| plan.structure());
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let rows: Vec<Value> =
            plans.iter().map(|(structure, plan)| to_json(*structure, plan, chosen)).collect();
        writeln!(out, "{:#}", Value::Array(rows))?;
        return Ok(());
    }
    let window = plans.iter().find_map(|(_, plan)| plan.as_ref().ok()).map(Plan::window);
    writeln!(out, "window: {}", window.map_or_else(|| "none fits".into(), describe_window))?;
    writeln!(
        out,
        "{:<24}{:>10}{:>11}{:>10}{:>8}{:>8}{:>8}{:>10}{:>10}",
        "structure", "keys", "memory", "bits/key", "bound", "cell", "hashes", "slack", "dropped"
    )?;
    for (structure, plan) in &plans {
        let mark = if chosen == Some(*structure) { "*" } else { " " };
        match plan {
            Ok(plan) => writeln!(out, "{mark} {}", row(plan))?,
            Err(Failure::Usage(why) | Failure::Trouble(why)) => {
                writeln!(out, "{mark} {structure:<22}{why}")?;
            }
            Err(_) => {}
        }
    }
    if chosen.is_some() {
        write!(out, "* is what `lately dedup` takes. ")?;
    }
    writeln!(out, "dropped: new records lost of a million, at most.")?;
    Ok(())
}

fn is_unbounded(window: &WindowArguments) -> bool {
    window.within.is_none() && window.last.is_none()
}

/// The plan; with a memory but no rate named, the one with the lowest rate that fits.
fn plan_for(filter: &FilterArguments, window: &WindowArguments) -> Result<Plan, Failure> {
    let mut filter = filter.clone();
    if filter.memory.is_some() {
        filter.on_full.get_or_insert(OnFull::Refuse);
    }
    if filter.memory.is_none() || filter.fpr.is_some() {
        return filter.plan(window);
    }
    // A capacity that nobody named must not shrink to suit the rate.
    filter.expect.get_or_insert(filter.spec(window)?.window().capacity());
    let with_rate = |exponent: f64| {
        FilterArguments { fpr: Some(10f64.powf(-exponent)), ..filter.clone() }.plan(window)
    };
    // Exponents of the rate: 0.01 fits whatever fits at all, 15 is as low as a digest goes.
    let (mut fits, mut fails) = (0.01, 15.0);
    let mut best = with_rate(fits)?;
    for _ in 0..30 {
        let middle = f64::midpoint(fits, fails);
        match with_rate(middle) {
            Ok(plan) => (fits, best) = (middle, plan),
            Err(_) => fails = middle,
        }
    }
    Ok(best)
}

fn row(plan: &Plan) -> String {
    let (cell, hashes) = plan.cell_bits_and_hashes();
    let slack = match plan.window() {
        Window::Time { .. } => quantity::display_duration(rounded(plan.slack())),
        Window::Count(_) => quantity::display_count(plan.slack()),
        Window::Unbounded { .. } => "-".into(),
    };
    format!(
        "{:<22}{:>10}{:>11}{:>10.1}{:>8.1}{:>8}{:>8}{:>10}{:>10}",
        plan.structure(),
        quantity::display_count(plan.capacity()),
        quantity::display_bytes(plan.memory()),
        plan.bits_per_key(),
        plan.lower_bound(),
        cell,
        hashes,
        slack,
        format_dropped(plan.fpr() * 1e6),
    )
}

/// To four digits: 99.999999 ms is 100 ms to a reader.
fn rounded(n: u64) -> u64 {
    let unit = 10u64.pow(n.max(1).ilog10().saturating_sub(3));
    n.div_ceil(unit) * unit
}

fn format_dropped(records: f64) -> String {
    if records >= 0.01 { format!("{records:.2}") } else { format!("{records:.1e}") }
}

fn to_json(structure: Structure, plan: &Result<Plan, Failure>, chosen: Option<Structure>) -> Value {
    let chosen = chosen == Some(structure);
    match plan {
        Ok(plan) => {
            let (cell, hashes) = plan.cell_bits_and_hashes();
            json!({
                "structure": structure.name(),
                "chosen": chosen,
                "capacity": plan.capacity(),
                "memory_bytes": plan.memory(),
                "bits_per_key": plan.bits_per_key(),
                "lower_bound_bits_per_key": plan.lower_bound(),
                "cell_bits": cell,
                "hashes": hashes,
                "slack": plan.slack(),
                "fpr": plan.fpr(),
                "wrongly_dropped_per_million": plan.fpr() * 1e6,
            })
        }
        Err(Failure::Usage(why) | Failure::Trouble(why)) => {
            json!({ "structure": structure.name(), "chosen": chosen, "error": why })
        }
        Err(_) => Value::Null,
    }
}

/// A window in words.
pub fn describe_window(window: Window) -> String {
    match window {
        Window::Count(n) => format!("the last {} records", quantity::display_count(n.get())),
        Window::Time { span, .. } => quantity::display_duration(span.get()),
        Window::Unbounded { .. } => "everything ever seen".into(),
    }
}
