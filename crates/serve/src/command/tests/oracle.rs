//! Random commands of several clients while time passes, against exact sets.

use super::{Client, NOW, server};
use proptest::prelude::*;
use std::collections::HashMap;

const CONFIG: &str = "
    [keyspace]
    capacity = 1000
    [[filter]]
    match = \"always\"
    window = \"5s\"
    capacity = 200
    slack = \"0s\"
    [[filter]]
    match = \"fresh\"
    window = \"5s\"
    capacity = 200
    renew = \"fresh\"
    slack = \"0s\"
    [[filter]]
    match = \"ever\"
    forever = true
    capacity = 20
";

const WINDOW: u64 = 5_000;

proptest! {
    /// Seen within the window is never called fresh, and fresh is never called seen: at these rates a false positive
    /// has a probability of some 1e-3 over all cases, which a rerun would show.
    #[test]
    fn as_exact_sets(steps in prop::collection::vec((0usize..3, 0u32..40, 0u64..900, 0usize..3, 0u32..6), 1..300)) {
        let server = server(CONFIG);
        let mut clients: Vec<_> = (0..3).map(|_| Client::new(&server)).collect();
        let mut last: HashMap<(usize, u32), u64> = HashMap::new();
        let mut ends: HashMap<u32, u64> = HashMap::new();
        let mut now = NOW;
        for (filter, key, passes, client, what) in steps {
            now += passes;
            let client = &mut clients[client];
            client.now = now;
            let name = ["always", "fresh", "ever"][filter];
            let is_seen = |last: &HashMap<_, _>| last.get(&(filter, key)).is_some_and(|at| filter == 2 || now - at <= WINDOW);
            let seen = is_seen(&last);
            match what {
                0 => {
                    let reply = client.ask(&format!("BF.ADD {name} {key}"));
                    prop_assert_eq!(reply == ":0\r\n", seen, "{} {}", name, key);
                    if !seen || filter == 0 {
                        last.insert((filter, key), now);
                    }
                }
                1 => {
                    let reply = client.ask(&format!("BF.EXISTS {name} {key}"));
                    prop_assert_eq!(reply == ":1\r\n", seen, "{} {}", name, key);
                }
                2 => {
                    let ttl = [1_000, 3_000, 8_000][filter];
                    let there = ends.get(&key).is_some_and(|&end| now <= end);
                    let reply = client.ask(&format!("SET {key} 1 NX PX {ttl}"));
                    prop_assert_eq!(reply == "$-1\r\n", there, "{}", key);
                    if !there {
                        ends.insert(key, now + ttl);
                    }
                }
                3 => {
                    let there = ends.remove(&key).is_some_and(|end| now <= end);
                    let reply = client.ask(&format!("DEL {key}"));
                    prop_assert_eq!(reply, format!(":{}\r\n", u8::from(there)));
                }
                4 if filter < 2 => {
                    last.remove(&(filter, key));
                    let reply = client.ask(&format!("LATELY.FORGET {name} {key}"));
                    prop_assert_eq!(reply == ":1\r\n", seen, "{} {}", name, key);
                }
                _ => {
                    let reply = client.ask(&format!("PTTL {key}"));
                    let left = ends.get(&key).filter(|&&end| now <= end).map_or(-2, |end| (end - now) as i64);
                    prop_assert_eq!(reply, format!(":{left}\r\n"));
                }
            }
        }
    }
}
