//! Many keys in order, at moments that let no generation begin.

use super::step::Quick;
use super::{Name, Naming, Table};
use crate::bits::kernel::{GROUP, Group, Kernel, Work};
use crate::bits::lines::Line;
use crate::bits::prefetch::Ahead;
use crate::{Digest, Tick, Verdict};
use core::hint::black_box;

/// Keys ahead of the one being judged whose lines are being fetched.
const AHEAD: usize = 24;

/// Names that are known ahead: a power of two, above [`AHEAD`] and a group. Where a group is named at once, it is the third
/// one behind that of the key being judged at most, so none is overwritten that is still wanted.
const RING: usize = 32;

/// The lines and the fingerprints of the next keys, as groups want them.
struct Ring([Group; RING / GROUP]);

impl Ring {
    const NONE: Self = Self([Group::NONE; RING / GROUP]);

    /// The group that begins with a key.
    #[inline(always)]
    fn group(&self, at: usize) -> &Group {
        &self.0[at / GROUP % (RING / GROUP)]
    }

    /// Both lines and the fingerprint of a key.
    #[inline(always)]
    fn names(&self, at: usize) -> (Name, u64) {
        let (group, one) = (self.group(at), at % GROUP);
        let name = Name { home: group.lines[one], fingerprint: group.lanes[one] };
        (name, group.lines[GROUP + one])
    }

    /// Names the next keys, of which so many are known, and begins to fetch their lines: a group of them, where there is
    /// one and names are plain. Returns how many are known then.
    #[inline(always)]
    fn look_ahead<K: Kernel>(
        &mut self,
        kernel: K,
        (naming, lines): (Naming, Ahead<Line>),
        digests: &[Digest],
        known: usize,
    ) -> usize {
        let (group, one) = (&mut self.0[known / GROUP % (RING / GROUP)], known % GROUP);
        if naming.is_plain()
            && one == 0
            && let Some(digests) = digests[known..].first_chunk()
        {
            kernel.places(digests, naming.lines, group);
            // From memory: out of registers they would come one by one, the slowest way.
            for &line in &black_box(&*group).lines {
                lines.prefetch(line as usize);
            }
            return known + GROUP;
        }
        naming.name_one(digests[known], group, one);
        lines.prefetch(group.lines[one] as usize);
        lines.prefetch(group.lines[GROUP + one] as usize);
        known + 1
    }
}

struct Arrivals<'a, M> {
    table: &'a mut Table,
    digests: &'a [Digest],
    moment: M,
    newest: Tick,
    verdicts: &'a mut [Verdict],
    with_renewal: bool,
}

struct Questions<'a> {
    table: &'a Table,
    digests: &'a [Digest],
    age: u32,
    found: &'a mut [bool],
}

impl Table {
    /// Judges as many arrivals as need nothing but a step; returns how many, and the newest tick then.
    pub(super) fn run_of_arrivals<M: Fn(usize) -> Tick>(
        &mut self,
        digests: &[Digest],
        moment: M,
        newest: Tick,
        verdicts: &mut [Verdict],
        with_renewal: bool,
    ) -> (usize, Tick) {
        self.level.run(Arrivals { table: self, digests, moment, newest, verdicts, with_renewal })
    }

    /// Notes of keys that are not found yet whether the table, which has aged, holds them for a question of some age.
    pub(super) fn run_of_questions(&self, digests: &[Digest], age: u32, found: &mut [bool]) {
        self.level.run(Questions { table: self, digests, age, found });
    }
}

impl<M: Fn(usize) -> Tick> Work for Arrivals<'_, M> {
    type Result = (usize, Tick);

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> (usize, Tick) {
        let Self { table, digests, moment, newest, verdicts, with_renewal } = self;
        let quick = table.quick;
        // A group knows no ages.
        let by_groups = K::GROUPS && table.layout.rest == 0 && quick.lateness == 0;
        let len = digests.len().min(verdicts.len());
        let (digests, verdicts) = (&digests[..len], &mut verdicts[..len]);
        let ahead = (table.naming(), table.lines.ahead());
        let ring = Ring::NONE;
        let mut run = Run {
            table,
            quick,
            digests,
            verdicts,
            moment,
            with_renewal,
            ahead,
            ring,
            known: 0,
            newest,
        };
        run.look_ahead(kernel, AHEAD);
        let mut at = 0;
        while at < len {
            let from = at;
            if by_groups {
                at += run.group(kernel, at);
                if at == from + GROUP {
                    continue;
                }
            }
            // One by one, up to where the next group may begin.
            let to = if by_groups { (from + GROUP).min(len) } else { len };
            while at < to {
                if !run.one(kernel, at) {
                    return (at, run.newest);
                }
                at += 1;
            }
        }
        (len, run.newest)
    }
}

/// Arrivals that are being judged.
struct Run<'a, M> {
    table: &'a mut Table,
    quick: Quick,
    digests: &'a [Digest],
    verdicts: &'a mut [Verdict],
    moment: M,
    with_renewal: bool,
    ahead: (Naming, Ahead<Line>),
    ring: Ring,
    /// Keys that are named.
    known: usize,
    newest: Tick,
}

impl<M: Fn(usize) -> Tick> Run<'_, M> {
    /// Names the keys before one.
    #[inline(always)]
    fn look_ahead<K: Kernel>(&mut self, kernel: K, until: usize) {
        while self.known < self.digests.len().min(until) {
            self.known = self.ring.look_ahead(kernel, self.ahead, self.digests, self.known);
        }
    }

    /// Judges as many keys of the group that begins here as can be judged at once; returns how many.
    #[inline(always)]
    fn group<K: Kernel>(&mut self, kernel: K, at: usize) -> usize {
        let Some(verdicts) = self.verdicts[at..].first_chunk_mut::<GROUP>() else { return 0 };
        let latest = latest_of(&self.moment, at);
        if !is_quick_for_all(self.quick, latest, self.table.occupied) || !are_open(verdicts) {
            return 0;
        }
        debug_assert!(self.known >= at + GROUP);
        let lines = self.table.lines.settled_mut();
        let (done, found) = kernel.group(lines, self.ring.group(at), self.with_renewal);
        for (one, verdict) in verdicts.iter_mut().enumerate() {
            *verdict = verdict_of(found >> one & 1 == 1);
        }
        self.table.occupied += done as u64 - u64::from(found.count_ones());
        if done == GROUP {
            self.newest = self.newest.max(latest);
        } else {
            for one in at..at + done {
                self.newest = self.newest.max((self.moment)(one));
            }
        }
        // As far as if all had been judged, so that the next group has its names whatever became of this one.
        self.look_ahead(kernel, at + GROUP + AHEAD);
        done
    }

    /// Judges one key. `false`, and nothing has changed, where that is no step.
    #[inline(always)]
    fn one<K: Kernel>(&mut self, kernel: K, at: usize) -> bool {
        let (tick, quick) = ((self.moment)(at), self.quick);
        if !quick.allows(tick, self.table.occupied) {
            return false;
        }
        self.look_ahead(kernel, at + AHEAD);
        let newest = self.newest.max(tick);
        if !self.verdicts[at].is_duplicate() {
            let age = quick.age_at(tick, self.newest);
            let (name, other) = self.ring.names(at);
            let step = self.table.step(kernel, (name, other), age, self.with_renewal);
            let is_known = match step {
                Some(is_known) => is_known,
                None if quick.lateness == 0 && self.table.insert_by_moves(name, newest) => false,
                None => return false,
            };
            self.verdicts[at] = verdict_of(is_known);
        }
        self.newest = newest;
        true
    }
}

#[inline(always)]
fn verdict_of(is_known: bool) -> Verdict {
    if is_known { Verdict::Duplicate } else { Verdict::Fresh }
}

/// The newest tick of a group.
#[inline(always)]
fn latest_of(moment: &impl Fn(usize) -> Tick, at: usize) -> Tick {
    let mut latest = moment(at);
    for one in 1..GROUP {
        latest = latest.max(moment(at + one));
    }
    latest
}

/// May each of a group be judged by a step, if none of them is later than a tick?
#[inline(always)]
fn is_quick_for_all(quick: Quick, latest: Tick, occupied: u64) -> bool {
    quick.allows(latest, occupied.saturating_add(GROUP as u64))
}

/// Is none of them called a duplicate yet?
#[inline(always)]
fn are_open(verdicts: &[Verdict; GROUP]) -> bool {
    let mut any = false;
    for one in verdicts {
        any |= one.is_duplicate();
    }
    !any
}

impl Work for Questions<'_> {
    type Result = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        let Self { table, digests, age, found } = self;
        let len = digests.len().min(found.len());
        let (digests, ahead) = (&digests[..len], (table.naming(), table.lines.ahead()));
        let (mut ring, mut known) = (Ring::NONE, 0);
        for (at, found) in found[..len].iter_mut().enumerate() {
            while known < len.min(at + AHEAD) {
                known = ring.look_ahead(kernel, ahead, digests, known);
            }
            *found = *found || table.is_in(kernel, ring.names(at), age);
        }
    }
}
