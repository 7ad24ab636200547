//! Times as nanoseconds since 1970.

use crate::errors::{Kind, raise};
use lately_stream::session::UNTIMED;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDateTime, PyFloat, PyInt, PyString};
use pyo3::{intern, sync::PyOnceLock};

/// The time of a record; `None` for now.
pub(crate) fn nanos(time: Option<&Bound<'_, PyAny>>) -> PyResult<Option<i64>> {
    match time {
        None => Ok(None),
        Some(time) => one(time).map(Some),
    }
}

/// A time that is there; [`UNTIMED`] for one that is missing.
pub(crate) fn one(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = time.py();
    if time.is_none() {
        return Ok(UNTIMED);
    }
    if time.is_instance_of::<PyInt>() && !time.is_instance_of::<PyBool>() {
        return time.extract().map_err(|_| out_of_range(time));
    }
    if let Ok(seconds) = time.cast::<PyFloat>() {
        return of_seconds(seconds.value()).ok_or_else(|| out_of_range(time));
    }
    if let Ok(text) = time.cast::<PyString>() {
        return of_text(text.to_str()?.as_bytes());
    }
    if let Ok(text) = time.cast::<PyBytes>() {
        return of_text(text.as_bytes());
    }
    // A timestamp of pandas is a datetime, but finer.
    if let Ok(nanos) = time.getattr(intern!(py, "value")).and_then(|value| value.extract()) {
        return Ok(nanos);
    }
    if time.is_instance_of::<PyDateTime>() {
        return of_datetime(time);
    }
    // A scalar of NumPy: datetime64, int64, float64.
    if time.hasattr(intern!(py, "dtype"))? {
        let kind: String =
            time.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        match &*kind {
            "M" => {
                let nanos = time.call_method1(intern!(py, "astype"), ("datetime64[ns]",))?;
                return nanos.call_method1(intern!(py, "astype"), ("i8",))?.extract();
            }
            "i" | "u" => return time.extract().map_err(|_| out_of_range(time)),
            "f" => {
                return of_seconds(time.extract()?).ok_or_else(|| out_of_range(time));
            }
            _ => {}
        }
    }
    if time.get_type().name()?.to_str()? == "NAType" {
        return Ok(UNTIMED);
    }
    Err(no_time(time))
}

/// Seconds since 1970, as `time.time()` has them; not a number stands for none.
pub(crate) fn of_seconds(seconds: f64) -> Option<i64> {
    if seconds.is_nan() {
        return Some(UNTIMED);
    }
    let whole = seconds.floor();
    if whole.abs() >= (i64::MAX / 1_000_000_000) as f64 {
        return None;
    }
    let fraction = ((seconds - whole) * 1e9).round();
    (whole as i64).checked_mul(1_000_000_000)?.checked_add(fraction as i64)
}

/// A time as the program reads it.
pub(crate) fn of_text(text: &[u8]) -> PyResult<i64> {
    read(text).map_err(|reason| raise(Kind::Time, reason))
}

/// The same, with what is wrong in words.
pub(crate) fn read(text: &[u8]) -> Result<i64, String> {
    static PARSER: std::sync::OnceLock<Option<StampParser>> = std::sync::OnceLock::new();
    let parser = PARSER.get_or_init(|| StampParser::new(TimeFormat::Auto, Zone::default()).ok());
    let parser = parser.as_ref().ok_or("times cannot be read")?;
    let time = parser.parse(text).map_err(|error| error.to_string())?;
    time.nanos().ok_or_else(|| format!("{time} is a time of day: a date belongs to it"))
}

/// A datetime; one without a zone is in UTC, as in the program.
fn of_datetime(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    static UTC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = time.py();
    let utc = UTC.get_or_try_init(py, || {
        let zone = py.import("datetime")?.getattr("timezone")?.getattr("utc")?;
        PyResult::Ok(zone.unbind())
    })?;
    let aware = match time.getattr(intern!(py, "tzinfo"))?.is_none() {
        true => {
            let zone = pyo3::types::PyDict::new(py);
            zone.set_item(intern!(py, "tzinfo"), utc)?;
            time.call_method(intern!(py, "replace"), (), Some(&zone))?
        }
        false => time.clone(),
    };
    let seconds: f64 = aware.call_method0(intern!(py, "timestamp"))?.extract()?;
    let micros = (seconds * 1e6).round();
    // A datetime has microseconds, and a float of seconds has them until the year 2255.
    (micros.abs() < 9.2e15).then_some(micros as i64 * 1_000).ok_or_else(|| out_of_range(time))
}

fn out_of_range(time: &Bound<'_, PyAny>) -> PyErr {
    raise(
        Kind::Time,
        format!(
            "{time} is no time between 1677 and 2262, in nanoseconds (int) or seconds (float) since 1970"
        ),
    )
}

fn no_time(time: &Bound<'_, PyAny>) -> PyErr {
    let name = time.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    raise(
        Kind::Time,
        format!(
            "a time is a datetime, int (nanoseconds since 1970), float (seconds) or str, not {name}"
        ),
    )
}
