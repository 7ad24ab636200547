//! Replies are the same however the bytes are cut, and whatever the bytes are.

use super::{Client, request, server, words};
use proptest::prelude::*;

const CONFIG: &str = "
    memory = \"8MiB\"
    [keyspace]
    capacity = 1000
    [[filter]]
    match = \"w*\"
    window = \"1m\"
    capacity = 100
    [[filter]]
    match = \"n*\"
    last = 50
    [[filter]]
    match = \"r*\"
    window = \"1m\"
    capacity = 100
    range = \"number\"
";

fn command() -> impl Strategy<Value = Vec<u8>> {
    let key = prop::sample::select(vec!["a", "b", "17", "18", "\"\""]);
    let name = prop::sample::select(vec!["w", "n", "f", "x", "r"]);
    let line = prop::sample::select(vec![
        "BF.ADD N K",
        "BF.ADD N K",
        "BF.MADD N K K K",
        "BF.EXISTS N K",
        "BF.MEXISTS N K K",
        "SET K 1 NX EX 5",
        "SET K 1 NX EX 5",
        "SET K 1 NX PX 100",
        "SET K 1 EX 7",
        "LATELY.OBSERVE N K",
        "LATELY.SEEN N K",
        "LATELY.SEEN N K WITHIN 1s",
        "LATELY.LASTSEEN N K",
        "LATELY.MSEEN N ITEMS K K",
        "LATELY.RANGE N K K",
        "LATELY.RANGE N 1 20 WITHIN 1s CHANCE",
        "LATELY.RESERVE N RANGE NUMBER INTERVAL 9 CAPACITY 50",
        "LATELY.MOBSERVE N ITEMS K K",
        "LATELY.REMEMBER N K",
        "EXISTS K N",
        "DEL N",
        "TTL K",
        "BF.CARD N",
        "BF.INFO N",
        "MULTI",
        "EXEC",
        "DISCARD",
        "HELLO 3",
        "HELLO 2",
        "BF.RESERVE N 0.01 3 NONSCALING",
        "BF.INSERT N NOCREATE ITEMS K K",
        "PING",
        "NOSUCH K",
        "BF.ADD",
        "SCAN 0",
        "LATELY.INFO N",
        "BF.RESERVE N 0.1 9 WINDOW 10 RENEW FRESH",
    ]);
    (line, name, prop::collection::vec(key, 3)).prop_map(|(line, name, keys)| {
        let mut keys = keys.iter().cycle();
        let words = words(line).into_iter().map(|word| match &word[..] {
            b"N" => name.as_bytes().to_vec(),
            b"K" => words(keys.next().unwrap()).remove(0),
            _ => word,
        });
        request(&words.collect::<Vec<_>>())
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let junk =
        prop::collection::vec(prop::sample::select(b"*$-019\r\n\"' pINGx\0\xff".to_vec()), 0..8);
    let piece = prop_oneof![40 => command(), 1 => junk];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// All replies to bytes that come in pieces; what a session does not take is given again with what follows.
fn replies(bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let server = server(CONFIG);
    let mut client = Client::new(&server);
    let (mut from, mut end, mut out, mut cuts) = (0, 0, Vec::new(), cuts.iter());
    while end < bytes.len() {
        end = (end + cuts.next().copied().unwrap_or(bytes.len())).min(bytes.len());
        let fed = client.session.feed(
            client.server,
            &mut client.work,
            client.now,
            &bytes[from..end],
            &mut out,
        );
        from += fed.consumed;
        if fed.is_over {
            break;
        }
    }
    out
}

proptest! {
    #[test]
    fn replies_are_equal_for_any_cut(bytes in bytes(), cuts in prop::collection::vec(1usize..60, 0..200)) {
        let whole = replies(&bytes, &[]);
        prop_assert_eq!(&replies(&bytes, &cuts), &whole);
        prop_assert_eq!(&replies(&bytes, &vec![1; bytes.len()]), &whole);
    }

    /// Whatever words a command has, it gives exactly one reply and nobody panics.
    #[test]
    fn any_words_give_one_reply(
        at in 0..super::super::table::COMMANDS.len(),
        words in prop::collection::vec(prop_oneof![
            Just(b"f".to_vec()), Just(b"0".to_vec()), Just(b"1".to_vec()), Just(b"-1".to_vec()),
            Just(b"9223372036854775807".to_vec()), Just(b"NX".to_vec()), Just(b"EX".to_vec()), Just(b"PXAT".to_vec()),
            Just(b"0.5".to_vec()), Just(b"nan".to_vec()), Just(b"ITEMS".to_vec()), Just(b"WINDOW".to_vec()),
            Just(b"LAST".to_vec()), Just(b"AT".to_vec()), Just(b"CAPACITY".to_vec()), Just(b"SLACK".to_vec()),
            Just(b"MEMORY".to_vec()), Just(b"RANGE".to_vec()), Just(b"NUMBER".to_vec()), Just(b"INTERVAL".to_vec()),
            Just(b"CHANCE".to_vec()), Just(b"WITHIN".to_vec()), Just(b"r".to_vec()), Just(b"\xff\r\n".to_vec()), Just(Vec::new()),
        ], 0..8),
    ) {
        let server = server(CONFIG);
        let mut client = Client::new(&server);
        let name = super::super::table::COMMANDS[at].name;
        prop_assume!(!["quit", "hello"].contains(&name));
        let mut all = vec![name.as_bytes().to_vec()];
        all.extend(words);
        let out = client.feed(&request(&all));
        let one = reply_length(&out, 0);
        prop_assert_eq!(one, Some(out.len()), "{}: {:?}", name, String::from_utf8_lossy(&out));
        prop_assert_eq!(client.feed(b"*1\r\n$5\r\nRESET\r\n"), b"+RESET\r\n".to_vec());
        prop_assert!(server.store.budget.used() <= server.store.budget.limit());
    }
}

/// Where the reply at this place ends.
fn reply_length(out: &[u8], from: usize) -> Option<usize> {
    let end = from + out.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
    let count = || std::str::from_utf8(&out[from + 1..end]).ok()?.parse::<i64>().ok();
    let mut at = end + 2;
    match out[from] {
        b'$' => Some(if count()? < 0 { at } else { at + count()? as usize + 2 })
            .filter(|&at| at <= out.len()),
        b'*' => {
            for _ in 0..count()?.max(0) {
                at = reply_length(out, at)?;
            }
            Some(at)
        }
        b'+' | b'-' | b':' => Some(at),
        _ => None,
    }
}
