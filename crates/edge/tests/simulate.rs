//! The simulated day: every reading in one class, no false negatives, the same for the same seed.

#![allow(clippy::unwrap_used)]

use lately_edge::filter::FilterSize;
use lately_edge::message::Kind;
use lately_edge::rules::{Mode, Rules};
use lately_edge::simulate::{City, Identity, Sending, Setting, generate, run};
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
    ) {
        let mode = if ages { Mode::Ageing { steps: 30 } } else { Mode::Reset };
        let size = FilterSize { bits, hashes };
        let city = generate(&City { people: 4, days: 40, spread: 2.0, seed, ..City::default() });
        let setting = Setting {
            rules: Rules { size, m_worker, refresh, ..rules(mode, minutes) },
            m_mec, deltas, names, second_look, seed,
            identity: if person { Identity::Person } else { Identity::Walk },
            sending: if send_all { Sending::All } else { Sending::Decide },
            ..Setting::default()
        };
        let day = run(&city, &setting);
        prop_assert!(day.adds_up(), "{:?}", day);
        prop_assert_eq!(day.readings, city.fixes() as u64);
        prop_assert_eq!((day.unasked, day.duplicates, day.refused), (0, 0, 0));
        prop_assert!(!second_look || day.lost_at_host == 0);
        prop_assert!(!send_all || day.suppressed + day.suppressed_wrongly == 0);
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
