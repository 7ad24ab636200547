//! The connection to an MQTT broker, driven by a task of its own.

use super::{Job, News};
use crate::broker::{Network, Profile};
use crate::topic::is_kept;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, DisconnectReasonCode, Filter, Packet, PubAckReason, Publish,
    RetainForwardRule,
};
use rumqttc::v5::{AsyncClient, ConnectionError, EventLoop, MqttState, Request, StateError};
use std::future::Future;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

/// Before the first try to connect again, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// After a connection that lasted this long the wait starts from the shortest again.
const STEADY: Duration = Duration::from_secs(10);

/// Begins to connect, and connects again whenever the connection is lost.
pub(super) fn connect(
    network: &Network,
    profile: Profile<'_>,
    tell: mpsc::Sender<News>,
) -> AsyncClient {
    let requests = usize::from(profile.inflight);
    let (client, eventloop) = AsyncClient::new(network.options(profile), requests);
    tokio::spawn(drive(eventloop, tell));
    client
}

fn subscription(filter: String) -> Filter {
    // What else is retained is somebody else's.
    let retain_forward_rule = if is_kept(&filter) {
        RetainForwardRule::OnEverySubscribe
    } else {
        RetainForwardRule::Never
    };
    Filter {
        path: filter,
        qos: QoS::AtLeastOnce,
        nolocal: false,
        preserve_retain: false,
        retain_forward_rule,
    }
}

/// Hands a job over if there is room.
pub(super) fn attempt(client: &AsyncClient, job: Job) -> bool {
    match job {
        Job::Publish(topic, payload) => {
            let kept = is_kept(&topic);
            client.try_publish(topic, QoS::AtLeastOnce, kept, payload).is_ok()
        }
        Job::Confirm(publish) => client.try_ack(&publish).is_ok(),
        Job::Disconnect => client.try_disconnect().is_ok(),
        Job::Subscribe(filter) => client.try_subscribe_many([subscription(filter)]).is_ok(),
        Job::Unsubscribe(filter) => client.try_unsubscribe(filter).is_ok(),
    }
}

/// Hands a job over when there is room.
pub(super) async fn perform(client: &AsyncClient, job: Option<Job>) {
    let result = match job {
        Some(Job::Publish(topic, payload)) => {
            let kept = is_kept(&topic);
            client.publish(topic, QoS::AtLeastOnce, kept, payload).await
        }
        Some(Job::Confirm(publish)) => client.ack(&publish).await,
        Some(Job::Disconnect) => client.disconnect().await,
        Some(Job::Subscribe(filter)) => client.subscribe_many([subscription(filter)]).await,
        Some(Job::Unsubscribe(filter)) => client.unsubscribe(filter).await,
        None => Ok(()),
    };
    // It fails only when the driver has ended, which the news tell.
    let _ = result;
}

/// Drives a connection until nobody listens any more.
async fn drive(mut connection: EventLoop, tell: mpsc::Sender<News>) {
    let mut again: Vec<Publish> = Vec::new();
    let mut wait = BACKOFF.0;
    // Since when it is there.
    let mut up: Option<Instant> = None;
    let mut denied = 0;
    loop {
        let news = match connection.poll().await {
            Ok(rumqttc::v5::Event::Incoming(Packet::ConnAck(answer))) => {
                up = Some(Instant::now());
                let limit = answer.properties.and_then(|properties| properties.max_packet_size);
                let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                News::Up(std::mem::take(&mut again), limit.unwrap_or(usize::MAX))
            }
            Ok(rumqttc::v5::Event::Incoming(Packet::Publish(publish)))
                if publish.qos != QoS::AtMostOnce =>
            {
                News::Arrived(publish)
            }
            Ok(rumqttc::v5::Event::Incoming(Packet::PubAck(answer)))
                if answer.reason == PubAckReason::NotAuthorized =>
            {
                denied += 1;
                // Where there is no room for the news now, the next refusal will do.
                if tell.try_send(News::Denied(denied)).is_ok() {
                    denied = 0;
                }
                continue;
            }
            // Without a confirmation there is no bound to how many come; ours are never of that kind.
            Ok(_) => continue,
            Err(ConnectionError::RequestsDone) => return,
            Err(error) => {
                if let Some(reason) = is_final(&error) {
                    let _ = tell.send(News::Refused(reason)).await;
                    return;
                }
                if let Some(since) = up.take() {
                    if since.elapsed() >= STEADY {
                        wait = BACKOFF.0;
                    }
                    let (noted, is_noted) = oneshot::channel();
                    if tell.send(News::Down(error.to_string(), noted)).await.is_err() {
                        return;
                    }
                    let _ = is_noted.await;
                } else {
                    // Where nobody listens at the moment, the next failure will do.
                    let _ = tell.try_send(News::Failed(error.to_string()));
                }
                // Whatever was handed over until the loss was noted.
                connection.clean();
                again.extend(connection.state.collision.take());
                again.extend(connection.pending.drain(..).filter_map(publication));
                // Its numbers would go on beyond a receive maximum that is lower next time, and what it had read
                // and not told yet would be confirmed to a broker that may have forgotten it.
                let inflight = connection.options.get_outgoing_inflight_upper_limit();
                connection.state = MqttState::new(inflight.unwrap_or(u16::MAX), true);
                if pause(wait, &tell).await {
                    return;
                }
                wait = (wait * 2).min(BACKOFF.1);
                continue;
            }
        };
        if tell.send(news).await.is_err() {
            return;
        }
    }
}

/// Waits half to all of that time, so that not all come back at once. `true` when nobody listens any more.
fn pause(wait: Duration, tell: &mpsc::Sender<News>) -> impl Future<Output = bool> {
    let wait = wait.mul_f64(0.5 + fastrand::f64() / 2.0);
    async move { timeout(wait, tell.closed()).await.is_ok() }
}

fn publication(request: Request) -> Option<Publish> {
    match request {
        Request::Publish(publish) => Some(publish),
        _ => None,
    }
}

/// Why there is no use in trying again, if so.
fn is_final(error: &ConnectionError) -> Option<String> {
    use ConnectReturnCode as Code;
    let said = |what: &str| Some(format!("the broker refuses the connection: {what}"));
    match error {
        ConnectionError::ConnectionRefused(code)
        | ConnectionError::MqttState(StateError::ConnFail { reason: code }) => match code {
            Code::BadUserNamePassword => said("wrong user or password"),
            Code::NotAuthorized => {
                said("not authorised; is the user or password missing or wrong?")
            }
            Code::Banned => said("this client is banned"),
            Code::RefusedProtocolVersion | Code::UnsupportedProtocolVersion => {
                said("it does not speak MQTT 5")
            }
            _ => None,
        },
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, .. })
            if *reason_code == DisconnectReasonCode::SessionTakenOver =>
        {
            Some("another process with the same identity has connected".into())
        }
        _ => None,
    }
}
