//! EPCIS 2.0 documents or events (JSON).

use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::values::{self, Unpack};
use crate::scan::json::{Piece, Shape};
use crate::scan::tree::Tree;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Members(&[&["/epcisBody"], &["/eventTime", "/epcList"]]),
    open: |head| values::open(head, Unpack::List(events)),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: (
        "{\"epcisBody\":{\"eventList\":[{\"eventTime\":\"5\",\"epcList\":[\"urn:epc:id:sgtin:0614141.812345.7\"]}]}}\n",
        KEY,
    ),
};

static PROFILE: Profile = Profile {
    epc: &["/epcList"],
    tid: &[],
    antenna: &[],
    rssi: &[],
    reader: &["/readPoint/id"],
    time: &["/eventTime"],
};

/// The event list of an EPCIS document or query result.
fn events(text: &[u8]) -> Option<Piece> {
    memchr::memmem::find(text, b"\"epcisBody\"")?;
    let mut tree = Tree::default();
    let body = b"epcisBody".as_slice();
    let slots = [
        tree.slot([body, b"eventList"]),
        tree.slot([body, b"queryResults", b"resultsBody", b"eventList"]),
    ];
    let mut found = Vec::new();
    tree.scan(text, false, &mut found).ok()?;
    let list = |slot: usize| found.get(slot).copied().flatten();
    slots.into_iter().find_map(list).filter(|piece| piece.shape == Shape::Array)
}
