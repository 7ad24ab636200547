//! A broker inside the program: `rumqttd`, for demonstrations without anything installed.
//!
//! Not for a system that is to last. It keeps sessions without end and nothing on disk, sends at most 100 unconfirmed messages to
//! a client, whatever that asked for, takes confirmations in the order of the messages only, and gives those that wait a share
//! of memory, not a number.

use crate::broker::MAX_PACKET;
use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};
use std::collections::HashMap;
use std::io::{self, Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take from its connection to its first packet, in milliseconds.
const FIRST_PACKET: u16 = 10_000;
/// Connections at most.
const CONNECTIONS: usize = 8_192;
/// Packets that are taken from a connection at once.
const BATCH: usize = 200;
/// What a subscription's filter keeps for clients that are behind: so many segments of so many bytes.
const KEPT: (usize, usize) = (64, 1 << 20);

/// A broker that listens on 127.0.0.1 only, speaks MQTT 5 and takes everybody.
///
/// Its threads end with the program: `rumqttd` has no way to stop it before.
///
/// # Example
/// ```
/// use lately_edge_mqtt::broker::Broker;
/// use lately_edge_mqtt::embedded::Embedded;
/// let embedded = Embedded::start()?;
/// let broker = Broker::new(&embedded.address(), None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Embedded {
    port: u16,
}

impl Embedded {
    /// Starts a broker on a free port, and returns when it listens.
    ///
    /// # Errors
    /// What the system says, or that it does not listen.
    pub fn start() -> io::Result<Self> {
        // Somebody else may take the port between the question and the start.
        let mut last = Error::from(ErrorKind::AddrInUse);
        for _ in 0..3 {
            let listen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
            match launch(listen) {
                Ok(()) => return Ok(Self { port: listen.port() }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn launch(listen: SocketAddr) -> io::Result<()> {
    let mut broker = Broker::new(config(listen));
    let server = thread::Builder::new().name("embedded-broker".into());
    // It returns when it cannot listen, and else never; why it cannot, it tells only its log.
    let server = server.spawn(move || broker.start().is_ok())?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if server.is_finished() {
            return Err(Error::other(format!("the embedded broker cannot listen on {listen}")));
        }
        if TcpStream::connect(listen).is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    Err(Error::new(ErrorKind::TimedOut, "the embedded broker does not listen"))
}

/// Neither its console nor its metrics, which would listen on ports of their own.
fn config(listen: SocketAddr) -> Config {
    let (max_segment_count, max_segment_size) = KEPT;
    let router = RouterConfig {
        max_connections: CONNECTIONS,
        // Of QoS 0, which is not used.
        max_outgoing_packet_count: 100,
        max_segment_size,
        max_segment_count,
        ..RouterConfig::default()
    };
    let connections = ConnectionSettings {
        connection_timeout_ms: FIRST_PACKET,
        max_payload_size: MAX_PACKET as usize,
        max_inflight_count: BATCH,
        auth: None,
        external_auth: None,
        dynamic_filters: false,
    };
    let name = "mqtt-5".to_owned();
    let server = ServerSettings {
        name: name.clone(),
        listen,
        tls: None,
        next_connection_delay_ms: 0,
        connections,
    };
    Config { router, v5: Some(HashMap::from([(name, server)])), ..Config::default() }
}
