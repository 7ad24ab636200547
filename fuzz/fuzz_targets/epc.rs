//! Any text as an EPC: no panic, and what has a tag URI comes back from it.
#![no_main]

use lately_stream::epc::{Epc, normalise};
use libfuzzer_sys::fuzz_target;

fn key(text: &[u8]) -> (Vec<u8>, bool) {
    let mut key = Vec::new();
    let is_epc = normalise(text, &mut key);
    (key, is_epc)
}

fuzz_target!(|text: &[u8]| {
    let (own, is_epc) = key(text);
    let parsed = Epc::parse(text);
    assert_eq!(parsed.is_ok(), is_epc);
    let Ok((epc, _)) = parsed else { return };
    // An EPC whose bytes spell hex digits is unwrapped once more: the rule cannot know better.
    if !epc.as_bytes().iter().all(u8::is_ascii_hexdigit) {
        assert_eq!(key(epc.to_hex().as_bytes()).0, own, "hex");
    }
    if let Ok(uri) = epc.to_tag_uri() {
        assert_eq!(key(uri.as_bytes()).0, own, "{uri}");
    }
    let _ = epc.to_id_uri();
});
