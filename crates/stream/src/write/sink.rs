//! Where records go: the output for what is forwarded, and those that classes have of their own.

use crate::judge::class::Class;
use crate::judge::timeline::Timeline;
use crate::record::{Batch, Mark, Record};
use crate::write::added::Added;
use crate::write::diverted::Diverted;
use crate::write::message::About;
use crate::write::output::{Output, SinkError, Unsynced};
use crate::write::sort::Sorter;
#[cfg(feature = "parquet")]
use arrow_array::RecordBatch;
use lately::Tick;
use std::ops::Range;

/// All outputs of a run.
pub struct Sink {
    main: Output,
    diverted: Diverted,
    added: Added,
    /// Records are not forwarded: the main output is for rows that are made of them.
    rows: bool,
    /// Records to be forwarded wait in it, to be sorted.
    sorter: Option<Sorter>,
    /// How the times of sorted records become ticks.
    line: Timeline,
    /// Inputs with another header line than the first.
    mismatched: Vec<String>,
}

impl Sink {
    /// A sink that forwards records to `main`.
    pub fn new(mut main: Output) -> Self {
        main.main = true;
        Self {
            main,
            diverted: Diverted::default(),
            added: Added::default(),
            rows: false,
            sorter: None,
            line: Timeline::default(),
            mismatched: Vec::new(),
        }
    }

    /// Also writes the records that are dropped, duplicates and those outside, to an output.
    #[must_use]
    pub fn dropped(mut self, output: Option<Output>) -> Self {
        self.diverted.dropped = output;
        self
    }

    /// Writes late records to an output of their own instead of forwarding them.
    #[must_use]
    pub fn late(mut self, output: Option<Output>) -> Self {
        self.diverted.late = output;
        self
    }

    /// Writes records without a usable key to an output of their own instead of forwarding them.
    #[must_use]
    pub fn missing(mut self, output: Option<Output>) -> Self {
        self.diverted.missing = output;
        self
    }

    /// Writes dead letters to an output: input, line, reason and the record, separated by tabs.
    #[must_use]
    pub fn invalid(mut self, output: Option<Output>) -> Self {
        self.diverted.invalid = output;
        self
    }

    /// Forwards duplicates as well, and marks every record with its class.
    #[must_use]
    pub fn marked(mut self, marks: bool) -> Self {
        self.added.marks = marks;
        self
    }

    /// Adds the number of its copies to every record, as a column or a member of this name.
    #[must_use]
    pub fn counted(mut self, name: Option<String>) -> Self {
        self.added.count = name;
        self
    }

    /// Forwards no records, but what [`Sink::write_rows`] is given.
    #[must_use]
    pub fn of_rows(self) -> Self {
        Self { rows: true, ..self }
    }

    /// Forwards records in the order of their times.
    #[must_use]
    pub fn sorted(self, sorter: Option<Sorter>) -> Self {
        Self { sorter, ..self }
    }

    /// The clock stands at `now` of this line: forwards the sorted records whose turn it is.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn advance(&mut self, now: Option<Tick>, line: Timeline) -> Result<(), SinkError> {
        self.line = line;
        let is_back = match (&mut self.sorter, now) {
            (Some(sorter), Some(now)) => sorter.advance(now),
            _ => false,
        };
        self.release(is_back)
    }

    /// Forwards the sorted records whose turn it is; at the end (`all`) those that are left.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn release(&mut self, all: bool) -> Result<(), SinkError> {
        while let Some(record) = self.sorter.as_mut().and_then(|sorter| sorter.pop(all)) {
            self.main.put(&record).map_err(|error| self.gravest(error))?;
        }
        Ok(())
    }

    /// Inputs whose header line is not the one that was written: their records are in the output
    /// under the names of other columns.
    pub fn mismatched_headers(&self) -> &[String] {
        &self.mismatched
    }

    /// Bytes forwarded.
    pub fn written(&self) -> u64 {
        self.main.written
    }

    /// How often records were handed to the system.
    pub(crate) fn writes(&self) -> u64 {
        self.main.writes
    }

    /// Has the reader of the forwarded records gone away?
    pub(crate) fn is_closed(&self) -> bool {
        self.main.is_closed()
    }

    /// What a write would say to that.
    pub(crate) fn closed(&self) -> SinkError {
        self.main.error(std::io::ErrorKind::BrokenPipe.into())
    }

    /// Is everything written that was forwarded?
    pub(crate) fn is_flushed(&self) -> bool {
        self.main.is_flushed() && !self.holds_back()
    }

    /// Do records to be forwarded wait to be sorted?
    pub(crate) fn holds_back(&self) -> bool {
        self.main.is_unfinished() || self.sorter.as_ref().is_some_and(|sorter| !sorter.is_empty())
    }

    /// Writes some records of a batch where their classes say. `first_line` is the number of the
    /// batch's first line in the input called `source`.
    ///
    /// # Errors
    /// [`SinkError`] when an output cannot be written; what was written before stands.
    pub fn write(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        mark: Mark,
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        self.write_batch(batch, range, classes, mark, source, first_line)
            .map_err(|error| self.gravest(error))
    }

    /// Writes rows that were made of records, and before the first of a new output its header line.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn write_rows(&mut self, header: &[u8], rows: &[u8]) -> Result<(), SinkError> {
        let mut written = Ok(());
        if !header.is_empty() && !self.main.has_header {
            self.main.has_header = true;
            written = self.main.put(header);
        }
        let written = written.and_then(|()| {
            if !self.main.is_of_messages() {
                return self.main.put(rows);
            }
            self.main.about = About::class(Class::Visit);
            each_row(rows, |row| self.main.put(row))
        });
        written.map_err(|error| self.gravest(error))
    }

    /// When the reader of the main output goes away the run ends quietly, but not before the other
    /// outputs have their records.
    fn gravest(&mut self, error: SinkError) -> SinkError {
        let quiet = error.is_closed_pipe();
        let flushed = if quiet { self.diverted.flush() } else { Ok(()) };
        flushed.err().unwrap_or(error)
    }

    fn write_batch(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        mark: Mark,
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let Some(records) = batch.records.get(range.clone()) else { return Ok(()) };
        let Some(classes) = classes.get(range.clone()) else { return Ok(()) };
        #[cfg(feature = "parquet")]
        if let Some(columns) = &batch.columns {
            return self.write_columns(columns, classes);
        }
        for output in self.diverted.of_records().chain([&mut self.main]) {
            output.line_end = batch.line_end.unwrap_or(b'\n');
        }
        if self.sorter.is_some() {
            self.sort(batch, records, classes, mark, source)?;
        } else if !self.added.is_nothing() || batch.detached || self.main.is_of_messages() {
            self.write_each(batch, range.clone(), classes, mark, source)?;
        } else {
            self.write_runs(batch, records, classes, mark, source)?;
        }
        if self.diverted.outputs().next().is_none() {
            return Ok(());
        }
        self.diverted.write(batch, range, classes, source, first_line)
    }

    /// Writes the rows of columns that are forwarded, or have an output of their own.
    #[cfg(feature = "parquet")]
    fn write_columns(&mut self, columns: &RecordBatch, classes: &[Class]) -> Result<(), SinkError> {
        let forwarded: Vec<_> = classes.iter().map(|class| self.is_forwarded(*class)).collect();
        self.main.put_some_rows(columns, &forwarded)?;
        self.diverted.write_columns(columns, classes)
    }

    /// Ends the files of columns, which cannot be read before.
    #[cfg(feature = "parquet")]
    pub(crate) fn finish_columns(&mut self) -> Result<(), SinkError> {
        self.diverted.of_records().chain([&mut self.main]).try_for_each(Output::finish_columns)
    }

    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.diverted.outputs().chain([&self.main])
    }

    /// Are there records that nobody has confirmed yet, as they went out as messages?
    pub(crate) fn awaits(&self) -> bool {
        self.outputs().any(Output::awaits)
    }

    /// Waits until all records are confirmed that went out as messages.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn confirm(&mut self) -> Result<(), SinkError> {
        let outputs = self.diverted.outputs_mut().chain([&mut self.main]);
        outputs.map(Output::confirm).fold(Ok(()), Result::and)
    }

    fn is_forwarded(&self, class: Class) -> bool {
        match class {
            _ if self.rows => false,
            Class::Fresh | Class::Indexed | Class::Inside | Class::Skewed | Class::Aside => true,
            Class::KeyMissing => self.diverted.missing.is_none(),
            Class::Duplicate => self.added.marks,
            Class::Late => self.diverted.late.is_none(),
            Class::Withheld
            | Class::Outside
            | Class::Visit
            | Class::Invalid
            | Class::Held
            | Class::Header => false,
        }
    }

    /// Lets the records that are to be forwarded wait for their turn.
    fn sort(
        &mut self,
        batch: &Batch,
        records: &[Record],
        classes: &[Class],
        mark: Mark,
        source: &str,
    ) -> Result<(), SinkError> {
        for (record, &class) in records.iter().zip(classes) {
            let bytes = batch.bytes_of(record);
            if class == Class::Header {
                self.header(bytes, mark, source)?;
                continue;
            }
            if !self.is_forwarded(class) {
                continue;
            }
            let mut bytes = self.added.to_record(bytes, class, 1, mark).into_owned();
            // The last line of an input may lack its end, and is no longer the last one.
            let end = batch.line_end.unwrap_or(b'\n');
            if bytes.last() != Some(&end) {
                bytes.push(end);
            }
            let Some(sorter) = &mut self.sorter else { return Ok(()) };
            let time = record.time.filter(|_| class != Class::Skewed);
            let time = time.map(|time| self.line.place(time, sorter.newest()));
            if !sorter.push(time, bytes) {
                return Err(self.main.full(sorter.overflow()));
            }
        }
        Ok(())
    }

    /// Records are forwarded one by one, with what is added to each.
    fn write_each(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        mark: Mark,
        source: &str,
    ) -> Result<(), SinkError> {
        for (index, &class) in range.zip(classes) {
            let record = &batch.records[index];
            if class == Class::Header {
                self.header(batch.bytes_of(record), mark, source)?;
            } else if class == Class::Aside && !self.rows {
                if !self.main.is_of_messages() {
                    let aside = self.added.to_aside(batch, record, mark);
                    self.main.put_record(&aside, batch.detached)?;
                }
            } else if self.is_forwarded(class) {
                if self.main.is_of_messages() {
                    self.main.about = About::of(batch, index, class);
                }
                let bytes = self.added.to_record(batch.bytes_of(record), class, 1, mark);
                self.main.put_record(&bytes, batch.detached)?;
            }
        }
        Ok(())
    }

    /// Records that follow one another in the batch are copied as one piece.
    fn write_runs(
        &mut self,
        batch: &Batch,
        records: &[Record],
        classes: &[Class],
        mark: Mark,
        source: &str,
    ) -> Result<(), SinkError> {
        let piece = |from: usize, to: usize| batch.bytes.get(from..to).unwrap_or(&[]);
        let (mut start, mut end) = (0, 0);
        for (record, &class) in records.iter().zip(classes) {
            if class == Class::Header {
                // It goes out at once, so what precedes it must go first.
                self.main.put(piece(start, end))?;
                (start, end) = (0, 0);
                self.header(batch.bytes_of(record), mark, source)?;
            } else if self.is_forwarded(class) {
                if record.start as usize != end {
                    self.main.put(piece(start, end))?;
                    start = record.start as usize;
                }
                end = record.end as usize;
            }
        }
        self.main.put(piece(start, end))
    }

    /// Forwards one record that is not in a batch: one that was held.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn forward(
        &mut self,
        bytes: &[u8],
        class: Class,
        mark: Mark,
        detached: bool,
    ) -> Result<(), SinkError> {
        self.put(bytes, class, 1, mark, detached)
    }

    /// Forwards one record with the number of its copies, if that is wanted.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn forward_with_copies(
        &mut self,
        bytes: &[u8],
        copies: u64,
        mark: Mark,
    ) -> Result<(), SinkError> {
        self.put(bytes, Class::Fresh, copies, mark, false)
    }

    fn put(
        &mut self,
        bytes: &[u8],
        class: Class,
        copies: u64,
        mark: Mark,
        detached: bool,
    ) -> Result<(), SinkError> {
        self.main.about = About::class(class);
        let record = self.added.to_record(bytes, class, copies, mark);
        self.main.put_record(&record, detached).map_err(|error| self.gravest(error))
    }

    /// Drops one record that is not in a batch: a held one that lost.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn drop_duplicate(&mut self, bytes: &[u8], mark: Mark) -> Result<(), SinkError> {
        if self.added.marks {
            self.forward(bytes, Class::Duplicate, mark, false)?;
        }
        self.diverted.drop_duplicate(bytes)
    }

    fn header(&mut self, bytes: &[u8], mark: Mark, source: &str) -> Result<(), SinkError> {
        let header = &mut self.diverted.header;
        if header.is_empty() {
            *header = bytes.to_vec();
        } else if header.trim_ascii_end() != bytes.trim_ascii_end() {
            self.mismatched.push(source.into());
        }
        self.added.begin(bytes, mark);
        if !self.main.has_header && !self.rows {
            self.main.has_header = true;
            self.main.put(&self.added.to_header(bytes, mark))?;
        }
        Ok(())
    }

    /// What is left to do, after [`Sink::flush`], for the records written so far to survive a power
    /// failure.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        self.outputs().filter_map(Output::unsynced).collect()
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn flush(&mut self) -> Result<(), SinkError> {
        let main = self.main.flush();
        let others = self.diverted.flush();
        // A reader that went away does not hide a failure.
        match main {
            Err(error) if !error.is_closed_pipe() => Err(error),
            main => others.and(main),
        }
    }
}

/// Does this with each row; a line end in quotes is part of one.
fn each_row(
    rows: &[u8],
    mut put: impl FnMut(&[u8]) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let (mut start, mut quoted) = (0, false);
    for at in memchr::memchr2_iter(b'"', b'\n', rows) {
        if rows[at] == b'"' {
            quoted = !quoted;
        } else if !quoted {
            put(&rows[start..=at])?;
            start = at + 1;
        }
    }
    put(&rows[start..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Envelope, Kind, Parcel};
    use crate::write::message::MessageOutput;
    use lately::Digest;
    use std::fs::File;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[test]
    fn rows_are_told_apart() {
        let mut rows = Vec::new();
        let text = b"a,1\n\"b\nc\",2\nd";
        each_row(text, |row| {
            rows.push(String::from_utf8_lossy(row).into_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(rows, ["a,1\n", "\"b\nc\",2\n", "d"]);
    }

    /// A record that was sent, its class and the id of the message that it came in.
    type One = (String, Class, Option<String>);

    /// Keeps what is sent.
    #[derive(Clone, Default)]
    struct Sent(Arc<Mutex<Vec<One>>>);

    impl Sent {
        fn output(&self) -> Output {
            Output::of_messages("sent", Box::new(self.clone()))
        }

        #[track_caller]
        fn were(&self, expected: &[(&str, Class, Option<&str>)]) {
            let sent = std::mem::take(&mut *self.0.lock().unwrap());
            let sent: Vec<_> = sent.iter().map(|(r, c, id)| (&r[..], *c, id.as_deref())).collect();
            assert_eq!(sent, expected);
        }
    }

    impl MessageOutput for Sent {
        fn send(&mut self, record: &[u8], about: &About) -> io::Result<()> {
            let record = String::from_utf8_lossy(record).into_owned();
            let id = about.from.as_ref().map(|(envelope, _)| envelope.id.clone());
            self.0.lock().unwrap().push((record, about.class, id));
            Ok(())
        }

        fn confirm(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Records of one byte, each of a message of its own whose id is its number.
    fn batch_of_messages(text: &str) -> Batch {
        let of = |at: u32| {
            let envelope = Envelope { id: at.to_string(), ..Envelope::default() };
            (Arc::new(envelope), 0)
        };
        let (kind, digest, time) = (Kind::Keyed, Digest::new(0, 0), None);
        let record = |at: u32| Record { start: at, end: at + 1, line: at, kind, digest, time };
        let all = 0..text.len() as u32;
        let parcel = Parcel { token: 1, of: all.clone().map(of).collect() };
        let records = all.map(record).collect();
        Batch { bytes: text.into(), records, parcel: Some(parcel), ..Batch::default() }
    }

    /// What tells a message from all others must not be that of another record, or the broker may drop it.
    #[test]
    fn a_record_that_waited_is_not_sent_as_another_one() {
        let (main, dropped) = (Sent::default(), Sent::default());
        let mut sink = Sink::new(main.output()).dropped(Some(dropped.output()));
        let (batch, mark) = (batch_of_messages("abcd"), Mark::Column(b','));
        let classes = [Class::Fresh, Class::Duplicate, Class::Held, Class::Held];
        sink.write(&batch, 0..4, &classes, mark, "in", 1).unwrap();
        sink.forward(b"x", Class::Fresh, mark, false).unwrap();
        sink.drop_duplicate(b"y", mark).unwrap();
        main.were(&[("a", Class::Fresh, Some("0")), ("x", Class::Fresh, None)]);
        dropped.were(&[("b", Class::Duplicate, Some("1")), ("y", Class::Duplicate, None)]);
        let mut sink = sink.sorted(Some(Sorter::new(1, 1 << 20)));
        sink.write(&batch, 0..4, &classes, mark, "in", 1).unwrap();
        sink.release(true).unwrap();
        main.were(&[("a", Class::Fresh, None)]);
        dropped.were(&[("b", Class::Duplicate, Some("1"))]);
    }

    #[test]
    fn marks_are_replaced_also_where_records_are_sorted() {
        let bytes = b"k,lately\n1,duplicate\n".to_vec();
        let (digest, time) = (Digest::new(0, 0), None);
        let record = |start, end, kind| Record { start, end, line: 0, kind, digest, time };
        let records = vec![record(0, 9, Kind::Header), record(9, 21, Kind::Keyed)];
        let batch = Batch { bytes, records, ..Batch::default() };
        for sorter in [None, Some(Sorter::new(1, 1 << 20))] {
            let main = Sent::default();
            let mut sink = Sink::new(main.output()).marked(true).sorted(sorter);
            let classes = [Class::Header, Class::Fresh];
            sink.write(&batch, 0..2, &classes, Mark::Column(b','), "in", 1).unwrap();
            sink.release(true).unwrap();
            main.were(&[("1,fresh", Class::Fresh, None)]);
        }
    }

    #[test]
    fn files_are_synced_and_other_outputs_left_alone() {
        let path = std::env::temp_dir().join(format!("lately-sync-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let file = Output::new("file", Box::new(file.try_clone().unwrap())).sync_on_save(&file);
        let mut sink = Sink::new(file).late(Some(Output::new("none", Box::new(io::sink()))));
        sink.main.put(b"a\n").unwrap();
        sink.flush().unwrap();
        let unsynced = sink.unsynced();
        assert_eq!(unsynced.len(), 1);
        unsynced[0].sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\n");
        std::fs::remove_file(path).unwrap();
    }
}
