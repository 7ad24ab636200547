//! How a record is marked with its class.

/// How a record is marked with its class, so that duplicates can be kept and distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One more column behind this separator; `lately` in the header.
    Column(u8),
    /// One more member, `"lately"`, in a JSON object.
    Member,
}
