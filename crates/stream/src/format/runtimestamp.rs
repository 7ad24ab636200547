//! RFID reads in the CSV that begins with `RunTimestamp,Timestamp,EPC`.

use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::table;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Row(|line, head| {
        let header = !head.no_header && !line.contains(&b'\t');
        Some(header && line.starts_with(b"RunTimestamp,Timestamp,EPC"))
    }),
    open: |head| table::open(head, b',', true, true),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: ("RunTimestamp,Timestamp,EPC\n2025-03-31T10:49:17,5,303040420A8824D61E7F24D2\n", KEY),
};

static PROFILE: Profile = Profile {
    epc: &["EPC"],
    tid: &["TID"],
    antenna: &["AntennaPort"],
    rssi: &["RSSI"],
    reader: &["Reader"],
    time: &["Timestamp"],
};
