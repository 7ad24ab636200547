//! RFID reads written by sllurp (CSV).

use super::csv::names_columns;
use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::table;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Row(|line, head| {
        Some(names_columns(line, head, &["timestamp", "reader", "antenna", "rssi", "epc"]))
    }),
    open: |head| table::open(head, b',', true, true),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: (
        "timestamp,reader,antenna,rssi,epc\n5,r:5084,1,-77,b'303040420a8824d61e7f24d2'\n",
        KEY,
    ),
};

static PROFILE: Profile = Profile {
    epc: &["epc"],
    tid: &["tid"],
    antenna: &["antenna"],
    rssi: &["rssi"],
    reader: &["reader"],
    time: &["timestamp"],
};
