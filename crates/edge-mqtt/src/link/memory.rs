//! A broker in the memory of one process, which all roles of that process connect to.
//!
//! It does for [`Link`](super::Link) what an MQTT broker does: topics, subscriptions, last wills, one connection for
//! each client name, the newest message of topics whose messages are kept, and no more unconfirmed messages than a client
//! takes at a time. It keeps no sessions: a client
//! that disconnects is forgotten.

use super::{Job, News};
use crate::broker::{Profile, RECEIVE_MAXIMUM};
use crate::topic::is_kept;
use bytes::Bytes;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::Publish;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Messages that may wait for a client; what comes while it has that many is not delivered to it, as with a broker.
const QUEUE: usize = 1 << 20;

/// The broker. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<State>>);

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

/// A connection.
pub(super) struct Client {
    hub: Hub,
    number: u64,
}

#[derive(Default)]
struct State {
    next: u64,
    clients: BTreeMap<u64, Connected>,
    /// Who has subscribed to a topic, or to all of its last level (`…/+`).
    subscribers: HashMap<String, BTreeSet<u64>>,
    /// The newest message of each topic whose messages are kept.
    kept: BTreeMap<String, Bytes>,
}

struct Connected {
    name: String,
    tell: mpsc::Sender<News>,
    will: Option<(String, Bytes)>,
    /// Messages that were delivered and not confirmed.
    unconfirmed: usize,
    /// Messages that wait until some of these are.
    waiting: VecDeque<Publish>,
}

impl Hub {
    /// Connects. A client of the same name is disconnected, and told so.
    pub(super) fn connect(&self, profile: Profile<'_>, tell: mpsc::Sender<News>) -> Client {
        let mut state = self.state();
        let mut others = state.clients.iter().filter(|(_, other)| other.name == profile.client);
        if let Some(number) = others.next().map(|(&number, _)| number)
            && let Some(other) = state.remove(number)
        {
            let why = "another process with the same identity has connected";
            let _ = other.tell.try_send(News::Refused(why.into()));
            state.publish_will(other.will);
        }
        let number = state.next;
        state.next += 1;
        // The channel is new, so there is room.
        let _ = tell.try_send(News::Up(Vec::new(), usize::MAX));
        let will = profile.will.map(|(topic, payload)| (topic, payload.into()));
        let name = profile.client.into();
        let client = Connected { name, tell, will, unconfirmed: 0, waiting: VecDeque::new() };
        state.clients.insert(number, client);
        Client { hub: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Does a job. There is always room for it.
    pub(super) fn perform(&self, job: Job) {
        let mut state = self.hub.state();
        match job {
            Job::Publish(topic, payload) => state.publish(&topic, &payload),
            Job::Confirm(_) => {
                if let Some(client) = state.clients.get_mut(&self.number) {
                    client.confirm();
                }
            }
            Job::Subscribe(filter) => {
                state.deliver_kept(&filter, self.number);
                state.subscribers.entry(filter).or_default().insert(self.number);
            }
            Job::Unsubscribe(filter) => {
                if let Some(subscribers) = state.subscribers.get_mut(&filter) {
                    subscribers.remove(&self.number);
                    if subscribers.is_empty() {
                        state.subscribers.remove(&filter);
                    }
                }
            }
            // Asked for by a client that was sent more than it takes, which does not happen here.
            Job::Disconnect => {}
        }
    }

    /// Ends the connection without publishing the last will.
    pub(super) fn disconnect(&self) {
        self.hub.state().remove(self.number);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        if let Some(client) = state.remove(self.number) {
            state.publish_will(client.will);
        }
    }
}

impl State {
    fn publish(&mut self, topic: &str, payload: &Bytes) {
        if is_kept(topic) {
            self.kept.insert(topic.to_owned(), payload.clone());
        }
        let all = topic.rsplit_once('/').map(|(levels, _)| format!("{levels}/+"));
        let filters = [Some(topic), all.as_deref()].into_iter().flatten();
        // A client with both filters gets the message once.
        let clients: BTreeSet<u64> =
            filters.filter_map(|filter| self.subscribers.get(filter)).flatten().copied().collect();
        for number in clients {
            if let Some(client) = self.clients.get_mut(&number) {
                client.deliver(Publish::new(topic, QoS::AtLeastOnce, payload.clone(), None));
            }
        }
    }

    /// What was kept for a filter goes to whoever subscribes to it.
    fn deliver_kept(&mut self, filter: &str, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let levels = filter.strip_suffix('+').unwrap_or(filter);
        let from = self.kept.range::<str, _>((Bound::Included(levels), Bound::Unbounded));
        let fitting = |topic: &str| {
            topic == filter || (filter.len() > levels.len() && topic.starts_with(levels))
        };
        for (topic, payload) in from.take_while(|(topic, _)| fitting(topic)) {
            client.deliver(Publish::new(topic, QoS::AtLeastOnce, payload.clone(), None));
        }
    }

    fn publish_will(&mut self, will: Option<(String, Bytes)>) {
        if let Some((topic, payload)) = will {
            self.publish(&topic, &payload);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Connected> {
        self.subscribers.retain(|_, subscribers| {
            subscribers.remove(&number);
            !subscribers.is_empty()
        });
        self.clients.remove(&number)
    }
}

impl Connected {
    fn deliver(&mut self, publish: Publish) {
        if self.unconfirmed >= usize::from(RECEIVE_MAXIMUM) {
            if self.waiting.len() < QUEUE {
                self.waiting.push_back(publish);
            }
            return;
        }
        // There is room for as many as may be unconfirmed; a client that does not listen any more is about to go.
        if self.tell.try_send(News::Arrived(publish)).is_ok() {
            self.unconfirmed += 1;
        }
    }

    fn confirm(&mut self) {
        self.unconfirmed = self.unconfirmed.saturating_sub(1);
        if let Some(next) = self.waiting.pop_front() {
            self.deliver(next);
        }
    }
}
