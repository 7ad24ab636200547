//! Reads inputs: opens them, cuts their bytes into chunks and parses those into batches.

mod chunk;
mod cut;
mod deliveries;
mod error;
mod estimate;
mod input;
mod merge;
pub mod message;
mod open;
mod parser;
mod pipe;
mod rest;
pub mod source;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod workers;

pub use chunk::{Chunk, Fate};
pub use error::{SourceError, SourceErrorKind};
pub use parser::Parser;
pub use rest::Left;
pub use source::{Looked, Source};
