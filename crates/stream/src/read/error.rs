//! Inputs that cannot be read.

use std::fmt;
use std::io;

/// An input that cannot be read, or not any further.
#[derive(Debug)]
pub struct SourceError {
    /// The input, counted from 0.
    pub source: usize,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub kind: SourceErrorKind,
}

/// What is wrong with an input.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceErrorKind {
    /// It cannot be opened.
    Open(io::Error),
    /// Reading or decompressing it failed; all records before that have been handed on.
    Read(io::Error),
    /// Its text is in an encoding that is not supported.
    Encoding(&'static str),
    /// It is an archive or a database, no stream of records: what it is, and what to do with it.
    Archive(&'static str, &'static str),
    /// It does not fit what was asked for, such as a key column that its header does not have.
    Setup(String),
    /// Its broker does not deliver, for this reason.
    Broker(String),
    /// A part of it was lost to a fault of this program.
    Lost,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            SourceErrorKind::Open(error) => write!(f, "cannot open {name}: {error}"),
            SourceErrorKind::Read(error) => write!(f, "cannot read {name} any further: {error}"),
            SourceErrorKind::Encoding(found) => {
                write!(f, "{name} is in {found}, which is not supported; convert it to UTF-8")
            }
            SourceErrorKind::Archive(what, remedy) => {
                write!(f, "{name} is {what}: {remedy}")
            }
            SourceErrorKind::Setup(reason) | SourceErrorKind::Broker(reason) => {
                write!(f, "{name}: {reason}")
            }
            SourceErrorKind::Lost => write!(
                f,
                "a part of {name} was lost to a fault of this program; please report what is printed above"
            ),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            SourceErrorKind::Open(error) | SourceErrorKind::Read(error) => Some(error),
            SourceErrorKind::Encoding(_)
            | SourceErrorKind::Archive(..)
            | SourceErrorKind::Setup(_)
            | SourceErrorKind::Broker(_)
            | SourceErrorKind::Lost => None,
        }
    }
}
