//! The threads that read and parse.

use super::chunk::Chunk;
use super::deliveries::Deliveries;
use super::error::SourceError;
use super::merge::Merge;
use super::message::Message;
use super::parser::Parser;
use super::rest::{Left, Remains};
use super::source::Source;
#[cfg(feature = "parquet")]
use crate::columnar::ColumnReader;
use crate::options::Options;
use crate::record::{Batch, Mark};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What comes out.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are batches")]
pub(crate) enum Event {
    Batch(Batch, Mark),
    Failed(SourceError),
    /// Something to say of an input.
    Note(String),
    /// The parser failed on a piece of this input.
    Lost(usize),
    /// Nothing is there to be read; its number is that of the event that comes next.
    Quiet,
}

/// The threads that read and parse. They end by themselves when the source does, or after their
/// present record when told to stop; one that cannot be told, as it waits in a read, is left waiting.
pub(crate) struct Workers {
    pub(crate) done: Receiver<(u64, Event)>,
    /// Buffers for the reading thread.
    pub(crate) free: Sender<Batch>,
    /// Events there are or will be, as far as is known.
    read: Arc<AtomicU64>,
    /// The source was read to its end, or until `stop`.
    ended: Arc<AtomicBool>,
    remains: Remains,
}

impl Workers {
    pub(crate) fn start(source: Source, threads: usize) -> Self {
        let (done_in, done) = mpsc::channel();
        let (free, free_out) = mpsc::channel();
        let (work_in, work) = mpsc::channel();
        for _ in 0..2 * threads + 3 {
            let _ = free.send(Batch::default());
        }
        let work = Arc::new(Mutex::new(work));
        for number in 0..threads {
            let (work, done) = (Arc::clone(&work), done_in.clone());
            let parse = move || parse(&work, &done);
            // Where the system allows no more, those that there are do.
            let spawned = thread::Builder::new().spawn(parse);
            if spawned.is_err() && number > 0 {
                break;
            }
        }
        let (read, ended, remains) = (Arc::default(), Arc::default(), source.remains());
        let workers = Self { done, free, read, ended, remains };
        workers.read(source, Buffers { free: free_out, work: work_in, done: done_in });
        workers
    }

    /// Starts the thread that reads, which is another one for each kind of source.
    fn read(&self, mut source: Source, Buffers { free, work, done }: Buffers) {
        let read = Arc::clone(&self.read);
        if let Some(input) = source.take_messages() {
            let options = Arc::new(source.options().clone());
            let all = Deliveries { source, options, input, free, work, done, read };
            return self.spawn(|| all, Deliveries::run);
        }
        if source.options().merge {
            return self.spawn(|| Merge::new(source, free, done, read), Merge::run);
        }
        #[cfg(feature = "parquet")]
        if source.columns_format().is_ok_and(|format| format.is_some()) {
            return self.spawn(|| ColumnReader::new(source, free, done, read), ColumnReader::run);
        }
        let (count, quiet) = (Arc::clone(&read), done.clone());
        source.on_quiet(move || {
            let _ = quiet.send((count.load(Ordering::Relaxed), Event::Quiet));
        });
        self.spawn(|| Reader { source, free, work, done, read }, Reader::run);
    }

    /// Starts a thread that makes a reader and lets it run to its end.
    fn spawn<R: 'static>(&self, make: impl FnOnce() -> R + Send + 'static, run: fn(&mut R)) {
        let ended = Arc::clone(&self.ended);
        thread::spawn(move || {
            // Its ends of the channels go with it, so this is set before anybody can see that they are gone.
            let mut reader = make();
            run(&mut reader);
            ended.store(true, Ordering::Relaxed);
        });
    }

    /// Tells the threads to end.
    pub(crate) fn stop(&self) {
        self.remains.stop();
    }

    /// The part of a record that was left in a pipe.
    pub(crate) fn left(&self) -> Option<Left> {
        self.remains.left()
    }

    /// Does this input begin with the rest of a record of the last run?
    pub(crate) fn is_resumed(&self, source: usize) -> bool {
        self.remains.is_resumed(source)
    }

    /// Was the source read to its end, or until told to stop?
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends with what the reading thread has while it waits where it cannot be told to end, and is then left
    /// waiting: the last event there is, if any. `None` as long as there is something on its way; `dealt`
    /// is how many events have been dealt with. Shortly after the run was told to end, which was
    /// `stopped` ago, the rest of a record that was read in part is on its way, too.
    pub(crate) fn end(&self, dealt: u64, stopped: Duration) -> Option<Option<Event>> {
        let all_done = || dealt == self.read.load(Ordering::Relaxed);
        let last = self.remains.take_if(stopped, all_done)?;
        Some(match last {
            Ok(chunk) => chunk.map(|chunk| parse_one(&mut Parser::new(), chunk, Batch::default())),
            Err(error) => Some(Event::Failed(error)),
        })
    }
}

/// What the thread that reads takes and gives.
struct Buffers {
    free: Receiver<Batch>,
    /// For the threads that parse.
    work: Sender<Work>,
    done: Sender<(u64, Event)>,
}

pub(super) type Work = (u64, Piece, Batch);

/// What is parsed by one thread at a time.
pub(super) enum Piece {
    Chunk(Chunk),
    Messages(Messages),
}

/// Messages of a broker.
pub(super) struct Messages {
    pub(super) messages: Vec<Message>,
    /// The number of the first one.
    pub(super) first: u64,
    pub(super) options: Arc<Options>,
}

struct Reader {
    source: Source,
    free: Receiver<Batch>,
    work: Sender<Work>,
    done: Sender<(u64, Event)>,
    read: Arc<AtomicU64>,
}

impl Reader {
    fn run(&mut self) {
        let mut number = 0;
        while let Ok(mut batch) = self.free.recv() {
            // After an error the batch is still free: it goes to the next input.
            loop {
                if self.source.ends_here() {
                    return;
                }
                let next = self.source.next_chunk(std::mem::take(&mut batch.bytes));
                if matches!(next, Ok(None)) {
                    return;
                }
                let notes = self.source.take_notes();
                self.read.store(number + 1 + notes.len() as u64, Ordering::Relaxed);
                for note in notes {
                    if self.done.send((number, Event::Note(note))).is_err() {
                        return;
                    }
                    number += 1;
                }
                let failed = match next {
                    Ok(None) => return,
                    Ok(Some(chunk)) => {
                        if self.work.send((number, Piece::Chunk(chunk), batch)).is_err() {
                            return;
                        }
                        number += 1;
                        break;
                    }
                    Err(error) => self.done.send((number, Event::Failed(error))),
                };
                if failed.is_err() {
                    return;
                }
                number += 1;
            }
        }
    }
}

fn parse(work: &Mutex<Receiver<Work>>, done: &Sender<(u64, Event)>) {
    let mut parser = Parser::new();
    loop {
        // The lock is let go before the parsing begins.
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, piece, batch)) = next else { return };
        let event = match piece {
            Piece::Chunk(chunk) => parse_one(&mut parser, chunk, batch),
            Piece::Messages(messages) => parse_messages(&mut parser, messages, batch),
        };
        if done.send((number, event)).is_err() {
            return;
        }
    }
}

fn parse_one(parser: &mut Parser, chunk: Chunk, mut batch: Batch) -> Event {
    let (source, mark) = (chunk.source, chunk.schema.mark());
    // A fault in the parser must not pass for the end of the input.
    if catch_unwind(AssertUnwindSafe(|| parser.parse(chunk, &mut batch))).is_ok() {
        return Event::Batch(batch, mark);
    }
    *parser = Parser::new();
    Event::Lost(source)
}

fn parse_messages(parser: &mut Parser, messages: Messages, mut batch: Batch) -> Event {
    let Messages { messages, first, options } = messages;
    let parse = || parser.parse_messages(messages, first, &options, &mut batch);
    if let Ok(mark) = catch_unwind(AssertUnwindSafe(parse)) {
        return Event::Batch(batch, mark);
    }
    *parser = Parser::new();
    Event::Lost(0)
}
