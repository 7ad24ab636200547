//! What users may do, and with which names.

use super::table::{Command, Names};
use super::{Call, State, Words};
use crate::users::{Right, User};
use std::fmt;

pub(super) const NOAUTH: &str = "NOAUTH Authentication required.";

/// Why a command is not done. Shown as Redis says it.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It has not been said who asks.
    Stranger,
    /// The user may not give this command. With its subcommand, where there is one that counts.
    Command(String),
    /// The user may not use a name in it.
    Name,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger => f.write_str(NOAUTH),
            Self::Command(name) => {
                write!(f, "NOPERM this user has no permissions to run the '{name}' command")
            }
            Self::Name => f.write_str(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            ),
        }
    }
}

impl Refusal {
    /// The same of a command that was queued before users changed.
    pub(super) fn at_execution(&self) -> String {
        const CHANGED: &str = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason:";
        match self {
            Self::Stranger => NOAUTH.into(),
            Self::Command(_) => {
                format!("{CHANGED} no permission to execute the command or subcommand")
            }
            Self::Name => format!("{CHANGED} no permission to touch the specified keys"),
        }
    }
}

/// May a client that may not do everything do this? Commands with several names are refused as a whole.
#[inline]
pub(super) fn check(state: &mut State, command: &Command, words: Words<'_>) -> Result<(), Refusal> {
    // Patterns are looked at once for a filter whose name comes again and again.
    let is_known = command.names == Names::First
        && words.len() > 1
        && !state.permitted.is_empty()
        && *state.permitted == *words.at(1);
    if is_known && state.user.as_ref().is_some_and(|user| user.may(command.needs)) {
        return Ok(());
    }
    check_in_full(state, command, words)
}

#[inline(never)]
fn check_in_full(state: &mut State, command: &Command, words: Words<'_>) -> Result<(), Refusal> {
    if command.is_open {
        return Ok(());
    }
    let Some(user) = &state.user else {
        // Whoever was somebody before comes in again with a connection of its own.
        state.is_closing |= state.is_dropped;
        return Err(Refusal::Stranger);
    };
    if !user.may(command.needs) {
        return Err(refused(command, words));
    }
    let has = |word: Option<&[u8]>| word.is_none_or(|name| user.has_name(name));
    let has_all = match command.names {
        Names::Free => true,
        Names::First | Names::Key => has(words.get(1)),
        Names::Second => has(words.get(2)),
        Names::Each => words.from(1).all(|name| has(Some(name))),
        Names::Every => user.has_all_names(),
    };
    if !has_all {
        return Err(Refusal::Name);
    }
    if let (Names::First, Some(name)) = (command.names, words.get(1)) {
        state.permitted.clear();
        state.permitted.extend_from_slice(name);
    }
    Ok(())
}

fn refused(command: &Command, words: Words<'_>) -> Refusal {
    let name = command.name;
    // The one command whose subcommands are refused has nothing else behind its name.
    let subcommand = words.get(1).filter(|_| name == "config").map(super::text);
    Refusal::Command(match subcommand {
        Some(subcommand) => format!("{name}|{}", subcommand.to_ascii_lowercase()),
        None => name.into(),
    })
}

impl Call<'_> {
    /// May the client do what needs this?
    pub(super) fn may(&self, right: Right) -> bool {
        !self.state.is_limited || self.state.user.as_ref().is_some_and(|user| user.may(right))
    }

    /// Refuses the command as one that the user may not give.
    pub(super) fn no_permission(&self) -> String {
        let name = super::text(self.words.at(0)).to_ascii_lowercase();
        Refusal::Command(name).to_string()
    }

    /// May the client use this name?
    pub(super) fn has_name(&self, name: &[u8]) -> bool {
        !self.state.is_limited || self.state.user.as_ref().is_some_and(|user| user.has_name(name))
    }

    /// How many filters there are, as far as this client may know.
    pub(super) fn filters(&self) -> u64 {
        let names = &self.server.store.names;
        let has_all = |user: &std::sync::Arc<User>| user.has_all_names();
        if !self.state.is_limited || self.state.user.as_ref().is_some_and(has_all) {
            return names.len() as u64;
        }
        names.all().iter().filter(|entry| self.has_name(entry.name())).count() as u64
    }
}
