//! What operators see over time: looked at once a second, for an hour.

use crate::command::{Server, quantile};
use crate::store::{Counts, Entry, Fullness};
use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Milliseconds between points of the server's lines, and of a filter's; and how many there are in an hour.
const POINT: u64 = 10_000;
const POINTS: usize = 360;
const FILTER_POINT: u64 = 30_000;
const FILTER_POINTS: usize = 120;
/// Filters that have lines of their own; they take 2 KiB each.
const MOST_LINES: usize = 10_000;
/// Filters that have a label of their own in metrics.
pub(super) const MOST_LABELS: usize = 200;
/// How much of a second goes into measuring how full filters are, and how often the same one is measured.
const MEASURING: Duration = Duration::from_millis(10);
const MEASURE_EVERY: u64 = 5_000;
/// The weight of the last second in a rate.
const WEIGHT: f64 = 0.3;

/// Rates, fills and the last hour, of all filters and of the server.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When it was looked at last; 0: never.
    sampled: u64,
    tracks: HashMap<Box<[u8]>, Track>,
    labelled: HashSet<Box<[u8]>>,
    lines: usize,
    /// Where measuring goes on.
    next: usize,
    totals: Totals,
    turns: Vec<u64>,
    hour: VecDeque<Point>,
    /// When the point at hand began, and what had been done by then.
    point: u64,
    point_totals: Totals,
    point_turns: Vec<u64>,
    rates: Rates,
}

/// What a filter does lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Arrivals and questions a second.
    pub(super) rate: f64,
    /// Of the arrivals; `None` where there are none.
    pub(super) duplicate_share: Option<f64>,
}

#[derive(Debug, Default)]
struct Track {
    counts: Counts,
    arrivals: f64,
    duplicates: f64,
    asked: f64,
    fullness: Option<Fullness>,
    measured: u64,
    lines: Option<Box<Lines>>,
    round: u64,
}

/// Counts of a filter by the half minute.
#[derive(Debug, Default)]
struct Lines {
    begun: u64,
    from: Counts,
    points: VecDeque<[u32; 3]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    commands: u64,
    arrivals: u64,
    duplicates: u64,
    asked: u64,
}

/// A point of the server's lines.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: u64,
    commands: f64,
    arrivals: f64,
    duplicates: f64,
    p50: u64,
    p99: u64,
    memory: u64,
    connections: u64,
}

/// A second, smoothed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Rates {
    pub(super) commands: f64,
    pub(super) arrivals: f64,
    pub(super) duplicates: f64,
    pub(super) asked: f64,
    /// Microseconds that the commands of one read take: half of the reads at most so long, and 99 of 100.
    pub(super) turn_p50_us: f64,
    pub(super) turn_p99_us: f64,
}

/// The server's last hour.
#[derive(Debug, Default, Serialize)]
pub(super) struct Hour {
    every_ms: u64,
    /// The moments of the points.
    at_ms: Vec<u64>,
    commands: Vec<f64>,
    arrivals: Vec<f64>,
    duplicates: Vec<f64>,
    turn_p50_us: Vec<f64>,
    turn_p99_us: Vec<f64>,
    memory: Vec<u64>,
    connections: Vec<u64>,
}

/// A filter's last hour: counts of each half minute.
#[derive(Debug, Default, Serialize)]
pub(super) struct FilterHour {
    every_ms: u64,
    at_ms: Vec<u64>,
    arrivals: Vec<u32>,
    duplicates: Vec<u32>,
    asked: Vec<u32>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at everything. To be called once a second.
    pub(crate) fn sample(&self, server: &Server, now: u64) {
        let entries = server.store.names.all();
        let mut state = self.lock();
        let seconds = match state.sampled {
            0 => 0.0,
            sampled => now.saturating_sub(sampled) as f64 / 1000.0,
        };
        let round = state.sampled + 1;
        let mut totals =
            Totals { commands: server.stats.commands.load(Ordering::Relaxed), ..Totals::default() };
        for entry in &entries {
            let counts = entry.lock().counts;
            totals.add(&counts);
            state.track(entry.name(), counts, seconds, now, round);
        }
        state.tracks.retain(|_, track| track.round == round);
        state.lines = state.tracks.values().filter(|track| track.lines.is_some()).count();
        state.label(&entries);
        state.measure(&entries, now);
        state.server(server, totals, seconds, now);
        state.sampled = now;
    }

    pub(super) fn activity(&self, name: &[u8]) -> Activity {
        self.lock().tracks.get(name).map(Track::activity).unwrap_or_default()
    }

    pub(super) fn fullness(&self, name: &[u8]) -> Option<Fullness> {
        self.lock().tracks.get(name)?.fullness
    }

    /// Lends what is known of filters by name.
    pub(super) fn with_tracks<T>(
        &self,
        use_it: impl FnOnce(&dyn Fn(&[u8]) -> (Option<Fullness>, Activity)) -> T,
    ) -> T {
        let state = self.lock();
        use_it(&|name| match state.tracks.get(name) {
            Some(track) => (track.fullness, track.activity()),
            None => Default::default(),
        })
    }

    /// Has this filter a label of its own in metrics?
    pub(super) fn labelled(&self) -> HashSet<Box<[u8]>> {
        self.lock().labelled.clone()
    }

    pub(super) fn rates(&self) -> Rates {
        self.lock().rates
    }

    pub(super) fn hour(&self) -> Hour {
        let state = self.lock();
        let mut hour = Hour { every_ms: POINT, ..Hour::default() };
        for point in &state.hour {
            hour.at_ms.push(point.at);
            hour.commands.push(point.commands);
            hour.arrivals.push(point.arrivals);
            hour.duplicates.push(point.duplicates);
            hour.turn_p50_us.push(point.p50 as f64 / 1000.0);
            hour.turn_p99_us.push(point.p99 as f64 / 1000.0);
            hour.memory.push(point.memory);
            hour.connections.push(point.connections);
        }
        hour
    }

    pub(super) fn hour_of(&self, name: &[u8]) -> FilterHour {
        let state = self.lock();
        let mut hour = FilterHour { every_ms: FILTER_POINT, ..FilterHour::default() };
        let Some(lines) = state.tracks.get(name).and_then(|track| track.lines.as_ref()) else {
            return hour;
        };
        let first = lines.begun.saturating_sub(lines.points.len() as u64 * FILTER_POINT);
        for (at, [arrivals, duplicates, asked]) in lines.points.iter().enumerate() {
            hour.at_ms.push(first + (at as u64 + 1) * FILTER_POINT);
            hour.arrivals.push(*arrivals);
            hour.duplicates.push(*duplicates);
            hour.asked.push(*asked);
        }
        hour
    }
}

impl State {
    fn track(&mut self, name: &[u8], counts: Counts, seconds: f64, now: u64, round: u64) {
        if !self.tracks.contains_key(name) {
            // What it did before it was first looked at has no moment.
            let track = Track { counts, round, ..Track::default() };
            self.tracks.insert(name.into(), track);
            return;
        }
        let may_have_lines = self.lines < MOST_LINES;
        let Some(track) = self.tracks.get_mut(name) else { return };
        track.round = round;
        if seconds > 0.0 {
            let before = track.counts;
            let smooth = |rate: &mut f64, from: u64, to: u64| {
                *rate += WEIGHT * (to.saturating_sub(from) as f64 / seconds - *rate);
                // What has stopped comes to rest.
                if *rate < 0.01 {
                    *rate = 0.0;
                }
            };
            let arrivals = |counts: &Counts| counts.fresh + counts.duplicates;
            smooth(&mut track.arrivals, arrivals(&before), arrivals(&counts));
            smooth(&mut track.duplicates, before.duplicates, counts.duplicates);
            smooth(&mut track.asked, before.asked, counts.asked);
        }
        if track.lines.is_none() && may_have_lines && counts != track.counts {
            let lines = Lines { begun: now, from: track.counts, ..Lines::default() };
            track.lines = Some(Box::new(lines));
            self.lines += 1;
        }
        if let Some(lines) = &mut track.lines {
            lines.extend(counts, now);
        }
        track.counts = counts;
    }

    /// Labels stay with the filters that have them, so that no series breaks off.
    fn label(&mut self, entries: &[std::sync::Arc<Entry>]) {
        let tracks = &self.tracks;
        self.labelled.retain(|name| tracks.contains_key(name));
        for entry in entries {
            if self.labelled.len() >= MOST_LABELS {
                return;
            }
            // A label is text.
            if std::str::from_utf8(entry.name()).is_ok() && !self.labelled.contains(entry.name()) {
                self.labelled.insert(entry.name().into());
            }
        }
    }

    /// Measures filters in turn, as many as there is time for.
    fn measure(&mut self, entries: &[std::sync::Arc<Entry>], now: u64) {
        let begun = Instant::now();
        for _ in 0..entries.len() {
            if begun.elapsed() >= MEASURING {
                return;
            }
            let entry = &entries[self.next % entries.len()];
            self.next = (self.next + 1) % entries.len();
            let Some(track) = self.tracks.get_mut(entry.name()) else { continue };
            let is_due = track.fullness.is_none() || now >= track.measured + MEASURE_EVERY;
            if is_due {
                track.fullness = Some(entry.fullness());
                track.measured = now;
            }
        }
    }

    fn server(&mut self, server: &Server, totals: Totals, seconds: f64, now: u64) {
        let turns = server.stats.turns.counts();
        let bounds = server.stats.turns.bounds();
        if seconds == 0.0 {
            (self.totals, self.point_totals, self.point) = (totals, totals, now);
            (self.turns, self.point_turns) = (turns.clone(), turns);
            return;
        }
        let smooth = |rate: &mut f64, from: u64, to: u64| {
            *rate += WEIGHT * (to.saturating_sub(from) as f64 / seconds - *rate);
            if *rate < 0.01 {
                *rate = 0.0;
            }
        };
        let (before, rates) = (self.totals, &mut self.rates);
        smooth(&mut rates.commands, before.commands, totals.commands);
        smooth(&mut rates.arrivals, before.arrivals, totals.arrivals);
        smooth(&mut rates.duplicates, before.duplicates, totals.duplicates);
        smooth(&mut rates.asked, before.asked, totals.asked);
        let since = |from: &[u64]| -> Vec<u64> {
            turns.iter().zip(from).map(|(to, from)| to - from).collect()
        };
        let last = since(&self.turns);
        rates.turn_p50_us = quantile(bounds, &last, 0.5) as f64 / 1000.0;
        rates.turn_p99_us = quantile(bounds, &last, 0.99) as f64 / 1000.0;
        let length = now.saturating_sub(self.point);
        if length >= POINT {
            let a_second =
                |to: u64, from: u64| to.saturating_sub(from) as f64 * 1000.0 / length as f64;
            let (from, during) = (self.point_totals, since(&self.point_turns));
            self.hour.push_back(Point {
                at: now,
                commands: a_second(totals.commands, from.commands),
                arrivals: a_second(totals.arrivals, from.arrivals),
                duplicates: a_second(totals.duplicates, from.duplicates),
                p50: quantile(bounds, &during, 0.5),
                p99: quantile(bounds, &during, 0.99),
                memory: server.store.budget.used(),
                connections: server.stats.connected.load(Ordering::Relaxed),
            });
            if self.hour.len() > POINTS {
                self.hour.pop_front();
            }
            (self.point, self.point_totals, self.point_turns) = (now, totals, turns.clone());
        }
        (self.totals, self.turns) = (totals, turns);
    }
}

impl Totals {
    fn add(&mut self, counts: &Counts) {
        self.arrivals += counts.fresh + counts.duplicates;
        self.duplicates += counts.duplicates;
        self.asked += counts.asked;
    }
}

impl Track {
    fn activity(&self) -> Activity {
        let share = (self.arrivals > 0.0).then(|| (self.duplicates / self.arrivals).min(1.0));
        Activity { rate: self.arrivals + self.asked, duplicate_share: share }
    }
}

impl Lines {
    /// Adds the points that are over.
    fn extend(&mut self, counts: Counts, now: u64) {
        let over = now.saturating_sub(self.begun) / FILTER_POINT;
        if over == 0 {
            return;
        }
        let part = |to: u64, from: u64| u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
        let arrivals = |counts: &Counts| counts.fresh + counts.duplicates;
        let point = [
            part(arrivals(&counts), arrivals(&self.from)),
            part(counts.duplicates, self.from.duplicates),
            part(counts.asked, self.from.asked),
        ];
        self.points.push_back(point);
        // Where nobody looked, there is nothing to show.
        for _ in 1..over.min(FILTER_POINTS as u64 + 1) {
            self.points.push_back([0; 3]);
        }
        while self.points.len() > FILTER_POINTS {
            self.points.pop_front();
        }
        self.begun += over * FILTER_POINT;
        self.from = counts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(fresh: u64, duplicates: u64) -> Counts {
        Counts { fresh, duplicates, ..Counts::default() }
    }

    #[test]
    fn an_hour_of_a_filter() {
        let mut state = State::default();
        let mut done = 0;
        for second in 0..4_000u64 {
            state.track(b"f", counts(done, done / 2), 1.0, second * 1000, second + 1);
            done += 10;
        }
        let track = &state.tracks[&b"f"[..]];
        let activity = track.activity();
        assert!((activity.rate - 15.0).abs() < 0.5, "{activity:?}");
        assert!((activity.duplicate_share.unwrap() - 1.0 / 3.0).abs() < 0.05, "{activity:?}");
        let lines = track.lines.as_ref().unwrap();
        assert_eq!(lines.points.len(), FILTER_POINTS);
        assert!(lines.points.iter().all(|point| (440..=460).contains(&point[0])), "{lines:?}");
    }

    #[test]
    fn a_gap_is_a_gap_and_what_stops_comes_to_rest() {
        let mut state = State::default();
        for (now, fresh) in [(0, 0), (1_000, 5), (200_000, 5), (201_000, 5)] {
            state.track(b"f", counts(fresh, 0), 1.0, now, now + 1);
        }
        (0..60).for_each(|n| state.track(b"f", counts(5, 0), 1.0, 202_000 + n, 300_000 + n));
        let track = &state.tracks[&b"f"[..]];
        assert_eq!(track.activity().rate, 0.0);
        let points = &track.lines.as_ref().unwrap().points;
        assert_eq!((points.len(), points[0], points[1]), (6, [5, 0, 0], [0, 0, 0]));
    }
}
