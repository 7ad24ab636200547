//! A cluster in the process of the test, and a client that knows nothing of ours.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::reads::SOON;
use crate::support::Folder;
use lately_connect::rdkafka;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

/// One broker.
pub struct Cluster {
    mock: MockCluster<'static, DefaultProducerContext>,
    pub client: Client,
    pub folder: Folder,
}

/// What knows nothing of our program.
#[derive(Clone)]
pub struct Client {
    hosts: String,
}

/// A message as it was gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    pub line: String,
    pub key: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl Gathered {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|one| one.0 == name).map(|one| one.1.as_str())
    }
}

impl Cluster {
    pub fn start() -> Self {
        let mock = MockCluster::new(1).unwrap();
        let hosts = mock.bootstrap_servers();
        Self { mock, client: Client { hosts }, folder: Folder::new() }
    }

    pub fn topic(&self, name: &str, partitions: i32) {
        self.mock.create_topic(name, partitions, 1).unwrap();
    }

    /// An address for our program.
    pub fn address(&self, path: &str) -> String {
        format!("kafka://{}/{path}", self.client.hosts)
    }

    /// It is away for so long.
    pub fn away(&self, time: Duration) {
        self.mock.broker_down(1).unwrap();
        std::thread::sleep(time);
        self.mock.broker_up(1).unwrap();
    }

    pub fn publish(&self, topic: &str, lines: &[String], key: Option<&str>) {
        self.client.publish(topic, lines, key, Duration::ZERO);
    }

    /// The lines of a topic, as [`Client::gathered`] waits for them.
    pub fn lines(&self, topic: &str, count: usize) -> Vec<String> {
        self.client.gathered(topic, count).into_iter().map(|one| one.line).collect()
    }
}

impl Client {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.hosts);
        config
    }

    /// Publishes lines to partitions in turn, each with its number in a header and this key, `pause` apart.
    pub fn publish(&self, topic: &str, lines: &[String], key: Option<&str>, pause: Duration) {
        let mut config = self.config();
        config.set("enable.idempotence", "true").set("message.timeout.ms", "0");
        let producer: ThreadedProducer<_> =
            config.create_with_context(DefaultProducerContext).unwrap();
        let partitions = self.partitions(topic);
        for (number, line) in lines.iter().enumerate() {
            let text = number.to_string();
            let headers = OwnedHeaders::new().insert(Header { key: "n", value: Some(&text) });
            let mut record: BaseRecord<'_, str, str> = BaseRecord::to(topic)
                .payload(line.as_str())
                .headers(headers)
                .partition(number as i32 % partitions);
            record.key = key;
            producer.send(record).map_err(|(error, _)| error).unwrap();
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        producer.flush(SOON).unwrap();
    }

    fn partitions(&self, topic: &str) -> i32 {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let metadata = consumer.fetch_metadata(Some(topic), SOON).unwrap();
        metadata.topics()[0].partitions().len() as i32
    }

    /// Waits until a topic has so many messages.
    pub fn wait_for(&self, topic: &str, count: usize) {
        let begun = Instant::now();
        let consumer: BaseConsumer = self.config().create().unwrap();
        let partitions = self.partitions(topic);
        loop {
            let ends =
                (0..partitions).map(|one| consumer.fetch_watermarks(topic, one, SOON).unwrap().1);
            let found: i64 = ends.sum();
            if found >= count as i64 {
                return;
            }
            assert!(begun.elapsed() < SOON, "{found} of {count} messages in {topic}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All that a topic has, once there are so many of it and no more come for a moment.
    pub fn gathered(&self, topic: &str, count: usize) -> Vec<Gathered> {
        let mut config = self.config();
        let consumer: BaseConsumer = config.set("group.id", "gathers").create().unwrap();
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions(topic) {
            list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
        }
        consumer.assign(&list).unwrap();
        let (mut all, begun) = (Vec::new(), Instant::now());
        let mut quiet = Instant::now();
        while all.len() < count || quiet.elapsed() < Duration::from_millis(500) {
            assert!(begun.elapsed() < SOON, "{} of {count} messages in {topic}", all.len());
            let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) else { continue };
            quiet = Instant::now();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let headers = message.headers().into_iter().flat_map(Headers::iter);
            all.push(Gathered {
                line: text(message.payload().unwrap_or_default()),
                key: message.key().map(text),
                headers: headers
                    .map(|header| (header.key.into(), text(header.value.unwrap_or_default())))
                    .collect(),
            });
        }
        all
    }
}
