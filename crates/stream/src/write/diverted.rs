//! Where records go that are not forwarded: outputs that classes have of their own.

use crate::judge::class::Class;
use crate::record::{Batch, Fault};
use crate::write::message::About;
use crate::write::output::{Output, SinkError};
#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;
use std::ops::Range;

/// An output for each class that has one.
#[derive(Default)]
pub(super) struct Diverted {
    /// Of duplicates, and of records outside.
    pub(super) dropped: Option<Output>,
    pub(super) late: Option<Output>,
    /// Of records without a usable key.
    pub(super) missing: Option<Output>,
    /// Of dead letters.
    pub(super) invalid: Option<Output>,
    /// The header line of the first input that had one, for outputs that begin later.
    pub(super) header: Vec<u8>,
}

impl Diverted {
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Output> {
        [&self.dropped, &self.late, &self.missing, &self.invalid].into_iter().flatten()
    }

    pub(super) fn outputs_mut(&mut self) -> impl Iterator<Item = &mut Output> {
        [&mut self.dropped, &mut self.late, &mut self.missing, &mut self.invalid]
            .into_iter()
            .flatten()
    }

    /// Those of records as they came: all but that of dead letters.
    pub(super) fn of_records(&mut self) -> impl Iterator<Item = &mut Output> {
        [&mut self.dropped, &mut self.late, &mut self.missing].into_iter().flatten()
    }

    /// Writes some records of a batch, as [`Sink::write`](super::sink::Sink::write) does.
    pub(super) fn write(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let passed = batch.faults.partition_point(|(at, _)| (*at as usize) < range.start);
        let mut faults = batch.faults[passed..].iter().peekable();
        for (index, &class) in range.zip(classes) {
            let record = &batch.records[index];
            let (bytes, detached) = (batch.bytes_of(record), batch.detached);
            let about = || About::of(batch, index, class);
            let output = match class {
                Class::Duplicate | Class::Outside => &mut self.dropped,
                Class::Late => &mut self.late,
                Class::KeyMissing => &mut self.missing,
                Class::Invalid => {
                    while faults.next_if(|(at, _)| (*at as usize) < index).is_some() {}
                    let fault = faults.peek().map(|(_, fault)| fault);
                    let line = first_line + u64::from(record.line);
                    let (source, line) = batch.origin(index).unwrap_or((source, line));
                    self.dead_letter(bytes, fault, source, line, about)?;
                    continue;
                }
                _ => continue,
            };
            put(output, &self.header, bytes, detached, about)?;
        }
        Ok(())
    }

    /// Writes the rows of columns whose classes have an output.
    #[cfg(feature = "parquet")]
    pub(super) fn write_columns(
        &mut self,
        columns: &RecordBatch,
        classes: &[Class],
    ) -> Result<(), SinkError> {
        let outputs = [
            (&mut self.dropped, [Class::Duplicate, Class::Outside]),
            (&mut self.late, [Class::Late; 2]),
            (&mut self.missing, [Class::KeyMissing; 2]),
        ];
        for (output, wanted) in outputs {
            let Some(output) = output else { continue };
            let of_it: Vec<_> = classes.iter().map(|class| wanted.contains(class)).collect();
            output.put_some_rows(columns, &of_it)?;
        }
        Ok(())
    }

    /// Writes a duplicate that is in no batch.
    pub(super) fn drop_duplicate(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let about = || About::class(Class::Duplicate);
        put(&mut self.dropped, &self.header, bytes, false, about)
    }

    fn dead_letter(
        &mut self,
        bytes: &[u8],
        fault: Option<&Fault>,
        source: &str,
        line: u64,
        about: impl FnOnce() -> About,
    ) -> Result<(), SinkError> {
        let Some(output) = &mut self.invalid else { return Ok(()) };
        let reason = fault.map_or_else(|| "unreadable".into(), Fault::to_string);
        if output.is_of_messages() {
            output.about = About { reason: Some(reason), ..about() };
            return output.put(bytes);
        }
        let reason = reason.replace(['\t', '\n'], " ");
        // The reason and the record are one line, and so is the next letter.
        let letter = [format!("{source}\t{line}\t{reason}\t").as_bytes(), bytes].concat();
        output.put_record(&letter, true)
    }

    /// Writes out what is buffered. One that fails does not keep the rest from being flushed.
    pub(super) fn flush(&mut self) -> Result<(), SinkError> {
        self.outputs_mut().map(Output::flush).fold(Ok(()), Result::and)
    }
}

/// Puts a record where its class has an output, after the header line if it is the first one there.
fn put(
    output: &mut Option<Output>,
    header: &[u8],
    bytes: &[u8],
    detached: bool,
    about: impl FnOnce() -> About,
) -> Result<(), SinkError> {
    let Some(output) = output else { return Ok(()) };
    if !output.has_header {
        output.has_header = true;
        output.put(header)?;
    }
    if output.is_of_messages() {
        output.about = about();
    }
    output.put_record(bytes, detached)
}
