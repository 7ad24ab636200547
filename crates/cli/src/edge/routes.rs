//! Routes of workers, from a trace.

use crate::Failure;
use lately::Digester;
use lately_edge::Millis;
use lately_edge::element::Property;
use lately_edge::ids::WorkerId;
use lately_edge::simulate::trace::{DAY, Trace, Walk};
use lately_edge_mqtt::worker::Fix;

const MINUTE: Millis = 60_000;

/// Which part of a trace is walked, and when.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is measured at each fix.
    pub properties: Vec<Property>,
    /// Minutes of the day, from and until.
    pub part: (usize, usize),
    /// The moment that stands for the first of them.
    pub begin: Millis,
    /// When in its minute each worker measures is drawn from this, as in the simulator; and its name.
    pub seed: u64,
    /// Walks to leave out, and to take at most.
    pub walks: (usize, usize),
}

/// A minute of the day, as 8:30 or 08:30.
pub fn minute(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text}: not a time of day like 8:30");
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, below: usize| text.parse().ok().filter(|&number| number < below);
    let hours: usize = number(hours, 24).ok_or_else(wrong)?;
    let minutes: usize = number(minutes, 60).ok_or_else(wrong)?;
    Ok(hours * 60 + minutes)
}

/// The workers and their routes.
pub fn routes(trace: &Trace, plan: &Plan) -> Result<Vec<(WorkerId, Vec<Fix>)>, Failure> {
    let (from, until) = (plan.part.0, plan.part.1.min(DAY));
    let (skip, take) = plan.walks;
    let all = (0_u32..).zip(&trace.walks).filter_map(|(number, walk)| {
        let fixes = fixes(walk, number, (from, until), plan);
        (!fixes.is_empty()).then(|| (WorkerId(name(number, plan.seed)), fixes))
    });
    let routes: Vec<_> = all.skip(skip).take(take).collect();
    if routes.is_empty() {
        return Err(Failure::Trouble("the trace has no walks in that part of the day".into()));
    }
    Ok(routes)
}

fn name(walk: u32, seed: u64) -> u64 {
    Digester::new(seed ^ 0x574F_524B_4552).digest(&walk.to_le_bytes()).lo()
}

fn fixes(walk: &Walk, number: u32, (from, until): (usize, usize), plan: &Plan) -> Vec<Fix> {
    let lot = Digester::new(plan.seed).digest(&number.to_le_bytes());
    let second = lot.probes(MINUTE).next().unwrap_or(0);
    let fix = |minute: usize| {
        let time = plan.begin + (minute - from) as Millis * MINUTE + second;
        let cell = walk.at(minute)?;
        let readings = |&property: &Property| (property, value(cell.id(), minute));
        Some(Fix { time, cell, readings: plan.properties.iter().map(readings).collect() })
    };
    (from..until).filter_map(fix).collect()
}

/// A trace has no measured values: a synthetic level of 40 to 80, the same for all workers that are in one place at
/// one time.
fn value(cell: u64, minute: usize) -> f64 {
    let lot = Digester::new(minute as u64 / 15).digest(&cell.to_le_bytes());
    40.0 + lot.probes(401).next().unwrap_or(0) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day() {
        assert_eq!(minute("8:30"), Ok(510));
        assert_eq!(minute("00:00"), Ok(0));
        for text in ["", "8", "24:00", "8:60", "-1:00", "8:x"] {
            assert!(minute(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_part_of_a_walk() {
        let cell = "33TWL759737".parse().unwrap();
        let walk = Walk { person: 0, start: 100, cells: vec![cell; 20] };
        let trace = Trace { walks: vec![walk.clone(), walk], ..Trace::default() };
        let noise = Property::new("noise").unwrap();
        let plan = Plan {
            properties: vec![noise],
            part: (110, 130),
            begin: 1_000_000,
            seed: 1,
            walks: (0, 9),
        };
        let routes = routes(&trace, &plan).unwrap_or_default();
        assert_eq!(routes.len(), 2);
        assert_ne!(routes[0].0, routes[1].0);
        let fixes = &routes[0].1;
        assert_eq!(fixes.len(), 10);
        assert!((1_000_000..1_060_000).contains(&fixes[0].time));
        assert_eq!(fixes[9].time - fixes[0].time, 9 * MINUTE);
        assert!((40.0..=80.0).contains(&fixes[0].readings[0].1));
        let elsewhere = Plan { part: (0, 50), ..plan };
        assert!(super::routes(&trace, &elsewhere).is_err());
    }
}
