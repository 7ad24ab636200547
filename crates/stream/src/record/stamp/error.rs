//! What is wrong with a time, or with how times are asked for.

use super::format::TimeFormat;
use std::fmt;

/// A time format or a zone that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeOptionError {
    /// What was given.
    pub value: String,
    /// What is wrong with it and what is expected.
    pub reason: String,
}

impl fmt::Display for TimeOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.value, self.reason)
    }
}

impl std::error::Error for TimeOptionError {}

/// Why a time cannot be read. The text is cut to its first characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StampError {
    /// Nothing there.
    Empty,
    /// Not written as expected.
    Unreadable {
        /// What was there.
        text: String,
        /// What is wrong or expected.
        reason: String,
    },
    /// What programs write for "never" or "not set": 0, -1, the largest numbers of 64 bits,
    /// 0000-00-00, 0001-01-01 and 9999-12-31.
    Unset {
        /// What was there.
        text: String,
    },
    /// Before 1677-09-23, where 64 bits of nanoseconds begin.
    TooEarly {
        /// What was there.
        text: String,
    },
    /// After 2262-04-11, where 64 bits of nanoseconds end.
    TooLate {
        /// What was there.
        text: String,
    },
}

impl fmt::Display for StampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StampError::Empty => f.write_str("the time is empty"),
            StampError::Unreadable { text, reason } => {
                write!(f, "cannot read the time {text:?}: {reason}")
            }
            StampError::Unset { text } => {
                write!(f, "the time {text:?} is what programs write for \"never\" or \"not set\"")
            }
            StampError::TooEarly { text } => {
                write!(f, "the time {text:?} is before the year 1678; is its unit right?")
            }
            StampError::TooLate { text } => {
                write!(f, "the time {text:?} is after the year 2262; is its unit right?")
            }
        }
    }
}

impl std::error::Error for StampError {}

/// What is wrong, before the text is added.
pub(super) enum Trouble {
    NoDate,
    Unreadable(&'static str),
    Explained(String),
    Unformatted(jiff::Error),
    Unset,
    TooEarly,
    TooLate,
}

impl Trouble {
    #[cold]
    pub(super) fn about(self, text: &[u8], format: &TimeFormat) -> StampError {
        const SHOWN: usize = 60;
        let lossy = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN)]);
        let mut text: String = lossy.chars().take(SHOWN).collect();
        if text.len() < lossy.len() {
            text.push('…');
        }
        match self {
            Trouble::NoDate => {
                let also = match format {
                    TimeFormat::Auto => "or a number since 1970",
                    _ => "and for a number a format that states its unit: s, ms, us or ns",
                };
                let reason = format!("expected a date such as 2011-02-24T10:14:42.851Z, {also}");
                StampError::Unreadable { text, reason }
            }
            Trouble::Unreadable(reason) => StampError::Unreadable { text, reason: reason.into() },
            Trouble::Explained(reason) => StampError::Unreadable { text, reason },
            Trouble::Unformatted(e) => StampError::Unreadable { text, reason: e.to_string() },
            Trouble::Unset => StampError::Unset { text },
            Trouble::TooEarly => StampError::TooEarly { text },
            Trouble::TooLate => StampError::TooLate { text },
        }
    }
}
