//! The seam to brokers: what a connection to one is to the pipeline.

use crate::record::Envelope;
use std::sync::Arc;
use std::time::Duration;

/// A message of a broker: one or more records.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its records, in any format.
    pub payload: Vec<u8>,
    /// What surrounds it.
    pub envelope: Arc<Envelope>,
    /// Its number among those that this input has handed over, ascending.
    pub token: u64,
}

/// What an input has.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// Nothing, for as long as it was waited for.
    Nothing,
    /// It cannot be read any further, and why.
    Failed(String),
}

/// Messages of a broker that were not acknowledged yet.
///
/// # Contract
/// - Each message is handed over once for each time that the broker delivers it anew. One that is delivered again
///   because a connection was lost before it could be acknowledged is not handed over twice by one input.
/// - Messages that nobody has acknowledged are delivered again, to this process or the next.
/// - A connection that is lost is made again, by itself; only what nobody can mend is [`Received::Failed`].
pub trait MessageInput: Send {
    /// The next message, waiting for this long at most.
    fn next(&mut self, patience: Duration) -> Received;

    /// What acknowledges messages, for the thread that writes.
    fn acknowledger(&self) -> Box<dyn Acknowledge>;
}

/// Acknowledges messages of an input.
pub trait Acknowledge: Send {
    /// All messages up to this one are dealt with: the broker need not deliver them again.
    fn acknowledge(&mut self, token: u64);
}
