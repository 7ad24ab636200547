//! `lately completions` and `lately man`: help for the shell and the pager.

use crate::{Failure, Program};
use clap::{Args, CommandFactory};
use std::io::{Write, stdout};

/// Print completions for a shell
#[derive(Args)]
#[command(
    after_help = "Example: lately completions bash > ~/.local/share/bash-completion/completions/lately"
)]
pub struct CompletionArguments {
    /// The shell
    shell: clap_complete::Shell,
}

/// Print the manual page
#[derive(Args)]
#[command(after_help = "Example: lately man | man -l -\n         lately man dedup | man -l -")]
pub struct ManArguments {
    /// The subcommand; the program itself if none is given
    subcommand: Option<String>,
}

pub fn completions(arguments: &CompletionArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Program::command(), "lately", &mut script);
    Ok(stdout().lock().write_all(&script)?)
}

pub fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let mut program = Program::command();
    program.build();
    let command = match &arguments.subcommand {
        None => program,
        Some(name) => program
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::Usage(format!("there is no subcommand `{name}`")))?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(stdout().lock().write_all(&page)?)
}
