//! Reading messages.

use super::encode::WITH_BOOK;
use super::{MAGIC, MAX_MESSAGE, VERSION, WireError};
use crate::cell::{CellError, KmCell, SmallCell, Square};
use crate::element::{Element, MAX_PROPERTY, Property};
use crate::filter::{AgedFilter, Contents, FilterSize, Group, MAX_BITS, Named, Share, Stamp};
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{
    Aggregate, Kind, MAX_PROPERTIES, MAX_READINGS, MAX_SQUARES, MAX_TASKS, Message, Reading,
};
use crate::refusal::Refusal;
use crate::rules::{Mode, Rules};
use crate::tally::Tally;
use crate::task::{Area, AreaCell, MAX_AREA, Task, TaskError};
use alloc::vec::Vec;

/// Reads one message.
///
/// *Cost:* memory of at most some 60 times the bytes, and only for what is there: no length that a message
/// names is believed before its bytes were seen.
///
/// # Errors
/// [`WireError`] for bytes that [`encode`](super::encode) does not write.
pub fn decode(bytes: &[u8]) -> Result<Message, WireError> {
    if bytes.len() > MAX_MESSAGE {
        return Err(WireError::TooLong);
    }
    let (&[magic, version, kind], rest) = bytes.split_first_chunk().ok_or({
        if bytes.first().is_none_or(|&first| first == MAGIC) {
            WireError::Length
        } else {
            WireError::Foreign
        }
    })?;
    if magic != MAGIC {
        return Err(WireError::Foreign);
    }
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    let known = usize::from(kind).checked_sub(1).and_then(|at| Kind::ALL.get(at));
    let mut input = Reader::new(rest);
    let message = input.message(*known.ok_or(WireError::Kind(kind))?)?;
    input.finish()?;
    Ok(message)
}

/// Reads fields.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

fn cell_of<T>(cell: Result<T, CellError>) -> Result<T, WireError> {
    cell.map_err(|_| WireError::Field("a cell that the grid does not have"))
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    fn message(&mut self, kind: Kind) -> Result<Message, WireError> {
        Ok(match kind {
            Kind::LookUp => Message::LookUp { worker: self.worker()?, square: self.square()? },
            Kind::Located => Message::Located { square: self.square()? },
            Kind::Unplaced => Message::Unplaced { square: self.square()? },
            Kind::Release => Message::Release { square: self.square()? },
            Kind::Hello => Message::Hello {
                process: ProcessId(self.u64()?),
                room: self.u32()?,
                squares: self.list(MAX_SQUARES, Self::square)?,
            },
            Kind::Gone => Message::Gone { process: ProcessId(self.u64()?) },
            Kind::Place => self.place()?,
            Kind::Ready => {
                Message::Ready { process: ProcessId(self.u64()?), square: self.square()? }
            }
            Kind::Announce => Message::Announce {
                worker: self.worker()?,
                cell: self.km()?,
                properties: self.list(MAX_PROPERTIES, Self::property)?,
                known: self.option(Self::stamp)?,
            },
            Kind::Assign => {
                let cell = self.km()?;
                Message::Assign {
                    cell,
                    rules: self.rules()?,
                    tasks: self.list(MAX_TASKS, Self::task)?,
                    share: self.share(cell)?,
                }
            }
            Kind::Submit => self.submission()?,
            Kind::Lease => {
                Message::Lease { holder: self.u64()?, epoch: self.varint()?, held: self.bool()? }
            }
            Kind::List => Message::List { requester: RequesterId(self.u64()?) },
            Kind::Listed => Message::Listed { tasks: self.list(MAX_TASKS, Self::forward)? },
            Kind::Tally => Message::Tally {
                square: self.square()?,
                born: self.varint()?,
                life: self.u32()?,
                tally: self.tally()?,
            },
            Kind::Update => {
                let cell = self.km()?;
                Message::Update { cell, share: self.share(cell)? }
            }
            Kind::Reset => Message::Reset { cell: self.km()?, stamp: self.stamp()? },
            Kind::ResetAll => self.reset_all()?,
            Kind::Leave => Message::Leave { worker: self.worker()? },
            Kind::Post => {
                let (requester, task) = self.forward()?;
                Message::Post { requester, task }
            }
            Kind::Forward => {
                let (requester, task) = self.forward()?;
                Message::Forward { requester, task }
            }
            Kind::Withdraw => Message::Withdraw { task: TaskId(self.u64()?) },
            Kind::Posted => Message::Posted { task: TaskId(self.u64()?), hosts: self.u32()? },
            Kind::Refused => Message::Refused {
                task: TaskId(self.u64()?),
                reason: TaskError::from_number(self.u8()?)
                    .ok_or(WireError::Field("a reason that is none"))?,
            },
            Kind::Results => Message::Results {
                task: TaskId(self.u64()?),
                square: self.square()?,
                batch: self.u64()?,
                readings: self.list(MAX_READINGS, Self::reading)?,
            },
            Kind::Received => Message::Received { square: self.square()?, batch: self.u64()? },
            Kind::Aggregate => Message::Aggregate {
                square: self.square()?,
                property: self.option(Self::property)?,
                aggregate: self.aggregate()?,
            },
        })
    }

    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Length) }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(WireError::Length)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], WireError> {
        let (&taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Length)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn bool(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Field("neither yes nor no")),
        }
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// In its shortest form only.
    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part || (byte == 0 && shift > 0) {
                break;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::Field("a number that is too long"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.narrow()
    }

    fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, WireError> {
        T::try_from(self.varint()?).map_err(|_| WireError::Field("a number that is too large"))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, WireError> {
        let value = f64::from_bits(self.u64()?);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(WireError::Field("a value that is no number"))
        }
    }

    fn value(&mut self) -> Result<f64, WireError> {
        match self.u8()? {
            4 => {
                let value = f32::from_le_bytes(self.array()?);
                if value.is_finite() {
                    return Ok(f64::from(value));
                }
            }
            8 => {
                let value = self.f64()?;
                if f64::from(value as f32).to_bits() != value.to_bits() {
                    return Ok(value);
                }
            }
            _ => {}
        }
        Err(WireError::Field("a value that is no number"))
    }

    pub(crate) fn list<T>(
        &mut self,
        most: usize,
        read: impl Fn(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let len = self.narrow::<usize>()?;
        if len > most {
            return Err(WireError::Field("a list that is too long"));
        }
        // Every item takes a byte or more, so bytes that are not there cost no memory.
        let mut items = Vec::with_capacity(len.min(self.rest.len()));
        for _ in 0..len {
            items.push(read(self)?);
        }
        Ok(items)
    }

    pub(crate) fn blob(&mut self, most: usize) -> Result<&'a [u8], WireError> {
        let len = self.narrow::<usize>()?;
        if len > most {
            return Err(WireError::Field("a text or table that is too long"));
        }
        self.take(len)
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, WireError>,
    ) -> Result<Option<T>, WireError> {
        Ok(if self.bool()? { Some(read(self)?) } else { None })
    }

    pub(crate) fn worker(&mut self) -> Result<WorkerId, WireError> {
        Ok(WorkerId(self.u64()?))
    }

    pub(crate) fn square(&mut self) -> Result<Square, WireError> {
        cell_of(Square::from_id(self.varint()?))
    }

    pub(crate) fn km(&mut self) -> Result<KmCell, WireError> {
        cell_of(KmCell::from_id(self.varint()?))
    }

    pub(crate) fn property(&mut self) -> Result<Property, WireError> {
        let name = core::str::from_utf8(self.blob(MAX_PROPERTY)?).unwrap_or_default();
        Property::new(name).map_err(|_| WireError::Field("a property that has no such name"))
    }

    pub(crate) fn element(&mut self) -> Result<Element, WireError> {
        Ok(Element {
            cell: cell_of(SmallCell::from_id(self.varint()?))?,
            property: self.property()?,
        })
    }

    pub(crate) fn reading(&mut self) -> Result<Reading, WireError> {
        Ok(Reading { element: self.element()?, value: self.value()?, time: self.varint()? })
    }

    pub(crate) fn stamp(&mut self) -> Result<Stamp, WireError> {
        Ok(Stamp { epoch: self.u32()?, incarnation: self.u32()?, version: self.u32()? })
    }

    pub(crate) fn rules(&mut self) -> Result<Rules, WireError> {
        let mode = match self.u8()? {
            0 => Mode::Reset,
            steps => Mode::Ageing { steps },
        };
        let rules = Rules {
            mode,
            validity: self.varint()?,
            size: FilterSize { bits: self.u32()?, hashes: self.u8()? },
            m_worker: self.u8()?,
            refresh: self.narrow()?,
        };
        rules.check().map_err(|error| WireError::Field(error.0))?;
        Ok(rules)
    }

    pub(crate) fn task(&mut self) -> Result<Task, WireError> {
        let id = TaskId(self.u64()?);
        let property = self.property()?;
        let cells = self.list(MAX_AREA, |input| {
            Ok(match input.u8()? {
                10 => AreaCell::Square(input.square()?),
                1 => AreaCell::Km(input.km()?),
                0 => AreaCell::Small(cell_of(SmallCell::from_id(input.varint()?))?),
                _ => return Err(WireError::Field("a cell of no size")),
            })
        })?;
        let area = if cells.is_empty() { Area::Everywhere } else { Area::Cells(cells) };
        let (from, until, wanted) = (self.varint()?, self.varint()?, self.narrow()?);
        Ok(Task { id, property, area, from, until, wanted })
    }

    pub(crate) fn forward(&mut self) -> Result<(RequesterId, Task), WireError> {
        Ok((RequesterId(self.u64()?), self.task()?))
    }

    fn reset_all(&mut self) -> Result<Message, WireError> {
        let (square, stamp, since) = (self.square()?, self.stamp()?, self.u32()?);
        // Otherwise, whoever takes it would empty its filter each time that it comes.
        if since > stamp.incarnation {
            return Err(WireError::Field("a reset that is older than what it is valid for"));
        }
        Ok(Message::ResetAll { square, stamp, since })
    }

    fn place(&mut self) -> Result<Message, WireError> {
        let (square, rules, number) = (self.square()?, self.rules()?, self.varint()?);
        let (number, book) = match number.checked_sub(WITH_BOOK) {
            Some(number) => (number, self.u64()?),
            None => (number, 0),
        };
        if number > MAX_TASKS as u64 {
            return Err(WireError::Field("a list that is too long"));
        }
        let tasks = (0..number).map(|_| self.forward()).collect::<Result<_, _>>()?;
        Ok(Message::Place { square, rules, tasks, book })
    }

    fn submission(&mut self) -> Result<Message, WireError> {
        let (worker, sequence, stamp) = (self.worker()?, self.varint()?, self.stamp()?);
        let flags = self.u8()?;
        if flags > 3 {
            return Err(WireError::Field("a flag that has no meaning"));
        }
        let reading = self.reading()?;
        let was_buffered = flags & 2 != 0;
        let sent = if was_buffered { self.varint()? } else { reading.time };
        if was_buffered && sent == reading.time {
            return Err(WireError::Field("a buffered reading that was not"));
        }
        Ok(Message::Submit { worker, sequence, sent, stamp, refresh: flags & 1 != 0, reading })
    }

    pub(crate) fn tally(&mut self) -> Result<Tally, WireError> {
        let mut tally = Tally {
            kept: self.varint()?,
            redundant: self.varint()?,
            lost: self.varint()?,
            repeated: self.varint()?,
            ..Tally::default()
        };
        let reasons = self.list(Refusal::ALL.len(), |input| Ok((input.u8()?, input.varint()?)))?;
        if !reasons.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(WireError::Field("reasons that are not in order"));
        }
        for (reason, count) in reasons {
            let refusal = Refusal::from_number(reason).filter(|_| count > 0);
            let refusal = refusal.ok_or(WireError::Field("a reason that is none"))?;
            tally.refused[refusal as usize] = count;
        }
        Ok(tally)
    }

    fn share(&mut self, cell: KmCell) -> Result<Share, WireError> {
        let stamp = self.stamp()?;
        let since = self.option(Self::u32)?;
        if since.is_some_and(|since| since > stamp.version) {
            return Err(WireError::Field("a change of a filter that goes back"));
        }
        let contents = match self.u8()? {
            0 => Contents::Positions(self.list(usize::from(AgedFilter::MAX_STEPS), |input| {
                let age = input.u8()?;
                let positions = input.blob(1 + MAX_BITS as usize / 8)?.to_vec();
                Ok(Group { age, positions })
            })?),
            1 => Contents::Elements(self.elements(cell, false)?),
            2 => Contents::Elements(self.elements(cell, true)?),
            _ => return Err(WireError::Field("a filter in no known form")),
        };
        Ok(Share { stamp, since, contents })
    }

    /// Elements of a cell, in runs of one property.
    fn elements(&mut self, cell: KmCell, aged: bool) -> Result<Vec<Named>, WireError> {
        let mut elements: Vec<Named> = Vec::new();
        for _ in 0..self.varint()? {
            let property = self.property()?;
            if elements.last().is_some_and(|last| last.element.property == property) {
                return Err(WireError::Field("a property that is named twice in a row"));
            }
            let run = self.list(MAX_MESSAGE, |input| {
                let place = cell.small(input.u8()?);
                let cell = place.ok_or(WireError::Field("a place that a cell does not have"))?;
                let age = if aged { input.u8()? } else { 0 };
                Ok(Named { element: Element { cell, property }, age })
            })?;
            if run.is_empty() {
                return Err(WireError::Field("a property without elements"));
            }
            elements.extend(run);
        }
        if aged && elements.iter().all(|named| named.age == 0) {
            return Err(WireError::Field("ages that are none"));
        }
        Ok(elements)
    }

    pub(crate) fn aggregate(&mut self) -> Result<Aggregate, WireError> {
        Ok(Aggregate {
            kept: self.varint()?,
            redundant: self.varint()?,
            workers: self.u32()?,
            cells: self.u32()?,
            expected_lost: self.f64()?,
            sum: self.f64()?,
            count: self.varint()?,
            least: self.f64()?,
            greatest: self.f64()?,
        })
    }
}
