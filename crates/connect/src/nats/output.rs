//! Messages for streams, each kept until a stream has confirmed it.

use super::link::{FAREWELL, Link, News, Ready, Session};
use super::subject;
use crate::address::Address;
use crate::error::ConnectError;
use crate::labels;
use crate::outbox::Outbox;
use crate::queue::{ENDED, Progress};
use crate::settings::Settings;
use crate::template::Template;
use async_nats::header::{HeaderMap, HeaderName, HeaderValue, NATS_MESSAGE_ID};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::{RequestErrorKind, StatusCode};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use lately_stream::write::message::{About, MessageOutput};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Messages that are on their way at a time.
const OUTGOING: usize = 1024;

/// Messages that are sent before it is looked what came back.
const TOGETHER: usize = 64;

/// After how long a message that nobody has confirmed is sent again.
const UNHEARD: Duration = Duration::from_secs(5);

/// How often that is looked for.
const WATCHFUL: Duration = Duration::from_secs(1);

/// How long a server that has just started may know no stream for a subject.
const NOBODY: Duration = Duration::from_secs(10);

/// A message for a stream.
#[derive(Clone)]
struct Outgoing {
    subject: String,
    payload: Bytes,
    headers: HeaderMap,
}

/// Publishes records.
pub(super) struct Output {
    subject: Template,
    /// What tells this run from others, for records that have nothing else to be told by.
    run: u64,
    messages: Outbox<Outgoing, Link>,
}

impl Output {
    pub(super) fn open(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        address.only(&[])?;
        let subject = Template::new(&address.path).map_err(|why| address.wrong(&why))?;
        if address.path.is_empty() {
            return Err(
                address.wrong("no subject; name one after the host: nats://localhost/clean")
            );
        }
        let whole = subject.fill(None, "none");
        subject::check_subject(&whole).map_err(|why| address.wrong(why))?;
        let fixed = subject.fixed().map(str::to_owned);
        let messages = Outbox::open(|coming, progress| {
            let to_end = Arc::clone(&progress);
            let work = move |session, ready| publish(session, fixed, coming, progress, ready);
            let end = move |why: Option<&str>| to_end.fail(why.unwrap_or(ENDED));
            Link::open(address, settings, work, end)
        })?;
        Ok(Self { subject, run: fastrand::u64(..), messages })
    }

    fn message(&self, record: &[u8], about: &About) -> Outgoing {
        let envelope = about.from.as_ref().map(|(envelope, _)| &**envelope);
        let subject = subject::of_text(&self.subject.fill(envelope, "none"));
        let mut headers = HeaderMap::new();
        for (name, value) in labels::headers(about) {
            // Those of the server say how that message was to be stored, not this one.
            let name = token(&name);
            if !name.starts_with("Nats-")
                && let (Ok(name), Ok(value)) =
                    (name.parse::<HeaderName>(), line(&value).parse::<HeaderValue>())
            {
                headers.append(name, value);
            }
        }
        headers.insert(NATS_MESSAGE_ID, self.id(about));
        Outgoing { subject, payload: Bytes::copy_from_slice(record), headers }
    }

    /// What tells a record from all others, so that the stream drops one that comes again: of what came in a message
    /// with an id it is the same after a crash; of others only for this run.
    fn id(&self, about: &About) -> String {
        match &about.from {
            Some((envelope, index)) if !envelope.id.is_empty() => {
                format!("{}/{index}/{}", envelope.id, about.class.name())
            }
            _ => format!("lately-{:016x}/{}", self.run, self.messages.sent()),
        }
    }
}

/// The name of a header, which has neither colons nor spaces.
fn token(text: &str) -> String {
    text.replace(|char: char| !char.is_ascii_graphic() || char == ':', "_")
}

/// The value of a header, which is one line.
fn line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

impl Outgoing {
    /// Its length, as the server counts: headers and payload.
    fn length(&self) -> usize {
        let headers = self.headers.iter().flat_map(|(name, values)| {
            values.iter().map(move |value| name.to_string().len() + value.as_str().len() + 4)
        });
        "NATS/1.0\r\n\r\n".len() + headers.sum::<usize>() + self.payload.len()
    }
}

impl MessageOutput for Output {
    fn send(&mut self, record: &[u8], about: &About) -> io::Result<()> {
        let message = self.message(record, about);
        self.messages.check(message.length(), record.len(), &message.subject)?;
        self.messages.send(message)
    }

    fn confirm(&mut self) -> io::Result<()> {
        self.messages.confirm()
    }
}

/// Publishes what comes, until nothing more can and all is confirmed.
async fn publish(
    mut session: Session,
    fixed: Option<String>,
    mut coming: Receiver<Outgoing>,
    progress: Arc<Progress>,
    ready: Ready,
) -> Result<(), String> {
    if let Some(subject) = fixed {
        find_stream(&session, &subject).await?;
    }
    let inbox = session.client.new_inbox();
    let answers = session.client.subscribe(format!("{inbox}.*")).await;
    let mut answers = answers.map_err(|error| error.to_string())?;
    let mut flight = Flight::new(inbox);
    let mut tick = interval(WATCHFUL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    progress.limit(Some(session.client.max_payload()));
    let _ = ready.send(Ok(()));
    let (mut next, mut is_open) = (Vec::with_capacity(TOGETHER), true);
    while is_open || !flight.is_empty() {
        let room = OUTGOING.saturating_sub(flight.len()).min(TOGETHER);
        tokio::select! {
            count = coming.recv_many(&mut next, room), if is_open && room > 0 => {
                is_open = count > 0;
                for message in next.drain(..) {
                    flight.send(&session, message).await?;
                }
            }
            answer = answers.next() => {
                let Some(answer) = answer else { return Err(ENDED.into()) };
                let mut confirmed = u64::from(flight.answer(&session, &answer)?);
                while let Some(Some(answer)) = answers.next().now_or_never() {
                    confirmed += u64::from(flight.answer(&session, &answer)?);
                }
                progress.confirm(confirmed);
            }
            event = session.news() => {
                if event? == News::Again {
                    progress.limit(Some(session.client.max_payload()));
                    flight.send_again(&session, Duration::ZERO).await?;
                }
            }
            _ = tick.tick() => if session.is_up() {
                flight.send_again(&session, UNHEARD).await?;
            },
        }
    }
    if flight.repeats > 0 {
        let Flight { repeats, .. } = flight;
        (session.tell)(&format!("{}: repeats that the broker dropped: {repeats}", session.name));
    }
    let _ = timeout(FAREWELL, session.client.flush()).await;
    Ok(())
}

/// Looks whether any stream takes this subject.
async fn find_stream(session: &Session, subject: &str) -> Result<(), String> {
    let question = serde_json::json!({ "subject": subject }).to_string();
    let answer = session.client.request("$JS.API.STREAM.NAMES", question.into()).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.kind() == RequestErrorKind::NoResponders => {
            return Err("JetStream is not enabled there (nats-server -js)".into());
        }
        // We may not be authorized to ask, and yet to publish.
        Err(_) => return Ok(()),
    };
    let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    let streams = answer.get("streams").and_then(serde_json::Value::as_array);
    let is_none = streams.is_none_or(Vec::is_empty) && answer.get("error").is_none();
    if is_none { Err(no_stream(subject)) } else { Ok(()) }
}

fn no_stream(subject: &str) -> String {
    format!(
        "no stream takes the subject `{subject}`, so nothing would keep the records; make one: nats stream add NAME --subjects {subject}"
    )
}

/// Messages that are on their way.
struct Flight {
    inbox: String,
    /// By the number that comes back with the answer.
    messages: BTreeMap<u64, Waiting>,
    last: u64,
    /// Messages that the server had already.
    repeats: u64,
    /// It was told that a stream is full.
    is_full: bool,
}

struct Waiting {
    message: Outgoing,
    /// When it was sent last.
    sent: Instant,
    /// Since when no stream takes it.
    homeless: Option<Instant>,
}

impl Flight {
    fn new(inbox: String) -> Self {
        Self { inbox, messages: BTreeMap::new(), last: 0, repeats: 0, is_full: false }
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    async fn send(&mut self, session: &Session, message: Outgoing) -> Result<(), String> {
        self.last += 1;
        send(session, &self.inbox, self.last, &message).await?;
        let waiting = Waiting { message, sent: Instant::now(), homeless: None };
        self.messages.insert(self.last, waiting);
        Ok(())
    }

    /// Sends again what was sent so long ago, in order. The server drops what it has by the message's id.
    async fn send_again(&mut self, session: &Session, age: Duration) -> Result<(), String> {
        for (number, waiting) in &mut self.messages {
            if waiting.sent.elapsed() >= age {
                send(session, &self.inbox, *number, &waiting.message).await?;
                waiting.sent = Instant::now();
            }
        }
        Ok(())
    }

    /// An answer has come. Is a message confirmed by it?
    fn answer(&mut self, session: &Session, answer: &async_nats::Message) -> Result<bool, String> {
        let number = answer.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let Some(number) = number else { return Ok(false) };
        // It was sent twice, and this is the second answer.
        let Some(waiting) = self.messages.get_mut(&number) else { return Ok(false) };
        let subject = &waiting.message.subject;
        if answer.status == Some(StatusCode::NO_RESPONDERS) {
            let since = *waiting.homeless.get_or_insert_with(Instant::now);
            return if since.elapsed() < NOBODY { Ok(false) } else { Err(no_stream(subject)) };
        }
        match serde_json::from_slice::<Response<PublishAck>>(&answer.payload) {
            Ok(Response::Ok(confirmed)) => {
                self.repeats += u64::from(confirmed.duplicate);
                self.messages.remove(&number);
                Ok(true)
            }
            Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_STORE_FAILED => {
                if !self.is_full {
                    self.is_full = true;
                    (session.tell)(&format!(
                        "{}: the stream does not take more for now ({error}); trying again until it does",
                        session.name
                    ));
                }
                Ok(false)
            }
            // A cluster that looks for a leader, or has too much to do.
            Ok(Response::Err { error }) if error.code() == 503 => Ok(false),
            Ok(Response::Err { error }) => {
                Err(format!("the broker refuses a message to {subject}: {error}"))
            }
            Err(error) => Err(format!("an answer about {subject} is not JetStream's: {error}")),
        }
    }
}

async fn send(
    session: &Session,
    inbox: &str,
    number: u64,
    message: &Outgoing,
) -> Result<(), String> {
    let Outgoing { subject, payload, headers } = message.clone();
    let reply = format!("{inbox}.{number}");
    let sent = session.client.publish_with_reply_and_headers(subject, reply, headers, payload);
    sent.await.map_err(|error| error.to_string())
}
