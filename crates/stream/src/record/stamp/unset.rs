//! What programs write for "never" or "not set". Taken for a moment, it would put a stream's clock
//! out of order.

const S: i64 = 1_000_000_000;

/// Whether nanoseconds since 1970 are 0, or within the second of the largest or smallest number of 64
/// bits.
pub(super) fn nanos(nanos: i64) -> bool {
    nanos == 0 || nanos / S == i64::MAX / S || nanos / S == i64::MIN / S
}

/// Whether a date is the first or last of a calendar.
pub(super) fn date(year: i32, month: i32, day: i32) -> bool {
    matches!((year, month, day), (0, 0, 0) | (1, 1, 1) | (9999, 12, 31))
}

/// Whether a number is the largest or smallest of 64 bits, also when a float rounded it, or
/// 9999-12-31 in any unit.
pub(super) fn number(negative: bool, integer: u128) -> bool {
    const SIGNED: u128 = 1 << 63;
    const UNSIGNED: u128 = 1 << 64;
    // A float has 53 bits, and is printed with 16 or 17 digits.
    let near = |limit: u128| integer.abs_diff(limit) <= limit >> 49;
    if negative {
        return near(SIGNED);
    }
    // In seconds, with a day on either side for the zone.
    let last = 253_402_128_000..=253_402_387_200;
    let is_last_day = |unit: u128| last.contains(&(integer / unit));
    near(SIGNED)
        || near(UNSIGNED)
        || [1, 1000, 1_000_000, 1_000_000_000].into_iter().any(is_last_day)
}
