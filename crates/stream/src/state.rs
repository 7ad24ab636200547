//! What a run remembers across restarts: `--state FILE`.
//!
//! The file is replaced as a whole ([`lately_store::replace`]), so whenever the program is killed
//! there is either the old state or the new one. Layout: `docs/format.md`.

use crate::change::LastValues;
use crate::hold::Held;
use crate::sink::Mark;
use lately::{AnyFilter, Digest, Digester, SnapshotError, Tick};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"\x89LSTATE\n";
const VERSION: u16 = 1;

/// Everything that a restart needs.
#[derive(Debug)]
pub struct State {
    /// What decides which records have equal keys, as text: a state made with other settings
    /// must not be used.
    pub settings: String,
    /// The stream clock.
    pub clock: Option<Tick>,
    /// The clock is one of events: the time that records bring, not that at which they arrive.
    pub of_events: bool,
    /// The filter.
    pub filter: AnyFilter,
    /// The last value of each key, under `--pass-on-change`.
    pub last_values: Option<LastValues>,
    /// Records that waited, under `--best`.
    pub held: Vec<(Tick, Digest, Held)>,
}

/// Why a state cannot be loaded or saved.
#[derive(Debug)]
pub enum StateError {
    /// The file system says no.
    Io(PathBuf, io::Error),
    /// The bytes are no state of this program, or damaged.
    Damaged(PathBuf, String),
    /// A state of other settings: (file, saved, asked).
    Settings(PathBuf, String, String),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "state {}: {error}", path.display()),
            Self::Damaged(path, reason) => write!(
                f,
                "state {}: {reason}; move the file away to begin without what it remembers",
                path.display()
            ),
            Self::Settings(path, saved, asked) => write!(
                f,
                "state {} was made with other settings\n  saved: {saved}\n  asked: {asked}\nuse the same, or another state file",
                path.display()
            ),
        }
    }
}

impl std::error::Error for StateError {}

impl State {
    /// The state in `path`; `None` when there is no such file.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, is damaged, or is of other settings.
    pub fn load(path: &Path, settings: &str) -> Result<Option<Self>, StateError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Io(path.into(), error)),
        };
        let state =
            Self::from_bytes(&bytes).map_err(|reason| StateError::Damaged(path.into(), reason))?;
        if state.settings == settings {
            Ok(Some(state))
        } else {
            Err(StateError::Settings(path.into(), state.settings, settings.into()))
        }
    }

    /// A state from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut fields = Fields::open(bytes, MAGIC, VERSION, "a Lately state")?;
        let settings = fields.text()?;
        let (has_clock, of_events) = (fields.flag()?, fields.flag()?);
        let clock = Some(Tick(fields.u64()?)).filter(|_| has_clock);
        let filter = AnyFilter::restore(fields.block()?)
            .map_err(|error: SnapshotError| error.to_string())?;
        let values = fields.block()?;
        let last_values = match values {
            [] => None,
            values => Some(LastValues::from_bytes(values).ok_or("damaged: last values")?),
        };
        let mut held = Vec::new();
        for _ in 0..fields.u64()? {
            let (until, key) = (Tick(fields.u64()?), Digest::new(fields.u64()?, fields.u64()?));
            let has_rank = fields.flag()?;
            let rank = Some(f64::from_bits(fields.u64()?)).filter(|_| has_rank);
            let mark = match (fields.u8()?, fields.u8()?) {
                (0, separator) => Mark::Column(separator),
                (1, 0) => Mark::Member,
                _ => return Err("damaged: an unknown mark".into()),
            };
            held.push((until, key, Held { bytes: fields.block()?.to_vec(), mark, rank }));
        }
        fields.end()?;
        Ok(Self { settings, clock, of_events, filter, last_values, held })
    }
}

/// What [`save`] writes, but for the records that wait; see [`State`].
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// See [`State::settings`].
    pub settings: &'a str,
    /// See [`State::clock`].
    pub clock: Option<Tick>,
    /// See [`State::of_events`].
    pub of_events: bool,
    /// See [`State::filter`].
    pub filter: &'a AnyFilter,
    /// See [`State::last_values`].
    pub last_values: Option<&'a LastValues>,
}

/// Writes a state of these parts, replacing the one that is there.
///
/// # Errors
/// [`StateError::Io`]; the old state then still stands.
pub fn save<'a>(
    path: &Path,
    parts: &Parts<'_>,
    held: impl Iterator<Item = (Tick, Digest, &'a Held)>,
) -> Result<(), StateError> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    put_block(&mut out, parts.settings.as_bytes());
    out.push(u8::from(parts.clock.is_some()));
    out.push(u8::from(parts.of_events));
    put_u64(&mut out, parts.clock.map_or(0, |tick| tick.0));
    let snapshot = parts.filter.snapshot();
    // At once: growing by doubling would take twice the bytes, and they are many.
    let values = parts.last_values.map_or(0, LastValues::written);
    out.reserve_exact(snapshot.len() + values + 64);
    put_block(&mut out, &snapshot);
    drop(snapshot);
    put_u64(&mut out, values as u64);
    if let Some(last_values) = parts.last_values {
        last_values.write(&mut out);
    }
    let held: Vec<_> = held.collect();
    put_u64(&mut out, held.len() as u64);
    for (until, key, record) in held {
        for number in [until.0, key.hi(), key.lo()] {
            put_u64(&mut out, number);
        }
        out.push(u8::from(record.rank.is_some()));
        put_u64(&mut out, record.rank.map_or(0, f64::to_bits));
        out.extend_from_slice(&match record.mark {
            Mark::Column(separator) => [0, separator],
            Mark::Member => [1, 0],
        });
        put_block(&mut out, &record.bytes);
    }
    seal(&mut out);
    write(path, &out)
}

/// Puts the checksum of all that is there behind it.
pub(crate) fn seal(out: &mut Vec<u8>) {
    let checksum = checksum(out);
    put_u64(out, checksum);
}

/// Writes these bytes in the place of a file, whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    lately_store::replace(path, bytes).map_err(|error| StateError::Io(path.into(), error))
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_block(out: &mut Vec<u8>, block: &[u8]) {
    put_u64(out, block.len() as u64);
    out.extend_from_slice(block);
}

fn checksum(bytes: &[u8]) -> u64 {
    Digester::new(0).digest(bytes).lo()
}

/// Reads the parts of a state whose checksum has been verified.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Bytes that begin with this name; `what` says what they are to be.
    pub(crate) fn open(
        bytes: &'a [u8],
        magic: [u8; 8],
        version: u16,
        what: &str,
    ) -> Result<Self, String> {
        let Some(rest) = bytes.strip_prefix(&magic) else {
            return Err(format!("not {what}"));
        };
        let Some((body, sum)) = rest.split_last_chunk::<8>() else {
            return Err("cut off: nothing after its name".into());
        };
        let mut fields = Fields { rest: body };
        let found = u16::from(fields.u8()?) | u16::from(fields.u8()?) << 8;
        if found != version {
            return Err(format!("of format version {found}, and this lately reads {version}"));
        }
        if checksum(&bytes[..bytes.len() - 8]) != u64::from_le_bytes(*sum) {
            return Err("cut off or damaged: its checksum does not match".into());
        }
        Ok(fields)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], String> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("damaged: a length too long")?;
        self.rest = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?.first().copied().unwrap_or(0))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, String> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("damaged: a flag that is neither 0 nor 1".into()),
        }
    }

    pub(crate) fn u64(&mut self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], String> {
        let len = self.u64()?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<String, String> {
        let bytes = self.block()?.to_vec();
        String::from_utf8(bytes).map_err(|_| "damaged: settings are no text".into())
    }

    /// There must be nothing more.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err("damaged: bytes after the end".into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lately::{Spec, Verdict, Window, WindowFilter};
    use std::num::NonZeroU64;

    fn filter() -> AnyFilter {
        let window = Window::Unbounded { capacity: NonZeroU64::new(100).unwrap() };
        Spec::new(window).plan().unwrap().build()
    }

    fn saved(path: &Path) -> Vec<u8> {
        let mut filter = filter();
        let _ = filter.observe(Digest::new(1, 2), Tick(0));
        let held = Held { bytes: b"a record".to_vec(), mark: Mark::Column(b';'), rank: Some(-5.0) };
        let waiting = [(Tick(9), Digest::new(3, 4), &held)];
        let last = LastValues::new(1);
        let parts = Parts {
            settings: "key=a",
            clock: Some(Tick(7)),
            of_events: true,
            filter: &filter,
            last_values: Some(&last),
        };
        save(path, &parts, waiting.into_iter()).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let folder = std::env::temp_dir().join(format!("lately-state-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state");
        assert!(State::load(&path, "key=a").unwrap().is_none());
        let bytes = saved(&path);
        let mut state = State::load(&path, "key=a").unwrap().unwrap();
        assert_eq!(state.filter.observe(Digest::new(1, 2), Tick(0)), Verdict::Duplicate);
        assert_eq!((state.clock, state.of_events), (Some(Tick(7)), true));
        assert_eq!(state.held.len(), 1);
        let held = &state.held[0].2;
        assert_eq!((held.mark, held.rank), (Mark::Column(b';'), Some(-5.0)));
        assert!(matches!(State::load(&path, "key=b"), Err(StateError::Settings(..))));
        // case_S6: cut off or with any bit flipped, it is refused, never misread.
        for len in 0..bytes.len() {
            assert!(State::from_bytes(&bytes[..len]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(State::from_bytes(&bytes).is_err());
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_the_mode_of_the_file_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("lately-link-{}", std::process::id()));
        fs::create_dir_all(folder.join("there")).unwrap();
        let (link, file) = (folder.join("state"), folder.join("there/state"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_flag_is_0_or_1() {
        let folder = std::env::temp_dir().join(format!("lately-flag-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let bytes = saved(&folder.join("state"));
        // Behind magic, version and settings; of which the checksum is made anew.
        for at in [8 + 2 + 8 + 5, 8 + 2 + 8 + 6] {
            let mut body = bytes[..bytes.len() - 8].to_vec();
            assert_eq!(body[at], 1);
            body[at] = 2;
            let sum = checksum(&body);
            put_u64(&mut body, sum);
            assert!(State::from_bytes(&body).unwrap_err().contains("flag"));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn case_s5_a_state_that_cannot_be_written_says_so() {
        let path = Path::new("/nonexistent-folder/state");
        let parts = Parts {
            settings: "",
            clock: None,
            of_events: false,
            filter: &filter(),
            last_values: None,
        };
        let error = save(path, &parts, std::iter::empty()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent-folder/state"));
    }
}
