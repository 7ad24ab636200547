//! `CF.*`: RedisBloom's cuckoo filters, whose keys can be deleted. A key is kept once, however often it was added.

use super::run::{self, Keys, Kind, Part};
use super::{Call, Words, options};
use crate::resp::{Protocol, integer};
use crate::store::{Entry, Family, Options, Outcome, Refusal, Scratch};
use crate::users::Right;
use lately::{Filter, WhenFull};
use std::sync::Arc;

const BAD_CAPACITY: &str = "Bad capacity";
const SMALL_CAPACITY: &str = "Capacity must be at least (BucketSize * 2)";
/// Keys in a bucket, unless `BUCKETSIZE` says otherwise.
const BUCKET: i64 = 2;

/// What a filter is made with that no template matches: RedisBloom's defaults.
fn options_for(call: &Call<'_>, name: &[u8]) -> Options {
    let defaults = Options { capacity: 1024, expansion: Some(1), ..Options::default() };
    let options = call.store().template(name).unwrap_or(defaults);
    Options { family: Family::Cuckoo, ..options }
}

/// Makes the filter that a command names, unless a template says that one of that name is asked for intervals.
fn create(call: &Call<'_>, options: Options) -> Result<Arc<Entry>, Refusal> {
    let (store, name) = (call.store(), call.words.at(1));
    match store.template(name).map(|template| template.family) {
        Some(family) if family.numbers().is_some() => Err(family.wrong_type()),
        _ => store.create(name, options, call.now),
    }
}

fn asks(keys: Keys) -> Option<Part> {
    Some(Part { kind: Kind::ContainsCuckoo, name: Some(1), keys })
}

/// `CF.EXISTS key item`
pub(super) fn exists_part(_: Words<'_>, _: u64) -> Option<Part> {
    asks(Keys::One(2))
}

/// `CF.MEXISTS key item…`
pub(super) fn mexists_part(_: Words<'_>, _: u64) -> Option<Part> {
    asks(Keys::From(2))
}

/// The filter that a command names, if there is one.
fn existing(call: &Call<'_>) -> Result<Option<Arc<Entry>>, Refusal> {
    call.store().of_family(call.words.at(1), Family::Cuckoo, call.now)
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n] [FPR p] [WINDOW …]`
pub(super) fn reserve(call: &mut Call<'_>) {
    match reserved(call) {
        Ok(()) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
}

fn reserved(call: &mut Call<'_>) -> Result<(), String> {
    let (words, name) = (call.words, call.words.at(1));
    let mut options = options_for(call, name);
    let capacity = integer(words.at(2)).ok_or(BAD_CAPACITY)?;
    let (mut at, mut bucket) = (3, BUCKET);
    while at < words.len() {
        let number = |option: &str, least: i64, most: i64| {
            let value = words.get(at + 1).and_then(integer);
            let value = value.ok_or_else(|| format!("Couldn't parse {option}"))?;
            (least..=most).contains(&value).then_some(value).ok_or_else(|| {
                format!("{option}: value must be an integer between {least} and {most}, inclusive.")
            })
        };
        if words.is(at, "bucketsize") {
            bucket = number("BUCKETSIZE", 1, 255)?;
        } else if words.is(at, "maxiterations") {
            number("MAXITERATIONS", 1, 65_535)?;
        } else if words.is(at, "expansion") {
            let expansion = number("EXPANSION", 0, 32_768)?;
            options.expansion = u32::try_from(expansion).ok().filter(|&times| times > 0);
            if options.is_fixed() {
                options.when_full = WhenFull::Refuse;
            }
        } else if words.is(at, "fpr") {
            let fpr = words.get(at + 1).and_then(options::float);
            let fpr = fpr.filter(|&fpr| fpr > 0.0 && fpr < 1.0);
            options.fpr = fpr.ok_or("ERR bad error rate")?;
        } else {
            at = options::window(words, at, &mut options)?.ok_or("ERR syntax error")?;
            continue;
        }
        at += 2;
    }
    if capacity < bucket * 2 {
        return Err(SMALL_CAPACITY.into());
    }
    options.capacity = capacity.unsigned_abs();
    options::check(&options)?;
    let made = existing(call).and_then(|_| create(call, options));
    made.map(drop).map_err(|refusal| refusal.to_string())
}

/// `CF.ADD key item`: 1. `CF.ADDNX key item`: was it fresh?
pub(super) fn add(call: &mut Call<'_>) {
    let options = Some(options_for(call, call.words.at(1)));
    let only_fresh = call.words.is(0, "cf.addnx");
    match observed(call, 2, options) {
        Ok(outcomes) => {
            outcomes
                .iter()
                .for_each(|outcome| run::write(&mut call.reply, as_told(*outcome, only_fresh)));
        }
        Err(refusal) => call.refuse(refusal),
    }
}

/// What clients are told: `CF.ADD` adds a key again and again.
fn as_told(outcome: Outcome, only_fresh: bool) -> Outcome {
    if outcome == Outcome::Seen && !only_fresh { Outcome::Fresh } else { outcome }
}

/// Adds the words from this one on to the filter, which may be made.
fn observed(
    call: &Call<'_>,
    items: usize,
    options: Option<Options>,
) -> Result<Vec<Outcome>, Refusal> {
    let (store, words, now) = (call.store(), call.words, call.now);
    let entry = match (existing(call)?, options) {
        (Some(entry), _) => entry,
        (None, None) => return Err(Refusal::NotFound),
        (None, Some(options)) => match create(call, options) {
            // Somebody else was faster.
            Err(Refusal::Exists) => existing(call)?.ok_or(Refusal::NotFound)?,
            made => made?,
        },
    };
    let digests: Vec<_> = words.from(items).map(|item| store.digest(item)).collect();
    let mut outcomes = Vec::with_capacity(digests.len());
    entry.lock().observe(&digests, now, &mut Scratch::default(), &mut outcomes);
    Ok(outcomes)
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item…`, `CF.INSERTNX …`
pub(super) fn insert(call: &mut Call<'_>) {
    let only_fresh = call.words.is(0, "cf.insertnx");
    let outcomes = inserted(call, if only_fresh { "cf.insertnx" } else { "cf.insert" });
    let mut outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => return call.reply.error(&error),
    };
    outcomes.iter_mut().for_each(|outcome| *outcome = as_told(*outcome, only_fresh));
    if only_fresh {
        // Numbers in both versions of the protocol, as some may be -1 in RedisBloom.
        call.reply.protocol = Protocol::Resp2;
    }
    run::write_all(&mut call.reply, &outcomes);
}

fn inserted(call: &Call<'_>, command: &str) -> Result<Vec<Outcome>, String> {
    let words = call.words;
    let mut options = options_for(call, words.at(1));
    let (mut at, mut creates) = (2, true);
    while !words.is(at, "items") && at < words.len() {
        if words.is(at, "nocreate") {
            creates = false;
            at += 1;
        } else if words.is(at, "capacity") {
            let keys = words.get(at + 1).and_then(integer).ok_or(BAD_CAPACITY)?;
            let keys = u64::try_from(keys).ok().filter(|&keys| keys > 0);
            options.capacity = keys.ok_or(SMALL_CAPACITY)?;
            at += 2;
        } else {
            return Err("Unknown argument received".into());
        }
    }
    if at + 1 >= words.len() {
        return Err(format!("ERR wrong number of arguments for '{command}' command"));
    }
    // With options of its own it makes a filter as `CF.RESERVE` does.
    let is_own = creates && options != options_for(call, words.at(1));
    if is_own && !call.may(Right::Admin) && !matches!(existing(call), Ok(Some(_))) {
        return Err(call.no_permission());
    }
    observed(call, at + 1, creates.then_some(options)).map_err(|refusal| refusal.to_string())
}

/// `CF.DEL key item`: was it there?
pub(super) fn delete(call: &mut Call<'_>) {
    let digest = call.store().digest(call.words.at(2));
    let forgotten = match existing(call) {
        Ok(Some(entry)) => entry.lock().forget(digest, call.now),
        // As RedisBloom says it.
        Ok(None) | Err(Refusal::WrongType) => return call.reply.error("Not found"),
        Err(refusal) => Err(refusal),
    };
    match forgotten {
        Ok(was_there) => call.reply.boolean(was_there),
        Err(refusal) => call.refuse(refusal),
    }
}

/// `CF.COUNT key item`: 1 or 0.
pub(super) fn count(call: &mut Call<'_>) {
    let digest = call.store().digest(call.words.at(2));
    let mut found = [false];
    match existing(call) {
        Ok(Some(entry)) => entry.lock().contains(&[digest], call.now, &mut found),
        Err(Refusal::Intervals) => return call.refuse(Refusal::Intervals),
        Ok(None) | Err(_) => {}
    }
    call.reply.integer(found[0].into());
}

/// `CF.INFO key`. There are no buckets to tell of, so those are what RedisBloom would have for as many keys.
pub(super) fn info(call: &mut Call<'_>) {
    let entry = match existing(call) {
        Ok(Some(entry)) => entry,
        Ok(None) => return call.refuse(Refusal::NotFound),
        Err(refusal) => return call.refuse(refusal),
    };
    let inner = entry.lock();
    // Filters of other kinds are of other families.
    let Some(filter) = inner.filter.points() else { return call.refuse(Refusal::WrongType) };
    let fields = [
        ("Size", filter.memory() as u64),
        ("Number of buckets", inner.capacity().div_ceil(BUCKET.unsigned_abs())),
        ("Number of filters", filter.tables() as u64),
        ("Number of items inserted", inner.counts.fresh.saturating_sub(inner.counts.removed)),
        ("Number of items deleted", inner.counts.removed),
        ("Bucket size", BUCKET.unsigned_abs()),
        ("Expansion rate", inner.options.expansion.unwrap_or(0).into()),
        ("Max iterations", 20),
    ];
    call.reply.map(fields.len());
    for (name, value) in fields {
        call.reply.simple(name);
        call.reply.count(value);
    }
}
