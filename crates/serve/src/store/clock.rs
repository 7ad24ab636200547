//! The server's clock: milliseconds since 1970 that never go back.

use std::sync::{Mutex, PoisonError};

/// The largest step ahead that is believed at once.
const LEAP: u64 = 60_000;
/// How long a larger one must last to be believed.
const LASTS: u64 = 10_000;

/// Follows the wall clock, as far as that behaves.
///
/// - Set back, it runs on at the monotonic clock's rate until the wall clock is ahead of it again, so windows keep
///   their length.
/// - A leap of more than a minute ahead would empty the windows. It is taken in only once it has lasted 10 s.
#[derive(Debug)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The moment last given out, and the monotonic clock's at that moment.
    now: u64,
    monotonic: u64,
    /// When a leap ahead was first seen, by the monotonic clock.
    leap: Option<u64>,
    leaps: u64,
}

impl Clock {
    /// A clock that begins at the later of these: what the wall clock says, and the newest moment in a saved state.
    pub(crate) fn new(wall: u64, saved: u64, monotonic: u64) -> Self {
        Self(Mutex::new(State { now: wall.max(saved), monotonic, leap: None, leaps: 0 }))
    }

    /// The present moment; both clocks are read by the caller, in milliseconds.
    pub(crate) fn read(&self, wall: u64, monotonic: u64) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = monotonic.saturating_sub(state.monotonic);
        let expected = state.now.saturating_add(passed);
        state.monotonic = state.monotonic.max(monotonic);
        state.now = if wall <= expected.saturating_add(LEAP) {
            state.leap = None;
            wall.max(expected)
        } else if monotonic.saturating_sub(*state.leap.get_or_insert(monotonic)) >= LASTS {
            state.leap = None;
            state.leaps += 1;
            wall
        } else {
            expected
        };
        state.now
    }

    /// Leaps of more than a minute that were taken in.
    pub(crate) fn leaps(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).leaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_back_and_no_wild_leap() {
        let clock = Clock::new(1_000_000, 0, 0);
        assert_eq!(clock.read(1_000_100, 100), 1_000_100);
        // A little ahead of the monotonic clock: taken.
        assert_eq!(clock.read(1_005_000, 200), 1_005_000);
        // Set back by an hour: time passes all the same.
        assert_eq!(clock.read(1, 300), 1_005_100);
        assert_eq!(clock.read(101, 400), 1_005_200);
        // Ahead by a day for a moment.
        assert_eq!(clock.read(87_000_000, 500), 1_005_300);
        assert_eq!(clock.read(1_005_400, 600), 1_005_400);
        // For good.
        assert_eq!(clock.read(87_000_000, 1_000), 1_005_800);
        assert_eq!(clock.read(87_009_000, 10_000), 1_014_800);
        assert_eq!(clock.read(87_010_000, 11_000), 87_010_000);
        assert_eq!(clock.leaps(), 1);
        // A monotonic clock read by two threads, out of order.
        assert_eq!(clock.read(87_010_000, 10_900), 87_010_000);
    }

    #[test]
    fn begins_where_a_saved_state_ended() {
        assert_eq!(Clock::new(5, 900, 7).read(6, 8), 901);
    }
}
