//! The frontier of a crawler: every address once, ever, with a state on disk that is saved from time to time.
//!
//! ```sh
//! cargo run --release -p lately --example crawler
//! ```

use lately::{AnyFilter, Spec, Tick, Window, WindowFilter};
use std::collections::VecDeque;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

/// Addresses after which the state is saved.
const SAVE_EVERY: u64 = 5_000;

/// What is still to be fetched, and what was ever put there.
struct Frontier {
    seen: AnyFilter,
    waiting: VecDeque<String>,
}

impl Frontier {
    fn new() -> Result<Self, lately::PlanError> {
        // It grows when there are more. One address in 10,000 is never fetched.
        let seen = Spec::new(Window::unbounded(10_000)).fpr(1e-4).plan()?.build();
        Ok(Self { seen, waiting: VecDeque::new() })
    }

    fn add(&mut self, address: String) {
        let key = self.seen.digester().digest(address.as_bytes());
        if !self.seen.observe(key, Tick(0)).is_duplicate() {
            self.waiting.push_back(address);
        }
    }

    /// Beside the old state, and then in its place: a crash leaves one or the other.
    fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let new = path.with_extension("new");
        let mut file = BufWriter::new(File::create(&new)?);
        self.seen.save(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(new, path)?;
        Ok(())
    }

    fn load(path: &Path, waiting: VecDeque<String>) -> Result<Self, Box<dyn Error>> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { seen: AnyFilter::load(len, BufReader::new(file))?, waiting })
    }
}

/// The links of a page: some to pages that are well known, some to new ones.
fn links(page: &str) -> impl Iterator<Item = String> {
    let number: u64 = page.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let targets = [number / 2, 2 * number + 1, 2 * number + 2, number % 100];
    targets.into_iter().map(|n| format!("https://example.org/page/{n}"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("lately-crawler-{}.state", std::process::id()));
    let mut frontier = Frontier::new()?;
    frontier.add("https://example.org/page/0".into());
    let mut fetched = 0;
    while let Some(page) = frontier.waiting.pop_front() {
        fetched += 1;
        links(&page).for_each(|link| frontier.add(link));
        if fetched % SAVE_EVERY == 0 {
            frontier.save(&path)?;
            // As after a crash: nothing that was seen is fetched again.
            frontier = Frontier::load(&path, std::mem::take(&mut frontier.waiting))?;
        }
        if fetched == 30_000 {
            break;
        }
    }
    fs::remove_file(&path)?;
    let known = fetched + frontier.waiting.len() as u64;
    println!("{fetched} pages fetched, {known} known, in {} bytes", frontier.seen.snapshot_len());
    // Page n leads to 2n + 1 and 2n + 2: 30,000 pages lead to as many again, but for those called known by mistake.
    assert!((59_900..=60_001).contains(&known), "{known}");
    Ok(())
}

#[test]
fn it_runs() {
    assert!(main().is_ok());
}
