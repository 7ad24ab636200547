//! A subscription.

use super::driver::{Connection, Ear, Heard};
use super::options::Subscriber;
use super::trouble;
use super::unacknowledged::{Delivery, Unacknowledged};
use crate::address::Address;
use crate::error::ConnectError;
use crate::outbox::last_told;
use crate::queue::{Arrivals, Inbox};
use crate::settings::{Settings, Tell};
use lately_stream::read::message::Message;
use lately_stream::record::Envelope;
use rumqttc::{AsyncClient, ManualAck, Packet, Publish, QoS, RetainForwardRule, SubscribeFilter};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedReceiver;

/// The most bytes of messages of QoS 0 that wait. The broker sends those whether or not we keep up with them.
const UNASKED: usize = 64 << 20;

type Session = Arc<Mutex<Unacknowledged<ManualAck>>>;

fn lock(session: &Session) -> MutexGuard<'_, Unacknowledged<ManualAck>> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Subscribes to what an address names.
pub(super) fn open(
    address: &Address,
    settings: &Settings,
) -> Result<Inbox<Connection>, ConnectError> {
    let profile = Subscriber::new(address, settings)?;
    let options = profile.options(address, settings)?;
    let session = Session::default();
    let filter = SubscribeFilter {
        retain_forward_rule: RetainForwardRule::OnNewSubscribe,
        ..SubscribeFilter::new(profile.filter, QoS::AtLeastOnce)
    };
    Inbox::open(|arrivals, told| {
        let (ready, is_ready) = mpsc::channel();
        let ear = {
            let (session, ready) = (Arc::clone(&session), Some(ready.clone()));
            let (tell, name) = (settings.tell.clone(), address.to_string());
            move |client| Listener {
                client,
                filter,
                session,
                arrivals,
                ready,
                tell,
                name,
                dropped: 0,
            }
        };
        let work = move |client| acknowledge(client, told, session);
        Connection::open(address, settings, options, (ready, &is_ready), ear, work)
    })
}

/// Acknowledges what is dealt with, until nobody can ask for that any more.
async fn acknowledge(client: AsyncClient, mut told: UnboundedReceiver<u64>, session: Session) {
    while let Some(token) = last_told(&mut told).await {
        let receipts = lock(&session).acknowledge(token);
        for receipt in receipts {
            if client.manual_ack(receipt).await.is_err() {
                return;
            }
        }
    }
}

/// Hears what comes over the connection.
struct Listener {
    client: AsyncClient,
    filter: SubscribeFilter,
    session: Session,
    arrivals: Arrivals,
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
        if is_unasked && self.arrivals.waiting() + length > UNASKED {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                let Self { name, dropped, .. } = self;
                (self.tell)(&format!(
                    "{name}: messages of QoS 0 come faster than they are dealt with; dropped so far: {dropped}. Those of QoS 1 wait at the broker"
                ));
            }
            return;
        }
        let headers = publish.properties.map(|properties| properties.user_properties);
        let envelope = Envelope {
            topic: String::from_utf8_lossy(&publish.topic).into_owned(),
            headers: headers.unwrap_or_default(),
            ..Envelope::default()
        };
        let (payload, envelope) = (publish.payload.into(), Arc::new(envelope));
        self.arrivals.hand_over(Message { payload, envelope, token });
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
        why.into_iter().for_each(|why| self.arrivals.fail(why));
    }
}
