//! What decides which records have equal keys and when they are duplicates. A state that was made
//! with one identity must not be used with another.

use super::terms::Span;
use crate::quantity;
use lately::Renewal;
use std::fmt;

/// The identity of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How keys and times are read from records. `None` where nobody has read any so far: keys were
    /// handed over as they are, and any reading may follow.
    pub reading: Option<Reading>,
    /// The window.
    pub span: Span,
    /// What renews a key; `None` in an index.
    pub renewal: Option<Renewal>,
    /// The seed of the hash.
    pub seed: u64,
    /// The fields whose change lets a duplicate through.
    pub changes: Vec<String>,
}

/// How keys and times are read from records: settings by name, each with its values. A setting that
/// is absent, or has no values, is at its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    settings: Vec<(String, Vec<String>)>,
}

/// The settings of a [`Reading`] that files of version 1 always named, with what they said by default.
const ALWAYS: [(&str, &str); 4] =
    [("format", "auto"), ("key", "default"), ("key-format", "text"), ("time", "default")];

/// The settings of a file of version 1, in the order in which they were written.
const NAMES: [&str; 12] = [
    "format",
    "key",
    "key-format",
    "time",
    "time-format",
    "time-zone",
    "no-header",
    "within",
    "last",
    "renew",
    "seed",
    "pass-on-change",
];

impl Reading {
    /// All settings at their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this setting.
    #[must_use]
    pub fn with<V: Into<String>>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.settings.retain(|(other, _)| other != name);
        let values: Vec<_> = values.into_iter().map(Into::into).collect();
        if !values.is_empty() {
            self.settings.push((name.into(), values));
        }
        self
    }

    /// The values of a setting; none where it is at its default.
    pub fn get(&self, name: &str) -> &[String] {
        let setting = self.settings.iter().find(|(other, _)| other == name);
        setting.map_or(&[], |(_, values)| values)
    }

    /// Every setting that is not at its default.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.settings.iter().map(|(name, values)| (&**name, &**values))
    }

    /// A setting as it is shown.
    fn show(&self, name: &str) -> String {
        let default =
            ALWAYS.iter().find(|(other, _)| *other == name).map_or("default", |one| one.1);
        match self.get(name) {
            [] => default.into(),
            values => values.join(","),
        }
    }
}

/// A setting that differs between a saved state and what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// What the state was made with.
    pub saved: String,
    /// What was asked for.
    pub asked: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: saved {}, asked {}", self.name, self.saved, self.asked)
    }
}

impl Identity {
    /// Where a saved identity (`self`) differs from one that is asked for.
    pub fn differences(&self, asked: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |name: &str, saved: String, asked: String| {
            if saved != asked {
                found.push(Difference { name: name.into(), saved, asked });
            }
        };
        if let (Some(saved), Some(asked)) = (&self.reading, &asked.reading) {
            let names = saved
                .settings()
                .chain(asked.settings().filter(|(name, _)| saved.get(name).is_empty()));
            for (name, _) in names {
                if saved.get(name) != asked.get(name) {
                    compare(name, saved.show(name), asked.show(name));
                }
            }
        }
        compare("window", self.span.to_string(), asked.span.to_string());
        let renewal = |identity: &Self| identity.renewal.map_or("none", name_of_renewal).to_owned();
        compare("renew", renewal(self), renewal(asked));
        compare("seed", self.seed.to_string(), asked.seed.to_string());
        let changes = |identity: &Self| match &*identity.changes {
            [] => "none".to_owned(),
            fields => fields.join(","),
        };
        compare("pass-on-change", changes(self), changes(asked));
        found
    }

    /// The reading and the change fields of an identity as files of version 1 have it: as text.
    pub(crate) fn of_text(text: &str) -> Option<(Reading, Vec<String>)> {
        let mut reading = Reading::new();
        let mut changes = Vec::new();
        let mut rest = text.strip_prefix("format=")?;
        let mut name = NAMES[0];
        loop {
            // Values may hold anything, so a value ends where the next name that may follow begins.
            let after = NAMES.iter().skip_while(|other| **other != name).skip(1);
            let next = after
                .filter_map(|next| Some((rest.find(&format!(" {next}="))?, *next)))
                .min_by_key(|(at, _)| *at);
            let value = next.map_or(rest, |(at, _)| &rest[..at]);
            let default = ALWAYS.iter().find(|(other, _)| *other == name).map(|one| one.1);
            match name {
                "within" | "last" | "renew" | "seed" => {}
                "pass-on-change" => changes = value.split(',').map(Into::into).collect(),
                "key" if Some(value) != default => reading = reading.with(name, value.split(',')),
                _ if Some(value) != default => reading = reading.with(name, [value]),
                _ => {}
            }
            let Some((at, next)) = next else { return Some((reading, changes)) };
            rest = rest.get(at + next.len() + 2..)?;
            name = next;
        }
    }
}

/// As files of version 1 have it, which is also how it is shown.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reading) = &self.reading {
            for (name, _) in ALWAYS {
                write!(f, "{name}={} ", reading.show(name))?;
            }
            let known = |name: &str| ALWAYS.iter().any(|(other, _)| *other == name);
            for (name, values) in reading.settings().filter(|(name, _)| !known(name)) {
                write!(f, "{name}={} ", values.join(","))?;
            }
        }
        match self.span {
            Span::Within(length) => write!(f, "within={}", quantity::display_duration(length)),
            Span::Last(n) => write!(f, "last={}", quantity::display_count(n)),
            Span::Ever => f.write_str("within=ever"),
        }?;
        if let Some(renewal) = self.renewal {
            write!(f, " renew={}", name_of_renewal(renewal))?;
        }
        write!(f, " seed={}", self.seed)?;
        if !self.changes.is_empty() {
            write!(f, " pass-on-change={}", self.changes.join(","))?;
        }
        Ok(())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(length) => f.write_str(&quantity::display_duration(*length)),
            Self::Last(n) => write!(f, "the last {} records", quantity::display_count(*n)),
            Self::Ever => f.write_str("ever"),
        }
    }
}

const fn name_of_renewal(renewal: Renewal) -> &'static str {
    match renewal {
        Renewal::Always => "always",
        Renewal::OnFresh => "fresh",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(reading: Reading, changes: &[&str]) -> Identity {
        Identity {
            reading: Some(reading),
            span: Span::Within(5_000_000_000),
            renewal: Some(Renewal::OnFresh),
            seed: 4,
            changes: changes.iter().map(|name| (*name).into()).collect(),
        }
    }

    #[test]
    fn what_version_1_wrote_is_understood() {
        let readings = [
            Reading::new(),
            Reading::new().with("key", ["a", "b c"]).with("time", ["t=1"]),
            Reading::new()
                .with("format", ["csv"])
                .with("key-format", ["epc"])
                .with("time-format", ["%d/%b/%Y:%H:%M:%S %z"])
                .with("time-zone", ["America/Chicago"])
                .with("no-header", ["true"]),
        ];
        for reading in readings {
            for changes in [&[][..], &["v", "w"]] {
                let identity = identity(reading.clone(), changes);
                let (back, fields) = Identity::of_text(&identity.to_string()).unwrap();
                assert_eq!((&back, &fields), (&reading, &identity.changes), "{identity}");
            }
        }
        let text =
            "format=auto key=default key-format=text time=default within=5s renew=fresh seed=4";
        assert_eq!(identity(Reading::new(), &[]).to_string(), text);
        assert_eq!(Identity::of_text("no settings"), None);
    }

    #[test]
    fn differences_are_named() {
        let saved = identity(Reading::new().with("key", ["a"]).with("time-zone", ["UTC"]), &[]);
        let asked = Identity {
            span: Span::Last(5),
            ..identity(Reading::new().with("key", ["a"]).with("format", ["csv"]), &["v"])
        };
        let found: Vec<_> = saved.differences(&asked).iter().map(ToString::to_string).collect();
        let expected = [
            "time-zone: saved UTC, asked default",
            "format: saved auto, asked csv",
            "window: saved 5s, asked the last 5 records",
            "pass-on-change: saved none, asked v",
        ];
        assert_eq!(found, expected);
        assert!(saved.differences(&saved).is_empty());
        // Keys that were handed over as they are have been read in no way that could differ.
        assert!(Identity { reading: None, ..saved.clone() }.differences(&saved).is_empty());
    }
}
