//! The consumer of a stream: found or made, and set back to what is acknowledged.

use super::link::Session;
use super::options::Reader;
use super::trouble::chain;
use crate::backoff::Backoff;
use async_nats::Client;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, FromConsumer, PullConsumer};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind, ConsumerResetErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

/// Messages that are asked for at a time, at most.
const BATCH: u16 = 500;

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
    let (begun, mut idle) = (Instant::now(), 0);
    let known = loop {
        let known = match context.get_consumer_from_stream::<Config, _, _>(consumer, name).await {
            Ok(known) => known,
            Err(error) if is_missing(&error) => break None,
            Err(error) => return Err(refused(error)),
        };
        // A process that was killed may be thought to be there for a moment.
        idle = if known.cached_info().num_waiting == 0 { idle + 1 } else { 0 };
        if idle >= LOOKS {
            break Some(known);
        }
        if begun.elapsed() >= OTHERS {
            return Err(format!(
                "another process reads through the consumer `{consumer}`; give one of them another with ?consumer=NAME"
            ));
        }
        sleep(Duration::from_millis(100)).await;
    };
    let known =
        known.map(|known| Config::try_from_consumer_config(known.cached_info().config.clone()));
    let known = known.transpose().map_err(|error| error.to_string())?;
    if known.as_ref().is_some_and(|known| known.ack_policy != AckPolicy::Explicit) {
        return Err(format!(
            "the messages of the consumer `{consumer}` are not acknowledged one by one; name another with ?consumer=NAME"
        ));
    }
    stream.create_consumer(reader.config(known)).await.map_err(refused)
}

fn is_missing(error: &ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(why) if matches!(
        why.error_code(),
        ErrorCode::CONSUMER_NOT_FOUND | ErrorCode::STREAM_NOT_FOUND
    ))
}

/// Has all delivered that is not acknowledged, and what comes after it. Tries for as long as the server is away;
/// `None` if nobody wants any more meanwhile.
pub(super) async fn rewind(
    session: &mut Session,
    consumer: &mut PullConsumer,
    reader: &Reader,
    asked: &UnboundedReceiver<u64>,
) -> Result<Option<Stream>, String> {
    let client = session.client.clone();
    let mut backoff = Backoff::default();
    let mut floor = None;
    let mut missing: Option<Instant> = None;
    while !asked.is_closed() {
        let tried = tokio::select! {
            biased;
            // There is a connection again, perhaps, so a request that went over the old one is in vain.
            event = session.news() => {
                event?;
                continue;
            }
            tried = set_back(&client, consumer, reader, &mut floor) => tried,
        };
        match tried {
            Ok(messages) => return Ok(Some(messages)),
            Err(Unset::Missing) => {
                let since = *missing.get_or_insert_with(Instant::now);
                if since.elapsed() >= MISSING {
                    return Err(format!(
                        "the consumer `{}` is gone, and with it how far it was read; started again, all of the stream `{}` is read",
                        reader.consumer, reader.stream
                    ));
                }
            }
            Err(Unset::Passing) => {}
        }
        sleep(backoff.next_wait()).await;
    }
    Ok(None)
}

/// Why a consumer was not set back.
enum Unset {
    /// The server knows nothing of it.
    Missing,
    /// Anything that may pass.
    Passing,
}

/// Sets a consumer back to what is acknowledged, and asks for messages.
async fn set_back(
    client: &Client,
    consumer: &mut PullConsumer,
    reader: &Reader,
    floor: &mut Option<u64>,
) -> Result<Stream, Unset> {
    let (major, minor, patch) = CAN_RESET;
    if client.is_server_compatible(major, minor, patch) {
        let done = consumer.reset(None).await;
        done.map_err(|error| match error.kind() {
            ConsumerResetErrorKind::NotFound => Unset::Missing,
            _ => Unset::Passing,
        })?;
    } else {
        make_anew(client, consumer, floor).await?;
    }
    let messages = consumer
        .stream()
        .max_messages_per_batch(reader.inflight.min(BATCH).into())
        .expires(STANDING)
        .heartbeat(HEARTBEAT)
        .messages();
    messages.await.map_err(|_| Unset::Passing)
}

/// The same with a server that cannot set a consumer back: it gets another one of the same name, which begins there.
/// `floor` is where, once that is known; a crash between the two steps costs it, and the stream is read from its beginning.
async fn make_anew(
    client: &Client,
    consumer: &mut PullConsumer,
    floor: &mut Option<u64>,
) -> Result<(), Unset> {
    if floor.is_none() {
        let info = consumer.get_info().await.map_err(|error| match error.kind() {
            ConsumerInfoErrorKind::NotFound => Unset::Missing,
            _ => Unset::Passing,
        })?;
        if info.num_ack_pending == 0 {
            return Ok(());
        }
        *floor = Some(info.ack_floor.stream_sequence);
    }
    let start_sequence = floor.unwrap_or_default() + 1;
    let info = consumer.cached_info();
    let (stream, name) = (info.stream_name.clone(), info.name.clone());
    let config = Config::try_from_consumer_config(info.config.clone());
    let config = config.map_err(|_| Unset::Passing)?;
    let config =
        Config { deliver_policy: DeliverPolicy::ByStartSequence { start_sequence }, ..config };
    let context = jetstream::new(client.clone());
    match context.delete_consumer_from_stream(&name, &stream).await {
        Ok(_) => {}
        Err(error) if is_missing(&error) => {}
        Err(_) => return Err(Unset::Passing),
    }
    let made = context.create_consumer_on_stream(config, &stream).await;
    *consumer = made.map_err(|_| Unset::Passing)?;
    *floor = None;
    Ok(())
}
