//! Fresh records wait for a better one, or for their copies, before they are forwarded.

use super::Pipeline;
use crate::judge::Decide;
use crate::judge::class::Class;
use crate::judge::hold::{Held, Hold, copies};
use crate::record::{Batch, Mark, Record};
use crate::write::output::SinkError;
use lately::Tick;

/// A batch on its way out. Records before `written` have been written, or are held.
struct Passage<'a> {
    batch: &'a Batch,
    mark: Mark,
    name: &'a str,
    first_line: u64,
    written: usize,
}

impl Passage<'_> {
    /// A record as it is held: its line with an end, and its rank if there is to be a best one.
    fn held(&self, index: usize, is_ranked: bool) -> Held {
        let Self { batch, mark, .. } = *self;
        let text = batch.bytes_of(&batch.records[index]);
        let mut bytes = Vec::with_capacity(text.len() + usize::from(batch.detached));
        bytes.extend_from_slice(text);
        if batch.detached {
            bytes.push(b'\n');
        }
        let rank = batch.extras.get(index).and_then(|extra| extra.rank).filter(|_| is_ranked);
        Held { bytes, mark, rank }
    }
}

impl<J: Decide> Pipeline<J> {
    /// Holds fresh records, lets duplicates contend with them, and forwards those whose time is over,
    /// each in its place among the records that are not held.
    pub(super) fn hold(
        &mut self,
        batch: &Batch,
        mark: Mark,
        name: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let by_arrival = self.judge.moments().by_arrival();
        if let Some(hold) = &mut self.hold {
            hold.by_arrival(by_arrival);
        }
        let mut passage = Passage { batch, mark, name, first_line, written: 0 };
        for (index, record) in batch.records.iter().enumerate() {
            self.hold_one(&mut passage, index, record)?;
        }
        self.write_before(&mut passage, batch.records.len())
    }

    fn hold_one(
        &mut self,
        passage: &mut Passage<'_>,
        index: usize,
        record: &Record,
    ) -> Result<(), SinkError> {
        let class = self.verdicts.classes[index];
        if matches!(class, Class::Header | Class::Aside) {
            return Ok(());
        }
        let now = self.verdicts.moments[index];
        let is_judged = matches!(class, Class::Fresh | Class::Duplicate);
        if let Some(hold) = self.hold.as_mut().filter(|_| is_judged) {
            hold.arrive();
        }
        if self.hold.as_ref().is_some_and(|hold| hold.is_due(now)) {
            self.write_before(passage, index)?;
            self.release(now)?;
        }
        let Some(hold) = &mut self.hold else { return Ok(()) };
        // A duplicate whose key is not held is written as if nothing were.
        let contends = class == Class::Duplicate && hold.holds(record.digest);
        let counts = hold.counts().is_some();
        self.report.uncounted += u64::from(counts && class == Class::Duplicate && !contends);
        if class != Class::Fresh && !contends {
            return Ok(());
        }
        let held = passage.held(index, !counts);
        self.verdicts.classes[index] = Class::Held;
        if class == Class::Fresh {
            let Some(outlived) = hold.begin(record.digest, now, held) else { return Ok(()) };
            self.write_before(passage, index)?;
            self.forward(&outlived)
        } else {
            let worse = hold.contend(record.digest, now, held);
            self.report.counts.add(Class::Duplicate, 1);
            self.write_before(passage, index)?;
            self.sink.drop_duplicate(&worse.bytes, worse.mark)
        }
    }

    /// Writes what comes before a record and is not held.
    fn write_before(&mut self, passage: &mut Passage<'_>, index: usize) -> Result<(), SinkError> {
        let Passage { batch, mark, name, first_line, written } = *passage;
        passage.written = index;
        let classes = &self.verdicts.classes;
        self.sink.write(batch, written..index, classes, mark, name, first_line)
    }

    pub(super) fn release(&mut self, now: Tick) -> Result<(), SinkError> {
        while let Some(hold) = &mut self.hold {
            let early = hold.is_full() && hold.counts().is_some();
            let Some(held) = hold.release(now) else { break };
            self.report.counted_early += u64::from(early);
            self.forward(&held)?;
        }
        Ok(())
    }

    pub(super) fn release_all(&mut self) -> Result<(), SinkError> {
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
}
