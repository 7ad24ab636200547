//! When the state is saved, and what follows from that.

use super::Pipeline;
use crate::judge::Decide;
use crate::judge::hold::Hold;
use crate::state::file::SaveError;
use crate::write::output::SinkError;

impl<J: Decide> Pipeline<J> {
    pub(super) fn save_if_due(&mut self) -> Result<(), SinkError> {
        let Some(state) = &self.state else { return Ok(()) };
        if state.is_busy() {
            return Ok(());
        }
        if self.save_asked || state.is_due() { self.save() } else { self.settle() }
    }

    /// A number that rises whenever something changes that is saved.
    pub(super) fn changes(&self) -> u64 {
        self.judge.changes() + self.hold.as_ref().map_or(0, Hold::changes)
    }

    /// Begins to save the state, if anything has changed, after everything it remembers was written. A
    /// state that cannot be saved does not end the stream. While another save is in flight this
    /// one waits for its turn; the stream does not.
    pub(super) fn save(&mut self) -> Result<(), SinkError> {
        let changes = self.changes();
        let Some(state) = &mut self.state else { return Ok(()) };
        self.save_asked = state.is_busy();
        if self.save_asked {
            return Ok(());
        }
        self.settle()?;
        let Some(state) = &mut self.state else { return Ok(()) };
        if !state.is_stale(changes) {
            state.skip();
            return Ok(());
        }
        self.confirm()?;
        let (judge, hold) = (&self.judge, &self.hold);
        let held: Vec<_> = hold.iter().flat_map(Hold::waiting).collect();
        let Some(state) = &mut self.state else { return Ok(()) };
        let outputs = self.sink.unsynced();
        let begun = state.begin(changes, outputs, |out| judge.write_state(&held, out));
        if let (Ok(()), Some(receipts)) = (&begun, &mut self.receipts) {
            receipts.saving = Some(receipts.judged);
        }
        self.note_save(begun)
    }

    /// Waits for the save in flight, if there is one.
    pub(super) fn settle(&mut self) -> Result<(), SinkError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let was_in_flight = state.is_in_flight();
        let settled = state.settle();
        if was_in_flight && settled.is_ok() {
            self.report.save_failed = false;
            if let Some(receipts) = &mut self.receipts
                && let Some(token) = receipts.saving.take()
            {
                receipts.acknowledge(token);
            }
        }
        self.note_save(settled)
    }

    fn note_save(&mut self, result: Result<(), SaveError>) -> Result<(), SinkError> {
        match result {
            Ok(()) => Ok(()),
            Err(SaveError::Output(error)) => Err(error),
            // Without it no message can be acknowledged, so soon none would come any more.
            Err(SaveError::State(error)) if self.receipts.is_some() => {
                let (name, error) = ("the state".into(), std::io::Error::other(error.to_string()));
                Err(SinkError { name, main: false, error })
            }
            Err(SaveError::State(error)) => {
                self.report.save_failed = true;
                self.report.state_errors.0 += 1;
                self.report.state_errors.1 = Some(error.to_string());
                Ok(())
            }
        }
    }

    /// Saves the state, and waits until it is saved.
    pub(super) fn save_all(&mut self) -> Result<(), SinkError> {
        // What is in flight may be older than what there is to save by now.
        self.settle()?;
        self.save()?;
        self.settle()
    }
}
