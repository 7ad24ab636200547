//! How long to wait before a lost connection is tried again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(15);

/// Waits that double, up to 15 s, each shortened by a random part of up to a half: clients that lost their broker at
/// one moment do not all come back at one.
#[derive(Debug)]
pub struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// How long to wait now.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(LONGEST);
        shorten(wait)
    }

    /// How long to wait before this attempt, from 1 on, for who counts them.
    #[cfg(feature = "nats")]
    pub(crate) fn before(attempt: usize) -> Duration {
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        shorten((FIRST * 2_u32.pow(doublings)).min(LONGEST))
    }

    /// It has worked: the next loss begins anew.
    pub fn reset(&mut self) {
        self.0 = FIRST;
    }
}

fn shorten(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_differ() {
        let mut backoff = Backoff::default();
        let mut most = FIRST;
        for _ in 0..20 {
            let wait = backoff.next_wait();
            assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
            most = (most * 2).min(LONGEST);
        }
        assert_eq!(most, LONGEST);
        backoff.reset();
        assert!(backoff.next_wait() <= FIRST);
        let waits: Vec<_> = (0..8).map(|_| Backoff::default().next_wait()).collect();
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}
