//! The page of results: prose by hand, with tables between marks.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// A page whose tables are replaced one by one, so that those measured before an error stay.
#[derive(Clone, Debug)]
pub struct Page {
    path: PathBuf,
}

impl Page {
    /// The page in this file, which must have marks around each table: `<!-- speed -->` and `<!-- /speed -->`.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Replaces a table.
    ///
    /// # Errors
    /// There is no such file, or it has no such marks.
    pub fn replace(&self, name: &str, table: &str) -> Result<(), Box<dyn Error>> {
        let path = self.path.display();
        let text = fs::read_to_string(&self.path).map_err(|error| format!("{path}: {error}"))?;
        let replaced = replaced(&text, name, table);
        let replaced =
            replaced.ok_or_else(|| format!("{path}: no <!-- {name} --> … <!-- /{name} -->"))?;
        fs::write(&self.path, replaced).map_err(|error| format!("{path}: {error}").into())
    }
}

fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(&format!("<!-- {name} -->"))?;
    let (_, after) = rest.split_once(&format!("<!-- /{name} -->"))?;
    Some(format!("{before}<!-- {name} -->\n{table}<!-- /{name} -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_table_is_replaced_between_its_marks() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n";
        let page = replaced(page, "x", "new\n").unwrap();
        assert_eq!(page, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n");
        assert_eq!(replaced(&page, "z", ""), None);
    }
}
