//! One connection to the broker: sends, receives, comes back by itself.

mod memory;
mod mqtt;

pub(crate) use memory::Hub;

use crate::broker::{Broker, Profile, RECEIVE_MAXIMUM, Transport};
use crate::topic::{self, Address, Sender};
use crate::traffic::Traffic;
use bytes::Bytes;
use lately_edge::message::{Kind, Message, Outgoing};
use lately_edge::wire::{self, MAX_MESSAGE};
use rumqttc::v5::AsyncClient;
use rumqttc::v5::mqttbytes::v5::Publish;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The bytes of a PUBLISH packet without topic and payload: kind (1), length (4 at most), the topic's length (2), packet
/// id (2), no properties (1).
const AROUND: usize = 10;
/// Room for news of the connection, in addition to messages.
const NEWS: usize = 16;

/// Why a message is not sent that is longer than we or the broker take.
const TOO_LONG: &str = "too-long-to-send";

/// How a connection stands.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a> {
    /// Is it there?
    pub up: bool,
    /// Why not, as far as that is known.
    pub trouble: Option<&'a str>,
    /// What went over it.
    pub traffic: &'a Traffic,
}

/// What happened on a connection.
pub(crate) enum Event {
    /// It is there, for the first time or again.
    Up,
    /// It was lost.
    Down,
    /// No more messages wait than was asked for; or nothing that matters happened.
    Room,
    /// Something arrived. To be confirmed with [`Link::confirm`].
    Arrived(Arrived),
    /// The broker will not have us; there is no use in trying again.
    Refused(String),
}

/// A message as it arrived.
pub(crate) struct Arrived(Publish);

/// A message that could be read.
pub(crate) struct Letter {
    pub(crate) to: Address,
    pub(crate) message: Message,
}

impl Arrived {
    pub(crate) fn payload(&self) -> &[u8] {
        &self.0.payload
    }
}

/// What is to go out.
#[derive(Clone)]
enum Job {
    Publish(String, Bytes),
    Confirm(Publish),
    Disconnect,
    Subscribe(String),
    Unsubscribe(String),
}

/// What the task that drives the connection tells.
enum News {
    /// Connected. Publications that the last connection did not get confirmed, and the longest packet that the
    /// broker takes.
    Up(Vec<Publish>, usize),
    /// Lost. The driver continues when the other end has taken note.
    Down(String, oneshot::Sender<()>),
    Arrived(Publish),
    /// It could not be made; it is tried again.
    Failed(String),
    /// So many publications more that the broker's access list does not allow.
    Denied(u64),
    Refused(String),
}

/// A connection.
///
/// # Guarantee
/// A message passed to [`Link::send`] reaches the broker at least once, in order except for those resent after a lost
/// connection, as long as the process lives and no more than `limit` messages wait; beyond that, the oldest are dropped
/// and counted. Subscriptions are renewed after each connect, before anything else is sent.
pub(crate) struct Link {
    sender: Sender,
    client: Client,
    news: mpsc::Receiver<News>,
    jobs: VecDeque<Job>,
    /// Publications that may wait.
    limit: usize,
    waiting: usize,
    /// Confirmations that wait to be sent.
    unconfirmed: usize,
    /// The longest packet that the broker takes.
    longest: usize,
    filters: BTreeSet<String>,
    up: bool,
    trouble: Option<String>,
    pub(crate) traffic: Traffic,
}

impl Link {
    /// Begins to connect.
    pub(crate) fn open(
        broker: &Broker,
        sender: Sender,
        profile: Profile<'_>,
        limit: usize,
    ) -> Self {
        // The broker sends no more than may be unconfirmed, so the driver never waits for room here,
        // and can always send.
        let (tell, news) = mpsc::channel(usize::from(RECEIVE_MAXIMUM) + NEWS);
        let client = match broker.transport() {
            Transport::Network(network) => Client::Mqtt(mqtt::connect(network, profile, tell)),
            Transport::Memory(hub) => Client::Memory(Arc::new(hub.connect(profile, tell))),
        };
        Self {
            sender,
            client,
            news,
            jobs: VecDeque::new(),
            limit,
            waiting: 0,
            unconfirmed: 0,
            longest: usize::MAX,
            filters: BTreeSet::new(),
            up: false,
            trouble: None,
            traffic: Traffic::default(),
        }
    }

    /// Is there a connection?
    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// Its status, for observers.
    pub(crate) fn status(&self) -> Status<'_> {
        Status { up: self.up, trouble: self.trouble.as_deref(), traffic: &self.traffic }
    }

    /// Messages that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Subscribes to what is addressed to somebody, now and after each connect.
    pub(crate) fn subscribe(&mut self, to: impl Into<Address>) {
        self.subscribe_to(topic::filter(to));
    }

    /// Subscribes to what one role says to somebody.
    pub(crate) fn subscribe_by(&mut self, to: impl Into<Address>, by: Sender) {
        self.subscribe_to(topic::topic(to, by));
    }

    /// Subscribes to what anybody says to anybody.
    pub(crate) fn subscribe_to_all(&mut self) {
        self.subscribe_to(topic::EVERYTHING.into());
    }

    fn subscribe_to(&mut self, filter: String) {
        if self.filters.insert(filter.clone()) {
            self.jobs.push_back(Job::Subscribe(filter));
        }
    }

    /// The opposite of [`Link::subscribe`].
    pub(crate) fn unsubscribe(&mut self, from: impl Into<Address>) {
        self.unsubscribe_from(topic::filter(from));
    }

    /// The opposite of [`Link::subscribe_by`].
    pub(crate) fn unsubscribe_by(&mut self, from: impl Into<Address>, by: Sender) {
        self.unsubscribe_from(topic::topic(from, by));
    }

    fn unsubscribe_from(&mut self, filter: String) {
        if self.filters.remove(&filter) {
            self.jobs.push_back(Job::Unsubscribe(filter));
        }
    }

    /// Sends a message, as soon as there is a connection and room on it.
    pub(crate) fn send(&mut self, outgoing: &Outgoing) {
        self.send_to(outgoing.to, &outgoing.message);
    }

    /// Sends a message to an address.
    pub(crate) fn send_to(&mut self, to: impl Into<Address>, message: &Message) {
        let mut bytes = Vec::new();
        wire::encode(message, &mut bytes);
        if bytes.len() > MAX_MESSAGE {
            self.traffic.note_dropped(TOO_LONG);
            return;
        }
        let topic = topic::topic(to, self.sender);
        if AROUND + topic.len() + bytes.len() > self.longest {
            self.traffic.note_dropped(TOO_LONG);
            return;
        }
        self.traffic.note_sent(message.kind(), bytes.len());
        self.jobs.push_back(Job::Publish(topic, bytes.into()));
        self.waiting += 1;
        if self.waiting > self.limit {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(at) = self.jobs.iter().position(|job| matches!(job, Job::Publish(..))) {
            let job = self.jobs.remove(at);
            let is_reading = |job: &Job| matches!(job, Job::Publish(_, payload) if payload.get(2) == Some(&(Kind::Submit as u8)));
            self.traffic.readings_dropped += u64::from(job.as_ref().is_some_and(is_reading));
            self.waiting -= 1;
            self.traffic.note_dropped("queue-full");
        }
    }

    /// Acknowledges the message to the broker, which then does not redeliver it.
    pub(crate) fn confirm(&mut self, mut arrived: Arrived) {
        // Only its number is needed.
        (arrived.0.topic, arrived.0.payload, arrived.0.properties) =
            (Bytes::new(), Bytes::new(), None);
        self.jobs.push_back(Job::Confirm(arrived.0));
        self.unconfirmed += 1;
    }

    /// Confirmations that wait to be sent.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.unconfirmed
    }

    /// Ends the connection when what waits has been sent, and makes another: the broker then delivers again what was
    /// not confirmed.
    pub(crate) fn reconnect(&mut self) {
        if !matches!(self.jobs.back(), Some(Job::Disconnect)) {
            self.jobs.push_back(Job::Disconnect);
        }
    }

    /// What a message says; one that cannot be used is counted, and `None`. Either way it is to be confirmed.
    pub(crate) fn read(&mut self, arrived: &Arrived) -> Option<Letter> {
        let payload = arrived.payload();
        self.traffic.bytes_received += payload.len() as u64;
        let read = || {
            let topic = std::str::from_utf8(&arrived.0.topic).ok();
            let (to, by) = topic.and_then(topic::parse).ok_or("topic")?;
            if payload.len() > MAX_MESSAGE {
                return Err("too-long");
            }
            let message = wire::decode(payload).map_err(wire::WireError::reason)?;
            let meant = by.says(message.kind(), to);
            if meant { Ok(Letter { to, message }) } else { Err("wrong-sender") }
        };
        match read() {
            Ok(letter) => {
                self.traffic.note_received(letter.message.kind());
                Some(letter)
            }
            Err(reason) => {
                self.traffic.note_dropped(reason);
                None
            }
        }
    }

    /// Sends what waits, until something happens, or until no more than `room` messages wait. May be dropped
    /// while it waits.
    pub(crate) async fn next(&mut self, room: Option<usize>) -> Event {
        loop {
            self.push();
            if room.is_some_and(|room| self.waiting <= room) {
                return Event::Room;
            }
            let job = self.jobs.front().filter(|_| self.up).cloned();
            let sending = job.is_some();
            let client = self.client.clone();
            tokio::select! {
                // First, so that a job that was taken is never sent twice.
                biased;
                () = client.perform(job), if sending => self.done(),
                news = self.news.recv() => return self.hear(news),
            }
        }
    }

    /// What has arrived meanwhile, without waiting.
    pub(crate) fn next_arrived(&mut self) -> Option<Event> {
        let news = self.news.try_recv().ok()?;
        Some(self.hear(Some(news)))
    }

    /// Hands over as much as the connection takes at once.
    fn push(&mut self) {
        while self.up
            && let Some(job) = self.jobs.front().cloned()
            && self.client.attempt(job)
        {
            self.done();
        }
    }

    fn done(&mut self) {
        match self.jobs.pop_front() {
            Some(Job::Publish(..)) => self.waiting -= 1,
            Some(Job::Confirm(..)) => self.unconfirmed -= 1,
            _ => {}
        }
    }

    fn hear(&mut self, news: Option<News>) -> Event {
        match news {
            Some(News::Arrived(publish)) => Event::Arrived(Arrived(publish)),
            Some(News::Up(again, longest)) => {
                self.resume(again, longest);
                Event::Up
            }
            Some(News::Down(reason, noted)) => {
                self.up = false;
                self.keep_publications();
                // The driver is gone only when the process ends.
                let _ = noted.send(());
                self.trouble = Some(reason);
                Event::Down
            }
            Some(News::Failed(reason)) => {
                self.trouble = Some(reason);
                Event::Room
            }
            Some(News::Denied(count)) => {
                self.traffic.note_denied(count);
                Event::Room
            }
            Some(News::Refused(reason)) => Event::Refused(reason),
            None => Event::Refused("the connection has ended".into()),
        }
    }

    /// All else that waits belongs to the connection that was lost.
    fn keep_publications(&mut self) {
        self.jobs.retain(|job| matches!(job, Job::Publish(..)));
        self.unconfirmed = 0;
    }

    /// Subscriptions first, then what the last connection did not get confirmed, then the rest.
    fn resume(&mut self, again: Vec<Publish>, longest: usize) {
        (self.up, self.trouble, self.longest) = (true, None, longest);
        self.traffic.connections += 1;
        self.keep_publications();
        self.waiting += again.len();
        for publish in again.into_iter().rev() {
            let topic = String::from_utf8_lossy(&publish.topic).into_owned();
            self.jobs.push_front(Job::Publish(topic, publish.payload));
        }
        self.drop_longer();
        for filter in self.filters.iter().rev() {
            self.jobs.push_front(Job::Subscribe(filter.clone()));
        }
        while self.waiting > self.limit {
            self.drop_oldest();
        }
    }

    /// Drops what the broker does not take: it would end the connection, and that would come again and again.
    fn drop_longer(&mut self) {
        let (longest, before) = (self.longest, self.jobs.len());
        self.jobs.retain(|job| match job {
            Job::Publish(topic, payload) => AROUND + topic.len() + payload.len() <= longest,
            _ => true,
        });
        let dropped = before - self.jobs.len();
        self.waiting -= dropped;
        (0..dropped).for_each(|_| self.traffic.note_dropped(TOO_LONG));
    }

    /// Sends what still waits, says good-bye and ends, all within `patience`.
    pub(crate) async fn close(mut self, patience: Duration) -> Traffic {
        let farewell = async {
            let client = self.client.clone();
            while self.up
                && let Some(job) = self.jobs.front().cloned()
            {
                tokio::select! {
                    biased;
                    () = client.perform(Some(job)) => self.done(),
                    news = self.news.recv() => match self.hear(news) {
                        Event::Down | Event::Refused(_) => return,
                        // Not confirmed, so it comes again to whoever is next.
                        Event::Up | Event::Room | Event::Arrived(_) => {}
                    },
                }
            }
            if self.up && self.client.disconnect().await {
                while !matches!(self.next(None).await, Event::Down | Event::Refused(_)) {}
            }
        };
        // A broker that does not answer is not waited for.
        let _ = timeout(patience, farewell).await;
        self.traffic
    }
}

/// The way to the broker.
#[derive(Clone)]
enum Client {
    Mqtt(AsyncClient),
    Memory(Arc<memory::Client>),
}

impl Client {
    /// Hands a job over if there is room.
    fn attempt(&self, job: Job) -> bool {
        match self {
            Self::Mqtt(client) => mqtt::attempt(client, job),
            Self::Memory(client) => {
                client.perform(job);
                true
            }
        }
    }

    /// Hands a job over when there is room.
    async fn perform(&self, job: Option<Job>) {
        match self {
            Self::Mqtt(client) => mqtt::perform(client, job).await,
            Self::Memory(client) => job.into_iter().for_each(|job| client.perform(job)),
        }
    }

    /// Says good-bye, so that no last will is published; `false` when there is no connection any more.
    async fn disconnect(&self) -> bool {
        match self {
            Self::Mqtt(client) => client.disconnect().await.is_ok(),
            Self::Memory(client) => {
                client.disconnect();
                true
            }
        }
    }
}

#[cfg(test)]
mod tests;
