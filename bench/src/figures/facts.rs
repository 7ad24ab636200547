//! Facts about a whole run: a table of two columns next to the others.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// Named values, in the order in which they were first noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Vec<(String, String)>);

const FILE: &str = "run.csv";

impl Facts {
    /// Notes a value; one noted earlier under that name is replaced.
    pub fn note(&mut self, name: impl Into<String>, value: &dyn Display) {
        let (name, value) = (name.into(), value.to_string());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of that name; "?" when nothing was noted.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("?", |(_, value)| value.as_str())
    }

    /// Was anything noted under that name?
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The value as a number; not a number when it is none.
    pub fn number(&self, name: &str) -> f64 {
        self.get(name).parse().unwrap_or(f64::NAN)
    }

    /// Writes them into a folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let line = |(name, value): &(String, String)| format!("{name},{value}\n");
        let lines: String = self.0.iter().map(line).collect();
        std::fs::write(folder.join(FILE), format!("fact,value\n{lines}"))
    }

    /// Reads them back.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(FILE))?;
        let pairs = text.lines().skip(1).filter_map(|line| line.split_once(','));
        Ok(Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}
