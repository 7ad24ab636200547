//! A generated city.

use super::trace::{Trace, Walk};
use crate::cell::Position;
use oorandom::Rand64;
use std::vec::Vec;

/// A city and how its people move.
///
/// Each person explores places and returns to them (C. Song, T. Koren, P. Wang, A.-L. Barabási, "Modelling
/// the scaling properties of human mobility", Nature Physics 6, 2010, doi:10.1038/nphys1760): the chance
/// of a new place after `S` known ones is `ρ·S^-γ`, a known one is chosen by how often it was visited, and
/// distances follow a power law that is cut off. A day begins at home and has check-ins at irregular
/// times; at most of them the person still is where it was, at home and at work more often than elsewhere.
/// As in the paper's data, a walk is the straight line between check-ins, and a person has many days, which
/// are folded into one.
///
/// [`City::default`] has the paper's counts: 67 people, 7,724 days of 610 fixes on average. Three things
/// were fitted to the paper's own figures of its trace: how often people leave, how far they go and how fast,
/// so that as many fixes enter a new cell of 1 km (579,040 of 4,709,259, 12.3 %) and as many elements are
/// different within ten minutes of the afternoon (15 to 17 % of the readings).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct City {
    /// People.
    pub people: u32,
    /// Days of all of them together.
    pub days: u32,
    /// Where its middle is.
    pub middle: Position,
    /// Homes lie around the middle with this deviation, in kilometres.
    pub spread: f64,
    /// Minutes of a day between its first and last fix, on average.
    pub minutes: f64,
    /// Minutes between two check-ins at one place, on average.
    pub gap: f64,
    /// The chance to leave at a check-in: from home and from work, from elsewhere.
    pub leaves: (f64, f64),
    /// Kilometres an hour on the way.
    pub speed: f64,
    /// The shortest way to a new place in kilometres, and where the power law of ways is cut off.
    pub ways: (f64, f64),
    /// The same seed makes the same people.
    pub seed: u64,
}

/// ρ, γ and the exponent of distances (Song et al. 2010).
const EXPLORE: f64 = 0.6;
const TIRE: f64 = 0.21;
const EXPONENT: f64 = 1.55;
/// Visits to home and work before the first day.
const USUAL: f64 = 40.0;
/// Kilometres of a degree of latitude.
const DEGREE: f64 = 111.2;

impl Default for City {
    fn default() -> Self {
        Self {
            people: 67,
            days: 7_724,
            // Seoul.
            middle: Position { latitude: 37.55, longitude: 126.98 },
            spread: 9.0,
            minutes: 610.0,
            gap: 31.0,
            leaves: (0.125, 0.65),
            speed: 60.0,
            ways: (3.0, 40.0),
            seed: 1,
        }
    }
}

/// A place and how often it was visited.
type Place = (Position, f64);

/// The days of a city's people.
pub fn generate(city: &City) -> Trace {
    let mut trace = Trace::default();
    for person in 0..city.people {
        let seed = u128::from(city.seed) << 64 | u128::from(person);
        let mut random = Rand64::new(seed ^ 0x9E37_79B9_7F4A_7C15);
        let home = near(&mut random, city.middle, city.spread);
        let work = near(&mut random, city.middle, city.spread);
        let mut places = std::vec![(home, USUAL), (work, USUAL)];
        // Days are shared out evenly.
        let days = (u64::from(city.days) * u64::from(person + 1) / u64::from(city.people))
            - u64::from(city.days) * u64::from(person) / u64::from(city.people);
        for _ in 0..days {
            let fixes = day(city, &mut random, &mut places);
            trace.walks.extend(Walk::along(person, fixes));
        }
    }
    trace
}

/// Check-ins of a day: it begins at home, the place known first.
fn day(city: &City, random: &mut Rand64, places: &mut Vec<Place>) -> Vec<(f64, Position)> {
    let length = (city.minutes * (0.5 + random.rand_float())).clamp(60.0, 1_400.0);
    let latest = 1_439.0 - length;
    let mut time = (450.0 + 90.0 * normal(random)).clamp(0.0, latest.max(0.0));
    let end = time + length;
    let mut at = 0;
    let mut fixes = Vec::new();
    while time < end {
        fixes.extend(places.get(at).map(|place| (time, place.0)));
        let leaves = if at < 2 { city.leaves.0 } else { city.leaves.1 };
        if random.rand_float() < leaves {
            let from = places.get(at).map_or(city.middle, |place| place.0);
            at = next(city, random, places, at);
            let to = places.get(at).map_or(city.middle, |place| place.0);
            time += 3.0 + distance(from, to) / city.speed * 60.0;
        } else {
            time += -city.gap * (1.0 - random.rand_float()).ln();
        }
    }
    fixes.extend(places.get(at).map(|place| (end, place.0)));
    fixes
}

/// The next place: a new one, or a known one.
fn next(city: &City, random: &mut Rand64, places: &mut Vec<Place>, at: usize) -> usize {
    let known = places.len() as f64;
    if random.rand_float() < EXPLORE * known.powf(-TIRE) {
        let (least, most) = city.ways;
        // The inverse of the power law's distribution, cut off at the longest way.
        let share = random.rand_float() * (1.0 - (least / most).powf(EXPONENT - 1.0));
        let way = least * (1.0 - share).powf(-1.0 / (EXPONENT - 1.0));
        let turn = random.rand_float() * std::f64::consts::TAU;
        let here = places.get(at).map_or(city.middle, |place| place.0);
        let there = moved(here, way * turn.cos(), way * turn.sin());
        // People stay in and around the city.
        let there = if distance(there, city.middle) > 3.0 * city.spread {
            near(random, city.middle, city.spread)
        } else {
            there
        };
        places.push((there, 1.0));
        return places.len() - 1;
    }
    let others = |(other, _): &(usize, &mut Place)| *other != at;
    let total: f64 = places.iter_mut().enumerate().filter(others).map(|(_, place)| place.1).sum();
    let mut lot = random.rand_float() * total;
    for (other, place) in places.iter_mut().enumerate().filter(others) {
        lot -= place.1;
        if lot < 0.0 {
            place.1 += 1.0;
            return other;
        }
    }
    at
}

fn moved(from: Position, east: f64, north: f64) -> Position {
    let latitude = (from.latitude + north / DEGREE).clamp(-89.0, 89.0);
    let longitude = from.longitude + east / (DEGREE * from.latitude.to_radians().cos());
    Position { latitude, longitude: (longitude + 180.0).rem_euclid(360.0) - 180.0 }
}

fn near(random: &mut Rand64, middle: Position, kilometres: f64) -> Position {
    let (east, north) = (normal(random), normal(random));
    moved(middle, kilometres * east, kilometres * north)
}

fn distance(one: Position, other: Position) -> f64 {
    let north = (one.latitude - other.latitude) * DEGREE;
    let east = (one.longitude - other.longitude) * DEGREE * other.latitude.to_radians().cos();
    north.hypot(east)
}

/// A normally distributed number (Box and Muller).
fn normal(random: &mut Rand64) -> f64 {
    let radius = (-2.0 * (1.0 - random.rand_float()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.rand_float()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_people() {
        let city = City { people: 3, days: 20, ..City::default() };
        let trace = generate(&city);
        assert_eq!(trace, generate(&city));
        assert_ne!(trace, generate(&City { seed: 2, ..city }));
        assert_eq!(trace.walks.len(), 20);
        assert!(trace.walks.iter().all(|walk| usize::from(walk.start) + walk.cells.len() <= 1440));
    }

    /// The counts of the paper's trace, within 2 %.
    #[test]
    fn the_papers_counts() {
        let trace = generate(&City::default());
        let (fixes, arrivals) = (trace.fixes() as f64, trace.arrivals() as f64);
        assert_eq!(trace.walks.len(), 7_724);
        assert!((fixes / 4_709_259.0 - 1.0).abs() < 0.02, "{fixes} fixes");
        assert!((arrivals / 579_040.0 - 1.0).abs() < 0.02, "{arrivals} arrivals");
    }
}
