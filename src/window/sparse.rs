//! How much of a table is looked at when few keys arrive.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::bits::words_looked_at;
use crate::{AnyFilter, Digester, Spec, Structure, Tick, Window, WindowFilter};

const SPAN: u64 = 1_000;

fn filter(structure: Structure) -> AnyFilter {
    let window = Window::time(SPAN, 1_000_000);
    Spec::new(window).structure(structure).fpr(1e-3).plan().unwrap().build()
}

/// Words looked at by an arrival after each such pause: on average, and at most, but for the first few,
/// which sweep what came before with shorter pauses.
fn words(filter: &mut AnyFilter, tick: &mut u64, pause: u64) -> (u64, u64) {
    let (digester, arrivals) = (Digester::new(7), 4_000 / pause.clamp(1, 20));
    let (mut sum, mut most) = (0, 0);
    for arrival in 0..arrivals {
        *tick += pause;
        let before = words_looked_at();
        let _ = filter.observe(digester.digest(&arrival.to_le_bytes()), Tick(*tick));
        let words = words_looked_at() - before;
        sum += words;
        most = if arrival < 4 { 0 } else { most.max(words) };
    }
    (sum / arrivals, most)
}

/// A few thousand words are about a microsecond; the tables have 300,000 to 4,000,000.
fn sweeps_what_is_there(structure: Structure) {
    let (mut filter, mut tick) = (filter(structure), 0);
    for pause in [1, 7, 100, 499, 999, 1_000, 1_001, 1_500, 2_500, 1_000_000, 3, 999] {
        let (mean, most) = words(&mut filter, &mut tick, pause);
        assert!(mean <= 3_000, "{structure:?} after {pause}: {mean} words an arrival");
        assert!(most <= 30_000, "{structure:?} after {pause}: {most} words at once");
    }
}

#[test]
fn a_time_bloom_filter_sweeps_what_is_there() {
    sweeps_what_is_there(Structure::TimeBloom);
}

#[test]
fn a_time_interval_bloom_filter_sweeps_what_is_there() {
    sweeps_what_is_there(Structure::IntervalBloom);
}

#[test]
fn a_dleft_window_sweeps_what_is_there() {
    sweeps_what_is_there(Structure::DleftWindow);
}

#[test]
fn a_cuckoo_window_sweeps_what_is_there() {
    sweeps_what_is_there(Structure::CuckooWindow);
}

#[test]
fn aged_buckets_sweep_what_is_there() {
    sweeps_what_is_there(Structure::AgedBuckets);
}
