//! The program `lately-bench`: workloads, the papers' figures, comparisons with other programs.

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes a generated input to standard output, and its exact counts to standard error
    #[command(subcommand)]
    Workload(commands::Workload),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Workload(workload) => workload.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the stream may have had enough of it.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lately-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
