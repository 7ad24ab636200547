//! The program `lately`. One file per subcommand.

// A program has no interface for other crates: `pub` only says "outside this file" here.
#![allow(unreachable_pub)]

#[cfg(not(all(unix, feature = "edge", feature = "flows", feature = "serve")))]
mod absent;
mod arguments;
mod ask;
mod brokers;
mod dedup;
#[cfg(feature = "edge")]
mod edge;
mod epc;
mod fields;
#[cfg(all(unix, feature = "flows"))]
mod flows;
mod form;
mod huge_pages;
mod index;
mod input;
mod inspect;
mod metrics;
mod notes;
mod output;
mod pages;
mod place;
mod plan;
mod progress;
mod ranges;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod signals;
mod simulate;
mod visits;
mod watch;

use clap::{Parser, Subcommand};
use lately_stream::quantity;
use lately_stream::source::{SourceError, SourceErrorKind};
use std::process::ExitCode;

/// Have I seen this lately? Removes duplicates from streams, in one pass and bounded memory.
#[derive(Parser)]
#[command(name = "lately", version, propagate_version = true)]
#[command(max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Try:
  lately dedup access.log                          # each line once
  lately dedup reads.csv --key epc --time timestamp --within 5s
  lately visits reads.csv --within 5s              # when each tag came and left, from RFID reads
  lately plan --within 10s --expect 1M             # what a filter costs
  lately index reads.csv --key epc --within 10m --state tags.index
  lately ask tags.index --prefix 'urn:epc:idpat:sgtin:0614141.812345.*'

Exit status:
  0  success
  1  failure at run time
  2  wrong usage
  3  success, but there were invalid records and --strict was given
`lately ask` answers with its exit status, see `lately ask --help`.")]
struct Program {
    /// In `dedup`, `visits`, `index` and `serve`: do not ask for huge pages, in which large filters are faster (Linux)
    #[arg(long, global = true, display_order = 900)]
    no_huge_pages: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(Box<dedup::Arguments>),
    Visits(Box<visits::Arguments>),
    Plan(plan::Arguments),
    Inspect(inspect::Arguments),
    Epc(epc::Arguments),
    Index(Box<index::Arguments>),
    Ask(ask::Arguments),
    Watch(Box<watch::Arguments>),
    #[cfg(feature = "edge")]
    Edge(edge::Arguments),
    /// Crowdsensing: devices that decide for themselves what to send (not in this build: feature `edge`)
    #[cfg(not(feature = "edge"))]
    Edge(absent::Arguments),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Arguments>),
    /// Seen lately?, for many processes: a server (not in this build: feature `serve`)
    #[cfg(not(feature = "serve"))]
    Serve(absent::Arguments),
    #[cfg(all(unix, feature = "flows"))]
    Run(flows::RunArguments),
    /// Run several flows from one file (not in this build: feature `flows`)
    #[cfg(not(all(unix, feature = "flows")))]
    Run(absent::Arguments),
    #[cfg(all(unix, feature = "flows"))]
    Check(flows::CheckArguments),
    /// Say what is wrong with a file for `lately run` (not in this build: feature `flows`)
    #[cfg(not(all(unix, feature = "flows")))]
    Check(absent::Arguments),
    Simulate(simulate::Arguments),
    Completions(pages::CompletionArguments),
    Man(pages::ManArguments),
}

impl Command {
    /// Does it remember many keys?
    fn fills_filters(&self) -> bool {
        match self {
            Command::Dedup(_) | Command::Visits(_) | Command::Index(_) => true,
            #[cfg(feature = "serve")]
            Command::Serve(_) => true,
            _ => false,
        }
    }
}

/// Why a command ends without success.
enum Failure {
    /// Failure at run time: exit status 1.
    Trouble(String),
    /// Wrong usage: exit status 2.
    Usage(String),
    /// Invalid records under `--strict`: exit status 3.
    Strict,
    /// The answer of `lately ask` is no: exit status 1.
    No,
    /// An exit status of a command's own, and why.
    #[cfg(feature = "edge")]
    Own(u8, String),
    /// The reader of standard output went away: not a failure.
    Closed,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Trouble(error.to_string())
        }
    }
}

/// A count with its noun: `1 record`, `1,000 records`.
fn many(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", quantity::display_count(n), if n == 1 { "" } else { "s" })
}

/// The exit status of a run, some of whose inputs could not be read; `None` if all could.
fn inputs_failed(errors: &[SourceError], read: u64) -> Option<Failure> {
    let first = errors.first()?;
    let setup = matches!(first.kind, SourceErrorKind::Setup(_));
    Some(if setup && read == 0 {
        Failure::Usage("nothing was read".into())
    } else {
        let inputs = many(errors.len() as u64, "input");
        Failure::Trouble(format!("{inputs} could not be read to the end"))
    })
}

fn main() -> ExitCode {
    let Program { no_huge_pages, command } = Program::parse();
    if command.fills_filters() && !no_huge_pages {
        huge_pages::ask_for();
    }
    let result = match command {
        Command::Dedup(arguments) => dedup::run(&arguments),
        Command::Visits(arguments) => visits::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Epc(arguments) => epc::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        #[cfg(feature = "edge")]
        Command::Edge(arguments) => edge::run(arguments),
        #[cfg(not(feature = "edge"))]
        Command::Edge(_) => absent::run("`lately edge`", "edge"),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => absent::run("`lately serve`", "serve"),
        #[cfg(all(unix, feature = "flows"))]
        Command::Run(arguments) => flows::run(&arguments),
        #[cfg(all(unix, feature = "flows"))]
        Command::Check(arguments) => flows::check(&arguments),
        #[cfg(not(all(unix, feature = "flows")))]
        Command::Run(_) | Command::Check(_) => absent::run("`lately run`", "flows"),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Completions(arguments) => pages::completions(&arguments),
        Command::Man(arguments) => pages::man(&arguments),
    };
    match result {
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Trouble(message)) => {
            eprintln!("lately: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("lately: {message}");
            ExitCode::from(2)
        }
        Err(Failure::No) => ExitCode::from(1),
        #[cfg(feature = "edge")]
        Err(Failure::Own(status, message)) => {
            eprintln!("lately: {message}");
            ExitCode::from(status)
        }
        Err(Failure::Strict) => ExitCode::from(3),
    }
}
