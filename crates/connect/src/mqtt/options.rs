//! What a connection asks of the broker.

use super::session::NothingOwed;
use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use crate::tls;
use lately_stream::quantity;
use rumqttc::{AckMode, IncomingPacketSizeLimit, MqttOptions, TlsConfiguration, Transport};

/// A connection on which nothing is said for one and a half times this is taken for lost.
const KEEP_ALIVE: u16 = 15;

/// How long a broker keeps messages for us while we are away, if nothing else was asked for.
const EXPIRY: u64 = 24 * 3600 * 1_000_000_000;

/// Messages that the broker sends us before the first is acknowledged. It bounds what is in memory, and what may
/// repeat after a crash.
const INFLIGHT: u16 = 1024;

/// Publications that are on their way to the broker at a time. It may allow fewer.
const OUTGOING: u16 = 1024;

/// The same for a client that publishes nothing.
const SUBSCRIBING: u16 = 1;

/// A subscription: what it is called, and for how long and how many messages it is kept.
pub(super) struct Subscriber {
    pub(super) client: String,
    pub(super) filter: String,
    expiry: u32,
    inflight: u16,
}

impl Subscriber {
    pub(super) fn new(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        address.only(&["client", "expiry", "inflight"])?;
        if address.path.is_empty() {
            return Err(address.wrong("no topic; name a topic or a filter after the host: mqtt://localhost/readers/#, or mqtt://localhost/$share/GROUP/readers/# to share it"));
        }
        check_filter(&address.path).map_err(|why| address.wrong(why))?;
        let expiry = address.parameter("expiry").map_or(Ok(EXPIRY), quantity::duration);
        let expiry = expiry.map_err(|why| address.wrong(&format!("expiry: {why}")))?;
        let inflight = address.parameter("inflight").map_or(Ok(INFLIGHT), str::parse);
        let inflight = inflight
            .ok()
            .filter(|inflight| *inflight > 0)
            .ok_or_else(|| address.wrong("inflight: a number of messages from 1 to 65535"))?;
        let client = match address.parameter("client") {
            Some(client) => client.into(),
            None => settings.name(address),
        };
        let expiry = u32::try_from(expiry / 1_000_000_000).unwrap_or(u32::MAX);
        Ok(Self { client, filter: address.path.clone(), expiry, inflight })
    }

    pub(super) fn options(
        &self,
        address: &Address,
        settings: &Settings,
    ) -> Result<MqttOptions, ConnectError> {
        let mut options = common(address, settings, &self.client)?;
        options
            .set_clean_start(false)
            .set_session_expiry_interval(Some(self.expiry))
            .set_receive_maximum(Some(self.inflight))
            .set_outgoing_inflight_upper_limit(SUBSCRIBING)
            .set_session_store(NothingOwed { expiry: self.expiry, outgoing: SUBSCRIBING });
        Ok(options)
    }
}

/// What a connection asks for that only publishes.
pub(super) fn publisher(
    address: &Address,
    settings: &Settings,
) -> Result<MqttOptions, ConnectError> {
    address.only(&["client"])?;
    let client = match address.parameter("client") {
        Some(client) => client.into(),
        None => format!("lately-{:016x}", fastrand::u64(..)),
    };
    let mut options = common(address, settings, &client)?;
    options.set_clean_start(true).set_outgoing_inflight_upper_limit(OUTGOING);
    Ok(options)
}

fn common(
    address: &Address,
    settings: &Settings,
    client: &str,
) -> Result<MqttOptions, ConnectError> {
    let mut options = MqttOptions::new(client, (address.host.as_str(), address.port));
    options
        .set_keep_alive(KEEP_ALIVE)
        .set_ack_mode(AckMode::Manual)
        // A broker drops what is longer than a client says it takes, without a word. What is too long to be a
        // record becomes a dead letter.
        .set_incoming_packet_size_limit(IncomingPacketSizeLimit::Unlimited)
        .set_max_request_batch(64);
    let mut network = options.network_options();
    network.set_tcp_nodelay(true);
    options.set_network_options(network);
    let user = address.user.as_ref().or(settings.login.user.as_ref());
    match (user, &settings.login.password) {
        (Some(user), Some(password)) => {
            options.set_credentials(user, password.clone());
        }
        (Some(user), None) => {
            options.set_username(user);
        }
        (None, Some(_)) => {
            return Err(address.wrong(
                "a password, but no user: name one, as in mqtt://USER@HOST/.. or with --user",
            ));
        }
        (None, None) => {}
    }
    if address.scheme.is_encrypted() {
        let tls =
            tls::client(settings.authorities.as_deref()).map_err(|why| address.wrong(&why))?;
        options.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(tls)));
    } else if settings.authorities.is_some() {
        return Err(address.wrong("--ca is for connections with TLS: mqtts://.."));
    }
    Ok(options)
}

/// What is wrong with a filter, by the rules of the standard (4.7).
fn check_filter(filter: &str) -> Result<(), &'static str> {
    let shared = filter.strip_prefix("$share/");
    let filter = match shared.map(|rest| rest.split_once('/')) {
        None => filter,
        Some(Some((group, filter))) if !group.is_empty() && !group.contains(['+', '#']) => filter,
        Some(_) => return Err("a shared subscription is written $share/GROUP/FILTER"),
    };
    let levels: Vec<_> = filter.split('/').collect();
    let last = levels.len() - 1;
    for (at, level) in levels.into_iter().enumerate() {
        if level.contains('#') && (level != "#" || at != last) {
            return Err("`#` stands alone, at the end of a filter");
        }
        if level.contains('+') && level != "+" {
            return Err("`+` stands alone, for one level of a filter");
        }
    }
    if filter.is_empty() || filter.contains('\0') { Err("no such filter") } else { Ok(()) }
}

/// What is wrong with a topic that is published to, without the fields in it.
pub(super) fn check_topic(topic: &str) -> Result<(), &'static str> {
    if topic.contains(['+', '#']) {
        return Err("`+` and `#` are for subscriptions; records are published to one topic");
    }
    if topic.is_empty() || topic.contains('\0') || topic.len() > 65_535 {
        return Err("not a topic: it must have 1 to 65,535 bytes, none of them 0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn filters_and_topics() {
        for filter in ["a", "a/+/c", "#", "a/#", "+", "$share/g/a/#", "/", "$SYS/broker/load/#"] {
            assert!(check_filter(filter).is_ok(), "{filter}");
        }
        for filter in ["", "a#", "#/a", "a/b+", "$share/g", "$share//a", "$share/+/a", "a\0"] {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
        assert!(check_topic("clean/a").is_ok());
        assert!(["", "a/#", "+", "a\0"].into_iter().all(|topic| check_topic(topic).is_err()));
    }

    #[test]
    fn a_subscriber_has_one_name_for_all_its_life() {
        let settings = |identity: &str| Settings {
            login: crate::Login::default(),
            authorities: None,
            identity: identity.into(),
            tell: Arc::new(|_| {}),
        };
        let client = |address: &str, identity: &str| {
            let address: Address = address.parse().unwrap();
            Subscriber::new(&address, &settings(identity)).map(|profile| profile.client)
        };
        let name = client("mqtt://h/a", "x").unwrap();
        assert_eq!(client("mqtt://h/a", "x").unwrap(), name);
        assert_ne!(client("mqtt://h/a", "y").unwrap(), name);
        assert_ne!(client("mqtt://h/b", "x").unwrap(), name);
        assert_eq!(client("mqtt://h/b?client=me", "x").unwrap(), "me");
        for wrong in
            ["mqtt://h", "mqtt://h/a?inflight=0", "mqtt://h/a?expiry=x", "mqtt://h/a?qos=1"]
        {
            assert!(client(wrong, "x").is_err(), "{wrong}");
        }
    }
}
