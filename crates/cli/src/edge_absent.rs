//! `lately edge` in a program that was built without it.

use crate::Failure;
use clap::Args;
use std::ffi::OsString;

/// Crowdsensing: devices that decide for themselves what to send (not in this build: feature `edge`)
#[derive(Args)]
pub struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

pub fn run(_: Arguments) -> Result<(), Failure> {
    Err(Failure::Usage(
        "this program was built without `lately edge`; rebuild it with the feature `edge`: cargo build --release --features edge".into(),
    ))
}
