//! `lately edge`: crowdsensing, where devices decide for themselves what to send.

mod coordinator;
mod demo;
mod host;
mod live;
mod requester;
mod routes;
mod simulate;
mod tasks;
mod view;
mod web;
mod worker;

use crate::Failure;
use clap::{Args, Subcommand};

/// Crowdsensing: devices that decide for themselves what to send
///
/// Workers are mobile devices that measure. Each cell of 1 km has a filter of what has already been
/// measured there; a worker holds the filter of its cell and does not send what others have sent. Hosts,
/// one for each square of 10 km, keep the filters and the readings; the coordinator assigns a host to each
/// square; requesters post tasks and receive the readings. All of them speak MQTT 5.
#[derive(Args)]
#[command(after_help = "\
A complete system on this machine, from five terminals (or in one process: lately edge demo):
  mosquitto
  lately edge coordinator
  lately edge host
  lately edge requester --property noise --for 1h
  lately edge worker --generate --workers 20")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Simulate(Box<simulate::Arguments>),
    Demo(demo::Arguments),
    Coordinator(coordinator::Arguments),
    Host(host::Arguments),
    Worker(worker::Arguments),
    Requester(requester::Arguments),
    Tasks(tasks::Arguments),
    View(view::Arguments),
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.what {
        What::Simulate(arguments) => simulate::run(&arguments),
        What::Demo(arguments) => demo::run(&arguments),
        What::Coordinator(arguments) => coordinator::run(&arguments),
        What::Host(arguments) => host::run(&arguments),
        What::Worker(arguments) => worker::run(arguments),
        What::Requester(arguments) => requester::run(&arguments),
        What::Tasks(arguments) => tasks::run(&arguments),
        What::View(arguments) => view::run(&arguments),
    }
}
