//! Parts of a cache line at any bit: read, changed, and moved up and down.

use crate::bits::lines::Line;

/// Those of a word's bits that lie below a place, which may be its end.
#[inline(always)]
pub(crate) fn below(place: usize) -> u64 {
    if place >= 64 { u64::MAX } else { (1 << place) - 1 }
}

/// `width` bits (1 to 64) of a line.
#[inline(always)]
pub(crate) fn bits(line: &Line, from: usize, width: u32) -> u64 {
    let (word, shift) = (from / 64 % 8, from % 64);
    let next = line.get(word + 1).copied().unwrap_or(0);
    (line[word] >> shift | next << 1 << (63 - shift)) & u64::MAX >> (64 - width)
}

/// Changes those bits that are set in `value`.
#[inline(always)]
pub(crate) fn set(line: &mut Line, from: usize, value: u64) {
    let (word, shift) = (from / 64 % 8, from % 64);
    line[word] ^= value << shift;
    if let Some(next) = line.get_mut(word + 1) {
        *next ^= value >> 1 >> (63 - shift);
    }
}

/// Moves the bits from `from + by` to `end` down to `from`, and zeroes those that get free.
#[inline(always)]
pub(crate) fn close(line: &mut Line, from: usize, by: usize, end: usize) {
    let (first, last) = (from / 64, (end - 1) / 64 % 8);
    let (low, high) = (below(from % 64), below(end - last * 64));
    let (kept_low, kept_high) = (line[first] & low, line[last] & !high);
    line[last] &= high;
    let (words, shift) = (by / 64, by % 64);
    for at in first..=last {
        let word = |at: usize| if at <= last { line[at] } else { 0 };
        line[at] = word(at + words) >> shift | word(at + words + 1) << 1 << (63 - shift);
    }
    line[first] = line[first] & !low | kept_low;
    line[last] |= kept_high;
}

/// Moves the bits from `from` to `end - by` up by `by`, and zeroes those that get free.
#[inline(always)]
pub(crate) fn open(line: &mut Line, from: usize, by: usize, end: usize) {
    let (first, last) = (from / 64, (end - 1) / 64 % 8);
    let (low, high) = (below(from % 64), below(end - last * 64));
    let (kept_low, kept_high) = (line[first] & low, line[last] & !high);
    line[first] &= !low;
    let (words, shift) = (by / 64, by % 64);
    for at in (first..=last).rev() {
        let word = |down: usize| if at >= first + down { line[at - down] } else { 0 };
        line[at] = word(words) << shift | word(words + 1) >> 1 >> (63 - shift);
    }
    line[last] = line[last] & high | kept_high;
    line[first] = line[first] & !low | kept_low;
}
