//! `MULTI`: commands that are gathered, and done at `EXEC`.
//!
//! They are done one after the other. Commands of other clients may come in between: nothing is isolated.

use super::{Call, Words};
use crate::resp::Span;

/// Bytes of commands that are gathered at most.
const MOST: usize = 64 << 20;

/// The commands of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    bytes: Vec<u8>,
    /// Of the words of all commands, counted from the beginning of their command.
    spans: Vec<Span>,
    /// For each command, where its bytes and its words end.
    ends: Vec<(usize, usize)>,
    /// A command was wrong, so none is done.
    pub(crate) is_broken: bool,
}

impl Queue {
    /// Takes a command in.
    pub(crate) fn add(&mut self, words: Words<'_>) -> Result<(), &'static str> {
        let bytes: usize = words.from(0).map(<[u8]>::len).sum();
        if self.bytes.len() + bytes + (self.spans.len() + words.len()) * size_of::<Span>() > MOST {
            self.is_broken = true;
            return Err("ERR a transaction takes at most 64 MiB");
        }
        let begin = self.bytes.len();
        for word in words.from(0) {
            let from = self.bytes.len() - begin;
            self.bytes.extend_from_slice(word);
            self.spans.push((from, from + word.len()));
        }
        self.ends.push((self.bytes.len(), self.spans.len()));
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Hands out the commands, in order.
    pub(crate) fn each(&self, mut perform: impl FnMut(Words<'_>)) {
        let (mut byte, mut span) = (0, 0);
        for &(bytes, spans) in &self.ends {
            perform(Words::new(&self.bytes[byte..bytes], &self.spans[span..spans]));
            (byte, span) = (bytes, spans);
        }
    }
}

pub(super) fn multi(call: &mut Call<'_>) {
    if call.state.queue.is_some() {
        call.reply.error("ERR MULTI calls can not be nested");
    } else {
        call.state.queue = Some(Queue::default());
        call.reply.ok();
    }
}

pub(super) fn discard(call: &mut Call<'_>) {
    match call.state.queue.take() {
        Some(_) => call.reply.ok(),
        None => call.reply.error("ERR DISCARD without MULTI"),
    }
}

pub(super) fn watch(call: &mut Call<'_>) {
    call.reply.error(match call.state.queue {
        Some(_) => "ERR WATCH inside MULTI is not allowed",
        None => "ERR lately has no transactions that look back: WATCH is not supported",
    });
}
