//! Errors as exceptions of Java.

use jni::errors::{Error, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, jni_str};
use std::any::Any;
use std::fmt;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A term that cannot be kept: `IllegalArgumentException`.
    Argument(String),
    /// A state that cannot be read, or a filter that is closed: `IllegalStateException`.
    State(String),
    /// Java itself refused something.
    Java(Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(text) | Self::State(text) => f.write_str(text),
            Self::Java(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Java(error)
    }
}

/// Throws what is wrong; the value that is returned then is never looked at.
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Fault> for Throw {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        _: &mut Self::Captures<'local, 'method>,
        fault: Fault,
    ) -> jni::errors::Result<T> {
        if !env.exception_check() {
            let class = match fault {
                Fault::Argument(_) => jni_str!("java/lang/IllegalArgumentException"),
                Fault::State(_) => jni_str!("java/lang/IllegalStateException"),
                Fault::Java(_) => jni_str!("java/lang/RuntimeException"),
            };
            // It answers with an error, which is the exception that was asked for.
            let _ = env.throw_new(class, JNIString::from(fault.to_string()));
        }
        Ok(T::default())
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        captures: &mut Self::Captures<'local, 'method>,
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = payload.downcast_ref::<&str>().copied().unwrap_or("no reason was given");
        let fault = Fault::State(format!("a fault in lately, please report it: {text}"));
        <Self as ErrorPolicy<T, Fault>>::on_error(env, captures, fault)
    }
}
