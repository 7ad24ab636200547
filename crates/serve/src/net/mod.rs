//! Connections: sockets in, sessions behind them.

mod listen;
mod socket;
mod tls;
mod worker;

pub(crate) use listen::{Listeners, deal};
pub(crate) use socket::Language;
pub(crate) use tls::{Tls, check as check_tls};
pub(crate) use worker::{Crew, Service, Shared, clock, wall};
