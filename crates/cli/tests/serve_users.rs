//! `lately serve` with users: their passwords, names and rights, and a file of them that changes.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::serving::Serving;
use support::{Folder, LATELY};

const NOAUTH: &str = "-NOAUTH Authentication required.";
const NO_NAME: &str =
    "-NOPERM this user has no permissions to access one of the keys used as arguments";

/// SHA-256 of "1" to "4", as `sha256sum` shows it.
const SECRETS: [&str; 4] = [
    "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35",
    "4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce",
    "4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a",
];

/// A user of the file: a password of those above (0: none), what it may do, and patterns of names.
fn user(name: &str, password: usize, may: &str, filters: &[&str]) -> String {
    let mut text = format!("[[user]]\nname = {name:?}\nmay = {may:?}\nfilters = {filters:?}\n");
    if let Some(secret) = password.checked_sub(1).map(|at| SECRETS[at]) {
        text += &format!("password_sha256 = {secret:?}\n");
    }
    text
}

/// Three users: `crawler` with 1, `root` with 2, and whoever says nothing may ask for what is public.
fn three() -> String {
    user("crawler", 1, "write", &["crawl:*"])
        + &user("root", 2, "admin", &["*"])
        + &user("default", 0, "read", &["public:*"])
}

/// A client of Redis that sends lines and gets lines.
struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &Serving) -> Self {
        Self(BufReader::new(server.connect(&server.port)))
    }

    fn of(server: &Serving, user: &str, password: usize) -> Self {
        let mut client = Self::new(server);
        assert_eq!(client.ask(&format!("AUTH {user} {password}")), "+OK");
        client
    }

    /// The first line of the reply.
    fn ask(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.line()
    }

    /// Another line; an empty one at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// The head and the body of an answer over HTTP.
fn http(server: &Serving, headers: &str, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = server.connect(&server.http);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The status of an answer to a user.
fn status(server: &Serving, password: usize, method: &str, path: &str, body: &str) -> u16 {
    let headers = match password {
        0 => String::new(),
        password => format!("Authorization: Bearer {password}\r\n"),
    };
    let (head, _) = http(server, &headers, method, path, body);
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn users_of_both_languages() {
    let folder = Folder::new();
    let server = Serving::start(&["--users-file", &folder.file("users.toml", three())]);
    let mut crawler = Client::of(&server, "crawler", 1);
    assert_eq!(crawler.ask("BF.ADD crawl:seen x"), ":1");
    assert_eq!(crawler.ask("BF.ADD public:seen x"), NO_NAME);
    let refused = "-NOPERM this user has no permissions to run the 'bf.reserve' command";
    assert_eq!(crawler.ask("BF.RESERVE crawl:new 0.01 100"), refused);
    let mut root = Client::of(&server, "root", 2);
    assert_eq!(root.ask("BF.ADD public:seen x"), ":1");
    let mut anyone = Client::new(&server);
    assert_eq!(anyone.ask("BF.EXISTS public:seen x"), ":1");
    assert_eq!(anyone.ask("BF.EXISTS crawl:seen x"), NO_NAME);
    assert!(anyone.ask("AUTH crawler 2").starts_with("-WRONGPASS "));

    let items = r#"{"items":["x","y"]}"#;
    let seen =
        http(&server, "Authorization: Bearer 1\r\n", "POST", "/v1/filters/crawl:seen/seen", items);
    assert_eq!(seen.1, r#"{"seen":[true,false]}"#);
    assert_eq!(status(&server, 0, "POST", "/v1/filters/public:seen/seen", items), 200);
    assert_eq!(status(&server, 0, "POST", "/v1/filters/public:seen/observe", items), 403);
    assert_eq!(status(&server, 0, "POST", "/v1/filters/crawl:seen/seen", items), 403);
    assert_eq!(status(&server, 1, "DELETE", "/v1/filters/crawl:seen", ""), 403);
    assert_eq!(status(&server, 1, "GET", "/metrics", ""), 403);
    assert_eq!(status(&server, 2, "GET", "/metrics", ""), 200);
    assert_eq!(status(&server, 3, "GET", "/v1/filters", ""), 401);
    // crawler:1 and crawler:2 in base64.
    for (pair, expected) in [("Y3Jhd2xlcjox", "200"), ("Y3Jhd2xlcjoy", "401")] {
        let headers = format!("Authorization: Basic {pair}\r\n");
        let (head, _) = http(&server, &headers, "GET", "/v1/filters/crawl:seen", "");
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{head}");
    }
    let (head, body) =
        http(&server, "Authorization: Bearer 1\r\n", "GET", "/v1/filters/public:seen", "");
    assert!(head.contains("application/problem+json") && body.contains("\"status\":403"), "{body}");
    server.end();
}

/// Long pipelines whose names are allowed and refused by turns, and transactions.
#[test]
fn pipelines_and_transactions() {
    const COMMANDS: usize = 20_000;
    let folder = Folder::new();
    let server = Serving::start(&["--users-file", &folder.file("users.toml", three())]);
    let mut crawler = Client::of(&server, "crawler", 1);
    let is_allowed = |n: usize| n % 1000 < 700 || n.is_multiple_of(3);
    let lines: String = (0..COMMANDS)
        .map(|n| format!("BF.ADD {}:f {n}\r\n", if is_allowed(n) { "crawl" } else { "other" }))
        .collect();
    let mut writing = crawler.0.get_ref().try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || writing.write_all(lines.as_bytes()).unwrap());
        for n in 0..COMMANDS {
            let line = crawler.line();
            // A false positive is possible.
            let is_right =
                if is_allowed(n) { line == ":1" || line == ":0" } else { line == NO_NAME };
            assert!(is_right, "{n}: {line}");
        }
    });
    assert_eq!(crawler.ask("BF.EXISTS crawl:f 0"), ":1");
    assert_eq!(crawler.ask("MULTI"), "+OK");
    assert_eq!(crawler.ask("SET crawl:k 1 NX EX 60"), "+QUEUED");
    assert_eq!(crawler.ask("DEL crawl:k other"), NO_NAME);
    assert!(crawler.ask("EXEC").starts_with("-EXECABORT "));
    assert_eq!(crawler.ask("EXISTS crawl:k"), ":0");
    server.end();
}

/// SIGHUP reads the file again: users lose and win rights at their next command.
#[test]
fn users_change_while_they_are_connected() {
    let folder = Folder::new();
    let file = folder.file("users.toml", three());
    let server = Serving::start(&["--users-file", &file]);
    let (mut crawler, mut root, mut anyone) =
        (Client::of(&server, "crawler", 1), Client::of(&server, "root", 2), Client::new(&server));
    let mut other = Client::of(&server, "root", 2);
    assert_eq!(crawler.ask("BF.ADD crawl:f x"), ":1");
    // What is wrong is said, and nothing changes.
    fs::write(&file, three() + &user("crawler", 3, "read", &["*"])).unwrap();
    server.signal("-HUP");
    server.says(
        "users.toml: line 16: user \"crawler\": is in line 2 already; the users stay as they were",
    );
    assert_eq!(crawler.ask("BF.ADD crawl:f y"), ":1");
    fs::remove_file(&file).unwrap();
    server.signal("-HUP");
    server.says("users.toml: No such file");
    assert_eq!(crawler.ask("BF.ADD crawl:f z"), ":1");

    let changed =
        user("crawler", 1, "read", &["crawl:*", "more"]) + &user("root", 3, "admin", &["*"]);
    fs::write(&file, changed).unwrap();
    // Long enough that a stranger would have been given up.
    std::thread::sleep(Duration::from_millis(10_500));
    server.signal("-HUP");
    server.says("the users were read again");
    let refused = "-NOPERM this user has no permissions to run the 'bf.add' command";
    assert_eq!(crawler.ask("BF.ADD crawl:f a"), refused);
    assert_eq!(crawler.ask("BF.EXISTS more a"), ":0");
    for client in [&mut root, &mut anyone] {
        assert_eq!(client.ask("PING"), NOAUTH);
        assert_eq!(client.line(), "", "it is closed");
    }
    // Who has the new password continues with the connection.
    assert!(other.ask("AUTH root 2").starts_with("-WRONGPASS "));
    std::thread::sleep(Duration::from_millis(1_000));
    assert_eq!(other.ask("AUTH root 3"), "+OK");
    assert_eq!(other.ask("BF.ADD f x"), ":1");
    assert_eq!(status(&server, 2, "GET", "/v1/filters", ""), 401);
    assert_eq!(status(&server, 3, "GET", "/v1/filters", ""), 200);
    assert_eq!(status(&server, 0, "GET", "/v1/filters", ""), 401);
    server.end();
}

#[test]
fn a_file_of_users_is_checked() {
    let folder = Folder::new();
    let check = |users: &str, more: &[&str]| {
        let file = folder.file("users.toml", users);
        let output = Command::new(LATELY)
            .args(["serve", "--check", "--users-file", &file])
            .args(more)
            .output()
            .unwrap();
        let said =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    };
    let (code, said) = check(&three(), &[]);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "clients come in as users of ",
        "user \"crawler\": write, names \"crawl:*\"\n",
        "user \"root\": admin, all names\n",
        "user \"default\": without a password, read, names \"public:*\"\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let password = folder.file("password", "secret\n");
    let root = user("root", 2, "admin", &["*"]);
    let (code, said) = check(&root, &["--password-file", &password, "--listen", "0.0.0.0:1"]);
    assert!(code == Some(0) && said.contains("with a password, or as users of "), "{said}");
    assert!(said.contains("user \"default\": admin, all names\n"), "{said}");
    // Whoever listens to other machines lets nobody in without a password, unless that is said.
    assert_eq!(check(&root, &["--listen", "0.0.0.0:1"]).0, Some(0));
    let (code, said) = check(&three(), &["--listen", "0.0.0.0:1"]);
    assert!(code == Some(2) && said.contains("give the user \"default\" a password"), "{said}");
    assert_eq!(check(&three(), &["--listen", "0.0.0.0:1", "--open"]).0, Some(0));
    for (users, more, expected) in [
        (
            "\n[[user]]\nname = \"a\"\nmay = \"read\"\n",
            &[][..],
            "users.toml: line 2: user \"a\": password_sha256: is missing",
        ),
        ("[[user]]\nname = 5\n", &[], "users.toml: line 2: user: name: must be a text"),
        // All at once.
        ("[[user]]\nname = 5\n", &[], "users.toml: line 1: user: missing field `may`"),
        ("[[user]\n", &[], "users.toml: line 1: "),
        (
            &three(),
            &["--password-file", &password],
            "user \"default\": is the one of the password file",
        ),
    ] {
        let (code, said) = check(users, more);
        assert!(code == Some(2) && said.contains(expected), "{said}");
    }
    // A configuration names the file, too.
    let config = folder.file("serve.toml", "users_file = \"/no/such/users\"\n");
    let output =
        Command::new(LATELY).args(["serve", "--check", "--config", &config]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/users: "));
}

/// redis-py in both versions of the protocol. `LATELY_PYTHON` names an interpreter that has it.
#[test]
fn redis_py() {
    let python = std::env::var("LATELY_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = Command::new(&python).args(["-c", "import redis"]).stderr(Stdio::null()).status();
    if !has_it.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: {python} has no package redis (pip install redis)");
    }
    let script = r#"
import redis, sys
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
def refused(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return True
    return False
def text(said):
    return said.decode() if isinstance(said, bytes) else said
for protocol in (2, 3):
    def client(**more):
        return redis.Redis(port=int(sys.argv[1]), protocol=protocol, **more)
    crawler = client(username="crawler", password="1")
    assert text(crawler.acl_whoami()) == "crawler"
    assert crawler.client_info()["user"] == "crawler"
    assert crawler.bf().add(f"crawl:{protocol}", "a") in (1, True)
    assert refused(NoPermissionError, crawler.bf().add, "other", "a")
    assert refused(NoPermissionError, crawler.bf().reserve, f"crawl:new{protocol}", 0.01, 100)
    assert refused(NoPermissionError, crawler.config_get, "save")
    pipe = crawler.pipeline(transaction=False)
    for name in ("crawl", "other", "crawl"):
        pipe.set(f"{name}:{protocol}:k", 1, nx=True, ex=60)
    replies = pipe.execute(raise_on_error=False)
    assert replies[0] is True and isinstance(replies[1], NoPermissionError) and replies[2] is None, replies
    pipe = crawler.pipeline(transaction=True)
    pipe.set(f"crawl:{protocol}:m", 1, nx=True, ex=60)
    pipe.set(f"other:{protocol}:m", 1, nx=True, ex=60)
    assert refused(ResponseError, pipe.execute)
    assert crawler.exists(f"crawl:{protocol}:m") == 0
    root = client(username="root", password="2")
    assert root.delete(f"crawl:{protocol}") == 1
    assert refused(AuthenticationError, client(username="root", password="3").ping)
    assert client().ping() and text(client().acl_whoami()) == "default"
print("all well")
"#;
    let folder = Folder::new();
    let server = Serving::start(&["--users-file", &folder.file("users.toml", three())]);
    let begun = Instant::now();
    let output = Command::new(python).args(["-c", script, &server.port]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all well", "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    server.end();
}
