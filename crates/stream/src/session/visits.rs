//! Visits: what is asked ([`VisitSpec`]) and what finds them ([`Visits`]).

use super::identity::{Identity, Reading};
use super::terms::{ClockSpec, DEFAULT_MEMORY, Span, SpecError, Term};
use crate::judge::class::Class;
use crate::judge::hold::Held;
use crate::judge::moment::{Asked, Moments};
use crate::judge::visit::{Ended, OpenVisits, Read, Visit};
use crate::judge::visit_row::RowFormat;
use crate::judge::{Decide, Verdicts};
use crate::read::Left;
use crate::record::texts::Columns;
use crate::record::{Batch, Record};
use crate::state::{self, StateError};
use lately::{Digest, Overload, Tick};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// What a visit is, and what may be used to find them. Whatever is `None` has a default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitSpec {
    /// The longest pause within a visit, in nanoseconds.
    pub within: u64,
    /// How far behind the newest time a read may be to be part of a visit, in nanoseconds. `None`: as
    /// `within`.
    pub lateness: Option<u64>,
    /// The largest leap ahead of the clock that a single read is believed, in nanoseconds. `None`: as
    /// for [`ClockSpec`].
    pub max_skew: Option<u64>,
    /// Each source of the stream has a clock of its own; the times of visits are those of the time line
    /// on which these meet.
    pub by_source: bool,
    /// The most bytes for open visits. `None`: [`DEFAULT_MEMORY`].
    pub memory: Option<u64>,
    /// How visits are written.
    pub rows: RowFormat,
    /// Visits that are open at the end of the input stay open, in a saved state.
    pub keeps_open: bool,
    /// How keys and times are read from records.
    pub reading: Option<Reading>,
}

impl VisitSpec {
    /// Visits with pauses of up to this many nanoseconds, all else by default.
    pub fn within(within: u64) -> Self {
        Self { within, ..Self::default() }
    }

    /// What decides which reads are part of one visit.
    pub fn identity(&self) -> Identity {
        Identity {
            reading: self.reading.clone(),
            span: Span::Within(self.within),
            renewal: None,
            seed: 0,
            changes: Vec::new(),
        }
    }

    /// A session without visits so far.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn build(&self) -> Result<Visits, SpecError> {
        if self.within == 0 {
            return Err(SpecError::new(Term::Within, "must be more than 0"));
        }
        let Self { lateness, max_skew, by_source, .. } = *self;
        let timed = Some(true);
        let clock = ClockSpec { timed, lateness, max_skew, by_source, ..ClockSpec::default() };
        let memory = self.memory.unwrap_or(DEFAULT_MEMORY);
        let limit = usize::try_from(memory).unwrap_or(usize::MAX);
        Ok(Visits {
            open: OpenVisits::new(self.within, limit),
            moments: clock.moments(Span::Within(self.within), None),
            lateness: lateness.unwrap_or(self.within),
            identity: self.identity(),
            format: self.rows,
            keeps_open: self.keeps_open,
            columns: None,
            seen: None,
            rows: Vec::new(),
            is_over: false,
            left: None,
            lefts: 0,
            ended: [0; Ended::ALL.len()],
            written: 0,
            resumed: 0,
            asked: Vec::new(),
        })
    }

    /// The session saved in `path`; `None` where there is no such file. The clock, the memory and the
    /// rows are those of `self`.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, is damaged, or has another identity.
    pub fn resume(&self, path: &Path) -> Result<Option<Visits>, StateError> {
        let Some(saved) = state::visits::load(path)? else { return Ok(None) };
        let differences = saved.identity.differences(&self.identity());
        if !differences.is_empty() {
            return Err(StateError::Settings(path.into(), differences));
        }
        let mut visits = self.build().map_err(|error| damaged(path, &error.to_string()))?;
        visits.put_back(saved, path)?;
        Ok(Some(visits))
    }
}

fn damaged(path: &Path, reason: &str) -> StateError {
    StateError::Damaged(path.into(), reason.into())
}

/// The visits of a stream of reads. Made by a [`VisitSpec`], or loaded from a file.
///
/// # Guarantee
/// A visit is a chain of reads of one key, each at most `within` after the one before it, in the order
/// of their times, however late they come (up to the lateness). It is written when no read that is still
/// to come can belong to it, or before, which its row then says: see [`Ended`]. Every read is part of
/// exactly one visit, or of another class.
#[derive(Debug)]
pub struct Visits {
    open: OpenVisits,
    moments: Moments,
    lateness: u64,
    identity: Identity,
    format: RowFormat,
    keeps_open: bool,
    /// Of the first input with reads.
    columns: Option<Arc<Columns>>,
    /// Of the first input, which may have none.
    seen: Option<Arc<Columns>>,
    /// Rows that nobody has taken yet.
    rows: Vec<u8>,
    /// The input is over: the header line is wanted although there may be no row.
    is_over: bool,
    /// What a run has left in a pipe, and how often that has changed.
    left: Option<Left>,
    lefts: u64,
    /// Visits by why they ended.
    ended: [u64; Ended::ALL.len()],
    /// Reads of visits that ended.
    written: u64,
    /// Reads of visits that were open in the state that this run resumed.
    resumed: u64,
    /// The reads of a batch: which, when, and whether the clock was set back before.
    asked: Vec<(usize, Asked)>,
}

impl Visits {
    /// The session saved in `path`, whatever it was made with; `None` where there is no such file.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, or is damaged.
    pub fn load(path: &Path) -> Result<Option<Self>, StateError> {
        let Some(saved) = state::visits::load(path)? else { return Ok(None) };
        let Identity { reading, span, .. } = saved.identity.clone();
        let within = if let Span::Within(within) = span { within } else { 0 };
        let spec = VisitSpec { reading, ..VisitSpec::within(within) };
        let mut visits = spec.build().map_err(|error| damaged(path, &error.to_string()))?;
        visits.put_back(saved, path)?;
        Ok(Some(visits))
    }

    fn put_back(
        &mut self,
        saved: state::visits::SavedVisits,
        path: &Path,
    ) -> Result<(), StateError> {
        self.columns = saved.columns.map(Arc::new);
        self.left = saved.left;
        self.moments.resume_line(saved.line);
        match saved.clock {
            Some(clock) => drop(self.moments.resume(clock)),
            None => self.moments.resume_early(),
        }
        for (key, visit) in saved.visits {
            if !self.open.resume(key, visit) {
                return Err(damaged(path, "visits that overlap"));
            }
        }
        self.resumed = self.open.reads();
        Ok(())
    }

    /// The visits that have not ended.
    pub fn open(&self) -> &OpenVisits {
        &self.open
    }

    /// Visits that ended for this reason.
    pub fn ended(&self, ended: Ended) -> u64 {
        self.ended[ended as usize]
    }

    /// Visits that ended.
    pub fn written(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// Reads of the visits that ended.
    pub fn written_reads(&self) -> u64 {
        self.written
    }

    /// Reads of the visits that were open in the state that this run resumed. With the reads of the run
    /// they are those of the visits that ended and of those that are open.
    pub fn resumed_reads(&self) -> u64 {
        self.resumed
    }

    /// What decides which reads are part of one visit.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How far behind the clock a visit's last read is when it ends.
    fn patience(&self) -> u64 {
        // What is judged when it arrives is never late.
        let lateness = if self.moments.by_arrival() { 0 } else { self.lateness };
        self.open.within().saturating_add(lateness)
    }

    fn write(&mut self, visit: &Visit, ended: Ended) {
        self.ended[ended as usize] += 1;
        self.written += visit.reads;
        if let Some(columns) = &self.columns {
            self.format.write(columns, self.moments.line, visit, ended, &mut self.rows);
        }
    }

    /// Ends the visits that no read can belong to once the clock stands at `now`.
    fn advance(&mut self, now: Tick, ended: Ended) {
        let Some(before) = now.0.checked_sub(self.patience()) else { return };
        while let Some(visit) = self.open.close_before(Tick(before)) {
            self.write(&visit, ended);
        }
    }

    /// Ends all visits.
    fn close_all(&mut self, ended: Ended) {
        while let Some(visit) = self.open.close_oldest() {
            self.write(&visit, ended);
        }
    }

    fn add(&mut self, batch: &Batch, index: usize, asked: Asked) {
        if asked.stepped_back {
            self.close_all(Ended::Clock);
        }
        let (Some(record), texts) = (batch.records.get(index), &batch.texts) else { return };
        self.open.add(&Read {
            key: record.digest,
            at: asked.at,
            text: texts.key(index),
            strength: batch.extras.get(index).and_then(|extra| extra.rank),
            place: texts.place(index),
        });
        while self.open.is_full() {
            let Some(visit) = self.open.close_oldest() else { break };
            self.write(&visit, Ended::Memory);
        }
    }
}

impl Decide for Visits {
    const CLASSES: &'static [Class] =
        &[Class::Visit, Class::Late, Class::Invalid, Class::KeyMissing, Class::Skewed];

    fn decide(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        let mut all = std::mem::take(&mut self.asked);
        all.clear();
        let ask = |index, _: &Record, asked: Asked| all.push((index, asked));
        self.moments.place(batch, next, Class::Visit, verdicts, ask);
        if self.columns.is_none() && !all.is_empty() {
            self.columns = batch.texts.columns().cloned();
        }
        let mut asked = all.iter().copied().peekable();
        for (index, &now) in verdicts.moments.iter().enumerate() {
            if let Some((_, asked)) = asked.next_if(|(at, _)| *at == index) {
                self.add(batch, index, asked);
            }
            self.advance(now, Ended::Gap);
        }
        if verdicts.stepped_back {
            self.close_all(Ended::Clock);
        }
        self.asked = all;
        if self.seen.is_none() {
            self.seen = batch.texts.columns().cloned();
        }
    }

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.moments
    }

    fn overload(&self) -> Overload {
        Overload { forgotten: self.ended(Ended::Memory), ..Overload::default() }
    }

    fn wait(&mut self, silence: u64) {
        if self.moments.by_arrival() {
            let now = self.moments.arrival();
            self.advance(now, Ended::Gap);
        } else if silence > self.patience()
            && let Some(now) = self.moments.now()
        {
            self.advance(Tick(now.0.saturating_add(silence)), Ended::Silence);
        }
    }

    fn end(&mut self) {
        if !self.keeps_open {
            self.close_all(Ended::End);
        }
        self.is_over = true;
        self.columns = self.columns.take().or(self.seen.take());
    }

    fn take_rows(&mut self, header: &mut Vec<u8>, rows: &mut Vec<u8>) {
        let Some(columns) = &self.columns else { return };
        if self.is_over || !self.rows.is_empty() {
            *header = self.format.header(columns);
        }
        std::mem::swap(rows, &mut self.rows);
        self.rows.clear();
    }

    fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }

    fn leave(&mut self, left: Option<Left>) {
        self.lefts += u64::from(self.left != left);
        self.left = left;
    }

    fn changes(&self) -> u64 {
        self.moments.changes() + self.written() + self.lefts
    }

    fn write_state(&self, _: &[(Tick, Digest, &Held)], out: &mut dyn Write) -> io::Result<()> {
        let parts = state::visits::Parts {
            identity: &self.identity,
            within: self.open.within(),
            columns: self.columns.as_deref(),
            line: self.moments.line,
            clock: self.moments.saved(),
            visits: &self.open.all(),
            left: self.left.as_ref(),
        };
        state::visits::write(&parts, out)
    }
}
