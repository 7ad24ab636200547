//! Times by a format of strftime.

use super::error::{TimeOptionError, Trouble};
use super::zone::Zone;
use super::{unset, year};
use jiff::Timestamp;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;

/// The moment that a text is by a format.
pub(super) fn parse(
    format: &str,
    text: &[u8],
    zone: &Zone,
    now: impl Fn() -> Timestamp,
) -> Result<Timestamp, Trouble> {
    let mut parsed = BrokenDownTime::parse(format, text).map_err(Trouble::Unformatted)?;
    if let (Some(year), Some(month), Some(day)) = (parsed.year(), parsed.month(), parsed.day())
        && unset::date(year.into(), month.into(), day.into())
    {
        return Err(Trouble::Unset);
    }
    let dated =
        parsed.month().is_some() && parsed.day().is_some() || parsed.day_of_year().is_some();
    let without_year =
        parsed.timestamp().is_none() && parsed.year().is_none() && parsed.iso_week_year().is_none();
    if !(dated && without_year) {
        return moment(&parsed, zone);
    }
    year::latest(now(), |year| {
        parsed.set_year(Some(year)).map_err(Trouble::Unformatted)?;
        moment(&parsed, zone)
    })
}

fn moment(parsed: &BrokenDownTime, zone: &Zone) -> Result<Timestamp, Trouble> {
    if parsed.timestamp().is_some() || parsed.offset().is_some() {
        return parsed.to_timestamp().map_err(Trouble::Unformatted);
    }
    if parsed.iana_time_zone().is_some() {
        return Ok(parsed.to_zoned_datetime().map_err(Trouble::Unformatted)?.timestamp());
    }
    zone.instant(parsed.to_datetime().map_err(Trouble::Unformatted)?)
}

/// Prints a moment by the format and reads it back: that finds unknown directives, and formats
/// without a date, before the first record does.
pub(super) fn check(format: &str) -> Result<(), TimeOptionError> {
    let fault = |reason: String| TimeOptionError { value: format.into(), reason };
    let sample = Timestamp::UNIX_EPOCH.to_zoned_datetime(TimeZone::UTC);
    let text = strtime::format(format, &sample).map_err(|e| fault(e.to_string()))?;
    match parse(format, text.as_bytes(), &Zone::default(), || Timestamp::UNIX_EPOCH) {
        Ok(_) => Ok(()),
        Err(Trouble::Unformatted(e)) => Err(fault(e.to_string())),
        Err(_) => Err(fault("it does not read back what it prints".into())),
    }
}
