//! Filters that move from one server to another: as a whole (`LATELY.DUMP`, `LATELY.RESTORE`), or in chunks (`BF.SCANDUMP`,
//! `BF.LOADCHUNK`) where they are larger than a request or a reply may be.

use super::Call;
use crate::resp::{Limits, integer};
use crate::store::{Bounded, Entry, Family, Refusal, Share, Store};
use lately::SnapshotError;
use lately::codec::{self, Format};
use std::sync::Arc;

/// Bytes of a dump that one command takes or gives: a request holds it with its other words.
const MOST: u64 = Limits::FULL.request as u64 - (64 << 10);
/// Bytes of a dump in a chunk, but for the last one.
const CHUNK: usize = 16 << 20;

const CHUNKS: Format = Format::new(*b"\x89LCHNK\r\n", 1);

/// Replies behind which none of this size follows. Only a transaction has so many at once.
const REPLIES: usize = 1 << 20;
const TOO_MANY: &str =
    "ERR the replies of this transaction are too large: ask for dumps outside of it";
const ELSEWHERE: &str =
    "ERR no dump of this filter is under way on this connection: begin with the iterator 0";

/// What a client is moving in chunks. Dropped with its connection.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    /// The dump that it takes.
    given: Option<Dumped>,
    /// The dump that it brings, as far as it has come.
    loaded: Option<Dumped>,
}

/// A dump, or the beginning of one.
#[derive(Debug)]
struct Dumped {
    name: Vec<u8>,
    /// Tells it from others.
    id: u64,
    bytes: Vec<u8>,
    /// The memory for all of it.
    _share: Share,
}

/// `LATELY.DUMP key`
pub(super) fn dump(call: &mut Call<'_>) {
    let store = call.store();
    if call.reply.out.len() > REPLIES {
        return call.reply.error(TOO_MANY);
    }
    match store.existing(call.words.at(1), call.now) {
        Err(refusal) => call.refuse(refusal),
        Ok(entry) => match store.dump_len(&entry) {
            length if length > MOST => call.refuse(format!(
                "ERR the dump has about {length} bytes, and a reply at most {MOST}: take it in chunks, by BF.SCANDUMP or CF.SCANDUMP"
            )),
            _ => call.reply.bulk(&store.dump(&entry, call.now)),
        },
    }
}

/// `LATELY.RESTORE key bytes [REPLACE]`
pub(super) fn restore(call: &mut Call<'_>) {
    let words = call.words;
    let replaces = words.is(3, "replace");
    if words.len() > 3 + usize::from(replaces) {
        return call.syntax_error();
    }
    let commit = || call.server.keeper.commit();
    match call.store().restore(words.at(1), words.at(2), (replaces, None), call.now, &commit) {
        Ok(()) => call.reply.ok(),
        Err(refusal) => call.refuse(refusal),
    }
}

/// What RedisBloom says in commands of one family, word for word.
struct Words {
    family: Family,
    /// Of an iterator that is none, when a dump is asked for, and when one is loaded.
    no_iterator: [&'static str; 2],
    bad_data: &'static str,
}

const BLOOM: Words = Words {
    family: Family::Bloom,
    no_iterator: ["Second argument must be numeric", "ERR Second argument must be numeric"],
    bad_data: "ERR received bad data",
};
const CUCKOO: Words = Words {
    family: Family::Cuckoo,
    no_iterator: ["Invalid position"; 2],
    bad_data: "Invalid header",
};

impl Words {
    /// For the command at hand.
    fn of(call: &Call<'_>) -> &'static Self {
        match call.words.at(0).first() {
            Some(b'c' | b'C') => &CUCKOO,
            _ => &BLOOM,
        }
    }

    fn iterator(&self, call: &Call<'_>, loads: bool) -> Result<i64, String> {
        let is_one = |found: &i64| match self.family {
            Family::Cuckoo if loads => *found != 0,
            Family::Cuckoo => *found >= 0,
            _ => true,
        };
        let found = integer(call.words.at(2)).filter(is_one);
        found.ok_or_else(|| self.no_iterator[usize::from(loads)].to_owned())
    }
}

/// `BF.SCANDUMP key iterator`, `CF.SCANDUMP key iterator`: the next iterator, and a chunk.
pub(super) fn scan_dump(call: &mut Call<'_>) {
    match scanned(call) {
        Ok((next, chunk)) => {
            call.reply.array(2);
            call.reply.integer(next);
            call.reply.bulk(&chunk);
        }
        Err(error) => call.reply.error(&error),
    }
}

/// The filter that a command names, if there is one that moves by commands of this family.
fn to_move(call: &Call<'_>, family: Family) -> Result<Option<Arc<Entry>>, Refusal> {
    let (store, name) = (call.store(), call.words.at(1));
    match store.existing(name, call.now) {
        Ok(entry) if entry.moves_as(family) => Ok(Some(entry)),
        _ => store.of_family(name, family, call.now),
    }
}

fn scanned(call: &mut Call<'_>) -> Result<(i64, Vec<u8>), String> {
    if call.reply.out.len() > REPLIES {
        return Err(TOO_MANY.into());
    }
    let words = Words::of(call);
    let existing = |call: &Call<'_>| {
        let found = to_move(call, words.family).and_then(|found| found.ok_or(Refusal::NotFound));
        found.map_err(|refusal| refusal.to_string())
    };
    // In which order they are looked at shows where both are wrong.
    let (entry, iterator) = match words.family {
        Family::Cuckoo => {
            let iterator = words.iterator(call, false)?;
            (existing(call)?, iterator)
        }
        _ => (existing(call)?, words.iterator(call, false)?),
    };
    let chunk = chunk(call, &entry, iterator)?;
    Ok(chunk.map_or((0, Vec::new()), |chunk| (iterator + 1, chunk)))
}

/// The chunk after so many others; `None` behind the last one.
fn chunk(
    call: &mut Call<'_>,
    entry: &Arc<Entry>,
    iterator: i64,
) -> Result<Option<Vec<u8>>, String> {
    let (store, given) = (call.store(), &mut call.state.transfer.given);
    let Ok(number) = usize::try_from(iterator) else { return Ok(None) };
    if number == 0 {
        // The one before gives its memory back first.
        *given = None;
        *given = Some(Dumped::of(store, entry, call.now)?);
    }
    if let Some(dumped) = given.as_ref().filter(|dumped| dumped.name == entry.name()) {
        let chunk = dumped.chunk(number);
        if chunk.is_none() {
            *given = None;
        }
        return Ok(chunk);
    }
    // On another connection than the dump: it has come to its end, or cannot be continued.
    let chunks = store.dump_len(entry).div_ceil(CHUNK as u64);
    if number as u64 >= chunks { Ok(None) } else { Err(ELSEWHERE.into()) }
}

impl Dumped {
    fn of(store: &Store, entry: &Entry, now: u64) -> Result<Self, String> {
        let share = Bounded::share(store.dump_len(entry), &store.budget);
        let share = share.map_err(|refusal| refusal.to_string())?;
        let bytes = store.dump(entry, now);
        // Its checksum.
        let id = bytes.last_chunk().map_or(0, |sum| u64::from_le_bytes(*sum));
        Ok(Self { name: entry.name().to_vec(), id, bytes, _share: share })
    }

    /// What begins with this chunk, of which nothing has been taken yet.
    fn begin(name: &[u8], chunk: &Chunk, store: &Store) -> Result<Self, Refusal> {
        let share = Bounded::share(chunk.total, &store.budget)?;
        let mut bytes = Vec::new();
        // Not a byte more than is paid for, as there would be if it grew.
        let total = usize::try_from(chunk.total).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(total).map_err(|_| Refusal::NoMemory)?;
        Ok(Self { name: name.to_vec(), id: chunk.id, bytes, _share: share })
    }

    /// Is this the next chunk of it?
    fn continues_with(&self, chunk: &Chunk) -> bool {
        let end = chunk.from.saturating_add(chunk.part.len() as u64);
        let is_next = (self.id, self.bytes.len() as u64) == (chunk.id, chunk.from);
        is_next && end <= chunk.total && !chunk.part.is_empty()
    }

    fn chunk(&self, number: usize) -> Option<Vec<u8>> {
        let from = number.checked_mul(CHUNK)?;
        let part = self.bytes.get(from..).filter(|rest| !rest.is_empty())?;
        let part = &part[..part.len().min(CHUNK)];
        Some(codec::to_vec(CHUNKS, |out| {
            [self.id, self.bytes.len() as u64, from as u64].into_iter().for_each(|n| out.u64(n));
            out.block(part);
        }))
    }
}

/// A part of a dump.
struct Chunk {
    id: u64,
    /// Bytes of the whole.
    total: u64,
    from: u64,
    part: Vec<u8>,
}

impl Chunk {
    fn read(bytes: &[u8]) -> Result<Self, SnapshotError> {
        codec::from_slice(CHUNKS, bytes, |input| {
            let [id, total, from] = [input.u64()?, input.u64()?, input.u64()?];
            Ok(Self { id, total, from, part: input.block()? })
        })
    }
}

/// `BF.LOADCHUNK key iterator data`, `CF.LOADCHUNK key iterator data`
pub(super) fn load_chunk(call: &mut Call<'_>) {
    let done = Words::of(call).iterator(call, true).and_then(|iterator| load(call, iterator));
    match done {
        Ok(()) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
}

/// Takes a chunk, and makes the filter if it is the last one.
fn load(call: &mut Call<'_>, iterator: i64) -> Result<(), String> {
    let text = |refusal: Refusal| refusal.to_string();
    let (store, name, now, words) = (call.store(), call.words.at(1), call.now, Words::of(call));
    let bad = || words.bad_data.to_owned();
    if to_move(call, words.family).map_err(text)?.is_some() {
        return Err(text(Refusal::Exists));
    }
    let loaded = &mut call.state.transfer.loaded;
    store.check_name(name, now, false).map_err(text)?;
    if iterator != 1 && loaded.as_ref().is_none_or(|loaded| loaded.name != name) {
        return Err(text(Refusal::NotFound));
    }
    let chunk = Chunk::read(call.words.at(3)).map_err(|_| bad())?;
    let number = (chunk.from / CHUNK as u64).saturating_add(1);
    if i64::try_from(number) != Ok(iterator) {
        return Err(bad());
    }
    let said = |refusal: Refusal| match refusal {
        Refusal::Dump(_) => bad(),
        refusal => text(refusal),
    };
    if chunk.from == 0 {
        store.check_beginning(&chunk.part, chunk.total).map_err(said)?;
        // The one before gives its memory back first.
        *loaded = None;
        *loaded = Some(Dumped::begin(name, &chunk, store).map_err(text)?);
    }
    let begun = loaded.as_mut().filter(|begun| begun.continues_with(&chunk));
    let Some(begun) = begun else { return Err(bad()) };
    begun.bytes.extend_from_slice(&chunk.part);
    if (begun.bytes.len() as u64) < chunk.total {
        return Ok(());
    }
    // Its memory is in use until the filter is there.
    let Some(whole) = loaded.take() else { return Err(bad()) };
    let commit = || call.server.keeper.commit();
    let how = (false, Some(words.family));
    store.restore(name, &whole.bytes, how, now, &commit).map_err(said)
}
