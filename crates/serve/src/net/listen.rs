//! Where clients come in.

use super::socket::{Language, Stream};
use super::worker::Crew;
use crate::command::{Server, count};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;

/// The sockets that a server listens on. A unix socket is removed when they are dropped.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: Vec<(std::net::TcpListener, Language)>,
    #[cfg(unix)]
    unix: Option<(std::os::unix::net::UnixListener, PathBuf)>,
}

impl Listeners {
    /// Opens the sockets: addresses for each language, and the path of one that speaks RESP.
    pub(crate) fn bind(
        resp: &[SocketAddr],
        http: &[SocketAddr],
        unix: Option<&Path>,
    ) -> Result<Self, String> {
        let mut tcp = Vec::new();
        let resp = resp.iter().map(|address| (address, Language::Resp));
        for (address, language) in resp.chain(http.iter().map(|address| (address, Language::Http)))
        {
            let listener = std::net::TcpListener::bind(address);
            let listener =
                listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
            let listener =
                listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
            tcp.push((listener, language));
        }
        #[cfg(unix)]
        {
            let unix = unix.map(|path| {
                let listener = bind_unix(path)
                    .map_err(|error| format!("cannot listen on {}: {error}", path.display()));
                listener.map(|listener| (listener, path.to_path_buf()))
            });
            Ok(Self { tcp, unix: unix.transpose()? })
        }
        #[cfg(not(unix))]
        match unix {
            Some(path) => {
                Err(format!("cannot listen on {}: there are no unix sockets here", path.display()))
            }
            None => Ok(Self { tcp }),
        }
    }

    /// Where this language is spoken.
    pub(crate) fn addresses(&self, language: Language) -> Vec<SocketAddr> {
        let speak = self.tcp.iter().filter(|(_, spoken)| *spoken == language);
        speak.filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }
}

#[cfg(unix)]
impl Drop for Listeners {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.unix {
            // If somebody else has done it, it is done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket for this user alone. One that a crashed server left behind is replaced.
#[cfg(unix)]
fn bind_unix(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::os::unix::net::{UnixListener, UnixStream};
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "there is a file that is no socket",
            ));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(ErrorKind::AddrInUse, "another server listens there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts clients and deals them out to the workers, until told to stop.
pub(crate) async fn deal(
    listeners: &Listeners,
    crew: &Crew,
    server: &Server,
    most: usize,
    stop: &watch::Receiver<bool>,
) -> io::Result<()> {
    let mut accepting = tokio::task::JoinSet::new();
    let (sender, mut accepted) = tokio::sync::mpsc::channel(64);
    for (listener, language) in &listeners.tcp {
        let language = *language;
        let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
        let sender = sender.clone();
        accepting.spawn(async move {
            loop {
                let stream = match listener.accept().await {
                    Ok((stream, _)) => {
                        // Replies are written as a whole.
                        let _ = stream.set_nodelay(true);
                        stream.into_std().map(|stream| Stream::Tcp(stream, language))
                    }
                    Err(error) => Err(error),
                };
                if !hand_on(&sender, stream).await {
                    return;
                }
            }
        });
    }
    #[cfg(unix)]
    if let Some((listener, _)) = &listeners.unix {
        let listener = tokio::net::UnixListener::from_std(listener.try_clone()?)?;
        let sender = sender.clone();
        accepting.spawn(async move {
            loop {
                let accepted = listener.accept().await;
                let stream = accepted.and_then(|(stream, _)| stream.into_std().map(Stream::Unix));
                if !hand_on(&sender, stream).await {
                    return;
                }
            }
        });
    }
    let mut stop = stop.clone();
    loop {
        tokio::select! {
            stream = accepted.recv() => {
                let Some(stream) = stream else { return Ok(()) };
                if server.stats.connected.load(Ordering::Relaxed) >= most as u64 {
                    count(&server.stats.rejected);
                    stream.turn_away("max number of clients reached");
                } else {
                    crew.take(stream, server);
                }
            }
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        }
    }
}

/// Hands a client on. `false` once nobody takes any more.
async fn hand_on(sender: &tokio::sync::mpsc::Sender<Stream>, stream: io::Result<Stream>) -> bool {
    match stream {
        Ok(stream) => sender.send(stream).await.is_ok(),
        Err(_) => {
            // A client that has gone again, or no file descriptors left: others may leave.
            tokio::time::sleep(Duration::from_millis(10)).await;
            true
        }
    }
}
