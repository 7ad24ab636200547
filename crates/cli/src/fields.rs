//! Names of fields as arguments.

use std::fmt;

/// Names separated by commas.
///
/// A name that begins with a double quote ends with the next one, and `""` is a quote in it; elsewhere
/// a backslash before a comma, a quote or a backslash takes its meaning away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

/// All names of an argument that can be given several times.
pub fn all(names: &[Names]) -> Vec<String> {
    names.iter().flat_map(|names| names.0.iter().cloned()).collect()
}

/// Parses an argument.
pub fn names(text: &str) -> Result<Names, String> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = if rest.starts_with('"') { quoted(rest)? } else { bare(rest) };
        names.push(name);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(Names(names)),
            None => {
                return Err(format!("`{after}` follows a closing quote; a comma separates names"));
            }
        }
    }
}

/// A name in quotes, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            return Err(format!("the quote before `{}` is not closed", &text[1..]));
        };
        name += part;
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Ok((name, after)),
        }
    }
}

/// A name up to the next comma, and what follows it.
fn bare(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' => return (name, &text[at..]),
            '\\' => {
                let escaped = chars.next_if(|(_, next)| matches!(next, ',' | '"' | '\\'));
                name.push(escaped.map_or('\\', |(_, next)| next));
            }
            c => name.push(c),
        }
    }
    (name, "")
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_commas() {
        let parsed = |text: &str| names(text).map(|names| names.0);
        for (text, expected) in [
            ("a,b", &["a", "b"][..]),
            ("Tag ID", &["Tag ID"]),
            ("\"Reader, Ant\",b", &["Reader, Ant", "b"]),
            ("Reader\\, Ant", &["Reader, Ant"]),
            ("\"say \"\"x\"\"\"", &["say \"x\""]),
            ("\\\"a", &["\"a"]),
            ("a\\b,c\\\\", &["a\\b", "c\\"]),
            ("", &[""]),
            ("a,", &["a", ""]),
        ] {
            assert_eq!(
                parsed(text),
                Ok(expected.iter().map(|name| (*name).into()).collect()),
                "{text}"
            );
        }
        assert!(parsed("\"a").is_err_and(|error| error.contains("not closed")));
        assert!(parsed("\"a\"b").is_err_and(|error| error.contains("closing quote")));
    }
}
