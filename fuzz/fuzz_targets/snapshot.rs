//! Restores any bytes; then the same with length and checksum made right, so that the fields are
//! reached. What is restored must work.
#![no_main]

use lately::{AnyFilter, Digester, Filter, Tick, WindowFilter};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(filter) = AnyFilter::restore(bytes) {
        use_it(filter, bytes.len());
    }
    if bytes.len() < 28 {
        return;
    }
    let mut crafted = bytes.to_vec();
    let end = crafted.len() - 8;
    crafted[..12].copy_from_slice(b"\x89LATE\r\n\x1a\x01\0\0\0");
    let body = (end - 20) as u64;
    crafted[12..20].copy_from_slice(&body.to_le_bytes());
    let sum = xxh3_64(&crafted[..end]);
    crafted[end..].copy_from_slice(&sum.to_le_bytes());
    if let Ok(filter) = AnyFilter::restore(&crafted) {
        assert_eq!(filter.snapshot(), crafted, "a snapshot has one form");
        use_it(filter, crafted.len());
    }
});

fn use_it(mut filter: AnyFilter, bytes: usize) {
    let digester = Digester::new(0);
    for n in 0..30u64 {
        let _ = filter.observe(digester.digest(&n.to_le_bytes()), Tick(n * n * 40));
        assert!(filter.memory() < 2_000 * bytes + (1 << 16), "{} of {bytes}", filter.memory());
    }
    let key = digester.digest(b"key");
    let _ = filter.observe(key, Tick(u64::MAX));
    filter.remember(key, Tick(0));
    filter.advance(Tick(u64::MAX));
    filter.count_arrival();
    assert!(
        filter.overload().refused > 0
            || filter.contains(key, Tick(0))
            || filter.overload().forgotten > 0
    );
    assert!((0.0..=1.0).contains(&filter.fill()) && (0.0..=1.0).contains(&filter.estimated_fpr()));
    match AnyFilter::restore(&filter.snapshot()) {
        Ok(again) => assert_eq!(again.snapshot(), filter.snapshot()),
        // A crafted counter was at the end of its range.
        Err(error) => assert!(error.to_string().contains("2^63"), "{error}"),
    }
}
