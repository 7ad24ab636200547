//! `lately edge tasks`.

use super::live::{BrokerArguments, block_on};
use crate::Failure;
use clap::Args;
use lately_edge::ids::{RequesterId, TaskId};
use lately_edge::task::{Area, AreaCell, Task};
use lately_edge_mqtt::requester::tasks;
use serde_json::json;
use std::io::{Write, stdout};
use std::time::Duration;

/// List the tasks that the coordinator knows, or end some
///
/// Prints one line of JSON per task: its id and its requester's, the property, the area, from when until when (seconds since
/// 1970), and how many readings are wanted in each cell of 100 m. With --withdraw, these tasks end; what hosts have kept
/// for them and not delivered yet is dropped.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately edge tasks
  lately edge tasks --withdraw 1f0c5a2e9b7d4433")]
pub struct Arguments {
    #[command(flatten)]
    broker: BrokerArguments,

    /// Tasks to end, by id
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = id)]
    withdraw: Vec<TaskId>,
}

/// How long the coordinator may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn id(digits: &str) -> Result<TaskId, String> {
    let id = lately_edge_mqtt::topic::id(digits).map(TaskId);
    id.ok_or_else(|| "an id has 16 hexadecimal digits".into())
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let broker = arguments.broker.broker()?;
    let known = block_on(|mut stop| async move {
        tokio::select! {
            () = stop.asked() => Err(Failure::Trouble("stopped".into())),
            known = tasks(&broker, &arguments.withdraw, PATIENCE) => Ok(known?),
        }
    })?;
    let Some(known) = known else {
        let words = "no coordinator has answered within 10 s; are the broker and `lately edge coordinator` running?";
        return Err(Failure::Own(5, words.into()));
    };
    let mut out = stdout().lock();
    for (requester, task) in &known {
        writeln!(out, "{}", line(*requester, task))?;
    }
    let missing =
        arguments.withdraw.iter().find(|id| !known.iter().any(|(_, task)| task.id == **id));
    match missing {
        Some(id) => Err(Failure::Trouble(format!(
            "the coordinator knows no task {id}; hosts were told to end it"
        ))),
        None => Ok(()),
    }
}

fn line(requester: RequesterId, task: &Task) -> serde_json::Value {
    let Task { id, property, area, from, until, wanted } = task;
    let name = |cell: &AreaCell| match cell {
        AreaCell::Square(cell) => cell.to_string(),
        AreaCell::Km(cell) => cell.to_string(),
        AreaCell::Small(cell) => cell.to_string(),
    };
    let area: Vec<String> = match area {
        Area::Everywhere => Vec::new(),
        Area::Cells(cells) => cells.iter().map(name).collect(),
    };
    json!({
        "task": id.to_string(),
        "requester": requester.to_string(),
        "property": property.as_str(),
        "area": area,
        "from": from / 1000,
        "until": until / 1000,
        "wanted": wanted,
    })
}
