//! All roles in fast time, with a broker and clocks that are disturbed at random: every submission is accounted for. A run is an
//! hour of disturbed time, and quiet time until all has arrived.
//!
//! Hosts tell resets to cells of 1 km, and in a test of its own to whole squares: then no worker that is connected decides by
//! a filter that is older than the newest reset, and in either case none believes that an element is known that no host has
//! kept.
//!
//! `LATELY_CHAOS_SEED=N` begins with that seed, and runs no other; `LATELY_CHAOS_SECONDS=600` runs one seed after another for so long.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "chaos/account.rs"]
mod account;
#[path = "chaos/disturb.rs"]
mod disturb;
mod support;
#[path = "chaos/world.rs"]
mod world;

use account::Account;
use lately_edge::host::ResetBy;
use std::time::{Duration, Instant};
use world::World;

/// Of disturbed time, in seconds.
const DISTURBED: u64 = 3_600;
/// Without other wishes.
const RUNS: u64 = 4;

fn run(seed: u64, reset_by: ResetBy) -> Account {
    let mut world = World::new(seed, reset_by);
    (0..DISTURBED).for_each(|_| world.step(true));
    world.calm_down();
    world.account(seed)
}

#[test]
fn nothing_vanishes_uncounted() {
    run_all(ResetBy::Cell, RUNS);
}

#[test]
fn nothing_vanishes_uncounted_where_squares_are_reset_at_once() {
    run_all(ResetBy::Square, RUNS);
}

fn run_all(reset_by: ResetBy, usual: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (first, seconds) = (number("LATELY_CHAOS_SEED"), number("LATELY_CHAOS_SECONDS"));
    let runs = match (first, seconds) {
        (_, Some(_)) => u64::MAX,
        (Some(_), None) => 1,
        (None, None) => usual,
    };
    let (start, long) = (Instant::now(), seconds.map(Duration::from_secs));
    let (mut all, mut done) = (Account::default(), 0);
    for seed in first.unwrap_or(1).. {
        let account = run(seed, reset_by);
        println!("{reset_by:?}, seed {seed}: {account}");
        all += account;
        done += 1;
        if done >= runs || long.is_some_and(|long| start.elapsed() >= long) {
            break;
        }
    }
    println!("{reset_by:?}, {done} hours, {:.0} s: {all}", start.elapsed().as_secs_f64());
}
