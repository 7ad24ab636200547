//! What a program can do that was built with other features.

use crate::Failure;
use clap::Args;
use std::ffi::OsString;

/// Whatever follows the name of a subcommand that is not there.
#[derive(Args)]
pub struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Says which feature brings something.
pub fn run(what: &str, feature: &str) -> Result<(), Failure> {
    Err(Failure::Usage(format!(
        "this program was built without {what}; build it with the feature `{feature}`, or with `full` for everything: cargo build --release --features {feature}"
    )))
}
