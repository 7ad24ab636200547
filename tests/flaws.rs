//! The flaws of the papers: each shown by the paper's rule, and gone in ours.

mod support;

#[path = "flaws/paper3.rs"]
mod paper3;
