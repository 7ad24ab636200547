//! RFID reads written by Impinj's Speedway Connect (CSV).

use super::csv::names_columns;
use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::table;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Row(|line, head| {
        Some(names_columns(line, head, &["antenna_port", "epc", "first_seen_timestamp"]))
    }),
    open: |head| table::open(head, b',', true, true),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: ("antenna_port,epc,first_seen_timestamp\n3,303040420A8824D61E7F24D2,5\n", KEY),
};

// The reader is its MAC address: `reader_name` is "Impinj RFID Reader" until somebody changes it,
// and would make all readers one.
static PROFILE: Profile = Profile {
    epc: &["epc"],
    tid: &["tid"],
    antenna: &["antenna_port"],
    rssi: &["peak_rssi"],
    reader: &["mac_address", "reader_name"],
    time: &["first_seen_timestamp", "timestamp"],
};
