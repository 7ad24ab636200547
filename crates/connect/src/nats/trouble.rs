//! What went wrong, in words that help, and whether it will pass.

use crate::error::Trouble;
use crate::tls;
use async_nats::{ConnectError, ConnectErrorKind};
use std::error::Error;

/// What a server says to a name, a password or a token that it does not know.
pub(super) const REFUSED: &str = "the broker refuses the connection: not authorized; is the user, the password or the token missing or wrong?";

impl From<&ConnectError> for Trouble {
    fn from(error: &ConnectError) -> Self {
        let why = chain(error);
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                Self::Lasting(REFUSED.into())
            }
            _ if why.contains("certificate") => Self::Lasting(tls::certificate(&why)),
            _ if why.contains("InvalidContentType") || why.contains("corrupt message") => {
                Self::Lasting("it does not speak TLS there; is it nats://, or another port?".into())
            }
            ConnectErrorKind::TimedOut => Self::Passing("it does not answer".into()),
            ConnectErrorKind::ServerParse => Self::Lasting(why),
            _ => Self::Passing(why),
        }
    }
}

/// An error and what it was made of, without what it repeats.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        next = error.source();
    }
    text
}
