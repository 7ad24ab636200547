//! Measurements, not run by default:
//! `cargo test --release -p lately-edge-mqtt --test measure -- --ignored --nocapture --test-threads 1`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately::Digester;
use lately_edge::cell::SmallCell;
use lately_edge::coordinator::CoordinatorConfig;
use lately_edge::element::{Element, Property};
use lately_edge::filter::Stamp;
use lately_edge::host::{Host, HostConfig, ResetBy};
use lately_edge::ids::{RequesterId, TaskId, WorkerId};
use lately_edge::message::{Kind, Message, Peer, Reading};
use lately_edge::rules::Rules;
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{City, Ledger, Resets, Setting, generate, run_watched};
use lately_edge::task::{Area, Task};
use lately_edge::wire;
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::coordinator::CoordinatorRun;
use lately_edge_mqtt::mosquitto::Mosquitto;
use lately_edge_mqtt::process::ProcessRun;
use lately_edge_mqtt::requester::RequesterRun;
use lately_edge_mqtt::run::{Stop, Stopper, stop};
use lately_edge_mqtt::store::Folder;
use lately_edge_mqtt::topic::{Sender, topic};
use lately_edge_mqtt::traffic::Traffic;
use lately_edge_mqtt::worker::{Fix, Fleet, Source, WorkerRun, run_fleet};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, Event, Incoming, MqttOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const MINUTE: u64 = 60_000;
const WORKERS: usize = 200;
const HOSTS: u64 = 4;
const SPEED: f64 = 60.0;
const PART: (u16, u16) = (480, 540);

type HostHandle = JoinHandle<(Vec<Host>, Traffic)>;

/// What is around workers.
struct Around {
    mosquitto: Mosquitto,
    broker: Broker,
    clock: Clock,
    place: tempfile::TempDir,
    stopper: Stopper,
    hosts: Vec<HostHandle>,
    received: Arc<AtomicU64>,
    /// Submissions that hosts have handled.
    taken: Arc<AtomicU64>,
}

impl Around {
    fn start(hosts: u64, clock: Clock, config: HostConfig) -> Self {
        let mosquitto = Mosquitto::start("").unwrap();
        let broker = Broker::new(&mosquitto.address(), None).unwrap();
        let (stopper, stopped) = stop();
        let place = tempfile::tempdir().unwrap();
        let (received, taken) = (Arc::default(), Arc::default());
        let mut around =
            Self { mosquitto, broker, clock, place, stopper, hosts: Vec::new(), received, taken };
        let coordinator = CoordinatorRun::new(
            around.broker.clone(),
            clock,
            around.folder("coordinator"),
            CoordinatorConfig::default(),
        );
        tokio::spawn(coordinator.unwrap().run(stopped.clone(), |_| ()));
        for number in 0..hosts {
            let folder = around.folder(&format!("host-{number}"));
            let broker = around.broker.clone();
            let host = ProcessRun::new(broker, clock, folder, 4096, config).unwrap();
            let taken = Arc::clone(&around.taken);
            around.hosts.push(tokio::spawn(host_process(host, stopped.clone(), taken)));
        }
        around.request(stopped);
        around
    }

    fn folder(&self, name: &str) -> Folder {
        Folder::open(&self.place.path().join(name)).unwrap()
    }

    fn request(&self, stop: Stop) {
        let (from, count) = (self.clock.now(), Arc::clone(&self.received));
        let property = noise();
        let (id, area, until) = (TaskId(1), Area::Everywhere, u64::MAX);
        let task = Task { id, property, area, from, until, wanted: 1 };
        let (broker, clock) = (self.broker.clone(), self.clock);
        let run =
            RequesterRun { broker, clock, id: RequesterId(1), task, most: None, stays: false };
        let sink = move |arrived: &[lately_edge::requester::Arrived]| {
            let readings: usize = arrived.iter().map(|batch| batch.readings.len()).sum();
            count.fetch_add(readings as u64, Ordering::Relaxed);
            Ok(())
        };
        tokio::spawn(run.run(stop, sink, |_| ()));
    }

    async fn end(self) -> (Vec<Host>, Traffic) {
        self.stopper.stop();
        let (mut all, mut traffic) = (Vec::new(), Traffic::default());
        for handle in self.hosts {
            let (hosts, its) = handle.await.unwrap();
            all.extend(hosts);
            traffic.add(&its);
        }
        (all, traffic)
    }
}

async fn host_process(run: ProcessRun, stop: Stop, taken: Arc<AtomicU64>) -> (Vec<Host>, Traffic) {
    let watch = |view: &lately_edge_mqtt::process::ProcessView<'_>| {
        let sum = view.process.hosts().map(|host| host.counts().submissions).sum();
        taken.store(sum, Ordering::Relaxed);
    };
    let (process, traffic) = run.run(stop, watch).await.unwrap();
    (process.hosts().cloned().collect(), traffic)
}

fn noise() -> Property {
    Property::new("noise").unwrap()
}

/// The first walks that are under way in that hour.
fn walks() -> Trace {
    let mut trace = generate(&City { days: 1_000, ..City::default() });
    trace
        .walks
        .retain(|walk| (PART.0..PART.1).any(|minute| walk.at(usize::from(minute)).is_some()));
    trace.walks.truncate(WORKERS);
    assert_eq!(trace.walks.len(), WORKERS);
    trace
}

/// The same second of the minute as in the simulator.
fn fixes(trace: &Trace, walk: usize, begin: u64, seed: u64) -> Vec<Fix> {
    let lot = Digester::new(seed).digest(&(walk as u32).to_le_bytes());
    let second = lot.probes(MINUTE).next().unwrap_or(0);
    let fix = |minute: u16| {
        let cell = trace.walks[walk].at(usize::from(minute))?;
        let time = begin + u64::from(minute - PART.0) * MINUTE + second;
        Some(Fix { time, cell, readings: vec![(noise(), 50.0)] })
    };
    (PART.0..PART.1).filter_map(fix).collect()
}

/// When, since the hour began, readings of each element were sent in each validity period.
type Sent = BTreeMap<(u64, Element), Vec<u64>>;

fn note(sent: &mut Sent, begin: u64, message: &Message) {
    if let Message::Submit { reading, .. } = message {
        let since = reading.time.saturating_sub(begin);
        let period = since / Rules::PAPER.validity;
        sent.entry((period, reading.element)).or_default().push(since);
    }
}

fn simulate(trace: &Trace, setting: &Setting) -> (Ledger, Sent) {
    let mut sent = Sent::new();
    let mut begin = None;
    let ledger = run_watched(trace, setting, &mut |outgoing| {
        if let Message::Submit { reading, .. } = &outgoing.message {
            let begin = *begin.get_or_insert(reading.time / 3_600_000 * 3_600_000);
            note(&mut sent, begin, &outgoing.message);
        }
    });
    (ledger, sent)
}

/// Notes what workers send to hosts, as one who listens at the broker.
async fn listen(port: u16, begin: u64, sent: Arc<Mutex<Sent>>) {
    let mut options = MqttOptions::new("listener", "127.0.0.1", port);
    options.set_receive_maximum(Some(1_000));
    let (client, mut connection) = AsyncClient::new(options, 10);
    client.subscribe("lately/1/host/+/worker", QoS::AtLeastOnce).await.unwrap();
    loop {
        if let Event::Incoming(Incoming::Publish(publish)) = connection.poll().await.unwrap() {
            note(&mut sent.lock().unwrap(), begin, &wire::decode(&publish.payload).unwrap());
        }
    }
}

/// Of which elements more or fewer readings were sent, and how close to each other: what only differs as messages
/// take time was sent within that time.
fn compare(simulated: &Sent, live: &Sent) {
    let keys: BTreeSet<_> = simulated.keys().chain(live.keys()).collect();
    let only = |one: &Sent, other: &Sent| one.keys().filter(|key| !other.contains_key(key)).count();
    println!(
        "elements of a period: {} simulated, {} live; {} and {} in one of them only",
        simulated.len(),
        live.len(),
        only(simulated, live),
        only(live, simulated)
    );
    let mut gaps = Vec::new();
    for key in keys {
        let times = |sent: &Sent| sent.get(key).cloned().unwrap_or_default();
        let (simulated, live) = (times(simulated), times(live));
        if simulated.len() != live.len() {
            let longer = if simulated.len() > live.len() { simulated } else { live };
            let gap = longer.windows(2).map(|pair| pair[1].abs_diff(pair[0])).min();
            gaps.extend(gap);
        }
    }
    gaps.sort_unstable();
    println!(
        "{} elements of a period sent more or less often; seconds between two of their readings: {:?}",
        gaps.len(),
        gaps.iter().map(|gap| gap / 1_000).collect::<Vec<_>>()
    );
}

/// What hosts tell resets to: `LATELY_RESET_BY=worker` or `square`; cells otherwise.
fn resets() -> (Resets, ResetBy) {
    match std::env::var("LATELY_RESET_BY").as_deref() {
        Ok("worker") => (Resets::Workers, ResetBy::Worker),
        Ok("square") => (Resets::Squares, ResetBy::Square),
        _ => (Resets::Cells, ResetBy::Cell),
    }
}

/// An hour of 200 workers at 60 times the speed, against the simulator with the same seed. They differ by
/// races only: live, messages take time, and another worker may measure meanwhile.
#[tokio::test]
#[ignore = "takes a minute and a half"]
async fn an_hour_is_as_the_simulator_says() {
    let trace = walks();
    let (resets, reset_by) = resets();
    let setting = Setting { part: PART, resets, ..Setting::default() };
    let (ledger, simulated) = simulate(&trace, &setting);
    let config = HostConfig {
        deltas: false,
        names: false,
        second_look: false,
        reset_by,
        ..HostConfig::default()
    };
    let clock = Clock::new(SPEED, Clock::system()).unwrap();
    let around = Around::start(HOSTS, clock, config);
    // Validity periods begin where they do in the simulator, and everybody is connected before.
    let begin = (clock.now() + 5 * MINUTE).next_multiple_of(Rules::PAPER.validity);
    let workers = (0..WORKERS).map(|walk| {
        let fixes = fixes(&trace, walk, begin, setting.seed).into_iter();
        let (broker, properties) = (around.broker.clone(), vec![noise()]);
        let id = WorkerId(walk as u64 + 1);
        (
            WorkerRun { broker, clock, id, properties, settle: 30_000 },
            Source::Route(Box::new(fixes)),
        )
    });
    let (_never, on) = stop();
    let live = Arc::new(Mutex::new(Sent::new()));
    tokio::spawn(listen(around.mosquitto.port(), begin, Arc::clone(&live)));
    let fleet = run_fleet(workers.collect(), on, Arc::new(Fleet::default())).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let received = around.received.load(Ordering::Relaxed);
    let (hosts, traffic) = around.end().await;
    let sum = |count: fn(&Host) -> u64| hosts.iter().map(count).sum::<u64>();
    let kept = sum(|host| host.counts().kept);
    let rows = [
        ("readings", ledger.readings, fleet.counts.sent + fleet.counts.skipped),
        ("unasked", ledger.unasked, fleet.counts.unasked),
        ("sent", ledger.sent, fleet.counts.sent),
        ("kept", ledger.kept, kept),
        ("redundant", ledger.redundant, sum(|host| host.counts().redundant)),
        ("lost", ledger.lost_at_host, sum(|host| host.counts().lost)),
        ("announce", ledger.of(Kind::Announce).count, fleet.traffic.sent(Kind::Announce)),
        ("assign", ledger.of(Kind::Assign).count, traffic.sent(Kind::Assign)),
        ("submit", ledger.of(Kind::Submit).count, fleet.traffic.sent(Kind::Submit)),
        ("update", ledger.of(Kind::Update).count, traffic.sent(Kind::Update)),
        (
            "reset",
            ledger.of(Kind::Reset).count,
            traffic.sent(Kind::Reset) + traffic.sent(Kind::ResetAll),
        ),
    ];
    println!("{:<10} {:>9} {:>9}", "", "simulated", "live");
    for (name, simulated, live) in rows {
        println!("{name:<10} {simulated:>9} {live:>9}");
    }
    println!("received by the requester {received}, squares {}", hosts.len());
    compare(&simulated, &live.lock().unwrap());
    assert_eq!(received, kept);
    for (name, simulated, live) in rows {
        // Live, workers leave when their walk ends, and the hour's own end is one of a period too. A whole square is also
        // told when it begins, and at the end although nobody is there.
        let (percent, more) = match (name, reset_by) {
            ("reset", ResetBy::Square) => (10, 3 * hosts.len() as u64),
            ("reset", _) => (10, 2),
            _ => (2, 2),
        };
        let most = (simulated * percent / 100).max(more);
        assert!(simulated.abs_diff(live) <= most, "{name}: {simulated} {live}");
    }
}

/// Readings a second that one host takes: 20 clients send as fast as the broker confirms.
#[tokio::test]
#[ignore = "a measurement"]
async fn load_of_one_host() {
    const CLIENTS: u64 = 20;
    const EACH: u64 = 10_000;
    let around = Around::start(1, Clock::default(), HostConfig::default());
    let first: SmallCell = "33TWL700700".parse().unwrap();
    place(&around, first).await;
    let start = Instant::now();
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        clients.push(tokio::spawn(pour(around.mosquitto.port(), client, EACH)));
    }
    for client in clients {
        client.await.unwrap();
    }
    let sent = start.elapsed();
    let all = CLIENTS * EACH;
    // Known to a second, the host's tick.
    while around.taken.load(Ordering::Relaxed) < all && start.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(20)).await;
    }
    let taken = start.elapsed();
    let (hosts, traffic) = around.end().await;
    let counts = *hosts[0].counts();
    println!(
        "{all} readings: sent in {sent:.2?}, taken in {taken:.2?}: {:.0} a second; {counts:?}",
        counts.submissions as f64 / taken.as_secs_f64()
    );
    println!("{traffic:?}");
    assert!(counts.submissions >= all);
}

/// Waits until the square has a host and a task: one that was posted before the coordinator had subscribed is
/// posted again after ten seconds.
async fn place(around: &Around, cell: SmallCell) {
    let fix = Fix { time: 0, cell, readings: vec![(noise(), 1.0)] };
    let (broker, clock) = (around.broker.clone(), around.clock);
    let (id, properties) = (WorkerId(u64::MAX), vec![noise()]);
    let run = WorkerRun { broker, clock, id, properties, settle: 30_000 };
    let (_never, on) = stop();
    let route = Source::Route(Box::new(std::iter::once(fix)));
    let summary = run.run(on, route, Arc::new(Fleet::default())).await.unwrap();
    assert_eq!(summary.counts.sent, 1);
}

/// Sends readings of all 100 m cells of the square in turn, most of which are redundant.
async fn pour(port: u16, client: u64, each: u64) {
    let mut options = MqttOptions::new(format!("pour-{client}"), "127.0.0.1", port);
    options.set_outgoing_inflight_upper_limit(100);
    let (sender, mut connection) = AsyncClient::new(options, 100);
    let to = topic(Peer::Host("33TWL77".parse().unwrap()), Sender::Worker);
    let sending = async {
        for number in 0..each {
            let at = number * 20 + client;
            let name = format!("33TWL7{:02}7{:02}", at / 100 % 100, at % 100);
            let element = Element { cell: name.parse().unwrap(), property: noise() };
            let reading = Reading { element, value: 1.0, time: Clock::system() };
            let (worker, stamp) = (WorkerId(client), Stamp::default());
            let message = Message::Submit {
                worker,
                sequence: number + 1,
                sent: reading.time,
                stamp,
                refresh: false,
                reading,
            };
            let mut bytes = Vec::new();
            wire::encode(&message, &mut bytes);
            sender.publish(&to, QoS::AtLeastOnce, false, bytes).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let confirmed = async {
        let mut confirmed = 0;
        while confirmed < each {
            if let Event::Incoming(Incoming::PubAck(_)) = connection.poll().await.unwrap() {
                confirmed += 1;
            }
        }
    };
    tokio::select! {
        () = sending => {}
        () = confirmed => {}
    }
}
