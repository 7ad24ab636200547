//! Any bytes over HTTP, whole and in pieces: no panic, no fault of the server, and the first answer is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What a client of HTTP/2 says first.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The status of the first answer.
fn status(said: &[u8]) -> Option<&[u8]> {
    if said.is_empty() {
        return None;
    }
    assert!(said.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(said));
    let status = &said[9..12];
    assert_ne!(status, b"500", "{}", String::from_utf8_lossy(said));
    Some(status)
}

fuzz_target!(|data: &[u8]| {
    let Some((&[cut, has_password], bytes)) = data.split_first_chunk::<2>() else { return };
    let password = (has_password % 4 == 0).then_some("p");
    let whole = lately_serve::fuzz_http(&[bytes], password);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(cut) + 1).collect();
    let cut = lately_serve::fuzz_http(&pieces, password);
    let (whole, cut) = (status(&whole), status(&cut));
    // hyper refuses a bad head at once if its first bytes show it. Once it waits for more it looks again only when the head
    // has ended, and says nothing to a client that goes before.
    let before = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let head = &bytes[before..];
    let has_ended = head.windows(2).any(|here| here == b"\n\n")
        || head.windows(3).any(|here| here == b"\n\r\n");
    let is_unsaid = !has_ended && whole == Some(b"400") && cut.is_none();
    // Where hyper sees what HTTP/2 begins with behind a bad head, or instead of one, it says nothing.
    let is_http_2 = whole.is_none() && bytes.windows(24).any(|here| here == HTTP_2);
    assert!(whole == cut || is_unsaid || is_http_2, "{whole:?} {cut:?}");
});
