//! Filters that move from one server to another.

use super::{Client, NOW, request, server, words};
use crate::command::Server;

const OK: &str = "+OK\r\n";

/// The reply to a command whose last word is this.
fn ask_with(client: &mut Client<'_>, line: &str, last: &[u8]) -> String {
    let mut words = words(line);
    words.push(last.to_vec());
    let reply = client.feed(&request(&words));
    String::from_utf8_lossy(&reply).into_owned()
}

/// The bytes of the bulk at the end of a reply.
fn bulk(reply: &[u8]) -> &[u8] {
    let begin = reply.iter().rposition(|&byte| byte == b'$');
    let lines = |at: &usize| {
        let end = reply[*at..].windows(2).position(|two| two == b"\r\n")? + *at;
        let length: usize = std::str::from_utf8(&reply[at + 1..end]).ok()?.parse().ok()?;
        (end + 2 + length + 2 == reply.len()).then_some(&reply[end + 2..end + 2 + length])
    };
    // The bytes may have any number of what begins a bulk.
    let mut places = (0..=begin.unwrap()).filter(|&at| reply[at] == b'$');
    places.find_map(|at| lines(&at)).unwrap()
}

fn dump(client: &mut Client<'_>, name: &str) -> Vec<u8> {
    bulk(&client.feed(&request(&words(&format!("LATELY.DUMP {name}"))))).to_vec()
}

/// The chunks of a filter, as a client of RedisBloom takes them.
fn chunks(client: &mut Client<'_>, family: &str, name: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut iterator, mut chunks) = (0, Vec::new());
    loop {
        let reply = client.feed(&request(&words(&format!("{family}.SCANDUMP {name} {iterator}"))));
        let head = String::from_utf8_lossy(&reply[..40.min(reply.len())]).into_owned();
        let next = head.strip_prefix("*2\r\n:").and_then(|rest| rest.split_once("\r\n"));
        iterator = next.unwrap_or_else(|| panic!("{head}")).0.parse().unwrap();
        if iterator == 0 {
            assert_eq!(head, "*2\r\n:0\r\n$0\r\n\r\n");
            return chunks;
        }
        chunks.push((iterator, bulk(&reply).to_vec()));
    }
}

fn load(client: &mut Client<'_>, family: &str, name: &str, chunk: &(i64, Vec<u8>)) -> String {
    ask_with(client, &format!("{family}.LOADCHUNK {name} {}", chunk.0), &chunk.1)
}

fn used(server: &Server) -> u64 {
    server.store.budget.used()
}

#[test]
fn a_filter_moves_as_a_whole() {
    let (one, two) = (server(""), server(""));
    let (mut from, mut to) = (Client::new(&one), Client::new(&two));
    assert_eq!(from.ask("BF.RESERVE f 1e-6 1000000 WINDOW 1h RENEW FRESH"), OK);
    assert_eq!(from.ask("BF.MADD f a b \"\""), "*3\r\n:1\r\n:1\r\n:1\r\n");
    assert_eq!(from.ask("LATELY.DUMP none"), "-ERR not found\r\n");
    let bytes = dump(&mut from, "f");
    // Larger than other arguments may be.
    assert!(bytes.len() > 1 << 20, "{}", bytes.len());
    assert_eq!(ask_with(&mut to, "LATELY.RESTORE g", &bytes), OK);
    assert_eq!(to.ask("BF.MEXISTS g a b \"\" c"), "*4\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
    let of = |reply: String| reply.split_once("asked").unwrap().0.to_owned();
    assert_eq!(of(to.ask("LATELY.INFO g")), of(from.ask("LATELY.INFO f")));
    to.now += 3_700_000;
    assert_eq!(to.ask("BF.MADD g a c"), "*2\r\n:1\r\n:1\r\n");
    assert_eq!(ask_with(&mut to, "LATELY.RESTORE g", &bytes), "-ERR item exists\r\n");
    let mut replacing = words("LATELY.RESTORE g");
    replacing.extend([bytes.clone(), b"replace".to_vec()]);
    assert_eq!(to.feed(&request(&replacing)), OK.as_bytes());
    to.now = NOW;
    assert_eq!(to.ask("BF.MEXISTS g a c"), "*2\r\n:1\r\n:0\r\n");
    replacing.push(b"more".to_vec());
    assert_eq!(to.feed(&request(&replacing)), b"-ERR syntax error\r\n");
    replacing.truncate(3);
    replacing.push(b"x".to_vec());
    assert_eq!(to.feed(&request(&replacing)), b"-ERR syntax error\r\n");
    assert_eq!(to.ask("SET key 1 EX 10"), OK);
    let taken = ask_with(&mut to, "LATELY.RESTORE key", &bytes);
    assert!(taken.starts_with("-WRONGTYPE "), "{taken}");
    let no = to.ask("LATELY.RESTORE h garbage");
    assert!(no.starts_with("-ERR this is no dump of a filter: "), "{no}");
    let other = server("seed = 9");
    let elsewhere = ask_with(&mut Client::new(&other), "LATELY.RESTORE g", &bytes);
    assert_eq!(elsewhere, "-ERR this filter was made with another seed (start with --seed 7)\r\n");
    assert_eq!(used(&other), 0);
}

/// Other commands take no such arguments, nor does a client that has not given the password; and names are as short
/// as they were.
#[test]
fn only_a_dump_may_be_large() {
    let open = server("");
    let large = vec![b'x'; (1 << 20) + 1];
    let invalid = "-ERR Protocol error: invalid bulk length\r\n";
    for line in ["BF.ADD f", "LATELY.RESTORE", "BF.LOADCHUNK", "SET"] {
        assert_eq!(ask_with(&mut Client::new(&open), line, &large), invalid, "{line}");
    }
    for line in ["lately.Restore f", "BF.LOADCHUNK f 1", "cf.loadchunk f 1"] {
        let reply = ask_with(&mut Client::new(&open), line, &large);
        assert!(reply != invalid && reply.starts_with('-'), "{line}: {reply}");
    }
    let mut whole = words("LATELY.RESTORE f");
    whole.push(vec![b'x'; 64 << 20]);
    let reply = Client::new(&open).feed(&request(&whole)[..1000]);
    assert_eq!(reply, b"-ERR Protocol error: too big request\r\n");
    let closed = super::Server {
        auth: crate::auth::Auth::new(crate::users::Users::of_password(Some("p"))),
        ..server("")
    };
    let strict = "-ERR Protocol error: unauthenticated bulk length\r\n";
    assert_eq!(ask_with(&mut Client::new(&closed), "LATELY.RESTORE f", &large), strict);
}

#[test]
fn a_filter_moves_in_chunks() {
    let (one, two) = (server("memory = \"256MiB\""), server("memory = \"256MiB\""));
    let (mut from, mut to) = (Client::new(&one), Client::new(&two));
    assert_eq!(from.ask("BF.RESERVE f 0.01 30000000"), OK);
    assert_eq!(from.ask("BF.MADD f a b"), "*2\r\n:1\r\n:1\r\n");
    let before = used(&one);
    let all = chunks(&mut from, "BF", "f");
    assert!(all.len() >= 3 && all.iter().map(|(n, _)| *n).eq(1..=all.len() as i64));
    assert!(all[..all.len() - 1].iter().all(|(_, bytes)| bytes.len() > 16 << 20));
    assert_eq!(used(&one), before);
    for chunk in &all {
        assert_eq!(to.ask("BF.CARD f"), ":0\r\n");
        assert_eq!(load(&mut to, "BF", "f", chunk), OK);
    }
    assert_eq!(to.ask("BF.MEXISTS f a b c"), "*3\r\n:1\r\n:1\r\n:0\r\n");
    assert_eq!(used(&two), before);
    let bad = "-ERR received bad data\r\n";
    assert_eq!(load(&mut to, "BF", "f", &all[0]), "-ERR item exists\r\n");
    // In another order, twice, or of another name: it continues after that with the one that is next.
    assert_eq!(load(&mut to, "BF", "g", &all[1]), "-ERR not found\r\n");
    assert_eq!(load(&mut to, "BF", "g", &all[0]), OK);
    assert!(used(&two) > before + (30 << 20));
    assert_eq!(load(&mut to, "BF", "g", &all[2]), bad);
    assert_eq!(load(&mut to, "BF", "g", &(3, all[1].1.clone())), bad);
    assert_eq!(load(&mut to, "BF", "h", &all[1]), "-ERR not found\r\n");
    assert_eq!(load(&mut to, "BF", "g", &all[1]), OK);
    assert_eq!(load(&mut to, "BF", "g", &all[1]), bad);
    let mut damaged = all[2].clone();
    damaged.1[100] ^= 1;
    assert_eq!(load(&mut to, "BF", "g", &damaged), bad);
    // Another one begins: this one is dropped.
    assert_eq!(load(&mut to, "BF", "h", &all[0]), OK);
    assert_eq!(load(&mut to, "BF", "g", &all[2]), "-ERR not found\r\n");
    // Bounded: the budget is asked, and has all of it back when the connection ends.
    let mut another = Client::new(&two);
    assert_eq!(load(&mut another, "BF", "g", &all[0]), OK);
    let held = used(&two);
    drop(another);
    let per_load = held - used(&two);
    assert!(per_load > 30 << 20 && used(&two) == before + per_load);
    assert_eq!(to.ask("RESET"), "+RESET\r\n");
    assert_eq!(used(&two), before);
    let small = server("memory = \"20MiB\"");
    let refused = load(&mut Client::new(&small), "BF", "f", &all[0]);
    assert!(refused.starts_with("-ERR not enough memory: needs "), "{refused}");
    assert_eq!(used(&small), 0);
}

/// Filters that are asked for intervals move as a whole, and in chunks by the commands of `BF.*`.
#[test]
fn intervals_move() {
    let (one, two) = (server(""), server(""));
    let (mut from, mut to) = (Client::new(&one), Client::new(&two));
    let reserve = "LATELY.RESERVE hosts WINDOW 10m CAPACITY 1000 RANGE IP INTERVAL /24";
    assert_eq!(from.ask(reserve), OK);
    for n in 0..3_000 {
        let line = format!("LATELY.OBSERVE hosts 10.{}.{}.7", n / 250, n % 250);
        assert_eq!(from.ask(&line), ":1\r\n", "{n}");
    }
    let whole = dump(&mut from, "hosts");
    assert_eq!(ask_with(&mut to, "LATELY.RESTORE whole", &whole), OK);
    for chunk in chunks(&mut from, "BF", "hosts") {
        assert_eq!(load(&mut to, "CF", "chunks", &chunk), "-Invalid header\r\n");
        assert_eq!(load(&mut to, "BF", "chunks", &chunk), OK);
        assert_eq!(load(&mut to, "BF", "chunks", &chunk), "-ERR item exists\r\n");
        let other = server("seed = 9");
        let refused = load(&mut Client::new(&other), "BF", "chunks", &chunk);
        assert!(refused.contains("made with another seed"), "{refused}");
    }
    for name in ["whole", "chunks"] {
        for n in 0..3_000 {
            let (b, c) = (n / 250, n % 250);
            let block = format!("LATELY.RANGE {name} 10.{b}.{c}.0 10.{b}.{c}.255");
            assert_eq!(to.ask(&block), ":1\r\n", "{n}");
        }
        assert_eq!(to.ask(&format!("LATELY.RANGE {name} 11.0.0.0 11.0.0.255")), ":0\r\n");
        assert_eq!(to.ask(&format!("LATELY.SEEN {name} 10.1.2.7")), ":1\r\n");
        assert_eq!(to.ask(&format!("LATELY.OBSERVE {name} 10.1.2.7")), ":0\r\n");
    }
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    let refused = ask_with(&mut to, "LATELY.RESTORE damaged", &damaged);
    assert!(refused.starts_with("-ERR this is no dump of a filter"), "{refused}");
}

/// Bytes that cannot be taken up are refused at the first chunk, before others are sent and memory is taken: of another seed, or of
/// no dump.
#[test]
fn a_first_chunk_tells() {
    let one = server("memory = \"256MiB\"");
    let mut from = Client::new(&one);
    assert_eq!(from.ask("BF.RESERVE f 0.01 30000000"), OK);
    assert_eq!(from.ask("CF.RESERVE c 10000000"), OK);
    for (family, name) in [("BF", "f"), ("CF", "c")] {
        let all = chunks(&mut from, family, name);
        assert!(all.len() > 1, "{name}");
        let other = server("seed = 9\nmemory = \"256MiB\"");
        let mut to = Client::new(&other);
        let refused = load(&mut to, family, name, &all[0]);
        let said = "-ERR this filter was made with another seed (start with --seed 7)\r\n";
        assert_eq!((refused, used(&other)), (said.to_owned(), 0));
        // Nothing was begun.
        assert_eq!(load(&mut to, family, name, &all[1]), "-ERR not found\r\n");
        let mut again = Client::new(&one);
        for chunk in &all {
            assert_eq!(load(&mut again, family, "copy", chunk), OK);
        }
        assert_eq!(from.ask("DEL copy"), ":1\r\n");
    }
}

/// A transaction has all of its replies at once, so not many dumps are among them.
#[test]
fn dumps_in_a_transaction() {
    let server = server("");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("BF.RESERVE f 0.01 1000000"), OK);
    assert_eq!(client.ask("MULTI"), OK);
    for _ in 0..50 {
        assert_eq!(client.ask("LATELY.DUMP f"), "+QUEUED\r\n");
        assert_eq!(client.ask("BF.SCANDUMP f 0"), "+QUEUED\r\n");
    }
    let reply = client.feed(&request(&words("EXEC")));
    assert!(reply.len() > 1 << 20 && reply.len() < 4 << 20, "{}", reply.len());
    let error = b"-ERR the replies of this transaction are too large";
    assert_eq!(reply.windows(error.len()).filter(|found| found == error).count(), 99);
    assert!(dump(&mut client, "f").len() > 1 << 20);
}

/// What RedisBloom says, and where we must say something else.
#[test]
fn iterators_and_families() {
    let server = server("");
    let mut client = Client::new(&server);
    assert_eq!(client.ask("BF.RESERVE b 0.01 100"), OK);
    assert_eq!(client.ask("CF.RESERVE c 100"), OK);
    assert_eq!(client.ask("CF.ADD c x"), ":1\r\n");
    let bloom = chunks(&mut client, "BF", "b");
    let cuckoo = chunks(&mut client, "CF", "c");
    assert_eq!((bloom.len(), cuckoo.len()), (1, 1));
    let end = "*2\r\n:0\r\n$0\r\n\r\n";
    for (line, reply) in [
        ("BF.SCANDUMP b -1", end),
        ("BF.SCANDUMP b 9223372036854775807", end),
        ("BF.SCANDUMP b x", "-Second argument must be numeric\r\n"),
        ("BF.SCANDUMP none x", "-ERR not found\r\n"),
        ("CF.SCANDUMP none x", "-Invalid position\r\n"),
        ("CF.SCANDUMP c -1", "-Invalid position\r\n"),
        ("CF.SCANDUMP none 0", "-ERR not found\r\n"),
        ("BF.LOADCHUNK n x y", "-ERR Second argument must be numeric\r\n"),
        ("BF.LOADCHUNK n 1 y", "-ERR received bad data\r\n"),
        ("BF.LOADCHUNK n 0 y", "-ERR not found\r\n"),
        ("CF.LOADCHUNK n 0 y", "-Invalid position\r\n"),
        ("CF.LOADCHUNK n 1 y", "-Invalid header\r\n"),
        ("CF.LOADCHUNK n 2 y", "-ERR not found\r\n"),
    ] {
        assert_eq!(client.ask(line), reply, "{line}");
    }
    for line in ["BF.SCANDUMP c 0", "CF.SCANDUMP b 0", "BF.LOADCHUNK c 1 x", "CF.LOADCHUNK b 1 x"] {
        assert!(client.ask(line).starts_with("-WRONGTYPE "), "{line}");
    }
    assert_eq!(load(&mut client, "BF", "n", &cuckoo[0]), "-ERR received bad data\r\n");
    assert_eq!(load(&mut client, "CF", "n", &bloom[0]), "-Invalid header\r\n");
    assert_eq!(load(&mut client, "CF", "n", &cuckoo[0]), OK);
    assert_eq!(client.ask("CF.DEL n x"), ":1\r\n");
    // Another connection finds the end of a short dump, and continues with no other.
    let mut other = Client::new(&server);
    assert_eq!(other.ask("BF.SCANDUMP b 1"), end);
    assert_eq!(other.ask("BF.RESERVE long 0.01 30000000"), OK);
    let reply = other.ask("BF.SCANDUMP long 1");
    assert!(reply.starts_with("-ERR no dump of this filter is under way"), "{reply}");
}

/// Bytes that another server of Bloom filters has made.
#[test]
fn foreign_chunks() {
    let server = server("");
    let mut client = Client::new(&server);
    let header = b"\x04\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0\x02\0\0\0h\x05\0\0\0\0\0\0@+\0\0\0\0\0\0";
    assert_eq!(ask_with(&mut client, "BF.LOADCHUNK z 1", header), "-ERR received bad data\r\n");
    assert_eq!(client.ask("BF.EXISTS z x"), ":0\r\n");
}
