//! Records: their fields, keys and times.

mod batch;
pub mod epc;
pub(crate) mod field;
pub mod number;
pub mod stamp;

pub use batch::{Batch, Extra, Fault, Kind, Record};
