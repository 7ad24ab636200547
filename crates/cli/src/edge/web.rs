//! A small HTTP server for this machine: the counts of a role for Prometheus, and the map.

use crate::Failure;
use clap::Args;
use lately_edge_mqtt::Status;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where counts can be read.
#[derive(Args, Clone)]
#[command(next_help_heading = "Counts")]
pub struct MetricsArguments {
    /// Serve counts in Prometheus' text format at http://ADDRESS/metrics, for example 127.0.0.1:9464. There is no login:
    /// use an address that only those reach who may see them
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl MetricsArguments {
    /// The server, if one is wanted.
    pub fn serve(&self) -> Result<Option<Web>, Failure> {
        self.metrics.map(Web::serve).transpose()
    }
}

/// A request's header is no longer than this.
const HEADER: u64 = 8_192;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at a time; further ones are turned away.
const CLIENTS: usize = 32;

/// A server. It ends with the process.
#[derive(Clone)]
pub struct Web {
    pages: Arc<Mutex<BTreeMap<String, Page>>>,
    address: SocketAddr,
}

#[derive(Clone)]
struct Page {
    kind: &'static str,
    body: Arc<[u8]>,
}

impl Web {
    /// Begins to serve.
    pub fn serve(address: SocketAddr) -> Result<Self, Failure> {
        let wrong = |error: io::Error| Failure::Trouble(format!("{address}: {error}"));
        let listener = TcpListener::bind(address).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let web = Self { pages: Arc::default(), address };
        let (served, clients) = (web.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::Builder::new().name("web".into()).spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (web, clients) = (served.clone(), Arc::clone(&clients));
                if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
                    clients.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let answer = move || {
                    // A client that went away is none to answer.
                    let _ = web.answer(stream);
                    clients.fetch_sub(1, Ordering::Relaxed);
                };
                let _ = std::thread::Builder::new().spawn(answer);
            }
        })?;
        Ok(web)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is at a path from now on.
    pub fn set(&self, path: &str, kind: &'static str, body: &[u8]) {
        let page = Page { kind, body: body.into() };
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into(), page);
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut header = Vec::new();
        let mut input = stream.try_clone()?.take(HEADER);
        let mut part = [0; 1_024];
        while !header.windows(4).any(|end| end == b"\r\n\r\n") {
            match input.read(&mut part)? {
                0 => return Ok(()),
                read => header.extend(part.iter().take(read)),
            }
        }
        let line = header.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        let page = self.pages.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let plain =
            |words: &'static str| Page { kind: "text/plain", body: words.as_bytes().into() };
        let (status, page) = match (method, page) {
            ("GET" | "HEAD", Some(page)) => ("200 OK", page),
            ("GET" | "HEAD", None) => ("404 Not Found", plain("not found\n")),
            _ => ("405 Method Not Allowed", plain("only GET\n")),
        };
        let Page { kind, body } = page;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            body.len()
        )?;
        if method != "HEAD" {
            stream.write_all(&body)?;
        }
        stream.flush()
    }
}

/// Counts in Prometheus' text format.
#[derive(Default)]
pub struct Metrics(String);

impl Metrics {
    /// A number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help, [(String::new(), value)]);
    }

    /// A number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help, [(String::new(), value)]);
    }

    /// Numbers of one name with labels, such as `reason="old"`.
    pub fn family<T: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (String, T)>,
    ) {
        // Writing to a string does not fail.
        let _ =
            writeln!(self.0, "# HELP lately_edge_{name} {help}\n# TYPE lately_edge_{name} {kind}");
        for (labels, value) in values {
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "lately_edge_{name}{labels} {value}");
        }
    }

    /// What is known of a connection.
    pub fn link(&mut self, link: Status<'_>) {
        use lately_edge::message::Kind;
        self.gauge("connected", "1 while there is a connection to the broker.", u8::from(link.up));
        self.counter("connections_total", "Connections made.", link.traffic.connections);
        let of = |count: fn(&Status<'_>, Kind) -> u64| {
            let kinds = Kind::ALL.into_iter().map(|kind| (kind, count(&link, kind)));
            let some = kinds.filter(|&(_, count)| count > 0);
            let some = some.map(|(kind, count)| (format!("kind=\"{}\"", kind.name()), count));
            some.collect::<Vec<_>>()
        };
        let sent = of(|link, kind| link.traffic.sent(kind));
        self.family("messages_sent_total", "counter", "Messages sent, by kind.", sent);
        let received = of(|link, kind| link.traffic.received(kind));
        self.family("messages_received_total", "counter", "Messages received, by kind.", received);
        let dropped = link.traffic.dropped();
        let dropped = dropped.map(|(reason, count)| (format!("reason=\"{reason}\""), count));
        self.family("messages_dropped_total", "counter", "Messages not used or not sent.", dropped);
    }

    /// Makes them readable.
    pub fn publish(self, web: &Web) {
        web.set("/metrics", "text/plain; version=0.0.4; charset=utf-8", self.0.as_bytes());
    }
}
