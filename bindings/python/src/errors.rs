//! Exceptions: the errors of the libraries, with their texts.

use lately_stream::session::{InputError, MergeError, SpecError};
use lately_stream::state::StateError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::fmt::Display;

/// The exceptions of the package, which Python defines: they have two bases.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Spec,
    State,
    Merge,
    Key,
    Time,
    Input,
}

/// An exception of this kind that says what the error does.
pub(crate) fn raise(kind: Kind, error: impl Display) -> PyErr {
    static TYPES: [PyOnceLock<Py<PyType>>; 6] = [const { PyOnceLock::new() }; 6];
    let name = match kind {
        Kind::Spec => "SpecError",
        Kind::State => "StateError",
        Kind::Merge => "MergeError",
        Kind::Key => "KeyTypeError",
        Kind::Time => "TimeError",
        Kind::Input => "InputError",
    };
    let message = error.to_string();
    Python::attach(|py| match TYPES[kind as usize].import(py, "lately._errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}

pub(crate) fn spec(error: SpecError) -> PyErr {
    raise(Kind::Spec, error)
}

pub(crate) fn input(error: InputError) -> PyErr {
    raise(Kind::Input, error)
}

pub(crate) fn state(error: StateError) -> PyErr {
    raise(Kind::State, error)
}

pub(crate) fn merge(error: MergeError) -> PyErr {
    raise(Kind::Merge, error)
}
