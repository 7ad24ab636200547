//! `lately inspect`: what a saved state holds.

use crate::{Failure, many};
use clap::Args;
use lately::{AnyFilter, Filter, WindowFilter};
use lately_stream::{quantity, stamp, state::State, summary};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Show what a state file holds
#[derive(Args)]
pub struct Arguments {
    /// A file written by `lately dedup --state`
    state: PathBuf,

    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.state;
    let trouble = |error: String| Failure::Trouble(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| trouble(error.to_string()))?;
    let state = State::from_bytes(&bytes).map_err(trouble)?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let json = json!({
            "settings": state.settings,
            "clock_ns": state.clock.map(|tick| tick.0),
            "held": state.held.len(),
            "last_values_bytes": state.last_values.as_ref().map(|values| values.memory()),
            "filter": summary::filter_to_json(&state.filter),
        });
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    writeln!(out, "settings   {}", state.settings)?;
    match state.clock {
        Some(tick) => writeln!(out, "clock      {}", stamp::display_time(tick.0))?,
        None => writeln!(out, "clock      none: records are judged as they arrive")?,
    }
    writeln!(out, "held       {}", many(state.held.len() as u64, "record"))?;
    describe(&mut out, &state.filter)?;
    Ok(())
}

/// A filter's condition, a line each.
fn describe(out: &mut impl Write, filter: &AnyFilter) -> std::io::Result<()> {
    let overload = filter.overload();
    writeln!(out, "structure  {}", filter.structure())?;
    writeln!(out, "window     {}", crate::plan::describe_window(filter.window()))?;
    writeln!(out, "memory     {}", quantity::display_bytes(filter.memory() as u64))?;
    writeln!(
        out,
        "capacity   {} in {}",
        many(filter.capacity(), "key"),
        many(filter.tables() as u64, "table")
    )?;
    writeln!(out, "fill       {:.1} %", filter.fill() * 100.0)?;
    writeln!(out, "fpr        {:.2e} now, {:.2e} promised", filter.estimated_fpr(), filter.fpr())?;
    writeln!(
        out,
        "overload   grown {}, {} forgotten early, {} not remembered",
        many(overload.grown, "time"),
        many(overload.forgotten, "mark"),
        many(overload.refused, "record")
    )
}
