//! What roles count, told on demand.

use super::system::{PATIENCE, System, Walker, log};
use super::{ALL, running};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The last line that a role has told since, and what it says: each number by the word that follows it.
fn counts_of(system: &System, name: &str) -> Vec<(u64, String)> {
    let log = log(&system.folder.join(name));
    let words: Vec<&str> = log.lines().last().unwrap_or_default().split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let number = pair[0].parse().ok()?;
        Some((number, pair[1].trim_end_matches([',', ';']).to_owned()))
    });
    pairs.collect()
}

/// Asks a role by SIGUSR1 what it counts, again and again until that is so.
#[track_caller]
pub(crate) fn ask(
    system: &System,
    name: &str,
    mut is_so: impl FnMut(&dyn Fn(&str) -> Option<u64>) -> bool,
) {
    let (_, child) = system.running.iter().find(|(running, _)| *running == name).unwrap();
    let start = Instant::now();
    loop {
        let before = log(&system.folder.join(name)).lines().count();
        let signal = Command::new("kill").args(["-USR1", &child.id().to_string()]).status();
        assert!(signal.unwrap().success());
        while log(&system.folder.join(name)).lines().count() == before {
            assert!(start.elapsed() < PATIENCE, "{name} says nothing\n{}", system.logs());
            sleep(Duration::from_millis(20));
        }
        let counts = counts_of(system, name);
        let count = |word: &str| {
            let found = counts.iter().find(|(_, found)| found.trim_end_matches('s') == word);
            found.map(|&(number, _)| number)
        };
        if is_so(&count) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{name}: {counts:?}\n{}", system.logs());
        sleep(Duration::from_millis(500));
    }
}

/// Each role tells at SIGUSR1 what it has counted so far, and the counts of all of them agree.
#[test]
fn what_roles_count_is_told_on_demand_and_adds_up() {
    let Some(mut system) = running("edge-usr1", &ALL) else { return };
    let mut walk = |name: &'static str| {
        let input = system.spawn(name, &["worker", "--settle", "10m"]).stdin.take().unwrap();
        Walker { input, number: 0 }
    };
    let (mut late, mut first) = (walk("worker"), walk("second"));
    // One is assigned before the other sends anything, and so sends one reading that is redundant.
    late.number = 7;
    late.walk(15.97, 1);
    system.wait_for(7..8);
    first.walk(15.97, 8);
    system.wait_for(0..8);
    late.number = 0;
    late.walk(15.97, 1);
    sleep(Duration::from_secs(1));
    late.walk(15.97, 6);
    let roles = ["coordinator", "host-a", "requester", "worker", "second"];
    let told = |name: &str| log(&system.folder.join(name));
    // Nobody has asked, and no minute has passed.
    assert!(
        roles.iter().all(|name| !told(name).contains("kept") && !told(name).contains("skipped"))
    );
    ask(&system, "second", |count| {
        (count("fixe"), count("sent"), count("skipped")) == (Some(8), Some(7), Some(1))
    });
    ask(&system, "worker", |count| {
        (count("fixe"), count("sent"), count("skipped")) == (Some(8), Some(2), Some(6))
    });
    // 7 and 2 were sent.
    ask(&system, "host-a", |count| {
        (count("square"), count("kept"), count("redundant")) == (Some(1), Some(8), Some(1))
    });
    ask(&system, "requester", |count| count("reading") == Some(8));
    // Hosts report to it once a minute of their time.
    ask(&system, "coordinator", |count| {
        // A worker that waits for an answer looks up again.
        let all = ["square", "task", "worker", "reading", "redundant"].map(count);
        count("look-up") >= Some(2) && all == [1, 1, 2, 8, 1].map(Some)
    });
}
