//! The consumer of a stream: found or made, and set back to what is acknowledged.

use super::link::Session;
use super::options::Reader;
use super::trouble::chain;
use crate::backoff::Backoff;
use async_nats::Client;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, FromConsumer, Info, PullConsumer};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{
    ConsumerError, ConsumerErrorKind, ConsumerResetErrorKind, RetentionPolicy,
};
use async_nats::jetstream::{self, Context, ErrorCode};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

/// Messages that are asked for at a time, at most.
const BATCH: u16 = 1024;

/// A server that says nothing for two of these is asked again.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long one request for messages stands.
const STANDING: Duration = Duration::from_secs(10);

/// How long another process may take to leave a consumer.
const OTHERS: Duration = Duration::from_secs(15);

/// How long a server that has just started may say that it knows nothing of a consumer.
const MISSING: Duration = Duration::from_secs(10);

/// The first version of the server that can set a consumer back.
const CAN_RESET: (i64, i64, i64) = (2, 14, 0);

/// How often in a row nobody is found to be reading before a consumer counts as free: a reader asks again only after its
/// last request has expired, and between the two it seems to be away.
const LOOKS: u32 = 5;

/// What is between two of these, on average.
const LOOK: Duration = Duration::from_millis(100);

/// The consumer of a stream: the one that there is, or a new one.
pub(super) async fn attach(context: &Context, reader: &Reader) -> Result<PullConsumer, String> {
    let Reader { stream: name, consumer, .. } = reader;
    let stream = context.get_stream(name).await.map_err(|error| match error.kind() {
        GetStreamErrorKind::JetStream(why) => {
            if why.error_code() == ErrorCode::STREAM_NOT_FOUND {
                format!("there is no stream `{name}`; make one (nats stream add {name} --subjects ..), or see what there are: nats stream ls")
            } else {
                why.to_string()
            }
        }
        _ => format!("the server does not answer as one with JetStream does; is it enabled there (nats-server -js), and are we authorized for $JS.API.>? ({})", chain(&error)),
    })?;
    let refused = |error: ConsumerError| {
        format!("the consumer `{consumer}` cannot be used: {}", chain(&error))
    };
    let find = async || match context.get_consumer_from_stream::<Config, _, _>(consumer, name).await
    {
        Ok(known) => Ok(Some(known)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(refused(error)),
    };
    let mut known = find().await?;
    if known.is_some() {
        let waiting = async || {
            find().await.map(|known| known.map_or(0, |known| known.cached_info().num_waiting))
        };
        if !wait_for_others(waiting).await? {
            return Err(is_read(reader));
        }
        known = find().await?;
    }
    let known =
        known.map(|known| Config::try_from_consumer_config(known.cached_info().config.clone()));
    let known = known.transpose().map_err(|error| error.to_string())?;
    if known.as_ref().is_some_and(|known| known.ack_policy == AckPolicy::None) {
        return Err(format!(
            "the messages of the consumer `{consumer}` are not acknowledged, so it does not keep how far it was read; name another with ?consumer=NAME"
        ));
    }
    // What is acknowledged is a prefix of the stream. A queue of work takes it one by one only.
    let is_queue = stream.cached_info().config.retention == RetentionPolicy::WorkQueue;
    let ack_policy = if is_queue { AckPolicy::Explicit } else { AckPolicy::All };
    stream.create_consumer(reader.config(known, ack_policy)).await.map_err(refused)
}

/// Does an acknowledgement of a message stand for all before it?
pub(super) fn acknowledges_all(consumer: &PullConsumer) -> bool {
    consumer.cached_info().config.ack_policy == AckPolicy::All
}

/// Waits a while until nobody else reads through a consumer, which `waiting` tells: how many requests for messages stand
/// there. Returns whether nobody does.
async fn wait_for_others<E>(mut waiting: impl AsyncFnMut() -> Result<usize, E>) -> Result<bool, E> {
    let (begun, mut idle) = (Instant::now(), 0);
    loop {
        // A process that was killed, and our own last request, may be thought to be there for a moment.
        idle = if waiting().await? == 0 { idle + 1 } else { 0 };
        if idle >= LOOKS {
            return Ok(true);
        }
        if begun.elapsed() >= OTHERS {
            return Ok(false);
        }
        // By chance, so that of two that wait for each other one is first.
        sleep(LOOK.mul_f64(0.5 + fastrand::f64())).await;
    }
}

fn is_read(Reader { consumer, .. }: &Reader) -> String {
    format!(
        "another process reads through the consumer `{consumer}`; give one of them another with ?consumer=NAME"
    )
}

fn is_missing(error: &ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(why) if matches!(
        why.error_code(),
        ErrorCode::CONSUMER_NOT_FOUND | ErrorCode::STREAM_NOT_FOUND
    ))
}

/// What a consumer delivers that was set back.
pub(super) struct Deliveries {
    pub(super) messages: Stream,
    /// The number of the first delivery, if that is known.
    pub(super) first: Option<u64>,
}

/// Has all delivered that is not acknowledged, and what comes after it. Tries for as long as the server is away;
/// `None` if nobody wants any more meanwhile. `was_lost` says that somebody else may have taken our place.
pub(super) async fn rewind(
    session: &mut Session,
    consumer: &mut PullConsumer,
    reader: &Reader,
    told: &UnboundedReceiver<u64>,
    was_lost: bool,
) -> Result<Option<Deliveries>, String> {
    let client = session.client.clone();
    let mut backoff = Backoff::default();
    let mut floor = None;
    let mut missing: Option<Instant> = None;
    while !told.is_closed() {
        let tried = tokio::select! {
            biased;
            // There is a connection again, perhaps, so a request that went over the old one is in vain.
            event = session.news() => {
                event?;
                continue;
            }
            tried = set_back(&client, consumer, reader, &mut floor, was_lost) => tried,
        };
        match tried {
            Ok(deliveries) => return Ok(Some(deliveries)),
            Err(Unset::Taken) => return Err(is_read(reader)),
            Err(Unset::Missing) => {
                let since = *missing.get_or_insert_with(Instant::now);
                if since.elapsed() >= MISSING {
                    return Err(format!(
                        "the consumer `{}` is gone, and with it how far it was read; started again, all of the stream `{}` is read",
                        reader.consumer, reader.stream
                    ));
                }
            }
            Err(Unset::Refused(why)) => {
                return Err(format!(
                    "the consumer `{}` cannot be set back: {why}",
                    reader.consumer
                ));
            }
            Err(Unset::Passing) => {}
        }
        sleep(backoff.next_wait()).await;
    }
    Ok(None)
}

/// Why a consumer was not set back.
enum Unset {
    /// Another process reads through it.
    Taken,
    /// The server knows nothing of it.
    Missing,
    /// The server will never do it.
    Refused(String),
    /// Anything that may pass.
    Passing,
}

/// Sets a consumer back to what is acknowledged, and asks for messages.
async fn set_back(
    client: &Client,
    consumer: &mut PullConsumer,
    reader: &Reader,
    floor: &mut Option<u64>,
    was_lost: bool,
) -> Result<Deliveries, Unset> {
    if was_lost
        && !wait_for_others(async || info(consumer).await.map(|info| info.num_waiting)).await?
    {
        return Err(Unset::Taken);
    }
    let (major, minor, patch) = CAN_RESET;
    let first = if client.is_server_compatible(major, minor, patch) {
        let done = consumer.reset(None).await;
        done.map_err(|error| match error.kind() {
            ConsumerResetErrorKind::NotFound => Unset::Missing,
            _ => Unset::Passing,
        })?;
        Some(1)
    } else {
        make_again(client, consumer, floor).await?
    };
    let messages = consumer
        .stream()
        .max_messages_per_batch(reader.inflight.min(BATCH).into())
        .expires(STANDING)
        .heartbeat(HEARTBEAT)
        .messages();
    Ok(Deliveries { messages: messages.await.map_err(|_| Unset::Passing)?, first })
}

/// What the server says of a consumer.
async fn info(consumer: &PullConsumer) -> Result<Info, Unset> {
    consumer.get_info().await.map_err(|error| match error.kind() {
        ConsumerInfoErrorKind::NotFound => Unset::Missing,
        _ => Unset::Passing,
    })
}

/// The same with a server that cannot set a consumer back: it gets another one of the same name, which begins there.
/// `floor` is where, once that is known; a crash between the two steps costs it, and the stream is read from its beginning.
/// Returns the number of the first delivery, if that is known.
async fn make_again(
    client: &Client,
    consumer: &mut PullConsumer,
    floor: &mut Option<u64>,
) -> Result<Option<u64>, Unset> {
    if floor.is_none() {
        let info = info(consumer).await?;
        if info.num_ack_pending == 0 {
            return Ok(None);
        }
        *floor = Some(info.ack_floor.stream_sequence);
    }
    let start_sequence = floor.unwrap_or_default() + 1;
    let known = consumer.cached_info();
    let (stream, name) = (known.stream_name.clone(), known.name.clone());
    let config = Config::try_from_consumer_config(known.config.clone());
    let config = config.map_err(|_| Unset::Passing)?;
    let context = jetstream::new(client.clone());
    // A queue of work has no more of what was acknowledged, and takes no other beginning.
    let kept = context.get_stream(&stream).await.map_err(|_| Unset::Passing)?;
    let deliver_policy = match kept.cached_info().config.retention {
        RetentionPolicy::WorkQueue => DeliverPolicy::All,
        _ => DeliverPolicy::ByStartSequence { start_sequence },
    };
    let config = Config { deliver_policy, ..config };
    match context.delete_consumer_from_stream(&name, &stream).await {
        Ok(_) => {}
        Err(error) if is_missing(&error) => {}
        Err(_) => return Err(Unset::Passing),
    }
    let made = context.create_consumer_on_stream(config, &stream).await;
    *consumer = made.map_err(|error| match error.kind() {
        ConsumerErrorKind::JetStream(why) if why.code() < 500 => Unset::Refused(chain(&error)),
        _ => Unset::Passing,
    })?;
    *floor = None;
    Ok(Some(1))
}
