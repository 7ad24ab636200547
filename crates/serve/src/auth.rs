//! Who may come in.

use crate::users::{Secret, User, Users};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Wrong passwords that an address may give within a second for one user; further ones are refused unread.
const TRIES: u32 = 3;
/// Addresses, with users, whose failures are kept.
const ADDRESSES: usize = 10_000;

/// The users, and who got a password wrong lately.
#[derive(Debug)]
pub(crate) struct Auth {
    users: RwLock<Arc<Users>>,
    /// How often the users were replaced. Written after them, and read before them.
    generation: AtomicU64,
    /// Wrong passwords, ever.
    failed: AtomicU64,
    failures: Mutex<HashMap<Guesser, Failures>>,
}

/// Where passwords come from, and the user whose they are to be: so that one client with a wrong one does not bar the others
/// of its machine. The name is empty where there is no such user, or none is named.
type Guesser = (IpAddr, String);

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: u64,
    count: u32,
}

impl Auth {
    pub(crate) fn new(users: Users) -> Self {
        Self {
            users: RwLock::new(Arc::new(users)),
            generation: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes other users. Clients that are connected become what these say at their next command.
    pub(crate) fn replace(&self, users: Users) {
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// A number that changes whenever users do.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Who clients are that say nothing; `None`: they must give a password.
    pub(crate) fn anyone(&self) -> Option<Arc<User>> {
        self.users().anyone().cloned()
    }

    /// Is a password needed to be anybody at all?
    pub(crate) fn is_needed(&self) -> bool {
        self.users().anyone().is_none()
    }

    /// The user of this name, if this is the password. Takes as long whichever byte is wrong. Callers behind a unix
    /// socket have no address and are not counted.
    pub(crate) fn check(
        &self,
        name: &[u8],
        password: &[u8],
        from: Option<IpAddr>,
        now: u64,
    ) -> Option<Arc<User>> {
        let users = self.users();
        let user = users.named(name);
        if let Some(user) = user.filter(|user| user.secret().is_none()) {
            return Some(Arc::clone(user));
        }
        let guesser = from.map(|from| (from, user.map_or("", |user| user.name()).to_owned()));
        self.judge(guesser, now, || {
            let right = user.and_then(|user| user.secret()).unwrap_or(&Secret::NOBODYS);
            user.filter(|_| right.is(&Secret::of(password))).cloned()
        })
    }

    /// The user whose password this is. Where nobody has one, anything will do.
    pub(crate) fn by_token(
        &self,
        token: &[u8],
        from: Option<IpAddr>,
        now: u64,
    ) -> Option<Arc<User>> {
        let users = self.users();
        if !users.have_passwords() {
            return users.anyone().cloned();
        }
        let guesser = from.map(|from| (from, String::new()));
        self.judge(guesser, now, || users.with_secret(&Secret::of(token)).cloned())
    }

    /// Who this client of before is now: nobody, if there is no such user any more or its password is another one.
    pub(crate) fn successor(&self, user: &User) -> Option<Arc<User>> {
        let users = self.users();
        let now = users.named(user.name().as_bytes())?;
        let is_same = match (user.secret(), now.secret()) {
            (_, None) => true,
            (Some(before), Some(now)) => before.is(now),
            (None, Some(_)) => false,
        };
        is_same.then(|| Arc::clone(now))
    }

    /// Passwords that were refused, ever.
    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Looks for a user unless this guesser is barred, and counts if there is none.
    fn judge(
        &self,
        guesser: Option<Guesser>,
        now: u64,
        find: impl FnOnce() -> Option<Arc<User>>,
    ) -> Option<Arc<User>> {
        let found = if self.is_barred(guesser.as_ref(), now) { None } else { find() };
        if found.is_none() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.note_failure(guesser, now);
        }
        found
    }

    fn is_barred(&self, guesser: Option<&Guesser>, now: u64) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guesser.and_then(|guesser| failures.get(guesser));
        found.is_some_and(|found| found.since + 1000 > now && found.count >= TRIES)
    }

    fn note_failure(&self, guesser: Option<Guesser>, now: u64) {
        let Some(guesser) = guesser else { return };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES {
            failures.retain(|_, found| found.since + 1000 > now);
        }
        if failures.len() < ADDRESSES || failures.contains_key(&guesser) {
            let found = failures.entry(guesser).or_insert(Failures { since: now, count: 0 });
            if found.since + 1000 <= now {
                *found = Failures { since: now, count: 0 };
            }
            found.count = found.count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_password(password: Option<&str>) -> Auth {
        Auth::new(Users::of_password(password))
    }

    #[test]
    fn a_password_and_three_tries_a_second() {
        let auth = with_password(Some("right"));
        let (here, there) = (Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2])));
        let check = |user: &[u8], password: &[u8], from, now| {
            auth.check(user, password, from, now).is_some()
        };
        assert!(check(b"default", b"right", here, 0));
        for wrong in ["", "righ", "right "] {
            assert!(!check(b"default", wrong.as_bytes(), here, 0));
        }
        // Barred even with the right one, from this address, until the second is over.
        assert!(!check(b"default", b"right", here, 999));
        assert!(check(b"default", b"right", there, 999) && check(b"default", b"right", None, 999));
        assert!(check(b"default", b"right", here, 1000));
        // Whoever names nobody, or somebody who is not there, bars nobody else.
        assert!(auth.by_token(b"right", here, 1000).is_some());
        assert!(!check(b"other", b"right", here, 1000) && !check(b"another", b"right", here, 1000));
        assert!(auth.by_token(b"righ", here, 1000).is_none());
        assert!(auth.by_token(b"right", here, 1999).is_none());
        assert!(check(b"default", b"right", here, 1999));
        assert!(auth.by_token(b"right", here, 2000).is_some());
        assert_eq!(auth.failures(), 8);
    }

    #[test]
    fn without_a_password_only_the_default_user() {
        let auth = with_password(None);
        assert!(!auth.is_needed() && auth.anyone().is_some());
        assert!(auth.check(b"default", b"any", None, 0).is_some());
        assert!(auth.by_token(b"any", None, 0).is_some());
        assert!(auth.check(b"u", b"x", None, 0).is_none());
    }

    /// Who clients of before are, once the users are others.
    #[test]
    fn successors() {
        let hash = |password: &str| {
            let digest = ring::digest::digest(&ring::digest::SHA256, password.as_bytes());
            digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let users = |given: &[(&str, Option<&str>, &str)]| {
            let mut text = String::new();
            for (name, password, may) in given {
                text += &format!("[[user]]\nname = \"{name}\"\nmay = \"{may}\"\n");
                if let Some(password) = password {
                    text += &format!("password_sha256 = \"{}\"\n", hash(password));
                }
            }
            Users::parse(&text, None).unwrap()
        };
        let auth = Auth::new(users(&[
            ("same", Some("1"), "read"),
            ("changed", Some("2"), "read"),
            ("gone", Some("3"), "read"),
            ("default", None, "read"),
        ]));
        assert!(auth.by_token(b"9", None, 0).is_none(), "the default user is for who says nothing");
        let found = |name: &str, password: &str| {
            auth.check(name.as_bytes(), password.as_bytes(), None, 0).unwrap()
        };
        let (same, changed, gone) = (found("same", "1"), found("changed", "2"), found("gone", "3"));
        let anyone = auth.anyone().unwrap();
        let before = auth.generation();
        auth.replace(users(&[
            ("same", Some("1"), "write"),
            ("changed", Some("4"), "read"),
            ("default", Some("5"), "read"),
        ]));
        assert_ne!(auth.generation(), before);
        assert!(auth.successor(&same).unwrap().may(crate::users::Right::Write));
        assert!(auth.successor(&changed).is_none() && auth.successor(&gone).is_none());
        assert!(auth.successor(&anyone).is_none() && auth.is_needed());
        let default = found("default", "5");
        auth.replace(users(&[("default", None, "read")]));
        assert!(auth.successor(&default).is_some());
    }
}
