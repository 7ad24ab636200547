//! Workloads, oracles, the papers' figures and comparisons with other programs.
//!
//! Everything here is seeded and streamed; everything measured is checked against an exact answer
//! before its time is believed.

pub mod figures;
pub mod files;
pub mod late;
pub mod machine;
pub mod oracle;
pub mod plot;
pub mod programs;
pub mod range;
#[cfg(target_os = "linux")]
pub mod serve;
pub mod window;
pub mod workload;
