//! The commands by name.

use super::run::Part;
use super::{
    Call, Words, admin, bloom, connection, cuckoo, expire, keyspace, lately, multi, sets, transfer,
};
use crate::users::Right;

/// A command that is known.
#[derive(Debug)]
pub(crate) struct Command {
    /// In small letters, as errors show it.
    pub(crate) name: &'static str,
    /// Words of the command, its name included; negative: at least so many.
    pub(crate) arity: i32,
    /// What a user must at least be allowed.
    pub(crate) needs: Right,
    pub(crate) names: Names,
    pub(crate) action: Action,
    /// It may be given before the password.
    pub(crate) is_open: bool,
    /// It is done at once while a transaction is gathered.
    pub(crate) ends_queue: bool,
    /// It may change what is remembered.
    pub(crate) changes: bool,
}

/// Which words of a command are names of filters or keys of `SET`. A user must be allowed all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// None. What such a command tells of names, it tells only of those that the user may use.
    Free,
    /// The first behind the command, if it is there: that of a filter, as a rule, which comes again and again.
    First,
    /// The first behind the command: a key of `SET`, as a rule, and each time another one.
    Key,
    /// The second behind the command, if it is there.
    Second,
    /// All behind the command.
    Each,
    /// It is about all names that there are.
    Every,
}

/// How a command is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// By itself.
    Call(fn(&mut Call<'_>)),
    /// As a part of a run, unless there is something special about it.
    Run(fn(Words<'_>, u64) -> Option<Part>, fn(&mut Call<'_>)),
    /// `EXEC`, which does others.
    Execute,
}

impl Command {
    const fn new(
        name: &'static str,
        arity: i32,
        needs: Right,
        names: Names,
        action: Action,
    ) -> Self {
        let (is_open, ends_queue, changes) = (false, false, false);
        Self { name, arity, needs, names, action, is_open, ends_queue, changes }
    }

    const fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    const fn changes(self) -> Self {
        Self { changes: true, ..self }
    }

    const fn ends_queue(self) -> Self {
        Self { ends_queue: true, ..self }
    }

    /// May it have so many words?
    pub(crate) fn takes(&self, words: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { words >= least } else { words == least }
    }
}

use Action::{Call as By, Execute, Run};
use Names::{Each, Every, First, Free, Key, Second};
use Right::{Admin, Read, Write};

const fn c(
    name: &'static str,
    arity: i32,
    needs: Right,
    names: Names,
    call: fn(&mut Call<'_>),
) -> Command {
    Command::new(name, arity, needs, names, By(call))
}

/// Commands that would need the values that are not kept; a count of words is not looked at.
const fn v(name: &'static str) -> Command {
    Command::new(name, -1, Read, Free, By(keyspace::no_values))
}

/// All commands, by name.
pub(crate) const COMMANDS: &[Command] = &[
    c("acl", -2, Read, Free, connection::acl),
    v("append"),
    c("auth", -2, Read, Free, connection::auth).open(),
    c("bf.add", 3, Write, First, bloom::add).run(bloom::add_part).changes(),
    c("bf.card", 2, Read, First, bloom::card),
    c("bf.exists", 3, Read, First, bloom::exists).run(bloom::exists_part),
    c("bf.info", -2, Read, First, bloom::info),
    c("bf.insert", -4, Write, First, bloom::insert).run(bloom::insert_part).changes(),
    c("bf.loadchunk", 4, Admin, First, transfer::load_chunk).changes(),
    c("bf.madd", -3, Write, First, bloom::add).run(bloom::madd_part).changes(),
    c("bf.mexists", -3, Read, First, bloom::exists).run(bloom::mexists_part),
    c("bf.reserve", -4, Admin, First, bloom::reserve).changes(),
    c("bf.scandump", 3, Admin, First, transfer::scan_dump),
    c("bgsave", -1, Admin, Free, admin::background_save),
    v("bitcount"),
    v("blpop"),
    v("brpop"),
    c("cf.add", 3, Write, First, cuckoo::add).changes(),
    c("cf.addnx", 3, Write, First, cuckoo::add).changes(),
    c("cf.count", 3, Read, First, cuckoo::count),
    c("cf.del", 3, Write, First, cuckoo::delete).changes(),
    c("cf.exists", 3, Read, First, bloom::exists).run(cuckoo::exists_part),
    c("cf.info", 2, Read, First, cuckoo::info),
    c("cf.insert", -4, Write, First, cuckoo::insert).changes(),
    c("cf.insertnx", -4, Write, First, cuckoo::insert).changes(),
    c("cf.loadchunk", 4, Admin, First, transfer::load_chunk).changes(),
    c("cf.mexists", -3, Read, First, bloom::exists).run(cuckoo::mexists_part),
    c("cf.reserve", -3, Admin, First, cuckoo::reserve).changes(),
    c("cf.scandump", 3, Admin, First, transfer::scan_dump),
    c("client", -2, Read, Free, connection::client),
    c("cluster", -2, Read, Free, admin::no_cluster),
    c("command", -1, Read, Free, admin::command),
    c("config", -2, Admin, Free, admin::config),
    c("dbsize", 1, Read, Free, admin::database_size),
    v("decr"),
    v("decrby"),
    c("del", -2, Write, Each, keyspace::delete).changes(),
    c("discard", 1, Read, Free, multi::discard).ends_queue(),
    c("echo", 2, Read, Free, connection::echo),
    v("eval"),
    v("evalsha"),
    Command::new("exec", 1, Read, Free, Execute).ends_queue(),
    c("exists", -2, Read, Each, keyspace::exists),
    c("expire", -3, Write, Key, expire::expire).changes(),
    c("expireat", -3, Write, Key, expire::expire).changes(),
    c("expiretime", 2, Read, Key, keyspace::ttl),
    c("flushall", -1, Admin, Every, admin::flush).changes(),
    c("flushdb", -1, Admin, Every, admin::flush).changes(),
    c("get", -1, Read, Key, keyspace::no_values),
    v("getbit"),
    v("getdel"),
    v("getex"),
    v("getrange"),
    v("getset"),
    c("hello", -1, Read, Free, connection::hello).open(),
    v("hget"),
    v("hgetall"),
    v("hset"),
    v("incr"),
    v("incrby"),
    v("incrbyfloat"),
    c("info", -1, Read, Free, admin::info),
    c("keys", 2, Read, Free, admin::keys),
    c("lastsave", 1, Read, Free, admin::last_save),
    c("lately.dump", 2, Admin, First, transfer::dump),
    c("lately.forget", 3, Write, First, lately::forget).changes(),
    c("lately.info", -1, Read, First, lately::info),
    c("lately.lastseen", 3, Read, First, lately::last_seen),
    c("lately.mobserve", -4, Write, First, lately::observe_many)
        .run(lately::mobserve_part)
        .changes(),
    c("lately.mseen", -4, Read, First, lately::seen_many).run(lately::mseen_part),
    c("lately.observe", -3, Write, First, lately::observe).run(lately::observe_part).changes(),
    c("lately.range", -4, Read, First, lately::range),
    c("lately.remember", -3, Write, First, lately::remember).changes(),
    c("lately.reserve", -2, Admin, First, lately::reserve).changes(),
    c("lately.restore", -3, Admin, First, transfer::restore).changes(),
    c("lately.seen", -3, Read, First, lately::seen).run(lately::seen_part),
    v("llen"),
    v("lpop"),
    v("lpush"),
    v("lrange"),
    c("memory", -2, Read, Second, admin::memory),
    v("mget"),
    c("module", -2, Read, Free, admin::module),
    v("mset"),
    c("multi", 1, Read, Free, multi::multi).ends_queue(),
    v("object"),
    c("persist", 2, Write, Key, keyspace::persist).changes(),
    c("pexpire", -3, Write, Key, expire::expire).changes(),
    c("pexpireat", -3, Write, Key, expire::expire).changes(),
    c("pexpiretime", 2, Read, Key, keyspace::ttl),
    v("pfadd"),
    v("pfcount"),
    c("ping", -1, Read, Free, connection::ping),
    c("psetex", 4, Write, Key, keyspace::set_lasting).changes(),
    v("psubscribe"),
    c("pttl", 2, Read, Key, keyspace::ttl),
    v("publish"),
    c("quit", -1, Read, Free, connection::quit).open().ends_queue(),
    c("readonly", 1, Read, Free, admin::no_cluster),
    c("readwrite", 1, Read, Free, admin::no_cluster),
    c("reset", 1, Read, Free, connection::reset).open().ends_queue(),
    c("role", 1, Read, Free, admin::role),
    v("rpop"),
    v("rpush"),
    c("sadd", -3, Write, First, sets::add).changes(),
    c("save", 1, Admin, Free, admin::save),
    c("scan", -2, Read, Free, admin::scan),
    c("scard", 2, Read, First, sets::count),
    v("script"),
    c("select", 2, Read, Free, connection::select),
    c("set", -3, Write, Key, keyspace::set).run(keyspace::set_part).changes(),
    v("setbit"),
    c("setex", 4, Write, Key, keyspace::set_lasting).changes(),
    c("setnx", 3, Write, Key, keyspace::set_for_ever).changes(),
    v("setrange"),
    c("sismember", 3, Read, First, sets::contains),
    v("smembers"),
    c("smismember", -3, Read, First, sets::contains),
    c("srem", -3, Write, First, sets::remove).changes(),
    v("strlen"),
    v("subscribe"),
    c("time", 1, Read, Free, admin::time),
    c("touch", -2, Read, Each, keyspace::exists),
    c("ttl", 2, Read, Key, keyspace::ttl),
    c("type", 2, Read, First, admin::type_of),
    c("unlink", -2, Write, Each, keyspace::delete).changes(),
    v("unsubscribe"),
    c("unwatch", 1, Read, Free, connection::ok),
    c("wait", 3, Read, Free, admin::wait),
    c("watch", -2, Read, Free, multi::watch).ends_queue(),
    v("xadd"),
    v("zadd"),
    v("zrange"),
    v("zscore"),
];

impl Command {
    /// The same, as a part of a run where that is possible.
    const fn run(self, part: fn(Words<'_>, u64) -> Option<Part>) -> Self {
        match self.action {
            By(call) => Self { action: Run(part, call), ..self },
            Run(..) | Execute => self,
        }
    }
}

/// The longest name of a command.
const LONGEST: usize = 16;
/// Places of the table that names are looked up in: four times as many as there are commands, so that few share one.
const PLACES: usize = 512;
/// Of a place that no command has.
const NOBODY: u8 = u8::MAX;

/// The commands' names as numbers, in the order of [`COMMANDS`].
static NUMBERS: [u128; COMMANDS.len()] = {
    let mut numbers = [0; COMMANDS.len()];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = number(COMMANDS[at].name.as_bytes());
        at += 1;
    }
    numbers
};

/// Where in [`COMMANDS`] the command is whose name leads to a place, or to one before that is another's.
static TABLE: [u8; PLACES] = {
    assert!(COMMANDS.len() < NOBODY as usize && COMMANDS.len() * 2 < PLACES);
    let mut table = [NOBODY; PLACES];
    let mut at = 0;
    while at < COMMANDS.len() {
        let mut here = first_place(NUMBERS[at]);
        while table[here] != NOBODY {
            here = (here + 1) % PLACES;
        }
        table[here] = at as u8;
        at += 1;
    }
    table
};

/// A name of at most 16 bytes as a number.
const fn number(name: &[u8]) -> u128 {
    let mut bytes = [0; LONGEST];
    let mut at = 0;
    while at < name.len() {
        bytes[at] = name[at];
        at += 1;
    }
    u128::from_le_bytes(bytes)
}

/// The place in the table that a name leads to.
const fn first_place(name: u128) -> usize {
    let folded = name as u64 ^ ((name >> 64) as u64).rotate_left(31);
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize % PLACES
}

/// The command of this name, in letters of either case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    place(name).map(|at| &COMMANDS[at])
}

/// Where the command of this name, in letters of either case, is among [`COMMANDS`].
pub(crate) fn place(name: &[u8]) -> Option<usize> {
    place_of(name, name.len())
}

/// The command that these words begin with.
#[inline]
pub(crate) fn find_first(words: Words<'_>) -> Option<&'static Command> {
    let (bytes, length) = words.first_and_beyond();
    place_of(bytes, length).map(|at| &COMMANDS[at])
}

/// [`place`] of the first `length` of these bytes. If others follow they are read, too, and left out: that is sooner done
/// than to read so many and no more.
#[inline]
fn place_of(bytes: &[u8], length: usize) -> Option<usize> {
    let mut small = [0; LONGEST];
    if length > LONGEST {
        return None;
    }
    match bytes.first_chunk() {
        Some(first) => small = *first,
        None => small[..length].copy_from_slice(&bytes[..length]),
    }
    small.make_ascii_lowercase();
    let beyond = 8 * (LONGEST - length) as u32;
    let number = u128::from_le_bytes(small);
    let number = number & u128::MAX.checked_shr(beyond).unwrap_or(0);
    let mut here = first_place(number);
    loop {
        let at = usize::from(TABLE[here]);
        // Where nobody is, the search ends: there are twice as many places as commands.
        let found = NUMBERS.get(at)?;
        // A name that ends in zero bytes is the same number as one without.
        if *found == number && COMMANDS[at].name.len() == length {
            return Some(at);
        }
        here = (here + 1) % PLACES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_and_found() {
        assert!(COMMANDS.is_sorted_by(|one, other| one.name < other.name));
        for command in COMMANDS {
            let name = command.name.to_ascii_uppercase();
            assert_eq!(find(name.as_bytes()).map(|found| found.name), Some(command.name));
            let request = format!("{name}\r\n$20\r\n");
            for end in name.len()..=request.len() {
                let span = [(0, name.len())];
                let found = find_first(Words::new(&request.as_bytes()[..end], &span));
                assert_eq!(found.map(|found| found.name), Some(command.name));
            }
        }
        assert!(find(b"").is_none() && find(&[b'x'; 100]).is_none());
        assert!(find(b"set\0").is_none() && find(b"se").is_none() && find(b"[et").is_none());
    }
}
