//! Time that this thread had a processor for: what else runs on the machine does not count, except
//! through the memory and the caches it shares.

/// Seconds of processor time so far. Reading it takes a system call.
#[cfg(unix)]
pub(super) fn seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds so far; the processor's are not to be had.
#[cfg(not(unix))]
pub(super) fn seconds() -> f64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// What reading the clock twice adds to the time between: the median of many.
pub(super) fn overhead() -> f64 {
    let mut times: Vec<f64> = (0..1_001)
        .map(|_| {
            let start = seconds();
            seconds() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    #[test]
    fn goes_on_with_work_and_costs_little() {
        let start = super::seconds();
        let sum: u64 = (0..10_000_000_u64).map(|i| std::hint::black_box(i) & 1).sum();
        assert!(super::seconds() > start && sum > 0);
        assert!(super::overhead() < 1e-4);
    }
}
