//! Who may come in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;

/// Wrong passwords that an address may give within a second; further ones are refused unread.
const TRIES: u32 = 3;
/// Addresses whose failures are kept.
const ADDRESSES: usize = 10_000;

/// The password, and who got it wrong lately.
#[derive(Debug)]
pub(crate) struct Auth {
    password: Option<String>,
    /// Wrong passwords, ever.
    failed: AtomicU64,
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: u64,
    count: u32,
}

impl Auth {
    pub(crate) fn new(password: Option<String>) -> Self {
        Self { password, failed: AtomicU64::new(0), failures: Mutex::default() }
    }

    /// Is a password needed at all?
    pub(crate) fn is_needed(&self) -> bool {
        self.password.is_some()
    }

    /// Is this the password? Takes as long whichever byte is wrong. Callers behind a unix socket have no address and
    /// are not counted.
    pub(crate) fn check(
        &self,
        user: &[u8],
        password: &[u8],
        from: Option<IpAddr>,
        now: u64,
    ) -> bool {
        let Some(right) = &self.password else { return user == b"default" };
        if self.is_barred(from, now) {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let is_right = bool::from(right.as_bytes().ct_eq(password)) && user == b"default";
        if !is_right {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.note_failure(from, now);
        }
        is_right
    }

    /// Passwords that were refused, ever.
    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn is_barred(&self, from: Option<IpAddr>, now: u64) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let found = from.and_then(|from| failures.get(&from));
        found.is_some_and(|found| found.since + 1000 > now && found.count >= TRIES)
    }

    fn note_failure(&self, from: Option<IpAddr>, now: u64) {
        let Some(from) = from else { return };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES {
            failures.retain(|_, found| found.since + 1000 > now);
        }
        if failures.len() < ADDRESSES || failures.contains_key(&from) {
            let found = failures.entry(from).or_insert(Failures { since: now, count: 0 });
            if found.since + 1000 <= now {
                *found = Failures { since: now, count: 0 };
            }
            found.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_and_three_tries_a_second() {
        let auth = Auth::new(Some("right".into()));
        let (here, there) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        assert!(auth.check(b"default", b"right", here, 0));
        assert!(!auth.check(b"other", b"right", here, 0));
        for wrong in ["", "righ"] {
            assert!(!auth.check(b"default", wrong.as_bytes(), here, 0));
        }
        // Barred even with the right one, from this address, until the second is over.
        assert!(!auth.check(b"default", b"right", here, 999));
        assert!(
            auth.check(b"default", b"right", there, 999)
                && auth.check(b"default", b"right", None, 999)
        );
        assert!(auth.check(b"default", b"right", here, 1000));
    }

    #[test]
    fn without_a_password_only_the_default_user() {
        let auth = Auth::new(None);
        assert!(
            !auth.is_needed()
                && auth.check(b"default", b"any", None, 0)
                && !auth.check(b"u", b"x", None, 0)
        );
    }
}
