//! A guard against moments that lie far ahead of all others.

use crate::codec::{Reader, Writer};
use crate::{SnapshotError, Tick};

/// Doubts a moment that leaps ahead, until a second one confirms it.
///
/// A filter's time never goes back. So a single arrival whose moment is wrong by years, from a device with a broken clock, would
/// make it forget everything, and freeze it: every later arrival is judged at that moment. This stands before a filter: a moment more than `most` ticks ahead of the newest is
/// taken for the newest itself. A second moment that leaps to within `most` ticks of the first one confirms it, as after a pause of the whole stream, and time moves
/// on to there.
///
/// [`Spec::most_leap`](crate::Spec::most_leap) builds it into a filter. By itself it is for what has no such option, such as a
/// [`RangeWindow`](crate::range::RangeWindow).
///
/// # Example
/// ```
/// use lately::{Leaps, Tick};
/// let mut leaps = Leaps::of_at_most(1_000);
/// assert_eq!(leaps.judge(Tick(50_000)), Tick(50_000)); // the first is believed
/// assert_eq!(leaps.judge(Tick(50_900)), Tick(50_900));
/// assert_eq!(leaps.judge(Tick(u64::MAX)), Tick(50_900)); // doubted
/// assert_eq!(leaps.judge(Tick(50_910)), Tick(50_910));
/// assert_eq!(leaps.judge(Tick(90_000)), Tick(50_910)); // a pause?
/// assert_eq!(leaps.judge(Tick(90_001)), Tick(90_001)); // it was
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaps {
    most: u64,
    newest: Option<Tick>,
    doubted: Option<Tick>,
}

impl Leaps {
    /// A guard that has seen no moment yet.
    pub const fn of_at_most(ticks: u64) -> Self {
        Self { most: ticks, newest: None, doubted: None }
    }

    /// The moment at which to judge an arrival that says it is of `at`.
    pub fn judge(&mut self, at: Tick) -> Tick {
        let newest = self.newest.unwrap_or(at);
        if at.0.saturating_sub(newest.0) <= self.most {
            self.newest = Some(newest.max(at));
            if at >= newest {
                self.doubted = None;
            }
            return at;
        }
        if self.doubted.is_some_and(|doubted| doubted.0.abs_diff(at.0) <= self.most) {
            (self.newest, self.doubted) = (Some(at), None);
            return at;
        }
        self.doubted = Some(at);
        newest
    }

    /// Takes a moment for true, however far ahead.
    pub fn believe(&mut self, at: Tick) {
        let newest = self.newest.unwrap_or(at);
        if at >= newest {
            (self.newest, self.doubted) = (Some(at), None);
        }
    }

    /// Takes over what another has seen.
    pub(crate) fn join(&mut self, other: &Self) {
        if let Some(newest) = other.newest {
            self.believe(newest);
        }
    }

    /// Forgets all moments.
    pub(crate) fn clear(&mut self) {
        *self = Self::of_at_most(self.most);
    }

    /// Writes what it has seen, but for the newest moment, which the filter behind it knows.
    pub(crate) fn write_seen(&self, out: &mut Writer<'_>) {
        out.flag(self.newest.is_some());
        out.flag(self.doubted.is_some());
        out.u64(self.doubted.map_or(0, |doubted| doubted.0));
    }

    /// A guard of at most so many ticks that has seen what [`Leaps::write_seen`] has written.
    pub(crate) fn read_seen(
        most: u64,
        newest: Tick,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let (has_newest, has_doubted, doubted) = (input.flag()?, input.flag()?, input.u64()?);
        let leap = doubted.saturating_sub(newest.0);
        let is_doubted = has_newest && leap > most;
        if (!has_newest && newest.0 > 0)
            || has_doubted != (doubted > 0)
            || (has_doubted && !is_doubted)
        {
            return Err(SnapshotError::Invalid("a guard that has seen what cannot be"));
        }
        let doubted = has_doubted.then_some(Tick(doubted));
        Ok(Self { most, newest: has_newest.then_some(newest), doubted })
    }
}

/// What the version of a snapshot has in addition to 1 if there is a guard before the filter.
pub(crate) const VERSION: u16 = 2;

/// Writes how far a moment may leap, if there is a guard: in a snapshot whose version has [`VERSION`].
pub(crate) fn write(most_leap: Option<u64>, out: &mut Writer<'_>) {
    if let Some(most) = most_leap {
        out.u64(most);
    }
}

/// Reads what [`write()`] has written; none from snapshots of other versions.
pub(crate) fn read(input: &mut Reader<'_>) -> Result<Option<u64>, SnapshotError> {
    let has_guard = (input.version() - 1) & VERSION != 0;
    has_guard.then(|| input.u64()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever single moments are wrong, those in between are judged as they are.
        #[test]
        fn one_wrong_moment_among_right_ones_moves_nothing(
            steps in prop::collection::vec((0u64..50, prop::option::of(2_000u64..u64::MAX)), 1..100),
        ) {
            let (mut leaps, mut now) = (Leaps::of_at_most(1_000), 0);
            for (step, wrong) in steps {
                now += step;
                prop_assert_eq!(leaps.judge(Tick(now)), Tick(now));
                if let Some(ahead) = wrong {
                    prop_assert_eq!(leaps.judge(Tick(now.saturating_add(ahead))), Tick(now));
                    prop_assert_eq!(leaps.judge(Tick(now)), Tick(now));
                }
            }
        }
    }

    #[test]
    fn the_same_wrong_moment_from_time_to_time_is_doubted_every_time() {
        let mut leaps = Leaps::of_at_most(10);
        for now in (0..1_000).step_by(5) {
            assert_eq!(leaps.judge(Tick(now)), Tick(now));
            assert_eq!(leaps.judge(Tick(1 << 60)), Tick(now));
        }
    }
}
