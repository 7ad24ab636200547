//! Kafka: messages of topics in, through a consumer group, and messages for topics out.

mod assigned;
mod input;
mod options;
mod output;
mod trouble;

use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use lately_stream::read::message::MessageInput;
use lately_stream::write::message::MessageOutput;

/// Reads the topics that the address names.
pub(crate) fn input(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageInput>, ConnectError> {
    Ok(Box::new(input::open(address, settings)?))
}

/// Publishes to the topic that the address names.
pub(crate) fn output(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageOutput>, ConnectError> {
    Ok(Box::new(output::Output::open(address, settings)?))
}
