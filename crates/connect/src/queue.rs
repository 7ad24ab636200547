//! What goes between the thread that judges and the thread of a connection: messages one way and what is dealt with the
//! other, and how many records are confirmed.

use lately_stream::read::message::{Acknowledge, Message, MessageInput, Received};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Messages from a connection `C`. How many there can be is up to the broker, which sends no more before some are
/// acknowledged.
pub(crate) struct Inbox<C> {
    messages: Receiver<Result<Message, String>>,
    waiting: Arc<AtomicUsize>,
    // Before the connection, which ends when nobody can acknowledge anything any more.
    dealt_with: UnboundedSender<u64>,
    connection: Arc<C>,
}

/// What a connection has for an [`Inbox`].
#[derive(Clone)]
pub(crate) struct Arrivals {
    messages: mpsc::Sender<Result<Message, String>>,
    waiting: Arc<AtomicUsize>,
}

impl Arrivals {
    pub(crate) fn hand_over(&self, message: Message) {
        self.waiting.fetch_add(message.payload.len(), Ordering::Relaxed);
        let _ = self.messages.send(Ok(message));
    }

    /// No more messages will come, and why.
    pub(crate) fn fail(&self, why: &str) {
        let _ = self.messages.send(Err(why.into()));
    }

    /// Bytes of messages that nobody has taken yet.
    #[cfg(feature = "mqtt")]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl<C> Inbox<C> {
    /// `open` makes the connection, given where its messages go and what is told of those that are dealt with.
    pub(crate) fn open<E>(
        open: impl FnOnce(Arrivals, UnboundedReceiver<u64>) -> Result<C, E>,
    ) -> Result<Self, E> {
        let (hand_over, messages) = mpsc::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let (dealt_with, told) = unbounded_channel();
        let arrivals = Arrivals { messages: hand_over, waiting: Arc::clone(&waiting) };
        let connection = Arc::new(open(arrivals, told)?);
        Ok(Self { messages, waiting, dealt_with, connection })
    }
}

impl<C: Send + Sync + 'static> MessageInput for Inbox<C> {
    fn next(&mut self, patience: Duration) -> Received {
        let next = match patience {
            Duration::ZERO => self.messages.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
            patience => self.messages.recv_timeout(patience),
        };
        match next {
            Ok(Ok(message)) => {
                self.waiting.fetch_sub(message.payload.len(), Ordering::Relaxed);
                Received::Message(message)
            }
            Ok(Err(why)) => Received::Failed(why),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => Received::Failed(ENDED.into()),
        }
    }

    fn acknowledger(&self) -> Box<dyn Acknowledge> {
        let (dealt_with, connection) = (self.dealt_with.clone(), Arc::clone(&self.connection));
        Box::new(Acknowledger { dealt_with, _connection: connection })
    }
}

struct Acknowledger<C> {
    dealt_with: UnboundedSender<u64>,
    _connection: Arc<C>,
}

impl<C: Send + Sync> Acknowledge for Acknowledger<C> {
    fn acknowledge(&mut self, token: u64) {
        // Without a connection it is delivered again.
        let _ = self.dealt_with.send(token);
    }
}

/// What a connection says when there is nothing else to say.
pub(crate) const ENDED: &str = "the connection has ended";

/// How many records a broker has confirmed, and what it refuses.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    confirmed: u64,
    /// The count that somebody waits for; waking them for each confirmation would cost more than the message.
    awaited: u64,
    /// The longest message that the broker takes, if it says.
    longest: Option<usize>,
    failed: Option<String>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The broker takes no longer messages.
    #[cfg(any(feature = "mqtt", feature = "nats"))]
    pub(crate) fn limit(&self, longest: Option<usize>) {
        self.lock().longest = longest;
    }

    /// It has confirmed so many more.
    pub(crate) fn confirm(&self, more: u64) {
        let mut state = self.lock();
        state.confirmed += more;
        if state.confirmed >= state.awaited {
            self.changed.notify_all();
        }
    }

    /// Nothing more will be confirmed. The first reason counts.
    pub(crate) fn fail(&self, why: &str) {
        self.lock().failed.get_or_insert_with(|| why.into());
        self.changed.notify_all();
    }

    /// Can a message of this length, for a record of `record` bytes, be sent there?
    ///
    /// # Errors
    /// It is too long for the broker, or nothing can be sent any more.
    pub(crate) fn check(&self, length: usize, record: usize, topic: &str) -> io::Result<()> {
        let state = self.lock();
        if let Some(why) = &state.failed {
            return Err(io::Error::other(why.clone()));
        }
        match state.longest.filter(|longest| length > *longest) {
            None => Ok(()),
            Some(longest) => Err(io::Error::other(format!(
                "a record of {record} bytes for {topic} makes a message of {length}, and the broker takes {longest} at most; let it take more, or limit records with --max-line, beyond which they are invalid"
            ))),
        }
    }

    /// Why nothing can be sent any more.
    #[cfg(any(feature = "mqtt", feature = "nats"))]
    pub(crate) fn failure(&self) -> io::Error {
        let failed = self.lock().failed.clone();
        io::Error::other(failed.unwrap_or_else(|| ENDED.into()))
    }

    /// Waits until so many are confirmed.
    ///
    /// # Errors
    /// They never will be.
    pub(crate) fn wait(&self, sent: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.awaited = sent;
        loop {
            if let Some(why) = &state.failed {
                return Err(io::Error::other(why.clone()));
            }
            if state.confirmed >= sent {
                return Ok(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
