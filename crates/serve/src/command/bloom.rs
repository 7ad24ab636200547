//! `BF.*`: the commands of RedisBloom, word for word, and windows.

use super::run::{self, Keys, Kind, Part};
use super::{Call, Words, options};
use crate::resp::integer;
use crate::store::{Entry, Family, Inner, Options, Outcome, Refusal, Scratch};
use crate::users::Right;
use lately::{Filter, WhenFull};
use std::sync::Arc;

fn part(kind: Kind, keys: Keys) -> Option<Part> {
    Some(Part { kind, name: Some(1), keys })
}

pub(super) fn add_part(_: Words<'_>, _: u64) -> Option<Part> {
    part(Kind::AddBloom, Keys::One(2))
}

pub(super) fn madd_part(_: Words<'_>, _: u64) -> Option<Part> {
    part(Kind::AddBloom, Keys::From(2))
}

pub(super) fn exists_part(_: Words<'_>, _: u64) -> Option<Part> {
    part(Kind::ContainsBloom, Keys::One(2))
}

pub(super) fn mexists_part(_: Words<'_>, _: u64) -> Option<Part> {
    part(Kind::ContainsBloom, Keys::From(2))
}

/// `BF.INSERT key ITEMS item…`, without options, is `BF.MADD`.
pub(super) fn insert_part(words: Words<'_>, _: u64) -> Option<Part> {
    words.is(2, "items").then_some(())?;
    part(Kind::AddBloom, Keys::From(3))
}

/// Is always done in a run.
pub(super) fn add(call: &mut Call<'_>) {
    call.syntax_error();
}

/// Is always done in a run.
pub(super) fn exists(call: &mut Call<'_>) {
    call.syntax_error();
}

/// What `BF.RESERVE` and `BF.INSERT` begin with: what a template says, or the defaults.
fn options_for(call: &Call<'_>, name: &[u8]) -> Options {
    call.store().template(name).unwrap_or_default()
}

/// The filter that a command names, if there is one.
fn existing(call: &Call<'_>) -> Result<Option<Arc<Entry>>, Refusal> {
    call.store().of_family(call.words.at(1), Family::Bloom, call.now)
}

/// `BF.RESERVE key error capacity [EXPANSION n] [NONSCALING] [WINDOW …]`
pub(super) fn reserve(call: &mut Call<'_>) {
    match reserved(call) {
        Ok(()) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
}

fn reserved(call: &mut Call<'_>) -> Result<(), String> {
    let (words, name) = (call.words, call.words.at(1));
    let mut options = options_for(call, name);
    options.fpr = options::float(words.at(2)).ok_or("ERR bad error rate")?;
    if !(options.fpr > 0.0 && options.fpr < 1.0) {
        return Err("ERR (0 < error rate range < 1) ".into());
    }
    let capacity = integer(words.at(3)).ok_or("ERR bad capacity")?;
    options.capacity = u64::try_from(capacity)
        .ok()
        .filter(|&keys| keys > 0)
        .ok_or_else(|| Refusal::Capacity.to_string())?;
    let (mut at, mut expansion, mut is_fixed) = (4, None, false);
    while at < words.len() {
        if words.is(at, "nonscaling") {
            is_fixed = true;
            at += 1;
        } else if words.is(at, "expansion") {
            let value = words.get(at + 1).ok_or("ERR no expansion")?;
            let value = integer(value).ok_or("ERR bad expansion")?;
            if value < 1 {
                return Err("ERR expansion should be greater or equal to 1".into());
            }
            expansion = Some(u32::try_from(value).map_err(|_| "ERR bad expansion")?);
            at += 2;
        } else {
            at = options::window(words, at, &mut options)?.ok_or("ERR syntax error")?;
        }
    }
    if is_fixed && expansion.is_some() {
        return Err("Nonscaling filters cannot expand".into());
    }
    scale(&mut options, expansion, is_fixed);
    options::check(&options)?;
    if options.family.numbers().is_some() {
        return Err(Refusal::Intervals.to_string());
    }
    let made = existing(call).and_then(|_| call.store().create(name, options, call.now));
    made.map(drop).map_err(|refusal| refusal.to_string())
}

fn scale(options: &mut Options, expansion: Option<u32>, is_fixed: bool) {
    if is_fixed {
        options.expansion = None;
        options.when_full = WhenFull::Refuse;
    } else if expansion.is_some() {
        options.expansion = expansion;
    }
}

/// `BF.INSERT key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] [WINDOW …] ITEMS item…`
pub(super) fn insert(call: &mut Call<'_>) {
    match inserted(call) {
        Ok(outcomes) => run::write_all(&mut call.reply, &outcomes),
        Err(error) => call.reply.error(&error),
    }
}

fn inserted(call: &mut Call<'_>) -> Result<Vec<Outcome>, String> {
    const BAD: &str = "Bad argument received";
    let (words, name, now) = (call.words, call.words.at(1), call.now);
    let mut options = options_for(call, name);
    let (mut at, mut expansion, mut is_fixed, mut creates) = (2, None, false, true);
    let items = loop {
        let value = || words.get(at + 1).ok_or(BAD);
        if at >= words.len() {
            return Err("ERR wrong number of arguments for 'bf.insert' command".into());
        } else if words.is(at, "items") {
            break at + 1;
        } else if words.is(at, "nocreate") {
            creates = false;
            at += 1;
        } else if words.is(at, "nonscaling") {
            is_fixed = true;
            at += 1;
        } else if words.is(at, "capacity") {
            let keys = integer(value()?).ok_or("Bad capacity")?;
            options.capacity = u64::try_from(keys).ok().filter(|&keys| keys > 0).ok_or(BAD)?;
            at += 2;
        } else if words.is(at, "error") {
            let fpr = options::float(value()?).ok_or("Bad error rate")?;
            options.fpr = Some(fpr).filter(|&fpr| fpr > 0.0 && fpr < 1.0).ok_or(BAD)?;
            at += 2;
        } else if words.is(at, "expansion") {
            let value = integer(value()?).ok_or("Bad expansion")?;
            let value = u32::try_from(value).ok().filter(|&value| value > 0);
            expansion = Some(value.ok_or(BAD)?);
            at += 2;
        } else {
            at = options::window(words, at, &mut options)?.ok_or("Unknown argument received")?;
        }
    };
    if items >= words.len() {
        return Err("ERR wrong number of arguments for 'bf.insert' command".into());
    }
    scale(&mut options, expansion, is_fixed);
    options::check(&options)?;
    let store = call.store();
    let entry = match existing(call) {
        // With options of its own it makes a filter as `BF.RESERVE` does.
        Ok(None) if creates && options != options_for(call, name) && !call.may(Right::Admin) => {
            return Err(call.no_permission());
        }
        Ok(None) if creates && options.family != Family::Bloom => Err(options.family.wrong_type()),
        Ok(None) if creates => store.create(name, options, now),
        Ok(found) => found.ok_or(Refusal::NotFound),
        Err(refusal) => Err(refusal),
    };
    let entry = entry.map_err(|refusal| refusal.to_string())?;
    let digests: Vec<_> = words.from(items).map(|item| store.digest(item)).collect();
    let mut outcomes = Vec::new();
    entry.lock().observe(&digests, now, &mut Scratch::default(), &mut outcomes);
    Ok(outcomes)
}

/// `BF.INFO key [field]`. No more fields than RedisBloom has: clients refuse what they do not know. `LATELY.INFO` has
/// more.
pub(super) fn info(call: &mut Call<'_>) {
    const FIELDS: [(&str, &str); 5] = [
        ("capacity", "Capacity"),
        ("size", "Size"),
        ("filters", "Number of filters"),
        ("items", "Number of items inserted"),
        ("expansion", "Expansion rate"),
    ];
    let words = call.words;
    if words.len() > 3 {
        return call.reply.error("ERR wrong number of arguments for 'bf.info' command");
    }
    let entry = match existing(call) {
        Ok(Some(entry)) => entry,
        Ok(None) => return call.refuse(Refusal::NotFound),
        Err(refusal) => return call.refuse(refusal),
    };
    let inner = entry.lock();
    if words.len() == 2 {
        call.reply.map(FIELDS.len());
        for (at, (_, name)) in FIELDS.iter().enumerate() {
            call.reply.simple(name);
            field(call, &inner, at);
        }
        return;
    }
    match FIELDS.iter().position(|(field, _)| words.is(2, field)) {
        Some(at) => {
            call.reply.map_of_one(FIELDS[at].1);
            field(call, &inner, at);
        }
        None => call.reply.error("Invalid information value"),
    }
}

fn field(call: &mut Call<'_>, inner: &Inner, field: usize) {
    // Filters of other kinds are of other families.
    let Some(filter) = inner.filter.points() else { return call.reply.nil() };
    match field {
        0 => call.reply.count(inner.capacity()),
        1 => call.reply.count(filter.memory() as u64),
        2 => call.reply.count(filter.tables() as u64),
        3 => call.reply.count(inner.counts.fresh),
        _ => match inner.options.expansion {
            Some(expansion) => call.reply.count(expansion.into()),
            None => call.reply.nil(),
        },
    }
}

/// `BF.CARD key`: the keys that were fresh, so far.
pub(super) fn card(call: &mut Call<'_>) {
    match existing(call) {
        Ok(Some(entry)) => call.reply.count(entry.lock().counts.fresh),
        Ok(None) => call.reply.integer(0),
        Err(refusal) => call.refuse(refusal),
    }
}
