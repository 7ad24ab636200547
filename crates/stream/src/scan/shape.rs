//! How the objects of a text were made: most records of a stream are made alike, and to find that an object has
//! the names of the last one is quicker than to read and to sort them.

use super::canonical::Member;

/// The names of an object, and their order.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// As they follow one another. None where two are equal, so that no object is like it.
    names: Vec<Name>,
    /// The bytes of all names.
    written: Vec<u8>,
    /// The members in the order of their names; of equal names by place.
    order: Vec<u32>,
    has_twins: bool,
}

/// A name as it is written, with its quotes and its colon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    /// Its first 16 bytes, and which of these it has.
    bytes: u128,
    mask: u128,
    /// How many it has; 0 for a name that is not written so.
    pub(super) length: usize,
    /// Where the others are, if there are more.
    start: usize,
    /// See [`Member::first`].
    pub(super) first: u64,
}

/// Bytes that are compared at once.
const FIRST: usize = 16;

/// The first of these bytes, or as many as there are and zeros, which are in no name.
fn first(bytes: &[u8]) -> u128 {
    let mut found = [0; FIRST];
    let length = bytes.len().min(FIRST);
    found[..length].copy_from_slice(&bytes[..length]);
    u128::from_le_bytes(found)
}

impl Shape {
    /// The name in this place, if it is what begins there in the text.
    #[inline]
    pub(super) fn name(&self, place: usize, text: &[u8], at: usize) -> Option<Name> {
        let name = self.names.get(place).filter(|name| name.length > 0)?;
        let rest = text.get(at..)?;
        let found = rest.first_chunk().map_or_else(|| first(rest), |all| u128::from_le_bytes(*all));
        let is_it = (found ^ name.bytes) & name.mask == 0
            && (name.length <= FIRST
                || rest.get(FIRST..name.length)
                    == self.written.get(name.start + FIRST..name.start + name.length));
        is_it.then_some(*name)
    }

    /// How many names it has that can be found again.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Becomes the shape of these members.
    pub(super) fn remember(&mut self, members: &[Member], text: &[u8]) {
        let Self { names, written, order, has_twins } = self;
        order.clear();
        order.extend(0..members.len() as u32);
        let compare = |a: u32, b: u32| members[a as usize].compare(&members[b as usize], text);
        if !members.is_sorted_by(|one, other| one.compare(other, text).is_le()) {
            order.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
        }
        *has_twins = order.windows(2).any(|pair| matches!(*pair, [a, b] if compare(a, b).is_eq()));
        names.clear();
        written.clear();
        if *has_twins {
            return;
        }
        for member in members {
            let (name, start) = (member.written_name(text), written.len());
            let length = if name.last() == Some(&b':') { name.len() } else { 0 };
            let mask = u128::MAX >> (8 * (FIRST - length.clamp(1, FIRST)));
            names.push(Name {
                bytes: first(name) & mask,
                mask,
                length,
                start,
                first: member.first,
            });
            written.extend_from_slice(name);
        }
    }

    /// Calls `each` with the members that count, in the order of their names: of equal names the last.
    #[inline]
    pub(super) fn each(&self, members: &[Member], text: &[u8], mut each: impl FnMut(&Member)) {
        for (at, &index) in self.order.iter().enumerate() {
            let Some(member) = members.get(index as usize) else { return };
            let next = self.order.get(at + 1).filter(|_| self.has_twins);
            let next = next.and_then(|&next| members.get(next as usize));
            if next.is_none_or(|next| next.compare(member, text).is_ne()) {
                each(member);
            }
        }
    }
}
