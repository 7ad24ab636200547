//! Any bytes in the protocol of Redis, whole and in pieces: no panic, and the same replies.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Words of commands whose replies tell how the bytes came: counts of commands, memory in use.
const TELLING: [&[u8]; 4] = [b"info", b"list", b"memory", b"time"];

fuzz_target!(|data: &[u8]| {
    let Some((&[cut, has_password], bytes)) = data.split_first_chunk::<2>() else { return };
    let password = (has_password % 4 == 0).then_some("p");
    let whole = lately_serve::fuzz_feed(&[bytes], password);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(cut) + 1).collect();
    let cut = lately_serve::fuzz_feed(&pieces, password);
    let lower = bytes.to_ascii_lowercase();
    let tells = TELLING.iter().any(|word| lower.windows(word.len()).any(|here| here == *word));
    assert!(
        tells || whole == cut,
        "{:?} {:?}",
        whole.escape_ascii().to_string(),
        cut.escape_ascii().to_string()
    );
});
