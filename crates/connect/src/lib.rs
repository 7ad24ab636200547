//! Brokers in the place of files: connections that hand over messages and take records.
//!
//! The seam is that of the stream crate: [`MessageInput`] hands over messages, and is told when what was made of
//! them is safe; [`MessageOutput`] takes records, and says when the broker has them. A file here is one broker's
//! way to keep both promises. What is common to all is how a broker is named ([`Address`]), how topics are made of
//! fields ([`Template`]), and how often a lost connection is tried again ([`Backoff`]).
//!
//! [`MessageInput`]: lately_stream::read::message::MessageInput
//! [`MessageOutput`]: lately_stream::write::message::MessageOutput

mod address;
mod backoff;
mod error;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(any(feature = "kafka", feature = "mqtt", feature = "nats"))]
mod labels;
#[cfg(feature = "mqtt")]
mod mqtt;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "mqtt", feature = "nats"))]
mod outbox;
#[cfg(any(feature = "kafka", feature = "mqtt", feature = "nats"))]
mod queue;
mod settings;
mod template;
#[cfg(any(feature = "mqtt", feature = "nats"))]
mod tls;

pub use address::{Address, Scheme};
pub use backoff::Backoff;
pub use error::ConnectError;
pub use settings::{Login, Settings, Tell};
pub use template::Template;

/// The client of Kafka, whose cluster for tests is what ours are made with.
#[cfg(feature = "kafka")]
#[doc(hidden)]
pub use rdkafka;

use lately_stream::read::message::MessageInput;
use lately_stream::write::message::MessageOutput;

/// Connects to the broker of this address and subscribes to what the address names.
///
/// Returns when messages can come. From then on a connection that is lost is made again by itself.
///
/// # Errors
/// [`ConnectError`]: the broker cannot be reached, does not let us in, or refuses the subscription.
pub fn input(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageInput>, ConnectError> {
    match address.scheme {
        #[cfg(feature = "kafka")]
        Scheme::Kafka | Scheme::KafkaTls => kafka::input(address, settings),
        #[cfg(not(feature = "kafka"))]
        Scheme::Kafka | Scheme::KafkaTls => Err(settings.missing(address, "kafka")),
        #[cfg(feature = "mqtt")]
        Scheme::Mqtt | Scheme::Mqtts => mqtt::input(address, settings),
        #[cfg(not(feature = "mqtt"))]
        Scheme::Mqtt | Scheme::Mqtts => Err(settings.missing(address, "mqtt")),
        #[cfg(feature = "nats")]
        Scheme::Nats | Scheme::NatsTls => nats::input(address, settings),
        #[cfg(not(feature = "nats"))]
        Scheme::Nats | Scheme::NatsTls => Err(settings.missing(address, "nats")),
    }
}

/// Connects to the broker of this address, to publish where the address says.
///
/// # Errors
/// [`ConnectError`]: the broker cannot be reached, or does not let us in.
pub fn output(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageOutput>, ConnectError> {
    match address.scheme {
        #[cfg(feature = "kafka")]
        Scheme::Kafka | Scheme::KafkaTls => kafka::output(address, settings),
        #[cfg(not(feature = "kafka"))]
        Scheme::Kafka | Scheme::KafkaTls => Err(settings.missing(address, "kafka")),
        #[cfg(feature = "mqtt")]
        Scheme::Mqtt | Scheme::Mqtts => mqtt::output(address, settings),
        #[cfg(not(feature = "mqtt"))]
        Scheme::Mqtt | Scheme::Mqtts => Err(settings.missing(address, "mqtt")),
        #[cfg(feature = "nats")]
        Scheme::Nats | Scheme::NatsTls => nats::output(address, settings),
        #[cfg(not(feature = "nats"))]
        Scheme::Nats | Scheme::NatsTls => Err(settings.missing(address, "nats")),
    }
}
