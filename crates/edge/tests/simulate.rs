//! The simulated day: every reading in one class, no false negatives, the same for the same seed.

#![allow(clippy::unwrap_used)]

use lately_edge::cell::{Position, SmallCell};
use lately_edge::filter::FilterSize;
use lately_edge::message::Kind;
use lately_edge::rules::{Mode, Rules};
use lately_edge::simulate::trace::{Trace, Walk};
use lately_edge::simulate::{City, Identity, Resets, Sending, Setting, generate, run};
use proptest::prelude::*;

fn rules(mode: Mode, minutes: u64) -> Rules {
    Rules { mode, validity: minutes * 60_000, ..Rules::PAPER }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Conservation, whatever the setting. A reading that nobody sent in this period is suppressed only by
    /// a false positive, which is counted: the exact tables of the simulator decide which is which.
    #[test]
    fn every_reading_is_in_one_class(
        ages in any::<bool>(),
        minutes in prop::sample::select(vec![1_u64, 7, 30, 240]),
        (m_worker, m_mec) in (1_u8..6, 1_u16..8),
        (deltas, names, second_look, person) in any::<(bool, bool, bool, bool)>(),
        refresh in prop::sample::select(vec![0_u16, 2_000, u16::MAX]),
        (bits, hashes) in (1_u32..300, 1_u8..6),
        (send_all, seed) in (any::<bool>(), 0_u64..5),
        resets in prop::sample::select(vec![Resets::Workers, Resets::Cells, Resets::Squares]),
        reset_fill in prop::option::weighted(0.3, 0.05_f64..0.9),
        preferred in prop::option::weighted(0.3, 1_u16..6),
    ) {
        let mode = if ages { Mode::Ageing { steps: 30 } } else { Mode::Reset };
        let size = FilterSize { bits, hashes };
        let city = generate(&City { people: 4, days: 40, spread: 2.0, seed, ..City::default() });
        let setting = Setting {
            rules: Rules { size, m_worker, refresh, ..rules(mode, minutes) },
            m_mec, deltas, names, second_look, seed,
            identity: if person { Identity::Person } else { Identity::Walk },
            sending: if send_all { Sending::All } else { Sending::Decide },
            resets, reset_fill, preferred,
            ..Setting::default()
        };
        let day = run(&city, &setting);
        prop_assert!(day.adds_up(), "{:?}", day);
        prop_assert_eq!(day.readings, city.fixes() as u64);
        prop_assert_eq!((day.unasked, day.duplicates, day.refused), (0, 0, 0));
        prop_assert!(!second_look || day.lost_at_host == 0);
        let suppressed = day.suppressed + day.suppressed_wrongly + day.suppressed_stale;
        prop_assert!(!send_all || suppressed == 0);
        prop_assert!(preferred.is_some() || day.suppressed_stale == 0);
        // All but the last minute's were delivered to the requester.
        prop_assert!(day.delivered <= day.kept);
        prop_assert!(ages || second_look || day.of(Kind::Reset).count > 0);
        // An element is never covered and lost at once.
        let (elements, covered, lost) = day.elements();
        prop_assert!(covered + lost <= elements);
    }
}

/// With filters that make no mistakes, nothing is lost: each element is covered in each period.
#[test]
fn nothing_is_lost_without_false_positives() {
    let city = generate(&City { people: 6, days: 120, spread: 2.0, ..City::default() });
    let size = FilterSize { bits: 60_000, hashes: 20 };
    for mode in [Mode::Reset, Mode::Ageing { steps: 60 }] {
        for (deltas, names) in [(false, false), (true, false), (true, true)] {
            for identity in [Identity::Walk, Identity::Person] {
                let rules = Rules { size, ..rules(mode, 30) };
                let day =
                    run(&city, &Setting { rules, deltas, names, identity, ..Setting::default() });
                assert_eq!((day.suppressed_wrongly, day.lost_at_host), (0, 0));
                assert_eq!(day.fresh, day.readings, "{mode:?}");
                let (elements, covered, _) = day.elements();
                assert!(mode != Mode::Reset || covered == elements);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_day() {
    let city = generate(&City { people: 3, days: 30, ..City::default() });
    let setting = Setting::default();
    assert_eq!(run(&city, &setting), run(&city, &setting));
    assert_ne!(run(&city, &setting), run(&city, &Setting { seed: 2, ..setting }));
}

/// Deltas and names change bytes, not what is sent.
#[test]
fn the_form_of_filters_changes_bytes_only() {
    let city = generate(&City { people: 6, days: 120, spread: 2.0, ..City::default() });
    for mode in [Mode::Reset, Mode::Ageing { steps: 60 }] {
        let day = |deltas, names| {
            run(&city, &Setting { rules: rules(mode, 30), deltas, names, ..Setting::default() })
        };
        let days = [day(false, false), day(true, false), day(false, true), day(true, true)];
        let sent = days.each_ref().map(|day| (day.sent, day.kept, day.cost().count));
        assert!(sent.iter().all(|&other| other == sent[0]), "{mode:?} {sent:?}");
        let bytes = days.each_ref().map(|day| day.cost().bytes);
        assert!(bytes[1] < bytes[0] && bytes[2] < bytes[1], "{mode:?} {bytes:?}");
    }
}

/// A place that false positives silence in every period is heard of again through refreshes.
#[test]
fn refreshes_find_what_false_positives_hide() {
    let city = generate(&City { people: 10, days: 300, spread: 2.0, ..City::default() });
    let size = FilterSize { bits: 24, hashes: 2 };
    let day = |refresh| {
        let rules = Rules { size, refresh, ..rules(Mode::Ageing { steps: 60 }, 60) };
        run(&city, &Setting { rules, ..Setting::default() })
    };
    let (without, with) = (day(0), day(6_554));
    assert_eq!(without.recovered, 0);
    assert!(with.recovered > 0 && with.elements().2 < without.elements().2, "{with:?}");
}

/// How a reset is sent changes the number of messages and nothing else.
#[test]
fn resets_are_counted_by_worker_cell_or_square() {
    let city = generate(&City { people: 10, days: 300, spread: 2.0, ..City::default() });
    let day = |resets| {
        run(&city, &Setting { rules: rules(Mode::Reset, 10), resets, ..Setting::default() })
    };
    let [workers, cells, squares] = [Resets::Workers, Resets::Cells, Resets::Squares].map(day);
    let resets = [&workers, &cells, &squares].map(|day| day.of(Kind::Reset).count);
    assert_eq!(resets[0], workers.reset_deliveries);
    assert!(resets[0] > resets[1] && resets[1] > resets[2] && resets[2] > 0, "{resets:?}");
    assert!((workers.saving() - cells.saving_unicast()).abs() < 1e-12);
    for other in [&workers, &squares] {
        assert_eq!((other.sent, other.kept, other.fresh), (cells.sent, cells.kept, cells.fresh));
    }
}

/// Filters that are emptied when they are half full never pass that, and lose less than ones that fill up all day.
#[test]
fn filters_are_reset_when_they_are_full() {
    let city = generate(&City { people: 20, days: 1_000, spread: 1.0, ..City::default() });
    let size = FilterSize { bits: 100, hashes: 3 };
    let day = |reset_fill| {
        let rules = Rules { size, ..rules(Mode::Reset, 24 * 60) };
        let judged_by = Some(30 * 60_000);
        run(&city, &Setting { rules, reset_fill, judged_by, ..Setting::default() })
    };
    let (never, full) = (day(None), day(Some(0.5)));
    assert_eq!(never.of(Kind::Reset).count, 0);
    assert!(full.of(Kind::Reset).count > 0 && full.adds_up());
    // The element that fills it may set a bit for each hash.
    let most = |day: &lately_edge::simulate::Ledger| day.occupancy.len() - 1;
    assert!(most(&full) < 53 && most(&never) > 53, "{} {}", most(&full), most(&never));
    assert!(full.readings_lost_per_mille() < never.readings_lost_per_mille());
    assert!(full.fresh > never.fresh);
}

/// Whoever is not told of a reset keeps the full filter: fewer readings are sent, and fewer elements covered.
#[test]
fn preferred_workers_alone_begin_again() {
    let city = generate(&City { people: 20, days: 1_000, spread: 1.0, ..City::default() });
    let day = |preferred| {
        run(&city, &Setting { rules: rules(Mode::Reset, 30), preferred, ..Setting::default() })
    };
    let (all, few) = (day(None), day(Some(2)));
    assert!(few.adds_up() && few.suppressed_stale > 0 && all.suppressed_stale == 0);
    assert!(few.sent < all.sent && few.reset_deliveries < all.reset_deliveries);
    assert!(few.coverage() < all.coverage() && few.coverage() > 0.5, "{}", few.coverage());
    // An element of which nothing was kept is lost, whether a false positive cost it or an old filter.
    let wrongly = few.suppressed_wrongly + few.lost_at_host;
    assert!(few.elements().2 > wrongly, "{} lost, {wrongly} wrongly", few.elements().2);
}

/// People who travel, through few squares or many: what is done does not grow with the squares, but for a report of each an hour.
#[test]
fn squares_where_nobody_is_cost_nothing() {
    const PEOPLE: usize = 10;
    let day = |squares: usize, identity| {
        let cell = |square: usize| {
            let (row, column) = (square / 40, square % 40);
            let (latitude, longitude) = (30.0 + 0.1 * row as f64, 100.0 + 0.12 * column as f64);
            SmallCell::at(Position { latitude, longitude }).unwrap()
        };
        let walk = |person: usize| {
            let at = |minute: usize| cell((person + PEOPLE * (minute / 6)) % squares);
            Walk { person: person as u32, start: 0, cells: (0..1_440).map(at).collect() }
        };
        let trace = Trace { walks: (0..PEOPLE).map(walk).collect(), ..Trace::default() };
        run(&trace, &Setting { identity, ..Setting::default() })
    };
    for identity in [Identity::Walk, Identity::Person] {
        let (few, many) = (day(40, identity), day(1_200, identity));
        assert_eq!((few.readings, many.readings), (14_400, 14_400));
        assert_eq!((few.unasked, many.unasked), (0, 0));
        let hosts = [&few, &many].map(|day| day.of(Kind::Place).count);
        // If each host were woken each minute, there would be half a million more.
        assert!(hosts[1] > 1_000, "{hosts:?}");
        let more = many.woken - few.woken;
        println!("{identity:?}: {} and {} wakings for {hosts:?} hosts", few.woken, many.woken);
        assert!(more < 25 * hosts[1] + few.readings / 2, "{} and {}", few.woken, many.woken);
        assert_eq!(many.of(Kind::Hello).count, 1);
    }
}
