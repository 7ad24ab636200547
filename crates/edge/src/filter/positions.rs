//! Sets of positions in as few bytes as they need.
//!
//! `0xFF`, then the bits themselves, least significant first; or a Rice parameter `r` (0 to 15), the
//! number of positions as a varint, then each gap to the next position in unary (gap >> r ones, a zero)
//! and `r` bits. Whichever is shorter is written. A filter of 1,437 bits never takes more than 181 bytes.

use alloc::vec::Vec;

const RAW: u8 = 0xFF;
const MAX_RICE: u8 = 15;

/// Writes positions, ascending and distinct, of a filter of that many bits.
pub(super) fn encode(positions: &[u32], bits: u32) -> Vec<u8> {
    let raw = bits.div_ceil(8) as usize;
    // The best parameter is near the logarithm of ln 2 times the mean gap.
    let mean = bits / (positions.len() as u32 + 1);
    let near = (mean * 7 / 10).checked_ilog2().unwrap_or(0).min(MAX_RICE.into()) as u8;
    let coded = |rice: u8| {
        let ones: usize = gaps(positions).map(|gap| (gap >> rice) as usize).sum();
        let coded = ones + positions.len() * (1 + usize::from(rice));
        coded.div_ceil(8) + varint_len(positions.len())
    };
    let tried = near.saturating_sub(1)..=(near + 1).min(MAX_RICE);
    let best = tried.map(|rice| (coded(rice), rice)).min();
    let Some((len, rice)) = best.filter(|&(len, _)| len < raw) else {
        return encode_raw(positions, raw);
    };
    let mut bytes = Vec::with_capacity(1 + len);
    bytes.push(rice);
    let mut count = positions.len();
    while count >= 0x80 {
        bytes.push(count as u8 | 0x80);
        count >>= 7;
    }
    bytes.push(count as u8);
    let mut out = BitWriter { bytes, waiting: 0, used: 0 };
    for gap in gaps(positions) {
        let mut ones = gap >> rice;
        while ones >= 32 {
            out.put(u32::MAX.into(), 32);
            ones -= 32;
        }
        out.put((1 << ones) - 1, ones + 1);
        out.put(u64::from(gap) & ((1 << rice) - 1), rice.into());
    }
    out.finish()
}

fn encode_raw(positions: &[u32], raw: usize) -> Vec<u8> {
    let mut bytes = alloc::vec![0; 1 + raw];
    bytes[0] = RAW;
    for &position in positions {
        if let Some(byte) = bytes.get_mut(1 + (position / 8) as usize) {
            *byte |= 1 << (position % 8);
        }
    }
    bytes
}

fn varint_len(count: usize) -> usize {
    1 + usize::from(count >= 0x80) + usize::from(count >= 0x4000)
}

fn gaps(positions: &[u32]) -> impl Iterator<Item = u32> {
    let before = core::iter::once(0).chain(positions.iter().map(|&position| position + 1));
    positions.iter().zip(before).map(|(&position, before)| position - before)
}

/// Reads positions, each given to `each`; `None` for bytes that [`encode`] does not write for a filter
/// of that many bits. Costs no memory, and time bounded by the filter's bits and the bytes.
pub(super) fn decode(bytes: &[u8], bits: u32, mut each: impl FnMut(u32)) -> Option<()> {
    let (&form, rest) = bytes.split_first()?;
    if form == RAW {
        if rest.len() != bits.div_ceil(8) as usize {
            return None;
        }
        for (&byte, at) in rest.iter().zip(0_u32..) {
            let mut left = byte;
            while left != 0 {
                let position = at * 8 + left.trailing_zeros();
                (position < bits).then(|| each(position))?;
                left &= left - 1;
            }
        }
        return Some(());
    }
    if form > MAX_RICE {
        return None;
    }
    let (mut count, mut shift, mut used) = (0_u32, 0, 0);
    for &byte in rest.iter().take(3) {
        count |= u32::from(byte & 0x7F) << shift;
        (shift, used) = (shift + 7, used + 1);
        if byte < 0x80 {
            break;
        }
    }
    if count > bits || rest.get(used.max(1) - 1)? & 0x80 != 0 {
        return None;
    }
    let mut input = BitReader { bytes: rest.get(used..)?, at: 0 };
    let mut next = 0_u32;
    for _ in 0..count {
        let gap = input.gap(form.into())?;
        let position = next.checked_add(gap).filter(|&position| position < bits)?;
        each(position);
        next = position + 1;
    }
    // No bytes more than that, and nothing in the last one.
    let left = input.bytes.len() * 8 - input.at;
    (left < 8 && input.window() == 0).then_some(())
}

/// Bits, the first ones lowest.
struct BitWriter {
    bytes: Vec<u8>,
    waiting: u64,
    /// How many bits wait: fewer than 8.
    used: u32,
}

impl BitWriter {
    /// Writes the lowest bits, at most 33.
    fn put(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.used;
        self.used += count;
        while self.used >= 8 {
            self.bytes.push(self.waiting as u8);
            self.waiting >>= 8;
            self.used -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.bytes.push(self.waiting as u8);
        }
        self.bytes
    }
}

/// Bits that a [`BitReader::window`] has at least.
const WINDOW: u32 = 57;

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// The next bits, the first one lowest; zeros past the end.
    #[inline]
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        word >> (self.at % 8)
    }

    /// A gap with that many bits after its zero.
    #[inline]
    fn gap(&mut self, rice: u32) -> Option<u32> {
        let window = self.window();
        let ones = window.trailing_ones();
        let (zero, low) = (ones + 1, (1 << rice) - 1);
        // Nearly always, one look is enough.
        if zero + rice <= WINDOW {
            self.skip(zero + rice)?;
            return ones.checked_mul(1 << rice).map(|high| high | (window >> zero) as u32 & low);
        }
        let mut high = 0;
        loop {
            let ones = self.window().trailing_ones().min(WINDOW);
            high += ones;
            self.skip(ones)?;
            if ones < WINDOW {
                break;
            }
        }
        self.skip(1)?;
        let low = self.window() as u32 & low;
        self.skip(rice)?;
        high.checked_mul(1 << rice).map(|high| high | low)
    }

    /// `None` when there are fewer.
    #[inline]
    fn skip(&mut self, bits: u32) -> Option<()> {
        self.at += bits as usize;
        (self.at <= self.bytes.len() * 8).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn reads_what_it_wrote(bits in 1_u32..=65_536, seeds in prop::collection::btree_set(any::<u32>(), 0..600)) {
            let positions: BTreeSet<u32> = seeds.into_iter().map(|seed| seed % bits).collect();
            let positions: Vec<u32> = positions.into_iter().collect();
            let bytes = encode(&positions, bits);
            prop_assert!(bytes.len() <= 1 + bits.div_ceil(8) as usize);
            let mut read = Vec::new();
            prop_assert_eq!(decode(&bytes, bits, |position| read.push(position)), Some(()));
            prop_assert_eq!(read, positions);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), bits in 1_u32..3_000) {
            let mut last = None;
            let _ = decode(&bytes, bits, |position| {
                assert!(position < bits && last.is_none_or(|last| position > last));
                last = Some(position);
            });
        }
    }

    #[test]
    fn sizes() {
        // 10 elements of 10 positions each, spread evenly: about 5 bits a position.
        let positions: Vec<u32> = (0..100).map(|at| at * 14 + at % 7).collect();
        assert!(encode(&positions, 1437).len() < 75);
        assert_eq!(encode(&[], 1437).len(), 2);
        let all: Vec<u32> = (0..1437).collect();
        assert_eq!(encode(&all, 1437).len(), 1 + 180);
    }
}
