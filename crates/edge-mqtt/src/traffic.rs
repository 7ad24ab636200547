//! What went over a connection, and what was dropped.

use lately_edge::message::Kind;
use std::collections::BTreeMap;

/// Counts of one connection, or of several together.
///
/// Every message that arrived is in exactly one of `received` and `dropped`, but those of [`Traffic::UNSENT`],
/// which were to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages handed to the broker's connection, by kind.
    sent: BTreeMap<Kind, u64>,
    /// Messages that arrived and could be read, by kind.
    received: BTreeMap<Kind, u64>,
    /// Messages that were not used, by reason.
    dropped: BTreeMap<&'static str, u64>,
    /// Readings that were dropped before they got to the broker, as too many messages waited.
    pub readings_dropped: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received, of those dropped as well.
    pub bytes_received: u64,
    /// Connections made, the first one included.
    pub connections: u64,
}

impl Traffic {
    /// Reasons for which messages did not get to the broker: no room to keep them, longer than it takes, or
    /// not allowed by its access list.
    pub const UNSENT: [&'static str; 3] = ["queue-full", "too-long-to-send", "not-authorised"];

    pub(crate) fn note_sent(&mut self, kind: Kind, bytes: usize) {
        *self.sent.entry(kind).or_default() += 1;
        self.bytes_sent += bytes as u64;
    }

    pub(crate) fn note_received(&mut self, kind: Kind) {
        *self.received.entry(kind).or_default() += 1;
    }

    pub(crate) fn note_dropped(&mut self, reason: &'static str) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    pub(crate) fn note_denied(&mut self, count: u64) {
        *self.dropped.entry("not-authorised").or_default() += count;
    }

    /// Messages of a kind that were sent.
    pub fn sent(&self, kind: Kind) -> u64 {
        self.sent.get(&kind).copied().unwrap_or(0)
    }

    /// Messages of a kind that arrived.
    pub fn received(&self, kind: Kind) -> u64 {
        self.received.get(&kind).copied().unwrap_or(0)
    }

    /// All messages sent.
    pub fn all_sent(&self) -> u64 {
        self.sent.values().sum()
    }

    /// All messages that arrived and could be read.
    pub fn all_received(&self) -> u64 {
        self.received.values().sum()
    }

    /// Messages that were not used, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.dropped.iter().map(|(&reason, &count)| (reason, count))
    }

    /// Messages not used for a reason.
    pub fn dropped_for(&self, reason: &str) -> u64 {
        self.dropped.get(reason).copied().unwrap_or(0)
    }

    /// Adds another connection's counts.
    pub fn add(&mut self, other: &Self) {
        for (into, from) in [(&mut self.sent, &other.sent), (&mut self.received, &other.received)] {
            for (&kind, count) in from {
                *into.entry(kind).or_default() += count;
            }
        }
        for (&reason, count) in &other.dropped {
            *self.dropped.entry(reason).or_default() += count;
        }
        self.readings_dropped += other.readings_dropped;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections += other.connections;
    }
}
