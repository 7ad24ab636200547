//! A file of users: what it says, and every mistake in it with the line where it is.

use super::{DEFAULT, LONGEST, MOST, Right, Secret, User, with_secret};
use crate::config::ConfigError;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a user has, in the order in which it is told.
const FIELDS: &str = "name, password_sha256, filters and may";

/// The users of a file, behind those that there are without it.
///
/// # Errors
/// All mistakes, in a line each.
pub(super) fn read(text: &str, before: Vec<Arc<User>>) -> Result<Vec<Arc<User>>, ConfigError> {
    let mut reading = Reading {
        starts: std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1))
            .collect(),
        mistakes: Vec::new(),
        lines: HashMap::new(),
        users: before,
    };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reading.mistake(error.span().unwrap_or_default(), error.message());
    }
    // What is no TOML may be read as anything.
    if errors.is_empty() {
        reading.file(root.get_ref());
    }
    reading.done()
}

struct Reading {
    /// Where lines begin.
    starts: Vec<usize>,
    /// With their lines.
    mistakes: Vec<(usize, String)>,
    /// Names, and the lines where they are.
    lines: HashMap<String, usize>,
    users: Vec<Arc<User>>,
}

/// A user of the file, as far as it is read.
struct Part<'a> {
    reading: &'a mut Reading,
    /// Where it begins.
    header: Range<usize>,
    name: Option<(String, Range<usize>)>,
}

impl Reading {
    fn line(&self, span: &Range<usize>) -> usize {
        self.starts.partition_point(|&start| start <= span.start)
    }

    fn mistake(&mut self, span: Range<usize>, what: impl Into<String>) {
        let line = self.line(&span);
        self.mistakes.push((line, what.into()));
    }

    fn done(mut self) -> Result<Vec<Arc<User>>, ConfigError> {
        if self.mistakes.is_empty() {
            return Ok(self.users);
        }
        self.mistakes.sort_by_key(|(line, _)| *line);
        let lines = self.mistakes.iter().map(|(line, what)| format!("line {line}: {what}"));
        Err(ConfigError(lines.collect::<Vec<_>>().join("\n")))
    }

    fn file(&mut self, root: &DeTable<'_>) {
        for (key, value) in root {
            match value.get_ref() {
                DeValue::Array(users) if key.get_ref() == "user" => {
                    if users.len() > MOST {
                        return self.mistake(key.span(), format!("names more than {MOST} users"));
                    }
                    users.iter().for_each(|user| self.user(user));
                }
                _ if key.get_ref() == "user" => {
                    self.mistake(key.span(), "user: write [[user]] above each of them");
                }
                _ => {
                    let what =
                        format!("unknown field `{}`: there is [[user]] alone", key.get_ref());
                    self.mistake(key.span(), what);
                }
            }
        }
    }

    fn user(&mut self, user: &Spanned<DeValue<'_>>) {
        let Some(table) = user.get_ref().as_table() else {
            return self.mistake(user.span(), "user: write [[user]] above each of them");
        };
        let name =
            table.get("name").and_then(|name| Some((name.get_ref().as_str()?.into(), name.span())));
        Part { reading: self, header: user.span(), name }.read(table);
    }
}

impl Part<'_> {
    /// Notes a mistake of this user.
    fn mistake(&mut self, span: Range<usize>, what: &str) {
        let who = self.name.as_ref().map_or("user".into(), |(name, _)| format!("user {name:?}"));
        self.reading.mistake(span, format!("{who}: {what}"));
    }

    /// A text, or the mistake that it is none.
    fn text(&mut self, field: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            let kind = value.get_ref().type_str();
            self.mistake(
                value.span(),
                &format!("{field}: must be a text in quotes, and is of type {kind}"),
            );
        }
        text
    }

    fn read(mut self, table: &DeTable<'_>) {
        let mistakes = self.reading.mistakes.len();
        for key in table.keys() {
            let field = key.get_ref();
            if !["name", "password_sha256", "filters", "may"].contains(&&**field) {
                self.mistake(key.span(), &format!("unknown field `{field}`: there are {FIELDS}"));
            }
        }
        self.check_name(table.get("name"));
        let secret = self.secret(table.get("password_sha256"));
        let names = self.names(table.get("filters"));
        let may = self.right(table.get("may"));
        if self.reading.mistakes.len() > mistakes {
            return;
        }
        if let (Some((name, _)), Some(may)) = (&self.name, may) {
            self.reading.users.push(Arc::new(User::new(name, secret, may, names)));
        }
    }

    fn check_name(&mut self, field: Option<&Spanned<DeValue<'_>>>) {
        let Some(field) = field else {
            return self.mistake(self.header.clone(), "missing field `name`");
        };
        let Some(name) = self.text("name", field) else { return };
        let is_fit = |char: char| !(char.is_whitespace() || char.is_control() || char == ':');
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(is_fit) {
            let what = format!(
                "name: must have at most {LONGEST} bytes, and no blank and no colon among them"
            );
            return self.mistake(field.span(), &what);
        }
        let line = self.reading.line(&field.span());
        if let Some(&first) = self.reading.lines.get(&name) {
            return self.mistake(field.span(), &format!("is in line {first} already"));
        }
        // There is one before those of the file if there is a password file.
        if name == DEFAULT && self.reading.users.iter().any(|user| user.name == DEFAULT) {
            self.mistake(field.span(), "is the one of the password file: leave out one of them");
        }
        self.reading.lines.insert(name, line);
    }

    fn secret(&mut self, field: Option<&Spanned<DeValue<'_>>>) -> Option<Secret> {
        let Some(field) = field else {
            let is_default = self.name.as_ref().is_some_and(|(name, _)| name == DEFAULT);
            if !is_default {
                let what = "password_sha256: is missing (only the user \"default\" may do without)";
                self.mistake(self.header.clone(), what);
            }
            return None;
        };
        match Secret::parse(&self.text("password_sha256", field)?) {
            Ok(secret) => {
                // Over HTTP nothing but the token says who it is.
                if let Some(twin) = with_secret(&self.reading.users, &secret) {
                    let what =
                        format!("password_sha256: has the password of the user {:?}", twin.name);
                    self.mistake(field.span(), &what);
                }
                Some(secret)
            }
            Err(what) => {
                self.mistake(field.span(), &what);
                None
            }
        }
    }

    fn names(&mut self, field: Option<&Spanned<DeValue<'_>>>) -> Vec<String> {
        const WHAT: &str = "filters: give one pattern of names or more, such as [\"crawl:*\"]";
        let Some(field) = field else { return vec!["*".into()] };
        let patterns = field.get_ref().as_array().filter(|patterns| !patterns.is_empty());
        let Some(patterns) = patterns else {
            self.mistake(field.span(), WHAT);
            return Vec::new();
        };
        let mut names = Vec::new();
        for pattern in patterns.iter() {
            match pattern.get_ref().as_str() {
                Some(name) if !name.is_empty() => names.push(name.into()),
                _ => self.mistake(pattern.span(), WHAT),
            }
        }
        names
    }

    fn right(&mut self, field: Option<&Spanned<DeValue<'_>>>) -> Option<Right> {
        let Some(field) = field else {
            self.mistake(self.header.clone(), "missing field `may`: read, write or admin");
            return None;
        };
        let said = self.text("may", field)?;
        let rights = [Right::Read, Right::Write, Right::Admin];
        let found = rights.into_iter().find(|right| right.to_string() == said);
        if found.is_none() {
            self.mistake(field.span(), &format!("may: {said:?} is none of read, write and admin"));
        }
        found
    }
}
