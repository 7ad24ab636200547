//! The papers' figures, measured again: one folder a paper.

pub mod paper1;
