//! Joins two sessions.

use super::Dedup;
use crate::judge::moment::SavedClock;
use crate::session::Difference;
use lately::Merge;
use std::fmt;

/// Why two sessions cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They differ in what decides which keys are equal and when they are duplicates.
    Settings(Vec<Difference>),
    /// Their filters do not go together.
    Filter(lately::MergeError),
    /// They hold what cannot be joined, and what that is.
    Contents(&'static str),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(differences) => {
                f.write_str("they were made with other settings")?;
                differences.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
            }
            Self::Filter(error) => error.fmt(f),
            Self::Contents(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for MergeError {}

impl Dedup {
    /// Takes over what another session of the same terms remembers: afterwards every key that either has
    /// seen within the window is known. The clock is the later of both.
    ///
    /// # Errors
    /// [`MergeError`] for other terms, for sessions of the last n records, for filters that have grown
    /// (see [`AnyFilter`](lately::AnyFilter)), and where one was told times and the other was not. Then nothing has changed.
    ///
    /// # Example
    /// ```
    /// use lately_stream::judge::class::Class;
    /// use lately_stream::session::DedupSpec;
    /// use std::time::Duration;
    /// let spec = DedupSpec::within(Duration::from_secs(10));
    /// let (mut one, mut other) = (spec.build()?, spec.build()?);
    /// let noon = 1_700_000_000_000_000_000;
    /// one.observe(b"a", Some(noon));
    /// other.observe(b"b", Some(noon + 1_000_000_000));
    /// one.merge(&other)?;
    /// assert_eq!(one.observe(b"b", Some(noon + 2_000_000_000)), Class::Duplicate);
    /// assert!(one.merge(&DedupSpec::ever().build()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        let differences = self.identity.differences(&other.identity);
        if !differences.is_empty() {
            return Err(MergeError::Settings(differences));
        }
        if self.judge.last_values.is_some() || other.judge.last_values.is_some() {
            return Err(MergeError::Contents(
                "last values of --pass-on-change cannot be merged: nobody knows which is the last",
            ));
        }
        if !(self.waiting.is_empty() && other.waiting.is_empty()) {
            return Err(MergeError::Contents(
                "records wait under --best or --count: let the run that holds them end first",
            ));
        }
        let (ours, theirs) = (&self.judge.moments, &other.judge.moments);
        if ours.line != theirs.line {
            return Err(MergeError::Contents(
                "one resumes a state of format version 1 or 2, which counts time from 1970: begin it without",
            ));
        }
        let (mine, saved) = (ours.saved(), theirs.saved());
        let sources = [&mine, &saved].into_iter().flatten().any(|clock| !clock.sources.is_empty());
        if sources {
            return Err(MergeError::Contents("clocks of sources (--clock-by) cannot be merged"));
        }
        if let (Some(mine), Some(saved)) = (&mine, &saved)
            && mine.of_events != saved.of_events
        {
            return Err(MergeError::Contents(
                "one judges records by their own times and the other by when they arrive",
            ));
        }
        self.judge.filter.merge(&other.judge.filter).map_err(MergeError::Filter)?;
        if let Some(saved) = saved {
            let support = mine.map_or(0, |clock| clock.support).max(saved.support);
            self.judge.moments.resume(SavedClock { support, ..saved });
        }
        self.judge.moments.touch();
        Ok(())
    }
}
