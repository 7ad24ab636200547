//! NATS JetStream: messages of a stream in, through a durable consumer, and messages for streams out.

mod consumer;
mod handed;
mod input;
mod link;
mod options;
mod output;
mod subject;
mod trouble;

use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use lately_stream::read::message::MessageInput;
use lately_stream::write::message::MessageOutput;

/// Reads the stream that the address names.
pub(crate) fn input(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageInput>, ConnectError> {
    Ok(Box::new(input::open(address, settings)?))
}

/// Publishes to the subject that the address names.
pub(crate) fn output(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageOutput>, ConnectError> {
    Ok(Box::new(output::Output::open(address, settings)?))
}
