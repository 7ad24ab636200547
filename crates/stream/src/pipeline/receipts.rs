//! Messages of a broker are acknowledged when what was made of them is safe.

use super::Pipeline;
use crate::judge::Decide;
use crate::read::message::Acknowledge;
use crate::write::output::SinkError;
use std::time::{Duration, Instant};

/// How often it is looked whether messages can be acknowledged, while any wait for it.
pub(super) const WATCHFUL: Duration = Duration::from_millis(2);

/// How long messages that keep coming may wait to be acknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_millis(100);

/// What is between two saves for the sake of acknowledgements, as a multiple of what the thread that judges does for
/// one: a fifth of its time at most.
const REST: u32 = 4;

/// The messages of a broker that are to be acknowledged.
pub(super) struct Receipts {
    broker: Box<dyn Acknowledge>,
    /// The last one that was judged,
    pub(super) judged: u64,
    /// that the save in flight covers,
    pub(super) saving: Option<u64>,
    /// and that was acknowledged.
    acknowledged: u64,
    /// When the last save for their sake began, and how long it took the thread that judges.
    began: Instant,
    took: Duration,
}

impl Receipts {
    pub(super) fn new(broker: Box<dyn Acknowledge>) -> Self {
        let (began, took) = (Instant::now(), Duration::ZERO);
        Self { broker, judged: 0, saving: None, acknowledged: 0, began, took }
    }

    /// Are there messages that were judged and not acknowledged?
    pub(super) fn are_behind(&self) -> bool {
        self.judged > self.acknowledged
    }

    /// Is it time for the next save? `quiet`: no further message comes, perhaps because these wait.
    fn are_due(&self, quiet: bool) -> bool {
        let wait = if quiet { Duration::ZERO } else { UNACKNOWLEDGED };
        self.are_behind() && self.began.elapsed() >= wait.max(self.took * REST)
    }

    pub(super) fn acknowledge(&mut self, token: u64) {
        if token > self.acknowledged {
            self.acknowledged = token;
            self.broker.acknowledge(token);
        }
    }
}

impl<J: Decide> Pipeline<J> {
    /// Acknowledges the messages that are dealt with: all that was made of them is written and confirmed, and the
    /// state that remembers them is saved. Begins to save it, if it is time for that.
    ///
    /// While they were not acknowledged, the broker delivers them again after a crash; so none is lost, and none is
    /// remembered that was not forwarded.
    pub(super) fn acknowledge(&mut self) -> Result<(), SinkError> {
        let Some(receipts) = &self.receipts else { return Ok(()) };
        // Records that wait are only safe in a state.
        let waits = self.hold.is_some() || self.sink.holds_back();
        let quiet = self.is_dry;
        match &self.state {
            None if waits => return Ok(()),
            None if !receipts.are_due(quiet) => return Ok(()),
            None => {
                self.confirm()?;
                self.all_is_safe();
                return Ok(());
            }
            Some(state) if state.is_busy() => return Ok(()),
            Some(_) => {}
        }
        self.settle()?;
        if self.receipts.as_ref().is_none_or(|receipts| !receipts.are_due(quiet)) {
            return Ok(());
        }
        let began = Instant::now();
        self.save()?;
        if self.state.as_ref().is_some_and(|state| !state.is_in_flight()) {
            // There was nothing to save: nothing has changed.
            self.confirm()?;
            self.all_is_safe();
        }
        if let Some(receipts) = &mut self.receipts {
            (receipts.began, receipts.took) = (began, began.elapsed());
        }
        Ok(())
    }

    /// All messages that were judged are dealt with.
    pub(super) fn all_is_safe(&mut self) {
        if let Some(receipts) = &mut self.receipts {
            receipts.began = Instant::now();
            receipts.acknowledge(receipts.judged);
        }
    }
}
