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
            kernel.places(digests, naming.lines & 0xFFFF_FFFF, group);
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
        let Self { table, digests, moment, mut newest, verdicts, with_renewal } = self;
        let quick = table.quick;
        // A group knows no ages.
        let by_groups = K::GROUPS && table.layout.rest == 0 && quick.lateness == 0;
        let len = digests.len().min(verdicts.len());
        let (digests, verdicts) = (&digests[..len], &mut verdicts[..len]);
        let ahead = (table.naming(), table.lines.ahead());
        let (mut ring, mut known) = (Ring::NONE, 0);
        while known < len.min(AHEAD) {
            known = ring.look_ahead(kernel, ahead, digests, known);
        }
        let mut at = 0;
        while at < len {
            if by_groups && let Some(verdicts) = verdicts[at..].first_chunk_mut::<GROUP>() {
                let latest = latest_of(&moment, at);
                if is_quick_for_all(quick, latest, table.occupied) && are_open(verdicts) {
                    let lines = table.lines.settled_mut();
                    let (done, found) = kernel.group(lines, ring.group(at), with_renewal);
                    for (one, verdict) in verdicts.iter_mut().enumerate() {
                        *verdict = verdict_of(found >> one & 1 == 1);
                    }
                    table.occupied += done as u64 - u64::from(found.count_ones());
                    if done == GROUP {
                        while known < len.min(at + GROUP + AHEAD) {
                            known = ring.look_ahead(kernel, ahead, digests, known);
                        }
                        newest = newest.max(latest);
                        at += GROUP;
                        continue;
                    }
                    for one in at..at + done {
                        newest = newest.max(moment(one));
                    }
                    at += done;
                }
            }
            // One by one, up to where the next group may begin.
            let to = if by_groups { (at / GROUP * GROUP + GROUP).min(len) } else { len };
            while at < to {
                let tick = moment(at);
                if !quick.allows(tick, table.occupied) {
                    return (at, newest);
                }
                if known < len.min(at + AHEAD) {
                    known = ring.look_ahead(kernel, ahead, digests, known);
                }
                if !verdicts[at].is_duplicate() {
                    let age = quick.age_at(tick, newest);
                    let (name, other) = ring.names(at);
                    let is_known = match table.step(kernel, (name, other), age, with_renewal) {
                        Some(is_known) => is_known,
                        None if quick.lateness == 0 && table.insert_by_moves(name, tick) => false,
                        None => return (at, newest),
                    };
                    verdicts[at] = verdict_of(is_known);
                }
                newest = newest.max(tick);
                at += 1;
            }
        }
        (len, newest)
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
