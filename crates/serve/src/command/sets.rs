//! `SADD` and its relatives: sets that recognize their members, and cannot list them.

use super::Call;
use crate::store::{Entry, Family, Outcome, Reach, Refusal, Scratch};
use lately::Tick;
use std::sync::Arc;

/// `SADD key member…`: how many are new.
pub(super) fn add(call: &mut Call<'_>) {
    reply_count(call, added);
}

fn added(call: &Call<'_>) -> Result<u64, Refusal> {
    let (store, words, now) = (call.store(), call.words, call.now);
    let name = words.at(1);
    if existing(call)?.is_none() {
        match store.template(name).map(|options| options.family) {
            Some(Family::Set) => {}
            Some(family) if family.numbers().is_some() => return Err(family.wrong_type()),
            _ => return Err(Refusal::NoSet),
        }
    }
    let entry = store.filter_or_new(name, now)?;
    let digests: Vec<_> = words.from(2).map(|member| store.digest(member)).collect();
    let mut outcomes = Vec::with_capacity(digests.len());
    let mut inner = entry.lock();
    inner.observe(&digests, now, &mut Scratch::default(), &mut outcomes);
    let fresh = digests.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Outcome::Fresh);
    let refused = |outcome: &Outcome| match outcome {
        Outcome::Full => Some(Refusal::Full),
        Outcome::NoMemory => Some(Refusal::NoMemory),
        Outcome::Fresh | Outcome::Seen => None,
    };
    let Some(refusal) = outcomes.iter().find_map(refused) else { return Ok(fresh.count() as u64) };
    // All members or none, where the structure can forget: who hears the error may add them again, and expects to hear
    // how many are new.
    for (digest, _) in fresh {
        let _ = inner.forget(*digest, now);
    }
    Err(refusal)
}

/// The set that a command names, if there is one.
fn existing(call: &Call<'_>) -> Result<Option<Arc<Entry>>, Refusal> {
    call.store().of_family(call.words.at(1), Family::Set, call.now)
}

fn reply_count(call: &mut Call<'_>, count: impl FnOnce(&Call<'_>) -> Result<u64, Refusal>) {
    match count(call) {
        Ok(count) => call.reply.count(count),
        Err(refusal) => call.refuse(refusal),
    }
}

/// `SREM key member…`: how many were there.
pub(super) fn remove(call: &mut Call<'_>) {
    reply_count(call, |call| {
        let Some(entry) = existing(call)? else { return Ok(0) };
        let mut inner = entry.lock();
        let mut removed = 0;
        for member in call.words.from(2) {
            removed += u64::from(inner.forget(call.store().digest(member), call.now)?);
        }
        Ok(removed)
    });
}

/// `SCARD key`: members that were added and not removed; where they expire, about how many there are.
pub(super) fn count(call: &mut Call<'_>) {
    reply_count(call, |call| {
        let Some(entry) = existing(call)? else { return Ok(0) };
        let mut inner = entry.lock();
        if inner.options.reach == Reach::Forever {
            return Ok(inner.counts.fresh.saturating_sub(inner.counts.removed));
        }
        inner.filter.advance(Tick(call.now));
        Ok(inner.filter.len())
    });
}

/// `SISMEMBER key member`, `SMISMEMBER key member…`
pub(super) fn contains(call: &mut Call<'_>) {
    let (store, members) = (call.store(), call.words.from(2));
    let mut found = vec![false; members.len()];
    match existing(call) {
        Ok(Some(entry)) => {
            let digests: Vec<_> = members.map(|member| store.digest(member)).collect();
            entry.lock().contains(&digests, call.now, &mut found);
        }
        Ok(None) => {}
        Err(refusal) => return call.refuse(refusal),
    }
    if call.words.is(0, "smismember") {
        call.reply.array(found.len());
    }
    found.iter().for_each(|found| call.reply.integer((*found).into()));
}
