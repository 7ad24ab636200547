//! The filter of one shard of a stream that is spread over many processes, which hand its state on as bytes.

use crate::errors::{self, Kind, raise};
use crate::filter::Filter;
use crate::terms;
use lately_stream::session::Reading;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Distinct keys expected in the window of the whole stream, if nothing is said; shards grow.
const EXPECT: u64 = 1 << 16;

/// The most bytes of the filters of all shards, if nothing is said.
const MEMORY: u64 = 1 << 30;

/// The filter of one of so many shards: a new one, or the one whose `Filter.to_bytes()` is given.
///
/// The terms are those of the whole stream, as `Filter` takes them: each shard has its part of `expect` and of `memory`. A state
/// of another window, other keys or another number of shards is refused with `StateError`: its keys would be in other shards.
#[pyfunction]
#[pyo3(signature = (state, shards, key, **terms))]
pub(crate) fn shard_filter(
    py: Python<'_>,
    state: Option<&[u8]>,
    shards: u64,
    key: Vec<String>,
    terms: Option<&Bound<'_, PyDict>>,
) -> PyResult<Filter> {
    if shards == 0 {
        return Err(terms::wrong("shards", "expected at least 1"));
    }
    let mut spec = terms::dedup_only(terms, "dedup")?;
    spec.expect = Some(spec.expect.unwrap_or(EXPECT).div_ceil(shards));
    spec.memory = Some(spec.memory.unwrap_or(MEMORY) / shards);
    spec.clock.timed = Some(true);
    spec.reading = Some(Reading::new().with("key", key).with("shards", [shards.to_string()]));
    // A part of the memory may be too little where the whole was enough.
    spec.plan().map_err(errors::spec)?;
    let session = match state {
        Some(state) => {
            py.detach(|| spec.resume_bytes(state)).map_err(|reason| raise(Kind::State, reason))?
        }
        None => spec.build().map_err(errors::spec)?,
    };
    Ok(Filter::new(session, spec))
}
