//! MQTT 5: messages of a subscription in, publications out, both at least once.

mod driver;
mod input;
mod options;
mod output;
mod session;
mod trouble;
mod unacknowledged;

use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use lately_stream::read::message::MessageInput;
use lately_stream::write::message::MessageOutput;

/// Subscribes to the filter that the address names.
pub(crate) fn input(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageInput>, ConnectError> {
    Ok(Box::new(input::open(address, settings)?))
}

/// Connects to publish to the topic that the address names.
pub(crate) fn output(
    address: &Address,
    settings: &Settings,
) -> Result<Box<dyn MessageOutput>, ConnectError> {
    Ok(Box::new(output::Output::open(address, settings)?))
}
