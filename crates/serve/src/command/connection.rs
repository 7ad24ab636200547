//! Commands about the connection itself.

use super::{Call, text};
use crate::resp::{Protocol, integer};

/// What clients are told about the server they speak with: features are looked up by it.
const VERSION: &str = "7.4.0";

const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// For commands that change nothing here.
pub(super) fn ok(call: &mut Call<'_>) {
    call.reply.ok();
}

pub(super) fn ping(call: &mut Call<'_>) {
    match (call.words.len(), call.words.get(1)) {
        (1, _) => call.reply.simple("PONG"),
        (2, Some(word)) => call.reply.bulk(word),
        _ => call.reply.error("ERR wrong number of arguments for 'ping' command"),
    }
}

pub(super) fn echo(call: &mut Call<'_>) {
    call.reply.bulk(call.words.at(1));
}

pub(super) fn quit(call: &mut Call<'_>) {
    call.state.is_closing = true;
    call.reply.ok();
}

pub(super) fn reset(call: &mut Call<'_>) {
    call.state.queue = None;
    call.state.transfer = super::transfer::Transfer::default();
    call.state.name.clear();
    call.state.protocol = Protocol::Resp2;
    call.state.become_user(call.server.auth.anyone());
    call.reply.simple("RESET");
}

pub(super) fn select(call: &mut Call<'_>) {
    match integer(call.words.at(1)) {
        Some(0) => call.reply.ok(),
        Some(_) => call.reply.error("ERR DB index is out of range"),
        None => call.reply.error("ERR value is not an integer or out of range"),
    }
}

/// `AUTH [user] password`
pub(super) fn auth(call: &mut Call<'_>) {
    let words = call.words;
    let (user, password) = match words.len() {
        2 => (&b"default"[..], words.at(1)),
        3 => (words.at(1), words.at(2)),
        _ => return call.syntax_error(),
    };
    if words.len() == 2 && !call.server.auth.is_needed() {
        return call.reply.error(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
        );
    }
    if let_in(call, user, password) {
        call.reply.ok();
    } else {
        call.reply.error(WRONGPASS);
    }
}

fn let_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> bool {
    let user = call.server.auth.check(user, password, call.state.from, call.now);
    let is_right = user.is_some();
    // Who was somebody before stays that.
    if is_right {
        call.state.become_user(user);
    }
    is_right
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
pub(super) fn hello(call: &mut Call<'_>) {
    match greet(call) {
        Ok(()) => {}
        Err(SYNTAX) => {
            let option = wrong_option(call);
            return call.refuse(format!("{SYNTAX} option '{option}'"));
        }
        Err(error) => return call.reply.error(error),
    }
    call.reply.protocol = call.state.protocol;
    let protocol = if call.state.protocol == Protocol::Resp3 { 3 } else { 2 };
    let reply = &mut call.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(protocol);
    reply.bulk(b"id");
    reply.count(call.state.id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

const SYNTAX: &str = "ERR Syntax error in HELLO";

/// The option of a `HELLO` that is none, or has not all of its words.
fn wrong_option(call: &Call<'_>) -> String {
    let (words, mut at) = (call.words, 2);
    loop {
        at += match () {
            () if words.is(at, "auth") && words.len() > at + 2 => 3,
            () if words.is(at, "setname") && words.len() > at + 1 => 2,
            () => return words.get(at).map(text).unwrap_or_default(),
        };
    }
}

fn greet(call: &mut Call<'_>) -> Result<(), &'static str> {
    let words = call.words;
    let protocol = match words.get(1).map(integer) {
        None => call.state.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err("NOPROTO unsupported protocol version"),
        Some(None) => return Err("ERR Protocol version is not an integer or out of range"),
    };
    let (mut at, mut name) = (2, None);
    while at < words.len() {
        if let (true, Some(user), Some(password)) =
            (words.is(at, "auth"), words.get(at + 1), words.get(at + 2))
        {
            if !let_in(call, user, password) {
                return Err(WRONGPASS);
            }
            at += 3;
        } else if let (true, Some(value)) = (words.is(at, "setname"), words.get(at + 1)) {
            name = Some(value);
            at += 2;
        } else {
            return Err(SYNTAX);
        }
    }
    if !call.state.is_trusted() {
        return Err(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        );
    }
    if let Some(name) = name {
        set_name(call, name)?;
    }
    call.state.protocol = protocol;
    Ok(())
}

fn set_name(call: &mut Call<'_>, name: &[u8]) -> Result<(), &'static str> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    call.state.name = name[..name.len().min(512)].to_vec();
    Ok(())
}

/// `CLIENT subcommand …`
pub(super) fn client(call: &mut Call<'_>) {
    let words = call.words;
    let subcommand = words.at(1).to_ascii_lowercase();
    match (&subcommand[..], words.len()) {
        (b"no-evict" | b"no-touch", 3) if !words.is(2, "on") && !words.is(2, "off") => {
            call.syntax_error();
        }
        (b"setinfo", 4) | (b"no-evict" | b"no-touch", 3) => call.reply.ok(),
        (b"setname", 3) => match set_name(call, words.at(2)) {
            Ok(()) => call.reply.ok(),
            Err(error) => call.reply.error(error),
        },
        (b"getname", 2) if call.state.name.is_empty() => call.reply.nil(),
        (b"getname", 2) => {
            let name = &call.state.name;
            call.reply.bulk(name);
        }
        (b"id", 2) => call.reply.count(call.state.id),
        (b"info" | b"list", _) => {
            let line = describe(call);
            call.reply.bulk(line.as_bytes());
        }
        (b"setinfo" | b"no-evict" | b"no-touch" | b"setname" | b"getname" | b"id", _) => {
            let name = text(&subcommand);
            call.refuse(format!("ERR wrong number of arguments for 'client|{name}' command"));
        }
        _ => {
            let name = text(words.at(1));
            call.refuse(format!("ERR unknown subcommand '{name}'. Try CLIENT HELP."));
        }
    }
}

/// `ACL WHOAMI`
pub(super) fn acl(call: &mut Call<'_>) {
    match (call.words.is(1, "whoami"), call.words.len()) {
        (true, 2) => call.reply.bulk(user_of(call).as_bytes()),
        (true, _) => call.refuse("ERR wrong number of arguments for 'acl|whoami' command"),
        (false, _) => {
            let name = text(call.words.at(1));
            call.refuse(format!("ERR unknown subcommand '{name}'. Try ACL HELP."));
        }
    }
}

fn user_of(call: &Call<'_>) -> String {
    call.state.user.as_ref().map_or("", |user| user.name()).to_owned()
}

/// This client in a line, as `CLIENT LIST` has it. Others are not shown.
fn describe(call: &Call<'_>) -> String {
    let protocol = if call.state.protocol == Protocol::Resp3 { 3 } else { 2 };
    let from = call.state.from.map_or_else(|| "unix".into(), |from| from.to_string());
    let (id, name) = (call.state.id, text(&call.state.name));
    let user = user_of(call);
    format!("id={id} addr={from} name={name} db=0 resp={protocol} user={user}\n")
}
