//! A server whose memory is nearly used, and where filters and keys come and go, starts after it was stopped at any
//! moment, and has forgotten nothing.

use super::super::Folder;
use super::crash::{Live, Model, NOW, Random, image};
use crate::command::Keeper;
use crate::store::Store;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CONFIG: &str = "
    memory = \"160KiB\"
    [keyspace]
    capacity = 500
    [[filter]]
    match = \"w*\"
    window = \"2s\"
    capacity = 1000
    fpr = 1e-6
    [[filter]]
    match = \"e*\"
    forever = true
    capacity = 1000
    fpr = 1e-6
";

const NAMES: [&str; 8] = ["w0", "w1", "w2", "w3", "e0", "e1", "e2", "e3"];
const WINDOW: u64 = 2_000;
/// Keys that are added to a filter at once.
const AT_ONCE: u64 = 100;

/// What was answered.
#[derive(Clone, Default)]
struct Answered {
    /// Keys of filters, and when they were last seen.
    keys: HashMap<(usize, u64), u64>,
    /// When filters are dropped.
    expires: HashMap<usize, u64>,
    /// When keys of `SET` end.
    ends: HashMap<u64, u64>,
    /// Fresh keys for which there was no memory.
    refused: u64,
}

impl Answered {
    fn drop_filter(&mut self, filter: usize) {
        self.keys.retain(|(other, _), _| *other != filter);
        self.expires.remove(&filter);
    }

    /// Some command.
    fn go_on(&mut self, live: &mut Live, random: &mut Random) {
        live.model.now += random.below(40);
        let now = live.model.now;
        let over: Vec<_> = self.expires.iter().filter(|(_, end)| **end <= now).collect();
        let over: Vec<_> = over.into_iter().map(|(filter, _)| *filter).collect();
        over.into_iter().for_each(|filter| self.drop_filter(filter));
        let filter = random.below(NAMES.len() as u64) as usize;
        let name = NAMES[filter];
        match random.below(40) {
            0 | 1 => {
                live.ask(&format!("DEL {name}"));
                self.drop_filter(filter);
            }
            2 => {
                let end = random.below(1_500) + 1;
                if live.ask(&format!("PEXPIRE {name} {end}")) == ":1\r\n" {
                    self.expires.insert(filter, now + end);
                }
            }
            3 => live.server.store.tidy(now),
            4..=20 => {
                let (key, ttl) = (random.below(1_000_000), 500 + 40 * random.below(20));
                match live.ask(&format!("SET k{key} 1 NX PX {ttl}")).as_str() {
                    "+OK\r\n" => drop(self.ends.insert(key, now + ttl)),
                    reply => self.refused += u64::from(reply.starts_with('-')),
                }
            }
            _ => {
                let from = random.below(40) * AT_ONCE;
                let line: String = (from..from + AT_ONCE).map(|key| format!(" {key}")).collect();
                let reply = live.ask(&format!("BF.MADD {name}{line}"));
                // An array, which ends at the first error.
                for (key, reply) in (from..).zip(reply.lines().skip(1)) {
                    match reply {
                        ":0" | ":1" => drop(self.keys.insert((filter, key), now)),
                        _ => self.refused += 1,
                    }
                }
            }
        }
        live.folder.commit().unwrap();
    }

    /// Is everything there that was answered and has not expired?
    fn check(&self, live: &mut Live) {
        let now = live.model.now;
        for (&(filter, key), &at) in &self.keys {
            let is_over = self.expires.get(&filter).is_some_and(|end| *end <= now);
            if !is_over && (filter >= 4 || now - at <= WINDOW) {
                let reply = live.ask(&format!("BF.EXISTS {} {key}", NAMES[filter]));
                assert_eq!(reply, ":1\r\n", "{} {key}", NAMES[filter]);
            }
        }
        for (key, _) in self.ends.iter().filter(|(_, end)| **end >= now) {
            assert_eq!(live.ask(&format!("EXISTS k{key}")), ":1\r\n", "{key}");
        }
    }
}

/// Says so when it is dropped, also if a check fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Saves again and again, by another thread, so that whoever finds no memory can wait until a filter was saved.
fn save_until(is_over: &AtomicBool, (store, folder): (&Store, &Folder), gate: &Mutex<()>) {
    while !is_over.load(Ordering::Relaxed) {
        let mut working = Some(gate.lock().unwrap());
        let mut between = || {
            // Whoever has the gate finds the folder as it is at this moment.
            working = None;
            std::thread::sleep(Duration::from_micros(20));
            working = Some(gate.lock().unwrap());
        };
        folder.save_at(store, NOW, &mut between).unwrap();
        drop(working);
        std::thread::sleep(Duration::from_micros(20));
    }
}

#[test]
fn it_starts_where_memory_was_nearly_used() {
    let mut random = Random::new(5);
    let mut place = tempfile::tempdir().unwrap();
    let mut live = Live::open_as(CONFIG, place.path(), true, Model::begin());
    let mut answered = Answered::default();
    let mut starts = 0;
    for _ in 0..15 {
        let (server, folder) = (Arc::clone(&live.server), Arc::clone(&live.folder));
        let (is_over, gate, mut images) = (AtomicBool::new(false), Mutex::new(()), Vec::new());
        std::thread::scope(|scope| {
            let _ends = Ends(&is_over);
            scope.spawn(|| save_until(&is_over, (&server.store, &folder), &gate));
            for _ in 0..150 {
                answered.go_on(&mut live, &mut random);
                if random.below(40) == 0 {
                    let parked = gate.lock().unwrap();
                    images.push((image(place.path()), live.model.clone(), answered.clone()));
                    drop(parked);
                }
            }
        });
        drop((server, folder));
        answered.check(&mut live);
        for (image, model, then) in images {
            let mut after = Live::open_as(CONFIG, image.path(), true, model);
            then.check(&mut after);
            starts += 1;
            (live, place, answered) = (after, image, then);
        }
    }
    assert!(starts > 20 && answered.refused > 20, "{starts} {}", answered.refused);
}
