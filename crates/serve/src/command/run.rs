//! Runs: like commands in a row become one call of a filter.
//!
//! Keys of commands that do the same with the same filter are gathered until another command comes or the bytes
//! end. Then all of them are asked or added at once, which lets the filter fetch the memory of later keys early, and
//! all replies are written, in order.

use super::table::{self, Command};
use super::{Server, Words};
use crate::resp::Reply;
use crate::store::{Entry, Family, Life, Outcome, Refusal, Scratch, Store};
use lately::Digest;
use std::sync::atomic::Ordering;

/// Keys that are gathered at most.
const MOST: usize = 4096;

/// What a run does with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Observes them in a filter.
    Add,
    /// Observes them in a filter of `BF.*`. A variant of its own is sooner compared than one with a family.
    AddBloom,
    /// Asks a filter for them.
    Contains,
    /// Asks a filter of `BF.*`.
    ContainsBloom,
    /// Asks a filter of `CF.*`.
    ContainsCuckoo,
    /// `SET … NX` with a time to live.
    SetFresh(Life),
}

impl Kind {
    /// Is it done with filters of any family?
    pub(crate) fn is_for_any_family(self) -> bool {
        matches!(self, Self::Add | Self::Contains)
    }
}

/// A command as a part of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    /// The word that names the filter.
    pub(crate) name: Option<usize>,
    pub(crate) keys: Keys,
}

/// Which words are keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    /// This one; the reply is that to a single key.
    One(usize),
    /// All from this one on; the reply is an array.
    From(usize),
}

/// The reply to one command of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    One,
    Many(usize),
}

/// The run at hand, and buffers that are used again and again. One for all connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    kind: Option<Kind>,
    name: Vec<u8>,
    digests: Vec<Digest>,
    shapes: Vec<Shape>,
    outcomes: Vec<Outcome>,
    found: Vec<bool>,
    pub(crate) scratch: Scratch,
    /// The command that was done last, and how often in a row: not counted for all to see yet.
    last: Option<(&'static Command, u64)>,
}

impl Workspace {
    /// Does a command that does this belong to the run at hand?
    pub(crate) fn takes(&self, kind: Kind, name: &[u8]) -> bool {
        // Nothing is not compared with nothing: there are processors that take long to read no bytes where there is no memory.
        self.kind == Some(kind)
            && self.digests.len() < MOST
            && self.name.len() == name.len()
            && (name.is_empty() || self.name == name)
    }

    /// Begins a run. The one before has been flushed.
    pub(crate) fn begin(&mut self, kind: Kind, name: &[u8]) {
        self.kind = Some(kind);
        self.name.clear();
        self.name.extend_from_slice(name);
    }

    /// Adds a command's keys.
    pub(crate) fn add(&mut self, store: &Store, keys: Keys, words: Words<'_>) {
        match keys {
            Keys::One(number) => {
                self.digests.push(store.digest(words.at(number)));
                self.shapes.push(Shape::One);
            }
            Keys::From(number) => {
                let keys = words.from(number);
                self.shapes.push(Shape::Many(keys.len()));
                self.digests.extend(keys.map(|key| store.digest(key)));
            }
        }
    }

    /// Counts a command that is done.
    pub(crate) fn count(&mut self, server: &Server, command: &'static Command) {
        match &mut self.last {
            Some((last, times)) if std::ptr::eq(*last, command) => *times += 1,
            _ => {
                self.settle_counts(server);
                self.last = Some((command, 1));
            }
        }
    }

    /// Adds what was counted to what all see.
    pub(crate) fn settle_counts(&mut self, server: &Server) {
        let Some((command, times)) = self.last.take() else { return };
        if let Some(at) = table::place(command.name.as_bytes()) {
            server.stats.by_command[at].fetch_add(times, Ordering::Relaxed);
        }
    }

    /// Does what the run is to do, and writes its replies.
    pub(crate) fn flush(&mut self, server: &Server, now: u64, reply: &mut Reply<'_>) {
        let Some(kind) = self.kind.take() else { return };
        server.stats.runs.record(self.digests.len() as u64);
        let done = match kind {
            Kind::Add => self.observe(&server.store, None, now),
            Kind::AddBloom => self.observe(&server.store, Some(Family::Bloom), now),
            Kind::Contains => self.contains(&server.store, None, now),
            Kind::ContainsBloom => self.contains(&server.store, Some(Family::Bloom), now),
            Kind::ContainsCuckoo => self.contains(&server.store, Some(Family::Cuckoo), now),
            Kind::SetFresh(life) => self.set_fresh(&server.store, life, now),
        };
        match (done, kind) {
            (Err(refusal), _) => {
                let error = match (refusal, kind) {
                    (Refusal::Expire, Kind::SetFresh(_)) => INVALID_EXPIRE.into(),
                    (refusal, _) => refusal.to_string(),
                };
                self.shapes.iter().for_each(|_| reply.error(&error));
            }
            (Ok(()), Kind::SetFresh(_)) => self.outcomes.iter().for_each(|outcome| match outcome {
                Outcome::Fresh => reply.ok(),
                Outcome::Seen => reply.nil(),
                other => write(reply, *other),
            }),
            (Ok(()), Kind::Add | Kind::AddBloom) => self.write_added(reply),
            (Ok(()), Kind::Contains | Kind::ContainsBloom | Kind::ContainsCuckoo) => {
                self.write_found(reply);
            }
        }
        self.digests.clear();
        self.shapes.clear();
        self.outcomes.clear();
        self.found.clear();
    }

    fn observe(&mut self, store: &Store, family: Option<Family>, now: u64) -> Result<(), Refusal> {
        let entry = store.filter_or_new_of(&self.name, family, now)?;
        Self::check(&entry, family)?;
        let mut inner = entry.lock();
        if family.is_some_and(|family| family != inner.options.family) {
            return Err(Refusal::WrongType);
        }
        inner.observe(&self.digests, now, &mut self.scratch, &mut self.outcomes);
        Ok(())
    }

    fn contains(&mut self, store: &Store, family: Option<Family>, now: u64) -> Result<(), Refusal> {
        self.found.resize(self.digests.len(), false);
        // A name that is not there, or is another kind of filter or none, has seen nothing; as in RedisBloom.
        let Some(entry) = store.filter(&self.name, now) else { return Ok(()) };
        Self::check(&entry, family)?;
        let mut inner = entry.lock();
        if family.is_none_or(|family| family == inner.options.family) {
            inner.contains(&self.digests, now, &mut self.found);
        }
        Ok(())
    }

    /// Refuses filters whose keys are numbers: what was gathered are digests. Commands that such filters know are no parts of runs,
    /// so one has come since this run began.
    fn check(entry: &Entry, family: Option<Family>) -> Result<(), Refusal> {
        match (entry.numbers(), family) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => Err(Refusal::Intervals),
            (Some(_), None) => Err(Refusal::Replaced),
        }
    }

    fn set_fresh(&mut self, store: &Store, life: Life, now: u64) -> Result<(), Refusal> {
        if !store.names.has_any(&self.digests, now) {
            return store.keys.set_fresh(
                &self.digests,
                life,
                now,
                &mut self.scratch,
                &mut self.outcomes,
            );
        }
        // The name of a filter is taken.
        for digest in &self.digests {
            if store.names.has_any(&[*digest], now) {
                self.outcomes.push(Outcome::Seen);
            } else {
                store.keys.set_fresh(
                    &[*digest],
                    life,
                    now,
                    &mut self.scratch,
                    &mut self.outcomes,
                )?;
            }
        }
        Ok(())
    }

    fn write_added(&self, reply: &mut Reply<'_>) {
        let mut rest = &self.outcomes[..];
        for shape in &self.shapes {
            let Shape::Many(keys) = *shape else {
                write(reply, rest[0]);
                rest = &rest[1..];
                continue;
            };
            let (own, after) = rest.split_at(keys);
            rest = after;
            write_all(reply, own);
        }
    }

    fn write_found(&self, reply: &mut Reply<'_>) {
        let mut rest = &self.found[..];
        for shape in &self.shapes {
            let keys = match *shape {
                Shape::One => 1,
                Shape::Many(keys) => {
                    reply.array(keys);
                    keys
                }
            };
            let (own, after) = rest.split_at(keys);
            rest = after;
            own.iter().for_each(|found| reply.boolean(*found));
        }
    }
}

/// What `SET` says of times to live that it does not take.
pub(crate) const INVALID_EXPIRE: &str = "ERR invalid expire time in 'set' command";

/// The reply to arrivals that came as one command: an array that ends at the first error, as in
/// RedisBloom.
pub(crate) fn write_all(reply: &mut Reply<'_>, outcomes: &[Outcome]) {
    let is_error = |outcome: &Outcome| matches!(outcome, Outcome::Full | Outcome::NoMemory);
    let shown = outcomes.iter().position(is_error).map_or(outcomes.len(), |at| at + 1);
    reply.array(shown);
    outcomes[..shown].iter().for_each(|outcome| write(reply, *outcome));
}

/// The reply to an arrival.
pub(crate) fn write(reply: &mut Reply<'_>, outcome: Outcome) {
    match outcome {
        Outcome::Fresh => reply.boolean(true),
        Outcome::Seen => reply.boolean(false),
        Outcome::Full => reply.error(&Refusal::Full.to_string()),
        Outcome::NoMemory => reply.error(&Refusal::NoMemory.to_string()),
    }
}
