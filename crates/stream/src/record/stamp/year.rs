//! The year of dates that are written without one.

use super::error::Trouble;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// The moment of a date in the latest year in which it is not more than a day after `now`: logs are of
/// the past, but their zone or clock may be ahead. `at` gives the moment of the date in a year.
pub(super) fn latest(
    now: Timestamp,
    mut at: impl FnMut(i16) -> Result<Timestamp, Trouble>,
) -> Result<Timestamp, Trouble> {
    /// February 29 is missing from seven years in a row around 2100.
    const YEARS: i16 = 9;
    let last = now.saturating_add(SignedDuration::from_hours(24)).unwrap_or(now);
    let this = TimeZone::UTC.to_datetime(last).year();
    let mut trouble = Trouble::NoDate;
    for year in (this - YEARS..=this + 1).rev() {
        match at(year) {
            Ok(moment) if moment <= last => return Ok(moment),
            Ok(_) => {}
            Err(reason) => trouble = reason,
        }
    }
    Err(trouble)
}
