//! What can go wrong: planning and reading snapshots. Hot paths do not fail.

use core::fmt;

/// Why no plan keeps what a [`Spec`](crate::Spec) asks for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The false positive rate is not between 0 and 1 (both excluded).
    Fpr(f64),
    /// The structure cannot keep this kind of window.
    Window {
        /// The structure's name.
        structure: &'static str,
        /// Why, and what can.
        reason: &'static str,
    },
    /// More memory is needed than the limit allows.
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Numbers too large to be computed with (a window beyond 2^62 ticks, memory beyond 2^56 bytes).
    TooLarge(&'static str),
    /// The system does not give that much memory.
    Unavailable {
        /// Bytes asked for, for one table.
        bytes: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fpr(fpr) => write!(
                f,
                "a false positive rate of {fpr} cannot be planned: give one above 0 and below 1, such as 1e-6"
            ),
            Self::Window { structure, reason } => write!(f, "{structure}: {reason}"),
            Self::Memory { needed, limit } => write!(
                f,
                "this needs {needed} bytes and the limit is {limit}: allow more memory, fewer keys, a higher false positive rate or more slack"
            ),
            Self::TooLarge(what) => write!(f, "{what}"),
            Self::Unavailable { bytes } => {
                write!(f, "this machine does not have the {bytes} bytes that are needed")
            }
        }
    }
}

impl core::error::Error for PlanError {}

/// Why bytes are not a snapshot that can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes do not begin as a snapshot of this library does.
    Foreign,
    /// Written by a format version that this build does not know.
    Version {
        /// The version found.
        found: u16,
        /// The newest version known.
        newest: u16,
    },
    /// The bytes end before what their header promises, or continue after it.
    Length {
        /// Bytes that the header implies.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// The checksum does not match: the bytes were damaged.
    Checksum,
    /// A field has a value that no snapshot can have.
    Invalid(&'static str),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a Lately snapshot"),
            Self::Version { found, newest } => write!(
                f,
                "snapshot of format version {found}, but this build reads up to {newest}: use a newer lately"
            ),
            Self::Length { expected, found } => {
                write!(
                    f,
                    "snapshot of {found} bytes, but its header says {expected}: cut off or damaged"
                )
            }
            Self::Checksum => f.write_str("snapshot damaged: its checksum does not match"),
            Self::Invalid(what) => write!(f, "snapshot damaged: {what}"),
        }
    }
}

impl core::error::Error for SnapshotError {}

/// Why something that is read as a stream cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreError<E, X = SnapshotError> {
    /// The source's own error, such as an [`std::io::Error`](https://doc.rust-lang.org/std/io/struct.Error.html).
    Source(E),
    /// The bytes are not what they should be.
    Content(X),
}

impl<E: fmt::Display, X: fmt::Display> fmt::Display for RestoreError<E, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::Content(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error, X: core::error::Error> core::error::Error for RestoreError<E, X> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Source(error) => error.source(),
            Self::Content(error) => error.source(),
        }
    }
}

/// Why two filters cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They differ in structure, size, window, renewal or seed.
    Shape,
    /// They count their own arrivals, so that "the last n" of both together has no meaning.
    Counting,
    /// One has grown past its plan: their tables do not correspond.
    Grown,
    /// They are of a structure that grows by itself, and would not keep its rate.
    Growing,
    /// The two together hold more than fits.
    Full,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shape => "filters of different plans cannot be merged: give both the same plan and seed",
            Self::Counting => "filters of the last n arrivals cannot be merged, as each counts its own: use a window of time",
            Self::Grown => "filters that have grown cannot be merged: plan them for more keys",
            Self::Growing => {
                "a structure that grows by itself cannot be merged and keep its rate: use `bloom` or `blocked-bloom`"
            }
            Self::Full => "the two filters together hold more keys than fit: plan them for more keys",
        })
    }
}

impl core::error::Error for MergeError {}
