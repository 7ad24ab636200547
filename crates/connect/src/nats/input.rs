//! The messages of a stream, in its order, through a consumer that the server keeps.
//!
//! The consumer belongs to one process. So what is acknowledged is a prefix of the stream, and whenever messages may be
//! missing (after a crash, or when a connection was lost) the server is told to deliver all after that prefix once more,
//! in order. What we have had of it already is dropped here.

use super::consumer::{acknowledges_all, attach, rewind};
use super::handed::{Delivery, Handed, Place};
use super::link::{FAREWELL, Link, News, Ready, Session};
use super::options::Reader;
use super::trouble::chain;
use crate::address::Address;
use crate::error::ConnectError;
use crate::outbox::last_told;
use crate::queue::{Arrivals, Inbox};
use crate::settings::Settings;
use async_nats::connection::State;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::{MessagesError, MessagesErrorKind};
use async_nats::{HeaderMap, Subject, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use lately_stream::read::message::Message;
use lately_stream::record::Envelope;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How long to wait before messages are asked for once more that the server would not send.
const PAUSE: Duration = Duration::from_millis(100);

/// After how long without a message it is looked whether the server waits for something that we have acknowledged.
const QUIET: Duration = Duration::from_secs(10);

/// Reads the stream that an address names.
pub(super) fn open(address: &Address, settings: &Settings) -> Result<Inbox<Link>, ConnectError> {
    let reader = Reader::new(address, settings)?;
    Inbox::open(|arrivals, told| {
        let to_end = arrivals.clone();
        let work = move |session, ready| read(session, reader, told, arrivals, ready);
        let end = move |why: Option<&str>| why.into_iter().for_each(|why| to_end.fail(why));
        Link::open(address, settings, work, end)
    })
}

/// Reads until nobody acknowledges any more.
async fn read(
    mut session: Session,
    reader: Reader,
    mut told: UnboundedReceiver<u64>,
    arrivals: Arrivals,
    ready: Ready,
) -> Result<(), String> {
    let context = jetstream::new(session.client.clone());
    let mut consumer = attach(&context, &reader).await?;
    let mut messages = None;
    let mut handed = Handed::default();
    let mut ready = Some(ready);
    let (mut look, mut is_quiet) = (interval(QUIET), false);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(coming) = &mut messages else {
            let was_lost = ready.is_none();
            let set_back = rewind(&mut session, &mut consumer, &reader, &told, was_lost);
            let Some(deliveries) = set_back.await? else { break };
            handed.rewind(deliveries.first);
            messages = Some(deliveries.messages);
            ready.take().map(|ready| ready.send(Ok(())));
            continue;
        };
        tokio::select! {
            // First what says that acknowledgements are of an old connection.
            biased;
            event = session.news() => if event? == News::Again {
                messages = None;
            },
            token = last_told(&mut told) => {
                let Some(token) = token else { break };
                let mut replies = handed.acknowledge(token);
                if acknowledges_all(&consumer) {
                    replies = replies.split_off(replies.len().saturating_sub(1));
                }
                for reply in replies {
                    acknowledge(&session, reply).await?;
                }
            }
            message = coming.next() => match message {
                Some(Ok(message)) => {
                    is_quiet = false;
                    let (Some(at), Some(reply)) = (Place::of(&message), &message.message.reply)
                    else {
                        continue;
                    };
                    match handed.deliver(at, reply.clone()) {
                        Delivery::New => {
                            arrivals.hand_over(received(&reader, message, at));
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
            _ = look.tick() => {
                if is_quiet && handed.is_idle() && session.is_up() && awaits(&consumer).await {
                    messages = None;
                }
                is_quiet = true;
            }
        }
    }
    // The answer comes when what was acknowledged before has arrived.
    let _ = timeout(FAREWELL, consumer.get_info()).await;
    Ok(())
}

/// Does the server wait for acknowledgements of what it has delivered? Those that we sent were lost, or it took them for old
/// ones because of one that another process had still to send when we took its place.
async fn awaits(consumer: &PullConsumer) -> bool {
    consumer.get_info().await.is_ok_and(|info| info.num_ack_pending > 0)
}

async fn acknowledge(session: &Session, reply: Subject) -> Result<(), String> {
    // The client would keep it for the next connection, when somebody else may have set the consumer back.
    if !session.is_up() || session.client.connection_state() != State::Connected {
        return Ok(());
    }
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
        headers: headers.collect(),
        // The moment tells it from one of a stream that had this name before.
        id: format!("{stream}/{consumer}/{}/{}", at.stream, at.published),
        ..Envelope::default()
    };
    Message { payload: message.payload.into(), envelope: Arc::new(envelope), token: at.stream }
}
