//! Keeps one connection: makes it, makes it again when it is lost, and tells what happens on it.

use crate::address::Address;
use crate::backoff::Backoff;
use crate::error::{ConnectError, Trouble};
use crate::queue::ENDED;
use crate::settings::{Settings, Tell};
use rumqttc::{AsyncClient, ConnAck, ConnectionError, Event, EventLoop, MqttOptions, Packet};
use std::future::Future;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How long a connection that never was is tried.
const FIRST: Duration = Duration::from_secs(10);

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);

/// How long a connection may take to end.
const FAREWELL: Duration = Duration::from_secs(3);

/// Requests that may wait in the client.
const REQUESTS: usize = 256;

/// Is a connection of use, or why not?
pub(super) type Ready = Result<(), String>;

/// What happens on a connection.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are packets")]
pub(super) enum Heard<'a> {
    /// It is there.
    Up(&'a ConnAck),
    /// It was lost.
    Down,
    /// Anything else.
    Packet(Packet),
}

/// Hears what happens on a connection.
pub(super) trait Ear {
    /// Returns why the connection is of no use, if that is so.
    fn hear(&mut self, heard: Heard<'_>) -> Result<(), String>;

    /// The connection has ended, and why, unless it was told to.
    fn end(&mut self, why: Option<&str>);
}

/// A connection that a thread of its own keeps. Ends when this is dropped, when all that was asked for before has been
/// done, or soon after.
pub(super) struct Connection {
    // Whoever drops it last waits; the lock only lets threads share it.
    ended: Mutex<Receiver<()>>,
}

impl Connection {
    /// Makes a connection, and waits until `ear` has told `ready` that it is of use.
    ///
    /// `work` gets what sends requests. When it is done the connection is ended.
    pub(super) fn open<E, F>(
        address: &Address,
        settings: &Settings,
        options: MqttOptions,
        (ready, is_ready): (Sender<Ready>, &Receiver<Ready>),
        ear: impl FnOnce(AsyncClient) -> E + Send + 'static,
        work: impl FnOnce(AsyncClient) -> F + Send + 'static,
    ) -> Result<Self, ConnectError>
    where
        E: Ear,
        F: Future<Output = ()> + Send + 'static,
    {
        let failed = |why: &str| ConnectError::Broker(format!("{address}: {why}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
        let built = AsyncClient::builder(options).capacity(REQUESTS).try_build();
        let (client, events) = built.map_err(|error| address.wrong(&error.to_string()))?;
        let (tell_end, ended) = mpsc::channel();
        let (name, tell) = (address.broker(), settings.tell.clone());
        let secure = address.scheme.is_encrypted();
        let run = move || {
            let mut ear = ear(client.clone());
            let why = runtime.block_on(async {
                let working = tokio::spawn(async move {
                    work(client.clone()).await;
                    let _ = client.disconnect_with_timeout(FAREWELL / 2).await;
                });
                drive(events, &mut ear, (&name, secure), &tell, || working.is_finished()).await
            });
            ear.end(why.as_deref());
            if let Some(why) = why {
                let _ = ready.send(Err(why));
            }
            let _ = tell_end.send(());
        };
        let thread = thread::Builder::new().name("mqtt".into()).spawn(run);
        thread.map_err(|error| failed(&error.to_string()))?;
        match is_ready.recv_timeout(FIRST + 2 * ATTEMPT) {
            Ok(Ok(())) => Ok(Self { ended: Mutex::new(ended) }),
            Ok(Err(why)) => Err(failed(&why)),
            Err(RecvTimeoutError::Timeout) => Err(failed("the broker does not answer")),
            Err(RecvTimeoutError::Disconnected) => Err(failed(ENDED)),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What asks for requests is gone by now, so the connection is about to end.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FAREWELL);
    }
}

/// Returns why the connection has ended, unless it was told to.
async fn drive(
    mut events: EventLoop,
    ear: &mut impl Ear,
    (name, secure): (&str, bool),
    tell: &Tell,
    is_done: impl Fn() -> bool,
) -> Option<String> {
    let begun = Instant::now();
    let (mut was_up, mut is_up) = (false, false);
    let mut backoff = Backoff::default();
    loop {
        let polled = if is_up {
            events.poll().await
        } else {
            // A host that does not answer at all shall not take minutes.
            match timeout(ATTEMPT, events.poll()).await {
                Ok(polled) => polled,
                Err(elapsed) => {
                    events.clean();
                    Err(ConnectionError::Timeout(elapsed))
                }
            }
        };
        let heard = match polled {
            Ok(Event::Incoming(Packet::ConnAck(answer))) => {
                if was_up {
                    tell(&format!("{name}: connected again"));
                }
                (was_up, is_up) = (true, true);
                backoff.reset();
                ear.hear(Heard::Up(&answer))
            }
            Ok(Event::Incoming(packet)) => ear.hear(Heard::Packet(packet)),
            Ok(_) => Ok(()),
            Err(_) if is_done() => return None,
            Err(ConnectionError::RequestsDone) => return None,
            Err(error) => {
                let why = match Trouble::from(&error) {
                    Trouble::Lasting(why) => return Some(why),
                    Trouble::Passing(why) => why,
                };
                if !was_up && begun.elapsed() >= FIRST {
                    let hint = if secure { " (is TLS spoken there?)" } else { "" };
                    return Some(format!("it cannot be reached: {why}{hint}"));
                }
                if is_up {
                    tell(&format!("{name}: the connection is lost ({why}); trying again"));
                }
                is_up = false;
                let heard = ear.hear(Heard::Down);
                let wait = backoff.next_wait();
                let most = if was_up { wait } else { FIRST.saturating_sub(begun.elapsed()) };
                sleep(wait.min(most)).await;
                heard
            }
        };
        if let Err(why) = heard {
            return Some(why);
        }
    }
}
