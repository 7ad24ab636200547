//! `lately serve` with real clients and over real sockets.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use support::{Folder, LATELY};

fn is_there(program: &str) -> bool {
    let there =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

#[test]
fn filters_and_keys_outlive_the_server() {
    let folder = Folder::new();
    let dir = folder.path("state");
    let server = Server::start(&["--dir", &dir]);
    assert_eq!(
        server.ask("SET a 1 NX EX 600\r\nBF.ADD f x\r\nEXPIRE f 1000"),
        "+OK\r\n:1\r\n:1\r\n"
    );
    let second = Command::new(LATELY)
        .args(["serve", "--listen", "127.0.0.1:0", "--dir", &dir])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use"));
    server.end();

    let server = Server::start(&["--dir", &dir]);
    assert_eq!(server.ask("SET a 1 NX EX 600\r\nBF.ADD f x\r\nSAVE"), "$-1\r\n:0\r\n+OK\r\n");
    assert_eq!(server.ask("BF.ADD f after"), ":1\r\n");
    server.signal("-KILL");
    drop(server);
    // What came after the last snapshot is lost, nothing before it.
    let server = Server::start(&["--dir", &dir]);
    assert_eq!(
        server.ask("BF.EXISTS f x\r\nBF.EXISTS f after\r\nSET a 1 NX EX 600"),
        ":1\r\n:0\r\n$-1\r\n"
    );
    drop(server);

    fs::write(folder.path("state/manifest"), "damaged").unwrap();
    let damaged = Command::new(LATELY)
        .args(["serve", "--listen", "127.0.0.1:0", "--dir", &dir])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(damaged.status.code() == Some(1) && said.contains("state/manifest: "), "{said}");
}

/// Many clients send the same fresh keys at the same moment: each key has exactly one winner.
#[test]
fn exactly_one_winner() {
    const CLIENTS: usize = 8;
    const KEYS: usize = 2_000;
    let server = Server::start(&["--durability", "none", "--threads", "2"]);
    for command in ["BF.ADD f", "SET"] {
        let barrier = Barrier::new(CLIENTS);
        let wins = std::thread::scope(|scope| {
            let client = |number: usize| {
                let (server, barrier) = (&server, &barrier);
                scope.spawn(move || {
                    let mut stream = BufReader::new(server.connect());
                    let end = if command == "SET" { " 1 NX EX 600" } else { "" };
                    let mut won = Vec::new();
                    barrier.wait();
                    // Pipelines of different lengths, so that keys are gathered in different ways.
                    for keys in (0..KEYS).collect::<Vec<_>>().chunks(1 + number * 5) {
                        let lines: String =
                            keys.iter().map(|key| format!("{command} key{key}{end}\r\n")).collect();
                        stream.get_mut().write_all(lines.as_bytes()).unwrap();
                        for key in keys {
                            let mut reply = String::new();
                            stream.read_line(&mut reply).unwrap();
                            match reply.trim() {
                                ":1" | "+OK" => won.push(*key),
                                ":0" | "$-1" => {}
                                other => panic!("{other}"),
                            }
                        }
                    }
                    won
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(client).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        let mut each = wins.clone();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len(), wins.len(), "{command}: a key was fresh twice");
        // At most 1 % of the keys of a filter without options are taken for others; of those of SET, 1e-9.
        let least = if command == "SET" { KEYS } else { KEYS - KEYS / 25 };
        assert!(each.len() >= least, "{command}: {} of {KEYS}", each.len());
    }
    server.end();
}

/// A client that sends and does not read: the server stops reading from it, and answers others.
#[test]
fn a_client_that_does_not_read_harms_nobody() {
    let server = Server::start(&["--durability", "none", "--threads", "1"]);
    let mut greedy = server.connect();
    greedy.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let pipeline = "LATELY.INFO\r\n".repeat(10_000);
    let mut sent = 0;
    // Some 300 bytes of replies to 13 bytes: 100 MiB of requests would be 2 GiB of replies.
    while sent < 100 << 20 {
        match greedy.write(pipeline.as_bytes()) {
            Ok(bytes) => sent += bytes,
            Err(_) => break,
        }
    }
    assert!(sent < 100 << 20, "it took everything");
    let begin = Instant::now();
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    assert!(begin.elapsed() < Duration::from_secs(20));
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < 100 << 10, "{peak} KiB");
    server.end();
}

#[test]
fn strangers_and_browsers() {
    let folder = Folder::new();
    let password = folder.file("password", "secret\n");
    let server = Server::start(&["--durability", "none", "--password-file", &password]);
    assert_eq!(server.ask("PING"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(server.ask("AUTH secret\r\nPING"), "+OK\r\n+PONG\r\n");
    let mut browser = server.connect();
    browser.write_all(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nAUTH secret\r\n").unwrap();
    let mut reply = Vec::new();
    // Closed without a word; what was not read may make it a reset.
    let _ = browser.read_to_end(&mut reply);
    assert!(reply.is_empty());
    server.end();
    let open = Command::new(LATELY).args(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&open.stderr).into_owned();
    assert!(open.status.code() == Some(2) && said.contains("--password-file"), "{said}");
}

#[test]
fn a_unix_socket() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    let folder = Folder::new();
    let path = folder.path("socket");
    let server = Server::start(&["--durability", "none", "--unix", &path]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"PING\r\nQUIT\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, "+PONG\r\n+OK\r\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    server.end();
    assert!(!fs::exists(&path).unwrap());
}

#[test]
fn a_configuration_is_checked() {
    let folder = Folder::new();
    let good = folder
        .file("good.toml", "[[filter]]\nmatch = \"crawl:*\"\nwindow = \"7d\"\ncapacity = \"1M\"\n");
    let check = |file: &str| {
        Command::new(LATELY).args(["serve", "--check", "--config", file]).output().unwrap()
    };
    let output = check(&good);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("listens on 127.0.0.1:7379"), "{said}");
    assert!(said.contains("filter \"crawl:*\": aged-table, 1,000,000 keys, "), "{said}");
    let bad = folder.file("bad.toml", "\n[[filter]]\nmatch = \"a\"\nwindw = \"7d\"\n");
    let output = check(&bad);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("bad.toml") && said.contains("line 4"),
        "{said}"
    );
}

#[test]
fn redis_cli_and_redis_benchmark() {
    if !is_there("redis-cli") || !is_there("redis-benchmark") {
        return;
    }
    let server = Server::start(&["--durability", "none"]);
    let cli = |arguments: &[&str]| {
        let output =
            Command::new("redis-cli").args(["-p", &server.port]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(cli(&["set", "order:17", "1", "nx", "ex", "600"]), "OK");
    assert_eq!(cli(&["set", "order:17", "1", "nx", "ex", "600"]), "");
    let ttl: u64 = cli(&["ttl", "order:17"]).parse().unwrap();
    assert!((1..=600).contains(&ttl), "{ttl}");
    assert_eq!(cli(&["-3", "bf.reserve", "seen", "1e-6", "100000", "window", "1h"]), "OK");
    assert_eq!(cli(&["-3", "bf.madd", "seen", "a", "b", "a"]), "(true)\n(true)\n(false)");
    for command in [
        ["bf.add", "many", "__rand_int__"].as_slice(),
        &["set", "__rand_int__", "1", "nx", "ex", "600"],
    ] {
        let output = Command::new("redis-benchmark")
            .args(["-p", &server.port, "-n", "20000", "-P", "16", "-r", "100000", "-q"])
            .args(command)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("requests per second"), "{said}");
    }
    // 20,000 of 100,000 numbers: some 18,127 are different.
    let fresh: u64 = cli(&["bf.card", "many"]).parse().unwrap();
    assert!((17_000..19_000).contains(&fresh), "{fresh}");
    server.end();
}

/// Clients that are connected and say nothing cost little: 10,000 of them less than 100 MB.
#[test]
fn ten_thousand_idle_clients() {
    let script = r#"
import socket, sys
clients = []
for _ in range(10_000):
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=300)
    client.sendall(b"PING\r\n")
    clients.append(client)
def ask_all():
    for client in clients:
        assert client.recv(7) == b"+PONG\r\n"
ask_all()
print("connected", flush=True)
sys.stdin.readline()
for client in clients:
    client.sendall(b"PING\r\n")
ask_all()
print("all well", flush=True)
"#;
    if !is_there("python3") {
        return;
    }
    let folder = Folder::new();
    // One more may come and ask while they are there.
    let config = folder.file("serve.toml", "max_clients = 10100");
    let arguments = ["--durability", "none", "--threads", "2", "--config", &config];
    let server = Server::start_in("ulimit -n 10500", &arguments);
    let Some(server) = server else {
        return eprintln!("skipped: not so many files may be open");
    };
    let before = resident(&server);
    let mut clients = Command::new("sh")
        .args(["-c", "ulimit -n 10500 && exec python3 -c \"$0\" \"$1\"", script, &server.port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(clients.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "connected");
    let idle = resident(&server) - before;
    assert!(idle < 100_000_000, "{idle} bytes for 10,000 idle clients");
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    clients.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(said.next().unwrap().unwrap(), "all well");
    assert!(clients.wait().unwrap().success());
    server.end();
}

/// Bytes of memory that a server has in use.
fn resident(server: &Server) -> i64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap() * 1024
}
