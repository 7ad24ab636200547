//! What filters hold: not the value of a reading, but what was measured, and where.

use crate::cell::SmallCell;
use core::fmt;
use core::str::FromStr;
use lately::{Digest, Digester};

/// The longest name of a property, in bytes.
pub const MAX_PROPERTY: usize = 24;

/// What is measured: a name of 1 to 24 letters, digits and `-:./_`, as SenML allows in names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Property {
    len: u8,
    name: [u8; MAX_PROPERTY],
}

/// A text is no name of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyError;

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a property has 1 to 24 letters, digits or -:./_ and begins with a letter or digit",
        )
    }
}

impl core::error::Error for PropertyError {}

impl Property {
    /// The property of that name.
    ///
    /// # Errors
    /// [`PropertyError`] for a text that is no name.
    pub fn new(name: &str) -> Result<Self, PropertyError> {
        let bytes = name.as_bytes();
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-:./_".contains(byte);
        let begins = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
        if bytes.len() > MAX_PROPERTY || !begins || !bytes.iter().all(allowed) {
            return Err(PropertyError);
        }
        let mut name = [0; MAX_PROPERTY];
        for (to, from) in name.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(Self { len: bytes.len() as u8, name })
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        let name = self.name.get(..usize::from(self.len)).unwrap_or_default();
        core::str::from_utf8(name).unwrap_or_default()
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Property {
    type Err = PropertyError;

    fn from_str(name: &str) -> Result<Self, PropertyError> {
        Self::new(name)
    }
}

/// What a filter is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element {
    /// Where.
    pub cell: SmallCell,
    /// What.
    pub property: Property,
}

impl Element {
    /// Its digest: XXH3-128 of the cell's number (8 bytes, little endian) and the property's name,
    /// seeded with the salt. Host and worker take the same salt, or they would not understand each other.
    pub fn digest(&self, salt: u64) -> Digest {
        let mut key = [0; 8 + MAX_PROPERTY];
        let id = self.cell.id().to_le_bytes();
        for (to, from) in key.iter_mut().zip(id.into_iter().chain(self.property.name)) {
            *to = from;
        }
        let used = key.get(..8 + usize::from(self.property.len)).unwrap_or(&key);
        Digester::new(salt).digest(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_of_properties() {
        for name in ["noise", "pm2.5", "a", "co2/indoor", "123456789012345678901234"] {
            assert_eq!(Property::new(name).unwrap().to_string(), name);
        }
        for name in ["", "ä", "a b", "-a", "a+", "1234567890123456789012345", "a\0"] {
            assert_eq!(Property::new(name), Err(PropertyError), "{name}");
        }
    }

    #[test]
    fn digests_tell_place_property_and_salt_apart() {
        let cell = |name: &str| name.parse::<SmallCell>().unwrap();
        let noise = Property::new("noise").unwrap();
        let one = Element { cell: cell("33TWL759737"), property: noise };
        let place = Element { cell: cell("33TWL759738"), property: noise };
        let property = Element { property: Property::new("pm10").unwrap(), ..one };
        let all = [one.digest(0), place.digest(0), property.digest(0), one.digest(1)];
        for (at, digest) in all.iter().enumerate() {
            assert!(!all[..at].contains(digest));
        }
        // Other languages need the very same bytes.
        let mut key = one.cell.id().to_le_bytes().to_vec();
        key.extend_from_slice(b"noise");
        assert_eq!(one.digest(7), Digester::new(7).digest(&key));
    }
}
