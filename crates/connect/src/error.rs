//! Why a broker cannot be used.

use std::fmt;

/// Why a broker cannot be used, in words that say what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be understood, or asks for what there is not: wrong usage.
    Address(String),
    /// The broker cannot be reached, does not let us in, or refuses what is asked of it.
    Broker(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) | Self::Broker(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ConnectError {}

/// What went wrong with a connection.
#[cfg(any(feature = "kafka", feature = "mqtt", feature = "nats"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It may be over when it is tried again.
    Passing(String),
    /// It will not.
    Lasting(String),
}
