//! About how many records files have, from their sizes and from how they begin.

use super::open;
use super::source::Source;
use std::fs::File;
use std::io;
#[cfg(not(unix))]
use std::io::Read;

/// How much of a file is looked at.
const LOOK: usize = 1 << 16;

/// How many files are.
const FILES: usize = 16;

impl Source {
    /// About how many records the inputs have, if those that come are as long as those that the files begin with. Where a
    /// record runs over several lines there are fewer.
    ///
    /// `None` where nobody can say: an input is no regular file, or is compressed or an archive.
    ///
    /// *Cost:* opens up to 16 of the files, and reads 64 KiB of each.
    pub fn estimate_records(&self) -> Option<u64> {
        let end = if self.options().null { 0 } else { b'\n' };
        let (mut size, mut looked, mut ends) = (0, 0, 0);
        for (at, name) in self.names().iter().enumerate() {
            let (left, head) = if name == Self::STDIN {
                let (file, at) = open::stdin_file()?;
                (file.metadata().ok()?.len().saturating_sub(at), look(&file, at).ok()?)
            } else {
                let metadata = std::fs::metadata(name).ok().filter(std::fs::Metadata::is_file)?;
                let is_looked_at = at < FILES && metadata.len() > 0;
                let head =
                    if is_looked_at { look(&File::open(name).ok()?, 0).ok()? } else { Vec::new() };
                (metadata.len(), head)
            };
            if open::compression(&head).is_some() || open::archive(&head).is_some() {
                return None;
            }
            size += left;
            looked += head.len() as u64;
            ends += head.iter().filter(|&&byte| byte == end).count() as u64;
        }
        // The last one needs no end.
        (looked > 0).then(|| (size as f64 / looked as f64 * ends.max(1) as f64) as u64)
    }
}

/// What comes next in a file that was read as far as this; it stays there to be read.
#[cfg(unix)]
fn look(file: &File, mut at: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut head = vec![0; LOOK];
    let mut len = 0;
    while let Some(rest) = head.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(read) => (len, at) = (len + read, at + read as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(len);
    Ok(head)
}

/// How a file begins.
#[cfg(not(unix))]
fn look(mut file: &File, _at: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.by_ref().take(LOOK as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Format, Options};
    use crate::read::tests::options;

    /// What is said of files with these bytes.
    fn of(test: &str, files: &[&[u8]], null: bool) -> Option<u64> {
        let name = |at| format!("lately-estimate-{}-{test}-{at}", std::process::id());
        let paths: Vec<_> =
            (0..files.len()).map(|at| std::env::temp_dir().join(name(at))).collect();
        let names = paths.iter().zip(files).map(|(path, bytes)| {
            std::fs::write(path, bytes).unwrap();
            path.display().to_string()
        });
        let source = Source::new(names.collect(), Options { null, ..options(Format::Auto) });
        let found = source.estimate_records();
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        found
    }

    #[test]
    fn records_are_counted_by_how_files_begin() {
        let lines = |count: usize| b"9 letters\n".repeat(count);
        assert_eq!(of("none", &[], false), None);
        assert_eq!(of("empty", &[b""], false), None);
        assert_eq!(of("one", &[b"no end"], false), Some(1));
        // To one in the thousands that are looked at.
        let about = |found: Option<u64>, count: u64| {
            let found = found.unwrap();
            assert!(found.abs_diff(count) <= 1 + count / 6_000, "{found}, not {count}");
        };
        about(of("long", &[&lines(100_000)], false), 100_000);
        about(of("two", &[&lines(1_000), &lines(100_000)], false), 101_000);
        about(of("many", &[&lines(100)[..]; 40], false), 4_000);
        about(of("null", &[&b"a\n\0".repeat(30_000)], true), 30_000);
        about(of("lines", &[&b"a\n\0".repeat(30_000)], false), 30_000);
    }

    #[test]
    fn nobody_knows_how_many_records_are_compressed_or_come_by_a_pipe() {
        assert_eq!(of("gzip", &[b"line\n", b"\x1F\x8B\x08\0"], false), None);
        assert_eq!(of("zip", &[b"PK\x03\x04"], false), None);
        for name in ["-", "/dev/null", "/nowhere/at/all"] {
            assert_eq!(
                Source::new(vec![name.into()], options(Format::Auto)).estimate_records(),
                None
            );
        }
    }
}
