//! Filters that are asked for intervals, as clients use them.

use super::{Client, NOW, server};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CONFIG: &str = "
    memory = \"64MiB\"
    seed = 7
    [keyspace]
    capacity = 1000
    [[filter]]
    match = \"ip:*\"
    window = \"10m\"
    range = \"ip\"
    interval = \"/24\"
    [[filter]]
    match = \"p:*\"
    window = \"10m\"
    structure = \"aged-table\"
    fpr = 1e-9
    [[filter]]
    match = \"last:*\"
    last = 1000
    [[filter]]
    match = \"set:*\"
    forever = true
    set = true
";

#[test]
fn from_making_to_asking() {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    for (line, reply) in [
        ("LATELY.RESERVE n WINDOW 10m CAPACITY 1000 RANGE NUMBER INTERVAL 2^10", "+OK\r\n"),
        ("LATELY.RESERVE n RANGE NUMBER", "-ERR item exists\r\n"),
        ("TYPE n", "+range\r\n"),
        ("LATELY.RANGE n 0 1000000", ":0\r\n"),
        ("LATELY.OBSERVE n 5000", ":1\r\n"),
        ("LATELY.OBSERVE n 5000", ":0\r\n"),
        ("LATELY.MOBSERVE n ITEMS 5000 7000 7000", "*3\r\n:0\r\n:1\r\n:0\r\n"),
        ("LATELY.REMEMBER n 9000", "+OK\r\n"),
        ("LATELY.SEEN n 9000", ":1\r\n"),
        ("LATELY.SEEN n 9001", ":0\r\n"),
        ("LATELY.MSEEN n ITEMS 5000 6000", "*2\r\n:1\r\n:0\r\n"),
        ("LATELY.RANGE n 4900 5100", ":1\r\n"),
        ("LATELY.RANGE n 5000 5000", ":1\r\n"),
        ("LATELY.RANGE n 5001 6999", ":0\r\n"),
        ("LATELY.RANGE n 9001 11000", ":0\r\n"),
        // Longer than the filter can tell: whether there is any key at all.
        ("LATELY.RANGE n 9001 \"\" CHANCE", "*2\r\n:1\r\n$7\r\n1.000e0\r\n"),
        ("LATELY.RANGE n \"\" 4999", ":0\r\n"),
        ("lately.range n 4900 5100 within 1s", ":1\r\n"),
        ("LATELY.RANGE n 5001 6999 CHANCE", "*2\r\n:0\r\n$1\r\n0\r\n"),
        ("LATELY.RANGE none 1 2", ":0\r\n"),
        ("LATELY.RANGE none 1 2 WITHIN 1s CHANCE", "*2\r\n:0\r\n$1\r\n0\r\n"),
        // Made as the configuration says.
        ("LATELY.OBSERVE ip:a 10.1.2.3", ":1\r\n"),
        ("LATELY.RANGE ip:a 10.1.0.0 10.1.255.255", ":1\r\n"),
        ("LATELY.RANGE ip:a 10.2.0.0 10.2.255.255", ":0\r\n"),
        ("LATELY.RANGE ip:a ::ffff:10.1.2.0 10.1.2.4", ":1\r\n"),
        ("LATELY.RESERVE epc RANGE EPC WINDOW 1h", "+OK\r\n"),
        ("LATELY.OBSERVE epc 3074257BF7194E4000001A85", ":1\r\n"),
        ("LATELY.RANGE epc 3074257BF7194E4000000000 3074257BF7194E7FFFFFFFFF", ":1\r\n"),
        ("EXISTS n ip:a epc", ":3\r\n"),
        ("EXPIRE n 100", ":1\r\n"),
        ("TTL n", ":100\r\n"),
        ("DEL epc", ":1\r\n"),
        ("SCAN 0 TYPE range COUNT 100 MATCH n", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nn\r\n"),
    ] {
        assert_eq!(client.ask(line), reply, "{line}");
    }
    // Ages are known to an eighth of the window.
    client.now += 95_000;
    assert_eq!(client.ask("LATELY.RANGE n 4900 5100 WITHIN 1s"), ":0\r\n");
    assert_eq!(client.ask("LATELY.SEEN n 5000 WITHIN 1s"), ":0\r\n");
    assert_eq!(client.ask("LATELY.RANGE n 4900 5100 WITHIN 1h"), ":1\r\n");
    let info = client.ask("LATELY.INFO n");
    for (name, value) in
        [("structure", "range-window"), ("range", "number"), ("interval", "1024"), ("fpr", "0.001")]
    {
        let pair = format!("{name}\r\n${}\r\n{value}\r\n", value.len());
        assert!(info.contains(&pair), "{pair}: {info}");
    }
    client.now += 6_000;
    assert_eq!(client.ask("LATELY.RANGE n 4900 5100"), ":0\r\n", "the filter has ended");
    // With the third version of the protocol.
    client.ask("HELLO 3");
    assert_eq!(client.ask("LATELY.RANGE ip:a 10.1.0.0 10.1.255.255"), "#t\r\n");
    let said = client.ask("LATELY.RANGE ip:a 10.1.2.0 10.1.2.255 CHANCE");
    let chance: f64 = said.lines().nth(3).unwrap().parse().unwrap();
    assert!(said.starts_with("*2\r\n#t\r\n$") && chance > 0.0 && chance <= 0.001, "{said}");
    let said = client.ask("LATELY.RANGE ip:a 10.1.0.0 10.1.255.255 CHANCE");
    let longer: f64 = said.lines().nth(3).unwrap().parse().unwrap();
    assert!((longer / chance / 256.0 - 1.0).abs() < 0.01, "{longer} {chance}");
}

#[test]
fn what_cannot_be_says_what_to_do() {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    for line in [
        "LATELY.RESERVE n WINDOW 10m RANGE NUMBER",
        "LATELY.RESERVE points WINDOW 10m",
        "LATELY.RESERVE ever FOREVER RANGE IP",
        "BF.RESERVE bf 0.01 100",
        "SET key 1 EX 100",
    ] {
        assert!(["+OK\r\n", "$-1\r\n"].contains(&&client.ask(line)[..]), "{line}");
    }
    let used = server.store.budget.used();
    for (line, said) in [
        ("LATELY.RESERVE x RANGE", "ERR syntax error"),
        ("LATELY.RESERVE x RANGE TEXT", "ERR bad RANGE: NUMBER, IP or EPC"),
        ("LATELY.RESERVE x RANGE NUMBER INTERVAL", "ERR syntax error"),
        ("LATELY.RESERVE x RANGE NUMBER INTERVAL 0", "ERR bad INTERVAL: `0`: expected a length"),
        ("LATELY.RESERVE x RANGE NUMBER INTERVAL /8", "ERR bad INTERVAL"),
        ("LATELY.RESERVE x INTERVAL 5 RANGE NUMBER", "ERR INTERVAL must come after RANGE"),
        ("LATELY.RESERVE x LAST 100 RANGE NUMBER", "give WINDOW or FOREVER, not LAST"),
        ("LATELY.RESERVE x RANGE NUMBER WINDOW 1m RENEW FRESH", "give RENEW ALWAYS"),
        ("LATELY.RESERVE x RANGE NUMBER STRUCTURE bloom", "leave out STRUCTURE"),
        ("LATELY.RESERVE x RANGE NUMBER FPR 2", "ERR bad error rate"),
        (
            "LATELY.RESERVE x RANGE NUMBER CAPACITY 9000000000000000",
            "ERR a range window of more than",
        ),
        ("LATELY.RESERVE x RANGE NUMBER CAPACITY 900000000", "ERR not enough memory: needs"),
        ("LATELY.RESERVE x RANGE NUMBER CAPACITY 100000 MEMORY 1000", "ERR not enough memory"),
        ("LATELY.RESERVE x RANGE NUMBER WINDOW 1m INTERVAL 2^127 FPR 1e-300", "ERR "),
        ("LATELY.OBSERVE n ten", "ERR `ten` is no key of this filter, which is a whole number"),
        ("LATELY.OBSERVE n 10 AT 99999999999999", "ERR AT is in the future"),
        ("LATELY.OBSERVE n \"\"", "ERR `` is no key"),
        ("LATELY.MOBSERVE n ITEMS 1 2 -3", "ERR `-3` is no key"),
        ("LATELY.MOBSERVE n ITEMS", "wrong number of arguments"),
        ("LATELY.REMEMBER n 1.5", "ERR `1.5` is no key"),
        ("LATELY.SEEN n 10.1.2.3", "ERR `10.1.2.3` is no key"),
        ("LATELY.MSEEN n ITEMS 1 x", "ERR `x` is no key"),
        ("LATELY.SEEN ever 17", "an address such as 10.1.2.3 or 2001:db8::1"),
        ("LATELY.RANGE n 5 4", "ERR the interval begins after its end: 5 is larger than 4"),
        ("LATELY.RANGE n a 4", "ERR `a` is no key"),
        ("LATELY.RANGE n 1 b", "ERR `b` is no key"),
        ("LATELY.RANGE n 1", "wrong number of arguments for 'lately.range' command"),
        (
            "LATELY.RANGE ever 10.1.2.0/24",
            "command: give the first key and the last, it takes no prefix",
        ),
        ("LATELY.RANGE n 1 2 WITHIN", "ERR syntax error"),
        (
            "LATELY.RANGE n 1 2 WITHIN soon",
            "ERR bad window: `soon` is no length of time above 0, such as 10m",
        ),
        ("LATELY.SEEN n 1 WITHIN 0", "ERR bad window: `0` is no length of time above 0"),
        ("LATELY.RANGE n 1 2 CHANCE CHANCE", "ERR syntax error"),
        ("LATELY.RANGE n 1 2 CHANCE WITHIN 1s", "ERR syntax error"),
        ("LATELY.RANGE none 1 2 WITHIN soon", "ERR bad window: `soon`"),
        (
            "LATELY.RESERVE x WINDOW abc",
            "ERR bad window: `abc` is no length of time above 0, such as 10m",
        ),
        ("LATELY.RESERVE x WINDOW", "ERR bad window: `` is no length"),
        (
            "LATELY.RESERVE x LAST 1h",
            "ERR bad window: `1h` is no number of arrivals above 0, such as 1000",
        ),
        ("LATELY.RANGE points 1 2", "made with LATELY.RESERVE key … RANGE NUMBER|IP|EPC"),
        ("LATELY.RANGE bf 1 2", "ERR this filter knows single keys only"),
        ("LATELY.LASTSEEN n 1", "ask LATELY.SEEN or LATELY.RANGE … WITHIN dur"),
        ("LATELY.FORGET n 1", "ERR a filter of intervals cannot forget single keys"),
        ("BF.RESERVE ip:x 0.01 100", "WRONGTYPE this filter is asked for intervals"),
        ("BF.ADD ip:x 10.1.1.1", "WRONGTYPE this filter is asked for intervals"),
        ("BF.ADD n 1", "WRONGTYPE this filter is asked for intervals: LATELY.OBSERVE"),
        ("BF.MADD n 1 2", "WRONGTYPE"),
        ("BF.INSERT n CAPACITY 5 ITEMS 1", "WRONGTYPE"),
        ("BF.EXISTS n 1", "WRONGTYPE this filter is asked"),
        ("BF.MEXISTS n 1 2", "WRONGTYPE"),
        ("BF.INFO n", "WRONGTYPE"),
        ("BF.CARD n", "WRONGTYPE"),
        ("CF.SCANDUMP n 0", "WRONGTYPE"),
        ("BF.LOADCHUNK n 1 x", "ERR item exists"),
        ("CF.LOADCHUNK n 1 x", "WRONGTYPE"),
        ("CF.ADD n 1", "WRONGTYPE"),
        ("CF.EXISTS n 1", "WRONGTYPE"),
        ("CF.COUNT n 1", "WRONGTYPE"),
        ("CF.DEL n 1", "WRONGTYPE"),
        ("CF.INFO n", "WRONGTYPE"),
        ("SADD n 1", "WRONGTYPE"),
        ("SISMEMBER n 1", "WRONGTYPE"),
        ("SREM n 1", "WRONGTYPE"),
        ("SCARD n", "WRONGTYPE"),
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with('-') && reply.contains(said), "{line}: {reply}");
    }
    assert_eq!(server.store.budget.used(), used, "nothing was made");
    // What a key has in it does not get into the replies as one of its own, nor all of a long one.
    for name in ["n", "ever", "epc"] {
        client.ask("LATELY.RESERVE epc RANGE EPC");
        for item in [&b"1\r\n+OK\r\n"[..], b"\xff\0\n", &[b'7'; 1 << 20]] {
            let words = [b"LATELY.RANGE", name.as_bytes(), item, b""].map(<[u8]>::to_vec);
            let reply = client.feed(&super::request(&words));
            assert!(reply.starts_with(b"-ERR ") && reply.ends_with(b"\r\n"), "{name}");
            let ends = reply.iter().filter(|byte| b"\r\n".contains(byte)).count();
            assert!(ends == 2 && reply.len() < 400, "{name}: {}", String::from_utf8_lossy(&reply));
        }
    }
    // Of several items none is marked if one is no key.
    assert_eq!(client.ask("LATELY.RANGE n 0 100"), ":0\r\n");
}

#[test]
fn templates_say_what_cannot_be() {
    use crate::config::Config;
    let file = |more: &str| format!("[[filter]]\nmatch = \"r\"\ncapacity = 1000\n{more}");
    for (more, said) in [
        ("window = \"1m\"\nrange = \"text\"", "range is \"number\", \"ip\" or \"epc\""),
        ("window = \"1m\"\ninterval = 5", "interval goes with range"),
        ("window = \"1m\"\nrange = \"ip\"\ninterval = 0", "r\": interval: `0`: expected"),
        ("last = 5\nrange = \"ip\"", "give window or forever, not last"),
        ("window = \"1m\"\nrange = \"ip\"\nset = true", "one of set and range"),
        ("window = \"1m\"\nrange = \"ip\"\nrenew = \"fresh\"", "renew is \"always\""),
        ("window = \"1m\"\nrange = \"ip\"\nstructure = \"bloom\"", "leave out structure"),
        ("window = \"1m\"\nstructure = \"scalable-bloom\"", "by itself: give memory"),
    ] {
        let error = Config::parse(&file(more)).unwrap_err().to_string();
        assert!(error.contains("filter \"r\": ") && error.contains(said), "{more}: {error}");
    }
    let config =
        Config::parse(&file("window = \"1m\"\nrange = \"ip\"\ninterval = \"/24\"")).unwrap();
    let lines = config.check().unwrap();
    let said = "filter \"r\": range-window of keys of format ip, intervals of 256, ";
    assert!(lines[0].starts_with(said), "{lines:?}");
    let small = format!("memory = 1000\n{}", file("window = \"1m\"\nrange = \"ip\""));
    assert!(Config::parse(&small).unwrap().check().unwrap_err().to_string().contains("needs"));
}

/// A template says of a filter that is not there what is wrong with it, as the filter will. What was wrong makes none.
#[test]
fn mistakes_before_there_is_a_filter() {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    let (ip, used) = ("is no key of this filter, which is an address", server.store.budget.used());
    for (line, said) in [
        ("LATELY.RANGE ip:a xx yy", ip),
        ("LATELY.RANGE ip:a 10.1.2.9 10.1.2.3", "the interval begins after its end"),
        ("LATELY.RANGE ip:a 10.1.2.0 10.1.2.9 WITHIN soon", "ERR bad window: `soon`"),
        ("LATELY.RANGE p:a 1 2", "ERR this filter knows single keys only"),
        ("LATELY.RANGE set:a 1 2", "ERR this filter knows single keys only"),
        ("LATELY.SEEN ip:a xx", ip),
        ("LATELY.SEEN ip:a xx WITHIN 1m", ip),
        ("LATELY.MSEEN ip:a ITEMS 10.1.2.3 xx", ip),
        ("LATELY.MSEEN ip:a WITHIN soon ITEMS 10.1.2.3", "ERR bad window: `soon`"),
        ("LATELY.SEEN last:a x WITHIN 1h", "ERR bad window: `1h` is no number of arrivals"),
        ("LATELY.OBSERVE ip:a xx", ip),
        ("LATELY.OBSERVE ip:a xx AT 1", ip),
        ("LATELY.MOBSERVE ip:a ITEMS 10.1.2.3 xx", ip),
        ("LATELY.MOBSERVE ip:a AT 1 ITEMS 10.1.2.3 xx", ip),
        ("LATELY.REMEMBER ip:a xx", ip),
        ("CF.ADD ip:a 10.1.2.3", "WRONGTYPE this filter is asked for intervals"),
        ("CF.ADDNX ip:a 10.1.2.3", "WRONGTYPE this filter is asked for intervals"),
        ("CF.INSERT ip:a ITEMS 10.1.2.3", "WRONGTYPE this filter is asked for intervals"),
        ("CF.INSERT ip:a CAPACITY 100 ITEMS 10.1.2.3", "WRONGTYPE this filter is asked"),
        ("CF.INSERTNX ip:a ITEMS 10.1.2.3", "WRONGTYPE this filter is asked for intervals"),
        ("CF.INSERT ip:a NOCREATE ITEMS 10.1.2.3", "ERR not found"),
        ("CF.RESERVE ip:a 1000", "WRONGTYPE this filter is asked for intervals"),
        ("SADD ip:a 10.1.2.3", "WRONGTYPE this filter is asked for intervals"),
        ("SADD p:a x", "ERR lately keeps the sets that its configuration names"),
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with('-') && reply.contains(said), "{line}: {reply}");
        assert_eq!(client.ask("EXISTS ip:a p:a set:a last:a"), ":0\r\n", "{line}");
    }
    assert_eq!(server.store.budget.used(), used, "nothing was made");
    for (line, reply) in [
        ("LATELY.RANGE ip:a 10.1.2.0 10.1.2.9", ":0\r\n"),
        ("LATELY.RANGE ip:a 10.1.2.0 10.1.2.9 WITHIN 1m", ":0\r\n"),
        ("LATELY.SEEN ip:a 10.1.2.3", ":0\r\n"),
        ("LATELY.SEEN last:a x WITHIN 5", ":0\r\n"),
        ("LATELY.MSEEN ip:a ITEMS 10.1.2.3 10.1.2.4", "*2\r\n:0\r\n:0\r\n"),
        ("CF.ADD p:a x", ":1\r\n"),
    ] {
        assert_eq!(client.ask(line), reply, "{line}");
    }
}

/// What a template says of single keys does not stand in the way of intervals; what one says of intervals holds.
#[test]
fn intervals_where_the_template_has_none() {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    for (line, name) in [
        ("RANGE IP WINDOW 8s", "p:x"),
        ("RANGE IP", "last:x"),
        ("range number window 8s capacity 500", "set:x"),
    ] {
        let mut made = |name: &str| {
            assert_eq!(client.ask(&format!("LATELY.RESERVE {name} {line}")), "+OK\r\n", "{line}");
            let info = client.ask(&format!("LATELY.INFO {name}"));
            client.ask(&format!("DEL {name}"));
            info
        };
        let info = made(name);
        assert!(info.contains("range-window") && info.contains("$5\r\n0.001\r\n"), "{info}");
        assert_eq!(info, made("none"), "{line}");
    }
    assert_eq!(client.ask("LATELY.RESERVE ip:x RANGE EPC"), "+OK\r\n");
    assert!(client.ask("LATELY.INFO ip:x").contains("window\r\n:600000\r\n"));
    assert_eq!(client.ask("LATELY.RESERVE p:y"), "+OK\r\n");
    assert!(client.ask("LATELY.INFO p:y").contains("aged-table"));
    let reply = client.ask("LATELY.RESERVE p:z RANGE IP STRUCTURE aged-table");
    assert!(reply.contains("leave out STRUCTURE"), "{reply}");
}

/// In the middle of runs with other filters, and in transactions, replies come in their order; a run that has begun continues where
/// the name is made a filter of intervals.
#[test]
fn among_other_commands() {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    let lines = "LATELY.OBSERVE p a|LATELY.OBSERVE ip:a 10.0.0.1|LATELY.OBSERVE p a|LATELY.OBSERVE ip:a 10.0.0.1|LATELY.OBSERVE ip:a x|\
        LATELY.SEEN p a|LATELY.SEEN ip:a 10.0.0.1|LATELY.SEEN r 17|LATELY.RESERVE r RANGE NUMBER|LATELY.OBSERVE r 17|LATELY.SEEN r 17|DEL r|\
        LATELY.OBSERVE r 17|LATELY.RANGE r 1 20|MULTI|LATELY.OBSERVE ip:a 10.0.0.2|LATELY.RANGE ip:a 10.0.0.2 10.0.0.3|EXEC";
    let bytes: Vec<u8> =
        lines.split('|').flat_map(|line| super::request(&super::words(line.trim()))).collect();
    let said = String::from_utf8(client.feed(&bytes)).unwrap();
    let said: Vec<&str> = said.split("\r\n").filter(|line| !line.is_empty()).collect();
    let expected = [
        ":1",
        ":1",
        ":0",
        ":0",
        "-ERR `x`",
        ":1",
        ":1",
        ":0",
        "+OK",
        ":1",
        ":1",
        ":1",
        ":1",
        "-ERR this filter knows",
        "+OK",
        "+QUEUED",
        "+QUEUED",
        "*2",
        ":1",
        ":1",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said} {expected}");
    }
}

const WINDOW: u64 = 5_000;

proptest! {
    /// Random commands of several clients while time passes, against an exact map of times. A key of the window is never missed; and
    /// at this rate a false positive would not come up.
    #[test]
    fn as_an_exact_map(steps in prop::collection::vec((0usize..2, 0u32..60, 0u64..900, 0usize..3, 0u32..7, 0u32..20), 1..200)) {
        let server = server(CONFIG);
        let mut clients: Vec<_> = (0..3).map(|_| Client::new(&server)).collect();
        for name in ["window WINDOW 5s SLACK 0", "ever FOREVER"] {
            let line = format!("LATELY.RESERVE {name} CAPACITY 40 FPR 1e-12 RANGE NUMBER INTERVAL 200");
            prop_assert_eq!(clients[0].ask(&line), "+OK\r\n");
        }
        let mut last: [BTreeMap<u32, u64>; 2] = Default::default();
        let mut now = NOW;
        for (filter, n, passes, client, what, length) in steps {
            now += passes;
            let client = &mut clients[client];
            client.now = now;
            let (name, key) = (["window", "ever"][filter], n * 10);
            let any = |last: &BTreeMap<u32, u64>, from: u32, to: u32, within: u64| {
                from <= to && last.range(from..=to).any(|(_, at)| filter == 1 || now - at <= within)
            };
            let seen = any(&last[filter], key, key, WINDOW);
            match what {
                0 | 1 => {
                    let reply = client.ask(&format!("LATELY.OBSERVE {name} {key}"));
                    prop_assert_eq!(reply == ":0\r\n", seen, "{} {}", name, key);
                    last[filter].insert(key, now);
                }
                2 => {
                    let reply = client.ask(&format!("LATELY.MOBSERVE {name} ITEMS {key} {key}"));
                    prop_assert_eq!(reply, format!("*2\r\n:{}\r\n:0\r\n", u8::from(!seen)));
                    last[filter].insert(key, now);
                }
                3 => {
                    let reply = client.ask(&format!("LATELY.SEEN {name} {key}"));
                    prop_assert_eq!(reply == ":1\r\n", seen, "{} {}", name, key);
                }
                4 => {
                    let found = any(&last[filter], key, key, 2_000);
                    let reply = client.ask(&format!("LATELY.SEEN {name} {key} WITHIN 2s"));
                    prop_assert_eq!(reply == ":1\r\n", found, "{} {}", name, key);
                }
                5 => {
                    let (from, to) = (key + 1, key + length * 10);
                    let found = any(&last[filter], from, to, 3_000);
                    let reply = client.ask(&format!("LATELY.RANGE {name} {from} {to} WITHIN 3s"));
                    prop_assert!(from <= to || reply.starts_with("-ERR the interval"), "{}", reply);
                    prop_assert_eq!(reply == ":1\r\n", found, "{} {}..{}", name, from, to);
                }
                _ => {
                    let to = key + length * 10;
                    let found = any(&last[filter], key, to, WINDOW);
                    let reply = client.ask(&format!("LATELY.RANGE {name} {key} {to}"));
                    prop_assert_eq!(reply == ":1\r\n", found, "{} {}..{}", name, key, to);
                }
            }
        }
    }
}

proptest! {
    /// With a slack, of an eighth of the window unless something else is asked for: what was seen within the window is found, and what
    /// was not seen within the window and the slack is not. The same of shorter windows.
    #[test]
    fn within_its_slack(slack in 0usize..3, steps in prop::collection::vec((0u32..40, 0u64..900, 0u32..12, 1u64..12), 1..150)) {
        let server = server(CONFIG);
        let mut client = Client::new(&server);
        let (asked, most) = [("", WINDOW / 8), ("SLACK 50ms", 50), ("SLACK 2s", 2_000)][slack];
        let line = format!("LATELY.RESERVE n WINDOW 5s CAPACITY 40 FPR 1e-12 RANGE NUMBER INTERVAL 200 {asked}");
        prop_assert_eq!(client.ask(line.trim()), "+OK\r\n");
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for (n, passes, length, within) in steps {
            client.now += passes;
            let (now, from, to) = (client.now, n * 10 + 1, (n + length) * 10);
            for (option, window) in [(String::new(), WINDOW), (format!(" WITHIN {}ms", within * 300), within * 300)] {
                let found = client.ask(&format!("LATELY.RANGE n {from} {}{option}", to.max(from))) == ":1\r\n";
                let age = last.range(from..=to.max(from)).map(|(_, at)| now - at).min();
                prop_assert!(found || age.is_none_or(|age| age > window.min(WINDOW)), "{:?}{}", age, option);
                prop_assert!(!found || age.is_some_and(|age| age <= window.min(WINDOW) + most), "{:?}{}", age, option);
            }
            client.ask(&format!("LATELY.REMEMBER n {}", n * 10));
            last.insert(n * 10, now);
        }
    }
}

/// Who may read may ask, with the names that are its own; marking and making are for others.
#[test]
fn rights() {
    use crate::auth::Auth;
    use crate::users::Users;
    let text = "[[user]]\nname = \"default\"\nmay = \"read\"\nfilters = [\"ip:*\"]\n";
    let users = Users::parse(text, None).unwrap();
    let server = super::Server { auth: Auth::new(users), ..server(CONFIG) };
    let mut client = Client::new(&server);
    assert_eq!(client.ask("LATELY.RANGE ip:a 10.0.0.0 10.0.0.255"), ":0\r\n");
    for line in
        ["LATELY.RANGE other 1 2", "LATELY.OBSERVE ip:a 10.0.0.1", "LATELY.RESERVE ip:b RANGE IP"]
    {
        assert!(client.ask(line).starts_with("-NOPERM"), "{line}");
    }
}

/// Of intervals as long as planned in which no key was seen, no more are called seen than the rate says; of those with one, none is
/// missed: with as many keys as planned, and with four times as many, for which it has grown.
#[test]
fn the_rate_is_kept() {
    const LENGTH: u128 = 1 << 16;
    const ASKED: u32 = 40_000;
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    let made =
        client.ask("LATELY.RESERVE n WINDOW 10m CAPACITY 2000 FPR 0.01 RANGE NUMBER INTERVAL 2^16");
    assert_eq!(made, "+OK\r\n");
    let mut state = 1u128;
    let mut random = || {
        state = state.wrapping_mul(0xDA94_2042_E4DD_58B5).wrapping_add(0x1234_5678_9ABC_DEF1);
        state >> 40
    };
    let mut keys = BTreeMap::new();
    for round in 1..=4 {
        while keys.len() < round * 2_000 {
            let key = random();
            client.ask(&format!("LATELY.OBSERVE n {key}"));
            keys.insert(key, ());
        }
        if round % 3 != 1 {
            continue;
        }
        let mut wrong = 0;
        for _ in 0..ASKED {
            let from = random();
            let to = from + LENGTH - 1;
            let found = client.ask(&format!("LATELY.RANGE n {from} {to}")) == ":1\r\n";
            let is_there = keys.range(from..=to).next().is_some();
            assert!(found || !is_there);
            wrong += u32::from(found && !is_there);
        }
        // Four standard deviations above what is promised.
        let promised = 0.01 * f64::from(ASKED);
        assert!(f64::from(wrong) < promised + 4.0 * promised.sqrt(), "{round}: {wrong}");
        for key in keys.keys().step_by(7) {
            let (from, to) = (key.saturating_sub(9), key + 9);
            assert_eq!(client.ask(&format!("LATELY.RANGE n {from} {to}")), ":1\r\n");
        }
    }
    assert!(client.ask("LATELY.INFO n").contains("$5\r\ngrown\r\n:1\r\n"));
}
