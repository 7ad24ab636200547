//! Which broker, and how to get in.

use crate::link::Hub;
use rumqttc::TlsConfiguration;
use rumqttc::v5::MqttOptions;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::LastWill;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Unacknowledged messages to one client at a time. It bounds memory, and a host syncs once for all of them. The broker
/// may allow fewer.
pub const RECEIVE_MAXIMUM: u16 = 512;
/// The longest packet that a client takes: a message and its topic.
pub(crate) const MAX_PACKET: u32 = lately_edge::wire::MAX_MESSAGE as u32 + 1_024;
/// A connection on which nothing is said for one and a half times this is taken for lost.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a broker keeps messages for a host or coordinator that is away, in seconds.
const SESSION: u32 = 3_600;

/// A broker.
#[derive(Clone)]
pub struct Broker(Transport);

/// How a broker is reached.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Over the network.
    Network(Network),
    /// It is in this process.
    Memory(Hub),
}

/// Where an MQTT broker is, and how to get in.
#[derive(Clone)]
pub(crate) struct Network {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    login: Option<(String, String)>,
}

/// Why a broker cannot be reached that way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerError {
    /// Not the address of a broker.
    Address(String),
    /// No certificate that can be used.
    Certificates(String),
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(given) => write!(
                f,
                "{given}: not the address of a broker; it is like mqtt://localhost:1883, or mqtts://… with TLS"
            ),
            Self::Certificates(why) => write!(f, "no certificate to know the broker by: {why}"),
        }
    }
}

impl std::error::Error for BrokerError {}

/// A connection that is to be made.
pub(crate) struct Profile<'a> {
    /// Unique at the broker; a second connection of this name ends the first.
    pub(crate) client: &'a str,
    /// What the broker publishes when the connection is lost: topic and payload.
    pub(crate) will: Option<(String, Vec<u8>)>,
    /// The broker keeps messages while the client is away.
    pub(crate) durable: bool,
    /// Messages sent and unconfirmed at a time.
    pub(crate) inflight: u16,
}

impl Broker {
    /// The broker at `mqtt://host[:1883]` or, with TLS, `mqtts://host[:8883]`. Its certificate must come from an authority in
    /// `authorities` (PEM), or one that the system trusts.
    ///
    /// # Errors
    /// [`BrokerError`] for what is no such address, or without a usable certificate.
    pub fn new(address: &str, authorities: Option<&[u8]>) -> Result<Self, BrokerError> {
        let wrong = || BrokerError::Address(address.into());
        let (scheme, rest) = address.split_once("://").ok_or_else(wrong)?;
        let secure = match scheme {
            "mqtt" | "tcp" => false,
            "mqtts" | "ssl" => true,
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // An IPv6 address has colons of its own, in brackets.
        let port_at = rest.rfind(':').filter(|&at| !rest.get(at..).unwrap_or("").contains(']'));
        let (host, port) = match port_at.and_then(|at| rest.split_at_checked(at)) {
            Some((host, port)) => (host, port.get(1..).and_then(|port| port.parse().ok())),
            None => (rest, Some(if secure { 8883 } else { 1883 })),
        };
        let port = port.filter(|&port| port > 0).ok_or_else(wrong)?;
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            return Err(wrong());
        }
        if !secure && authorities.is_some() {
            return Err(BrokerError::Certificates("the address must begin with mqtts://".into()));
        }
        let tls = if secure { Some(tls(authorities)?) } else { None };
        Ok(Self(Transport::Network(Network { host: host.into(), port, tls, login: None })))
    }

    /// A broker in the memory of this process, for whoever runs all roles in one: its clones are the same broker.
    /// It ends with the last of them.
    pub fn in_memory() -> Self {
        Self(Transport::Memory(Hub::default()))
    }

    /// The same with a name and a password, which a broker in memory does not ask for.
    #[must_use]
    pub fn with_login(mut self, user: &str, password: &str) -> Self {
        if let Transport::Network(network) = &mut self.0 {
            network.login = Some((user.into(), password.into()));
        }
        self
    }

    /// Can nobody read along? So it is with TLS, and in memory.
    pub fn is_encrypted(&self) -> bool {
        match &self.0 {
            Transport::Network(network) => network.tls.is_some(),
            Transport::Memory(_) => true,
        }
    }

    /// Is it in this process?
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0, Transport::Memory(_))
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0
    }
}

impl Network {
    pub(crate) fn options(&self, profile: Profile<'_>) -> MqttOptions {
        let mut options = MqttOptions::new(profile.client, &self.host, self.port);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_clean_start(!profile.durable)
            .set_manual_acks(true)
            .set_session_expiry_interval(profile.durable.then_some(SESSION))
            .set_receive_maximum(Some(RECEIVE_MAXIMUM))
            .set_max_packet_size(Some(MAX_PACKET))
            // The library reserves a slot for each; its default of 65,535 is 8 MB a connection.
            .set_outgoing_inflight_upper_limit(profile.inflight);
        let mut network = options.network_options();
        network.set_tcp_nodelay(true);
        options.set_network_options(network);
        if let Some((topic, payload)) = profile.will {
            options.set_last_will(LastWill::new(topic, payload, QoS::AtLeastOnce, false, None));
        }
        if let Some((user, password)) = &self.login {
            options.set_credentials(user, password);
        }
        if let Some(tls) = &self.tls {
            let tls = TlsConfiguration::Rustls(Arc::clone(tls));
            options.set_transport(rumqttc::Transport::tls_with_config(tls));
        }
        options
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Transport::Network(Network { host, port, tls, .. }) => {
                write!(f, "mqtt{}://{host}:{port}", if tls.is_some() { "s" } else { "" })
            }
            Transport::Memory(_) => f.write_str("in memory"),
        }
    }
}

impl fmt::Debug for Broker {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn tls(authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, BrokerError> {
    let wrong = |why: &dyn fmt::Display| BrokerError::Certificates(why.to_string());
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(wrong(&"there is none in the file, or in the system; give one with --ca"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, display) in [
            ("mqtt://localhost", "mqtt://localhost:1883"),
            ("mqtt://10.0.0.1:11883/", "mqtt://10.0.0.1:11883"),
            ("tcp://[::1]:5", "mqtt://[::1]:5"),
            ("mqtt://[::1]", "mqtt://[::1]:1883"),
        ] {
            assert_eq!(Broker::new(address, None).unwrap().to_string(), display);
        }
        for address in [
            "",
            "localhost",
            "http://localhost",
            "mqtt://",
            "mqtt://h:0",
            "mqtt://h:70000",
            "mqtt://a@b",
        ] {
            let error = Broker::new(address, None).unwrap_err();
            assert_eq!(error, BrokerError::Address(address.into()), "{address}");
        }
    }

    #[test]
    fn certificates_that_are_none() {
        for pem in [
            &b""[..],
            b"nonsense",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = Broker::new("mqtts://localhost", Some(pem)).unwrap_err();
            assert!(matches!(error, BrokerError::Certificates(_)));
        }
        assert!(Broker::new("mqtt://localhost", Some(b"x")).is_err());
    }
}
