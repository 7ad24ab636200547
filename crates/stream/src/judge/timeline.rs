//! The line of moments on which the records of a run lie: how their times become the ticks of filters,
//! and back.

use crate::record::time::{DAY, Stated, Time};
use lately::Tick;
use std::time::{SystemTime, UNIX_EPOCH};

/// The day of the first time of day, in nanoseconds since 1970: 2000-01-01.
const FIRST_DAY: i64 = 946_684_800_000_000_000;

/// Where 1970 lies among the ticks.
///
/// Ticks count from 0, and times may lie before 1970. States of format version 2 and before have 1970 at
/// tick 0; what resumes from one keeps that, for what the state remembers lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    origin: u64,
}

impl Default for Timeline {
    /// 1970 is in the middle of the ticks, so that any time of 64 bits has its own.
    fn default() -> Self {
        Self { origin: 1 << 63 }
    }
}

impl Timeline {
    /// The line of states that know of no time before 1970.
    pub(crate) const SINCE_1970: Self = Self { origin: 0 };

    /// The line on which this tick is 1970.
    pub(crate) fn of_origin(origin: u64) -> Self {
        Self { origin }
    }

    /// The tick of 1970.
    pub(crate) fn origin(self) -> u64 {
        self.origin
    }

    /// The tick of a moment in nanoseconds since 1970; the first one if it lies before the line begins.
    pub fn tick(self, nanos: i64) -> Tick {
        Tick(self.origin.saturating_add_signed(nanos))
    }

    /// Nanoseconds since 1970 at a tick.
    pub fn nanos(self, tick: Tick) -> i64 {
        let nanos = i128::from(tick.0) - i128::from(self.origin);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// The tick of the time of a record. A time of day is of the day on which it is nearest to the
    /// `clock`, or, where that has not begun, of 2000-01-01: when a recording is read must not decide
    /// what becomes of it.
    pub fn place(self, time: Time, clock: Option<Tick>) -> Tick {
        match time.stated() {
            Stated::Since1970(nanos) => self.tick(nanos),
            Stated::OfDay(nanos) => self.place_in_day(nanos, clock),
        }
    }

    fn place_in_day(self, of_day: u64, clock: Option<Tick>) -> Tick {
        let (of_day, day) = (i128::from(of_day), i128::from(DAY));
        let nanos = match clock {
            None => i128::from(FIRST_DAY) + of_day,
            Some(clock) => {
                let clock = i128::from(self.nanos(clock));
                let ahead = (of_day - clock).rem_euclid(day);
                clock + if ahead <= day / 2 { ahead } else { ahead - day }
            }
        };
        self.tick(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// The tick of the present, by the system's clock.
    pub fn now(self) -> Tick {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.tick(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    fn of_day(hours: i64) -> Time {
        Time::of_day((hours * HOUR).cast_unsigned())
    }

    #[test]
    fn times_before_1970_have_ticks() {
        let line = Timeline::default();
        let ticks = [i64::MIN, -HOUR, 0, HOUR, i64::MAX].map(|nanos| line.tick(nanos));
        assert!(ticks.is_sorted());
        assert_eq!(ticks.map(|tick| line.nanos(tick)), [i64::MIN, -HOUR, 0, HOUR, i64::MAX]);
        let old = Timeline::SINCE_1970;
        assert_eq!((old.tick(HOUR), old.tick(-HOUR)), (Tick(HOUR.cast_unsigned()), Tick(0)));
    }

    #[test]
    fn a_time_of_day_rolls_over_at_midnight() {
        let line = Timeline::default();
        // 23:00 of a day far in the past.
        let clock = line.tick(-1000 * 24 * HOUR - HOUR);
        let place = |hours| line.nanos(line.place(of_day(hours), Some(clock))) - line.nanos(clock);
        assert_eq!(place(23), 0);
        assert_eq!(place(0), HOUR);
        assert_eq!(place(22), -HOUR);
        assert_eq!(place(11), 12 * HOUR);
        assert_eq!(place(12), -11 * HOUR);
    }

    #[test]
    fn the_first_time_of_day_does_not_depend_on_the_present() {
        let line = Timeline::default();
        for hours in 0..24 {
            assert_eq!(line.nanos(line.place(of_day(hours), None)), FIRST_DAY + hours * HOUR);
        }
    }
}
