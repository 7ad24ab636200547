//! Digests made so that keys meet in a table.

#![allow(unreachable_pub)]

use lately::Digest;

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
