//! A worker that decides in a browser: the core of `lately-edge` as WebAssembly, without any glue.
//!
//! The page (`index.html`, `worker.js`) has the connection to the broker, the clock and the position; this module has the
//! filter and the decision. All that it exports takes and returns numbers; messages go through two buffers. Numbers
//! of 64 bits come as `f64`, which JavaScript has (moments are exact up to the year 287,396).

use lately_edge::Millis;
use lately_edge::cell::{Position, SmallCell};
use lately_edge::element::{Element, Property};
use lately_edge::ids::WorkerId;
use lately_edge::message::{Outgoing, Peer};
use lately_edge::tally::first_of;
use lately_edge::wire;
use lately_edge::worker::{Lack, Outcome, Worker};
use std::cell::RefCell;
use std::collections::VecDeque;

/// What the module keeps between calls.
#[derive(Default)]
struct Module {
    worker: Option<Worker>,
    property: Option<Property>,
    /// Written by the page.
    input: Vec<u8>,
    /// Read by the page: a topic, a zero, a payload.
    output: Vec<u8>,
    queue: VecDeque<Outgoing>,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
}

fn with<T>(act: impl FnOnce(&mut Module) -> T) -> T {
    MODULE.with_borrow_mut(act)
}

/// Something is wrong: no worker, no such place, no message.
const WRONG: i32 = -1;

/// Makes room for so many bytes of input, and returns where they go.
// SAFETY: no other symbol of the program has this name; so for all below.
#[unsafe(no_mangle)]
pub extern "C" fn lately_room(length: u32) -> *mut u8 {
    with(|module| {
        module.input.clear();
        module.input.resize(length as usize, 0);
        module.input.as_mut_ptr()
    })
}

/// Where the output begins.
#[unsafe(no_mangle)]
pub extern "C" fn lately_output() -> *const u8 {
    with(|module| module.output.as_ptr())
}

/// Begins a worker with the id in two halves, in a life named by a random number. The input is the name of the property that
/// it can measure.
#[unsafe(no_mangle)]
pub extern "C" fn lately_start(high: u32, low: u32, life: u32) -> i32 {
    with(|module| {
        let name = std::str::from_utf8(&module.input).unwrap_or_default();
        let Ok(property) = Property::new(name) else { return WRONG };
        let id = WorkerId(u64::from(high) << 32 | u64::from(low));
        module.worker = Some(Worker::new(id, &[property], first_of(life)));
        module.property = Some(property);
        0
    })
}

fn cell(latitude: f64, longitude: f64) -> Option<SmallCell> {
    SmallCell::at(Position { latitude, longitude }).ok()
}

/// The worker is there now. The output is the name of its cell of 1 km, whose topic it is to subscribe to, and that of
/// its square; returns the length.
#[unsafe(no_mangle)]
pub extern "C" fn lately_go(now: f64, latitude: f64, longitude: f64) -> i32 {
    with(|module| {
        let (Some(worker), Some(cell)) = (&mut module.worker, cell(latitude, longitude)) else {
            return WRONG;
        };
        let mut out = Vec::new();
        worker.go(now as Millis, cell.km(), &mut out);
        module.queue.extend(out);
        module.output = cell.km().to_string().into_bytes();
        module.output.len() as i32
    })
}

/// A reading was taken there. 0: no task asks for it; 1: others have sent it; 2: sent; 3: sent to make sure.
#[unsafe(no_mangle)]
pub extern "C" fn lately_sense(now: f64, latitude: f64, longitude: f64, value: f64) -> i32 {
    with(|module| {
        let (Some(worker), Some(cell), Some(property)) =
            (&mut module.worker, cell(latitude, longitude), module.property)
        else {
            return WRONG;
        };
        let mut out = Vec::new();
        let outcome = worker.sense(now as Millis, Element { cell, property }, value, &mut out);
        module.queue.extend(out);
        match outcome {
            Outcome::NoTask => 0,
            Outcome::Skipped => 1,
            Outcome::Sent => 2,
            Outcome::Refreshed => 3,
        }
    })
}

/// A message has arrived: the input.
#[unsafe(no_mangle)]
pub extern "C" fn lately_handle(now: f64) -> i32 {
    with(|module| {
        let Some(worker) = &mut module.worker else { return WRONG };
        let Ok(message) = wire::decode(&module.input) else { return WRONG };
        let mut out = Vec::new();
        worker.handle(now as Millis, message, &mut out);
        module.queue.extend(out);
        0
    })
}

/// Time passes.
#[unsafe(no_mangle)]
pub extern "C" fn lately_tick(now: f64) {
    with(|module| {
        let mut out = Vec::new();
        module.worker.iter_mut().for_each(|worker| worker.tick(now as Millis, &mut out));
        module.queue.extend(out);
    });
}

/// 1 when the host of the present cell has answered: from then on, what no task asks for is asked for by none.
#[unsafe(no_mangle)]
pub extern "C" fn lately_is_assigned() -> i32 {
    with(|module| {
        let lack = module.worker.as_ref().map(Worker::lack);
        i32::from(lack == Some(Lack::Task))
    })
}

/// It ends.
#[unsafe(no_mangle)]
pub extern "C" fn lately_leave() {
    with(|module| {
        let mut out = Vec::new();
        module.worker.iter_mut().for_each(|worker| worker.leave(&mut out));
        module.queue.extend(out);
    });
}

/// The next message to send is put into the output: a topic, a zero byte, a payload. Its length, or 0 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn lately_next() -> u32 {
    with(|module| {
        while let Some(Outgoing { to, message }) = module.queue.pop_front() {
            let topic = match to {
                Peer::Coordinator => "lately/1/coordinator/worker".to_owned(),
                Peer::Host(square) => format!("lately/1/host/{square}/worker"),
                // A worker says nothing to anybody else.
                _ => continue,
            };
            module.output = topic.into_bytes();
            module.output.push(0);
            wire::encode(&message, &mut module.output);
            return module.output.len() as u32;
        }
        0
    })
}

/// What became of what it sent, as hosts have told: kept (0), redundant (1), refused (2); and what nobody answered (3).
#[unsafe(no_mangle)]
pub extern "C" fn lately_told(what: u32) -> f64 {
    with(|module| {
        let Some(worker) = &module.worker else { return 0.0 };
        let tally = worker.tally();
        let count = match what {
            0 => tally.kept,
            1 => tally.redundant,
            2 => tally.all_refused(),
            _ => worker.unanswered(),
        };
        count as f64
    })
}
