//! Remembers the keys of a stream, which are numbers, in a range window, and keeps it in a file.

use crate::clock::{StreamClock, wall_clock};
use crate::hold::Held;
use crate::judge::{Decide, Verdicts};
use crate::moment::Moments;
use crate::number::NumberFormat;
use crate::record::{Batch, Record};
use crate::sink::Class;
use crate::state::{Fields, StateError, put_block, put_u64, seal, write};
use lately::range::RangeWindow;
use lately::{Digest, Overload, Tick};
use std::fs;
use std::io;
use std::path::Path;

const MAGIC: [u8; 8] = *b"\x89LINDEX\n";
const VERSION: u16 = 1;

/// Puts the key of every record into a range window.
///
/// Of the classes, [`Class::Fresh`] are those that were put in.
#[derive(Debug)]
pub struct Indexer {
    /// What was seen lately.
    pub window: RangeWindow,
    /// When records are.
    pub moments: Moments,
    format: NumberFormat,
    verdicts: Verdicts,
}

impl Indexer {
    /// An indexer that begins with this window; keys are of this format.
    pub fn new(window: RangeWindow, clock: Option<StreamClock>, format: NumberFormat) -> Self {
        Self { window, moments: Moments::new(clock), format, verdicts: Verdicts::default() }
    }

    /// Sets the clock on from a saved index. See [`Moments::resume`].
    pub fn resume_clock(&mut self, now: Tick, of_events: bool) {
        if self.moments.resume(now, of_events) {
            self.window.advance(now);
        }
    }
}

impl Decide for Indexer {
    fn decide(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.verdicts.clear();
        let (window, timed) = (&mut self.window, self.moments.clock.is_some());
        let Verdicts { classes, moments, .. } = &mut self.verdicts;
        let mut insert = |index, tick| {
            batch.numbers(index).for_each(|number| window.insert(number, tick));
        };
        let ask = |index, _: &Record, tick| insert(index, tick);
        let now = self.moments.place(batch, next, classes, moments, ask);
        if !timed {
            let fresh = classes.iter().enumerate().filter(|(_, class)| **class == Class::Fresh);
            fresh.for_each(|(index, _)| insert(index, now));
        }
        &self.verdicts
    }

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.moments
    }

    fn overload(&self) -> Overload {
        self.window.overload()
    }

    fn save(
        &self,
        path: &Path,
        settings: &str,
        _: &mut dyn Iterator<Item = (Tick, Digest, &Held)>,
    ) -> Result<(), StateError> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        put_block(&mut out, settings.as_bytes());
        put_block(&mut out, self.format.to_string().as_bytes());
        let clock = self.moments.now();
        out.push(u8::from(clock.is_some()));
        out.push(u8::from(!self.moments.by_arrival()));
        put_u64(&mut out, clock.map_or(0, |tick| tick.0));
        put_block(&mut out, &self.window.snapshot());
        seal(&mut out);
        write(path, &out)
    }
}

/// An index as it was saved.
#[derive(Debug)]
pub struct Index {
    /// What decides which number a record has, as text.
    pub settings: String,
    /// How keys are read.
    pub format: NumberFormat,
    /// The stream clock.
    pub clock: Option<Tick>,
    /// The clock is one of events: the time that records bring, not that at which they arrive.
    pub of_events: bool,
    /// What was seen lately.
    pub window: RangeWindow,
}

impl Index {
    /// The index in `path`; `None` when there is no such file.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, or is damaged.
    pub fn load(path: &Path) -> Result<Option<Self>, StateError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Io(path.into(), error)),
        };
        let index = Self::from_bytes(&bytes);
        index.map(Some).map_err(|reason| StateError::Damaged(path.into(), reason))
    }

    /// The present moment: where records brought times the newest of them, else the time of day, or
    /// the last arrival if that is later.
    pub fn now(&self) -> Tick {
        let wall = if self.of_events { 0 } else { wall_clock() };
        self.clock.unwrap_or(Tick(0)).max(Tick(wall))
    }

    /// Are these the bytes of an index, damaged perhaps, rather than of another state?
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// An index from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut fields = Fields::open(bytes, MAGIC, VERSION, "an index of `lately index`")?;
        let settings = fields.text()?;
        let format = fields.text()?.parse()?;
        let (has_clock, of_events) = (fields.flag()?, fields.flag()?);
        let clock = Some(Tick(fields.u64()?)).filter(|_| has_clock);
        let window = RangeWindow::restore(fields.block()?).map_err(|error| error.to_string())?;
        fields.end()?;
        Ok(Self { settings, format, clock, of_events, window })
    }
}
