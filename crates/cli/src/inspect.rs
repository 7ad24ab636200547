//! `lately inspect`: what a saved state holds.

use crate::{Failure, index, many};
use clap::Args;
use lately::{AnyFilter, Filter, Tick, WindowFilter};
use lately_stream::index::Index;
use lately_stream::{quantity, stamp, state::State, summary};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Show what a state file holds
#[derive(Args)]
pub struct Arguments {
    /// A file written by `lately dedup --state` or `lately index`
    state: PathBuf,

    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.state;
    let trouble = |error: String| Failure::Trouble(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| trouble(error.to_string()))?;
    let mut out = std::io::stdout().lock();
    if Index::is_one(&bytes) {
        return describe_index(
            &mut out,
            &Index::from_bytes(&bytes).map_err(trouble)?,
            arguments.json,
        );
    }
    let state = State::from_bytes(&bytes).map_err(trouble)?;
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
    describe_clock(&mut out, state.clock)?;
    writeln!(out, "held       {}", many(state.held.len() as u64, "record"))?;
    describe(&mut out, &state.filter)?;
    Ok(())
}

fn describe_clock(out: &mut impl Write, clock: Option<Tick>) -> std::io::Result<()> {
    match clock {
        Some(tick) => writeln!(out, "clock      {}", stamp::display_time(tick.0)),
        None => writeln!(out, "clock      none: records are judged as they arrive"),
    }
}

fn describe_index(out: &mut impl Write, index: &Index, json: bool) -> Result<(), Failure> {
    let Index { settings, clock, window, .. } = index;
    if json {
        let json = json!({
            "settings": settings,
            "clock_ns": clock.map(|tick| tick.0),
            "key_format": index.format.to_string(),
            "filter": index::to_json(window),
        });
        writeln!(out, "{json:#}")?;
        return Ok(());
    }
    let overload = window.overload();
    writeln!(out, "settings   {settings}")?;
    describe_clock(out, *clock)?;
    writeln!(out, "structure  range-window")?;
    writeln!(out, "window     {}", crate::plan::describe_window(window.window()))?;
    writeln!(out, "memory     {}", quantity::display_bytes(window.memory() as u64))?;
    writeln!(out, "interval   {} keys", index::display_length(window.plan().interval()))?;
    writeln!(out, "fpr        {:.2e} promised, for intervals of that length", window.fpr())?;
    writeln!(
        out,
        "overload   grown {}, {} forgotten early, {} not remembered",
        many(overload.grown, "time"),
        many(overload.forgotten, "key"),
        many(overload.refused, "key")
    )?;
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
