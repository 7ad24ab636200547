//! Clients that mean harm: what they send is counted by reason or refused, and everybody else gets what is theirs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately_edge::coordinator::CoordinatorConfig;
use lately_edge::element::Property;
use lately_edge::host::HostConfig;
use lately_edge::ids::{RequesterId, TaskId, WorkerId};
use lately_edge::message::{Message, Peer};
use lately_edge::requester::TaskState;
use lately_edge::task::{Area, Task, TaskError};
use lately_edge::wire;
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::coordinator::CoordinatorRun;
use lately_edge_mqtt::mosquitto::{Mosquitto, find};
use lately_edge_mqtt::process::ProcessRun;
use lately_edge_mqtt::requester::{RequesterRun, tasks};
use lately_edge_mqtt::run::stop;
use lately_edge_mqtt::store::Folder;
use lately_edge_mqtt::topic::{Sender, topic};
use lately_edge_mqtt::worker::{Fix, Fleet, Source, WorkerRun, run_fleet};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::Packet;
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Workers, and readings of each; no two alike.
const WORKERS: u64 = 10;
const READINGS: u64 = 10;
/// Messages of each bad kind.
const BAD: u64 = 1_000;

/// The cell of 100 m at that place of one row; rows lie in different cells of 1 km.
fn cell(row: u64, at: u64) -> lately_edge::cell::SmallCell {
    format!("33TWL{:03}{:03}", 700 + row * 10 % 100, 700 + at % 10).parse().unwrap()
}

#[tokio::test]
async fn a_hostile_client_is_counted_and_does_no_harm() {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    let mosquitto = Mosquitto::start("").unwrap();
    let broker = Broker::new(&mosquitto.address(), None).unwrap();
    let clock = Clock::new(20.0, Clock::system()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| Folder::open(&place.path().join(name)).unwrap();
    let noise = Property::new("noise").unwrap();

    let (stopper, stopped) = stop();
    let coordinator =
        CoordinatorRun::new(broker.clone(), clock, folder("c"), CoordinatorConfig::default());
    let coordinator = tokio::spawn(coordinator.unwrap().run(stopped.clone(), |_| ()));
    let host = ProcessRun::new(broker.clone(), clock, folder("h"), 16, HostConfig::default());
    let host = tokio::spawn(host.unwrap().run(stopped.clone(), |_| ()));
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let (posted, mut is_posted) = tokio::sync::watch::channel(false);
    let from = clock.now();
    let area = Area::Everywhere;
    let task = Task { id: TaskId(1), property: noise, area, from, until: u64::MAX, wanted: 1 };
    let requester = RequesterRun {
        broker: broker.clone(),
        clock,
        id: RequesterId(1),
        task,
        most: None,
        stays: false,
    };
    let requester = tokio::spawn(requester.run(
        stopped.clone(),
        move |arrived| {
            let readings: usize = arrived.iter().map(|batch| batch.readings.len()).sum();
            count.fetch_add(readings as u64, Ordering::Relaxed);
            Ok(())
        },
        move |view| {
            posted.send_replace(matches!(view.task, TaskState::Active(_)));
        },
    ));
    drop(stopped);
    // A reading that nobody has asked for yet is not sent.
    let is_posted = is_posted.wait_for(|&posted| posted);
    timeout(Duration::from_secs(30), is_posted).await.unwrap().unwrap();

    let flood = tokio::spawn(flood(mosquitto.port(), Arc::clone(&received)));
    // A reading every four seconds of the clock, so all the while the flood goes on.
    let begin = clock.now() + 20_000;
    let workers = (0..WORKERS).map(|number| {
        let fix = move |at: u64| Fix {
            time: begin + at * 4_000,
            cell: cell(number, at),
            readings: vec![(noise, at as f64)],
        };
        let id = WorkerId(number + 1);
        let properties = vec![noise];
        let run = WorkerRun { broker: broker.clone(), clock, id, properties, settle: 200_000 };
        (run, Source::Route(Box::new((0..READINGS).map(fix))))
    });
    let (_never, on) = stop();
    let fleet = run_fleet(workers.collect(), on, Arc::new(Fleet::default()));
    let workers = timeout(Duration::from_secs(60), fleet).await.unwrap().unwrap();
    timeout(Duration::from_secs(60), flood).await.unwrap().unwrap();
    let all = || received.load(Ordering::Relaxed) >= workers.counts.sent;
    let arrive = async {
        while !all() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), arrive).await.unwrap();
    // Time for what the broker still holds.
    sleep(Duration::from_secs(1)).await;
    stopper.stop();
    let (coordinator, host, requester) = (coordinator.await, host.await, requester.await);
    let (process, at_host) = host.unwrap().unwrap();
    let (_, at_coordinator) = coordinator.unwrap().unwrap();
    requester.unwrap().unwrap();

    assert_eq!(workers.fixes, WORKERS * READINGS);
    let kept: u64 = process.hosts().map(|host| host.counts().kept).sum();
    assert_eq!(
        (kept, received.load(Ordering::Relaxed)),
        (workers.counts.sent, workers.counts.sent)
    );
    assert!(workers.counts.sent + workers.counts.skipped == WORKERS * READINGS);
    // Everything hostile, each in its class.
    assert_eq!(at_host.dropped_for("foreign"), BAD, "{at_host:?}");
    assert_eq!(at_host.dropped_for("length"), BAD, "{at_host:?}");
    assert_eq!(at_host.dropped_for("wrong-sender"), BAD, "{at_host:?}");
    assert_eq!(at_coordinator.dropped_for("topic"), BAD, "{at_coordinator:?}");
    assert_eq!(at_host.connections, 1);
    assert_eq!(at_coordinator.connections, 1);
}

/// One requester that posts tasks without end gets its share of the coordinator's room, is told so, and leaves the rest to others.
#[tokio::test]
async fn one_requester_leaves_room_for_others() {
    const POSTED: u64 = 300;
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    let mosquitto = Mosquitto::start("").unwrap();
    let broker = Broker::new(&mosquitto.address(), None).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).unwrap();
    let (stopper, stopped) = stop();
    let config = CoordinatorConfig::default();
    let run = CoordinatorRun::new(broker.clone(), Clock::default(), folder, config).unwrap();
    let coordinator = tokio::spawn(run.run(stopped, |_| ()));
    let patience = Duration::from_secs(30);
    // What is asked before the coordinator listens has no answer.
    let listens = async {
        loop {
            if let Some(known) = tasks(&broker, &[], Duration::from_secs(1)).await.unwrap() {
                return known;
            }
        }
    };
    assert_eq!(timeout(patience, listens).await.unwrap(), Vec::new());

    let noise = Property::new("noise").unwrap();
    let task = |id| Task {
        id: TaskId(id),
        property: noise,
        area: Area::Everywhere,
        from: 0,
        until: u64::MAX,
        wanted: 1,
    };
    let refused = timeout(patience, post(mosquitto.port(), (0..POSTED).map(task).collect())).await;
    assert_eq!(refused.unwrap(), POSTED - 64);
    let id = RequesterId(14);
    let (clock, task) = (Clock::default(), task(1_000));
    let requester =
        RequesterRun { broker: broker.clone(), clock, id, task, most: None, stays: true };
    let (posted, mut is_posted) = tokio::sync::watch::channel(false);
    let (stop_requester, on) = stop();
    let requester = tokio::spawn(requester.run(
        on,
        |_| Ok(()),
        move |view| _ = posted.send_replace(matches!(view.task, TaskState::Active(_))),
    ));
    timeout(patience, is_posted.wait_for(|&posted| posted)).await.unwrap().unwrap();
    let known = tasks(&broker, &[], patience).await.unwrap().unwrap();
    let of = |requester| known.iter().filter(|(owner, _)| *owner == requester).count();
    assert_eq!((of(RequesterId(13)), of(id), known.len()), (64, 1, 65));
    stop_requester.stop();
    requester.await.unwrap().unwrap();
    stopper.stop();
    coordinator.await.unwrap().unwrap();
}

/// Posts these tasks as requester 13, and returns how many of them it was told are too many of one.
async fn post(port: u16, tasks: Vec<Task>) -> u64 {
    let requester = RequesterId(13);
    let mut options = MqttOptions::new("requester-13", "127.0.0.1", port);
    options.set_max_packet_size(Some(1 << 16));
    let (client, mut connection) = AsyncClient::new(options, 1_000);
    let answers = format!("lately/1/requester/{requester}/+");
    client.subscribe(answers, QoS::AtLeastOnce).await.unwrap();
    let to = topic(Peer::Coordinator, Sender::Requester);
    let mut left = tasks.len();
    for task in tasks {
        let mut bytes = Vec::new();
        wire::encode(&Message::Post { requester, task }, &mut bytes);
        client.publish(&to, QoS::AtLeastOnce, false, bytes).await.unwrap();
    }
    let mut refused = 0;
    while left > 0 {
        let Event::Incoming(Packet::Publish(publish)) = connection.poll().await.unwrap() else {
            continue;
        };
        match wire::decode(&publish.payload).unwrap() {
            Message::Refused { reason: TaskError::TooManyOfOne, .. } => refused += 1,
            Message::Posted { .. } => {}
            Message::Lease { .. } => continue,
            other => panic!("{other:?}"),
        }
        left -= 1;
    }
    refused
}

/// Sends nonsense, cut-off messages, messages of another role, topics that are none, and packets that are
/// longer than anybody takes, from the first reading on that has arrived.
async fn flood(port: u16, received: Arc<AtomicU64>) {
    let mut options = MqttOptions::new("hostile", "127.0.0.1", port);
    options.set_max_packet_size(Some(1 << 20));
    let (client, mut connection) = AsyncClient::new(options, 100);
    let sending = async {
        // The square of the workers: its host must be there first, or nobody would hear.
        let host = Peer::Host("33TWL77".parse().unwrap());
        let mut leave = Vec::new();
        wire::encode(&Message::Leave { worker: WorkerId(1) }, &mut leave);
        let to_host = topic(host, Sender::Worker);
        let posing = topic(host, Sender::Coordinator);
        while received.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
        for at in 0..BAD {
            let qos = QoS::AtLeastOnce;
            client.publish(&to_host, qos, false, vec![at as u8 % 0xED; 100]).await.unwrap();
            client.publish(&to_host, qos, false, leave[..leave.len() - 1].to_vec()).await.unwrap();
            client.publish(&posing, qos, false, leave.clone()).await.unwrap();
            client.publish("lately/1/coordinator/nobody", qos, false, leave.clone()).await.unwrap();
            // Kept back by the broker, or never confirmed and not counted.
            client.publish(&to_host, QoS::AtMostOnce, true, leave.clone()).await.unwrap();
            if at % 100 == 0 {
                client.publish(&to_host, qos, false, vec![0; 200_000]).await.unwrap();
            }
        }
        sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        () = sending => {}
        () = async { while connection.poll().await.is_ok() {} } => unreachable!("the broker stays"),
    }
}
