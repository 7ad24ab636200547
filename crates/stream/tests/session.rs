//! Sessions as bindings use them: batches, missing times, bytes, merging.
#![allow(clippy::unwrap_used, reason = "tests")]

use lately_stream::judge::class::Class;
use lately_stream::session::{Dedup, DedupSpec, MergeError, UNTIMED};
use proptest::prelude::*;
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;
const NOON: i64 = 1_700_000_000 * SECOND;

fn spec() -> DedupSpec {
    let mut spec = DedupSpec::within(Duration::from_secs(10));
    spec.expect = Some(10_000);
    // No leap is in doubt, so that it does not matter how much of a batch is at hand.
    spec.clock.max_skew = Some(3600 * 1_000_000_000);
    spec
}

/// Keys and times, of which some are missing and some late.
fn records() -> impl Strategy<Value = Vec<(u8, i64)>> {
    let time = prop_oneof![
        8 => (0..60 * SECOND).prop_map(|after| NOON + after),
        1 => Just(UNTIMED),
    ];
    prop::collection::vec((0..20u8, time), 1..200)
}

fn one_by_one(session: &mut Dedup, records: &[(u8, i64)]) -> Vec<Class> {
    records.iter().map(|(key, time)| session.observe(&[*key], Some(*time))).collect()
}

#[test]
fn a_filter_for_every_key_is_planned_for_the_records() {
    let capacity = |spec: DedupSpec| spec.spec().unwrap().window().capacity();
    let ever = |records| DedupSpec { records, ..DedupSpec::ever() };
    for (records, keys) in [
        (None, 1_000_000),
        (Some(0), 1_000_000),
        (Some(5_000_000), 5_000_000),
        (Some(u64::MAX), 1 << 24),
    ] {
        assert_eq!(capacity(ever(records)), keys);
    }
    // What was asked for comes first, and windows have sizes of their own.
    let asked = DedupSpec { expect: Some(5), ..ever(Some(5_000_000)) };
    assert_eq!(capacity(asked), 5);
    let within = DedupSpec::within(Duration::from_secs(10));
    assert_eq!(
        capacity(DedupSpec { records: Some(5_000_000), ..within.clone() }),
        capacity(within)
    );
    assert_eq!(capacity(DedupSpec { records: Some(5_000_000), ..DedupSpec::last(10) }), 10);
    // It is no more than a hint: a small memory has fewer.
    let small = DedupSpec { memory: Some(1 << 20), ..ever(Some(5_000_000)) };
    assert!(small.plan().unwrap().memory() <= 1 << 20);
}

proptest! {
    #[test]
    fn a_batch_is_judged_as_its_records_are(records in records(), cut in 0..200usize) {
        // The first time makes the clock: what comes before it is judged by when it arrives.
        let (mut single, mut batched) = (spec().build().unwrap(), spec().build().unwrap());
        for session in [&mut single, &mut batched] {
            session.observe(b"first", Some(NOON));
        }
        let expected = one_by_one(&mut single, &records);
        let digests: Vec<_> = records.iter().map(|(key, _)| batched.digest(&[*key])).collect();
        let times: Vec<_> = records.iter().map(|(_, time)| *time).collect();
        let mut found = Vec::new();
        let cut = cut.min(records.len());
        // The times of later batches may be handed over, too.
        batched.observe_batch(&digests[..cut], Some(&times), &mut found);
        batched.observe_batch(&digests[cut..], Some(&times[cut..]), &mut found);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(batched.to_bytes(), single.to_bytes());
    }

    #[test]
    fn bytes_answer_as_the_session_does(first in records(), second in records()) {
        let mut session = spec().build().unwrap();
        one_by_one(&mut session, &first);
        let bytes = session.to_bytes();
        let mut copies = [Dedup::from_bytes(&bytes).unwrap(), spec().resume_bytes(&bytes).unwrap()];
        // A loaded session has the usual bounds for leaps: without any there is no difference.
        let steady: Vec<_> = second.iter().map(|(key, time)| (*key, (*time).min(NOON + 61 * SECOND))).collect();
        let steady: Vec<_> = steady.into_iter().filter(|(_, time)| *time != UNTIMED).collect();
        for copy in &mut copies {
            copy.observe(b"last", Some(NOON + 60 * SECOND));
        }
        session.observe(b"last", Some(NOON + 60 * SECOND));
        let expected = one_by_one(&mut session, &steady);
        for copy in &mut copies {
            prop_assert_eq!(&one_by_one(copy, &steady), &expected);
        }
    }

    #[test]
    fn merged_sessions_know_the_keys_of_both(first in records(), second in records()) {
        let timed = |records: &[(u8, i64)]| -> Vec<(u8, i64)> {
            records.iter().filter(|(_, time)| *time != UNTIMED).copied().collect()
        };
        let (first, second) = (timed(&first), timed(&second));
        let (mut one, mut other) = (spec().build().unwrap(), spec().build().unwrap());
        one_by_one(&mut one, &first);
        one_by_one(&mut other, &second);
        one.merge(&other).unwrap();
        let newest = first.iter().chain(&second).map(|(_, time)| *time).max();
        for (key, time) in first.iter().chain(&second) {
            if newest.is_some_and(|newest| newest - time <= 10 * SECOND) {
                prop_assert!(one.is_known(&[*key], Some(*time)));
            }
        }
        // From here on, the clock is the later of both.
        if let Some(newest) = newest {
            prop_assert_eq!(one.observe(b"old", Some(newest - 11 * SECOND)), Class::Late);
        }
    }
}

#[test]
fn sessions_that_do_not_go_together_are_not_merged() {
    let mut one = spec().build().unwrap();
    one.observe(b"a", Some(NOON));
    let before = one.to_bytes();
    let mut by_arrival = spec().build().unwrap();
    by_arrival.observe(b"a", None);
    let changes = DedupSpec { changes: vec!["v".into()], ..spec() };
    let others = [
        (by_arrival, "by when they arrive"),
        (DedupSpec { seed: 1, ..spec() }.build().unwrap(), "seed: saved 0, asked 1"),
        (DedupSpec { expect: Some(5), ..spec() }.build().unwrap(), "different plans"),
        (DedupSpec::last(10).build().unwrap(), "window: saved 10s, asked the last 10 records"),
        (changes.build().unwrap(), "pass-on-change"),
    ];
    for (other, why) in &others {
        let error = one.merge(other).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(one.to_bytes(), before);
    }
    assert!(matches!(one.merge(&others[1].0), Err(MergeError::Settings(_))));
    let mut changing = changes.build().unwrap();
    assert!(
        changing.merge(&changes.build().unwrap()).unwrap_err().to_string().contains("last values")
    );
}

#[test]
fn an_empty_state_keeps_its_clock_and_its_lateness() {
    let mut spec = spec();
    spec.clock.lateness = Some(60_000_000_000);
    let mut loaded = Dedup::from_bytes(&spec.build().unwrap().to_bytes()).unwrap();
    let at = |seconds| Some(NOON + seconds * SECOND);
    assert_eq!(loaded.observe(b"a", at(0)), Class::Fresh);
    assert_eq!(loaded.observe(b"b", at(-59)), Class::Fresh);
    assert_eq!(loaded.observe(b"c", at(-61)), Class::Late);
    // Questions are about the newest time of a record, not about the present.
    assert!(loaded.is_known(b"a", None));
    assert_eq!(loaded.last_seen(b"a", None).map(|seen| loaded.nanos(seen).1), at(0));
}
