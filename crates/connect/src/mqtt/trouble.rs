//! What went wrong with a connection, in words that help, and whether it will pass.

use crate::error::Trouble;
use crate::tls;
use rumqttc::{
    ConnectReturnCode as Code, ConnectionError, DisconnectReasonCode, StateError,
    SubscribeReasonCode, TlsError,
};

impl From<&ConnectionError> for Trouble {
    fn from(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::ConnectionRefused(code)
            | ConnectionError::MqttState(StateError::ConnFail { reason: code }) => refused(*code),
            ConnectionError::MqttState(StateError::ServerDisconnect {
                reason_code,
                reason_string,
            }) => disconnected(*reason_code, reason_string.as_deref()),
            ConnectionError::MqttState(StateError::OutgoingPacketTooLarge { pkt_size, max }) => {
                Self::Lasting(format!(
                    "a message of {pkt_size} bytes, and the broker takes {max} at most"
                ))
            }
            ConnectionError::Tls(error) => secure(error),
            ConnectionError::Io(error) => io(error),
            ConnectionError::Timeout(_) => Self::Passing("it does not answer".into()),
            ConnectionError::NotConnAck(_)
            | ConnectionError::MqttState(StateError::Deserialization(_)) => {
                Self::Passing("what it says is not MQTT 5; is it a broker?".into())
            }
            other => Self::Passing(other.to_string()),
        }
    }
}

fn refused(code: Code) -> Trouble {
    let said = |what: &str| Trouble::Lasting(format!("the broker refuses the connection: {what}"));
    match code {
        Code::BadUserNamePassword => said("wrong user or password"),
        Code::NotAuthorized => {
            said("not authorized; is the user or the password missing or wrong?")
        }
        Code::Banned => said("this client is banned"),
        Code::BadClientId | Code::ClientIdentifierNotValid => {
            said("it does not take the name of this client; name another with ?client=NAME")
        }
        Code::RefusedProtocolVersion | Code::UnsupportedProtocolVersion => {
            said("it does not speak MQTT 5")
        }
        other => Trouble::Passing(format!("the broker refuses the connection for now: {other:?}")),
    }
}

fn disconnected(code: DisconnectReasonCode, reason: Option<&str>) -> Trouble {
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    match code {
        DisconnectReasonCode::SessionTakenOver => Trouble::Lasting(
            "another process has connected under the name of this one; give one of them another with ?client=NAME".into(),
        ),
        DisconnectReasonCode::PacketTooLarge => {
            Trouble::Lasting(format!("a message is larger than the broker takes{reason}"))
        }
        DisconnectReasonCode::NotAuthorized => {
            Trouble::Lasting(format!("the broker does not authorize what was asked of it{reason}"))
        }
        other => Trouble::Passing(format!("the broker has ended the connection: {other:?}{reason}")),
    }
}

fn secure(error: &TlsError) -> Trouble {
    match error {
        TlsError::Io(error) => io(error),
        TlsError::DNSName(_) | TlsError::Addr(_) => {
            Trouble::Lasting("its name is none that a certificate could be for".into())
        }
        other => Trouble::Lasting(tls::certificate(&other.to_string())),
    }
}

fn io(error: &std::io::Error) -> Trouble {
    let why = error.to_string();
    if why.contains("certificate") {
        return Trouble::Lasting(tls::certificate(&why));
    }
    if why.contains("InvalidContentType") || why.contains("corrupt message") {
        return Trouble::Lasting(
            "it does not speak TLS there; is it mqtt://, or another port?".into(),
        );
    }
    Trouble::Passing(why)
}

/// Why a subscription is refused.
pub(super) fn subscription(code: SubscribeReasonCode) -> Option<&'static str> {
    Some(match code {
        SubscribeReasonCode::Success(_) => return None,
        SubscribeReasonCode::NotAuthorized => "not authorized to read it",
        SubscribeReasonCode::TopicFilterInvalid => "it is no valid filter there",
        SubscribeReasonCode::QuotaExceeded => "there are too many subscriptions already",
        SubscribeReasonCode::SharedSubscriptionsNotSupported => {
            "the broker has no shared subscriptions"
        }
        SubscribeReasonCode::WildcardSubscriptionsNotSupported => {
            "the broker has no subscriptions with `+` or `#`"
        }
        _ => "the broker does not say why",
    })
}
