//! Places by name: cells of 100 m, 1 km and 10 km of the Military Grid Reference System (MGRS).
//!
//! Our own conversion, because the crate `geoconvert` panics at the equator, errs on the edges of the
//! latitude bands and refuses longitude 180; ours agrees with GeoConvert 2.1.2 on all of them, and
//! needs no standard library.

mod mgrs;

use core::fmt;
use core::str::FromStr;

/// Latitude and longitude in degrees on WGS 84, north and east positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// -90 to 90.
    pub latitude: f64,
    /// -180 to 180.
    pub longitude: f64,
}

/// Why something is no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellError {
    /// The position is not on the Earth, or no number.
    OffTheEarth,
    /// The name or number is not one that the grid has.
    Unknown,
}

impl fmt::Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OffTheEarth => {
                "no such position: latitude is -90 to 90 and longitude -180 to 180 degrees"
            }
            Self::Unknown => {
                "no MGRS cell: its name is like 33TWN123456 (100 m), 33TWN1245 (1 km) or 33TWN14 (10 km)"
            }
        })
    }
}

impl core::error::Error for CellError {}

/// Bits of the zone and three letters, which name a square of 100 km.
const PREFIX: u32 = 21;

/// A cell of 100 m: where two readings of one property count as alike.
///
/// # Example
/// ```
/// use lately_edge::cell::{Position, SmallCell};
/// let cell = SmallCell::at(Position { latitude: 45.8131, longitude: 15.9772 })?;
/// assert_eq!(cell.to_string(), "33TWL759737");
/// assert_eq!(cell.km().to_string(), "33TWL7573");
/// assert_eq!(cell.square().to_string(), "33TWL77");
/// # Ok::<(), lately_edge::cell::CellError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmallCell(u64);

/// A cell of 1 km: what one filter is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KmCell(u64);

/// A square of 10 km: what one host is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Square(u64);

impl SmallCell {
    /// The cell that a position is in.
    ///
    /// # Errors
    /// [`CellError::OffTheEarth`].
    pub fn at(position: Position) -> Result<Self, CellError> {
        let place = mgrs::place(position.latitude, position.longitude);
        let place = place.ok_or(CellError::OffTheEarth)?;
        let [band, column, row] = place.letters.map(|letter| u64::from(letter - b'A'));
        let prefix = u64::from(place.zone) << 15 | band << 10 | column << 5 | row;
        let (east, north) = (place.easting / 100, place.northing / 100);
        Ok(Self(prefix << 20 | u64::from(east) << 10 | u64::from(north)))
    }

    /// The number that names it in messages and digests: below 2^41.
    pub const fn id(self) -> u64 {
        self.0
    }

    /// The cell of that number.
    ///
    /// # Errors
    /// [`CellError::Unknown`] for a number that names none.
    pub fn from_id(id: u64) -> Result<Self, CellError> {
        let fits = (id >> 10 & 0x3FF) < 1_000 && (id & 0x3FF) < 1_000 && is_prefix(id >> 20);
        if fits { Ok(Self(id)) } else { Err(CellError::Unknown) }
    }

    /// The cell of 1 km around it.
    pub const fn km(self) -> KmCell {
        let (east, north) = ((self.0 >> 10 & 0x3FF) / 10, (self.0 & 0x3FF) / 10);
        KmCell((self.0 >> 20) << 14 | east << 7 | north)
    }

    /// The square of 10 km around it.
    pub const fn square(self) -> Square {
        self.km().square()
    }

    /// Which of the 100 places of its cell of 1 km it is: ten times the hundreds of metres east, plus those north.
    pub const fn place(self) -> u8 {
        ((self.0 >> 10 & 0x3FF) % 10 * 10 + (self.0 & 0x3FF) % 10) as u8
    }
}

impl KmCell {
    /// The cell of 100 m at one of its places, 0 to 99.
    pub const fn small(self, place: u8) -> Option<SmallCell> {
        if place >= 100 {
            return None;
        }
        let (east, north) = ((self.0 >> 7 & 0x7F) * 10, (self.0 & 0x7F) * 10);
        let (east, north) = (east + (place / 10) as u64, north + (place % 10) as u64);
        Some(SmallCell((self.0 >> 14) << 20 | east << 10 | north))
    }

    /// The number that names it in messages: below 2^35.
    pub const fn id(self) -> u64 {
        self.0
    }

    /// The cell of that number.
    ///
    /// # Errors
    /// [`CellError::Unknown`] for a number that names none.
    pub fn from_id(id: u64) -> Result<Self, CellError> {
        let fits = (id >> 7 & 0x7F) < 100 && (id & 0x7F) < 100 && is_prefix(id >> 14);
        if fits { Ok(Self(id)) } else { Err(CellError::Unknown) }
    }

    /// The square of 10 km around it.
    pub const fn square(self) -> Square {
        let (east, north) = ((self.0 >> 7 & 0x7F) / 10, (self.0 & 0x7F) / 10);
        Square((self.0 >> 14) << 8 | east << 4 | north)
    }
}

impl Square {
    /// The number that names it in messages: below 2^29.
    pub const fn id(self) -> u64 {
        self.0
    }

    /// The square of that number.
    ///
    /// # Errors
    /// [`CellError::Unknown`] for a number that names none.
    pub fn from_id(id: u64) -> Result<Self, CellError> {
        let fits = (id >> 4 & 0xF) < 10 && (id & 0xF) < 10 && is_prefix(id >> 8);
        if fits { Ok(Self(id)) } else { Err(CellError::Unknown) }
    }
}

/// Does the number name a square of 100 km? One that no position lies in may pass: that is as good
/// as a cell that nobody ever visits.
fn is_prefix(prefix: u64) -> bool {
    if prefix >> PREFIX != 0 {
        return false;
    }
    let zone = (prefix >> 15) as usize;
    let [band, column, row] = [10, 5, 0].map(|shift| b'A' + (prefix >> shift & 0x1F) as u8);
    if zone == 0 {
        let Some(half) = mgrs::POLAR.iter().position(|&letter| letter == band) else {
            return false;
        };
        return mgrs::POLAR_COLUMNS[half].contains(&column)
            && mgrs::POLAR_ROWS[half / 2].contains(&row);
    }
    zone <= 60
        && mgrs::BANDS.contains(&band)
        && mgrs::COLUMNS[(zone - 1) % 3].contains(&column)
        && mgrs::ROWS.contains(&row)
}

/// Writes a name with this many digits for each axis.
fn write_name(
    f: &mut fmt::Formatter<'_>,
    prefix: u64,
    (east, north): (u64, u64),
    digits: usize,
) -> fmt::Result {
    use core::fmt::Write;
    let zone = prefix >> 15;
    if zone > 0 {
        write!(f, "{zone:02}")?;
    }
    for shift in [10, 5, 0] {
        f.write_char(char::from(b'A' + (prefix >> shift & 0x1F) as u8))?;
    }
    write!(f, "{east:0digits$}{north:0digits$}")
}

/// Prefix, easting and northing of a name with this many digits for each axis.
fn read_name(name: &str, digits: usize) -> Option<(u64, u64, u64)> {
    let zone_digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let (zone, rest) = name.split_at_checked(zone_digits)?;
    let zone: u64 = match zone_digits {
        0 => 0,
        1 | 2 => zone.parse().ok().filter(|&zone| zone > 0)?,
        _ => return None,
    };
    let (letters, numbers) = rest.split_at_checked(3)?;
    let mut prefix = zone;
    for letter in letters.bytes() {
        let letter = letter.to_ascii_uppercase();
        prefix = prefix << 5 | u64::from(letter.is_ascii_uppercase().then(|| letter - b'A')?);
    }
    if numbers.len() != 2 * digits || !numbers.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (east, north) = numbers.split_at_checked(digits)?;
    Some((prefix, east.parse().ok()?, north.parse().ok()?))
}

macro_rules! named {
    ($cell:ident, $digits:literal, $bits:literal) => {
        impl fmt::Display for $cell {
            /// The MGRS name.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mask = (1 << $bits) - 1;
                let place = (self.0 >> $bits & mask, self.0 & mask);
                write_name(f, self.0 >> (2 * $bits), place, $digits)
            }
        }

        impl fmt::Debug for $cell {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $cell {
            type Err = CellError;

            fn from_str(name: &str) -> Result<Self, CellError> {
                let (prefix, east, north) = read_name(name, $digits).ok_or(CellError::Unknown)?;
                Self::from_id(prefix << (2 * $bits) | east << $bits | north)
            }
        }
    };
}

named!(SmallCell, 3, 10);
named!(KmCell, 2, 7);
named!(Square, 1, 4);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn metre(latitude: f64, longitude: f64) -> alloc::string::String {
        let place = mgrs::place(latitude, longitude).unwrap();
        let zone = if place.zone == 0 { "".into() } else { alloc::format!("{:02}", place.zone) };
        let letters = core::str::from_utf8(&place.letters).unwrap();
        alloc::format!("{zone}{letters}{:05}{:05}", place.easting, place.northing)
    }

    /// Equator, poles, edges of bands, Norway and Svalbard, the date line: GeoConvert 2.1.2.
    #[test]
    fn pinned_positions() {
        for (latitude, longitude, name) in [
            (0.0, 0.0, "31NAA6602100000"),
            (-80.0, -177.0, "01CEM0000018414"),
            (-80.000001, 0.0, "BAZ0000012951"),
            (60.0, 3.0, "32VJM6564066593"),
            (60.0, 2.999999, "31VDG9999951411"),
            (63.999999, 3.0, "32VKS0685710827"),
            (64.0, 3.0, "31WEL0000097014"),
            (75.0, 8.999999, "31XFD7306832368"),
            (75.0, 9.0, "33XUD2693132368"),
            (75.0, 41.999999, "37XED8663725798"),
            (71.999999, 8.0, "32WME6551089218"),
            (84.0, 15.0, "ZBA7256155990"),
            (83.999999, 15.0, "33XWP0000028093"),
            (90.0, 0.0, "ZAH0000000000"),
            (-90.0, 0.0, "BAN0000000000"),
            (-85.0, 90.0, "BHN5545700000"),
            (-85.0, -45.0, "AUR0723292767"),
        ] {
            assert_eq!(metre(latitude, longitude), name, "{latitude} {longitude}");
        }
        assert_eq!(metre(12.5, 180.0), metre(12.5, -180.0));
    }

    #[test]
    fn positions_off_the_earth() {
        for (latitude, longitude) in [
            (90.1, 0.0),
            (-91.0, 0.0),
            (0.0, 180.1),
            (0.0, -181.0),
            (f64::NAN, 0.0),
            (0.0, f64::INFINITY),
        ] {
            assert_eq!(
                SmallCell::at(Position { latitude, longitude }),
                Err(CellError::OffTheEarth)
            );
        }
    }

    #[test]
    fn names_and_numbers_go_back() {
        for (latitude, longitude) in
            [(45.8131, 15.9772), (-33.9, 151.2), (89.0, 10.0), (-89.0, -10.0)]
        {
            let small = SmallCell::at(Position { latitude, longitude }).unwrap();
            assert_eq!(SmallCell::from_id(small.id()), Ok(small));
            assert_eq!(small.to_string().parse(), Ok(small));
            assert_eq!(KmCell::from_id(small.km().id()), Ok(small.km()));
            assert_eq!(small.km().to_string().parse(), Ok(small.km()));
            assert_eq!(
                (small.km().small(small.place()), small.km().small(100)),
                (Some(small), None)
            );
            assert_eq!(Square::from_id(small.square().id()), Ok(small.square()));
            assert_eq!(small.square().to_string().parse(), Ok(small.square()));
        }
    }

    #[test]
    fn what_is_no_cell() {
        for name in [
            "",
            "33",
            "33TWN",
            "33TWN12345",
            "61TWN123456",
            "00TWN123456",
            "33IWN123456",
            "33TON123456",
            "33TWN12a456",
            "ÄÖÜ",
            "CAA123456",
        ] {
            assert_eq!(name.parse::<SmallCell>(), Err(CellError::Unknown), "{name}");
        }
        let small: SmallCell = "33TWN123456".parse().unwrap();
        assert_eq!(SmallCell::from_id(small.id() | 0x3FF), Err(CellError::Unknown));
        assert_eq!(SmallCell::from_id(u64::MAX), Err(CellError::Unknown));
        assert_eq!(KmCell::from_id(small.km().id() | 0x7F), Err(CellError::Unknown));
        assert_eq!(Square::from_id(small.square().id() | 0xF), Err(CellError::Unknown));
    }
}
