//! Filters as bytes.

use super::AnyFilter;
use crate::codec::{self, Format, Reader, Writer};
use crate::generations::{self, Generation};
use crate::leaps::{self, Leaps};
use crate::window::{ends, late};
use crate::{Overload, RestoreError, SnapshotError, Spec, Tick, Window};
use alloc::vec::Vec;

/// Begins the snapshots of filters, and of range windows.
const MAGIC: [u8; 8] = *b"\x89LATE\r\n\x1a";

/// Snapshots of filters that take no late arrivals and have no guard, and of range windows.
pub(crate) const FILTER: Format = Format::new(MAGIC, 1);

/// Snapshots of range windows that are of one table or several; version 1 is read too. Those in between are of filters of points.
pub(crate) const RANGE_TABLES: Format = Format::new(MAGIC, 5).since(1);

/// Snapshots of range windows whose tables may be flat; all others are read too.
pub(crate) const RANGE_FORMS: Format = Format::new(MAGIC, 6).since(1);

/// Snapshots of any filter: version 1, and more where lateness, a guard, or when parts of a window were marked have to be
/// told.
const ANY_FILTER: Format =
    Format::new(MAGIC, 1 + late::VERSION + leaps::VERSION + ends::VERSION).since(1);

impl AnyFilter {
    /// The filter as bytes, which [`AnyFilter::restore`] reads. Layout: `docs/format.md`.
    ///
    /// *Cost:* one pass over the tables; as many bytes as [`Filter::memory`](crate::Filter::memory) and about 200 more.
    /// [`AnyFilter::snapshot_to`] does not hold them all at once.
    pub fn snapshot(&self) -> Vec<u8> {
        codec::to_vec(self.format(), |out| self.write_body(out))
    }

    /// The length of [`AnyFilter::snapshot`], exactly.
    pub fn snapshot_len(&self) -> u64 {
        codec::length(|out| self.write_body(out))
    }

    /// Hands the bytes of [`AnyFilter::snapshot`] to a sink, a part at a time.
    ///
    /// *Cost:* one pass over the tables, and a buffer of 64 KiB.
    ///
    /// # Errors
    /// The sink's first error; it is not called again after that.
    ///
    /// # Example
    /// ```
    /// # use core::num::NonZeroU64;
    /// use lately::{AnyFilter, Spec, Window};
    /// use std::io::{Read, Write};
    /// # let window = Window::Unbounded { capacity: NonZeroU64::new(1_000).unwrap() };
    /// # let filter = Spec::new(window).plan()?.build();
    /// let mut file = Vec::new();
    /// filter.snapshot_to(|bytes| file.write_all(bytes))?;
    ///
    /// let (len, mut source) = (file.len() as u64, &file[..]);
    /// let restored = AnyFilter::restore_from(len, |into| source.read(into))?;
    /// # assert!(restored == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        codec::write(self.format(), sink, |out| self.write_body(out))
    }

    /// Writes the snapshot into the body of another envelope.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.envelope(self.format(), |out| self.write_body(out));
    }

    fn format(&self) -> Format {
        let late = if self.plan.spec.lateness > 0 { late::VERSION } else { 0 };
        let guarded = if self.plan.spec.most_leap.is_some() { leaps::VERSION } else { 0 };
        let mut tables = self.older.iter().chain([&self.active]);
        let marked = tables.any(|table| table.engine.table().notes_ends());
        Format::new(MAGIC, 1 + late + guarded + if marked { ends::VERSION } else { 0 })
    }

    fn write_body(&self, out: &mut Writer<'_>) {
        self.plan.spec.write(self.structure(), out);
        out.u64(self.newest.0);
        if let Some(leaps) = &self.leaps {
            leaps.write_seen(out);
        }
        self.overload.write(out);
        out.u32(self.older.len() as u32);
        for table in self.older.iter().chain([&self.active]) {
            table.write(out);
        }
    }

    /// A filter from the bytes of [`AnyFilter::snapshot`]: the same verdicts from there on.
    ///
    /// # Errors
    /// [`SnapshotError`] for bytes that are cut off, damaged, foreign, or of a later version.
    /// Nothing is allocated that the bytes do not back up.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        codec::from_slice(ANY_FILTER, bytes, Self::read_body)
    }

    /// A filter from a source that has a snapshot of `len` bytes, and works as `std::io::Read::read` does.
    ///
    /// *Cost:* one pass, and a buffer of 64 KiB. Memory is taken as far as `len` backs it up.
    ///
    /// # Errors
    /// The source's own error, or that of [`AnyFilter::restore`].
    pub fn restore_from<E>(
        len: u64,
        source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, RestoreError<E>> {
        codec::read(ANY_FILTER, len, source, Self::read_body)
    }

    /// Reads what [`AnyFilter::write`] has put into another envelope.
    ///
    /// # Errors
    /// As [`AnyFilter::restore`].
    pub fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        input.envelope(ANY_FILTER, Self::read_body)
    }

    fn read_body(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let told = late::VERSION + leaps::VERSION + ends::VERSION;
        if (input.version() - 1) & !told != 0 {
            // One of a range window.
            let (found, newest) = (input.version(), 1 + told);
            return Err(SnapshotError::Version { found, newest });
        }
        let (spec, structure) = Spec::read(input)?;
        let impossible = |_| SnapshotError::Invalid("a filter that no plan makes");
        let plan = spec.plan().map_err(impossible)?;
        let newest = match spec.terms.window {
            Window::Count(_) => Tick(input.count()?),
            Window::Time { .. } | Window::Unbounded { .. } => Tick(input.u64()?),
        };
        let most_leap = plan.most_leap();
        let leaps = most_leap.map(|most| Leaps::read_seen(most, newest, input)).transpose()?;
        let overload = Overload::read(input)?;
        let mut older = Vec::new();
        for _ in 0..input.u32()? {
            older.push(Generation::read(&spec, structure, newest, input)?);
        }
        let active = Generation::read(&spec, structure, newest, input)?;
        generations::check(&plan, &older, &active).map_err(SnapshotError::Invalid)?;
        let filter = Self { newest, leaps, overload, ..Self::with_tables(plan, active, older) };
        // What a version without it can say is not said in another way.
        if ends::are_told(input) && filter.format().version != input.version() {
            return Err(SnapshotError::Invalid("a version for windows that note marks"));
        }
        Ok(filter)
    }

    /// [`AnyFilter::snapshot`] into a writer, a part at a time.
    ///
    /// # Errors
    /// The writer's.
    #[cfg(feature = "std")]
    pub fn save(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        self.snapshot_to(|bytes| out.write_all(bytes))
    }

    /// A filter from a reader that has a snapshot of `len` bytes, such as a file of that length.
    ///
    /// # Errors
    /// The reader's, and [`std::io::ErrorKind::InvalidData`] with a [`SnapshotError`].
    #[cfg(feature = "std")]
    pub fn load(len: u64, mut input: impl std::io::Read) -> std::io::Result<Self> {
        Self::restore_from(len, |into| input.read(into)).map_err(crate::deduper::io_error)
    }
}
