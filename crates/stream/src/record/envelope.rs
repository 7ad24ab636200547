//! What surrounds a message of a broker: where it was published, its key, its headers.

use super::key::Form;
use super::value::{Row, Value};
use std::fmt;

/// What surrounds a message of a broker, besides its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Where it was published: a topic of MQTT or Kafka, a subject of NATS.
    pub topic: String,
    /// The number of its part of the topic, where topics have parts: those of Kafka.
    pub partition: Option<String>,
    /// Its key, where the broker has one.
    pub key: Option<Vec<u8>>,
    /// Its headers, or user properties, in order.
    pub headers: Vec<(String, String)>,
    /// What identifies the message at its broker, also when it is delivered again; empty where nothing does.
    pub id: String,
}

/// A field of an envelope. It can be named wherever a field of a record can, and in the addresses of outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeField {
    /// `@topic`, or `@subject`.
    Topic,
    /// `@partition`.
    Partition,
    /// `@key`.
    Key,
    /// `@header.NAME`.
    Header(String),
}

impl EnvelopeField {
    /// The field of this name; `None` for all other names, which are those of members and columns.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            // As NATS calls it.
            "@topic" | "@subject" => Some(Self::Topic),
            "@partition" => Some(Self::Partition),
            "@key" => Some(Self::Key),
            _ => name.strip_prefix("@header.").map(|header| Self::Header(header.into())),
        }
    }

    /// Its text in an envelope, if that has it. Of headers of one name the first counts.
    pub fn of<'e>(&self, envelope: &'e Envelope) -> Option<&'e [u8]> {
        match self {
            Self::Topic => Some(envelope.topic.as_bytes()),
            Self::Partition => envelope.partition.as_deref().map(str::as_bytes),
            Self::Key => envelope.key.as_deref(),
            Self::Header(name) => {
                let header = envelope.headers.iter().find(|(other, _)| other == name);
                header.map(|(_, value)| value.as_bytes())
            }
        }
    }

    /// The same as the value of a field.
    pub(crate) fn value<'e>(&self, envelope: Option<&'e Envelope>) -> Value<'e> {
        match envelope.and_then(|envelope| self.of(envelope)) {
            Some(text) => Value::Text(text),
            None => Value::Missing("the message has none"),
        }
    }
}

/// The place of the first field of an envelope; all below are places in records.
pub(crate) const ENVELOPE: usize = usize::MAX / 2;

/// A record together with the envelope of the message that it came in.
pub(crate) struct Enveloped<'a, R> {
    pub(crate) row: &'a R,
    pub(crate) envelope: Option<&'a Envelope>,
    /// By their places, from [`ENVELOPE`] on.
    pub(crate) fields: &'a [EnvelopeField],
}

impl<R: Row> Row for Enveloped<'_, R> {
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        match slot.checked_sub(ENVELOPE).and_then(|at| self.fields.get(at)) {
            Some(field) => field.value(self.envelope),
            None => self.row.value(slot, spare),
        }
    }

    fn whole<'r>(&'r self, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.row.whole(spare)
    }

    fn rest<'r>(&'r self, first: usize, form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.row.rest(first, form, spare)
    }

    fn all_but<'r>(&'r self, slots: &[usize], form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.row.all_but(slots, form, spare)
    }
}

impl fmt::Display for EnvelopeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic => f.write_str("@topic"),
            Self::Partition => f.write_str("@partition"),
            Self::Key => f.write_str("@key"),
            Self::Header(name) => write!(f, "@header.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_an_envelope() {
        let envelope = Envelope {
            topic: "dock/3".into(),
            partition: Some("7".into()),
            key: Some(b"k".to_vec()),
            headers: vec![("site".into(), "a".into()), ("site".into(), "b".into())],
            id: String::new(),
        };
        let text = |name: &str| {
            let field = EnvelopeField::named(name).unwrap();
            assert_eq!(field.to_string(), name);
            field.of(&envelope).map(|text| String::from_utf8_lossy(text).into_owned())
        };
        assert_eq!(text("@topic").as_deref(), Some("dock/3"));
        assert_eq!(EnvelopeField::named("@subject"), Some(EnvelopeField::Topic));
        assert_eq!(text("@partition").as_deref(), Some("7"));
        assert_eq!(text("@key").as_deref(), Some("k"));
        assert_eq!(text("@header.site").as_deref(), Some("a"));
        assert_eq!(text("@header.other"), None);
        // As JSON-LD and logs have it: members of records.
        assert!(
            ["@timestamp", "@type", "topic", "@headers"]
                .into_iter()
                .all(|name| EnvelopeField::named(name).is_none())
        );
    }
}
