//! Records: what they are to the pipeline, and how their fields become keys, times and ranks. No
//! file here knows of a format: a field is found through `value::Row`.

mod batch;
mod envelope;
pub mod epc;
pub(crate) mod field;
mod key;
mod mark;
pub mod number;
mod regex;
mod spelling;
pub mod stamp;
pub mod texts;
pub mod time;
pub(crate) mod value;

pub use batch::{Batch, Extra, Fault, Kind, Parcel, Record};
pub(crate) use envelope::{ENVELOPE, Enveloped};
pub use envelope::{Envelope, EnvelopeField};
pub use key::{ALL_FIELDS, KeyFormat, WHOLE_RECORD};
pub(crate) use key::{Form, NO_TEXT, append, prefixed};
pub(crate) use mark::Heading;
pub use mark::Mark;
pub use regex::KeyRegex;
pub use time::Time;
