//! One connection, and the thread that works on it.

use super::options::{self, ATTEMPT};
use super::trouble::REFUSED;
use crate::address::Address;
use crate::backoff::Backoff;
use crate::error::{ConnectError, Trouble};
use crate::queue::ENDED;
use crate::settings::{Settings, Tell};
use async_nats::{Client, ClientError, Event, ServerError};
use std::future::Future;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

/// How long a connection that never was is tried.
const FIRST: Duration = Duration::from_secs(10);

/// How long what is asked of the server may take before anything can be read or written.
const PREPARATION: Duration = Duration::from_secs(25);

/// How long a connection may take to end.
pub(super) const FAREWELL: Duration = Duration::from_secs(3);

/// Is a connection of use, or why not?
pub(super) type Ready = Sender<Result<(), String>>;

/// What has happened to a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It is there again, after it was lost.
    Again,
    /// Nothing that matters.
    Nothing,
}

/// A connection as its thread sees it.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) tell: Tell,
    /// The server, for people.
    pub(super) name: String,
    events: UnboundedReceiver<Event>,
    is_lost: bool,
}

/// A thread with a connection. Ends when there is nothing more for it to do; who drops this waits a while for that.
pub(super) struct Link {
    // Whoever drops it last waits; the lock only lets threads share it.
    ended: Mutex<Receiver<()>>,
}

impl Link {
    /// Connects, has `work` done on the connection, and waits until that says it is ready. `end` hears why it has
    /// ended, unless there was nothing more to do.
    pub(super) fn open<F>(
        address: &Address,
        settings: &Settings,
        work: impl FnOnce(Session, Ready) -> F + Send + 'static,
        end: impl FnOnce(Option<&str>) + Send + 'static,
    ) -> Result<Self, ConnectError>
    where
        F: Future<Output = Result<(), String>>,
    {
        let failed = |why: &str| ConnectError::Broker(format!("{address}: {why}"));
        let options = options::connection(address, settings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
        let (ready, is_ready) = mpsc::channel();
        let (tell_end, ended) = mpsc::channel();
        let (name, tell) = (address.broker(), settings.tell.clone());
        let run = move || {
            let told = ready.clone();
            let done = runtime.block_on(async {
                let session = connect(options, name, tell).await?;
                work(session, ready).await
            });
            let why = done.err();
            end(why.as_deref());
            if let Some(why) = why {
                let _ = told.send(Err(why));
            }
            let _ = tell_end.send(());
        };
        let thread = thread::Builder::new().name("nats".into()).spawn(run);
        thread.map_err(|error| failed(&error.to_string()))?;
        match is_ready.recv_timeout(FIRST + ATTEMPT + PREPARATION) {
            Ok(Ok(())) => Ok(Self { ended: Mutex::new(ended) }),
            Ok(Err(why)) => Err(failed(&why)),
            Err(RecvTimeoutError::Timeout) => Err(failed("the broker does not answer")),
            Err(RecvTimeoutError::Disconnected) => Err(failed(ENDED)),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // What asks for anything is gone by now, so the connection is about to end.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FAREWELL);
    }
}

/// Makes a connection, again and again for a while. From then on it is made again by itself.
async fn connect(
    options: async_nats::ConnectOptions,
    name: String,
    tell: Tell,
) -> Result<Session, String> {
    // The scheme that asks for TLS is our own; the options say so.
    let server = name.replacen("nats+tls://", "nats://", 1);
    let begun = Instant::now();
    let mut backoff = Backoff::default();
    loop {
        let (hear, events) = unbounded_channel();
        let options = options.clone().event_callback(move |event| {
            let _ = hear.send(event);
            std::future::ready(())
        });
        let why = match options.connect(&server).await {
            Ok(client) => return Ok(Session { client, tell, name, events, is_lost: false }),
            Err(error) => match Trouble::from(&error) {
                Trouble::Lasting(why) => return Err(why),
                Trouble::Passing(why) => why,
            },
        };
        let left = FIRST.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(format!("it cannot be reached: {why}"));
        }
        sleep(backoff.next_wait().min(left)).await;
    }
}

impl Session {
    /// What happens next to the connection.
    ///
    /// # Errors
    /// It is of no use any more, and why.
    pub(super) async fn news(&mut self) -> Result<News, String> {
        let Some(event) = self.events.recv().await else {
            return Err(ENDED.into());
        };
        match event {
            Event::Disconnected if !self.is_lost => {
                self.is_lost = true;
                (self.tell)(&format!("{}: the connection is lost; trying again", self.name));
            }
            Event::Connected if self.is_lost => {
                self.is_lost = false;
                (self.tell)(&format!("{}: connected again", self.name));
                return Ok(News::Again);
            }
            Event::ServerError(ServerError::AuthorizationViolation) => return Err(REFUSED.into()),
            Event::ServerError(ServerError::Other(why)) => {
                if why.to_lowercase().contains("permissions violation") {
                    return Err(format!(
                        "the broker does not authorize what was asked of it: {why}"
                    ));
                }
                (self.tell)(&format!("{}: {why}", self.name));
            }
            // Attempts that fail are told as such; only a refusal is final.
            Event::ClientError(ClientError::Other(why)) if why.contains("authorization") => {
                return Err(REFUSED.into());
            }
            _ => {}
        }
        Ok(News::Nothing)
    }

    /// Is the connection there?
    pub(super) fn is_up(&self) -> bool {
        !self.is_lost
    }
}
