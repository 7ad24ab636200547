//! The time of a record.

use jiff::Timestamp;
use std::fmt;
use std::num::NonZeroU64;

/// Nanoseconds of a day.
pub const DAY: u64 = 86_400 * 1_000_000_000;

/// A time as a record states it: a moment, or a time of day that leaves the date open.
///
/// *Guarantee:* exact to the nanosecond. Moments lie between 1677-09-23 and 2262-04-11.
///
/// *Cost:* 8 bytes, as has an `Option` of one: the first day of what 64 bits can express stands for the
/// times of day.
///
/// # Example
/// ```
/// use lately_stream::stamp::{Stated, Time};
/// let time = Time::since_1970(-1).ok_or("out of range")?;
/// assert_eq!(time.to_string(), "1969-12-31T23:59:59.999999999Z");
/// assert_eq!(Time::of_day(60_000_000_000).stated(), Stated::OfDay(60_000_000_000));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

/// What a [`Time`] states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// A moment, in nanoseconds since 1970.
    Since1970(i64),
    /// Nanoseconds since midnight, in UTC, of a day that is not stated.
    OfDay(u64),
}

/// What stands for the first moment: after a day of times of day, of which midnight is 1, as 0 says
/// that there is no time.
const FIRST: u64 = DAY + 1;

impl Time {
    /// A moment, in nanoseconds since 1970; `None` if it is before 1677-09-23.
    #[must_use]
    pub const fn since_1970(nanos: i64) -> Option<Self> {
        // The order of signed numbers as one of unsigned ones.
        match nanos.cast_unsigned() ^ 1 << 63 {
            0..FIRST => None,
            raw => match NonZeroU64::new(raw) {
                Some(raw) => Some(Self(raw)),
                None => None,
            },
        }
    }

    /// A time of day: nanoseconds since midnight in UTC, which may be of the days before or after.
    #[must_use]
    pub const fn of_day(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos % DAY))
    }

    /// What it states.
    #[must_use]
    pub const fn stated(self) -> Stated {
        match self.0.get() {
            raw @ 0..FIRST => Stated::OfDay(raw - 1),
            raw => Stated::Since1970((raw ^ 1 << 63).cast_signed()),
        }
    }

    /// Nanoseconds since 1970; `None` for a time of day.
    #[must_use]
    pub const fn nanos(self) -> Option<i64> {
        match self.stated() {
            Stated::Since1970(nanos) => Some(nanos),
            Stated::OfDay(_) => None,
        }
    }
}

/// RFC 3339, in UTC; for a time of day the part of it that is known.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stated() {
            Stated::Since1970(nanos) => f.write_str(&display_time(nanos)),
            Stated::OfDay(nanos) => {
                let moment = Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default();
                let text = moment.to_string();
                f.write_str(text.split_once('T').map_or(&*text, |(_, time)| time))
            }
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A moment in nanoseconds since 1970 as RFC 3339, in UTC.
pub fn display_time(nanos: i64) -> String {
    Timestamp::from_nanosecond(i128::from(nanos))
        .map_or_else(|_| format!("{nanos} ns"), |moment| moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_kinds_fit_into_eight_bytes() {
        assert_eq!(size_of::<Option<Time>>(), 8);
        assert_eq!(Time::of_day(0).stated(), Stated::OfDay(0));
        assert_eq!(Time::of_day(DAY - 1).stated(), Stated::OfDay(DAY - 1));
        assert_eq!(Time::of_day(DAY + 5).stated(), Stated::OfDay(5));
        let first = i64::MIN + FIRST.cast_signed();
        assert_eq!(Time::since_1970(first).unwrap().nanos(), Some(first));
        assert_eq!(Time::since_1970(first - 1), None);
        assert_eq!(Time::since_1970(0).unwrap().to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Time::of_day(3_600_000_000_001).to_string(), "01:00:00.000000001Z");
    }

    proptest! {
        #[test]
        fn moments_come_back_and_keep_their_order(a: i64, b: i64) {
            let (time, other) = (Time::since_1970(a), Time::since_1970(b));
            prop_assume!(time.is_some() && other.is_some());
            prop_assert_eq!(time.unwrap().nanos(), Some(a));
            prop_assert_eq!(time.cmp(&other), a.cmp(&b));
        }
    }
}
