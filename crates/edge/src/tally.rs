//! What became of the submissions of a worker.

use crate::refusal::Refusal;

/// The life that a submission's number belongs to. Each start of a worker is a life of its own, named by the upper
/// 32 bits of its numbers: so neither a clock that was set nor two devices with the same id make new readings look
/// like repeated ones.
pub const fn life_of(sequence: u64) -> u32 {
    (sequence >> 32) as u32
}

/// The first number of a life.
pub const fn first_of(life: u32) -> u64 {
    (life as u64) << 32 | 1
}

/// What became of the submissions of one life of a worker at one host. Each is in exactly one class, but for those that
/// arrived again, which are in `repeated` each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Kept.
    pub kept: u64,
    /// There were enough of it.
    pub redundant: u64,
    /// Lost to a false positive of the host's filter.
    pub lost: u64,
    /// Arrived before.
    pub repeated: u64,
    /// Refused, by reason.
    pub refused: [u64; Refusal::ALL.len()],
}

impl Tally {
    /// Submissions that have been answered.
    pub fn all(&self) -> u64 {
        [self.kept, self.redundant, self.lost, self.all_refused()]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Submissions that were refused.
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Submissions that were refused for a reason.
    pub fn refused_for(&self, refusal: Refusal) -> u64 {
        self.refused.get(refusal as usize).copied().unwrap_or(0)
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if let Some(count) = self.refused.get_mut(refusal as usize) {
            *count += 1;
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.kept = self.kept.saturating_add(other.kept);
        self.redundant = self.redundant.saturating_add(other.redundant);
        self.lost = self.lost.saturating_add(other.lost);
        self.repeated = self.repeated.saturating_add(other.repeated);
        for (count, more) in self.refused.iter_mut().zip(other.refused) {
            *count = count.saturating_add(more);
        }
    }
}
