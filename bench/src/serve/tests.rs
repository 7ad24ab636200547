//! Small runs against real servers, whose answers are checked as in large ones.

use super::load::{Keys, Load, Operation, Until, run};
use super::server::{Kind, Server, Start};
use super::{Measured, RedisBloom, Settings, memory, saving, speed};
use std::path::Path;
use std::process::{Command, Stdio};

const START: Start = Start { processors: "0", keys: 1_000, durability: "none" };

/// Little of everything, where both servers are here. `LATELY_PROGRAM` names a program with `serve`,
/// `LATELY_REDISBLOOM` the module.
fn settings() -> Option<Settings> {
    let lately = std::env::var("LATELY_PROGRAM")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/lately").into());
    let runs = |program: &str, arguments: &[&str]| {
        let status = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !runs("redis-server", &["--version"]) || !runs("taskset", &["--version"]) {
        eprintln!("skipped: no redis-server or taskset");
        return None;
    }
    if !runs(&lately, &["serve", "--help"]) {
        eprintln!("skipped: {lately} has no `serve` (LATELY_PROGRAM)");
        return None;
    }
    let bloom = std::env::var("LATELY_REDISBLOOM").ok().filter(|module| Path::new(module).exists());
    let redis = "redis-server".into();
    let bloom =
        bloom.map(|module| RedisBloom { server: "redis-server".into(), module: module.into() });
    let (lately, structure) = (lately.into(), None);
    Some(Settings {
        lately,
        redis,
        bloom,
        structure,
        huge_pages: false,
        rounds: 1,
        seconds: 0.05,
        keys: 20_000,
    })
}

#[test]
fn small_runs_answer_as_they_must() {
    let Some(settings) = settings() else { return };
    let (all, filters) = match settings.bloom {
        Some(_) => (6, 8),
        None => (2, 2),
    };
    let rows = |table: &str| table.lines().count() - 2;
    assert_eq!(rows(&speed::table(&settings, "").unwrap()), all * 4);
    assert_eq!(rows(&speed::journal(&settings).unwrap()), 4);
    assert_eq!(rows(&memory::table(&settings).unwrap()), filters);
    assert_eq!(rows(&saving::table(&settings).unwrap()), 2);
}

#[test]
fn fresh_and_known_keys_are_counted() {
    let Some(settings) = settings() else { return };
    for kind in [Kind::Lately, Kind::Redis] {
        let server = Server::start(kind, START, &settings).unwrap();
        let load = |keys| Load { operation: Operation::Set, keys, pipeline: 10 };
        let fresh = run(&server, load(Keys::Fresh(0)), Until::Commands(5_000)).unwrap();
        assert!(fresh.commands >= 5_000, "{fresh:?}");
        assert_eq!(fresh.positive, fresh.commands, "{kind:?}");
        let known = run(&server, load(Keys::Below(5_000)), Until::Commands(5_000)).unwrap();
        assert_eq!(known.positive, 0, "{kind:?}");
        assert!(fresh.processor > 0 && fresh.quantile(0.5) <= fresh.quantile(0.99));
        // An error is no reply that it counts.
        let wrong = Load { operation: Operation::Exists, ..load(Keys::Fresh(0)) };
        if kind == Kind::Redis {
            assert!(run(&server, wrong, Until::Commands(100)).is_err());
        }
    }
}

#[test]
fn a_server_that_does_not_start_is_an_error() {
    let Some(settings) = settings() else { return };
    let settings = Settings { lately: "/bin/false".into(), ..settings };
    let error = Server::start(Kind::Lately, START, &settings).map(drop).unwrap_err();
    assert!(error.to_string().contains("does not start"), "{error}");
    assert!(Measured::ALL.iter().all(|what| !what.name().is_empty()));
}
