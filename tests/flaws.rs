//! Flaws of the papers, each shown by the paper's rule and fixed in ours, on the same stream.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forge.rs"]
mod forge;
mod support;

#[path = "flaws/paper1.rs"]
mod paper1;
#[path = "flaws/paper2.rs"]
mod paper2;
#[path = "flaws/paper3.rs"]
mod paper3;
#[path = "flaws/paper4.rs"]
mod paper4;
