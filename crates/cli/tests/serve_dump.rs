//! Filters that move from one running server to another, and outlive it.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::io::{BufRead, BufReader, Write};
use support::Folder;

/// The reply to a command of these words: its first line, and the bulks in it.
fn ask(server: &Server, commands: &[&[&[u8]]]) -> Vec<(String, Vec<Vec<u8>>)> {
    let stream = server.connect();
    let (mut input, mut output) = (BufReader::new(&stream), &stream);
    let mut replies = Vec::new();
    for words in commands {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in *words {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        output.write_all(&bytes).unwrap();
        replies.push(reply(&mut input));
    }
    replies
}

fn line(input: &mut impl BufRead) -> String {
    let mut line = String::new();
    input.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn reply(input: &mut impl BufRead) -> (String, Vec<Vec<u8>>) {
    let (first, mut bulks) = (line(input), Vec::new());
    let mut left = first.strip_prefix('*').map_or(0, |count| count.parse().unwrap());
    let mut this = first.clone();
    loop {
        if let Some(length) = this.strip_prefix('$') {
            let mut bulk = vec![0; length.parse::<usize>().unwrap() + 2];
            input.read_exact(&mut bulk).unwrap();
            bulk.truncate(bulk.len() - 2);
            bulks.push(bulk);
        }
        if left == 0 {
            return (first, bulks);
        }
        left -= 1;
        this = line(input);
        if this.starts_with(':') {
            bulks.push(this.clone().into_bytes());
        }
    }
}

fn one(server: &Server, words: &[&[u8]]) -> (String, Vec<Vec<u8>>) {
    ask(server, &[words]).remove(0)
}

/// A filter of some megabytes, restored and changed; the process is killed as soon as that is answered.
#[test]
fn restored_and_killed() {
    let from = Server::start(&["--durability", "none", "--seed", "5"]);
    from.ask("BF.RESERVE f 1e-6 1000000 WINDOW 1h\r\nBF.MADD f a b");
    let (_, mut bulks) = one(&from, &[b"LATELY.DUMP", b"f"]);
    let dump = bulks.remove(0);
    assert!(dump.len() > 2 << 20, "{}", dump.len());
    for durability in ["everysec", "always"] {
        let folder = Folder::new();
        let dir = folder.path("state");
        let arguments = ["--durability", durability, "--dir", &dir, "--seed", "5"];
        let to = Server::start(&arguments);
        to.ask("BF.RESERVE g 1e-6 1000 WINDOW 1h\r\nBF.MADD g old");
        let replies = ask(
            &to,
            &[
                &[b"LATELY.RESTORE", b"f", &dump],
                &[b"BF.ADD", b"f", b"c"],
                &[b"LATELY.RESTORE", b"g", &dump, b"REPLACE"],
                &[b"BF.ADD", b"g", b"d"],
            ],
        );
        let lines: Vec<_> = replies.iter().map(|(line, _)| &line[..]).collect();
        assert_eq!(lines, ["+OK", ":1", "+OK", ":1"]);
        to.kill();
        let to = Server::start(&arguments);
        let found = to.ask("BF.MEXISTS f a b c d old\r\nBF.MEXISTS g a b c d old");
        let expected = [[1, 1, 1, 0, 0], [1, 1, 0, 1, 0]].map(|found| {
            let found: String = found.iter().map(|found| format!(":{found}\r\n")).collect();
            format!("*5\r\n{found}")
        });
        assert_eq!(found, expected.concat(), "{durability}");
        to.end();
    }
    // With another seed nothing of it would be recognized.
    let other = Server::start(&["--durability", "none", "--seed", "6"]);
    let (refused, _) = one(&other, &[b"LATELY.RESTORE", b"f", &dump]);
    assert_eq!(refused, "-ERR this filter was made with another seed (start with --seed 5)");
}

/// In chunks, which are larger than what a worker reads or sends at a time, while others use the filter.
#[test]
fn moved_in_chunks() {
    let [from, to] = [(); 2].map(|()| Server::start(&["--durability", "none", "--seed", "5"]));
    from.ask("BF.RESERVE f 0.01 30000000\r\nBF.MADD f a b");
    let stream = from.connect();
    let (mut input, mut output) = (BufReader::new(&stream), &stream);
    let (mut iterator, mut chunks) = ("0".to_owned(), Vec::new());
    loop {
        let scan = format!("BF.SCANDUMP f {iterator}\r\n");
        output.write_all(scan.as_bytes()).unwrap();
        let (_, mut bulks) = reply(&mut input);
        iterator = String::from_utf8(bulks.remove(0)).unwrap()[1..].to_owned();
        if iterator == "0" {
            break;
        }
        chunks.push((iterator.clone(), bulks.remove(0)));
        // Is not in it.
        from.ask(&format!("BF.ADD f late{iterator}"));
    }
    assert!(chunks.len() >= 3, "{}", chunks.len());
    let loads: Vec<[&[u8]; 4]> = chunks
        .iter()
        .map(|(iterator, chunk)| [&b"BF.LOADCHUNK"[..], b"f", iterator.as_bytes(), chunk])
        .collect();
    let loads: Vec<&[&[u8]]> = loads.iter().map(|words| &words[..]).collect();
    assert!(ask(&to, &loads).iter().all(|(line, _)| line == "+OK"));
    assert_eq!(to.ask("BF.MEXISTS f a b late1 c"), "*4\r\n:1\r\n:1\r\n:0\r\n:0\r\n");
}
