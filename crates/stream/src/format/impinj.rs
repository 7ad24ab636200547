//! RFID reads of an Impinj IoT device interface (JSON).

use super::head::Signs;
use super::layout::Description;
use super::profile::{KEY, Profile, TIME};
use super::values::{self, Unpack};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Members(&[
        &["/eventType", "/tagInventoryEvent"],
        &["/eventType", "/inventoryStatusEvent"],
    ]),
    open: |head| values::open(head, Unpack::Arrays),
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: (
        "{\"timestamp\":\"5\",\"eventType\":\"tagInventory\",\"tagInventoryEvent\":{\"epcHex\":\"8A450224\"}}\n",
        KEY,
    ),
};

static PROFILE: Profile = Profile {
    epc: &["/tagInventoryEvent/epcHex", "/tagInventoryEvent/epc"],
    tid: &["/tagInventoryEvent/tidHex", "/tagInventoryEvent/tid"],
    antenna: &["/tagInventoryEvent/antennaPort", "/tagInventoryEvent/antennaName"],
    rssi: &["/tagInventoryEvent/peakRssiCdbm"],
    reader: &["/hostname"],
    time: &["/timestamp"],
};
