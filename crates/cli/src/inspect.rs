//! `lately inspect`: what a saved state holds.

use crate::plan::describe_window;
use crate::{Failure, index, many};
use clap::Args;
use lately::{AnyFilter, Filter, WindowFilter};
use lately_stream::judge::Decide;
use lately_stream::session::{Dedup, Index, Visits};
use lately_stream::state::{Kind, StateError};
use lately_stream::write::summary;
use lately_stream::{quantity, stamp};
use std::io::Write;
use std::path::PathBuf;

/// Show what a state or index file holds
#[derive(Args)]
pub struct Arguments {
    /// A file written by `lately dedup --state`, `lately index` or `lately visits --state`
    state: PathBuf,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.state;
    let trouble = |error: StateError| Failure::Trouble(error.to_string());
    let gone = || Failure::Trouble(format!("state {}: no such file", path.display()));
    let mut out = std::io::stdout().lock();
    let kind = Kind::of(path).map_err(trouble)?;
    if kind == Some(Kind::Visits) {
        let visits = Visits::load(path).map_err(trouble)?.ok_or_else(gone)?;
        if arguments.json {
            writeln!(out, "{:#}", summary::visits_to_json(&visits))?;
        } else {
            describe_visits(&mut out, &visits)?;
        }
        return Ok(());
    }
    if kind == Some(Kind::Index) {
        let index = Index::load(path).map_err(trouble)?.ok_or_else(gone)?;
        if arguments.json {
            writeln!(out, "{:#}", summary::index_to_json(&index))?;
        } else {
            describe_index(&mut out, &index)?;
        }
        return Ok(());
    }
    let session = Dedup::load(path).map_err(trouble)?.ok_or_else(gone)?;
    if arguments.json {
        writeln!(out, "{:#}", summary::state_to_json(&session))?;
        return Ok(());
    }
    writeln!(out, "settings   {}", session.identity())?;
    describe_clock(&mut out, session.moments().time())?;
    writeln!(out, "held       {}", many(session.waiting().len() as u64, "record"))?;
    describe(&mut out, session.filter())?;
    Ok(())
}

fn describe_clock(out: &mut impl Write, clock: Option<i64>) -> std::io::Result<()> {
    match clock {
        Some(nanos) => writeln!(out, "clock      {}", stamp::display_time(nanos)),
        None => writeln!(out, "clock      none: records are judged as they arrive"),
    }
}

fn describe_index(out: &mut impl Write, index: &Index) -> std::io::Result<()> {
    let window = index.window();
    let overload = window.overload();
    writeln!(out, "settings   {}", index.identity())?;
    describe_clock(out, index.clock())?;
    writeln!(out, "structure  range-window")?;
    writeln!(out, "window     {}", describe_window(window.window()))?;
    writeln!(out, "memory     {}", quantity::display_bytes(window.memory() as u64))?;
    writeln!(out, "interval   {} keys", index::display_length(window.plan().interval()))?;
    writeln!(out, "fpr        {:.2e} promised, for intervals of that length", window.fpr())?;
    writeln!(
        out,
        "overload   grown {}, {} forgotten early, {} not remembered",
        many(overload.grown, "time"),
        many(overload.forgotten, "key"),
        many(overload.refused, "key")
    )
}

fn describe_visits(out: &mut impl Write, visits: &Visits) -> std::io::Result<()> {
    let open = visits.open();
    writeln!(out, "settings   {}", visits.identity())?;
    describe_clock(out, visits.moments().time())?;
    let (count, reads) = (many(open.len() as u64, "visit"), many(open.reads(), "read"));
    writeln!(out, "open       {count} of {reads}")?;
    writeln!(out, "memory     {}", quantity::display_bytes(open.memory() as u64))
}

/// The condition of a filter, one item per line.
fn describe(out: &mut impl Write, filter: &AnyFilter) -> std::io::Result<()> {
    let overload = filter.overload();
    writeln!(out, "structure  {}", filter.structure())?;
    writeln!(out, "window     {}", describe_window(filter.window()))?;
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
