//! The moment of each record: what the records of a batch are by themselves, before anything that
//! remembers is asked about them.

use crate::judge::Verdicts;
use crate::judge::class::Class;
use crate::judge::clock::{ArrivalClock, LOOK_AHEAD, Timing};
use crate::judge::clocks::{Clock, SavedSource};
use crate::judge::timeline::Timeline;
use crate::record::{Batch, Kind, Record, Time};
use lately::Tick;

/// Stands for a time that is missing, or cannot be read, where times are numbers: nanoseconds since 1970 that no
/// [`Time`] can have.
pub const UNTIMED: i64 = i64::MIN;

/// The clocks of a run.
#[derive(Debug)]
pub struct Moments {
    /// The clock; `None` when records are judged at the time they arrive.
    pub clock: Option<Clock>,
    /// What is done with records that are late.
    pub on_late: OnLate,
    /// How times become ticks.
    pub line: Timeline,
    arrivals: ArrivalClock,
    /// A record brought a time of its own, in this run or in one it resumes.
    timed: bool,
    /// Records were judged by when they arrived, before one brought the first time.
    early: bool,
    /// Rises whenever a record is to be asked about, or brings the first time.
    changes: u64,
    /// What is told of times in the end.
    pub told: Told,
}

/// What is done with a record that is behind the clock by more than the lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLate {
    /// It is forwarded without being judged.
    #[default]
    Pass,
    /// It is judged by when it arrives: a duplicate if its key was seen within the window of the clock.
    Judge,
}

/// What a run can tell of the times of its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The earliest and the latest time, as read.
    pub times: Option<(Tick, Tick)>,
    /// Records without a readable time that were judged by when they arrived.
    pub untimed: u64,
    /// Late records that were judged by when they arrived.
    pub late_judged: u64,
    /// How often the clock was found to be wrong and set back.
    pub stepped_back: u64,
}

impl Told {
    /// A record has this time.
    #[inline]
    fn read(&mut self, time: Tick) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }
}

/// A moment at which what remembers is asked about a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The moment.
    pub(crate) at: Tick,
    /// The clock was set back before this record: what is remembered belongs to a time that never was.
    pub(crate) stepped_back: bool,
}

impl Moments {
    /// Clocks that begin now.
    pub(crate) fn new(clock: Option<Clock>, on_late: OnLate) -> Self {
        let line = Timeline::default();
        let (arrivals, told) = (ArrivalClock::start(line), Told::default());
        Self { clock, on_late, line, arrivals, timed: false, early: false, changes: 0, told }
    }

    /// Are records judged by when they arrive, as they bring no time of their own?
    pub fn by_arrival(&self) -> bool {
        !self.timed
    }

    /// The present moment, to records that are judged by when they arrive.
    pub fn arrival(&mut self) -> Tick {
        self.arrivals.now(self.clock.as_ref().and_then(Clock::now))
    }

    /// The largest time of the clock so far.
    pub fn now(&self) -> Option<Tick> {
        self.clock.as_ref().and_then(Clock::now)
    }

    /// The same, in nanoseconds since 1970.
    pub fn time(&self) -> Option<i64> {
        self.now().map(|now| self.line.nanos(now))
    }

    /// Resumes from a saved state, of which all ticks are on this line. To be called before any other.
    pub(crate) fn resume_line(&mut self, line: Timeline) {
        self.line = line;
        self.arrivals = ArrivalClock::start(line);
    }

    /// Resumes the clock of a saved state; is there a clock? One of events resumes as one: until a
    /// record comes, it stands still, and the time of day says nothing about what waits for it.
    pub(crate) fn resume(&mut self, saved: SavedClock) -> bool {
        let Some(clock) = &mut self.clock else { return false };
        clock.resume(saved.now, saved.support, saved.sources);
        self.timed = saved.of_events;
        true
    }

    /// Resumes from a state that has no clock: what it remembers was seen when it arrived, which means
    /// nothing to the first record that brings a time.
    pub(crate) fn resume_early(&mut self) {
        self.early = self.clock.is_some();
    }

    /// What [`Moments::resume`] takes; `None` where there is no clock, or it has seen nothing.
    pub(crate) fn saved(&self) -> Option<SavedClock> {
        let clock = self.clock.as_ref()?;
        Some(SavedClock {
            now: clock.now()?,
            of_events: self.timed,
            support: clock.support(),
            sources: clock.sources().map(|clocks| clocks.saved()).unwrap_or_default(),
        })
    }

    /// May what becomes of this batch depend on the records after it? Only leaps in time do.
    pub(crate) fn looks_ahead(&self, batch: &Batch) -> bool {
        let Some(clock) = &self.clock else { return false };
        let mut times = batch.records.iter().filter_map(|record| record.time);
        times.any(|time| clock.is_leap(self.line.place(time, clock.now()).0))
    }

    /// Notes that what is remembered has changed otherwise than by a record.
    pub(crate) fn touch(&mut self) {
        self.changes += 1;
    }

    /// A number that rises whenever what is remembered may have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Places one record with a key in time. `later` are the times of the records after it that are at
    /// hand.
    pub fn place_one<I: Iterator<Item = i64>>(
        &mut self,
        time: Option<i64>,
        later: impl FnOnce() -> I,
    ) -> Timing {
        let arrival = self.arrival();
        self.place_at(time, arrival, later)
    }

    /// Places records with keys that all arrive now: the moment of all of them.
    pub(crate) fn arrive_all(&mut self, records: usize) -> Tick {
        let arrival = self.arrival();
        if records == 0 {
            return arrival;
        }
        self.changes += records as u64;
        self.clock.as_mut().map_or(arrival, |clock| clock.arrive(arrival))
    }

    /// [`Moments::place_one`] for a record that arrives at this moment.
    pub(crate) fn place_at<I: Iterator<Item = i64>>(
        &mut self,
        time: Option<i64>,
        arrival: Tick,
        later: impl FnOnce() -> I,
    ) -> Timing {
        let line = self.line;
        let timing = match (&mut self.clock, time) {
            (None, _) => Timing::At(arrival),
            (Some(clock), None) => Timing::At(clock.arrive(arrival)),
            (Some(_), Some(UNTIMED)) => self.place_untimed(arrival),
            (Some(_), Some(time)) => {
                let later = || later().map(|time| line.tick(time).0);
                let timing = self.place_time(None, line.tick(time), later);
                self.judged(timing)
            }
        };
        self.changes += u64::from(matches!(timing, Timing::At(_) | Timing::SteppedBack(_)));
        timing
    }

    /// Places a time, and notes what is told of it.
    fn place_time<I: Iterator<Item = u64>>(
        &mut self,
        source: Option<u64>,
        time: Tick,
        later: impl FnOnce() -> I,
    ) -> Timing {
        let Some(clock) = &mut self.clock else { return Timing::At(time) };
        self.changes += u64::from(!self.timed);
        self.timed = true;
        self.told.read(time);
        let was_early = self.early && clock.now().is_none();
        let line = self.line;
        let timing = clock.place(source, time.0, || line.now().0, later);
        if let (true, Timing::At(at)) = (was_early, timing) {
            // The moments of arrival mean nothing to times.
            self.early = false;
            return Timing::SteppedBack(at);
        }
        self.told.stepped_back += u64::from(matches!(timing, Timing::SteppedBack(_)));
        timing
    }

    /// The timing by which a record with a key is judged: a late one by when it arrives, if that is
    /// asked for.
    fn judged(&mut self, timing: Timing) -> Timing {
        match (timing, self.on_late, self.now()) {
            (Timing::Late, OnLate::Judge, Some(now)) => {
                self.told.late_judged += 1;
                Timing::At(now)
            }
            _ => timing,
        }
    }

    /// Sets the class of all records that are late, skewed, or decided by their kind; the others are
    /// `asked` so far. Sets the moment of each, which never goes back, and calls `ask` with those that
    /// are to be asked about, by their index, and their own moment, where there is a clock; without one
    /// those are all keyed records, at the moment of the batch, which is returned.
    pub(crate) fn place(
        &mut self,
        batch: &Batch,
        next: Option<&Batch>,
        asked: Class,
        verdicts: &mut Verdicts,
        mut ask: impl FnMut(usize, &Record, Asked),
    ) -> Tick {
        let arrival = self.arrival();
        if self.clock.is_none() {
            self.place_all(batch, arrival, asked, verdicts);
            return arrival;
        }
        let mut stepped_back = false;
        for (index, record) in batch.records.iter().enumerate() {
            if !stepped_back && let Some(at) = self.place_near(record) {
                ask(index, record, Asked { at, stepped_back });
                verdicts.classes.push(asked);
                verdicts.moments.push(self.now().unwrap_or(at));
                continue;
            }
            let timing = match record.kind {
                Kind::Keyed | Kind::KeyMissing | Kind::Untimed => {
                    self.place_record(batch, index, next, arrival)
                }
                Kind::Invalid | Kind::Header | Kind::Aside => None,
            };
            stepped_back |= matches!(timing, Some(Timing::SteppedBack(_)));
            let class = match (Class::of_kind(record), timing) {
                (Some(class), _) => class,
                (None, None) => asked,
                (None, Some(timing)) => match self.judged(timing) {
                    Timing::Late => Class::Late,
                    Timing::Skewed => Class::Skewed,
                    Timing::At(at) | Timing::SteppedBack(at) => {
                        self.changes += 1;
                        ask(index, record, Asked { at, stepped_back });
                        stepped_back = false;
                        asked
                    }
                },
            };
            verdicts.classes.push(class);
            verdicts.moments.push(self.now().unwrap_or(arrival));
        }
        if stepped_back {
            verdicts.stepped_back = true;
        }
        self.now().unwrap_or(arrival)
    }

    /// Places a record with a key whose time the clock of the stream agrees with, as almost all are: the same as in any
    /// other way, but soon done.
    #[inline]
    fn place_near(&mut self, record: &Record) -> Option<Tick> {
        // Before the first time, and where sources have clocks, there is more to do.
        if record.kind != Kind::Keyed || self.told.times.is_none() {
            return None;
        }
        let Some(Clock::Shared(clock)) = &mut self.clock else { return None };
        let time = self.line.tick(record.time?.nanos()?);
        let at = clock.place_near(time.0)?;
        self.told.read(time);
        self.changes += 1;
        Some(at)
    }

    /// The timing of a record by its own time, or of one without a time by what is around it; `None`
    /// where it has neither a key nor a time.
    fn place_record(
        &mut self,
        batch: &Batch,
        index: usize,
        next: Option<&Batch>,
        arrival: Tick,
    ) -> Option<Timing> {
        let record = &batch.records[index];
        let source = batch.extras.get(index).and_then(|extra| extra.source);
        match (record.time, record.kind) {
            (Some(time), _) => {
                let (line, time) = (self.line, self.line.place(time, self.now()));
                let tick = move |other| line.place(other, Some(time)).0;
                let later = || times_after(batch, index, next, source).map(tick);
                Some(self.place_time(source, time, later))
            }
            (None, Kind::Untimed) => Some(self.place_untimed(arrival)),
            (None, Kind::KeyMissing) => None,
            (None, _) => Some(self.arrive(arrival)),
        }
    }

    /// Places a record whose time is missing.
    fn place_untimed(&mut self, arrival: Tick) -> Timing {
        self.told.untimed += 1;
        self.early |= self.now().is_none();
        Timing::At(self.now().unwrap_or(arrival))
    }

    fn arrive(&mut self, arrival: Tick) -> Timing {
        Timing::At(self.clock.as_mut().map_or(arrival, |clock| clock.arrive(arrival)))
    }

    /// Places all records at the moment at which they arrive.
    fn place_all(&mut self, batch: &Batch, arrival: Tick, asked: Class, verdicts: &mut Verdicts) {
        let Verdicts { classes, moments, .. } = verdicts;
        self.changes += 1;
        if batch.digests.len() == batch.records.len() {
            classes.resize(batch.records.len(), asked);
        } else {
            classes.extend(batch.records.iter().map(|one| Class::of_kind(one).unwrap_or(asked)));
            self.changes -= u64::from(!classes.contains(&asked));
        }
        moments.resize(batch.records.len(), arrival);
    }
}

/// A clock as it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedClock {
    pub(crate) now: Tick,
    /// It is one of events: the times that records bring, not those at which they arrive.
    pub(crate) of_events: bool,
    pub(crate) support: u64,
    pub(crate) sources: Vec<(u64, SavedSource)>,
}

/// Records that are searched for later ones of the same source.
const SEARCHED: usize = 1024;

/// The times of the records after one, as far as they are at hand, of the same source, and of use to
/// the clock.
fn times_after<'a>(
    batch: &'a Batch,
    index: usize,
    next: Option<&'a Batch>,
    source: Option<u64>,
) -> impl Iterator<Item = Time> + 'a {
    let times = move |batch: &'a Batch, from: usize| {
        let records = batch.records.iter().enumerate().skip(from).take(SEARCHED);
        let same = move |(at, _): &(usize, &Record)| {
            source.is_none() || batch.extras.get(*at).is_some_and(|extra| extra.source == source)
        };
        let timed = |(_, record): (usize, &Record)| match record.kind {
            Kind::Keyed | Kind::KeyMissing => record.time,
            _ => None,
        };
        records.filter(same).filter_map(timed)
    };
    let there = next.into_iter().flat_map(move |next| times(next, 0));
    times(batch, index + 1).chain(there).take(LOOK_AHEAD)
}
