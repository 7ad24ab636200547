//! Publications.

use super::driver::{Connection, Ear, Heard};
use super::options;
use crate::address::Address;
use crate::error::ConnectError;
use crate::labels;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::template::Template;
use bytes::Bytes;
use lately_stream::write::message::{About, MessageOutput};
use rumqttc::{
    AsyncClient, PubAckReason, PublishNotice, PublishNoticeError, PublishOptions,
    PublishProperties, QoS,
};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

/// Records that wait for room on the connection.
const WAITING: usize = 1024;

/// What a packet has besides topic, properties and payload, at most: kind, lengths, number.
const AROUND: usize = 16;

/// A publication.
#[derive(Clone)]
struct Publication {
    topic: String,
    payload: Bytes,
    properties: Vec<(String, String)>,
}

/// Publishes records.
pub(super) struct Output {
    topic: Template,
    sent: u64,
    state: Arc<Progress>,
    // Before the connection, which ends when nothing more can come.
    publications: Option<tokio::sync::mpsc::Sender<Publication>>,
    _connection: Connection,
}

impl Output {
    pub(super) fn open(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        let options = options::publisher(address, settings)?;
        let topic = Template::new(&address.path).map_err(|why| address.wrong(&why))?;
        let whole = topic.fill(None, "none");
        options::check_topic(&whole).map_err(|why| address.wrong(why))?;
        let state = Arc::<Progress>::default();
        let (ready, is_ready) = mpsc::channel();
        let (publications, to_publish) = channel(WAITING);
        let ear = {
            let (state, ready) = (Arc::clone(&state), ready.clone());
            move |_| Listener { state, ready: Some(ready) }
        };
        let work = {
            let state = Arc::clone(&state);
            move |client| publish(client, to_publish, state)
        };
        let ready = (ready, &is_ready);
        let connection = Connection::open(address, settings, options, ready, ear, work)?;
        let publications = Some(publications);
        Ok(Self { topic, sent: 0, state, publications, _connection: connection })
    }

    fn publication(&self, record: &[u8], about: &About) -> Publication {
        let envelope = about.from.as_ref().map(|(envelope, _)| &**envelope);
        // A wildcard that a key or a header brings along is none in a topic.
        let topic = self.topic.fill(envelope, "none").replace(['+', '#', '\0'], "_");
        let (payload, properties) = (Bytes::copy_from_slice(record), labels::headers(about));
        Publication { topic, payload, properties }
    }
}

impl Publication {
    fn length(&self) -> usize {
        let properties: usize = self.properties.iter().map(|(a, b)| a.len() + b.len() + 5).sum();
        AROUND + self.topic.len() + self.payload.len() + properties
    }

    fn options(&self) -> PublishOptions {
        let options = PublishOptions::new(QoS::AtLeastOnce);
        if self.properties.is_empty() {
            return options;
        }
        let user_properties = self.properties.clone();
        options.properties(PublishProperties { user_properties, ..PublishProperties::default() })
    }
}

impl MessageOutput for Output {
    fn send(&mut self, record: &[u8], about: &About) -> io::Result<()> {
        let publication = self.publication(record, about);
        self.state.check(publication.length(), record.len(), &publication.topic)?;
        let sent = self.publications.as_ref().map(|all| all.blocking_send(publication));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.state.failure());
        }
        self.sent += 1;
        Ok(())
    }

    fn confirm(&mut self) -> io::Result<()> {
        self.state.wait(self.sent)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.publications = None;
    }
}

/// Publishes what comes, until nothing more can.
async fn publish(
    client: AsyncClient,
    mut publications: Receiver<Publication>,
    state: Arc<Progress>,
) {
    let (send, sent) = unbounded_channel();
    let confirming = tokio::spawn(confirm(client.clone(), sent, Arc::clone(&state)));
    while let Some(publication) = publications.recv().await {
        if let Err(why) = publish_one(&client, publication, &send).await {
            state.fail(&why);
            break;
        }
    }
    drop(send);
    let _ = confirming.await;
}

type Sent = (Publication, PublishNotice);

async fn publish_one(
    client: &AsyncClient,
    publication: Publication,
    sent: &UnboundedSender<Sent>,
) -> Result<(), String> {
    let (topic, payload) = (publication.topic.clone(), publication.payload.clone());
    let notice = client.publish_tracked(topic, payload, publication.options()).await;
    let notice = notice.map_err(|error| format!("{}: {error}", publication.topic))?;
    let _ = sent.send((publication, notice));
    Ok(())
}

/// Waits for what was published to be confirmed, in order, and publishes again what was lost with a session.
async fn confirm(client: AsyncClient, mut sent: UnboundedReceiver<Sent>, state: Arc<Progress>) {
    while let Some((publication, mut notice)) = sent.recv().await {
        loop {
            let error = match notice.wait_completion_async().await {
                Ok(()) => break,
                Err(error) => error,
            };
            if let PublishNoticeError::V5PubAck(reason) = &error {
                let why = refusal(reason);
                return state.fail(&format!(
                    "the broker refuses a message to {}: {why}",
                    publication.topic
                ));
            }
            let (topic, payload) = (publication.topic.clone(), publication.payload.clone());
            match client.publish_tracked(topic, payload, publication.options()).await {
                Ok(again) => notice = again,
                Err(_) => return state.fail(&error.to_string()),
            }
        }
        state.confirm(1);
    }
}

fn refusal(reason: &PubAckReason) -> String {
    match reason {
        PubAckReason::NotAuthorized => "not authorized to publish there".into(),
        PubAckReason::TopicNameInvalid => "it does not take that topic".into(),
        PubAckReason::QuotaExceeded => "a quota is exceeded".into(),
        other => format!("{other:?}"),
    }
}

/// Hears what the broker says of itself.
struct Listener {
    state: Arc<Progress>,
    ready: Option<Sender<Result<(), String>>>,
}

impl Ear for Listener {
    fn hear(&mut self, heard: Heard<'_>) -> Result<(), String> {
        if let Heard::Up(answer) = heard {
            let longest = answer.properties.as_ref().and_then(|said| said.max_packet_size);
            self.state.limit(longest.map(|longest| longest as usize));
            if let Some(ready) = self.ready.take() {
                let _ = ready.send(Ok(()));
            }
        }
        Ok(())
    }

    fn end(&mut self, why: Option<&str>) {
        self.state.fail(why.unwrap_or("the connection has ended"));
    }
}
