//! Messages of a broker in the place of files: which of them are parsed together.

use super::error::SourceErrorKind;
use super::message::{Message, MessageInput, Received};
use super::source::Source;
use super::workers::{Event, Messages, Piece, Work};
use crate::options::Options;
use crate::record::Batch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// How long a message is waited for before it is looked whether the run is to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The most messages that are judged together: a broker sends no more than so many thousand before the first is
/// acknowledged, and they are acknowledged together.
const TOGETHER: usize = 512;

/// Takes messages as they come: those that are there already together, and one that comes alone at once.
pub(super) struct Deliveries {
    pub(super) source: Source,
    pub(super) options: Arc<Options>,
    pub(super) input: Box<dyn MessageInput>,
    pub(super) free: Receiver<Batch>,
    pub(super) work: Sender<Work>,
    pub(super) done: Sender<(u64, Event)>,
    pub(super) read: Arc<AtomicU64>,
}

impl Deliveries {
    pub(super) fn run(&mut self) {
        let mut number = 0;
        // The number of the first message that is not handed on yet.
        let mut first = 1;
        while let Ok(batch) = self.free.recv() {
            let (messages, failed) = self.gather(number);
            if !messages.is_empty() {
                let count = messages.len() as u64;
                self.read.store(number + 1, Ordering::Relaxed);
                let options = Arc::clone(&self.options);
                let messages = Messages { messages, first, options };
                if self.work.send((number, Piece::Messages(messages), batch)).is_err() {
                    return;
                }
                (number, first) = (number + 1, first + count);
            }
            if let Some(reason) = failed {
                self.read.store(number + 1, Ordering::Relaxed);
                let error = self.source.error(0, SourceErrorKind::Broker(reason));
                let _ = self.done.send((number, Event::Failed(error)));
                return;
            }
            if self.source.ends_here() {
                return;
            }
        }
    }

    /// The messages that are there, or the first that comes; none if the run is to end, or the input has failed.
    fn gather(&mut self, number: u64) -> (Vec<Message>, Option<String>) {
        let most = self.source.options().chunk.max(1);
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let mut is_told = false;
        loop {
            let patience = if messages.is_empty() && is_told { PATIENCE } else { Duration::ZERO };
            match self.input.next(patience) {
                Received::Message(message) => {
                    bytes += message.payload.len();
                    messages.push(message);
                    if messages.len() >= TOGETHER || bytes >= most {
                        return (messages, None);
                    }
                }
                Received::Nothing if !messages.is_empty() => return (messages, None),
                Received::Nothing if !is_told => {
                    is_told = true;
                    let _ = self.done.send((number, Event::Quiet));
                }
                Received::Nothing => {}
                Received::Failed(reason) => return (messages, Some(reason)),
            }
            if self.source.ends_here() {
                return (messages, None);
            }
        }
    }
}
