//! Tables of named columns: what measuring leaves and drawing starts from.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// A table whose cells are found by the names of their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// An empty table.
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row, with a cell for each column.
    ///
    /// # Errors
    /// When there are more cells than columns or fewer, or one would break the table.
    pub fn push(&mut self, cells: &[&dyn Display]) -> Result<(), Box<dyn Error>> {
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        if cells.len() != self.columns.len() {
            let (cells, columns) = (cells.len(), self.columns.len());
            return Err(format!("a row of {cells} cells for {columns} columns").into());
        }
        if cells.iter().any(|cell| cell.contains([',', '\n'])) {
            return Err("a cell with a comma or a line's end in it".into());
        }
        self.rows.push(cells);
        Ok(())
    }

    /// Adds a row of another table with the same columns.
    ///
    /// # Errors
    /// When it has other columns.
    pub fn copy(&mut self, row: &Row<'_>) -> Result<(), Box<dyn Error>> {
        if row.columns != self.columns {
            return Err("a row of a table with other columns".into());
        }
        self.rows.push(row.cells.to_vec());
        Ok(())
    }

    /// The newest row as it will be written, to be shown while measuring.
    pub fn newest(&self) -> String {
        self.rows.last().map(|row| row.join(",")).unwrap_or_default()
    }

    /// Writes the table.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        std::fs::write(file, lines.map(|row| row.join(",") + "\n").collect::<String>())
    }

    /// Reads a table with these columns.
    ///
    /// # Errors
    /// Those of the file system, and for a file that is no such table.
    pub fn read(file: &Path, columns: &[&str]) -> Result<Self, Box<dyn Error>> {
        let name = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        let mut lines = text.lines();
        if lines.next() != Some(columns.join(",").as_str()) {
            return Err(format!("{name} is no table of this version").into());
        }
        let mut sheet = Self::new(columns);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let cells: Vec<&dyn Display> = cells.iter().map(|cell| cell as &dyn Display).collect();
            sheet.push(&cells).map_err(|_| format!("{name} has a line that is no row"))?;
        }
        Ok(sheet)
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { columns: &self.columns, cells })
    }

    /// The rows that have these texts in these columns.
    pub fn of(&self, wanted: &[(&str, &str)]) -> Vec<Row<'_>> {
        let fits = |row: &Row<'_>| wanted.iter().all(|&(column, text)| row.text(column) == text);
        self.rows().filter(fits).collect()
    }

    /// The points of a line through the rows that have these texts, in the table's order.
    pub fn line(&self, wanted: &[(&str, &str)], x: &str, y: &str) -> Vec<(f64, f64)> {
        self.of(wanted).iter().map(|row| (row.number(x), row.number(y))).collect()
    }
}

/// A row of a [`Sheet`].
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    columns: &'a [String],
    cells: &'a [String],
}

impl<'a> Row<'a> {
    /// The text in a column; empty when there is no such column.
    pub fn text(&self, column: &str) -> &'a str {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.cells.get(at)).map_or("", String::as_str)
    }

    /// The number in a column; not a number when it is none.
    pub fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        let file = std::env::temp_dir().join(format!("lately-sheet-{}.csv", std::process::id()));
        let columns = ["structure", "bits", "fpr"];
        let mut sheet = Sheet::new(&columns);
        sheet.push(&[&"TBF", &10, &format!("{:.3e}", 0.000_012_345)]).unwrap();
        sheet.push(&[&"cuckoo", &20, &0]).unwrap();
        sheet.write(&file).unwrap();
        assert_eq!(Sheet::read(&file, &columns).unwrap(), sheet);
        assert!(Sheet::read(&file, &["structure", "fpr"]).is_err());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(sheet.line(&[("structure", "TBF")], "bits", "fpr"), [(10.0, 1.234e-5)]);
        assert_eq!(sheet.of(&[("structure", "cuckoo"), ("bits", "20")]).len(), 1);
        assert!(
            sheet.rows().all(|row| row.number("structure").is_nan() && row.text("x").is_empty())
        );
    }

    #[test]
    fn refuses_what_would_break_the_table() {
        let mut sheet = Sheet::new(&["a", "b"]);
        assert!(sheet.push(&[&1]).is_err());
        assert!(sheet.push(&[&1, &"2,3"]).is_err());
        assert!(sheet.push(&[&1, &2]).is_ok());
    }
}
