//! Days, simulated.

use super::{Experiment, Source};
use crate::figures::clock::processor;
use crate::figures::sheet::{Row, Sheet};
use lately_edge::cell::SmallCell;
use lately_edge::filter::FilterSize;
use lately_edge::message::Kind;
use lately_edge::rules::{Mode, Rules};
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{Identity, Ledger, Resets, Sending, Setting, run};
use std::borrow::Cow;
use std::error::Error;
use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Columns of [`slots`].
pub const SLOTS: [&str; 7] = ["trace", "n", "p", "start", "readings", "elements", "lost"];

/// Columns of [`occupancy`]: deciles and quartiles.
pub const OCCUPANCY: [&str; 12] = [
    "trace",
    "p",
    "bits",
    "window",
    "filters",
    "first",
    "quarter",
    "median",
    "three_quarters",
    "ninth",
    "most",
    "over",
];

/// Columns of [`speed`].
pub const SPEED: [&str; 5] = ["trace", "variant", "window", "fixes", "seconds"];

/// Columns of [`days`].
pub const DAYS: [&str; 35] = [
    "trace",
    "variant",
    "n",
    "p",
    "window",
    "m_worker",
    "m_mec",
    "readings",
    "suppressed",
    "suppressed_wrongly",
    "sent",
    "refreshed",
    "kept",
    "redundant",
    "lost_at_host",
    "announce",
    "assign",
    "update",
    "reset",
    "reset_deliveries",
    "messages",
    "bytes",
    "saving",
    "saving_unicast",
    "sent_share",
    "redundant_share",
    "elements",
    "elements_lost",
    "lost_per_mille",
    "readings_lost_per_mille",
    "expected_lost",
    "coverage",
    "fresh",
    "peak",
    "update_bytes",
];

/// Columns of [`days`], of which some experiments have one or two more.
pub fn columns(experiment: Experiment) -> Vec<&'static str> {
    let more: &[&str] = match experiment {
        Experiment::Modes => &["peak_sent"],
        Experiment::Future => &["peak_sent", "suppressed_stale"],
        _ => &[],
    };
    DAYS.iter().chain(more).copied().collect()
}

const MINUTE: u64 = 60_000;

/// The paper's windows in minutes.
pub const WINDOWS: [u64; 7] = [1, 5, 10, 15, 30, 60, 120];

fn rules(n: u32, p: f64, minutes: u64) -> Result<Rules, Box<dyn Error>> {
    let size = FilterSize::for_elements(n, p).ok_or("no such filter")?;
    Ok(Rules { size, validity: minutes * MINUTE, ..Rules::PAPER })
}

/// Every reading goes into the hosts' filters, as in the paper's section 4.1.
fn all_in(rules: Rules) -> Setting {
    // The form in which filters are sent changes nothing here, and the shortest is the fastest.
    Setting { rules, sending: Sending::All, deltas: true, names: true, ..Setting::default() }
}

/// Runs all settings, as many at a time as there are processors; none is begun past the deadline.
fn in_parallel(
    trace: &Trace,
    settings: &[Setting],
    deadline: Option<Instant>,
) -> Result<Vec<Option<Ledger>>, Box<dyn Error>> {
    let (rows, next) = (Mutex::new(vec![None; settings.len()]), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(setting) = settings.get(at) else { break };
                    let ledger = run(trace, setting);
                    if let Ok(mut rows) = rows.lock() {
                        rows[at] = Some(ledger);
                    }
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap_or_default();
    let wrong =
        |(_, day): &(&Setting, &Option<Ledger>)| day.as_ref().is_some_and(|day| !day.adds_up());
    match settings.iter().zip(&rows).find(wrong) {
        Some((setting, _)) => Err(format!("the counts of {setting:?} do not add up").into()),
        None => Ok(rows),
    }
}

/// Runs one setting.
fn one(trace: &Trace, setting: Setting) -> Result<Ledger, Box<dyn Error>> {
    let day = in_parallel(trace, &[setting], None)?.pop().flatten();
    day.ok_or_else(|| "a day was not simulated to its end".into())
}

/// Slots of ten minutes from 4 to 7 pm.
///
/// # Errors
/// When the counts of a day do not add up.
pub fn slots(traces: &[(Source, Trace)]) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new(&SLOTS);
    for &(source, ref trace) in traces {
        for n in [50, 100] {
            for p in [0.001, 0.01, 0.05, 0.1] {
                let part = (16 * 60, 19 * 60);
                let setting = Setting { part, ..all_in(rules(n, p, 10)?) };
                for slot in &one(trace, setting)?.slots {
                    let (readings, elements, lost) = (slot.readings, slot.elements, slot.lost);
                    sheet.push(&[
                        &source.name(),
                        &n,
                        &p,
                        &slot.start,
                        &readings,
                        &elements,
                        &lost,
                    ])?;
                }
            }
        }
    }
    Ok(sheet)
}

/// How many bits of the filters that have any are set at the end of a window. Rows that are there already, and time, count
/// as in [`days`].
///
/// # Errors
/// When the counts of a day do not add up.
pub fn occupancy(
    traces: &[(Source, Trace)],
    before: Option<&Sheet>,
    deadline: Option<Instant>,
) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new(&OCCUPANCY);
    for &(source, ref trace) in traces {
        for p in [0.1, 0.001] {
            for window in WINDOWS {
                let rules = rules(50, p, window)?;
                let is_it = |row: &Row<'_>| {
                    row.text("trace") == source.name()
                        && row.number("p") == p
                        && row.number("window") == window as f64
                };
                if let Some(row) = before.and_then(|before| before.rows().find(is_it)) {
                    sheet.copy(&row)?;
                    continue;
                }
                // How full filters are with hubs hardly depends on p, as without.
                let left_out =
                    source == Source::Hubs && (p < 0.1 || !matches!(window, 1 | 15 | 30 | 120));
                if left_out || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    continue;
                }
                let counts = one(trace, all_in(rules))?.occupancy;
                let filters: u64 = counts.iter().sum();
                let at = |twentieth: u64| {
                    let mut left = (filters * twentieth).div_ceil(20).max(1);
                    counts.iter().position(|&count| {
                        left = left.saturating_sub(count);
                        left == 0
                    })
                };
                let [first, quarter, median, three_quarters, ninth, most] =
                    [2, 5, 10, 15, 18, 20].map(|twentieth| at(twentieth).unwrap_or(0));
                // The fill of a filter with as many elements as it is made for is about a half.
                let over: u64 = counts.iter().skip(rules.size.bits as usize / 2 + 1).sum();
                sheet.push(&[
                    &source.name(),
                    &p,
                    &rules.size.bits,
                    &window,
                    &filters,
                    &first,
                    &quarter,
                    &median,
                    &three_quarters,
                    &ninth,
                    &most,
                    &over,
                ])?;
            }
        }
    }
    Ok(sheet)
}

/// The shares of elements and windows, of this many minutes, that at least so many persons visit.
pub fn shared(trace: &Trace, minutes: usize, persons: [usize; 2]) -> [f64; 2] {
    let fixes = trace.walks.iter().flat_map(|walk| {
        let at = |(later, &cell)| (cell, (usize::from(walk.start) + later) / minutes, walk.person);
        walk.cells.iter().enumerate().map(at)
    });
    // The same person comes many times, mostly to where it was.
    let mut all: Vec<(SmallCell, usize, u32)> = fixes.collect();
    all.dedup();
    all.sort_unstable();
    all.dedup();
    let elements = || all.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1));
    let of = |least| elements().filter(|element| element.len() >= least).count() as f64;
    persons.map(|least| of(least) / of(1).max(1.0))
}

/// Filters of Figure 6: elements and false positive rate.
pub const LOST: [(u32, f64); 12] = [
    (50, 0.1),
    (50, 0.05),
    (50, 0.01),
    (50, 0.001),
    (100, 0.1),
    (100, 0.05),
    (100, 0.01),
    (100, 0.001),
    (200, 0.1),
    (200, 0.05),
    (200, 0.01),
    (200, 0.001),
];

/// A name for the way things are done, and the setting.
type Variant = (Cow<'static, str>, u32, f64, Setting);

/// Variants of [`Experiment::Modes`]: mode, deltas, names, refreshed share, second look.
pub const MODES: [(&str, bool, bool, bool, u16, bool); 8] = [
    ("reset", false, false, false, 0, false),
    ("reset deltas", false, true, false, 0, false),
    ("reset names", false, true, true, 0, false),
    ("reset refresh", false, true, true, 655, true),
    ("ageing", true, false, false, 0, false),
    ("ageing deltas", true, true, false, 0, false),
    ("ageing names", true, true, true, 0, false),
    ("ageing refresh", true, true, true, 655, true),
];

fn variants(experiment: Experiment) -> Result<Vec<Variant>, Box<dyn Error>> {
    let mut variants = Vec::new();
    match experiment {
        Experiment::City | Experiment::Slots | Experiment::Occupancy | Experiment::Speed => {}
        Experiment::Lost => {
            for (n, p) in LOST {
                for window in [1, 15, 30, 60] {
                    variants.push((Cow::Borrowed("all"), n, p, all_in(rules(n, p, window)?)));
                }
            }
        }
        Experiment::Person | Experiment::Day => {
            let (name, identity) = match experiment {
                Experiment::Person => ("person", Identity::Person),
                _ => ("day", Identity::Walk),
            };
            // A worker that is a day has no second reading of an element in a minute, whatever m_worker is.
            let (workers, wanted): (&[u8], &[u16]) = match experiment {
                Experiment::Day => (&[1, 5], &[1, 5]),
                _ => (&[1, 2, 3, 5], &[1, 2, 3, 5, 10, 15]),
            };
            for &m_worker in workers {
                for &m_mec in wanted {
                    for window in WINDOWS {
                        let rules = Rules { m_worker, ..rules(100, 0.001, window)? };
                        let setting = Setting { rules, m_mec, identity, ..Setting::default() };
                        variants.push((Cow::Borrowed(name), 100, 0.001, setting));
                    }
                }
            }
            // A day of a city takes seconds: what the paper's tables and the plots show comes first.
            variants.sort_by_key(|variant| {
                let (window, m_mec) = (window_of(&variant.3), variant.3.m_mec);
                let few = matches!(window, 1 | 10 | 30 | 120);
                (!few, !matches!(m_mec, 1 | 5 | 15), variant.3.rules.m_worker == 1)
            });
        }
        Experiment::Future => variants.extend(future()?),
        Experiment::Modes => {
            for (n, p, windows) in [(100, 0.001, &[10, 30, 120][..]), (50, 0.1, &[30])] {
                for &window in windows {
                    for (name, ages, deltas, names, refresh, second_look) in MODES {
                        let mode = if ages { Mode::Ageing { steps: 60 } } else { Mode::Reset };
                        let rules = Rules { mode, refresh, ..rules(n, p, window)? };
                        let setting =
                            Setting { rules, deltas, names, second_look, ..Setting::default() };
                        variants.push((Cow::Borrowed(name), n, p, setting));
                    }
                }
            }
        }
    }
    Ok(variants)
}

/// What the paper leaves to the future, and resets that are sent to a host's whole square; what they are compared with is
/// in the tables of [`Experiment::Person`] and [`Experiment::Day`].
fn future() -> Result<Vec<Variant>, Box<dyn Error>> {
    let mut variants = Vec::new();
    let mut add = |what: String, setting: Setting| {
        variants.push((Cow::Owned(what), 100, 0.001, setting));
    };
    let base = Setting { m_mec: 5, ..Setting::default() };
    for (m_worker, window) in [(1, 1), (5, 1), (1, 120), (5, 120)] {
        let rules = Rules { m_worker, ..rules(100, 0.001, window)? };
        let (identity, resets) = (Identity::Person, Resets::Squares);
        add("person by square".into(), Setting { rules, identity, resets, ..base });
    }
    for fill in [0.1, 0.5] {
        let rules = Rules { validity: 24 * 60 * MINUTE, ..Rules::PAPER };
        let (judged_by, reset_fill) = (Some(30 * MINUTE), Some(fill));
        add(format!("day at a fill of {fill}"), Setting { rules, judged_by, reset_fill, ..base });
    }
    // A person's worker never leaves, so that the preferred ones might be away.
    for preferred in [1, 2, 5] {
        let setting = Setting { rules: Rules::PAPER, preferred: Some(preferred), ..base };
        add(format!("day preferred {preferred}"), setting);
    }
    Ok(variants)
}

/// Whole days; those that are in the table already, as it was measured before, are not simulated again, and those that the
/// deadline leaves no time for are left out.
///
/// # Errors
/// When the counts of a day do not add up.
pub fn days(
    experiment: Experiment,
    traces: &[(Source, Trace)],
    before: Option<&Sheet>,
    deadline: Option<Instant>,
) -> Result<Sheet, Box<dyn Error>> {
    let columns = columns(experiment);
    let mut sheet = Sheet::new(&columns);
    for &(source, ref trace) in traces {
        let mut variants = variants(experiment)?;
        variants.retain(|variant| source != Source::Hubs || is_of_hubs(experiment, variant));
        let known: Vec<Option<Row<'_>>> = variants
            .iter()
            .map(|variant| before?.rows().find(|row| is_of(row, source, variant)))
            .collect();
        let missing = variants.iter().zip(&known).filter(|(_, known)| known.is_none());
        let settings: Vec<Setting> = missing.map(|(variant, _)| variant.3).collect();
        let mut ledgers = in_parallel(trace, &settings, deadline)?.into_iter();
        for (variant, known) in variants.iter().zip(known) {
            if let Some(row) = known {
                sheet.copy(&row)?;
            } else {
                let Some(ledger) = ledgers.next().flatten() else { continue };
                push(&mut sheet, source, variant, &ledger, &columns)?;
            }
        }
    }
    Ok(sheet)
}

/// How many days of a trace an experiment has.
///
/// # Errors
/// When there is no such filter.
pub fn planned(experiment: Experiment, source: Source) -> Result<usize, Box<dyn Error>> {
    let all = variants(experiment)?;
    let of_source = |variant: &&Variant| source != Source::Hubs || is_of_hubs(experiment, variant);
    Ok(all.iter().filter(of_source).count())
}

/// Is it simulated in the city with hubs? What the text names, and the corners of the tables, at some windows.
fn is_of_hubs(experiment: Experiment, (_, n, p, setting): &Variant) -> bool {
    match experiment {
        Experiment::Lost => matches!((n, *p), (50, 0.1 | 0.01 | 0.001) | (100, 0.1 | 0.001)),
        Experiment::Person => {
            matches!(window_of(setting), 1 | 10 | 30 | 120)
                && matches!(setting.m_mec, 1 | 5 | 10 | 15)
        }
        _ => false,
    }
}

/// Is a row of this setting?
fn is_of(row: &Row<'_>, source: Source, (name, n, p, setting): &Variant) -> bool {
    let rules = setting.rules;
    row.text("trace") == source.name()
        && row.text("variant") == name
        && row.number("n") == f64::from(*n)
        && row.number("p") == *p
        && row.number("window") == window_of(setting) as f64
        && row.number("m_worker") == f64::from(rules.m_worker)
        && row.number("m_mec") == f64::from(setting.m_mec)
}

/// Minutes by which a day is judged.
fn window_of(setting: &Setting) -> u64 {
    setting.judged_by.unwrap_or(setting.rules.validity) / MINUTE
}

/// What one setting takes: n = 100, p = 0.001, 30 minutes, one thread, the shorter of two runs.
///
/// # Errors
/// When there is no such filter.
pub fn speed(traces: &[(Source, Trace)]) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new(&SPEED);
    for &(source, ref trace) in traces.iter().filter(|trace| trace.0 != Source::Hubs) {
        let variants = variants(Experiment::Modes)?;
        let usual =
            |variant: &&Variant| variant.1 == 100 && variant.3.rules.validity == 30 * MINUTE;
        for (name, .., setting) in variants.iter().filter(usual) {
            let mut seconds = f64::INFINITY;
            for _ in 0..2 {
                let start = processor();
                std::hint::black_box(run(trace, setting));
                seconds = seconds.min(processor() - start);
            }
            let seconds = format!("{seconds:.2}");
            sheet.push(&[&source.name(), name, &30, &trace.fixes(), &seconds])?;
        }
    }
    Ok(sheet)
}

fn push(
    sheet: &mut Sheet,
    source: Source,
    (name, n, p, setting): &Variant,
    day: &Ledger,
    columns: &[&str],
) -> Result<(), Box<dyn Error>> {
    let (elements, _, elements_lost) = day.elements();
    let cells: [&dyn Display; DAYS.len()] = [
        &source.name(),
        name,
        n,
        p,
        &window_of(setting),
        &setting.rules.m_worker,
        &setting.m_mec,
        &day.readings,
        &day.suppressed,
        &day.suppressed_wrongly,
        &day.sent,
        &day.refreshed,
        &day.kept,
        &day.redundant,
        &day.lost_at_host,
        &day.of(Kind::Announce).count,
        &day.of(Kind::Assign).count,
        &day.of(Kind::Update).count,
        &day.of(Kind::Reset).count,
        &day.reset_deliveries,
        &day.cost().count,
        &day.cost().bytes,
        &format!("{:.5}", day.saving()),
        &format!("{:.5}", day.saving_unicast()),
        &format!("{:.5}", day.sent_share()),
        &format!("{:.5}", day.redundant_share()),
        &elements,
        &elements_lost,
        &format!("{:.4}", day.lost_per_mille()),
        &format!("{:.4}", day.readings_lost_per_mille()),
        &format!("{:.1}", day.expected_lost),
        &format!("{:.6}", day.coverage()),
        &format!("{:.6}", day.fresh as f64 / day.readings.max(1) as f64),
        &day.peak,
        &day.of(Kind::Update).bytes,
    ];
    let more: [&dyn Display; 2] = [&day.peak_sent, &day.suppressed_stale];
    sheet.push(&[&cells[..], &more[..columns.len() - DAYS.len()]].concat())
}
