//! `lately serve` with clients of Redis that people have, unchanged.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::path::Path;
use std::process::{Command, Stdio};
use support::Folder;

/// Sets that are kept, for clients that cannot ask for them.
const CONFIG: &str = "
    [[filter]]
    match = \"*:dupefilter\"
    forever = true
    set = true
";

/// Runs a client against a server of its own; its last argument is the port.
fn talks(client: &mut Command) {
    let folder = Folder::new();
    let config = folder.file("serve.toml", CONFIG);
    let server = Server::start(&["--durability", "none", "--config", &config]);
    let output = client.arg(&server.port).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all well", "{said}");
    server.end();
}

/// redis-py in both versions of the protocol, as its users use it.
fn redis_py(python: &str) {
    let has_it = Command::new(python).args(["-c", "import redis"]).stderr(Stdio::null()).status();
    if !has_it.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: {python} has no package redis (pip install redis)");
    }
    let script = r#"
import redis, sys
for protocol in (2, 3):
    r = redis.Redis(port=int(sys.argv[1]), protocol=protocol)
    p = f"v{protocol}:"
    assert r.ping()
    assert r.set(p + "order:17", 1, nx=True, ex=600) is True
    assert r.set(p + "order:17", 1, nx=True, ex=600) is None
    assert 500 <= r.ttl(p + "order:17") <= 600
    assert r.exists(p + "order:17") == 1
    bf = r.bf()
    assert bf.reserve(p + "seen", 0.001, 1000)
    assert bf.add(p + "seen", "a") in (1, True)
    assert [bool(x) for x in bf.madd(p + "seen", "a", "b")] == [False, True]
    assert [bool(x) for x in bf.mexists(p + "seen", "a", "c")] == [True, False]
    assert [bool(x) for x in bf.insert(p + "other", ["x", "y"], capacity=100, error=0.01)] == [True, True]
    assert bf.card(p + "seen") == 2
    info = bf.info(p + "seen")
    # redis-py reads RESP3 maps as they are.
    assert (info[b"Capacity"] if isinstance(info, dict) else info.capacity) == 1000
    for transaction in (True, False):
        pipe = r.pipeline(transaction=transaction)
        for key in range(100):
            pipe.set(f"{p}{transaction}{key}", 1, nx=True, px=60000)
        pipe.set(f"{p}{transaction}5", 1, nx=True, px=60000)
        replies = pipe.execute()
        assert replies == [True] * 100 + [None], replies
    assert r.execute_command("LATELY.OBSERVE", p + "seen", "z") in (1, True)
    try:
        r.get("x")
        assert False
    except redis.ResponseError as error:
        assert "keeps no values" in str(error)
    # Saved and loaded as filters of RedisBloom are.
    iterator, data = bf.scandump(p + "seen", 0)
    while iterator != 0:
        assert bf.loadchunk(p + "copy", iterator, data)
        iterator, data = bf.scandump(p + "seen", iterator)
    assert [bool(x) for x in bf.mexists(p + "copy", "a", "b", "c")] == [True, True, False]
    dump = r.execute_command("LATELY.DUMP", p + "seen")
    assert r.execute_command("LATELY.RESTORE", p + "copy", dump, "REPLACE") in (b"OK", True)
    assert bf.exists(p + "copy", "z") and r.delete(p + "copy") == 1
    assert sorted(r.scan_iter(match=p + "*")) == [f"{p}other".encode(), f"{p}seen".encode()]
    assert r.delete(p + "seen") == 1
    # Work that failed is taken up again.
    assert r.delete(p + "order:17") == 1
    assert r.set(p + "order:17", 1, nx=True, ex=600) is True
    assert r.expire(p + "order:17", 60) and r.ttl(p + "order:17") <= 60
    cf = r.cf()
    assert [bool(x) for x in (cf.addnx(p + "cf", "a"), cf.delete(p + "cf", "a"), cf.exists(p + "cf", "a"))] == [True, True, False]
    # As the filter of scrapy-redis asks for requests, and is cleared.
    requests = p + "dupefilter"
    assert [r.sadd(requests, fingerprint) for fingerprint in "aba"] == [1, 1, 0]
    assert r.scard(requests) == 2 and r.srem(requests, "a") == 1
    assert r.delete(requests) == 1 and r.sadd(requests, "b") == 1
print("all well")
"#;
    talks(Command::new(python).args(["-c", script]));
}

/// The newest one. `LATELY_PYTHON` names an interpreter that has it.
#[test]
fn redis_py_of_today() {
    redis_py(&std::env::var("LATELY_PYTHON").unwrap_or_else(|_| "python3".into()));
}

/// Version 5, which many have. `LATELY_PYTHON_REDIS_5` names an interpreter that has it.
#[test]
fn redis_py_5() {
    match std::env::var("LATELY_PYTHON_REDIS_5") {
        Ok(python) => redis_py(&python),
        Err(_) => eprintln!("skipped: LATELY_PYTHON_REDIS_5 names no interpreter with redis-py 5"),
    }
}

/// node-redis in both versions of the protocol, and ioredis. `LATELY_NODE` names a folder that has their packages.
#[test]
fn node_redis_and_ioredis() {
    let node = |arguments: &[&str]| {
        let mut command = Command::new("node");
        command.args(arguments).current_dir(std::env::var("LATELY_NODE").unwrap_or(".".into()));
        command
    };
    let needed = "require('redis'); require('ioredis'); process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)";
    let has_them = node(&["-e", needed]).stderr(Stdio::null()).status();
    if !has_them.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no Node 20 with the packages redis and ioredis (LATELY_NODE)");
    }
    let script = r#"
const assert = require("node:assert");
const port = Number(process.argv[1]);

async function nodeRedis(protocol) {
  const { createClient } = require("redis");
  const client = createClient({ RESP: protocol, socket: { port, host: "127.0.0.1" } });
  await client.connect();
  const p = `node${protocol}:`;
  assert.equal(await client.set(p + "k", "1", { NX: true, EX: 600 }), "OK");
  assert.equal(await client.set(p + "k", "1", { NX: true, EX: 600 }), null);
  const left = await client.ttl(p + "k");
  assert(left > 500 && left <= 600);
  assert.equal(await client.del(p + "k"), 1);
  assert.equal(await client.set(p + "k", "1", { NX: true, PX: 600000 }), "OK");
  assert.equal(await client.bf.reserve(p + "f", 0.001, 1000), "OK");
  assert.equal(await client.bf.add(p + "f", "a"), true);
  assert.deepEqual([...(await client.bf.mAdd(p + "f", ["a", "b"]))], [false, true]);
  assert.equal(await client.bf.exists(p + "f", "b"), true);
  const info = await client.bf.info(p + "f");
  assert.equal(info["Capacity"], 1000);
  // All at once, and in a transaction.
  const sets = Array.from({ length: 100 }, (_, n) => client.set(p + n, "1", { NX: true, EX: 60 }));
  assert.deepEqual(await Promise.all(sets), Array(100).fill("OK"));
  assert.deepEqual(await client.multi().set(p + "m", "1", { NX: true, EX: 60 }).set(p + "m", "1", { NX: true, EX: 60 }).exec(), ["OK", null]);
  assert.equal(await client.cf.addNX(p + "c", "a"), true);
  assert.equal(await client.cf.del(p + "c", "a"), true);
  assert.equal(await client.sAdd(p + ":dupefilter", ["a", "b"]), 2);
  assert.equal(await client.sIsMember(p + ":dupefilter", "a"), 1);
  await assert.rejects(client.get("x"), /keeps no values/);
  await client.close();
}

async function ioredis() {
  const Redis = require("ioredis");
  const client = new (Redis.Redis ?? Redis)({ port, host: "127.0.0.1" });
  assert.equal(await client.set("io:k", "1", "EX", 600, "NX"), "OK");
  assert.equal(await client.set("io:k", "1", "EX", 600, "NX"), null);
  assert.equal(await client.del("io:k"), 1);
  assert.equal(await client.call("BF.ADD", "io:f", "a"), 1);
  assert.equal(await client.call("BF.ADD", "io:f", "a"), 0);
  const pipeline = client.pipeline();
  for (let n = 0; n < 100; n++) pipeline.set("io:" + n, "1", "PX", 60000, "NX");
  assert.deepEqual(await pipeline.exec(), Array(100).fill([null, "OK"]));
  assert.deepEqual(await client.multi().set("io:m", "1", "EX", 60, "NX").exec(), [[null, "OK"]]);
  assert.equal(await client.sadd("io:dupefilter", "a", "b", "a"), 2);
  assert.equal(await client.sadd("io:dupefilter", "a"), 0);
  await client.quit();
}

(async () => {
  await nodeRedis(2);
  await nodeRedis(3);
  await ioredis();
  console.log("all well");
})().catch((error) => { console.error(error); process.exit(1); });
"#;
    talks(&mut node(&["-e", script]));
}

/// redis-rs in both versions of the protocol. `LATELY_REDIS_RS` names a package that depends on it, for which there is a
/// program here.
#[test]
fn redis_rs() {
    let Ok(package) = std::env::var("LATELY_REDIS_RS") else {
        return eprintln!("skipped: LATELY_REDIS_RS names no package that depends on redis-rs");
    };
    let folder = Path::new(&package);
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/main.rs"), include_str!("support/redis_rs.rs")).unwrap();
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--target-dir"]).arg(folder.join("target"));
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml")).arg("--");
    talks(&mut cargo);
}

/// PHP's extension `redis`.
#[test]
fn php_redis() {
    let has_it = Command::new("php").args(["-r", "exit(class_exists('Redis') ? 0 : 1);"]).status();
    if !has_it.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no php with its extension redis (php-cli, php-redis)");
    }
    let script = r#"
function same($is, $must) { if ($is !== $must) { throw new Exception(var_export($is, true) . " is not " . var_export($must, true)); } }
$r = new Redis();
$r->connect("127.0.0.1", (int)$argv[1]);
same($r->set("php:k", "1", ["nx", "ex" => 600]), true);
same($r->set("php:k", "1", ["nx", "ex" => 600]), false);
same($r->ttl("php:k") > 500, true);
same($r->exists("php:k"), 1);
same($r->del("php:k"), 1);
same($r->set("php:k", "1", ["nx", "px" => 60000]), true);
same($r->setex("php:s", 60, "1"), true);
same($r->rawCommand("BF.RESERVE", "php:f", "0.001", "1000"), true);
same($r->rawCommand("BF.ADD", "php:f", "a"), 1);
same($r->rawCommand("BF.MADD", "php:f", "a", "b"), [0, 1]);
same($r->rawCommand("BF.EXISTS", "php:f", "b"), 1);
same($r->rawCommand("LATELY.OBSERVE", "php:f", "c"), 1);
foreach ([Redis::PIPELINE, Redis::MULTI] as $mode) {
    $many = $r->multi($mode);
    for ($n = 0; $n < 100; $n++) { $many->set("php:$mode:$n", "1", ["nx", "ex" => 60]); }
    $many->set("php:$mode:5", "1", ["nx", "ex" => 60]);
    same($many->exec(), array_merge(array_fill(0, 100, true), [false]));
}
same($r->sAdd("php:dupefilter", "a", "b", "a"), 2);
same($r->sIsMember("php:dupefilter", "a"), true);
same($r->get("x"), false);
same(str_contains($r->getLastError(), "keeps no values"), true);
$r->close();
echo "all well";
"#;
    talks(Command::new("php").args(["-r", script, "--"]));
}

/// The gem `redis`.
#[test]
fn ruby_redis() {
    let has_it =
        Command::new("ruby").args(["-e", "require 'redis'"]).stderr(Stdio::null()).status();
    if !has_it.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no ruby with the gem redis (ruby-redis)");
    }
    let script = r##"
require "redis"
def same(is, must) = is == must || raise("#{is.inspect} is not #{must.inspect}")
r = Redis.new(host: "127.0.0.1", port: ARGV[0].to_i)
same r.set("rb:k", 1, nx: true, ex: 600), true
same r.set("rb:k", 1, nx: true, ex: 600), false
same r.ttl("rb:k") > 500, true
same r.exists("rb:k"), 1
same r.del("rb:k"), 1
same r.set("rb:k", 1, nx: true, px: 60_000), true
same r.setex("rb:s", 60, 1), "OK"
same r.call("BF.RESERVE", "rb:f", "0.001", "1000"), "OK"
same r.call("BF.ADD", "rb:f", "a"), 1
same r.call("BF.MADD", "rb:f", "a", "b"), [0, 1]
same r.call("BF.EXISTS", "rb:f", "b"), 1
same r.call("LATELY.OBSERVE", "rb:f", "c"), 1
many = ->(to, of) { 100.times { |n| to.set("rb:#{of}:#{n}", 1, nx: true, ex: 60) }; to.set("rb:#{of}:5", 1, nx: true, ex: 60) }
same r.pipelined { |to| many.(to, "pipeline") }, [true] * 100 + [false]
same r.multi { |to| many.(to, "transaction") }, [true] * 100 + [false]
same r.sadd("rb:dupefilter", ["a", "b", "a"]), 2
same r.sismember("rb:dupefilter", "a"), true
begin
  r.get("x")
  raise "GET is answered"
rescue Redis::CommandError => error
  same error.message.include?("keeps no values"), true
end
r.quit
puts "all well"
"##;
    talks(Command::new("ruby").args(["-e", script]));
}
