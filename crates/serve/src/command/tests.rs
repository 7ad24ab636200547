//! The session as a client sees it, but for the network.

mod differential;
mod intervals;
mod oracle;
mod pieces;
mod replies;
mod transfer;
mod users;

use super::{Nothing, Server, Session, Stats, Workspace};
use crate::auth::Auth;
use crate::config::Config;
use crate::store::{Clock, Store};
use std::sync::Arc;

/// The moment at which tests begin.
const NOW: u64 = 1_800_000_000_000;

/// A server that keeps nothing, with this configuration.
fn server(config: &str) -> Server {
    let config = Config::parse(config).unwrap();
    let seed = config.seed.unwrap_or(7);
    let auth = Auth::new(config.users().unwrap());
    Server {
        store: Store::new(seed, config.memory, config.max_filters, config.templates, config.keys),
        clock: Clock::new(NOW, 0, 0),
        auth,
        allow_flush: config.allow_flush,
        stats: Stats::begun(NOW),
        keeper: Arc::new(Nothing { since: NOW }),
    }
}

/// A client of a server, and what a worker lends it.
struct Client<'a> {
    server: &'a Server,
    session: Session,
    work: Workspace,
    now: u64,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server) -> Self {
        let session = Session::new(server, server.stats.next_id(), None);
        Self { server, session, work: Workspace::default(), now: NOW }
    }

    /// The replies to bytes.
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.session.feed(self.server, &mut self.work, self.now, bytes, &mut out);
        out
    }

    /// The reply to a command in one line.
    fn ask(&mut self, line: &str) -> String {
        let out = self.feed(&request(&words(line)));
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// The words of a line; `""` is an empty one.
fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| if word == "\"\"" { Vec::new() } else { word.as_bytes().to_vec() })
        .collect()
}

/// A command as clients send it.
fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
