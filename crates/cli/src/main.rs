//! The program `lately`. One file a subcommand.

// A program has no interface for other crates: `pub` only says "outside this file" here.
#![allow(unreachable_pub)]

mod arguments;
mod dedup;
mod edge;
mod epc;
mod inspect;
mod pages;
mod plan;
mod progress;
mod signals;
mod simulate;

use clap::{Parser, Subcommand};
use lately_stream::quantity;
use std::process::ExitCode;

/// Have I seen this lately? Removes duplicates from streams, in one pass and bounded memory.
#[derive(Parser)]
#[command(name = "lately", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Try:
  lately dedup access.log                          # each line once
  lately dedup reads.csv --key epc --time timestamp --within 5s
  lately plan --within 10s --expect 1M             # what that costs

Exit status: 0 done; 1 trouble at run time; 2 wrong usage;
3 done, but there were invalid records and --strict was given.")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(Box<dedup::Arguments>),
    Plan(plan::Arguments),
    Inspect(inspect::Arguments),
    Epc(epc::Arguments),
    Edge(edge::Arguments),
    Simulate(simulate::Arguments),
    Completions(pages::CompletionArguments),
    Man(pages::ManArguments),
}

/// Why a command ends without success.
enum Failure {
    /// Trouble at run time: exit status 1.
    Trouble(String),
    /// Wrong usage: exit status 2.
    Usage(String),
    /// Invalid records under `--strict`: exit status 3.
    Strict,
    /// The reader of standard output went away: no trouble.
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

/// So many of them: `1 record`, `1,000 records`.
fn many(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", quantity::display_count(n), if n == 1 { "" } else { "s" })
}

fn main() -> ExitCode {
    let result = match Program::parse().command {
        Command::Dedup(arguments) => dedup::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Epc(arguments) => epc::run(&arguments),
        Command::Edge(arguments) => edge::run(arguments),
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
        Err(Failure::Strict) => ExitCode::from(3),
    }
}
