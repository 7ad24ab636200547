//! A gateway of a sensor network, written as for a microcontroller: no standard library but for `main`'s report, a fixed
//! amount of memory, a clock that is read from outside, and state that survives a restart.
//!
//! ```sh
//! cargo run --release -p lately --example gateway
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;
extern crate std;

use alloc::vec::Vec;
use lately::{
    AnyFilter, Leaps, PlanError, SnapshotError, Spec, Tick, WhenFull, Window, WindowFilter,
};

/// Milliseconds for which a packet that is heard again, over another hop, is not forwarded again.
const WINDOW: u64 = 30_000;
/// Bytes that the filter may have, whatever comes.
const MEMORY: u64 = 8 << 10;

/// A packet as it comes off the radio.
struct Packet {
    at: u64,
    node: u32,
    number: u16,
}

/// What the gateway keeps.
struct Gateway {
    seen: AnyFilter,
    leaps: Leaps,
}

impl Gateway {
    fn new() -> Result<Self, PlanError> {
        let spec = Spec::new(Window::time(WINDOW, 1_000)).fpr(1e-4).slack(WINDOW / 8);
        let plan = spec.memory(MEMORY).when_full(WhenFull::Refuse).plan()?;
        Ok(Self { seen: plan.try_build()?, leaps: Leaps::of_at_most(10 * WINDOW) })
    }

    /// Is it to be forwarded?
    fn receive(&mut self, packet: &Packet) -> bool {
        // A node whose clock has run away must not stop the gateway's.
        let now = self.leaps.judge(Tick(packet.at));
        let key = self.seen.digester().digest_hash(&(packet.node, packet.number));
        !self.seen.observe(key, now).is_duplicate()
    }

    /// For the flash memory.
    fn save(&self) -> Vec<u8> {
        self.seen.snapshot()
    }

    fn restart(flash: &[u8]) -> Result<Self, SnapshotError> {
        Ok(Self { seen: AnyFilter::restore(flash)?, leaps: Leaps::of_at_most(10 * WINDOW) })
    }
}

fn main() -> Result<(), alloc::boxed::Box<dyn core::error::Error>> {
    let mut gateway = Gateway::new()?;
    let (mut forwarded, mut dropped) = (0u32, 0u32);
    for n in 0..10_000u64 {
        let packet = Packet { at: n * 100, node: (n % 50) as u32, number: (n / 50) as u16 };
        // Heard twice: directly, and over a neighbour.
        for delay in [0, 40] {
            let packet = Packet { at: packet.at + delay, ..packet };
            if gateway.receive(&packet) { forwarded += 1 } else { dropped += 1 }
        }
        if n == 5_000 {
            // A node whose clock says that it is the year 2500, and a restart.
            let runaway = Packet { at: u64::MAX / 2, node: 50, number: 0 };
            assert!(gateway.receive(&runaway));
            gateway = Gateway::restart(&gateway.save())?;
        }
    }
    std::println!("{forwarded} packets forwarded, {dropped} repeated, in {MEMORY} bytes at most");
    assert!((9_990..=10_000).contains(&forwarded), "{forwarded}");
    Ok(())
}

#[test]
fn it_runs() {
    assert!(main().is_ok());
}
