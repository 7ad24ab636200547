//! What goes wrong with a cluster, in words that help, and whether it will pass.

use crate::error::Trouble;
use crate::settings::Tell;
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a connection to a cluster stands, and who is told.
pub(super) struct Watch {
    name: String,
    tell: Tell,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Why a broker could not be reached, last.
    reason: Option<String>,
    /// It was told that the cluster is away.
    is_lost: bool,
    /// What will not pass.
    lasting: Option<String>,
    /// What was told once.
    said: Vec<String>,
}

impl Watch {
    pub(super) fn new(name: String, tell: Tell) -> Self {
        Self { name, tell, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something went wrong with the cluster as a whole, or with one broker of it.
    pub(super) fn hear(&self, code: RDKafkaErrorCode, reason: &str) {
        let mut state = self.lock();
        match trouble(code, reason) {
            Trouble::Lasting(why) => {
                state.lasting.get_or_insert(why);
            }
            Trouble::Passing(why) => {
                if code == RDKafkaErrorCode::AllBrokersDown {
                    if !state.is_lost {
                        state.is_lost = true;
                        let why = state.reason.clone().unwrap_or(why);
                        (self.tell)(&format!(
                            "{}: the connection is lost ({why}); trying again",
                            self.name
                        ));
                    }
                } else if !reason.is_empty() {
                    state.reason = Some(why);
                }
            }
        }
    }

    /// It works.
    pub(super) fn works(&self) {
        let mut state = self.lock();
        if state.is_lost {
            state.is_lost = false;
            (self.tell)(&format!("{}: connected again", self.name));
        }
    }

    /// What will not pass, if anything.
    pub(super) fn lasting(&self) -> Option<String> {
        self.lock().lasting.clone()
    }

    /// Why no broker can be reached, as far as that is known.
    pub(super) fn reason(&self) -> Option<String> {
        self.lock().reason.clone()
    }

    /// Tells something, with the reason that is known, unless it was told before.
    pub(super) fn say_once(&self, what: &str) {
        let mut state = self.lock();
        if !state.said.iter().any(|said| said == what) {
            state.said.push(what.into());
            let reason = state.reason.as_deref().map_or(String::new(), |why| format!(" ({why})"));
            (self.tell)(&format!("{}: {what}{reason}", self.name));
        }
    }

    /// Tells something else.
    pub(super) fn say(&self, what: &str) {
        (self.tell)(&format!("{}: {what}", self.name));
    }
}

/// What the client has to tell, for whoever polls it.
impl ClientContext for Watch {
    fn error(&self, error: KafkaError, reason: &str) {
        if let Some(code) = error.rdkafka_error_code() {
            self.hear(code, reason);
        }
    }

    fn stats_raw(&self, _: &[u8]) {}
}

/// Whether it will pass.
fn trouble(code: RDKafkaErrorCode, reason: &str) -> Trouble {
    use RDKafkaErrorCode as Code;
    let why = plain(reason);
    match code {
        Code::Authentication | Code::SaslAuthenticationFailed => Trouble::Lasting(format!(
            "the broker refuses the connection: not authorized; is the user, the password or the mechanism (?mechanism=SCRAM-SHA-512) missing or wrong? ({why})"
        )),
        Code::UnsupportedSASLMechanism => {
            Trouble::Lasting(format!("the broker does not know this mechanism: {why}"))
        }
        _ if why.contains("certificate verify failed") => Trouble::Lasting(format!(
            "its certificate is from an authority that is not trusted here, or for another host; --ca names the file of an authority that is to be trusted ({why})"
        )),
        _ if why.contains("SSL") && why.contains("wrong version number") => {
            Trouble::Lasting("it does not speak TLS there; is it kafka://, or another port?".into())
        }
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed => {
            Trouble::Lasting(format!("the broker does not authorize what was asked of it: {code}"))
        }
        Code::Fatal | Code::Fenced | Code::InconsistentGroupProtocol => {
            Trouble::Lasting(if why.is_empty() { code.to_string() } else { why })
        }
        _ if why.is_empty() => Trouble::Passing(code.to_string()),
        _ => Trouble::Passing(why),
    }
}

/// A reason without the names of threads and the time that passed.
fn plain(reason: &str) -> String {
    let reason = reason.trim();
    let reason = match reason.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: ")) {
        Some((_, rest)) => rest,
        None => reason,
    };
    let end = reason.find(" (after ").unwrap_or(reason.len());
    reason.get(..end).unwrap_or(reason).to_owned()
}

/// What is wrong with a topic that cannot be used.
pub(super) fn no_topic(topic: &str) -> String {
    format!(
        "there is no topic `{topic}`; make one: kafka-topics.sh --create --topic {topic} --partitions 3 ..."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_passes_and_what_does_not() {
        let said = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&said);
        let tell = Arc::new(move |what: &str| told.lock().unwrap().push(what.into()));
        let watch = Watch::new("kafka://h:9092".into(), tell);
        watch.error(
            KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure),
            "h:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)",
        );
        assert_eq!(
            watch.reason().unwrap(),
            "h:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"
        );
        for _ in 0..2 {
            watch.error(
                KafkaError::Global(RDKafkaErrorCode::AllBrokersDown),
                "1/1 brokers are down",
            );
        }
        watch.works();
        watch.works();
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("lost") && said[0].contains("refused"), "{said:?}");
        assert!(said[1].contains("again"));
        assert_eq!(watch.lasting(), None);
        let refused = KafkaError::Global(RDKafkaErrorCode::Authentication);
        watch.error(
            refused,
            "[thrd:h]: h: SASL authentication error: wrong (after 3ms in state AUTH_REQ)",
        );
        let lasting = watch.lasting().unwrap();
        assert!(
            lasting.contains("password")
                && lasting.ends_with("(h: SASL authentication error: wrong)"),
            "{lasting}"
        );
    }
}
