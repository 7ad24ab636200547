//! Reads Parquet and Arrow files into batches of records.

use super::ColumnFormat;
use super::row::{ColumnRow, is_readable};
use crate::format::emit::Emit;
use crate::format::layout::Places;
use crate::format::names;
use crate::read::source::{Source, SourceErrorKind};
use crate::read::workers::Event;
use crate::record::field::{Fields, Scratch};
use crate::record::{Batch, Mark};
use crate::scan::lines::Span;
use crate::schema;
use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Rows of a batch.
const ROWS: usize = 8192;

/// The batches of a file.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// Reads files of columns, one after another.
///
/// # Guarantee
/// Every row of a file that is read to its end is one record, in order. All files have the columns of the first.
pub(crate) struct ColumnReader {
    source: Source,
    free: Receiver<Batch>,
    done: Sender<(u64, Event)>,
    read: Arc<AtomicU64>,
    number: u64,
    scratch: Scratch,
}

/// The run is over, or has ended otherwise.
struct Over;

/// The columns of a file.
struct Columns(Vec<String>);

impl Places for Columns {
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String> {
        names::find(name, own, &self.0)
    }

    fn width(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn is_table(&self) -> bool {
        true
    }
}

impl ColumnReader {
    pub(crate) fn new(
        source: Source,
        free: Receiver<Batch>,
        done: Sender<(u64, Event)>,
        read: Arc<AtomicU64>,
    ) -> Self {
        Self { source, free, done, read, number: 0, scratch: Scratch::default() }
    }

    pub(crate) fn run(&mut self) {
        // It ends when the run does, or with the last record.
        let _ = self.read_all();
    }

    fn read_all(&mut self) -> Result<(), Over> {
        let mut first = None;
        for at in 0..self.source.names().len() {
            let name = self.source.names()[at].clone();
            let opened = open(&name).and_then(|(schema, batches)| {
                let fields = self.fields(&schema, &first)?;
                Ok((schema, fields, batches))
            });
            match opened {
                Ok((schema, fields, batches)) => {
                    let is_first = first.is_none();
                    let first = first.get_or_insert_with(|| Arc::clone(&schema));
                    // So that an output has its columns although there may be no row.
                    if is_first {
                        self.send(at, RecordBatch::new_empty(Arc::clone(first)), &fields)?;
                    }
                    self.read_file(at, batches, &fields)?;
                }
                Err(kind) => self.tell(Event::Failed(self.source.error(at, kind)))?,
            }
        }
        Ok(())
    }

    /// What is wanted of the rows of a file.
    fn fields(
        &self,
        schema: &SchemaRef,
        first: &Option<SchemaRef>,
    ) -> Result<Fields, SourceErrorKind> {
        if first.as_ref().is_some_and(|first| first.fields() != schema.fields()) {
            let why = "its columns, or their types, are not those of the first input; read it in a run of its own";
            return Err(SourceErrorKind::Setup(why.into()));
        }
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let fields = schema::fields(None, &mut Columns(names), self.source.options())
            .map_err(SourceErrorKind::Setup)?;
        for (column, field) in schema.fields().iter().enumerate() {
            if fields.uses(column) && !is_readable(field.data_type()) {
                return Err(SourceErrorKind::Setup(format!(
                    "column `{}` is of type {}, which cannot be read as a key or a time; name others, or leave it out ('*,-{}')",
                    field.name(),
                    field.data_type(),
                    field.name(),
                )));
            }
        }
        Ok(fields)
    }

    fn read_file(&mut self, at: usize, mut batches: Batches, fields: &Fields) -> Result<(), Over> {
        loop {
            // What is damaged must not end the run, whatever it does to the reader.
            let next = catch_unwind(AssertUnwindSafe(|| batches.next()));
            let next = next.unwrap_or_else(|_| Some(Err(ArrowError::ParseError("damaged".into()))));
            match next {
                None => return Ok(()),
                Some(Ok(rows)) => {
                    for start in (0..rows.num_rows()).step_by(ROWS) {
                        let length = ROWS.min(rows.num_rows() - start);
                        self.send(at, rows.slice(start, length), fields)?;
                    }
                }
                Some(Err(error)) => {
                    let kind = SourceErrorKind::Read(io::Error::other(error));
                    return self.tell(Event::Failed(self.source.error(at, kind)));
                }
            }
        }
    }

    /// Reads the fields of some rows and hands them on.
    fn send(&mut self, at: usize, rows: RecordBatch, fields: &Fields) -> Result<(), Over> {
        if self.source.ends_here() {
            return Err(Over);
        }
        let mut batch = self.free.recv().map_err(|_| Over)?;
        batch.source = at;
        batch.lines = rows.num_rows() as u64;
        let mut overlong = Vec::new();
        let (mut emit, _) =
            Emit::new(&mut batch, fields, usize::MAX, &mut self.scratch, &mut overlong);
        for row in 0..rows.num_rows() {
            let span = Span { start: 0, end: 0, line: row as u32 };
            emit.row(span, &ColumnRow { columns: rows.columns(), row });
        }
        batch.gather_digests();
        batch.columns = Some(rows);
        self.tell(Event::Batch(batch, Mark::Column(b'\t')))
    }

    fn tell(&mut self, event: Event) -> Result<(), Over> {
        self.read.store(self.number + 1, Ordering::Relaxed);
        self.done.send((self.number, event)).map_err(|_| Over)?;
        self.number += 1;
        Ok(())
    }
}

/// The columns of a file, and its rows.
fn open(name: &str) -> Result<(SchemaRef, Batches), SourceErrorKind> {
    let unreadable = |error: ArrowError| SourceErrorKind::Read(io::Error::other(error));
    let file = File::open(name).map_err(SourceErrorKind::Open)?;
    // What is damaged must not end the run, whatever it does to the reader.
    let opened = catch_unwind(AssertUnwindSafe(|| match ColumnFormat::of_file(name) {
        Some(ColumnFormat::Parquet) => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
            let schema = Arc::clone(builder.schema());
            let batches: Batches = Box::new(builder.with_batch_size(ROWS).build()?);
            Ok((schema, batches))
        }
        Some(ColumnFormat::Arrow) => {
            let reader = FileReader::try_new_buffered(file, None)?;
            let schema = reader.schema();
            let batches: Batches = Box::new(reader);
            Ok((schema, batches))
        }
        None => Err(ArrowError::ParseError("neither a Parquet nor an Arrow file".into())),
    }));
    let damaged = |_| Err(ArrowError::ParseError("damaged".into()));
    opened.unwrap_or_else(damaged).map_err(unreadable)
}
