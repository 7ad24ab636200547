//! `/v1/filters`: what filters are, and what is asked of them.

use super::answer::{Answer, Problem, json, nothing};
use super::ask::{Asker, Reply, Word};
use super::board::Activity;
use super::items::{
    Arrivals, End, Fresh, Interval, Item, Length, Questions, Removals, Seen, fitting, parse,
};
use super::keys::unexpected;
use super::query::{Query, path_of};
use crate::store::{Entry, Facts, Fullness, Reach, is_match};
use hyper::StatusCode;
use lately::Renewal;
use serde::Serialize;
use serde_json::json;
use std::cmp::Ordering;
use std::sync::Arc;

/// A filter as clients see it. Without a fill: it has not been measured yet.
#[derive(Debug, Serialize)]
pub(super) struct Info {
    name: String,
    /// Where it is found, whatever bytes its name has.
    path: String,
    structure: &'static str,
    /// How keys are spelt, and the length of interval that it is planned for, where it is asked for intervals. A length may have
    /// more digits than numbers of JSON are read with.
    range: Option<String>,
    interval: Option<String>,
    window_ms: Option<u64>,
    last: Option<u64>,
    slack: u64,
    renew: &'static str,
    capacity: u64,
    fpr: f64,
    fill: Option<f64>,
    estimated_fpr: Option<f64>,
    memory: u64,
    tables: usize,
    fresh: u64,
    duplicates: u64,
    asked: u64,
    refused: u64,
    grown: u64,
    forgotten: u64,
    /// Arrivals and questions a second, lately.
    rate: f64,
    /// The share of duplicates among the arrivals, lately.
    duplicate_share: Option<f64>,
    last_used_ms: u64,
    expires_ms: Option<u64>,
}

impl Info {
    pub(super) fn new(
        entry: &Entry,
        facts: &Facts,
        fullness: Option<Fullness>,
        activity: Activity,
    ) -> Self {
        let (window_ms, last) = match facts.reach {
            Reach::Forever => (None, None),
            Reach::Within(ms) => (Some(ms), None),
            Reach::Last(n) => (None, Some(n)),
        };
        Self {
            name: String::from_utf8_lossy(entry.name()).into_owned(),
            path: path_of(entry.name()),
            structure: facts.structure,
            range: facts.numbers.map(|numbers| numbers.format.to_string()),
            interval: facts.numbers.map(|numbers| numbers.interval.to_string()),
            window_ms,
            last,
            slack: facts.slack,
            renew: match facts.renewal {
                Renewal::Always => "always",
                Renewal::OnFresh => "fresh",
            },
            capacity: facts.capacity,
            fpr: facts.fpr,
            fill: fullness.map(|fullness| fullness.fill),
            estimated_fpr: fullness.map(|fullness| fullness.estimated_fpr),
            memory: facts.memory,
            tables: facts.tables,
            fresh: facts.counts.fresh,
            duplicates: facts.counts.duplicates,
            asked: facts.counts.asked,
            refused: facts.overload.refused,
            grown: facts.overload.grown,
            forgotten: facts.overload.forgotten,
            rate: activity.rate,
            duplicate_share: activity.duplicate_share,
            last_used_ms: facts.counts.last,
            expires_ms: entry.expires(),
        }
    }
}

fn existing(asker: &Asker<'_>, name: &[u8]) -> Result<Arc<Entry>, Problem> {
    let found = asker.service.server.store.existing(name, asker.now());
    found.map_err(|refusal| Problem::of_command(&refusal.to_string()))
}

/// What there is to say of a filter. Reads all of it.
pub(super) fn info(asker: &Asker<'_>, name: &[u8]) -> Result<Info, Problem> {
    let entry = existing(asker, name)?;
    let (facts, fullness) = (entry.facts(), entry.fullness());
    Ok(Info::new(&entry, &facts, Some(fullness), asker.service.board.activity(name)))
}

/// `GET /v1/filters/{name}`
pub(super) fn get(asker: &Asker<'_>, name: &[u8]) -> Result<Answer, Problem> {
    Ok(json(StatusCode::OK, &info(asker, name)?))
}

/// `GET /v1/filters/{name}/hour`
pub(super) fn hour(asker: &Asker<'_>, name: &[u8]) -> Result<Answer, Problem> {
    existing(asker, name)?;
    Ok(json(StatusCode::OK, &asker.service.board.hour_of(name)))
}

pub(super) const LIST_QUERY: &[&str] = &["match", "sort", "order", "offset", "limit"];
const SORTS: &[&str] = &[
    "name",
    "rate",
    "duplicates",
    "fill",
    "memory",
    "capacity",
    "fpr",
    "estimated_fpr",
    "last_used",
];

/// `GET /v1/filters`: those whose names match, sorted, a page of them.
pub(super) fn list(asker: &Asker<'_>, query: &Query) -> Result<Answer, Problem> {
    let sort = query.one_of("sort", SORTS)?;
    let is_descending = query.one_of("order", &["ascending", "descending"])? == "descending";
    let offset = query.number("offset", 0, 0..=usize::MAX)?;
    let limit = query.number("limit", 100, 1..=1_000)?;
    let (now, board) = (asker.now(), &asker.service.board);
    let mut entries = asker.service.server.store.names.all();
    entries.retain(|entry| !entry.has_expired(now) && asker.has_name(entry.name()));
    let total = entries.len();
    if let Some(pattern) = query.bytes("match").filter(|pattern| !pattern.is_empty()) {
        // A text that is no pattern is looked for anywhere.
        let is_pattern = pattern.iter().any(|byte| b"*?[\\".contains(byte));
        let anywhere = [b"*", pattern, b"*"].concat();
        let pattern = if is_pattern { pattern } else { &anywhere };
        entries.retain(|entry| is_match(pattern, entry.name()));
    }
    let matched = entries.len();
    let page: Vec<Info> = if sort == "name" {
        entries.sort_by(|one, other| one.name().cmp(other.name()));
        if is_descending {
            entries.reverse();
        }
        let page = entries.iter().skip(offset).take(limit);
        page.map(|entry| {
            Info::new(
                entry,
                &entry.facts(),
                board.fullness(entry.name()),
                board.activity(entry.name()),
            )
        })
        .collect()
    } else {
        let all = board.with_tracks(|track| {
            let info = entries.iter().map(|entry| {
                let (fullness, activity) = track(entry.name());
                Info::new(entry, &entry.facts(), fullness, activity)
            });
            info.collect::<Vec<_>>()
        });
        sorted(all, sort, is_descending).into_iter().skip(offset).take(limit).collect()
    };
    Ok(json(StatusCode::OK, &json!({ "filters": page, "matched": matched, "total": total })))
}

fn sorted(mut all: Vec<Info>, sort: &str, is_descending: bool) -> Vec<Info> {
    let value = |info: &Info| match sort {
        "rate" => info.rate,
        "duplicates" => info.duplicate_share.unwrap_or(-1.0),
        "fill" => info.fill.unwrap_or(-1.0),
        "memory" => info.memory as f64,
        "capacity" => info.capacity as f64,
        "fpr" => info.fpr,
        "estimated_fpr" => info.estimated_fpr.unwrap_or(-1.0),
        _ => info.last_used_ms as f64,
    };
    all.sort_by(|one, other| {
        let order = value(one).partial_cmp(&value(other)).unwrap_or(Ordering::Equal);
        let order = if is_descending { order.reverse() } else { order };
        order.then_with(|| one.path.cmp(&other.path))
    });
    all
}

/// `DELETE /v1/filters/{name}`
pub(super) async fn delete(asker: &mut Asker<'_>, name: &[u8]) -> Result<Answer, Problem> {
    existing(asker, name)?;
    match asker.one(&[b"DEL", name]).await? {
        Reply::Integer(1) => Ok(nothing()),
        Reply::Integer(_) => Err(Problem::of_command("ERR not found")),
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}

/// `POST …/observe`: which are fresh; all are marked as seen.
pub(super) async fn observe(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    let Arrivals { items, at } = parse(body)?;
    let outcomes = observe_all(asker, name, &items, at).await?;
    Ok(json(StatusCode::OK, &Fresh { fresh: all_done(&outcomes, "fresh")? }))
}

/// Observes keys: for each whether it was fresh, or why it was not taken.
pub(super) async fn observe_all(
    asker: &mut Asker<'_>,
    name: &[u8],
    items: &[Item],
    at: Option<u64>,
) -> Result<Vec<Reply>, Problem> {
    let at = at.map(|at| at.to_string());
    let items = fitting(items)?;
    asker.all(commands(b"LATELY.OBSERVE", name, items, b"AT", at.as_deref())).await
}

/// A command for each key: those in a row that do the same are done at once, and each has a reply of its own.
fn commands<'a>(
    command: Word<'a>,
    name: Word<'a>,
    items: &'a [Item],
    option: Word<'a>,
    value: Option<&'a str>,
) -> impl Iterator<Item = Vec<Word<'a>>> {
    items.iter().map(move |item| {
        let mut words = vec![command, name, &item.0[..]];
        if let Some(value) = value {
            words.extend([option, value.as_bytes()]);
        }
        words
    })
}

/// What was found for each key; a problem, with what was done even so, if anything was not.
fn all_done(replies: &[Reply], name: &str) -> Result<Vec<bool>, Problem> {
    let first = replies.iter().find_map(|reply| match reply {
        Reply::Error(error) => Some(error.clone()),
        _ => None,
    });
    let values: Vec<Option<bool>> = replies
        .iter()
        .map(|reply| match reply {
            Reply::Boolean(value) => Some(*value),
            Reply::Text(_) => Some(true),
            _ => None,
        })
        .collect();
    match first {
        None => Ok(values.into_iter().flatten().collect()),
        Some(error) => {
            let problem = Problem::of_command(&error);
            Err(match problem.status {
                StatusCode::INSUFFICIENT_STORAGE => problem.and(name, json!(values)),
                _ => problem,
            })
        }
    }
}

/// `POST …/seen`: which were seen; marks nothing.
pub(super) async fn seen(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    let Questions { items, within } = parse(body)?;
    let within = within.map(Length::text);
    let found = commands(b"LATELY.SEEN", name, fitting(&items)?, b"WITHIN", within.as_deref());
    let found = asker.all(found).await?;
    let seen = all_done(&found, "seen").map_err(|problem| of_within(problem, within.as_deref()))?;
    Ok(json(StatusCode::OK, &Seen { seen }))
}

/// A problem with what `within` says, in the words of the body.
fn of_within(problem: Problem, within: Option<&str>) -> Problem {
    match within.filter(|_| problem.is_said("bad window")) {
        Some(within) => Problem::bad(format!(
            "the body: within: {within:?} is no length of time such as \"10m\", and for a window of arrivals no number"
        )),
        None => problem,
    }
}

/// `POST …/range`: was any key from one to another seen? And how likely it is that this is wrong.
pub(super) async fn range(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    let Interval { first, last, within } = parse(body)?;
    let [first, last] = [first, last].map(|end| end.map(End::text).unwrap_or_default());
    let within = within.map(Length::text);
    let mut words = vec![b"LATELY.RANGE", name, first.as_bytes(), last.as_bytes()];
    if let Some(within) = &within {
        words.extend([b"WITHIN", within.as_bytes()]);
    }
    words.push(b"CHANCE");
    match asker.one(&words).await? {
        Reply::Error(error) => Err(of_within(Problem::of_command(&error), within.as_deref())),
        Reply::Many(pair) => match &pair[..] {
            [Reply::Boolean(seen), Reply::Text(chance)] => {
                let chance = std::str::from_utf8(chance).ok().and_then(|text| text.parse().ok());
                let chance: f64 = chance.ok_or_else(|| unexpected(&Reply::Nil))?;
                Ok(json(StatusCode::OK, &json!({ "seen": seen, "chance": chance })))
            }
            _ => Err(unexpected(&Reply::Many(pair))),
        },
        other => Err(unexpected(&other)),
    }
}

/// `POST …/remember`: marks keys as seen, whether they were or not.
pub(super) async fn remember(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    let Arrivals { items, at } = parse(body)?;
    let at = at.map(|at| at.to_string());
    let marks = commands(b"LATELY.REMEMBER", name, fitting(&items)?, b"AT", at.as_deref());
    let replies = asker.all(marks).await?;
    let remembered = all_done(&replies, "remembered")?.len();
    Ok(json(StatusCode::OK, &json!({ "remembered": remembered })))
}

/// `POST …/forget`: takes keys out; which were there.
pub(super) async fn forget(
    asker: &mut Asker<'_>,
    name: &[u8],
    body: &[u8],
) -> Result<Answer, Problem> {
    let Removals { items } = parse(body)?;
    let removals = commands(b"LATELY.FORGET", name, fitting(&items)?, b"", None);
    let replies = asker.all(removals).await?;
    let forgotten = all_done(&replies, "forgotten")?;
    Ok(json(StatusCode::OK, &json!({ "forgotten": forgotten })))
}

/// `GET …/lastseen?item=`: the earliest and the latest moment at which it can have been, in milliseconds.
pub(super) async fn last_seen(
    asker: &mut Asker<'_>,
    name: &[u8],
    query: &Query,
) -> Result<Answer, Problem> {
    let Some(item) = query.bytes("item") else {
        return Err(Problem::bad("the query: give the key, as item=…"));
    };
    existing(asker, name)?;
    match asker.one(&[b"LATELY.LASTSEEN", name, item]).await? {
        Reply::Nil => Ok(json(StatusCode::OK, &json!({ "from_ms": null, "to_ms": null }))),
        Reply::Many(moments) => match moments[..] {
            [Reply::Integer(from), Reply::Integer(to)] => {
                Ok(json(StatusCode::OK, &json!({ "from_ms": from, "to_ms": to })))
            }
            _ => Err(unexpected(&Reply::Many(moments))),
        },
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}
