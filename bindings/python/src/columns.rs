//! Arrays as keys and as times: of NumPy, of Arrow in one piece or in chunks, and any other sequence.

mod keys;
mod times;

pub(crate) use keys::Keys;
pub(crate) use times::times;

use arrow_array::ArrayRef;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PyChunkedArray};

/// What an array is, before it is known what it is for.
pub(crate) enum Column<'py> {
    /// Of Arrow: in chunks, which nobody changes.
    Arrow(Vec<ArrayRef>),
    /// Of NumPy, with one dimension and the byte order of the machine, and the kind of its elements.
    Numpy(Bound<'py, PyAny>, char),
    /// Anything else: its elements.
    Objects(Vec<Bound<'py, PyAny>>),
}

impl<'py> Column<'py> {
    pub(crate) fn new(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        if array.hasattr(intern!(py, "__arrow_c_array__"))? {
            let (array, _) = array.extract::<PyArray>()?.into_inner();
            return Ok(Self::Arrow(vec![array]));
        }
        if array.hasattr(intern!(py, "__arrow_c_stream__"))? {
            let (chunks, _) = array.extract::<PyChunkedArray>()?.into_inner();
            return Ok(Self::Arrow(chunks));
        }
        if array.hasattr(intern!(py, "__array_interface__"))? {
            return Self::of_numpy(array);
        }
        Ok(Self::Objects(array.try_iter()?.collect::<PyResult<_>>()?))
    }

    fn of_numpy(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let dtype = array.getattr(intern!(py, "dtype"))?;
        if array.getattr(intern!(py, "ndim"))?.extract::<usize>()? != 1 {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "an array of keys or times has one dimension",
            ));
        }
        let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
        if kind == 'O' {
            return Ok(Self::Objects(array.try_iter()?.collect::<PyResult<_>>()?));
        }
        let native = dtype.getattr(intern!(py, "isnative"))?.extract()?;
        let array = match native {
            true => array.clone(),
            false => {
                let native = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
                array.call_method1(intern!(py, "astype"), (native,))?
            }
        };
        Ok(Self::Numpy(array, kind))
    }
}

/// The elements of an array of NumPy, if they are of this type. They are copied: another thread may change
/// the array while the lock of the interpreter is released.
fn elements<T: Element + Copy>(array: &Bound<'_, PyAny>) -> Option<Vec<T>> {
    let array = array.cast::<PyArray1<T>>().ok()?;
    Some(array.try_readonly().ok()?.as_array().to_vec())
}

/// The bytes of an array of NumPy whose elements have a fixed width, and that width, in units of this type.
fn fixed<T: Element + Copy>(array: &Bound<'_, PyAny>, unit: &str) -> PyResult<(Vec<T>, usize)> {
    let py = array.py();
    let width: usize = array.getattr(intern!(py, "itemsize"))?.extract()?;
    let width = width / size_of::<T>();
    if width == 0 {
        return Ok((Vec::new(), 0));
    }
    let packed = py
        .import(intern!(py, "numpy"))?
        .call_method1(intern!(py, "ascontiguousarray"), (array,))?
        .call_method1(intern!(py, "view"), (unit,))?;
    Ok((elements(&packed).unwrap_or_default(), width))
}
