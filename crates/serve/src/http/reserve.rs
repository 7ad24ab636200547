//! What a filter is to be made with, as JSON.

use super::answer::{Answer, Problem, json};
use super::ask::{Asker, Reply};
use super::filters;
use super::items::parse;
use crate::command::{Words, in_members, options_asked};
use hyper::StatusCode;
use serde::Deserialize;

/// The body of `PUT /v1/filters/{name}`. What it leaves out is as the template of the name says, or as by default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reserve {
    window: Option<String>,
    last: Option<u64>,
    forever: Option<bool>,
    capacity: Option<u64>,
    fpr: Option<f64>,
    renew: Option<String>,
    slack: Option<Slack>,
    memory: Option<Bytes>,
    on_full: Option<String>,
    structure: Option<String>,
    range: Option<String>,
    interval: Option<Interval>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number of keys, or a length such as \"2^38\" or \"/16\"")]
enum Interval {
    Keys(u64),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a length of time such as \"1m\", or a number of arrivals")]
enum Slack {
    Arrivals(u64),
    Time(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a size such as \"64MiB\"")]
enum Bytes {
    Number(u64),
    Text(String),
}

impl Reserve {
    /// The words of `LATELY.RESERVE` that ask for this.
    fn words(&self, name: &[u8]) -> Result<Vec<Vec<u8>>, Problem> {
        let mut words = vec![b"LATELY.RESERVE".to_vec(), name.to_vec()];
        let mut option = |word: &str, value: &str| {
            words.extend([word.as_bytes().to_vec(), value.as_bytes().to_vec()]);
        };
        match (&self.window, self.last, self.forever) {
            (Some(window), None, None | Some(false)) => option("WINDOW", window),
            (None, Some(last), None | Some(false)) => option("LAST", &last.to_string()),
            (None, None, None | Some(false)) => {}
            (None, None, Some(true)) => words.push(b"FOREVER".to_vec()),
            _ => return Err(Problem::bad("the body: give one of window, last and forever")),
        }
        let mut option = |word: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([word.as_bytes().to_vec(), value.into_bytes()]);
            }
        };
        option("CAPACITY", self.capacity.map(|n| n.to_string()));
        option("FPR", self.fpr.map(|fpr| fpr.to_string()));
        option("RENEW", self.renew.clone());
        option(
            "SLACK",
            self.slack.as_ref().map(|slack| match slack {
                Slack::Arrivals(n) => n.to_string(),
                Slack::Time(text) => text.clone(),
            }),
        );
        option(
            "MEMORY",
            self.memory.as_ref().map(|memory| match memory {
                Bytes::Number(n) => n.to_string(),
                Bytes::Text(text) => text.clone(),
            }),
        );
        option("ONFULL", self.on_full.clone());
        option("STRUCTURE", self.structure.clone());
        option("RANGE", self.range.clone());
        option(
            "INTERVAL",
            self.interval.as_ref().map(|interval| match interval {
                Interval::Keys(n) => n.to_string(),
                Interval::Text(text) => text.clone(),
            }),
        );
        Ok(words)
    }
}

fn fault(error: &str) -> Problem {
    match in_members(error) {
        Some(said) => Problem::bad(format!("the body: {said}")),
        None => Problem::of_command(error),
    }
}

/// Makes a filter: 201; 200 if there is one that was made alike, and 409 if there is another.
pub(super) async fn put(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    if name.is_empty() {
        return Err(Problem::bad("the path: a filter needs a name"));
    }
    let asked: Reserve = if body.is_empty() { Reserve::default() } else { parse(body)? };
    let words = asked.words(name)?;
    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
    match asker.one(&words).await? {
        Reply::Error(error) if error == "ERR item exists" => {}
        Reply::Error(error) => return Err(fault(&error)),
        _ => return Ok(json(StatusCode::CREATED, &filters::info(asker, name)?)),
    }
    let options = options_of(asker, &words)?;
    let info = filters::info(asker, name)?;
    let store = &asker.service.server.store;
    let is_alike =
        store.filter(name, asker.now()).is_some_and(|entry| entry.lock().options == options);
    if is_alike {
        return Ok(json(StatusCode::OK, &info));
    }
    Err(Problem::new(
        StatusCode::CONFLICT,
        "there is a filter of this name, made with other options: GET it to see them, or DELETE it first",
    ))
}

fn options_of(asker: &Asker<'_>, words: &[&[u8]]) -> Result<crate::store::Options, Problem> {
    let mut buffer = Vec::new();
    let mut spans = Vec::new();
    for word in words {
        spans.push((buffer.len(), buffer.len() + word.len()));
        buffer.extend_from_slice(word);
    }
    options_asked(&asker.service.server.store, Words::new(&buffer, &spans))
        .map_err(|error| fault(&error))
}
