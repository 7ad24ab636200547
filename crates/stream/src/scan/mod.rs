//! Scanners: where values begin and end in bytes.

pub(crate) mod canonical;
pub(crate) mod document;
pub(crate) mod json;
