//! Users: who may do what, and with which names.

mod file;

use crate::config::ConfigError;
use crate::store::is_match;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Users that a file may name: a token is compared with those of all.
const MOST: usize = 1_000;
/// The longest name of a user.
const LONGEST: usize = 128;
/// Who clients are that name no user.
const DEFAULT: &str = "default";

/// What a user may do. Each may do what those before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// Ask.
    Read,
    /// Observe, add keys, and take keys out.
    Write,
    /// Make and drop filters, and whatever concerns the whole server.
    Admin,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// A password, as its SHA-256.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// One that no password has, as far as anybody knows.
    pub(crate) const NOBODYS: Self = Self([0; 32]);

    pub(crate) fn of(password: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, password).as_ref());
        Self(bytes)
    }

    /// Is it the same? Takes as long whichever byte is another.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// From 64 digits.
    fn parse(text: &str) -> Result<Self, String> {
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let Some(digits) = digits.filter(|digits| digits.len() == 64) else {
            return Err(
                "password_sha256: must be the 64 hexadecimal digits that `printf %s TOKEN | sha256sum` shows"
                    .into(),
            );
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        let secret = Self(bytes);
        for nothing in ["", "\n"] {
            if secret.is(&Self::of(nothing.as_bytes())) {
                return Err("password_sha256: is the SHA-256 of an empty password".into());
            }
        }
        Ok(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A pattern of names. What most are is known by itself, as that is sooner compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    Exactly(Box<[u8]>),
    Prefix(Box<[u8]>),
    Glob(Box<[u8]>),
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        let is_plain = |text: &str| !text.contains(['*', '?', '[', '\\']);
        let bytes = |text: &str| text.as_bytes().into();
        let stem = pattern.trim_end_matches('*');
        if stem.is_empty() && !pattern.is_empty() {
            Self::Any
        } else if !is_plain(stem) {
            Self::Glob(bytes(pattern))
        } else if stem.len() == pattern.len() {
            Self::Exactly(bytes(pattern))
        } else {
            Self::Prefix(bytes(stem))
        }
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(whole) => **whole == *name,
            // Most are short, and differ in their first byte: a loop is sooner done than a call.
            Self::Prefix(stem) => {
                name.len() >= stem.len() && stem.iter().zip(name).all(|(one, other)| one == other)
            }
            Self::Glob(pattern) => is_match(pattern, name),
        }
    }
}

/// A user.
#[derive(Debug)]
pub(crate) struct User {
    name: String,
    /// `None`: needs no password.
    secret: Option<Secret>,
    may: Right,
    names: Vec<Pattern>,
    has_all_names: bool,
    /// As the file has it.
    said: Vec<String>,
}

impl User {
    fn new(name: &str, secret: Option<Secret>, may: Right, names: Vec<String>) -> Self {
        let patterns: Vec<_> = names.iter().map(|pattern| Pattern::new(pattern)).collect();
        let has_all_names = patterns.contains(&Pattern::Any);
        let name = name.into();
        Self { name, secret, may, names: patterns, has_all_names, said: names }
    }

    /// The one that clients are who name no other: it may do everything.
    fn default(secret: Option<Secret>) -> Self {
        Self::new(DEFAULT, secret, Right::Admin, vec!["*".into()])
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.may >= right
    }

    /// Is this a name that it may use?
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.has_all_names || self.names.iter().any(|pattern| pattern.matches(name))
    }

    pub(crate) fn has_all_names(&self) -> bool {
        self.has_all_names
    }

    /// Is there nothing that it may not?
    pub(crate) fn may_all(&self) -> bool {
        self.may == Right::Admin && self.has_all_names
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, may, said, secret, .. } = self;
        let password = if secret.is_some() { "" } else { "without a password, " };
        write!(f, "user {name:?}: {password}{may}")?;
        if self.has_all_names {
            return f.write_str(", all names");
        }
        said.iter().enumerate().try_for_each(|(at, pattern)| {
            write!(f, "{}{pattern:?}", if at == 0 { ", names " } else { ", " })
        })
    }
}

/// All users.
#[derive(Debug)]
pub(crate) struct Users(Vec<Arc<User>>);

impl Users {
    /// Without a file: the user that clients are who name none, with this password.
    pub(crate) fn of_password(password: Option<&str>) -> Self {
        let secret = password.map(|password| Secret::of(password.as_bytes()));
        Self(vec![Arc::new(User::default(secret))])
    }

    /// Those of a file; and the one of the password file, if there is one.
    ///
    /// # Errors
    /// All that is wrong, each with the file and the line.
    pub(crate) fn read(path: &Path, password: Option<&str>) -> Result<Self, ConfigError> {
        let fault = |error: &str| {
            let named = error.lines().map(|line| format!("{}: {line}", path.display()));
            ConfigError(named.collect::<Vec<_>>().join("\n"))
        };
        let text = std::fs::read_to_string(path).map_err(|error| fault(&error.to_string()))?;
        Self::parse(&text, password).map_err(|ConfigError(error)| fault(&error))
    }

    pub(crate) fn parse(text: &str, password: Option<&str>) -> Result<Self, ConfigError> {
        let before = match password {
            Some(_) => Self::of_password(password).0,
            None => Vec::new(),
        };
        let users = file::read(text, before)?;
        match users.is_empty() {
            true => Err(ConfigError("names no [[user]], so that nobody could come in".into())),
            false => Ok(Self(users)),
        }
    }

    pub(crate) fn named(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.0.iter().find(|user| user.name.as_bytes() == name)
    }

    /// The user whose password this is.
    pub(crate) fn with_secret(&self, secret: &Secret) -> Option<&Arc<User>> {
        with_secret(&self.0, secret)
    }

    /// The user that clients are who say nothing; `None`: they must give a password.
    pub(crate) fn anyone(&self) -> Option<&Arc<User>> {
        self.named(DEFAULT.as_bytes()).filter(|user| user.secret.is_none())
    }

    /// Has any of them a password?
    pub(crate) fn have_passwords(&self) -> bool {
        self.0.iter().any(|user| user.secret.is_some())
    }

    /// A line for each.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

/// All are looked at, so that the time says nothing of which one it is.
fn with_secret<'a>(users: &'a [Arc<User>], secret: &Secret) -> Option<&'a Arc<User>> {
    let mut found = None;
    for user in users {
        if user.secret.as_ref().unwrap_or(&Secret::NOBODYS).is(secret) {
            found = Some(user);
        }
    }
    found.filter(|user| user.secret.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SHA-256 of "a" and of "b".
    const A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    const B: &str = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";

    #[test]
    fn a_whole_file() {
        let text = format!(
            "[[user]]\nname = \"crawler\"\npassword_sha256 = \"{A}\"\nfilters = [\"crawl:*\", \"pages\"]\nmay = \"write\"\n
            [[user]]\nname = \"root\"\npassword_sha256 = \"{}\"\nmay = \"admin\"\n
            [[user]]\nname = \"default\"\nfilters = [\"[ab]?\"]\nmay = \"read\"\n",
            B.to_uppercase()
        );
        let users = Users::parse(&text, None).unwrap();
        assert_eq!(
            users.lines().collect::<Vec<_>>(),
            [
                "user \"crawler\": write, names \"crawl:*\", \"pages\"",
                "user \"root\": admin, all names",
                "user \"default\": without a password, read, names \"[ab]?\"",
            ]
        );
        let crawler = users.with_secret(&Secret::of(b"a")).unwrap();
        assert_eq!(crawler.name(), "crawler");
        assert!(crawler.may(Right::Read) && crawler.may(Right::Write));
        assert!(!crawler.may(Right::Admin) && !crawler.may_all() && !crawler.has_all_names());
        for (name, has) in
            [("crawl:", true), ("crawl:x", true), ("pages", true), ("pages2", false), ("", false)]
        {
            assert_eq!(crawler.has_name(name.as_bytes()), has, "{name}");
        }
        assert!(users.named(b"root").unwrap().may_all());
        assert_eq!(users.anyone().unwrap().name(), "default");
        assert!(users.with_secret(&Secret::of(b"c")).is_none());
        assert!(users.with_secret(&Secret::NOBODYS).is_none());
        // With a password file there is a user default who may do everything.
        let others = text.split("[[user]]\nname = \"default\"").next().unwrap();
        let users = Users::parse(others, Some("hidden")).unwrap();
        assert!(users.anyone().is_none() && users.have_passwords() && users.0.len() == 3);
        let default = users.with_secret(&Secret::of(b"hidden")).unwrap();
        assert!(default.name() == "default" && default.may_all());
        assert!(!format!("{users:?}").contains("hidden"), "passwords are not shown");
    }

    #[test]
    fn faults_say_where() {
        let user = |more: &str| format!("[[user]]\nname = \"u\"\nmay = \"read\"\n{more}");
        let right = format!("password_sha256 = \"{A}\"");
        let of_nothing = format!("password_sha256 = \"{}\"", hex(&Secret::of(b"")));
        let named = |name: &str| {
            format!("\n\n[[user]]\nname = \"{name}\"\nmay = \"read\"\npassword_sha256 = \"{B}\"\n")
        };
        for (text, password, expected) in [
            (String::new(), None, "names no [[user]]"),
            ("[[users]]".into(), None, "line 1: unknown field `users`: there is [[user]] alone"),
            ("\nuser = 5".into(), None, "line 2: user: write [[user]] above"),
            ("user = [5]".into(), None, "line 1: user: write [[user]] above"),
            ("[[user]\nname = 5".into(), None, "line 1: "),
            (user(""), None, "line 1: user \"u\": password_sha256: is missing"),
            (
                user("password_sha256 = \"12\""),
                None,
                "line 4: user \"u\": password_sha256: must be the 64 hexadecimal digits",
            ),
            (
                user("password_sha256 = 12"),
                None,
                "line 4: user \"u\": password_sha256: must be a text in quotes, and is of type integer",
            ),
            (user(&format!("password_sha256 = \"{}\"", "é".repeat(32))), None, "64 hexadecimal"),
            (user(&of_nothing), None, "is the SHA-256 of an empty password"),
            (user("password = \"x\""), None, "line 4: user \"u\": unknown field `password`"),
            (user(&format!("{right}\nfilters = []")), None, "line 5: user \"u\": filters: give"),
            (user(&format!("{right}\nfilters = \"a\"")), None, "line 5: user \"u\": filters: give"),
            (
                user(&format!("{right}\nfilters = [\"a\",\n5]")),
                None,
                "line 6: user \"u\": filters: give",
            ),
            (user(&format!("{right}\nfilters = [\"\"]")), None, "filters: give"),
            (
                user(&right).replace("read", "all"),
                None,
                "line 3: user \"u\": may: \"all\" is none of read",
            ),
            (
                user(&right).replace("may = \"read\"\n", ""),
                None,
                "line 1: user \"u\": missing field `may`",
            ),
            (
                user(&right).replace("name = \"u\"\n", ""),
                None,
                "line 1: user: missing field `name`",
            ),
            (named("a b"), None, "line 4: user \"a b\": name: must have"),
            (named("a:b"), None, "no colon"),
            (named(""), None, "name: must have"),
            (named("default"), Some("x"), "line 4: user \"default\": is the one of the password"),
            (
                named("u"),
                Some("b"),
                "line 6: user \"u\": password_sha256: has the password of the user \"default\"",
            ),
            (user(&right) + &named("u"), None, "line 7: user \"u\": is in line 2 already"),
            (
                named("a") + &named("b"),
                None,
                "line 12: user \"b\": password_sha256: has the password of the user \"a\"",
            ),
        ] {
            let error = Users::parse(&text, password).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let many: String = (0..=MOST)
            .map(|n| {
                let secret = hex(&Secret::of(&n.to_le_bytes()));
                format!(
                    "[[user]]\nname = \"{n}\"\nmay = \"read\"\npassword_sha256 = \"{secret}\"\n"
                )
            })
            .collect();
        assert!(Users::parse(&many, None).unwrap_err().to_string().contains("more than 1000"));
        let none = Users::read(Path::new("/no/such/users"), None).unwrap_err().to_string();
        assert!(none.starts_with("/no/such/users: "), "{none}");
    }

    /// All mistakes of a file are told at once, in the order of their lines; those that depend on others that are right, too.
    #[test]
    fn all_faults_at_once() {
        let text = format!(
            "[[user]]\nname = \"a b\"\nmay = \"all\"\npassword = \"x\"\n\n[[user]]\nname = \"c\"\npassword_sha256 = \"{A}\"\nmay = \"read\"\n\n\
            [[user]]\npassword_sha256 = \"{A}\"\nname = \"c\"\nfilters = [\"x\", \"\"]\nmay = 7\n\n[other]\n"
        );
        let error = Users::parse(&text, None).unwrap_err().to_string();
        let begins = [
            "line 1: user \"a b\": password_sha256: is missing",
            "line 2: user \"a b\": name: must have at most 128 bytes",
            "line 3: user \"a b\": may: \"all\" is none of read, write and admin",
            "line 4: user \"a b\": unknown field `password`: there are name,",
            "line 12: user \"c\": password_sha256: has the password of the user \"c\"",
            "line 13: user \"c\": is in line 7 already",
            "line 14: user \"c\": filters: give one pattern",
            "line 15: user \"c\": may: must be a text in quotes, and is of type integer",
            "line 17: unknown field `other`",
        ];
        assert_eq!(error.lines().count(), begins.len(), "{error}");
        for (line, begin) in error.lines().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        std::fs::write(&path, text).unwrap();
        let error = Users::read(&path, None).unwrap_err().to_string();
        assert!(error.lines().all(|line| line.starts_with(&format!("{}: line ", path.display()))));
        // Of what is no TOML, each place.
        let error = Users::parse("[[user]]\nname = \nmay = \"read\"\nfilters = [\"a\n", None);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && error.contains("\nline 4: "), "{error}");
    }

    fn hex(secret: &Secret) -> String {
        secret.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "(\\[\\[user\\]\\]|\n|name|may|filters|=|\"read\"|\"ü\"|\\[|\\]|#.|.){0,20}") {
            let _ = Users::parse(&text, None);
        }

        /// What is known by itself for speed says what the pattern says.
        #[test]
        fn patterns_mean_what_they_say(pattern in "[ab*?\\[\\]\\\\]{1,6}", name in "[ab*]{0,6}") {
            let is = is_match(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(Pattern::new(&pattern).matches(name.as_bytes()), is);
        }
    }
}
