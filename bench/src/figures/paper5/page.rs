//! Plots and the results page, from the tables.

use super::measure::{self, DAYS, OCCUPANCY, SLOTS, SPEED};
use super::{Experiment, Source, city, future, hosts, modes, shares, steps, summary};
use crate::figures::facts::Facts;
use crate::figures::report;
use crate::figures::sheet::Sheet;
use crate::plot::{Axis, Chart, Line, Scale, plain};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots next to them, and the page next to the folder, under
/// its name.
///
/// # Errors
/// When a table is missing or damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let read = |experiment: Experiment, columns: &[&str]| {
        Sheet::read(&folder.join(experiment.file()), columns)
    };
    let slots = read(Experiment::Slots, &SLOTS)?;
    let occupancy = read(Experiment::Occupancy, &OCCUPANCY)?;
    let lost = read(Experiment::Lost, &DAYS)?;
    let person = read(Experiment::Person, &DAYS)?;
    let day = read(Experiment::Day, &DAYS)?;
    let ways = read(Experiment::Modes, &measure::columns(Experiment::Modes))?;
    let speed = read(Experiment::Speed, &SPEED)?;
    let facts = Facts::read(folder)?;
    let future = read(Experiment::Future, &measure::columns(Experiment::Future))?;
    let counted = read(Experiment::City, &city::COLUMNS)?;
    let of_hosts = |judged: Source| {
        let mut sections = [
            hosts::slots(&slots, judged),
            hosts::lost(&lost, judged),
            hosts::occupancy(&occupancy, judged),
        ];
        for (section, sheet) in sections.iter_mut().zip([&slots, &lost, &occupancy]) {
            let measured = !sheet.of(&[("trace", judged.name())]).is_empty();
            // A day that was not simulated agrees with nothing, and contradicts nothing.
            section.checks.retain(|check| measured && !check.text.contains("NaN"));
        }
        sections
    };
    let of_days = shares::sections(&facts, &person, &day);
    let mut page = heading(&facts, &speed);
    page += &days(&person, &day)?;
    page += &summary::section(&facts, &lost, &person, &day);
    page += &summary::agreement(&of_hosts, &of_days, &person);
    for section in &of_hosts(Source::City) {
        page += &section.write(folder)?;
    }
    page += &city::section(&counted);
    page += &shares::who(&person, &day);
    for section in of_days.iter().chain(&[steps::workers(&person), steps::wanted(&person)]) {
        page += &section.write(folder)?;
    }
    page += &future::section(&future, &person, &day);
    page += &modes::section(&ways).write(folder)?;
    page += &modes::speed_section(&speed);
    report::write(folder, &page)
}

/// On how many days Figures 8 to 12 and Tables 2 and 3 rest.
fn days(person: &Sheet, day: &Sheet) -> Result<String, Box<dyn Error>> {
    let mut parts = Vec::new();
    for (sheet, experiment, who) in
        [(person, Experiment::Person, "persons"), (day, Experiment::Day, "days")]
    {
        for source in Source::ALL {
            let (simulated, all) = (
                sheet.of(&[("trace", source.name())]).len(),
                measure::planned(experiment, source)?,
            );
            if all > 0 {
                parts.push(format!("{simulated} of {all} of the {} with {who}", source.name()));
            }
        }
    }
    Ok(format!(
        "\nFigures 8 to 12 and Tables 2 and 3 rest on one simulated day for each combination of m_worker, m_MEC and window: {}. Each \
         number is that of one day of one trace: the generated cities have one seed, and the same seed gives the same numbers. How far \
         other seeds would lie from them was not measured, so that small differences between ours and the paper's say nothing.\n",
        parts.join(", ")
    ))
}

pub(super) fn axis(label: &str, scale: Scale, tick: fn(f64) -> String) -> Axis {
    Axis { label: label.to_owned(), scale, tick }
}

pub(super) fn as_percent(value: f64) -> String {
    let percent = 100.0 * value;
    // A share below 1 % has two digits, so that the ticks of a low axis differ.
    let digits = match percent.abs() {
        small if (1e-6..0.95).contains(&small) => 1 - small.log10().floor() as i32,
        _ => 1,
    };
    let unit = 10_f64.powi(digits);
    // Without a minus before 0.
    format!("{} %", plain((percent * unit).round() / unit + 0.0))
}

pub(super) fn chart(title: String, y: Axis, lines: Vec<Line>) -> Chart {
    Chart { title, x: axis("window in minutes", Scale::Log, plain), y, lines }
}

const INTRODUCTION: &str = "# Antonić et al. (2022), Figures 4–12 and Tables 1–3

<!-- Written by `lately-bench figures paper5`; change bench/src/figures/paper5. -->

M. Antonić, A. Antonić, I. Podnar Žarko, “Bloom Filter Approach for Autonomous Data Acquisition in the
Edge-Based MCS Scenario”, Sensors 22, 879, 2022. Devices hold a Bloom filter of what others have sent
from their square kilometre, and send only what is not in it. We run the same experiments with the
roles of `crates/edge`, which are those of the real system: each message is encoded, counted and
delivered, in memory. Exact tables alongside distinguish readings that were rightly suppressed from those lost to a
false positive.

## Setup

";

fn heading(facts: &Facts, speed: &Sheet) -> String {
    let mut page = INTRODUCTION.to_owned();
    let row = |source: &str, name: &str| {
        let fact = |what: &str| facts.get(&format!("{source} {what}")).to_owned();
        vec![name.to_owned(), fact("people"), fact("days"), fact("fixes"), fact("arrivals")]
    };
    page += "The paper's trace (67 phones in Seoul) is not public. Like the paper, we cut traces into days, overlay all \
             days, interpolate each linearly to one fix per minute, and treat every fix as a reading. \
             *crowd* is the e-mission trace of the InterSCity challenge 2017, without fixes less accurate than \
             100 m: about forty times smaller. *city* is synthetic (`simulate::City`): its numbers of days \
             and fixes, of cells entered, and of distinct elements in ten minutes of the afternoon were fitted to \
             the paper's; everything else is a result. *hubs* is another one, whose people meet (`City::with_hubs`): it was \
             also fitted to how close together the paper's people were (see [below](#what-places-that-people-share-explain)).\n\n";
    let paper = ["the paper", "67", "7724", "4709259", "579040"].map(str::to_owned).to_vec();
    page += &report::table(
        &["trace (Table 1)", "people", "days", "readings", "announces"],
        [paper, row("crowd", "crowd"), row("city", "city"), row("hubs", "hubs")],
    );
    let of = |variant| {
        let rows = speed.of(&[("trace", "city"), ("variant", variant)]);
        rows.first().map_or(String::from("?"), |row| row.text("seconds").to_owned())
    };
    let _ = write!(
        page,
        "\nScale {}; processor: {}. A day of the city takes {} s of processor time with filters that are reset, {} s \
         with filters that age (last table). Empty cells below are days that were not simulated.\n",
        facts.get("scale"),
        facts.get("processor"),
        of("reset"),
        of("ageing"),
    );
    page
}
