//! A change to what the server remembers, as bytes.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | length of the body |
//! | 8 | XXH3-64 of the length and the body |
//! | length | body: its kind in one byte, then its fields |
//!
//! All numbers are little-endian.

use super::Options;
use lately::Digest;
use lately::codec::{self, Format};
use std::num::NonZeroU64;
use xxhash_rust::xxh3::Xxh3;

/// The options of a filter within a change.
const OPTIONS: Format = Format::new(*b"\x89LSOPT\r\n", 1);

/// Bytes before the body.
pub(crate) const HEADER: usize = 12;
/// Bytes of a digest.
const DIGEST: usize = 16;
/// Digests in one change; of more, several changes are made.
const MOST: usize = 4096;
/// The longest body: digests and a few numbers. A creation has a name and options, which are shorter.
const LONGEST: usize = MOST * DIGEST + 64;

/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change<'a> {
    /// A filter was made.
    Created { id: u64, name: &'a [u8], options: Options },
    /// A filter was dropped.
    Dropped { id: u64 },
    /// A filter is to be dropped at this moment, or no longer is.
    Expires { id: u64, at: Option<u64> },
    /// Keys arrived at a filter; it judges them again in the same way.
    Arrived { id: u64, moment: u64, digests: &'a [Digest] },
    /// A filter marked keys as seen, whatever it knew of them.
    Marked { id: u64, moment: u64, digests: &'a [Digest] },
    /// Keys without a name were marked, with this time to live.
    Set { ttl: Option<NonZeroU64>, is_exact: bool, moment: u64, digests: &'a [Digest] },
    /// Everything was forgotten.
    Cleared,
    /// A filter forgot these keys.
    Forgotten { id: u64, digests: &'a [Digest] },
    /// Keys without a name that had this time to live were taken out.
    Unset { ttl: Option<NonZeroU64>, digests: &'a [Digest] },
    /// What had expired at this moment gave its memory back.
    Tidied { moment: u64 },
    /// A piece of the dump of a filter, which is behind so many bytes of it. Others follow, and [`Change::Restored`].
    Piece { id: u64, from: u64, bytes: &'a [u8] },
    /// A filter was made of a dump of this length, in the place of any of its name.
    Restored { id: u64, name: &'a [u8], length: u64 },
}

/// Bytes of a dump in one change.
pub(crate) const PIECE: usize = MOST * DIGEST;

impl Change<'_> {
    /// Writes the change, or several where it has very many keys, behind what is there.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Created { id, name, ref options } => frame(out, 1, |out| {
                number(out, id);
                out.extend_from_slice(&(name.len() as u32).to_le_bytes());
                out.extend_from_slice(name);
                out.extend(codec::to_vec(OPTIONS, |out| options.write(out)));
            }),
            Self::Dropped { id } => frame(out, 2, |out| number(out, id)),
            Self::Expires { id, at } => frame(out, 3, |out| {
                number(out, id);
                number(out, at.unwrap_or(NEVER));
            }),
            Self::Arrived { id, moment, digests } => {
                frames(out, 4, digests, |out| [id, moment].map(|n| number(out, n)));
            }
            Self::Marked { id, moment, digests } => {
                frames(out, 5, digests, |out| [id, moment].map(|n| number(out, n)));
            }
            Self::Set { ttl, is_exact, moment, digests } => frames(out, 6, digests, |out| {
                number(out, ttl.map_or(0, NonZeroU64::get));
                out.push(is_exact.into());
                number(out, moment);
            }),
            Self::Cleared => frame(out, 7, |_| ()),
            Self::Forgotten { id, digests } => frames(out, 8, digests, |out| number(out, id)),
            Self::Unset { ttl, digests } => {
                frames(out, 9, digests, |out| number(out, ttl.map_or(0, NonZeroU64::get)));
            }
            Self::Tidied { moment } => frame(out, 10, |out| number(out, moment)),
            Self::Piece { id, from, bytes } => frame(out, 11, |out| {
                number(out, id);
                number(out, from);
                out.extend_from_slice(bytes);
            }),
            Self::Restored { id, name, length } => frame(out, 12, |out| {
                number(out, id);
                number(out, length);
                out.extend_from_slice(name);
            }),
        }
    }
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Writes the body of a change of some kind, and what goes before it.
pub(crate) fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEADER]);
    out.push(kind);
    body(out);
    let length = ((out.len() - begin - HEADER) as u32).to_le_bytes();
    out[begin..begin + 4].copy_from_slice(&length);
    let sum = checksum(length, &out[begin + HEADER..]).to_le_bytes();
    out[begin + 4..begin + HEADER].copy_from_slice(&sum);
}

fn frames<T>(out: &mut Vec<u8>, kind: u8, digests: &[Digest], head: impl Fn(&mut Vec<u8>) -> T) {
    for part in digests.chunks(MOST) {
        frame(out, kind, |out| {
            head(out);
            out.reserve(16 * part.len());
            for digest in part {
                let [high, low] = [digest.hi(), digest.lo()].map(u64::to_le_bytes);
                out.extend_from_slice([high, low].as_flattened());
            }
        });
    }
}

fn checksum(length: [u8; 4], body: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&length);
    sum.update(body);
    sum.digest()
}

/// The change at the beginning of these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed<'a> {
    /// A whole one: its body.
    Whole(&'a [u8]),
    /// The bytes may be the beginning of one.
    Torn,
    /// It is none.
    Damaged,
}

/// Looks at the beginning of these bytes.
pub(crate) fn framed(bytes: &[u8]) -> Framed<'_> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Framed::Torn };
    let len = u32::from_le_bytes(*length) as usize;
    if len == 0 || len > LONGEST {
        return Framed::Damaged;
    }
    let Some((sum, rest)) = rest.split_first_chunk::<8>() else { return Framed::Torn };
    let Some(body) = rest.get(..len) else { return Framed::Torn };
    match checksum(*length, body) == u64::from_le_bytes(*sum) {
        true => Framed::Whole(body),
        false => Framed::Damaged,
    }
}

/// The fields of a change, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// All that is left, as digests.
    fn digests<'d>(&mut self, into: &'d mut Vec<Digest>) -> Option<&'d [Digest]> {
        into.clear();
        while !self.0.is_empty() {
            into.push(Digest::new(self.number()?, self.number()?));
        }
        Some(into)
    }
}

/// Reads the body of a change; `None` for one that this version does not know. The digests are put into a buffer.
pub(crate) fn read<'a>(body: &'a [u8], digests: &'a mut Vec<Digest>) -> Option<Change<'a>> {
    let mut fields = Fields(body);
    let [kind] = fields.take()?;
    let change = match kind {
        1 => {
            let (id, name) = (fields.number()?, fields.bytes()?);
            let options = std::mem::take(&mut fields.0);
            let options = codec::from_slice(OPTIONS, options, Options::read).ok()?;
            Change::Created { id, name, options }
        }
        2 => Change::Dropped { id: fields.number()? },
        3 => {
            let (id, at) = (fields.number()?, fields.number()?);
            Change::Expires { id, at: Some(at).filter(|&at| at != NEVER) }
        }
        4 | 5 => {
            let (id, moment) = (fields.number()?, fields.number()?);
            let digests = fields.digests(digests)?;
            match kind {
                4 => Change::Arrived { id, moment, digests },
                _ => Change::Marked { id, moment, digests },
            }
        }
        6 => {
            let ttl = NonZeroU64::new(fields.number()?);
            let [exact] = fields.take()?;
            let is_exact = exact != 0;
            let moment = fields.number()?;
            Change::Set { ttl, is_exact, moment, digests: fields.digests(digests)? }
        }
        7 => Change::Cleared,
        8 => Change::Forgotten { id: fields.number()?, digests: fields.digests(digests)? },
        9 => {
            let ttl = NonZeroU64::new(fields.number()?);
            Change::Unset { ttl, digests: fields.digests(digests)? }
        }
        10 => Change::Tidied { moment: fields.number()? },
        11 => {
            let (id, from) = (fields.number()?, fields.number()?);
            Change::Piece { id, from, bytes: std::mem::take(&mut fields.0) }
        }
        12 => {
            let (id, length) = (fields.number()?, fields.number()?);
            Change::Restored { id, name: std::mem::take(&mut fields.0), length }
        }
        _ => return None,
    };
    fields.0.is_empty().then_some(change)
}

#[cfg(test)]
mod tests {
    use super::super::{Family, Reach};
    use super::*;

    #[test]
    fn written_and_read() {
        let (family, reach) = (Family::Set, Reach::Within(7));
        let options = Options { family, reach, ..Options::default() };
        let digests: Vec<_> = (0..5).map(|n| Digest::new(n, n + 9)).collect();
        let (id, moment, digests) = (3, 1_000, &digests[..]);
        let changes = [
            Change::Created { id, name: b"a name", options },
            Change::Dropped { id },
            Change::Expires { id, at: None },
            Change::Expires { id, at: Some(0) },
            Change::Arrived { id, moment, digests },
            Change::Marked { id, moment, digests },
            Change::Set { ttl: NonZeroU64::new(5), is_exact: true, moment, digests },
            Change::Set { ttl: None, is_exact: false, moment, digests },
            Change::Cleared,
            Change::Forgotten { id, digests },
            Change::Unset { ttl: NonZeroU64::new(5), digests },
            Change::Unset { ttl: None, digests },
            Change::Tidied { moment },
            Change::Piece { id, from: 7, bytes: b"some bytes" },
            Change::Restored { id, name: b"a name", length: 17 },
        ];
        for change in changes {
            let mut bytes = Vec::new();
            change.write(&mut bytes);
            let Framed::Whole(body) = framed(&bytes) else { panic!("{change:?}") };
            assert_eq!(body.len() + HEADER, bytes.len());
            assert_eq!(read(body, &mut Vec::new()), Some(change.clone()));
            // Cut off, or with any bit turned.
            for end in 0..bytes.len() {
                assert_eq!(framed(&bytes[..end]), Framed::Torn, "{change:?} {end}");
            }
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(!matches!(framed(&damaged), Framed::Whole(_)), "{change:?} {bit}");
            }
            // A change ends where it should, unless it ends with bytes of any number.
            let ends = !matches!(change, Change::Piece { .. } | Change::Restored { .. });
            assert!(!ends || read(&[body, b"x"].concat(), &mut Vec::new()).is_none());
        }
    }

    #[test]
    fn many_keys_are_several_changes() {
        let digests: Vec<_> = (0..MOST as u64 * 2 + 1).map(|n| Digest::new(n, n)).collect();
        let mut bytes = Vec::new();
        Change::Marked { id: 1, moment: 2, digests: &digests }.write(&mut bytes);
        let (mut rest, mut all, mut buffer) = (&bytes[..], Vec::new(), Vec::new());
        while let Framed::Whole(body) = framed(rest) {
            rest = &rest[HEADER + body.len()..];
            let Some(Change::Marked { digests, .. }) = read(body, &mut buffer) else { panic!() };
            all.extend_from_slice(digests);
        }
        assert!(rest.is_empty() && all == digests);
    }
}
