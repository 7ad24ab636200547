//! Room that is made by moving entries to their other lines.

/// Lines that are looked at for room, at first and at the most. Mostly there is some near, and a long list of what has
/// been looked at takes time to lay out.
const FEW_LOOKS: usize = 16;
const LOOKS: usize = 256;

/// Lines whose entries may lie in one other line each.
pub(super) trait Rooms {
    /// Entries that a line has place for.
    fn slots(&self) -> u32;

    /// The other line of an entry of a line that is full.
    fn other_of(&self, line: u64, at: u32) -> u64;

    /// Has a line room for another entry, after what has expired has gone?
    fn has_room(&mut self, line: u64) -> bool;

    /// Moves an entry to a line that has room.
    fn move_entry(&mut self, line: u64, at: u32, to: u64);
}

/// A line on the way to room: the entry `at` of the line that the step `from` leads to would move here.
#[derive(Clone, Copy, Default)]
struct Step {
    line: u64,
    from: usize,
    at: u32,
}

/// Moves an entry to its other line, where there is room, and its like to where it was, and so on, as few as
/// lead to room; returns which of the `first` lines has room then. Lines are looked at in the order of how many
/// moves they are away.
#[cold]
#[inline(never)]
pub(super) fn make_room<R: Rooms>(lines: &mut R, first: [u64; 2]) -> Option<u64> {
    look_for_room::<R, FEW_LOOKS>(lines, first).or_else(|| look_for_room::<R, LOOKS>(lines, first))
}

/// [`make_room`], which looks at no more than so many lines.
#[inline(never)]
fn look_for_room<R: Rooms, const LOOKS: usize>(lines: &mut R, first: [u64; 2]) -> Option<u64> {
    let mut steps = [Step::default(); LOOKS];
    for (step, line) in steps.iter_mut().zip(first) {
        *step = Step { line, from: usize::MAX, at: 0 };
    }
    let (mut from, mut known) = (0, first.len());
    while from < known {
        let line = steps[from].line;
        for at in 0..lines.slots() {
            let to = lines.other_of(line, at);
            if is_on_the_way(&steps, from, to) {
                continue;
            }
            if lines.has_room(to) {
                return Some(move_along(lines, &steps, (from, at), to));
            }
            if known == LOOKS {
                return None;
            }
            steps[known] = Step { line: to, from, at };
            known += 1;
        }
        from += 1;
    }
    None
}

/// Moves the last entry of a way to the line at its end, and the one before into its place.
fn move_along<R: Rooms>(lines: &mut R, steps: &[Step], last: (usize, u32), end: u64) -> u64 {
    let ((mut from, mut at), mut to) = (last, end);
    // All lines of the way differ, so places stay what they were until it is their turn.
    while let Some(step) = steps.get(from) {
        lines.move_entry(step.line, at, to);
        (to, from, at) = (step.line, step.from, step.at);
    }
    to
}

/// Is a line one of those on the way that leads to this step?
fn is_on_the_way(steps: &[Step], mut step: usize, line: u64) -> bool {
    while let Some(&Step { line: passed, from, .. }) = steps.get(step) {
        if passed == line {
            return true;
        }
        step = from;
    }
    false
}
