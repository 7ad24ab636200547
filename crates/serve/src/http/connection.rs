//! A client of HTTP, from its first byte to its last.

use super::route;
use crate::net::{Service, Shared};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long the head of a request may take, and how long a client may send nothing between two.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a client may take nothing of an answer.
const STALLED: Duration = Duration::from_secs(60);
/// How long a client has to take its last answer when the server ends.
const FAREWELL: Duration = Duration::from_secs(4);
/// Bytes and number of the headers of a request.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;

/// Answers a client until it goes, is too slow, or the server ends.
pub(crate) async fn serve<S>(
    stream: S,
    from: Option<IpAddr>,
    service: &Service,
    shared: &RefCell<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let waits_since = Rc::new(Cell::new(None));
    let stream = Watched { stream, waits_since: Rc::clone(&waits_since) };
    let answer = service_fn(|request| async move {
        Ok::<_, Infallible>(route::answer(request, from, service, shared).await)
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEADERS)
        .max_buf_size(HEAD)
        // A client may say that it has sent all before it has heard all.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let mut seconds = tokio::time::interval(Duration::from_secs(5));
    loop {
        tokio::select! {
            done = connection.as_mut() => return done.map_err(io::Error::other),
            _ = stop.wait_for(|stop| *stop) => break,
            _ = seconds.tick() => {
                let stalled = waits_since.get().is_some_and(|since: Instant| since.elapsed() > STALLED);
                if stalled {
                    return Ok(());
                }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    match tokio::time::timeout(FAREWELL, connection).await {
        Ok(done) => done.map_err(io::Error::other),
        Err(_) => Ok(()),
    }
}

/// A stream that notes since when it takes nothing of what is written.
struct Watched<S> {
    stream: S,
    waits_since: Rc<Cell<Option<Instant>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn note<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let since = match done {
            Poll::Pending => Some(self.waits_since.get().unwrap_or_else(Instant::now)),
            Poll::Ready(_) => None,
        };
        self.waits_since.set(since);
        done
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.note(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Answers a client that sends these pieces, one after the other, and then nothing more. For fuzzing.
#[doc(hidden)]
pub fn fuzz(pieces: &[&[u8]], password: Option<&str>) -> Vec<u8> {
    super::fuzzing::answers(pieces, password)
}
