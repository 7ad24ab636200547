//! Topics that are made of fields of what a record came in: `clean/{@topic}`.

use lately_stream::record::{Envelope, EnvelopeField};

/// A text with fields of an envelope in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(EnvelopeField),
}

impl Template {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) =
                after.split_once('}').ok_or_else(|| format!("`{{{after}` has no closing brace"))?;
            let field = EnvelopeField::named(name).ok_or_else(|| {
                format!("`{{{name}}}` is none of {{@topic}}, {{@partition}}, {{@key}} and {{@header.NAME}}")
            })?;
            parts.push(Part::Text(before.into()));
            parts.push(Part::Field(field));
            rest = after;
        }
        parts.push(Part::Text(rest.into()));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Self(parts))
    }

    /// The text, if there is no field in it.
    pub fn fixed(&self) -> Option<&str> {
        match &*self.0 {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text for a record that came in this envelope; `none` stands for fields that it does not have.
    pub fn fill(&self, envelope: Option<&Envelope>, none: &str) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Field(field) => {
                    let found = envelope.and_then(|envelope| field.of(envelope));
                    let found = found.and_then(|found| std::str::from_utf8(found).ok());
                    text.push_str(found.unwrap_or(none));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_made_of_fields() {
        let envelope = Envelope {
            topic: "dock/3".into(),
            headers: vec![("site".into(), "north".into())],
            ..Envelope::default()
        };
        for (text, made) in [
            ("clean", "clean"),
            ("", ""),
            ("clean/{@topic}", "clean/dock/3"),
            ("{@header.site}/{@topic}/x", "north/dock/3/x"),
        ] {
            let template = Template::new(text).unwrap();
            assert_eq!(template.fill(Some(&envelope), "none"), made);
            assert_eq!(template.fixed().is_some(), !text.contains('{'));
        }
        let missing = Template::new("{@header.other}/a").unwrap();
        assert_eq!(missing.fill(Some(&envelope), "none"), "none/a");
        assert_eq!(missing.fill(None, "-"), "-/a");
        for text in ["{topic}", "{@topic", "a{}"] {
            assert!(Template::new(text).is_err(), "{text}");
        }
    }
}
