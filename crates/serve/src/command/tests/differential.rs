//! The replies of RedisBloom 2.8.2 on Redis 7.0.15, recorded, against ours.

use super::{Client, request, server};
use std::collections::BTreeSet;

const NO_VALUES: &str = "no values are kept, so what would need one is an error";
const OWN_DUMPS: &str = "a dump holds another filter, so it is of other bytes";
const NO_OVERWRITING: &str = "a filter is neither dropped by SET nor changed by a chunk";
const SIZES: &str = "the sizes are those of other structures";
const ANOTHER: &str =
    "another server: its version, modules, commands, settings, or a number or moment of its own";
const NEWER: &str = "Redis 7.0 did not know it; later versions, which clients are told this is, do";
const ONE: &str = "there is one database";
const NOTHING: &str =
    "a command, or a part of one, that is not there, as it would have nothing to do";
const NO_WATCH: &str = "a transaction is not isolated, so a watch would promise what is not kept";
const FILTERS: &str = "keys cannot be listed: these know filters, in another order";
const MORE_OPTIONS: &str = "there are more options than RedisBloom's, so more words are taken";
const EARLIER: &str = "too few words are an error already while a transaction is gathered";
const AS_C: &str =
    "what C makes of it: fractions in hexadecimal or smaller than any, no digits, a zero byte";
const NAMES: &str = "settings are shown by their own names";

/// The commands whose replies may differ, and why. All others are the same, byte for byte.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        SIZES,
        &["BF.INFO a", "BF.INFO a SIZE", "BF.INFO d", "MEMORY USAGE d", "BF.DEBUG a", "CF.DEBUG a"],
    ),
    (OWN_DUMPS, &["BF.SCANDUMP a 0"]),
    (NO_OVERWRITING, &["SET b v", "SETEX b 10 v", "TYPE b", "GET b", "BF.LOADCHUNK a 1 x"]),
    (
        NO_VALUES,
        &[
            "OBJECT ENCODING a",
            "SET k v NX GET",
            "SET k2 v NX GET EX 10",
            "SET k v XX EX 10",
            "SET k v KEEPTTL NX",
            "GET k",
            "GETEX k",
            "INCR k",
            "INCR cnt",
            "STRLEN k",
            "SUBSCRIBE foo",
            "OBJECT",
            "OBJECT NOSUCH",
            "SUBSCRIBE",
            "COPY a b",
            "RENAME none b",
            "DUMP none",
            "RESTORE x 0 garbage",
            "RANDOMKEY",
        ],
    ),
    (ONE, &["SELECT 1"]),
    (NEWER, &["CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 5.2.1"]),
    (
        ANOTHER,
        &[
            "CLIENT ID",
            "COMMAND COUNT",
            "COMMAND INFO get",
            "COMMAND DOCS bf.add",
            "CONFIG GET maxmemory",
            "HELLO",
            "HELLO 2",
            "HELLO 3",
            "HELLO 3 AUTH default x",
            "HELLO 3 SETNAME lib",
            "HELLO 2 AUTH default wrong",
            "MODULE LIST",
            "TIME",
        ],
    ),
    (
        NOTHING,
        &[
            "CLIENT TRACKING on",
            "CLIENT REPLY x",
            "CLIENT REPLY ON",
            "CLIENT KILL",
            "CLIENT TRACKINGINFO x",
            "CLIENT GETREDIR",
            "CLIENT PAUSE x",
            "CLIENT UNPAUSE",
            "CLIENT CACHING x",
            "COMMAND GETKEYS",
            "COMMAND GETKEYS SET a b",
            "COMMAND GETKEYS BF.ADD a b",
            "COMMAND GETKEYS NOSUCH a",
            "COMMAND GETKEYS PING",
            "CONFIG REWRITE x",
            "CONFIG RESETSTAT",
            "CLUSTER NOSUCH",
            "LATENCY",
            "SLOWLOG",
        ],
    ),
    (NO_WATCH, &["WATCH k"]),
    (FILTERS, &["DBSIZE", "SCAN 0", "SCAN 0 TYPE MBbloom--"]),
    (
        MORE_OPTIONS,
        &["BF.RESERVE twice 0.01 100 EXPANSION 2 EXPANSION 3", "BF.INFO twice EXPANSION"],
    ),
    (EARLIER, &["bf.ADD a", "eXEC"]),
    (
        AS_C,
        &[
            "BF.RESERVE j 0x1p-4 10",
            "BF.RESERVE k 1e-400 10",
            "SCAN -1",
            "SCAN \"\"",
            "nosuch \"\" \\x00",
            "\\x00",
            "SET\\x00 a b",
        ],
    ),
    (NAMES, &["CONFIG GET SAVE"]),
];

/// What was recorded: commands of a topic, each with the replies in both versions of the protocol.
struct Topic {
    name: &'static str,
    commands: Vec<(&'static str, [Vec<u8>; 2])>,
}

/// What `record.py` has written.
fn recorded() -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for line in include_str!("recorded/redisbloom.txt").lines() {
        if let Some(name) = line.strip_prefix("-- ") {
            topics.push(Topic { name, commands: Vec::new() });
        } else if let Some(reply) = line.strip_prefix("  ") {
            let (version, reply) = reply.split_once(' ').unwrap();
            let reply = unescape(reply);
            let (_, [two, three]) = topics.last_mut().unwrap().commands.last_mut().unwrap();
            match version {
                "2" => *two = reply,
                "3" => *three = reply,
                _ => (*two, *three) = (reply.clone(), reply),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            topics.last_mut().unwrap().commands.push((line, [Vec::new(), Vec::new()]));
        }
    }
    topics
}

/// The bytes of a word or of a reply.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        match escaped {
            None => bytes.push(byte),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'x') => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            Some(other) => bytes.push(other),
        }
    }
    bytes
}

/// The words of a command as it is written down.
fn words(line: &str) -> Vec<Vec<u8>> {
    let word = |word| if word == "\"\"" { Vec::new() } else { unescape(word) };
    line.split(' ').map(word).collect()
}

/// The recording has keys without a time to live, and sets.
const CONFIG: &str = "
    allow_flush = true
    [keyspace]
    forever = true
    [[filter]]
    match = \"set*\"
    set = true
    forever = true
    capacity = 1000
    fpr = 1e-9
";

#[test]
fn replies_as_recorded() {
    let topics = recorded();
    let commands: usize = topics.iter().map(|topic| topic.commands.len()).sum();
    assert!(commands >= 300, "{commands}");
    let allowed: BTreeSet<&str> =
        ALLOWED.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
    let (mut differing, mut unexpected) = (BTreeSet::new(), 0);
    for Topic { name, commands } in &topics {
        for version in 0..2 {
            let server = server(CONFIG);
            let mut client = Client::new(&server);
            if version == 1 {
                client.ask("HELLO 3");
            }
            for (command, replies) in commands {
                let ours = client.feed(&request(&words(command)));
                if ours != replies[version] {
                    let [theirs, ours] =
                        [&replies[version], &ours].map(|reply| reply.escape_ascii());
                    if !allowed.contains(command) {
                        eprintln!("{name}: {command}\n    theirs {theirs}\n    ours   {ours}");
                        unexpected += 1;
                    }
                    differing.insert(*command);
                }
            }
        }
    }
    assert_eq!(unexpected, 0);
    let needless: Vec<_> = allowed.difference(&differing).collect();
    assert!(needless.is_empty(), "they do not differ: {needless:?}");
}
