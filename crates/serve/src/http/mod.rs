//! JSON over HTTP, and what operators look at.
//!
//! A request that reads or changes filters becomes commands of a [`crate::command::Session`], as a client of Redis would
//! send them; so passwords, limits, counts and durability are the same for both. `connection` has the sockets, `route`
//! the paths, `filters` and `keys` what they mean, `board` what operators see over time.

mod answer;
mod ask;
mod board;
mod connection;
mod filters;
mod fuzzing;
mod items;
mod keys;
mod metrics;
mod overview;
mod query;
mod records;
mod reserve;
mod route;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use board::Board;
pub use connection::fuzz;
pub(crate) use connection::serve;
