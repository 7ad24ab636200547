//! What a snapshot says of each filter, as bytes.

use super::{Counts, Options};
use lately::SnapshotError;
use lately::codec::{Reader, Writer};
use std::num::NonZeroU64;

/// A filter in a snapshot: all but its tables, which lie in the other file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) what: What,
    /// Keys that it took for new ones.
    pub(crate) fresh: u64,
    /// Changes before this place of the journal are in it.
    pub(crate) since: u64,
    /// Length of its tables in the other file.
    pub(crate) length: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Filter { id: u64, name: Vec<u8>, expires: Option<u64>, options: Options, counts: Counts },
    Keys { ttl: Option<NonZeroU64>, is_exact: bool, last: u64 },
}

/// The first version, whose filters have no numbers and no place in a journal.
pub(crate) const WITHOUT_JOURNAL: u16 = 1;
/// The first version whose filters count the keys that were taken out.
pub(crate) const WITH_REMOVED: u16 = 3;

impl Record {
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        match &self.what {
            What::Filter { id, name, expires, options, counts } => {
                out.u8(0);
                out.u64(*id);
                out.block(name);
                out.flag(expires.is_some());
                out.u64(expires.unwrap_or(0));
                options.write(out);
                let Counts { fresh, duplicates, refused, asked, removed, last } = *counts;
                for count in [fresh, duplicates, refused, asked, last, removed] {
                    out.u64(count);
                }
            }
            What::Keys { ttl, is_exact, last } => {
                out.u8(1);
                out.u64(ttl.map_or(0, NonZeroU64::get));
                out.flag(*is_exact);
                out.u64(*last);
            }
        }
        [self.fresh, self.since, self.length].into_iter().for_each(|n| out.u64(n));
    }

    /// Reads the record of this number.
    pub(crate) fn read(input: &mut Reader<'_>, number: u64) -> Result<Self, SnapshotError> {
        let is_first_version = input.version() == WITHOUT_JOURNAL;
        let what = match input.u8()? {
            0 => {
                let id = if is_first_version { number } else { input.u64()? };
                let (name, expires) = (input.block()?, (input.flag()?, input.u64()?));
                let options = Options::read(input)?;
                let [fresh, duplicates, refused, asked, last] =
                    [input.u64()?, input.u64()?, input.u64()?, input.u64()?, input.u64()?];
                let removed = if input.version() < WITH_REMOVED { 0 } else { input.u64()? };
                let counts = Counts { fresh, duplicates, refused, asked, removed, last };
                let expires = expires.0.then_some(expires.1);
                What::Filter { id, name, expires, options, counts }
            }
            1 => What::Keys {
                ttl: NonZeroU64::new(input.u64()?),
                is_exact: input.flag()?,
                last: input.u64()?,
            },
            _ => return Err(SnapshotError::Invalid("neither a filter nor keys")),
        };
        let fresh = input.u64()?;
        let since = if is_first_version { 0 } else { input.u64()? };
        Ok(Self { what, fresh, since, length: input.u64()? })
    }
}
