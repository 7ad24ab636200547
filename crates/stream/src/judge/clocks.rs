//! The clock of a stream: one for all its records, or one for each source (`--clock-by`).

use crate::judge::clock::{StreamClock, Timing};
use lately::Tick;
use std::collections::HashMap;

/// The clock by which records are judged.
#[derive(Clone, Debug)]
pub enum Clock {
    /// One for the whole stream.
    Shared(StreamClock),
    /// One for each source.
    BySource(Clocks),
}

impl Clock {
    /// The newest moment so far.
    pub fn now(&self) -> Option<Tick> {
        match self {
            Self::Shared(clock) => clock.now(),
            Self::BySource(clocks) => clocks.now(),
        }
    }

    /// How far behind the newest moment a record may be to be judged.
    pub fn lateness(&self) -> u64 {
        match self {
            Self::Shared(clock) => clock.lateness(),
            Self::BySource(clocks) => clocks.lateness,
        }
    }

    /// How many records have agreed with the clock since its last leap; see [`StreamClock`].
    pub fn support(&self) -> u64 {
        match self {
            Self::Shared(clock) => clock.support(),
            Self::BySource(_) => 0,
        }
    }

    /// The clocks of the sources, if each has its own.
    pub fn sources(&self) -> Option<&Clocks> {
        match self {
            Self::Shared(_) => None,
            Self::BySource(clocks) => Some(clocks),
        }
    }

    /// May the records that follow be asked about one of this time?
    pub(crate) fn is_leap(&self, time: u64) -> bool {
        match self {
            Self::Shared(clock) => clock.is_leap(time),
            Self::BySource(_) => true,
        }
    }

    /// Advances to the moment at which a record without a time arrives. See [`StreamClock::arrive`].
    pub fn arrive(&mut self, arrival: Tick) -> Tick {
        match self {
            Self::Shared(clock) => clock.arrive(arrival),
            Self::BySource(clocks) => clocks.arrive(arrival),
        }
    }

    /// Resumes from a saved state.
    pub(crate) fn resume(&mut self, now: Tick, support: u64, sources: Vec<(u64, SavedSource)>) {
        match self {
            Self::Shared(clock) => clock.resume(now, support),
            Self::BySource(clocks) => clocks.resume(now, sources),
        }
    }

    /// Places a record in time. `source` is a hash of what names its source; see
    /// [`StreamClock::place`].
    pub fn place<I: Iterator<Item = u64>>(
        &mut self,
        source: Option<u64>,
        time: u64,
        wall: impl FnOnce() -> u64,
        later: impl FnOnce() -> I,
    ) -> Timing {
        match (self, source) {
            (Self::Shared(clock), _) => clock.place(time, wall, later),
            (Self::BySource(clocks), None) => clocks.place_rest(time, wall, later),
            (Self::BySource(clocks), Some(source)) => clocks.place(source, time, wall, later),
        }
    }
}

/// The clocks of a stream's sources (readers, gateways, hosts), on one time line.
///
/// # Guarantee
/// Each source has a [`StreamClock`] of its own, so one that is an hour behind, or stands at 2000-01-01,
/// is judged by its own time. Their records meet in one filter, so each source has an *offset* that is
/// added to its times:
/// - 0 for a source whose first record is within the lateness of the time line (it keeps the common
///   time, so its times can be compared with those of others);
/// - else such that its newest record then lies at the newest moment of the time line.
///
/// A record more than the lateness behind the time line is late, as in a stream with one clock.
///
/// The offset stays, so that two records of one source are as far apart on the time line as they say.
/// It is taken again only when a source has fallen behind the time line by more than the lateness (a
/// gateway that delivers its backlog, a clock that was set); records from before that moment are then
/// late, for their distance to newer ones of the same source is no longer known.
///
/// # Cost
/// A look-up in a hash map per record. At most `most` sources have clocks; records of further ones are
/// judged by the time line itself, and counted ([`Clocks::spilled`]).
#[derive(Clone, Debug)]
pub struct Clocks {
    lateness: u64,
    max_skew: u64,
    most: usize,
    sources: HashMap<u64, Source>,
    /// The newest moment of the time line.
    now: Option<u64>,
    /// The clock of records without a source, and of sources beyond `most`.
    rest: StreamClock,
    spilled: u64,
    adjusted: u64,
}

/// One source.
#[derive(Clone, Debug)]
struct Source {
    clock: StreamClock,
    /// Added to its times, wrapping: it may stand for a step back.
    offset: u64,
    /// Its records before this time are late.
    floor: u64,
}

impl Source {
    /// Where one of its times lies on the time line.
    fn on_line(&self, time: u64) -> i128 {
        i128::from(time) + i128::from(self.offset as i64)
    }
}

/// What is saved of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedSource {
    pub(crate) now: u64,
    pub(crate) support: u64,
    pub(crate) offset: u64,
    pub(crate) floor: u64,
}

impl Clocks {
    /// No source yet. Times in nanoseconds.
    pub fn new(lateness: u64, max_skew: u64, most: usize) -> Self {
        Self {
            lateness,
            max_skew,
            most,
            sources: HashMap::new(),
            now: None,
            rest: StreamClock::new(lateness, max_skew),
            spilled: 0,
            adjusted: 0,
        }
    }

    /// The newest moment of the time line.
    pub fn now(&self) -> Option<Tick> {
        self.now.map(Tick)
    }

    /// Sources that have a clock of their own.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Records of sources that found no clock free.
    pub fn spilled(&self) -> u64 {
        self.spilled
    }

    /// How often a source's offset was taken again.
    pub fn adjusted(&self) -> u64 {
        self.adjusted
    }

    /// What is to be saved, in an order that does not depend on chance.
    pub(crate) fn saved(&self) -> Vec<(u64, SavedSource)> {
        let mut saved: Vec<_> = (self.sources.iter())
            .filter_map(|(&name, source)| {
                let Source { offset, floor, .. } = *source;
                let (now, support) = (source.clock.now()?.0, source.clock.support());
                Some((name, SavedSource { now, support, offset, floor }))
            })
            .collect();
        saved.sort_unstable_by_key(|&(name, _)| name);
        saved
    }

    fn resume(&mut self, now: Tick, sources: Vec<(u64, SavedSource)>) {
        self.now = self.now.max(Some(now.0));
        for (name, saved) in sources {
            let mut clock = StreamClock::new(self.lateness, self.max_skew);
            clock.resume(Tick(saved.now), saved.support);
            let source = Source { clock, offset: saved.offset, floor: saved.floor };
            self.sources.insert(name, source);
        }
    }

    /// Advances the time line, for records that bring no time.
    pub fn arrive(&mut self, arrival: Tick) -> Tick {
        let now = self.now.map_or(arrival.0, |now| now.max(arrival.0));
        self.now = Some(now);
        Tick(now)
    }

    /// Places a record of a source on the time line; see [`StreamClock::place`]. `later` are the times of
    /// later records of the same source.
    pub fn place<I: Iterator<Item = u64>>(
        &mut self,
        source: u64,
        time: u64,
        wall: impl FnOnce() -> u64,
        later: impl FnOnce() -> I,
    ) -> Timing {
        if self.sources.len() >= self.most && !self.sources.contains_key(&source) {
            self.spilled += 1;
            return self.place_rest(time, wall, later);
        }
        let (lateness, max_skew) = (self.lateness, self.max_skew);
        let first = || Source { clock: StreamClock::new(lateness, max_skew), offset: 0, floor: 0 };
        let source = self.sources.entry(source).or_insert_with(first);
        let began = source.clock.now().is_none();
        let timing = source.clock.place(time, wall, later);
        let (Timing::At(at) | Timing::SteppedBack(at)) = timing else { return timing };
        if at.0 < source.floor {
            return Timing::Late;
        }
        let Some(own) = source.clock.now() else { return Timing::Late };
        let line = self.now.unwrap_or(own.0);
        let lateness = i128::from(self.lateness);
        let lag = i128::from(line) - source.on_line(own.0);
        let stepped_back = matches!(timing, Timing::SteppedBack(_));
        if lag > lateness || began && lag < -lateness || stepped_back {
            source.offset = line.wrapping_sub(own.0);
            if !began {
                source.floor = own.0;
                self.adjusted += 1;
                if at.0 < source.floor {
                    return Timing::Late;
                }
            }
        }
        let moment = source.on_line(at.0);
        // What lies before 1970 lies behind the line, too.
        let Ok(moment) = u64::try_from(moment) else { return Timing::Late };
        if i128::from(line) - i128::from(moment) > lateness {
            return Timing::Late;
        }
        self.now = Some(line.max(moment));
        Timing::At(Tick(moment))
    }

    fn place_rest<I: Iterator<Item = u64>>(
        &mut self,
        time: u64,
        wall: impl FnOnce() -> u64,
        later: impl FnOnce() -> I,
    ) -> Timing {
        if let Some(now) = self.now {
            self.rest.resume(Tick(now), self.rest.support());
        }
        let timing = self.rest.place(time, wall, later);
        if let Timing::At(at) = timing {
            self.now = self.now.max(Some(at.0));
        }
        match timing {
            // The time line is the sources', and does not go back for the rest.
            Timing::SteppedBack(_) => Timing::Late,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;
    const Y2000: u64 = 946_684_800 * S;
    const Y2022: u64 = 1_640_995_200 * S;
    const WALL: u64 = 1_800_000_000 * S;

    fn clocks() -> Clocks {
        Clocks::new(10 * S, 10 * S, 8)
    }

    fn all(clocks: &mut Clocks, records: &[(u64, u64)]) -> Vec<Timing> {
        (0..records.len())
            .map(|i| {
                let (source, time) = records[i];
                let later = records[i + 1..].iter().filter(move |other| other.0 == source);
                clocks.place(source, time, || WALL, || later.map(|other| other.1))
            })
            .collect()
    }

    fn moments(timings: &[Timing]) -> Vec<u64> {
        let moment = |timing: &Timing| match timing {
            Timing::At(at) | Timing::SteppedBack(at) => at.0,
            other => panic!("{other:?}"),
        };
        timings.iter().map(moment).collect()
    }

    #[test]
    fn a_reader_at_2000_is_judged_by_its_own_time() {
        let records: Vec<_> =
            (0..100).flat_map(|i| [(1, Y2022 + i * S), (2, Y2000 + i * S)]).collect();
        let moments = moments(&all(&mut clocks(), &records));
        // Its first record is taken for one of the present; all others keep their distance to it.
        assert!((0..100).all(|i| moments[2 * i as usize + 1] == Y2022 + i * S));
        // The same in the other order: the time line is then that of the reader that is wrong.
        let records: Vec<_> =
            (0..100).flat_map(|i| [(2, Y2000 + i * S), (1, Y2022 + i * S)]).collect();
        let moments = self::moments(&all(&mut clocks(), &records));
        assert!((0..100).all(|i| moments[2 * i as usize + 1] == Y2000 + i * S));
    }

    #[test]
    fn sources_that_keep_the_common_time_have_no_offset() {
        let records = [(1, Y2022), (2, Y2022 - 3 * S), (3, Y2022 + 5 * S), (2, Y2022 - 2 * S)];
        let moments = moments(&all(&mut clocks(), &records));
        assert_eq!(moments, records.map(|record| record.1));
    }

    #[test]
    fn a_backlog_of_one_source_is_judged_and_what_is_older_is_late() {
        let mut clocks = clocks();
        let mut records: Vec<_> = vec![(1, Y2022), (2, Y2022)];
        records.extend((1..100).map(|i| (1, Y2022 + i * S)));
        // It was away for a minute and a half, and delivers what it has kept.
        records.extend([(2, Y2022 + S), (2, Y2022 + 2 * S), (2, Y2022 + S / 2)]);
        let timings = all(&mut clocks, &records);
        let line = Y2022 + 99 * S;
        assert_eq!(timings[101], Timing::At(Tick(line)));
        assert_eq!(timings[102], Timing::At(Tick(line + S)));
        assert_eq!(timings[103], Timing::Late);
        assert_eq!(clocks.adjusted(), 1);
    }

    #[test]
    fn a_source_that_is_shifted_back_has_no_times_before_the_beginning() {
        let mut clocks = clocks();
        let records = [(1, 5 * S), (2, 1000 * S), (2, 992 * S), (1, 6 * S)];
        let timings = all(&mut clocks, &records);
        assert_eq!(timings[1], Timing::At(Tick(5 * S)));
        assert_eq!(timings[2], Timing::Late);
        assert_eq!(timings[3], Timing::At(Tick(6 * S)));
    }

    #[test]
    fn a_source_that_begins_ahead_is_shifted() {
        let records = [(1, Y2022), (2, Y2022 + 51 * S), (1, Y2022 + S), (2, Y2022 + 52 * S)];
        let moments = moments(&all(&mut clocks(), &records));
        assert_eq!(moments, [Y2022, Y2022, Y2022 + S, Y2022 + S]);
    }

    #[test]
    fn further_sources_share_the_time_line_and_are_counted() {
        let mut clocks = Clocks::new(10 * S, 10 * S, 2);
        let records = [(1, Y2022), (2, Y2022), (3, Y2022 + S), (4, Y2022 - HOUR)];
        let timings = all(&mut clocks, &records);
        assert_eq!(timings[2], Timing::At(Tick(Y2022 + S)));
        assert_eq!(timings[3], Timing::Late);
        assert_eq!((clocks.sources(), clocks.spilled()), (2, 2));
    }

    #[test]
    fn moments_never_lie_behind_the_time_line_by_more_than_the_lateness() {
        let mut random = oorandom::Rand64::new(7);
        for _ in 0..200 {
            let mut clocks = clocks();
            let mut line = 0;
            let mut times = [0; 4].map(|_| Y2022 + random.rand_range(0..100 * HOUR));
            let records: Vec<_> = (0..500)
                .map(|_| {
                    let source = random.rand_range(0..4);
                    let time = &mut times[source as usize];
                    *time += random.rand_range(0..2 * S);
                    if random.rand_range(0..50) == 0 {
                        *time += random.rand_range(0..HOUR);
                    }
                    (source, *time - random.rand_range(0..12 * S))
                })
                .collect();
            for timing in all(&mut clocks, &records) {
                if let Timing::At(at) = timing {
                    assert!(at.0 + 10 * S >= line);
                    line = line.max(at.0);
                }
            }
            assert_eq!(clocks.now(), Some(Tick(line)));
        }
    }
}
