//! Scanners: where lines, fields and values begin and end in bytes. They know of no record, no
//! format and no option, so the cutter and the parsers share them and agree on every boundary.

pub(crate) mod canonical;
pub(crate) mod delimited;
pub(crate) mod document;
pub(crate) mod first;
pub(crate) mod json;
pub(crate) mod lines;
mod shape;
pub(crate) mod tree;
pub(crate) mod unescape;
