//! From latitude and longitude to the grid of the Military Grid Reference System, on WGS 84.
//!
//! The projections are those of GeographicLib (C. F. F. Karney): Krüger's series for the transverse
//! Mercator projection to the sixth order in the third flattening ("Transverse Mercator with an
//! accuracy of a few nanometers", J. Geodesy 85, 2011, doi:10.1007/s00190-011-0445-3), and the polar
//! stereographic projection. Letters follow NGA.STND.0037.

use core::f64::consts::PI;

/// Semi-major axis of WGS 84 in metres, and its flattening.
const A: f64 = 6_378_137.0;
const F: f64 = 1.0 / 298.257_223_563;
/// Third flattening, and its powers.
const N: f64 = F / (2.0 - F);
const N2: f64 = N * N;
const N3: f64 = N2 * N;
const N4: f64 = N3 * N;
const N5: f64 = N4 * N;
const N6: f64 = N5 * N;
/// Radius of the sphere with the ellipsoid's meridian, scaled to the central meridian of a zone.
const UTM_RADIUS: f64 = 0.9996 * A / (1.0 + N) * (1.0 + N2 / 4.0 + N4 / 64.0 + N6 / 256.0);
/// Krüger's series, forward (Karney 2011, equation 35).
const KRUEGER: [f64; 6] = [
    N / 2.0 - N2 * 2.0 / 3.0 + N3 * 5.0 / 16.0 + N4 * 41.0 / 180.0 - N5 * 127.0 / 288.0
        + N6 * 7_891.0 / 37_800.0,
    N2 * 13.0 / 48.0 - N3 * 3.0 / 5.0 + N4 * 557.0 / 1_440.0 + N5 * 281.0 / 630.0
        - N6 * 1_983_433.0 / 1_935_360.0,
    N3 * 61.0 / 240.0 - N4 * 103.0 / 140.0 + N5 * 15_061.0 / 26_880.0 + N6 * 167_603.0 / 181_440.0,
    N4 * 49_561.0 / 161_280.0 - N5 * 179.0 / 168.0 + N6 * 6_601_661.0 / 7_257_600.0,
    N5 * 34_729.0 / 80_640.0 - N6 * 3_418_889.0 / 1_995_840.0,
    N6 * 212_378_941.0 / 319_334_400.0,
];

/// Letters of the latitude bands, from 80° south on, 8° each (the last 12°).
pub(super) const BANDS: &[u8; 20] = b"CDEFGHJKLMNPQRSTUVWX";
/// Columns of 100 km in zones 1, 2, 3, 4, …: the sets take turns.
pub(super) const COLUMNS: [&[u8; 8]; 3] = [b"ABCDEFGH", b"JKLMNPQR", b"STUVWXYZ"];
/// Rows of 100 km; they repeat.
pub(super) const ROWS: &[u8; 20] = b"ABCDEFGHJKLMNPQRSTUV";
/// The four halves of the polar caps, and their columns and rows.
pub(super) const POLAR: &[u8; 4] = b"ABYZ";
pub(super) const POLAR_COLUMNS: [&[u8]; 4] =
    [b"JKLPQRSTUXYZ", b"ABCFGHJKLPQR", b"RSTUXYZ", b"ABCFGHJ"];
pub(super) const POLAR_ROWS: [&[u8]; 2] = [b"ABCDEFGHJKLMNPQRSTUVWXYZ", b"ABCDEFGHJKLMNP"];

/// A place on the grid: the square of 100 km, and metres from its south-western corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// 1 to 60, or 0 at the poles.
    pub(super) zone: u8,
    /// Letters of band, column and row.
    pub(super) letters: [u8; 3],
    /// Metres, 0 to 99,999.
    pub(super) easting: u32,
    pub(super) northing: u32,
}

/// The place of a position. `None` for one that is not on the Earth, or no number.
pub(super) fn place(latitude: f64, longitude: f64) -> Option<Place> {
    if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
        return None;
    }
    let longitude = if longitude == 180.0 { -180.0 } else { longitude };
    if (-80.0..84.0).contains(&latitude) {
        utm(latitude, longitude)
    } else {
        polar(latitude, longitude)
    }
}

/// The zone, with the exceptions at Norway and Svalbard; `band` counts from 80° south.
fn zone(band: usize, longitude: f64) -> i32 {
    let degrees = libm::floor(longitude) as i32;
    let zone = (degrees + 186) / 6;
    match (band, zone) {
        (17, 31) if degrees >= 3 => 32,
        (19, _) if (0..42).contains(&degrees) => 2 * ((degrees + 183) / 12) + 1,
        _ => zone,
    }
}

fn utm(latitude: f64, longitude: f64) -> Option<Place> {
    let band = ((libm::floor(latitude) as i32 + 80) / 8).clamp(0, 19) as usize;
    let zone = zone(band, longitude);
    let centre = f64::from(6 * zone - 183);
    let (x, y) = transverse_mercator(latitude, longitude - centre);
    let x = x + 500_000.0;
    // The southern hemisphere ends where the northern one begins: rounding must not pass that.
    let y = if latitude < 0.0 { (y + 10_000_000.0).min(9_999_999.999_999) } else { y.max(0.0) };
    let (column, easting) = split(x);
    let (row, northing) = split(y);
    let set = COLUMNS.get((zone - 1) as usize % 3)?;
    let shift = if zone % 2 == 0 { 5 } else { 0 };
    let letters = [
        *BANDS.get(band)?,
        *set.get(column.checked_sub(1)?)?,
        *ROWS.get((row + shift) % ROWS.len())?,
    ];
    Some(Place { zone: zone as u8, letters, easting, northing })
}

/// Metres east of the central meridian and north of the equator.
fn transverse_mercator(latitude: f64, longitude: f64) -> (f64, f64) {
    let (sine, cosine) = libm::sincos(longitude * (PI / 180.0));
    let conformal = conformal_tangent(latitude);
    let xi = libm::atan2(conformal, cosine);
    let eta = libm::asinh(sine / libm::hypot(conformal, cosine));
    // Σ α_j·sin(2j·ζ) over the complex ζ = ξ + i·η, by Clenshaw's recurrence.
    let (sin, cos) = libm::sincos(2.0 * xi);
    let (sinh, cosh) = (libm::sinh(2.0 * eta), libm::cosh(2.0 * eta));
    let twice = (2.0 * cos * cosh, -2.0 * sin * sinh);
    let (mut now, mut before) = ((0.0, 0.0), (0.0, 0.0));
    for coefficient in KRUEGER.into_iter().rev() {
        let next = (
            twice.0 * now.0 - twice.1 * now.1 - before.0 + coefficient,
            twice.0 * now.1 + twice.1 * now.0 - before.1,
        );
        (before, now) = (now, next);
    }
    let sine = (sin * cosh, cos * sinh);
    let north = xi + sine.0 * now.0 - sine.1 * now.1;
    let east = eta + sine.0 * now.1 + sine.1 * now.0;
    (UTM_RADIUS * east, UTM_RADIUS * north)
}

/// The tangent of the conformal latitude (Karney 2011, equations 7 to 9).
fn conformal_tangent(latitude: f64) -> f64 {
    let tangent = libm::tan(latitude * (PI / 180.0));
    let secant = libm::hypot(1.0, tangent);
    let sigma = libm::sinh(eccentric(tangent / secant));
    libm::hypot(1.0, sigma) * tangent - sigma * secant
}

/// `e·artanh(e·x)`.
fn eccentric(x: f64) -> f64 {
    let e = libm::sqrt(F * (2.0 - F));
    e * libm::atanh(e * x)
}

fn polar(latitude: f64, longitude: f64) -> Option<Place> {
    let north = latitude > 0.0;
    let tangent = conformal_tangent(latitude.abs());
    let scale = 2.0 * 0.994 * A / ((1.0 - F) * libm::exp(eccentric(1.0)));
    let radius =
        if latitude.abs() == 90.0 { 0.0 } else { scale / (libm::hypot(1.0, tangent) + tangent) };
    let (sine, cosine) = sine_and_cosine(longitude);
    let x = 2_000_000.0 + radius * sine;
    let y = 2_000_000.0 + if north { -radius } else { radius } * cosine;
    let (column, easting) = split(x);
    let (row, northing) = split(y);
    let east = column >= 20;
    let half = usize::from(north) * 2 + usize::from(east);
    let first_row = if north { 13 } else { 8 };
    let letters = [
        *POLAR.get(half)?,
        *POLAR_COLUMNS.get(half)?.get(column.checked_sub(if east { 20 } else { first_row })?)?,
        *POLAR_ROWS.get(usize::from(north))?.get(row.checked_sub(first_row)?)?,
    ];
    Some(Place { zone: 0, letters, easting, northing })
}

/// Exact at the right angles, where the radians are not.
fn sine_and_cosine(degrees: f64) -> (f64, f64) {
    let quarters = libm::round(degrees / 90.0);
    let (sine, cosine) = libm::sincos((degrees - 90.0 * quarters) * (PI / 180.0));
    match (quarters as i32).rem_euclid(4) {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// Squares of 100 km, and whole metres into the last; what is below a micrometre is rounding.
fn split(metres: f64) -> (usize, u32) {
    let micrometres = libm::floor(metres * 1e6) as u64;
    let metres = micrometres / 1_000_000;
    ((metres / 100_000) as usize, (metres % 100_000) as u32)
}
