//! Keys that are a part of a text: what the groups of a regular expression match in it.

use super::key::{Form, append, prefixed};
use super::value::Value;
use ::regex::bytes::{CaptureLocations, Regex, RegexBuilder};
use std::fmt;

/// A regular expression whose groups are the key; without a group, all that it matches.
///
/// The syntax is that of the `regex` crate, which is also that of ripgrep: no look-around and no
/// back-references, and time linear in the text.
///
/// # Example
/// ```
/// use lately_stream::options::KeyRegex;
/// assert!(KeyRegex::new(r"^(\S+?)>[^:]*(:.*)$").is_ok());
/// assert!(KeyRegex::new("(").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct KeyRegex(Regex);

impl KeyRegex {
    /// *Errors:* what is wrong with the expression, and where.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(pattern).build();
        regex.map(Self).map_err(|error| error.to_string())
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// Where the groups of a match are written.
    pub(crate) fn locations(&self) -> CaptureLocations {
        self.0.capture_locations()
    }

    /// Appends the key that is in `text`; `false` if the expression does not match.
    pub(crate) fn append(
        &self,
        text: &[u8],
        form: Form,
        found: &mut CaptureLocations,
        key: &mut Vec<u8>,
    ) -> bool {
        if self.0.captures_read(found, text).is_none() {
            return false;
        }
        let group = |at: usize| found.get(at).map(|(start, end)| Value::Text(&text[start..end]));
        match found.len() {
            0 | 1 => append(group(0).unwrap_or(Value::Text(text)), form, key),
            2 => match group(1) {
                Some(text) => append(text, form, key),
                None => return false,
            },
            groups => {
                for group in (1..groups).map(group) {
                    match group {
                        Some(text) => prefixed(key, |key| append(text, form, key)),
                        // A length no text has: a group that takes no part is not an empty one.
                        None => key.extend_from_slice(&u64::MAX.to_le_bytes()),
                    }
                }
            }
        }
        true
    }
}

impl fmt::Display for KeyRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}
