//! A [`Spec`] in a snapshot.

use super::Spec;
use crate::snapshot::{Reader, Writer};
use crate::{Renewal, SnapshotError, Structure, WhenFull, Window};
use core::num::NonZeroU64;

/// How snapshots name [`Digester::ALGORITHM`](crate::Digester::ALGORITHM).
const DIGEST_XXH3_128: u8 = 1;

impl Spec {
    pub(crate) fn write(&self, out: &mut Writer, structure: Structure) {
        out.u8(DIGEST_XXH3_128);
        out.u8(structure as u8);
        let (kind, span) = match self.window {
            Window::Count(n) => (0, n.get()),
            Window::Time { span, .. } => (1, span.get()),
            Window::Unbounded { .. } => (2, 0),
        };
        out.u8(kind);
        out.u64(span);
        out.u64(self.window.capacity());
        out.f64(self.fpr);
        out.u64(self.memory.unwrap_or(0));
        out.u8(self.renewal as u8);
        out.u64(self.slack);
        out.u8(self.when_full as u8);
        out.u64(self.seed);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<(Self, Structure), SnapshotError> {
        if input.u8()? != DIGEST_XXH3_128 {
            return Err(SnapshotError::Invalid("unknown hash algorithm"));
        }
        let structure = Structure::read(input)?;
        let (kind, span, capacity) = (input.u8()?, input.u64()?, input.u64()?);
        let positive = |n| {
            NonZeroU64::new(n).ok_or(SnapshotError::Invalid("a window of length or capacity 0"))
        };
        let window = match kind {
            0 if capacity == span => Window::Count(positive(span)?),
            1 => Window::Time { span: positive(span)?, capacity: positive(capacity)? },
            2 if span == 0 => Window::Unbounded { capacity: positive(capacity)? },
            _ => return Err(SnapshotError::Invalid("no such window")),
        };
        let (fpr, memory) = (input.f64()?, Some(input.u64()?).filter(|&bytes| bytes > 0));
        let (renewal, slack) = (Renewal::read(input)?, input.u64()?);
        let when_full = match input.u8()? {
            0 => WhenFull::Grow,
            1 => WhenFull::Forget,
            2 => WhenFull::Refuse,
            _ => return Err(SnapshotError::Invalid("unknown policy")),
        };
        let structure_asked = Some(structure);
        let seed = input.u64()?;
        let spec = Self {
            window,
            fpr,
            memory,
            structure: structure_asked,
            renewal,
            slack,
            when_full,
            seed,
        };
        Ok((spec, structure))
    }
}
