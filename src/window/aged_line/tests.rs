//! One line beside a plain model, and the moves of its bits beside one bit after the other.

use super::*;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// What one line must be: fingerprints and moments in grains, in the order of the line.
struct Model {
    layout: Layout,
    line: Line,
    entries: Vec<(u64, u64)>,
    now: u64,
    /// The generation of the last turn.
    turned: u64,
    /// Was an entry made younger where it lies? Then its generation is in order no more.
    touched: bool,
}

#[derive(Clone, Debug)]
enum Op {
    /// So many generations, and grains.
    Pass(u64, u64),
    Turn,
    Append(u64),
    /// An entry of some age of the window, from 0 to all of it.
    Insert(u64, u64),
    Remove(usize),
    Touch(usize),
    /// What a table does with a key that it knows.
    Renew(usize),
    Find(u64),
}

/// Few, so that many are equal or differ in their lanes only, or in one bit behind these.
fn fingerprint() -> impl Strategy<Value = u64> {
    let lane = prop::sample::select(vec![0u64, 1, 0x8000, 0xFFFF]);
    let rest = prop::sample::select(vec![0u64, 1, 0x100, 1 << 47, (1 << 48) - 1]);
    prop_oneof![4 => (lane, rest).prop_map(|(lane, rest)| lane | rest << LANE), 1 => any::<u64>()]
}

/// 0 and all are as likely as anything between.
fn share() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0u64..2, share()).prop_map(|(generations, more)| Op::Pass(generations, more)),
        1 => (0u64..8, 0u64..2).prop_map(|(generations, more)| Op::Pass(generations, more)),
        1 => Just(Op::Turn),
        4 => fingerprint().prop_map(Op::Append),
        4 => (fingerprint(), share()).prop_map(|(fingerprint, age)| Op::Insert(fingerprint, age)),
        1 => any::<usize>().prop_map(Op::Remove),
        1 => any::<usize>().prop_map(Op::Touch),
        2 => any::<usize>().prop_map(Op::Renew),
        1 => fingerprint().prop_map(Op::Find),
    ]
}

/// Windows of all lengths in grains, most of them no multiples of eight.
fn steps() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..=40, 1 => Just(100), 1 => Just(1_000), 1 => Just((1 << 20) + 1),
        1 => Just(1 << 60)]
}

impl Model {
    fn new(layout: Layout, now: u64) -> Self {
        Self { layout, line: [0; 8], entries: Vec::new(), now, turned: 0, touched: false }
    }

    fn moment(&self) -> Moment {
        self.layout.moment(self.now)
    }

    fn is_live(&self, moment: u64) -> bool {
        self.now - moment <= self.layout.steps
    }

    /// By generations; by moments too, as long as none was made younger where it lies.
    fn is_in_order(&self, entries: &[(u64, u64)]) -> bool {
        let are = entries.is_sorted_by_key(|entry| entry.1 >> self.layout.fine);
        are && (self.touched || entries.is_sorted_by_key(|entry| entry.1))
    }

    fn mask(&self, fingerprint: u64) -> u64 {
        fingerprint & u64::MAX >> (64 - self.layout.fingerprint_bits())
    }

    /// No more than a line may wait for its turn.
    fn pass(&mut self, generations: u64, more: u64) {
        let fine = self.layout.fine;
        let more = ((u128::from(more) << fine) >> 64) as u64 + more % 2;
        let mut then = self.now.saturating_add((generations << fine).saturating_add(more));
        if !self.entries.is_empty() {
            then = then.min(((self.turned + TURNS) << fine) - 1);
        }
        self.now = then.min(1 << 63);
    }

    /// Expired ones are dropped up to the first that has not: all, if they are in order.
    fn turn(&mut self) -> Result<(), TestCaseError> {
        let expired = self.entries.iter().take_while(|entry| !self.is_live(entry.1)).count();
        self.entries.drain(..expired);
        prop_assert!(self.touched || self.entries.iter().all(|entry| self.is_live(entry.1)));
        self.touched &= !self.entries.is_empty();
        self.turned = self.now >> self.layout.fine;
        let now = self.moment();
        let gone = self.layout.turn(&mut self.line, now);
        prop_assert_eq!(gone as usize, expired);
        Ok(())
    }

    fn insert(&mut self, fingerprint: u64, age: u64) -> Result<(), TestCaseError> {
        let age = age.min(self.now);
        let entry = self.layout.aged(fingerprint, age, self.moment());
        self.layout.insert(&mut self.line, entry);
        let new = (fingerprint, self.now - age);
        let place = (0..=self.entries.len()).find(|&at| {
            let mut entries = self.entries.clone();
            entries.insert(at, new);
            self.is_in_order(&entries) && self.built(&entries) == self.line
        });
        prop_assert!(place.is_some(), "{:x?}", new);
        self.entries.insert(place.unwrap_or(0), new);
        Ok(())
    }

    fn renew(&mut self, at: usize) -> Result<(), TestCaseError> {
        let (fingerprint, moment) = self.entries[at];
        if !self.is_live(moment) || self.touch(at)? {
            return Ok(());
        }
        let before = self.entries.len();
        self.turn()?;
        let at = at - (before - self.entries.len());
        self.layout.remove(&mut self.line, at as u32);
        self.entries.remove(at);
        self.append(fingerprint);
        Ok(())
    }

    fn append(&mut self, fingerprint: u64) {
        let now = self.moment();
        self.layout.append(&mut self.line, fingerprint, now);
        self.entries.push((fingerprint, self.now));
    }

    fn touch(&mut self, at: usize) -> Result<bool, TestCaseError> {
        let is_present = self.entries[at].1 >> self.layout.fine == self.now >> self.layout.fine;
        let now = self.moment();
        let touched = self.layout.touch(&mut self.line, at as u32, now);
        prop_assert_eq!(touched, is_present);
        if is_present {
            self.entries[at].1 = self.now;
            self.touched = true;
        }
        Ok(is_present)
    }

    fn find(&self, fingerprint: u64) -> Result<(), TestCaseError> {
        let candidates = self.layout.candidates(&self.line, fingerprint);
        prop_assert_eq!(candidates >> self.layout.slots, 0);
        for at in 0..self.layout.slots {
            let entry = self.entries.get(at as usize);
            // Slots that are not in use are zero.
            let lane = entry.map_or(0, |entry| entry.0);
            prop_assert_eq!(candidates >> at & 1 == 1, (lane ^ fingerprint) as u16 == 0);
            if candidates >> at & 1 == 1 {
                let same = entry.filter(|entry| entry.0 == fingerprint && self.is_live(entry.1));
                let age = self.layout.age_if_same(&self.line, at, fingerprint, self.moment());
                prop_assert_eq!(age, same.map(|entry| self.now - entry.1));
            }
        }
        Ok(())
    }

    /// A line of these entries, written bit by bit.
    fn built(&self, entries: &[(u64, u64)]) -> Line {
        let (mut line, layout) = ([0; 8], self.layout);
        let mut write = |from: u32, width: u32, value: u64| {
            for bit in 0..width {
                line[(from + bit) as usize / 64] |= (value >> bit & 1) << ((from + bit) % 64);
            }
        };
        let generations = |entry: &(u64, u64)| self.turned - (entry.1 >> layout.fine);
        for generation in 0..layout.oldest {
            let older = entries.iter().filter(|entry| generations(entry) > generation).count();
            write(5 * generation as u32, 5, older as u64);
        }
        write(40, 5, entries.len() as u64);
        write(45, 3, self.turned % 8);
        for (at, &(fingerprint, moment)) in (0..).zip(entries) {
            write(48 + 16 * at, 16, fingerprint);
            let behind = 48 + 16 * layout.slots + (layout.rest + layout.fine) * at;
            write(behind, layout.rest, fingerprint >> 15 >> 1);
            write(behind + layout.rest, layout.fine, moment);
        }
        line
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let entries = self.entries.len();
        let chosen = |at: usize| at % entries.max(1);
        match *op {
            Op::Pass(generations, more) => self.pass(generations, more),
            Op::Find(fingerprint) => self.find(self.mask(fingerprint))?,
            Op::Renew(at) if entries > 0 => self.renew(chosen(at))?,
            Op::Touch(at) if entries > 0 => {
                self.touch(chosen(at))?;
            }
            _ => self.turn()?,
        }
        let entries = self.entries.len();
        match *op {
            Op::Append(fingerprint) if entries < self.layout.slots as usize => {
                self.append(self.mask(fingerprint));
            }
            Op::Insert(fingerprint, share) if entries < self.layout.slots as usize => {
                let age = ((u128::from(share) * u128::from(self.layout.steps + 1)) >> 64) as u64;
                self.insert(self.mask(fingerprint), age)?;
            }
            Op::Remove(at) if entries > 0 => {
                self.layout.remove(&mut self.line, (at % entries) as u32);
                self.entries.remove(at % entries);
            }
            _ => {}
        }
        self.check()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let (layout, entries) = (self.layout, &self.entries);
        prop_assert_eq!(self.line, self.built(entries));
        prop_assert!(layout.is_sound(&self.line));
        prop_assert_eq!(count(&self.line) as usize, entries.len());
        prop_assert!(self.is_in_order(entries));
        let live = entries.iter().filter(|entry| self.is_live(entry.1));
        let ages = live.map(|entry| (entry.0, self.now - entry.1));
        prop_assert!(layout.entries(&self.line, self.moment()).eq(ages));
        entries.iter().try_for_each(|entry| self.find(entry.0))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases,
        ..ProptestConfig::default() })]

    /// Any calls in any order, as far as they are allowed: all bits of the line at every step.
    #[test]
    fn a_line_is_what_the_model_says(
        rest in prop::sample::select(vec![0u32, 1, 9, 30, 48]), steps in steps(),
        start in prop_oneof![Just(0u64), 0u64..2_000, 0u64..1 << 62],
        ops in prop::collection::vec(op(), 0..150),
    ) {
        let mut model = Model::new(Layout::new(LANE + rest, steps), start);
        model.turn()?;
        for op in ops {
            model.step(&op)?;
        }
    }

    /// Soundness is exact: no other number of entries, or bit behind them, goes with a line.
    #[test]
    fn a_line_with_a_bit_too_many_is_not_sound(
        rest in prop::sample::select(vec![0u32, 1, 9, 30, 48]), steps in steps(),
        fingerprints in prop::collection::vec(fingerprint(), 0..29), bit in 0usize..512,
    ) {
        let mut model = Model::new(Layout::new(LANE + rest, steps), steps);
        model.turn()?;
        for fingerprint in fingerprints.into_iter().take(model.layout.slots as usize) {
            model.append(model.mask(fingerprint));
        }
        let (layout, entries) = (model.layout, model.entries.len() as u32);
        let is_free = bit >= layout.behind(entries)
            || (HEAD + (LANE * entries) as usize..layout.end_of_lanes()).contains(&bit);
        let is_older = bit < COUNT as usize && bit / NUMBER >= layout.oldest as usize;
        model.line[bit / 64] ^= 1 << (bit % 64);
        let is_some = (HEAD..512).contains(&bit) && !is_free;
        let is_turn = (TURN as usize..HEAD).contains(&bit);
        prop_assert!(!(is_free || is_older) || !layout.is_sound(&model.line), "{bit}");
        prop_assert!(!(is_some || is_turn) || layout.is_sound(&model.line), "{bit}");
    }

    #[test]
    fn bits_are_moved_as_one_by_one(
        line: Line, from in place(0), end in place(1), by in 1usize..512,
    ) {
        let (from, end) = (from.min(end - 1), from.max(end));
        let by = 1 + (by - 1) % (end - from);
        let before: Vec<bool> = (0..512).map(|bit| is_set(&line, bit)).collect();
        let (mut closed, mut opened) = (line, line);
        close(&mut closed, from, by, end);
        open(&mut opened, from, by, end);
        for (bit, &same) in before.iter().enumerate() {
            let inside = (from..end).contains(&bit);
            let above = bit + by < end && before[(bit + by) % 512];
            let below = bit >= from + by && before[bit.saturating_sub(by)];
            prop_assert_eq!(is_set(&closed, bit), if inside { above } else { same }, "{}", bit);
            prop_assert_eq!(is_set(&opened, bit), if inside { below } else { same }, "{}", bit);
        }
    }

    #[test]
    fn bits_are_read_and_changed_as_one_by_one(
        line: Line, from in place(0), width in 1u32..=64, value: u64,
    ) {
        let from = from.min(512 - width as usize);
        let value = value & u64::MAX >> (64 - width);
        let read = (0..width).map(|bit| u64::from(is_set(&line, from + bit as usize)) << bit);
        prop_assert_eq!(bits(&line, from, width), read.sum::<u64>());
        let mut changed = line;
        set(&mut changed, from, value);
        for bit in 0..512 {
            let inside = bit >= from && bit - from < width as usize;
            let flips = inside && value >> ((bit - from) % 64) & 1 == 1;
            prop_assert_eq!(is_set(&changed, bit), is_set(&line, bit) ^ flips, "{}", bit);
        }
    }
}

fn is_set(line: &Line, bit: usize) -> bool {
    line[bit / 64] >> (bit % 64) & 1 == 1
}

/// A bit, most often one next to where a word begins.
fn place(least: usize) -> impl Strategy<Value = usize> {
    let edges = (0..8usize).prop_map(|word| 64 * word).prop_flat_map(|at| at.max(1) - 1..at + 2);
    prop_oneof![edges, 0usize..512].prop_map(move |at| at + least)
}

/// As many entries as fit, of as few bits as tell eight generations.
#[test]
fn a_layout_fills_the_line() {
    for bits in 16..=64 {
        for steps in (1..3_000).chain([1 << 20, (1 << 20) + 1, 1 << 60]) {
            let layout = Layout::new(bits, steps);
            let (fine, slots) = (layout.fine, layout.slots);
            assert!(steps <= 8 << fine && (fine == 0 || steps > 8 << (fine - 1)), "{steps}");
            let left = 512 - 48 - slots * (bits + fine);
            assert!(left < bits + fine && slots > 0, "{bits} {steps}");
            assert!(1 << fine > (steps - 1) / layout.oldest && layout.oldest <= 8);
        }
    }
}
