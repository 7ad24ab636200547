//! `/metrics`, in Prometheus' text format.

mod process;

use super::answer::{Answer, Problem, with};
use super::ask::Asker;
use crate::command::{COMMANDS, Histogram};
use crate::store::{Facts, Fullness};
use hyper::StatusCode;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The label of all filters that have none of their own.
const OTHERS: &str = "other";

pub(super) fn get(asker: &Asker<'_>) -> Result<Answer, Problem> {
    if !asker.has_all_names() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "metrics name all filters, so they are for users who may use all names (filters = [\"*\"])",
        ));
    }
    let mut text = Text::default();
    server(&mut text, asker);
    filters(&mut text, asker);
    process::write(&mut text);
    Ok(with(StatusCode::OK, KIND, text.0))
}

/// Metrics, one family after the other.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    /// Begins a family.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{open}{label}=\"{value}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// A family of one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram, unit: f64) {
        self.family(name, "histogram", help);
        let counts = histogram.counts();
        let bounds = histogram.bounds().iter().map(|&bound| (bound as f64 / unit).to_string());
        let bucket = format!("{name}_bucket");
        let mut so_far = 0;
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
            so_far += count;
            self.sample(&bucket, &[("le", &bound)], so_far);
        }
        self.sample(&format!("{name}_sum"), &[], histogram.sum() as f64 / unit);
        self.sample(&format!("{name}_count"), &[], so_far);
    }
}

fn server(text: &mut Text, asker: &Asker<'_>) {
    let server = &asker.service.server;
    let (stats, budget) = (&server.stats, &server.store.budget);
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    text.family("lately_build_info", "gauge", "The version of the server.");
    text.sample("lately_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.family(
        "lately_commands_total",
        "counter",
        "Commands done, those of HTTP requests included.",
    );
    for (command, counter) in COMMANDS.iter().zip(&stats.by_command) {
        let done = get(counter);
        if done > 0 {
            text.sample("lately_commands_total", &[("command", command.name)], done);
        }
    }
    text.family("lately_connections", "gauge", "Clients that are connected.");
    text.sample("lately_connections", &[("state", "open")], get(&stats.connected));
    text.one(
        "lately_connections_total",
        "counter",
        "Clients that were accepted.",
        get(&stats.connections),
    );
    text.family("lately_rejected_total", "counter", "Clients that were turned away, and why.");
    for (reason, counter) in [("clients", &stats.rejected), ("tls", &stats.failed_tls)] {
        text.sample("lately_rejected_total", &[("reason", reason)], get(counter));
    }
    text.sample("lately_rejected_total", &[("reason", "password")], server.auth.failures());
    text.one(
        "lately_panics_total",
        "counter",
        "Connections that ended by a fault of the server.",
        get(&stats.panics),
    );
    text.one(
        "lately_clock_leaps_total",
        "counter",
        "Leaps of the clock of more than a minute ahead.",
        server.clock.leaps(),
    );
    text.histogram(
        "lately_turn_seconds",
        "Time for the commands of one read from a client.",
        &stats.turns,
        1e9,
    );
    text.histogram("lately_run_length", "Keys that were asked or added at once.", &stats.runs, 1.0);
    text.one("lately_memory_used_bytes", "gauge", "Memory of all filters.", budget.used());
    text.one("lately_memory_limit_bytes", "gauge", "The most it may be.", budget.limit());
    text.one(
        "lately_snapshot_last_success_timestamp_seconds",
        "gauge",
        "When the last snapshot was taken; before the first, when the server began.",
        server.keeper.last() as f64 / 1000.0,
    );
    if let Some(lag) = server.keeper.lag() {
        let help = "Changes in the journal that are not on disk yet.";
        text.one("lately_journal_lag_bytes", "gauge", help, lag);
    }
    let tables = server.store.keys.lock();
    let (mut keys, mut memory) = (0, 0);
    for table in tables.iter() {
        keys += table.filter.fresh();
        memory += table.filter.memory();
    }
    let ttls = tables.len();
    drop(tables);
    text.one("lately_keyspace_ttls", "gauge", "Different times to live of keys of SET.", ttls);
    text.one("lately_keyspace_memory_bytes", "gauge", "Memory for keys of SET.", memory);
    text.one(
        "lately_keyspace_keys",
        "gauge",
        "Keys of SET that were fresh, of the times to live that there are now.",
        keys,
    );
    text.one("lately_filters", "gauge", "Filters by name.", server.store.names.len());
}

/// A name, what it means, and its value: for filters that can be added up, and for single ones.
type Gauge = (&'static str, &'static str, fn(&Facts) -> f64);
type GaugeOfOne = (&'static str, &'static str, fn(&Facts, Option<Fullness>, u64) -> Option<f64>);

/// A label, and the count that has it.
type Kind = (&'static str, fn(&Facts) -> u64);

/// What is said of filters: of each that has a label, and of all others together.
fn filters(text: &mut Text, asker: &Asker<'_>) {
    let (board, now) = (&asker.service.board, asker.now());
    let labelled = board.labelled();
    let mut own = Vec::new();
    let mut others: Option<Facts> = None;
    for entry in asker.service.server.store.names.all() {
        let facts = entry.facts();
        if labelled.contains(entry.name()) && entry.name() != OTHERS.as_bytes() {
            let name = String::from_utf8_lossy(entry.name()).into_owned();
            let fullness = board.fullness(entry.name());
            own.push((name, facts, fullness));
        } else {
            others = Some(others.map_or(facts, |sum| add(sum, facts)));
        }
    }
    let all: Vec<(&str, &Facts)> = own
        .iter()
        .map(|(name, facts, _)| (&name[..], facts))
        .chain(others.iter().map(|facts| (OTHERS, facts)))
        .collect();
    counters(text, &all);
    let gauges: [Gauge; 3] = [
        ("lately_filter_memory_bytes", "Memory of the filter.", |f| f.memory as f64),
        ("lately_filter_capacity_keys", "Keys it can hold now.", |f| f.capacity as f64),
        ("lately_filter_tables", "Tables it has grown to.", |f| f.tables as f64),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        all.iter()
            .for_each(|(filter, facts)| text.sample(name, &[("filter", filter)], value(facts)));
    }
    let of_one: [GaugeOfOne; 4] = [
        ("lately_filter_fpr_planned", "The false positive rate that was promised.", |f, _, _| {
            Some(f.fpr)
        }),
        (
            "lately_filter_fpr_estimated",
            "The false positive rate at the present fill.",
            |_, full, _| full.map(|full| full.estimated_fpr),
        ),
        ("lately_filter_fill", "The share of its cells or slots that is in use.", |_, full, _| {
            full.map(|full| full.fill)
        }),
        ("lately_filter_age_seconds", "Time since it was last used.", |f, _, now| {
            (f.counts.last > 0).then(|| now.saturating_sub(f.counts.last) as f64 / 1000.0)
        }),
    ];
    for (name, help, value) in of_one {
        text.family(name, "gauge", help);
        for (filter, facts, fullness) in &own {
            if let Some(value) = value(facts, *fullness, now) {
                text.sample(name, &[("filter", filter)], value);
            }
        }
    }
}

fn counters(text: &mut Text, all: &[(&str, &Facts)]) {
    let mut family = |name: &str, help: &str, label: &str, kinds: &[Kind]| {
        text.family(name, "counter", help);
        for (filter, facts) in all {
            for (kind, value) in kinds {
                text.sample(name, &[("filter", filter), (label, kind)], value(facts));
            }
        }
    };
    family(
        "lately_keys_total",
        "Arrivals, and what became of them.",
        "verdict",
        &[
            ("fresh", |f| f.counts.fresh),
            ("duplicate", |f| f.counts.duplicates),
            ("refused", |f| f.counts.refused),
        ],
    );
    family(
        "lately_overload_total",
        "What a filter did that was fuller than planned.",
        "kind",
        &[
            ("grown", |f| f.overload.grown),
            ("forgotten", |f| f.overload.forgotten),
            ("refused", |f| f.overload.refused),
        ],
    );
    text.family("lately_asked_total", "counter", "Keys that were asked for and not marked.");
    for (filter, facts) in all {
        text.sample("lately_asked_total", &[("filter", filter)], facts.counts.asked);
    }
}

/// Sums of what can be added.
fn add(mut sum: Facts, other: Facts) -> Facts {
    sum.counts.fresh += other.counts.fresh;
    sum.counts.duplicates += other.counts.duplicates;
    sum.counts.refused += other.counts.refused;
    sum.counts.asked += other.counts.asked;
    sum.overload.grown += other.overload.grown;
    sum.overload.forgotten += other.overload.forgotten;
    sum.overload.refused += other.overload.refused;
    sum.memory += other.memory;
    sum.capacity = sum.capacity.saturating_add(other.capacity);
    sum.tables += other.tables;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.sample("m", &[("a", "x\"y\\z\nw"), ("b", "")], 1.5);
        assert_eq!(text.0, "m{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 1.5\n");
    }
}
