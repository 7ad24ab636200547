//! Publications.

use super::driver::{Connection, Ear, Heard};
use super::options;
use crate::address::Address;
use crate::error::ConnectError;
use crate::labels;
use crate::outbox::Outbox;
use crate::queue::{ENDED, Progress};
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
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};

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
    publications: Outbox<Publication, Connection>,
}

impl Output {
    pub(super) fn open(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        let options = options::publisher(address, settings)?;
        let topic = Template::new(&address.path).map_err(|why| address.wrong(&why))?;
        let whole = topic.fill(None, "none");
        options::check_topic(&whole).map_err(|why| address.wrong(why))?;
        let publications = Outbox::open(|to_publish, progress| {
            let (ready, is_ready) = mpsc::channel();
            let (to_hear, told) = (Arc::clone(&progress), ready.clone());
            let ear = move |_| Listener { progress: to_hear, ready: Some(told) };
            let work = move |client| publish(client, to_publish, progress);
            Connection::open(address, settings, options, (ready, &is_ready), ear, work)
        })?;
        Ok(Self { topic, publications })
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
        self.publications.check(publication.length(), record.len(), &publication.topic)?;
        self.publications.send(publication)
    }

    fn confirm(&mut self) -> io::Result<()> {
        self.publications.confirm()
    }
}

/// Publishes what comes, until nothing more can.
async fn publish(
    client: AsyncClient,
    mut publications: Receiver<Publication>,
    progress: Arc<Progress>,
) {
    let (send, sent) = unbounded_channel();
    let confirming = tokio::spawn(confirm(client.clone(), sent, Arc::clone(&progress)));
    while let Some(publication) = publications.recv().await {
        if let Err(why) = publish_one(&client, publication, &send).await {
            progress.fail(&why);
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
async fn confirm(client: AsyncClient, mut sent: UnboundedReceiver<Sent>, progress: Arc<Progress>) {
    while let Some((publication, mut notice)) = sent.recv().await {
        loop {
            let error = match notice.wait_completion_async().await {
                Ok(()) => break,
                Err(error) => error,
            };
            if let PublishNoticeError::V5PubAck(reason) = &error {
                let why = refusal(reason);
                return progress.fail(&format!(
                    "the broker refuses a message to {}: {why}",
                    publication.topic
                ));
            }
            let (topic, payload) = (publication.topic.clone(), publication.payload.clone());
            match client.publish_tracked(topic, payload, publication.options()).await {
                Ok(again) => notice = again,
                Err(_) => return progress.fail(&error.to_string()),
            }
        }
        progress.confirm(1);
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
    progress: Arc<Progress>,
    ready: Option<Sender<Result<(), String>>>,
}

impl Ear for Listener {
    fn hear(&mut self, heard: Heard<'_>) -> Result<(), String> {
        if let Heard::Up(answer) = heard {
            let longest = answer.properties.as_ref().and_then(|said| said.max_packet_size);
            self.progress.limit(longest.map(|longest| longest as usize));
            if let Some(ready) = self.ready.take() {
                let _ = ready.send(Ok(()));
            }
        }
        Ok(())
    }

    fn end(&mut self, why: Option<&str>) {
        self.progress.fail(why.unwrap_or(ENDED));
    }
}
