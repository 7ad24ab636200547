//! Lines of 25 bytes with an exact number of distinct ones.

use super::{Counted, Summary, mix};
use oorandom::Rand64;
use std::io::{self, Write};

/// How many lines, and how many different ones.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Total number of lines.
    pub records: u64,
    /// Number of distinct lines, exactly; from 1 to `records`.
    pub distinct: u64,
    /// Decides everything else.
    pub seed: u64,
}

impl Lines {
    /// Bytes of a line, newline included: 24 hexadecimal digits, as long as a 96-bit tag id.
    pub const LENGTH: usize = 25;

    /// The number of each line's text: 0 for the first text, then each new one is the next number.
    ///
    /// New texts come evenly over the stream (Knuth's selection sampling, so that their number is
    /// exact); a repeat is of any earlier text, each as likely.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        let mut random = Rand64::new(u128::from(self.seed));
        let mut texts = 0;
        (0..self.records).map(move |line| {
            let lines_left = self.records - line;
            let texts_left = self.distinct - texts;
            if texts == 0 || random.rand_range(0..lines_left) < texts_left {
                texts += 1;
                texts - 1
            } else {
                random.rand_range(0..texts)
            }
        })
    }

    /// Writes the lines.
    ///
    /// # Errors
    /// Those of the writer, and when `distinct` is out of range.
    pub fn write(self, out: impl Write) -> io::Result<Summary> {
        if !(1..=self.records).contains(&self.distinct) {
            let reason = "the number of distinct lines must lie between 1 and that of lines";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let mut out = Counted::new(out);
        let salt = mix(!self.seed);
        for number in self.numbers() {
            out.put(&line(number ^ salt))?;
        }
        Ok(Summary { records: self.records, distinct: self.distinct, bytes: out.finish()? })
    }
}

/// A text of its own for each number: the mixer is bijective, and its 16 digits come first.
fn line(number: u64) -> [u8; Lines::LENGTH] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let high = mix(number);
    let low = mix(high.rotate_left(32)) >> 32;
    let bits = u128::from(high) << 32 | u128::from(low);
    let mut line = [b'\n'; Lines::LENGTH];
    for (place, byte) in line[..24].iter_mut().enumerate() {
        *byte = DIGITS[(bits >> (92 - 4 * place)) as usize & 15];
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn as_many_as_asked_for_and_spread() {
        let lines = Lines { records: 80_000, distinct: 44_000, seed: 7 };
        let mut out = Vec::new();
        let summary = lines.write(&mut out).unwrap();
        assert_eq!(summary, Summary { records: 80_000, distinct: 44_000, bytes: 2_000_000 });
        assert_eq!(out.len(), 2_000_000);
        let (mut seen, mut fresh_in_first_half) = (HashSet::new(), 0);
        for (at, line) in out.chunks(25).enumerate() {
            assert_eq!(line.iter().position(|&byte| byte == b'\n'), Some(24));
            if seen.insert(line) && at < 40_000 {
                fresh_in_first_half += 1;
            }
        }
        assert_eq!(seen.len(), 44_000);
        assert!((21_000..23_000).contains(&fresh_in_first_half), "{fresh_in_first_half}");
    }

    #[test]
    fn extremes() {
        let count = |records, distinct| {
            let lines = Lines { records, distinct, seed: 1 };
            lines.numbers().collect::<HashSet<_>>().len()
        };
        assert_eq!((count(1, 1), count(100, 1), count(100, 100)), (1, 1, 100));
        assert!(Lines { records: 5, distinct: 6, seed: 1 }.write(io::sink()).is_err());
        assert!(Lines { records: 5, distinct: 0, seed: 1 }.write(io::sink()).is_err());
    }

    #[test]
    fn a_seed_decides_everything() {
        let write = |seed| {
            let mut out = Vec::new();
            Lines { records: 100, distinct: 50, seed }.write(&mut out).unwrap();
            out
        };
        assert_eq!(write(1), write(1));
        assert_ne!(write(1), write(2));
    }
}
