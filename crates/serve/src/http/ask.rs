//! Commands to a session, and its replies.

use super::answer::Problem;
use crate::command::Session;
use crate::net::{Service, Shared, clock};
use crate::users::User;
use hyper::StatusCode;
use std::cell::RefCell;
use std::net::IpAddr;

/// Commands that are done before others have their turn.
const TURN: usize = 4096;

/// One word of a command.
pub(super) type Word<'a> = &'a [u8];

/// A reply to a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Text(Vec<u8>),
    Error(String),
    Integer(i64),
    Boolean(bool),
    Nil,
    Many(Vec<Reply>),
}

/// What the headers of a request say of who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials<'a> {
    /// The password of a user who is not named.
    Bearer(&'a [u8]),
    /// A name, and a password.
    Basic(Vec<u8>, Vec<u8>),
}

/// Whoever a request came from, and the session that does what it asks for.
pub(super) struct Asker<'a> {
    pub(super) service: &'a Service,
    shared: &'a RefCell<Shared>,
    session: Session,
}

impl<'a> Asker<'a> {
    /// Begins a session of the user that these credentials are of.
    pub(super) async fn begin(
        service: &'a Service,
        shared: &'a RefCell<Shared>,
        from: Option<IpAddr>,
        credentials: Option<Credentials<'_>>,
    ) -> Result<Self, Problem> {
        let (server, now) = (&service.server, clock(&service.server));
        let refused = |why: &str| Problem::new(StatusCode::UNAUTHORIZED, why);
        let (user, why) = match credentials {
            None => (
                server.auth.anyone(),
                "this server has passwords: send yours as `Authorization: Bearer PASSWORD`",
            ),
            Some(given) => (
                match given {
                    Credentials::Bearer(token) => server.auth.by_token(token, from, now),
                    Credentials::Basic(name, password) => {
                        server.auth.check(&name, &password, from, now)
                    }
                },
                "the password is wrong, or this address has sent three wrong ones within a second",
            ),
        };
        let user = user.ok_or_else(|| refused(why))?;
        let session = Session::of_user(server, server.stats.next_id(), from, user);
        let mut asker = Self { service, shared, session };
        match asker.one(&[b"HELLO", b"3"]).await? {
            Reply::Error(error) => Err(Problem::of_command(&error)),
            _ => Ok(asker),
        }
    }

    /// Refuses names that the user may not use.
    pub(super) fn permit(&self, name: &[u8]) -> Result<(), Problem> {
        if self.has_name(name) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "this user may not use this name: its `filters` in the file of users say which it may",
        ))
    }

    /// May the user use this name?
    pub(super) fn has_name(&self, name: &[u8]) -> bool {
        self.session.user().is_some_and(|user| user.has_name(name))
    }

    /// May the user use all names?
    pub(super) fn has_all_names(&self) -> bool {
        self.session.user().is_some_and(User::has_all_names)
    }

    pub(super) fn now(&self) -> u64 {
        clock(&self.service.server)
    }

    /// The reply to a command.
    pub(super) async fn one(&mut self, words: &[Word<'_>]) -> Result<Reply, Problem> {
        let mut replies = self.all(std::iter::once(words.to_vec())).await?;
        replies.pop().ok_or_else(broken)
    }

    /// The replies to commands, in order.
    pub(super) async fn all<'w>(
        &mut self,
        mut commands: impl Iterator<Item = Vec<Word<'w>>>,
    ) -> Result<Vec<Reply>, Problem> {
        let mut replies = Vec::new();
        let mut input = Vec::new();
        loop {
            input.clear();
            let mut gathered = 0;
            for words in commands.by_ref().take(TURN) {
                write_command(&words, &mut input);
                gathered += 1;
            }
            if gathered == 0 {
                return Ok(replies);
            }
            let expected = replies.len() + gathered;
            let mut rest = &input[..];
            while !rest.is_empty() {
                let fed = self.feed(rest, &mut replies)?;
                rest = &rest[fed..];
            }
            if replies.len() != expected {
                return Err(broken());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Does what it can of these commands: the bytes that are done with.
    fn feed(&mut self, input: &[u8], replies: &mut Vec<Reply>) -> Result<usize, Problem> {
        let server = &self.service.server;
        let mut shared = self.shared.borrow_mut();
        let Shared { output, work, .. } = &mut *shared;
        output.clear();
        let fed = self.session.feed(server, work, clock(server), input, output);
        let mut rest = &output[..];
        while !rest.is_empty() {
            let (reply, after) = read_reply(rest).ok_or_else(broken)?;
            replies.push(reply);
            rest = after;
        }
        output.shrink_to(1 << 20);
        // A session that ends, or takes nothing, has said why.
        match (fed.consumed, replies.last()) {
            (0, Some(Reply::Error(error))) => Err(Problem::of_command(error)),
            (0, _) => Err(broken()),
            (consumed, _) => Ok(consumed),
        }
    }
}

/// What cannot be.
fn broken() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server's reply to its own command is not one; please report this",
    )
}

fn write_command(words: &[Word<'_>], out: &mut Vec<u8>) {
    let mut number = itoa::Buffer::new();
    let mut header = |kind: u8, value: usize, out: &mut Vec<u8>| {
        out.push(kind);
        out.extend_from_slice(number.format(value).as_bytes());
        out.extend_from_slice(b"\r\n");
    };
    header(b'*', words.len(), out);
    for word in words {
        header(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads a reply of RESP3, and what is behind it.
fn read_reply(bytes: &[u8]) -> Option<(Reply, &[u8])> {
    let end = memchr::memchr(b'\r', bytes)?;
    let (line, mut rest) = (bytes.get(1..end)?, bytes.get(end + 2..)?);
    let text = || String::from_utf8_lossy(line).into_owned();
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    let reply = match bytes[0] {
        b'+' => Reply::Text(line.to_vec()),
        b'-' => Reply::Error(text()),
        b':' => Reply::Integer(number()?),
        b'#' => Reply::Boolean(line == b"t"),
        b'_' => Reply::Nil,
        b'$' => {
            let length = usize::try_from(number()?).ok()?;
            let bytes = rest.get(..length)?;
            rest = rest.get(length + 2..)?;
            Reply::Text(bytes.to_vec())
        }
        kind @ (b'*' | b'%') => {
            let length = usize::try_from(number()?).ok()? * if kind == b'%' { 2 } else { 1 };
            let mut many = Vec::new();
            for _ in 0..length {
                let (reply, after) = read_reply(rest)?;
                many.push(reply);
                rest = after;
            }
            Reply::Many(many)
        }
        _ => return None,
    };
    Some((reply, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let (reply, rest) =
            read_reply(b"%1\r\n+a\r\n*3\r\n:7\r\n#t\r\n_\r\n$2\r\n\r\n\r\n").unwrap();
        let inner = Reply::Many(vec![Reply::Integer(7), Reply::Boolean(true), Reply::Nil]);
        assert_eq!(reply, Reply::Many(vec![Reply::Text(b"a".to_vec()), inner]));
        assert_eq!(read_reply(rest).unwrap(), (Reply::Text(b"\r\n".to_vec()), &b""[..]));
        for torn in ["", "+a", "$5\r\nab\r\n", "*2\r\n:1\r\n", "?\r\n"] {
            assert!(read_reply(torn.as_bytes()).is_none(), "{torn}");
        }
    }
}
