//! The papers' figures, measured again: one folder a paper, over one small kit.

pub mod clock;
pub mod comparison;
pub mod facts;
pub mod paper1;
pub mod paper2;
pub mod paper3;
pub mod paper4;
pub mod paper5;
pub mod related;
pub mod report;
pub mod sheet;
