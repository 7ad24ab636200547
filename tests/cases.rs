//! Acceptance cases that a filter alone can show.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use lately::{AnyFilter, Filter, Renewal, Spec, Structure, Tick, Verdict, WindowFilter};
use support::{key, time};

/// W1: a key every 0.2 s for a minute.
#[test]
fn case_w1_a_key_every_fifth_of_a_second() {
    for (renewal, passed) in [(Renewal::OnFresh, 6), (Renewal::Always, 1)] {
        for structure in [Structure::TimeBloom, Structure::IntervalBloom] {
            let spec = Spec::new(time(10_000, 10)).renewal(renewal).structure(structure);
            let mut filter = spec.plan().unwrap().build();
            let fresh =
                (0..300).filter(|i| filter.observe(key(1), Tick(i * 200)) == Verdict::Fresh);
            // Each 10 s, and the read exactly 10 s later is still within: 0, 10.2, 20.4, ...
            assert_eq!(fresh.count(), passed);
        }
    }
}

/// W2: t = 0, 2, 5 s and window 2.5 s.
#[test]
fn case_w2_a_window_between_two_gaps() {
    for renewal in [Renewal::OnFresh, Renewal::Always] {
        let mut filter = Spec::new(time(2_500, 10)).renewal(renewal).plan().unwrap().build();
        let verdicts = [0, 2_000, 5_000].map(|t| filter.observe(key(1), Tick(t)));
        assert_eq!(verdicts, [Verdict::Fresh, Verdict::Duplicate, Verdict::Fresh]);
    }
}

/// W3: window 300 s, no renewal.
#[test]
fn case_w3_without_renewal() {
    let spec = Spec::new(time(300, 10)).renewal(Renewal::OnFresh);
    let mut filter = spec.plan().unwrap().build();
    let verdicts = [0, 301, 302].map(|t| filter.observe(key(1), Tick(t)));
    assert_eq!(verdicts, [Verdict::Fresh, Verdict::Fresh, Verdict::Duplicate]);
    let mut filter = spec.plan().unwrap().build();
    let verdicts = [0, 300].map(|t| filter.observe(key(1), Tick(t)));
    assert_eq!(verdicts, [Verdict::Fresh, Verdict::Duplicate], "exactly one window later");
}

/// S2: whatever happens after a key was marked, it expires.
#[test]
fn case_s2_a_restored_key_still_expires() {
    for structure in [Structure::TimeBloom, Structure::IntervalBloom, Structure::IntervalBloomPlain]
    {
        let mut filter = Spec::new(time(100, 10)).structure(structure).plan().unwrap().build();
        let _ = filter.observe(key(1), Tick(50));
        let restored = AnyFilter::restore(&filter.snapshot()).unwrap();
        assert!(restored.contains(key(1), Tick(150)));
        assert!(!restored.contains(key(1), Tick(151)));
        let mut restored = restored;
        assert_eq!(restored.observe(key(1), Tick(1_000_000)), Verdict::Fresh);
    }
}
