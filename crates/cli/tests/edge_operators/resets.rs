//! At the end of a window hosts tell workers that filters are empty, and all begin again.

use super::counts::ask;
use super::system::{PATIENCE, System, get, log, program};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Workers in a window of so many seconds of their time, and whom hosts tell that filters are empty.
struct Windows {
    system: System,
    view: String,
    inputs: Vec<std::process::ChildStdin>,
}

impl Windows {
    const SECONDS: u64 = 1_200;
    /// Two places in each of two cells of 1 km, in one square.
    const PLACES: [u64; 4] = [0, 1, 10, 11];

    fn start(test: &str, reset_by: &str) -> Option<Self> {
        let mut system = System::start(test)?;
        system.speed = 60;
        // A window begins in five seconds, when all of this is there.
        let (real, faster) = (system.since, system.speed - 1);
        let begins = |ago: &u64| (real + faster * ago + 5 * 60).is_multiple_of(Self::SECONDS);
        system.since -= (0..Self::SECONDS).find(begins).unwrap();
        let state = |name: &str| system.folder.join(name).to_str().unwrap().to_owned();
        let (coordinator, host) = (state("coordinator-state"), state("host-state"));
        let arguments =
            ["coordinator", "--state", &coordinator, "--grace", "1h", "--window", "20m"];
        system.spawn("coordinator", &arguments);
        system.spawn("host-a", &["host", "--state", &host, "--reset-by", reset_by]);
        system.role("requester");
        system.wait_for_log("requester", "task accepted");
        system.spawn("second", &["view", "--listen", "127.0.0.1:0"]);
        let view = system.address("second", "map at http://");
        system.wait_for_log("second", "connected to");
        let inputs = ["worker-0", "worker-1", "worker-2", "worker-3"]
            .map(|name| system.spawn(name, &["worker", "--settle", "10m"]).stdin.take().unwrap());
        Some(Self { system, view, inputs: inputs.into() })
    }

    fn window(&self) -> u64 {
        self.system.now() / Self::SECONDS
    }

    /// Until a window has just begun.
    fn wait_for_window(&self) {
        let before = self.window();
        while self.window() == before {
            sleep(Duration::from_millis(20));
        }
    }

    /// Each worker takes a reading at its place; the values begin with this one.
    fn measure(&mut self, first: u64) {
        for (input, (place, value)) in
            self.inputs.iter_mut().zip(Self::PLACES.into_iter().zip(first..))
        {
            let latitude = 45.7985 + 0.001 * place as f64;
            writeln!(input, r#"{{"lat":{latitude},"lon":15.97,"noise":{value}}}"#).unwrap();
        }
    }

    /// Messages so far that filters are empty.
    fn resets(&self) -> u64 {
        let state: serde_json::Value =
            serde_json::from_str(&get(&self.view, "/state.json")).unwrap();
        state["counts"]["resets"].as_u64().unwrap()
    }

    /// How many there are at the end of a window in which each worker has sent something.
    fn resets_of_a_window(mut self) -> u64 {
        for first in [0, 100, 200, 300, 400] {
            self.wait_for_window();
            let window = self.window();
            self.measure(first);
            self.system.wait_for(first..first + 4);
            // Enough of that is there.
            self.measure(first + 10);
            sleep(Duration::from_secs(1));
            let before = self.resets();
            if self.window() != window {
                // Too late on a busy machine: in the next one.
                continue;
            }
            self.wait_for_window();
            sleep(Duration::from_secs(2));
            let resets = self.resets() - before;
            // All begin again.
            self.measure(first + 20);
            self.system.wait_for(first + 20..first + 24);
            let received = self.system.received();
            assert!(
                (first + 10..first + 14).all(|value| !received.contains(&value)),
                "{received:?}"
            );
            return resets;
        }
        panic!("this machine is too busy\n{}", self.system.logs());
    }
}

/// At the end of a window a host tells each worker, each cell or a whole square at once that filters are empty; and all
/// workers begin again.
#[test]
fn resets_are_as_many_messages_as_hosts_are_told_to_send() {
    let runs = [("worker", 4), ("cell", 2), ("square", 1)].map(|(by, expected)| {
        let name = format!("edge-reset-{by}");
        std::thread::spawn(move || {
            let Some(windows) = Windows::start(&name, by) else { return };
            let resets = windows.resets_of_a_window();
            println!("4 workers in 2 cells of one square, by {by}: {resets} in a window");
            assert_eq!(resets, expected, "by {by}");
        })
    });
    runs.into_iter().for_each(|run| run.join().unwrap());
}

/// A way to the broker that can be cut.
struct Way {
    address: String,
    is_cut: Arc<AtomicBool>,
}

impl Way {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = format!("mqtt://{}", listener.local_addr().unwrap());
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        // It ends with the test.
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if cut.load(Ordering::Relaxed) {
                    continue;
                }
                let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
                for (mut from, mut to) in [(&near, &far), (&far, &near)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    let cut = Arc::clone(&cut);
                    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                    std::thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while !cut.load(Ordering::Relaxed) {
                            match from.read(&mut bytes) {
                                Ok(0) => break,
                                Ok(count) if to.write_all(&bytes[..count]).is_err() => break,
                                Err(error) if !is_timeout(&error) => break,
                                Ok(_) | Err(_) => {}
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, is_cut }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A worker that was offline at the end of a window learns of it from the broker when it is back, although its host is
/// gone by then: it does not believe that there is enough of what it sent before.
#[test]
fn a_worker_that_was_away_hears_the_reset_of_its_square() {
    let Some(mut windows) = Windows::start("edge-reset-away", "square") else { return };
    let way = Way::to(windows.system.broker.port());
    let log_of = windows.system.folder.join("worker");
    let since = windows.system.since.to_string();
    let mut command = program();
    command.args(["worker", "--settle", "10m", "--broker", &way.address, "--speed", "60"]);
    let command = command.args(["--since", &since]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(fs::File::create(&log_of).unwrap()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    windows.system.running.push(("worker", child));
    let mut measure = |value: u64| {
        writeln!(input, r#"{{"lat":45.8005,"lon":15.97,"noise":{value}}}"#).unwrap();
    };
    let connected = || log(&log_of).matches("connected to").count();
    for first in [0, 100, 200, 300, 400] {
        windows.wait_for_window();
        let window = windows.window();
        windows.measure(first);
        measure(first + 4);
        windows.system.wait_for(first..first + 5);
        let (resets, times) = (windows.resets(), connected());
        way.is_cut.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(1));
        if windows.window() != window {
            // Too late on a busy machine: in the next one.
            way.is_cut.store(false, Ordering::Relaxed);
            continue;
        }
        windows.wait_for_window();
        let start = Instant::now();
        while windows.resets() == resets {
            assert!(start.elapsed() < PATIENCE, "{}", windows.system.logs());
            sleep(Duration::from_millis(50));
        }
        windows.system.kill("host-a");
        way.is_cut.store(false, Ordering::Relaxed);
        while connected() == times {
            assert!(start.elapsed() < PATIENCE, "{}", windows.system.logs());
            sleep(Duration::from_millis(50));
        }
        let mut sent = None;
        ask(&windows.system, "worker", |count| {
            sent = count("sent");
            sent.is_some()
        });
        // At the place where it has sent something in the last window; the broker keeps it for the host. It may take a
        // moment until it has heard all that the broker has for it.
        let mut value = first + 50;
        ask(&windows.system, "worker", |count| {
            let is_sent = count("sent") > sent;
            if !is_sent {
                measure(value);
                value += 1;
            }
            is_sent
        });
        let state = windows.system.folder.join("host-state");
        let arguments = ["host", "--state", state.to_str().unwrap(), "--reset-by", "square"];
        windows.system.spawn("host-a", &arguments);
        while windows.system.received().range(first + 50..value).next().is_none() {
            assert!(start.elapsed() < PATIENCE, "{}", windows.system.logs());
            sleep(Duration::from_millis(50));
        }
        return;
    }
    panic!("this machine is too busy\n{}", windows.system.logs());
}
