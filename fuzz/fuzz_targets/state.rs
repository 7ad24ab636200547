//! Any bytes as a saved state: an error or a state, never a panic.
#![no_main]

use lately_stream::state::State;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = State::from_bytes(bytes);
});
