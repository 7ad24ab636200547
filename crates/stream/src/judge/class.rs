//! What became of a record.

use crate::record::{Kind, Record};

/// What became of a record. Each record ends in exactly one class.
///
/// Which classes there are depends on what is asked: [`Fresh`](Self::Fresh) and
/// [`Duplicate`](Self::Duplicate) are answers of a filter, [`Indexed`](Self::Indexed) that of an index,
/// [`Visit`](Self::Visit) that of `lately visits`,
/// [`Inside`](Self::Inside) and [`Outside`](Self::Outside) those of a list of intervals. The others are
/// common to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not seen within the window: forwarded.
    Fresh,
    /// Seen within the window: dropped.
    Duplicate,
    /// Not seen within the window, but it came more than once, or just once, and the others are wanted:
    /// dropped.
    Withheld,
    /// Its keys were put into an index.
    Indexed,
    /// It is part of a visit.
    Visit,
    /// Its key is in one of the intervals: forwarded.
    Inside,
    /// Its key is in none of the intervals: dropped.
    Outside,
    /// Too old to be judged: forwarded, or to its own output.
    Late,
    /// Unreadable, or without a readable time: a dead letter.
    Invalid,
    /// Without a usable key: forwarded, or to its own output.
    KeyMissing,
    /// With a time too far in the future to be believed: forwarded.
    Skewed,
    /// Held for a moment; what becomes of it is decided later.
    Held,
    /// Not a record: a header line.
    Header,
    /// Not a record: a comment or a blank line, forwarded.
    Aside,
}

impl Class {
    /// The classes a record can end in.
    pub const FINAL: [Self; 11] = [
        Self::Fresh,
        Self::Duplicate,
        Self::Withheld,
        Self::Indexed,
        Self::Visit,
        Self::Inside,
        Self::Outside,
        Self::Late,
        Self::Invalid,
        Self::KeyMissing,
        Self::Skewed,
    ];

    /// Its name in summaries and marks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh | Self::Held => "fresh",
            Self::Duplicate => "duplicate",
            Self::Withheld => "withheld",
            Self::Indexed => "indexed",
            Self::Visit => "in_visits",
            Self::Inside => "inside",
            Self::Outside => "outside",
            Self::Late => "late",
            Self::Invalid => "invalid",
            Self::KeyMissing => "missing_key",
            Self::Skewed => "skewed",
            Self::Header => "header",
            Self::Aside => "aside",
        }
    }

    /// The class of a record by its kind alone; `None` where the key decides.
    pub(crate) fn of_kind(record: &Record) -> Option<Self> {
        match record.kind {
            Kind::Keyed | Kind::Untimed => None,
            Kind::KeyMissing => Some(Self::KeyMissing),
            Kind::Invalid => Some(Self::Invalid),
            Kind::Header => Some(Self::Header),
            Kind::Aside => Some(Self::Aside),
        }
    }
}
