//! What pages that compare structures share, with tables that are measured separately.

use super::facts::Facts;
use super::sheet::Sheet;
use crate::machine;
use crate::plot::Chart;
use std::error::Error;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Facts about a run at a scale, merged with those that earlier runs into the same folder noted.
///
/// # Errors
/// Those of the file system.
pub fn facts(folder: &Path, scale: f64) -> io::Result<Facts> {
    std::fs::create_dir_all(folder)?;
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("machine", &machine::processor());
    facts.note("scale", &scale);
    facts.note("peers", &cfg!(feature = "peers"));
    Ok(facts)
}

/// A table, if it was measured.
///
/// # Errors
/// When it is damaged.
pub fn table(folder: &Path, file: &str, columns: &[&str]) -> Result<Option<Sheet>, Box<dyn Error>> {
    let file = folder.join(file);
    file.exists().then(|| Sheet::read(&file, columns)).transpose()
}

/// A sentence: on which machine, how, and with what reservations.
pub fn measured(facts: &Facts, how: &str) -> String {
    let mut text = format!("\nMeasured on {}, {how}", facts.get("machine"));
    if facts.get("scale") != "1" {
        let _ = write!(text, "; **at a scale of {}**, which proves nothing", facts.get("scale"));
    }
    if facts.get("peers") != "true" {
        text += "; **built without peers** (`--features peers`)";
    }
    if facts.has("beside") {
        let _ = write!(text, "; {}", facts.get("beside"));
    }
    text + ".\n"
}

/// Draws charts into a folder, and gives the text that links to them from next to it; those without a point are left out.
///
/// # Errors
/// When a chart cannot be drawn, or a file cannot be written.
pub fn figures(
    folder: &Path,
    charts: Vec<(&'static str, Chart)>,
) -> Result<String, Box<dyn Error>> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or(".");
    let mut text = "\n## Figures\n\n".to_owned();
    for (file, chart) in charts {
        if chart.lines.iter().all(|line| line.points.is_empty()) {
            continue;
        }
        std::fs::write(folder.join(file), chart.svg()?)?;
        let _ = write!(text, "![{}]({name}/{file})\n\n", chart.title);
    }
    Ok(text)
}
