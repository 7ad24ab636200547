//! RFID reads of a Zebra IoT connector (JSON objects or arrays of them).

use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::values::{self, Unpack};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Members(&[&["/data/idHex", "/timestamp"]]),
    open: |head| values::open(head, Unpack::Arrays),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: ("[{\"data\":{\"idHex\":\"ad99160040aac99525000025\"},\"timestamp\":\"5\"}]\n", KEY),
};

static PROFILE: Profile = Profile {
    epc: &["/data/idHex"],
    tid: &["/data/TID"],
    antenna: &["/data/antenna"],
    rssi: &["/data/peakRssi"],
    reader: &["/data/hostName", "/data/MAC"],
    time: &["/timestamp"],
};
