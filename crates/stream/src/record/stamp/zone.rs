//! The zone of times that are written without one, and abbreviations of zones.

use super::civil;
use super::error::{TimeOptionError, Trouble};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use std::str::FromStr;

/// The zone of times that are written without one. Its default is UTC.
///
/// # Example
/// ```
/// use lately_stream::stamp::Zone;
/// for zone in ["UTC", "local", "America/Chicago", "-06:00"] {
///     assert!(zone.parse::<Zone>().is_ok());
/// }
/// assert!("Chicago".parse::<Zone>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// Abbreviations that RFC 2822 defines, in hours from UTC. CST and CDT are missing because China and
/// Cuba have them too.
const ABBREVIATIONS: [(&[u8], i8); 6] =
    [(b"EST", -5), (b"EDT", -4), (b"MST", -7), (b"MDT", -6), (b"PST", -8), (b"PDT", -7)];

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = TimeOptionError;

    /// `UTC`, `local`, an offset such as `-06:00`, or a name of the IANA database: that of the
    /// system, or the built-in one where the system has none.
    fn from_str(text: &str) -> Result<Self, TimeOptionError> {
        let fault = |reason: String| TimeOptionError { value: text.into(), reason };
        if let Some(seconds) = civil::offset(text.as_bytes()) {
            let offset = Offset::from_seconds(seconds).map_err(|e| fault(e.to_string()))?;
            return Ok(Self(offset.to_time_zone()));
        }
        if text == "local" {
            return TimeZone::try_system().map(Self).map_err(|e| {
                fault(format!(
                    "the zone of this system is unknown ({e}); name one, such as Europe/Berlin"
                ))
            });
        }
        TimeZone::get(text).map(Self).map_err(|_| {
            fault(
                "expected UTC, local, an offset such as -06:00, or a name such as America/Chicago"
                    .into(),
            )
        })
    }
}

impl Zone {
    /// How many seconds its clocks are ahead of UTC at a moment.
    pub(super) fn offset_at(&self, moment: Timestamp) -> i64 {
        self.0.to_offset(moment).seconds().into()
    }

    /// The moment of a local time: the earlier of two, and moved forward over a gap.
    pub(super) fn instant(&self, datetime: DateTime) -> Result<Timestamp, Trouble> {
        self.0.to_ambiguous_timestamp(datetime).compatible().map_err(Trouble::Unformatted)
    }

    /// The moment of a local time of the zone of this abbreviation, which this zone has at that time or
    /// a standard defines.
    pub(super) fn abbreviated(
        &self,
        datetime: DateTime,
        name: &[u8],
    ) -> Result<Timestamp, Trouble> {
        let [first, second] = match self.0.to_ambiguous_timestamp(datetime).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset; 2],
            AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => {
                [before, after]
            }
        };
        for offset in [first, second] {
            let Ok(moment) = offset.to_timestamp(datetime) else { continue };
            let info = self.0.to_offset_info(moment);
            let named = info.abbreviation().as_bytes().eq_ignore_ascii_case(name);
            if named && info.offset() == offset {
                return Ok(moment);
            }
        }
        let known = ABBREVIATIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some(&(_, hours)) = known else {
            let name = String::from_utf8_lossy(name);
            return Err(Trouble::Explained(format!(
                "the abbreviation {name} may mean several zones: expected an offset such as -06:00, or \
                 --time-zone with the zone that has it, such as America/Chicago"
            )));
        };
        Offset::constant(hours).to_timestamp(datetime).map_err(Trouble::Unformatted)
    }
}
