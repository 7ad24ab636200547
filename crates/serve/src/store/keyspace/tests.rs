use super::life::eighths;
use super::options::{EXACTNESS, ROUNDED};
use super::*;
use lately::Digester;
use proptest::prelude::*;
use std::collections::HashMap;

fn key(n: u64) -> Digest {
    Digester::new(5).digest(&n.to_le_bytes())
}

fn lasting(ttl: u64, exact: bool) -> Life {
    Life::Ms { ttl: NonZeroU64::new(ttl).unwrap(), exact }
}

fn space(ttls: usize) -> KeySpace {
    let options = KeySpaceOptions { capacity: 1_000, ttls, ..KeySpaceOptions::default() };
    KeySpace::new(options, 5, &Budget::new(1 << 30), &Changes::new())
}

fn set(space: &KeySpace, n: u64, life: Life, now: u64) -> Outcome {
    let mut outcomes = Vec::new();
    space.set_fresh(&[key(n)], life, now, &mut Scratch::default(), &mut outcomes).unwrap();
    outcomes[0]
}

#[test]
fn rounded_up_by_at_most_an_eighth() {
    for ttl in [1, 7, 8, 9, 17, 600_000, 86_400_000, u64::MAX / 2 + 1, u64::MAX] {
        let rounded = eighths(NonZeroU64::new(ttl).unwrap()).get();
        assert!(rounded >= ttl && rounded - ttl <= ttl / 8, "{ttl} {rounded}");
    }
}

/// However many times to live there are, the tables stay few, their rates add up to what is promised, and those
/// that have expired go.
#[test]
fn few_tables() {
    let space = space(4);
    for n in 0..5_000 {
        assert_eq!(set(&space, n, lasting(1_000 + 997 * n, n % 2 == 0), 0), Outcome::Fresh);
    }
    let tables = space.lock();
    let rate: f64 = tables.iter().map(|table| table.filter.filter().plan().fpr()).sum();
    assert!(tables.len() <= 4 + ROUNDED && rate <= 1e-9, "{} {rate}", tables.len());
    drop(tables);
    assert!((0..5_000).all(|n| space.contains(key(n), 1_000)));
    space.tidy(20_000_000);
    assert!(space.lock().is_empty());
    assert_eq!(space.budget.used(), 0);
}

/// However times to live come and go, their rates never add up to more than was promised, and none is too low to be had.
#[test]
fn rates_add_up_while_tables_come_and_go() {
    let space = space(32);
    for n in 0..2_000u64 {
        // Ever other ones of forty lives, of which the short ones go first.
        let ttl = 1_000 * (1 + n * n % 40);
        assert_eq!(set(&space, n, lasting(ttl, true), 300 * n), Outcome::Fresh);
        let tables = space.lock();
        let exact = tables.iter().filter(|table| table.is_exact);
        let rates: Vec<f64> = exact.map(|table| table.filter.filter().plan().fpr()).collect();
        let (sum, least) = (rates.iter().sum::<f64>(), rates.iter().copied().fold(1.0, f64::min));
        assert!(sum <= 0.5e-9 && least > 0.5e-9 / 33.0 / 33.0, "{n}: {sum} {least}");
    }
}

/// What the rate and the exactness of lives cost: a key of the usual kind takes no more than nine bytes.
#[test]
fn nine_bytes_a_key() {
    const KEYS: u64 = 10_000_000;
    let options = KeySpaceOptions { capacity: KEYS, ..KeySpaceOptions::default() };
    for ttl in [60, 600, 3_600, 86_400, 7 * 86_400] {
        let space = KeySpace::new(options, 5, &Budget::new(1 << 30), &Changes::new());
        set(&space, 1, lasting(1_000 * ttl, true), 0);
        assert!(space.budget.used() <= 9 * KEYS, "{ttl} s: {}", space.budget.used());
    }
}

/// A life is exact to a 32,768th: a key is there until it ends, and not much longer.
#[test]
fn lives_end_when_they_should() {
    for ttl in [1, 100, 20_000, 600_000, 86_400_000] {
        let space = space(4);
        set(&space, 1, lasting(ttl, true), 1_000_000);
        let end = 1_000_000 + ttl;
        assert!(space.contains(key(1), end), "{ttl}");
        assert!(!space.contains(key(1), end + ttl / EXACTNESS + 1), "{ttl}");
        assert_eq!(space.left(key(1), 1_000_000), Some(Left::Ms(ttl)));
    }
}

#[test]
fn absurd_lives_are_refused() {
    let mut outcomes = Vec::new();
    for ttl in [u64::MAX, 1 << 63, i64::MAX as u64] {
        let set = space(4).set_fresh(
            &[key(1)],
            lasting(ttl, true),
            0,
            &mut Scratch::default(),
            &mut outcomes,
        );
        assert!(matches!(set, Err(Refusal::Expire)), "{set:?}");
    }
}

/// Of many keys in tables that have grown, those that are taken out are gone, and all others are there.
#[test]
fn those_taken_out_and_no_others() {
    let space = space(4);
    let life = |n| if n % 3 == 0 { Life::Forever } else { lasting(1_000 * (n % 3), true) };
    for n in 0..30_000 {
        assert_eq!(set(&space, n, life(n), n / 100), Outcome::Fresh, "{n}");
    }
    assert!(space.lock().iter().all(|table| table.filter.filter().tables() > 1));
    let removed: Vec<_> = (0..30_000).step_by(7).map(key).collect();
    assert_eq!(space.forget(&removed, 300), Ok(removed.len() as u64));
    assert_eq!(space.forget(&removed, 300), Ok(0));
    for n in 0..30_000 {
        assert_eq!(space.contains(key(n), 300), n % 7 != 0, "{n}");
    }
    for n in (0..30_000).step_by(7) {
        assert_eq!(set(&space, n, life(n), 300), Outcome::Fresh, "{n}");
    }
}

proptest! {
    /// Against a map of keys to the ends of their lives: what is there is never called fresh; what is called seen
    /// is there, or its life was rounded up, by at most an eighth.
    #[test]
    fn as_a_map_of_ends(steps in prop::collection::vec(
        (0u64..12, 1u64..60, any::<bool>(), 0u64..12, 0..6), 1..150))
    {
        let space = space(3);
        let mut ends: HashMap<u64, (u64, u64)> = HashMap::new();
        let mut now = 1_000;
        for (n, ttl, exact, passes, what) in steps {
            now += passes;
            let (at_least, at_most) = ends.get(&n).copied().unwrap_or((0, 0));
            let life = lasting(ttl, exact);
            // A key is there up to and with the moment its life ends.
            let was_there = at_least >= now;
            prop_assert!(!was_there || space.contains(key(n), now));
            if let Some(Left::Ms(left)) = space.left(key(n), now) {
                prop_assert!(now + left >= at_least && now + left <= at_most.max(now) + 1, "{left}");
            } else {
                prop_assert!(!was_there);
            }
            let new = (now + ttl, now + eighths(NonZeroU64::new(ttl).unwrap()).get());
            let may_be_there = |found| if found { now <= at_most + 1 } else { !was_there };
            if what < 2 {
                space.set(key(n), life, now).unwrap();
                ends.insert(n, (at_least.max(new.0), at_most.max(new.1)));
            } else if what == 2 {
                let found = space.forget(&[key(n), key(n)], now).unwrap();
                prop_assert!(found <= 1 && may_be_there(found == 1));
                prop_assert!(!space.contains(key(n), now));
                ends.remove(&n);
            } else if what == 3 {
                let found = space.change_life(key(n), life, now).unwrap();
                prop_assert!(may_be_there(found));
                if found {
                    ends.insert(n, new);
                }
            } else {
                match set(&space, n, life, now) {
                    Outcome::Fresh => {
                        prop_assert!(!was_there);
                        ends.insert(n, new);
                    }
                    Outcome::Seen => prop_assert!(now <= at_most + 1, "{now} {at_most}"),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
    }
}
