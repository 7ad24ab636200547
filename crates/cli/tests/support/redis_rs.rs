//! redis-rs, as its users use it, in both versions of the protocol. The argument is the server's port.

use redis::{
    Commands, ConnectionLike, ExistenceCheck, RedisResult, SetExpiry, SetOptions, Value, cmd, pipe,
};

fn talk(port: &str, protocol: u32) -> RedisResult<()> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/?protocol=resp{protocol}"))?;
    let mut connection = client.get_connection()?;
    let p = format!("rs{protocol}:");
    let fresh = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::EX(600));
    let key = format!("{p}k");
    let mut set = || connection.set_options::<_, _, Option<String>>(&key, 1, fresh.clone());
    assert_eq!((set()?.as_deref(), set()?), (Some("OK"), None));
    let left: i64 = connection.ttl(&key)?;
    assert!((501..=600).contains(&left), "{left}");
    assert!(connection.exists::<_, bool>(&key)?);
    assert_eq!(connection.del::<_, u64>(&key)?, 1);
    let filter = format!("{p}f");
    let reserved: String =
        cmd("BF.RESERVE").arg(&filter).arg(0.001).arg(1000).query(&mut connection)?;
    assert_eq!(reserved, "OK");
    let mut add = |item: &str| cmd("BF.ADD").arg(&filter).arg(item).query::<bool>(&mut connection);
    assert_eq!((add("a")?, add("a")?), (true, false));
    let known: Vec<bool> =
        cmd("BF.MEXISTS").arg(&filter).arg("a").arg("b").query(&mut connection)?;
    assert_eq!(known, [true, false]);
    // All at once, and in a transaction.
    let mut many = pipe();
    (0..100).for_each(|n| {
        drop(many.cmd("SET").arg(format!("{p}{n}")).arg(1).arg("NX").arg("EX").arg(60))
    });
    assert_eq!(many.query::<Vec<String>>(&mut connection)?, vec!["OK"; 100]);
    let mut both = pipe();
    both.atomic();
    (0..2).for_each(|_| {
        drop(both.cmd("SET").arg(format!("{p}m")).arg(1).arg("NX").arg("EX").arg(60))
    });
    assert_eq!(both.query::<Vec<Option<String>>>(&mut connection)?, [Some("OK".into()), None]);
    let set = format!("{p}:dupefilter");
    assert_eq!(connection.sadd::<_, _, u64>(&set, &["a", "b", "a"])?, 2);
    assert!(connection.sismember::<_, _, bool>(&set, "a")?);
    let refused = cmd("GET").arg("x").query::<Value>(&mut connection);
    assert!(refused.is_err_and(|error| error.to_string().contains("keeps no values")));
    assert!(connection.check_connection());
    Ok(())
}

fn main() -> RedisResult<()> {
    let port = std::env::args().nth(1).expect("a port");
    talk(&port, 2)?;
    talk(&port, 3)?;
    println!("all well");
    Ok(())
}
