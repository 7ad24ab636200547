//! The seam to brokers: records that go out one by one, as messages.

use crate::judge::class::Class;
use crate::record::{Batch, Envelope};
use std::io;
use std::sync::Arc;

/// What is known of a record that goes out as a message.
#[derive(Clone, Debug)]
pub struct About {
    /// What became of it.
    pub class: Class,
    /// Why, if it is invalid.
    pub reason: Option<String>,
    /// What surrounded the message that it came in, if it came in one, and how many records of that came before it.
    pub from: Option<(Arc<Envelope>, u32)>,
}

impl About {
    /// Nothing but its class.
    pub(super) fn class(class: Class) -> Self {
        Self { class, reason: None, from: None }
    }

    /// What is known of a record of a batch.
    pub(super) fn of(batch: &Batch, index: usize, class: Class) -> Self {
        let from = batch.parcel.as_ref().and_then(|parcel| parcel.of.get(index)).cloned();
        Self { class, reason: None, from }
    }
}

/// Takes records for a broker.
///
/// # Contract
/// - [`MessageOutput::send`] may return before the broker has the message, and waits while too many are on their way.
/// - When [`MessageOutput::confirm`] has returned without an error, the broker has all that was sent.
/// - A connection that is lost is made again, by itself, and what the broker had not confirmed is sent again.
pub trait MessageOutput: Send {
    /// Sends a record, without its line end.
    ///
    /// # Errors
    /// The broker refuses it, or an earlier one, or cannot be reached any more.
    fn send(&mut self, record: &[u8], about: &About) -> io::Result<()>;

    /// Waits until the broker has confirmed all that was sent.
    ///
    /// # Errors
    /// As [`MessageOutput::send`].
    fn confirm(&mut self) -> io::Result<()>;
}
