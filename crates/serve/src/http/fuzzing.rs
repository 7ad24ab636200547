//! A server without sockets that answers bytes, for tests and for fuzzing.

use super::Board;
use crate::auth::Auth;
use crate::command::{Nothing, Server, Stats};
use crate::config::Config;
use crate::net::{Service, Shared, wall};
use crate::store::{Clock, Store};
use crate::users::Users;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A server that keeps nothing, with filters that take at most 16 MiB.
pub(super) fn service(password: Option<&str>, is_local: bool) -> Service {
    service_of(Users::of_password(password), is_local)
}

/// The same, with users.
pub(super) fn service_of(users: Users, is_local: bool) -> Service {
    let config = Config::default();
    let server = Server {
        store: Store::new(7, 16 << 20, 100, Vec::new(), config.keys),
        clock: Clock::new(wall(), 0, 0),
        auth: Auth::new(users),
        allow_flush: false,
        stats: Stats::begun(wall()),
        keeper: Arc::new(Nothing { since: wall() }),
    };
    Service { server: Arc::new(server), tls: None, board: Board::default(), is_local }
}

/// What a server says to a client that sends these pieces.
pub(super) fn answers(pieces: &[&[u8]], password: Option<&str>) -> Vec<u8> {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = runtime();
    }
    RUNTIME.with(|runtime| runtime.block_on(converse(&service(password, true), pieces)))
}

#[allow(clippy::expect_used, reason = "for tests")]
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
}

/// Sends pieces to a server, and takes what it says until it has said all.
pub(super) async fn converse(service: &Service, pieces: &[&[u8]]) -> Vec<u8> {
    let (mut client, stream) = tokio::io::duplex(1 << 16);
    let shared = RefCell::new(Shared::default());
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    let serving = super::serve(stream, None, service, &shared, stopping);
    let talking = async {
        let (mut reading, mut writing) = tokio::io::split(&mut client);
        let sending = async {
            for piece in pieces {
                if writing.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let _ = writing.shutdown().await;
        };
        let mut said = Vec::new();
        let (_, _) = tokio::join!(sending, reading.read_to_end(&mut said));
        said
    };
    tokio::join!(serving, talking).1
}
