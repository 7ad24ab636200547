//! Commands about the server.

use super::table::{self, COMMANDS, Command};
use super::{Call, text};
use crate::resp::integer;
use crate::store::is_match;
use std::fmt::Write;
use std::sync::atomic::Ordering;

pub(super) fn type_of(call: &mut Call<'_>) {
    let (store, name, now) = (call.store(), call.words.at(1), call.now);
    let found = if let Some(entry) = store.filter(name, now) {
        entry.lock().options.family.type_name()
    } else if store.keys.contains(store.digest(name), now) {
        "string"
    } else {
        "none"
    };
    call.reply.simple(found);
}

/// Filters; keys of `SET` cannot be listed, and are not counted.
pub(super) fn database_size(call: &mut Call<'_>) {
    call.store().names.tidy(call.now);
    call.reply.count(call.filters());
}

/// `KEYS pattern`: filters.
pub(super) fn keys(call: &mut Call<'_>) {
    let (pattern, now) = (call.words.at(1), call.now);
    let mut found = call.store().names.all();
    found.retain(|entry| {
        is_match(pattern, entry.name()) && !entry.has_expired(now) && call.has_name(entry.name())
    });
    call.reply.array(found.len());
    found.iter().for_each(|entry| call.reply.bulk(entry.name()));
}

/// `SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]`: filters.
pub(super) fn scan(call: &mut Call<'_>) {
    let words = call.words;
    let cursor = std::str::from_utf8(words.at(1)).ok().and_then(|cursor| cursor.parse().ok());
    let Some(cursor) = cursor else { return call.reply.error("ERR invalid cursor") };
    let (mut at, mut pattern, mut count, mut kind) = (2, &b"*"[..], 10, None);
    while at < words.len() {
        let Some(value) = words.get(at + 1) else { return call.syntax_error() };
        if words.is(at, "match") {
            pattern = value;
        } else if words.is(at, "count") {
            match integer(value).map(usize::try_from) {
                Some(Ok(0) | Err(_)) => return call.syntax_error(),
                Some(Ok(value)) => count = value,
                None => return call.reply.error("ERR value is not an integer or out of range"),
            }
        } else if words.is(at, "type") {
            kind = Some(value);
        } else {
            return call.syntax_error();
        }
        at += 2;
    }
    let mut page = call.store().names.page(cursor, count, call.now);
    page.filters.retain(|entry| {
        let name = || entry.lock().options.family.type_name();
        is_match(pattern, entry.name())
            && call.has_name(entry.name())
            && kind.is_none_or(|kind| kind.eq_ignore_ascii_case(name().as_bytes()))
    });
    call.reply.array(2);
    call.reply.bulk(page.next.to_string().as_bytes());
    call.reply.array(page.filters.len());
    page.filters.iter().for_each(|entry| call.reply.bulk(entry.name()));
}

/// `MEMORY USAGE name [SAMPLES n]`
pub(super) fn memory(call: &mut Call<'_>) {
    let words = call.words;
    if !words.is(1, "usage") {
        return unknown_subcommand(call, "MEMORY");
    }
    match (words.len(), words.is(3, "samples"), words.get(4).map(integer)) {
        (..3, ..) => return wrong_number(call, "memory|usage"),
        (3, ..) | (5, true, Some(Some(0..))) => {}
        (5, true, Some(None)) => {
            return call.reply.error("ERR value is not an integer or out of range");
        }
        _ => return call.syntax_error(),
    }
    match call.store().filter(words.at(2), call.now) {
        Some(entry) => call.reply.count(entry.lock().filter.memory() + entry.name().len() as u64),
        None => call.reply.nil(),
    }
}

fn wrong_number(call: &mut Call<'_>, command: &str) {
    call.refuse(format!("ERR wrong number of arguments for '{command}' command"));
}

fn unknown_subcommand(call: &mut Call<'_>, command: &str) {
    let name = text(call.words.at(1));
    call.refuse(format!("ERR unknown subcommand '{name}'. Try {command} HELP."));
}

pub(super) fn time(call: &mut Call<'_>) {
    call.reply.array(2);
    call.reply.bulk((call.now / 1000).to_string().as_bytes());
    call.reply.bulk((call.now % 1000 * 1000).to_string().as_bytes());
}

pub(super) fn role(call: &mut Call<'_>) {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
}

/// There are no replicas to wait for.
pub(super) fn wait(call: &mut Call<'_>) {
    match (integer(call.words.at(1)), integer(call.words.at(2))) {
        (None, _) => call.reply.error("ERR value is not an integer or out of range"),
        (_, None) => call.reply.error("ERR timeout is not an integer or out of range"),
        (_, Some(..0)) => call.reply.error("ERR timeout is negative"),
        _ => call.reply.integer(0),
    }
}

pub(super) fn no_cluster(call: &mut Call<'_>) {
    call.reply.error("ERR This instance has cluster support disabled");
}

pub(super) fn module(call: &mut Call<'_>) {
    if call.words.is(1, "list") { call.reply.array(0) } else { unknown_subcommand(call, "MODULE") }
}

pub(super) fn flush(call: &mut Call<'_>) {
    let is_plain = call.words.is(1, "sync") || call.words.is(1, "async");
    if call.words.len() > 1 + usize::from(is_plain) {
        call.syntax_error();
    } else if call.server.allow_flush {
        call.store().clear();
        call.reply.ok();
    } else {
        call.reply.error("ERR this server does not forget everything at once: set allow_flush in its configuration");
    }
}

pub(super) fn save(call: &mut Call<'_>) {
    match call.server.keeper.save(call.store(), call.now) {
        Ok(()) => call.reply.ok(),
        Err(error) => call.reply.error(&error),
    }
}

pub(super) fn background_save(call: &mut Call<'_>) {
    match call.server.keeper.save_soon() {
        Ok(()) => call.reply.simple("Background saving started"),
        Err(error) => call.reply.error(&error),
    }
}

pub(super) fn last_save(call: &mut Call<'_>) {
    call.reply.count(call.server.keeper.last() / 1000);
}

/// `COMMAND [COUNT | INFO name… | DOCS name… | LIST]`
pub(super) fn command(call: &mut Call<'_>) {
    let words = call.words;
    if words.len() == 1 {
        call.reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| describe(call, command));
    } else if words.is(1, "count") && words.len() > 2 {
        wrong_number(call, "command|count");
    } else if words.is(1, "count") {
        call.reply.count(COMMANDS.len() as u64);
    } else if words.is(1, "list") {
        call.reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| call.reply.bulk(command.name.as_bytes()));
    } else if words.is(1, "info") {
        call.reply.array(words.len() - 2);
        for name in words.from(2) {
            match table::find(name) {
                Some(command) => describe(call, command),
                None => call.reply.nil(),
            }
        }
    } else if words.is(1, "docs") {
        let known: Vec<_> = match words.len() {
            2 => COMMANDS.iter().collect(),
            _ => words.from(2).filter_map(table::find).collect(),
        };
        call.reply.map(known.len());
        for command in known {
            call.reply.bulk(command.name.as_bytes());
            call.reply.map(1);
            call.reply.bulk(b"group");
            call.reply
                .bulk(command.name.split_once('.').map_or("server", |(group, _)| group).as_bytes());
        }
    } else {
        unknown_subcommand(call, "COMMAND");
    }
}

/// A command as Redis before 7 describes it: name, arity, flags, first key, last key, step.
fn describe(call: &mut Call<'_>, command: &Command) {
    let reply = &mut call.reply;
    reply.array(6);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity.into());
    reply.array(0);
    let has_key = command.name.contains('.')
        || matches!(command.name, "set" | "setnx" | "setex" | "psetex" | "ttl");
    for _ in 0..3 {
        reply.integer(has_key.into());
    }
}

/// `CONFIG GET pattern…`
pub(super) fn config(call: &mut Call<'_>) {
    let words = call.words;
    if words.is(1, "set") && words.len() >= 4 {
        let name = text(words.at(2));
        return call.refuse(format!(
            "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
        ));
    }
    match words.len() {
        2 if words.is(1, "get") => return wrong_number(call, "config|get"),
        2 | 3 if words.is(1, "set") => return wrong_number(call, "config|set"),
        _ if words.is(1, "get") => {}
        _ => return unknown_subcommand(call, "CONFIG"),
    }
    let has_journal = call.server.keeper.lag().is_some();
    let settings = [
        ("appendonly", if has_journal { "yes" } else { "no" }.to_owned()),
        ("maxmemory", call.store().budget.limit().to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("save", String::new()),
    ];
    let is_asked = |name: &str| {
        words.from(2).any(|pattern| is_match(&pattern.to_ascii_lowercase(), name.as_bytes()))
    };
    let found: Vec<_> = settings.iter().filter(|(name, _)| is_asked(name)).collect();
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
}

/// `INFO [section…]`
pub(super) fn info(call: &mut Call<'_>) {
    let sections = [
        ("Server", server(call)),
        ("Clients", clients(call)),
        ("Memory", memory_in_use(call)),
        ("Persistence", persistence(call)),
        ("Stats", stats(call)),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Keyspace", keyspace(call)),
    ];
    let words = call.words;
    let takes_all =
        words.len() == 1 || ["all", "default", "everything"].iter().any(|word| words.is(1, word));
    let is_asked = |name: &str| takes_all || (1..words.len()).any(|at| words.is(at, name));
    let mut all = String::new();
    for (name, lines) in sections.iter().filter(|(name, _)| is_asked(name)) {
        let gap = if all.is_empty() { "" } else { "\r\n" };
        // Writing to a string does not fail.
        let _ = write!(all, "{gap}# {name}\r\n{lines}");
    }
    call.reply.bulk(all.as_bytes());
}

fn server(call: &Call<'_>) -> String {
    let up = call.now.saturating_sub(call.server.stats.since) / 1000;
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    format!(
        "redis_version:7.4.0\r\nlately_version:{version}\r\nredis_mode:standalone\r\nprocess_id:{process}\r\nuptime_in_seconds:{up}\r\n"
    )
}

fn clients(call: &Call<'_>) -> String {
    let connected = call.server.stats.connected.load(Ordering::Relaxed);
    format!("connected_clients:{connected}\r\n")
}

fn memory_in_use(call: &Call<'_>) -> String {
    let budget = &call.store().budget;
    let (used, limit) = (budget.used(), budget.limit());
    format!("used_memory:{used}\r\nmaxmemory:{limit}\r\nmaxmemory_policy:noeviction\r\n")
}

fn persistence(call: &Call<'_>) -> String {
    let keeper = &call.server.keeper;
    let (saving, last) = (u8::from(keeper.is_saving()), keeper.last() / 1000);
    let has_journal = u8::from(keeper.lag().is_some());
    let lag = keeper.lag().unwrap_or(0);
    let journal = if keeper.refusal().is_some() { "err" } else { "ok" };
    format!(
        "loading:0\r\nrdb_bgsave_in_progress:{saving}\r\nrdb_last_save_time:{last}\r\naof_enabled:{has_journal}\r\naof_last_write_status:{journal}\r\nlately_journal_lag_bytes:{lag}\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n"
    )
}

fn stats(call: &Call<'_>) -> String {
    let stats = &call.server.stats;
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    format!(
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\nlately_panics:{}\r\nlately_clock_leaps:{}\r\n",
        get(&stats.connections),
        get(&stats.commands),
        get(&stats.rejected),
        get(&stats.panics),
        call.server.clock.leaps(),
    )
}

fn keyspace(call: &Call<'_>) -> String {
    let filters = call.filters();
    if filters == 0 { String::new() } else { format!("db0:keys={filters},expires=0,avg_ttl=0\r\n") }
}
