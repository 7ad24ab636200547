//! A [`Spec`] in a snapshot.

use super::Spec;
use crate::codec::{Reader, Writer};
use crate::window::late;
use crate::{Digester, Renewal, SnapshotError, Structure, WhenFull, Window};

impl Spec {
    pub(crate) fn write(&self, out: &mut Writer<'_>, structure: Structure) {
        Digester::write_algorithm(out);
        out.u8(structure as u8);
        self.window.write(out);
        out.f64(self.fpr);
        out.u64(self.memory.unwrap_or(0));
        out.u8(self.renewal as u8);
        out.u64(self.slack);
        out.u8(self.when_full as u8);
        out.u64(self.seed);
        late::write(self.lateness, out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<(Self, Structure), SnapshotError> {
        Digester::check_algorithm(input)?;
        let structure = Structure::read(input)?;
        let window = Window::read(input)?;
        let (fpr, memory) = (input.f64()?, Some(input.u64()?).filter(|&bytes| bytes > 0));
        let (renewal, slack) = (Renewal::read(input)?, input.u64()?);
        let when_full = WhenFull::read(input)?;
        let (seed, asked) = (input.u64()?, Some(structure));
        let lateness = late::read(input)?;
        let spec = Self {
            window,
            fpr,
            memory,
            structure: asked,
            renewal,
            slack,
            lateness,
            when_full,
            seed,
        };
        Ok((spec, structure))
    }
}
