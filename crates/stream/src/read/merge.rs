//! Merges inputs by time: `--merge`.
//!
//! One thread reads and parses all of them, and copies their records, one after another, into batches.

use super::parser::Parser;
use super::source::{Source, SourceErrorKind};
use super::workers::Event;
use crate::record::time::{DAY, Stated};
use crate::record::{Batch, Kind, Mark, Record};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Later records of an input that are asked whether the time of one is ahead of them.
const LOOK_AHEAD: usize = 64;

/// Bytes of a merged batch, more or less.
const BYTES: usize = 128 << 10;

/// Merges inputs by the times of their records.
///
/// # Guarantee
/// The records of each input keep their order. Where all inputs are in the order of time, so is what
/// comes out; records of one time come in the order of the inputs. A record goes to the place of its
/// time or, if that is behind a record before it, right behind that one; if it is ahead of one of the
/// 64 after it, it goes where that belongs, so that a wild time does not hold up an input. What has no
/// time stays behind the record before it.
///
/// # Cost
/// A comparison per record and doubling of the number of inputs, and a copy. Two pieces of each input
/// are in memory.
pub(super) struct Merge {
    /// Tells whether the run is to end.
    lead: Source,
    inputs: Vec<One>,
    names: Arc<[String]>,
    /// Lines that name or type the columns, by what they begin with.
    headings: BTreeMap<&'static [u8], Vec<u8>>,
    free: Receiver<Batch>,
    done: Sender<(u64, Event)>,
    read: Arc<AtomicU64>,
    number: u64,
}

/// One input.
struct One {
    source: Source,
    parser: Parser,
    /// What has been parsed of it.
    pieces: VecDeque<Piece>,
    /// The next record of the first piece.
    next: usize,
    has_ended: bool,
    lines: u64,
    /// The place of its last record.
    place: u64,
    /// The time of its last record, and how many were behind the one before them.
    last: u64,
    out_of_order: u64,
}

struct Piece {
    batch: Batch,
    mark: Mark,
    first_line: u64,
}

/// The run is over, or has ended otherwise.
struct Over;

impl Merge {
    pub(super) fn new(
        lead: Source,
        free: Receiver<Batch>,
        done: Sender<(u64, Event)>,
        read: Arc<AtomicU64>,
    ) -> Self {
        let names = lead.names().into();
        let inputs = lead.each().map(One::new).collect();
        Self { lead, inputs, names, headings: BTreeMap::new(), free, done, read, number: 0 }
    }

    pub(super) fn run(&mut self) {
        // It ends when the run does, or with the last record.
        let _ = self.merge();
    }

    fn merge(&mut self) -> Result<(), Over> {
        let mut order = BinaryHeap::new();
        for at in 0..self.inputs.len() {
            self.fill(at)?;
            self.enter(at, &mut order);
        }
        let mut out: Option<(Batch, Mark)> = None;
        while let Some(Reverse((_, at))) = order.pop() {
            let is_full = |(batch, mark): &(Batch, Mark), piece: &Piece| {
                batch.bytes.len() >= BYTES
                    || *mark != piece.mark
                    || batch.detached != piece.batch.detached
                    || batch.line_end != piece.batch.line_end
                    || batch.headings != piece.batch.headings
            };
            let Some(piece) = self.inputs[at].pieces.front() else { continue };
            if out.as_ref().is_some_and(|out| is_full(out, piece)) {
                self.send(out.take())?;
            }
            let (batch, _) = match &mut out {
                Some(out) => out,
                None => out.insert(self.begin(at)?),
            };
            self.inputs[at].hand_over(at, batch);
            self.fill(at)?;
            self.enter(at, &mut order);
        }
        self.send(out)?;
        for at in 0..self.inputs.len() {
            let count = self.inputs[at].out_of_order;
            if count > 0 {
                let name = &self.names[at];
                let records = if count == 1 { "record is" } else { "records are" };
                self.tell(Event::Note(format!(
                    "{name} is not in the order of time: {count} {records} earlier than the one before, and stay where they are"
                )))?;
            }
        }
        Ok(())
    }

    /// A batch for records of this input.
    fn begin(&self, at: usize) -> Result<(Batch, Mark), Over> {
        let mut batch = self.free.recv().map_err(|_| Over)?;
        let piece = self.inputs[at].pieces.front().ok_or(Over)?;
        batch.empty(Arc::clone(&self.names));
        batch.detached = piece.batch.detached;
        batch.line_end = piece.batch.line_end;
        batch.headings = piece.batch.headings;
        batch.texts.begin(piece.batch.texts.columns());
        Ok((batch, piece.mark))
    }

    fn send(&mut self, out: Option<(Batch, Mark)>) -> Result<(), Over> {
        if self.lead.ends_here() {
            return Err(Over);
        }
        let Some((batch, mark)) = out else { return Ok(()) };
        self.tell(Event::Batch(batch, mark))
    }

    fn tell(&mut self, event: Event) -> Result<(), Over> {
        self.read.store(self.number + 1, Ordering::Relaxed);
        self.done.send((self.number, event)).map_err(|_| Over)?;
        self.number += 1;
        Ok(())
    }

    /// Puts an input into the order by its next record.
    fn enter(&mut self, at: usize, order: &mut BinaryHeap<Reverse<(u64, usize)>>) {
        if let Some(place) = self.inputs[at].place_next() {
            order.push(Reverse((place, at)));
        }
    }

    /// Sees to it that two pieces of an input are at hand.
    fn fill(&mut self, at: usize) -> Result<(), Over> {
        while self.inputs[at].wants_more() {
            if self.lead.ends_here() {
                return Err(Over);
            }
            let columns = self.inputs.iter().find_map(|one| one.source.columns());
            let input = &mut self.inputs[at];
            input.source.compare_with(columns);
            let next = input.source.next_chunk(Vec::new());
            let notes = input.source.take_notes();
            match next {
                Ok(Some(chunk)) if chunk.schema.time_fields().next().is_none() => {
                    input.has_ended = true;
                    let why = "it has no time to be merged by; --time names it";
                    let error = input.source.error(at, SourceErrorKind::Setup(why.into()));
                    self.tell(Event::Failed(error))?;
                }
                Ok(Some(chunk)) => {
                    let (mark, mut batch) = (chunk.schema.mark(), Batch::default());
                    let parser = &mut input.parser;
                    let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse(chunk, &mut batch)));
                    if parsed.is_ok() && !are_alike(&batch, &mut self.headings) {
                        input.has_ended = true;
                        let why = "its columns are not those of the inputs before it, under which its records would stand; read it in a run of its own";
                        let error = input.source.error(at, SourceErrorKind::Setup(why.into()));
                        self.tell(Event::Failed(error))?;
                    } else if parsed.is_ok() {
                        let first_line = input.lines + 1;
                        input.lines += batch.lines;
                        input.pieces.push_back(Piece { batch, mark, first_line });
                    } else {
                        input.parser = Parser::new();
                        self.tell(Event::Lost(at))?;
                    }
                }
                Ok(None) => input.has_ended = true,
                Err(error) => self.tell(Event::Failed(error))?,
            }
            for note in notes {
                self.tell(Event::Note(note))?;
            }
        }
        Ok(())
    }
}

impl One {
    fn new(source: Source) -> Self {
        Self {
            source,
            parser: Parser::new(),
            pieces: VecDeque::new(),
            next: 0,
            has_ended: false,
            lines: 0,
            place: 0,
            last: 0,
            out_of_order: 0,
        }
    }

    /// Drops what is done with; is there room for another piece?
    fn wants_more(&mut self) -> bool {
        while self.pieces.front().is_some_and(|piece| self.next >= piece.batch.records.len()) {
            self.pieces.pop_front();
            self.next = 0;
        }
        !self.has_ended && self.pieces.len() < 2
    }

    /// Where the next record goes; `None` if there is none.
    fn place_next(&mut self) -> Option<u64> {
        let records = &self.pieces.front()?.batch.records;
        let last = self.last;
        if let Some(now) = records.get(self.next).and_then(|record| time(record, last)) {
            let rest = self.pieces.get(1).into_iter().flat_map(|piece| &piece.batch.records);
            let later = records.iter().skip(self.next + 1).chain(rest);
            let least =
                later.filter_map(|record| time(record, now)).take(LOOK_AHEAD).fold(now, u64::min);
            self.place = self.place.max(least);
            self.out_of_order += u64::from(now < self.last);
            self.last = now;
        }
        Some(self.place)
    }

    /// Copies the next record, which is of the input with this number, into a batch.
    fn hand_over(&mut self, at: usize, out: &mut Batch) {
        let Some(piece) = self.pieces.front() else { return };
        out.take_record(&piece.batch, self.next, (at as u32, piece.first_line));
        self.next += 1;
    }
}

/// Are the lines of a batch that name or type the columns those that were there before?
fn are_alike(batch: &Batch, known: &mut BTreeMap<&'static [u8], Vec<u8>>) -> bool {
    batch.headings.iter().all(|heading| {
        let lines = batch.records.iter().filter(|record| record.kind == Kind::Aside);
        let lines = lines.map(|record| batch.bytes_of(record).trim_ascii_end());
        lines.filter(|line| line.starts_with(heading.begins)).all(|line| {
            known.entry(heading.begins).or_insert_with(|| line.to_vec()).as_slice() == line
        })
    })
}

/// The time of a record as a number, if it has one. A time of day is of the day on which it is nearest
/// to `last`.
fn time(record: &Record, last: u64) -> Option<u64> {
    let time = match record.kind {
        Kind::Keyed | Kind::KeyMissing => record.time?,
        Kind::Untimed | Kind::Invalid | Kind::Header | Kind::Aside => return None,
    };
    Some(match time.stated() {
        Stated::Since1970(nanos) => nanos.cast_unsigned() ^ 1 << 63,
        Stated::OfDay(nanos) => {
            let days = last.saturating_sub(nanos).saturating_add(DAY / 2) / DAY;
            nanos + days * DAY
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::time::Time;
    use lately::Digest;

    #[test]
    fn times_of_day_roll_over_at_midnight() {
        let record = |hours: u64| {
            let (kind, digest) = (Kind::Keyed, Digest::new(0, 0));
            let time = Some(Time::of_day(hours * DAY / 24));
            Record { start: 0, end: 0, line: 0, kind, digest, time }
        };
        let mut last = 0;
        let mut places = Vec::new();
        for hours in [1, 23, 1, 0, 12, 23, 2] {
            last = time(&record(hours), last).unwrap();
            places.push(last / (DAY / 24));
        }
        assert_eq!(places, [1, 23, 25, 24, 36, 47, 50]);
    }
}
