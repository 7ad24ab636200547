//! Crowdsensing at the edge: devices that decide for themselves what to send.
//!
//! The system of M. Antonić, A. Antonić and I. Podnar Žarko, "Bloom Filter Approach for Autonomous
//! Data Acquisition in the Edge-Based MCS Scenario", Sensors 22, 879, 2022, doi:10.3390/s22030879.
//! Each role is a state machine without I/O and without a clock: messages and times go in, messages
//! come out.
//!
//! | role | what it does |
//! |---|---|
//! | [`coordinator`] | finds a host for each square of 10 km, forwards tasks, gathers aggregates |
//! | [`host`] | keeps a filter for each cell of 1 km, keeps the readings that tasks want, and delivers them |
//! | [`worker`] | moves, and asks the filter of its cell before it sends a reading |
//! | [`process`] | runs the hosts that the coordinator gives it |
//! | [`requester`] | posts tasks, receives readings |
//!
//! Workers decide with [`decide::Decider`] alone. [`wire`] turns messages into bytes; [`cell`] names
//! places. With the feature `std` come readings as SenML (`senml`) and the simulator (`simulate`); all
//! else is `no_std` with `alloc`.
#![no_std]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod cell;
pub mod coordinator;
pub mod decide;
pub mod element;
pub mod filter;
pub mod host;
pub mod ids;
pub mod lease;
pub mod message;
pub mod observer;
pub mod process;
pub mod refusal;
pub mod requester;
pub mod rules;
#[cfg(feature = "std")]
pub mod senml;
#[cfg(feature = "std")]
pub mod simulate;
pub mod state;
pub mod tally;
pub mod task;
pub mod wire;
pub mod worker;

/// A moment in milliseconds since 1970-01-01 UTC, by somebody's clock; or a length of time.
pub type Millis = u64;
