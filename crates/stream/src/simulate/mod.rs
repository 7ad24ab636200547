//! Simulated sources: streams of a known shape, of any length, the same for the same seed.

pub mod rfid;
