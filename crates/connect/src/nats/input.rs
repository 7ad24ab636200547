//! The messages of a stream, in its order, through a consumer that the server keeps.
//!
//! The consumer belongs to one process. So what is acknowledged is a prefix of the stream, and whenever messages may be
//! missing (after a crash, or when a connection was lost) the server is told to deliver all after that prefix once more,
//! in order. What we have had of it already is dropped here.

use super::consumer::{attach, rewind};
use super::handed::{Delivery, Handed, Place};
use super::link::{FAREWELL, Link, News, Ready, Session};
use super::options::Reader;
use super::trouble::chain;
use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use async_nats::jetstream::consumer::pull::{MessagesError, MessagesErrorKind};
use async_nats::{HeaderMap, Subject, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use lately_stream::read::message::{Acknowledge, Message, MessageInput, Received};
use lately_stream::record::Envelope;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

/// How long to wait before messages are asked for once more that the server would not send.
const PAUSE: Duration = Duration::from_millis(100);

/// Messages of a stream.
pub(super) struct Input {
    news: Receiver<Result<Message, String>>,
    // Before the connection, which ends when nobody can ask for anything any more.
    requests: UnboundedSender<u64>,
    link: Arc<Link>,
}

/// Acknowledges them.
struct Acknowledger {
    requests: UnboundedSender<u64>,
    _link: Arc<Link>,
}

impl Input {
    pub(super) fn open(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        let reader = Reader::new(address, settings)?;
        let (tell_news, news) = mpsc::channel();
        let (requests, asked) = unbounded_channel();
        let tell_end = tell_news.clone();
        let work = move |session, ready| read(session, reader, asked, tell_news, ready);
        let end = move |why: Option<&str>| {
            if let Some(why) = why {
                let _ = tell_end.send(Err(why.into()));
            }
        };
        let link = Link::open(address, settings, work, end)?;
        Ok(Self { news, requests, link: Arc::new(link) })
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
            Ok(Ok(message)) => Received::Message(message),
            Ok(Err(why)) => Received::Failed(why),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => {
                Received::Failed("the connection has ended".into())
            }
        }
    }

    fn acknowledger(&self) -> Box<dyn Acknowledge> {
        let (requests, link) = (self.requests.clone(), Arc::clone(&self.link));
        Box::new(Acknowledger { requests, _link: link })
    }
}

impl Acknowledge for Acknowledger {
    fn acknowledge(&mut self, token: u64) {
        // Without a connection it is delivered again.
        let _ = self.requests.send(token);
    }
}

/// Reads until nobody acknowledges any more.
async fn read(
    mut session: Session,
    reader: Reader,
    mut asked: UnboundedReceiver<u64>,
    news: Sender<Result<Message, String>>,
    ready: Ready,
) -> Result<(), String> {
    let context = jetstream::new(session.client.clone());
    let mut consumer = attach(&context, &reader).await?;
    let mut messages = None;
    let mut handed = Handed::default();
    let mut ready = Some(ready);
    loop {
        let Some(coming) = &mut messages else {
            messages = rewind(&mut session, &mut consumer, &reader, &asked).await?;
            handed.rewind();
            ready.take().map(|ready| ready.send(Ok(())));
            if messages.is_none() {
                break;
            }
            continue;
        };
        tokio::select! {
            token = asked.recv() => {
                let Some(mut token) = token else { break };
                while let Ok(later) = asked.try_recv() {
                    token = later;
                }
                for reply in handed.acknowledge(token) {
                    acknowledge(&session, reply).await?;
                }
            }
            event = session.news() => if event? == News::Again {
                messages = None;
            },
            message = coming.next() => match message {
                Some(Ok(message)) => {
                    let (Some(at), Some(reply)) = (Place::of(&message), &message.message.reply)
                    else {
                        continue;
                    };
                    match handed.deliver(at, reply.clone()) {
                        Delivery::New => {
                            let _ = news.send(Ok(received(&reader, message, at)));
                        }
                        Delivery::Again => {}
                        Delivery::Done(reply) => acknowledge(&session, reply).await?,
                        Delivery::Gap => messages = None,
                    }
                }
                Some(Err(error)) => {
                    give_up(&error)?;
                    sleep(PAUSE).await;
                    messages = None;
                }
                None => messages = None,
            },
        }
    }
    // The answer comes when what was acknowledged before has arrived.
    let _ = timeout(FAREWELL, consumer.get_info()).await;
    Ok(())
}

async fn acknowledge(session: &Session, reply: Subject) -> Result<(), String> {
    let sent = session.client.publish(reply, Bytes::from_static(b"+ACK")).await;
    sent.map_err(|error| chain(&error))
}

/// Ends the run if the server will never send what is asked of it.
fn give_up(error: &MessagesError) -> Result<(), String> {
    match error.kind() {
        MessagesErrorKind::RequestLimitExceeded => Err(format!(
            "the server does not send as many messages at a time; ask for fewer with ?inflight=COUNT ({})",
            chain(error)
        )),
        _ => Ok(()),
    }
}

/// A message as the stream of records wants it.
fn received(reader: &Reader, message: jetstream::Message, at: Place) -> Message {
    let Reader { stream, consumer, .. } = reader;
    let message = message.split().0;
    let mut headers: Vec<_> = message.headers.iter().flat_map(HeaderMap::iter).collect();
    headers.sort_by(|(a, _), (b, _)| str::cmp(a.as_ref(), b.as_ref()));
    let headers = headers.into_iter().flat_map(|(name, values)| {
        values.iter().map(move |value| (name.to_string(), value.to_string()))
    });
    let envelope = Envelope {
        topic: message.subject.into_string(),
        key: None,
        headers: headers.collect(),
        // The moment tells it from one of a stream that had this name before.
        id: format!("{stream}/{consumer}/{}/{}", at.stream, at.published),
    };
    Message { payload: message.payload.into(), envelope: Arc::new(envelope), token: at.stream }
}
