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
    /// Compares `lately` with other programs: time, memory, and whether the output is correct
    Programs(commands::Programs),
    /// Compares structures with a window, ours and others': space, time, and correctness
    Window(commands::Windows),
    /// Compares structures for interval queries: space, time, rates, and correctness
    Range(commands::Ranges),
    /// Measures what late arrivals cost the aged table, into a table on standard output
    Late(commands::Late),
    /// Compares `lately serve` with Redis and RedisBloom, into a table on standard output
    #[cfg(target_os = "linux")]
    Serve(commands::Serve),
    /// Runs real files through `lately` and compares it with an exact program
    Files(commands::Files),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        // The reader of the stream may have closed it.
        Command::Workload(workload) => workload.run().or_else(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error.into()),
        }),
        Command::Figures(figures) => figures.run(),
        Command::Programs(programs) => programs.run(),
        Command::Window(windows) => windows.run(),
        Command::Range(ranges) => ranges.run(),
        Command::Late(late) => late.run(),
        #[cfg(target_os = "linux")]
        Command::Serve(serve) => serve.run(),
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
