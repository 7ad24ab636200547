//! Bits per key of structures that we cannot measure, by their own formulas: what `docs/papers.md` compares ours with.

/// SWAMP (Assaf et al. 2018): a ring of the `n` newest fingerprints of `log2(n/ε)` bits, and a TinyTable that counts
/// them, with a fifth more slots than fingerprints, each of `log2(1/ε)` bits and three more.
pub fn swamp(n: f64, fpr: f64) -> f64 {
    (n / fpr).log2().ceil() + 1.2 * ((1.0 / fpr).log2() + 3.0)
}

/// An age-partitioned Bloom filter (Shtul et al. 2020) of `k + l` slices that remembers `l` generations, with a slack
/// of one: each slice is half full with `k` generations, and a window has `l`.
pub fn age_partitioned(k: u32, l: u32) -> f64 {
    let (k, l) = (f64::from(k), f64::from(l));
    (k + l) * k / (l * std::f64::consts::LN_2)
}

/// Its false positive rate when the newest generation is complete: the chance that `k` slices in a row have a bit
/// set, where the newest are not as full as the others.
pub fn age_partitioned_fpr(k: u32, l: u32) -> f64 {
    // The chance of each length of the row that ends here, and that there was one of k.
    let mut rows = vec![0.0; k as usize + 1];
    rows[0] = 1.0;
    for slice in 0..k + l {
        let generations = f64::from((slice + 1).min(k));
        let set = 1.0 - (-generations / f64::from(k)).exp2();
        let mut next = vec![0.0; rows.len()];
        for (length, chance) in rows.iter().enumerate().take(k as usize) {
            next[0] += chance * (1.0 - set);
            next[length + 1] += chance * set;
        }
        next[k as usize] += rows[k as usize];
        rows = next;
    }
    rows[k as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_papers_page() {
        let rounded = |bits: f64| (10.0 * bits).round() / 10.0;
        assert_eq!(rounded(swamp(1e6, 1e-3)), 45.6);
        // The fewest slices of a slack of an eighth, and as many as make the filter smallest.
        assert_eq!(
            [rounded(age_partitioned(11, 8)), rounded(age_partitioned(16, 139))],
            [37.7, 25.7]
        );
        for (k, l) in [(11, 8), (16, 139)] {
            let (fpr, fewer) = (age_partitioned_fpr(k, l), age_partitioned_fpr(k - 1, l));
            assert!(fpr <= 1e-3 && fewer > 1e-3, "{k} {l}: {fpr} {fewer}");
        }
        let smallest = (2..40)
            .flat_map(|k| (8..200).map(move |l| (k, l)))
            .filter(|&(k, l)| age_partitioned_fpr(k, l) <= 1e-3)
            .min_by(|a, b| age_partitioned(a.0, a.1).total_cmp(&age_partitioned(b.0, b.1)));
        assert_eq!(smallest, Some((16, 139)));
    }
}
