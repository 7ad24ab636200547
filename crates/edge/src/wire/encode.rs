//! Writing messages.

use super::{MAGIC, VERSION};
use crate::element::{Element, Property};
use crate::filter::{Contents, FilterSize, Named, Share, Stamp};
use crate::ids::RequesterId;
use crate::message::{Aggregate, Message, Reading};
use crate::rules::{Mode, Rules};
use crate::tally::Tally;
use crate::task::{Area, AreaCell, Task};
use alloc::vec::Vec;

/// Added to the number of tasks in a [`Message::Place`] where a book follows. Journals of before have none.
pub(super) const WITH_BOOK: u64 = 1 << 16;

/// Appends a message to a buffer.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    out.extend_from_slice(&[MAGIC, VERSION, message.kind() as u8]);
    Writer { bytes: out }.message(message);
}

/// Writes fields.
pub(crate) struct Writer<'a> {
    pub(crate) bytes: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        match message {
            Message::LookUp { worker, square } => {
                self.u64(worker.0);
                self.varint(square.id());
            }
            Message::Located { square }
            | Message::Unplaced { square }
            | Message::Release { square } => self.varint(square.id()),
            Message::Hello { process, room, squares } => {
                self.u64(process.0);
                self.varint(u64::from(*room));
                self.list(squares, |out, square| out.varint(square.id()));
            }
            Message::Gone { process } => self.u64(process.0),
            Message::Place { square, rules, tasks, book } => {
                self.varint(square.id());
                self.rules(rules);
                self.varint(WITH_BOOK + tasks.len() as u64);
                self.u64(*book);
                tasks.iter().for_each(|(requester, task)| self.forward(*requester, task));
            }
            Message::Ready { process, square } => {
                self.u64(process.0);
                self.varint(square.id());
            }
            Message::Announce { worker, cell, properties, known } => {
                self.u64(worker.0);
                self.varint(cell.id());
                self.list(properties, |out, property| out.property(*property));
                self.bool(known.is_some());
                known.iter().for_each(|stamp| self.stamp(*stamp));
            }
            Message::Assign { cell, rules, tasks, share } => {
                self.varint(cell.id());
                self.rules(rules);
                self.list(tasks, Self::task);
                self.share(share);
            }
            Message::Submit { worker, sequence, sent, stamp, refresh, reading } => {
                self.u64(worker.0);
                self.varint(*sequence);
                self.stamp(*stamp);
                let was_buffered = *sent != reading.time;
                self.u8(u8::from(*refresh) | u8::from(was_buffered) << 1);
                self.reading(reading);
                if was_buffered {
                    self.varint(*sent);
                }
            }
            Message::Lease { holder, epoch, held } => {
                self.u64(*holder);
                self.varint(*epoch);
                self.bool(*held);
            }
            Message::List { requester } => self.u64(requester.0),
            Message::Listed { tasks } => {
                self.list(tasks, |out, (requester, task)| out.forward(*requester, task));
            }
            Message::Tally { square, born, life, tally } => {
                self.varint(square.id());
                self.varint(*born);
                self.varint(u64::from(*life));
                self.tally(tally);
            }
            Message::Update { cell, share } => {
                self.varint(cell.id());
                self.share(share);
            }
            Message::Reset { cell, stamp } => {
                self.varint(cell.id());
                self.stamp(*stamp);
            }
            Message::ResetAll { square, stamp, since } => {
                self.varint(square.id());
                self.stamp(*stamp);
                self.varint(u64::from(*since));
            }
            Message::Leave { worker } => self.u64(worker.0),
            Message::Post { requester, task } | Message::Forward { requester, task } => {
                self.forward(*requester, task);
            }
            Message::Withdraw { task } => self.u64(task.0),
            Message::Posted { task, hosts } => {
                self.u64(task.0);
                self.varint(u64::from(*hosts));
            }
            Message::Refused { task, reason } => {
                self.u64(task.0);
                self.u8(*reason as u8);
            }
            Message::Results { task, square, batch, readings } => {
                self.u64(task.0);
                self.varint(square.id());
                self.u64(*batch);
                self.list(readings, Self::reading);
            }
            Message::Received { square, batch } => {
                self.varint(square.id());
                self.u64(*batch);
            }
            Message::Aggregate { square, property, aggregate } => {
                self.varint(square.id());
                self.bool(property.is_some());
                property.iter().for_each(|property| self.property(*property));
                self.aggregate(aggregate);
            }
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// A value of a reading: 4 bytes where they say all.
    fn value(&mut self, value: f64) {
        let short = value as f32;
        if f64::from(short).to_bits() == value.to_bits() {
            self.u8(4);
            self.bytes.extend_from_slice(&short.to_le_bytes());
        } else {
            self.u8(8);
            self.f64(value);
        }
    }

    pub(crate) fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.varint(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    pub(crate) fn blob(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn property(&mut self, property: Property) {
        self.blob(property.as_str().as_bytes());
    }

    pub(crate) fn element(&mut self, element: &Element) {
        self.varint(element.cell.id());
        self.property(element.property);
    }

    pub(crate) fn reading(&mut self, reading: &Reading) {
        self.element(&reading.element);
        self.value(reading.value);
        self.varint(reading.time);
    }

    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        for part in [stamp.epoch, stamp.incarnation, stamp.version] {
            self.varint(u64::from(part));
        }
    }

    pub(crate) fn size(&mut self, size: FilterSize) {
        self.varint(u64::from(size.bits));
        self.u8(size.hashes);
    }

    pub(crate) fn rules(&mut self, rules: &Rules) {
        self.u8(match rules.mode {
            Mode::Reset => 0,
            Mode::Ageing { steps } => steps,
        });
        self.varint(rules.validity);
        self.size(rules.size);
        self.u8(rules.m_worker);
        self.varint(u64::from(rules.refresh));
    }

    pub(crate) fn task(&mut self, task: &Task) {
        self.u64(task.id.0);
        self.property(task.property);
        match &task.area {
            Area::Everywhere => self.varint(0),
            Area::Cells(cells) => self.list(cells, |out, cell| match *cell {
                AreaCell::Square(square) => out.sized(10, square.id()),
                AreaCell::Km(km) => out.sized(1, km.id()),
                AreaCell::Small(small) => out.sized(0, small.id()),
            }),
        }
        self.varint(task.from);
        self.varint(task.until);
        self.varint(u64::from(task.wanted));
    }

    pub(crate) fn tally(&mut self, tally: &Tally) {
        let Tally { kept, redundant, lost, repeated, refused } = tally;
        [kept, redundant, lost, repeated].into_iter().for_each(|count| self.varint(*count));
        let reasons: Vec<(u8, u64)> = (0..).zip(*refused).filter(|&(_, count)| count > 0).collect();
        self.list(&reasons, |out, &(reason, count)| {
            out.u8(reason);
            out.varint(count);
        });
    }

    fn sized(&mut self, size: u8, id: u64) {
        self.u8(size);
        self.varint(id);
    }

    pub(crate) fn forward(&mut self, requester: RequesterId, task: &Task) {
        self.u64(requester.0);
        self.task(task);
    }

    fn share(&mut self, share: &Share) {
        self.stamp(share.stamp);
        self.bool(share.since.is_some());
        share.since.iter().for_each(|since| self.varint(u64::from(*since)));
        match &share.contents {
            Contents::Positions(groups) => {
                self.u8(0);
                self.list(groups, |out, group| {
                    out.u8(group.age);
                    out.blob(&group.positions);
                });
            }
            Contents::Elements(elements) => self.elements(elements),
        }
    }

    /// Elements of one cell: runs of one property, each element a byte, and one for its age where there
    /// are ages.
    fn elements(&mut self, elements: &[Named]) {
        let aged = elements.iter().any(|named| named.age > 0);
        self.u8(1 + u8::from(aged));
        let of_one = |one: &Named, other: &Named| one.element.property == other.element.property;
        let runs: Vec<&[Named]> = elements.chunk_by(of_one).collect();
        self.list(&runs, |out, run| {
            run.first().iter().for_each(|named| out.property(named.element.property));
            out.list(run, |out, named| {
                out.u8(named.element.cell.place());
                if aged {
                    out.u8(named.age);
                }
            });
        });
    }

    pub(crate) fn aggregate(&mut self, aggregate: &Aggregate) {
        self.varint(aggregate.kept);
        self.varint(aggregate.redundant);
        self.varint(u64::from(aggregate.workers));
        self.varint(u64::from(aggregate.cells));
        self.f64(aggregate.expected_lost);
        self.f64(aggregate.sum);
        self.varint(aggregate.count);
        self.f64(aggregate.least);
        self.f64(aggregate.greatest);
    }
}
