//! What is ours: windows, templates, the key space, transactions, passwords, limits.

use super::{Client, NOW, request, server, words};

#[test]
fn a_window_forgets() {
    let server = server("");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("BF.RESERVE f 0.001 1000 WINDOW 10m SLACK 0"), "+OK\r\n");
    assert_eq!(client.ask("BF.ADD f x"), ":1\r\n");
    client.now += 600_000;
    assert_eq!(client.ask("BF.EXISTS f x"), ":1\r\n");
    assert_eq!(client.ask("BF.ADD f x"), ":0\r\n");
    // Renewed by that.
    client.now += 600_000;
    assert_eq!(client.ask("BF.ADD f x"), ":0\r\n");
    client.now += 600_001;
    assert_eq!(client.ask("BF.MADD f x x"), "*2\r\n:1\r\n:0\r\n");
    assert_eq!(client.ask("BF.RESERVE g 0.001 1000 WINDOW 0"), "-ERR bad window\r\n");
    assert_eq!(client.ask("BF.RESERVE g 0.001 1000 WINDOW"), "-ERR bad window\r\n");
    assert_eq!(client.ask("BF.RESERVE g 0.001 1000 FOO"), "-ERR syntax error\r\n");
    assert_eq!(client.ask("BF.RESERVE g 0.001 9 LAST 3 RENEW FRESH SLACK 0"), "+OK\r\n");
    assert_eq!(client.ask("BF.MADD g a b c a d a"), "*6\r\n:1\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n");
}

#[test]
fn templates_say_what_clients_cannot() {
    let server = server(
        "[[filter]]\nmatch = \"crawl:*\"\nwindow = \"1h\"\nrenew = \"fresh\"\nslack = \"0s\"\n[[filter]]\nmatch = \"*\"\nforever = true",
    );
    let mut client = Client::new(&server);
    assert_eq!(client.ask("BF.ADD crawl:a x"), ":1\r\n");
    // The command names an error rate and a capacity, but no window: that is the template's.
    assert_eq!(client.ask("BF.RESERVE crawl:b 0.001 50"), "+OK\r\n");
    assert_eq!(client.ask("BF.ADD crawl:b x"), ":1\r\n");
    assert_eq!(client.ask("BF.ADD other x"), ":1\r\n");
    client.now += 3_600_001;
    for (name, reply) in [("crawl:a", ":1\r\n"), ("crawl:b", ":1\r\n"), ("other", ":0\r\n")] {
        assert_eq!(client.ask(&format!("BF.ADD {name} x")), reply, "{name}");
    }
    assert_eq!(client.ask("BF.INFO crawl:b CAPACITY"), "*1\r\n:50\r\n");
}

#[test]
fn a_filter_that_does_not_scale_is_full_at_its_capacity() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("BF.RESERVE d 0.01 2 NONSCALING");
    // The array ends at the first error.
    assert_eq!(
        client.ask("BF.MADD d a a b c d"),
        "*4\r\n:1\r\n:0\r\n:1\r\n-ERR non scaling filter is full\r\n"
    );
    assert_eq!(client.ask("BF.ADD d c"), "-ERR non scaling filter is full\r\n");
    assert_eq!(client.ask("BF.MADD d a b"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(client.ask("BF.CARD d"), ":2\r\n");
}

#[test]
fn single_keys_are_taken_out() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("BF.ADD filter a");
    for key in ["k", "l", "m"] {
        assert_eq!(client.ask(&format!("SET {key} 1 NX EX 100")), "+OK\r\n");
    }
    assert_eq!(client.ask("DEL other"), ":0\r\n");
    assert_eq!(client.ask("DEL k k other filter"), ":2\r\n");
    assert_eq!(client.ask("EXISTS k l m filter"), ":2\r\n");
    assert_eq!(client.ask("TTL k"), ":-2\r\n");
    assert_eq!(client.ask("SET k 1 NX EX 50"), "+OK\r\n");
    assert_eq!(client.ask("SET k 1 NX EX 50"), "$-1\r\n");
    assert_eq!(client.ask("UNLINK l"), ":1\r\n");
    assert_eq!(client.ask("SET l 1 NX EX 50"), "+OK\r\n");
    // A transaction, and a run that is cut in two.
    client.ask("MULTI");
    client.ask("SET n 1 NX EX 50");
    client.ask("DEL n");
    client.ask("SET n 1 NX EX 50");
    assert_eq!(client.ask("EXEC"), "*3\r\n+OK\r\n:1\r\n+OK\r\n");
}

#[test]
fn single_keys_are_given_another_life() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("SET k 1 NX EX 100");
    assert_eq!(client.ask("EXPIRE k 10"), ":1\r\n");
    assert_eq!(client.ask("TTL k"), ":10\r\n");
    assert_eq!(client.ask("PEXPIRE k 300000"), ":1\r\n");
    assert_eq!(client.ask("TTL k"), ":300\r\n");
    client.now += 299_000;
    assert_eq!(client.ask("SET k 1 NX EX 10"), "$-1\r\n");
    assert_eq!(client.ask("EXPIRE other 10"), ":0\r\n");
    assert_eq!(client.ask("EXISTS other"), ":0\r\n");
    assert_eq!(client.ask("EXPIRE k 0"), ":1\r\n");
    assert_eq!(client.ask("EXISTS k"), ":0\r\n");
    client.ask("SET k 1 NX EX 10");
    let forgets = "-ERR lately forgets: give EX or PX, or set keyspace.forever\r\n";
    assert_eq!(client.ask("PERSIST k"), forgets);
    let absurd = client.ask("PEXPIRE k 9223372036854000000");
    assert_eq!(absurd, "-ERR invalid expire time in 'pexpire' command\r\n");
    assert_eq!(client.ask("TTL k"), ":10\r\n");
}

#[test]
fn keys_for_ever_are_taken_out_too() {
    let server = server("[keyspace]\nforever = true");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("SETNX k 1"), ":1\r\n");
    client.now += 60 * 365 * 86_400_000;
    assert_eq!(client.ask("SETNX k 1"), ":0\r\n");
    assert_eq!(client.ask("TTL k"), ":-1\r\n");
    assert_eq!(client.ask("DEL k"), ":1\r\n");
    assert_eq!(client.ask("SETNX k 1"), ":1\r\n");
    assert_eq!(client.ask("EXPIRE k 10"), ":1\r\n");
    assert_eq!(client.ask("PERSIST k"), ":1\r\n");
    assert_eq!(client.ask("TTL k"), ":-1\r\n");
}

#[test]
fn filters_forget_single_keys_where_they_can() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("LATELY.RESERVE w WINDOW 1h CAPACITY 1000");
    client.ask("LATELY.RESERVE n LAST 1000");
    client.ask("BF.RESERVE ever 1e-6 1000");
    for name in ["w", "n", "ever"] {
        assert_eq!(client.ask(&format!("BF.MADD {name} a b")), "*2\r\n:1\r\n:1\r\n");
    }
    for name in ["w", "n"] {
        assert_eq!(client.ask(&format!("LATELY.FORGET {name} a")), ":1\r\n");
        assert_eq!(client.ask(&format!("LATELY.FORGET {name} a")), ":0\r\n");
        assert_eq!(client.ask(&format!("BF.MEXISTS {name} a b")), "*2\r\n:0\r\n:1\r\n");
        assert_eq!(client.ask(&format!("BF.ADD {name} a")), ":1\r\n");
        assert!(client.ask(&format!("LATELY.INFO {name}")).contains("removed\r\n:1\r\n"));
    }
    let refused = client.ask("LATELY.FORGET ever a");
    assert!(refused.starts_with("-ERR this structure cannot forget single keys"), "{refused}");
    assert_eq!(client.ask("BF.EXISTS ever a"), ":1\r\n");
    assert!(client.ask("LATELY.INFO ever").contains("structure\r\n$5\r\nbloom\r\n"));
    assert_eq!(client.ask("LATELY.FORGET none a"), ":0\r\n");
    client.ask("SET k 1 NX EX 9");
    assert!(client.ask("LATELY.FORGET k a").starts_with("-WRONGTYPE"));
}

const SETS: &str = "
    [[filter]]
    match = \"*:dupefilter\"
    forever = true
    capacity = 1000
    set = true
    [[filter]]
    match = \"recent:*\"
    window = \"10m\"
    set = true
";

/// The replies of Redis 7.0.15, but for names.
#[test]
fn sets_recognize_their_members() {
    let server = server(SETS);
    let mut client = Client::new(&server);
    for (command, reply) in [
        ("SADD s:dupefilter a b a", ":2\r\n"),
        ("SADD s:dupefilter b c", ":1\r\n"),
        ("SISMEMBER s:dupefilter a", ":1\r\n"),
        ("SMISMEMBER s:dupefilter a z", "*2\r\n:1\r\n:0\r\n"),
        ("SCARD s:dupefilter", ":3\r\n"),
        ("SCARD none", ":0\r\n"),
        ("SREM s:dupefilter a z", ":1\r\n"),
        ("SREM none a", ":0\r\n"),
        ("SISMEMBER s:dupefilter a", ":0\r\n"),
        ("SISMEMBER none a", ":0\r\n"),
        ("SMISMEMBER none a b", "*2\r\n:0\r\n:0\r\n"),
        ("SCARD s:dupefilter", ":2\r\n"),
        ("SADD s:dupefilter a", ":1\r\n"),
        ("TYPE s:dupefilter", "+set\r\n"),
        ("SCAN 0 TYPE set", "*2\r\n$1\r\n0\r\n*1\r\n$12\r\ns:dupefilter\r\n"),
        ("SCAN 0 TYPE MBbloom--", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("SADD recent:x a b", ":2\r\n"),
        ("SET k v NX EX 9", "+OK\r\n"),
        ("SADD k a", WRONG_TYPE),
        ("SISMEMBER k a", WRONG_TYPE),
        ("BF.RESERVE f 0.01 100", "+OK\r\n"),
        ("SADD f a", WRONG_TYPE),
        ("SREM f a", WRONG_TYPE),
        ("SCARD f", WRONG_TYPE),
    ] {
        assert_eq!(client.ask(command), reply, "{command}");
    }
    assert!(client.ask("SADD other a").contains("set = true"));
    client.now += 365 * 86_400_000;
    assert_eq!(client.ask("SISMEMBER s:dupefilter b"), ":1\r\n");
    assert_eq!(client.ask("SCARD recent:x"), ":0\r\n");
    assert_eq!(client.ask("DEL s:dupefilter"), ":1\r\n");
    assert_eq!(client.ask("SADD s:dupefilter b"), ":1\r\n");
}

/// Of members that find no room together, none is remembered: not at a capacity, and not at the limit of memory.
#[test]
fn members_are_added_together_or_not_at_all() {
    let server = server(&format!("memory = \"256KiB\"\n{SETS}"));
    let mut client = Client::new(&server);
    // A name that the configuration says is a set is nothing else.
    for command in ["BF.ADD few:dupefilter a", "BF.INSERT few:dupefilter ITEMS a"] {
        assert_eq!(client.ask(command), WRONG_TYPE, "{command}");
    }
    assert_eq!(client.ask("EXISTS few:dupefilter"), ":0\r\n");
    assert_eq!(client.ask("BF.RESERVE few:dupefilter 1e-9 4 NONSCALING"), "+OK\r\n");
    for (command, reply) in [
        ("SADD few:dupefilter a b", ":2\r\n"),
        ("SADD few:dupefilter c b d e", "-ERR non scaling filter is full\r\n"),
        ("SMISMEMBER few:dupefilter a b c d e", "*5\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n"),
        ("SCARD few:dupefilter", ":2\r\n"),
        ("SADD few:dupefilter c d", ":2\r\n"),
    ] {
        assert_eq!(client.ask(command), reply, "{command}");
    }
    assert_eq!(client.ask("BF.RESERVE all:dupefilter 1e-9 1000"), "+OK\r\n");
    let members =
        |part: u64| -> String { (part * 900..part * 900 + 900).map(|n| format!(" {n}")).collect() };
    let mut part = 0;
    while !client.ask(&format!("SADD all:dupefilter{}", members(part))).starts_with("-OOM") {
        part += 1;
    }
    let found = |part, client: &mut Client<'_>| {
        client.ask(&format!("SMISMEMBER all:dupefilter{}", members(part))).matches(":1").count()
    };
    assert!(part > 0 && found(part - 1, &mut client) == 900);
    assert_eq!(found(part, &mut client), 0);
}

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// The replies of RedisBloom 2.8.2, in both versions of the protocol.
#[test]
fn cuckoo_filters() {
    let bucket_size = "-BUCKETSIZE: value must be an integer between 1 and 255, inclusive.\r\n";
    let cases = [
        ("CF.RESERVE c x", "-Bad capacity\r\n"),
        ("CF.RESERVE c 0", "-Capacity must be at least (BucketSize * 2)\r\n"),
        ("CF.RESERVE c 1000 BUCKETSIZE x", "-Couldn't parse BUCKETSIZE\r\n"),
        ("CF.RESERVE c 1000 BUCKETSIZE 0", bucket_size),
        ("CF.RESERVE c 1000 BUCKETSIZE 300", bucket_size),
        ("CF.RESERVE c 1000 MAXITERATIONS x", "-Couldn't parse MAXITERATIONS\r\n"),
        (
            "CF.RESERVE c 1000 MAXITERATIONS 0",
            "-MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.\r\n",
        ),
        ("CF.RESERVE c 1000 EXPANSION x", "-Couldn't parse EXPANSION\r\n"),
        (
            "CF.RESERVE c 1000 EXPANSION -1",
            "-EXPANSION: value must be an integer between 0 and 32768, inclusive.\r\n",
        ),
        ("CF.RESERVE d 1000 BUCKETSIZE 2 MAXITERATIONS 20 EXPANSION 1", "+OK\r\n"),
        ("CF.RESERVE d 1000", "-ERR item exists\r\n"),
        ("CF.ADD c a", "1"),
        ("CF.ADD c a", "1"),
        ("CF.ADDNX c a", "0"),
        ("CF.ADDNX c b", "1"),
        ("CF.COUNT c a", ":1\r\n"),
        ("CF.COUNT c z", ":0\r\n"),
        ("CF.COUNT missing z", ":0\r\n"),
        ("CF.EXISTS c a", "1"),
        ("CF.EXISTS missing z", "0"),
        ("CF.MEXISTS c a z b", "*3 1 0 1"),
        ("CF.MEXISTS missing a z", "*2 0 0"),
        ("CF.DEL c b", "1"),
        ("CF.DEL c b", "0"),
        ("CF.EXISTS c b", "0"),
        ("CF.DEL missing b", "-Not found\r\n"),
        ("CF.INSERT c ITEMS x y x", "*3 1 1 1"),
        ("CF.INSERT e CAPACITY 10 NOCREATE ITEMS x", "-ERR not found\r\n"),
        ("CF.INSERT e CAPACITY 10 ITEMS x y", "*2 1 1"),
        ("CF.INSERT e CAPACITY x ITEMS x y", "-Bad capacity\r\n"),
        ("CF.INSERT e FOO ITEMS x", "-Unknown argument received\r\n"),
        ("CF.INSERT e ITEMS", "-ERR wrong number of arguments for 'cf.insert' command\r\n"),
        ("CF.INFO missing", "-ERR not found\r\n"),
        ("TYPE c", "+MBbloomCF\r\n"),
        ("SADD c a", WRONG_TYPE),
        ("SET k v NX EX 9", "+OK\r\n"),
        ("CF.ADD k a", WRONG_TYPE),
        ("CF.EXISTS k a", "0"),
        ("CF.DEL k a", "-Not found\r\n"),
        ("CF.ADD c", "-ERR wrong number of arguments for 'cf.add' command\r\n"),
    ];
    for protocol in [2, 3] {
        let server = server("");
        let mut client = Client::new(&server);
        client.ask(&format!("HELLO {protocol}"));
        for (command, reply) in cases {
            // What is no reply as it stands is one or several answers.
            let (no, yes) = if protocol == 2 { (":0\r\n", ":1\r\n") } else { ("#f\r\n", "#t\r\n") };
            let answer = |word: &str| match word {
                "0" => no.to_owned(),
                "1" => yes.to_owned(),
                header => format!("{header}\r\n"),
            };
            let expected = match reply.ends_with("\r\n") {
                true => reply.to_owned(),
                false => reply.split(' ').map(answer).collect(),
            };
            assert_eq!(client.ask(command), expected, "RESP{protocol}: {command}");
        }
        let info = client.ask("CF.INFO c");
        assert!(
            info.contains("+Number of items inserted\r\n:3\r\n+Number of items deleted\r\n:1\r\n"),
            "{info}"
        );
    }
}

#[test]
fn keys_live_as_long_as_they_were_set_for() {
    let server = server("");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("SET k 1 PX 1500 NX"), "+OK\r\n");
    assert_eq!(client.ask("PTTL k"), ":1500\r\n");
    assert_eq!(client.ask("TTL k"), ":2\r\n");
    assert_eq!(client.ask("TYPE k"), "+string\r\n");
    // Another time to live does not make it fresh.
    assert_eq!(client.ask("SET k 1 EX 100 NX"), "$-1\r\n");
    client.now += 1_501;
    assert_eq!(client.ask("EXISTS k"), ":0\r\n");
    assert_eq!(client.ask("SET k 1 EX 100 NX"), "+OK\r\n");
    assert_eq!(client.ask("SETEX k 200 v"), "+OK\r\n");
    assert_eq!(client.ask("TTL k"), ":200\r\n");
    let end = NOW + 1_501 + 5_000;
    assert_eq!(client.ask(&format!("SET l 1 NX PXAT {end}")), "+OK\r\n");
    assert_eq!(client.ask(&format!("SET l 1 NX PXAT {end}")), "$-1\r\n");
    // A moment in the past: gone at once.
    assert_eq!(client.ask("SET m 1 NX EXAT 1"), "+OK\r\n");
    assert_eq!(client.ask("EXISTS m"), ":0\r\n");
    for absurd in ["EX 9223372036854775807", "PX 9223372036854775807", "EX -5", "PX 0"] {
        let reply = client.ask(&format!("SET a 1 NX {absurd}"));
        assert_eq!(reply, "-ERR invalid expire time in 'set' command\r\n", "{absurd}");
    }
    assert_eq!(
        client.ask("SET a 1"),
        "-ERR lately forgets: give EX or PX, or set keyspace.forever\r\n"
    );
    assert!(client.ask("GET k").starts_with("-ERR lately keeps no values"));
}

#[test]
fn keys_for_ever_where_the_configuration_says_so() {
    let server = server("[keyspace]\nforever = true\ncapacity = 1000");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("SETNX a 1"), ":1\r\n");
    assert_eq!(client.ask("SETNX a 1"), ":0\r\n");
    assert_eq!(client.ask("SET b 1"), "+OK\r\n");
    assert_eq!(client.ask("SET b 1 NX"), "$-1\r\n");
    assert_eq!(client.ask("SET b 1 NX EX 5"), "$-1\r\n");
    assert_eq!(client.ask("TTL b"), ":-1\r\n");
    client.now += 1 << 40;
    assert_eq!(client.ask("EXISTS a b c"), ":2\r\n");
}

#[test]
fn filters_and_keys_share_their_names() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("SET k 1 NX EX 5");
    client.ask("BF.ADD f x");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    for command in [
        "BF.ADD k x",
        "BF.MADD k x y",
        "BF.RESERVE k 0.1 10",
        "BF.CARD k",
        "BF.INFO k",
        "SET f 1 EX 5",
        "GET f",
    ] {
        let reply = client.ask(command);
        assert!(reply.ends_with(wrong), "{command}: {reply}");
    }
    assert_eq!(client.ask("BF.EXISTS k x"), ":0\r\n");
    assert_eq!(client.ask("SET f 1 NX EX 5"), "$-1\r\n");
    let pipeline =
        ["SET g 1 NX EX 5", "SET f 1 NX EX 5", "SET g 1 NX EX 5"].map(|line| request(&words(line)));
    assert_eq!(client.feed(&pipeline.concat()), b"+OK\r\n$-1\r\n$-1\r\n");
}

#[test]
fn a_filter_expires_as_a_whole() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("BF.ADD f x");
    assert_eq!(client.ask("PEXPIRE f 10"), ":1\r\n");
    assert_eq!(client.ask("PERSIST f"), ":1\r\n");
    assert_eq!(client.ask("PERSIST f"), ":0\r\n");
    client.ask("PEXPIRE f 10");
    client.now += 10;
    assert_eq!(client.ask("EXISTS f"), ":0\r\n");
    assert_eq!(client.ask("BF.ADD f x"), ":1\r\n");
    assert_eq!(client.ask("EXPIRE f -1"), ":1\r\n");
    assert_eq!(client.ask("DBSIZE"), ":0\r\n");
}

#[test]
fn moments_and_ages() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("LATELY.RESERVE f WINDOW 1h CAPACITY 1000 FPR 1e-6 SLACK 0");
    assert_eq!(client.ask("LATELY.OBSERVE f x"), ":1\r\n");
    assert_eq!(client.ask("LATELY.LASTSEEN f y"), "$-1\r\n");
    client.now += 60_000;
    assert_eq!(client.ask("LATELY.LASTSEEN f x"), format!("*2\r\n:{NOW}\r\n:{NOW}\r\n"));
    assert_eq!(client.ask("LATELY.SEEN f x WITHIN 1m"), ":1\r\n");
    assert_eq!(client.ask("LATELY.SEEN f x WITHIN 59"), ":0\r\n");
    assert_eq!(client.ask("LATELY.MSEEN f WITHIN 2m ITEMS x AT"), "*2\r\n:1\r\n:0\r\n");
    assert_eq!(client.ask("LATELY.MOBSERVE f ITEMS AT x"), "*2\r\n:1\r\n:0\r\n");
    assert_eq!(client.ask("LATELY.REMEMBER f z"), "+OK\r\n");
    assert_eq!(client.ask("LATELY.SEEN f z"), ":1\r\n");
    let (now, wild) = (client.now, client.now + 60_001);
    assert_eq!(
        client.ask(&format!("LATELY.OBSERVE f q AT {wild}")),
        "-ERR AT is in the future\r\n"
    );
    assert_eq!(client.ask(&format!("LATELY.OBSERVE f q AT {now}")), ":1\r\n");
    assert_eq!(client.ask(&format!("LATELY.MOBSERVE f AT {now} ITEMS q r")), "*2\r\n:0\r\n:1\r\n");
    assert_eq!(client.ask("LATELY.OBSERVE f q FOO 1"), "-ERR syntax error\r\n");
    assert_eq!(
        client.ask("LATELY.RESERVE g STRUCTURE scalable-bloom"),
        "-ERR this structure grows by itself: give MEMORY\r\n"
    );
    let info = client.ask("LATELY.INFO f");
    assert!(info.contains("$9\r\nstructure\r\n$10\r\naged-table\r\n"), "{info}");
    assert!(info.contains("$5\r\nfresh\r\n:5\r\n"), "{info}");
}

#[test]
fn transactions() {
    let server = server("");
    let mut client = Client::new(&server);
    for (command, reply) in [
        ("MULTI", "+OK\r\n"),
        ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
        ("BF.ADD f x", "+QUEUED\r\n"),
        ("SET k 1 NX EX 5", "+QUEUED\r\n"),
        ("SET k 1 NX EX 5", "+QUEUED\r\n"),
        ("BF.EXISTS f x", "+QUEUED\r\n"),
        ("EXEC", "*4\r\n:1\r\n+OK\r\n$-1\r\n:1\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("BF.ADD f y", "+QUEUED\r\n"),
        ("BF.ADD", "-ERR wrong number of arguments for 'bf.add' command\r\n"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ("BF.EXISTS f y", ":0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("BF.ADD f y", "+QUEUED\r\n"),
        ("DISCARD", "+OK\r\n"),
        ("BF.EXISTS f y", ":0\r\n"),
    ] {
        assert_eq!(client.ask(command), reply, "{command}");
    }
}

#[test]
fn strangers_may_say_little() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret\n").unwrap();
    let server = server(&format!("password_file = {:?}", file.path()));
    let mut client = Client::new(&server);
    for command in ["PING", "BF.ADD f x", "NOSUCH", "EXEC", "CONFIG GET save"] {
        assert_eq!(client.ask(command), "-NOAUTH Authentication required.\r\n", "{command}");
    }
    assert!(client.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert_eq!(
        client.ask("AUTH wrong"),
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    );
    assert!(client.ask("HELLO 3 AUTH default secret").starts_with("%7\r\n"));
    assert_eq!(client.ask("PING"), "+PONG\r\n");
    assert_eq!(client.ask("RESET"), "+RESET\r\n");
    assert_eq!(client.ask("PING"), "-NOAUTH Authentication required.\r\n");
    let mut other = Client::new(&server);
    assert_eq!(
        other.feed(b"*11\r\n"),
        b"-ERR Protocol error: unauthenticated multibulk length\r\n"
    );
    let mut other = Client::new(&server);
    assert_eq!(
        other.feed(b"*2\r\n$4\r\nAUTH\r\n$99999\r\n"),
        b"-ERR Protocol error: unauthenticated bulk length\r\n"
    );
}

#[test]
fn a_budget_that_is_used_up_is_said() {
    let server = server("memory = \"256KiB\"");
    let mut client = Client::new(&server);
    let refused = client.ask("BF.RESERVE f 0.001 10000000");
    assert!(refused.starts_with("-ERR not enough memory: needs "), "{refused}");
    assert!(refused.ends_with(" bytes, 262144 are left\r\n"), "{refused}");
    let mut refused = 0;
    for n in 0..60_000 {
        let reply = client.ask(&format!("BF.ADD g {n}"));
        refused += u32::from(reply.starts_with("-OOM "));
        // What was taken is still known.
        let known = client.ask(&format!("BF.EXISTS g {n}"));
        assert_eq!(known == ":1\r\n", !reply.starts_with("-OOM "), "{n}");
    }
    assert!(refused > 0 && server.store.budget.used() <= 256 << 10);
    assert_eq!(client.ask("BF.ADD g 0"), ":0\r\n");
    assert_eq!(client.ask("DEL g"), ":1\r\n");
    assert_eq!(server.store.budget.used(), 0);
}

/// A filter that nobody asks any more gives back what its expired keys took.
#[test]
fn expired_keys_give_their_memory_back() {
    let server = server("");
    let mut client = Client::new(&server);
    client.ask("BF.RESERVE f 0.001 100 WINDOW 10");
    (0..2_000).for_each(|n| drop(client.ask(&format!("BF.ADD f {n}"))));
    let full = server.store.budget.used();
    server.store.tidy(NOW + 10_000);
    assert_eq!(server.store.budget.used(), full);
    server.store.tidy(NOW + 20_000);
    assert!(server.store.budget.used() < full);
    assert_eq!(client.ask("BF.INFO f FILTERS"), "*1\r\n:1\r\n");
}

#[test]
fn flushing_needs_leave() {
    let closed = server("");
    let mut client = Client::new(&closed);
    client.ask("BF.ADD f x");
    assert!(
        client.ask("FLUSHALL").starts_with("-ERR this server does not forget everything at once")
    );
    let open = server("allow_flush = true");
    let mut client = Client::new(&open);
    client.ask("BF.ADD f x");
    client.ask("SET k 1 NX EX 10");
    assert_eq!(client.ask("FLUSHALL"), "+OK\r\n");
    assert_eq!(client.ask("EXISTS f k"), ":0\r\n");
}

#[test]
fn scans_reach_all() {
    let server = server("");
    let mut client = Client::new(&server);
    (0..50).for_each(|n| drop(client.ask(&format!("BF.ADD f{n} x"))));
    let (mut cursor, mut found) = ("0".to_owned(), 0);
    loop {
        let reply = client.ask(&format!("SCAN {cursor} COUNT 7 MATCH f*"));
        let lines: Vec<&str> = reply.split("\r\n").collect();
        cursor = lines[2].into();
        found += lines[3][1..].parse::<usize>().unwrap();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, 50);
    assert_eq!(client.ask("SCAN 0 TYPE string"), client.ask("SCAN 0 MATCH nothing"));
}
