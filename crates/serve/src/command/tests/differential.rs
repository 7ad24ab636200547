//! The replies of RedisBloom 2.8.2 on Redis 7.0.15, recorded, against ours.

use super::{Client, server};
use std::collections::BTreeSet;
use std::path::PathBuf;

const NO_VALUES: &str = "no values are kept, so what would need one is an error";
const OWN_DUMPS: &str = "a dump holds another filter, so it is of other bytes";
const SIZES: &str = "the sizes are those of other structures";
const ANOTHER: &str =
    "another server: its version, modules, commands, settings, or a number or moment of its own";
const NEWER: &str = "Redis 7.0 did not know it; later versions, which clients are told this is, do";
const ONE: &str = "there is one database";
const NO_TRACKING: &str = "there is nothing to track";
const NO_WATCH: &str = "a transaction is not isolated, so a watch would promise what is not kept";
const FILTERS: &str = "keys cannot be listed: these know filters, in another order";

/// The commands whose replies may differ, and why. All others are the same, byte for byte.
const ALLOWED: &[(&str, &str)] = &[
    ("BF.INFO a", SIZES),
    ("BF.INFO a SIZE", SIZES),
    ("BF.INFO d", SIZES),
    ("MEMORY USAGE d", SIZES),
    ("BF.SCANDUMP a 0", OWN_DUMPS),
    ("BF.DEBUG a", SIZES),
    ("OBJECT ENCODING a", NO_VALUES),
    ("SET k v NX GET", NO_VALUES),
    ("SET k2 v NX GET EX 10", NO_VALUES),
    ("SET k v XX EX 10", NO_VALUES),
    ("SET k v KEEPTTL NX", NO_VALUES),
    ("GET k", NO_VALUES),
    ("GETEX k", NO_VALUES),
    ("INCR k", NO_VALUES),
    ("INCR cnt", NO_VALUES),
    ("STRLEN k", NO_VALUES),
    ("SUBSCRIBE foo", NO_VALUES),
    ("SELECT 1", ONE),
    ("CLIENT SETINFO LIB-NAME redis-py", NEWER),
    ("CLIENT SETINFO LIB-VER 5.2.1", NEWER),
    ("CLIENT ID", ANOTHER),
    ("CLIENT TRACKING on", NO_TRACKING),
    ("COMMAND COUNT", ANOTHER),
    ("COMMAND INFO get", ANOTHER),
    ("COMMAND DOCS bf.add", ANOTHER),
    ("CONFIG GET maxmemory", ANOTHER),
    ("HELLO", ANOTHER),
    ("HELLO 2", ANOTHER),
    ("HELLO 3", ANOTHER),
    ("HELLO 3 AUTH default x", ANOTHER),
    ("HELLO 3 SETNAME lib", ANOTHER),
    ("MODULE LIST", ANOTHER),
    ("TIME", ANOTHER),
    ("WATCH k", NO_WATCH),
    ("DBSIZE", FILTERS),
    ("SCAN 0", FILTERS),
    ("SCAN 0 TYPE MBbloom--", FILTERS),
];

/// Commands and replies in one version of the protocol.
type Section = Vec<(String, Vec<u8>)>;

/// What was recorded, by version of the protocol: command and reply. Replies of more than 400 bytes were cut.
fn recorded() -> Option<Vec<Section>> {
    let shared = std::env::var_os("LATELY_SHARED").map(PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places =
        shared.into_iter().chain(["../shared", "../../shared"].map(|path| root.join(path)));
    let mut texts = places
        .map(|place| std::fs::read_to_string(place.join("cases/redis/golden.redisbloom.out")));
    let text = texts.find_map(Result::ok)?;
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if line.starts_with("== ") {
            sections.push(Vec::new());
        } else if let Some((command, reply)) = line.split_once(" -> ") {
            sections.last_mut()?.push((command.trim_end().to_owned(), unescape(reply)));
        }
    }
    Some(sections)
}

/// The bytes of a string as Python shows them, cut off or not.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().skip(1);
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        match escaped {
            None => bytes.push(byte),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'x') => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                bytes.extend(u8::from_str_radix(&digits, 16));
            }
            Some(other) => bytes.push(other),
        }
    }
    if bytes.last() == text.as_bytes().first() {
        bytes.pop();
    }
    bytes
}

#[test]
fn replies_as_recorded() {
    let Some(sections) = recorded() else {
        eprintln!("skipped: the recorded replies are not here (../shared/cases/redis)");
        return;
    };
    assert_eq!(sections.len(), 2);
    let mut differing = BTreeSet::new();
    for (section, recorded) in sections.iter().enumerate() {
        assert!(recorded.len() >= 160, "{}", recorded.len());
        // The recording has keys without a time to live.
        let server = server("[keyspace]\nforever = true");
        let mut client = Client::new(&server);
        if section == 1 {
            client.ask("HELLO 3");
        }
        for (command, expected) in recorded {
            let ours = client.ask(command);
            if ours.as_bytes() != expected {
                let theirs = String::from_utf8_lossy(expected);
                let is_allowed = ALLOWED.iter().any(|(allowed, _)| allowed == command);
                if !is_allowed {
                    eprintln!("{section} {command}: {theirs:?}, ours {ours:?}");
                }
                differing.insert(command.clone());
            }
        }
    }
    let allowed: BTreeSet<_> = ALLOWED.iter().map(|(command, _)| (*command).to_owned()).collect();
    let unexpected: Vec<_> = differing.difference(&allowed).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    let needless: Vec<_> = allowed.difference(&differing).collect();
    assert!(needless.is_empty(), "they do not differ: {needless:?}");
}

/// The most important of the recorded replies, for where the recording is not.
#[test]
fn replies_as_recorded_in_short() {
    let cases = [
        ("BF.RESERVE a 0.01 1000", "+OK\r\n"),
        ("BF.RESERVE a 0.01 1000", "-ERR item exists\r\n"),
        ("BF.RESERVE b 0 1000", "-ERR (0 < error rate range < 1) \r\n"),
        ("BF.RESERVE b x 1000", "-ERR bad error rate\r\n"),
        ("BF.RESERVE c 0.01 -1", "-ERR (capacity should be larger than 0)\r\n"),
        ("BF.RESERVE d 0.01 100 EXPANSION 4 NONSCALING", "-Nonscaling filters cannot expand\r\n"),
        ("BF.ADD a x", ":1\r\n"),
        ("bf.add a x", ":0\r\n"),
        ("BF.ADD a", "-ERR wrong number of arguments for 'bf.add' command\r\n"),
        ("BF.MADD a x y z", "*3\r\n:0\r\n:1\r\n:1\r\n"),
        ("BF.EXISTS a nope", ":0\r\n"),
        ("BF.MEXISTS missing x nope", "*2\r\n:0\r\n:0\r\n"),
        ("BF.INSERT ins CAPACITY 1000 ERROR 0.001 ITEMS p q p", "*3\r\n:1\r\n:1\r\n:0\r\n"),
        ("BF.INSERT nono NOCREATE ITEMS p r", "-ERR not found\r\n"),
        ("BF.INSERT ins3 FOO 0 ITEMS p", "-Unknown argument received\r\n"),
        ("BF.INFO a CAPACITY", "*1\r\n:1000\r\n"),
        ("BF.CARD a", ":3\r\n"),
        ("EXPIRE a 1000", ":1\r\n"),
        ("TTL a", ":1000\r\n"),
        ("SET k v NX EX 600", "+OK\r\n"),
        ("SET k v EX 600 NX", "$-1\r\n"),
        ("SET k v NX EX 0", "-ERR invalid expire time in 'set' command\r\n"),
        ("SET k v NX EX x", "-ERR value is not an integer or out of range\r\n"),
        ("SET k v NX EX 10 PX 10", "-ERR syntax error\r\n"),
        ("EXISTS a k missing a", ":3\r\n"),
        ("TTL missing", ":-2\r\n"),
        (
            "FOO bar baz \"\" qux",
            "-ERR unknown command 'FOO', with args beginning with: 'bar' 'baz' '' 'qux' \r\n",
        ),
        ("MULTI", "+OK\r\n"),
        ("BF.ADD a x", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n:0\r\n"),
        ("DEL a missing", ":1\r\n"),
    ];
    let server = server("");
    let mut client = Client::new(&server);
    for (command, reply) in cases {
        assert_eq!(client.ask(command), reply, "{command}");
    }
}
