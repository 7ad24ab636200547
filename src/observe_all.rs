//! Arrivals from an iterator, judged in batches.

use crate::{Digest, Tick, Verdict, WindowFilter};
use alloc::vec::Vec;

/// Arrivals that are judged together.
const BATCH: usize = 256;

/// Judges the arrivals of an iterator, in their order. Made by [`AnyFilter::observe_all`](crate::AnyFilter::observe_all).
///
/// It runs ahead of what it has given by up to 256 arrivals: those are observed though their verdicts may never be asked for.
#[derive(Debug)]
pub struct ObserveAll<'a, F, I> {
    filter: &'a mut F,
    arrivals: I,
    digests: Vec<Digest>,
    moments: Vec<Tick>,
    verdicts: Vec<Verdict>,
    given: usize,
}

impl<'a, F: WindowFilter, I: Iterator<Item = (Digest, Tick)>> ObserveAll<'a, F, I> {
    pub(crate) fn new(filter: &'a mut F, arrivals: I) -> Self {
        let (digests, moments, verdicts) = (Vec::new(), Vec::new(), Vec::new());
        Self { filter, arrivals, digests, moments, verdicts, given: 0 }
    }

    fn fetch(&mut self) {
        self.digests.clear();
        self.moments.clear();
        for (digest, now) in self.arrivals.by_ref().take(BATCH) {
            self.digests.push(digest);
            self.moments.push(now);
        }
        self.verdicts.clear();
        self.verdicts.resize(self.digests.len(), Verdict::Fresh);
        self.filter.observe_batch(&self.digests, &self.moments, &mut self.verdicts);
        self.given = 0;
    }
}

impl<F: WindowFilter, I: Iterator<Item = (Digest, Tick)>> Iterator for ObserveAll<'_, F, I> {
    type Item = Verdict;

    fn next(&mut self) -> Option<Verdict> {
        if self.given == self.verdicts.len() {
            self.fetch();
        }
        let verdict = self.verdicts.get(self.given).copied()?;
        self.given += 1;
        Some(verdict)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ready = self.verdicts.len() - self.given;
        let (least, most) = self.arrivals.size_hint();
        (least.saturating_add(ready), most.and_then(|most| most.checked_add(ready)))
    }
}
