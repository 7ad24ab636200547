//! Table 2's last row, and Theorem 4: what an update takes, and how many keys the paper would omit.

use super::structures::{FPR, Setup, Structure};
use crate::figures::clock::Blocks;
use crate::figures::report;
use crate::figures::sheet::Sheet;
use lately::window::{DleftWindow, Keeps, Shape, TimingBloom};
use lately::{Digester, Renewal, Tick, Window, WindowFilter};
use std::error::Error;
use std::num::NonZeroU64;

/// The columns of its table.
pub const COLUMNS: [&str; 7] = [
    "window",
    "length",
    "pause_ns",
    "dleft_update_ns",
    "timing_update_ns",
    "windows",
    "most_without_a_slot",
];

/// Intervals of Figures 4 and 6.
const LENGTH: u64 = 1_000;

/// Measures at each window that is not longer than the stream.
///
/// # Errors
/// For a structure that cannot be built.
pub fn measure(windows: &[u64], arrivals: usize) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new(&COLUMNS);
    for &window in windows.iter().filter(|&&window| window <= arrivals as u64) {
        let setup = Setup { structure: Structure::Dleft, window, length: LENGTH };
        let keys = (arrivals as u64).max(3 * window);
        sheet.push(&[
            &window,
            &LENGTH,
            &format_args!("{:.0}", pause(setup)),
            &format_args!("{:.1}", update(&mut dleft(setup, by_time(window)?)?, window)),
            &format_args!("{:.1}", update(&mut timing(setup)?, window)),
            &(keys / window),
            &without_a_slot(setup, keys)?,
        ])?;
        eprintln!("Updates: {}", sheet.newest());
    }
    Ok(sheet)
}

fn dleft(setup: Setup, window: Window) -> Result<DleftWindow, Box<dyn Error>> {
    let keeps = Keeps::exactly(window);
    Ok(DleftWindow::new(keeps, setup.buckets(), setup.fingerprint_bits())?)
}

fn timing(setup: Setup) -> Result<TimingBloom, Box<dyn Error>> {
    Ok(TimingBloom::new(Shape {
        cells: setup.counters(),
        hashes: setup.hashes(),
        span: setup.window,
        grain: 1,
        lateness: 0,
        capacity: setup.window,
        renewal: Renewal::Always,
    })?)
}

/// A window of time, in which what an arrival does to the others can be done alone: by time passing.
fn by_time(window: u64) -> Result<Window, Box<dyn Error>> {
    let span = NonZeroU64::new(window).ok_or("a window of no arrivals")?;
    Ok(Window::Time { span, capacity: span })
}

/// Nanoseconds of the printed update, which subtracts n from all stamps at every n-th arrival. Here they are whole
/// numbers in one array, the best case.
fn pause(setup: Setup) -> f64 {
    let slots = setup.buckets() * 32;
    let mut stamps: Vec<u32> = (0..slots as u32).collect();
    let mut blocks = Blocks::default();
    for _ in 0..101 {
        blocks.time(1, || {
            for stamp in &mut stamps {
                *stamp = stamp.saturating_sub(setup.window as u32);
            }
            std::hint::black_box(&mut stamps);
        });
    }
    blocks.median()
}

/// Nanoseconds by which a tick passes, without an arrival, in a window that is full at first.
fn update(filter: &mut impl WindowFilter, window: u64) -> f64 {
    let digester = Digester::new(2019);
    let mut blocks = Blocks::default();
    let (mut now, block) = (0u64, (window / 4).max(1));
    for _ in 0..40 {
        for _ in 0..window {
            now += 1;
            filter.remember(digester.digest(&now.to_le_bytes()), Tick(now));
        }
        // The window empties while it passes.
        for _ in 0..2 {
            let from = now;
            now += block;
            blocks.time(block as usize, || {
                for tick in from + 1..=from + block {
                    filter.advance(Tick(tick));
                }
            });
        }
        if now > 4_000_000 {
            break;
        }
    }
    blocks.median()
}

/// The most keys at any moment that found no slot, which the paper omits and ours stashes, over distinct keys.
fn without_a_slot(setup: Setup, keys: u64) -> Result<u64, Box<dyn Error>> {
    let window = Window::Count(NonZeroU64::new(setup.window).ok_or("a window of no arrivals")?);
    let mut filter = dleft(setup, window)?;
    let digester = Digester::new(2019);
    let mut most = 0;
    for key in 0..keys {
        // Only what is observed counts as an arrival.
        let _ = filter.observe(digester.digest(&key.to_le_bytes()), Tick(0));
        most = most.max(filter.stashed());
    }
    Ok(most)
}

/// The section of the page.
pub fn section(sheet: &Sheet) -> String {
    let head = [
        "n",
        "the paper's update, at every n-th arrival",
        "the same per arrival",
        "A, ours, per tick",
        "T-DBF per tick",
        "windows",
        "keys without a slot, at most",
    ];
    let rows = sheet.rows().map(|row| {
        let number = |column| row.number(column);
        vec![
            row.text("window").to_owned(),
            report::time(number("pause_ns")),
            format!("{:.2} ns", number("pause_ns") / number("window")),
            format!("{:.1} ns", number("dleft_update_ns")),
            format!("{:.1} ns", number("timing_update_ns")),
            row.text("windows").to_owned(),
            row.text("most_without_a_slot").to_owned(),
        ]
    });
    format!(
        "\n## Table 2's “updating time”, and Theorem 4\n\n{TEXT}\n\nε = {FPR}, L = {LENGTH}:\n\n{}",
        report::table(&head, rows)
    )
}

const TEXT: &str = "**The paper.** An update takes O(1): amortised, as it touches all 4n/3 slots at every n-th arrival. Of the keys of a window, fewer than one is \
not stored (Theorem 4).

**Ours.** The paper's update is a pause that grows with n, here in its best case, with stamps in one plain array. Our structures do the same work a few \
slots at a time, the d-left table passing the packed stamps of 8 slots at a tick and the T-DBF its share of counters, so they take longer in all and never pause: \
measured in windows of time, where time can pass without an arrival. The last column is Theorem 4 counted: how many keys of the window found all of their 32 slots in use, \
which the paper omits and we stash; over distinct keys, the worst case. By the printed rule for free slots up to one more is omitted in each window, at the n-th arrival \
(`theorem_4_with_the_omitted_keys_counted` in `tests/flaws/paper4.rs`).";
