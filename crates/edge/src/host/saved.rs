//! A host's state as bytes.

use super::cell::{Cell, Kept};
use super::lives::{Life, Lives, Sequences};
use super::members::{AWAY, Known};
use super::outbox::{Batch, Open, Outbox};
use super::{
    CLEAN_EVERY, Host, HostConfig, HostCounts, Limits, Refusal, Values, WRONG_CLOCK, Wish,
};
use crate::Millis;
use crate::cell::KmCell;
use crate::element::{Element, Property};
use crate::filter::{CellFilter, Contents, Group, MAX_BITS, Share, Stamp};
use crate::ids::{RequesterId, TaskId, WorkerId};
use crate::message::{MAX_PROPERTIES, Message, Reading};
use crate::rules::Rules;
use crate::state::{Role, StateError, VERSION_1, VERSION_2, open, seal};
use crate::tally::life_of;
use crate::wire::{Reader, WireError, Writer};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Lists in a saved state end with the bytes: its checksum was right, so lengths need no other bound.
const ANY: usize = usize::MAX;

impl Host {
    /// The state as bytes: readings, filters, workers, tasks and counts. After a restart
    /// [`Host::restore`] resumes from there.
    ///
    /// Whoever confirms messages to a broker saves first: what was not confirmed comes again, and what
    /// was saved is known then by its worker and sequence.
    pub fn save(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut out = Writer { bytes: &mut body };
        out.varint(self.square.id());
        out.rules(&self.config.rules);
        out.varint(u64::from(self.incarnation));
        out.varint(self.now);
        out.varint(u64::from(self.epoch));
        out.varint(self.born);
        out.u64(self.book);
        out.varint(u64::from(self.since));
        out.varint(self.workers.len() as u64);
        for (worker, known) in &self.workers {
            write_worker(&mut out, *worker, known);
        }
        out.varint(self.lives.all.len() as u64);
        for (&(worker, life), state) in &self.lives.all {
            write_life(&mut out, worker, life, state);
        }
        out.varint(self.tasks.len() as u64);
        for Wish { requester, task, book } in self.tasks.values() {
            out.forward(*requester, task);
            out.u64(*book);
        }
        out.varint(self.cells.len() as u64);
        let grain = self.config.rules.grain(self.now);
        for (cell, state) in &self.cells {
            write_cell(&mut out, *cell, state, grain);
        }
        write_past(&mut out, &self.past.kept);
        write_outbox(&mut out, &self.outbox);
        write_counts(&mut out, &self.counts, &self.values);
        seal(Role::Host, &body)
    }

    /// The host of a saved state, with the rules it had then: they came from the coordinator, which tells
    /// if they changed meanwhile ([`Host::set_rules`]). The rest of `config` is as given.
    ///
    /// # Errors
    /// [`StateError`] for bytes that [`Host::save`] did not write.
    pub fn restore(bytes: &[u8], config: HostConfig, now: Millis) -> Result<Self, StateError> {
        let mut host = Self::reopen(bytes, config)?;
        host.resume(now, config);
        Ok(host)
    }

    /// The host of a saved state as it was then, for [`Host::replay`] and then [`Host::resume`], which
    /// together do what [`Host::restore`] does for who has kept a journal since.
    ///
    /// # Errors
    /// [`StateError`] for bytes that [`Host::save`] did not write.
    pub fn reopen(bytes: &[u8], config: HostConfig) -> Result<Self, StateError> {
        let (version, body) = open(Role::Host, bytes)?;
        let is_old = version == VERSION_1;
        let mut input = Reader::new(&body);
        let square = input.square()?;
        let rules = input.rules()?;
        let (incarnation, now) = (input.u32()?, input.varint()?);
        let mut host = Self::new(square, HostConfig { rules, ..config }, now);
        host.incarnation = incarnation;
        host.epoch = input.u32()?;
        (host.born, host.book) = if is_old { (now, 0) } else { (input.varint()?, input.u64()?) };
        let has_since = ![VERSION_1, VERSION_2].contains(&version);
        host.since = if has_since { input.u32()? } else { incarnation };
        if host.since > incarnation {
            return Err(WireError::Field("an incarnation that is to come").into());
        }
        for _ in 0..input.varint()? {
            let (worker, known) = read_worker(&mut input)?;
            if is_old {
                let sequences = Sequences { highest: input.varint()?, seen: input.u64()? };
                let life = Life { heard: known.heard, sequences, ..Life::default() };
                host.lives.all.insert((worker, life_of(sequences.highest)), life);
            }
            host.workers.insert(worker, known);
        }
        if !is_old {
            host.lives = read_lives(&mut input)?;
        }
        let wish = |input: &mut Reader<'_>| -> Result<Wish, WireError> {
            let (requester, task) = input.forward()?;
            Ok(Wish { requester, task, book: if is_old { 0 } else { input.u64()? } })
        };
        for wish in input.list(ANY, wish)? {
            host.tasks.insert(wish.task.id, wish);
        }
        for _ in 0..input.varint()? {
            let (cell, state) = read_cell(&mut input, &rules)?;
            if cell.square() != host.square {
                return Err(WireError::Field("a cell of another square").into());
            }
            host.cells.insert(cell, state);
        }
        if !is_old {
            host.past.kept = read_past(&mut input)?;
        }
        host.outbox = read_outbox(&mut input)?;
        (host.counts, host.values) = read_counts(&mut input)?;
        input.finish()?;
        host.count_present();
        Ok(host)
    }

    /// Takes a message again that it took after the state was saved, at the moment at which it did.
    ///
    /// What it took then it takes now: limits that have changed meanwhile, a worker or task that it would have
    /// forgotten by then, are no reason to refuse it. [`Message::Results`] are not taken but were sent: their
    /// readings wait for a confirmation of that batch, and no others ever have its number.
    pub fn replay(&mut self, now: Millis, message: Message) {
        match &message {
            Message::Results { task, batch, readings, .. } => {
                let owner = self.outbox.open.get(task).map(|open| open.requester);
                let owner = owner.or_else(|| self.tasks.get(task).map(|wish| wish.requester));
                if let Some(requester) = owner {
                    let readings = readings.clone();
                    let sent = Batch { task: *task, requester, readings, again: 0, wait: 0 };
                    self.outbox.sent_before(*batch, sent);
                }
                return;
            }
            Message::Forward { .. } => self.tasks.retain(|_, wish| now < wish.task.until),
            Message::Submit { worker, sequence, .. } => {
                // It was no repeated one, or it would not be here.
                self.lives.admit(*worker, *sequence);
            }
            _ => {}
        }
        let HostConfig { second_look, limits, max_skew, max_age, max_delay, .. } = self.config;
        let most = u32::MAX;
        self.config.limits = Limits { workers: most, tasks: most, elements: most, pending: most };
        (self.config.max_skew, self.config.max_age) = (Millis::MAX, Millis::MAX);
        self.config.max_delay = Millis::MAX;
        // What a filter spoke against then was not kept, and may be now; the other way round it would be lost.
        self.config.second_look = true;
        let _ = self.handle(now, message, &mut Vec::new());
        self.config =
            HostConfig { second_look, limits, max_skew, max_age, max_delay, ..self.config };
    }

    /// Goes on after [`Host::reopen`], with this configuration but for the rules. Filters that workers know may
    /// have come after the state was saved, and batches may have been sent: new ones are distinguished from
    /// them.
    pub fn resume(&mut self, now: Millis, config: HostConfig) {
        self.config = HostConfig { rules: self.config.rules, ..config };
        self.raise_incarnation(now);
        self.untold = true;
        if now.saturating_add(WRONG_CLOCK) < self.now {
            self.correct_clock(now);
        }
        self.now = self.now.max(now);
        self.all_heard = 0;
        self.lives.say_again(self.now.saturating_sub(AWAY));
        self.next_tally = now;
        self.next_aggregate = now.saturating_add(config.aggregate_every);
        self.next_cleaning = now.saturating_add(CLEAN_EVERY);
    }

    /// The highest number of a batch that waits for a confirmation: what is sent first from now on has a higher
    /// one.
    pub fn last_batch(&self) -> Option<u64> {
        self.outbox.sent.last_key_value().map(|(&batch, _)| batch)
    }

    /// Who is where follows from the workers.
    pub(super) fn count_present(&mut self) {
        self.cells.values_mut().for_each(|cell| cell.present = 0);
        let here = self.workers.values().filter(|known| !known.away);
        let cells: Vec<KmCell> = here.map(|known| known.cell).collect();
        cells.into_iter().for_each(|cell| self.present_in(cell));
    }
}

fn write_worker(out: &mut Writer<'_>, worker: WorkerId, known: &Known) {
    out.u64(worker.0);
    out.varint(known.cell.id());
    out.list(&known.properties, |out, property| out.property(*property));
    out.varint(known.heard);
    out.bool(known.away);
}

fn write_life(out: &mut Writer<'_>, worker: WorkerId, life: u32, state: &Life) {
    out.u64(worker.0);
    out.varint(u64::from(life));
    out.varint(state.heard);
    out.varint(state.sequences.highest);
    out.u64(state.sequences.seen);
    out.tally(&state.tally);
}

fn read_lives(input: &mut Reader<'_>) -> Result<Lives, WireError> {
    let life = |input: &mut Reader<'_>| {
        let (key, heard) = ((input.worker()?, input.u32()?), input.varint()?);
        let sequences = Sequences { highest: input.varint()?, seen: input.u64()? };
        Ok((key, Life { heard, sequences, tally: input.tally()?, ..Life::default() }))
    };
    let all = input.list(ANY, life)?.into_iter().collect();
    Ok(Lives { all, ..Lives::default() })
}

fn write_past(out: &mut Writer<'_>, past: &BTreeMap<(u64, Element), u32>) {
    out.varint(past.len() as u64);
    for ((period, element), count) in past {
        out.varint(*period);
        out.element(element);
        out.varint(u64::from(*count));
    }
}

fn read_past(input: &mut Reader<'_>) -> Result<BTreeMap<(u64, Element), u32>, WireError> {
    let kept = |input: &mut Reader<'_>| Ok(((input.varint()?, input.element()?), input.u32()?));
    Ok(input.list(ANY, kept)?.into_iter().collect())
}

fn read_worker(input: &mut Reader<'_>) -> Result<(WorkerId, Known), WireError> {
    let worker = input.worker()?;
    let (cell, properties) = (input.km()?, input.list(MAX_PROPERTIES, Reader::property)?);
    let (heard, away) = (input.varint()?, input.bool()?);
    Ok((worker, Known { cell, properties, heard, away }))
}

fn write_cell(out: &mut Writer<'_>, cell: KmCell, state: &Cell, grain: u64) {
    out.varint(cell.id());
    out.varint(u64::from(state.version));
    out.bool(state.active);
    out.varint(grain);
    out.list(&state.filter.clone().contents(grain), |out, group| {
        out.u8(group.age);
        out.blob(&group.positions);
    });
    out.varint(state.log.len() as u64);
    for (element, added) in &state.log {
        out.element(element);
        out.varint(*added);
    }
    out.varint(state.kept.len() as u64);
    for (element, kept) in &state.kept {
        out.element(element);
        out.varint(kept.since);
        out.varint(u64::from(kept.count));
        out.bool(kept.added);
    }
}

fn read_cell(input: &mut Reader<'_>, rules: &Rules) -> Result<(KmCell, Cell), WireError> {
    let mut state = Cell::new(rules, 0, 0);
    let cell = input.km()?;
    state.version = input.u32()?;
    state.active = input.bool()?;
    let grain = input.varint()?;
    let groups = input.list(ANY, |input| {
        let age = input.u8()?;
        Ok(Group { age, positions: input.blob(1 + MAX_BITS as usize / 8)?.to_vec() })
    })?;
    let contents = Contents::Positions(groups);
    let share = Share { stamp: Stamp::default(), since: None, contents };
    if !share.is_readable(rules.size) {
        return Err(WireError::Field("a filter that cannot be read"));
    }
    state.filter = CellFilter::new(rules, grain);
    share.for_each(rules.size, |at, age| state.filter.set(at, age));
    state.log = VecDeque::from(input.list(ANY, |input| Ok((input.element()?, input.varint()?)))?);
    let kept = input.list(ANY, |input| {
        let (element, since) = (input.element()?, input.varint()?);
        Ok((element, Kept { count: input.u32()?, added: input.bool()?, since }))
    })?;
    state.kept = kept.into_iter().collect();
    Ok((cell, state))
}

fn write_outbox(out: &mut Writer<'_>, outbox: &Outbox) {
    out.varint(outbox.open.len() as u64);
    for (task, open) in &outbox.open {
        out.u64(task.0);
        out.u64(open.requester.0);
        out.list(&open.readings, Writer::reading);
    }
    out.varint(outbox.sent.len() as u64);
    for (batch, sent) in &outbox.sent {
        out.u64(*batch);
        out.u64(sent.task.0);
        out.u64(sent.requester.0);
        out.list(&sent.readings, Writer::reading);
    }
}

fn read_outbox(input: &mut Reader<'_>) -> Result<Outbox, WireError> {
    let owner = |input: &mut Reader<'_>| -> Result<(TaskId, RequesterId, Vec<Reading>), WireError> {
        let (task, requester) = (TaskId(input.u64()?), RequesterId(input.u64()?));
        Ok((task, requester, input.list(ANY, Reader::reading)?))
    };
    let open = input.list(ANY, |input| {
        let (task, requester, readings) = owner(input)?;
        Ok((task, Open { requester, readings, due: None }))
    })?;
    let sent = input.list(ANY, |input| {
        let batch = input.u64()?;
        let (task, requester, readings) = owner(input)?;
        // Whether the requester got it is not known.
        Ok((batch, Batch { task, requester, readings, again: 0, wait: 0 }))
    })?;
    Ok(Outbox::restored(open.into_iter().collect(), sent.into_iter().collect()))
}

fn write_counts(out: &mut Writer<'_>, counts: &HostCounts, values: &BTreeMap<Property, Values>) {
    let HostCounts { submissions, kept, recovered, redundant, lost, duplicates, refused, .. } =
        *counts;
    for count in [submissions, kept, recovered, redundant, lost, duplicates, refused] {
        out.varint(count);
    }
    out.varint(counts.undelivered);
    out.varint(counts.clock_corrections);
    out.list(&counts.refusals, |out, count| out.varint(*count));
    out.f64(counts.expected_lost);
    out.varint(values.len() as u64);
    for (property, values) in values {
        out.property(*property);
        out.varint(values.count);
        [values.sum, values.least, values.greatest].into_iter().for_each(|value| out.f64(value));
    }
}

type Counted = (HostCounts, BTreeMap<Property, Values>);

fn read_counts(input: &mut Reader<'_>) -> Result<Counted, WireError> {
    // Counters that can still be counted up for ever.
    let count = |input: &mut Reader<'_>| {
        let count = input.varint()?;
        if count < 1 << 62 { Ok(count) } else { Err(WireError::Field("a count beyond 2^62")) }
    };
    let mut counts = HostCounts {
        submissions: count(input)?,
        kept: count(input)?,
        recovered: count(input)?,
        redundant: count(input)?,
        lost: count(input)?,
        duplicates: count(input)?,
        refused: count(input)?,
        undelivered: count(input)?,
        clock_corrections: count(input)?,
        ..HostCounts::default()
    };
    let refusals = input.list(Refusal::ALL.len(), count)?;
    for (to, from) in counts.refusals.iter_mut().zip(refusals) {
        *to = from;
    }
    counts.expected_lost = input.f64()?;
    let values = input.list(ANY, |input| {
        let property = input.property()?;
        let values = Values {
            count: count(input)?,
            sum: input.f64()?,
            least: input.f64()?,
            greatest: input.f64()?,
        };
        Ok((property, values))
    })?;
    Ok((counts, values.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Square;
    use crate::host::ResetBy;
    use crate::message::{Outgoing, Peer};
    use crate::state::seal_as;

    fn told(host: &mut Host, now: Millis) -> Option<(Stamp, u32)> {
        let mut out = Vec::new();
        host.tick(now, &mut out);
        out.into_iter().find_map(|outgoing| match outgoing {
            Outgoing { to: Peer::Square(_), message: Message::ResetAll { stamp, since, .. } } => {
                Some((stamp, since))
            }
            _ => None,
        })
    }

    /// A state of before `since` was saved: what workers know of earlier incarnations is not believed.
    #[test]
    fn a_state_of_version_2_is_read() {
        const NOW: Millis = 1_700_000_000_000;
        let square: Square = "33TWL77".parse().unwrap();
        let config = HostConfig { reset_by: ResetBy::Square, ..HostConfig::default() };
        let mut host = Host::new(square, config, NOW);
        let (first, _) = told(&mut host, NOW).unwrap();
        let mut again = Host::restore(&host.save(), config, NOW + 5_000).unwrap();
        let (second, since) = told(&mut again, NOW + 5_000).unwrap();
        assert_eq!((second.epoch, since), (first.epoch, first.incarnation));
        assert!(second.incarnation > first.incarnation);

        let (_, body) = open(Role::Host, &again.save()).unwrap();
        let mut head = Vec::new();
        let mut out = Writer { bytes: &mut head };
        out.varint(square.id());
        out.rules(&config.rules);
        out.varint(again.incarnation.into());
        out.varint(again.now);
        out.varint(again.epoch.into());
        out.varint(again.born);
        out.u64(again.book);
        let rest = body.strip_prefix(head.as_slice()).unwrap();
        let mut since = Vec::new();
        Writer { bytes: &mut since }.varint(again.since.into());
        let rest = rest.strip_prefix(since.as_slice()).unwrap();
        let old = seal_as(Role::Host, VERSION_2, &[&head, rest].concat());
        let mut old = Host::restore(&old, config, NOW + 9_000).unwrap();
        assert_eq!(told(&mut old, NOW + 9_000).unwrap().1, second.incarnation);
    }
}
