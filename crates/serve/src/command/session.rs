//! One client's conversation.

use super::multi::Queue;
use super::permit::{self, NOAUTH};
use super::run::{Part, Workspace};
use super::table::{self, Action, Command};
use super::transfer::Transfer;
use super::{Call, Server, Words, text};
use crate::resp::{Limits, Parser, Protocol, Reply, Step};
use crate::users::User;
use std::net::IpAddr;
use std::sync::Arc;
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
    /// Who it is; `None` until it has given a password, where one is needed.
    pub(crate) user: Option<Arc<User>>,
    /// It is nobody yet, or a user who may not do everything, so that each command is looked at before it is done.
    pub(crate) is_limited: bool,
    /// The user that it was is gone, or has another password: its next command must say who it is.
    pub(crate) is_dropped: bool,
    /// The last filter's name that it was found to be allowed.
    pub(crate) permitted: Vec<u8>,
    /// That of the users that it was last compared with.
    generation: u64,
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
        let generation = server.auth.generation();
        let mut state = State {
            id,
            from,
            protocol: Protocol::default(),
            name: Vec::new(),
            user: None,
            is_limited: true,
            is_dropped: false,
            permitted: Vec::new(),
            generation,
            queue: None,
            transfer: Transfer::default(),
            is_closing: false,
        };
        state.become_user(server.auth.anyone());
        Self { parser: Parser::new(state.limits()), state }
    }

    /// A client that is this user from its first command on.
    pub(crate) fn of_user(server: &Server, id: u64, from: Option<IpAddr>, user: Arc<User>) -> Self {
        let mut session = Self::new(server, id, from);
        session.state.become_user(Some(user));
        session.parser.limits = session.state.limits();
        session
    }

    /// Has the client given a password, or need it not?
    pub(crate) fn is_trusted(&self) -> bool {
        self.state.is_trusted()
    }

    /// Who it is.
    pub(crate) fn user(&self) -> Option<&User> {
        self.state.user.as_deref()
    }

    /// Makes the client what the users of now say. Was it trusted before that?
    pub(crate) fn keep_up(&mut self, server: &Server) -> bool {
        let was_trusted = self.state.is_trusted();
        let generation = server.auth.generation();
        if self.state.generation != generation {
            self.state.generation = generation;
            if let Some(user) = self.state.user.take() {
                self.state.become_user(server.auth.successor(&user));
                self.state.is_dropped = self.state.user.is_none();
            }
            if self.state.is_dropped {
                self.state.queue = None;
            }
            self.parser.limits = self.state.limits();
        }
        was_trusted
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
                    self.parser.limits = self.state.limits();
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
    pub(crate) fn is_trusted(&self) -> bool {
        self.user.is_some()
    }

    /// From now on it is this user, or nobody.
    pub(crate) fn become_user(&mut self, user: Option<Arc<User>>) {
        self.is_limited = user.as_ref().is_none_or(|user| !user.may_all());
        self.is_dropped = false;
        self.permitted.clear();
        self.transfer = Transfer::default();
        self.user = user;
    }

    fn limits(&self) -> Limits {
        if self.is_trusted() { Limits::FULL } else { Limits::STRICT }
    }

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
        queue.each(|words| perform_queued(server, state, work, now, words, out));
        // Its last replies belong to it, whatever the protocol is from here on.
        work.flush(server, now, &mut state.reply(out));
        return;
    }
    perform(command, server, state, work, now, words, out);
}

/// Replies that a command is not done, or not taken for a transaction, which then is not done either.
#[cold]
#[inline(never)]
fn refuse(state: &mut State, words: Words<'_>, error: &str, out: &mut Vec<u8>) {
    if state.is_trusted() && words.is(0, "exec") {
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

/// Does a command of a transaction. It was checked when it was queued; but who gave it may be somebody else since, or have
/// other rights.
fn perform_queued(
    server: &Server,
    state: &mut State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) {
    let Some(command) = table::find_first(words) else { return };
    if state.is_limited
        && let Err(refusal) = permit::check(state, command, words)
    {
        work.flush(server, now, &mut state.reply(out));
        return state.reply(out).error(&refusal.at_execution());
    }
    perform(command, server, state, work, now, words, out);
}

/// Does a command that has been checked.
fn perform(
    command: &'static Command,
    server: &Server,
    state: &mut State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) {
    work.count(server, command);
    if command.changes
        && let Some(why) = server.keeper.refusal()
    {
        work.flush(server, now, &mut state.reply(out));
        return state.reply(out).error(&format!("MISCONF Errors writing to the journal: {why}"));
    }
    let call = match command.action {
        Action::Run(part, call) => {
            if let Some(part) = part(words, now)
                && join(part, server, state, work, now, words, out)
            {
                return;
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

/// Takes a command for the run at hand, or begins another. `false`: it is to be done by itself.
fn join(
    part: Part,
    server: &Server,
    state: &State,
    work: &mut Workspace,
    now: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let name = part.name.map_or(&b""[..], |name| words.at(name));
    if !work.takes(part.kind, name) {
        // Keys of the run are digests, and those of such a filter are numbers.
        if part.kind.is_for_any_family() && server.store.numbers(name, now).is_some() {
            return false;
        }
        work.flush(server, now, &mut state.reply(out));
        work.begin(part.kind, name);
    }
    work.add(&server.store, part.keys, words);
    true
}

/// Finds the command, and whether it may be done.
fn check(state: &mut State, words: Words<'_>) -> Result<&'static Command, String> {
    let Some(command) = table::find_first(words) else {
        if state.is_trusted() {
            return Err(unknown(words));
        }
        state.is_closing |= state.is_dropped;
        return Err(NOAUTH.into());
    };
    if !command.takes(words.len()) {
        // Whoever gives a prefix has one word too few.
        let hint = match command.name {
            "lately.range" => {
                ": give the first key and the last, it takes no prefix such as 10.1.0.0/16"
            }
            _ => "",
        };
        return Err(format!("ERR wrong number of arguments for '{}' command{hint}", command.name));
    }
    if state.is_limited {
        permit::check(state, command, words).map_err(|refusal| refusal.to_string())?;
    }
    Ok(command)
}

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
