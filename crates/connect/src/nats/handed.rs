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
            // The first one since the consumer was set back: where an acknowledgement stands for all before it, the server
            // takes those of earlier deliveries for old ones after that of a later one.
            self.waiting[place].1.get_or_insert(reply);
        }
        Delivery::Again
    }

    /// All messages up to this one are dealt with: what acknowledges those that can be by now.
    pub(super) fn acknowledge(&mut self, token: u64) -> Vec<A> {
        self.acknowledged = self.acknowledged.max(token);
        let count = self.waiting.partition_point(|one| one.0 <= token);
        self.waiting.drain(..count).filter_map(|one| one.1).collect()
    }

    /// Is all that was handed over dealt with?
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The consumer was set back; `first` is the number of its next delivery, if that is known.
    ///
    /// What acknowledged a message before names a delivery that the consumer does not know any more, and which may have a
    /// higher number than those to come.
    pub(super) fn rewind(&mut self, first: Option<u64>) {
        self.next = first;
        self.waiting.iter_mut().for_each(|one| one.1 = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 50;

    /// A server as JetStream is one: what it has delivered, and what of that is acknowledged.
    struct Server {
        /// Does an acknowledgement stand for all messages before it?
        by_prefix: bool,
        acknowledged: Vec<bool>,
        /// The message and the number of the delivery that come next.
        next: u64,
        delivery: u64,
        /// The last delivery that an acknowledgement stood for.
        floor: u64,
        /// How often it was set back.
        round: u32,
    }

    impl Server {
        /// The number of the message up to which all is acknowledged.
        fn prefix(&self) -> u64 {
            self.acknowledged.iter().take_while(|done| **done).count() as u64 - 1
        }

        fn set_back(&mut self) {
            self.next = self.prefix() + 1;
            // As servers do that set a consumer back, and where another one of its name is made.
            (self.delivery, self.floor) = (1, 0);
            self.round += 1;
        }

        /// Takes an acknowledgement of a message, by the number of its delivery.
        fn take(&mut self, message: u64, delivery: u64) {
            if !self.by_prefix {
                self.acknowledged[message as usize] = true;
            } else if delivery > self.floor && message > self.prefix() {
                self.acknowledged[..=message as usize].fill(true);
                self.floor = delivery;
            }
        }
    }

    /// Against a server that loses deliveries, acknowledgements and connections at random, and delivers again what waits
    /// for long: each message is handed over once, in order, and all are acknowledged at last.
    #[test]
    fn a_server_that_loses_what_it_sends() {
        for seed in 0..400 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut handed = Handed::default();
            let mut acknowledged = vec![false; ALL as usize + 1];
            acknowledged[0] = true;
            let (by_prefix, next, delivery) = (seed % 2 == 0, 1, 1);
            let mut server = Server { by_prefix, acknowledged, next, delivery, floor: 0, round: 0 };
            handed.rewind(Some(1));
            let (mut all, mut done) = (Vec::new(), 0);
            while server.prefix() < ALL {
                let mut replies = Vec::new();
                let mut is_lost = false;
                match random.u8(0..10) {
                    0 => is_lost = true,
                    1..7 => {
                        let waits = server.prefix() + 1..server.next;
                        let message = match random.u8(0..8) {
                            0 if !waits.is_empty() => random.u64(waits),
                            _ if server.next <= ALL => server.next,
                            // Nothing comes although more was asked for: it is asked again.
                            _ => {
                                is_lost = true;
                                0
                            }
                        };
                        let at = Place { stream: message, consumer: server.delivery, published: 0 };
                        server.delivery += u64::from(message > 0);
                        server.next = server.next.max(message + 1);
                        if message > 0 && random.u8(0..10) > 0 {
                            match handed.deliver(at, (message, at.consumer, server.round)) {
                                Delivery::New => all.push(message),
                                Delivery::Again => {}
                                Delivery::Done(reply) => replies.push(reply),
                                Delivery::Gap => is_lost = true,
                            }
                        }
                    }
                    _ => {
                        done = (done + random.u64(0..4)).min(all.len() as u64);
                        replies = handed.acknowledge(done);
                        if by_prefix {
                            replies = replies.split_off(replies.len().saturating_sub(1));
                        }
                    }
                }
                for (message, delivery, round) in replies {
                    assert_eq!(round, server.round, "of a delivery that is forgotten");
                    if random.u8(0..10) > 0 {
                        server.take(message, delivery);
                    }
                }
                if is_lost {
                    server.set_back();
                    handed.rewind(Some(server.delivery));
                }
            }
            assert_eq!(all, (1..=ALL).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    /// What is delivered again as it waits for long does not keep others from being acknowledged.
    #[test]
    fn a_message_is_acknowledged_by_its_first_delivery() {
        let mut handed = Handed::default();
        handed.rewind(Some(1));
        let place = |stream, consumer| Place { stream, consumer, published: 0 };
        assert_eq!(handed.deliver(place(1, 1), 1), Delivery::New);
        assert_eq!(handed.deliver(place(2, 2), 2), Delivery::New);
        assert_eq!(handed.deliver(place(1, 3), 3), Delivery::Again);
        assert_eq!(handed.acknowledge(1), [1]);
        assert!(!handed.is_idle());
        assert_eq!(handed.acknowledge(2), [2]);
        assert!(handed.is_idle());
    }
}
