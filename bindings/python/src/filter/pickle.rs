//! What a filter was made with, as pickling keeps it: a `dict`.

use lately::Renewal;
use lately_stream::judge::moment::OnLate;
use lately_stream::session::{ClockSpec, DedupSpec, Slack, Span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// These terms, by name.
pub(super) fn to_dict<'py>(py: Python<'py>, spec: &DedupSpec) -> PyResult<Bound<'py, PyDict>> {
    let DedupSpec { clock, slack, .. } = spec;
    let rest = PyDict::new(py);
    let (within, last) = match spec.span {
        Span::Within(length) => (Some(length), None),
        Span::Last(n) => (None, Some(n)),
        Span::Ever => (None, None),
    };
    rest.set_item("within", within)?;
    rest.set_item("last", last)?;
    rest.set_item("renew_fresh", spec.renewal == Renewal::OnFresh)?;
    rest.set_item("seed", spec.seed)?;
    rest.set_item("changes", &spec.changes)?;
    rest.set_item("expect", spec.expect)?;
    rest.set_item("memory", spec.memory)?;
    rest.set_item("fpr", spec.fpr)?;
    rest.set_item("structure", spec.structure.map(|one| one.name()))?;
    rest.set_item(
        "slack",
        slack.map(|slack| match slack {
            Slack::Exactly(ticks) => (Some(ticks), None),
            Slack::Share(share) => (None, Some(share)),
        }),
    )?;
    rest.set_item("timed", clock.timed)?;
    rest.set_item("lateness", clock.lateness)?;
    rest.set_item("max_skew", clock.max_skew)?;
    rest.set_item("judge_late", clock.on_late == OnLate::Judge)?;
    Ok(rest)
}

/// What [`to_dict`] has put there.
pub(super) fn from_dict(rest: &Bound<'_, PyDict>) -> PyResult<DedupSpec> {
    let span = match (get(rest, "within")?, get(rest, "last")?) {
        (Some(length), _) => Span::Within(length),
        (None, Some(n)) => Span::Last(n),
        (None, None) => Span::Ever,
    };
    let fresh: bool = get(rest, "renew_fresh")?;
    let judge: bool = get(rest, "judge_late")?;
    let structure: Option<String> = get(rest, "structure")?;
    let slack = match get(rest, "slack")? {
        Some((Some(ticks), None)) => Some(Slack::Exactly(ticks)),
        Some((None, Some(share))) => Some(Slack::Share(share)),
        _ => None,
    };
    Ok(DedupSpec {
        span,
        renewal: if fresh { Renewal::OnFresh } else { Renewal::Always },
        seed: get(rest, "seed")?,
        changes: get(rest, "changes")?,
        expect: get(rest, "expect")?,
        memory: get(rest, "memory")?,
        fpr: get(rest, "fpr")?,
        slack,
        structure: structure.and_then(|name| name.parse().ok()),
        clock: ClockSpec {
            timed: get(rest, "timed")?,
            lateness: get(rest, "lateness")?,
            max_skew: get(rest, "max_skew")?,
            on_late: if judge { OnLate::Judge } else { OnLate::Pass },
            ..ClockSpec::default()
        },
        ..DedupSpec::default()
    })
}

fn get<'py, T>(rest: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    rest.as_any().get_item(name)?.extract()
}
