//! Sessions by number, which is what Java holds. A number that is wrong, or was closed, is an error, not a crash.

use crate::fault::Fault;
use lately_stream::session::{Dedup, DedupSpec};
use std::sync::{Mutex, PoisonError, RwLock};

/// A session, and how its records are judged.
pub(crate) struct Session {
    pub(crate) dedup: Dedup,
    /// Records bring a time, or are judged when they arrive.
    pub(crate) timed: bool,
}

/// Places are used again, under other numbers.
struct Place {
    uses: u32,
    session: Option<Box<Mutex<Session>>>,
}

static PLACES: RwLock<Vec<Place>> = RwLock::new(Vec::new());

/// Takes a session in: its number.
pub(crate) fn open(dedup: Dedup, spec: &DedupSpec) -> i64 {
    let timed = spec.clock.timed.unwrap_or(true);
    let session = Box::new(Mutex::new(Session { dedup, timed }));
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    let free = places.iter().position(|place| place.session.is_none());
    let at = free.unwrap_or_else(|| {
        places.push(Place { uses: 0, session: None });
        places.len() - 1
    });
    places[at].uses = places[at].uses.wrapping_add(1);
    places[at].session = Some(session);
    // There are fewer places than can be counted in 31 bits: each is larger than that many bits.
    i64::from(places[at].uses) << 32 | at as i64
}

/// Lets go of a session; one that was closed before stays so.
pub(crate) fn close(number: i64) {
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = find(&places, number) {
        places[place].session = None;
    }
}

/// Calls `work` with a session.
pub(crate) fn with<T>(
    number: i64,
    work: impl FnOnce(&mut Session) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let places = PLACES.read().unwrap_or_else(PoisonError::into_inner);
    let session = find(&places, number).and_then(|place| places[place].session.as_ref());
    let session = session.ok_or_else(|| Fault::State("this filter is closed".into()))?;
    work(&mut session.lock().unwrap_or_else(PoisonError::into_inner))
}

fn find(places: &[Place], number: i64) -> Option<usize> {
    let at = usize::try_from(number & 0xffff_ffff).ok()?;
    let place = places.get(at)?;
    (i64::from(place.uses) == number >> 32).then_some(at)
}
