//! What a connection asks of the server.

use super::subject;
use crate::address::Address;
use crate::backoff::Backoff;
use crate::error::ConnectError;
use crate::settings::Settings;
use crate::tls;
use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use std::time::Duration;

/// Messages that the server sends us before the first is acknowledged. It bounds what is in memory, and what may
/// repeat after a crash.
const INFLIGHT: u16 = 4096;

/// After how long the server delivers again what was not acknowledged. That only costs, as what was lost with a connection
/// is asked for when there is another one.
const ACK_WAIT: Duration = Duration::from_secs(300);

/// How long one attempt to connect may take.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);

/// A connection on which nothing is said for two of these is taken for lost.
const PING: Duration = Duration::from_secs(10);

/// What is read: a stream, by a consumer that the server keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    pub(super) stream: String,
    pub(super) consumer: String,
    pub(super) inflight: u16,
    /// A filter of subjects, if not all are read.
    filter: Option<String>,
    /// Only what is published from the first start on.
    only_new: bool,
}

impl Reader {
    pub(super) fn new(address: &Address, settings: &Settings) -> Result<Self, ConnectError> {
        address.only(&["consumer", "from", "inflight", "subject"])?;
        let wrong = |what: &str, why: &str| address.wrong(&format!("{what}: {why}"));
        if address.path.is_empty() {
            return Err(address.wrong(
                "no stream; name one after the host: nats://localhost/STREAM (`nats stream ls` lists them)",
            ));
        }
        subject::check_name(&address.path).map_err(|why| wrong("the stream", why))?;
        let consumer = match address.parameter("consumer") {
            Some(consumer) => consumer.into(),
            None => settings.name(address),
        };
        subject::check_name(&consumer).map_err(|why| wrong("consumer", why))?;
        let filter = address.parameter("subject").map(str::to_owned);
        if let Some(filter) = &filter {
            subject::check_filter(filter).map_err(|why| wrong("subject", why))?;
        }
        let only_new = address.only_new("stream")?;
        let inflight = address.parameter("inflight").map_or(Ok(INFLIGHT), str::parse);
        let inflight = inflight.ok().filter(|inflight| *inflight > 0);
        let inflight =
            inflight.ok_or_else(|| wrong("inflight", "a number of messages from 1 to 65535"))?;
        Ok(Self { stream: address.path.clone(), consumer, inflight, filter, only_new })
    }

    /// The consumer that is to be, given what there is of that name, and how a new one is to be acknowledged.
    pub(super) fn config(&self, known: Option<Config>, ack_policy: AckPolicy) -> Config {
        let mut config = known.unwrap_or_else(|| Config {
            durable_name: Some(self.consumer.clone()),
            description: Some("lately".into()),
            deliver_policy: if self.only_new { DeliverPolicy::New } else { DeliverPolicy::All },
            ack_policy,
            ack_wait: ACK_WAIT,
            ..Config::default()
        });
        config.max_ack_pending = self.inflight.into();
        config.filter_subject = self.filter.clone().unwrap_or_default();
        config.filter_subjects.clear();
        config
    }
}

/// How a connection is made, without what hears of it.
pub(super) fn connection(
    address: &Address,
    settings: &Settings,
) -> Result<ConnectOptions, ConnectError> {
    let tls = tls::client(settings.authorities.as_deref()).map_err(|why| address.wrong(&why));
    let options = ConnectOptions::new()
        .name("lately")
        .connection_timeout(ATTEMPT)
        .request_timeout(Some(ATTEMPT))
        .ping_interval(PING)
        .subscription_capacity(2 * usize::from(u16::MAX))
        .reconnect_delay_callback(Backoff::before)
        .require_tls(address.scheme.is_encrypted());
    let options = match tls {
        Ok(tls) => options.tls_client_config((*tls).clone()),
        // Where nobody asks for TLS it does not matter that there is no certificate.
        Err(_) if !address.scheme.is_encrypted() && settings.authorities.is_none() => options,
        Err(error) => return Err(error),
    };
    let user = address.user.as_ref().or(settings.login.user.as_ref());
    let password = settings.login.password.clone();
    Ok(match (user, password) {
        (Some(user), password) => {
            options.user_and_password(user.clone(), password.unwrap_or_default())
        }
        (None, Some(token)) => options.token(token),
        (None, None) => options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn reader(address: &str) -> Result<Reader, ConnectError> {
        let settings = Settings {
            login: crate::Login::default(),
            authorities: None,
            identity: "x".into(),
            tell: Arc::new(|_| {}),
        };
        Reader::new(&address.parse()?, &settings)
    }

    #[test]
    fn streams_and_their_consumers() {
        let plain = reader("nats://h/READS").unwrap();
        assert_eq!((plain.stream.as_str(), plain.inflight), ("READS", INFLIGHT));
        assert_eq!(reader("nats://h/READS").unwrap().consumer, plain.consumer);
        assert_ne!(reader("nats://h/OTHER").unwrap().consumer, plain.consumer);
        let config = plain.config(None, AckPolicy::All);
        assert_eq!(config.deliver_policy, DeliverPolicy::All);
        let all = reader("nats://h/READS?consumer=dock&subject=a.*&from=new&inflight=7").unwrap();
        let config = all.config(None, AckPolicy::All);
        assert_eq!(config.durable_name.as_deref(), Some("dock"));
        assert_eq!(config.deliver_policy, DeliverPolicy::New);
        assert_eq!((config.max_ack_pending, config.filter_subject.as_str()), (7, "a.*"));
        // Of a consumer that there is, the position stays.
        let known = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: 9 },
            ..config
        };
        assert_eq!(all.config(Some(known.clone()), AckPolicy::Explicit), known);
        for wrong in [
            "nats://h",
            "nats://h/a.b",
            "nats://h/a?consumer=x.y",
            "nats://h/a?subject=a..b",
            "nats://h/a?from=5",
            "nats://h/a?inflight=0",
            "nats://h/a?group=x",
        ] {
            assert!(reader(wrong).is_err(), "{wrong}");
        }
    }
}
