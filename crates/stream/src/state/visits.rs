//! The file of `lately visits --state`.

use super::StateError;
use super::codec::{self, Reason, SavedIdentity};
use crate::judge::moment::SavedClock;
use crate::judge::timeline::Timeline;
use crate::judge::visit::Visit;
use crate::read::Left;
use crate::record::texts::Columns;
use crate::session::{Identity, Span};
use lately::codec::{Reader, Writer};
use lately::{Digest, SnapshotError, Tick};
use std::io::{self, Write};
use std::path::Path;

pub(super) const MAGIC: [u8; 8] = *b"\x89LVISIT\n";

/// What the file is to be.
const NAME: &str = "a state of `lately visits`";

/// Visits as they were saved.
#[derive(Debug)]
pub struct SavedVisits {
    /// What decides which reads are part of one visit.
    pub identity: Identity,
    /// What the fields are called, if reads have come.
    pub columns: Option<Columns>,
    /// Where all its ticks lie.
    pub(crate) line: Timeline,
    /// The stream clock.
    pub(crate) clock: Option<SavedClock>,
    /// The visits that were open, with their keys.
    pub visits: Vec<(Digest, Visit)>,
    /// The part of a record that was left in a pipe.
    pub left: Option<Left>,
}

/// What [`write`] writes; see [`SavedVisits`].
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a> {
    pub identity: &'a Identity,
    pub within: u64,
    pub columns: Option<&'a Columns>,
    pub line: Timeline,
    pub clock: Option<SavedClock>,
    pub visits: &'a [(Digest, &'a Visit)],
    pub left: Option<&'a Left>,
}

/// The visits in `path`; `None` when there is no such file.
///
/// # Errors
/// [`StateError`] for a file that cannot be read, or is damaged.
pub fn load(path: &Path) -> Result<Option<SavedVisits>, StateError> {
    codec::load(path, MAGIC, NAME, SavedVisits::read)
}

impl SavedVisits {
    /// Visits from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        codec::from_bytes(bytes, MAGIC, NAME, Self::read)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Reason> {
        let SavedIdentity { reading, changes, .. } = codec::read_identity(input)?;
        let span = Span::Within(input.u64()?);
        let identity = Identity { reading, span, renewal: None, seed: 0, changes };
        let columns = if input.flag()? { Some(read_columns(input)?) } else { None };
        let (line, clock) = codec::read_clock(input)?;
        let mut visits = Vec::new();
        for _ in 0..input.u64()? {
            visits.push(read_visit(input)?);
        }
        let left = codec::read_left(input)?;
        Ok(Self { identity, columns, line, clock, visits, left })
    }
}

/// Writes a state of these parts.
///
/// # Errors
/// Those of `file`.
pub(crate) fn write(parts: &Parts<'_>, file: &mut dyn Write) -> io::Result<()> {
    codec::write(MAGIC, parts.left, file, |out| {
        codec::write_identity(parts.identity, out);
        out.u64(parts.within);
        out.flag(parts.columns.is_some());
        if let Some(columns) = parts.columns {
            write_columns(columns, out);
        }
        codec::write_clock(parts.line, parts.clock.as_ref(), out);
        out.u64(parts.visits.len() as u64);
        parts.visits.iter().for_each(|(key, visit)| write_visit(*key, visit, out));
    })
}

fn write_columns(columns: &Columns, out: &mut Writer<'_>) {
    out.u32(columns.key.len() as u32);
    columns.key.iter().for_each(|name| out.block(name.as_bytes()));
    for name in [&columns.strength, &columns.place] {
        out.flag(name.is_some());
        out.block(name.as_deref().unwrap_or("").as_bytes());
    }
}

fn read_columns(input: &mut Reader<'_>) -> Result<Columns, SnapshotError> {
    let key = (0..input.u32()?).map(|_| input.text()).collect::<Result<_, _>>()?;
    let mut optional = || {
        let is_there = input.flag()?;
        let name = input.text()?;
        Ok::<_, SnapshotError>(is_there.then_some(name))
    };
    Ok(Columns { key, strength: optional()?, place: optional()? })
}

fn write_visit(key: Digest, visit: &Visit, out: &mut Writer<'_>) {
    let Visit { arrived, left, reads, text, strength, place, strongest, number } = visit;
    let times = [arrived.0, left.0, strongest.0];
    [key.hi(), key.lo(), *number, *reads].into_iter().chain(times).for_each(|n| out.u64(n));
    out.flag(strength.is_some());
    out.u64(strength.map_or(0, f64::to_bits));
    out.block(text);
    out.block(place);
}

fn read_visit(input: &mut Reader<'_>) -> Result<(Digest, Visit), SnapshotError> {
    let key = Digest::new(input.u64()?, input.u64()?);
    let (number, reads) = (input.u64()?, input.u64()?);
    let [arrived, left, strongest] = [Tick(input.u64()?), Tick(input.u64()?), Tick(input.u64()?)];
    let has_strength = input.flag()?;
    let strength = f64::from_bits(input.u64()?);
    let strength = Some(strength).filter(|strength| has_strength && strength.is_finite());
    let (text, place) = (input.block()?.into(), input.block()?.into());
    Ok((key, Visit { arrived, left, reads, text, strength, place, strongest, number }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Reading;

    #[test]
    fn visits_come_back_as_they_were_or_not_at_all() {
        let identity = Identity {
            reading: Some(Reading::new().with("by", ["door"])),
            span: Span::Within(5),
            renewal: None,
            seed: 0,
            changes: Vec::new(),
        };
        let columns =
            Columns { key: vec!["tag".into()], strength: None, place: Some("antenna".into()) };
        let visit = |number, strength| Visit {
            arrived: Tick(10 * number),
            left: Tick(10 * number + 1),
            reads: 2,
            text: (*b"\x01\0\0\0a").into(),
            strength,
            place: (*b"1").into(),
            strongest: Tick(10 * number),
            number,
        };
        let visits =
            [(Digest::new(1, 2), visit(1, None)), (Digest::new(1, 2), visit(2, Some(-5.5)))];
        let borrowed: Vec<_> = visits.iter().map(|(key, visit)| (*key, visit)).collect();
        let parts = Parts {
            identity: &identity,
            within: 5,
            columns: Some(&columns),
            line: Timeline::of_origin(7),
            clock: None,
            visits: &borrowed,
            left: None,
        };
        let mut bytes = Vec::new();
        write(&parts, &mut bytes).unwrap();
        let saved = SavedVisits::from_bytes(&bytes).unwrap();
        assert_eq!((saved.identity, saved.columns), (identity, Some(columns)));
        assert!(saved.line == Timeline::of_origin(7) && saved.clock.is_none());
        assert_eq!(saved.visits, visits);
        for len in 0..bytes.len() {
            assert!(SavedVisits::from_bytes(&bytes[..len]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SavedVisits::from_bytes(&bytes).is_err());
        }
    }
}
