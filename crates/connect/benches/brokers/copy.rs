//! Clients that only copy.

use async_nats::jetstream::consumer::AckPolicy;
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Message};
use futures_util::StreamExt;
use lately_connect::{Login, Settings};
use lately_stream::judge::class::Class;
use lately_stream::read::message::Received;
use lately_stream::write::message::About;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::channel;

/// Messages that are confirmed and acknowledged together, as the program does.
const TOGETHER: usize = 512;

/// The connections of this crate: what comes is published, and acknowledged when the broker has it.
pub(crate) fn ours(from: &str, to: &str) {
    let settings = Settings {
        login: Login::default(),
        authorities: None,
        identity: "copy".into(),
        tell: Arc::new(|what| eprintln!("{what}")),
    };
    let mut input = lately_connect::input(&from.parse().unwrap(), &settings).unwrap();
    let mut output = lately_connect::output(&to.parse().unwrap(), &settings).unwrap();
    let mut acknowledger = input.acknowledger();
    let (mut count, mut last) = (0, 0);
    loop {
        // What is there is taken; then all of it is confirmed, and only then it is waited for more.
        let patience = if count == 0 { Duration::from_secs(1) } else { Duration::ZERO };
        let is_all = match input.next(patience) {
            Received::Message(message) => {
                let about =
                    About { class: Class::Fresh, reason: None, from: Some((message.envelope, 0)) };
                output.send(&message.payload, &about).unwrap();
                (count, last) = (count + 1, message.token);
                count == TOGETHER
            }
            Received::Nothing => count > 0,
            Received::Failed(why) => panic!("{why}"),
        };
        if is_all {
            output.confirm().unwrap();
            acknowledger.acknowledge(last);
            count = 0;
        }
    }
}

/// The same with nothing but async-nats, as its documentation has it; `with_ids` each copy has an id, so that the stream
/// drops one that comes again, as those of the program have.
pub(crate) fn nats(from: &str, to: &str, with_ids: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (server, rest) = from.rsplit_once('/').unwrap();
        let (stream, consumer) = rest.split_once("?consumer=").unwrap();
        let subject = to.rsplit('/').next().unwrap().to_owned();
        let context = jetstream::new(async_nats::connect(server).await.unwrap());
        let config = Config {
            durable_name: Some(consumer.into()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 4096,
            ..Config::default()
        };
        let stream = context.get_stream(stream).await.unwrap();
        let consumer = stream.create_consumer(config).await.unwrap();
        let messages = consumer.stream().max_messages_per_batch(1024).messages().await.unwrap();
        let mut messages = messages.map(Result::unwrap);
        let (sent, mut to_confirm) = channel::<(Message, PublishAckFuture)>(1024);
        tokio::spawn(async move {
            while let Some((message, confirmation)) = to_confirm.recv().await {
                confirmation.await.unwrap();
                message.ack().await.unwrap();
            }
        });
        while let Some(message) = messages.next().await {
            let mut copy = PublishMessage::build().payload(message.payload.clone());
            if with_ids {
                copy = copy.message_id(message.info().unwrap().stream_sequence.to_string());
            }
            let copy = context.send_publish(subject.clone(), copy).await.unwrap();
            sent.send((message, copy)).await.unwrap();
        }
    });
}
