//! The commands that the documents show run as printed, and print what is shown.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Folder, LATELY};

/// A fenced block: the words after the fence, and its lines.
struct Block {
    line: usize,
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                found.push(Block { line: at + 1, info: info.into(), text: String::new() });
                open = true;
            }
            None if open => {
                let block = found.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            None => {}
        }
    }
    found
}

/// Runs a block as a script, in a folder with the examples of the tree: both streams, in turn.
fn run(folder: &Folder, script: &str) -> Result<String, String> {
    let programs = Path::new(LATELY).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let script = script.replace("cargo run --release -- ", "lately ");
    let output = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .output()
        .unwrap();
    let said =
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
    if output.status.success() { Ok(said) } else { Err(format!("{script}{said}")) }
}

/// Runs every ```sh block of a page, but for those marked `not-run`, and looks for each line of
/// the ```text block after it among what was said. Lines of times and sizes differ from run to
/// run, so pages leave them out: a line `…` stands for any. Returns how many commands ran.
fn follow(page: &str) -> usize {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let folder = Folder::new();
    symlink(root().join("examples").canonicalize().unwrap(), folder.path("examples")).unwrap();
    let mut said = String::new();
    let mut commands = 0;
    for Block { line, info, text } in blocks(&text) {
        match info.as_str() {
            "sh" => {
                said = run(&folder, &text).unwrap_or_else(|error| panic!("{page}:{line}: {error}"));
                commands += text.lines().filter(|line| line.contains("lately ")).count();
                commands += text.lines().filter(|line| line.starts_with("cargo run")).count();
            }
            "text" => {
                for shown in text.lines().filter(|shown| *shown != "…") {
                    let found = said.lines().any(|line| line == shown);
                    assert!(found, "{page}:{line}: nothing says `{shown}`:\n{said}");
                }
            }
            _ => {}
        }
    }
    commands
}

#[test]
fn readme() {
    assert!(follow("README.md") >= 7);
}

#[test]
fn guide() {
    assert!(follow("docs/guide.md") >= 13);
}

#[test]
fn ranges() {
    assert!(follow("docs/ranges.md") >= 5);
}

#[test]
fn structures() {
    assert!(follow("docs/structures.md") >= 4);
}

/// Every file and heading that a page of the tree links to is there.
#[test]
fn links() {
    let mut pages: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "examples/README.md",
        "bindings/python/README.md",
        "bindings/flink/README.md",
    ]
    .map(|page| root().join(page))
    .into();
    for folder in ["docs", "docs/results"] {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    }
    let mut links = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let (file, heading) = target.0.split_once('#').unwrap_or((target.0, ""));
            if file.contains("://") {
                continue;
            }
            let place = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(place.exists(), "{} links to {}", page.display(), target.0);
            if !heading.is_empty() {
                let text = fs::read_to_string(&place).unwrap();
                let found = text.lines().filter(|line| line.starts_with('#')).any(|line| {
                    let words = line.trim_start_matches('#').trim().to_lowercase();
                    words.replace(' ', "-") == heading
                });
                assert!(found, "{} links to {}", page.display(), target.0);
            }
            links += 1;
        }
    }
    assert!(links > 100, "{links}");
}

/// Bits per key of each structure, rounded, as `lately plan` gives them.
fn planned(flags: &[&str]) -> Vec<(String, String)> {
    let output = Command::new(LATELY).args(["plan", "--json"]).args(flags).output().unwrap();
    let plans: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bits = |plan: &serde_json::Value| {
        let name = plan["structure"].as_str().unwrap().to_owned();
        (name, format!("{:.0}", plan["bits_per_key"].as_f64().unwrap()))
    };
    plans.as_array().unwrap().iter().map(bits).collect()
}

#[test]
fn bits_per_key_are_what_plan_says() {
    let text = fs::read_to_string(root().join("docs/structures.md")).unwrap();
    let row = |name: &str| -> Vec<&str> {
        let start = format!("| `{name}`");
        let found = text.lines().find(|line| line.starts_with(&start));
        found.unwrap_or_else(|| panic!("no row for {name}")).split('|').map(str::trim).collect()
    };
    let runs: [(usize, &[&str]); 4] = [
        (3, &["--within", "10s", "--expect", "1M", "--lateness", "0s"]),
        (4, &["--last", "1M"]),
        (5, &["--within", "10s", "--expect", "1M", "--slack", "12.5%", "--lateness", "0s"]),
        (3, &["--expect", "1M"]),
    ];
    for (column, flags) in runs {
        for (name, bits) in planned(flags) {
            let shown = row(&name)[column].split(' ').next().unwrap().to_owned();
            assert_eq!(shown, bits, "{name}, {flags:?}");
        }
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, bits) = planned(runs[0].1).into_iter().find(|plan| plan.0 == "aged-table").unwrap();
    assert!(readme.contains(&format!("{bits} bits per key")), "README: {bits}");
}
