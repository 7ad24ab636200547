//! What messages say of the records in them, besides the records.

use lately_stream::judge::class::Class;
use lately_stream::write::message::About;

/// The class of a record that was not forwarded.
const CLASS: &str = "lately-class";
/// Why it is invalid,
const REASON: &str = "lately-reason";
/// and where the message was published that it came in.
const TOPIC: &str = "lately-topic";

/// The headers (user properties, with MQTT) of a message for a record: those of the message that it came in, and what
/// became of it, which no earlier message can say.
pub(crate) fn headers(about: &About) -> Vec<(String, String)> {
    let envelope = about.from.as_ref().map(|(envelope, _)| &**envelope);
    let own = |name: &str| [CLASS, REASON, TOPIC].contains(&name);
    let theirs = envelope.into_iter().flat_map(|envelope| &envelope.headers);
    let mut headers: Vec<_> = theirs.filter(|(name, _)| !own(name)).cloned().collect();
    if !matches!(about.class, Class::Fresh | Class::Inside | Class::Visit) {
        headers.push((CLASS.into(), about.class.name().into()));
    }
    if let Some(reason) = &about.reason {
        headers.push((REASON.into(), reason.clone()));
        if let Some(envelope) = envelope {
            headers.push((TOPIC.into(), envelope.topic.clone()));
        }
    }
    headers
}
