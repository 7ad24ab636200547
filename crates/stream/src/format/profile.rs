//! What the RFID formats call their fields.
//!
//! Every one of them answers to the same names, `epc`, `tid`, `antenna`, `rssi`, `reader` and
//! `time`, so that one command works for readers of different make.

/// The key of an RFID read when none is named.
pub(crate) const KEY: &str = "epc";

/// The time of an RFID read when none is named.
pub(crate) const TIME: &str = "time";

/// The antenna that made an RFID read.
pub(crate) const ANTENNA: &str = "antenna";

/// The signal strength of an RFID read.
pub(crate) const STRENGTH: &str = "rssi";

/// The names of one format: the common ones and, for each, its own, of which the first that a
/// record has counts. In JSON they are pointers.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) epc: &'static [&'static str],
    pub(crate) tid: &'static [&'static str],
    pub(crate) antenna: &'static [&'static str],
    pub(crate) rssi: &'static [&'static str],
    pub(crate) reader: &'static [&'static str],
    pub(crate) time: &'static [&'static str],
}

impl Profile {
    /// The format's own names for a common one; none if it has no such field.
    pub(crate) fn own(&self, alias: &str) -> &'static [&'static str] {
        match alias {
            KEY => self.epc,
            "tid" => self.tid,
            ANTENNA => self.antenna,
            STRENGTH => self.rssi,
            "reader" => self.reader,
            TIME => self.time,
            _ => &[],
        }
    }

    /// Whether the field, by the common name or the format's own, holds an EPC.
    pub(crate) fn is_epc(&self, name: &str) -> bool {
        name == KEY || self.epc.contains(&name)
    }
}
