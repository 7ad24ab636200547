use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

/// What is done to a line.
#[derive(Clone, Copy, Debug)]
enum Act {
    Equal(u16),
    Push(u32, u64),
    Place(u32, u32, u16, u64),
    Cut(u32, u32, u64),
    Deposit(u32, u64),
    Group([u64; 16], [u16; 8], bool),
}

/// The first entry to be moved, and a bit for the last.
fn placed() -> impl Strategy<Value = (u32, u32)> {
    (0u32..29, any::<u32>(), 1u32..1 << 29).prop_map(|(from, last, more)| {
        let last = from + last % (29 - from);
        (from, 1 << last | more >> last << last)
    })
}

/// The entries that are left, and where the next begin.
fn cut() -> impl Strategy<Value = (u32, u32)> {
    (0u32..=29, any::<u32>()).prop_map(|(count, end)| (count, count + end % (30 - count)))
}

/// Different lines, or two of them the same.
fn lines_of_group() -> impl Strategy<Value = [u64; 16]> {
    let order = Just((0u64..40).collect::<Vec<_>>()).prop_shuffle();
    (order, prop::option::weighted(0.3, (0usize..16, 0usize..16))).prop_map(|(order, same)| {
        let mut lines: [u64; 16] = core::array::from_fn(|at| order[at]);
        if let Some((one, other)) = same {
            lines[one] = lines[other];
        }
        lines
    })
}

fn act() -> impl Strategy<Value = Act> {
    let groups = (lines_of_group(), prop::array::uniform8(1u16..6), any::<bool>());
    prop_oneof![
        (0u16..6).prop_map(Act::Equal),
        (1u32..1 << 29, any::<u64>()).prop_map(|(upto, first)| Act::Push(upto, first)),
        (placed(), 1u16..6, any::<u64>())
            .prop_map(|((from, upto), lane, first)| Act::Place(from, upto, lane, first)),
        (cut(), any::<u64>()).prop_map(|((count, end), first)| Act::Cut(count, end, first)),
        (0u32..64, any::<u64>()).prop_map(|(n, word)| Act::Deposit(n, word)),
        groups.prop_map(|(lines, lanes, renews)| Act::Group(lines, lanes, renews)),
    ]
}

/// What a line is in plain words: its first word, and the entries.
fn parts(line: &Line) -> Vec<u16> {
    let lane = |at: usize| (line[at / 4] >> (16 * (at % 4))) as u16;
    [0].into_iter().chain(4..32).map(lane).collect()
}

/// The twin of [`arrive`], in plain words.
fn arrive_by_hand(
    lines: &mut [Line],
    (a, b): (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    let find = |at: usize| parts(&lines[at]).iter().position(|&one| one == lane);
    let count = |at: usize| (lines[at][0] & STRING).count_ones();
    let (at, found) = match (find(a), find(b)) {
        (Some(place), _) => (a, Some(place)),
        (None, Some(place)) => (b, Some(place)),
        (None, None) => (if count(b) < count(a) { b } else { a }, None),
    };
    if found.is_none() && count(at) >= ENTRIES {
        return None;
    }
    if found.is_some() && !renews {
        return Some(true);
    }
    let string = lines[at][0] & STRING;
    let upto = found
        .map_or(64, |place| (16..64).filter(|bit| string >> bit & 1 == 1).nth(place).unwrap_or(64));
    let low = if upto >= 63 { u64::MAX } else { (2 << upto) - 1 };
    let string = string << 1 & low | string & !low | 1 << 16;
    Scalar.push(&mut lines[at], 1 << found.unwrap_or(28), string | u64::from(lane));
    Some(found.is_some())
}

/// The twin of [`Kernel::group`].
fn group_by_hand(lines: &mut [Line], group: &Group, renews: bool) -> (usize, u8) {
    let mut sorted = group.lines.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return (0, 0);
    }
    let (mut done, mut known) = (0, 0);
    while done < GROUP {
        let places = (group.lines[done] as usize, group.lines[done + GROUP] as usize);
        let lane = group.lanes[done] as u16;
        let Some(is_known) = arrive_by_hand(lines, places, lane, renews) else { break };
        known |= u8::from(is_known) << done;
        done += 1;
    }
    (done, known)
}

struct Acting<'a>(&'a mut [Line], Act);

impl Work for Acting<'_> {
    type Result = u64;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> u64 {
        let line = &mut self.0[0];
        match self.1 {
            Act::Equal(lane) => u64::from(kernel.equal(line, lane)),
            Act::Push(upto, first) => {
                kernel.push(line, upto, first);
                0
            }
            Act::Place(from, upto, lane, first) => {
                kernel.place(line, from, upto, lane, first);
                0
            }
            Act::Cut(count, end, first) => {
                kernel.cut(line, count, end, first);
                0
            }
            Act::Deposit(n, word) => kernel.deposit(1 << n, word),
            Act::Group(lines, lanes, renews) => {
                let group = Group { lines, lanes: lanes.map(u64::from) };
                let (done, known) = if K::GROUPS {
                    kernel.group(self.0, &group, renews)
                } else {
                    group_by_hand(self.0, &group, renews)
                };
                (done as u64) << 8 | u64::from(known)
            }
        }
    }
}

/// Lines with a few different entries, as tables have them: as many as their strings have bits.
fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (prop::collection::vec(1u16..6, 0..=29), any::<u64>(), 0u32..19).prop_map(
        |(entries, pattern, generations)| {
            let mut line: Line = [0; 8];
            let (mut place, mut left) = (16, generations);
            for (at, &entry) in entries.iter().enumerate() {
                let lane = if at == 0 { 0 } else { at + 3 };
                line[lane / 4] |= u64::from(entry) << (16 * (lane % 4));
                if pattern >> at & 1 == 1 && left > 0 {
                    (place, left) = (place + 1, left - 1);
                }
                line[0] |= 1 << place;
                place += 1;
            }
            line
        },
    );
    prop::collection::vec(line, 40)
}

proptest! {
    /// All that the processor has do the same as plain code.
    #[test]
    fn every_instruction_set_does_the_same(
        lines in lines(), acts in prop::collection::vec(act(), 1..30),
    ) {
        let run = |level: Level| {
            let mut lines = lines.clone();
            let results: Vec<u64> =
                acts.iter().map(|&act| level.run(Acting(&mut lines, act))).collect();
            (lines, results)
        };
        let expected = run(Level::Scalar);
        for level in Level::all() {
            prop_assert_eq!(&run(level), &expected, "{:?}", level);
        }
    }

    /// And the plain code does what it says.
    #[test]
    fn plain_code_does_what_it_says(
        lines in lines(), lane in 0u16..6, upto in 1u32..1 << 29, (from, until) in placed(),
        (count, end) in cut(), first: u64, word: u64,
    ) {
        let line = lines[0];
        let old = parts(&line);
        let equal: u32 = old.iter().enumerate().map(|(at, &one)| u32::from(one == lane) << at).sum();
        prop_assert_eq!(Scalar.equal(&line, lane), equal);
        let (mut pushed, mut placed, mut cut) = (line, line, line);
        Scalar.push(&mut pushed, upto, first);
        let mut expected = old.clone();
        expected.remove(upto.trailing_zeros() as usize);
        expected.insert(0, first as u16);
        prop_assert_eq!((parts(&pushed), pushed[0]), (expected, first));
        // Entry 0 comes with the first word.
        let first_of = |entries: &[u16]| first & STRING | u64::from(entries[0]);
        let mut expected = old.clone();
        expected.remove(until.trailing_zeros() as usize);
        expected.insert(from as usize, lane);
        Scalar.place(&mut placed, from, until, lane, first_of(&expected));
        prop_assert_eq!((parts(&placed), placed[0]), (expected.clone(), first_of(&expected)));
        let mut expected = old;
        expected[count as usize..end as usize].fill(0);
        expected[0] = first as u16;
        Scalar.cut(&mut cut, count, end, first);
        prop_assert_eq!((parts(&cut), cut[0]), (expected, first));
        for n in 0..64 {
            let bit = (0..64).filter(|at| word >> at & 1 == 1).nth(n).map_or(0, |at| 1u64 << at);
            prop_assert_eq!(Scalar.deposit(1 << n, word), bit);
        }
        prop_assert_eq!(Scalar.deposit(0, word), 0);
    }

    /// One arrival, and one question, with each set and by hand.
    #[test]
    fn arrivals_one_by_one_are_those_by_hand(
        lines in lines(), a in 0usize..40, b in 0usize..40, lane in 1u16..6, renews: bool,
    ) {
        let mut expected = lines.clone();
        let verdict = arrive_by_hand(&mut expected, (a, b), lane, renews);
        let is_in = |at: usize| parts(&lines[at]).contains(&lane);
        for level in Level::all() {
            let mut lines = lines.clone();
            let found = level.is_in_either(&lines[a], &lines[b], lane);
            prop_assert_eq!(found, is_in(a) || is_in(b), "{:?}", level);
            prop_assert_eq!(level.arrive(&mut lines, (a, b), lane, renews), verdict, "{:?}", level);
            prop_assert_eq!(&lines, &expected, "{:?}", level);
        }
    }
}
