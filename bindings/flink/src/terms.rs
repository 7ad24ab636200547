//! The terms of a session as text, which is what Java hands over.

use crate::fault::Fault;
use lately::Renewal;
use lately_stream::judge::moment::OnLate;
use lately_stream::quantity;
use lately_stream::session::{DedupSpec, Reading, Slack, Span};
use std::fmt::Display;

/// The terms in `text`: a line `name=value` for each one that is set, with the names and the values of `lately dedup`.
pub(crate) fn read(text: &str) -> Result<DedupSpec, Fault> {
    let mut spec = DedupSpec::default();
    let mut slack = None;
    for line in text.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        if name == "slack" {
            slack = Some(value);
        } else {
            set(&mut spec, name, value)?;
        }
    }
    // It may be a share of the window, so the window is read first.
    if let Some(value) = slack {
        spec.slack = Some(of(Slack::parse(value, spec.span), "slack")?);
    }
    spec.plan().map_err(|error| Fault::Argument(error.to_string()))?;
    Ok(spec)
}

fn set(spec: &mut DedupSpec, name: &str, value: &str) -> Result<(), Fault> {
    match name {
        "within" => spec.span = Span::Within(of(quantity::duration(value), name)?),
        "expect" => spec.expect = Some(of(quantity::count(value), name)?),
        "memory" => spec.memory = Some(of(quantity::bytes(value), name)?),
        "fpr" => spec.fpr = Some(of(quantity::share(value), name)?),
        "lateness" => spec.clock.lateness = Some(of(quantity::duration(value), name)?),
        "max-skew" => spec.clock.max_skew = Some(of(quantity::duration(value), name)?),
        "structure" => spec.structure = Some(of(value.parse(), name)?),
        "seed" => spec.seed = of(quantity::count(value), name)?,
        // Under another number of shards the keys of a state would be in other shards.
        "shards" => spec.reading = Some(Reading::new().with(name, [value])),
        "timed" => spec.clock.timed = Some(of(value.parse(), name)?),
        "renew" => {
            spec.renewal =
                word(name, value, &[("always", Renewal::Always), ("fresh", Renewal::OnFresh)])?;
        }
        "on-late" => {
            spec.clock.on_late =
                word(name, value, &[("pass", OnLate::Pass), ("judge", OnLate::Judge)])?;
        }
        _ => return Err(Fault::Argument(format!("{name}: no such term"))),
    }
    Ok(())
}

fn of<T, E: Display>(value: Result<T, E>, name: &str) -> Result<T, Fault> {
    value.map_err(|error| Fault::Argument(format!("{name}: {error}")))
}

/// One of a few words.
fn word<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, Fault> {
    let found = words.iter().find(|(word, _)| *word == value);
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Fault::Argument(format!("{name}: expected one of {}", known())))
}
