//! Messages that were handed over and not acknowledged yet.

use std::collections::VecDeque;

/// The messages of a session that we have and the broker believes on their way, oldest first.
///
/// A connection may be lost and made again meanwhile. The broker then delivers all of them again, under the numbers
/// they had; those are not handed over twice, and what has been dealt with by then is acknowledged at last.
#[derive(Debug)]
pub(super) struct Unacknowledged<A> {
    messages: VecDeque<Waiting<A>>,
    last: u64,
    /// How many of them are to be delivered again.
    lost: usize,
}

#[derive(Debug)]
struct Waiting<A> {
    token: u64,
    /// The broker's number of it.
    number: u16,
    /// What acknowledges it on this connection; `None` until it is delivered again.
    receipt: Option<A>,
    /// It is dealt with.
    is_done: bool,
}

/// What is to be done with a message that was delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery<A> {
    /// Hand it over, under this token.
    New(u64),
    /// It has been handed over before, and is still being dealt with.
    Again,
    /// It has been dealt with: acknowledge it.
    Done(A),
}

impl<A> Default for Unacknowledged<A> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), last: 0, lost: 0 }
    }
}

impl<A> Unacknowledged<A> {
    /// A message was delivered, under the broker's `number`, unless nobody wants to be told that it arrived.
    pub(super) fn deliver(&mut self, delivered: Option<(u16, A)>) -> Delivery<A> {
        let Some((number, receipt)) = delivered else {
            self.last += 1;
            return Delivery::New(self.last);
        };
        let mut known = None;
        if self.lost > 0 {
            known = self.messages.iter().position(|one| one.number == number);
        }
        let Some(at) = known else {
            self.last += 1;
            let (token, receipt) = (self.last, Some(receipt));
            self.messages.push_back(Waiting { token, number, receipt, is_done: false });
            return Delivery::New(token);
        };
        let was_lost = self.messages[at].receipt.is_none();
        self.lost -= usize::from(was_lost);
        if self.messages[at].is_done {
            self.messages.remove(at);
            return Delivery::Done(receipt);
        }
        self.messages[at].receipt = Some(receipt);
        Delivery::Again
    }

    /// All messages up to this one are dealt with: what acknowledges them, for those that can be by now.
    pub(super) fn acknowledge(&mut self, token: u64) -> Vec<A> {
        let mut receipts = Vec::new();
        let count = self.messages.partition_point(|one| one.token <= token);
        let mut at = 0;
        for _ in 0..count {
            if let Some(receipt) = self.messages[at].receipt.take() {
                receipts.push(receipt);
                self.messages.remove(at);
            } else {
                self.messages[at].is_done = true;
                at += 1;
            }
        }
        receipts
    }

    /// The connection is lost.
    pub(super) fn lose(&mut self) {
        self.messages.iter_mut().for_each(|one| one.receipt = None);
        self.lost = self.messages.len();
    }

    /// The broker has lost the session, and does not deliver anything again.
    pub(super) fn forget(&mut self) {
        self.messages.clear();
        self.lost = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_not_handed_over_again() {
        let mut all = Unacknowledged::default();
        assert_eq!(all.deliver(Some((7, "a"))), Delivery::New(1));
        assert_eq!(all.deliver(None::<(u16, &str)>), Delivery::New(2));
        assert_eq!(all.deliver(Some((8, "b"))), Delivery::New(3));
        assert_eq!(all.deliver(Some((9, "c"))), Delivery::New(4));
        assert_eq!(all.acknowledge(2), ["a"]);
        // A number is free again when it was acknowledged.
        assert_eq!(all.deliver(Some((7, "d"))), Delivery::New(5));
        all.lose();
        // Dealt with while there is no connection.
        assert!(all.acknowledge(3).is_empty());
        assert_eq!(all.deliver(Some((8, "b again"))), Delivery::Done("b again"));
        assert_eq!(all.deliver(Some((9, "c again"))), Delivery::Again);
        // One that is not there yet does not keep others back.
        assert_eq!(all.acknowledge(5), ["c again"]);
        assert_eq!(all.deliver(Some((7, "d again"))), Delivery::Done("d again"));
        assert_eq!(all.deliver(Some((9, "e"))), Delivery::New(6));
        all.forget();
        assert_eq!(all.deliver(Some((9, "f"))), Delivery::New(7));
        assert!(all.acknowledge(6).is_empty());
        assert_eq!(all.acknowledge(7), ["f"]);
    }

    /// Against a broker that loses connections at random: each message is handed over once, and acknowledged
    /// once on the connection that delivered it last.
    #[test]
    fn a_broker_that_loses_connections() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut all = Unacknowledged::default();
            // By the broker's number: the message, and whether it was delivered on this connection.
            let mut broker: VecDeque<(u16, u32, bool)> =
                (0..50).map(|n| (n, n.into(), false)).collect();
            let mut handed = Vec::new();
            let mut acknowledged = Vec::new();
            let mut connection = 0;
            let mut done = 0;
            while !broker.is_empty() {
                match random.u8(0..10) {
                    0 => {
                        all.lose();
                        connection += 1;
                        broker.iter_mut().for_each(|one| one.2 = false);
                    }
                    1..6 => {
                        let next = broker.iter_mut().find(|one| !one.2);
                        let Some((number, message, sent)) = next else { continue };
                        *sent = true;
                        match all.deliver(Some((*number, (connection, *message)))) {
                            Delivery::New(token) => handed.push((token, *message)),
                            Delivery::Again => {}
                            Delivery::Done(receipt) => acknowledged.push(receipt),
                        }
                    }
                    _ => {
                        done = (done + random.u64(0..4)).min(handed.len() as u64);
                        acknowledged.extend(all.acknowledge(done));
                    }
                }
                for (on, message) in acknowledged.drain(..) {
                    assert_eq!(on, connection, "acknowledged on a connection that is gone");
                    let at = broker.iter().position(|one| one.1 == message && one.2).unwrap();
                    broker.remove(at);
                }
            }
            let messages: Vec<_> = handed.iter().map(|one| one.1).collect();
            assert_eq!(messages, (0..50).collect::<Vec<u32>>(), "seed {seed}");
        }
    }
}
