//! Messages of a stream that were handed over, and those that were not acknowledged yet.

use async_nats::jetstream::Message;
use std::collections::VecDeque;

/// Where a message is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its number in the stream,
    pub(super) stream: u64,
    /// that among the deliveries of the consumer,
    consumer: u64,
    /// and when it was published, in nanoseconds since 1970.
    pub(super) published: i128,
}

impl Place {
    /// `None` for what is no message of a stream.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let info = message.info().ok()?;
        let published = info.published.unix_timestamp_nanos();
        Some(Self { stream: info.stream_sequence, consumer: info.consumer_sequence, published })
    }
}

/// What we have had of a stream, by the numbers of the stream.
pub(super) struct Handed<A> {
    /// The last message that was handed over,
    last: u64,
    /// and acknowledged.
    acknowledged: u64,
    /// The number of the delivery that comes next, if it is known.
    next: Option<u64>,
    /// What acknowledges those that are not yet: `None` until they are delivered again.
    waiting: VecDeque<(u64, Option<A>)>,
}

/// What is to be done with a message that was delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery<A> {
    /// Hand it over.
    New,
    /// It has been handed over before, and is still being dealt with.
    Again,
    /// It has been dealt with: acknowledge it once more.
    Done(A),
    /// Some before it went astray.
    Gap,
}

impl<A> Default for Handed<A> {
    fn default() -> Self {
        Self { last: 0, acknowledged: 0, next: None, waiting: VecDeque::new() }
    }
}

impl<A> Handed<A> {
    pub(super) fn deliver(&mut self, at: Place, reply: A) -> Delivery<A> {
        if self.next.is_some_and(|next| next != at.consumer) {
            return Delivery::Gap;
        }
        self.next = Some(at.consumer + 1);
        if at.stream > self.last {
            self.last = at.stream;
            self.waiting.push_back((at.stream, Some(reply)));
            return Delivery::New;
        }
        if at.stream <= self.acknowledged {
            return Delivery::Done(reply);
        }
        if let Ok(place) = self.waiting.binary_search_by_key(&at.stream, |one| one.0) {
            self.waiting[place].1 = Some(reply);
        }
        Delivery::Again
    }

    /// All messages up to this one are dealt with: what acknowledges those that can be by now.
    pub(super) fn acknowledge(&mut self, token: u64) -> Vec<A> {
        self.acknowledged = self.acknowledged.max(token);
        let count = self.waiting.partition_point(|one| one.0 <= token);
        self.waiting.drain(..count).filter_map(|one| one.1).collect()
    }

    /// The consumer was set back; `first` is the number of its next delivery, if that is known.
    ///
    /// What acknowledged a message before names a delivery that the consumer does not know any more. Where an
    /// acknowledgement stands for all before it, the server would take those of the deliveries to come for old ones.
    pub(super) fn rewind(&mut self, first: Option<u64>) {
        self.next = first;
        self.waiting.iter_mut().for_each(|one| one.1 = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a server that loses deliveries, acknowledgements and connections at random: each message is handed over
    /// once, in order, and all are acknowledged at last.
    #[test]
    fn a_server_that_loses_what_it_sends() {
        const ALL: u64 = 50;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut handed = Handed::default();
            // The server: what is acknowledged, what is delivered next, and the number of the delivery.
            let mut acknowledged = vec![false; ALL as usize + 1];
            acknowledged[0] = true;
            let floor = |acknowledged: &[bool]| {
                acknowledged.iter().take_while(|done| **done).count() as u64
            };
            let (mut next, mut delivery, mut round) = (1, 1, 0);
            handed.rewind(Some(delivery));
            let (mut all, mut done) = (Vec::new(), 0);
            while acknowledged.iter().any(|done| !done) {
                let mut replies: Vec<(u64, u32)> = Vec::new();
                let mut is_lost = false;
                match random.u8(0..10) {
                    0 => is_lost = true,
                    1..7 if next <= ALL => {
                        let at = Place { stream: next, consumer: delivery, published: 0 };
                        (next, delivery) = (next + 1, delivery + 1);
                        if random.u8(0..10) > 0 {
                            match handed.deliver(at, (at.stream, round)) {
                                Delivery::New => all.push(at.stream),
                                Delivery::Again => {}
                                Delivery::Done(reply) => replies.push(reply),
                                Delivery::Gap => is_lost = true,
                            }
                        }
                    }
                    // Nothing comes although more was asked for: it is asked again.
                    7 => is_lost = next > ALL,
                    _ => {
                        done = (done + random.u64(0..4)).min(all.len() as u64);
                        replies.extend(handed.acknowledge(done));
                    }
                }
                for (reply, of) in replies.into_iter().filter(|_| random.u8(0..10) > 0) {
                    assert_eq!(of, round, "an acknowledgement of a delivery that is forgotten");
                    acknowledged[reply as usize] = true;
                }
                if is_lost {
                    next = floor(&acknowledged);
                    // As servers do that set a consumer back, and where another one of its name is made.
                    (delivery, round) = (1, round + 1);
                    handed.rewind(Some(delivery));
                }
            }
            assert_eq!(all, (1..=ALL).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
