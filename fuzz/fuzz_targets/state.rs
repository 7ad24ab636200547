//! Any bytes as a saved state or index: an error or what was saved, never a panic. Then the same as the
//! body of either, with version and checksum made right, so that the fields are reached.
#![no_main]

use lately::Digester;
use lately_stream::index::Index;
use lately_stream::state::State;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = State::from_bytes(bytes);
    let _ = Index::from_bytes(bytes);
    let _ = State::from_bytes(&sealed(b"\x89LSTATE\n", bytes));
    let _ = Index::from_bytes(&sealed(b"\x89LINDEX\n", bytes));
});

fn sealed(magic: &[u8; 8], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&magic[..], &[1, 0], body].concat();
    let sum = Digester::new(0).digest(&bytes).lo();
    bytes.extend(sum.to_le_bytes());
    bytes
}
