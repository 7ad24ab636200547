//! Loads a broker with messages, and waits until they have come out.

use crate::brokers::{Broker, Kind};
use crate::process::{Client, Processes, Run};
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, PublishOptions, QoS};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::time::sleep;

/// How often it is looked whether all have come.
const LOOK: Duration = Duration::from_millis(20);

/// A record, which no other one equals.
pub(crate) fn record(number: usize) -> String {
    let (minute, second) = (number / 60_000 % 60, number / 1_000 % 60);
    let (tag, milliseconds) = (number * 7_919 % 100_003, number % 1_000);
    format!(
        r#"{{"id":"{number:08}","t":"2026-11-29T08:{minute:02}:{second:02}.{milliseconds:03}Z","tag":"3034257BF461A800{tag:08}","rssi":-55.5}}"#
    )
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Has a client bring so many messages through a broker.
pub(crate) fn through(broker: &Broker, client: Client, count: usize, reader: &str) -> Run {
    let arrivals = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&arrivals);
    let runtime = runtime();
    runtime.block_on(async {
        let context = prepare(broker, reader).await;
        fill(broker, context.as_ref(), 0..count).await;
        if broker.kind == Kind::Mqtt {
            collect(broker, counter).await;
        }
        let begun = Instant::now();
        let processes = client.start(broker, broker, reader);
        loop {
            sleep(LOOK).await;
            let come = match &context {
                Some(context) => messages(context).await,
                None => arrivals.load(Ordering::Relaxed),
            };
            assert!(begun.elapsed() < Duration::from_secs(120), "{come} of {count} came");
            if come >= count {
                break;
            }
        }
        Run {
            seconds: begun.elapsed().as_secs_f64(),
            processor: processes.processor(),
            memory: processes.memory("VmHWM"),
        }
    })
}

/// Has the program read what is published all the time, and publish to a broker that does nothing any more.
pub(crate) fn into_a_stopped_output(input: &Broker, output: &Broker, time: Duration) {
    runtime().block_on(async {
        let context = prepare(input, "memory").await;
        let _other = prepare(output, "nobody").await;
        let client = Client::Lately { state: true }.start(input, output, "memory");
        fill(input, context.as_ref(), 0..10_000).await;
        sleep(Duration::from_secs(2)).await;
        output.stop();
        let mut number = 10_000;
        watch_meanwhile(&client, time, async |count| {
            fill(input, context.as_ref(), number..number + count).await;
            number += count;
        })
        .await;
    });
}

/// Prints what memory a client takes while 1,000 messages a second are published.
async fn watch_meanwhile(client: &Processes, time: Duration, mut publish: impl AsyncFnMut(usize)) {
    println!("| after | published meanwhile | memory |\n|---:|---:|---:|");
    let (begun, mut count, mut look) = (Instant::now(), 0, Duration::ZERO);
    while begun.elapsed() < time {
        if begun.elapsed() >= look {
            let memory = client.memory("VmRSS") as f64 / 1e6;
            println!("| {} s | {count} | {memory:.1} MB |", look.as_secs());
            look += time / 6;
        }
        publish(500).await;
        count += 500;
        sleep(Duration::from_millis(500)).await;
    }
    let memory = client.memory("VmHWM") as f64 / 1e6;
    println!("\nAt most {memory:.1} MB.");
}

/// The same for what publishes without waiting.
pub(crate) fn watch(client: &Processes, time: Duration, publish: &mut dyn FnMut(usize)) {
    runtime().block_on(watch_meanwhile(client, time, async |count| publish(count)));
}

/// Has the broker keep messages for this reader.
async fn prepare(broker: &Broker, reader: &str) -> Option<Context> {
    match broker.kind {
        Kind::Mqtt => {
            let mut options = options(broker, reader);
            options.set_clean_start(true).set_session_expiry_interval(Some(3600));
            let (client, mut events) =
                AsyncClient::builder(options).capacity(10).try_build().unwrap();
            client.subscribe("raw", QoS::AtLeastOnce).await.unwrap();
            while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
            None
        }
        Kind::Nats => {
            let address = format!("nats://127.0.0.1:{}", broker.port);
            let context = jetstream::new(async_nats::connect(address).await.unwrap());
            for (name, subject) in [("RAW", "raw"), ("CLEAN", "clean")] {
                let _ = context.delete_stream(name).await;
                let subjects = vec![subject.into()];
                let config = Config { name: name.into(), subjects, ..Config::default() };
                context.create_stream(config).await.unwrap();
            }
            Some(context)
        }
    }
}

/// Publishes these records; returns when the broker has them.
async fn fill(broker: &Broker, context: Option<&Context>, records: std::ops::Range<usize>) {
    if let Some(context) = context {
        let numbers: Vec<_> = records.collect();
        for some in numbers.chunks(500) {
            let mut sent = Vec::new();
            for number in some {
                sent.push(context.publish("raw", record(*number).into()).await.unwrap());
            }
            for confirmation in sent {
                confirmation.await.unwrap();
            }
        }
        return;
    }
    let (client, mut events) =
        AsyncClient::builder(options(broker, "filler")).capacity(100).try_build().unwrap();
    let driver = tokio::spawn(async move { while events.poll().await.is_ok() {} });
    let mut sent = Vec::new();
    for number in records {
        let options = PublishOptions::new(QoS::AtLeastOnce);
        sent.push(client.publish_tracked("raw", record(number), options).await.unwrap());
    }
    for notice in sent {
        notice.wait_completion_async().await.unwrap();
    }
    driver.abort();
}

/// Counts what is published to the output.
async fn collect(broker: &Broker, arrivals: Arc<AtomicUsize>) {
    let (client, mut events) =
        AsyncClient::builder(options(broker, "collector")).capacity(10).try_build().unwrap();
    client.subscribe("clean", QoS::AtMostOnce).await.unwrap();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let mut ready = Some(ready);
    tokio::spawn(async move {
        // Its client would end with this.
        let _client = client;
        while let Ok(event) = events.poll().await {
            match event {
                Event::Incoming(Packet::Publish(_)) => {
                    arrivals.fetch_add(1, Ordering::Relaxed);
                }
                Event::Incoming(Packet::SubAck(_)) => {
                    ready.take().map(|ready| ready.send(()));
                }
                _ => {}
            }
        }
    });
    is_ready.await.unwrap();
}

fn options(broker: &Broker, name: &str) -> MqttOptions {
    let mut options = MqttOptions::new(name, ("127.0.0.1", broker.port));
    options.set_clean_start(true).set_outgoing_inflight_upper_limit(1000);
    options
}

/// Messages that have come to the output.
async fn messages(context: &Context) -> usize {
    let stream = context.get_stream("CLEAN").await.unwrap();
    usize::try_from(stream.cached_info().state.messages).unwrap()
}
