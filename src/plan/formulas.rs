//! Rates of the structures, and the least space that any structure needs.

use crate::PlanError;

/// Share of set cells after `keys` keys set `hashes` of `cells` each: `1 - (1 - 1/m)^(k·n)`.
pub fn bloom_fill(cells: u64, hashes: u32, keys: f64) -> f64 {
    -libm::expm1(f64::from(hashes) * keys * libm::log1p(-1.0 / cells as f64))
}

/// False positive rate of a Bloom filter and, within a window, of a Time Bloom filter (Lee & Chung
/// 2011, Theorem 1): `(1 - (1 - 1/m)^(k·n))^k`.
pub fn bloom_fpr(cells: u64, hashes: u32, keys: f64) -> f64 {
    libm::pow(bloom_fill(cells, hashes, keys), f64::from(hashes))
}

/// The number of hashes that makes [`bloom_fpr`] least: `ln 2 · m / n`, rounded, at least 1
/// (Lee & Chung 2011, section 7).
pub fn bloom_hashes(cells: u64, keys: f64) -> u32 {
    libm::round(core::f64::consts::LN_2 * cells as f64 / keys).clamp(1.0, 64.0) as u32
}

/// False positive rate of a [`BlockedBloom`](crate::forever::BlockedBloom) filter: the keys of a block are Poisson distributed,
/// and each word of a block is a Bloom filter of 64 bits that `rounds` bits per key are set in.
pub fn blocked_fpr(blocks: u64, rounds: u32, keys: f64) -> f64 {
    let load = keys / blocks as f64;
    if load <= 0.0 {
        return 0.0;
    }
    // The bits of so many keys leave a word clear somewhere with a chance below 1e-26.
    if load > 4096.0 {
        return 1.0;
    }
    let deviation = libm::sqrt(load);
    let first = libm::floor(load - 12.0 * deviation).max(0.0) as u32;
    let last = (load + 12.0 * deviation + 40.0) as u32;
    // The chance of j keys in a block, and those that 1, 2, 3 given bits of a word stay clear: each
    // follows from the one before, and planning sums many such series.
    let j = f64::from(first);
    let mut chance = libm::exp(j * libm::log(load) - load - libm::lgamma(j + 1.0));
    let clear = [1.0, 2.0, 3.0].map(|bits| f64::from(rounds) * libm::log1p(-bits / 64.0));
    let a_key_more = clear.map(libm::exp);
    let mut clear = clear.map(|log| libm::exp(j * log));
    let mut rate = 0.0;
    for j in first..=last {
        let word = word_fpr(rounds, clear);
        let (squared, fourth) = (word * word, word * word * word * word);
        rate += chance * fourth * squared * squared;
        chance *= load / f64::from(j + 1);
        clear.iter_mut().zip(a_key_more).for_each(|(clear, more)| *clear *= more);
    }
    rate.min(1.0)
}

/// The chance that a new key's `rounds` bits of a word are all set, from the chances that one, two
/// and three given bits are clear.
///
/// The fill to the power of `rounds` would be too low: a word is small enough for its fill to vary.
fn word_fpr(rounds: u32, [one, two, three]: [f64; 3]) -> f64 {
    // That one, two, three different bits are all set.
    let set = [1.0 - one, 1.0 - 2.0 * one + two, 1.0 - 3.0 * one + 3.0 * two - three];
    // How many of the key's bits are different ones.
    let different = match rounds {
        1 => [1.0, 0.0, 0.0],
        2 => [1.0 / 64.0, 63.0 / 64.0, 0.0],
        _ => [1.0 / 4096.0, 3.0 * 63.0 / 4096.0, 63.0 * 62.0 / 4096.0],
    };
    set.iter().zip(different).map(|(set, chance)| set * chance).sum::<f64>().clamp(0.0, 1.0)
}

/// Bits that any structure needs which tells whether a key of `universe` many is among the last `w`
/// arrivals, for every `w ≤ n`, with this false positive rate: `(n - ε·|U|)·log2(n - ε·|U|)` (Liu,
/// Chen & Guan 2013, Theorem 3). It says something only where `ε·|U| < n`: 0 where not.
pub fn time_decaying_bound(n: u64, fpr: f64, universe: f64) -> f64 {
    let certain = n as f64 - fpr * universe;
    if certain > 1.0 { certain * libm::log2(certain) } else { 0.0 }
}

/// Bits that any structure needs which tells whether a key of an interval of `length` numbers is
/// among the last `n` arrivals: `n·(log2(1/ε) + log2(L) + log2(n))`, less `O(n)` (Wang et al. 2019,
/// Theorem 2). It holds for universes of at least `n·L/ε` numbers.
pub fn range_emptiness_bound(n: u64, fpr: f64, length: u64) -> f64 {
    let n = n as f64;
    n * (libm::log2(length as f64) + libm::log2(n) - libm::log2(fpr))
}

/// The number of hashes whose cells are half full at this rate.
pub(crate) fn hashes_for(fpr: f64) -> u32 {
    libm::round(-libm::log2(fpr)).clamp(1.0, 64.0) as u32
}

pub(crate) const TOO_LOW: PlanError = PlanError::TooLarge(
    "so low a false positive rate for so many keys needs a table larger than any memory",
);

/// The fewest cells whose fill after `keys` keys, and `margin` more, is `fpr^(1/hashes)`.
pub(crate) fn cells_for(keys: f64, hashes: u32, fpr: f64, margin: f64) -> Result<u64, PlanError> {
    let target = libm::pow(fpr, 1.0 / f64::from(hashes)) - margin;
    let cells = -f64::from(hashes) * keys / libm::log1p(-target);
    if !(target > 0.0 && cells < (1u64 << 56) as f64) {
        return Err(TOO_LOW);
    }
    // The formula takes (1 - 1/m)^(kn) for e^(-kn/m); one more cell per hash covers the difference.
    Ok(libm::ceil(cells) as u64 + u64::from(hashes))
}
