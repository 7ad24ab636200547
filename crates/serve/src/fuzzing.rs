//! A server that takes bytes of clients and of journals without sockets and files, for fuzzing.

use crate::auth::Auth;
use crate::command::{Nothing, Server, Session, Stats, Workspace};
use crate::config::Config;
use crate::durable::replay_bytes;
use crate::store::{Clock, Family, Numbers, Options, Reach, Replay, Store, change};
use crate::users::Users;
use std::sync::Arc;

const NOW: u64 = 1_800_000_000_000;

/// Filters take at most 16 MiB.
fn store() -> Store {
    Store::new(7, 16 << 20, 100, Vec::new(), Config::default().keys)
}

/// What a server says to a client that sends these pieces.
pub fn feed(pieces: &[&[u8]], password: Option<&str>) -> Vec<u8> {
    let server = Server {
        store: store(),
        clock: Clock::new(NOW, 0, 0),
        auth: Auth::new(Users::of_password(password)),
        allow_flush: true,
        stats: Stats::begun(NOW),
        keeper: Arc::new(Nothing { since: NOW }),
    };
    let mut session = Session::new(&server, server.stats.next_id(), None);
    let (mut work, mut unread, mut said) = (Workspace::default(), Vec::new(), Vec::new());
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let mut replies = Vec::new();
            let fed = session.feed(&server, &mut work, NOW, &unread, &mut replies);
            unread.drain(..fed.consumed);
            said.extend(replies);
            if fed.is_over {
                return said;
            }
            if !fed.has_more {
                break;
            }
        }
    }
    said
}

/// Takes up a journal of changes with these bodies, whatever they say, with `noise` behind them. There are filters with
/// the numbers 1 to 4 that they may mean.
///
/// # Panics
/// More memory was taken than there is; or damage was a fault though it was to be left out.
pub fn journal(bodies: &[&[u8]], noise: &[u8], leaves_out: bool) {
    let store = store();
    for (number, reach) in
        [Reach::Forever, Reach::Within(5_000), Reach::Last(50)].into_iter().enumerate()
    {
        let _ = store.create(&[number as u8], Options { reach, ..Options::default() }, 0);
    }
    if let Ok(numbers) = Numbers::of("number") {
        let (family, reach) = (Family::Intervals(numbers), Reach::Within(5_000));
        let _ = store.create(&[4], Options { family, reach, ..Options::default() }, 0);
    }
    let mut bytes = Vec::new();
    for body in bodies {
        if let Some((kind, fields)) = body.split_first() {
            change::frame(&mut bytes, *kind, |out| out.extend_from_slice(fields));
        }
    }
    bytes.extend_from_slice(noise);
    let mut replay = Replay::new(&store);
    let done = replay_bytes(&bytes, leaves_out, &mut replay);
    assert!(store.budget.used() <= store.budget.limit(), "{} bytes", store.budget.used());
    if let Err(fault) = done {
        // A change that is whole, but cannot be made, is a fault even so.
        let fault = fault.to_string();
        let is_refusal = fault.contains(": ERR ") || fault.contains(": OOM ");
        assert!(is_refusal || !leaves_out, "{fault}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The body of a change with fields that may be those of one.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let number = prop_oneof![0..6u64, Just(NOW), Just(u64::MAX), any::<u64>()];
        (1..12u8, prop::collection::vec(number, 0..8), 0..4usize, any::<bool>()).prop_map(
            |(kind, numbers, cut, has_flag)| {
                let mut body = vec![kind];
                for (at, number) in numbers.iter().enumerate() {
                    body.extend(number.to_le_bytes());
                    // As changes of keys of `SET` have it.
                    if has_flag && at == 0 {
                        body.push(cut as u8);
                    }
                }
                body.truncate(body.len() - cut.min(body.len() - 1) * usize::from(!has_flag));
                body
            },
        )
    }

    proptest! {
        #[test]
        fn no_journal_does_harm(bodies in prop::collection::vec(body(), 0..20), noise in prop::collection::vec(any::<u8>(), 0..40), leaves_out: bool) {
            let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            journal(&bodies, &noise, leaves_out);
        }
    }

    #[test]
    fn a_client_is_answered_in_pieces_as_at_once() {
        let bytes =
            b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*3\r\n$6\r\nBF.ADD\r\n$1\r\nf\r\n$1\r\na\r\nPING\r\n";
        let whole = feed(&[bytes], Some("p"));
        assert_eq!(whole, b"+OK\r\n:1\r\n+PONG\r\n");
        for cut in 1..bytes.len() {
            assert_eq!(feed(&[&bytes[..cut], &bytes[cut..]], Some("p")), whole, "{cut}");
        }
        assert!(feed(&[bytes], Some("q")).starts_with(b"-WRONGPASS"));
    }
}
