//! Users, passwords, the access list of `docs/edge-mqtt.md` and TLS, with a real mosquitto.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately_edge::coordinator::CoordinatorConfig;
use lately_edge::element::Property;
use lately_edge::host::HostConfig;
use lately_edge::ids::{RequesterId, TaskId, WorkerId};
use lately_edge::message::Peer;
use lately_edge::requester::TaskState;
use lately_edge::task::{Area, Task};
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::coordinator::CoordinatorRun;
use lately_edge_mqtt::mosquitto::{Mosquitto, find};
use lately_edge_mqtt::process::ProcessRun;
use lately_edge_mqtt::requester::RequesterRun;
use lately_edge_mqtt::run::{RunError, stop};
use lately_edge_mqtt::store::Folder;
use lately_edge_mqtt::topic::{Address, Sender, filter, topic};
use lately_edge_mqtt::worker::{Fix, Fleet, Source, WorkerRun, run_fleet};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, PubAckReason};
use rumqttc::v5::{AsyncClient, Event, EventLoop, MqttOptions};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
const WORKERS: u64 = 4;
/// Of each worker; no two alike.
const READINGS: u64 = 5;

/// The access list as the documentation has it.
fn access_list() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/edge-mqtt.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Who may publish").unwrap();
    section.split("```").nth(1).unwrap().trim_start().to_owned()
}

/// The password of a user.
fn password(user: &str) -> String {
    format!("secret of {user}")
}

/// A broker that knows users and what they may do, and its files. `None`, and says so, where there is none.
fn guarded() -> Option<(Mosquitto, TempDir)> {
    let Some(program) = find() else {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return None;
    };
    let place = tempfile::tempdir().unwrap();
    let (passwords, access) = (place.path().join("passwords"), place.path().join("access"));
    let users = ["coordinator", "host", "requester"].map(str::to_owned);
    let workers = (1..=WORKERS).map(|number| WorkerId(number).to_string());
    let lines =
        users.into_iter().chain(workers).map(|user| format!("{user}:{}\n", password(&user)));
    fs::write(&passwords, lines.collect::<String>()).unwrap();
    fs::write(&access, access_list()).unwrap();
    // It comes with the broker, or beside it in a folder for everybody.
    let beside = program.with_file_name("mosquitto_passwd");
    let hash = if beside.is_file() { beside } else { "mosquitto_passwd".into() };
    match Command::new(hash).arg("-U").arg(&passwords).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            eprintln!("skipped: mosquitto_passwd cannot be run: {error}");
            return None;
        }
    }
    // A broker that root starts would become another user, who cannot read the files.
    let settings = format!(
        "user root\nallow_anonymous false\npassword_file {}\nacl_file {}",
        passwords.display(),
        access.display()
    );
    Some((Mosquitto::start(&settings).unwrap(), place))
}

fn login(mosquitto: &Mosquitto, user: &str) -> Broker {
    Broker::new(&mosquitto.address(), None).unwrap().with_login(user, &password(user))
}

fn noise() -> Property {
    Property::new("noise").unwrap()
}

fn task(clock: Clock) -> Task {
    let (id, area, from) = (TaskId(1), Area::Everywhere, clock.now());
    Task { id, property: noise(), area, from, until: u64::MAX, wanted: 1 }
}

fn worker(broker: Broker, clock: Clock, number: u64, begin: u64) -> (WorkerRun, Source) {
    let fix = move |at: u64| Fix {
        time: begin + at * 2_000,
        // Rows that lie in different cells of 1 km.
        cell: format!("33TWL{:03}{:03}", 700 + number * 10, 700 + at).parse().unwrap(),
        readings: vec![(noise(), at as f64)],
    };
    let (id, properties) = (WorkerId(number), vec![noise()]);
    let run = WorkerRun { broker, clock, id, properties, settle: 200_000 };
    (run, Source::Route(Box::new((0..READINGS).map(fix))))
}

#[tokio::test]
async fn every_role_works_with_the_access_list_of_the_documentation() {
    let Some((mosquitto, place)) = guarded() else { return };
    let clock = Clock::new(20.0, Clock::system()).unwrap();
    let folder = |name: &str| Folder::open(&place.path().join(name)).unwrap();
    let (stopper, stopped) = stop();
    let coordinator = login(&mosquitto, "coordinator");
    let coordinator =
        CoordinatorRun::new(coordinator, clock, folder("c"), CoordinatorConfig::default());
    let coordinator = tokio::spawn(coordinator.unwrap().run(stopped.clone(), |_| ()));
    let host =
        ProcessRun::new(login(&mosquitto, "host"), clock, folder("h"), 16, HostConfig::default());
    let host = tokio::spawn(host.unwrap().run(stopped.clone(), |_| ()));
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let (posted, mut is_posted) = tokio::sync::watch::channel(false);
    let (broker, id) = (login(&mosquitto, "requester"), RequesterId(1));
    let requester = RequesterRun { broker, clock, id, task: task(clock), most: None, stays: false };
    let requester = tokio::spawn(requester.run(
        stopped,
        move |arrived| {
            let readings: usize = arrived.iter().map(|batch| batch.readings.len()).sum();
            count.fetch_add(readings as u64, Ordering::Relaxed);
            Ok(())
        },
        move |view| {
            posted.send_replace(matches!(view.task, TaskState::Active(_)));
        },
    ));
    // A reading that nobody has asked for yet is not sent.
    timeout(PATIENCE, is_posted.wait_for(|&posted| posted)).await.unwrap().unwrap();
    let begin = clock.now() + 10_000;
    let workers = (1..=WORKERS).map(|number| {
        let broker = login(&mosquitto, &WorkerId(number).to_string());
        worker(broker, clock, number, begin)
    });
    let (_never, on) = stop();
    let fleet = run_fleet(workers.collect(), on, Arc::new(Fleet::default()));
    let workers = timeout(PATIENCE, fleet).await.unwrap().unwrap();
    let arrive = async {
        while received.load(Ordering::Relaxed) < WORKERS * READINGS {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, arrive).await.unwrap();
    // The last words of the workers.
    sleep(Duration::from_millis(500)).await;
    stopper.stop();
    let (process, at_host) = host.await.unwrap().unwrap();
    let (_, at_coordinator) = coordinator.await.unwrap().unwrap();
    requester.await.unwrap().unwrap();

    assert_eq!(workers.counts.sent, WORKERS * READINGS);
    assert_eq!(workers.traffic.connections, WORKERS);
    assert_eq!(process.hosts().map(|host| host.counts().kept).sum::<u64>(), WORKERS * READINGS);
    for (sent, kind) in [
        (&at_coordinator, lately_edge::message::Kind::Place),
        (&at_host, lately_edge::message::Kind::Assign),
        (&at_host, lately_edge::message::Kind::Results),
        (&workers.traffic, lately_edge::message::Kind::Leave),
    ] {
        assert!(sent.sent(kind) > 0, "{kind:?}");
    }
    assert_eq!(at_host.received(lately_edge::message::Kind::Leave), WORKERS, "{at_host:?}");
}

/// What a runtime ends with, told that it has no business here.
#[track_caller]
fn refused<T>(ended: Result<Result<T, RunError>, tokio::time::error::Elapsed>, role: &str) {
    match ended.map(|ended| ended.err()) {
        Ok(Some(RunError::Refused(why))) => {
            assert!(why.contains("the broker refuses the connection"), "{role}: {why}");
            assert!(why.contains("user or password"), "{role}: {why}");
        }
        Ok(other) => panic!("{role}: {other:?}"),
        Err(_) => panic!("{role} tries for ever"),
    }
}

#[tokio::test]
async fn a_wrong_password_ends_every_role() {
    let Some((mosquitto, place)) = guarded() else { return };
    let clock = Clock::default();
    let folder = |name: &str| Folder::open(&place.path().join(name)).unwrap();
    let broker = Broker::new(&mosquitto.address(), None).unwrap();
    let wrong = broker.clone().with_login("coordinator", &password("host"));
    for (broker, folder) in [(&wrong, folder("wrong")), (&broker, folder("none"))] {
        let (_never, stop) = stop();
        let run = CoordinatorRun::new(broker.clone(), clock, folder, CoordinatorConfig::default());
        refused(timeout(PATIENCE, run.unwrap().run(stop, |_| ())).await, "coordinator");
    }
    let (_never, on) = stop();
    let run =
        ProcessRun::new(wrong.clone(), clock, folder("h"), 16, HostConfig::default()).unwrap();
    refused(timeout(PATIENCE, run.run(on.clone(), |_| ())).await, "host");
    let (broker, id) = (wrong.clone(), RequesterId(1));
    let run = RequesterRun { broker, clock, id, task: task(clock), most: None, stays: false };
    refused(timeout(PATIENCE, run.run(on.clone(), |_| Ok(()), |_| ())).await, "requester");
    let workers = vec![worker(wrong, clock, 1, clock.now() + 3_600_000)];
    refused(timeout(PATIENCE, run_fleet(workers, on, Arc::default())).await, "worker");
}

#[tokio::test]
async fn what_the_access_list_denies_is_counted() {
    let Some((mosquitto, _place)) = guarded() else { return };
    let clock = Clock::default();
    // A worker's login, which may not post tasks.
    let (broker, id) = (login(&mosquitto, &WorkerId(1).to_string()), RequesterId(1));
    let (stopper, stopped) = stop();
    let run = RequesterRun { broker, clock, id, task: task(clock), most: None, stays: false };
    let run = run.run(
        stopped,
        |_| Ok(()),
        |view| {
            if view.link.traffic.dropped_for("not-authorised") > 0 {
                stopper.stop();
            }
        },
    );
    let (_, traffic) = timeout(PATIENCE, run).await.unwrap().unwrap();
    assert_eq!(traffic.connections, 1);
}

/// A client that does as it likes, as a user.
struct Anybody {
    client: AsyncClient,
    connection: EventLoop,
}

impl Anybody {
    fn new(mosquitto: &Mosquitto, user: &str) -> Self {
        let mut options = MqttOptions::new(format!("any-{user}"), "127.0.0.1", mosquitto.port());
        options.set_credentials(user, password(user));
        let (client, connection) = AsyncClient::new(options, 16);
        Self { client, connection }
    }

    /// The next packet that is not about the connection.
    async fn next(&mut self) -> Packet {
        let next = async {
            loop {
                match self.connection.poll().await.unwrap() {
                    Event::Incoming(Packet::ConnAck(_) | Packet::PingResp(_)) => {}
                    Event::Incoming(packet) => return packet,
                    Event::Outgoing(_) => {}
                }
            }
        };
        timeout(PATIENCE, next).await.unwrap()
    }

    /// Does the broker take a message to that topic?
    async fn may_publish(&mut self, topic: &str) -> bool {
        self.client.publish(topic, QoS::AtLeastOnce, false, "words").await.unwrap();
        match self.next().await {
            Packet::PubAck(answer) => match answer.reason {
                PubAckReason::Success | PubAckReason::NoMatchingSubscribers => true,
                PubAckReason::NotAuthorized => false,
                other => panic!("{topic}: {other:?}"),
            },
            other => panic!("{topic}: {other:?}"),
        }
    }

    async fn subscribe(&mut self, filter: &str) {
        self.client.subscribe(filter, QoS::AtLeastOnce).await.unwrap();
        assert!(matches!(self.next().await, Packet::SubAck(_)));
    }
}

#[tokio::test]
async fn who_poses_as_somebody_else_is_denied() {
    let Some((mosquitto, _place)) = guarded() else { return };
    let (one, other) = (WorkerId(1), WorkerId(2));
    let host = Peer::Host("33TWL77".parse().unwrap());
    let cell = Peer::Cell("33TWL7573".parse().unwrap());
    let square = Peer::Square("33TWL77".parse().unwrap());
    let process = Peer::Process(lately_edge::ids::ProcessId(1));
    let requester = Peer::Requester(RequesterId(1));
    let peers = [
        Address::Gone,
        Peer::Coordinator.into(),
        process.into(),
        host.into(),
        cell.into(),
        square.into(),
        requester.into(),
        Peer::Worker(one).into(),
        Peer::Worker(other).into(),
    ];
    let (coordinator, gone) = (Address::from(Peer::Coordinator), Address::Gone);
    let mut users = [one.to_string().as_str(), "requester", "host", "coordinator"]
        .map(|user| Anybody::new(&mosquitto, user));
    for whom in peers {
        for by in [Sender::Coordinator, Sender::Process, Sender::Worker, Sender::Requester] {
            let said = topic(whom, by);
            let to_one = matches!(whom, Address::Peer(Peer::Coordinator) | Address::Gone);
            let worker = by == Sender::Worker && [coordinator, gone, host.into()].contains(&whom);
            // The worker, the requester, the host, the coordinator. The last two are trusted with what a worker may.
            let may = [
                worker,
                by == Sender::Requester && [coordinator, host.into()].contains(&whom),
                worker || by == Sender::Process && whom != gone,
                worker || by == Sender::Coordinator && !to_one,
            ];
            for (user, may) in users.iter_mut().zip(may) {
                assert_eq!(user.may_publish(&said).await, may, "{said}");
            }
        }
    }

    // Whatever a worker subscribes to, it gets what is said to it, to cells and to squares.
    let [spy, requester_user, host_user, coordinator_user] = &mut users;
    for words in
        ["lately/#", "#", &filter(Peer::Worker(other)), &filter(host), &filter(Peer::Worker(one))]
    {
        spy.subscribe(words).await;
    }
    assert!(coordinator_user.may_publish(&topic(Peer::Worker(other), Sender::Coordinator)).await);
    assert!(host_user.may_publish(&topic(Peer::Worker(other), Sender::Process)).await);
    assert!(host_user.may_publish(&topic(requester, Sender::Process)).await);
    assert!(requester_user.may_publish(&topic(host, Sender::Requester)).await);
    let last = topic(Peer::Worker(one), Sender::Coordinator);
    assert!(host_user.may_publish(&topic(cell, Sender::Process)).await);
    assert!(host_user.may_publish(&topic(square, Sender::Process)).await);
    assert!(coordinator_user.may_publish(&last).await);
    let mut heard = Vec::new();
    // One a subscription that fits, of each of the two that are for it.
    while heard.last() != Some(&last) {
        match spy.next().await {
            Packet::Publish(publish) => {
                heard.push(String::from_utf8(publish.topic.to_vec()).unwrap());
            }
            packet => panic!("{packet:?}"),
        }
    }
    heard.dedup();
    assert_eq!(heard, [topic(cell, Sender::Process), topic(square, Sender::Process), last]);

    // Last wills of workers get to hosts.
    let will = topic(gone, Sender::Worker);
    host_user.subscribe(&filter(gone)).await;
    assert!(coordinator_user.may_publish(&will).await);
    let Packet::Publish(heard) = host_user.next().await else { panic!("no will") };
    assert_eq!(heard.topic, will);
}

/// An authority, and a broker whose certificate for these names comes from it.
fn encrypted(names: &[&str]) -> Option<(Mosquitto, TempDir, String)> {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let authority = authority("ours");
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let (to_certificate, to_key) = (place.path().join("certificate"), place.path().join("key"));
    fs::write(&to_certificate, certificate.pem()).unwrap();
    fs::write(&to_key, key.serialize_pem()).unwrap();
    let settings =
        format!("user root\ncertfile {}\nkeyfile {}", to_certificate.display(), to_key.display());
    Some((Mosquitto::start(&settings).unwrap(), place, authority.pem()))
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Runs a requester until it has a connection or knows why it has none; says which.
async fn connect(broker: Broker) -> Result<(), String> {
    let clock = Clock::default();
    let (stopper, stopped) = stop();
    let run = RequesterRun {
        broker,
        clock,
        id: RequesterId(1),
        task: task(clock),
        most: None,
        stays: false,
    };
    let mut outcome = None;
    let run = run.run(
        stopped,
        |_| Ok(()),
        |view| {
            let trouble = view.link.trouble.map(|why| Err(why.to_owned()));
            outcome = outcome.take().or(trouble).or(view.link.up.then_some(Ok(())));
            if outcome.is_some() {
                stopper.stop();
            }
        },
    );
    timeout(PATIENCE, run).await.unwrap().unwrap();
    outcome.unwrap()
}

#[tokio::test]
async fn a_certificate_of_the_authority_is_trusted_and_no_other() {
    let Some((mosquitto, _place, authority_pem)) = encrypted(&["localhost", "127.0.0.1"]) else {
        return;
    };
    let at = |host: &str| format!("mqtts://{host}:{}", mosquitto.port());
    for host in ["localhost", "127.0.0.1"] {
        let broker = Broker::new(&at(host), Some(authority_pem.as_bytes())).unwrap();
        assert_eq!(connect(broker).await, Ok(()), "{host}");
    }
    // Another authority, and one that only says that it is ours.
    for name in ["another", "ours"] {
        let pem = authority(name).pem();
        let wrong = Broker::new(&at("localhost"), Some(pem.as_bytes())).unwrap();
        let why = connect(wrong).await.unwrap_err();
        assert!(why.contains("invalid peer certificate"), "{why}");
    }
    // No authority of this system has signed it either.
    match Broker::new(&at("localhost"), None) {
        Ok(system) => {
            let why = connect(system).await.unwrap_err();
            assert!(why.contains("certificate"), "{why}");
        }
        Err(error) => assert!(error.to_string().contains("--ca"), "{error}"),
    }
    // Without TLS it does not get in.
    let plain = Broker::new(&mosquitto.address(), None).unwrap();
    connect(plain).await.unwrap_err();
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let Some((mosquitto, _place, authority)) = encrypted(&["broker.example"]) else { return };
    let address = format!("mqtts://localhost:{}", mosquitto.port());
    let why =
        connect(Broker::new(&address, Some(authority.as_bytes())).unwrap()).await.unwrap_err();
    assert!(why.contains("certificate") && why.contains("localhost"), "{why}");
}
