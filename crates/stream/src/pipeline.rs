//! Runs a stream from its source to its sink.
//!
//! One thread reads, some parse, and the caller's judges and writes. Batches keep their order, and
//! a fixed number of them is in flight, so memory does not depend on the input.

mod holding;
mod order;
mod receipts;
mod saving;

use crate::judge::hold::Hold;
use crate::judge::{Decide, Verdicts};
use crate::read::workers::{Event, Workers};
use crate::record::{Batch, Mark};
use crate::session::Dedup;
use crate::source::{Source, SourceError, SourceErrorKind};
use crate::state::file::StateFile;
use crate::write::output::SinkError;
use crate::write::report::{Counts, Report};
use crate::write::sink::Sink;
use order::InOrder;
use receipts::{Receipts, WATCHFUL};
use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How long a batch with a leap in time waits for the next one, which the clock likes to look at before
/// it believes one, and how often signals are looked for while nothing comes.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a record of a live stream may stay in an output's buffer while others keep coming.
const PROMPT: Duration = Duration::from_millis(100);

/// How soon after one flush another one is worth while because nothing more was there to be read: a stream
/// that comes faster than that is written in larger pieces.
const BREATH: Duration = Duration::from_micros(300);

/// A stream on its way to what `J` makes of it.
pub struct Pipeline<J = Dedup> {
    /// Judges.
    pub judge: J,
    /// Writes.
    pub sink: Sink,
    /// Holds fresh records for a better one.
    pub hold: Option<Hold>,
    /// The file of the state.
    pub state: Option<StateFile>,
    /// What has been done so far.
    pub report: Report,
    /// Messages that are to be acknowledged, where the input is a broker.
    receipts: Option<Receipts>,
    /// A save was asked for while another one was in flight.
    save_asked: bool,
    /// The records that were certainly written.
    certain: Counts,
    /// Records of the batch that is being written.
    at_risk: u64,
    flushed: Instant,
    /// All that was there was read, and what is in the outputs' buffers is not to wait for more.
    is_due: bool,
    /// When something last came in.
    heard: Instant,
    /// All that there was has been read.
    is_dry: bool,
    verdicts: Verdicts,
    /// Lines of each input before the batch at hand.
    lines: BTreeMap<usize, u64>,
}

/// Observes a run while it lasts, and may end it.
pub trait Observer {
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
    pub fn new(judge: J, sink: Sink, hold: Option<Hold>, state: Option<StateFile>) -> Self {
        Self {
            judge,
            sink,
            hold,
            state,
            report: Report::default(),
            receipts: None,
            save_asked: false,
            certain: Counts::default(),
            at_risk: 0,
            flushed: Instant::now(),
            is_due: false,
            heard: Instant::now(),
            is_dry: false,
            verdicts: Verdicts::default(),
            lines: BTreeMap::new(),
        }
    }

    /// Runs the stream to its end, to the first output that fails, or until told to stop.
    /// `threads` parse.
    ///
    /// # Errors
    /// [`SinkError`] when an output cannot be written. The state is then not saved again: what it
    /// would remember was not written. A closed pipe is not an error; if everything that was judged
    /// had been written by then, the state is saved.
    pub fn run(
        &mut self,
        source: Source,
        threads: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), SinkError> {
        let mut result = self.pump(source, threads, observer).and_then(|()| self.end());
        if let Err(error) = &result {
            let _ = self.sink.release(true);
            // The other outputs get what was written to them, and a save in flight is of records that
            // were written before.
            let closed = error.is_closed_pipe();
            let others = self.sink.flush();
            let saved = match others {
                Ok(()) if closed && self.sink.is_flushed() => self.save_all(),
                _ => self.settle(),
            };
            if closed && let Err(error) = saved {
                result = Err(error);
            }
            self.note_unwritten();
        }
        let changes = self.changes();
        self.report.saved = self.state.as_ref().map(|state| !state.is_stale(changes));
        self.report.counts.bytes_out = self.sink.written();
        match result {
            Err(error) if error.is_closed_pipe() => {
                self.report.closed = true;
                Ok(())
            }
            other => other,
        }
    }

    /// Where an output failed only those records are counted that were certainly written.
    fn note_unwritten(&mut self) {
        let counts = &mut self.report.counts;
        if self.sink.is_flushed() && self.at_risk == 0 {
            return;
        }
        counts.keep(&self.certain, self.at_risk);
    }

    fn pump(
        &mut self,
        source: Source,
        threads: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), SinkError> {
        let mut feed =
            Feed { names: source.names().to_vec(), live: source.is_live(), waiting: None };
        self.receipts = source.acknowledger().map(Receipts::new);
        self.advance_sink()?;
        let source = source.resume(self.judge.left().cloned());
        let workers = Workers::start(source, threads.max(1));
        let mut order = InOrder::default();
        let mut stopped: Option<Instant> = None;
        let result = loop {
            if stopped.is_none() && observer.stop() {
                stopped = Some(Instant::now());
                workers.stop();
            }
            let watches = stopped.is_none()
                && self.receipts.as_ref().is_some_and(Receipts::are_behind)
                && self.heard.elapsed() < PATIENCE;
            match workers.done.recv_timeout(self.patience()) {
                Ok((number, event)) => order.put(number, event),
                Err(RecvTimeoutError::Timeout) if self.is_due || watches => {}
                Err(RecvTimeoutError::Timeout) => {
                    // Whole records that were read before the signal came are still judged.
                    let last = stopped.and_then(|at| workers.end(order.dealt(), at.elapsed()));
                    if let Some(last) = last {
                        break last.map_or(Ok(()), |event| self.take(event, &mut feed, &workers));
                    }
                    if let Err(error) = self.nothing_came(&mut feed, &workers) {
                        break Err(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if !workers.has_ended() {
                        self.lost(usize::MAX, &feed.names);
                    }
                    break Ok(());
                }
            }
            let result = self.take_all(&mut order, &mut feed, &workers);
            let result = result.and_then(|()| self.between(feed.live, observer));
            if let Err(error) = result.and_then(|()| self.acknowledge()) {
                break Err(error);
            }
        };
        workers.stop();
        let result = result.and_then(|()| self.judge_waiting(&mut feed, None, &workers));
        if let Some(left) = workers.left() {
            self.judge.leave(Some(left));
        }
        result
    }

    /// Deals with all whose turn it is.
    fn take_all(
        &mut self,
        order: &mut InOrder,
        feed: &mut Feed,
        workers: &Workers,
    ) -> Result<(), SinkError> {
        let mut result = Ok(());
        while let Some(event) = order.next() {
            result = result.and_then(|()| self.take(event, feed, workers));
        }
        if order.is_quiet() {
            result = result.and_then(|()| self.quiet(feed, workers));
        }
        result
    }

    /// Deals with what a thread has done.
    fn take(&mut self, event: Event, feed: &mut Feed, workers: &Workers) -> Result<(), SinkError> {
        (self.heard, self.is_dry) = (Instant::now(), false);
        match event {
            Event::Failed(error) => self.report.inputs.push(error),
            Event::Note(note) => self.report.notes.push(note),
            Event::Quiet => {}
            Event::Lost(source) => {
                self.lost(source, &feed.names);
                if self.receipts.is_some() {
                    // What comes after it must not acknowledge it.
                    let error = std::io::Error::other("a part of the input could not be judged");
                    return Err(SinkError { name: "the rest".into(), main: false, error });
                }
                let _ = workers.free.send(Batch::default());
            }
            Event::Batch(batch, mark) => {
                self.judge_waiting(feed, Some(&batch), workers)?;
                feed.waiting = Some((batch, mark));
                if self.judge.moments().clock.is_none() {
                    self.judge_waiting(feed, None, workers)?;
                }
            }
        }
        Ok(())
    }

    /// All that was there has been read: in a live stream it need not wait for what comes next.
    fn quiet(&mut self, feed: &mut Feed, workers: &Workers) -> Result<(), SinkError> {
        if !feed.live {
            return Ok(());
        }
        self.is_dry = true;
        let waiting = feed.waiting.as_ref();
        if waiting.is_some_and(|(batch, _)| !self.judge.moments().looks_ahead(batch)) {
            self.judge_waiting(feed, None, workers)?;
        }
        self.is_due = true;
        Ok(())
    }

    /// How long to wait for what comes next.
    fn patience(&self) -> Duration {
        if self.is_due {
            BREATH.saturating_sub(self.flushed.elapsed())
        } else if self.receipts.as_ref().is_some_and(Receipts::are_behind) {
            WATCHFUL
        } else {
            PATIENCE
        }
    }

    /// Nothing has come for a moment.
    fn nothing_came(&mut self, feed: &mut Feed, workers: &Workers) -> Result<(), SinkError> {
        // How fast a file is read must not decide what is seen of it.
        if feed.live {
            self.judge_waiting(feed, None, workers)?;
        }
        self.idle(feed.live)
    }

    /// What is done after every batch and while nothing comes.
    fn between(&mut self, live: bool, observer: &mut dyn Observer) -> Result<(), SinkError> {
        let most = if self.is_due { BREATH } else { PROMPT };
        if live && self.flushed.elapsed() >= most {
            self.flush()?;
        }
        if observer.save() {
            self.save()?;
        }
        observer.progress(&self.report);
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
        workers: &Workers,
    ) -> Result<(), SinkError> {
        let Some((batch, mark)) = feed.waiting.take() else { return Ok(()) };
        // What would not be written is better not judged: then it is not remembered either.
        if self.sink.is_closed() {
            return Err(self.sink.closed());
        }
        let name = feed.names.get(batch.source).map_or("", String::as_str);
        let lines = self.lines.entry(batch.source).or_insert(0);
        let first_line = *lines + 1;
        *lines += batch.lines;
        self.judge.decide(&batch, next, &mut self.verdicts);
        self.report.counts.changed += self.verdicts.changed;
        self.report.change_evicted = self.judge.evicted();
        let all = 0..batch.records.len();
        let (before, writes) = (self.report.counts, self.sink.writes());
        self.at_risk = Counts::of_all(&self.verdicts.classes).read();
        if self.hold.is_some() {
            self.hold(&batch, mark, name, first_line)?;
        } else {
            self.sink.write(&batch, all, &self.verdicts.classes, mark, name, first_line)?;
        }
        self.write_rows()?;
        self.advance_sink()?;
        let report = &mut self.report;
        report.overload = self.judge.overload();
        report.note(&batch, &self.verdicts.classes, name, first_line);
        self.at_risk = 0;
        if self.sink.writes() != writes && !self.sink.holds_back() && !self.sink.awaits() {
            self.certain = before;
        }
        if workers.is_resumed(batch.source) {
            self.judge.leave(None);
        }
        if let (Some(receipts), Some(parcel)) = (&mut self.receipts, &batch.parcel) {
            receipts.judged = parcel.token;
        }
        // The reading thread may have ended already.
        let _ = workers.free.send(batch);
        self.save_if_due()
    }

    /// Tells the sink what time it is: at the beginning, so that it knows the day of the first times, and
    /// after each batch.
    fn advance_sink(&mut self) -> Result<(), SinkError> {
        let moments = self.judge.moments();
        self.sink.advance(moments.now(), moments.line)
    }

    /// Writes what the judge has to say besides records.
    fn write_rows(&mut self) -> Result<(), SinkError> {
        let (mut header, mut rows) = (Vec::new(), Vec::new());
        self.judge.take_rows(&mut header, &mut rows);
        self.sink.write_rows(&header, &rows)
    }

    /// Nothing has come for a moment: write what there is.
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
        if live {
            self.judge.wait(silence);
            self.write_rows()?;
        }
        self.flush()?;
        if self.sink.is_closed() {
            return Err(self.sink.closed());
        }
        self.save_if_due()
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        (self.flushed, self.is_due) = (Instant::now(), false);
        self.sink.flush()?;
        if !self.sink.holds_back() && !self.sink.awaits() {
            self.certain = self.report.counts;
        }
        Ok(())
    }

    /// As [`Self::flush`], and waits until brokers have what was sent to them.
    fn confirm(&mut self) -> Result<(), SinkError> {
        self.sink.confirm()?;
        self.flush()
    }

    /// The input is over.
    fn end(&mut self) -> Result<(), SinkError> {
        self.release_all()?;
        self.judge.end();
        self.write_rows()?;
        self.sink.release(true)?;
        #[cfg(feature = "parquet")]
        self.sink.finish_columns()?;
        self.confirm()?;
        self.save_all()?;
        self.all_is_safe();
        Ok(())
    }
}
