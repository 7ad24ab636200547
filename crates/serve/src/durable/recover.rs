//! Reading journals: what changed after a snapshot.

use super::disk::JOURNAL;
use super::journal::{HEADER, Header};
use crate::store::{Replay, change, change::Framed};
use lately::Digest;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read at a time.
const PART: usize = 1 << 20;

/// Why a journal cannot be read.
#[derive(Debug)]
pub(crate) struct JournalFault {
    path: PathBuf,
    /// Where in the file, if that is known.
    at: Option<u64>,
    what: String,
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(at) = self.at {
            write!(f, ", byte {at}")?;
        }
        write!(
            f,
            ": {}; nothing was changed. Put a copy of the folder back, or start once with --recover, which leaves out what is damaged",
            self.what
        )
    }
}

/// What journals amounted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Changes that were made again.
    pub(crate) changes: u64,
    /// Where the last one ends.
    pub(crate) end: u64,
    /// Bytes at the very end that a crash had left half written.
    pub(crate) torn: u64,
    /// Bytes that were left out because they are damaged.
    pub(crate) damaged: u64,
}

/// The journals of a folder from this number on, in order.
pub(crate) fn journals(folder: &Path, from: u64) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder)? {
        let name = file?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(JOURNAL));
        let number: Option<u64> = number.and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|&number| number >= from) {
            found.push((number, folder.join(&name)));
        }
    }
    found.sort();
    Ok(found)
}

/// The header of a journal.
pub(crate) fn header(path: &Path) -> Result<Header, JournalFault> {
    let fault = |what: String| JournalFault { path: path.into(), at: None, what };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| fault(error.to_string()))?;
    file.take(HEADER).read_to_end(&mut bytes).map_err(|error| fault(error.to_string()))?;
    Header::read(&bytes).map_err(|error| JournalFault { at: Some(0), ..fault(error.to_string()) })
}

/// Makes the changes of journals again. The first one begins at place `begin`, if that is known.
///
/// The torn tail of the last one is cut off. Damage before that is a fault, unless it is to be left out.
pub(crate) fn replay(
    journals: &[(u64, PathBuf)],
    begin: Option<u64>,
    leaves_out: bool,
    replay: &mut Replay<'_>,
) -> Result<Recovered, JournalFault> {
    let mut sum = Recovered { end: begin.unwrap_or(0), ..Recovered::default() };
    let mut expected = begin;
    for (at, (_, path)) in journals.iter().enumerate() {
        let fault = |at, what: &str| JournalFault { path: path.clone(), at, what: what.into() };
        let header = match header(path) {
            Ok(header) => header,
            Err(_) if leaves_out => {
                sum.damaged += fs::metadata(path).map_or(0, |found| found.len());
                continue;
            }
            Err(error) => return Err(error),
        };
        if expected.is_some_and(|expected| expected != header.base) && !leaves_out {
            return Err(fault(Some(0), "a journal before this one is missing, or is cut short"));
        }
        let is_last = at + 1 == journals.len();
        let file = File::open(path).map_err(|error| fault(None, &error.to_string()))?;
        let mut scan = Scan::new(file);
        scan.changes(path, header.base, is_last, leaves_out, replay, &mut sum)?;
        sum.end = sum.end.max(header.base + (scan.at - HEADER));
        if is_last && sum.torn > 0 {
            cut(path, scan.at).map_err(|error| fault(None, &error.to_string()))?;
        }
        expected = Some(sum.end);
    }
    Ok(sum)
}

/// Makes the changes again that these bytes hold, which follow the header of the last journal.
pub(crate) fn replay_bytes(
    bytes: &[u8],
    leaves_out: bool,
    replay: &mut Replay<'_>,
) -> Result<Recovered, JournalFault> {
    let (mut scan, mut sum) = (Scan { at: HEADER, ..Scan::new(bytes) }, Recovered::default());
    scan.changes(Path::new("bytes"), 0, true, leaves_out, replay, &mut sum)?;
    Ok(sum)
}

/// Cuts off the tail of a file.
fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// A journal that is being read.
struct Scan<R> {
    file: R,
    buffer: Vec<u8>,
    /// What of the buffer was looked at.
    from: usize,
    /// Where in the file that is.
    at: u64,
    is_at_end: bool,
}

impl<R: Read> Scan<R> {
    fn new(file: R) -> Self {
        Self { file, buffer: Vec::new(), from: 0, at: 0, is_at_end: false }
    }

    fn skip(&mut self, bytes: usize) {
        self.from += bytes;
        self.at += bytes as u64;
    }

    /// Reads on; `false` at the end of the file.
    fn read_on(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.from);
        self.from = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + PART, 0);
        let read = loop {
            match self.file.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        self.is_at_end = read? == 0;
        Ok(!self.is_at_end)
    }

    /// The length of the body of the change here. `None` if there is no whole one.
    fn here(&mut self) -> io::Result<Option<usize>> {
        loop {
            match change::framed(&self.buffer[self.from..]) {
                Framed::Whole(body) => return Ok(Some(body.len())),
                Framed::Damaged => return Ok(None),
                Framed::Torn => {}
            }
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// Bytes up to the next whole change; `None` where there is none.
    fn advance_skip_damage(&mut self) -> io::Result<Option<u64>> {
        let begin = self.at;
        while self.from < self.buffer.len() || self.read_on()? {
            if self.here()?.is_some() {
                return Ok(Some(self.at - begin));
            }
            if self.from < self.buffer.len() {
                self.skip(1);
            }
        }
        Ok(None)
    }

    fn changes(
        &mut self,
        path: &Path,
        base: u64,
        is_last: bool,
        leaves_out: bool,
        replay: &mut Replay<'_>,
        sum: &mut Recovered,
    ) -> Result<(), JournalFault> {
        let fault = |at: u64, what: String| JournalFault { path: path.into(), at: Some(at), what };
        let io = |at: u64| move |error: io::Error| fault(at, error.to_string());
        let mut digests: Vec<Digest> = Vec::new();
        while self.at < HEADER {
            if !self.read_on().map_err(io(0))? {
                return Err(fault(0, "it is shorter than its header".into()));
            }
            let header = (HEADER - self.at).min(self.buffer.len() as u64);
            self.skip(header as usize);
        }
        loop {
            if let Some(len) = self.here().map_err(io(self.at))? {
                let begin = self.from + change::HEADER;
                let body = &self.buffer[begin..begin + len];
                let place = base + (self.at - HEADER);
                match change::read(body, &mut digests) {
                    Some(change) => {
                        let again = replay.apply(change, place);
                        again.map_err(|refusal| fault(self.at, refusal.to_string()))?;
                        sum.changes += 1;
                    }
                    None if leaves_out => sum.damaged += (change::HEADER + len) as u64,
                    None => {
                        let what = "a change that this version of lately does not know";
                        return Err(fault(self.at, what.into()));
                    }
                }
                self.skip(change::HEADER + len);
                continue;
            }
            let (at, from) = (self.at, self.buffer.len() - self.from);
            if from == 0 && self.is_at_end {
                return Ok(());
            }
            match self.advance_skip_damage().map_err(io(at))? {
                Some(skipped) if leaves_out => sum.damaged += skipped,
                None if is_last || leaves_out => {
                    sum.torn += self.at - at;
                    self.at = at;
                    return Ok(());
                }
                _ => return Err(fault(at, "it is damaged".into())),
            }
        }
    }
}
