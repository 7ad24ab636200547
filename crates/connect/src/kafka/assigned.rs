//! Messages of partitions that were handed over, and how far each partition is dealt with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A partition of a topic.
pub(super) type Partition = (Arc<str>, i32);

/// Messages that were handed over and whose offsets are not committed yet.
///
/// A partition may be taken from us and given back. The broker then delivers again all that was not committed; of that,
/// what we have is not handed over twice.
#[derive(Default)]
pub(super) struct Assigned {
    partitions: BTreeMap<Partition, Part>,
    /// Where the messages are that nobody has dealt with, in the order in which they were handed over.
    waiting: VecDeque<(u64, Partition)>,
    /// Of their payloads.
    bytes: usize,
    last: u64,
}

/// What we have of a partition.
#[derive(Default)]
struct Part {
    /// In the order of their offsets, and so of their tokens.
    handed: VecDeque<Handed>,
    /// The last offset that was delivered since the partition is ours. What we have beyond it is to be delivered again.
    at: Option<i64>,
    is_ours: bool,
}

/// A message that was handed over.
struct Handed {
    token: u64,
    offset: i64,
    /// The moment tells it from one of a topic that had this name before.
    published: Option<i64>,
    /// Of its payload, until it is dealt with.
    bytes: usize,
    is_done: bool,
}

impl Part {
    /// Messages that are dealt with, from the first on, and not to be delivered again.
    fn done(&self) -> impl Iterator<Item = &Handed> {
        let is_over = |one: &Handed| one.is_done && Some(one.offset) <= self.at;
        self.handed.iter().take_while(move |one| self.is_ours && is_over(one))
    }
}

impl Assigned {
    /// A partition is ours, for the first time or again.
    pub(super) fn give(&mut self, partition: &Partition) {
        if let Some(part) = self.partitions.get_mut(partition) {
            (part.at, part.is_ours) = (None, true);
        }
    }

    /// A partition is somebody else's. What we have of it stays, in case that it comes back.
    pub(super) fn take_away(&mut self, partition: &Partition) {
        if let Some(part) = self.partitions.get_mut(partition) {
            part.is_ours = false;
        }
    }

    /// A message was delivered: its token, if it is to be handed over.
    pub(super) fn deliver(
        &mut self,
        partition: &Partition,
        offset: i64,
        published: Option<i64>,
        bytes: usize,
    ) -> Option<u64> {
        let Part { handed, at, is_ours } = match self.partitions.get_mut(partition) {
            Some(part) => part,
            None => self.partitions.entry(partition.clone()).or_default(),
        };
        *is_ours = true;
        if at.replace(offset).is_none() {
            // What came before is dealt with, by us or by whoever had the partition meanwhile.
            let before = handed.partition_point(|one| one.offset < offset);
            self.bytes -= handed.drain(..before).map(|one| one.bytes).sum::<usize>();
        }
        let known = handed.binary_search_by_key(&offset, |one| one.offset);
        if known.is_ok_and(|at| handed[at].published == published) {
            return None;
        }
        if handed.back().is_some_and(|last| last.offset >= offset) {
            // It begins again, so nothing can be committed of what it was.
            self.bytes -= handed.drain(..).map(|one| one.bytes).sum::<usize>();
        }
        self.last += 1;
        let token = self.last;
        handed.push_back(Handed { token, offset, published, bytes, is_done: false });
        self.bytes += bytes;
        self.waiting.push_back((token, partition.clone()));
        Some(token)
    }

    /// All messages up to this one are dealt with.
    pub(super) fn acknowledge(&mut self, token: u64) {
        while self.waiting.front().is_some_and(|(one, _)| *one <= token) {
            let Some((one, partition)) = self.waiting.pop_front() else { return };
            let Some(Part { handed, .. }) = self.partitions.get_mut(&partition) else { continue };
            if let Ok(at) = handed.binary_search_by_key(&one, |one| one.token) {
                handed[at].is_done = true;
                self.bytes -= std::mem::take(&mut handed[at].bytes);
            }
        }
    }

    /// The offset from which each of our partitions is to be read on, where that can be committed.
    pub(super) fn to_commit(&self) -> impl Iterator<Item = (&Partition, i64)> {
        self.partitions
            .iter()
            .filter_map(|(partition, part)| Some((partition, part.done().last()?.offset + 1)))
    }

    /// That offset is committed.
    pub(super) fn committed(&mut self, partition: &Partition, offset: i64) {
        if let Some(part) = self.partitions.get_mut(partition) {
            let count = part.done().take_while(|one| one.offset < offset).count();
            part.handed.drain(..count);
            if part.handed.is_empty() {
                self.partitions.remove(partition);
            }
        }
    }

    /// Messages of our partitions that are not committed yet.
    pub(super) fn uncommitted(&self) -> usize {
        let ours = self.partitions.values().filter(|part| part.is_ours);
        ours.map(|part| part.handed.len()).sum()
    }

    /// The bytes of messages that nobody has dealt with.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Are there messages of these partitions that nobody has dealt with?
    pub(super) fn awaits(&self, partitions: &[Partition]) -> bool {
        let parts = partitions.iter().filter_map(|partition| self.partitions.get(partition));
        parts.flat_map(|part| &part.handed).any(|one| !one.is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(number: i32) -> Partition {
        ("reads".into(), number)
    }

    fn waiting(assigned: &Assigned) -> (usize, usize) {
        (assigned.waiting.len(), assigned.bytes())
    }

    fn to_commit(assigned: &Assigned) -> Vec<(i32, i64)> {
        assigned.to_commit().map(|((_, number), offset)| (*number, offset)).collect()
    }

    #[test]
    fn a_topic_that_begins_again() {
        let (mut assigned, one) = (Assigned::default(), partition(1));
        assert_eq!(assigned.deliver(&one, 7, Some(70), 10), Some(1));
        assert_eq!(assigned.deliver(&one, 9, Some(90), 10), Some(2));
        assert_eq!(assigned.deliver(&one, 7, Some(70), 10), None);
        assigned.acknowledge(1);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((1, 10), vec![(1, 8)]));
        assert_eq!(assigned.deliver(&one, 7, Some(71), 5), Some(3));
        // What was handed over before still comes back, and changes nothing.
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((2, 5), vec![]));
        assigned.acknowledge(2);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((1, 5), vec![]));
        assert!(assigned.awaits(std::slice::from_ref(&one)) && !assigned.awaits(&[partition(2)]));
        assigned.acknowledge(3);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((0, 0), vec![(1, 8)]));
        assigned.committed(&one, 8);
        assert_eq!(to_commit(&assigned), []);
    }

    /// What was handed over before a partition was taken from us is not committed when it is back: somebody else has
    /// dealt with more meanwhile.
    #[test]
    fn a_partition_that_was_somewhere_else() {
        let (mut assigned, one) = (Assigned::default(), partition(1));
        assigned.give(&one);
        for offset in 0..4 {
            assigned.deliver(&one, offset, None, 1);
        }
        assigned.acknowledge(2);
        assert_eq!(to_commit(&assigned), [(1, 2)]);
        assigned.take_away(&one);
        assert_eq!((to_commit(&assigned), assigned.uncommitted()), (vec![], 0));
        assigned.give(&one);
        assert_eq!((to_commit(&assigned), assigned.uncommitted()), (vec![], 4));
        assert_eq!(assigned.deliver(&one, 3, None, 1), None);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((2, 1), vec![]));
        assigned.give(&one);
        assert_eq!(assigned.deliver(&one, 9, None, 1), Some(5));
        assigned.acknowledge(4);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((1, 1), vec![]));
        assigned.acknowledge(5);
        assert_eq!((waiting(&assigned), to_commit(&assigned)), ((0, 0), vec![(1, 10)]));
    }

    /// Partitions with gaps are taken and given back at random, commits get lost: each message is handed over once, in
    /// the order of its partition, and all are committed at last.
    #[test]
    fn partitions_that_come_and_go() {
        const PARTITIONS: i32 = 3;
        const ALL: i64 = 40;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut assigned = Assigned::default();
            // The broker: what is committed, and what is delivered next.
            let mut committed = [0; PARTITIONS as usize];
            let mut next = [0; PARTITIONS as usize];
            let mut handed: Vec<Vec<i64>> = vec![Vec::new(); PARTITIONS as usize];
            let (mut last, mut dealt_with) = (0, 0);
            while committed.iter().any(|offset| *offset < ALL) {
                let number = random.i32(0..PARTITIONS);
                let at = number as usize;
                match random.u8(0..8) {
                    0 => {
                        next[at] = committed[at];
                        assigned.give(&partition(number));
                    }
                    // Every third offset is that of no message.
                    1..5 if next[at] < ALL => {
                        let offset = next[at];
                        next[at] += 1;
                        if offset % 3 != 0 || offset == 0 {
                            let token = assigned.deliver(&partition(number), offset, None, 1);
                            if let Some(token) = token {
                                assert_eq!(token, last + 1);
                                last = token;
                                handed[at].push(offset);
                            }
                        }
                    }
                    5 => {
                        dealt_with = random.u64(dealt_with..=last);
                        assigned.acknowledge(dealt_with);
                        assert_eq!(waiting(&assigned).0 as u64, last - dealt_with);
                    }
                    _ => {
                        let all: Vec<_> = assigned
                            .to_commit()
                            .map(|(one, offset)| (one.clone(), offset))
                            .collect();
                        for (one, offset) in all {
                            if random.bool() {
                                let at = one.1 as usize;
                                assert!(offset > committed[at], "seed {seed}");
                                // The last offset is that of no message.
                                committed[at] = if offset == ALL - 1 { ALL } else { offset };
                                assigned.committed(&one, offset);
                            }
                        }
                    }
                }
            }
            let expected: Vec<_> =
                (0..ALL).filter(|offset| offset % 3 != 0 || *offset == 0).collect();
            assert!(handed.iter().all(|all| *all == expected), "seed {seed}: {handed:?}");
        }
    }
}
