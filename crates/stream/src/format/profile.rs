//! What the RFID formats call their fields.
//!
//! Every one of them answers to the same names, `epc`, `tid`, `antenna`, `rssi`, `reader` and
//! `time`, so that one command works for readers of different make.

use crate::options::Format;

/// The names of one format: those we lend it and, for each, its own, of which the first that a
/// record has counts. In JSON they are pointers.
#[derive(Debug)]
pub(crate) struct Profile {
    aliases: [(&'static str, &'static [&'static str]); 6],
}

/// The key of an RFID read when none is named.
pub(crate) const KEY: &str = "epc";

/// The time of an RFID read when none is named.
pub(crate) const TIME: &str = "time";

impl Profile {
    /// The format's own names for one of ours; none if it has no such field.
    pub(crate) fn own(&self, alias: &str) -> &'static [&'static str] {
        self.aliases.iter().find(|known| known.0 == alias).map_or(&[], |known| known.1)
    }

    /// Whether the field, by our name or the format's own, holds an EPC.
    pub(crate) fn is_epc(&self, name: &str) -> bool {
        name == KEY || self.own(KEY).contains(&name)
    }
}

/// The profile of a format, if it is an RFID format.
pub(crate) const fn of(format: Format) -> Option<&'static Profile> {
    Some(match format {
        Format::Impinj => &IMPINJ,
        Format::Zebra => &ZEBRA,
        Format::Sllurp => &SLLURP,
        Format::Speedway => &SPEEDWAY,
        Format::Runtimestamp => &RUNTIMESTAMP,
        Format::Epcis => &EPCIS,
        _ => return None,
    })
}

static IMPINJ: Profile = Profile {
    aliases: [
        ("epc", &["/tagInventoryEvent/epcHex", "/tagInventoryEvent/epc"]),
        ("tid", &["/tagInventoryEvent/tidHex", "/tagInventoryEvent/tid"]),
        ("antenna", &["/tagInventoryEvent/antennaPort", "/tagInventoryEvent/antennaName"]),
        ("rssi", &["/tagInventoryEvent/peakRssiCdbm"]),
        ("reader", &["/hostname"]),
        ("time", &["/timestamp"]),
    ],
};

static ZEBRA: Profile = Profile {
    aliases: [
        ("epc", &["/data/idHex"]),
        ("tid", &["/data/TID"]),
        ("antenna", &["/data/antenna"]),
        ("rssi", &["/data/peakRssi"]),
        ("reader", &["/data/hostName", "/data/MAC"]),
        ("time", &["/timestamp"]),
    ],
};

static SLLURP: Profile = Profile {
    aliases: [
        ("epc", &["epc"]),
        ("tid", &["tid"]),
        ("antenna", &["antenna"]),
        ("rssi", &["rssi"]),
        ("reader", &["reader"]),
        ("time", &["timestamp"]),
    ],
};

// The reader is its MAC address: `reader_name` is "Impinj RFID Reader" until somebody changes it,
// and would make all readers one.
static SPEEDWAY: Profile = Profile {
    aliases: [
        ("epc", &["epc"]),
        ("tid", &["tid"]),
        ("antenna", &["antenna_port"]),
        ("rssi", &["peak_rssi"]),
        ("reader", &["mac_address", "reader_name"]),
        ("time", &["first_seen_timestamp", "timestamp"]),
    ],
};

static RUNTIMESTAMP: Profile = Profile {
    aliases: [
        ("epc", &["EPC"]),
        ("tid", &["TID"]),
        ("antenna", &["AntennaPort"]),
        ("rssi", &["RSSI"]),
        ("reader", &["Reader"]),
        ("time", &["Timestamp"]),
    ],
};

static EPCIS: Profile = Profile {
    aliases: [
        ("epc", &["/epcList"]),
        ("tid", &[]),
        ("antenna", &[]),
        ("rssi", &[]),
        ("reader", &["/readPoint/id"]),
        ("time", &["/eventTime"]),
    ],
};
