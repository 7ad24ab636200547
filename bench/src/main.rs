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
    /// Measures the papers' figures again, into tables, plots and a page
    #[command(subcommand)]
    Figures(commands::Figures),
    /// Compares `lately` with other programs: time, memory, and whether the output is right
    Programs(commands::Programs),
    /// Compares structures with a window, ours and others': space, time, and whether they are right
    Window(commands::Windows),
    /// Compares structures that are asked for intervals: space, time, rates, and whether they are right
    Range(commands::Ranges),
    /// Runs real files through `lately`, beside an exact program
    Files(commands::Files),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        // Whoever reads the stream may have had enough of it.
        Command::Workload(workload) => workload.run().or_else(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error.into()),
        }),
        Command::Figures(figures) => figures.run(),
        Command::Programs(programs) => programs.run(),
        Command::Window(windows) => windows.run(),
        Command::Range(ranges) => ranges.run(),
        Command::Files(files) => files.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lately-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
