//! `lately plan`: what a window costs, and what it loses.

use crate::Failure;
use crate::arguments::{FilterArguments, LatenessArguments, WindowArguments, usage};
use clap::Args;
use lately::plan::time_decaying_bound;
use lately::{Plan, Structure, WhenFull, Window};
use lately_stream::quantity;
use lately_stream::session::{DEFAULT_FPR, DedupSpec, SpecError};
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
    let structures: Vec<Structure> = match arguments.filter.structure {
        Some(structure) => vec![structure],
        None => Structure::ALL
            .iter()
            .copied()
            .filter(|structure| keeps(*structure, &arguments.window))
            .collect(),
    };
    if arguments.interval == 0 {
        return Err(Failure::Usage("--interval: an interval has at least 1 number".into()));
    }
    let asked = single_number(arguments)?;
    let fit = |spec: &DedupSpec| plan_for(spec).map_err(|error| usage(&error));
    let plans = structures.into_iter().map(|structure| {
        (structure, fit(&DedupSpec { structure: Some(structure), ..asked.clone() }))
    });
    let plans: Vec<_> = plans.collect();
    if plans.iter().all(|(_, plan)| plan.is_err()) {
        return plans.into_iter().next().map_or(Ok(()), |(_, plan)| plan.map(drop));
    }
    // With --memory these are tables that use all of it, and `lately dedup` starts with a small one.
    let chosen = fit(&asked).ok().filter(|_| arguments.filter.memory.is_none());
    let chosen = chosen.map(|plan| plan.structure());
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let rows: Vec<Value> = plans
            .iter()
            .map(|(structure, plan)| to_json(*structure, plan, chosen, arguments))
            .collect();
        writeln!(out, "{:#}", Value::Array(rows))?;
        return Ok(());
    }
    let window = plans.iter().find_map(|(_, plan)| plan.as_ref().ok()).map(Plan::window);
    writeln!(out, "window: {}", window.map_or_else(|| "none fits".into(), describe_window))?;
    writeln!(
        out,
        "{:<24}{:>10}{:>11}{:>10}{:>8}{:>7}{:>6}{:>8}{:>10}{:>10}",
        "structure",
        "keys",
        "memory",
        "bits/key",
        "bound",
        "times",
        "cell",
        "hashes",
        "slack",
        "dropped"
    )?;
    let late = plans.iter().filter_map(|(_, plan)| Some(plan.as_ref().ok()?.lateness())).max();
    let late = late.unwrap_or(0);
    for (structure, plan) in &plans {
        let mark = if chosen == Some(*structure) { "*" } else { " " };
        match plan {
            Ok(plan) if plan.lateness() < late => {
                writeln!(out, "{mark} {}  in order only", row(plan))?;
            }
            Ok(plan) => writeln!(out, "{mark} {}", row(plan))?,
            Err(Failure::Usage(why) | Failure::Trouble(why)) => {
                writeln!(out, "{mark} {structure:<22}{why}")?;
            }
            Err(_) => {}
        }
    }
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
    let plan = plans.iter().find_map(|(_, plan)| plan.as_ref().ok());
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

/// Can the structure keep windows of this kind?
fn keeps(structure: Structure, arguments: &WindowArguments) -> bool {
    let one = std::num::NonZeroU64::MIN;
    structure.keeps(match (arguments.span.within, arguments.span.last) {
        (Some(_), _) => Window::Time { span: one, capacity: one },
        (None, Some(_)) => Window::Count(one),
        (None, None) => Window::Unbounded { capacity: one },
    })
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

/// The plan; with a memory but no rate named, the one with the lowest rate that fits.
fn plan_for(spec: &DedupSpec) -> Result<Plan, SpecError> {
    let mut spec = spec.clone();
    if spec.memory.is_some() {
        spec.when_full.get_or_insert(WhenFull::Refuse);
    }
    if spec.memory.is_none() || spec.fpr.is_some() {
        return spec.plan();
    }
    // A capacity that nobody named must not shrink to suit the rate.
    spec.expect = Some(spec.spec()?.window().capacity());
    let with_rate =
        |exponent: f64| DedupSpec { fpr: Some(10f64.powf(-exponent)), ..spec.clone() }.plan();
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
        "{:<22}{:>10}{:>11}{:>10.1}{:>8.1}{:>7.2}{:>6}{:>8}{:>10}{:>10}",
        plan.structure(),
        quantity::display_count(plan.capacity()),
        quantity::display_bytes(plan.memory()),
        plan.bits_per_key(),
        plan.lower_bound(),
        plan.bits_per_key() / plan.lower_bound(),
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

fn to_json(
    structure: Structure,
    plan: &Result<Plan, Failure>,
    chosen: Option<Structure>,
    arguments: &Arguments,
) -> Value {
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
                "times_lower_bound": plan.bits_per_key() / plan.lower_bound(),
                "interval": arguments.interval,
                "every_window_bound_bits_per_key": bound_for_every_window(plan, arguments),
                "cell_bits": cell,
                "hashes": hashes,
                "slack": plan.slack(),
                "lateness": plan.lateness(),
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

/// A window, in words.
pub fn describe_window(window: Window) -> String {
    match window {
        Window::Count(n) => format!("the last {} records", quantity::display_count(n.get())),
        Window::Time { span, .. } => quantity::display_duration(span.get()),
        Window::Unbounded { .. } => "everything ever seen".into(),
    }
}
