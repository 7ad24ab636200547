//! `SET … NX EX` and what goes with it: keys without values.

use super::run::{INVALID_EXPIRE, Keys, Kind, Part};
use super::{Call, Words};
use crate::resp::integer;
use crate::store::{Left, Life, Outcome, Refusal, Scratch};
use crate::users::Right;
use std::num::NonZeroU64;

const NO_VALUES: &str =
    "ERR lately keeps no values (SET … NX EX …, EXISTS, DEL, TTL and BF.* work)";
const FORGETS: &str = "ERR lately forgets: give EX or PX, or set keyspace.forever";
pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const SYNTAX: &str = "ERR syntax error";

/// Commands that would need values.
pub(super) fn no_values(call: &mut Call<'_>) {
    let is_get = call.words.is(0, "get") && call.words.len() == 2;
    if is_get && call.store().filter(call.words.at(1), call.now).is_some() {
        return call.refuse(Refusal::WrongType);
    }
    call.reply.error(NO_VALUES);
}

/// What a `SET` asks for.
#[derive(Clone, Copy, Debug, Default)]
struct Asked<'a> {
    is_fresh_only: bool,
    /// `XX`, `GET` or `KEEPTTL`.
    needs_values: bool,
    expiry: Option<(Unit, &'a [u8])>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    SecondsAt,
    MillisecondsAt,
}

/// When a key ends, once its number has been read.
#[derive(Clone, Copy, Debug)]
enum End {
    Life(Life),
    /// It has ended already.
    Past,
}

fn asked(words: Words<'_>) -> Result<Asked<'_>, &'static str> {
    let mut asked = Asked::default();
    let (mut has_xx, mut keeps) = (false, false);
    let mut at = 3;
    while at < words.len() {
        let units = [
            ("ex", Unit::Seconds),
            ("px", Unit::Milliseconds),
            ("exat", Unit::SecondsAt),
            ("pxat", Unit::MillisecondsAt),
        ];
        let unit = units.iter().find(|(word, _)| words.is(at, word));
        if let (Some((_, unit)), Some(value)) = (unit, words.get(at + 1)) {
            // The same one twice is as Redis takes it.
            if asked.expiry.is_some_and(|(other, _)| other != *unit) || keeps {
                return Err(SYNTAX);
            }
            asked.expiry = Some((*unit, value));
            at += 1;
        } else if words.is(at, "nx") && !has_xx {
            asked.is_fresh_only = true;
        } else if words.is(at, "xx") && !asked.is_fresh_only {
            has_xx = true;
        } else if words.is(at, "keepttl") && asked.expiry.is_none() {
            keeps = true;
        } else if words.is(at, "get") {
            asked.needs_values = true;
        } else {
            return Err(SYNTAX);
        }
        at += 1;
    }
    asked.needs_values |= has_xx || keeps;
    Ok(asked)
}

fn end(unit: Unit, value: &[u8], now: u64) -> Result<End, &'static str> {
    let value = integer(value).ok_or(NOT_AN_INTEGER)?;
    let value = u64::try_from(value).ok().and_then(NonZeroU64::new).ok_or(INVALID_EXPIRE)?;
    let is_seconds = matches!(unit, Unit::Seconds | Unit::SecondsAt);
    let factor = NonZeroU64::new(if is_seconds { 1000 } else { 1 }).unwrap_or(NonZeroU64::MIN);
    let ms = value.checked_mul(factor).filter(|ms| i64::try_from(ms.get()).is_ok());
    let ms = ms.ok_or(INVALID_EXPIRE)?;
    Ok(match unit {
        Unit::Seconds | Unit::Milliseconds => End::Life(Life::Ms { ttl: ms, exact: true }),
        Unit::SecondsAt | Unit::MillisecondsAt => {
            match NonZeroU64::new(ms.get().saturating_sub(now)) {
                Some(ttl) => End::Life(Life::Ms { ttl, exact: false }),
                None => End::Past,
            }
        }
    })
}

/// `SET key value NX EX s`, the usual case.
pub(super) fn set_part(words: Words<'_>, now: u64) -> Option<Part> {
    let asked = asked(words).ok()?;
    let (unit, value) = asked.expiry?;
    if !asked.is_fresh_only || asked.needs_values {
        return None;
    }
    match end(unit, value, now).ok()? {
        End::Life(life) => {
            Some(Part { kind: Kind::SetFresh(life), name: None, keys: Keys::One(1) })
        }
        End::Past => None,
    }
}

/// `SET` in all other cases.
pub(super) fn set(call: &mut Call<'_>) {
    match set_as_asked(call) {
        Ok(true) => call.reply.ok(),
        Ok(false) => call.reply.nil(),
        Err(error) => call.reply.error(&error),
    }
}

/// Was it set?
fn set_as_asked(call: &mut Call<'_>) -> Result<bool, String> {
    let asked = asked(call.words)?;
    if asked.needs_values {
        return Err(NO_VALUES.into());
    }
    let end = asked.expiry.map(|(unit, value)| end(unit, value, call.now)).transpose()?;
    let life = match end {
        None if call.store().keys.takes_keys_for_ever() => Life::Forever,
        None => return Err(FORGETS.into()),
        Some(End::Life(life)) => life,
        // Redis drops such a key at once, so it is fresh whenever it is not there.
        Some(End::Past) => {
            let is_there = is_there(call, call.words.at(1));
            return Ok(!(asked.is_fresh_only && is_there));
        }
    };
    mark(call, life, asked.is_fresh_only, "set")
}

/// Marks the key of a command; `false`: it was there, and only a fresh one was to be marked.
fn mark(
    call: &mut Call<'_>,
    life: Life,
    is_fresh_only: bool,
    command: &str,
) -> Result<bool, String> {
    let (store, key, now) = (call.store(), call.words.at(1), call.now);
    let error = |refusal| match refusal {
        Refusal::Expire => format!("ERR invalid expire time in '{command}' command"),
        refusal => refusal.to_string(),
    };
    let is_filter = store.filter(key, now).is_some();
    if !is_fresh_only {
        if is_filter {
            return Err(Refusal::WrongType.to_string());
        }
        return store.keys.set(store.digest(key), life, now).map(|()| true).map_err(error);
    }
    if is_filter {
        return Ok(false);
    }
    let mut outcomes = Vec::with_capacity(1);
    let set = store.keys.set_fresh(
        &[store.digest(key)],
        life,
        now,
        &mut Scratch::default(),
        &mut outcomes,
    );
    set.map_err(error)?;
    match outcomes.first() {
        Some(Outcome::Fresh) => Ok(true),
        Some(Outcome::Seen) => Ok(false),
        Some(Outcome::Full | Outcome::NoMemory) | None => Err(Refusal::NoMemory.to_string()),
    }
}

/// `SETEX key seconds value`, `PSETEX key milliseconds value`.
pub(super) fn set_lasting(call: &mut Call<'_>) {
    let (unit, command) = match call.words.is(0, "setex") {
        true => (Unit::Seconds, "setex"),
        false => (Unit::Milliseconds, "psetex"),
    };
    let set = match end(unit, call.words.at(2), call.now) {
        Ok(End::Life(life)) => mark(call, life, false, command),
        Ok(End::Past) | Err(INVALID_EXPIRE) => {
            Err(format!("ERR invalid expire time in '{command}' command"))
        }
        Err(error) => Err(error.into()),
    };
    match set {
        Ok(_) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
}

/// `SETNX key value`.
pub(super) fn set_for_ever(call: &mut Call<'_>) {
    if !call.store().keys.takes_keys_for_ever() {
        return call.reply.error(FORGETS);
    }
    match mark(call, Life::Forever, true, "setnx") {
        Ok(is_fresh) => call.reply.integer(is_fresh.into()),
        Err(error) => call.reply.error(&error),
    }
}

fn is_key(call: &Call<'_>, key: &[u8]) -> bool {
    call.store().keys.contains(call.store().digest(key), call.now)
}

fn is_there(call: &Call<'_>, key: &[u8]) -> bool {
    call.store().filter(key, call.now).is_some() || is_key(call, key)
}

/// `EXISTS key…`
pub(super) fn exists(call: &mut Call<'_>) {
    let there = call.words.from(1).filter(|key| is_there(call, key)).count();
    call.reply.count(there as u64);
}

/// Is this a filter that the client may not drop, or have dropped later?
pub(super) fn must_stay(call: &Call<'_>, name: &[u8]) -> bool {
    !call.may(Right::Admin) && call.store().filter(name, call.now).is_some()
}

/// `DEL key…`, `UNLINK key…`: filters as a whole, and keys of `SET`.
pub(super) fn delete(call: &mut Call<'_>) {
    let (words, store, now) = (call.words, call.store(), call.now);
    if words.from(1).any(|name| must_stay(call, name)) {
        return call.refuse(call.no_permission());
    }
    let may_drop = call.may(Right::Admin);
    let keys = words.from(1).filter(|name| store.filter(name, now).is_none());
    let keys: Vec<_> = keys.map(|key| store.digest(key)).collect();
    // First what can be refused.
    match store.keys.forget(&keys, now) {
        Ok(forgotten) => {
            let dropped = words.from(1).filter(|name| may_drop && store.names.remove(name, now));
            let dropped = dropped.count();
            call.reply.count(forgotten + dropped as u64);
        }
        Err(refusal) => call.refuse(refusal),
    }
}

/// `TTL key`, `PTTL key`: how long it is there. `EXPIRETIME key`, `PEXPIRETIME key`: until when.
pub(super) fn ttl(call: &mut Call<'_>) {
    let (store, key, now) = (call.store(), call.words.at(1), call.now);
    let left = match store.filter(key, now) {
        Some(entry) => {
            Some(entry.expires().map_or(Left::Forever, |at| Left::Ms(at.saturating_sub(now))))
        }
        None => store.keys.left(store.digest(key), now),
    };
    let ms = match left {
        None => return call.reply.integer(-2),
        Some(Left::Forever) => return call.reply.integer(-1),
        Some(Left::Ms(ms)) => ms,
    };
    let is = |command| call.words.is(0, command);
    call.reply.count(if is("ttl") {
        ms.div_ceil(1000)
    } else if is("pttl") {
        ms
    } else if is("expiretime") {
        now.saturating_add(ms).saturating_add(500) / 1000
    } else {
        now.saturating_add(ms)
    });
}

/// `PERSIST key`.
pub(super) fn persist(call: &mut Call<'_>) {
    let (store, key, now) = (call.store(), call.words.at(1), call.now);
    match store.filter(key, now) {
        Some(_) if !call.may(Right::Admin) => call.refuse(call.no_permission()),
        Some(entry) => {
            let had_end = entry.expires().is_some();
            entry.expire(None);
            call.reply.integer(had_end.into());
        }
        None => match store.keys.left(store.digest(key), now) {
            None | Some(Left::Forever) => call.reply.integer(0),
            Some(Left::Ms(_)) if !store.keys.takes_keys_for_ever() => call.reply.error(FORGETS),
            Some(Left::Ms(_)) => {
                match store.keys.change_life(store.digest(key), Life::Forever, now) {
                    Ok(was_there) => call.reply.integer(was_there.into()),
                    Err(refusal) => call.refuse(refusal),
                }
            }
        },
    }
}
