//! `lately edge`: crowdsensing, where devices decide for themselves what to send.

mod simulate;

use crate::Failure;
use clap::{Args, Subcommand};

/// Crowdsensing: devices that decide for themselves what to send
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Simulate(Box<simulate::Arguments>),
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.what {
        What::Simulate(arguments) => simulate::run(&arguments),
    }
}
