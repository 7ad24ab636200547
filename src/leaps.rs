//! A guard against moments that lie far ahead of all others.

use crate::Tick;

/// Doubts a moment that leaps ahead, until a second one confirms it.
///
/// A filter's time never goes back. So a single arrival whose moment is wrong by years, from a device with a broken clock, would
/// make it forget everything, and freeze it: every later arrival is judged at that moment. This stands before a filter: a moment more than `most` ticks ahead of the newest is
/// taken for the newest itself. A second moment that leaps to within `most` ticks of the first one confirms it, as after a pause of the whole stream, and time moves
/// on to there.
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
