//! Sockets of clients, of each kind.

use super::tls::{HANDSHAKE, TlsSocket};
use crate::command::{Server, count};
use std::io::{self, ErrorKind, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

/// How long a handshake of TLS may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Resp,
    Http,
}

/// A connection that has been accepted.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(std::net::TcpStream, Language),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Stream {
    pub(super) fn language(&self) -> Language {
        match self {
            Self::Tcp(_, language) => *language,
            #[cfg(unix)]
            Self::Unix(_) => Language::Resp,
        }
    }

    pub(super) fn from(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(stream, _) => stream.peer_addr().map(|from| from.ip()).ok(),
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }

    /// Says why it is not served, if that can be said at once.
    pub(crate) fn turn_away(self, why: &str) {
        let _ = match self {
            Self::Tcp(mut stream, Language::Resp) => {
                stream.write(format!("-ERR {why}\r\n").as_bytes())
            }
            Self::Tcp(mut stream, Language::Http) => {
                stream.write(http_refusal("503 Service Unavailable", why).as_bytes())
            }
            #[cfg(unix)]
            Self::Unix(mut stream) => stream.write(format!("-ERR {why}\r\n").as_bytes()),
        };
    }
}

/// An answer to a client of HTTP of which nothing is read.
fn http_refusal(status: &str, why: &str) -> String {
    let length = why.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    )
}

/// A TCP connection once it is known to speak TLS, or not to.
#[derive(Debug)]
pub(super) enum Greeted {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

const SPEAKS_TLS: &str = "this port speaks TLS: connect with it (redis-cli --tls, https://)";

/// Goes through the handshake if this server has certificates.
///
/// # Errors
/// The client went, spoke no TLS, or has no certificate that is wanted; what it must know, it was told.
pub(super) async fn greet(
    stream: std::net::TcpStream,
    language: Language,
    tls: Option<&super::Tls>,
    server: &Server,
) -> io::Result<Greeted> {
    let stream = TcpStream::from_std(stream)?;
    let Some(tls) = tls else { return Ok(Greeted::Plain(stream)) };
    let failed = |from: Option<IpAddr>, what: String| {
        count(&server.stats.failed_tls);
        let from = from.map_or("a client".into(), |from| from.to_string());
        server.stats.notice(format!("{from}: {what}"));
        Err(ErrorKind::InvalidData.into())
    };
    let from = stream.peer_addr().map(|from| from.ip()).ok();
    let handshake = async {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if first[0] != HANDSHAKE {
            let refusal = match language {
                Language::Resp => format!("-ERR {SPEAKS_TLS}\r\n"),
                Language::Http => http_refusal("400 Bad Request", SPEAKS_TLS),
            };
            let _ = stream.try_write(refusal.as_bytes());
            linger(&stream).await;
            return failed(from, "spoke no TLS to a port that does".into());
        }
        match tokio_rustls::TlsAcceptor::from(tls.config()).accept(stream).await {
            Ok(stream) => Ok(Greeted::Tls(Box::new(stream))),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(error),
            Err(error) => failed(from, format!("no TLS with this client: {error}")),
        }
    };
    tokio::time::timeout(HANDSHAKE_TIME, handshake).await?
}

/// Reads what has come, so that closing the socket does not discard what was sent.
async fn linger(stream: &TcpStream) {
    let mut rest = [0; 4096];
    for _ in 0..16 {
        match stream.try_read(&mut rest) {
            Ok(0) => return,
            Ok(_) => {}
            Err(_) => break,
        }
    }
}

/// The socket of a client of RESP.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsSocket>),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl From<Greeted> for Socket {
    fn from(greeted: Greeted) -> Self {
        match greeted {
            Greeted::Plain(stream) => Self::Tcp(stream),
            Greeted::Tls(stream) => {
                let (stream, tls) = stream.into_inner();
                Self::Tls(Box::new(TlsSocket::new(stream, tls)))
            }
        }
    }
}

impl Socket {
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Tls(socket) if socket.has_plaintext() && interest.is_readable() => {
                Ok(Ready::READABLE)
            }
            Self::Tls(socket) if socket.has_unsent() => {
                socket.stream.ready(interest | Interest::WRITABLE).await
            }
            Self::Tls(socket) => socket.stream.ready(interest).await,
            #[cfg(unix)]
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

    /// `None`: not now. After fewer bytes than there is room for it is known that there are no more, and the system is
    /// not asked again until some come.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => read_now(stream, into),
            Self::Tls(socket) => unless_blocked(socket.read(into)),
            #[cfg(unix)]
            Self::Unix(stream) => read_now(stream, into),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        unless_blocked(match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Tls(socket) => socket.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.try_write(bytes),
        })
    }

    /// Sends what was taken and is not on its way yet; `true` if there is nothing left of it.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        match self {
            Self::Tls(socket) => {
                socket.flush()?;
                Ok(!socket.has_unsent())
            }
            _ => Ok(true),
        }
    }

    /// Says that nothing more comes.
    pub(super) fn close(&mut self) {
        if let Self::Tls(socket) = self {
            socket.close();
        }
    }
}

fn read_now(stream: &mut (impl AsyncRead + Unpin), into: &mut [u8]) -> io::Result<Option<usize>> {
    let mut into = ReadBuf::new(into);
    // Nobody need be woken: whoever reads waits with `ready`.
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(stream).poll_read(&mut context, &mut into) {
        Poll::Ready(read) => read.map(|()| Some(into.filled().len())),
        Poll::Pending => Ok(None),
    }
}

fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
