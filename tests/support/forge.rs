//! Digests made so that keys meet in a table.

// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]

use lately::{Digest, Plan, Structure};

/// The mixer of `Digest::probes`, backwards.
fn unmix(y: u64) -> u64 {
    const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
    // Newton: every round doubles the bits of the inverse that are right.
    let mut inverse = FACTOR;
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(inverse)));
    }
    let x = (y ^ (y >> 29) ^ (y >> 58)).wrapping_mul(inverse);
    x ^ (x >> 32)
}

/// A digest whose first two positions are these parts (of 2^64) of any table. `salt` chooses one of
/// many such digests, of different signatures; a table of up to 2^20 cells does not tell them apart.
pub fn with_positions(first: u64, second: u64, salt: u64) -> Digest {
    let mut salt = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24;
    loop {
        let low = salt & ((1 << 40) - 1);
        let (a, b) = (unmix(first | low), unmix(second | low.rotate_left(7) & ((1 << 40) - 1)));
        let step = b.wrapping_sub(a);
        if step % 2 == 1 {
            return Digest::new(a.wrapping_sub(step), step);
        }
        salt = salt.wrapping_add(1);
    }
}

/// So many digests whose first `probes` positions are those of the first one, in a table of so many
/// cells.
pub fn colliding(count: usize, probes: usize, cells: u64) -> Vec<Digest> {
    let at = |digest: Digest| digest.probes(cells).take(probes).collect::<Vec<_>>();
    let mut digests: Vec<Digest> = Vec::with_capacity(count);
    let mut salt = 0;
    while digests.len() < count {
        salt += 1;
        let digest = with_positions(1 << 62, 3 << 61, salt);
        let meets = digests.first().is_none_or(|&first| at(first) == at(digest));
        if meets && !digests.contains(&digest) {
            digests.push(digest);
        }
    }
    digests
}

/// So many digests whose two lines, or buckets, are the same in an aged table of so many (3 at least)
/// and fingerprints of so many bits. All fingerprints differ, where there are as many.
pub fn sharing(count: usize, cells: u64, fingerprint_bits: u32) -> Vec<Digest> {
    // The second follows from the first and a mixed fingerprint, see `Digest::probes` for the mixer.
    let sum = |fingerprint: u64| Digest::new(fingerprint.wrapping_sub(1), 1).probes(cells).next();
    let home = 1u64 << 62;
    let at_home = ((u128::from(home) * u128::from(cells)) >> 64) as u64;
    let wanted = Some((2 * at_home + 1) % cells);
    let last = u64::MAX >> (64 - fingerprint_bits);
    let meet = (0..=last).filter(|&fingerprint| sum(fingerprint) == wanted).take(count);
    let fingerprints: Vec<u64> = meet.collect();
    let digest = |(salt, &fingerprint): (u64, &u64)| {
        let salt = if fingerprint_bits < 64 { salt } else { 0 };
        Digest::new(home + salt, fingerprint << (64 - fingerprint_bits) | salt)
    };
    (0..).zip(fingerprints.iter().cycle()).take(count).map(digest).collect()
}

/// The same in the aged table, or the buckets, that a plan with slack 0 comes to.
pub fn for_plan(count: usize, plan: &Plan) -> Vec<Digest> {
    let stash = 32 * (8 + if is_timed(plan) { plan.capacity() / 512 } else { 0 });
    let cell_bits = match plan.structure() {
        Structure::AgedTable => 512,
        _ => 4 * u64::from(plan.cell_bits_and_hashes().0),
    };
    let cells = (plan.memory() - stash) * 8 / cell_bits;
    // The fewest bits that keep the rate, of 16 at least in a table.
    let least = if plan.structure() == Structure::AgedTable { 16 } else { 1 };
    let keys = plan.capacity() as f64;
    let keys = if is_timed(plan) { (keys * 17.0 / 16.0).ceil() + 8.0 } else { keys };
    let is_low = |bits: &i32| 2.0 * keys / cells as f64 * 0.5f64.powi(*bits) <= plan.fpr();
    let bits = (least..=64).find(is_low).unwrap_or(64);
    sharing(count, cells, bits.cast_unsigned())
}

fn is_timed(plan: &Plan) -> bool {
    matches!(plan.window(), lately::Window::Time { .. })
}
