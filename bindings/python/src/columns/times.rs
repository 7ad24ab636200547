//! Arrays as times.

use super::{Column, elements};
use crate::errors::{Kind, raise};
use crate::time;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float64Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use lately_stream::session::UNTIMED;
use pyo3::prelude::*;

/// Units of NumPy in which there are times that nanoseconds do not reach, and their nanoseconds. Those of a day are the
/// longest that dates are read in.
const COARSE_UNITS: [(&str, i64); 6] = [
    ("datetime64[us]", 1_000),
    ("datetime64[ms]", 1_000_000),
    ("datetime64[s]", 1_000_000_000),
    ("datetime64[m]", 60_000_000_000),
    ("datetime64[h]", 3_600_000_000_000),
    ("datetime64[D]", 86_400_000_000_000),
];

/// The times of an array, in nanoseconds since 1970; [`UNTIMED`] stands for those that are missing or cannot
/// be read, unless that is all of them.
pub(crate) fn times(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match Column::new(array)? {
        Column::Arrow(chunks) => {
            let mut times = Vec::new();
            for chunk in &chunks {
                of_chunk(chunk, &mut times)?;
            }
            Ok(times)
        }
        Column::Numpy(array, kind) => of_numpy(&array, kind),
        Column::Objects(objects) => {
            let mut texts = Texts::default();
            for object in &objects {
                match object.cast::<pyo3::types::PyString>() {
                    Ok(text) => texts.read(Some(text.to_str()?.as_bytes())),
                    Err(_) => texts.times.push(time::one(object)?),
                }
            }
            texts.end()
        }
    }
}

fn of_numpy(array: &Bound<'_, PyAny>, kind: char) -> PyResult<Vec<i64>> {
    let whole = |array: &Bound<'_, PyAny>, unit: &str| -> PyResult<Vec<i64>> {
        let cast = array.call_method1("astype", (unit,))?;
        // Not-a-time of NumPy is `UNTIMED`.
        let numbers = if unit == "i8" { cast } else { cast.call_method1("view", ("i8",))? };
        Ok(elements(&numbers).unwrap_or_default())
    };
    match kind {
        'M' => {
            let named: String = array.getattr("dtype")?.getattr("str")?.extract()?;
            let (unit, nanos) = COARSE_UNITS
                .into_iter()
                .find(|(unit, _)| named.ends_with(&unit["datetime64".len()..]))
                .unwrap_or(("datetime64[ns]", 1));
            let mut times = whole(array, unit)?;
            // NumPy itself would wrap around.
            times.iter_mut().for_each(|time| *time = scale(*time, nanos));
            Ok(times)
        }
        'i' | 'u' => whole(array, "i8"),
        'f' => {
            let seconds: Vec<f64> =
                elements(&array.call_method1("astype", ("f8",))?).unwrap_or_default();
            seconds.into_iter().map(of_seconds).collect()
        }
        'U' | 'S' => {
            let texts = array.call_method0("tolist")?;
            times(&texts)
        }
        _ => Err(no_times(array.getattr("dtype")?.str()?.to_str()?)),
    }
}

fn of_seconds(seconds: f64) -> PyResult<i64> {
    let out = || {
        raise(Kind::Time, format!("{seconds} seconds since 1970 are no time between 1677 and 2262"))
    };
    time::of_seconds(seconds).ok_or_else(out)
}

fn of_chunk(array: &ArrayRef, times: &mut Vec<i64>) -> PyResult<()> {
    const SECOND: i64 = 1_000_000_000;
    match array.data_type() {
        DataType::Int64 => scaled::<Int64Type>(array, 1, times),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            scaled::<TimestampNanosecondType>(array, 1, times);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            scaled::<TimestampMicrosecondType>(array, 1_000, times);
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            scaled::<TimestampMillisecondType>(array, 1_000_000, times);
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            scaled::<TimestampSecondType>(array, SECOND, times);
        }
        DataType::Date32 => scaled::<Date32Type>(array, 86_400 * SECOND, times),
        DataType::Date64 => scaled::<Date64Type>(array, 1_000_000, times),
        DataType::Float64 => {
            for seconds in array.as_primitive::<Float64Type>() {
                times.push(seconds.map_or(Ok(UNTIMED), of_seconds)?);
            }
        }
        DataType::Null => times.resize(times.len() + array.len(), UNTIMED),
        DataType::Utf8 => texts(array.as_string::<i32>().iter(), times)?,
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter(), times)?,
        DataType::Utf8View => texts(array.as_string_view().iter(), times)?,
        other => return Err(no_times(&other.to_string())),
    }
    Ok(())
}

/// A time of a unit of so many nanoseconds. One that does not fit is none.
fn scale(time: i64, nanos: i64) -> i64 {
    time.checked_mul(nanos).unwrap_or(UNTIMED)
}

/// The times of an array with such a unit.
fn scaled<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    unit: i64,
    times: &mut Vec<i64>,
) {
    let nanos = |value: T::Native| scale(value.into(), unit);
    let array = array.as_primitive::<T>();
    if array.null_count() == 0 {
        times.extend(array.values().iter().map(|value| nanos(*value)));
    } else {
        times.extend(array.iter().map(|value| value.map_or(UNTIMED, nanos)));
    }
}

fn texts<'a>(all: impl Iterator<Item = Option<&'a str>>, times: &mut Vec<i64>) -> PyResult<()> {
    let mut found = Texts::default();
    all.for_each(|text| found.read(text.map(str::as_bytes)));
    times.extend(found.end()?);
    Ok(())
}

/// Times that are read from texts.
#[derive(Default)]
struct Texts {
    times: Vec<i64>,
    /// What was wrong with the first that could not be read.
    first: Option<String>,
}

impl Texts {
    fn read(&mut self, text: Option<&[u8]>) {
        let time = text.map_or(Ok(UNTIMED), time::read);
        self.times.push(time.unwrap_or_else(|reason| {
            self.first.get_or_insert(reason);
            UNTIMED
        }));
    }

    /// All of them, unless there is none among them.
    fn end(self) -> PyResult<Vec<i64>> {
        match self.first {
            Some(reason) if self.times.iter().all(|&time| time == UNTIMED) => {
                Err(raise(Kind::Time, format!("no time could be read: {reason}")))
            }
            _ => Ok(self.times),
        }
    }
}

fn no_times(kind: &str) -> PyErr {
    raise(
        Kind::Time,
        format!(
            "an array of {kind} has no times: times are timestamps, nanoseconds (int64), seconds (float64) or texts"
        ),
    )
}
