//! Connections: sockets in, sessions behind them.

mod listen;
mod worker;

pub(crate) use listen::{Listeners, deal};
pub(crate) use worker::{Crew, clock, wall};
