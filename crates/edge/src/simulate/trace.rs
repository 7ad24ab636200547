//! Where people were: one fix per minute, all days folded into one.

use crate::cell::{Position, SmallCell};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

/// Minutes of a day.
pub const DAY: usize = 1440;

/// The days of some people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// A walk for each person and day.
    pub walks: Vec<Walk>,
    /// Days that were left out: between their first and last fix lies no whole minute.
    pub too_short: usize,
    /// Fixes that were left out because they were not accurate enough.
    pub inaccurate: usize,
}

/// One day of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Who; several walks are one person's.
    pub person: u32,
    /// The minute of the day of the first fix.
    pub start: u16,
    /// A fix a minute.
    pub cells: Vec<SmallCell>,
}

/// A fix as it was recorded: the minute of the day, with its fraction, and the position.
pub type Fix = (f64, Position);

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The header has no such column.
    Column(&'static str),
    /// A line, counted from 1, cannot be read.
    Line(usize),
    /// There is no fix in it.
    Empty,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Column(name) => write!(
                f,
                "the trace has no column `{name}`: its first line names user, ts (seconds), lat and lon, and perhaps accuracy_m and tz"
            ),
            Self::Line(line) => write!(f, "line {line} of the trace cannot be read"),
            Self::Empty => f.write_str("the trace has no fixes"),
        }
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Fixes in all.
    pub fn fixes(&self) -> usize {
        self.walks.iter().map(|walk| walk.cells.len()).sum()
    }

    /// How often somebody enters another cell of 1 km, the first one of the day included.
    pub fn arrivals(&self) -> usize {
        let changes = |walk: &Walk| {
            let pairs = walk.cells.iter().zip(walk.cells.iter().skip(1));
            1 + pairs.filter(|(one, next)| one.km() != next.km()).count()
        };
        self.walks.iter().map(changes).sum()
    }

    /// Reads a CSV of fixes with the columns `user`, `ts` (seconds since 1970, UTC), `lat` and `lon`, in
    /// any order; with `tz` (an IANA name), days are those of that time zone, else of UTC. Fixes with an
    /// `accuracy_m` above `worst` are left out. Days are cut at midnight and filled to a fix a minute by
    /// straight lines between the recorded ones, as in the paper.
    ///
    /// # Errors
    /// [`TraceError`] says what cannot be read.
    pub fn from_csv(text: &str, worst: f64) -> Result<Self, TraceError> {
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name| header.iter().position(|&found| found == name);
        let needed = |name| column(name).ok_or(TraceError::Column(name));
        let [user, time, latitude, longitude] =
            [needed("user")?, needed("ts")?, needed("lat")?, needed("lon")?];
        let (accuracy, zone) = (column("accuracy_m"), column("tz"));
        let mut zones: BTreeMap<String, TimeZone> = BTreeMap::new();
        let mut people: BTreeMap<String, u32> = BTreeMap::new();
        let mut days: BTreeMap<(u32, Date), Vec<Fix>> = BTreeMap::new();
        let mut inaccurate = 0;
        for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let fields: Vec<&str> = line.split(',').collect();
            let broken = || TraceError::Line(at + 2);
            let text = |column: usize| fields.get(column).copied().ok_or_else(broken);
            let number = |column| {
                let number = text(column)?.parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(broken)
            };
            if let Some(accuracy) = accuracy
                && number(accuracy)? > worst
            {
                inaccurate += 1;
                continue;
            }
            let name = match zone {
                Some(zone) => text(zone)?,
                None => "UTC",
            };
            if !zones.contains_key(name) {
                let zone = TimeZone::get(name).map_err(|_| broken())?;
                zones.insert(name.to_owned(), zone);
            }
            let zone = zones.get(name).ok_or_else(broken)?;
            let millis = (number(time)? * 1000.0).round() as i64;
            let moment = Timestamp::from_millisecond(millis).map_err(|_| broken())?;
            let civil = zone.to_datetime(moment);
            let clock = civil.time();
            let minute = f64::from(clock.hour()) * 60.0
                + f64::from(clock.minute())
                + (f64::from(clock.second()) + f64::from(clock.millisecond()) / 1000.0) / 60.0;
            let next = people.len() as u32;
            let person = *people.entry(text(user)?.to_owned()).or_insert(next);
            let position = Position { latitude: number(latitude)?, longitude: number(longitude)? };
            SmallCell::at(position).map_err(|_| broken())?;
            days.entry((person, civil.date())).or_default().push((minute, position));
        }
        let all = days.len();
        let walks = days.into_iter().filter_map(|((person, _), fixes)| Walk::along(person, fixes));
        let walks: Vec<Walk> = walks.collect();
        let too_short = all - walks.len();
        let trace = Self { walks, too_short, inaccurate };
        if trace.walks.is_empty() { Err(TraceError::Empty) } else { Ok(trace) }
    }
}

impl Walk {
    /// A fix at each whole minute from the first recorded one to the last, on straight lines between them.
    /// `None` when there is no whole minute between them.
    pub fn along(person: u32, mut fixes: Vec<Fix>) -> Option<Self> {
        fixes.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (first, last) = (fixes.first()?.0, fixes.last()?.0);
        let start = first.ceil().max(0.0) as usize;
        let end = (last.floor() as usize).min(DAY - 1);
        let mut cells = Vec::new();
        let mut next = 0;
        for minute in start..=end {
            let time = minute as f64;
            while fixes.get(next).is_some_and(|fix| fix.0 < time) {
                next += 1;
            }
            let &(to, there) = fixes.get(next)?;
            let &(from, here) = fixes.get(next.saturating_sub(1))?;
            let share = if to > from { ((time - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
            let between = |from: f64, to: f64| from + (to - from) * share;
            let position = Position {
                latitude: between(here.latitude, there.latitude),
                longitude: between(here.longitude, there.longitude),
            };
            cells.push(SmallCell::at(position).ok()?);
        }
        (!cells.is_empty()).then_some(Self { person, start: start as u16, cells })
    }

    /// Where they are at a minute of the day.
    #[inline]
    pub fn at(&self, minute: usize) -> Option<SmallCell> {
        self.cells.get(minute.checked_sub(usize::from(self.start))?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn straight_lines_between_fixes() {
        let text = "user,ts,lat,lon,accuracy_m,tz\n\
            a,1500001230,45.81,15.97,5,Europe/Zagreb\n\
            a,1500001430,45.82,15.97,5,Europe/Zagreb\n\
            a,1500001300,0,0,5000,Europe/Zagreb\n\
            b,1500001200,45.81,15.97,5,UTC\n\
            c,1500001201,45.81,15.97,5,UTC\n";
        let trace = Trace::from_csv(text, 100.0).unwrap();
        assert_eq!((trace.too_short, trace.inaccurate), (1, 1));
        assert_eq!(trace.walks.len(), 2);
        let walk = &trace.walks[0];
        // 03:00:30 UTC is 05:00:30 in Zagreb; the walk goes 1.1 km north in 200 s.
        assert_eq!((walk.start, walk.cells.len()), (5 * 60 + 1, 3));
        let north: Vec<u64> = walk.cells.iter().map(|cell| cell.id() & 0x3FF).collect();
        assert!(north.windows(2).all(|pair| (3..=4).contains(&(pair[1] - pair[0]))), "{north:?}");
        assert_eq!((trace.walks[1].start, trace.fixes()), (3 * 60, 4));
        assert_eq!(walk.at(300), None);
        assert_eq!(walk.at(301), Some(walk.cells[0]));
    }

    #[test]
    fn what_is_no_trace() {
        let of = |text: &str| Trace::from_csv(text, 100.0).unwrap_err();
        assert_eq!(of(""), TraceError::Column("user"));
        assert_eq!(of("user,ts,lat\n"), TraceError::Column("lon"));
        assert_eq!(of("user,ts,lat,lon\n"), TraceError::Empty);
        for line in ["a,x,1,1", "a,1,91,1", "a,1,1", "a,NaN,1,1", "a,1e300,1,1"] {
            let text = std::format!("user,ts,lat,lon\na,0,1,1\n{line}\n");
            assert_eq!(of(&text), TraceError::Line(3), "{line}");
        }
        assert!(of("user,ts,lat,lon,tz\na,1,1,1,Nowhere\n").to_string().contains("line 2"));
    }
}
