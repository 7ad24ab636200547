//! Addresses of brokers in the place of files: `kafka://HOSTS/TOPIC`, `mqtt://HOST/FILTER`, `nats://HOST/STREAM`.

use crate::Failure;
use clap::Args;
use std::path::{Path, PathBuf};

const SCHEMES: [&str; 6] =
    ["kafka://", "kafka+tls://", "mqtt://", "mqtts://", "nats://", "nats+tls://"];

/// Is it the address of a broker, and no file? Also one that this build knows nothing of.
pub fn is_address(name: &str) -> bool {
    SCHEMES.iter().any(|scheme| name.starts_with(scheme))
}

/// The same for an output.
pub fn is_output(path: &Path) -> bool {
    path.to_str().is_some_and(is_address)
}

/// How to get in at brokers.
#[derive(Args, Clone, Default)]
#[command(
    next_help_heading = "Brokers (kafka://[USER@]HOST[:PORT][,..]/TOPIC, mqtt://[USER@]HOST[:PORT]/TOPIC, nats://[USER@]HOST[:PORT]/STREAM; with TLS kafka+tls://, mqtts://, nats+tls://: docs/brokers.md)"
)]
pub struct BrokerArguments {
    /// The user, unless the address names one
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The file whose first line is the password [default: that in the environment as LATELY_PASSWORD]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// The certificates (PEM) of the authorities that vouch for brokers [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Refuses addresses in a build that knows no brokers.
#[cfg(not(feature = "brokers"))]
mod absent {
    use super::BrokerArguments;
    use crate::Failure;
    use crate::signals::Writing;
    use lately_stream::options::Options;
    use lately_stream::source::Source;
    use lately_stream::write::output::Output;
    use std::path::Path;

    /// Connections of a run: there are none.
    pub struct Brokers;

    impl Brokers {
        pub fn new(_: &BrokerArguments, _: &str, _: Writing) -> Result<Self, Failure> {
            Ok(Self)
        }

        pub fn input(&self, address: &str, _: Options) -> Result<Source, Failure> {
            Err(missing(address))
        }

        pub fn output(&self, address: &Path) -> Result<Output, Failure> {
            Err(missing(&address.display().to_string()))
        }
    }

    fn missing(address: &str) -> Failure {
        Failure::Usage(format!(
            "{address}: this program was built without connections to brokers; build it with the feature `kafka`, `mqtt` or `nats`, or with `full` for everything: cargo build --release --features full"
        ))
    }
}

#[cfg(not(feature = "brokers"))]
pub use absent::Brokers;

/// Connections of a run.
#[cfg(feature = "brokers")]
mod there {
    use super::{BrokerArguments, cannot_read};
    use crate::Failure;
    use crate::signals::Writing;
    use lately_connect::{Address, ConnectError, Login, Settings};
    use lately_stream::options::Options;
    use lately_stream::source::Source;
    use lately_stream::write::message::{About, MessageOutput};
    use lately_stream::write::output::Output;
    use std::fs;
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    /// Connections of a run.
    pub struct Brokers {
        settings: Settings,
        writing: Writing,
    }

    impl Brokers {
        /// `identity` tells this run from others, whenever it is started.
        pub fn new(
            arguments: &BrokerArguments,
            identity: &str,
            writing: Writing,
        ) -> Result<Self, Failure> {
            let authorities = arguments
                .ca
                .as_ref()
                .map(|path| fs::read(path).map_err(|error| cannot_read("--ca", path, &error)));
            let login = Login { user: arguments.user.clone(), password: arguments.password()? };
            let tell = Arc::new(|what: &str| eprintln!("lately: {what}"));
            let settings = Settings {
                login,
                authorities: authorities.transpose()?,
                identity: format!("{}\n{identity}", machine()),
                tell,
            };
            Ok(Self { settings, writing })
        }

        /// The messages of an address.
        pub fn input(&self, address: &str, options: Options) -> Result<Source, Failure> {
            let address: Address = address.parse().map_err(failure)?;
            let input = lately_connect::input(&address, &self.settings).map_err(failure)?;
            Ok(Source::of_messages(&address.to_string(), input, options))
        }

        /// An output that an address names.
        pub fn output(&self, address: &Path) -> Result<Output, Failure> {
            let text = address.to_str().unwrap_or_default();
            let address: Address = text.parse().map_err(failure)?;
            let messages = lately_connect::output(&address, &self.settings).map_err(failure)?;
            let messages = Watched { messages, writing: self.writing.clone() };
            Ok(Output::of_messages(address.to_string(), Box::new(messages)))
        }
    }

    fn failure(error: ConnectError) -> Failure {
        match error {
            ConnectError::Address(why) => Failure::Usage(why),
            other => Failure::Trouble(other.to_string()),
        }
    }

    /// What tells this machine from others, as far as there is anything: the same command on two machines is not one
    /// client of a broker.
    fn machine() -> String {
        let known = ["/etc/machine-id", "/etc/hostname"].map(fs::read_to_string);
        known.into_iter().flatten().collect()
    }

    /// A broker that may be away for as long as it likes, unless the run is to end.
    struct Watched {
        messages: Box<dyn MessageOutput>,
        writing: Writing,
    }

    impl MessageOutput for Watched {
        fn send(&mut self, record: &[u8], about: &About) -> io::Result<()> {
            let messages = &mut self.messages;
            self.writing.guard(|| messages.send(record, about))
        }

        fn confirm(&mut self) -> io::Result<()> {
            let messages = &mut self.messages;
            self.writing.guard(|| messages.confirm())
        }
    }
}

#[cfg(feature = "brokers")]
pub use there::Brokers;

impl BrokerArguments {
    /// The password, from where nobody else can read it.
    #[cfg_attr(
        not(feature = "brokers"),
        allow(dead_code, reason = "there is nobody to give it to")
    )]
    fn password(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.password_file else {
            return Ok(std::env::var("LATELY_PASSWORD").ok());
        };
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| cannot_read("--password-file", path, &error))?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }
}

#[cfg_attr(not(feature = "brokers"), allow(dead_code, reason = "there is nothing to read"))]
fn cannot_read(flag: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{flag} {}: {error}", path.display()))
}

/// Refuses what cannot be done with messages of a broker. `keeps` says that records wait in memory before they are
/// written, `saves` that there is a state for them.
pub fn check(files: &[String], merge: bool, keeps: bool, saves: bool) -> Result<(), Failure> {
    let Some(address) = files.iter().find(|file| is_address(file)) else { return Ok(()) };
    let usage = |why: &str| Err(Failure::Usage(format!("{address}: {why}")));
    if files.len() > 1 {
        return usage(
            "a broker is read alone: what is named besides it would wait for its end, which never comes",
        );
    }
    if merge {
        return usage("--merge reads files only");
    }
    if keeps && !saves {
        return usage(
            "records that wait are safe only in a --state: without one they would be lost in a crash, as the broker must not deliver them twice",
        );
    }
    Ok(())
}
