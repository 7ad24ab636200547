//! Writes rows of columns as a Parquet or an Arrow file.

use super::ColumnFormat;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of a row group of Parquet, which is in memory until it is written.
const GROUP: usize = 64 << 20;

/// What turns rows into the bytes of a file, which is complete once it is [finished](Self::finish).
pub(crate) struct ColumnWriter {
    writer: Writer,
    bytes: Shared,
}

enum Writer {
    Parquet(Box<ArrowWriter<Shared>>),
    Arrow(Box<FileWriter<Shared>>),
}

/// Bytes that nobody has taken yet.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ColumnWriter {
    /// A file of these columns.
    ///
    /// # Errors
    /// The format has no such columns.
    pub(crate) fn new(format: ColumnFormat, schema: SchemaRef) -> io::Result<Self> {
        let bytes = Shared::default();
        let writer = match format {
            ColumnFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_bytes(Some(GROUP))
                    .build();
                let writer = ArrowWriter::try_new(bytes.clone(), schema, Some(properties));
                Writer::Parquet(Box::new(writer.map_err(io::Error::other)?))
            }
            ColumnFormat::Arrow => {
                let writer = FileWriter::try_new(bytes.clone(), &schema);
                Writer::Arrow(Box::new(writer.map_err(io::Error::other)?))
            }
        };
        Ok(Self { writer, bytes })
    }

    /// Adds rows; returns the bytes to be written by then.
    ///
    /// # Errors
    /// They are not of the columns of the file.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> io::Result<Vec<u8>> {
        if rows.num_rows() > 0 {
            match &mut self.writer {
                Writer::Parquet(writer) => writer.write(rows).map_err(io::Error::other)?,
                Writer::Arrow(writer) => writer.write(rows).map_err(io::Error::other)?,
            }
        }
        Ok(self.bytes.take())
    }

    /// The end of the file, without which it cannot be read.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self.writer {
            Writer::Parquet(writer) => drop(writer.close().map_err(io::Error::other)?),
            Writer::Arrow(mut writer) => writer.finish().map_err(io::Error::other)?,
        }
        Ok(self.bytes.take())
    }
}
