//! `lately.Filter`.

mod pickle;
mod rows;

use crate::columns::times;
use crate::errors::{self, Kind, raise};
use crate::plan::rows_of;
use crate::{key, terms, time};
use lately::{Filter as _, Plan};
use lately_store::Lock;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::session::{ClockSpec, Dedup, DedupSpec, Slack, Span};
use lately_stream::write::summary;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyType};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The classes of records, by their numbers in the arrays of `classify_many`.
pub(crate) const CLASSES: [Class; 5] =
    [Class::Fresh, Class::Duplicate, Class::Late, Class::Skewed, Class::KeyMissing];

/// Has this key been seen lately?
///
/// A window is either a time (``within="10s"``, or a ``timedelta``) or a number of records (``last=100_000``);
/// without one, keys are remembered for ever. All terms have the names and the defaults of ``lately dedup``:
/// ``fpr`` (1e-6), ``expect`` (distinct keys in the window: a hint, the filter grows), ``lateness``
/// (how far out of order records may be; the window), ``memory`` (1 GiB), ``slack``, ``renew`` (``"always"`` or
/// ``"fresh"``), ``on_full`` (``"grow"``, ``"forget"``, ``"refuse"``), ``structure``, ``seed``, ``max_skew``,
/// ``on_late`` (``"pass"`` or ``"judge"``). A duration is a text or a ``timedelta``, a number an ``int`` or a text
/// such as ``"100k"``.
///
/// *Guarantee:* a key that was seen within the window is never called new, unless the memory ran out (see
/// ``overload``). A new one is called a duplicate with at most the probability ``fpr``.
///
/// A *key* is ``str``, ``bytes`` or ``int``, or a tuple of these for a key of several fields. Keys hash as in
/// the program: a text is its UTF-8, and an ``int`` is its decimal text, as in a CSV file. (A number in NDJSON is
/// ``b"\xff17"`` to the program, so that 17 and "17" differ.) ``None`` is a missing key, which is never judged.
///
/// A *time* is a ``datetime`` (in UTC if it has no zone), an ``int`` (nanoseconds since 1970, as
/// ``time.time_ns()``), a ``float`` (seconds, as ``time.time()``) or a text that the program can read. Without one,
/// a record happens now.
///
/// Methods may be called by several threads at once; those for arrays release the lock of the interpreter.
///
/// >>> import lately
/// >>> seen = lately.Filter(within="10s")
/// >>> start = 1_700_000_000_000_000_000
/// >>> seen.observe("tag 1", start)
/// False
/// >>> seen.observe("tag 1", start + 9_000_000_000)
/// True
/// >>> seen.observe("tag 2", start + 9_000_000_000)
/// False
/// >>> lately.Filter(within="10 parsecs")  # doctest: +IGNORE_EXCEPTION_DETAIL
/// Traceback (most recent call last):
///     ...
/// lately.SpecError: within: ...
#[pyclass(frozen, module = "lately", name = "Filter")]
pub(crate) struct Filter {
    session: Mutex<Dedup>,
    /// What it was made with, as far as that is not in its state.
    spec: DedupSpec,
}

/// What a filter is pickled as.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Bound<'py, PyDict>));

impl Filter {
    pub(crate) fn new(session: Dedup, spec: DedupSpec) -> Self {
        Self { session: Mutex::new(session), spec }
    }

    /// One that was saved by anybody: its terms are in its state.
    fn of_state(session: Dedup) -> Self {
        let identity = session.identity();
        let clock = ClockSpec {
            timed: Some(session.moments().clock.is_some()),
            lateness: session.moments().clock.as_ref().map(|clock| clock.lateness()),
            ..ClockSpec::default()
        };
        let plan = session.filter().plan();
        let spec = DedupSpec {
            span: identity.span,
            expect: Some(plan.window().capacity()),
            fpr: Some(plan.fpr()),
            slack: slack_of(plan),
            renewal: identity.renewal.unwrap_or_default(),
            structure: Some(plan.structure()),
            seed: identity.seed,
            changes: identity.changes.clone(),
            clock,
            ..DedupSpec::default()
        };
        Self::new(session, spec)
    }

    /// The session; while another thread has it, the lock of the interpreter is released.
    fn session(&self, py: Python<'_>) -> MutexGuard<'_, Dedup> {
        self.session.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, Dedup> {
        // Sessions do not panic in between.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The class of one record.
    fn class(&self, key: &Bound<'_, PyAny>, time: Option<&Bound<'_, PyAny>>) -> PyResult<Class> {
        let time = time::nanos(time)?;
        let mut session = self.session(key.py());
        match key::digest(key, &session.digester())? {
            Some(digest) => Ok(session.observe_digest(digest, time)),
            None => Ok(Class::KeyMissing),
        }
    }

    /// The classes of the records of which these are the keys, or their parts.
    fn classes(
        &self,
        py: Python<'_>,
        columns: &[Bound<'_, PyAny>],
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Class>> {
        let digester = self.session(py).digester();
        let parts = rows::parts(columns, &digester)?;
        let rows = parts[0].len();
        let times = at.map(times).transpose()?;
        if times.as_ref().is_some_and(|times| times.len() != rows) {
            let found = times.map_or(0, |times| times.len());
            return Err(PyValueError::new_err(format!("{rows} keys, but {found} times")));
        }
        Ok(py.detach(|| rows::judge(&mut self.locked(), &parts, rows, times.as_deref())))
    }
}

/// The slack of a plan, where it has a window.
fn slack_of(plan: &Plan) -> Option<Slack> {
    plan.window().span().map(|_| Slack::Exactly(plan.slack()))
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (**terms))]
    fn init(terms: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let spec = terms::dedup_only(terms, "Filter")?;
        let session = spec.build().map_err(errors::spec)?;
        Ok(Self::new(session, spec))
    }

    /// Remembers a key. Was it seen within the window before?
    ///
    /// Records that are not judged (too late, too far in the future, without a key) are not duplicates: `classify`
    /// tells which they are.
    ///
    /// >>> seen = lately.Filter(last=1000)
    /// >>> seen.observe("a"), seen.observe("a"), seen.observe(("a", 1))
    /// (False, True, False)
    #[pyo3(signature = (key, time=None))]
    fn observe(&self, key: &Bound<'_, PyAny>, time: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.class(key, time).map(|class| class == Class::Duplicate)
    }

    /// Remembers a key, and tells the class of the record: "fresh", "duplicate", "late", "skewed" (its time is too
    /// far in the future to be believed) or "missing_key".
    ///
    /// >>> seen = lately.Filter(within="10s")
    /// >>> seen.classify("a", "2024-05-01T10:00:00Z"), seen.classify("b", "2024-05-01T09:00:00Z")
    /// ('fresh', 'late')
    #[pyo3(signature = (key, time=None))]
    fn classify(
        &self,
        key: &Bound<'_, PyAny>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<&'static str> {
        self.class(key, time).map(Class::name)
    }

    /// Was a key seen within the window? Remembers nothing.
    ///
    /// `time` is the moment of the question: the newest time that a record has brought, or now.
    ///
    /// >>> seen = lately.Filter()
    /// >>> seen.seen("a"), seen.observe("a"), seen.seen("a")
    /// (False, False, True)
    #[pyo3(signature = (key, time=None))]
    fn seen(&self, key: &Bound<'_, PyAny>, time: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let time = time::nanos(time)?;
        let mut session = self.session(key.py());
        let Some(digest) = key::digest(key, &session.digester())? else { return Ok(false) };
        let mut found = Vec::with_capacity(1);
        session.are_known(&[digest], time, &mut found);
        Ok(found == [true])
    }

    /// When a key was last seen, if within the window: the earliest and the latest moment that it can have been, as
    /// a pair.
    ///
    /// In a window of time those are nanoseconds since 1970; in one of records, numbers of records since
    /// the filter began. `None` for a key that was not seen.
    ///
    /// >>> seen = lately.Filter(within="10s", slack="0s")
    /// >>> seen.observe("a", 1_700_000_000_000_000_000)
    /// False
    /// >>> seen.last_seen("a")
    /// (1700000000000000000, 1700000000000000000)
    /// >>> seen.last_seen("b") is None
    /// True
    #[pyo3(signature = (key, time=None))]
    fn last_seen(
        &self,
        key: &Bound<'_, PyAny>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(i64, i64)>> {
        let time = time::nanos(time)?;
        let mut session = self.session(key.py());
        let Some(digest) = key::digest(key, &session.digester())? else { return Ok(None) };
        let Some(seen) = session.last_seen_digest(digest, time) else { return Ok(None) };
        Ok(Some(match self.spec.span {
            Span::Within(_) => session.nanos(seen),
            Span::Last(_) | Span::Ever => (seen.from.0.cast_signed(), seen.to.0.cast_signed()),
        }))
    }

    /// Remembers the keys of an array, in order: a mask that is true for duplicates.
    ///
    /// `keys` is an array of NumPy (whole numbers, bytes, str, objects), of Arrow (in one piece or in chunks; from PyArrow,
    /// pandas, Polars or anything with the Arrow PyCapsule interface), or any other sequence. `times` is an array of
    /// the same length (timestamps, nanoseconds, seconds, texts), or `None` for now. Arrow's keys are read where
    /// they are; what NumPy has is copied once, as another thread might change it meanwhile.
    ///
    /// >>> import numpy as np
    /// >>> seen = lately.Filter(last=1000)
    /// >>> keys = np.array([7, 8, 7])
    /// >>> keys[~seen.observe_many(keys)]
    /// array([7, 8])
    /// >>> seen.observe_many(["7", b"9"])
    /// array([ True, False])
    #[pyo3(signature = (keys, times=None))]
    fn observe_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.observe_columns(keys.py(), vec![keys.clone()], times)
    }

    /// `observe_many` for keys of several fields, of which each is an array.
    ///
    /// >>> seen = lately.Filter(last=1000)
    /// >>> seen.observe_columns([["a", "a", "b"], [1, 1, 1]])
    /// array([False,  True, False])
    #[pyo3(signature = (columns, times=None))]
    fn observe_columns<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Bound<'py, PyAny>>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let classes = self.classes(py, &columns, times)?;
        let mask = py
            .detach(|| classes.iter().map(|class| *class == Class::Duplicate).collect::<Vec<_>>());
        Ok(mask.into_pyarray(py))
    }

    /// `observe_columns`, but with the class of each record, as a number that stands for one of `lately.CLASSES`.
    ///
    /// >>> seen = lately.Filter(last=1000)
    /// >>> [lately.CLASSES[one] for one in seen.classify_columns([["a", "a", None]])]
    /// ['fresh', 'duplicate', 'missing_key']
    #[pyo3(signature = (columns, times=None))]
    fn classify_columns<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Bound<'py, PyAny>>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let classes = self.classes(py, &columns, times)?;
        let number = |class: &Class| CLASSES.iter().position(|other| other == class).unwrap_or(0);
        let numbers: Vec<u8> = classes.iter().map(|class| number(class) as u8).collect();
        Ok(numbers.into_pyarray(py))
    }

    /// Which keys of an array were seen within the window, at one moment? Remembers nothing.
    ///
    /// >>> seen = lately.Filter()
    /// >>> seen.observe("b")
    /// False
    /// >>> seen.seen_many(["a", "b"])
    /// array([False,  True])
    #[pyo3(signature = (keys, time=None))]
    fn seen_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        time: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let py = keys.py();
        let time = time::nanos(time)?;
        let parts = rows::parts(std::slice::from_ref(keys), &self.session(py).digester())?;
        let found = py.detach(|| rows::known(&mut self.locked(), &parts, time, false));
        Ok(found.into_pyarray(py))
    }

    /// Was any of these keys seen within the window? `keys` is a `range` of whole numbers or any array that
    /// `observe_many` takes; they are asked one by one. For long intervals, `lately.Index` is made.
    ///
    /// >>> seen = lately.Filter()
    /// >>> seen.observe(4711)
    /// False
    /// >>> seen.any_in(range(4000, 5000)), seen.any_in(range(5000, 6000))
    /// (True, False)
    #[pyo3(signature = (keys, time=None))]
    fn any_in(&self, keys: &Bound<'_, PyAny>, time: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let py = keys.py();
        let time = time::nanos(time)?;
        let digester = self.session(py).digester();
        // A range in one step, as NumPy has it; one of larger numbers is iterated over.
        let numbers = keys.is_instance_of::<pyo3::types::PyRange>().then(|| {
            let arange = py.import("numpy")?.getattr("arange")?;
            let (start, stop) = (keys.getattr("start")?, keys.getattr("stop")?);
            arange.call1((start, stop, keys.getattr("step")?, "i8"))
        });
        let keys = match numbers {
            Some(Ok(numbers)) => numbers,
            _ => keys.clone(),
        };
        let parts = rows::parts(&[keys], &digester)?;
        Ok(py.detach(|| rows::known(&mut self.locked(), &parts, time, true)).contains(&true))
    }

    /// Saves the filter in a file that `lately dedup --state` resumes from. The file is replaced as a whole: whatever
    /// happens meanwhile, it is the old one or the new one.
    ///
    /// >>> import tempfile, os
    /// >>> path = os.path.join(tempfile.mkdtemp(), "reads.state")
    /// >>> seen = lately.Filter(last=1000)
    /// >>> seen.observe("a")
    /// False
    /// >>> seen.save(path)
    /// >>> lately.Filter.load(path).observe("a")
    /// True
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            // A run of the program that has it would overwrite what is saved here.
            let _lock = Lock::take(&path).map_err(|error| raise(Kind::State, error))?;
            self.locked().save(&path).map_err(errors::state)
        })
    }

    /// The bytes that `save` writes into a file.
    ///
    /// >>> seen = lately.Filter(last=1000)
    /// >>> seen.to_bytes() == seen.to_bytes()
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.locked().to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// The filter saved in a file by `save` or by `lately dedup --state`.
    ///
    /// *Raises:* `FileNotFoundError`; `StateError` for a file that is damaged or something else.
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let loaded = py.detach(|| Dedup::load(&path)).map_err(errors::state)?;
        let missing =
            || PyFileNotFoundError::new_err(format!("state {}: no such file", path.display()));
        loaded.map(Self::of_state).ok_or_else(missing)
    }

    /// The filter saved in a file, if it is there and was made with the same window, renewal and seed; a new one,
    /// if there is no such file. A saved filter keeps its size and its error rate.
    ///
    /// >>> import tempfile, os
    /// >>> path = os.path.join(tempfile.mkdtemp(), "reads.state")
    /// >>> with_state = lately.Filter.open(path, within="10s")
    /// >>> with_state.save(path)
    /// >>> lately.Filter.open(path, within="5s")
    /// Traceback (most recent call last):
    ///     ...
    /// lately.StateError: state ... was made with other settings
    ///   window: saved 10s, asked 5s
    /// use the same settings, or another state file
    #[classmethod]
    #[pyo3(signature = (path, **terms))]
    fn open(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        terms: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let spec = terms::dedup_only(terms, "open")?;
        let saved = py.detach(|| spec.resume(&path)).map_err(errors::state)?;
        let session = match saved {
            Some(session) => session,
            None => spec.build().map_err(errors::spec)?,
        };
        Ok(Self::new(session, spec))
    }

    /// Takes over what another filter of the same terms remembers.
    ///
    /// *Raises:* `MergeError` for other terms, windows of a number of records, and filters that have grown: plan them for
    /// the keys of both with `expect`.
    ///
    /// >>> one, other = lately.Filter(within="10s"), lately.Filter(within="10s")
    /// >>> other.observe("a", 1_700_000_000_000_000_000)
    /// False
    /// >>> one.merge(other)
    /// >>> one.seen("a")
    /// True
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        // In one order, whichever is merged into which, so that two threads never wait for each other.
        let ours_first = std::ptr::from_ref(self) < std::ptr::from_ref(other);
        py.detach(|| {
            let (mut mine, theirs);
            if ours_first {
                (mine, theirs) = (self.locked(), other.locked());
            } else {
                let first = other.locked();
                (mine, theirs) = (self.locked(), first);
            }
            mine.merge(&theirs).map_err(errors::merge)
        })
    }

    /// What its terms cost with each structure: a table.
    ///
    /// >>> print(lately.Filter(within="10s", expect="1M").plan())  # doctest: +ELLIPSIS
    /// structure ... bits/key ...
    /// * aged-table ...
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        rows_of(py, &self.spec)
    }

    /// Its terms, condition and clock, by the names of `lately inspect --json`.
    ///
    /// >>> lately.Filter(last=1000).info()["filter"]["structure"]
    /// 'aged-table'
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = summary::state_to_json(&self.session(py)).to_string();
        py.import("json")?.call_method1("loads", (text,))
    }

    /// About how many keys it holds: those that have just expired may be among them.
    fn __len__(&self, py: Python<'_>) -> usize {
        usize::try_from(self.session(py).filter().len()).unwrap_or(usize::MAX)
    }

    /// A filter is always true, also one that has seen nothing.
    fn __bool__(&self) -> bool {
        true
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.seen(key, None)
    }

    /// Bytes that the filter takes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> usize {
        self.session(py).filter().memory()
    }

    /// The highest probability with which a new key is called a duplicate.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> f64 {
        self.session(py).filter().fpr()
    }

    /// The same, estimated from how full it is now.
    #[getter]
    fn estimated_fpr(&self, py: Python<'_>) -> f64 {
        self.session(py).filter().estimated_fpr()
    }

    /// The newest time that a record has brought, in nanoseconds since 1970; `None` if none has.
    #[getter]
    fn clock(&self, py: Python<'_>) -> Option<i64> {
        self.session(py).moments().time()
    }

    /// How far behind its clock a record may be to be judged, in nanoseconds; `None` without a window of time.
    #[getter]
    fn lateness(&self, py: Python<'_>) -> Option<u64> {
        self.session(py).moments().clock.as_ref().map(|clock| clock.lateness())
    }

    /// What became of keys beyond the planned capacity: how often the filter has grown, and how many keys were
    /// forgotten early or not remembered for want of memory, whose duplicates may pass.
    ///
    /// >>> lately.Filter(last=1000).overload
    /// {'grown': 0, 'forgotten': 0, 'refused': 0}
    #[getter]
    fn overload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let overload = self.session(py).overload();
        let found = PyDict::new(py);
        found.set_item("grown", overload.grown)?;
        found.set_item("forgotten", overload.forgotten)?;
        found.set_item("refused", overload.refused)?;
        Ok(found)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let session = self.session(py);
        let filter = session.filter();
        let window = match self.spec.span {
            Span::Within(length) => {
                format!("within='{}'", lately_stream::quantity::display_duration(length))
            }
            Span::Last(n) => format!("last={n}"),
            Span::Ever => "for ever".into(),
        };
        format!("<lately.Filter {window}, about {} keys, {} bytes>", filter.len(), filter.memory())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let py = slf.py();
        let filter = slf.get();
        let bytes = py.detach(|| filter.locked().to_bytes());
        let rest = pickle::to_dict(py, &filter.spec)?;
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((restore, (PyBytes::new(py, &bytes), rest)))
    }

    #[classmethod]
    fn _restore(_: &Bound<'_, PyType>, bytes: &[u8], rest: &Bound<'_, PyDict>) -> PyResult<Self> {
        let spec = pickle::from_dict(rest)?;
        let session = spec.resume_bytes(bytes).map_err(|reason| raise(Kind::State, reason))?;
        Ok(Self::new(session, spec))
    }
}
