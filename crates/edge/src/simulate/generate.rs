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
/// times; at most of them the person still is where it was, if that is its home, its work or another place it comes to
/// regularly. Many of these, and some of the places people explore, lie in *hubs* that all share, where people also walk about.
/// As in the paper's data, a walk is the straight line between check-ins, and a person has many days, which
/// are folded into one.
///
/// [`City::default`] has the paper's counts: 67 people, 7,724 days of 610 fixes on average, of which 12.3 % enter a new cell of
/// 1 km, and no hubs; how often people leave, how far they go and how fast was fitted to these, and to the distinct elements within ten
/// minutes of the afternoon. [`City::with_hubs`] was fitted to how close together the paper's people were, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct City {
    /// People.
    pub people: u32,
    /// Days of all of them together.
    pub days: u32,
    /// Where its middle is.
    pub middle: Position,
    /// Homes and hubs lie around the middle with this deviation, in kilometres.
    pub spread: f64,
    /// Minutes of a day between its first and last fix, on average.
    pub minutes: f64,
    /// Minutes between two check-ins at one place, on average.
    pub gap: f64,
    /// The chance to leave at a check-in: from home, work and regular places, from elsewhere.
    pub leaves: (f64, f64),
    /// Kilometres an hour on the way.
    pub speed: f64,
    /// Minutes that each way takes in addition.
    pub pause: f64,
    /// The shortest way to a new place in kilometres, and where the power law of ways is cut off.
    pub ways: (f64, f64),
    /// Places besides home and work that each person knows before the first day, and stays at as long as at those.
    pub regular: u32,
    /// Hubs: areas of about a square kilometre where many people work and go, such as a campus or a station. With none, places
    /// are shared by chance only.
    pub hubs: u32,
    /// Kilometres from the middle of a hub to the places in it (standard deviation, to the east and to the north).
    pub reach: f64,
    /// The chance that a workplace or a regular place is in a hub, and that a new place is.
    pub shared: (f64, f64),
    /// The chance to walk to another spot of the hub and back, at a check-in in one.
    pub strolls: f64,
    /// The same seed makes the same people.
    pub seed: u64,
}

/// ρ, γ and the exponent of distances (Song et al. 2010).
const EXPLORE: f64 = 0.6;
const TIRE: f64 = 0.21;
const EXPONENT: f64 = 1.55;
/// Visits to home and work before the first day.
const USUAL: f64 = 40.0;
/// Kilometres an hour on foot.
const WALK: f64 = 4.5;
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
            pause: 3.0,
            ways: (3.0, 40.0),
            regular: 0,
            hubs: 0,
            reach: 0.5,
            shared: (0.0, 0.0),
            strolls: 0.0,
            seed: 1,
        }
    }
}

impl City {
    /// A city whose people meet: it was also fitted to the paper's losses at one and 15 minutes, to its fullest filter, and to how
    /// often a person's days are at one place in the same minute.
    pub fn with_hubs() -> Self {
        Self {
            leaves: (0.185, 1.0),
            speed: 110.0,
            pause: 0.0,
            regular: 2,
            hubs: 14,
            shared: (0.6, 0.3),
            strolls: 0.2,
            ..Self::default()
        }
    }
}

/// A place of somebody.
#[derive(Clone, Copy)]
struct Place {
    at: Position,
    /// How often it was visited.
    visits: f64,
    /// The middle of the hub that it is in.
    hub: Option<Position>,
}

/// Where the hubs are; the first is the busiest.
struct Hubs(Vec<Position>);

impl Hubs {
    fn of(city: &City) -> Self {
        let mut random = Rand64::new(u128::from(city.seed) << 64 | 0xB5);
        Self((0..city.hubs).map(|_| near(&mut random, city.middle, city.spread)).collect())
    }

    /// A place in one of them, which is chosen by Zipf's law, with this chance; or none.
    fn place(&self, city: &City, random: &mut Rand64, chance: f64) -> Option<Place> {
        // No number is drawn without hubs, so that those cities stay as they are.
        if self.0.is_empty() || random.rand_float() >= chance {
            return None;
        }
        let weights = || (1..=self.0.len()).map(|rank| 1.0 / rank as f64);
        let mut lot = random.rand_float() * weights().sum::<f64>();
        let chosen = weights().position(|weight| {
            lot -= weight;
            lot < 0.0
        });
        let hub = *self.0.get(chosen.unwrap_or(0))?;
        Some(Place { at: near(random, hub, city.reach), visits: 1.0, hub: Some(hub) })
    }
}

/// The days of a city's people.
pub fn generate(city: &City) -> Trace {
    let mut trace = Trace::default();
    let hubs = Hubs::of(city);
    for person in 0..city.people {
        let seed = u128::from(city.seed) << 64 | u128::from(person);
        let mut random = Rand64::new(seed ^ 0x9E37_79B9_7F4A_7C15);
        let home = near(&mut random, city.middle, city.spread);
        let mut places = std::vec![Place { at: home, visits: USUAL, hub: None }];
        for rank in 0..=city.regular {
            let place = hubs.place(city, &mut random, city.shared.0).unwrap_or_else(|| {
                let at = near(&mut random, city.middle, city.spread);
                Place { at, visits: 1.0, hub: None }
            });
            // Work first, then others less often.
            places.push(Place { visits: USUAL / f64::from(1 + rank), ..place });
        }
        // Days are shared out evenly.
        let days = (u64::from(city.days) * u64::from(person + 1) / u64::from(city.people))
            - u64::from(city.days) * u64::from(person) / u64::from(city.people);
        for _ in 0..days {
            let fixes = day(city, &hubs, &mut random, &mut places);
            trace.walks.extend(Walk::along(person, fixes));
        }
    }
    trace
}

/// Check-ins of a day: it begins at home, the place known first.
fn day(
    city: &City,
    hubs: &Hubs,
    random: &mut Rand64,
    places: &mut Vec<Place>,
) -> Vec<(f64, Position)> {
    let length = (city.minutes * (0.5 + random.rand_float())).clamp(60.0, 1_400.0);
    let latest = 1_439.0 - length;
    let mut time = (450.0 + 90.0 * normal(random)).clamp(0.0, latest.max(0.0));
    let end = time + length;
    let mut at = 0;
    let mut fixes = Vec::new();
    while time < end {
        let Some(&here) = places.get(at) else { break };
        fixes.push((time, here.at));
        let leaves = if at < 2 + city.regular as usize { city.leaves.0 } else { city.leaves.1 };
        if random.rand_float() < leaves {
            at = next(city, hubs, random, places, at);
            let to = places.get(at).map_or(here.at, |place| place.at);
            time += city.pause + distance(here.at, to) / city.speed * 60.0;
        } else if let Some(hub) = here.hub
            && random.rand_float() < city.strolls
        {
            let spot = near(random, hub, city.reach);
            let way = distance(here.at, spot) / WALK * 60.0;
            fixes.push((time + way, spot));
            time += 2.0 * way;
        } else {
            time += -city.gap * (1.0 - random.rand_float()).ln();
        }
    }
    fixes.extend(places.get(at).map(|place| (end, place.at)));
    fixes
}

/// The next place: a new one, or a known one.
fn next(
    city: &City,
    hubs: &Hubs,
    random: &mut Rand64,
    places: &mut Vec<Place>,
    at: usize,
) -> usize {
    let known = places.len() as f64;
    if random.rand_float() < EXPLORE * known.powf(-TIRE) {
        if let Some(place) = hubs.place(city, random, city.shared.1) {
            places.push(place);
            return places.len() - 1;
        }
        let (least, most) = city.ways;
        // The inverse of the power law's distribution, cut off at the longest way.
        let share = random.rand_float() * (1.0 - (least / most).powf(EXPONENT - 1.0));
        let way = least * (1.0 - share).powf(-1.0 / (EXPONENT - 1.0));
        let turn = random.rand_float() * std::f64::consts::TAU;
        let here = places.get(at).map_or(city.middle, |place| place.at);
        let there = moved(here, way * turn.cos(), way * turn.sin());
        // People stay in and around the city.
        let there = if distance(there, city.middle) > 3.0 * city.spread {
            near(random, city.middle, city.spread)
        } else {
            there
        };
        places.push(Place { at: there, visits: 1.0, hub: None });
        return places.len() - 1;
    }
    let others = |(other, _): &(usize, &mut Place)| *other != at;
    let visits = places.iter_mut().enumerate().filter(others).map(|(_, place)| place.visits);
    let total: f64 = visits.sum();
    let mut lot = random.rand_float() * total;
    for (other, place) in places.iter_mut().enumerate().filter(others) {
        lot -= place.visits;
        if lot < 0.0 {
            place.visits += 1.0;
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
        for city in [City::default(), City::with_hubs()] {
            let trace = generate(&city);
            let (fixes, arrivals) = (trace.fixes() as f64, trace.arrivals() as f64);
            assert_eq!(trace.walks.len(), 7_724);
            assert!((fixes / 4_709_259.0 - 1.0).abs() < 0.02, "{fixes} fixes");
            assert!((arrivals / 579_040.0 - 1.0).abs() < 0.02, "{arrivals} arrivals");
        }
    }
}
