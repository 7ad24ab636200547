//! Times by a format of strftime.

use super::error::{TimeOptionError, Trouble};
use super::zone::Zone;
use super::{Time, of_day, time, unset, year};
use jiff::Timestamp;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;

/// The moment that a text is by a format.
pub(super) fn parse(
    format: &str,
    text: &[u8],
    zone: &Zone,
    now: impl Fn() -> Timestamp,
) -> Result<Time, Trouble> {
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
    let dateless = without_year && parsed.month().is_none() && parsed.day().is_none();
    if dateless && parsed.hour().is_some() && parsed.day_of_year().is_none() {
        let time = parsed.to_time().map_err(Trouble::Unformatted)?;
        let since = jiff::civil::Time::midnight().duration_until(time);
        let ahead = parsed.offset().map_or_else(|| zone.offset_at(now()), |o| o.seconds().into());
        return Ok(of_day(u64::try_from(since.as_nanos()).unwrap_or(0), ahead));
    }
    if !(dated && without_year) {
        return time(moment(&parsed, zone)?);
    }
    time(year::latest(now(), |year| {
        parsed.set_year(Some(year)).map_err(Trouble::Unformatted)?;
        moment(&parsed, zone)
    })?)
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

/// A moment of which no part is missing from what any format prints.
const SAMPLE: Timestamp = Timestamp::constant(981_173_106, 0);

/// Prints a moment by the format and reads it back: that finds unknown directives, and formats
/// without a time, before the first record does.
pub(super) fn check(format: &str) -> Result<(), TimeOptionError> {
    let fault = |reason: String| TimeOptionError { value: format.into(), reason };
    let sample = SAMPLE.to_zoned_datetime(TimeZone::UTC);
    let text = strtime::format(format, &sample).map_err(|e| fault(e.to_string()))?;
    match parse(format, text.as_bytes(), &Zone::default(), || SAMPLE) {
        Ok(_) => Ok(()),
        Err(Trouble::Unformatted(e)) => Err(fault(e.to_string())),
        Err(_) => Err(fault("it does not read back what it prints".into())),
    }
}
