//! `lately.Index`.

use crate::errors::{self, Kind, raise};
use crate::terms::{self, Arguments};
use crate::time;
use lately_store::Lock;
use lately_stream::judge::class::Class;
use lately_stream::number::{NumberFormat, NumberReader, interval_length};
use lately_stream::options::read_time;
use lately_stream::session::{ClockSpec, Index as Session, IndexSpec};
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Was any key of an interval seen lately? The files of `lately index`.
///
/// Keys are whole numbers (0 to 2^128 - 1), or texts that `key_format` makes numbers of: `"number"`, `"signed"`, `"decimal"`,
/// `"time"`, `"epc"`, `"ip"`. An index needs a window (`within` or `last`); `interval` is the longest interval
/// for which the rate `fpr` (0.001) is to hold. Other terms: `expect`, `memory`, `slack`, `seed`, `lateness`, `max_skew`.
///
/// *Guarantee:* an interval with a key that was seen within the window is never called empty, unless the memory ran out.
///
/// >>> orders = lately.Index(within="10m")
/// >>> noon = 1_700_000_000_000_000_000
/// >>> orders.observe(4711, noon)
/// True
/// >>> orders.any_in(4000, 4999), orders.any_in(5000, 5999)
/// (True, False)
/// >>> hosts = lately.Index(last=1000, key_format="ip")
/// >>> hosts.observe("10.1.2.3")
/// True
/// >>> hosts.any_in("10.1.0.0/16"), hosts.any_in("10.2.0.0/16")
/// (True, False)
#[pyclass(frozen, module = "lately", name = "Index")]
pub(crate) struct Index {
    session: Mutex<Session>,
    reader: NumberReader,
}

impl Index {
    fn new(session: Session) -> PyResult<Self> {
        let stamps = StampParser::new(TimeFormat::Auto, Zone::default());
        let stamps = stamps.map_err(|error| raise(Kind::Time, error))?;
        let reader = NumberReader::new(session.format(), read_time(stamps));
        Ok(Self { session: Mutex::new(session), reader })
    }

    fn locked(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a key.
    fn number(&self, key: &Bound<'_, PyAny>) -> PyResult<u128> {
        match key.cast::<PyString>() {
            Ok(text) => {
                let number = self.reader.key(text.to_str()?.as_bytes());
                number.map_err(|reason| raise(Kind::Key, reason))
            }
            Err(_) => key.extract().map_err(|_| {
                raise(
                    Kind::Key,
                    format!("{key} is no whole number from 0 to 2^128 - 1, nor its text"),
                )
            }),
        }
    }

    /// The intervals that are asked about.
    fn intervals(
        &self,
        first: &Bound<'_, PyAny>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<RangeInclusive<u128>>> {
        match (last, first.cast::<PyString>()) {
            (Some(last), _) => Ok(vec![self.number(first)?..=self.number(last)?]),
            (None, Ok(text)) => {
                let found = self.reader.intervals(text.to_str()?);
                found.map_err(|reason| raise(Kind::Key, reason))
            }
            (None, Err(_)) => {
                let number = self.number(first)?;
                Ok(vec![number..=number])
            }
        }
    }
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (**terms))]
    fn init(terms: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut arguments = Arguments::new(terms);
        let span = terms::span(&mut arguments)?;
        let format = arguments.parsed("key_format")?.unwrap_or(NumberFormat::Number);
        let length = |value: Bound<'_, PyAny>| -> PyResult<u128> {
            match value.cast::<PyString>() {
                Ok(text) => interval_length(text.to_str()?, format)
                    .map_err(|error| terms::wrong("interval", error)),
                Err(_) => value.extract(),
            }
        };
        let spec = IndexSpec {
            expect: arguments.count("expect")?,
            memory: arguments.bytes("memory")?,
            fpr: arguments.share("fpr")?,
            slack: terms::slack(&mut arguments, span)?,
            interval: arguments.get("interval")?.map(length).transpose()?,
            seed: arguments.count("seed")?.unwrap_or(0),
            clock: ClockSpec {
                lateness: arguments.duration("lateness")?,
                max_skew: arguments.duration("max_skew")?,
                ..ClockSpec::default()
            },
            ..IndexSpec::new(span, format)
        };
        arguments.end("Index")?;
        Self::new(spec.build().map_err(errors::spec)?)
    }

    /// Remembers a key: a number, or its text. Was it indexed? One that is too late, or too far in the future, is not.
    #[pyo3(signature = (key, time=None))]
    fn observe(&self, key: &Bound<'_, PyAny>, time: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let (number, time) = (self.number(key)?, time::nanos(time)?);
        Ok(self.locked().observe(number, time) == Class::Indexed)
    }

    /// Remembers many keys, in order. How many were indexed?
    ///
    /// >>> lately.Index(last=1000).observe_many(range(10))
    /// 10
    #[pyo3(signature = (keys, times=None))]
    fn observe_many(
        &self,
        keys: &Bound<'_, PyAny>,
        times: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let numbers =
            keys.try_iter()?.map(|key| self.number(&key?)).collect::<PyResult<Vec<_>>>()?;
        let times = times.map(crate::columns::times).transpose()?;
        if let Some(found) = times.as_ref().map(Vec::len).filter(|len| *len != numbers.len()) {
            let rows = numbers.len();
            return Err(PyValueError::new_err(format!("{rows} keys, but {found} times")));
        }
        Ok(keys.py().detach(|| {
            let mut session = self.locked();
            let time = |at: usize| times.as_ref().map(|times| times[at]);
            let numbers = numbers.into_iter().enumerate();
            numbers.filter(|(at, key)| session.observe(*key, time(*at)) == Class::Indexed).count()
        }))
    }

    /// Was any key from `first` to `last`, both included, seen within the window, or within a shorter one (`within`: a
    /// duration, or a number of records)?
    ///
    /// `first` alone is a key, or what the program takes for an interval: `"4000..4999"`, `"10.1.0.0/16"`, a pattern of EPCs.
    ///
    /// >>> index = lately.Index(last=1000)
    /// >>> index.observe(4711)
    /// True
    /// >>> index.any_in("4000..4999"), index.any_in(4711), index.any_in(4712)
    /// (True, True, False)
    #[pyo3(signature = (first, last=None, *, within=None))]
    fn any_in(
        &self,
        first: &Bound<'_, PyAny>,
        last: Option<&Bound<'_, PyAny>>,
        within: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let intervals = self.intervals(first, last)?;
        let within = within
            .map(|within| match within.extract::<u64>() {
                Ok(records) => Ok(records),
                Err(_) => terms::duration(within).map_err(|error| terms::wrong("within", error)),
            })
            .transpose()?;
        let session = self.locked();
        Ok(intervals.into_iter().any(|keys| session.any(keys, within).is_perhaps()))
    }

    /// Saves the index in a file that `lately index --state` resumes from and `lately ask` reads.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let _lock = Lock::take(&path).map_err(|error| raise(Kind::State, error))?;
            self.locked().save(&path).map_err(errors::state)
        })
    }

    /// The index saved in a file by `save` or by `lately index --state`.
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let loaded = py.detach(|| Session::load(&path)).map_err(errors::state)?;
        let missing =
            || PyFileNotFoundError::new_err(format!("state {}: no such file", path.display()));
        Self::new(loaded.ok_or_else(missing)?)
    }

    /// Bytes that it takes.
    #[getter]
    fn memory(&self) -> usize {
        self.locked().window().memory()
    }

    /// The newest time that a record has brought, in nanoseconds since 1970; `None` if none has.
    #[getter]
    fn clock(&self) -> Option<i64> {
        self.locked().clock()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let bytes = slf.get().locked().to_bytes();
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((restore, (PyBytes::new(py, &bytes),)))
    }

    #[classmethod]
    fn _restore(_: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        Self::new(Session::from_bytes(bytes).map_err(|reason| raise(Kind::State, reason))?)
    }
}
