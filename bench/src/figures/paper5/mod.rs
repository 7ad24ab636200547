//! Figures 4–12 and Tables 1–3 of Antonić et al. (2022) on devices that decide for themselves what to
//! send, and what the paper does not have: filters that age, deltas, names instead of bits.
//!
//! [`run`] measures and writes tables; [`page::draw`] makes plots and the results page from the
//! tables alone.

pub mod city;
pub mod claims;
pub mod future;
pub mod hosts;
pub mod measure;
pub mod modes;
pub mod page;
pub mod shares;
pub mod steps;
pub mod summary;

use super::facts::Facts;
use super::sheet::Sheet;
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{City, generate};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is varied while the rest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// What the traces and a city with hubs give before any message is sent.
    City,
    /// Figures 4 and 5: slots of ten minutes from 4 to 7 pm.
    Slots,
    /// Figure 6: readings lost over the day.
    Lost,
    /// Figure 7: how full filters are.
    Occupancy,
    /// Reset against ageing, deltas, names and refreshing.
    Modes,
    /// What a reset is sent to, resets at a bound of fill, preferred workers first.
    Future,
    /// Figures 8–12, Tables 2 and 3, where all days of a person are one worker in a cell.
    Person,
    /// The same, where each day is a worker of its own.
    Day,
    /// How long it takes to simulate a day; to be run while the machine does nothing else.
    Speed,
}

impl Experiment {
    /// The file of its table.
    pub fn file(self) -> &'static str {
        match self {
            Self::City => "city.csv",
            Self::Slots => "slots.csv",
            Self::Lost => "lost.csv",
            Self::Occupancy => "occupancy.csv",
            Self::Person => "person.csv",
            Self::Day => "day.csv",
            Self::Modes => "modes.csv",
            Self::Future => "future.csv",
            Self::Speed => "speed.csv",
        }
    }
}

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// 1 is the full run; the generated cities have fewer days with less.
    pub scale: f64,
}

/// How a table that takes long is measured in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adding {
    /// Keep the days that the table has already.
    pub add: bool,
    /// Begin no further day after so many minutes.
    pub minutes: Option<u64>,
}

/// Where the days come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The trace that was fetched.
    Crowd,
    /// The generated city with the paper's counts.
    City,
    /// The one whose people meet, too.
    Hubs,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Crowd, Self::City, Self::Hubs];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crowd => "crowd",
            Self::City => "city",
            Self::Hubs => "hubs",
        }
    }
}

/// Facts about a trace: the shares of elements and windows of two hours that several persons share.
const TWO_PERSONS: &str = "elements of two persons in 120 min";
const SIX_PERSONS: &str = "elements of six persons in 120 min";

/// Fixes less accurate than a cell's side are left out.
const ACCURACY: f64 = 100.0;

/// Measures and writes tables into a folder, or adds to them.
///
/// # Errors
/// When a file cannot be read or written, or the counts of a day do not add up.
pub fn run(
    size: Size,
    experiments: &[Experiment],
    Adding { add, minutes }: Adding,
    data: &Path,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    std::fs::create_dir_all(folder)?;
    let file = data.join("crowd_interscity2017/locations_by_write_ts.csv");
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let crowd = Trace::from_csv(&text, ACCURACY)?;
    let generated = |city: City| {
        generate(&City { days: (f64::from(city.days) * size.scale).ceil() as u32, ..city })
    };
    let traces = [
        (Source::Crowd, crowd),
        (Source::City, generated(City::default())),
        (Source::Hubs, generated(City::with_hubs())),
    ];
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("scale", &size.scale);
    facts.note("processor", &crate::machine::processor());
    for &(source, ref trace) in &traces {
        let people = trace.walks.iter().map(|walk| walk.person).max().map_or(0, |most| most + 1);
        let name = source.name();
        facts.note(format!("{name} people"), &people);
        facts.note(format!("{name} days"), &trace.walks.len());
        facts.note(format!("{name} fixes"), &trace.fixes());
        facts.note(format!("{name} arrivals"), &trace.arrivals());
        let [two, six] = measure::shared(trace, 120, [2, 6]).map(crate::figures::report::percent);
        facts.note(format!("{name} {TWO_PERSONS}"), &two);
        facts.note(format!("{name} {SIX_PERSONS}"), &six);
    }
    let deadline = minutes.map(|minutes| began + Duration::from_secs(60 * minutes));
    for &experiment in experiments {
        let columns = match experiment {
            Experiment::City => city::COLUMNS.to_vec(),
            Experiment::Occupancy => measure::OCCUPANCY.to_vec(),
            days => measure::columns(days),
        };
        let before = add.then(|| Sheet::read(&folder.join(experiment.file()), &columns));
        let before = before.and_then(Result::ok);
        let sheet = match experiment {
            Experiment::City => city::measure(&traces)?,
            Experiment::Slots => measure::slots(&traces)?,
            Experiment::Speed => measure::speed(&traces)?,
            Experiment::Occupancy => measure::occupancy(&traces, before.as_ref(), deadline)?,
            days => measure::days(days, &traces, before.as_ref(), deadline)?,
        };
        sheet.write(&folder.join(experiment.file()))?;
        eprintln!("{} is written", experiment.file());
        facts.write(folder)?;
    }
    facts.write(folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_written_and_drawn() {
        let folder = std::env::temp_dir().join(format!("lately-paper5-{}", std::process::id()));
        let crowd = folder.join("crowd_interscity2017");
        std::fs::create_dir_all(&crowd).unwrap();
        let fix =
            |n: u32| format!("u{},{},-23.5{n:02},-46.6,5,UTC\n", n % 3, 1_500_000_000 + n * 400);
        let text: String = (0..40).map(fix).collect();
        let file = crowd.join("locations_by_write_ts.csv");
        std::fs::write(file, format!("user,ts,lat,lon,accuracy_m,tz\n{text}")).unwrap();
        let figures = folder.join("paper5");
        let all = <Experiment as clap::ValueEnum>::value_variants();
        run(Size { scale: 0.0002 }, all, Adding::default(), &folder, &figures).unwrap();
        // Nothing is missing, so nothing changes.
        let adding = Adding { add: true, minutes: Some(0) };
        let table = |name| std::fs::read_to_string(figures.join(name)).unwrap();
        let before = table("lost.csv");
        run(Size { scale: 0.0002 }, &[Experiment::Lost], adding, &folder, &figures).unwrap();
        assert_eq!(table("lost.csv"), before);
        page::draw(&figures).unwrap();
        let page = std::fs::read_to_string(folder.join("paper5.md")).unwrap();
        for number in 4..=12 {
            assert!(page.contains(&format!("Figure {number}")), "{number}");
        }
        assert!(page.contains("Table 2") && page.contains("Table 3") && !page.contains("NaN"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
