//! What a simulated day came to.

use crate::message::Kind;
use std::vec::Vec;

/// Messages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// How many.
    pub count: u64,
    /// Their bytes, without what the network adds.
    pub bytes: u64,
}

/// A validity period, or as long a part of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first minute of the day.
    pub start: u16,
    /// Readings taken.
    pub readings: u64,
    /// Elements that readings were taken of.
    pub elements: u64,
    /// Elements of which a reading was kept.
    pub covered: u64,
    /// Elements of which none was kept, and none of before was valid still: whatever the reason.
    pub lost: u64,
}

/// Counts of a simulated day.
///
/// Every reading is in exactly one of `unasked`, `suppressed`, `suppressed_wrongly`, `suppressed_stale`, `kept`, `redundant`,
/// `lost_at_host`, `duplicates` and `refused`: see [`Ledger::adds_up`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Readings taken: one for each fix.
    pub readings: u64,
    /// Readings that the worker knew of no task for.
    pub unasked: u64,
    /// Readings that a worker did not send, and rightly so.
    pub suppressed: u64,
    /// Readings that a worker did not send because its filter took them for others: lost.
    pub suppressed_wrongly: u64,
    /// Readings that a worker did not send because its filter is of before a reset that it was not told of: only with
    /// [`Setting::preferred`](super::Setting::preferred).
    pub suppressed_stale: u64,
    /// Readings sent.
    pub sent: u64,
    /// Of them, those sent to make sure.
    pub refreshed: u64,
    /// Readings that a host kept.
    pub kept: u64,
    /// Of them, those that its filter spoke against.
    pub recovered: u64,
    /// Readings of which the host had enough.
    pub redundant: u64,
    /// Readings that the host's filter took for others: lost.
    pub lost_at_host: u64,
    /// Readings that had arrived before.
    pub duplicates: u64,
    /// Readings that the host refused.
    pub refused: u64,
    /// Readings that requesters got.
    pub delivered: u64,
    /// Readings of whose element one was kept within the validity period before, this one included.
    pub fresh: u64,
    /// Messages by kind.
    pub messages: [Messages; Kind::ALL.len()],
    /// Resets as they arrive, one a worker who has something to forget.
    pub reset_deliveries: u64,
    /// The most messages of the paper's kinds in a second.
    pub peak: u32,
    /// The most readings sent in a second.
    pub peak_sent: u32,
    /// Elements that hosts expect to have lost.
    pub expected_lost: f64,
    /// How often the simulator has let time pass for a host.
    pub woken: u64,
    /// Parts of the day.
    pub slots: Vec<Slot>,
    /// At the end of each part, how many filters had each number of bits set; those without any are left out.
    pub occupancy: Vec<u64>,
}

impl Ledger {
    /// Messages of a kind.
    pub fn of(&self, kind: Kind) -> Messages {
        self.messages.get(kind as usize - 1).copied().unwrap_or_default()
    }

    /// The messages that the paper counts: announce, assign, submit, update and reset, the latter as
    /// [`Setting::resets`](super::Setting::resets) says.
    pub fn cost(&self) -> Messages {
        let kinds = [Kind::Announce, Kind::Assign, Kind::Submit, Kind::Update, Kind::Reset];
        kinds.into_iter().map(|kind| self.of(kind)).fold(Messages::default(), |sum, kind| {
            Messages { count: sum.count + kind.count, bytes: sum.bytes + kind.bytes }
        })
    }

    /// The paper's saving: the share of messages that are not sent, when each reading would be one.
    pub fn saving(&self) -> f64 {
        1.0 - self.cost().count as f64 / self.readings.max(1) as f64
    }

    /// [`Ledger::saving`] with resets counted once for each worker.
    pub fn saving_unicast(&self) -> f64 {
        let more = self.reset_deliveries as f64 - self.of(Kind::Reset).count as f64;
        self.saving() - more / self.readings.max(1) as f64
    }

    /// The share of readings that was sent.
    pub fn sent_share(&self) -> f64 {
        self.sent as f64 / self.readings.max(1) as f64
    }

    /// The share of what hosts got that was redundant.
    pub fn redundant_share(&self) -> f64 {
        (self.redundant + self.lost_at_host) as f64 / self.sent.max(1) as f64
    }

    /// Elements in all slots, those with a reading kept, those without one, old or new.
    pub fn elements(&self) -> (u64, u64, u64) {
        self.slots.iter().fold((0, 0, 0), |(all, covered, lost), slot| {
            (all + slot.elements, covered + slot.covered, lost + slot.lost)
        })
    }

    /// Elements lost in a thousand: the paper's error rate.
    pub fn lost_per_mille(&self) -> f64 {
        let (all, _, lost) = self.elements();
        1000.0 * lost as f64 / all.max(1) as f64
    }

    /// Readings in a thousand that were lost to false positives, at the worker or at the host.
    pub fn readings_lost_per_mille(&self) -> f64 {
        let lost = self.suppressed_wrongly + self.lost_at_host;
        1000.0 * lost as f64 / self.readings.max(1) as f64
    }

    /// The share of elements and slots of which a reading was kept.
    pub fn coverage(&self) -> f64 {
        let (all, covered, _) = self.elements();
        covered as f64 / all.max(1) as f64
    }

    /// Is every reading in exactly one class, at the workers and at the hosts?
    pub fn adds_up(&self) -> bool {
        let suppressed = self.suppressed + self.suppressed_wrongly + self.suppressed_stale;
        let at_workers = self.unasked + suppressed + self.sent;
        let at_hosts =
            self.kept + self.redundant + self.lost_at_host + self.duplicates + self.refused;
        at_workers == self.readings
            && at_hosts == self.sent
            && self.of(Kind::Submit).count == self.sent
            && self.slots.iter().map(|slot| slot.readings).sum::<u64>() == self.readings
    }
}
