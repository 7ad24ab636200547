//! What all connections of a run have in common.

use crate::address::Address;
use crate::error::ConnectError;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Says something of a connection to whoever looks on.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// A name and a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The name, unless an address has one of its own.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

impl fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What all connections of a run have in common.
#[derive(Clone)]
pub struct Settings {
    /// How to get in.
    pub login: Login,
    /// Certificates (PEM) of the authorities that brokers with TLS are to be certified by; `None`: those of the system.
    pub authorities: Option<Vec<u8>>,
    /// What tells this run from others, the same when it is started again: of it the name is made by which a broker knows
    /// us, and keeps messages while we are away.
    pub identity: String,
    /// Where it is said that a connection was lost, and is there again.
    pub tell: Tell,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("login", &self.login).finish_non_exhaustive()
    }
}

impl Settings {
    /// A name by which the broker of this address knows us, the same whenever this run is started.
    #[allow(dead_code, reason = "unless it was built for any of them")]
    pub(crate) fn name(&self, address: &Address) -> String {
        let of = format!("{address}\n{}", self.identity);
        format!("lately-{:016x}", xxh3_64(of.as_bytes()))
    }

    /// An address for which this program was not built.
    #[allow(dead_code, reason = "unless it was built for all of them")]
    pub(crate) fn missing(&self, address: &Address, feature: &str) -> ConnectError {
        ConnectError::Address(format!(
            "{address}: not in this build; build it with `--features {feature}`"
        ))
    }
}
