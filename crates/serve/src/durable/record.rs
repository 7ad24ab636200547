//! What a snapshot says of each filter, as bytes.

use crate::store::{Counts, Options, Reach, Slack};
use lately::codec::{Reader, Writer};
use lately::{Renewal, SnapshotError, Structure, WhenFull};
use std::num::NonZeroU64;

/// A filter in a snapshot: all but its tables, which lie in the other file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) what: What,
    /// Keys that it took for new ones.
    pub(crate) fresh: u64,
    /// Length of its tables in the other file.
    pub(crate) length: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Filter { name: Vec<u8>, expires: Option<u64>, options: Options, counts: Counts },
    Keys { ttl: Option<NonZeroU64>, is_exact: bool, last: u64 },
}

impl Record {
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        match &self.what {
            What::Filter { name, expires, options, counts } => {
                out.u8(0);
                out.block(name);
                optional(*expires, out);
                write_options(options, out);
                for count in
                    [counts.fresh, counts.duplicates, counts.refused, counts.asked, counts.last]
                {
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
        out.u64(self.fresh);
        out.u64(self.length);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let what = match input.u8()? {
            0 => {
                let (name, expires) = (input.block()?, read_optional(input)?);
                let options = read_options(input)?;
                let [fresh, duplicates, refused, asked, last] =
                    [input.u64()?, input.u64()?, input.u64()?, input.u64()?, input.u64()?];
                let counts = Counts { fresh, duplicates, refused, asked, last };
                What::Filter { name, expires, options, counts }
            }
            1 => What::Keys {
                ttl: NonZeroU64::new(input.u64()?),
                is_exact: input.flag()?,
                last: input.u64()?,
            },
            _ => return Err(SnapshotError::Invalid("neither a filter nor keys")),
        };
        Ok(Self { what, fresh: input.u64()?, length: input.u64()? })
    }
}

fn optional(value: Option<u64>, out: &mut Writer<'_>) {
    out.flag(value.is_some());
    out.u64(value.unwrap_or(0));
}

fn read_optional(input: &mut Reader<'_>) -> Result<Option<u64>, SnapshotError> {
    let (is_there, value) = (input.flag()?, input.u64()?);
    Ok(is_there.then_some(value))
}

fn write_options(options: &Options, out: &mut Writer<'_>) {
    let (kind, length) = match options.reach {
        Reach::Forever => (0, 0),
        Reach::Within(ms) => (1, ms),
        Reach::Last(n) => (2, n),
    };
    out.u8(kind);
    out.u64(length);
    out.u64(options.capacity);
    out.f64(options.fpr);
    out.flag(options.renewal == Renewal::OnFresh);
    match options.slack {
        Slack::Share(share) => {
            out.u8(0);
            out.f64(share);
        }
        Slack::Exactly(slack) => {
            out.u8(1);
            out.u64(slack);
        }
    }
    optional(options.memory, out);
    out.u8(match options.when_full {
        WhenFull::Grow => 0,
        WhenFull::Forget => 1,
        // Options name no other.
        _ => 2,
    });
    out.block(options.structure.map_or("", Structure::name).as_bytes());
    optional(options.expansion.map(u64::from), out);
}

fn read_options(input: &mut Reader<'_>) -> Result<Options, SnapshotError> {
    let invalid = SnapshotError::Invalid("no such options of a filter");
    let reach = match (input.u8()?, input.u64()?) {
        (0, 0) => Reach::Forever,
        (1, ms) => Reach::Within(ms),
        (2, n) => Reach::Last(n),
        _ => return Err(invalid),
    };
    let (capacity, fpr) = (input.u64()?, input.f64()?);
    let renewal = if input.flag()? { Renewal::OnFresh } else { Renewal::Always };
    let slack = match input.u8()? {
        0 => Slack::Share(input.f64()?),
        1 => Slack::Exactly(input.u64()?),
        _ => return Err(invalid),
    };
    let memory = read_optional(input)?;
    let when_full = match input.u8()? {
        0 => WhenFull::Grow,
        1 => WhenFull::Forget,
        2 => WhenFull::Refuse,
        _ => return Err(invalid),
    };
    let structure = match &input.text()?[..] {
        "" => None,
        name => Some(name.parse().map_err(|_| invalid.clone())?),
    };
    let expansion = read_optional(input)?.map(u32::try_from).transpose().map_err(|_| invalid)?;
    Ok(Options { reach, capacity, fpr, renewal, slack, memory, when_full, structure, expansion })
}
