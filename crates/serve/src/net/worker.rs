//! Workers: a thread for each core, each with its own clients.

use super::socket::{Greeted, Language, Socket, Stream, greet};
use super::tls::{HANDSHAKE, Tls};
use crate::command::{Server, Session, Workspace, count};
use crate::http::{self, Board};
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::Interest;
use tokio::sync::{mpsc, watch};

/// Bytes that are taken from one client at a time.
const TURN: usize = 256 << 10;
/// Bytes of unsent replies with which no more is read from a client.
const UNSENT: usize = 1 << 20;
/// How long a client may take nothing of the replies that wait for it.
const STALLED: Duration = Duration::from_secs(60);
/// How long a client may take to give the password.
const STRANGER: Duration = Duration::from_secs(10);
/// How long clients have to take their last replies when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// Buffers of a client that waits for nothing are kept up to this size.
const SMALL: usize = 4 << 10;

/// What workers answer with.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) server: Arc<Server>,
    pub(crate) tls: Option<Tls>,
    pub(crate) board: Board,
    /// Whether clients of HTTP must have named this machine by an address or as `localhost` where they need no password:
    /// nothing else keeps pages of other hosts from asking through a browser here then.
    pub(crate) is_local: bool,
}

/// The workers of a server.
#[derive(Debug)]
pub(crate) struct Crew {
    workers: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    clients: mpsc::UnboundedSender<Stream>,
    load: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Crew {
    /// Starts so many workers.
    pub(crate) fn start(
        count: usize,
        service: &Arc<Service>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let mut workers = Vec::new();
        for number in 0..count {
            let (clients, incoming) = mpsc::unbounded_channel();
            let load = Arc::new(AtomicUsize::new(0));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (service, stop, own) = (Arc::clone(service), stop.clone(), Arc::clone(&load));
            let work = move || {
                let tasks = tokio::task::LocalSet::new();
                tasks.block_on(&runtime, work(service, incoming, own, stop));
            };
            let thread =
                std::thread::Builder::new().name(format!("worker {number}")).spawn(work)?;
            workers.push(Worker { clients, load, thread });
        }
        Ok(Self { workers })
    }

    /// Gives a client to the worker that has the fewest.
    pub(crate) fn take(&self, stream: Stream, server: &Server) {
        let idlest = self.workers.iter().min_by_key(|worker| worker.load.load(Ordering::Relaxed));
        if let Some(worker) = idlest {
            worker.load.fetch_add(1, Ordering::Relaxed);
            count(&server.stats.connected);
            count(&server.stats.connections);
            // A worker takes clients until it is told to stop, and then none is taken.
            let _ = worker.clients.send(stream);
        }
    }

    /// Waits until all have ended, once they have been told to stop.
    pub(crate) fn join(self) {
        for worker in self.workers {
            drop(worker.clients);
            // What panics in a worker has been said on standard error.
            let _ = worker.thread.join();
        }
    }
}

/// What the clients of a worker use by turns.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) work: Workspace,
}

async fn work(
    service: Arc<Service>,
    mut incoming: mpsc::UnboundedReceiver<Stream>,
    load: Arc<AtomicUsize>,
    stop: watch::Receiver<bool>,
) {
    let shared = Shared { input: vec![0; TURN], ..Shared::default() };
    let shared = Rc::new(RefCell::new(shared));
    let mut stopping = stop.clone();
    loop {
        let stream = tokio::select! {
            stream = incoming.recv() => stream,
            _ = stopping.wait_for(|stop| *stop) => None,
        };
        let Some(stream) = stream else { break };
        let open = Open { service: Arc::clone(&service), load: Arc::clone(&load) };
        let (shared, stop) = (Rc::clone(&shared), stop.clone());
        tokio::task::spawn_local(async move {
            // A client that goes away is no failure.
            let _ = attend(stream, &open.service, &shared, stop).await;
        });
    }
    let end = Instant::now() + FAREWELL;
    while load.load(Ordering::Relaxed) > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Serves a client, whatever it speaks.
async fn attend(
    stream: Stream,
    service: &Arc<Service>,
    shared: &Rc<RefCell<Shared>>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (language, from) = (stream.language(), stream.from());
    let server = &service.server;
    let socket = match stream {
        Stream::Tcp(stream, _) => {
            let greeted = greet(stream, language, service.tls.as_ref(), server).await?;
            match (language, greeted) {
                (Language::Resp, greeted) => Socket::from(greeted),
                (Language::Http, Greeted::Plain(stream)) => {
                    return http::serve(stream, from, service, shared, stop).await;
                }
                (Language::Http, Greeted::Tls(stream)) => {
                    return http::serve(*stream, from, service, shared, stop).await;
                }
            }
        }
        #[cfg(unix)]
        Stream::Unix(stream) => Socket::Unix(tokio::net::UnixStream::from_std(stream)?),
    };
    Client::new(socket, from, server).serve(server, shared, stop).await
}

/// Counts a client until it has gone, whatever ends it.
#[derive(Debug)]
struct Open {
    service: Arc<Service>,
    load: Arc<AtomicUsize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
        let stats = &self.service.server.stats;
        stats.connected.fetch_sub(1, Ordering::Relaxed);
        if std::thread::panicking() {
            count(&stats.panics);
        }
    }
}

/// One connection.
#[derive(Debug)]
struct Client {
    socket: Socket,
    session: Session,
    /// The beginning of a request whose rest has not come, or requests whose turn has not come.
    unread: Vec<u8>,
    /// Replies that the client has not taken.
    unsent: Vec<u8>,
    /// It has sent something.
    has_begun: bool,
    has_more: bool,
    is_over: bool,
    /// Some of the replies must not leave before what they say is written down.
    is_uncommitted: bool,
    since: Instant,
}

impl Client {
    fn new(socket: Socket, from: Option<IpAddr>, server: &Server) -> Self {
        let id = server.stats.next_id();
        Self {
            socket,
            session: Session::new(server, id, from),
            unread: Vec::new(),
            unsent: Vec::new(),
            has_begun: false,
            has_more: false,
            is_over: false,
            is_uncommitted: false,
            since: Instant::now(),
        }
    }

    async fn serve(
        mut self,
        server: &Server,
        shared: &RefCell<Shared>,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        let mut progress = Instant::now();
        loop {
            if self.is_uncommitted {
                // Others that are ready have their turn first, so that all is written at once.
                tokio::task::yield_now().await;
                self.commit(server)?;
            }
            if self.send()? {
                progress = Instant::now();
            }
            if self.is_over && self.unsent.is_empty() && self.socket.flush()? {
                self.socket.close();
                return Ok(());
            }
            if self.has_more && self.unsent.len() < UNSENT {
                self.feed_unread(server, shared)?;
                tokio::task::yield_now().await;
                continue;
            }
            let wants_more = !self.is_over && !self.has_more && self.unsent.len() < UNSENT;
            let interest = match (wants_more, self.unsent.is_empty()) {
                (true, true) => Interest::READABLE,
                (true, false) => Interest::READABLE | Interest::WRITABLE,
                (false, _) => Interest::WRITABLE,
            };
            let deadline = self.deadline(progress);
            let is_patient = deadline.is_none();
            let deadline = tokio::time::Instant::from_std(deadline.unwrap_or(progress));
            let ready = tokio::select! {
                ready = self.socket.ready(interest) => ready?,
                _ = &mut stopped, if !self.is_over => {
                    // The replies that there are still go out; what has not been done is not done.
                    (self.is_over, self.has_more) = (true, false);
                    continue;
                }
                () = tokio::time::sleep_until(deadline), if !is_patient => return Ok(()),
            };
            if wants_more
                && (ready.is_readable() || ready.is_read_closed())
                && self.receive(server, shared)?
            {
                tokio::task::yield_now().await;
            }
        }
    }

    /// When this client is given up, if nothing happens before.
    fn deadline(&self, progress: Instant) -> Option<Instant> {
        let waits = !self.unsent.is_empty() || self.is_over;
        let stalled = waits.then(|| progress + STALLED);
        let stranger = (!self.session.is_trusted()).then(|| self.since + STRANGER);
        match (stalled, stranger) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Sends what can be sent now; `true` if that was anything.
    fn send(&mut self) -> io::Result<bool> {
        if !self.socket.flush()? {
            return Ok(false);
        }
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.socket.write(&self.unsent[sent..])? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                Some(bytes) => sent += bytes,
                None => break,
            }
        }
        self.unsent.drain(..sent);
        if self.unsent.is_empty() {
            self.unsent.shrink_to(SMALL);
        }
        Ok(sent > 0)
    }

    /// Takes what has come; `true` if there is probably more.
    fn receive(&mut self, server: &Server, shared: &RefCell<Shared>) -> io::Result<bool> {
        let mut shared = shared.borrow_mut();
        let Shared { input, output, work } = &mut *shared;
        let Some(bytes) = self.socket.read(input)? else { return Ok(false) };
        if bytes == 0 {
            self.is_over = true;
            return Ok(false);
        }
        if !std::mem::replace(&mut self.has_begun, true) && input[0] == HANDSHAKE {
            return self.refuse_tls(server);
        }
        let now = clock(server);
        let begun = Instant::now();
        output.clear();
        if self.unread.is_empty() {
            let was_trusted = self.session.keep_up(server);
            let fed = self.session.feed(server, work, now, &input[..bytes], output);
            self.note_strangers(was_trusted);
            self.unread.extend_from_slice(&input[fed.consumed..bytes]);
            (self.has_more, self.is_over) = (fed.has_more, fed.is_over);
        } else {
            self.unread.extend_from_slice(&input[..bytes]);
            self.feed(server, work, now, output);
        }
        server.stats.turns.record(begun.elapsed().as_nanos() as u64);
        self.reply(server, output)?;
        output.shrink_to(UNSENT);
        Ok(bytes == TURN)
    }

    /// Says to a client that speaks TLS that nobody does here.
    fn refuse_tls(&mut self, server: &Server) -> io::Result<bool> {
        count(&server.stats.failed_tls);
        server.stats.notice(
            "a client spoke TLS to a port that does not: give --tls-cert and --tls-key, or connect without"
                .into(),
        );
        self.reply(server, b"-ERR this port does not speak TLS\r\n")?;
        self.is_over = true;
        Ok(false)
    }

    fn feed_unread(&mut self, server: &Server, shared: &RefCell<Shared>) -> io::Result<()> {
        let mut shared = shared.borrow_mut();
        let Shared { output, work, .. } = &mut *shared;
        output.clear();
        self.feed(server, work, clock(server), output);
        self.reply(server, output)
    }

    fn feed(&mut self, server: &Server, work: &mut Workspace, now: u64, output: &mut Vec<u8>) {
        let was_trusted = self.session.keep_up(server);
        let fed = self.session.feed(server, work, now, &self.unread, output);
        self.note_strangers(was_trusted);
        self.unread.drain(..fed.consumed);
        if self.unread.is_empty() {
            self.unread.shrink_to(SMALL);
        }
        (self.has_more, self.is_over) = (fed.has_more, fed.is_over);
    }

    /// Who is a stranger again has as long to give a password as one that has just come.
    fn note_strangers(&mut self, was_trusted: bool) {
        if was_trusted && !self.session.is_trusted() {
            self.since = Instant::now();
        }
    }

    /// Sends replies at once as far as that goes, and keeps the rest.
    fn reply(&mut self, server: &Server, output: &[u8]) -> io::Result<()> {
        if server.keeper.is_costly() {
            self.is_uncommitted = true;
            self.unsent.extend_from_slice(output);
            return Ok(());
        }
        self.commit(server)?;
        let mut sent = 0;
        while self.unsent.is_empty() && sent < output.len() {
            match self.socket.write(&output[sent..])? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                Some(bytes) => sent += bytes,
                None => break,
            }
        }
        self.unsent.extend_from_slice(&output[sent..]);
        Ok(())
    }

    /// Makes sure that what the replies say outlives the process. If it may not, they do not leave, and the connection
    /// ends.
    fn commit(&mut self, server: &Server) -> io::Result<()> {
        self.is_uncommitted = false;
        server.keeper.commit().map_err(io::Error::other)
    }
}

/// The present moment.
pub(crate) fn clock(server: &Server) -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let monotonic = BEGIN.get_or_init(Instant::now).elapsed().as_millis() as u64;
    server.clock.read(wall(), monotonic)
}

/// What the wall clock says.
pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}
