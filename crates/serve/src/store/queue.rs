//! Keys that wait because the window that they are for is being saved: what [`Waiting`](super::waiting::Waiting) is to filters
//! of single keys. Here they lie in their order, so that there are intervals of them.

use super::Outcome;
use super::budget::{Budget, Share};
use lately::Tick;
use lately::range::RangeWindow;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

/// Acts that lie in one piece of memory. So none is moved when there are more.
const CHUNK: usize = 256;
/// Bytes that an act takes: 32 for itself, and for its key up to 57 in a tree whose nodes are half full.
const ACT: u64 = 96;

/// Keys to be marked when the window may change again.
#[derive(Debug)]
pub(super) struct Queue {
    /// The length of the window. `None`: it never forgets.
    span: Option<u64>,
    /// Keys, and when they are to be marked, oldest first.
    acts: VecDeque<Vec<(u128, u64)>>,
    done: u64,
    came: u64,
    /// When each key that waits is to be marked last.
    keys: BTreeMap<u128, u64>,
    /// The newest moment when all is done.
    newest: u64,
    /// Keys that are new to the window.
    added: u64,
    /// Such keys that the window can take for certain.
    room: u64,
    /// More room was asked for.
    is_room_taken: bool,
    /// Memory that this takes from the budget.
    share: Share,
    /// What becomes of the window's memory if it is dropped while it is being saved.
    left: Arc<OnceLock<Share>>,
    end: Receiver<Infallible>,
}

impl Queue {
    /// For a window that is held from here on, and has room for so many keys.
    pub(super) fn new(
        window: &RangeWindow,
        room: u64,
        budget: &Arc<Budget>,
        left: Arc<OnceLock<Share>>,
        end: Receiver<Infallible>,
    ) -> Self {
        Self {
            span: window.window().span(),
            acts: VecDeque::new(),
            done: 0,
            came: 0,
            keys: BTreeMap::new(),
            newest: window.newest().0,
            added: 0,
            room,
            is_room_taken: false,
            share: Share::none(budget),
            left,
            end,
        }
    }

    /// Returns once nobody saves the window.
    pub(super) fn wait(&self) {
        // Nothing is ever sent: this ends when the other side is dropped.
        let _ = self.end.recv();
    }

    /// Leaves the window's memory to whoever is saving it.
    pub(super) fn leave(&self, share: Share) {
        // Set once at most, by the one window that there is.
        let _ = self.left.set(share);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.done == self.came
    }

    /// Keys that are new to the window.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Is there room for so many keys more in the window?
    pub(super) fn has_room(&self, keys: u64) -> bool {
        self.added.saturating_add(keys) <= self.room
    }

    pub(super) fn is_room_taken(&self) -> bool {
        self.is_room_taken
    }

    /// The window can take so many keys after all.
    pub(super) fn take_room(&mut self, room: u64) {
        (self.room, self.is_room_taken) = (self.room.max(room), true);
    }

    /// Is there memory for so many acts more?
    pub(super) fn has_memory(&mut self, acts: u64) -> bool {
        let acts = (self.came - self.done).saturating_add(acts).next_multiple_of(CHUNK as u64);
        let more = acts.saturating_mul(ACT).saturating_sub(self.share.bytes());
        more == 0 || self.share.extend(more)
    }

    /// Does up to so many acts, the oldest first.
    pub(super) fn apply(&mut self, window: &mut RangeWindow, most: usize) {
        for _ in 0..most {
            let Some(chunk) = self.acts.front() else { return };
            let at = (self.done % CHUNK as u64) as usize;
            let Some(&(key, moment)) = chunk.get(at) else { return };
            // A key that comes again behind this is marked then.
            if self.keys.get(&key) == Some(&moment) {
                window.insert(key, Tick(moment));
                self.keys.remove(&key);
            }
            self.done += 1;
            if at + 1 == CHUNK {
                self.acts.pop_front();
            }
        }
    }

    fn push(&mut self, key: u128, at: u64) {
        if self.keys.insert(key, at) == Some(at) {
            return;
        }
        if self.came.is_multiple_of(CHUNK as u64) {
            self.acts.push_back(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.acts.back_mut() {
            chunk.push((key, at));
        }
        self.came += 1;
    }

    fn moment(&self, now: Tick) -> u64 {
        now.0.max(self.newest)
    }

    /// Was any of these keys seen, within the window or a shorter one?
    ///
    /// *Cost:* that of the window, and one step for each key that waits and is older than asked for.
    pub(super) fn any(
        &self,
        window: &RangeWindow,
        keys: RangeInclusive<u128>,
        within: Option<u64>,
        now: Tick,
    ) -> bool {
        // A tree has no part of an empty interval.
        if keys.is_empty() {
            return false;
        }
        let moment = self.moment(now);
        let span = self.span.unwrap_or(u64::MAX);
        let within = within.unwrap_or(span).min(span);
        let is_within = |(_, &at): (&u128, &u64)| at.saturating_add(within) >= moment;
        self.keys.range(keys.clone()).any(is_within)
            || window.any_within(keys, within, Tick(moment)).is_perhaps()
    }

    /// An arrival.
    pub(super) fn observe(&mut self, window: &RangeWindow, key: u128, now: Tick) -> Outcome {
        let is_known = self.any(window, key..=key, None, now);
        // Without a window there is nothing to renew.
        if !is_known || self.span.is_some() {
            self.mark(key, now);
        }
        self.added += u64::from(!is_known);
        if is_known { Outcome::Seen } else { Outcome::Fresh }
    }

    /// Marks a key as seen. Was it known?
    pub(super) fn remember(&mut self, window: &RangeWindow, key: u128, now: Tick) -> bool {
        let is_known = self.any(window, key..=key, None, now);
        self.mark(key, now);
        self.added += u64::from(!is_known);
        is_known
    }

    fn mark(&mut self, key: u128, now: Tick) {
        self.newest = self.moment(now);
        self.push(key, self.newest);
    }
}
