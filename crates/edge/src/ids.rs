//! Who and what is named by a number of 64 bits.

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(pub u64);

        impl core::fmt::Display for $id {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }
    )*};
}

ids! {
    /// A worker: a device that moves about and measures.
    WorkerId;
    /// A requester: who posts tasks and gets readings.
    RequesterId;
    /// A process that can run hosts.
    ProcessId;
    /// A task. Its requester chooses the number.
    TaskId;
}
