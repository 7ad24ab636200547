//! `LATELY.*`: what the filters can do that other servers' cannot.

use super::run::{self, Keys, Kind, Part};
use super::{Call, Words, options, text};
use crate::resp::integer;
use crate::store::{
    Entry, Family, Numbers, Options, Outcome, Reach, Refusal, Scratch, Slack, Store, as_digest,
    shown,
};
use lately::{Digest, Renewal};
use std::sync::Arc;

/// How far ahead of the clock a moment may be. One wild moment would empty a window.
const AHEAD: u64 = 60_000;

fn part(kind: Kind, keys: Keys) -> Option<Part> {
    Some(Part { kind, name: Some(1), keys })
}

/// `LATELY.OBSERVE key item`
pub(super) fn observe_part(words: Words<'_>, _: u64) -> Option<Part> {
    (words.len() == 3).then_some(())?;
    part(Kind::Add, Keys::One(2))
}

/// `LATELY.MOBSERVE key ITEMS item…`
pub(super) fn mobserve_part(words: Words<'_>, _: u64) -> Option<Part> {
    words.is(2, "items").then_some(())?;
    part(Kind::Add, Keys::From(3))
}

/// `LATELY.SEEN key item`
pub(super) fn seen_part(words: Words<'_>, _: u64) -> Option<Part> {
    (words.len() == 3).then_some(())?;
    part(Kind::Contains, Keys::One(2))
}

/// `LATELY.MSEEN key ITEMS item…`
pub(super) fn mseen_part(words: Words<'_>, _: u64) -> Option<Part> {
    words.is(2, "items").then_some(())?;
    part(Kind::Contains, Keys::From(3))
}

/// Writes what was found, or why nothing was.
fn answer<T>(call: &mut Call<'_>, found: Result<T, String>, write: impl FnOnce(&mut Call<'_>, T)) {
    match found {
        Ok(found) => write(call, found),
        Err(error) => call.reply.error(&error),
    }
}

/// The value behind an option at this word, where that is all that is left.
fn last_option<'a>(words: Words<'a>, at: usize, option: &str) -> Result<&'a [u8], String> {
    let value = words.get(at + 1).filter(|_| words.is(at, option) && words.len() == at + 2);
    value.ok_or_else(|| "ERR syntax error".into())
}

/// The moment behind `AT`.
fn moment(word: &[u8], now: u64) -> Result<u64, String> {
    let at = options::moment(word).ok_or("ERR value is not an integer or out of range")?;
    if at > now.saturating_add(AHEAD) { Err("ERR AT is in the future".into()) } else { Ok(at) }
}

/// What a filter knows a key by: its digest, or its number where it is asked for intervals.
fn key(store: &Store, numbers: Option<Numbers>, item: &[u8]) -> Result<Digest, String> {
    match numbers {
        None => Ok(store.digest(item)),
        Some(numbers) => match numbers.key(item) {
            Ok(number) => Ok(as_digest(number)),
            Err(what) => Err(format!("ERR {what}")),
        },
    }
}

/// The filter of this name, which may be made, for keys that were read as `numbers` says.
fn filter_for(call: &Call<'_>, numbers: Option<Numbers>) -> Result<Arc<Entry>, Refusal> {
    let entry = call.store().filter_or_new(call.words.at(1), call.now)?;
    let format = |numbers: Option<Numbers>| numbers.map(|numbers| numbers.format);
    // Somebody else may have made another one since the keys were read.
    if format(entry.numbers()) == format(numbers) { Ok(entry) } else { Err(Refusal::Replaced) }
}

/// Marks all of these items, or none if one of them is no key. A filter is made for keys only.
fn added(call: &mut Call<'_>, items: usize, until: usize, at: u64) -> Result<Vec<Outcome>, String> {
    let store = call.store();
    let numbers = store.numbers(call.words.at(1), call.now);
    let items = call.words.from(items).take(until - items);
    let digests = items.map(|item| key(store, numbers, item)).collect::<Result<Vec<_>, _>>()?;
    let entry = filter_for(call, numbers).map_err(|refusal| refusal.to_string())?;
    let mut outcomes = Vec::new();
    entry.lock().observe(&digests, at, &mut Scratch::default(), &mut outcomes);
    Ok(outcomes)
}

/// `LATELY.OBSERVE key item [AT ms]`, where it is no part of a run.
pub(super) fn observe(call: &mut Call<'_>) {
    let at = match call.words.len() {
        3 => Ok(call.now),
        _ => last_option(call.words, 3, "at").and_then(|at| moment(at, call.now)),
    };
    let outcomes = at.and_then(|at| added(call, 2, 3, at));
    answer(call, outcomes, |call, outcomes| {
        outcomes.iter().for_each(|outcome| run::write(&mut call.reply, *outcome));
    });
}

/// `LATELY.MOBSERVE key [AT ms] ITEMS item…`, where it is no part of a run.
pub(super) fn observe_many(call: &mut Call<'_>) {
    let words = call.words;
    let outcomes = match items(words, "at") {
        None => return call.syntax_error(),
        Some((from, None)) => added(call, from, words.len(), call.now),
        Some((from, Some(at))) => {
            moment(at, call.now).and_then(|at| added(call, from, words.len(), at))
        }
    };
    answer(call, outcomes, |call, outcomes| run::write_all(&mut call.reply, &outcomes));
}

/// Where the items begin, behind `ITEMS`, and the value of the option before that, if it is there.
fn items<'a>(words: Words<'a>, option: &str) -> Option<(usize, Option<&'a [u8]>)> {
    let (from, value) = match words.is(2, option) {
        true => (4, Some(words.get(3)?)),
        false => (2, None),
    };
    (words.is(from, "items") && words.len() > from + 1).then_some((from + 1, value))
}

/// The length of time, or the number of arrivals, behind `WITHIN`.
fn within(word: &[u8], reach: Reach) -> Result<u64, String> {
    match reach {
        Reach::Last(_) => arrivals(word),
        Reach::Within(_) | Reach::Forever => span(word),
    }
}

/// The length of time that a word says.
fn span(word: &[u8]) -> Result<u64, String> {
    options::duration(word).ok_or_else(|| {
        format!(
            "ERR bad window: `{}` is no length of time above 0, such as 10m, 200ms, or 30 for seconds",
            shown(word)
        )
    })
}

/// The number of arrivals that a word says.
fn arrivals(word: &[u8]) -> Result<u64, String> {
    let number = integer(word).and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
    number.ok_or_else(|| {
        format!("ERR bad window: `{}` is no number of arrivals above 0, such as 1000", shown(word))
    })
}

/// `LATELY.SEEN key item [WITHIN dur]`, where it is no part of a run.
pub(super) fn seen(call: &mut Call<'_>) {
    let found = match call.words.len() {
        3 => seen_within(call, 2, 3, None),
        _ => last_option(call.words, 3, "within")
            .and_then(|length| seen_within(call, 2, 3, Some(length))),
    };
    answer(call, found, |call, found| found.iter().for_each(|found| call.reply.boolean(*found)));
}

/// `LATELY.MSEEN key [WITHIN dur] ITEMS item…`, where it is no part of a run.
pub(super) fn seen_many(call: &mut Call<'_>) {
    let words = call.words;
    let Some((from, length)) = items(words, "within") else { return call.syntax_error() };
    let found = seen_within(call, from, words.len(), length);
    answer(call, found, |call, found| {
        call.reply.array(found.len());
        found.iter().for_each(|found| call.reply.boolean(*found));
    });
}

/// How far back a filter would remember that is not there.
fn reach_to_be(store: &Store, name: &[u8]) -> Reach {
    store.template(name).map_or(Reach::Forever, |template| template.reach)
}

fn seen_within(
    call: &mut Call<'_>,
    items: usize,
    until: usize,
    length: Option<&[u8]>,
) -> Result<Vec<bool>, String> {
    let (store, name, now) = (call.store(), call.words.at(1), call.now);
    let items = call.words.from(items).take(until - items);
    let mut found = vec![false; items.len()];
    let entry = store.filter(name, now);
    let numbers = match &entry {
        Some(entry) => entry.numbers(),
        None => store.numbers(name, now),
    };
    let digests = items.map(|item| key(store, numbers, item)).collect::<Result<Vec<_>, _>>()?;
    let Some(entry) = entry else {
        length.map(|length| within(length, reach_to_be(store, name))).transpose()?;
        return Ok(found);
    };
    let mut inner = entry.lock();
    match length {
        None => inner.contains(&digests, now, &mut found),
        Some(length) => {
            let length = within(length, inner.options.reach)?;
            for (digest, found) in digests.into_iter().zip(&mut found) {
                *found = inner.contains_within(digest, length, now);
            }
        }
    }
    Ok(found)
}

/// `LATELY.RANGE key first last [WITHIN dur] [CHANCE]`: was any key from the first to the last seen, both included? With `CHANCE`
/// also the probability that this is wrong.
pub(super) fn range(call: &mut Call<'_>) {
    let words = call.words;
    let mut at = 4;
    let length = words.get(at + 1).filter(|_| words.is(at, "within"));
    at += if length.is_some() { 2 } else { 0 };
    let tells_chance = words.is(at, "chance");
    if words.len() != at + usize::from(tells_chance) {
        return call.syntax_error();
    }
    let found = any_within(call, length);
    answer(call, found, |call, (found, chance)| {
        if tells_chance {
            call.reply.array(2);
        }
        call.reply.boolean(found);
        if tells_chance {
            let text = if chance > 0.0 { format!("{chance:.3e}") } else { "0".into() };
            call.reply.bulk(text.as_bytes());
        }
    });
}

/// Was any key of the interval seen, and how likely is it that this is wrong? In a filter that is not there, none was; but what is
/// wrong for the one that its template would make is wrong before, too.
fn any_within(call: &mut Call<'_>, length: Option<&[u8]>) -> Result<(bool, f64), String> {
    let (store, words, now) = (call.store(), call.words, call.now);
    let keys_of = |numbers: Option<Numbers>| {
        let numbers = numbers.ok_or_else(|| Refusal::NoIntervals.to_string())?;
        numbers.range(words.at(2), words.at(3)).map_err(|what| format!("ERR {what}"))
    };
    let Some(entry) = store.filter(words.at(1), now) else {
        if let Some(template) = store.template(words.at(1)) {
            keys_of(template.family.numbers())?;
        }
        length.map(|length| within(length, reach_to_be(store, words.at(1)))).transpose()?;
        return Ok((false, 0.0));
    };
    let keys = keys_of(entry.numbers())?;
    let mut inner = entry.lock();
    let length = length.map(|length| within(length, inner.options.reach)).transpose()?;
    inner.any(keys, length, now).map_err(|refusal| refusal.to_string())
}

/// `LATELY.LASTSEEN key item`: nothing, or the earliest and the latest it can have been.
pub(super) fn last_seen(call: &mut Call<'_>) {
    let (store, words, now) = (call.store(), call.words, call.now);
    let seen = match store.filter(words.at(1), now) {
        Some(entry) => entry.lock().last_seen(store.digest(words.at(2)), now),
        None => Ok(None),
    };
    match seen {
        Ok(Some(seen)) => {
            call.reply.array(2);
            call.reply.count(seen.from.0);
            call.reply.count(seen.to.0);
        }
        Ok(None) => call.reply.nil(),
        Err(refusal) => call.refuse(refusal),
    }
}

/// `LATELY.REMEMBER key item [AT ms]`
pub(super) fn remember(call: &mut Call<'_>) {
    let remembered = remembered(call);
    answer(call, remembered, |call, ()| call.reply.ok());
}

fn remembered(call: &mut Call<'_>) -> Result<(), String> {
    let (store, words, now) = (call.store(), call.words, call.now);
    let at = if words.len() == 3 { now } else { moment(last_option(words, 3, "at")?, now)? };
    let said = |refusal: Refusal| refusal.to_string();
    let numbers = store.numbers(words.at(1), now);
    let key = key(store, numbers, words.at(2))?;
    let entry = filter_for(call, numbers).map_err(said)?;
    entry.lock().remember(key, at, now).map_err(said)
}

/// `LATELY.FORGET key item`: takes out a key before it expires. Was it there?
pub(super) fn forget(call: &mut Call<'_>) {
    let (store, words, now) = (call.store(), call.words, call.now);
    let forgotten = match store.existing(words.at(1), now) {
        Ok(entry) => entry.lock().forget(store.digest(words.at(2)), now),
        Err(Refusal::NotFound) => Ok(false),
        Err(refusal) => Err(refusal),
    };
    match forgotten {
        Ok(was_there) => call.reply.boolean(was_there),
        Err(refusal) => call.refuse(refusal),
    }
}

/// `LATELY.RESERVE key [WINDOW dur | LAST n | FOREVER] [CAPACITY n] [FPR p] [RENEW …] [SLACK dur] [MEMORY b] [ONFULL …]
/// [STRUCTURE s] [RANGE NUMBER|IP|EPC [INTERVAL n]]`
pub(super) fn reserve(call: &mut Call<'_>) {
    let reserved = reserved(call);
    answer(call, reserved, |call, ()| call.reply.ok());
}

fn reserved(call: &mut Call<'_>) -> Result<(), String> {
    let options = options_asked(call.store(), call.words)?;
    let made = call.store().create(call.words.at(1), options, call.now);
    made.map(drop).map_err(|refusal| refusal.to_string())
}

fn defaults_of_points() -> Options {
    Options { capacity: 100_000, fpr: 1e-6, ..Options::default() }
}

/// As `lately index` has them: each further digit of either would cost three bits for each key.
pub(crate) fn defaults_of_ranges() -> Options {
    Options { fpr: 1e-3, slack: Slack::Share(0.125), ..defaults_of_points() }
}

/// As [`options::window`] reads them, but what is wrong with a length is told.
fn window(words: Words<'_>, at: usize, options: &mut Options) -> Result<Option<usize>, String> {
    let value = words.get(at + 1).unwrap_or_default();
    if words.is(at, "window") {
        span(value)?;
    } else if words.is(at, "last") {
        arrivals(value)?;
    }
    options::window(words, at, options)
}

/// What the words of a `LATELY.RESERVE` ask for.
///
/// # Errors
/// The reply.
pub(crate) fn options_asked(store: &Store, words: Words<'_>) -> Result<Options, String> {
    // No value of another option is this word.
    let is_range = words.from(2).any(|word| word.eq_ignore_ascii_case(b"range"));
    let defaults = if is_range { defaults_of_ranges() } else { defaults_of_points() };
    // What is said of single keys does not fit intervals: a structure, the rate and the slack of a template without them.
    let fits = |options: &Options| !is_range || options.family.numbers().is_some();
    let mut options = store.template(words.at(1)).filter(fits).unwrap_or(defaults);
    let mut at = 2;
    while at < words.len() {
        let value = || words.get(at + 1).ok_or("ERR syntax error");
        if words.is(at, "forever") {
            options.reach = Reach::Forever;
            at += 1;
        } else if words.is(at, "capacity") {
            let keys = integer(value()?).ok_or("ERR bad capacity")?;
            let keys = u64::try_from(keys).ok().filter(|&keys| keys > 0);
            options.capacity = keys.ok_or_else(|| Refusal::Capacity.to_string())?;
            at += 2;
        } else if words.is(at, "fpr") {
            let fpr = options::float(value()?).filter(|&fpr| fpr > 0.0 && fpr < 1.0);
            options.fpr = fpr.ok_or("ERR bad error rate")?;
            at += 2;
        } else if words.is(at, "range") {
            let numbers = Numbers::of(&text(value()?)).map_err(|what| format!("ERR {what}"))?;
            options.family = Family::Intervals(numbers);
            at += 2;
        } else if words.is(at, "interval") {
            let numbers = options.family.numbers().ok_or("ERR INTERVAL must come after RANGE")?;
            let numbers = numbers.with_interval(&text(value()?));
            options.family = Family::Intervals(numbers.map_err(|what| format!("ERR {what}"))?);
            at += 2;
        } else {
            at = window(words, at, &mut options)?.ok_or("ERR syntax error")?;
        }
    }
    options::check(&options)?;
    Ok(options)
}

/// `LATELY.INFO [key]`
pub(super) fn info(call: &mut Call<'_>) {
    match call.words.get(1) {
        Some(_) if call.words.len() > 2 => call.syntax_error(),
        Some(name) => info_of_filter(call, name),
        None => info_of_server(call),
    }
}

enum Value {
    Count(u64),
    Text(String),
}

fn write(call: &mut Call<'_>, pairs: &[(&str, Value)]) {
    call.reply.map(pairs.len());
    for (name, value) in pairs {
        call.reply.bulk(name.as_bytes());
        match value {
            Value::Count(count) => call.reply.count(*count),
            Value::Text(text) => call.reply.bulk(text.as_bytes()),
        }
    }
}

fn info_of_filter(call: &mut Call<'_>, name: &[u8]) {
    use Value::{Count, Text};
    let entry = match call.store().existing(name, call.now) {
        Ok(entry) => entry,
        Err(refusal) => return call.refuse(refusal),
    };
    let inner = entry.lock();
    let (facts, fullness) = (inner.facts(), inner.fullness());
    drop(inner);
    let (unit, length) = match facts.reach {
        Reach::Forever => ("forever", 0),
        Reach::Within(ms) => ("ms", ms),
        Reach::Last(n) => ("arrivals", n),
    };
    let renew = match facts.renewal {
        Renewal::Always => "always",
        Renewal::OnFresh => "fresh",
    };
    let mut pairs = vec![
        ("structure", Text(facts.structure.into())),
        ("window", Count(length)),
        ("window_unit", Text(unit.into())),
        ("slack", Count(facts.slack)),
        ("renew", Text(renew.into())),
        ("fresh", Count(facts.counts.fresh)),
        ("duplicate", Count(facts.counts.duplicates)),
        ("asked", Count(facts.counts.asked)),
        ("removed", Count(facts.counts.removed)),
        ("capacity", Count(facts.capacity)),
        ("fill", Text(format!("{:.4}", fullness.fill))),
        ("fpr", Text(facts.fpr.to_string())),
        ("estimated_fpr", Text(format!("{:.3e}", fullness.estimated_fpr))),
        ("memory", Count(facts.memory)),
        ("tables", Count(facts.tables as u64)),
        ("grown", Count(facts.overload.grown)),
        ("forgotten", Count(facts.overload.forgotten)),
        ("refused", Count(facts.overload.refused)),
        ("last_used", Count(facts.counts.last)),
    ];
    if let Some(Numbers { format, interval }) = facts.numbers {
        pairs.push(("range", Text(format.to_string())));
        // More than an integer of the protocol can be.
        pairs.push(("interval", Text(interval.to_string())));
    }
    write(call, &pairs);
}

fn info_of_server(call: &mut Call<'_>) {
    use Value::{Count, Text};
    let store = call.store();
    let ttls = store.keys.lock().len() as u64;
    let pairs = [
        ("lately_version", Text(env!("CARGO_PKG_VERSION").into())),
        ("filters", Count(call.filters())),
        ("ttls", Count(ttls)),
        ("memory_used", Count(store.budget.used())),
        ("memory_limit", Count(store.budget.limit())),
        ("clock", Count(call.now)),
        ("clock_leaps", Count(call.server.clock.leaps())),
    ];
    write(call, &pairs);
}
