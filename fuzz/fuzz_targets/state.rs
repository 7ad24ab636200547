//! Any bytes as a saved state, index or visits: an error or what was saved, never a panic. Then the same as the
//! body of either, of both versions, with the envelope made right, so that the fields are reached.
#![no_main]

use lately::Digester;
use lately::codec::{self, Format};
use lately_stream::state::dedup::State;
use lately_stream::state::index::SavedIndex;
use lately_stream::state::visits::SavedVisits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = State::from_bytes(bytes);
    let _ = SavedIndex::from_bytes(bytes);
    let _ = State::from_bytes(&sealed(b"\x89LSTATE\n", bytes));
    let _ = SavedIndex::from_bytes(&sealed(b"\x89LINDEX\n", bytes));
    let framed = |magic| codec::to_vec(Format::new(magic, 2), |out| out.bytes(bytes));
    let _ = State::from_bytes(&framed(*b"\x89LSTATE\n"));
    let _ = SavedIndex::from_bytes(&framed(*b"\x89LINDEX\n"));
    for version in 2..=4 {
        let visits = Format::new(*b"\x89LVISIT\n", version);
        let _ = SavedVisits::from_bytes(&codec::to_vec(visits, |out| out.bytes(bytes)));
    }
});

fn sealed(magic: &[u8; 8], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&magic[..], &[1, 0], body].concat();
    let sum = Digester::new(0).digest(&bytes).lo();
    bytes.extend(sum.to_le_bytes());
    bytes
}
