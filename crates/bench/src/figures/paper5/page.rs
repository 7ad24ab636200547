//! stub
use std::error::Error;
use std::path::Path;
/// Draws.
pub fn draw(_folder: &Path) -> Result<(), Box<dyn Error>> {
    Ok(())
}
