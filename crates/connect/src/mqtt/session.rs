//! What a client that only subscribes has to remember of its session: nothing.

use rumqttc::{
    PersistedAckMode, PersistedSession, SessionStore, SessionStoreError, SessionStoreKey,
};
use std::future::{Future, ready};
use std::pin::Pin;

type Done<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// The session as a process finds it that was started again. Publications would have to be remembered, but there are none;
/// what was delivered and not acknowledged, the broker delivers again. Without it the client would take the session for
/// one that it has lost, and not subscribe in it.
#[derive(Debug)]
pub(super) struct NothingOwed {
    pub(super) expiry: u32,
    pub(super) outgoing: u16,
}

impl SessionStore for NothingOwed {
    fn load<'a>(&'a self, key: &'a SessionStoreKey) -> Done<'a, Option<PersistedSession>> {
        Box::pin(ready(Ok(Some(PersistedSession {
            format_version: 1,
            client_id: key.client_id().into(),
            clean_start: false,
            session_expiry_interval: Some(self.expiry),
            outgoing_inflight_upper_limit: Some(self.outgoing),
            ack_mode: PersistedAckMode::Manual,
            last_pkid: 0,
            last_puback: 0,
            replay: Vec::new(),
            incoming_qos2: Vec::new(),
        }))))
    }

    fn save<'a>(&'a self, _: &'a SessionStoreKey, _: &'a PersistedSession) -> Done<'a, ()> {
        Box::pin(ready(Ok(())))
    }

    fn clear<'a>(&'a self, _: &'a SessionStoreKey) -> Done<'a, ()> {
        Box::pin(ready(Ok(())))
    }
}
