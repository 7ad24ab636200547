//! The file of `lately dedup --state`.

use super::codec::{self, Reason, SavedIdentity};
use super::{StateError, differences};
use crate::judge::change::LastValues;
use crate::judge::hold::Held;
use crate::judge::moment::SavedClock;
use crate::judge::timeline::Timeline;
use crate::read::Left;
use crate::record::Mark;
use crate::session::{Difference, Identity, Span};
use lately::codec::{Reader, Writer};
use lately::{AnyFilter, Digest, SnapshotError, Tick, WindowFilter};
use std::io::{self, Write};
use std::path::Path;

pub(super) const MAGIC: [u8; 8] = *b"\x89LSTATE\n";

/// What the file is to be.
const NAME: &str = "a Lately state";

/// Everything that a restart needs.
#[derive(Debug)]
pub struct State {
    /// What decides which keys are equal and when they are duplicates: a state with another identity
    /// must not be used.
    pub identity: Identity,
    /// The same, as version 1 had it.
    text: Option<String>,
    /// Where all its ticks lie.
    pub(crate) line: Timeline,
    /// The stream clock.
    pub(crate) clock: Option<SavedClock>,
    /// The filter.
    pub filter: AnyFilter,
    /// The last value of each key, under `--pass-on-change`.
    pub last_values: Option<LastValues>,
    /// Records that waited, under `--best`.
    pub held: Vec<(Tick, Digest, Held)>,
    /// The part of a record that was left in a pipe.
    pub left: Option<Left>,
}

/// What [`write`] writes, but for the records that wait; see [`State`].
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a> {
    pub identity: &'a Identity,
    pub line: Timeline,
    pub clock: Option<SavedClock>,
    pub filter: &'a AnyFilter,
    pub last_values: Option<&'a LastValues>,
    pub left: Option<&'a Left>,
}

/// The state in `path`; `None` when there is no such file. It is read as a stream: its bytes are never
/// in memory together with the filter.
///
/// # Errors
/// [`StateError`] for a file that cannot be read, or is damaged.
pub fn load(path: &Path) -> Result<Option<State>, StateError> {
    codec::load(path, MAGIC, NAME, State::read)
}

impl State {
    /// How it differs from what is asked for.
    pub fn differences(&self, asked: &Identity) -> Vec<Difference> {
        differences(&self.identity, self.text.as_deref(), asked)
    }

    /// A state from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        codec::from_bytes(bytes, MAGIC, NAME, Self::read)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Reason> {
        let SavedIdentity { reading, changes, text } = codec::read_identity(input)?;
        let (line, clock) = codec::read_clock(input)?;
        let filter = codec::read_snapshot(input, AnyFilter::read)?;
        let last_values = match input.u64()? {
            0 => None,
            len => Some(LastValues::read(len, input)?),
        };
        let mut held = Vec::new();
        for _ in 0..input.u64()? {
            held.push(read_held(input)?);
        }
        let left = codec::read_left(input)?;
        let identity = Identity {
            reading,
            span: Span::of(filter.window()),
            renewal: Some(filter.plan().renewal()),
            seed: filter.digester().seed(),
            changes,
        };
        Ok(Self { identity, text, line, clock, filter, last_values, held, left })
    }
}

/// Writes a state of these parts.
///
/// # Errors
/// Those of `file`.
pub(crate) fn write(
    parts: &Parts<'_>,
    held: &[(Tick, Digest, &Held)],
    file: &mut dyn Write,
) -> io::Result<()> {
    codec::write(MAGIC, parts.left, file, |out| {
        codec::write_identity(parts.identity, out);
        codec::write_clock(parts.line, parts.clock.as_ref(), out);
        parts.filter.write(out);
        out.u64(parts.last_values.map_or(0, LastValues::written) as u64);
        if let Some(last_values) = parts.last_values {
            last_values.write(out);
        }
        out.u64(held.len() as u64);
        held.iter().for_each(|one| write_held(one, out));
    })
}

fn write_held((until, key, record): &(Tick, Digest, &Held), out: &mut Writer<'_>) {
    [until.0, key.hi(), key.lo()].into_iter().for_each(|number| out.u64(number));
    out.flag(record.rank.is_some());
    out.u64(record.rank.map_or(0, f64::to_bits));
    out.bytes(&match record.mark {
        Mark::Column(separator) => [0, separator],
        Mark::Member => [1, 0],
        Mark::Pair => [2, 0],
        Mark::Attribute => [3, 0],
    });
    out.block(&record.bytes);
}

fn read_held(input: &mut Reader<'_>) -> Result<(Tick, Digest, Held), SnapshotError> {
    let (until, key) = (Tick(input.u64()?), Digest::new(input.u64()?, input.u64()?));
    let has_rank = input.flag()?;
    let rank = Some(f64::from_bits(input.u64()?)).filter(|_| has_rank);
    let mark = match (input.u8()?, input.u8()?) {
        (0, separator) => Mark::Column(separator),
        (1, 0) => Mark::Member,
        (2, 0) => Mark::Pair,
        (3, 0) => Mark::Attribute,
        _ => return Err(SnapshotError::Invalid("an unknown mark")),
    };
    Ok((until, key, Held { bytes: input.block()?, mark, rank }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::clocks::SavedSource;
    use crate::session::Reading;
    use lately::{Renewal, Spec, Verdict, Window};
    use std::num::NonZeroU64;

    fn filter() -> AnyFilter {
        let window = Window::Unbounded { capacity: NonZeroU64::new(100).unwrap() };
        Spec::new(window).plan().unwrap().build()
    }

    fn identity(key: &str) -> Identity {
        Identity {
            reading: Some(Reading::new().with("key", [key])),
            span: Span::Ever,
            renewal: Some(Renewal::Always),
            seed: 0,
            changes: Vec::new(),
        }
    }

    fn clock() -> SavedClock {
        let source = SavedSource { now: 5, support: 1, offset: 2, floor: 3 };
        SavedClock { now: Tick(7), of_events: true, support: 4, sources: vec![(9, source)] }
    }

    fn saved(left: Option<&Left>) -> Vec<u8> {
        let mut filter = filter();
        let _ = filter.observe(Digest::new(1, 2), Tick(0));
        let held = Held { bytes: b"a record".to_vec(), mark: Mark::Column(b';'), rank: Some(-5.0) };
        let waiting = [(Tick(9), Digest::new(3, 4), &held)];
        let last = LastValues::new(1);
        let parts = Parts {
            identity: &identity("a"),
            line: Timeline::of_origin(6),
            clock: Some(clock()),
            filter: &filter,
            last_values: Some(&last),
            left,
        };
        let mut bytes = Vec::new();
        write(&parts, &waiting, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        assert!(load(Path::new("/no/such/folder/state")).unwrap().is_none());
        assert!(State::from_bytes(&saved(None)).unwrap().left.is_none());
        let left = Left { pipe: "1:2:3".into(), bytes: b"a,\"b".to_vec() };
        let bytes = saved(Some(&left));
        let mut state = State::from_bytes(&bytes).unwrap();
        assert_eq!(state.filter.observe(Digest::new(1, 2), Tick(0)), Verdict::Duplicate);
        assert_eq!((state.line, &state.clock), (Timeline::of_origin(6), &Some(clock())));
        assert_eq!(state.held.len(), 1);
        assert_eq!(state.left, Some(left));
        let held = &state.held[0].2;
        assert_eq!((held.mark, held.rank), (Mark::Column(b';'), Some(-5.0)));
        assert!(state.differences(&identity("a")).is_empty());
        assert_eq!(state.differences(&identity("b")).len(), 1);
        // case_S6: cut off or with any bit flipped, it is refused, never misread.
        for len in 0..bytes.len() {
            assert!(State::from_bytes(&bytes[..len]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(State::from_bytes(&bytes).is_err());
        }
    }
}
