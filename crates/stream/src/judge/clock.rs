//! The stream clock: what "now" is to records that bring their own time.

use crate::judge::timeline::Timeline;
use lately::Tick;

/// Later records that are asked whether a leap in time is to be believed.
pub const LOOK_AHEAD: usize = 64;

/// The fewest records in a row that can overrule the clock.
pub const OVERRULE: u64 = 64;

/// The largest event time believed so far, guarded against wrong timestamps.
///
/// # Guarantee
/// A record no more than `lateness` behind the clock is judged at its own time; an older one is late.
///
/// A record more than `max_skew` (or the lateness, if that is longer) ahead moves the clock only if the
/// records after it follow, of which it takes two to tell: a night
/// without records is a leap that is believed, one reader with a wrong date is not. In a stream that
/// keeps pace with the wall clock, no record ahead of that by more than `max_skew` is believed, until
/// a majority of them is.
///
/// A clock that was wrong all the same comes back: when more records in a row contradict it than have
/// agreed with it since its last leap, and no fewer than [`OVERRULE`], it is set to what they say. It
/// goes back ([`Timing::SteppedBack`]) or forward by that rule; in between, those records are late or
/// skewed, which loses none of them.
///
/// The answer depends on the records alone, not on when the file is read, except at leaps ahead of
/// the wall clock, and where no later record is at hand (a slow live stream): then a time is believed
/// if it is not ahead of the wall clock.
#[derive(Clone, Debug)]
pub struct StreamClock {
    now: Option<u64>,
    lateness: u64,
    max_skew: u64,
    /// Records that agreed with the clock since its last leap.
    support: u64,
    against: Against,
}

/// Records in a row that contradict the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Against {
    /// All of them are behind it, or all ahead.
    behind: bool,
    count: u64,
    newest: u64,
}

/// What the clock says of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// To be judged at this moment.
    At(Tick),
    /// The clock was wrong and has been set back; the record is judged at this moment. What was
    /// remembered at later moments belongs to a time that never was.
    SteppedBack(Tick),
    /// Too far behind the clock to be judged.
    Late,
    /// Too far ahead to be believed.
    Skewed,
}

impl StreamClock {
    /// A clock that has seen nothing. All in nanoseconds; times are ticks of a [`Timeline`].
    pub fn new(lateness: u64, max_skew: u64) -> Self {
        Self { now: None, lateness, max_skew, support: 0, against: Against::default() }
    }

    /// The largest time believed so far.
    pub fn now(&self) -> Option<Tick> {
        self.now.map(Tick)
    }

    /// How far behind the clock a record may be to be judged.
    pub fn lateness(&self) -> u64 {
        self.lateness
    }

    /// How many records have agreed with the clock since its last leap.
    pub fn support(&self) -> u64 {
        self.support
    }

    /// Sets the clock on from a saved state: its time, and how many records had agreed with it.
    pub fn resume(&mut self, now: Tick, support: u64) {
        self.now = self.now.max(Some(now.0));
        self.support = support;
    }

    /// The moment of a record that brings no time: when it arrives. The clock goes along, so that
    /// records of an older time, in another input of the same run, are late and never judged as if
    /// they were of today.
    pub fn arrive(&mut self, arrival: Tick) -> Tick {
        let now = self.now.map_or(arrival.0, |now| now.max(arrival.0));
        self.now = Some(now);
        Tick(now)
    }

    /// Places a record in time. `later` are the times of the records after it that are at hand,
    /// `wall` tells the present by the system's clock; both are asked only at a leap.
    pub fn place<I: Iterator<Item = u64>>(
        &mut self,
        time: u64,
        wall: impl FnOnce() -> u64,
        later: impl FnOnce() -> I,
    ) -> Timing {
        if let Some(at) = self.place_near(time) {
            return Timing::At(at);
        }
        if self.now.is_some_and(|now| time <= now) {
            let overruled = self.is_overruled(true, time);
            let newest = self.against.newest;
            if overruled && newest - time <= self.lateness {
                self.leap(newest);
                return Timing::SteppedBack(Tick(time));
            }
            return Timing::Late;
        }
        if self.is_wild(time, wall(), later()) && !self.is_overruled(false, time) {
            return Timing::Skewed;
        }
        self.leap(time);
        self.support = 1;
        Timing::At(Tick(time))
    }

    /// [`Self::place`] for a time that neither contradicts the clock nor is a leap, as almost all are.
    #[inline]
    pub(crate) fn place_near(&mut self, time: u64) -> Option<Tick> {
        let now = self.now?;
        if time > now {
            if time - now > self.harmless() {
                return None;
            }
            self.now = Some(time);
        } else if now - time > self.lateness {
            return None;
        }
        self.support += 1;
        self.against.count = 0;
        Some(Tick(time))
    }

    /// Is this a leap, so that the records that follow are asked about it?
    pub(crate) fn is_leap(&self, time: u64) -> bool {
        self.now.is_none_or(|now| time.saturating_sub(now) > self.harmless())
    }

    /// A leap that is believed of any record: one that makes no other late does no harm.
    fn harmless(&self) -> u64 {
        if self.lateness == u64::MAX { self.max_skew } else { self.max_skew.max(self.lateness) }
    }

    fn leap(&mut self, to: u64) {
        self.now = Some(to);
        self.support = 0;
        self.against = Against::default();
    }

    /// Counts a record against the clock. Are there enough of them in a row?
    fn is_overruled(&mut self, behind: bool, time: u64) -> bool {
        if self.against.behind != behind || self.against.count == 0 {
            self.against = Against { behind, count: 0, newest: time };
        }
        self.against.count += 1;
        self.against.newest = self.against.newest.max(time);
        self.against.count > self.support.max(OVERRULE)
    }

    /// Do the wall clock or the records that follow speak against this time?
    fn is_wild(&self, time: u64, wall: u64, later: impl Iterator<Item = u64>) -> bool {
        let ahead_of_wall = time > wall.saturating_add(self.max_skew);
        // A live stream has shown that the wall clock is right.
        let live = |now: u64| now.abs_diff(wall) <= self.max_skew;
        if ahead_of_wall && self.now.is_some_and(live) {
            return true;
        }
        let (mut asked, mut against) = (0u32, 0u32);
        for other in later.take(LOOK_AHEAD) {
            asked += 1;
            against += u32::from(time.saturating_sub(other) > self.harmless());
        }
        match asked {
            // One against one says nothing.
            0 | 1 => ahead_of_wall,
            // Nobody is ahead of the wall clock rightly, so less doubt is enough there.
            _ if ahead_of_wall => against * 4 >= asked,
            // No record has shown yet that the stream is there, and many show that it is not.
            _ if self.now.is_none() && asked as usize == LOOK_AHEAD => against * 3 >= asked * 2,
            _ => against * 4 >= asked * 3,
        }
    }
}

/// The clock of records that bring no time: when they arrive.
///
/// # Guarantee
/// It begins at the time of day and then goes at the true rate, whatever becomes of the time of
/// day, and also while the machine sleeps (on Linux). Where the stream clock is ahead of it (the time
/// of day was wrong before, or records of a later time came first) it resumes from there: if it waited
/// for its own time to catch up, all that arrives would have one time, no key would expire, and what
/// is new would be dropped.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    start: u64,
    since: u64,
}

impl ArrivalClock {
    /// A clock that begins now, on this line.
    pub fn start(line: Timeline) -> Self {
        Self { start: line.now().0, since: running() }
    }

    /// The present moment, which is not before `floor`.
    pub fn now(&mut self, floor: Option<Tick>) -> Tick {
        self.at(running(), floor)
    }

    fn at(&mut self, running: u64, floor: Option<Tick>) -> Tick {
        let now = self.start.saturating_add(running.saturating_sub(self.since));
        let behind = floor.map_or(0, |floor| floor.0.saturating_sub(now));
        self.start = self.start.saturating_add(behind);
        Tick(now.saturating_add(behind))
    }
}

/// Nanoseconds that the machine has run, those asleep included.
#[cfg(target_os = "linux")]
fn running() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn running() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;
    /// 2022-01-01, long before any wall clock these tests meet.
    const Y2022: u64 = 1_640_995_200 * S;
    const WALL: u64 = 1_800_000_000 * S;

    fn timings(clock: &mut StreamClock, times: &[u64]) -> Vec<Timing> {
        timings_at(clock, times, |_| WALL)
    }

    fn timings_at(
        clock: &mut StreamClock,
        times: &[u64],
        wall: impl Fn(usize) -> u64,
    ) -> Vec<Timing> {
        (0..times.len())
            .map(|i| clock.place(times[i], || wall(i), || times[i + 1..].iter().copied()))
            .collect()
    }

    fn is_judged(timing: &Timing) -> bool {
        matches!(timing, Timing::At(_) | Timing::SteppedBack(_))
    }

    fn clock() -> StreamClock {
        StreamClock::new(10 * S, HOUR)
    }

    #[test]
    fn case_t2_one_wild_stamp_does_not_move_the_clock() {
        for start in [Y2022, WALL] {
            let mut times: Vec<u64> = (0..10).map(|i| start + i * S).collect();
            times.insert(3, start + 24 * HOUR);
            let found = timings(&mut clock(), &times);
            assert_eq!(found[3], Timing::Skewed);
            assert_eq!(found.iter().filter(|timing| is_judged(timing)).count(), 10);
        }
        // Also when it is the very first.
        let times: Vec<u64> =
            [Y2022 + 24 * HOUR].into_iter().chain((0..10).map(|i| Y2022 + i * S)).collect();
        let found = timings(&mut clock(), &times);
        assert_eq!(found[0], Timing::Skewed);
        assert!(found[1..].iter().all(is_judged));
    }

    #[test]
    fn wild_stamps_that_begin_a_stream_do_not_start_its_clock() {
        let wild = (0..20).map(|i| Y2022 + 8760 * HOUR + i * S);
        let times: Vec<u64> = wild.chain((0..300).map(|i| Y2022 + i * S)).collect();
        let found = timings(&mut clock(), &times);
        assert!(found[..20].iter().all(|&timing| timing == Timing::Skewed));
        assert!(found[20..].iter().all(|timing| matches!(timing, Timing::At(_))));
    }

    #[test]
    fn case_t2_a_reader_a_day_ahead_of_the_wall_clock_is_never_believed() {
        let times: Vec<u64> =
            (0..1000).map(|i| WALL + i * S + if i % 2 == 0 { 24 * HOUR } else { 0 }).collect();
        let found = timings_at(&mut clock(), &times, |i| WALL + i as u64 * S);
        assert!(found.iter().step_by(2).all(|&timing| timing == Timing::Skewed));
        assert!(found.iter().skip(1).step_by(2).all(is_judged));
    }

    #[test]
    fn case_t3_lateness_0_at_the_newest_time_is_not_late() {
        let mut clock = StreamClock::new(0, HOUR);
        let found = timings(&mut clock, &[Y2022, Y2022, Y2022 - 1]);
        assert_eq!(found, [Timing::At(Tick(Y2022)), Timing::At(Tick(Y2022)), Timing::Late]);
    }

    #[test]
    fn case_t4_a_backlog_among_live_records_is_late() {
        let live = |i: u64| WALL - HOUR + i * S;
        let backlog = |i: u64| WALL - 8760 * HOUR + i * S;
        let times: Vec<u64> =
            (0..50).map(|i| if i % 2 == 1 { backlog(i) } else { live(i) }).collect();
        let found = timings(&mut clock(), &times);
        assert!(found.iter().step_by(2).all(is_judged));
        assert!(found.iter().skip(1).step_by(2).all(|&timing| timing == Timing::Late));
        // The backlog first: the clock leaps to the live records, whose time is not in the future.
        let times: Vec<u64> =
            (0..50).map(|i| if i % 2 == 0 { backlog(i) } else { live(i) }).collect();
        let found = timings(&mut clock(), &times);
        assert!(found.iter().skip(1).step_by(2).all(is_judged));
        assert!(found.iter().skip(2).step_by(2).all(|&timing| timing == Timing::Late));
    }

    #[test]
    fn a_night_without_records_is_believed() {
        let times: Vec<u64> = (0..5).chain(40_000..40_005).map(|s| Y2022 + s * S).collect();
        assert!(timings(&mut clock(), &times).iter().all(is_judged));
        // And with nothing after it, unless it is in the future.
        let mut clock = clock();
        let _ = clock.place(Y2022, || WALL, std::iter::empty);
        let leap = clock.place(Y2022 + 30 * HOUR, || WALL, std::iter::empty);
        assert_eq!(leap, Timing::At(Tick(Y2022 + 30 * HOUR)));
        assert_eq!(clock.place(WALL + 2 * HOUR, || WALL, std::iter::empty), Timing::Skewed);
    }

    #[test]
    fn a_burst_of_2038_does_not_move_a_live_clock() {
        let live = |i: u64| WALL + i * S;
        let mut times: Vec<u64> = (0..1000).map(live).collect();
        times.extend([2_145_916_800 * S; 100]);
        times.extend((1000..3000).map(live));
        let found = timings_at(&mut clock(), &times, |i| live(i as u64));
        assert_eq!(found.iter().filter(|&&timing| timing == Timing::Skewed).count(), 100);
        assert!(found[..1000].iter().chain(&found[1100..]).all(is_judged));
    }

    #[test]
    fn a_clock_that_was_wrong_comes_back() {
        // Recorded in 2022, so that the wall clock cannot tell.
        let mut times: Vec<u64> = (0..1000).map(|i| Y2022 + i * S).collect();
        times.extend((0..100).map(|i| Y2022 + 24 * HOUR + i));
        times.extend((1000..3000).map(|i| Y2022 + i * S));
        let found = timings(&mut clock(), &times);
        let late = found.iter().filter(|&&timing| timing == Timing::Late).count();
        assert_eq!(late, 100, "as many as agreed with the wrong time");
        assert_eq!(found[1200], Timing::SteppedBack(Tick(Y2022 + 1100 * S)));
        assert!(found[1201..].iter().all(|timing| matches!(timing, Timing::At(_))));
    }

    #[test]
    fn a_source_that_really_moved_ahead_is_believed_in_the_end() {
        // Local time taken for UTC, from some moment on.
        let live = |i: u64| WALL + i * S;
        let times: Vec<u64> =
            (0..1000).map(|i| if i < 200 { live(i) } else { live(i) + 2 * HOUR }).collect();
        let found = timings_at(&mut clock(), &times, |i| live(i as u64));
        assert_eq!(found.iter().filter(|&&timing| timing == Timing::Skewed).count(), 200);
        assert!(found[400..].iter().all(is_judged));
    }

    #[test]
    fn two_readers_in_turns_do_not_move_the_clock_to_and_fro() {
        let mut times = Vec::new();
        for round in 0..20 {
            times.extend((0..200).map(|i| Y2022 + (200 * round + i) * S));
            times.extend((0..200).map(|i| Y2022 - HOUR + (200 * round + i) * S));
        }
        let found = timings(&mut clock(), &times);
        assert!(found.iter().all(|timing| !matches!(timing, Timing::SteppedBack(_))));
    }

    #[test]
    fn arrivals_resume_at_the_true_rate_from_a_clock_that_is_ahead() {
        let mut arrivals = ArrivalClock::start(Timeline::default());
        let begin = arrivals.since;
        let first = arrivals.at(begin, None);
        let ahead = Tick(first.0 + 100 * HOUR);
        assert_eq!(arrivals.at(begin, Some(ahead)), ahead);
        // Also over a night asleep, in which the machine's own count goes on.
        assert_eq!(arrivals.at(begin + 8 * HOUR, Some(ahead)), Tick(ahead.0 + 8 * HOUR));
        assert!(arrivals.now(None) >= ahead);
    }

    #[test]
    fn a_record_within_lateness_is_judged_at_its_own_time() {
        let found = timings(&mut clock(), &[Y2022, Y2022 - 10 * S, Y2022 - 10 * S - 1]);
        assert_eq!(
            found,
            [Timing::At(Tick(Y2022)), Timing::At(Tick(Y2022 - 10 * S)), Timing::Late]
        );
    }
}
