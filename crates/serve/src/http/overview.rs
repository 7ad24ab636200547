//! `/v1/overview`: the server, now and in the last hour. Sums of the whole server are the same for all users.

use super::answer::{Answer, json};
use super::ask::Asker;
use hyper::StatusCode;
use serde_json::json;
use std::sync::atomic::Ordering;

pub(super) fn get(asker: &Asker<'_>) -> Answer {
    let (server, board, now) = (&asker.service.server, &asker.service.board, asker.now());
    let (stats, budget) = (&server.stats, &server.store.budget);
    let (mut keys, mut memory, mut ttls) = (0, 0, 0);
    for table in server.store.keys.lock().iter() {
        keys += table.filter.fresh();
        memory += table.filter.memory();
        ttls += 1;
    }
    let names = &server.store.names;
    let filters = match asker.has_all_names() {
        true => names.len(),
        false => names.all().iter().filter(|entry| asker.has_name(entry.name())).count(),
    };
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now_ms": now,
        "uptime_ms": now.saturating_sub(stats.since),
        "connections": stats.connected.load(Ordering::Relaxed),
        "filters": filters,
        "memory": { "used": budget.used(), "limit": budget.limit() },
        "keys": { "ttls": ttls, "fresh": keys, "memory": memory },
        "rates": board.rates(),
        "saved_ms": server.keeper.last(),
        "is_saving": server.keeper.is_saving(),
        "panics": stats.panics.load(Ordering::Relaxed),
        "clock_leaps": server.clock.leaps(),
        "hour": board.hour(),
    });
    json(StatusCode::OK, &body)
}
