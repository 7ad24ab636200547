//! Who may do what: each command for each right, names, transactions, and users that change.

use super::{Client, NOW, request, server, words};
use crate::command::{COMMANDS, Server};
use crate::users::{Right, Users};
use proptest::prelude::*;
use std::fmt::Write;

const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const NO_NAME: &str =
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";

fn no_command(name: &str) -> String {
    format!("-NOPERM this user has no permissions to run the '{name}' command\r\n")
}

/// Users from lines: name, password (`-`: none), right, and patterns.
fn users(lines: &[&str]) -> Users {
    let mut text = String::new();
    for line in lines {
        let [name, password, may, patterns @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        write!(text, "[[user]]\nname = {name:?}\nmay = {may:?}\n").unwrap();
        if !patterns.is_empty() {
            writeln!(text, "filters = {patterns:?}").unwrap();
        }
        if *password != "-" {
            let digest = ring::digest::digest(&ring::digest::SHA256, password.as_bytes());
            let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "password_sha256 = {hex:?}").unwrap();
        }
    }
    Users::parse(&text, None).unwrap()
}

fn server_of(lines: &[&str]) -> Server {
    let server = server(
        "allow_flush = true\n[keyspace]\nforever = true\n[[filter]]\nmatch = \"*set\"\nforever = true\nset = true",
    );
    server.auth.replace(users(lines));
    server
}

fn client<'a>(server: &'a Server, name: &str) -> Client<'a> {
    let mut client = Client::new(server);
    assert_eq!(client.ask(&format!("AUTH {name} {name}")), "+OK\r\n");
    client
}

const ALL: &[&str] = &[
    "reader reader read a:*",
    "writer writer write a:*",
    "admin admin admin a:*",
    "all all read",
    "root root admin",
];

/// Commands that name no filter and no key, by this list and not by the table.
const NAMELESS: &[&str] = &[
    "acl",
    "auth",
    "bgsave",
    "client",
    "cluster",
    "command",
    "config",
    "dbsize",
    "discard",
    "echo",
    "exec",
    "hello",
    "info",
    "keys",
    "lastsave",
    "module",
    "multi",
    "ping",
    "quit",
    "readonly",
    "readwrite",
    "reset",
    "role",
    "save",
    "scan",
    "select",
    "time",
    "unwatch",
    "wait",
    "watch",
];
/// Commands that keep no values say so to everybody.
const NO_VALUES: &str = "-ERR lately keeps no values";
const FOR_ADMINS: &[&str] = &[
    "bf.loadchunk",
    "bf.reserve",
    "bf.scandump",
    "bgsave",
    "cf.loadchunk",
    "cf.reserve",
    "cf.scandump",
    "config",
    "flushall",
    "flushdb",
    "lately.dump",
    "lately.reserve",
    "lately.restore",
    "save",
];

/// A command of the table, with as many words as it may have, the first two of which are this name.
fn line(name: &str, arity: i32, word: &str) -> String {
    let least = arity.unsigned_abs() as usize;
    let mut words = vec![name.to_owned()];
    if name == "memory" {
        words.push("usage".into());
    }
    while words.len() < least.max(2) && arity != 1 || words.len() < least {
        words.push(word.to_owned());
    }
    if name == "memory" {
        words.push(word.to_owned());
    }
    words.join(" ")
}

#[test]
fn every_command_for_every_right() {
    for command in COMMANDS {
        let name = command.name;
        // What changes anything takes more than asking does.
        let is_for_admins = FOR_ADMINS.contains(&name);
        assert!(!command.changes || command.needs > Right::Read, "{name}");
        assert_eq!(command.needs == Right::Admin, is_for_admins, "{name}");
        for (user, right) in
            [("reader", Right::Read), ("writer", Right::Write), ("admin", Right::Admin)]
        {
            let server = server_of(ALL);
            let mut client = client(&server, user);
            let said = client.ask(&line(name, command.arity, "a:x"));
            let shown = if name == "config" { "config|a:x" } else { name };
            // All names are nobody's here who has only some.
            let expected = match (right >= command.needs, name) {
                (false, _) => Some(no_command(shown)),
                (true, "flushall" | "flushdb") => Some(NO_NAME.into()),
                (true, _) => None,
            };
            match expected {
                Some(expected) => assert_eq!(said, expected, "{user} {name}"),
                None => {
                    assert!(!said.contains("NOPERM") && !said.is_empty(), "{user} {name}: {said}");
                }
            }
            assert_ne!(said, NOAUTH, "{user} {name}");
        }
        let server = server_of(ALL);
        let mut stranger = Client::new(&server);
        let said = stranger.ask(&line(name, command.arity, "a:x"));
        let is_open = ["auth", "hello", "quit", "reset"].contains(&name);
        assert_eq!(said == NOAUTH, !is_open, "{name}: {said}");
    }
}

/// Whatever names a filter or a key is refused for names that are not the user's; before anything is looked up, so that it says
/// nothing of what there is.
#[test]
fn every_command_for_names_of_others() {
    for command in COMMANDS {
        let name = command.name;
        for other in ["b:x", "b:f"] {
            let server = server_of(ALL);
            client(&server, "root").ask("BF.ADD b:f x");
            let mut client = client(&server, "admin");
            let said = client.ask(&line(name, command.arity, other));
            let keeps_nothing = said.starts_with(NO_VALUES);
            let is_refused = said == NO_NAME;
            assert_eq!(is_refused, !(NAMELESS.contains(&name) || keeps_nothing), "{name}: {said}");
            // A mixture is refused as a whole.
            if command.arity < 0 && ["del", "exists", "unlink"].contains(&name) {
                client.ask("SET a:k 1 NX EX 100");
                assert_eq!(client.ask(&format!("{name} a:k {other}")), NO_NAME);
                assert_eq!(client.ask("EXISTS a:k"), ":1\r\n");
            }
        }
    }
}

/// The table in docs/serve.md has each command in the row of the right that it needs.
#[test]
fn rights_are_as_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let page = std::fs::read_to_string(path).unwrap();
    let server = server_of(ALL);
    for command in COMMANDS {
        let said = client(&server, "root").ask(&line(command.name, command.arity, "x"));
        let row = format!("| `{}` |", command.needs);
        let row = page.lines().find(|line| line.starts_with(&row)).unwrap();
        let is_there = row.contains(&format!("`{}`", command.name.to_uppercase()));
        assert_eq!(is_there, !said.starts_with(NO_VALUES), "{}: {row}", command.name);
    }
}

/// Filters are made and dropped by admins, keys come and go with writers.
#[test]
fn filters_as_a_whole_are_for_admins() {
    let server = server_of(ALL);
    let (mut writer, mut admin) = (client(&server, "writer"), client(&server, "admin"));
    for line in ["BF.ADD a:f x", "SET a:k 1 NX EX 100", "SADD a:set x", "CF.ADD a:cf x"] {
        assert!([":1\r\n", "+OK\r\n"].contains(&&writer.ask(line)[..]), "{line}");
    }
    assert_eq!(writer.ask("DEL a:k a:f"), no_command("del"));
    assert_eq!(writer.ask("EXISTS a:k a:f"), ":2\r\n");
    assert_eq!(writer.ask("UNLINK a:f"), no_command("unlink"));
    assert_eq!(writer.ask("EXPIRE a:f 0"), no_command("expire"));
    assert_eq!(writer.ask("PEXPIRE a:f 1"), no_command("pexpire"));
    assert_eq!(writer.ask("PERSIST a:f"), no_command("persist"));
    assert_eq!(writer.ask("EXPIRE a:k 50"), ":1\r\n");
    assert_eq!(writer.ask("PERSIST a:k"), ":1\r\n");
    assert_eq!(writer.ask("DEL a:k a:k"), ":1\r\n");
    assert_eq!(writer.ask("SREM a:set x"), ":1\r\n");
    // To insert is to add; but with options for a filter that is not there it is to reserve.
    assert_eq!(writer.ask("BF.INSERT a:f CAPACITY 9 ITEMS y"), "*1\r\n:1\r\n");
    assert_eq!(writer.ask("BF.INSERT a:g ITEMS y"), "*1\r\n:1\r\n");
    assert_eq!(writer.ask("BF.INSERT a:h NOCREATE ITEMS y"), "-ERR not found\r\n");
    assert_eq!(writer.ask("BF.INSERT a:h CAPACITY 9 ITEMS y"), no_command("bf.insert"));
    assert_eq!(writer.ask("BF.INSERT a:h WINDOW 9 ITEMS y"), no_command("bf.insert"));
    assert_eq!(writer.ask("CF.INSERT a:cf CAPACITY 9 ITEMS y"), "*1\r\n:1\r\n");
    assert_eq!(writer.ask("CF.INSERT a:h CAPACITY 9 ITEMS y"), no_command("cf.insert"));
    assert_eq!(writer.ask("CF.INSERTNX a:h CAPACITY 9 ITEMS y"), no_command("cf.insertnx"));
    assert_eq!(writer.ask("EXISTS a:h"), ":0\r\n");
    assert_eq!(admin.ask("BF.INSERT a:h CAPACITY 9 ITEMS y"), "*1\r\n:1\r\n");
    assert_eq!(admin.ask("EXPIRE a:h 100"), ":1\r\n");
    assert_eq!(admin.ask("PERSIST a:h"), ":1\r\n");
    assert_eq!(admin.ask("DEL a:f a:g a:h a:cf"), ":4\r\n");
    // Even an admin forgets all at once only if all is its own.
    assert_eq!(admin.ask("FLUSHALL"), NO_NAME);
    assert_eq!(client(&server, "root").ask("FLUSHALL"), "+OK\r\n");
    assert_eq!(admin.ask("CONFIG GET save"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(writer.ask("Config Get save"), no_command("config|get"));
}

/// What lists names, or counts them, knows only the user's.
#[test]
fn lists_and_counts() {
    let server = server_of(ALL);
    let mut root = client(&server, "root");
    (0..30).for_each(|n| drop(root.ask(&format!("BF.ADD b:{n} x"))));
    root.ask("BF.ADD a:1 x");
    let mut reader = client(&server, "reader");
    assert_eq!(reader.ask("KEYS *"), "*1\r\n$3\r\na:1\r\n");
    assert_eq!(reader.ask("KEYS b:*"), "*0\r\n");
    assert_eq!(reader.ask("DBSIZE"), ":1\r\n");
    assert_eq!(reader.ask("SCAN 0 COUNT 1000"), "*2\r\n$1\r\n0\r\n*1\r\n$3\r\na:1\r\n");
    assert!(reader.ask("INFO keyspace").contains("db0:keys=1,"));
    assert!(reader.ask("LATELY.INFO").contains("$7\r\nfilters\r\n:1\r\n"));
    assert_eq!(reader.ask("MEMORY USAGE b:1"), NO_NAME);
    assert_eq!(reader.ask("LATELY.INFO b:1"), NO_NAME);
    assert_eq!(reader.ask("TYPE b:1"), NO_NAME);
    for all in ["all", "root"] {
        let mut client = client(&server, all);
        assert_eq!(client.ask("DBSIZE"), ":31\r\n");
        assert!(client.ask("KEYS *").starts_with("*31\r\n"));
        assert!(client.ask("INFO keyspace").contains("db0:keys=31,"));
    }
}

#[test]
fn who_am_i() {
    let server = server_of(&["u 1 read", "default - read a:*"]);
    let mut client = Client::new(&server);
    assert_eq!(client.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    assert_eq!(client.ask("BF.EXISTS a:x y"), ":0\r\n");
    assert_eq!(client.ask("BF.EXISTS b:x y"), NO_NAME);
    assert_eq!(client.ask("AUTH u 2"), WRONGPASS);
    assert_eq!(client.ask("AUTH v 1"), WRONGPASS);
    assert_eq!(client.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    assert!(client.ask("HELLO 3 AUTH u 1").starts_with("%7\r\n"));
    assert_eq!(client.ask("ACL WHOAMI"), "$1\r\nu\r\n");
    assert!(client.ask("CLIENT INFO").contains(" user=u\n"));
    assert!(client.ask("CLIENT LIST").contains(" user=u\n"));
    assert_eq!(client.ask("BF.EXISTS b:x y"), "#f\r\n");
    assert_eq!(client.ask("RESET"), "+RESET\r\n");
    assert_eq!(client.ask("acl whoami"), "$7\r\ndefault\r\n");
    // As Redis says it.
    assert_eq!(client.ask("ACL NOSUCH"), "-ERR unknown subcommand 'NOSUCH'. Try ACL HELP.\r\n");
    assert_eq!(
        client.ask("ACL WHOAMI x"),
        "-ERR wrong number of arguments for 'acl|whoami' command\r\n"
    );
    assert_eq!(client.ask("ACL"), "-ERR wrong number of arguments for 'acl' command\r\n");
    assert!(client.ask("AUTH x").starts_with("-ERR AUTH <password> called without any password"));
    assert_eq!(client.ask("AUTH default x"), "+OK\r\n");
    // Without a user default there is none to be.
    let server = server_of(&["u 1 read"]);
    let mut client = Client::new(&server);
    assert_eq!(client.ask("AUTH 1"), WRONGPASS);
    assert_eq!(client.ask("AUTH u 1"), "+OK\r\n");
    assert_eq!(client.ask("RESET"), "+RESET\r\n");
    assert_eq!(client.ask("ACL WHOAMI"), NOAUTH);
}

/// A transaction is refused as it is gathered.
#[test]
fn transactions() {
    let server = server_of(ALL);
    let mut writer = client(&server, "writer");
    const ABORT: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (refused, why) in [
        ("BF.ADD b:f x", NO_NAME.to_owned()),
        ("BF.RESERVE a:f 0.01 100", no_command("bf.reserve")),
    ] {
        assert_eq!(writer.ask("MULTI"), "+OK\r\n");
        assert_eq!(writer.ask("BF.ADD a:f x"), "+QUEUED\r\n");
        assert_eq!(writer.ask(refused), why);
        assert_eq!(writer.ask("EXEC"), ABORT);
        assert_eq!(writer.ask("EXISTS a:f"), ":0\r\n");
    }
    // Who is somebody else by then may do what that one may.
    writer.ask("MULTI");
    for line in ["BF.ADD a:f x", "AUTH reader reader", "BF.ADD a:f y", "BF.EXISTS a:f x"] {
        assert_eq!(writer.ask(line), "+QUEUED\r\n", "{line}");
    }
    let said = writer.ask("EXEC");
    assert!(said.starts_with("*4\r\n:1\r\n+OK\r\n-NOPERM ACLs rules changed "), "{said}");
    assert!(
        said.ends_with("no permission to execute the command or subcommand\r\n:1\r\n"),
        "{said}"
    );
    // Nor is it done if users change before it.
    let mut writer = client(&server, "writer");
    writer.ask("MULTI");
    writer.ask("BF.ADD a:f z");
    writer.ask("BF.ADD a:g z");
    server.auth.replace(users(&["writer writer write a:g"]));
    writer.session.keep_up(&server);
    let said = writer.ask("EXEC");
    assert!(said.starts_with("*2\r\n-NOPERM ACLs rules changed "), "{said}");
    assert!(said.ends_with("no permission to touch the specified keys\r\n:1\r\n"), "{said}");
}

/// Runs of allowed names between refused ones: the replies are in order, however the bytes are cut.
#[test]
fn pipelines_that_mix_names() {
    let mut lines = Vec::new();
    let mut expected = String::new();
    for n in 0..200 {
        let allowed = n % 7 != 3;
        let name = if allowed { format!("a:{}", n / 20) } else { format!("b:{}", n / 20) };
        let line = match n % 3 {
            0 => format!("BF.ADD {name} {n}"),
            1 => format!("SET {name}k{n} 1 NX EX 100"),
            _ => format!("BF.EXISTS {name} never"),
        };
        lines.extend(request(&words(&line)));
        expected += match (allowed, n % 3) {
            (false, _) => NO_NAME,
            (true, 0) => ":1\r\n",
            (true, 1) => "+OK\r\n",
            (true, _) => ":0\r\n",
        };
    }
    // Patterns of the other kind are not compared for a name that was permitted just now.
    let slow = &["writer writer write c:* d:* e:* f:* a:[0-9]*"];
    for (users, cut) in
        [(ALL, lines.len()), (ALL, 1), (ALL, 7), (ALL, 1000), (slow, lines.len()), (slow, 7)]
    {
        let server = server_of(users);
        let mut client = client(&server, "writer");
        let mut unread = Vec::new();
        let mut said = Vec::new();
        for piece in lines.chunks(cut) {
            unread.extend_from_slice(piece);
            let fed = client.session.feed(&server, &mut client.work, NOW, &unread, &mut said);
            unread.drain(..fed.consumed);
        }
        assert_eq!(String::from_utf8(said).unwrap(), expected, "{cut}");
    }
}

/// Connections of users that are gone, or whose password is another one, must say who they are at their next command.
#[test]
fn users_that_change() {
    let server = server_of(&["stays 1 read", "gone 2 admin", "changed 3 admin", "silent 4 read"]);
    let login = |line: &str| {
        let mut client = Client::new(&server);
        assert_eq!(client.ask(line), "+OK\r\n");
        client
    };
    let mut stays = login("AUTH stays 1");
    let (mut gone, mut changed, mut again) =
        (login("AUTH gone 2"), login("AUTH changed 3"), login("AUTH changed 3"));
    assert_eq!(stays.ask("BF.ADD f x"), no_command("bf.add"));
    gone.ask("MULTI");
    gone.ask("BF.ADD f x");
    server.auth.replace(users(&["stays 1 write", "changed 5 read", "silent 4 read"]));
    for client in [&mut stays, &mut gone, &mut changed, &mut again] {
        assert!(client.session.keep_up(&server), "was trusted until now");
        assert!(client.session.keep_up(&server) == client.session.is_trusted());
    }
    assert_eq!(stays.ask("BF.ADD f y"), ":1\r\n");
    for client in [&mut gone, &mut changed] {
        let bytes = request(&words("EXEC"));
        let mut said = Vec::new();
        let fed = client.session.feed(&server, &mut client.work, NOW, &bytes, &mut said);
        assert_eq!(String::from_utf8(said).unwrap(), NOAUTH);
        assert!(fed.is_over, "the client comes in again with a connection of its own");
    }
    assert_eq!(stays.ask("BF.EXISTS f x"), ":0\r\n", "what was queued was not done");
    // Whoever knows the new password continues.
    assert_eq!(again.ask("AUTH changed 3"), WRONGPASS);
    assert_eq!(again.ask("AUTH changed 5"), "+OK\r\n");
    assert_eq!(again.ask("BF.EXISTS f y"), ":1\r\n");
    assert_eq!(again.ask("BF.ADD f z"), no_command("bf.add"));
}

/// Words of commands, and names of the user's and of others.
const WORDS: &[&str] = &[
    "a:f", "a:k", "b:secret", "b:k", "x", "*", "0", "1", "100", "ITEMS", "NX", "EX", "PX",
    "CAPACITY", "NOCREATE", "WINDOW", "MATCH", "COUNT", "AT", "WITHIN", "usage", "keyspace",
    "a:set", "b:set",
];

/// A command of the table with as many words as it takes, or some more; often one that lists.
fn any_line() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let lists = prop::sample::select(vec!["keys", "scan", "info", "lately.info"]);
    let any = (0..COMMANDS.len()).prop_map(|at| COMMANDS[at].name);
    let words = prop::collection::vec(prop::sample::select(WORDS), 7);
    (prop_oneof![3 => any, 1 => lists], words, 0..4usize).prop_map(|(name, words, more)| {
        let arity = COMMANDS.iter().find(|command| command.name == name).unwrap().arity;
        let least = arity.unsigned_abs() as usize - 1;
        let count = if arity > 0 { least } else { least + more };
        let words = words.iter().take(count).map(|word| word.as_bytes().to_vec());
        std::iter::once(name.as_bytes().to_vec()).chain(words).collect()
    })
}

proptest! {
    /// Whatever an admin of some names says, it changes nothing of others' and hears nothing of them.
    #[test]
    fn names_of_others_are_out_of_reach(lines in prop::collection::vec(any_line(), 1..40)) {
        let server = server_of(ALL);
        let mut root = client(&server, "root");
        for line in ["BF.RESERVE b:secret 0.01 100 WINDOW 1h", "BF.ADD b:secret y", "BF.ADD b:hidden y", "SADD b:set y", "SET b:k 1 NX EX 500"] {
            assert!(!root.ask(line).starts_with('-'), "{line}");
        }
        let mut look = || ["LATELY.INFO b:secret", "LATELY.INFO b:hidden", "LATELY.INFO b:set", "PTTL b:k"].map(|line| root.ask(line));
        let before = look();
        let mut admin = client(&server, "admin");
        for line in lines {
            let is_over = ["quit", "reset"].iter().any(|name| line[0] == name.as_bytes());
            if is_over {
                continue;
            }
            let said = String::from_utf8_lossy(&admin.feed(&request(&line))).into_owned();
            // It never says this name itself.
            prop_assert!(!said.contains("hidden"), "{line:?}: {said}");
        }
        prop_assert_eq!(look(), before);
    }
}
