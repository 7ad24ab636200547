//! Records: what they are to the pipeline, and how their fields become keys, times and ranks. No
//! file here knows of a format: a field is found through `value::Row`.

mod batch;
pub mod epc;
pub(crate) mod field;
mod key;
mod mark;
pub mod number;
pub mod stamp;
pub mod texts;
pub(crate) mod value;

pub use batch::{Batch, Extra, Fault, Kind, Record};
pub use key::{KeyFormat, WHOLE_RECORD};
pub(crate) use mark::Heading;
pub use mark::Mark;
