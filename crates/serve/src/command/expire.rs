//! `EXPIRE` and its relatives: when a whole filter is dropped, or a key of `SET` ends.

use super::keyspace::{NOT_AN_INTEGER, must_stay};
use super::{Call, Words, text};
use crate::resp::integer;
use crate::store::{Left, Life, Refusal};
use std::num::NonZeroU64;

/// What must be so of the end that there is.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    is_without: bool,
    is_with: bool,
    is_earlier: bool,
    is_later: bool,
}

impl Condition {
    fn read(words: Words<'_>) -> Result<Self, String> {
        let mut asked = Self::default();
        for option in words.from(3) {
            let asked = match &option.to_ascii_lowercase()[..] {
                b"nx" => &mut asked.is_without,
                b"xx" => &mut asked.is_with,
                b"gt" => &mut asked.is_earlier,
                b"lt" => &mut asked.is_later,
                _ => return Err(format!("ERR Unsupported option {}", text(option))),
            };
            *asked = true;
        }
        let Self { is_without, is_with, is_earlier, is_later } = asked;
        if is_without && (is_with || is_earlier || is_later) {
            let error = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(error.into());
        }
        if is_earlier && is_later {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(asked)
    }

    /// May what ends at this moment, or never, end at another one?
    fn is_met(self, end: Option<u64>, new: u64) -> bool {
        let Some(end) = end else { return !self.is_with && !self.is_earlier };
        !self.is_without && (!self.is_earlier || new > end) && (!self.is_later || new < end)
    }
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`, `PEXPIRE key milliseconds …`, `EXPIREAT key second …`, `PEXPIREAT key millisecond …`
pub(super) fn expire(call: &mut Call<'_>) {
    match expired(call) {
        Ok(is_done) => call.reply.integer(is_done.into()),
        Err(error) => call.reply.error(&error),
    }
}

fn expired(call: &Call<'_>) -> Result<bool, String> {
    let (store, words, now) = (call.store(), call.words, call.now);
    let condition = Condition::read(words)?;
    let invalid = || {
        let command = text(words.at(0)).to_ascii_lowercase();
        format!("ERR invalid expire time in '{command}' command")
    };
    let is_at = words.is(0, "expireat") || words.is(0, "pexpireat");
    let factor = if words.is(0, "expire") || words.is(0, "expireat") { 1000 } else { 1 };
    let value = integer(words.at(2)).ok_or(NOT_AN_INTEGER)?;
    let ms = value.checked_mul(factor).ok_or_else(invalid)?;
    let end = if is_at { Some(ms) } else { ms.checked_add_unsigned(now) };
    // Before 1970 is as good as now: it has ended.
    let end = u64::try_from(end.ok_or_else(invalid)?).unwrap_or(0);
    let key = words.at(1);
    if must_stay(call, key) {
        return Err(call.no_permission());
    }
    if let Some(entry) = store.filter(key, now) {
        let is_met = condition.is_met(entry.expires(), end);
        match is_met {
            true if end > now => entry.expire(Some(end)),
            true => drop(store.names.remove(key, now)),
            false => {}
        }
        return Ok(is_met);
    }
    let digest = store.digest(key);
    let left = match store.keys.left(digest, now) {
        None => return Ok(false),
        Some(Left::Forever) => None,
        Some(Left::Ms(left)) => Some(now.saturating_add(left)),
    };
    if !condition.is_met(left, end) {
        return Ok(false);
    }
    let was_there = match NonZeroU64::new(end.saturating_sub(now)) {
        Some(ttl) => store.keys.change_life(digest, Life::Ms { ttl, exact: !is_at }, now),
        None => store.keys.forget(&[digest], now).map(|found| found > 0),
    };
    was_there.map_err(|refusal| match refusal {
        Refusal::Expire => invalid(),
        refusal => refusal.to_string(),
    })
}
