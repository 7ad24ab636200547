//! What a running system of `lately edge` shows: the map in a real browser, and counts.
#![cfg(feature = "edge")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/edge.rs"]
mod system;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use system::{PATIENCE, System, fixes, get, told};

#[test]
fn the_map_shows_what_is_sent() {
    let Some(mut system) = System::start("edge-view") else { return };
    system.spawn("second", &["view", "--listen", "127.0.0.1:0"]);
    let address = system.address("second", "map at http://");
    system.wait_for_log("second", "connected to");
    ["coordinator", "host-a", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let output = system.work(&[], system.since, &fixes(15.97, 0..12));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    system.wait_for(0..12);
    let start = Instant::now();
    let state = loop {
        let state: serde_json::Value = serde_json::from_str(&get(&address, "/state.json")).unwrap();
        if state["cells"].as_array().unwrap().len() == 12 && state["counts"]["results"] == 12 {
            break state;
        }
        assert!(start.elapsed() < PATIENCE, "{state}");
        sleep(Duration::from_millis(100));
    };
    assert_eq!(state["tasks"][0]["property"], "noise");
    assert_eq!(state["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(state["counts"]["submissions"], 12);
    for path in ["/", "/view.js", "/leaflet.js", "/leaflet.css", "/mgrs.js", "/land.json"] {
        assert!(get(&address, path).len() > 500, "{path}");
    }
    // Nothing comes from elsewhere.
    assert!(!get(&address, "/").contains("://"));
    let chromium = Command::new("chromium").arg("--version").stdout(Stdio::null()).status();
    if chromium.is_err() {
        eprintln!("skipped: chromium is not installed (apt-get install chromium)");
        return;
    }
    let picture = std::env::var_os("LATELY_SCREENSHOTS").map_or_else(
        || system.folder.join("map.png"),
        |folder| PathBuf::from(folder).join("map.png"),
    );
    let browse = |more: &str| {
        Command::new("chromium")
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .arg(format!("--user-data-dir={}", system.folder.join("profile").display()))
            .args(["--window-size=1200,800", "--virtual-time-budget=6000", more])
            .arg(format!("http://{address}/"))
            .stderr(Stdio::null())
            .output()
            .unwrap()
    };
    let page = String::from_utf8_lossy(&browse("--dump-dom").stdout).into_owned();
    assert!(page.contains("data-drawn=\"12\""), "{page}");
    for words in ["connected to the broker", "readings sent", "noise", "everywhere", "33T"] {
        assert!(page.contains(words), "no {words} in {page}");
    }
    browse(&format!("--screenshot={}", picture.display()));
    assert!(std::fs::metadata(&picture).unwrap().len() > 10_000);
}

/// Counts for Prometheus; and on a signal on standard error.
#[test]
fn counts_can_be_read() {
    let Some(mut system) = System::start("edge-metrics") else { return };
    let port = || {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        format!("127.0.0.1:{}", listener.local_addr().unwrap().port())
    };
    let [of_host, of_coordinator] = [port(), port()];
    let state = |name: &str| system.folder.join(name).to_str().unwrap().to_owned();
    let [one, other] = [state("c"), state("h")];
    system.spawn("coordinator", &["coordinator", "--state", &one, "--metrics", &of_coordinator]);
    let host = system.spawn("host-a", &["host", "--state", &other, "--metrics", &of_host]).id();
    system.role("requester");
    system.wait_for_log("requester", "task accepted");
    let lines = fixes(15.97, 0..5) + &fixes(15.97, 0..5);
    let output = system.work(&[], system.since, &lines);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let output = system.work(&["--property", "co"], system.since, &lines);
    assert_eq!(output.status.code(), Some(7), "{}", told(&output));
    let start = Instant::now();
    loop {
        let counts = get(&of_host, "/metrics");
        let all = [
            "lately_edge_submissions_total 5",
            "lately_edge_readings_total{verdict=\"kept\"} 5",
            "lately_edge_readings_total{verdict=\"repeated\"} 0",
            "lately_edge_refused_total{reason=\"future\"} 0",
            "lately_edge_covered_elements 5",
            "lately_edge_connected 1",
        ];
        if all.iter().all(|line| counts.lines().any(|other| other == *line)) {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{counts}");
        sleep(Duration::from_millis(100));
    }
    let counts = get(&of_coordinator, "/metrics");
    assert!(counts.contains("lately_edge_process_up{process="), "{counts}");
    assert!(counts.contains("lately_edge_tasks 1"), "{counts}");
    let signal = Command::new("kill").args(["-USR1", &host.to_string()]).status().unwrap();
    assert!(signal.success());
    system.wait_for_log("host-a", "1 square, 5 kept, 0 redundant");
}
