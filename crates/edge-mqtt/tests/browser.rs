//! The worker in a browser (`examples/browser`): WebAssembly that decides, in a real Chromium, over MQTT on WebSocket.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately_edge::coordinator::CoordinatorConfig;
use lately_edge::element::Property;
use lately_edge::host::HostConfig;
use lately_edge::ids::{RequesterId, TaskId};
use lately_edge::task::{Area, Task};
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::coordinator::CoordinatorRun;
use lately_edge_mqtt::mosquitto::{Mosquitto, find};
use lately_edge_mqtt::process::ProcessRun;
use lately_edge_mqtt::requester::RequesterRun;
use lately_edge_mqtt::run::stop;
use lately_edge_mqtt::store::Folder;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(60);
/// Places at which the page measures, twice at each.
const STEPS: u64 = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The module, built for the browser; `None`, and says so, where that is not possible.
fn module() -> Option<PathBuf> {
    let folder = root().join("target/others");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    // As `./test` builds what it depends on, for the same target.
    let built = Command::new(cargo)
        .current_dir(root())
        .args(["build", "--quiet", "--package", "lately-edge-browser"])
        .args(["--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&folder)
        .output()
        .unwrap();
    let path = folder.join("wasm32-unknown-unknown/debug/lately_edge_browser.wasm");
    if built.status.success() {
        return Some(path);
    }
    let words = String::from_utf8_lossy(&built.stderr).into_owned();
    // A missing target is no failure of the code.
    assert!(
        words.contains("can't find crate for `core`")
            || words.contains("can't find crate for `std`"),
        "{words}"
    );
    eprintln!("skipped: no Rust for wasm32-unknown-unknown (rustup target add)");
    None
}

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found = names.into_iter().find(is_there);
    if found.is_none() {
        eprintln!("skipped: chromium is not installed (apt-get install chromium)");
    }
    found
}

/// Serves the page and the module; what is asked for at `/report` is handed on.
fn serve(module: PathBuf) -> (u16, mpsc::Receiver<BTreeMap<String, String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, reports) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), &module, &tell);
        }
    });
    (port, reports)
}

fn answer(
    mut stream: TcpStream,
    module: &Path,
    tell: &mpsc::Sender<BTreeMap<String, String>>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let target = first.split(' ').nth(1).unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path == "/report" {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let _ = tell.send(pairs.map(|(name, value)| (name.into(), value.into())).collect());
    }
    let folder = root().join("examples/browser");
    let (file, kind) = match path {
        "/" => (folder.join("index.html"), "text/html"),
        "/lately_edge_browser.wasm" => (module.into(), "application/wasm"),
        script if script.ends_with(".js") => (folder.join(&script[1..]), "text/javascript"),
        _ => (PathBuf::new(), "text/plain"),
    };
    let (status, body) = match fs::read(&file) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}

/// A browser without a window, ended when this is dropped.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_browser_decides() {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    let (Some(chromium), Some(module)) = (chromium(), module()) else { return };
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let more = format!("listener {socket} 127.0.0.1\nprotocol websockets");
    let Ok(mosquitto) = Mosquitto::start(&more) else {
        eprintln!("skipped: this mosquitto does not speak WebSocket");
        return;
    };
    let broker = Broker::new(&mosquitto.address(), None).unwrap();
    let clock = Clock::default();
    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| Folder::open(&place.path().join(name)).unwrap();
    let (stopper, stopped) = stop();
    let config = CoordinatorConfig::default();
    let coordinator = CoordinatorRun::new(broker.clone(), clock, folder("c"), config).unwrap();
    let coordinator = tokio::spawn(coordinator.run(stopped.clone(), |_| ()));
    let config = HostConfig { tell_every: 1_000, ..HostConfig::default() };
    let host = ProcessRun::new(broker.clone(), clock, folder("h"), 16, config).unwrap();
    let host = tokio::spawn(host.run(stopped.clone(), |_| ()));
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let (id, noise) = (TaskId(1), Property::new("noise").unwrap());
    let (from, until) = (clock.now(), clock.now() + 3_600_000);
    let task = Task { id, property: noise, area: Area::Everywhere, from, until, wanted: 1 };
    let id = RequesterId(1);
    let requester = RequesterRun { broker, clock, id, task, most: None, stays: false };
    let requester = tokio::spawn(requester.run(
        stopped,
        move |arrived| {
            let readings: usize = arrived.iter().map(|batch| batch.readings.len()).sum();
            count.fetch_add(readings as u64, Ordering::Relaxed);
            Ok(())
        },
        |_| (),
    ));
    sleep(Duration::from_secs(3)).await;
    let (port, reports) = serve(module);
    let url = format!(
        "http://127.0.0.1:{port}/?demo={STEPS}&report=/report&broker=ws://127.0.0.1:{socket}"
    );
    let profile = place.path().join("profile");
    let browser = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--remote-debugging-port=0", &url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let browser = Browser(browser.unwrap());
    let report = tokio::task::spawn_blocking(move || reports.recv_timeout(PATIENCE)).await.unwrap();
    let report = report.unwrap_or_default();
    drop(browser);
    let number = |name: &str| report.get(name).and_then(|value| value.parse::<u64>().ok());
    // Each place was measured twice: the first reading was sent and kept, the second one spared.
    assert_eq!(number("sent"), Some(STEPS), "{report:?}");
    assert_eq!(number("skipped"), Some(STEPS), "{report:?}");
    assert_eq!(number("kept"), Some(STEPS), "{report:?}");
    assert_eq!(number("unanswered"), Some(0), "{report:?}");
    let all = async {
        while received.load(Ordering::Relaxed) < STEPS {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, all).await.unwrap();
    stopper.stop();
    for ended in [coordinator.await.map(|run| run.is_ok()), host.await.map(|run| run.is_ok())] {
        assert!(ended.unwrap());
    }
    assert!(requester.await.unwrap().is_ok());
}
