//! Numbers by Zipf's law.

use super::{Counted, Summary};
use oorandom::Rand64;
use std::collections::HashSet;
use std::io::{self, Write};

/// Draws numbers `1..=n`, number `i` with a chance proportional to `1 / i^z`.
///
/// *Cost:* constant memory, less than two rounds of a rejection loop a number.
///
/// *Reference:* W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    /// The integral of the density over the first half step and over all: the range inverted.
    low: f64,
    high: f64,
    /// Below this distance from the middle of its step a candidate needs no further test.
    sure: f64,
    random: Rand64,
}

impl Zipf {
    /// A generator over `1..=n` (n at least 1) with exponent `z ≥ 0`; 0 is uniform.
    pub fn new(n: u64, z: f64, seed: u64) -> Self {
        let mut zipf = Self {
            n: n.max(1) as f64,
            exponent: z,
            low: 0.0,
            high: 0.0,
            sure: 0.0,
            random: Rand64::new(u128::from(seed)),
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// Integral of the density from 1 to x; near z = 1, where `(x^(1-z) - 1) / (1-z)` loses its
    /// digits, by the exponential form.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power.abs() < 1e-8 { log * (1.0 + power / 2.0) } else { power.exp_m1() / power * log }
    }

    /// The x at which the integral has this value.
    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        let log = if scaled.abs() < 1e-8 {
            area * (1.0 - scaled / 2.0)
        } else {
            scaled.ln_1p() / scaled * area
        };
        log.exp()
    }
}

impl Iterator for Zipf {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let area = self.high + self.random.rand_float() * (self.low - self.high);
            let x = self.inverse(area);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.sure || area >= self.integral(k + 0.5) - self.density(k) {
                return Some(k as u64);
            }
        }
    }
}

/// Writes `records` numbers, one a line.
///
/// *Cost:* counting the distinct ones takes memory; nothing else does.
///
/// # Errors
/// Those of the writer.
pub fn write(zipf: Zipf, records: u64, out: impl Write) -> io::Result<Summary> {
    let mut out = Counted::new(out);
    let mut seen = HashSet::new();
    for number in zipf.take(usize::try_from(records).unwrap_or(usize::MAX)) {
        seen.insert(number);
        out.put(format!("{number}\n").as_bytes())?;
    }
    Ok(Summary { records, distinct: seen.len() as u64, bytes: out.finish()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number's count within five standard deviations of what the law says.
    #[test]
    fn follows_the_law() {
        const DRAWS: usize = 1_000_000;
        for z in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            for n in [1_u64, 2, 10, 1_000] {
                let mut counts = vec![0_u32; n as usize + 1];
                for number in Zipf::new(n, z, 42).take(DRAWS) {
                    counts[number as usize] += 1;
                }
                let total: f64 = (1..=n).map(|i| (i as f64).powf(-z)).sum();
                for i in 1..=n {
                    let p = (i as f64).powf(-z) / total;
                    let expected = DRAWS as f64 * p;
                    let sigma = (expected * (1.0 - p)).sqrt();
                    let off = (f64::from(counts[i as usize]) - expected).abs();
                    assert!(off <= 5.0 * sigma + 1.0, "z {z}, n {n}: {i} off by {off}");
                }
            }
        }
    }

    #[test]
    fn large_universes_stay_in_range() {
        for z in [0.0, 1.0, 2.0] {
            let most = Zipf::new(100_000_000, z, 1).take(100_000).max().unwrap();
            assert!(most <= 100_000_000);
        }
    }

    #[test]
    fn counts_what_it_writes() {
        let mut out = Vec::new();
        let summary = write(Zipf::new(50, 1.0, 3), 1_000, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(summary.records, text.lines().count() as u64);
        assert_eq!(summary.distinct, text.lines().collect::<HashSet<_>>().len() as u64);
    }
}
