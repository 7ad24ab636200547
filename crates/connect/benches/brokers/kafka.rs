//! Kafka: the cluster that librdkafka has for tests, in this process, and a client that only copies.

use crate::load::{record, watch};
use crate::process::{Client, Run};
use lately_connect::rdkafka;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The cluster keeps 5 MB of a partition.
const PARTITIONS: i32 = 16;

/// Messages of a run.
pub(crate) const COUNT: usize = 400_000;

/// How often it is looked how many messages have come.
const LOOK: Duration = Duration::from_millis(5);

const PATIENCE: Duration = Duration::from_secs(60);

/// How often a client that only copies waits for what it has sent, and commits.
const OFTEN: Duration = Duration::from_secs(1);

pub(crate) struct Cluster {
    mock: MockCluster<'static, DefaultProducerContext>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self { mock: MockCluster::new(1).unwrap() }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.mock.bootstrap_servers());
        config
    }

    /// Has a client bring so many messages from a topic to another. Joining a group takes seconds, so it is measured from
    /// the first messages that come on.
    pub(crate) fn through(&self, client: Client, count: usize, name: &str) -> Run {
        let (raw, clean) = (format!("raw-{name}"), format!("clean-{name}"));
        for topic in [&raw, &clean] {
            self.mock.create_topic(topic, PARTITIONS, 1).unwrap();
        }
        let producer: ThreadedProducer<_> = self
            .config()
            .set("queue.buffering.max.messages", "1000000")
            .create_with_context(DefaultProducerContext)
            .unwrap();
        for number in 0..count {
            let (text, partition) = (record(number), number as i32 % PARTITIONS);
            let message: BaseRecord<'_, str, str> =
                BaseRecord::to(&raw).payload(text.as_str()).partition(partition);
            producer.send(message).map_err(|(error, _)| error).unwrap();
        }
        producer.flush(PATIENCE).unwrap();
        let looks: BaseConsumer = self.config().create().unwrap();
        let come = || {
            let end = |partition| looks.fetch_watermarks(&clean, partition, PATIENCE).unwrap().1;
            (0..PARTITIONS).map(end).sum::<i64>() as usize
        };
        let hosts = self.mock.bootstrap_servers();
        let input = format!("kafka://{hosts}/{raw}?group={name}");
        let output = format!("kafka://{hosts}/{clean}");
        let state = std::env::temp_dir().join(format!("lately-{}-{name}", std::process::id()));
        let processes = client.run(&input, &output, &state.display().to_string());
        let started = Instant::now();
        let wait = |least: usize| loop {
            let come = come();
            if come >= least {
                return (come, Instant::now(), processes.processor());
            }
            assert!(started.elapsed() < PATIENCE, "{come} of {count} came");
            sleep(LOOK);
        };
        let (first, begun, spent) = wait(1);
        let (_, ended, spent_at_last) = wait(count);
        let memory = processes.memory("VmHWM");
        drop(processes);
        let _ = std::fs::remove_file(state);
        assert!(first < count / 4, "{first} of {count} had come when it was looked first");
        // As if all had come as fast as those that came later.
        let whole = count as f64 / (count - first) as f64;
        Run {
            seconds: (ended - begun).as_secs_f64() * whole,
            processor: (spent_at_last - spent) * whole,
            memory,
        }
    }
}

/// A cluster with this topic, in a process of its own, which says where it is. Ends when it is killed.
pub(crate) fn serve(topic: &str) {
    let cluster = Cluster::start();
    cluster.mock.create_topic(topic, 1, 1).unwrap();
    println!("{}", cluster.mock.bootstrap_servers());
    loop {
        sleep(PATIENCE);
    }
}

/// Has the program read what is published all the time, and publish to a cluster that does nothing any more.
pub(crate) fn into_a_stopped_output(time: Duration) {
    let mut output = Command::new(std::env::current_exe().unwrap());
    let mut output =
        Killed(output.args(["cluster", "clean"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut hosts = String::new();
    BufReader::new(output.0.stdout.take().unwrap()).read_line(&mut hosts).unwrap();
    let input = Cluster::start();
    input.mock.create_topic("raw", PARTITIONS, 1).unwrap();
    let producer: ThreadedProducer<_> =
        input.config().create_with_context(DefaultProducerContext).unwrap();
    let mut number = 0;
    let mut publish = |count: usize| {
        for _ in 0..count {
            let text = record(number);
            let message: BaseRecord<'_, str, str> = BaseRecord::to("raw").payload(text.as_str());
            producer.send(message).map_err(|(error, _)| error).unwrap();
            number += 1;
        }
    };
    publish(10_000);
    let (from, to) = (input.mock.bootstrap_servers(), hosts.trim());
    let state = std::env::temp_dir().join(format!("lately-{}-memory", std::process::id()));
    let client = Client::Lately { state: true };
    let (from, to) = (format!("kafka://{from}/raw?group=memory"), format!("kafka://{to}/clean"));
    let client = client.run(&from, &to, &state.display().to_string());
    sleep(Duration::from_secs(15));
    let id = output.0.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    watch(&client, time, &mut publish);
    drop(client);
    let _ = std::fs::remove_file(state);
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Nothing but librdkafka: what was delivered is committed.
pub(crate) fn copy(from: &str, to: &str) {
    let (hosts, rest) = from.trim_start_matches("kafka://").split_once('/').unwrap();
    let (raw, group) = rest.split_once("?group=").unwrap();
    let clean = to.rsplit('/').next().unwrap();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", hosts).set("enable.idempotence", "true");
    let producer: ThreadedProducer<_> = config.create_with_context(DefaultProducerContext).unwrap();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", hosts).set("group.id", group);
    config.set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
    let consumer: BaseConsumer = config.create().unwrap();
    consumer.subscribe(&[raw]).unwrap();
    let mut committed = Instant::now();
    loop {
        if let Some(message) = consumer.poll(OFTEN / 10) {
            let message = message.unwrap();
            let copy: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(clean).payload(message.payload().unwrap());
            producer.send(copy).map_err(|(error, _)| error).unwrap();
        }
        if committed.elapsed() >= OFTEN {
            producer.flush(PATIENCE).unwrap();
            // Nothing has been read yet, perhaps.
            let _ = consumer.commit_consumer_state(CommitMode::Async);
            committed = Instant::now();
        }
    }
}
