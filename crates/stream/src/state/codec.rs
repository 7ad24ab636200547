//! What the files of `lately dedup` and `lately index` have in common: how they are read and written,
//! and how an identity lies in them. The layouts are written down in `docs/format.md`.

use super::StateError;
use crate::judge::clocks::SavedSource;
use crate::judge::moment::SavedClock;
use crate::judge::timeline::Timeline;
use crate::read::Left;
use crate::session::{Identity, Reading};
use lately::codec::{self, Format, Reader, Writer};
use lately::{RestoreError, SnapshotError, Tick};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Files of version 1 have no envelope around them.
const UNFRAMED: u16 = 1;

/// Files up to version 2 have 1970 at tick 0.
const SINCE_1970: u16 = 2;

/// The version that is written if nothing was left in a pipe.
pub(super) const VERSION: u16 = 3;

/// That with what was left.
const LEFT: u16 = 4;

/// Bytes that tell a format and its version.
const NAME: usize = 10;

/// What is wrong with the bytes of a file, in words.
#[derive(Debug)]
pub(super) struct Reason(String);

impl From<SnapshotError> for Reason {
    fn from(error: SnapshotError) -> Self {
        Self(match error {
            SnapshotError::Checksum | SnapshotError::Length { .. } => {
                "cut off or damaged: its length or its checksum does not match".into()
            }
            SnapshotError::Invalid(what) => format!("damaged: {what}"),
            SnapshotError::Version { found, newest } => {
                format!("of format version {found}, and this lately reads up to {newest}")
            }
            other => other.to_string(),
        })
    }
}

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// Reads a file in one pass, without holding its bytes; `None` if there is no such file. `what` says
/// what it is to be.
pub(super) fn load<T>(
    path: &Path,
    magic: [u8; 8],
    what: &str,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, Reason>,
) -> Result<Option<T>, StateError> {
    let failed = |error| StateError::Io(path.into(), error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let len = file.metadata().map_err(failed)?.len();
    read(len, &mut file, magic, what, body).map(Some).map_err(|error| match error {
        RestoreError::Source(error) => failed(error),
        RestoreError::Content(Reason(reason)) => StateError::Damaged(path.into(), reason),
    })
}

/// Reads a file from its bytes.
pub(super) fn from_bytes<T>(
    mut bytes: &[u8],
    magic: [u8; 8],
    what: &str,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, Reason>,
) -> Result<T, String> {
    read(bytes.len() as u64, &mut bytes, magic, what, body).map_err(|error| match error {
        RestoreError::Source(error) => error.to_string(),
        RestoreError::Content(Reason(reason)) => reason,
    })
}

fn read<T>(
    len: u64,
    source: &mut dyn Read,
    magic: [u8; 8],
    what: &str,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, Reason>,
) -> Result<T, RestoreError<io::Error, Reason>> {
    let mut name = Vec::new();
    source.take(NAME as u64).read_to_end(&mut name).map_err(RestoreError::Source)?;
    let old = Format::new(magic, UNFRAMED);
    let new = Format::new(magic, LEFT).since(UNFRAMED + 1);
    let version = new.version_in(&name);
    if version.is_none() {
        let reason = if new.begins(&name) { "cut off: nothing after its name" } else { "" };
        let reason = if reason.is_empty() { format!("not {what}") } else { reason.into() };
        return Err(RestoreError::Content(Reason(reason)));
    }
    let mut all = name.chain(source);
    let next = |into: &mut [u8]| all.read(into);
    if version == Some(UNFRAMED) {
        codec::read_unframed(old, len, next, body)
    } else {
        codec::read(new, len, next, body)
    }
}

/// Writes a file as a stream.
pub(super) fn write(
    magic: [u8; 8],
    left: Option<&Left>,
    out: &mut dyn Write,
    body: impl Fn(&mut Writer<'_>),
) -> io::Result<()> {
    let version = if left.is_some() { LEFT } else { VERSION };
    codec::write(
        Format::new(magic, version),
        |bytes| out.write_all(bytes),
        |out| {
            body(out);
            if let Some(left) = left {
                out.block(left.pipe.as_bytes());
                out.block(&left.bytes);
            }
        },
    )
}

/// What was left in a pipe, at the end of the file.
pub(super) fn read_left(input: &mut Reader<'_>) -> Result<Option<Left>, SnapshotError> {
    if input.version() < LEFT {
        return Ok(None);
    }
    Ok(Some(Left { pipe: input.text()?, bytes: input.block()? }))
}

/// What of an identity does not follow from the filter.
pub(super) fn write_identity(identity: &Identity, out: &mut Writer<'_>) {
    out.flag(identity.reading.is_some());
    if let Some(reading) = &identity.reading {
        out.u32(reading.settings().count() as u32);
        for (name, values) in reading.settings() {
            out.block(name.as_bytes());
            write_texts(values, out);
        }
    }
    write_texts(&identity.changes, out);
}

/// What [`write_identity`] wrote.
pub(super) struct SavedIdentity {
    pub reading: Option<Reading>,
    pub changes: Vec<String>,
    /// The text that it was read from, if it is of version 1.
    pub text: Option<String>,
}

/// Reads what of an identity does not follow from the filter.
pub(super) fn read_identity(input: &mut Reader<'_>) -> Result<SavedIdentity, Reason> {
    if input.version() == UNFRAMED {
        let text = input.text()?;
        let unknown = SnapshotError::Invalid("settings that say nothing");
        let (reading, changes) = Identity::of_text(&text).ok_or(unknown)?;
        return Ok(SavedIdentity { reading: Some(reading), changes, text: Some(text) });
    }
    let mut reading = None;
    if input.flag()? {
        let mut settings = Reading::new();
        for _ in 0..input.u32()? {
            let name = input.text()?;
            settings = settings.with(&name, read_texts(input)?);
        }
        reading = Some(settings);
    }
    Ok(SavedIdentity { reading, changes: read_texts(input)?, text: None })
}

fn write_texts(texts: &[String], out: &mut Writer<'_>) {
    out.u32(texts.len() as u32);
    texts.iter().for_each(|text| out.block(text.as_bytes()));
}

fn read_texts(input: &mut Reader<'_>) -> Result<Vec<String>, SnapshotError> {
    (0..input.u32()?).map(|_| input.text()).collect()
}

/// Where 1970 lies, and a clock with those of its sources.
pub(super) fn write_clock(line: Timeline, clock: Option<&SavedClock>, out: &mut Writer<'_>) {
    out.u64(line.origin());
    out.flag(clock.is_some());
    out.flag(clock.is_some_and(|clock| clock.of_events));
    out.u64(clock.map_or(0, |clock| clock.now.0));
    out.u64(clock.map_or(0, |clock| clock.support));
    let sources = clock.map_or(&[][..], |clock| &clock.sources);
    out.u32(sources.len() as u32);
    for (name, source) in sources {
        let SavedSource { now, support, offset, floor } = *source;
        [*name, now, support, offset, floor].into_iter().for_each(|number| out.u64(number));
    }
}

/// What [`write_clock`] wrote.
pub(super) fn read_clock(
    input: &mut Reader<'_>,
) -> Result<(Timeline, Option<SavedClock>), SnapshotError> {
    let line = match input.version() {
        UNFRAMED..=SINCE_1970 => Timeline::SINCE_1970,
        _ => Timeline::of_origin(input.u64()?),
    };
    let (has_clock, of_events) = (input.flag()?, input.flag()?);
    let now = Tick(input.u64()?);
    let (mut support, mut sources) = (0, Vec::new());
    if input.version() != UNFRAMED {
        support = input.u64()?;
        for _ in 0..input.u32()? {
            let name = input.u64()?;
            let (now, support) = (input.u64()?, input.u64()?);
            let (offset, floor) = (input.u64()?, input.u64()?);
            sources.push((name, SavedSource { now, support, offset, floor }));
        }
    }
    Ok((line, has_clock.then_some(SavedClock { now, of_events, support, sources })))
}

/// A snapshot, which in version 1 has its length before it.
pub(super) fn read_snapshot<T>(
    input: &mut Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, SnapshotError>,
) -> Result<T, Reason> {
    if input.version() != UNFRAMED {
        return Ok(read(input)?);
    }
    let (len, left) = (input.u64()?, input.left());
    let snapshot = read(input)?;
    if left - input.left() != len {
        return Err(SnapshotError::Invalid("a snapshot of another length").into());
    }
    Ok(snapshot)
}
