//! The time that roles are told: the system's, or one that runs faster.

use lately_edge::Millis;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock. All processes of a system need one of the same speed and the same beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    speed: f64,
    since: Millis,
}

impl Default for Clock {
    fn default() -> Self {
        Self { speed: 1.0, since: 0 }
    }
}

impl Clock {
    /// The fastest clock.
    pub const FASTEST: f64 = 3_600.0;

    /// A clock that agrees with the system's at `since` and runs `speed` times as fast from there on.
    /// `None` for a speed below 1 or above [`Clock::FASTEST`].
    pub fn new(speed: f64, since: Millis) -> Option<Self> {
        (1.0..=Self::FASTEST).contains(&speed).then_some(Self { speed, since })
    }

    /// Milliseconds since 1970 by the system's clock.
    pub fn system() -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_millis() as Millis
    }

    /// The moment.
    pub fn now(&self) -> Millis {
        self.at(Self::system())
    }

    fn at(&self, system: Millis) -> Millis {
        let passed = system.saturating_sub(self.since);
        if self.speed <= 1.0 {
            return system;
        }
        self.since.saturating_add((passed as f64 * self.speed) as Millis)
    }

    /// How long to wait, by the system's clock, until that moment.
    pub fn until(&self, moment: Millis) -> Duration {
        self.real(moment.saturating_sub(self.now()))
    }

    /// A length of time on this clock, converted to the system's.
    pub fn real(&self, length: Millis) -> Duration {
        Duration::from_secs_f64(length as f64 / 1000.0 / self.speed)
    }

    /// How often roles are told the time: once a second of theirs, but at most 20 times a second.
    pub fn tick(&self) -> Duration {
        self.real(1_000).max(Duration::from_millis(50))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_faster_from_its_beginning() {
        let clock = Clock::new(60.0, 1_000_000).unwrap();
        assert_eq!(clock.at(1_000_000), 1_000_000);
        assert_eq!(clock.at(1_001_000), 1_060_000);
        assert_eq!(clock.real(60_000), Duration::from_secs(1));
        assert_eq!(Clock::default().at(5), 5);
        for speed in [0.0, -1.0, f64::NAN, 1e9] {
            assert_eq!(Clock::new(speed, 0), None);
        }
    }
}
