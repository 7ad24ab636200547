//! Messages for topics, each kept until the cluster has confirmed it.

use super::input::find_topic;
use super::options::{OUTGOING_KBYTES, Writer, name_of};
use super::trouble::{Watch, no_topic};
use crate::address::Address;
use crate::error::ConnectError;
use crate::labels;
use crate::queue::Progress;
use crate::settings::Settings;
use lately_stream::write::message::{About, MessageOutput};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use std::io;
use std::thread;
use std::time::Duration;

/// What tells a record from all others, for whoever reads the topic: it is the same when the record is published again
/// after a crash.
const ID: &str = "lately-id";

/// How long it is waited before it is looked again whether there is room.
const ROOM: Duration = Duration::from_millis(1);

/// Publishes records.
pub(super) struct Output {
    writer: Writer,
    producer: ThreadedProducer<Deliveries>,
    sent: u64,
}

/// What becomes of what was sent.
struct Deliveries {
    watch: Watch,
    progress: Progress,
}

impl ClientContext for Deliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
        // Nothing can be published any more.
        if let Some(why) = self.watch.lasting() {
            self.progress.fail(&why);
        }
    }

    fn stats_raw(&self, _: &[u8]) {}
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.watch.works();
                self.progress.confirm(1);
            }
            Err((error, message)) => {
                use rdkafka::message::Message as _;
                self.progress.fail(&refused(error, message.topic(), message.payload_len()));
            }
        }
    }
}

/// Why a record was not published.
fn refused(error: &KafkaError, topic: &str, length: usize) -> String {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
            format!(
                "a record of {length} bytes for {topic}, or the batch of records it was sent in, is larger than the broker takes; let it take more (max.message.bytes of the topic), or limit records with --max-line, beyond which they are invalid"
            )
        }
        Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
            no_topic(topic)
        }
        Some(code) => format!("the broker refuses a message to {topic}: {code}"),
        None => format!("the broker refuses a message to {topic}: {error}"),
    }
}

impl Output {
    pub(super) fn open(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        let writer = Writer::new(address)?;
        let config = Writer::config(address, settings)?;
        let failed = |why: &str| ConnectError::Broker(format!("{address}: {why}"));
        let watch = Watch::new(address.to_string(), settings.tell.clone());
        let deliveries = Deliveries { watch, progress: Progress::default() };
        let producer: ThreadedProducer<_> =
            config.create_with_context(deliveries).map_err(|error| failed(&error.to_string()))?;
        if let Some(topic) = writer.topic.fixed() {
            // Its thread hears what the client has to tell.
            let watch = &producer.context().watch;
            find_topic(producer.client(), watch, topic, || {}).map_err(|why| failed(&why))?;
        }
        Ok(Self { writer, producer, sent: 0 })
    }

    /// The headers of a record, and its id where its message has one.
    fn headers(about: &About) -> OwnedHeaders {
        let mut headers = OwnedHeaders::new();
        for (name, value) in labels::headers(about).iter().filter(|(name, _)| name != ID) {
            headers = headers.insert(Header { key: name, value: Some(value) });
        }
        if let Some((envelope, index)) = &about.from
            && !envelope.id.is_empty()
        {
            let id = format!("{}/{index}/{}", envelope.id, about.class.name());
            headers = headers.insert(Header { key: ID, value: Some(&id) });
        }
        headers
    }
}

impl MessageOutput for Output {
    fn send(&mut self, record: &[u8], about: &About) -> io::Result<()> {
        let progress = &self.producer.context().progress;
        let envelope = about.from.as_ref().map(|(envelope, _)| &**envelope);
        let topic = name_of(&self.writer.topic.fill(envelope, "none"));
        if record.len() > OUTGOING_KBYTES << 10 {
            return Err(io::Error::other(format!(
                "a record of {} bytes for {topic} is longer than can be sent; limit records with --max-line, beyond which they are invalid",
                record.len()
            )));
        }
        let made = self.writer.key.as_ref().map(|key| key.fill(envelope, "none").into_bytes());
        let key = made.as_deref().or(envelope.and_then(|envelope| envelope.key.as_deref()));
        let mut message = BaseRecord::to(&topic).payload(record).headers(Self::headers(about));
        message.key = key;
        loop {
            progress.check(0, record.len(), &topic)?;
            match self.producer.send(message) {
                Ok(()) => break,
                Err((error, unsent)) => {
                    if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                        return Err(io::Error::other(refused(&error, &topic, record.len())));
                    }
                    message = unsent;
                    thread::sleep(ROOM);
                }
            }
        }
        self.sent += 1;
        Ok(())
    }

    fn confirm(&mut self) -> io::Result<()> {
        self.producer.context().progress.wait(self.sent)
    }
}
