//! What commands do. No I/O: a [`Session`] takes bytes and a moment, and gives bytes.

mod admin;
mod bloom;
mod connection;
mod cuckoo;
mod expire;
mod histogram;
mod keyspace;
mod lately;
mod multi;
mod options;
mod permit;
mod run;
mod session;
mod sets;
mod table;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use histogram::{Histogram, quantile};
pub(crate) use lately::{defaults_of_ranges, options_asked};
pub(crate) use options::{check as check_options, in_members};
pub(crate) use run::Workspace;
pub(crate) use session::{Session, State};
pub(crate) use table::COMMANDS;

use crate::auth::Auth;
use crate::resp::{Reply, Span};
use crate::store::{Clock, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) auth: Auth,
    pub(crate) allow_flush: bool,
    pub(crate) stats: Stats,
    pub(crate) keeper: Arc<dyn Keeper>,
}

/// Keeps what the store remembers, somewhere.
pub(crate) trait Keeper: Send + Sync + std::fmt::Debug {
    /// Saves, and returns when that is done.
    fn save(&self, store: &Store, now: u64) -> Result<(), String>;
    /// Asks for a save that somebody else does.
    fn save_soon(&self) -> Result<(), String>;
    /// The moment of the last save, in milliseconds; that of the start before the first.
    fn last(&self) -> u64;
    /// Is one going on?
    fn is_saving(&self) -> bool;

    /// Returns once what was changed is as safe as was asked for. To be called before replies leave; if it fails, they must
    /// not, since what they say may be forgotten.
    fn commit(&self) -> Result<(), String> {
        Ok(())
    }

    /// Why nothing may be changed now, such as a disk that is full.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Does [`Keeper::commit`] write, or wait for a disk? Then it is worthwhile to commit for many at once.
    fn is_costly(&self) -> bool {
        false
    }

    /// Bytes of changes that are not on disk yet; `None` where changes are not written down.
    fn lag(&self) -> Option<u64> {
        None
    }
}

/// A keeper that keeps nothing.
#[derive(Debug)]
pub(crate) struct Nothing {
    pub(crate) since: u64,
}

const NOTHING_KEPT: &str = "ERR this server saves nothing (--durability none)";

impl Keeper for Nothing {
    fn save(&self, _: &Store, _: u64) -> Result<(), String> {
        Err(NOTHING_KEPT.into())
    }

    fn save_soon(&self) -> Result<(), String> {
        Err(NOTHING_KEPT.into())
    }

    fn last(&self) -> u64 {
        self.since
    }

    fn is_saving(&self) -> bool {
        false
    }
}

/// Counts of the whole server.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) since: u64,
    pub(crate) connected: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    /// Handshakes of TLS that failed, and clients that spoke TLS to a plain port or the other way round.
    pub(crate) failed_tls: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Commands by their place in [`COMMANDS`].
    pub(crate) by_command: Vec<AtomicU64>,
    /// How long the commands of one read took, in nanoseconds.
    pub(crate) turns: Histogram,
    /// Keys that were asked or added at once.
    pub(crate) runs: Histogram,
    ids: AtomicU64,
    /// Connections that ended because a command panicked.
    pub(crate) panics: AtomicU64,
    notices: Mutex<Notices>,
}

/// What is to be said to the operator.
#[derive(Debug, Default)]
struct Notices {
    waiting: Vec<String>,
    left_out: u64,
}

/// Notices that are kept until somebody takes them; further ones are only counted.
const MOST_NOTICES: usize = 8;

/// Bounds of the histograms: nanoseconds, and keys.
const TURNS: &[u64] = &[
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    100_000_000,
    1_000_000_000,
];
const RUNS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096];

impl Stats {
    /// Nothing counted yet.
    pub(crate) fn begun(since: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            since,
            connected: zero(),
            connections: zero(),
            rejected: zero(),
            failed_tls: zero(),
            commands: zero(),
            by_command: COMMANDS.iter().map(|_| zero()).collect(),
            turns: Histogram::new(TURNS),
            runs: Histogram::new(RUNS),
            ids: zero(),
            panics: zero(),
            notices: Mutex::default(),
        }
    }

    /// Says something to the operator, soon.
    pub(crate) fn notice(&self, what: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.waiting.len() < MOST_NOTICES {
            notices.waiting.push(what);
        } else {
            notices.left_out += 1;
        }
    }

    /// Takes what is to be said.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let Notices { mut waiting, left_out } = std::mem::take(&mut *notices);
        if left_out > 0 {
            waiting.push(format!("{left_out} more notices like these within a second"));
        }
        waiting
    }

    /// A number for another client.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Counts one up.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The words of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Words<'a> {
    pub(crate) fn new(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buffer, spans }
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The word of this number, which must be there.
    pub(crate) fn at(&self, number: usize) -> &'a [u8] {
        let (from, to) = self.spans[number];
        &self.buffer[from..to]
    }

    /// The first word with whatever comes behind it, and its length.
    pub(crate) fn first_and_beyond(&self) -> (&'a [u8], usize) {
        let (from, to) = self.spans[0];
        (&self.buffer[from..], to - from)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&'a [u8]> {
        (number < self.len()).then(|| self.at(number))
    }

    /// Is the word of this number there, and this, in letters of either case?
    #[inline]
    pub(crate) fn is(&self, number: usize, word: &str) -> bool {
        self.get(number).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The words from this number on.
    pub(crate) fn from(&self, number: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let buffer = self.buffer;
        let spans = self.spans.get(number..).unwrap_or(&[]);
        spans.iter().map(move |&(from, to)| &buffer[from..to])
    }
}

/// One command being done.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Server,
    pub(crate) state: &'a mut State,
    pub(crate) words: Words<'a>,
    pub(crate) now: u64,
    pub(crate) reply: Reply<'a>,
}

impl<'a> Call<'a> {
    pub(crate) fn store(&self) -> &'a Store {
        &self.server.store
    }

    /// Replies with a word's own error.
    pub(crate) fn syntax_error(&mut self) {
        self.reply.error("ERR syntax error");
    }

    /// Replies with an error that is shown as it is.
    pub(crate) fn refuse(&mut self, error: impl std::fmt::Display) {
        self.reply.error(&error.to_string());
    }
}

/// Words in a message, as far as they are text.
pub(crate) fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}
