//! The structures by name.

use crate::SnapshotError;
use crate::codec::Reader;
use crate::structures::structures;
use core::fmt;
use core::str::FromStr;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $tag:literal $text:literal $recipe:ty;)*) => {
        /// The structures a [`Spec`](crate::Spec) can ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Structure {
            $($(#[$doc])* $name = $tag,)*
        }

        impl Structure {
            /// Every structure, in the order in which plans list them.
            pub const ALL: [Self; [$($tag),*].len()] = [$(Self::$name),*];

            /// The name that flags and summaries use.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}
structures!(names);

impl Structure {
    /// The number that stands for it in snapshots.
    pub(crate) const fn tag(self) -> u8 {
        self as u8
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let tag = input.u8()?;
        let all = Self::ALL.into_iter();
        let known = all.into_iter().find(|structure| structure.tag() == tag);
        known.ok_or(SnapshotError::Invalid("unknown structure"))
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Structure {
    type Err = UnknownStructure;

    fn from_str(name: &str) -> Result<Self, UnknownStructure> {
        Self::ALL.into_iter().find(|structure| structure.name() == name).ok_or(UnknownStructure)
    }
}

/// No structure has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStructure;

impl fmt::Display for UnknownStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such structure; there are")?;
        for structure in Structure::ALL {
            write!(f, " {structure}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownStructure {}
