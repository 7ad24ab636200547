//! What one would write without a library: every key of the window, and the order they came in.

use super::adapter::{Adapter, Candidate, Contract};
use super::stream::Key;
use std::collections::{HashMap, VecDeque};

/// The last `n` arrivals, exactly.
struct Exact {
    window: usize,
    arrivals: u64,
    last: HashMap<u64, u64>,
    queue: VecDeque<u64>,
}

pub(super) fn candidate() -> Candidate {
    let how = "does its own hashing (SipHash); keys of 8 bytes, capacity reserved at the start; no false positives";
    Candidate::peer("HashMap + VecDeque", Contract::Window(0.0), how, |n, _| {
        let window = usize::try_from(n).map_err(|error| error.to_string())?;
        let (last, queue) =
            (HashMap::with_capacity(window + 1), VecDeque::with_capacity(window + 1));
        Ok(Exact { window, arrivals: 0, last, queue })
    })
}

impl Adapter for Exact {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        if self.queue.len() > self.window
            && let Some(oldest) = self.queue.pop_front()
        {
            let arrived = self.arrivals - self.window as u64 - 1;
            if self.last.get(&oldest) == Some(&arrived) {
                self.last.remove(&oldest);
            }
        }
        self.queue.push_back(key.id);
        let seen = self.last.insert(key.id, self.arrivals).is_some();
        self.arrivals += 1;
        seen
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        // One arrival too many is still there.
        let oldest = self.arrivals.saturating_sub(self.window as u64);
        self.last.get(&key.id).is_some_and(|&arrived| arrived >= oldest)
    }
}
