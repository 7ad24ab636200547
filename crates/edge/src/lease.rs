//! Who may act where only one may: two coordinators, or two processes with one identity, would undo each other's work.
//!
//! Whoever wants to act asks, and acts if nobody answers. Who acts answers, and says so again from time to time; of two
//! that do (a network that was cut in two has healed), the one that began earlier yields. The machine that ends without
//! a word is replaced when its last will says so, or when it has been silent for long enough.
//!
//! Time is in milliseconds and does not jump: no clock that is set, and none that runs fast.

use crate::Millis;
use crate::message::Message;
use alloc::vec::Vec;

/// How long a question waits for an answer.
pub const ASK: Millis = 500;
/// Who acts says so this often.
pub const RENEW: Millis = 5_000;
/// Who is silent for so long acts no more.
pub const LOST: Millis = 16_000;
/// The epoch of a last will, which is written before it is known.
const WILL: u64 = 1;

/// The way one of several comes to act, and stops.
///
/// # Guarantee
/// Of those that hear each other, one acts from [`ASK`] after the first question on; until then, nobody that has asked
/// does. When two that did not hear each other meet, one of them yields with the first message.
#[derive(Clone, Debug)]
pub struct Lease {
    me: u64,
    standing: Standing,
    /// The highest epoch heard of.
    seen: u64,
    /// When a question is answered by silence, the next renewal is due, or the other was last heard of.
    moment: Millis,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has asked, and waits for an answer.
    Asking,
    /// It acts, in this epoch.
    Acts(u64),
    /// Another one does.
    Waits {
        /// Which.
        holder: u64,
    },
}

impl Lease {
    /// One that has not asked yet. `me` is a random number that differs in each start.
    pub fn new(me: u64) -> Self {
        Self { me, standing: Standing::Asking, seen: WILL, moment: Millis::MAX }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Its name.
    pub fn me(&self) -> u64 {
        self.me
    }

    /// The connection is there, for the first time or again.
    pub fn connected(&mut self, now: Millis, out: &mut Vec<Message>) {
        match self.standing {
            Standing::Acts(epoch) => self.renew(now, epoch, out),
            Standing::Asking | Standing::Waits { .. } => self.ask(now, out),
        }
    }

    fn ask(&mut self, now: Millis, out: &mut Vec<Message>) {
        self.standing = Standing::Asking;
        // Not all who wait ask at once, or at least not all act at once.
        self.moment = now.saturating_add(ASK + self.me % 128);
        out.push(Message::Lease { holder: self.me, epoch: 0, held: false });
    }

    fn renew(&mut self, now: Millis, epoch: u64, out: &mut Vec<Message>) {
        self.moment = now.saturating_add(RENEW);
        out.push(Message::Lease { holder: self.me, epoch, held: true });
    }

    /// Lets time pass; to be called several times a second.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Message>) {
        match self.standing {
            Standing::Asking if now >= self.moment => {
                // By the time, as another one may have begun that it has not heard of.
                let epoch = now.max(self.seen.saturating_add(1));
                self.standing = Standing::Acts(epoch);
                self.renew(now, epoch, out);
            }
            Standing::Acts(epoch) if now >= self.moment => self.renew(now, epoch, out),
            Standing::Waits { .. } if now.saturating_sub(self.moment) >= LOST => self.ask(now, out),
            _ => {}
        }
    }

    /// Takes a [`Message::Lease`].
    pub fn handle(&mut self, now: Millis, message: &Message, out: &mut Vec<Message>) {
        let Message::Lease { holder, epoch, held } = *message else { return };
        if holder == self.me {
            return;
        }
        match (held, self.standing) {
            (true, Standing::Acts(mine)) if (epoch, holder) < (mine, self.me) => {
                self.renew(now, mine, out);
            }
            (true, _) => {
                self.seen = self.seen.max(epoch);
                (self.standing, self.moment) = (Standing::Waits { holder }, now);
            }
            // A question.
            (false, Standing::Acts(mine)) if epoch == 0 => self.renew(now, mine, out),
            // The one that acted has ended.
            (false, Standing::Waits { holder: other }) if epoch > 0 && other == holder => {
                self.ask(now, out);
            }
            (false, _) => {}
        }
    }

    /// What is to be said when it ends, and what its last will says.
    pub fn farewell(&self) -> Message {
        Message::Lease { holder: self.me, epoch: WILL, held: false }
    }
}
