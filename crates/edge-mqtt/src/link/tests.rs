//! A connection that is lost, and a broker that takes less than others.

use super::*;
use crate::mosquitto::{Mosquitto, find};
use lately_edge::ids::{ProcessId, WorkerId};
use lately_edge::message::Peer;
use rumqttc::v5::mqttbytes::QoS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const PATIENCE: Duration = Duration::from_secs(20);

impl Arrived {
    /// A publication with this payload.
    pub(crate) fn test(payload: &'static [u8]) -> Self {
        Self(Publish::new("lately/1/gone/worker", QoS::AtLeastOnce, payload, None))
    }
}

impl Link {
    /// Has it subscribed, or will it?
    pub(crate) fn listens(&self, filter: &str) -> bool {
        self.filters.contains(filter)
    }
}

/// What the broker would end the connection for is counted and not sent, before and after the limit is known.
#[tokio::test]
async fn packets_that_the_broker_does_not_take_are_not_sent() {
    let broker = Broker::new("mqtt://127.0.0.1:1", None).unwrap();
    let profile = Profile { client: "test", will: None, durable: false, inflight: 8 };
    let mut link = Link::open(&broker, Sender::Process, profile, 100);
    let message = Message::Hello { process: ProcessId(1), room: 1, squares: Vec::new() };
    link.send_to(Peer::Coordinator, &message);
    let Some(Job::Publish(topic, payload)) = link.jobs.front().cloned() else { panic!() };
    // As the library writes it.
    let publish = Publish::new(topic.as_str(), QoS::AtLeastOnce, payload.clone(), None);
    assert!(publish.size() <= AROUND + topic.len() + payload.len());
    let fits = AROUND + topic.len() + payload.len();
    link.resume(Vec::new(), fits);
    assert_eq!(link.waiting, 1);
    link.resume(vec![publish], fits - 1);
    assert_eq!(link.waiting, 0);
    link.send_to(Peer::Coordinator, &message);
    assert_eq!((link.waiting, link.traffic.dropped_for(TOO_LONG)), (0, 3));
}

fn open(address: &str, sender: Sender, client: &str) -> Link {
    let broker = Broker::new(address, None).unwrap();
    let profile = Profile { client, will: None, durable: false, inflight: 512 };
    Link::open(&broker, sender, profile, 10_000)
}

/// Sends `count` messages, and returns how many arrive in time.
async fn exchange(from: &mut Link, to: &mut Link, count: usize) -> usize {
    let message = Message::Leave { worker: WorkerId(1) };
    (0..count).for_each(|_| from.send_to(Address::Gone, &message));
    let mut arrived = 0;
    let exchange = async {
        while arrived < count {
            tokio::select! {
                _ = from.next(None) => {}
                event = to.next(None) => if let Event::Arrived(one) = event {
                    to.confirm(one);
                    arrived += 1;
                },
            }
        }
    };
    let _ = timeout(PATIENCE, exchange).await;
    arrived
}

async fn both_up(one: &mut Link, other: &mut Link) {
    let up = async {
        while !(one.is_up() && other.is_up() && other.jobs.is_empty()) {
            tokio::select! {
                _ = one.next(None) => {}
                _ = other.next(None) => {}
                () = sleep(Duration::from_millis(10)) => {}
            }
        }
    };
    timeout(PATIENCE, up).await.unwrap();
    // The broker has the subscription then.
    sleep(Duration::from_millis(300)).await;
}

/// A broker that comes back may allow fewer unconfirmed messages than before.
#[tokio::test]
async fn a_broker_that_comes_back_with_a_lower_receive_maximum_is_kept_to() {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    let mut mosquitto = Mosquitto::start("").unwrap();
    let mut from = open(&mosquitto.address(), Sender::Worker, "from");
    let mut to = open(&mosquitto.address(), Sender::Process, "to");
    to.subscribe(Address::Gone);
    both_up(&mut from, &mut to).await;
    assert_eq!(exchange(&mut from, &mut to, 300).await, 300);
    mosquitto.kill().unwrap();
    let down = async {
        while !matches!(from.next(None).await, Event::Down) {}
        while !matches!(to.next(None).await, Event::Down) {}
    };
    timeout(PATIENCE, down).await.unwrap();
    mosquitto.restart_with("max_inflight_messages 20").unwrap();
    both_up(&mut from, &mut to).await;
    assert_eq!(exchange(&mut from, &mut to, 500).await, 500);
    assert_eq!((from.traffic.connections, to.traffic.connections), (2, 2));
}

async fn accept(listener: &TcpListener, and: &[u8]) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut connect = [0; 1_000];
    assert!(stream.read(&mut connect).await.unwrap() > 0);
    // CONNACK: no session, success, no properties.
    let mut answer = vec![0x20, 3, 0, 0, 0];
    answer.extend(and);
    stream.write_all(&answer).await.unwrap();
    stream
}

/// Its number may mean another message to the next connection.
#[tokio::test]
async fn what_a_lost_connection_has_delivered_is_not_handed_on_after_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("mqtt://{}", listener.local_addr().unwrap());
    let topic = b"lately/1/gone/worker";
    // PUBLISH with QoS 1, packet id 7, no properties and no payload.
    let mut publish = vec![0x32, topic.len() as u8 + 5, 0, topic.len() as u8];
    publish.extend(topic);
    publish.extend([0, 7, 0]);
    let serve = tokio::spawn(async move {
        // Both at once with the end of the connection.
        drop(accept(&listener, &[publish.as_slice(), &publish].concat()).await);
        let _second = accept(&listener, &[]).await;
        sleep(PATIENCE).await;
    });
    let mut link = open(&address, Sender::Process, "test");
    let mut events = Vec::new();
    let listen = async {
        while events.iter().filter(|&&event| event == "up").count() < 2 {
            events.push(match link.next(None).await {
                Event::Up => "up",
                Event::Down => "down",
                Event::Arrived(_) => "arrived",
                Event::Room | Event::Refused(_) => "other",
            });
        }
    };
    timeout(PATIENCE, listen).await.unwrap();
    serve.abort();
    let after = events.iter().skip_while(|&&event| event != "down");
    assert!(after.clone().all(|&event| event != "arrived"), "{events:?}");
    assert_eq!(after.count(), 2, "{events:?}");
}

/// A connection to a broker in memory that is up.
async fn in_memory(broker: &Broker, client: &str, will: Option<(String, Vec<u8>)>) -> Link {
    let profile = Profile { client, will, durable: false, inflight: 8 };
    let mut link = Link::open(broker, Sender::Worker, profile, 10_000);
    assert!(matches!(link.next(None).await, Event::Up));
    link
}

/// Hands over what waits.
async fn settle(link: &mut Link) {
    while link.waiting() > 0 || !link.jobs.is_empty() {
        let _ = link.next(Some(0)).await;
    }
}

fn leave(worker: u64) -> Message {
    Message::Leave { worker: WorkerId(worker) }
}

#[tokio::test]
async fn in_memory_all_that_is_sent_arrives_once_and_in_order() {
    let broker = Broker::in_memory();
    let mut from = in_memory(&broker, "from", None).await;
    let mut to = [in_memory(&broker, "one", None).await, in_memory(&broker, "two", None).await];
    for link in &mut to {
        // A client with both filters gets a message once.
        link.subscribe(Address::Gone);
        link.subscribe_by(Address::Gone, Sender::Worker);
        settle(link).await;
    }
    // More than may be unconfirmed at a time.
    let count = 4 * u64::from(RECEIVE_MAXIMUM);
    (0..count).for_each(|worker| from.send_to(Address::Gone, &leave(worker)));
    settle(&mut from).await;
    for link in &mut to {
        for worker in 0..count {
            let Event::Arrived(arrived) = link.next(None).await else { panic!("{worker}") };
            assert_eq!(link.read(&arrived).unwrap().message, leave(worker));
            link.confirm(arrived);
        }
        settle(link).await;
        assert!(link.next_arrived().is_none());
    }
    // Until it is confirmed, no more than that arrive.
    (0..count).for_each(|worker| from.send_to(Address::Gone, &leave(worker)));
    settle(&mut from).await;
    let arrived = std::iter::from_fn(|| to[0].next_arrived()).count();
    assert_eq!(arrived, usize::from(RECEIVE_MAXIMUM));
    // Nobody else gets what is not for him, nor who has unsubscribed.
    to[1].unsubscribe(Address::Gone);
    to[1].unsubscribe_by(Address::Gone, Sender::Worker);
    settle(&mut to[1]).await;
    while let Some(Event::Arrived(arrived)) = to[1].next_arrived() {
        to[1].confirm(arrived);
        settle(&mut to[1]).await;
    }
    from.send_to(Address::Gone, &leave(count));
    settle(&mut from).await;
    assert!(to[1].next_arrived().is_none() && from.next_arrived().is_none());
}

/// What is kept arrives again at each subscription: the newest of each topic, and only there.
async fn kept_for_those_who_come_later(from: &mut Link, to: &mut Link) {
    let square = |name: &str| Peer::Square(name.parse().unwrap());
    let reset = |name: &str, epoch| {
        let stamp = lately_edge::filter::Stamp { epoch, incarnation: 1, version: 0 };
        Message::ResetAll { square: name.parse().unwrap(), stamp, since: 1 }
    };
    for (name, epoch) in [("33TWL77", 1), ("33TWL77", 2), ("33TWL78", 3), ("33TWL76", 4)] {
        from.send_to(square(name), &reset(name, epoch));
    }
    from.send_to(Address::Gone, &leave(1));
    settle(from).await;
    // Until the broker has all of it.
    sleep(Duration::from_millis(300)).await;
    to.subscribe(Address::Gone);
    to.subscribe(square("33TWL77"));
    settle(to).await;
    let Ok(Event::Arrived(arrived)) = timeout(PATIENCE, to.next(None)).await else { panic!() };
    assert_eq!(to.read(&arrived).unwrap().message, reset("33TWL77", 2));
    to.confirm(arrived);
    from.send_to(square("33TWL77"), &reset("33TWL77", 5));
    settle(from).await;
    let Ok(Event::Arrived(arrived)) = timeout(PATIENCE, to.next(None)).await else { panic!() };
    assert_eq!(to.read(&arrived).unwrap().message, reset("33TWL77", 5));
    to.confirm(arrived);
    to.unsubscribe(square("33TWL77"));
    settle(to).await;
    to.subscribe(square("33TWL77"));
    settle(to).await;
    let Ok(Event::Arrived(arrived)) = timeout(PATIENCE, to.next(None)).await else { panic!() };
    assert_eq!(to.read(&arrived).unwrap().message, reset("33TWL77", 5));
    to.confirm(arrived);
}

#[tokio::test]
async fn in_memory_resets_of_squares_are_kept() {
    let broker = Broker::in_memory();
    let mut from = in_memory(&broker, "from", None).await;
    from.sender = Sender::Process;
    let mut to = in_memory(&broker, "to", None).await;
    kept_for_those_who_come_later(&mut from, &mut to).await;
    assert!(to.next_arrived().is_none());
}

#[tokio::test]
async fn resets_of_squares_are_kept_by_a_broker() {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    let mosquitto = Mosquitto::start("").unwrap();
    let mut from = open(&mosquitto.address(), Sender::Process, "from");
    let mut to = open(&mosquitto.address(), Sender::Worker, "to");
    both_up(&mut from, &mut to).await;
    kept_for_those_who_come_later(&mut from, &mut to).await;
}

#[tokio::test]
async fn in_memory_a_last_will_is_published_unless_a_client_says_good_bye() {
    let broker = Broker::in_memory();
    let mut to = in_memory(&broker, "to", None).await;
    to.subscribe(Address::Gone);
    settle(&mut to).await;
    let will = |worker| {
        let mut bytes = Vec::new();
        wire::encode(&leave(worker), &mut bytes);
        Some((topic::topic(Address::Gone, Sender::Worker), bytes))
    };
    in_memory(&broker, "polite", will(1)).await.close(PATIENCE).await;
    drop(in_memory(&broker, "crashed", will(2)).await);
    let mut first = in_memory(&broker, "name", will(3)).await;
    let second = in_memory(&broker, "name", will(4)).await;
    let Event::Refused(why) = first.next(None).await else { panic!() };
    assert!(why.contains("same identity"), "{why}");
    drop((first, second));
    for worker in [2, 3, 4] {
        let Some(Event::Arrived(arrived)) = to.next_arrived() else { panic!("{worker}") };
        assert_eq!(to.read(&arrived).unwrap().message, leave(worker));
    }
    assert!(to.next_arrived().is_none());
}
