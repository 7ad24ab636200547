//! Commands of all kinds come while snapshots are taken piece by piece, and the server stops at any moment: what it
//! remembers then is what an exact model does.

use super::super::Folder;
use crate::auth::Auth;
use crate::command::{Keeper, Server, Session, Stats, Workspace};
use crate::config::Config;
use crate::store::{Clock, Store};
use lately::Digester;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(super) const NOW: u64 = 1_800_000_000_000;
const SEED: u64 = 11;

/// Tables of several pieces each, which tell time exactly.
const CONFIG: &str = "
    allow_flush = true
    [keyspace]
    capacity = 30000
    forever = true
    [[filter]]
    match = \"always\"
    window = \"5s\"
    capacity = 30000
    fpr = 1e-9
    slack = \"0s\"
    [[filter]]
    match = \"fresh\"
    window = \"5s\"
    capacity = 30000
    fpr = 1e-9
    renew = \"fresh\"
    slack = \"0s\"
    [[filter]]
    match = \"last\"
    last = 50
    fpr = 1e-9
    [[filter]]
    match = \"ever\"
    forever = true
    capacity = 60000
    fpr = 1e-9
    [[filter]]
    match = \"members\"
    window = \"5s\"
    capacity = 30000
    fpr = 1e-9
    slack = \"0s\"
    set = true
    [[filter]]
    match = \"cuckoo\"
    forever = true
    capacity = 30000
    fpr = 1e-9
";

/// Numbers that look random, the same each time.
pub(super) struct Random(Digester, u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Digester::new(seed), 0)
    }

    /// One below this.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.1 += 1;
        self.0.digest(&self.1.to_le_bytes()).lo() % end
    }
}

/// Filters of the model: what they do with a key that is there, and how one is added to, asked, and taken out.
struct Kind {
    name: &'static str,
    renews: bool,
    reach: Reach,
    add: &'static str,
    has: &'static str,
    take_out: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Within,
    Last,
    Ever,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "always",
        renews: true,
        reach: Reach::Within,
        add: "BF.ADD",
        has: "BF.EXISTS",
        take_out: Some("LATELY.FORGET"),
    },
    Kind {
        name: "fresh",
        renews: false,
        reach: Reach::Within,
        add: "LATELY.OBSERVE",
        has: "BF.EXISTS",
        take_out: Some("LATELY.FORGET"),
    },
    Kind {
        name: "last",
        renews: true,
        reach: Reach::Last,
        add: "BF.ADD",
        has: "BF.EXISTS",
        take_out: Some("LATELY.FORGET"),
    },
    Kind {
        name: "ever",
        renews: false,
        reach: Reach::Ever,
        add: "BF.ADD",
        has: "BF.EXISTS",
        take_out: None,
    },
    Kind {
        name: "members",
        renews: true,
        reach: Reach::Within,
        add: "SADD",
        has: "SISMEMBER",
        take_out: Some("SREM"),
    },
    Kind {
        name: "cuckoo",
        renews: false,
        reach: Reach::Ever,
        add: "CF.ADDNX",
        has: "CF.EXISTS",
        take_out: Some("CF.DEL"),
    },
];

const WINDOW: u64 = 5_000;
const LAST: u64 = 50;
/// Keys are numbers below this.
const KEYS: u64 = 90;
/// Times to live; the last one is for ever.
const LIVES: [Option<u64>; 4] = [Some(3_000), Some(8_000), Some(20_000), None];

/// What a filter has to remember.
#[derive(Clone, Default)]
struct Filter {
    /// When each key was marked.
    at: HashMap<u64, u64>,
    arrivals: u64,
    expires: Option<u64>,
}

/// What a server has to remember.
#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) now: u64,
    /// When each key of `SET` ends.
    ends: HashMap<u64, u64>,
    filters: HashMap<&'static str, Filter>,
    /// Keys of `SET` that were taken out since this was emptied.
    taken_out: Vec<u64>,
}

impl Model {
    pub(super) fn begin() -> Self {
        Self { now: NOW, ..Self::default() }
    }

    fn has_key(&self, key: u64) -> bool {
        self.ends.get(&key).is_some_and(|&end| self.now <= end)
    }

    fn filter(&self, kind: &Kind) -> Option<&Filter> {
        let found = self.filters.get(kind.name)?;
        found.expires.is_none_or(|end| end > self.now).then_some(found)
    }

    fn has(&self, kind: &Kind, key: u64) -> bool {
        let Some(filter) = self.filter(kind) else { return false };
        filter.at.get(&key).is_some_and(|at| match kind.reach {
            Reach::Within => self.now - at <= WINDOW,
            Reach::Last => filter.arrivals + 1 - at <= LAST,
            Reach::Ever => true,
        })
    }

    /// The filter, which is made if it is not there.
    fn filter_or_new(&mut self, kind: &Kind) -> &mut Filter {
        if self.filter(kind).is_none() {
            self.filters.insert(kind.name, Filter::default());
        }
        self.filters.entry(kind.name).or_default()
    }

    fn arrive(&mut self, kind: &Kind, key: u64) {
        let (now, is_known) = (self.now, self.has(kind, key));
        let filter = self.filter_or_new(kind);
        filter.arrivals += 1;
        if !is_known || kind.renews {
            let at = if kind.reach == Reach::Last { filter.arrivals } else { now };
            filter.at.insert(key, at);
        }
    }
}

/// A server that keeps what it remembers in a folder, a client of it, and the model.
pub(super) struct Live {
    pub(super) server: Arc<Server>,
    pub(super) folder: Arc<Folder>,
    session: Session,
    work: Workspace,
    pub(super) model: Model,
}

impl Live {
    /// Takes up what the folder holds, as a server does at its start. With a journal or without one.
    fn open(path: &Path, has_journal: bool, model: Model) -> Self {
        Self::open_as(CONFIG, path, has_journal, model)
    }

    /// The same, with this configuration.
    pub(super) fn open_as(config: &str, path: &Path, has_journal: bool, model: Model) -> Self {
        let config = Config::parse(config).unwrap();
        let store = Store::new(SEED, config.memory, 1_000, config.templates, config.keys);
        let folder = Arc::new(Folder::open(path, NOW).unwrap());
        let saved = folder.look().unwrap();
        let loaded = store.load(|| {
            if let Some(saved) = &saved {
                folder.restore(saved, &store).map_err(|fault| fault.to_string())?;
            }
            folder.replay(saved.as_ref(), false, &store)
        });
        let (recovered, _) = loaded.unwrap();
        assert_eq!((recovered.torn, recovered.damaged), (0, 0));
        if has_journal {
            folder.begin_journal(&store.changes, SEED, false).unwrap();
        }
        let server = Server {
            store,
            clock: Clock::new(NOW, 0, 0),
            auth: Auth::new(crate::users::Users::of_password(None)),
            allow_flush: true,
            stats: Stats::begun(NOW),
            keeper: Arc::clone(&folder) as Arc<dyn Keeper>,
        };
        let session = Session::new(&server, 1, None);
        let server = Arc::new(server);
        Self { server, folder, session, work: Workspace::default(), model }
    }

    pub(super) fn ask(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        let mut out = Vec::new();
        self.session.feed(&self.server, &mut self.work, self.model.now, &bytes, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Asks, and compares.
    fn expect(&mut self, line: &str, reply: &str) {
        assert_eq!(self.ask(line), format!("{reply}\r\n"), "{line}");
    }

    fn expect_number(&mut self, line: &str, number: impl Into<i64>) {
        let number = number.into();
        self.expect(line, &format!(":{number}"));
    }

    /// Some command on a key of `SET`.
    fn do_to_key(&mut self, random: &mut Random) {
        let (key, now) = (random.below(KEYS), self.model.now);
        let life = LIVES[random.below(LIVES.len() as u64) as usize];
        let (is_there, end) = (self.model.has_key(key), life.map_or(u64::MAX, |ttl| now + ttl));
        match (random.below(6), life) {
            (0 | 1, _) => {
                let line =
                    life.map_or(format!("SETNX {key} 1"), |ttl| format!("SET {key} 1 NX PX {ttl}"));
                let reply = match (life, is_there) {
                    (None, _) => format!(":{}", u8::from(!is_there)),
                    (_, true) => "$-1".into(),
                    (_, false) => "+OK".into(),
                };
                self.expect(&line, &reply);
                if !is_there {
                    self.model.ends.insert(key, end);
                }
            }
            (2, _) => {
                let line =
                    life.map_or(format!("SET {key} 1"), |ttl| format!("SET {key} 1 PX {ttl}"));
                self.expect(&line, "+OK");
                let before = if is_there { self.model.ends[&key] } else { 0 };
                self.model.ends.insert(key, end.max(before));
            }
            (3, _) => {
                self.expect_number(&format!("DEL {key}"), is_there);
                self.model.ends.remove(&key);
                self.model.taken_out.push(key);
            }
            (_, Some(ttl)) => {
                self.expect_number(&format!("PEXPIRE {key} {ttl}"), is_there);
                if is_there {
                    self.model.ends.insert(key, end);
                }
            }
            (_, None) => {
                let has_end = is_there && self.model.ends[&key] != u64::MAX;
                self.expect_number(&format!("PERSIST {key}"), has_end);
                if has_end {
                    self.model.ends.insert(key, end);
                }
            }
        }
    }

    /// Some command on a filter.
    fn do_to_filter(&mut self, random: &mut Random) {
        let kind = &KINDS[random.below(KINDS.len() as u64) as usize];
        let (key, name) = (random.below(KEYS), kind.name);
        let (is_there, has) = (self.model.filter(kind).is_some(), self.model.has(kind, key));
        match random.below(60) {
            0 => {
                self.expect_number(&format!("DEL {name}"), is_there);
                self.model.filters.remove(name);
            }
            1 => {
                let end = 500 + random.below(3_000);
                self.expect_number(&format!("PEXPIRE {name} {end}"), is_there);
                let now = self.model.now;
                self.model.filters.entry(name).and_modify(|filter| {
                    if is_there {
                        filter.expires = Some(now + end);
                    }
                });
            }
            2 => {
                let has_end = self.model.filter(kind).is_some_and(|found| found.expires.is_some());
                self.expect_number(&format!("PERSIST {name}"), has_end);
                if has_end {
                    self.model.filter_or_new(kind).expires = None;
                }
            }
            3..=9 if is_there && kind.take_out.is_none_or(|word| word == "LATELY.FORGET") => {
                self.expect(&format!("LATELY.REMEMBER {name} {key}"), "+OK");
                let now = self.model.now;
                let filter = self.model.filter_or_new(kind);
                let at = if kind.reach == Reach::Last { filter.arrivals } else { now };
                filter.at.insert(key, at);
            }
            10..=20 if is_there && kind.take_out.is_some() => {
                let take_out = kind.take_out.unwrap_or_default();
                self.expect_number(&format!("{take_out} {name} {key}"), has);
                self.model.filter_or_new(kind).at.remove(&key);
            }
            21..=25 if kind.add == "BF.ADD" => {
                let mut replies = String::from("*3");
                for key in [key, key + 1, key] {
                    replies += &format!("\r\n:{}", u8::from(!self.model.has(kind, key)));
                    self.model.arrive(kind, key);
                }
                self.expect(&format!("BF.MADD {name} {key} {} {key}", key + 1), &replies);
            }
            _ => {
                // `CF.EXISTS` and the like of a name that is not there.
                self.expect_number(&format!("{} {name} {key}", kind.has), has);
                self.expect_number(&format!("{} {name} {key}", kind.add), !has);
                self.model.arrive(kind, key);
            }
        }
    }

    /// Some commands, after which their replies leave.
    fn go_on(&mut self, random: &mut Random) {
        for _ in 0..random.below(8) {
            self.model.now += random.below(4) * random.below(60);
            match random.below(200) {
                0 => {
                    self.expect("FLUSHALL", "+OK");
                    self.model.ends.clear();
                    self.model.filters.clear();
                    self.model.taken_out.extend(0..KEYS);
                }
                1..=6 => self.server.store.tidy(self.model.now),
                7..=90 => self.do_to_filter(random),
                _ => self.do_to_key(random),
            }
        }
        self.folder.commit().unwrap();
    }

    /// Is everything as the model says?
    fn check(&mut self) {
        for key in 0..=KEYS {
            let end = self.model.ends.get(&key).copied().filter(|_| self.model.has_key(key));
            let left = match end {
                Some(u64::MAX) => -1,
                Some(end) => (end - self.model.now) as i64,
                None => -2,
            };
            self.expect_number(&format!("PTTL {key}"), left);
            for kind in &KINDS {
                let has = self.model.has(kind, key);
                self.expect_number(&format!("{} {} {key}", kind.has, kind.name), has);
            }
        }
    }
}

/// The folder as it is at this moment, as a process that is killed leaves it.
pub(super) fn image(path: &Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    for file in fs::read_dir(path).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), image.path().join(file.file_name())).unwrap();
    }
    image
}

/// With a journal: whenever it stops, the server remembers exactly what was answered.
#[test]
fn stopped_at_any_moment_of_a_save() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut place = tempfile::tempdir().unwrap();
        let mut live = Live::open(place.path(), true, Model::begin());
        let mut pieces = 0;
        for _ in 0..12 {
            let (server, folder) = (Arc::clone(&live.server), Arc::clone(&live.folder));
            let (now, mut images) = (live.model.now, Vec::new());
            let mut between = || {
                live.go_on(&mut random);
                pieces += 1;
                if random.below(25) == 0 {
                    images.push((image(place.path()), live.model.clone()));
                }
            };
            folder.save_at(&server.store, now, &mut between).unwrap();
            drop((server, folder));
            live.check();
            let chosen = random.below(2 * images.len() as u64 + 1) as usize;
            for (number, (image, model)) in images.into_iter().enumerate() {
                let mut after = Live::open(image.path(), true, model);
                after.check();
                if number == chosen {
                    (live, place) = (after, image);
                }
            }
        }
        assert!(pieces > 300, "{pieces}");
    }
}

/// Without a journal: what a snapshot holds is what there was at one moment while it was taken. So a key is there that was
/// before it, or came before its keys were held, and was not taken out meanwhile, whatever other life it was given; and one is
/// not that never was.
#[test]
fn a_snapshot_misses_no_key_that_stays() {
    let mut random = Random::new(7);
    let place = tempfile::tempdir().unwrap();
    let mut live = Live::open(place.path(), false, Model::begin());
    let mut moved = 0;
    for _ in 0..40 {
        let (server, folder) = (Arc::clone(&live.server), Arc::clone(&live.folder));
        let before = live.model.clone();
        // The shortest life that each key had meanwhile.
        let mut ends = before.ends.clone();
        live.model.taken_out.clear();
        let mut between = || {
            if random.below(3) == 0 {
                live.go_on(&mut random);
            }
            for (key, end) in &live.model.ends {
                let least = ends.entry(*key).or_insert(*end);
                *least = (*least).min(*end);
            }
        };
        folder.save_at(&server.store, before.now, &mut between).unwrap();
        drop((server, folder));
        live.check();
        let image = image(place.path());
        let mut after = Live::open(image.path(), false, live.model.clone());
        for key in 0..KEYS {
            let is_there = after.ask(&format!("EXISTS {key}")) == ":1\r\n";
            let stays = before.has_key(key)
                && ends[&key] > live.model.now
                && !live.model.taken_out.contains(&key);
            assert!(is_there || !stays, "{key}");
            assert!(!is_there || ends.contains_key(&key), "{key}");
            moved += u32::from(stays && before.ends[&key] != live.model.ends[&key]);
        }
    }
    assert!(moved > 60, "{moved}");
}
