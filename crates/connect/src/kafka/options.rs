//! What is asked of a cluster.

use crate::address::Address;
use crate::error::ConnectError;
use crate::settings::Settings;
use crate::template::Template;
use rdkafka::ClientConfig;

/// Messages that are handed over before the first is committed. It bounds what is in memory, and what may repeat after a
/// crash.
const INFLIGHT: usize = 10_000;

/// The bytes of their payloads.
pub(super) const BYTES: usize = 64 << 20;

/// How long a process may be silent, in ms, before the others of its group share its partitions. Whoever is started again after
/// a crash waits for that, too.
const SESSION: u64 = 10_000;

/// The most that may be fetched in advance.
const FETCHED_KBYTES: usize = 16 << 10;

/// The most messages that are on their way to the cluster, and their bytes.
const OUTGOING: usize = 2048;
pub(super) const OUTGOING_KBYTES: usize = 64 << 10;

/// A message may be as long as the protocol allows; the cluster says what is too long for it.
const LONGEST: usize = 1_000_000_000;

/// The longest name of a topic.
const NAME: usize = 249;

/// The ways of SASL to show a password.
const MECHANISMS: [&str; 3] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];

/// What is read: topics, by a group that the cluster keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    pub(super) topics: Vec<String>,
    pub(super) group: String,
    pub(super) inflight: usize,
    /// Only what is published from the first start on.
    pub(super) only_new: bool,
}

impl Reader {
    pub(super) fn new(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        address.only(&["from", "group", "inflight", "mechanism"])?;
        let wrong = |what: &str, why: &str| address.wrong(&format!("{what}: {why}"));
        if address.path.is_empty() {
            return Err(
                address.wrong("no topic; name one after the hosts: kafka://localhost/reads")
            );
        }
        let topics: Vec<_> = address.path.split(',').map(str::to_owned).collect();
        for topic in &topics {
            check_topic(topic).map_err(|why| address.wrong(&why))?;
        }
        let group = address.parameter("group").map(str::to_owned);
        let group = group.unwrap_or_else(|| settings.name(address));
        if group.is_empty() {
            return Err(wrong("group", "it has no name"));
        }
        let only_new = address.only_new("topic")?;
        let inflight = address.parameter("inflight").map_or(Ok(INFLIGHT), str::parse);
        let inflight = inflight.ok().filter(|inflight| *inflight > 0);
        let inflight =
            inflight.ok_or_else(|| wrong("inflight", "a number of messages, 1 or more"))?;
        Ok(Self { topics, group, inflight, only_new })
    }

    /// How a consumer of the group is made.
    pub(super) fn config(
        &self,
        address: &Address,
        settings: &Settings,
    ) -> Result<ClientConfig, ConnectError> {
        let mut config = connection(address, settings)?;
        config
            .set("group.id", &self.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // Where only what is new is wanted, that is committed before anything is read.
            .set("auto.offset.reset", "earliest")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", SESSION.to_string())
            .set("queued.max.messages.kbytes", FETCHED_KBYTES.to_string());
        Ok(config)
    }
}

/// Where records go.
pub(super) struct Writer {
    pub(super) topic: Template,
    /// What decides the partition, if it is not the key of the message that a record came in.
    pub(super) key: Option<Template>,
}

impl Writer {
    pub(super) fn new(address: &Address) -> Result<Self, ConnectError> {
        address.only(&["key", "mechanism"])?;
        let template = |text: &str| Template::new(text).map_err(|why| address.wrong(&why));
        if address.path.is_empty() {
            return Err(
                address.wrong("no topic; name one after the hosts: kafka://localhost/clean")
            );
        }
        let topic = template(&address.path)?;
        check_topic(&topic.fill(None, "none")).map_err(|why| address.wrong(&why))?;
        let key = address.parameter("key").map(template).transpose()?;
        Ok(Self { topic, key })
    }

    /// How a producer is made that sends everything once, in order, and tries until the cluster has it.
    pub(super) fn config(
        address: &Address,
        settings: &Settings,
    ) -> Result<ClientConfig, ConnectError> {
        let mut config = connection(address, settings)?;
        config
            .set("enable.idempotence", "true")
            .set("message.timeout.ms", "0")
            // Records come in batches that are then waited for; `flush` would add up to 100 ms.
            .set("linger.ms", "1")
            .set("message.max.bytes", LONGEST.to_string())
            .set("queue.buffering.max.messages", OUTGOING.to_string())
            .set("queue.buffering.max.kbytes", OUTGOING_KBYTES.to_string())
            // As the clients of Java do it.
            .set("partitioner", "murmur2_random");
        Ok(config)
    }
}

/// How a connection is made.
fn connection(address: &Address, settings: &Settings) -> Result<ClientConfig, ConnectError> {
    let user = address.user.as_ref().or(settings.login.user.as_ref());
    let mechanism = address.parameter("mechanism").unwrap_or(MECHANISMS[0]);
    let mechanism = mechanism.to_uppercase();
    if !MECHANISMS.contains(&mechanism.as_str()) {
        let known = MECHANISMS.join(", ");
        return Err(address.wrong(&format!("mechanism: `{mechanism}` must be one of {known}")));
    }
    let is_encrypted = address.scheme.is_encrypted();
    let protocol = match (user, is_encrypted) {
        (None, false) => "plaintext",
        (None, true) => "ssl",
        (Some(_), false) => "sasl_plaintext",
        (Some(_), true) => "sasl_ssl",
    };
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address.hosts())
        .set("client.id", "lately")
        .set("security.protocol", protocol)
        .set("socket.keepalive.enable", "true")
        .set("reconnect.backoff.ms", "100")
        .set("reconnect.backoff.max.ms", "15000")
        .set("allow.auto.create.topics", "false");
    if let Some(user) = user {
        let password = settings.login.password.as_deref().unwrap_or_default();
        config
            .set("sasl.mechanism", mechanism)
            .set("sasl.username", user)
            .set("sasl.password", password);
    }
    if let Some(pem) = settings.authorities.as_deref().filter(|_| is_encrypted) {
        let pem = std::str::from_utf8(pem).map_err(|_| {
            address.wrong("no certificate to know the broker by: the file of --ca is not PEM")
        })?;
        config.set("ssl.ca.pem", pem);
    }
    Ok(config)
}

/// Can a topic have this name?
fn check_topic(name: &str) -> Result<(), String> {
    let is_one = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if name.is_empty()
        || name.len() > NAME
        || !name.chars().all(is_one)
        || [".", ".."].contains(&name)
    {
        return Err(format!(
            "`{name}` is not a valid name of a Kafka topic: up to {NAME} letters, digits, dots, dashes and underscores"
        ));
    }
    Ok(())
}

/// A text as the name of a topic: what cannot be in one becomes an underscore.
pub(super) fn name_of(text: &str) -> String {
    let char =
        |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' };
    text.chars().map(char).take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Login;
    use std::sync::Arc;

    fn settings(user: Option<&str>) -> Settings {
        Settings {
            login: Login { user: user.map(str::to_owned), password: Some("secret".into()) },
            authorities: Some(b"PEM".to_vec()),
            identity: "x".into(),
            tell: Arc::new(|_| {}),
        }
    }

    #[test]
    fn topics_and_their_groups() {
        let reader = |text: &str| Reader::new(&text.parse()?, &settings(None));
        let plain = reader("kafka://h/reads").unwrap();
        assert_eq!((&*plain.topics, plain.inflight), (&["reads".to_owned()][..], INFLIGHT));
        assert_eq!(reader("kafka://h/reads").unwrap().group, plain.group);
        assert_ne!(reader("kafka://h/other").unwrap().group, plain.group);
        let all = reader("kafka://h/a,b?group=dock&from=new&inflight=7").unwrap();
        assert_eq!((all.topics.len(), all.group.as_str(), all.inflight), (2, "dock", 7));
        assert!(all.only_new);
        for wrong in [
            "kafka://h",
            "kafka://h/a/b",
            "kafka://h/..",
            "kafka://h/a,",
            "kafka://h/a?group=",
            "kafka://h/a?from=5",
            "kafka://h/a?inflight=0",
            "kafka://h/a?consumer=x",
        ] {
            assert!(reader(wrong).is_err(), "{wrong}");
        }
        let writer = |text: &str| Writer::new(&text.parse()?);
        assert!(writer("kafka://h/clean-{@topic}?key={@header.tag}").is_ok());
        for wrong in ["kafka://h", "kafka://h/a b", "kafka://h/{x}", "kafka://h/a?group=x"] {
            assert!(writer(wrong).is_err(), "{wrong}");
        }
        assert_eq!(name_of("a/b c.d"), "a_b_c.d");
    }

    #[test]
    fn users_and_encryption() {
        let config = |text: &str, user| {
            let settings = settings(user);
            Writer::config(&text.parse()?, &settings)
        };
        let value =
            |text: &str, user, name: &str| config(text, user).unwrap().get(name).map(str::to_owned);
        let protocol = |text: &str, user| value(text, user, "security.protocol").unwrap();
        assert_eq!(protocol("kafka://h/a", None), "plaintext");
        assert_eq!(protocol("kafka+tls://h/a", None), "ssl");
        assert_eq!(protocol("kafka://ann@h/a", None), "sasl_plaintext");
        assert_eq!(protocol("kafka+tls://h/a", Some("ann")), "sasl_ssl");
        let with = "kafka://ann@h/a?mechanism=scram-sha-512";
        assert_eq!(value(with, None, "sasl.mechanism").as_deref(), Some("SCRAM-SHA-512"));
        assert_eq!(value(with, None, "sasl.password").as_deref(), Some("secret"));
        assert_eq!(value("kafka://h/a", None, "ssl.ca.pem"), None);
        assert_eq!(value("kafka+tls://h/a", None, "ssl.ca.pem").as_deref(), Some("PEM"));
        assert!(config("kafka://ann@h/a?mechanism=gssapi", None).is_err());
    }
}
