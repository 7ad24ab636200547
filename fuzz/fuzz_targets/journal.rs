//! Journals with any changes in them, and any bytes behind those: no panic, no more memory than there is, and no fault where
//! damage is to be left out.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, bodies], mut rest)) = data.split_first_chunk::<2>() else { return };
    let mut parts = Vec::new();
    for _ in 0..bodies % 32 {
        let Some((&len, after)) = rest.split_first() else { break };
        let (body, after) = after.split_at(usize::from(len).min(after.len()));
        parts.push(body);
        rest = after;
    }
    lately_serve::fuzz_journal(&parts, rest, flags % 2 == 1);
});
