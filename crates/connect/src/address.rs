//! Addresses of brokers, and of what is to be read there or written.

use crate::error::ConnectError;
use std::fmt;
use std::str::FromStr;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Kafka.
    Kafka,
    /// The same over TLS.
    KafkaTls,
    /// MQTT 5.
    Mqtt,
    /// The same over TLS.
    Mqtts,
    /// NATS JetStream.
    Nats,
    /// The same over TLS, whether or not the server asks for it.
    NatsTls,
}

impl Scheme {
    const ALL: [(&'static str, Self, u16); 6] = [
        ("kafka", Self::Kafka, 9092),
        ("kafka+tls", Self::KafkaTls, 9092),
        ("mqtt", Self::Mqtt, 1883),
        ("mqtts", Self::Mqtts, 8883),
        ("nats", Self::Nats, 4222),
        ("nats+tls", Self::NatsTls, 4222),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|one| one.1 == self).map_or("", |one| one.0)
    }

    /// Is the connection encrypted?
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::KafkaTls | Self::Mqtts | Self::NatsTls)
    }
}

/// `SCHEME://[USER@]HOST[:PORT]/PATH[?NAME=VALUE&..]`, with Kafka also `HOST[:PORT],HOST[:PORT],..`. The path is what is
/// read or written: a filter or a topic, as it is; only `%3F` stands for a question mark, `%25` for a percent sign, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What is spoken.
    pub scheme: Scheme,
    /// The name to get in by.
    pub user: Option<String>,
    /// The broker.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// Further brokers of one cluster, any of which may be asked first.
    pub others: Vec<(String, u16)>,
    /// What is read or written there.
    pub path: String,
    /// What else was asked for.
    pub query: Vec<(String, String)>,
}

impl Address {
    /// Is it one of a broker, and no file?
    pub fn is_one(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| Scheme::ALL.into_iter().any(|one| one.0 == scheme))
    }

    /// The value of a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Refuses parameters other than these.
    ///
    /// # Errors
    /// [`ConnectError::Address`] names the first other one.
    pub fn only(&self, known: &[&str]) -> Result<(), ConnectError> {
        let other = self.query.iter().find(|(name, _)| !known.contains(&name.as_str()));
        other.map_or(Ok(()), |(name, _)| {
            Err(self.wrong(&format!("no parameter `{name}`; there are {}", known.join(", "))))
        })
    }

    /// Is only what is published from the first start on to be read (`from=new`), and not all that `what` has (`from=first`)?
    #[cfg(any(feature = "kafka", feature = "nats"))]
    pub(crate) fn only_new(&self, what: &str) -> Result<bool, ConnectError> {
        match self.parameter("from") {
            None | Some("first") => Ok(false),
            Some("new") => Ok(true),
            Some(_) => Err(self.wrong(&format!(
                "from: `first` (all that the {what} has) or `new` (what is published from the first start on)"
            ))),
        }
    }

    /// What is wrong with it.
    pub fn wrong(&self, why: &str) -> ConnectError {
        ConnectError::Address(format!("{self}: {why}"))
    }

    /// The broker alone.
    pub fn broker(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.hosts())
    }

    /// `HOST:PORT` of each broker, with commas between them.
    pub fn hosts(&self) -> String {
        let others = self.others.iter().map(|(host, port)| (host, *port));
        let all = std::iter::once((&self.host, self.port)).chain(others);
        let all: Vec<_> = all
            .map(|(host, port)| {
                if host.contains(':') {
                    format!("[{host}]:{port}")
                } else {
                    format!("{host}:{port}")
                }
            })
            .collect();
        all.join(",")
    }
}

/// A host and its port, if it has one that can be. An IPv6 address has colons of its own, in brackets.
fn place(text: &str, usual: u16) -> (&str, Option<u16>) {
    let colon = text.rfind(':').filter(|&at| !text.get(at..).unwrap_or("").contains(']'));
    let (host, port) = match colon.and_then(|at| text.split_at_checked(at)) {
        Some((host, port)) => (host, port.get(1..).and_then(|port| port.parse().ok())),
        None => (text, Some(usual)),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (host, port.filter(|port| *port > 0))
}

impl FromStr for Address {
    type Err = ConnectError;

    fn from_str(text: &str) -> Result<Self, ConnectError> {
        let wrong = |why: &str| ConnectError::Address(format!("{}: {why}", without_password(text)));
        let known = text.split_once("://").and_then(|(scheme, rest)| {
            let found = Scheme::ALL.into_iter().find(|one| one.0 == scheme)?;
            Some((found.1, found.2, rest))
        });
        let Some((scheme, usual, rest)) = known else {
            return Err(wrong("not the address of a broker, such as mqtt://localhost/readers/#"));
        };
        let (authority, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, places) = match authority.rsplit_once('@') {
            Some((user, places)) => (Some(user), places),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(wrong(
                "a password in an address is there for all on this machine to read; put it into a file (--password-file FILE) or into the environment (LATELY_PASSWORD)",
            ));
        }
        let is_cluster = matches!(scheme, Scheme::Kafka | Scheme::KafkaTls);
        let mut brokers = Vec::new();
        for one in places.split(',') {
            let (host, port) = place(one, usual);
            if host.is_empty() || host.contains([' ', '[', ']']) {
                return Err(wrong("no host; it is like mqtt://localhost:1883/readers/#"));
            }
            let port = port.ok_or_else(|| wrong("a port is a number from 1 to 65535"))?;
            brokers.push((host.to_owned(), port));
        }
        if brokers.len() > 1 && !is_cluster {
            return Err(wrong("several hosts; only Kafka is asked at any of them"));
        }
        let (host, port) = brokers.remove(0);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let decode = |text: &str| decode(text).ok_or_else(|| wrong("a `%` begins two hex digits"));
        let parameters = query.split('&').filter(|one| !one.is_empty()).map(|one| {
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Self {
            scheme,
            user: user.map(decode).transpose()?,
            host,
            port,
            others: brokers,
            path: decode(path)?,
            query: parameters.collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.broker(), self.path)
    }
}

/// The text of an address that may have a password.
fn without_password(text: &str) -> String {
    let hidden = || {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = authority.rsplit_once('@')?;
        let (user, _) = user.split_once(':')?;
        Some(format!("{scheme}://{user}:..@{place}/{path}"))
    };
    hidden().unwrap_or_else(|| text.into())
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn addresses() {
        let all = parse("mqtt://ann@[::1]:1884/$share/a/dock/+/#?client=x&expiry=1h");
        assert_eq!((all.host.as_str(), all.port), ("::1", 1884));
        assert_eq!(all.user.as_deref(), Some("ann"));
        assert_eq!(all.path, "$share/a/dock/+/#");
        assert_eq!(all.parameter("expiry"), Some("1h"));
        assert!(all.only(&["client", "expiry"]).is_ok());
        let error = all.only(&["client"]).unwrap_err().to_string();
        assert!(error.contains("`expiry`") && error.contains("client"), "{error}");
        assert_eq!(all.to_string(), "mqtt://[::1]:1884/$share/a/dock/+/#");
        assert_eq!(parse("mqtts://h/a").port, 8883);
        assert_eq!(parse("nats://h/READS").port, 4222);
        assert_eq!(parse("nats+tls://h:1/a").broker(), "nats+tls://h:1");
        let cluster = parse("kafka://a,b:9093,[::1]/reads?group=x");
        assert_eq!(cluster.hosts(), "a:9092,b:9093,[::1]:9092");
        assert_eq!(cluster.to_string(), "kafka://a:9092,b:9093,[::1]:9092/reads");
        assert_eq!(parse("mqtt://h/a%3Fb%25").path, "a?b%");
        assert_eq!(parse("mqtt://h").path, "");
        assert!(Address::is_one("mqtt://h") && Address::is_one("mqtts://"));
        assert!(!Address::is_one("mqtt:h") && !Address::is_one("reads.csv"));
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, words) in [
            ("http://h/a", "not the address"),
            ("mqtt:///a", "no host"),
            ("mqtt://h,i/a", "several hosts"),
            ("kafka://h,,i/a", "no host"),
            ("mqtt://h:0/a", "a port"),
            ("mqtt://h:70000/a", "a port"),
            ("mqtt://h/a%2", "hex"),
            ("mqtt://ann:secret@h/a", "--password-file"),
            ("mqtt://ann:p@secret@h/a", "--password-file"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
