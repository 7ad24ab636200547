//! Records that wait to be forwarded in the order of their times: `--sort-within`.

use lately::Tick;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Bytes that a waiting record takes besides its own.
const OVERHEAD: usize = 64;

/// Holds records until none can come that happened before them.
///
/// # Guarantee
/// Records leave in the order of their times, and those of one time in the order in which they came, as
/// long as none comes that is behind the clock by more than `wait`: such a record leaves at once. No
/// record is lost; more than `limit` bytes never wait.
///
/// # Cost
/// An insertion into a B-tree per record, and a copy of its bytes.
#[derive(Debug)]
pub struct Sorter {
    wait: u64,
    limit: usize,
    bytes: usize,
    /// By time, and by the order in which they came.
    waiting: BTreeMap<(Tick, u64), Vec<u8>>,
    came: u64,
    now: Tick,
    /// The newest time of a record that is believed.
    newest: Option<Tick>,
}

impl Sorter {
    /// Nothing waits yet. `wait` in nanoseconds, `limit` in bytes.
    pub fn new(wait: u64, limit: usize) -> Self {
        Self {
            wait,
            limit,
            bytes: 0,
            waiting: BTreeMap::new(),
            came: 0,
            now: Tick(0),
            newest: None,
        }
    }

    /// A record of this time; of the newest one so far, if it has none or one that is not believed.
    /// Does it find room? If not, it waits all the same, to be released with the others.
    pub(super) fn push(&mut self, time: Option<Tick>, record: Vec<u8>) -> bool {
        self.came += 1;
        self.newest = self.newest.max(time);
        self.bytes += record.len() + OVERHEAD;
        let time = time.or(self.newest).unwrap_or(Tick(0));
        if let Entry::Vacant(place) = self.waiting.entry((time, self.came)) {
            place.insert(record);
        }
        self.bytes <= self.limit
    }

    /// The newest time so far of a record that is believed, or that of the clock.
    pub(super) fn newest(&self) -> Option<Tick> {
        self.newest
    }

    /// Does nothing wait?
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The clock stands at `now`. Was it set back? Then what waits was for a time that never was.
    pub(super) fn advance(&mut self, now: Tick) -> bool {
        let is_back = now < self.now;
        (self.now, self.newest) = (now, Some(now));
        is_back
    }

    /// The next record that may leave; at the end of the stream (`all`) any.
    pub(super) fn pop(&mut self, all: bool) -> Option<Vec<u8>> {
        let first = self.waiting.first_entry()?;
        if !all && first.key().0.0.saturating_add(self.wait) > self.now.0 {
            return None;
        }
        let record = first.remove();
        self.bytes -= record.len() + OVERHEAD;
        Some(record)
    }

    /// What to do about too many that wait.
    pub(super) fn overflow(&self) -> String {
        format!(
            "more than {} of records wait to be sorted; sort within a shorter time, or allow more with --sort-memory",
            crate::quantity::display_bytes(self.limit as u64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(sorter: &mut Sorter, all: bool) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| sorter.pop(all)).collect()
    }

    #[test]
    fn records_leave_in_order_of_time_and_then_of_coming() {
        let mut sorter = Sorter::new(10, 1 << 20);
        for (time, name) in [(100, "b"), (95, "a"), (100, "c"), (103, "d")] {
            assert!(sorter.push(Some(Tick(time)), name.into()));
        }
        assert!(!sorter.advance(Tick(104)));
        assert!(leave(&mut sorter, false).is_empty());
        assert!(!sorter.advance(Tick(110)));
        assert_eq!(leave(&mut sorter, false), [b"a", b"b", b"c"]);
        // One that is too late does not wait, one without a time is of the present.
        assert!(sorter.push(Some(Tick(50)), "late".into()));
        assert!(sorter.push(None, "now".into()));
        assert_eq!(leave(&mut sorter, false), [b"late"]);
        assert_eq!(leave(&mut sorter, true), [b"d".to_vec(), b"now".to_vec()]);
        assert_eq!(sorter.bytes, 0);
        // Within a batch, too, and after the clock was set back.
        assert!(sorter.push(Some(Tick(120)), "e".into()) && sorter.push(None, "f".into()));
        assert!(sorter.push(Some(Tick(119)), "g".into()));
        assert!(sorter.advance(Tick(90)));
        assert_eq!(leave(&mut sorter, true), [b"g", b"e", b"f"]);
        assert!(sorter.push(Some(Tick(91)), "h".into()));
        assert!(leave(&mut sorter, false).is_empty());
    }

    #[test]
    fn a_full_sorter_says_so_and_keeps_what_came() {
        let mut sorter = Sorter::new(10, 200);
        assert!(sorter.push(Some(Tick(1)), vec![b'x'; 100]));
        assert!(!sorter.push(Some(Tick(2)), vec![b'y'; 100]));
        assert_eq!(leave(&mut sorter, true).len(), 2);
    }
}
