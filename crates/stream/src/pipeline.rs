//! Runs a stream from its source to its sink.
//!
//! One thread reads, some parse, and the caller's judges and writes. Batches keep their order, and
//! a fixed number of them is in flight, so memory does not depend on the input.

use crate::judge::class::Class;
use crate::judge::hold::{Held, Hold, copies};
use crate::judge::{Decide, Verdicts};
use crate::read::message::Acknowledge;
use crate::read::workers::{Event, Workers};
use crate::record::Mark;
use crate::record::{Batch, Kind};
use crate::session::Dedup;
use crate::source::{Source, SourceError, SourceErrorKind};
use crate::state::file::{SaveError, StateFile};
use crate::write::output::SinkError;
use crate::write::report::{Counts, Report};
use crate::write::sink::Sink;
use lately::Tick;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How long a batch with a leap in time waits for the next one, which the clock likes to look at before
/// it believes one, and how often signals are looked for while nothing comes.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a record of a live stream may stay in an output's buffer while others keep coming.
const PROMPT: Duration = Duration::from_millis(100);

/// How often it is looked whether messages can be acknowledged, while any wait for it.
const WATCHFUL: Duration = Duration::from_millis(2);

/// How long messages that keep coming may wait to be acknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_millis(100);

/// What is between two saves for the sake of acknowledgements, as a multiple of what the thread that judges does for
/// one: a fifth of its time at most.
const REST: u32 = 4;

/// How soon after one flush another one is worth while because nothing more was there to be read: a stream
/// that comes faster than that is written in larger pieces.
const BREATH: Duration = Duration::from_micros(300);

/// Faults whose wording is kept for the user.
const EXAMPLES: usize = 3;

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

/// The messages of a broker that are to be acknowledged.
struct Receipts {
    broker: Box<dyn Acknowledge>,
    /// The last one that was judged,
    judged: u64,
    /// that the save in flight covers,
    saving: Option<u64>,
    /// and that was acknowledged.
    acknowledged: u64,
    /// When the last save for their sake began, and how long it took the thread that judges.
    began: Instant,
    took: Duration,
}

impl Receipts {
    fn new(broker: Box<dyn Acknowledge>) -> Self {
        let (began, took) = (Instant::now(), Duration::ZERO);
        Self { broker, judged: 0, saving: None, acknowledged: 0, began, took }
    }

    /// Are there messages that were judged and not acknowledged?
    fn are_behind(&self) -> bool {
        self.judged > self.acknowledged
    }

    /// Is it time for the next save? `quiet`: no further message comes, perhaps because these wait.
    fn are_due(&self, quiet: bool) -> bool {
        let wait = if quiet { Duration::ZERO } else { UNACKNOWLEDGED };
        self.are_behind() && self.began.elapsed() >= wait.max(self.took * REST)
    }

    fn acknowledge(&mut self, token: u64) {
        if token > self.acknowledged {
            self.acknowledged = token;
            self.broker.acknowledge(token);
        }
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
        let mut early: BTreeMap<u64, Event> = BTreeMap::new();
        let mut expected = 0;
        let mut stopped: Option<Instant> = None;
        let mut quiet = None;
        let result = loop {
            if stopped.is_none() && observer.stop() {
                stopped = Some(Instant::now());
                workers.stop();
            }
            let watches = stopped.is_none()
                && self.receipts.as_ref().is_some_and(Receipts::are_behind)
                && self.heard.elapsed() < PATIENCE;
            match workers.done.recv_timeout(self.patience()) {
                Ok((number, Event::Quiet)) => quiet = Some(number),
                Ok((number, event)) => drop(early.insert(number, event)),
                Err(RecvTimeoutError::Timeout) if self.is_due || watches => {}
                Err(RecvTimeoutError::Timeout) => {
                    // Whole records that were read before the signal came are still judged.
                    let last = stopped.and_then(|at| workers.end(expected, at.elapsed()));
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
            let mut result = Ok(());
            while let Some(event) = early.remove(&expected) {
                expected += 1;
                result = result.and_then(|()| self.take(event, &mut feed, &workers));
            }
            if quiet.is_some_and(|number| number <= expected) {
                quiet = None;
                result = result.and_then(|()| self.quiet(&mut feed, &workers));
            }
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
        self.note(&batch, name, first_line);
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

    /// Counts a batch, and keeps the wording of its first faults.
    fn note(&mut self, batch: &Batch, name: &str, first_line: u64) {
        let place = |index: usize| {
            let line = batch.records.get(index).map_or(0, |record| record.line);
            batch.origin(index).unwrap_or((name, first_line + u64::from(line)))
        };
        let report = &mut self.report;
        report.counts.bytes_in += batch.size();
        report.counts.add_all(&self.verdicts.classes);
        report.overload = self.judge.overload();
        let firsts = [(Class::Late, &mut report.late), (Class::Skewed, &mut report.skewed)];
        for (class, first) in firsts {
            if report.counts.of(class) > 0 && first.is_none() {
                let at = self.verdicts.classes.iter().position(|&other| other == class);
                let (name, line) = place(at.unwrap_or(0));
                *first = Some(format!("{name}:{line}"));
            }
        }
        let keyed = batch.records.iter().zip(&batch.extras);
        for (_, extra) in keyed.filter(|(record, _)| record.kind == Kind::Keyed) {
            report.with_change += u64::from(extra.change != 0);
            report.with_rank += u64::from(extra.rank.is_some());
        }
        report.with_band += batch.bands.iter().filter(|number| !number.is_nan()).count() as u64;
        for (index, fault) in &batch.faults {
            let Some(record) = batch.records.get(*index as usize) else { continue };
            let examples = match self.verdicts.classes.get(*index as usize) {
                Some(Class::Invalid) => &mut report.invalid,
                _ if record.kind == Kind::Untimed => &mut report.untimed,
                _ => &mut report.missing,
            };
            if examples.len() < EXAMPLES {
                let (name, line) = place(*index as usize);
                examples.push(format!("{name}:{line}: {fault}"));
            }
        }
    }

    /// Holds fresh records, lets duplicates contend with them, and forwards those whose time is over,
    /// each in its place among the records that are not held.
    fn hold(
        &mut self,
        batch: &Batch,
        mark: Mark,
        name: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let mut written = 0;
        let by_arrival = self.judge.moments().by_arrival();
        if let Some(hold) = &mut self.hold {
            hold.by_arrival(by_arrival);
        }
        let write = |this: &mut Self, range: Range<usize>| {
            this.sink.write(batch, range, &this.verdicts.classes, mark, name, first_line)
        };
        for (index, record) in batch.records.iter().enumerate() {
            let class = self.verdicts.classes[index];
            if matches!(class, Class::Header | Class::Aside) {
                continue;
            }
            let now = self.verdicts.moments[index];
            let is_judged = matches!(class, Class::Fresh | Class::Duplicate);
            if let Some(hold) = self.hold.as_mut().filter(|_| is_judged) {
                hold.arrive();
            }
            if self.hold.as_ref().is_some_and(|hold| hold.is_due(now)) {
                write(self, written..index)?;
                written = index;
                self.release(now)?;
            }
            let Some(hold) = &mut self.hold else { return Ok(()) };
            // A duplicate whose key is not held is written as if nothing were.
            let contends = class == Class::Duplicate && hold.holds(record.digest);
            let counts = hold.counts().is_some();
            self.report.uncounted += u64::from(counts && class == Class::Duplicate && !contends);
            if class != Class::Fresh && !contends {
                continue;
            }
            let text = batch.bytes_of(record);
            let mut bytes = Vec::with_capacity(text.len() + usize::from(batch.detached));
            bytes.extend_from_slice(text);
            if batch.detached {
                bytes.push(b'\n');
            }
            let rank = batch.extras.get(index).and_then(|extra| extra.rank).filter(|_| !counts);
            let held = Held { bytes, mark, rank };
            self.verdicts.classes[index] = Class::Held;
            if class == Class::Fresh {
                if let Some(outlived) = hold.begin(record.digest, now, held) {
                    write(self, written..index)?;
                    written = index;
                    self.forward(&outlived)?;
                }
            } else {
                let worse = hold.contend(record.digest, now, held);
                self.report.counts.add(Class::Duplicate, 1);
                write(self, written..index)?;
                written = index;
                self.sink.drop_duplicate(&worse.bytes, worse.mark)?;
            }
        }
        write(self, written..batch.records.len())
    }

    fn release(&mut self, now: Tick) -> Result<(), SinkError> {
        while let Some(hold) = &mut self.hold {
            let early = hold.is_full() && hold.counts().is_some();
            let Some(held) = hold.release(now) else { break };
            self.report.counted_early += u64::from(early);
            self.forward(&held)?;
        }
        Ok(())
    }

    fn release_all(&mut self) -> Result<(), SinkError> {
        while let Some(held) = self.hold.as_mut().and_then(Hold::pop) {
            self.forward(&held)?;
        }
        Ok(())
    }

    fn forward(&mut self, held: &Held) -> Result<(), SinkError> {
        match &self.hold {
            Some(hold) if !hold.is_wanted(held) => {
                self.report.counts.add(Class::Withheld, 1);
                self.sink.drop_duplicate(&held.bytes, held.mark)
            }
            Some(hold) if hold.counts().is_some() => {
                self.report.counts.add(Class::Fresh, 1);
                self.sink.forward_with_copies(&held.bytes, copies(held), held.mark)
            }
            _ => {
                self.report.counts.add(Class::Fresh, 1);
                self.sink.forward(&held.bytes, Class::Fresh, held.mark, false)
            }
        }
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

    /// Acknowledges the messages that are dealt with: all that was made of them is written and confirmed, and the
    /// state that remembers them is saved. Begins to save it, if it is time for that.
    ///
    /// While they were not acknowledged, the broker delivers them again after a crash; so none is lost, and none is
    /// remembered that was not forwarded.
    fn acknowledge(&mut self) -> Result<(), SinkError> {
        let Some(receipts) = &self.receipts else { return Ok(()) };
        // Records that wait are only safe in a state.
        let waits = self.hold.is_some() || self.sink.holds_back();
        let quiet = self.is_dry;
        match &self.state {
            None if waits => return Ok(()),
            None if !receipts.are_due(quiet) => return Ok(()),
            None => {
                self.confirm()?;
                self.all_is_safe();
                return Ok(());
            }
            Some(state) if state.is_busy() => return Ok(()),
            Some(_) => {}
        }
        self.settle()?;
        if self.receipts.as_ref().is_none_or(|receipts| !receipts.are_due(quiet)) {
            return Ok(());
        }
        let began = Instant::now();
        self.save()?;
        if self.state.as_ref().is_some_and(|state| !state.is_in_flight()) {
            // There was nothing to save: nothing has changed.
            self.confirm()?;
            self.all_is_safe();
        }
        if let Some(receipts) = &mut self.receipts {
            (receipts.began, receipts.took) = (began, began.elapsed());
        }
        Ok(())
    }

    /// All messages that were judged are dealt with.
    fn all_is_safe(&mut self) {
        if let Some(receipts) = &mut self.receipts {
            receipts.began = Instant::now();
            receipts.acknowledge(receipts.judged);
        }
    }

    fn save_if_due(&mut self) -> Result<(), SinkError> {
        let Some(state) = &self.state else { return Ok(()) };
        if state.is_busy() {
            return Ok(());
        }
        if self.save_asked || state.is_due() { self.save() } else { self.settle() }
    }

    /// A number that rises whenever something changes that is saved.
    fn changes(&self) -> u64 {
        self.judge.changes() + self.hold.as_ref().map_or(0, Hold::changes)
    }

    /// Begins to save the state, if anything has changed, after everything it remembers was written. A
    /// state that cannot be saved does not end the stream. While another save is in flight this
    /// one waits for its turn; the stream does not.
    fn save(&mut self) -> Result<(), SinkError> {
        let changes = self.changes();
        let Some(state) = &mut self.state else { return Ok(()) };
        self.save_asked = state.is_busy();
        if self.save_asked {
            return Ok(());
        }
        self.settle()?;
        let Some(state) = &mut self.state else { return Ok(()) };
        if !state.is_stale(changes) {
            state.skip();
            return Ok(());
        }
        self.confirm()?;
        let (judge, hold) = (&self.judge, &self.hold);
        let held: Vec<_> = hold.iter().flat_map(Hold::waiting).collect();
        let Some(state) = &mut self.state else { return Ok(()) };
        let outputs = self.sink.unsynced();
        let begun = state.begin(changes, outputs, |out| judge.write_state(&held, out));
        if let (Ok(()), Some(receipts)) = (&begun, &mut self.receipts) {
            receipts.saving = Some(receipts.judged);
        }
        self.note_save(begun)
    }

    /// Waits for the save in flight, if there is one.
    fn settle(&mut self) -> Result<(), SinkError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let was_in_flight = state.is_in_flight();
        let settled = state.settle();
        if was_in_flight && settled.is_ok() {
            self.report.save_failed = false;
            if let Some(receipts) = &mut self.receipts
                && let Some(token) = receipts.saving.take()
            {
                receipts.acknowledge(token);
            }
        }
        self.note_save(settled)
    }

    fn note_save(&mut self, result: Result<(), SaveError>) -> Result<(), SinkError> {
        match result {
            Ok(()) => Ok(()),
            Err(SaveError::Output(error)) => Err(error),
            // Without it no message can be acknowledged, so soon none would come any more.
            Err(SaveError::State(error)) if self.receipts.is_some() => {
                let (name, error) = ("the state".into(), std::io::Error::other(error.to_string()));
                Err(SinkError { name, main: false, error })
            }
            Err(SaveError::State(error)) => {
                self.report.save_failed = true;
                self.report.state_errors.0 += 1;
                self.report.state_errors.1 = Some(error.to_string());
                Ok(())
            }
        }
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

    /// Saves the state, and waits until it is saved.
    fn save_all(&mut self) -> Result<(), SinkError> {
        // What is in flight may be older than what there is to save by now.
        self.settle()?;
        self.save()?;
        self.settle()
    }
}
