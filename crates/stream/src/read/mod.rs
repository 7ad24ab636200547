//! Reads inputs: opens them, cuts their bytes into chunks and parses those into batches.

mod cut;
mod open;
mod rest;
pub mod source;
#[cfg(test)]
mod tests;
pub(crate) mod workers;

pub use crate::format::Parser;
