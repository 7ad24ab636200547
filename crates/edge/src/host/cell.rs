//! What a host keeps of a cell of 1 km.

use crate::Millis;
use crate::filter::{CellFilter, Group, Share, Stamp, group};
use crate::rules::{Mode, Rules};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use lately::Digest;

/// A cell's filter, and the numbers behind it.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) filter: CellFilter,
    /// Elements added in this epoch.
    pub(super) version: u32,
    /// The newest of them, with the grain at which each was added: what deltas are made of.
    pub(super) log: VecDeque<(Digest, u64)>,
    /// Readings kept of each element in this period.
    pub(super) kept: BTreeMap<Digest, Kept>,
    /// Workers that are here.
    pub(super) present: u32,
    /// Did anything arrive in this period?
    pub(super) active: bool,
}

/// Readings kept of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) count: u32,
    /// The grain of the first, or of the one that made it enough.
    pub(super) since: u64,
}

impl Kept {
    fn is_over(self, rules: &Rules, grain: u64) -> bool {
        matches!(rules.mode, Mode::Ageing { steps } if grain.saturating_sub(self.since) >= u64::from(steps))
    }
}

/// Entries of the log: a worker that missed more gets the whole filter, which is then shorter anyway.
const LOG: usize = 256;

impl Cell {
    pub(super) fn new(rules: &Rules, now: Millis) -> Self {
        Self {
            filter: CellFilter::new(rules, rules.grain(now)),
            version: 0,
            log: VecDeque::new(),
            kept: BTreeMap::new(),
            present: 0,
            active: false,
        }
    }

    /// Empties everything. Was there anything to empty, here or at a worker?
    pub(super) fn begin_period(&mut self, rules: &Rules) -> bool {
        let active = core::mem::take(&mut self.active);
        if active {
            self.filter = CellFilter::new(rules, 0);
            self.version = 0;
            self.log.clear();
            self.kept.clear();
        }
        active
    }

    /// How many readings of an element were kept in this period.
    pub(super) fn kept(&self, digest: Digest, rules: &Rules, grain: u64) -> u32 {
        self.kept
            .get(&digest)
            .filter(|kept| !kept.is_over(rules, grain))
            .map_or(0, |kept| kept.count)
    }

    /// Notes that a reading is kept; with the last one wanted the element is in the filter. `None` when
    /// there is no room for another element. For the first reading of an element, tells the chance at
    /// which the filter would have taken it for another.
    #[expect(
        clippy::option_option,
        reason = "kept or not, and the first or not, are two questions"
    )]
    pub(super) fn keep(
        &mut self,
        digest: Digest,
        wanted: u16,
        most: u32,
        rules: &Rules,
        grain: u64,
    ) -> Option<Option<f64>> {
        if !self.kept.contains_key(&digest) && self.kept.len() >= most as usize {
            self.forget_expired(rules, grain);
            if self.kept.len() >= most as usize {
                return None;
            }
        }
        let kept = self.kept.entry(digest).or_insert(Kept { count: 0, since: grain });
        if kept.is_over(rules, grain) {
            *kept = Kept { count: 0, since: grain };
        }
        kept.count = kept.count.saturating_add(1);
        let first = kept.count == 1;
        let enough = kept.count >= u32::from(wanted);
        if enough {
            kept.since = grain;
        }
        let chance = first.then(|| {
            let fill = f64::from(self.filter.ones()) / f64::from(rules.size.bits);
            libm::pow(fill, f64::from(rules.size.hashes))
        });
        if enough {
            self.filter.add(digest, grain);
            self.version = self.version.saturating_add(1);
            if self.log.len() >= LOG {
                self.log.pop_front();
            }
            self.log.push_back((digest, grain));
        }
        Some(chance)
    }

    /// The filter for a worker that knows some state, or none.
    pub(super) fn share(
        &mut self,
        stamp: Stamp,
        known: Option<Stamp>,
        rules: &Rules,
        now: Millis,
    ) -> Share {
        let grain = rules.grain(now);
        let known = known.filter(|known| known.is_comparable(stamp));
        let missed = known.and_then(|known| self.version.checked_sub(known.version));
        let groups = self.filter.contents(grain);
        if let Some(missed) =
            missed.map(|missed| missed as usize).filter(|&missed| missed <= self.log.len())
        {
            let delta = self.added(missed, rules, grain);
            if bytes(&delta) <= bytes(&groups) {
                let since = Some(stamp.version - missed as u32);
                return Share { stamp, since, groups: delta };
            }
        }
        Share { stamp, since: None, groups }
    }

    /// The elements added last, those that are due again left out.
    fn added(&self, last: usize, rules: &Rules, grain: u64) -> Vec<Group> {
        let steps = match rules.mode {
            Mode::Reset => u64::MAX,
            Mode::Ageing { steps } => u64::from(steps),
        };
        let entries = self.log.iter().skip(self.log.len() - last);
        let live = entries.map(|&(digest, added)| (digest, grain.saturating_sub(added)));
        let live = live.filter(|&(_, age)| age < steps);
        group(
            live.flat_map(|(digest, age)| {
                rules.size.positions(digest).map(move |position| (position, age))
            }),
            rules.size,
        )
    }

    /// Forgets elements that are due again anyway.
    pub(super) fn forget_expired(&mut self, rules: &Rules, grain: u64) {
        if let Mode::Ageing { .. } = rules.mode {
            self.kept.retain(|_, kept| !kept.is_over(rules, grain));
        }
    }

    /// Is there anything that a worker who comes back would miss?
    pub(super) fn holds_anything(&self) -> bool {
        !self.kept.is_empty() || self.filter.ones() > 0
    }
}

fn bytes(groups: &[Group]) -> usize {
    groups.iter().map(|group| 2 + group.positions.len()).sum()
}
