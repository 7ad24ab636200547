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
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

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
        let all = Self::ALL.iter().copied();
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
        Self::ALL.iter().copied().find(|structure| structure.name() == name).ok_or(UnknownStructure)
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

/// By its name.
#[cfg(feature = "serde")]
impl serde::Serialize for Structure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Structure {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Takes a name, borrowed or not.
        struct Named;

        impl serde::de::Visitor<'_> for Named {
            type Value = Structure;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a structure")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Structure, E> {
                name.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Named)
    }
}
