//! What a host keeps of a cell of 1 km.

use super::past::Past;
use crate::Millis;
use crate::element::Element;
use crate::filter::{CellFilter, Contents, Group, Named, Share, Stamp, group};
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
    pub(super) log: VecDeque<(Element, u64)>,
    /// Readings kept of each element in this period.
    pub(super) kept: BTreeMap<Element, Kept>,
    /// Workers that are here.
    pub(super) present: u32,
    /// How often its filter was emptied before the period ended.
    pub(super) resets: u32,
    /// Did anything arrive in this period?
    pub(super) active: bool,
    /// The whole filter as it was written since the last addition, with the grain: many workers may come
    /// between two.
    written: Option<(u64, Vec<Group>)>,
}

/// Readings kept of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) count: u32,
    /// Is the element in the filter?
    pub(super) added: bool,
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
    pub(super) fn new(rules: &Rules, now: Millis, version: u32) -> Self {
        Self {
            filter: CellFilter::new(rules, rules.grain(now)),
            version,
            log: VecDeque::new(),
            kept: BTreeMap::new(),
            present: 0,
            resets: 0,
            active: false,
            written: None,
        }
    }

    /// Empties everything. Was there anything to empty, here or at a worker?
    pub(super) fn begin_period(&mut self, rules: &Rules) -> bool {
        let active = core::mem::take(&mut self.active);
        if active {
            self.filter = CellFilter::new(rules, 0);
            (self.version, self.written) = (0, None);
            self.log.clear();
            self.kept.clear();
        }
        active
    }

    /// How many readings of an element were kept in this period.
    pub(super) fn kept(&self, element: &Element, rules: &Rules, grain: u64) -> u32 {
        self.kept
            .get(element)
            .filter(|kept| !kept.is_over(rules, grain))
            .map_or(0, |kept| kept.count)
    }

    /// How many of the readings that are counted at present, where elements age, are of a period that is over.
    pub(super) fn kept_in(&self, element: &Element, period: u64, rules: &Rules) -> u32 {
        let ageing = matches!(rules.mode, Mode::Ageing { .. });
        let is_of = |kept: &&Kept| ageing && rules.period_of_grain(kept.since) == period;
        self.kept.get(element).filter(is_of).map_or(0, |kept| kept.count)
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
        element: Element,
        digest: Digest,
        (wanted, most): (u16, u32),
        (rules, grain): (&Rules, u64),
        past: &mut Past,
    ) -> Option<Option<f64>> {
        if !self.kept.contains_key(&element) && self.kept.len() >= most as usize {
            self.forget_expired(rules, grain, past);
            if self.kept.len() >= most as usize {
                return None;
            }
        }
        let none = Kept { count: 0, added: false, since: grain };
        let kept = self.kept.entry(element).or_insert(none);
        if kept.is_over(rules, grain) {
            past.add(rules.period_of_grain(kept.since), element, kept.count);
            *kept = none;
        }
        kept.count = kept.count.saturating_add(1);
        let first = kept.count == 1;
        let enough = kept.count >= u32::from(wanted);
        if enough {
            (kept.added, kept.since) = (true, grain);
        }
        let chance = first.then(|| {
            let fill = f64::from(self.filter.ones()) / f64::from(rules.size.bits);
            libm::pow(fill, f64::from(rules.size.hashes))
        });
        if enough {
            self.written = None;
            self.filter.add(digest, grain);
            self.version = self.version.saturating_add(1);
            if self.log.len() >= LOG {
                self.log.pop_front();
            }
            self.log.push_back((element, grain));
        }
        Some(chance)
    }

    /// The filter for a worker that knows some state, or none; by names, where they are not longer.
    pub(super) fn share(
        &mut self,
        stamp: Stamp,
        known: Option<Stamp>,
        rules: &Rules,
        now: Millis,
        names: bool,
    ) -> Share {
        let grain = rules.grain(now);
        let known = known.filter(|known| known.is_comparable(stamp));
        let missed = known.and_then(|known| self.version.checked_sub(known.version));
        let missed = missed.map(|missed| missed as usize);
        // What was added is a part of all, so it is never longer.
        if let Some(missed) = missed.filter(|&missed| missed <= self.log.len()) {
            let added = self.log.iter().skip(self.log.len() - missed).copied();
            let contents = list(added, rules, (grain, stamp.epoch), names);
            return Share { stamp, since: Some(stamp.version - missed as u32), contents };
        }
        // Two bytes an element and some for each property, against a byte for 8 bits at most.
        if names && self.kept.len() * 2 <= rules.size.bits as usize / 8 {
            let added = self.kept.iter().filter(|(_, kept)| kept.added);
            let added = added.map(|(&element, kept)| (element, kept.since));
            return Share {
                stamp,
                since: None,
                contents: list(added, rules, (grain, stamp.epoch), names),
            };
        }
        Share { stamp, since: None, contents: Contents::Positions(self.positions(rules, grain)) }
    }

    /// The whole filter by positions. Where nothing was added since it was last written, the same positions
    /// are only older by now.
    fn positions(&mut self, rules: &Rules, grain: u64) -> Vec<Group> {
        // Also where it need not be read: the fill is judged as of the newest grain.
        self.filter.advance(grain);
        let groups = match self.written.take() {
            Some((before, mut groups)) => {
                let passed = grain.saturating_sub(before);
                if let (Mode::Ageing { steps }, 1..) = (rules.mode, passed) {
                    let live = |age: u8| u64::from(age).saturating_add(passed) < u64::from(steps);
                    groups.retain(|group| live(group.age));
                    groups.iter_mut().for_each(|group| group.age += passed as u8);
                }
                groups
            }
            None => self.filter.contents(grain),
        };
        self.written = Some((grain, groups.clone()));
        groups
    }

    /// Forgets elements that are due again anyway.
    pub(super) fn forget_expired(&mut self, rules: &Rules, grain: u64, past: &mut Past) {
        if let Mode::Ageing { .. } = rules.mode {
            self.kept.retain(|&element, kept| {
                let is_over = kept.is_over(rules, grain);
                if is_over {
                    past.add(rules.period_of_grain(kept.since), element, kept.count);
                }
                !is_over
            });
            self.filter.advance(grain);
        }
    }

    /// Is there anything that a worker who comes back would miss?
    pub(super) fn holds_anything(&self) -> bool {
        !self.kept.is_empty() || self.filter.ones() > 0
    }
}

/// Elements with the grain in which each was added; those that are due again are left out.
fn list(
    added: impl Iterator<Item = (Element, u64)>,
    rules: &Rules,
    (grain, epoch): (u64, u32),
    names: bool,
) -> Contents {
    let steps = match rules.mode {
        Mode::Reset => u64::MAX,
        Mode::Ageing { steps } => u64::from(steps),
    };
    let aged = added.map(|(element, added)| (element, grain.saturating_sub(added)));
    let live = aged.filter(|&(_, age)| age < steps);
    if names {
        let mut elements: Vec<Named> =
            live.map(|(element, age)| Named { element, age: age as u8 }).collect();
        elements.sort_by_key(|named| named.element.property);
        return Contents::Elements(elements);
    }
    let salt = Rules::salt(epoch);
    let positions = live.flat_map(|(element, age)| {
        rules.size.positions(element.digest(salt)).map(move |position| (position, age))
    });
    Contents::Positions(group(positions, rules.size))
}
