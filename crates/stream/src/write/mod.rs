//! Records out: outputs by class, marks, and what a run has to report.

mod added;
mod diverted;
pub mod message;
pub mod output;
pub mod report;
pub mod sink;
pub mod sort;
pub mod summary;
