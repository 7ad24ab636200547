//! What a process keeps on disk: all its hosts, and a journal of what changed them since.

use crate::store::{Entries, Folder, Journal, blobs};
use lately_edge::Millis;
use lately_edge::cell::Square;
use lately_edge::host::{Host, HostConfig, Refusal};
use lately_edge::message::Peer;
use lately_edge::process::Process;
use lately_edge::wire;
use std::io;

const STATE: &str = "hosts";
/// A journal may always get as long as this.
pub(super) const SHORTEST: u64 = 1 << 20;

/// The state of a process on disk.
pub(super) struct Disk {
    folder: Folder,
    /// The number of the state and of its journal.
    pub(super) number: u64,
    pub(super) journal: Journal,
    /// How long the journal may get.
    most: u64,
}

/// What a process found when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Hosts in the state.
    pub hosts: usize,
    /// Messages that came after it, and batches of readings that were sent.
    pub messages: usize,
    /// Bytes of an incomplete write at the end; nothing in it was acknowledged.
    pub cut_off: usize,
    /// What was there before and is missing: what it held is lost.
    pub missing: Option<Missing>,
}

/// A file that was removed, or was not copied with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The hosts, of which there is a journal.
    Hosts,
    /// The journal that follows the hosts, with this number.
    Journal(u64),
}

impl Disk {
    /// Gives the process what the folder holds, and begins a new state.
    ///
    /// # Errors
    /// What the file system says, or that the state is damaged.
    pub(super) fn open(
        folder: Folder,
        process: &mut Process,
        config: HostConfig,
        now: Millis,
    ) -> io::Result<(Self, Resumed)> {
        let mut resumed = Resumed::default();
        let mut number = 0;
        if let Some((saved, blobs)) = blobs::read(&folder, STATE)? {
            number = saved;
            let (Entries { records, cut_off }, missing) = match Journal::read(&folder, number) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    (Entries::default(), Some(Missing::Journal(number)))
                }
                read => (read?, None),
            };
            resumed = Resumed {
                hosts: reopen(process, &blobs, config, &folder)?,
                messages: records.len(),
                cut_off,
                missing,
            };
            records.iter().for_each(|record| replay(process, record));
            process.resume(now);
        } else if let Some(last) = folder.journals()?.into_iter().max() {
            // Whoever wants to look into a journal that is left still can.
            (number, resumed.missing) = (last, Some(Missing::Hosts));
        }
        let (journal, most) = snapshot(&folder, number + 1, process)?;
        // A journal that is left behind is of no use, and harms nobody.
        if resumed.missing != Some(Missing::Hosts) {
            let _ = std::fs::remove_file(folder.file(&format!("journal-{number}")));
        }
        Ok((Self { folder, number: number + 1, journal, most }, resumed))
    }

    /// Adds a message that was handled to the journal; it is safe after the next [`Disk::commit`].
    pub(super) fn note(&mut self, now: Millis, to: Peer, payload: &[u8]) {
        self.journal.add(&record(now, to, payload));
    }

    /// Adds a submission that was refused: when it comes again, that is known, and it counts once.
    pub(super) fn note_refusal(&mut self, now: Millis, to: Peer, why: Refusal, payload: &[u8]) {
        let mut record = record(now, to, payload);
        // The highest byte of the square's number is 0.
        if let Some(byte) = record.get_mut(15) {
            *byte = 1 + why as u8;
        }
        self.journal.add(&record);
    }

    /// Makes all that was noted safe.
    pub(super) fn commit(&mut self) -> io::Result<()> {
        self.journal.commit()
    }

    /// Whether the journal has become longer than the state that it adds to.
    pub(super) fn is_long(&self) -> bool {
        self.journal.length() > self.most
    }

    /// Writes all hosts, and begins a new journal.
    pub(super) fn rewrite(&mut self, process: &Process) -> io::Result<()> {
        let (next, most) = snapshot(&self.folder, self.number + 1, process)?;
        (self.number, self.most) = (self.number + 1, most);
        std::mem::replace(&mut self.journal, next).discard()
    }
}

/// Writes all hosts, and begins the journal that follows, which may get as long as they are.
fn snapshot(folder: &Folder, number: u64, process: &Process) -> io::Result<(Journal, u64)> {
    // The journal first: a state without one would be mistaken for a state after which nothing came.
    let journal = Journal::begin(folder, number)?;
    // How many of them are not leaving, and all.
    let mut blobs = vec![(process.hosts().count() as u64).to_le_bytes().to_vec()];
    blobs.extend(process.all_hosts().map(Host::save));
    let length: usize = blobs.iter().map(Vec::len).sum();
    blobs::write(folder, STATE, number, &blobs)?;
    Ok((journal, SHORTEST.max(length as u64)))
}

/// The hosts of a state, as they were; how many there are.
fn reopen(
    process: &mut Process,
    blobs: &[Vec<u8>],
    config: HostConfig,
    folder: &Folder,
) -> io::Result<usize> {
    let damaged = |error: &dyn std::fmt::Display| {
        let path = folder.file(STATE);
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
    };
    let (staying, hosts) = blobs.split_first().ok_or_else(|| damaged(&"too short"))?;
    let staying = staying.as_slice().try_into().map(u64::from_le_bytes);
    let staying = staying.map_err(|_| damaged(&"no number of hosts"))?;
    for (at, bytes) in (0..).zip(hosts) {
        let host = Host::reopen(bytes, config).map_err(|error| damaged(&error))?;
        if at < staying { process.adopt(host) } else { process.adopt_leaving(host) }
    }
    Ok(hosts.len())
}

/// A message that was handled: the moment, the square (0: the process itself; in its highest byte, why the message was
/// refused, if it was), the message.
fn record(now: Millis, to: Peer, payload: &[u8]) -> Vec<u8> {
    let square = if let Peer::Host(square) = to { square.id() } else { 0 };
    let mut record = now.to_le_bytes().to_vec();
    record.extend(square.to_le_bytes());
    record.extend(payload);
    record
}

/// Handles a message again. Its effects on others were sent at that time, or are requested again by whoever misses them.
fn replay(process: &mut Process, record: &[u8]) {
    let Some((now, rest)) = record.split_first_chunk::<8>() else { return };
    let Some((square, payload)) = rest.split_first_chunk::<8>() else { return };
    let [.., why] = *square;
    let square = u64::from_le_bytes(*square) & u64::MAX >> 8;
    let to = match square {
        0 => Some(Peer::Process(process.id())),
        id => Square::from_id(id).ok().map(Peer::Host),
    };
    if let (Some(to), Ok(message)) = (to, wire::decode(payload)) {
        let now = u64::from_le_bytes(*now);
        match why.checked_sub(1) {
            None => process.replay(now, to, message),
            Some(why) => {
                let why = Refusal::from_number(why);
                why.into_iter().for_each(|why| process.replay_refusal(now, to, &message, why));
            }
        }
    }
}
