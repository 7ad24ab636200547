//! Many keys in order, at moments that let no generation begin.

use super::step::Quick;
use super::{Name, Table};
use crate::bits::kernel::{GROUP, Group, Kernel, Work};
use crate::{Digest, Tick, Verdict};

/// Keys ahead of the one being judged whose lines are being fetched.
const AHEAD: usize = 24;

/// Names that are known ahead: a power of two, above [`AHEAD`] and a group.
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

    #[inline(always)]
    fn set(&mut self, at: usize, (name, other): (Name, u64)) {
        let (group, one) = (&mut self.0[at / GROUP % (RING / GROUP)], at % GROUP);
        (group.lines[one], group.lines[GROUP + one]) = (name.home, other);
        group.lanes[one] = name.fingerprint;
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

    /// Begins to fetch the lines of a key: both, and its fingerprint.
    #[inline(always)]
    fn look_ahead(&self, digest: Digest) -> (Name, u64) {
        let name = self.name(digest);
        let other = self.other(name);
        self.lines.prefetch(name.home);
        self.lines.prefetch(other);
        (name, other)
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
        let mut ring = Ring::NONE;
        let mut known = 0;
        while known < len.min(AHEAD) {
            ring.set(known, table.look_ahead(digests[known]));
            known += 1;
        }
        let mut at = 0;
        while at < len {
            if by_groups && at + GROUP <= len {
                let latest = latest_of(&moment, at);
                if is_quick_for_all(quick, latest, table.occupied)
                    && are_open(&verdicts[at..at + GROUP])
                    && let Some(found) =
                        kernel.group(table.lines.settled_mut(), ring.group(at), with_renewal)
                {
                    for one in 0..GROUP {
                        if found >> one & 1 == 1 {
                            verdicts[at + one] = Verdict::Duplicate;
                        }
                        if known < len {
                            ring.set(known, table.look_ahead(digests[known]));
                            known += 1;
                        }
                    }
                    table.occupied += u64::from(found.count_zeros());
                    newest = newest.max(latest);
                    at += GROUP;
                    continue;
                }
            }
            // One by one, up to where the next group may begin.
            let to = if by_groups { (at + GROUP).min(len) } else { len };
            while at < to {
                let tick = moment(at);
                if !quick.allows(tick, table.occupied) {
                    return (at, newest);
                }
                if known < len {
                    ring.set(known, table.look_ahead(digests[known]));
                    known += 1;
                }
                if !verdicts[at].is_duplicate() {
                    let age = quick.age_at(tick, newest);
                    let Some(is_known) = table.step(kernel, ring.names(at), age, with_renewal)
                    else {
                        return (at, newest);
                    };
                    if is_known {
                        verdicts[at] = Verdict::Duplicate;
                    }
                }
                newest = newest.max(tick);
                at += 1;
            }
        }
        (len, newest)
    }
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
fn are_open(verdicts: &[Verdict]) -> bool {
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
        for at in 0..len {
            if at + AHEAD < len {
                table.look_ahead(digests[at + AHEAD]);
            }
            let name = table.name(digests[at]);
            found[at] = found[at] || table.is_in(kernel, (name, table.other(name)), age);
        }
    }
}
