//! A coordinator's state as bytes.

use super::{Coordinator, CoordinatorConfig, Placement, Process};
use crate::Millis;
use crate::ids::ProcessId;
use crate::state::{Role, StateError, VERSION_1, open, seal};
use crate::wire::{Reader, Writer};
use alloc::vec::Vec;

impl Coordinator {
    /// The state as bytes: processes, squares and tasks. What hosts tell comes again by itself, and
    /// workers that wait ask again.
    pub fn save(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut out = Writer { bytes: &mut body };
        out.u64(self.book);
        out.varint(self.processes.len() as u64);
        for (id, process) in &self.processes {
            out.u64(id.0);
            out.varint(u64::from(process.room));
        }
        out.varint(self.squares.len() as u64);
        for (square, placement) in &self.squares {
            out.varint(square.id());
            out.u64(placement.process.0);
            out.bool(placement.ready);
        }
        out.varint(self.tasks.len() as u64);
        for (requester, task) in self.tasks.values() {
            out.forward(*requester, task);
        }
        seal(Role::Coordinator, &body)
    }

    /// The coordinator of a saved state. Processes are taken to be there until somebody says that they
    /// are gone, or they are not heard of; all are told their squares, rules and tasks again.
    ///
    /// # Errors
    /// [`StateError`] for bytes that [`Coordinator::save`] did not write.
    pub fn restore(
        bytes: &[u8],
        config: CoordinatorConfig,
        now: Millis,
    ) -> Result<Self, StateError> {
        let (version, body) = open(Role::Coordinator, bytes)?;
        let mut input = Reader::new(&body);
        let mut coordinator = Self::new(config);
        coordinator.book = if version == VERSION_1 { 0 } else { input.u64()? };
        for _ in 0..input.varint()? {
            let (id, room) = (ProcessId(input.u64()?), input.u32()?);
            coordinator.processes.insert(id, Process { room, used: 0, heard: now, gone: None });
        }
        for _ in 0..input.varint()? {
            let (square, process) = (input.square()?, ProcessId(input.u64()?));
            let placement = Placement { ready: input.bool()?, ..Placement::new(process, now) };
            coordinator.squares.insert(square, placement);
        }
        for (requester, task) in input.list(usize::MAX, Reader::forward)? {
            coordinator.tasks.insert(task.id, (requester, task));
        }
        input.finish()?;
        for placement in coordinator.squares.values() {
            if let Some(process) = coordinator.processes.get_mut(&placement.process) {
                process.used = process.used.saturating_add(1);
            }
        }
        Ok(coordinator)
    }
}
