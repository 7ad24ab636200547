//! The arguments of Python as the terms of a session.

use crate::errors::{Kind, raise, spec};
use lately::{Renewal, WhenFull};
use lately_stream::judge::moment::OnLate;
use lately_stream::options::KeyRegex;
use lately_stream::quantity;
use lately_stream::session::{ClockSpec, DedupSpec, Slack, Span};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyString};
use std::fmt::Display;

/// Keyword arguments that are taken out one by one; what is left was not expected.
pub(crate) struct Arguments<'a, 'py> {
    all: Option<&'a Bound<'py, PyDict>>,
    taken: Vec<&'static str>,
}

impl<'a, 'py> Arguments<'a, 'py> {
    pub(crate) fn new(all: Option<&'a Bound<'py, PyDict>>) -> Self {
        Self { all, taken: Vec::new() }
    }

    /// The value of an argument, unless it is absent or `None`.
    pub(crate) fn get(&mut self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.taken.push(name);
        let value = self.all.map(|all| all.get_item(name)).transpose()?.flatten();
        Ok(value.filter(|value| !value.is_none()))
    }

    /// The value of an argument that is read by `read`.
    fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Bound<'py, PyAny>) -> Result<T, String>,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        read(&value).map(Some).map_err(|reason| wrong(name, reason))
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> PyResult<Option<u64>> {
        self.read(name, duration)
    }

    pub(crate) fn count(&mut self, name: &'static str) -> PyResult<Option<u64>> {
        self.read(name, |value| number(value, quantity::count))
    }

    pub(crate) fn bytes(&mut self, name: &'static str) -> PyResult<Option<u64>> {
        self.read(name, |value| number(value, quantity::bytes))
    }

    pub(crate) fn share(&mut self, name: &'static str) -> PyResult<Option<f64>> {
        self.read(name, |value| match text(value) {
            Some(text) => quantity::share(&text).map_err(|error| error.to_string()),
            None => value.extract().map_err(|_| "expected a number".into()),
        })
    }

    /// A text that is parsed.
    pub(crate) fn parsed<T: std::str::FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
    ) -> PyResult<Option<T>> {
        self.read(name, |value| {
            let text = text(value).ok_or("expected a str")?;
            text.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    /// A regular expression that finds the key.
    pub(crate) fn regex(&mut self, name: &'static str) -> PyResult<Option<KeyRegex>> {
        self.read(name, |value| KeyRegex::new(&text(value).ok_or("expected a str")?))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> PyResult<Option<T>> {
        self.read(name, |value| {
            let text = text(value);
            let found = words.iter().find(|(word, _)| Some(*word) == text.as_deref());
            let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            found.map(|(_, value)| *value).ok_or_else(|| format!("expected one of {}", known()))
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> PyResult<bool> {
        self.get(name)?.map_or(Ok(false), |value| value.extract())
    }

    /// A name, or a list of them.
    pub(crate) fn names(&mut self, name: &'static str) -> PyResult<Vec<String>> {
        let Some(value) = self.get(name)? else { return Ok(Vec::new()) };
        match text(&value) {
            Some(text) => Ok(vec![text]),
            None => value.extract(),
        }
    }

    /// Refuses arguments that nobody has taken.
    pub(crate) fn end(self, function: &str) -> PyResult<()> {
        for name in self.all.into_iter().flat_map(|all| all.keys()) {
            let name: String = name.extract()?;
            if !self.taken.contains(&&*name) {
                return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                    "{function}() got an unexpected keyword argument '{name}'"
                )));
            }
        }
        Ok(())
    }
}

/// What is wrong with an argument.
pub(crate) fn wrong(name: &str, reason: impl Display) -> PyErr {
    raise(Kind::Spec, format!("{name}: {reason}"))
}

fn text(value: &Bound<'_, PyAny>) -> Option<String> {
    value.cast::<PyString>().ok()?.extract().ok()
}

/// A whole number, or the text of one.
fn number<E: Display>(
    value: &Bound<'_, PyAny>,
    read: impl FnOnce(&str) -> Result<u64, E>,
) -> Result<u64, String> {
    if let Some(text) = text(value) {
        return read(&text).map_err(|error| error.to_string());
    }
    // 1e6 is how many people write a million.
    if let Ok(float) = value.cast::<PyFloat>() {
        let value = float.value();
        let whole = value.fract() == 0.0 && (0.0..9.0e15).contains(&value);
        return whole.then_some(value as u64).ok_or_else(|| format!("{value} is no whole number"));
    }
    if value.is_instance_of::<PyBool>() {
        return Err("expected a number".into());
    }
    value.extract().map_err(|_| "expected a whole number, or its text".into())
}

/// A `timedelta`, or the text of a duration.
pub(crate) fn duration(value: &Bound<'_, PyAny>) -> Result<u64, String> {
    if let Some(text) = text(value) {
        return quantity::duration(&text).map_err(|error| error.to_string());
    }
    let Ok(delta) = value.cast::<PyDelta>() else {
        return Err("expected a text such as '10s', or a timedelta".into());
    };
    let seconds = i128::from(delta.get_days()) * 86_400 + i128::from(delta.get_seconds());
    let nanos = (seconds * 1_000_000 + i128::from(delta.get_microseconds())) * 1_000;
    u64::try_from(nanos).map_err(|_| "a duration is not negative, and at most 584 years".into())
}

/// The window.
pub(crate) fn span(arguments: &mut Arguments<'_, '_>) -> PyResult<Span> {
    Ok(match (arguments.duration("within")?, arguments.count("last")?) {
        (Some(_), Some(_)) => return Err(wrong("last", "a window is either within or last")),
        (Some(length), None) => Span::Within(length),
        (None, Some(n)) => Span::Last(n),
        (None, None) => Span::Ever,
    })
}

/// How much longer than the window a key may be reported.
pub(crate) fn slack(arguments: &mut Arguments<'_, '_>, span: Span) -> PyResult<Option<Slack>> {
    arguments.read("slack", |value| {
        let texts = text(value);
        match texts {
            Some(text) => Slack::parse(&text, span).map_err(|error| error.to_string()),
            None if value.is_instance_of::<PyInt>() && matches!(span, Span::Last(_)) => {
                number(value, quantity::count).map(Slack::Exactly)
            }
            None => duration(value).map(Slack::Exactly),
        }
    })
}

/// The terms of a filter.
pub(crate) fn dedup(arguments: &mut Arguments<'_, '_>) -> PyResult<DedupSpec> {
    let span = span(arguments)?;
    let renewals = [("always", Renewal::Always), ("fresh", Renewal::OnFresh)];
    let policies =
        [("grow", WhenFull::Grow), ("forget", WhenFull::Forget), ("refuse", WhenFull::Refuse)];
    let on_late = [("pass", OnLate::Pass), ("judge", OnLate::Judge)];
    Ok(DedupSpec {
        span,
        expect: arguments.count("expect")?,
        memory: arguments.bytes("memory")?,
        fpr: arguments.share("fpr")?,
        slack: slack(arguments, span)?,
        renewal: arguments.word("renew", &renewals)?.unwrap_or_default(),
        when_full: arguments.word("on_full", &policies)?,
        structure: arguments.parsed("structure")?,
        seed: arguments.count("seed")?.unwrap_or(0),
        clock: ClockSpec {
            lateness: arguments.duration("lateness")?,
            max_skew: arguments.duration("max_skew")?,
            on_late: arguments.word("on_late", &on_late)?.unwrap_or_default(),
            ..ClockSpec::default()
        },
        ..DedupSpec::default()
    })
}

/// The terms of a filter, from keyword arguments alone.
pub(crate) fn dedup_only(terms: Option<&Bound<'_, PyDict>>, function: &str) -> PyResult<DedupSpec> {
    let mut arguments = Arguments::new(terms);
    let found = dedup(&mut arguments)?;
    arguments.end(function)?;
    // What cannot be kept is refused before anything is made.
    found.plan().map_err(spec)?;
    Ok(found)
}
