//! Messages a second through `lately dedup`, and processor time for each, compared with clients that only copy; and memory
//! while an output is stopped. Needs mosquitto and nats-server (Kafka's cluster comes with librdkafka), and the program
//! built with `--release`:
//!
//! ```sh
//! cargo build --release -p lately-cli --features kafka,mqtt,nats
//! cargo bench -p lately-connect --features kafka,mqtt,nats --bench brokers            # all of it
//! cargo bench -p lately-connect --features kafka,mqtt,nats --bench brokers -- memory 600
//! ```
//!
//! A broker is loaded with messages while nobody reads; then a client is started, and it is measured how long it takes
//! until all have come out at the other end. Each message is one record, and no two are equal, so that all are forwarded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that fails ends"
)]

mod brokers;
mod copy;
mod kafka;
mod load;
mod process;

use brokers::{Broker, Kind};
use process::{Client, Run};
use std::time::Duration;

/// Messages of a run.
const COUNT: usize = 100_000;

/// Runs of each client, by turns; the median counts.
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["copy", from, to] => copy::ours(from, to),
        ["copy-nats", from, to] => copy::nats(from, to, false),
        ["copy-nats-ids", from, to] => copy::nats(from, to, true),
        ["copy-kafka", from, to] => kafka::copy(from, to),
        ["cluster", topic] => kafka::serve(topic),
        ["memory", seconds] => memory(Duration::from_secs(seconds.parse().expect("seconds"))),
        ["speed"] => speed(),
        [] => {
            speed();
            memory(Duration::from_secs(60));
        }
        _ => panic!("usage: [speed | memory SECONDS]"),
    }
}

/// A client, and what it is called.
type Named = (&'static str, Client);

/// The program and its connections, and these others.
fn clients(others: &[Named]) -> Vec<Named> {
    let ours = [
        ("lately dedup", Client::Lately { state: false }),
        ("lately dedup --state", Client::Lately { state: true }),
        ("our connections, copying", Client::Ours),
    ];
    let others = others.iter().copied().filter(|(_, client)| client.is_there());
    ours.into_iter().chain(others).collect()
}

fn speed() {
    for kind in [Kind::Mqtt, Kind::Nats] {
        let Some(broker) = Broker::start(kind, "speed") else { continue };
        let clients = match kind {
            Kind::Mqtt => clients(&[("mosquitto_sub \\| mosquitto_pub", Client::Mosquitto)]),
            Kind::Nats => clients(&[
                ("async-nats, copying with ids", Client::Nats { ids: true }),
                ("async-nats, copying without", Client::Nats { ids: false }),
            ]),
        };
        by_turns(&format!("{kind:?}"), COUNT, &clients, |client, name| {
            load::through(&broker, client, COUNT, name)
        });
    }
    let (cluster, others) = (kafka::Cluster::start(), [("librdkafka, copying", Client::Kafka)]);
    by_turns("Kafka", kafka::COUNT, &clients(&others), |client, name| {
        cluster.through(client, kafka::COUNT, name)
    });
}

/// Has the clients run by turns, and prints the medians.
fn by_turns(broker: &str, count: usize, clients: &[Named], run: impl Fn(Client, &str) -> Run) {
    let mut runs: Vec<Vec<Run>> = clients.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for (at, (name, client)) in clients.iter().enumerate() {
            let run = run(*client, &format!("{round}-{at}"));
            eprintln!("{broker} {name}: {run:?}");
            runs[at].push(run);
        }
    }
    println!("\n## {broker}: {count} messages of {} bytes\n", load::record(0).len());
    println!(
        "| client | messages a second | processor time per message | peak memory |\n|---|---:|---:|---:|"
    );
    for ((name, _), runs) in clients.iter().zip(&mut runs) {
        let median = Run::median(runs);
        println!(
            "| {name} | {:.0} | {:.1} µs | {:.1} MB |",
            count as f64 / median.seconds,
            median.processor * 1e6 / count as f64,
            median.memory as f64 / 1e6,
        );
    }
}

/// What the program takes while its output is stopped and its input continues.
fn memory(time: Duration) {
    for kind in [Kind::Mqtt, Kind::Nats] {
        let (Some(input), Some(output)) = (Broker::start(kind, "in"), Broker::start(kind, "out"))
        else {
            continue;
        };
        println!("\n## {kind:?}: memory while the output is stopped\n");
        load::into_a_stopped_output(&input, &output, time);
    }
    println!("\n## Kafka: memory while the output is stopped\n");
    kafka::into_a_stopped_output(time);
}
