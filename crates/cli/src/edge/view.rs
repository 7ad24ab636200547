//! `lately edge view`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on};
use super::web::Web;
use crate::{Failure, many};
use clap::Args;
use lately_edge::Millis;
use lately_edge::observer::Observer;
use lately_edge::task::{Area, AreaCell, Task};
use lately_edge_mqtt::observer::observe;
use lately_stream::quantity;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Show a live map in the browser: cells by the age of their last reading, hosts, workers, tasks and rates
///
/// Looks on at the broker and serves the map at http://ADDRESS/. It needs no internet: the coast lines are built in. There
/// is no login: use an address that only those reach who may see where workers are. At a broker with an access list, it
/// needs a user who may read `lately/1/#`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    /// Where the map is served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8088")]
    listen: SocketAddr,

    /// How long a reading is valid: cells fade until then
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = quantity::duration)]
    window: u64,
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// What the page consists of, all of it built in.
const FILES: [(&str, &str, &[u8]); 6] = [
    ("/", "text/html; charset=utf-8", include_bytes!("view/page.html")),
    ("/view.js", JAVASCRIPT, include_bytes!("view/view.js")),
    ("/leaflet.js", JAVASCRIPT, include_bytes!("view/vendor/leaflet.js")),
    ("/leaflet.css", "text/css; charset=utf-8", include_bytes!("view/vendor/leaflet.css")),
    ("/mgrs.js", JAVASCRIPT, include_bytes!("view/vendor/mgrs.min.js")),
    ("/land.json", "application/json", include_bytes!("view/vendor/land-110m.json")),
];

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let web = Web::serve(arguments.listen)?;
    FILES.into_iter().for_each(|(path, kind, body)| web.set(path, kind, body));
    let window = arguments.window / 1_000_000;
    let mut line = Line::new(&broker, false);
    line.say(&format!("map at http://{}/", web.address()));
    block_on(|stop| async {
        let watch = observe(&broker, clock, stop, |role, link| {
            let state = state(role, clock.now(), window, link.up);
            web.set("/state.json", "application/json", state.to_string().as_bytes());
            line.show(link, || many(role.counts().messages, "message"));
        });
        Ok(watch.await?)
    })?;
    line.finish();
    Ok(())
}

/// What the page shows. Moments are milliseconds since 1970.
fn state(role: &Observer, now: Millis, window: Millis, up: bool) -> Value {
    let cells = role.cells().map(|(cell, seen)| {
        let (property, value) = seen.last;
        json!([cell.to_string(), seen.heard, seen.sent, property.as_str(), value])
    });
    let workers = role.workers().map(|(_, cell, heard)| json!([cell.to_string(), heard]));
    let hosts = role.hosts().map(|(square, process, heard)| {
        let told = role.aggregates().find(|(other, _)| *other == square).map(|(_, told)| told);
        let told = told.unwrap_or_default();
        json!({
            "square": square.to_string(), "process": process.to_string(), "heard": heard,
            "workers": told.workers, "kept": told.kept, "redundant": told.redundant,
        })
    });
    let counts = role.counts();
    json!({
        "now": now,
        "window": window,
        "up": up,
        "coordinator": role.coordinator().map(|(holder, heard)| json!([format!("{holder:016x}"), heard])),
        "cells": cells.collect::<Vec<_>>(),
        "workers": workers.collect::<Vec<_>>(),
        "hosts": hosts.collect::<Vec<_>>(),
        "tasks": role.tasks().map(|(_, task)| task_of(task)).collect::<Vec<_>>(),
        "counts": {
            "messages": counts.messages, "submissions": counts.submissions,
            "updates": counts.updates, "resets": counts.resets, "results": counts.results,
        },
    })
}

fn task_of(task: &Task) -> Value {
    let name = |cell: &AreaCell| match cell {
        AreaCell::Square(cell) => cell.to_string(),
        AreaCell::Km(cell) => cell.to_string(),
        AreaCell::Small(cell) => cell.to_string(),
    };
    let area: Vec<String> = match &task.area {
        Area::Everywhere => Vec::new(),
        Area::Cells(cells) => cells.iter().map(name).collect(),
    };
    json!({
        "task": task.id.to_string(), "property": task.property.as_str(), "area": area,
        "until": task.until, "wanted": task.wanted,
    })
}
