//! What terms cost with each structure.

use crate::terms;
use lately_stream::session::{DedupSpec, PlanTable};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

/// What a filter of these terms would cost, with each structure that keeps them: the table of `lately plan`.
///
/// A sequence of dictionaries by the names of `lately plan --json`; printed, it is the table. `to_pandas()` makes a
/// data frame of it, `plot()` a picture.
///
/// >>> table = lately.plan(within="10s", expect="1M")
/// >>> [row["structure"] for row in table if row["chosen"]]
/// ['aged-table']
/// >>> table.chosen["bits_per_key"] < 140
/// True
#[pyfunction]
#[pyo3(signature = (**terms))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    terms: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut arguments = terms::Arguments::new(terms);
    let spec = terms::dedup(&mut arguments)?;
    arguments.end("plan")?;
    rows_of(py, &spec)
}

/// The table of these terms.
pub(crate) fn rows_of<'py>(py: Python<'py>, spec: &DedupSpec) -> PyResult<Bound<'py, PyAny>> {
    let rows = spec.plans();
    if let Some(error) = rows.iter().find_map(|row| row.plan.as_ref().err())
        && rows.iter().all(|row| row.plan.is_err())
    {
        return Err(crate::errors::spec(error.clone()));
    }
    let text = PlanTable { rows: &rows, prefix: "" }.to_string();
    let json = Value::Array(rows.iter().map(|row| row.to_json()).collect()).to_string();
    let rows = py.import("json")?.call_method1("loads", (json,))?;
    py.import("lately._plan")?.call_method1("PlanTable", (rows, text))
}
