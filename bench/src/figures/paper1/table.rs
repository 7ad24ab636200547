//! The tables that measuring leaves and drawing starts from.

use super::Experiment;
use super::data::Kind;
use super::measure::Structure;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// One filter, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The filter.
    pub structure: Structure,
    /// Reads it judged.
    pub reads: usize,
    /// Space it was allowed.
    pub bits: u64,
    /// Bits a cell.
    pub width: u64,
    /// Cells, m.
    pub cells: u64,
    /// Cells a key sets, k.
    pub hashes: u32,
    /// The k of its own formula.
    pub formula: u32,
    /// The k that the plain Bloom filter's formula gives for its cells.
    pub plain: u32,
    /// Reads that are no duplicates, |S'|.
    pub fresh: usize,
    /// Those of them that it dropped.
    pub dropped: usize,
    /// Time in the filter, in the fastest run.
    pub seconds: f64,
    /// The same in the slowest run.
    pub slowest: f64,
}

const HEADER: &str = "structure,reads,bits,bits_per_cell,cells,hashes,formula_hashes,\
                      plain_bloom_hashes,non_duplicates,dropped,error_percent,seconds,\
                      reads_per_second,slowest_seconds";

impl Row {
    /// Share of non-duplicates that were dropped.
    pub fn error(&self) -> f64 {
        self.dropped as f64 / self.fresh.max(1) as f64
    }

    /// Reads a second.
    pub fn rate(&self) -> f64 {
        self.reads as f64 / self.seconds
    }

    /// The slowest run's reads a second.
    pub fn slowest_rate(&self) -> f64 {
        self.reads as f64 / self.slowest
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(',');
        let name = fields.next()?;
        let structure = Structure::ALL.into_iter().find(|known| known.name() == name)?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let mut row = Self {
            structure,
            reads: number()? as usize,
            bits: number()?,
            width: number()?,
            cells: number()?,
            hashes: number()? as u32,
            formula: number()? as u32,
            plain: number()? as u32,
            fresh: number()? as usize,
            dropped: number()? as usize,
            seconds: fields.nth(1)?.parse().ok()?,
            slowest: 0.0,
        };
        // Some tables were measured before the slowest run was noted.
        let slowest = fields.nth(1)?;
        row.slowest = if slowest.is_empty() { row.seconds } else { slowest.parse().ok()? };
        Some(row)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, bits, width, cells, hashes, formula, plain, fresh, dropped, .. } = self;
        let (name, seconds, slowest) = (self.structure.name(), self.seconds, self.slowest);
        let (error, rate) = (100.0 * self.error(), self.rate());
        write!(
            f,
            "{name},{reads},{bits},{width},{cells},{hashes},{formula},{plain},{fresh},{dropped},\
             {error:.6},{seconds:.7},{rate:.0},{slowest:.7}"
        )
    }
}

/// The rows of one experiment on one kind of data: a table behind one or two figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What was varied.
    pub experiment: Experiment,
    /// The data.
    pub kind: Kind,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Sheet {
    /// The file's name: that of the figures it is behind.
    pub fn file(experiment: Experiment, kind: Kind) -> &'static str {
        match (experiment, kind) {
            (Experiment::Rates, Kind::Single) => "figure-14.csv",
            (Experiment::Rates, Kind::Multiple) => "figure-15.csv",
            (Experiment::Reads, Kind::Single) => "figure-16.csv",
            (Experiment::Reads, Kind::Multiple) => "figure-17.csv",
            (Experiment::Space, Kind::Single) => "figure-18-20.csv",
            (Experiment::Space, Kind::Multiple) => "figure-19-21.csv",
            (Experiment::WholeTimes, Kind::Single) => "figure-20-whole-times.csv",
            (Experiment::WholeTimes, Kind::Multiple) => "figure-21-whole-times.csv",
            (Experiment::Hashes, Kind::Single) => "figure-22.csv",
            (Experiment::Hashes, Kind::Multiple) => "figure-23.csv",
        }
    }

    /// Writes the table into a folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = format!("{HEADER}\n");
        for row in &self.rows {
            text += &format!("{row}\n");
        }
        std::fs::write(folder.join(Self::file(self.experiment, self.kind)), text)
    }

    /// Reads a table back.
    ///
    /// # Errors
    /// Those of the file system, and for a file that is no such table.
    pub fn read(folder: &Path, experiment: Experiment, kind: Kind) -> Result<Self, Box<dyn Error>> {
        let file = Self::file(experiment, kind);
        let text = std::fs::read_to_string(folder.join(file))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(format!("{file} is no table of this version").into());
        }
        let rows: Option<Vec<Row>> = lines.map(Row::parse).collect();
        let rows = rows.ok_or_else(|| format!("{file} has a line that is no row"))?;
        Ok(Self { experiment, kind, rows })
    }

    /// The rows of one structure.
    pub fn of(&self, structure: Structure) -> impl Iterator<Item = &Row> + Clone {
        self.rows.iter().filter(move |row| row.structure == structure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_as_they_were_written() {
        let row = Row {
            structure: Structure::Interval,
            reads: 10,
            bits: 20,
            width: 27,
            cells: 3,
            hashes: 4,
            formula: 5,
            plain: 1,
            fresh: 6,
            dropped: 2,
            seconds: 0.5,
            slowest: 0.75,
        };
        assert_eq!(Row::parse(&row.to_string()), Some(row));
        assert!(row.to_string().split(',').count() == HEADER.split(',').count());
        assert_eq!(Row::parse("TIBF,1,2"), None);
    }
}
