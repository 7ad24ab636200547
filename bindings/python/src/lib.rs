//! The Python package `lately`: its types and functions are those of `lately-stream`'s sessions, with the
//! arguments and the arrays of Python.

mod columns;
mod errors;
mod file;
mod filter;
mod index;
mod key;
mod plan;
mod shard;
mod terms;
mod time;

use pyo3::prelude::*;

/// Have I seen this lately?
#[pymodule]
mod _lately {
    use super::filter::CLASSES;
    #[pymodule_export]
    use super::{file::dedup_file, filter::Filter, index::Index, plan::plan, shard::shard_filter};
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let names = CLASSES.map(|class| class.name());
        module.add("CLASSES", PyTuple::new(module.py(), names)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
