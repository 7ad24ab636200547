//! Runs a stream from its source to its sink.
//!
//! One thread reads, some parse, and the caller's judges and writes. Batches keep their order, and
//! a fixed number of them is in flight, so memory does not depend on the input.

use crate::hold::{Held, Hold};
use crate::judge::{Decide, Judge};
use crate::read::workers::{Event, Line};
use crate::record::Batch;
use crate::sink::{Class, Mark, Sink, SinkError};
use crate::source::{Source, SourceError, SourceErrorKind};
use crate::summary::Counts;
use lately::{Overload, Tick};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
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

/// A stream on its way to what `J` makes of it.
pub struct Pipeline<J = Judge> {
    /// Judges.
    pub judge: J,
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
    /// Where the first late record was: input and line.
    pub late: Option<String>,
    /// Where the first record was that came from too far in the future.
    pub skewed: Option<String>,
    /// What the filter gave up so far.
    pub overload: Overload,
    /// Inputs that could not be read, or not to their end.
    pub inputs: Vec<SourceError>,
    /// Failures to save the state: how many, and the last.
    pub state_errors: (u64, Option<String>),
    /// Under `--pass-on-change`: keys whose last value was pushed out for lack of room, so that a
    /// duplicate of theirs may have passed as changed.
    pub change_evicted: u64,
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

/// What comes in during a run.
struct Feed {
    names: Vec<String>,
    /// An input may be slow.
    live: bool,
    /// The batch that waits for the next one.
    waiting: Option<(Batch, Mark)>,
}

impl<J: Decide> Pipeline<J> {
    /// A pipeline that has done nothing yet.
    pub fn new(judge: J, sink: Sink, hold: Option<Hold>, keeper: Option<Keeper>) -> Self {
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
        let mut feed =
            Feed { names: source.names().to_vec(), live: source.is_live(), waiting: None };
        let line = Line::start(source, threads.max(1));
        let mut early: BTreeMap<u64, Event> = BTreeMap::new();
        let mut expected = 0;
        let result = loop {
            let stopping = watch.stop();
            line.stop(stopping);
            match line.done.recv_timeout(PATIENCE) {
                Ok((number, event)) => drop(early.insert(number, event)),
                Err(RecvTimeoutError::Timeout) => {
                    // What was read before the signal came is still judged.
                    if stopping && let Some(last) = line.end(expected) {
                        break last.map_or(Ok(()), |event| self.take(event, &mut feed, &line));
                    }
                    if let Err(error) = self.nothing_came(&mut feed, &line) {
                        break Err(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if !line.has_ended() {
                        self.lost(usize::MAX, &feed.names);
                    }
                    break Ok(());
                }
            }
            let mut result = Ok(());
            while let Some(event) = early.remove(&expected) {
                expected += 1;
                result = result.and_then(|()| self.take(event, &mut feed, &line));
            }
            if let Err(error) = result.and_then(|()| self.between(feed.live, watch)) {
                break Err(error);
            }
        };
        line.stop(true);
        result.and_then(|()| self.judge_waiting(&mut feed, None, &line))
    }

    /// Deals with what a thread has done.
    fn take(&mut self, event: Event, feed: &mut Feed, line: &Line) -> Result<(), SinkError> {
        self.heard = Instant::now();
        match event {
            Event::Failed(error) => self.report.inputs.push(error),
            Event::Lost(source) => {
                self.lost(source, &feed.names);
                let _ = line.free.send(Batch::default());
            }
            Event::Batch(batch, mark) => {
                self.judge_waiting(feed, Some(&batch), line)?;
                feed.waiting = Some((batch, mark));
                if self.judge.moments().clock.is_none() {
                    self.judge_waiting(feed, None, line)?;
                }
            }
        }
        Ok(())
    }

    /// Nothing has come for a moment.
    fn nothing_came(&mut self, feed: &mut Feed, line: &Line) -> Result<(), SinkError> {
        // How fast a file is read must not decide what is seen of it.
        if feed.live {
            self.judge_waiting(feed, None, line)?;
        }
        self.idle(feed.live)
    }

    /// What is done after every batch and while nothing comes.
    fn between(&mut self, live: bool, watch: &mut dyn Watch) -> Result<(), SinkError> {
        if live && self.flushed.elapsed() >= PROMPT {
            self.flush()?;
        }
        if watch.save() {
            self.save()?;
        }
        watch.progress(&self.report);
        Ok(())
    }

    /// Notes that records were lost to a fault of this program.
    fn lost(&mut self, source: usize, names: &[String]) {
        let name = names.get(source).map_or("the input", String::as_str).to_owned();
        self.report.inputs.push(SourceError { source, name, kind: SourceErrorKind::Lost });
    }

    /// Judges and writes the batch that waits, and gives its buffers back.
    fn judge_waiting(
        &mut self,
        feed: &mut Feed,
        next: Option<&Batch>,
        line: &Line,
    ) -> Result<(), SinkError> {
        let Some((batch, mark)) = feed.waiting.take() else { return Ok(()) };
        let name = feed.names.get(batch.source).map_or("", String::as_str);
        let lines = self.lines.entry(batch.source).or_insert(0);
        let first_line = *lines + 1;
        *lines += batch.lines;
        let verdicts = self.judge.decide(&batch, next);
        self.classes.clone_from(&verdicts.classes);
        self.report.counts.changed += verdicts.changed;
        if self.hold.is_some() {
            self.moments.clone_from(&verdicts.moments);
        }
        self.report.change_evicted = self.judge.evicted();
        let all = 0..batch.records.len();
        if self.hold.is_some() {
            self.hold_back(&batch, mark, name, first_line)?;
        } else {
            self.sink.write(&batch, all, &self.classes, mark, name, first_line)?;
        }
        self.note(&batch, name, first_line);
        // The reading thread may have ended already.
        let _ = line.free.send(batch);
        self.save_if_due()
    }

    /// Counts a batch, and keeps the wording of its first faults.
    fn note(&mut self, batch: &Batch, name: &str, first_line: u64) {
        let report = &mut self.report;
        report.counts.bytes_in += batch.bytes.len() as u64;
        report.counts.add(&self.classes);
        report.overload = self.judge.overload();
        let firsts = [
            (Class::Late, report.counts.late, &mut report.late),
            (Class::Skewed, report.counts.skewed, &mut report.skewed),
        ];
        for (class, count, first) in firsts {
            if count > 0 && first.is_none() {
                let at = self.classes.iter().position(|&other| other == class);
                let line = at.and_then(|at| batch.records.get(at)).map_or(0, |record| record.line);
                *first = Some(format!("{name}:{}", first_line + u64::from(line)));
            }
        }
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
            // A duplicate whose key is not held is written as if nothing were.
            let contends = class == Class::Duplicate && hold.holds(record.digest);
            if class != Class::Fresh && !contends {
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
        if self.judge.moments().by_arrival() {
            let now = self.judge.moments_mut().arrival();
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
        // The state must not outlive the records that it remembers.
        self.sink.sync()?;
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let mut held = self.hold.iter().flat_map(Hold::waiting);
        let result = self.judge.save(&keeper.path, &keeper.settings, &mut held);
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
