//! Runs a stream from its source to its sink.
//!
//! One thread reads, some parse, and the caller's judges and writes. Batches keep their order, and
//! a fixed number of them is in flight, so memory does not depend on the input.

use crate::frame::Parser;
use crate::hold::{Held, Hold};
use crate::judge::Judge;
use crate::record::Batch;
use crate::sink::{Class, Mark, Sink, SinkError};
use crate::source::{Chunk, Source, SourceError, SourceErrorKind};
use crate::state;
use crate::summary::Counts;
use lately::Tick;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a batch waits for the next one, which the clock likes to look at before it believes a
/// leap in time, and how often signals are looked for while nothing comes.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a record of a live stream may stay in an output's buffer while others keep coming.
const PROMPT: Duration = Duration::from_millis(100);

/// Faults whose wording is kept for the user.
const EXAMPLES: usize = 3;

/// Where and how often the state is saved.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The file.
    pub path: PathBuf,
    /// What decides which records have equal keys.
    pub settings: String,
    /// How often, besides at the end.
    pub every: Duration,
}

/// A stream on its way.
pub struct Pipeline {
    /// Judges.
    pub judge: Judge,
    /// Writes.
    pub sink: Sink,
    /// Holds back fresh records for a better one.
    pub hold: Option<Hold>,
    /// Saves the state.
    pub keeper: Option<Keeper>,
    /// What has been done so far.
    pub report: Report,
    saved: Instant,
    flushed: Instant,
    /// When something last came in.
    heard: Instant,
    classes: Vec<Class>,
    moments: Vec<Tick>,
    /// Lines of each input before the batch at hand.
    lines: BTreeMap<usize, u64>,
}

/// What a run has to say beside its output.
#[derive(Debug, Default)]
pub struct Report {
    /// The records by class.
    pub counts: Counts,
    /// The first few dead letters: input, line and reason.
    pub invalid: Vec<String>,
    /// The first few records without a key.
    pub missing: Vec<String>,
    /// Inputs that could not be read, or not to their end.
    pub inputs: Vec<SourceError>,
    /// Failures to save the state: how many, and the last.
    pub state_errors: (u64, Option<String>),
    /// The reader of the output went away.
    pub closed: bool,
}

/// What the caller sees of a run while it goes on.
pub trait Watch {
    /// Called after every batch and while nothing comes.
    fn progress(&mut self, report: &Report);

    /// Is the run to end now, as if the input had?
    fn stop(&self) -> bool;

    /// Is the state to be saved now?
    fn save(&self) -> bool {
        false
    }
}

enum Event {
    Batch(Batch, Mark),
    Failed(SourceError),
    /// The parser failed on a piece of this input.
    Lost(usize),
}

impl Pipeline {
    /// A pipeline that has done nothing yet.
    pub fn new(judge: Judge, sink: Sink, hold: Option<Hold>, keeper: Option<Keeper>) -> Self {
        Self {
            judge,
            sink,
            hold,
            keeper,
            report: Report::default(),
            saved: Instant::now(),
            flushed: Instant::now(),
            heard: Instant::now(),
            classes: Vec::new(),
            moments: Vec::new(),
            lines: BTreeMap::new(),
        }
    }

    /// Runs the stream to its end, to the first output that fails, or until told to stop.
    /// `threads` parse.
    ///
    /// # Errors
    /// [`SinkError`] when an output cannot be written. The state is then not saved again: what it
    /// would remember was not handed on. A closed pipe is no error.
    pub fn run(
        &mut self,
        source: Source,
        threads: usize,
        watch: &mut dyn Watch,
    ) -> Result<(), SinkError> {
        let result = self.pump(source, threads, watch).and_then(|()| self.end());
        if result.is_err() {
            // The other outputs shall have what was written to them.
            let _ = self.sink.flush();
        }
        self.report.counts.bytes_out = self.sink.written();
        match result {
            Err(error) if error.is_closed_pipe() => {
                self.report.closed = true;
                Ok(())
            }
            other => other,
        }
    }

    fn pump(
        &mut self,
        source: Source,
        threads: usize,
        watch: &mut dyn Watch,
    ) -> Result<(), SinkError> {
        let names = source.names().to_vec();
        let live = source.is_live();
        let line = Line::start(source, threads.max(1));
        let mut early: BTreeMap<u64, Event> = BTreeMap::new();
        let mut expected = 0;
        let mut waiting: Option<(Batch, Mark)> = None;
        let mut result = Ok(());
        while result.is_ok() {
            let stopping = watch.stop();
            line.stop.store(stopping, Ordering::Relaxed);
            match line.done.recv_timeout(PATIENCE) {
                Ok((number, event)) => drop(early.insert(number, event)),
                Err(RecvTimeoutError::Timeout) => {
                    // What was read before the signal came is still judged.
                    if stopping && expected == line.read.load(Ordering::Relaxed) {
                        break;
                    }
                    // How fast a file is read must not decide what is seen of it.
                    if live {
                        result = self.judge_waiting(&mut waiting, None, &names, &line.free);
                    }
                    result = result.and_then(|()| self.idle(live));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if !line.ended.load(Ordering::Relaxed) {
                        self.lost(usize::MAX, &names);
                    }
                    break;
                }
            }
            while let Some(event) = early.remove(&expected) {
                expected += 1;
                self.heard = Instant::now();
                match event {
                    Event::Failed(error) => self.report.inputs.push(error),
                    Event::Lost(source) => {
                        self.lost(source, &names);
                        let _ = line.free.send(Batch::default());
                    }
                    Event::Batch(batch, mark) => {
                        result = result.and_then(|()| {
                            self.judge_waiting(&mut waiting, Some(&batch), &names, &line.free)
                        });
                        waiting = Some((batch, mark));
                        if self.judge.clock.is_none() {
                            result = result.and_then(|()| {
                                self.judge_waiting(&mut waiting, None, &names, &line.free)
                            });
                        }
                    }
                }
            }
            if live && self.flushed.elapsed() >= PROMPT {
                result = result.and_then(|()| self.flush());
            }
            if watch.save() {
                result = result.and_then(|()| self.save());
            }
            watch.progress(&self.report);
        }
        line.stop.store(true, Ordering::Relaxed);
        result.and_then(|()| self.judge_waiting(&mut waiting, None, &names, &line.free))
    }

    /// Notes that records were lost to a fault of this program.
    fn lost(&mut self, source: usize, names: &[String]) {
        let name = names.get(source).map_or("the input", String::as_str).to_owned();
        self.report.inputs.push(SourceError { source, name, kind: SourceErrorKind::Lost });
    }

    /// Judges and writes the batch that waits, and gives its buffers back.
    fn judge_waiting(
        &mut self,
        waiting: &mut Option<(Batch, Mark)>,
        next: Option<&Batch>,
        names: &[String],
        free: &Sender<Batch>,
    ) -> Result<(), SinkError> {
        let Some((batch, mark)) = waiting.take() else { return Ok(()) };
        let name = names.get(batch.source).map_or("", String::as_str);
        let lines = self.lines.entry(batch.source).or_insert(0);
        let first_line = *lines + 1;
        *lines += batch.lines;
        let verdicts = self.judge.judge(&batch, next);
        self.classes.clone_from(&verdicts.classes);
        self.report.counts.changed += verdicts.changed;
        let all = 0..batch.records.len();
        if self.hold.is_some() {
            self.moments.clone_from(&verdicts.moments);
            self.hold_back(&batch, mark, name, first_line)?;
        } else {
            self.sink.write(&batch, all, &self.classes, mark, name, first_line)?;
        }
        self.note(&batch, name, first_line);
        // The reading thread may have ended already.
        let _ = free.send(batch);
        self.save_if_due()
    }

    /// Counts a batch, and keeps the wording of its first faults.
    fn note(&mut self, batch: &Batch, name: &str, first_line: u64) {
        let report = &mut self.report;
        report.counts.bytes_in += batch.bytes.len() as u64;
        report.counts.add(&self.classes);
        for (index, fault) in &batch.faults {
            let Some(record) = batch.records.get(*index as usize) else { continue };
            let examples = match self.classes.get(*index as usize) {
                Some(Class::Invalid) => &mut report.invalid,
                _ => &mut report.missing,
            };
            if examples.len() < EXAMPLES {
                examples.push(format!("{name}:{}: {fault}", first_line + u64::from(record.line)));
            }
        }
    }

    /// Puts fresh records aside, lets duplicates contend with them, and passes on those whose time
    /// is over, each in its place among the records that are not held.
    fn hold_back(
        &mut self,
        batch: &Batch,
        mark: Mark,
        name: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let mut written = 0;
        let write = |this: &mut Self, range: Range<usize>| {
            this.sink.write(batch, range, &this.classes, mark, name, first_line)
        };
        for (index, record) in batch.records.iter().enumerate() {
            let class = self.classes[index];
            if matches!(class, Class::Header | Class::Aside) {
                continue;
            }
            let now = self.moments[index];
            if self.hold.as_ref().is_some_and(|hold| hold.is_due(now)) {
                write(self, written..index)?;
                written = index;
                self.release(now)?;
            }
            let Some(hold) = &mut self.hold else { return Ok(()) };
            if !matches!(class, Class::Fresh | Class::Duplicate) {
                continue;
            }
            let mut bytes = batch.bytes_of(record).to_vec();
            if batch.detached {
                bytes.push(b'\n');
            }
            let rank = batch.extras.get(index).and_then(|extra| extra.rank);
            let held = Held { bytes, mark, rank };
            self.classes[index] = Class::Held;
            if class == Class::Fresh {
                if let Some(outlived) = hold.begin(record.digest, now, held) {
                    write(self, written..index)?;
                    written = index;
                    self.pass_on(&outlived)?;
                }
            } else {
                let worse = hold.contend(record.digest, held);
                self.report.counts.duplicate += 1;
                write(self, written..index)?;
                written = index;
                self.sink.keep_back(&worse.bytes, worse.mark)?;
            }
        }
        write(self, written..batch.records.len())
    }

    fn release(&mut self, now: Tick) -> Result<(), SinkError> {
        while let Some(held) = self.hold.as_mut().and_then(|hold| hold.release(now)) {
            self.pass_on(&held)?;
        }
        Ok(())
    }

    fn release_all(&mut self) -> Result<(), SinkError> {
        while let Some(held) = self.hold.as_mut().and_then(Hold::pop) {
            self.pass_on(&held)?;
        }
        Ok(())
    }

    fn pass_on(&mut self, held: &Held) -> Result<(), SinkError> {
        self.report.counts.fresh += 1;
        self.sink.pass_on(&held.bytes, Class::Fresh, held.mark, false)
    }

    /// Nothing has come for a moment: hand on what there is.
    fn idle(&mut self, live: bool) -> Result<(), SinkError> {
        if self.judge.by_arrival() {
            let now = self.judge.arrival();
            self.release(now)?;
        }
        // The clock of events stands still while none come. What is held does not wait for it.
        let silence = u64::try_from(self.heard.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if live && self.hold.as_ref().is_some_and(|hold| silence > hold.length()) {
            self.release_all()?;
        }
        self.flush()?;
        self.save_if_due()
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.flushed = Instant::now();
        self.sink.flush()
    }

    fn save_if_due(&mut self) -> Result<(), SinkError> {
        match &self.keeper {
            Some(keeper) if self.saved.elapsed() >= keeper.every => self.save(),
            _ => Ok(()),
        }
    }

    /// Saves the state, after everything it remembers has been handed on. A state that cannot be
    /// saved does not end the stream.
    fn save(&mut self) -> Result<(), SinkError> {
        if self.keeper.is_none() {
            return Ok(());
        }
        self.flush()?;
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let judge = &self.judge;
        let clock = judge.clock.as_ref().and_then(crate::clock::StreamClock::now);
        let held = self.hold.iter().flat_map(Hold::waiting);
        let last_values = judge.last_values.as_ref();
        let parts = state::Parts {
            settings: &keeper.settings,
            clock,
            of_events: !judge.by_arrival(),
            filter: &judge.filter,
            last_values,
        };
        let result = state::save(&keeper.path, &parts, held);
        if let Err(error) = result {
            self.report.state_errors.0 += 1;
            self.report.state_errors.1 = Some(error.to_string());
        }
        self.saved = Instant::now();
        Ok(())
    }

    /// The input is over.
    fn end(&mut self) -> Result<(), SinkError> {
        self.release_all()?;
        self.flush()?;
        self.save()
    }
}

/// The threads that read and parse. They end by themselves when the source does, or after their
/// present batch when `stop` is set; one that waits for a pipe is left waiting.
struct Line {
    done: Receiver<(u64, Event)>,
    /// Buffers for the reading thread.
    free: Sender<Batch>,
    stop: Arc<AtomicBool>,
    /// Events there are or will be, as far as is known.
    read: Arc<AtomicU64>,
    /// The source was read to its end, or until `stop`.
    ended: Arc<AtomicBool>,
}

impl Line {
    fn start(source: Source, threads: usize) -> Self {
        let (done_in, done) = mpsc::channel();
        let (free, free_out) = mpsc::channel();
        let (work_in, work) = mpsc::channel();
        for _ in 0..2 * threads + 3 {
            let _ = free.send(Batch::default());
        }
        let work = Arc::new(Mutex::new(work));
        for _ in 0..threads {
            let (work, done) = (Arc::clone(&work), done_in.clone());
            thread::spawn(move || parse(&work, &done));
        }
        let line =
            Self { done, free, stop: Arc::default(), read: Arc::default(), ended: Arc::default() };
        let reader = Reader {
            source,
            free: free_out,
            work: work_in,
            done: done_in,
            stop: Arc::clone(&line.stop),
            read: Arc::clone(&line.read),
        };
        let ended = Arc::clone(&line.ended);
        thread::spawn(move || {
            // `work` goes with the reader, so this is set before anybody can see the end.
            let mut reader = reader;
            reader.run();
            ended.store(true, Ordering::Relaxed);
        });
        line
    }
}

type Work = (u64, Chunk, Batch);

struct Reader {
    source: Source,
    free: Receiver<Batch>,
    work: Sender<Work>,
    done: Sender<(u64, Event)>,
    stop: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
}

impl Reader {
    fn run(&mut self) {
        let mut number = 0;
        while let Ok(mut batch) = self.free.recv() {
            // After an error the batch is still free: it goes to the next input.
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let next = self.source.next_chunk(std::mem::take(&mut batch.bytes));
                if matches!(next, Ok(None)) {
                    return;
                }
                self.read.store(number + 1, Ordering::Relaxed);
                let failed = match next {
                    Ok(None) => return,
                    Ok(Some(chunk)) => {
                        if self.work.send((number, chunk, batch)).is_err() {
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
        let Ok((number, chunk, mut batch)) = next else { return };
        let (source, mark) = (chunk.source, chunk.schema.mark());
        // A fault in the parser must not pass for the end of the input.
        let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse(chunk, &mut batch)));
        let event = if parsed.is_ok() {
            Event::Batch(batch, mark)
        } else {
            parser = Parser::new();
            Event::Lost(source)
        };
        if done.send((number, event)).is_err() {
            return;
        }
    }
}
