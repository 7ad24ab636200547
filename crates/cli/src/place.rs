//! Which file a name leads to: an output must be neither an input nor another output.

use crate::Failure;
use crate::output::is_dash;
use lately_store::{Lock, Replacement};
use lately_stream::source::Source;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// A file that a run reads or writes.
pub struct Place {
    /// What it is to the person who named it.
    label: String,
    path: PathBuf,
    /// For a stream that came open, without a name.
    open: Option<Identity>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Output,
    /// Standard error: not written to as an output is.
    Messages,
}

/// What tells files apart, whatever their names are.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    /// Device and number.
    #[cfg(unix)]
    There(u64, u64),
    /// By its one true name.
    #[cfg(not(unix))]
    There(PathBuf),
    /// Not there yet: its folder and its name in it.
    New(PathBuf, OsString),
}

impl Place {
    /// An input, by its name; `-` is standard input, where that is a file.
    pub fn input(name: &str) -> Option<Self> {
        if name == Source::STDIN {
            return Self::stdin();
        }
        let label = format!("the input {name}");
        Some(Self { label, path: name.into(), open: None, role: Role::Input })
    }

    /// An output that this flag names.
    pub fn output(flag: &str, path: &Path) -> Self {
        let label = format!("{flag} {}", path.display());
        Self { label, path: path.into(), open: None, role: Role::Output }
    }

    /// Where records are forwarded to: the file, or standard output, where that is a file or a pipe.
    pub fn main(path: Option<&Path>) -> Option<Self> {
        match path {
            Some(path) if !is_dash(path) => Some(Self::output("--output", path)),
            _ => Self::stdout(),
        }
    }

    /// Standard input, where it is a file.
    fn stdin() -> Option<Self> {
        Self::standard("standard input", Role::Input, stream(std::io::stdin()))
    }

    /// Standard output, where it is a file or a pipe.
    fn stdout() -> Option<Self> {
        Self::standard("standard output", Role::Output, stream(std::io::stdout()))
    }

    /// Standard error, where it is a file.
    fn stderr() -> Option<Self> {
        let place = stream(std::io::stderr());
        Self::standard("standard error", Role::Messages, place)
    }

    fn standard(label: &str, role: Role, open: Option<Identity>) -> Option<Self> {
        Some(Self { label: label.into(), path: PathBuf::new(), open: Some(open?), role })
    }

    /// The inputs of these names, `-` for standard input, and where messages go.
    pub fn inputs<'a>(names: impl Iterator<Item = &'a String>) -> Vec<Self> {
        let (dashes, named): (Vec<_>, Vec<_>) = names.partition(|name| *name == Source::STDIN);
        let mut places: Vec<_> = named.into_iter().filter_map(|name| Self::input(name)).collect();
        if !dashes.is_empty() {
            places.extend(Self::stdin());
        }
        places.extend(Self::stderr());
        places
    }

    /// The outputs other than the main one that flags name, none of which may be a standard stream:
    /// says `why` not.
    pub fn outputs<const N: usize>(
        others: [(&str, &Option<PathBuf>); N],
        why: &str,
    ) -> Result<Vec<Self>, Failure> {
        let named = others.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        let place = |(flag, path): (&str, &PathBuf)| {
            if is_dash(path) {
                return Err(Failure::Usage(format!("{flag} -: {why}name a file")));
            }
            Ok(Self::output(flag, path))
        };
        named.map(place).collect()
    }

    /// The files of a state: itself, and those that are made next to it.
    pub fn state(path: &Path) -> Vec<Self> {
        let others = [
            ("the new file of --state,", Replacement::path(path)),
            ("the lock file of --state,", Lock::path(path)),
        ];
        let others = others.into_iter().filter_map(|(what, path)| Some((what, path.ok()?)));
        let others = others.map(|(what, path)| Self::output(what, &path));
        [Self::output("--state", path)].into_iter().chain(others).collect()
    }

    /// Where the numbers go, if to a file.
    pub fn summary(path: Option<&Path>) -> Option<Self> {
        path.filter(|path| !is_dash(path)).map(|path| Self::output("--summary", path))
    }

    fn identity(&self) -> Option<Identity> {
        if self.path.as_os_str().is_empty() {
            return None;
        }
        match self.path.metadata() {
            Ok(metadata) => there(&self.path, &metadata),
            Err(_) => {
                let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
                Some(Identity::New(folder, self.path.file_name()?.into()))
            }
        }
    }

    fn may_share(&self, other: &Self) -> bool {
        match (self.role, other.role) {
            (Role::Input, Role::Input | Role::Messages) | (Role::Messages, Role::Input) => true,
            // The shell has opened both, and knows how (`> all 2>&1`).
            (Role::Output, Role::Messages) | (Role::Messages, Role::Output) => {
                self.open.is_some() && other.open.is_some()
            }
            _ => false,
        }
    }
}

/// Refuses files that are named twice where that would lose data.
pub fn refuse_clashes(places: &[Place]) -> Result<(), Failure> {
    let mut known: Vec<(&Place, Identity)> = Vec::new();
    for place in places {
        let identity = match &place.open {
            Some(open) => Some(open.clone()),
            None => place.identity(),
        };
        let Some(identity) = identity else { continue };
        let clash = known.iter().find(|(other, id)| *id == identity && !place.may_share(other));
        if let Some((other, _)) = clash {
            return Err(Failure::Usage(format!(
                "{} and {} are the same file; one would overwrite the other, name another",
                place.label, other.label
            )));
        }
        known.push((place, identity));
    }
    Ok(())
}

/// The identity of what holds data. Several outputs may well go to one terminal or to nowhere.
#[cfg(unix)]
fn there(_: &Path, metadata: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let kind = metadata.file_type();
    (kind.is_file() || kind.is_fifo() || kind.is_block_device())
        .then(|| Identity::There(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn there(path: &Path, metadata: &Metadata) -> Option<Identity> {
    metadata.is_file().then(|| path.canonicalize().ok().map(Identity::There)).flatten()
}

#[cfg(unix)]
fn stream(stream: impl std::os::fd::AsFd) -> Option<Identity> {
    let file = std::fs::File::from(stream.as_fd().try_clone_to_owned().ok()?);
    there(Path::new(""), &file.metadata().ok()?)
}

#[cfg(not(unix))]
fn stream<T>(_: T) -> Option<Identity> {
    None
}
