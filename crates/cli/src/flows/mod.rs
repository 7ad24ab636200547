//! `lately run` and `lately check`: several runs from one file, each a process of its own under one supervisor.

mod child;
mod config;
mod supervise;

use crate::{Failure, many};
use clap::Args;
use config::{Config, Mistake};
use std::fs;
use std::path::{Path, PathBuf};

/// Run several flows from one file, and keep them running
///
/// Each table of the file is a flow: a `dedup`, `visits` or `index`, with their flags as fields. A flow that fails is
/// started again, after 1 s at first, then up to 60 s. SIGTERM and SIGINT end all in good order, SIGHUP reads the file
/// again and starts, ends or restarts the flows that have changed, SIGUSR1 saves all states.
#[derive(Args)]
#[command(after_help = "\
Example (flows.toml):
  [docks]                                  # the name, which begins each of its messages
  input = \"mqtt://localhost/readers/#\"     # or a list of files
  output = \"mqtt://localhost/clean\"
  within = \"5s\"
  best = \"rssi:max\"
  hold = \"200ms\"
  state = \"/var/lib/lately/docks.state\"

  [stays]
  command = \"visits\"                       # default: dedup
  input = \"kafka://one,two/reads?group=stays\"
  output = \"/var/lib/lately/stays.ndjson\"
  within = \"30s\"
  state = \"/var/lib/lately/stays.state\"

Exit status:
  0  all flows have ended in good order
  1  a flow failed, and was not to be started again
  2  the file cannot be used; `lately check FILE` says all that is wrong with it")]
pub struct RunArguments {
    /// The file (TOML)
    config: PathBuf,
}

/// Say what is wrong with a file for `lately run`
///
/// Prints each mistake with its line and field, or what each flow would run. Nothing is connected to, and no file but this one is
/// opened.
#[derive(Args)]
#[command(after_help = "\
Exit status:
  0  nothing is wrong
  2  something is")]
pub struct CheckArguments {
    /// The file (TOML)
    config: PathBuf,
}

pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let config = read(&arguments.config).map_err(|mistakes| told(&mistakes))?;
    supervise::supervise(&arguments.config, config)
}

pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let config = read(&arguments.config).map_err(|mistakes| told(&mistakes))?;
    for flow in &config.flows {
        println!("{}: lately {}", flow.name, flow.shown());
    }
    Ok(())
}

/// Says each mistake; what is left is their number.
fn told(mistakes: &[Mistake]) -> Failure {
    mistakes.iter().for_each(|mistake| eprintln!("lately: {mistake}"));
    Failure::Usage(many(mistakes.len() as u64, "mistake"))
}

/// Reads a file of flows.
fn read(path: &Path) -> Result<Config, Vec<Mistake>> {
    let text = fs::read_to_string(path).map_err(|error| {
        vec![Mistake { path: path.into(), line: None, what: error.to_string() }]
    })?;
    Config::parse(path, &text)
}
