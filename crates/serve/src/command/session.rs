//! One client's conversation.

use super::multi::Queue;
use super::run::{Part, Workspace};
use super::table::{self, Action, Command};
use super::transfer::Transfer;
use super::{Call, Server, Words, text};
use crate::resp::{Limits, Parser, Protocol, Reply, Step};
use std::net::IpAddr;
use std::sync::atomic::Ordering;

/// Replies that are gathered before they must be taken.
const MOST_REPLIES: usize = 1 << 20;

/// A client, from its first byte to its last. Bytes in and bytes out; whose they are and how they travel is not known
/// here.
#[derive(Debug)]
pub(crate) struct Session {
    parser: Parser,
    state: State,
}

/// What is known of a client.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: u64,
    pub(crate) from: Option<IpAddr>,
    pub(crate) protocol: Protocol,
    pub(crate) name: Vec<u8>,
    pub(crate) is_trusted: bool,
    pub(crate) queue: Option<Queue>,
    /// What it moves in chunks.
    pub(crate) transfer: Transfer,
    /// The conversation is over once the replies are written.
    pub(crate) is_closing: bool,
}

/// How far a session has come with the bytes it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Bytes that are done with. The rest is to be given again, with what comes behind it.
    pub(crate) consumed: usize,
    /// The rest may hold whole commands: the replies were too many to go on.
    pub(crate) has_more: bool,
    /// The conversation is over: write the replies, then close.
    pub(crate) is_over: bool,
}

impl Session {
    /// A client that has just come. Whoever need not give a password is trusted.
    pub(crate) fn new(server: &Server, id: u64, from: Option<IpAddr>) -> Self {
        let is_trusted = !server.auth.is_needed();
        let parser = Parser::new(if is_trusted { Limits::FULL } else { Limits::STRICT });
        let state = State {
            id,
            from,
            protocol: Protocol::default(),
            name: Vec::new(),
            is_trusted,
            queue: None,
            transfer: Transfer::default(),
            is_closing: false,
        };
        Self { parser, state }
    }

    /// Has the client given the password, or need it not?
    pub(crate) fn is_trusted(&self) -> bool {
        self.state.is_trusted
    }

    /// Does the commands in these bytes and writes the replies behind those in `out`. They are the same however the
    /// bytes are cut into calls, as long as the moment is the same.
    pub(crate) fn feed(
        &mut self,
        server: &Server,
        work: &mut Workspace,
        now: u64,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Fed {
        let mut fed = Fed { consumed: 0, has_more: false, is_over: false };
        let mut commands = 0;
        while !self.state.is_closing {
            if out.len() >= MOST_REPLIES {
                fed.has_more = true;
                break;
            }
            let rest = &input[fed.consumed..];
            match self.parser.next(rest) {
                Ok(Step::More) => break,
                Ok(Step::Nothing) => {}
                Ok(Step::Command) => {
                    let words = Words::new(rest, self.parser.arguments());
                    execute(server, &mut self.state, work, now, words, out);
                    commands += 1;
                    if self.state.is_trusted {
                        self.parser.limits = Limits::FULL;
                    }
                }
                Err(error) => {
                    work.flush(server, now, &mut self.state.reply(out));
                    if let Some(reply) = error.reply() {
                        self.state.reply(out).error(&reply);
                    }
                    self.state.is_closing = true;
                    break;
                }
            }
            fed.consumed += self.parser.consumed();
        }
        work.flush(server, now, &mut self.state.reply(out));
        work.settle_counts(server);
        self.parser.shrink();
        server.stats.commands.fetch_add(commands, Ordering::Relaxed);
        fed.is_over = self.state.is_closing;
        fed
    }
}

impl State {
    /// Replies to this client.
    pub(crate) fn reply<'a>(&self, out: &'a mut Vec<u8>) -> Reply<'a> {
        Reply { out, protocol: self.protocol }
    }
}

/// Does one command, or takes it for the run at hand, or for the transaction that is being gathered.
fn execute(
    server: &Server,
    state: &mut State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) {
    let command = match check(state, words) {
        Ok(command) => command,
        Err(error) => {
            work.flush(server, now, &mut state.reply(out));
            refuse(state, words, &error, out);
            return;
        }
    };
    if let Some(queue) = &mut state.queue
        && !command.ends_queue
    {
        work.flush(server, now, &mut Reply { out, protocol: state.protocol });
        let mut reply = Reply { out, protocol: state.protocol };
        match queue.add(words) {
            Ok(()) => reply.simple("QUEUED"),
            Err(error) => reply.error(error),
        }
        return;
    }
    if let Action::Execute = command.action {
        work.flush(server, now, &mut state.reply(out));
        let Some(queue) = state.queue.take() else {
            return state.reply(out).error("ERR EXEC without MULTI");
        };
        if queue.is_broken {
            let error = "EXECABORT Transaction discarded because of previous errors.";
            return state.reply(out).error(error);
        }
        state.reply(out).array(queue.len());
        queue.each(|words| perform(command_of(words), server, state, work, now, words, out));
        // Its last replies belong to it, whatever the protocol is from here on.
        work.flush(server, now, &mut state.reply(out));
        return;
    }
    perform(Some(command), server, state, work, now, words, out);
}

/// Replies that a command is not done, or not taken for a transaction, which then is not done either.
#[cold]
#[inline(never)]
fn refuse(state: &mut State, words: Words<'_>, error: &str, out: &mut Vec<u8>) {
    if state.is_trusted && words.is(0, "exec") {
        state.queue = None;
        let why = error.trim_start_matches("ERR ");
        let error = format!("EXECABORT Transaction discarded because of: {why}");
        return state.reply(out).error(&error);
    }
    state.reply(out).error(error);
    if let Some(queue) = &mut state.queue {
        queue.is_broken = true;
    }
}

/// The command that these words are, which have been checked before.
fn command_of(words: Words<'_>) -> Option<&'static Command> {
    table::find_first(words)
}

/// Does a command that has been checked.
fn perform(
    command: Option<&'static Command>,
    server: &Server,
    state: &mut State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) {
    let Some(command) = command else { return };
    work.count(server, command);
    if command.changes
        && let Some(why) = server.keeper.refusal()
    {
        work.flush(server, now, &mut state.reply(out));
        return state.reply(out).error(&format!("MISCONF Errors writing to the journal: {why}"));
    }
    let call = match command.action {
        Action::Run(part, call) => {
            if let Some(part) = part(words, now) {
                return join(part, server, state, work, now, words, out);
            }
            call
        }
        Action::Call(call) => call,
        // Is never queued.
        Action::Execute => return,
    };
    work.flush(server, now, &mut state.reply(out));
    let reply = Reply { out, protocol: state.protocol };
    call(&mut Call { server, state, words, now, reply });
}

/// Takes a command for the run at hand, or begins another.
fn join(
    part: Part,
    server: &Server,
    state: &State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) {
    let name = part.name.map_or(&b""[..], |name| words.at(name));
    if !work.takes(part.kind, name) {
        work.flush(server, now, &mut state.reply(out));
        work.begin(part.kind, name);
    }
    work.add(&server.store, part.keys, words);
}

/// Finds the command, and whether it may be done.
fn check(state: &State, words: Words<'_>) -> Result<&'static Command, String> {
    let Some(command) = table::find_first(words) else {
        if state.is_trusted {
            return Err(unknown(words));
        }
        return Err(NOAUTH.into());
    };
    if !command.takes(words.len()) {
        return Err(format!("ERR wrong number of arguments for '{}' command", command.name));
    }
    if !state.is_trusted && !command.is_open {
        return Err(NOAUTH.into());
    }
    Ok(command)
}

const NOAUTH: &str = "NOAUTH Authentication required.";

/// Bytes of arguments that an error shows.
const SHOWN: usize = 128;

fn unknown(words: Words<'_>) -> String {
    let name = words.at(0);
    let name = &name[..name.len().min(SHOWN)];
    let mut shown = String::new();
    for word in words.from(1) {
        if shown.len() >= SHOWN {
            break;
        }
        let word = &word[..word.len().min(SHOWN - shown.len())];
        shown += &format!("'{}' ", text(word));
    }
    format!("ERR unknown command '{}', with args beginning with: {shown}", text(name))
}
