//! The rules that a host sets and its workers follow.

use crate::Millis;
use crate::filter::size::{FilterSize, MAX_STEPS};
use core::fmt;

/// How a reading becomes due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All at once: filters are emptied at the end of each validity period (the paper).
    Reset,
    /// Each element one validity period after it was added: filters age (ours).
    Ageing {
        /// Resolution: the validity period is divided into this many grains, 1 to
        /// [`AgedFilter::MAX_STEPS`](crate::filter::AgedFilter::MAX_STEPS).
        steps: u8,
    },
}

/// What host and workers must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How a reading becomes due again.
    pub mode: Mode,
    /// The validity period in milliseconds; at least 1.
    pub validity: Millis,
    /// Size of the filter of a cell of 1 km.
    pub size: FilterSize,
    /// Readings of an element that a worker sends before it adds it to its filter (the paper's m_worker
    /// and k_s); at least 1.
    pub m_worker: u8,
    /// Share of the suppressed readings that are sent all the same, in 65,536ths. See
    /// [`Decider`](crate::decide::Decider).
    pub refresh: u16,
}

/// Why rules cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesError(pub(crate) &'static str);

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for RulesError {}

impl Rules {
    /// The paper's choice, n = 100 and p = 0.001, with a validity of 30 minutes that ends with a reset.
    pub const PAPER: Self = Self {
        mode: Mode::Reset,
        validity: 30 * 60_000,
        size: FilterSize { bits: 1437, hashes: 10 },
        m_worker: 1,
        refresh: 0,
    };

    /// The longest validity period: 366 days.
    pub const LONGEST: Millis = 366 * 86_400_000;

    /// Can these rules be followed?
    ///
    /// # Errors
    /// [`RulesError`] says which cannot.
    pub const fn check(&self) -> Result<(), RulesError> {
        if self.validity == 0 || self.validity > Self::LONGEST {
            return Err(RulesError("the validity period must be 1 ms to 366 days long"));
        }
        if !self.size.is_valid() {
            return Err(RulesError("a filter has 1 to 65,536 bits and 1 to 64 hashes"));
        }
        if self.m_worker == 0 {
            return Err(RulesError("a worker sends at least 1 reading of an element"));
        }
        match self.mode {
            Mode::Ageing { steps } if steps == 0 || steps > MAX_STEPS => {
                Err(RulesError("a validity period has 1 to 120 grains"))
            }
            _ => Ok(()),
        }
    }

    /// The validity period that a moment is in, counted from time 0.
    pub const fn period(&self, now: Millis) -> u64 {
        now / if self.validity == 0 { 1 } else { self.validity }
    }

    /// Has what was measured then become due again since? So it is with a period that has ended, or, where filters age,
    /// after one validity period.
    pub const fn is_over(&self, time: Millis, now: Millis) -> bool {
        match self.mode {
            Mode::Reset => self.period(time) < self.period(now),
            Mode::Ageing { .. } => now.saturating_sub(time) >= self.validity,
        }
    }

    /// The validity period that a grain is in.
    pub(crate) const fn period_of_grain(&self, grain: u64) -> u64 {
        match self.mode {
            Mode::Reset => 0,
            Mode::Ageing { steps } => {
                let length = self.validity.div_ceil(if steps == 0 { 1 } else { steps as u64 });
                self.period(grain.saturating_mul(length))
            }
        }
    }

    /// The epoch of filters at a moment: the period where filters are reset, 0 where they age.
    pub const fn epoch(&self, now: Millis) -> u32 {
        match self.mode {
            Mode::Reset => self.period(now) as u32,
            Mode::Ageing { .. } => 0,
        }
    }

    /// The grain that a moment is in; 0 where filters do not age.
    pub const fn grain(&self, now: Millis) -> u64 {
        match self.mode {
            Mode::Reset => 0,
            Mode::Ageing { steps } => {
                let length = self.validity.div_ceil(if steps == 0 { 1 } else { steps as u64 });
                now / if length == 0 { 1 } else { length }
            }
        }
    }

    /// The seed of an epoch's digests. Another one each epoch, so that elements whose positions happen to
    /// be covered by those of others are not the same ones in every period.
    pub const fn salt(epoch: u32) -> u64 {
        (epoch as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_followed() {
        assert_eq!(Rules::PAPER.check(), Ok(()));
        let bad = [
            Rules { validity: 0, ..Rules::PAPER },
            Rules { validity: u64::MAX, ..Rules::PAPER },
            Rules { size: FilterSize { bits: 0, hashes: 1 }, ..Rules::PAPER },
            Rules { size: FilterSize { bits: 10, hashes: 65 }, ..Rules::PAPER },
            Rules { m_worker: 0, ..Rules::PAPER },
            Rules { mode: Mode::Ageing { steps: 0 }, ..Rules::PAPER },
            Rules { mode: Mode::Ageing { steps: 121 }, ..Rules::PAPER },
        ];
        assert!(bad.iter().all(|rules| rules.check().is_err()));
    }
}
