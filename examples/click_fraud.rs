//! Clicks from several threads, of which a person's second one on the same ad within an hour is not paid for.
//!
//! ```sh
//! cargo run --release -p lately --example click_fraud
//! ```

use lately::{Shared, Spec, Tick, Window};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A click: when (seconds), who, on what.
struct Click {
    second: u64,
    visitor: u64,
    ad: u32,
}

/// What a front end sends: visitors who click once, and a bot that clicks every ten seconds.
fn clicks(front_end: u64) -> impl Iterator<Item = Click> {
    (0..20_000).map(move |n| {
        let second = n / 4;
        let visitor = if n % 40 == 0 { 99 } else { front_end * 1_000_000 + n };
        Click { second, visitor, ad: (n % 8) as u32 }
    })
}

fn main() -> Result<(), lately::PlanError> {
    // One click per visitor and ad an hour; some 100,000 clicks an hour are expected, and one in 100,000 honest ones may be lost.
    let spec = Spec::new(Window::time(3_600, 100_000)).fpr(1e-5).slack(200);
    let seen = Shared::new(spec, 16)?;
    let (paid, fraud) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for front_end in 1..=4 {
            let (seen, paid, fraud) = (&seen, &paid, &fraud);
            scope.spawn(move || {
                for click in clicks(front_end) {
                    let key = seen.digester().digest_hash(&(click.visitor, click.ad));
                    let is_second = seen.observe(key, Tick(click.second)).is_duplicate();
                    let count = if is_second { fraud } else { paid };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (paid, fraud) = (paid.into_inner(), fraud.into_inner());
    println!("{paid} clicks paid, {fraud} not, in {} bytes", seen.memory());
    // 19,500 honest clicks a front end; the bot has one ad (n is a multiple of 40) and an hour and a half.
    assert_eq!(paid + fraud, 80_000);
    assert!((78_000 - 10..=78_000 + 2).contains(&paid), "{paid}");
    Ok(())
}

#[test]
fn it_runs() {
    assert!(main().is_ok());
}
