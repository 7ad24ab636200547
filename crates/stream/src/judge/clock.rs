//! The stream clock: what "now" is to records that bring their own time.

use lately::Tick;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Later records that are asked whether a leap in time is to be believed.
pub const LOOK_AHEAD: usize = 64;

/// The largest event time seen, guarded against single wild stamps.
///
/// # Guarantee
/// It never goes back. A record no more than `lateness` behind it is judged at the clock's present
/// time; an older one is late. A record more than `max_skew` ahead moves the clock only if the
/// records after it follow: a night without records is a leap that is believed, one reader with a
/// wrong date is not.
///
/// The answer depends on the records alone, not on when the file is read, except where no later
/// record is at hand (a slow live stream): then a stamp is believed if it is not ahead of the wall
/// clock.
#[derive(Clone, Debug)]
pub struct StreamClock {
    now: Option<u64>,
    lateness: u64,
    max_skew: u64,
}

/// Where a record lies in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// To be judged at this moment.
    At(Tick),
    /// Too far behind the clock to be judged.
    Late,
    /// Too far ahead to be believed.
    Skewed,
}

impl StreamClock {
    /// A clock that has seen nothing. All in nanoseconds.
    pub fn new(lateness: u64, max_skew: u64) -> Self {
        Self { now: None, lateness, max_skew }
    }

    /// The largest time believed so far.
    pub fn now(&self) -> Option<Tick> {
        self.now.map(Tick)
    }

    /// Resumes from the clock of a saved state.
    pub fn resume(&mut self, now: Tick) {
        self.now = self.now.max(Some(now.0));
    }

    /// The moment of a record that brings no time: when it arrives. The clock follows, so that
    /// records of an older time, in another input of the same run, are late and never judged as if
    /// they were of today.
    pub fn arrive(&mut self, arrival: Tick) -> Tick {
        let now = self.now.map_or(arrival.0, |now| now.max(arrival.0));
        self.now = Some(now);
        Tick(now)
    }

    /// Places a record in time. `later` are the times of the records after it that are at hand,
    /// `wall` tells the time of day; both are asked only at a leap.
    pub fn place<I: Iterator<Item = u64>>(
        &mut self,
        time: u64,
        wall: impl FnOnce() -> u64,
        later: impl FnOnce() -> I,
    ) -> Timing {
        match self.now {
            Some(now) if time <= now => {
                return if now - time <= self.lateness {
                    Timing::At(Tick(now))
                } else {
                    Timing::Late
                };
            }
            Some(now) if time - now <= self.max_skew => {}
            _ if self.is_wild(time, wall(), later()) => return Timing::Skewed,
            _ => {}
        }
        self.now = Some(time);
        Timing::At(Tick(time))
    }

    /// Do the records that follow speak against this time?
    fn is_wild(&self, time: u64, wall: u64, later: impl Iterator<Item = u64>) -> bool {
        let (mut asked, mut against) = (0u32, 0u32);
        for other in later.take(LOOK_AHEAD) {
            asked += 1;
            against += u32::from(time.saturating_sub(other) > self.max_skew);
        }
        let ahead_of_wall = time > wall.saturating_add(self.max_skew);
        match asked {
            0 => ahead_of_wall,
            // Nobody is ahead of the wall clock rightly, so less doubt is enough there.
            _ if ahead_of_wall => against * 4 >= asked,
            _ => against * 4 >= asked * 3,
        }
    }
}

/// The clock of records that bring no time: when they arrive.
///
/// # Guarantee
/// It begins at the time of day and then goes at the true rate, whatever becomes of the time of
/// day. Where the stream clock is ahead of it (the time of day was wrong before, or records of a
/// later time came first) it continues from there: if it waited for its own time to catch up, all
/// that arrives would have one time, no key would expire, and what is new would be dropped.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    start: u64,
    since: Instant,
}

impl ArrivalClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self { start: wall_clock(), since: Instant::now() }
    }

    /// The present moment, which is not before `floor`.
    pub fn now(&mut self, floor: Option<Tick>) -> Tick {
        let elapsed = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = self.start.saturating_add(elapsed);
        let behind = floor.map_or(0, |floor| floor.0.saturating_sub(now));
        self.start = self.start.saturating_add(behind);
        Tick(now.saturating_add(behind))
    }
}

/// Nanoseconds since 1970.
pub fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;
    /// 2022-01-01, long before any wall clock these tests meet.
    const Y2022: u64 = 1_640_995_200 * S;
    const WALL: u64 = 1_800_000_000 * S;

    fn places(clock: &mut StreamClock, times: &[u64]) -> Vec<Timing> {
        (0..times.len())
            .map(|i| clock.place(times[i], || WALL, || times[i + 1..].iter().copied()))
            .collect()
    }

    fn clock() -> StreamClock {
        StreamClock::new(10 * S, HOUR)
    }

    #[test]
    fn case_t2_one_wild_stamp_does_not_move_the_clock() {
        for start in [Y2022, WALL] {
            let mut times: Vec<u64> = (0..10).map(|i| start + i * S).collect();
            times.insert(3, start + 24 * HOUR);
            let found = places(&mut clock(), &times);
            assert_eq!(found[3], Timing::Skewed);
            assert_eq!(found.iter().filter(|p| matches!(p, Timing::At(_))).count(), 10);
        }
        // Also when it is the very first.
        let times: Vec<u64> =
            [Y2022 + 24 * HOUR].into_iter().chain((0..10).map(|i| Y2022 + i * S)).collect();
        let found = places(&mut clock(), &times);
        assert_eq!(found[0], Timing::Skewed);
        assert!(found[1..].iter().all(|p| matches!(p, Timing::At(_))));
    }

    #[test]
    fn case_t2_a_reader_a_day_ahead_of_the_wall_clock_is_never_believed() {
        let times: Vec<u64> =
            (0..100).map(|i| WALL + i * S + if i % 2 == 0 { 24 * HOUR } else { 0 }).collect();
        let found = places(&mut clock(), &times);
        assert!(found.iter().step_by(2).take(45).all(|&p| p == Timing::Skewed));
        assert!(found.iter().skip(1).step_by(2).all(|p| matches!(p, Timing::At(_))));
    }

    #[test]
    fn case_t3_lateness_0_at_the_newest_time_is_not_late() {
        let mut clock = StreamClock::new(0, HOUR);
        let found = places(&mut clock, &[Y2022, Y2022, Y2022 - 1]);
        assert_eq!(found, [Timing::At(Tick(Y2022)), Timing::At(Tick(Y2022)), Timing::Late]);
    }

    #[test]
    fn case_t4_a_backlog_among_live_records_is_late() {
        let live = |i: u64| WALL - HOUR + i * S;
        let backlog = |i: u64| WALL - 8760 * HOUR + i * S;
        let times: Vec<u64> =
            (0..50).map(|i| if i % 2 == 1 { backlog(i) } else { live(i) }).collect();
        let found = places(&mut clock(), &times);
        assert!(found.iter().step_by(2).all(|p| matches!(p, Timing::At(_))));
        assert!(found.iter().skip(1).step_by(2).all(|&p| p == Timing::Late));
        // The backlog first: the clock leaps to the live records, whose time is not in the future.
        let times: Vec<u64> =
            (0..50).map(|i| if i % 2 == 0 { backlog(i) } else { live(i) }).collect();
        let found = places(&mut clock(), &times);
        assert!(found.iter().skip(1).step_by(2).all(|p| matches!(p, Timing::At(_))));
        assert!(found.iter().skip(2).step_by(2).all(|&p| p == Timing::Late));
    }

    #[test]
    fn a_night_without_records_is_believed() {
        let times: Vec<u64> = (0..5).chain(40_000..40_005).map(|s| Y2022 + s * S).collect();
        assert!(places(&mut clock(), &times).iter().all(|p| matches!(p, Timing::At(_))));
        // And with nothing after it, unless it is in the future.
        let mut clock = clock();
        let _ = clock.place(Y2022, || WALL, std::iter::empty);
        let leap = clock.place(Y2022 + 30 * HOUR, || WALL, std::iter::empty);
        assert_eq!(leap, Timing::At(Tick(Y2022 + 30 * HOUR)));
        assert_eq!(clock.place(WALL + 2 * HOUR, || WALL, std::iter::empty), Timing::Skewed);
    }

    #[test]
    fn arrivals_go_on_at_the_true_rate_from_a_clock_that_is_ahead() {
        let mut arrivals = ArrivalClock::start();
        let first = arrivals.now(None);
        let ahead = Tick(first.0 + 100 * HOUR);
        assert_eq!(arrivals.now(Some(ahead)), ahead);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let later = arrivals.now(Some(ahead));
        assert!(later.0 >= ahead.0 + S / 50 && later.0 < ahead.0 + HOUR, "{later:?}");
        assert!(arrivals.now(None) >= later);
    }

    #[test]
    fn a_record_within_lateness_is_judged_at_the_present() {
        let found = places(&mut clock(), &[Y2022, Y2022 - 10 * S, Y2022 - 10 * S - 1]);
        assert_eq!(found, [Timing::At(Tick(Y2022)), Timing::At(Tick(Y2022)), Timing::Late]);
    }
}
