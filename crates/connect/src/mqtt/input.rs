//! A subscription.

use super::driver::{Connection, Ear, Heard};
use super::options::Subscriber;
use super::trouble;
use super::unacknowledged::{Delivery, Unacknowledged};
use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::{Settings, Tell};
use lately_stream::read::message::{Acknowledge, Message, MessageInput, Received};
use lately_stream::record::Envelope;
use rumqttc::{AsyncClient, ManualAck, Packet, Publish, QoS, RetainForwardRule, SubscribeFilter};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The most bytes of messages of QoS 0 that wait. The broker sends those whether or not we keep up with them.
const UNASKED: usize = 64 << 20;

type Session = Arc<Mutex<Unacknowledged<ManualAck>>>;

fn lock(session: &Session) -> MutexGuard<'_, Unacknowledged<ManualAck>> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages of a subscription.
pub(super) struct Input {
    news: Receiver<Result<Message, String>>,
    waiting: Arc<AtomicUsize>,
    // Before the connection, which ends when nobody can ask for anything any more.
    requests: UnboundedSender<u64>,
    connection: Arc<Connection>,
}

/// Acknowledges them.
struct Acknowledger {
    requests: UnboundedSender<u64>,
    _connection: Arc<Connection>,
}

impl Input {
    pub(super) fn open(
        address: &Address,
        settings: &Settings,
        profile: &Subscriber,
    ) -> Result<Self, ConnectError> {
        let options = profile.options(address, settings)?;
        let (tell_news, news) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (requests, asked) = unbounded_channel();
        let session = Session::default();
        let waiting = Arc::<AtomicUsize>::default();
        let filter = SubscribeFilter {
            retain_forward_rule: RetainForwardRule::OnNewSubscribe,
            ..SubscribeFilter::new(profile.filter.clone(), QoS::AtLeastOnce)
        };
        let ear = {
            let (session, waiting) = (Arc::clone(&session), Arc::clone(&waiting));
            let (ready, tell) = (ready.clone(), settings.tell.clone());
            let name = address.to_string();
            move |client| Listener {
                client,
                filter,
                session,
                news: tell_news,
                waiting,
                ready: Some(ready),
                tell,
                name,
                dropped: 0,
            }
        };
        let work = move |client| acknowledge(client, asked, session);
        let ready = (ready, &is_ready);
        let connection = Connection::open(address, settings, options, ready, ear, work)?;
        Ok(Self { news, waiting, requests, connection: Arc::new(connection) })
    }
}

/// Acknowledges what is dealt with, until nobody can ask for that any more.
async fn acknowledge(client: AsyncClient, mut asked: UnboundedReceiver<u64>, session: Session) {
    while let Some(mut token) = asked.recv().await {
        while let Ok(later) = asked.try_recv() {
            token = later;
        }
        let receipts = lock(&session).acknowledge(token);
        for receipt in receipts {
            if client.manual_ack(receipt).await.is_err() {
                return;
            }
        }
    }
}

impl MessageInput for Input {
    fn next(&mut self, patience: Duration) -> Received {
        let next = match patience {
            Duration::ZERO => self.news.try_recv().map_err(|error| match error {
                mpsc::TryRecvError::Empty => RecvTimeoutError::Timeout,
                mpsc::TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
            patience => self.news.recv_timeout(patience),
        };
        match next {
            Ok(Ok(message)) => {
                self.waiting.fetch_sub(message.payload.len(), Ordering::Relaxed);
                Received::Message(message)
            }
            Ok(Err(why)) => Received::Failed(why),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => {
                Received::Failed("the connection has ended".into())
            }
        }
    }

    fn acknowledger(&self) -> Box<dyn Acknowledge> {
        let (requests, connection) = (self.requests.clone(), Arc::clone(&self.connection));
        Box::new(Acknowledger { requests, _connection: connection })
    }
}

impl Acknowledge for Acknowledger {
    fn acknowledge(&mut self, token: u64) {
        // Without a connection it is delivered again.
        let _ = self.requests.send(token);
    }
}

/// Hears what comes over the connection.
struct Listener {
    client: AsyncClient,
    filter: SubscribeFilter,
    session: Session,
    news: Sender<Result<Message, String>>,
    /// Bytes of messages that were not taken yet.
    waiting: Arc<AtomicUsize>,
    /// Whom to tell of the first subscription.
    ready: Option<Sender<Result<(), String>>>,
    tell: Tell,
    name: String,
    /// Messages of QoS 0 for which there was no room.
    dropped: u64,
}

impl Listener {
    fn publish(&mut self, publish: Publish) {
        let receipt = self.client.prepare_ack(&publish);
        let is_unasked = receipt.is_none();
        let delivery = lock(&self.session).deliver(receipt.map(|one| (publish.pkid, one)));
        let token = match delivery {
            Delivery::New(token) => token,
            Delivery::Again => return,
            Delivery::Done(receipt) => {
                // Where there is no room for it, it is delivered again after the next loss.
                let _ = self.client.try_manual_ack(receipt);
                return;
            }
        };
        let length = publish.payload.len();
        if is_unasked && self.waiting.load(Ordering::Relaxed) + length > UNASKED {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                let Self { name, dropped, .. } = self;
                (self.tell)(&format!(
                    "{name}: messages of QoS 0 come faster than they are dealt with; dropped so far: {dropped}. Those of QoS 1 wait at the broker"
                ));
            }
            return;
        }
        self.waiting.fetch_add(length, Ordering::Relaxed);
        let headers = publish.properties.map(|properties| properties.user_properties);
        let envelope = Envelope {
            topic: String::from_utf8_lossy(&publish.topic).into_owned(),
            headers: headers.unwrap_or_default(),
            ..Envelope::default()
        };
        let (payload, envelope) = (publish.payload.into(), Arc::new(envelope));
        let _ = self.news.send(Ok(Message { payload, envelope, token }));
    }
}

impl Ear for Listener {
    fn hear(&mut self, heard: Heard<'_>) -> Result<(), String> {
        match heard {
            Heard::Up(answer) => {
                if !answer.session_present {
                    lock(&self.session).forget();
                }
                // Again each time: the broker may have lost it, and does not mind.
                // This may wait for room, which only comes when this returns.
                let (client, filter) = (self.client.clone(), self.filter.clone());
                tokio::spawn(async move { client.subscribe_many([filter]).await });
                Ok(())
            }
            Heard::Down => {
                lock(&self.session).lose();
                Ok(())
            }
            Heard::Packet(Packet::SubAck(answer)) => {
                if let Some(why) = answer.return_codes.into_iter().find_map(trouble::subscription) {
                    return Err(format!("the broker refuses the subscription: {why}"));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(Ok(()));
                }
                Ok(())
            }
            Heard::Packet(Packet::Publish(publish)) => {
                self.publish(publish);
                Ok(())
            }
            Heard::Packet(_) => Ok(()),
        }
    }

    fn end(&mut self, why: Option<&str>) {
        if let Some(why) = why {
            let _ = self.news.send(Err(why.into()));
        }
    }
}
