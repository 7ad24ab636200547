//! What a server is told: by a file, or by arguments.

use crate::store::{Family, KeySpaceOptions, Numbers, Options, Planned, Reach, Slack, Template};
use crate::users::Users;
use lately::{Renewal, WhenFull};
use lately_stream::quantity;
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The address that a server listens on unless told otherwise.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7379);

/// The address that a server speaks HTTP at unless told otherwise.
pub const DEFAULT_HTTP_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7380);

/// Files in PEM that a server needs for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Its certificate, and those between it and the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities that must have signed the certificates of clients. Without them, clients need none.
    pub ca: Option<PathBuf>,
}

/// What outlives the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing.
    None,
    /// All that was remembered at the last snapshot: one is taken every so often, and one when the server ends in
    /// good order.
    #[default]
    Snapshot,
    /// All that was answered, unless the machine itself stops: then all but the last second. Every change is written to
    /// a journal before its reply leaves.
    EverySec,
    /// All that was answered. Every change is on disk before its reply leaves.
    Always,
}

impl Durability {
    /// Is every change written down before its reply leaves?
    pub fn has_journal(self) -> bool {
        matches!(self, Self::EverySec | Self::Always)
    }
}

/// What a server is told. [`Config::default`] is a server on loopback, and [`Config::read`] a file.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens to clients of Redis.
    pub listen: Vec<SocketAddr>,
    /// Where it speaks HTTP: JSON, metrics and a page for operators.
    pub http: Vec<SocketAddr>,
    /// With these it speaks TLS at all of its addresses, and nothing else there.
    pub tls: Option<TlsFiles>,
    /// A unix socket that it listens on, too.
    pub unix: Option<PathBuf>,
    /// Whether it may listen on other addresses than loopback without a password.
    pub open: bool,
    /// Threads that answer; by default one for each core.
    pub threads: Option<usize>,
    /// The folder in which snapshots are kept.
    pub folder: PathBuf,
    /// What outlives the process.
    pub durability: Durability,
    /// Whether damaged parts of a journal are left out at the start. Otherwise it does not start with one.
    pub recover: bool,
    /// How often a snapshot is taken, if anything was asked meanwhile.
    pub save_every: Duration,
    /// Bytes that all filters together may take.
    pub memory: u64,
    /// The password that clients must give, who may do everything then: that of the user `default`.
    pub password: Option<String>,
    /// A file of users, with a password for each and what it may do.
    pub users_file: Option<PathBuf>,
    /// Whether `FLUSHALL` is done.
    pub allow_flush: bool,
    /// The seed of the hash; by default a random one.
    pub seed: Option<u64>,
    /// Connections at a time.
    pub max_clients: usize,
    /// Filters.
    pub max_filters: usize,
    pub(crate) templates: Vec<Template>,
    pub(crate) keys: KeySpaceOptions,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![DEFAULT_ADDRESS],
            http: vec![DEFAULT_HTTP_ADDRESS],
            tls: None,
            unix: None,
            open: false,
            threads: None,
            folder: default_folder(),
            durability: Durability::default(),
            recover: false,
            save_every: Duration::from_secs(60),
            memory: 1 << 30,
            password: None,
            users_file: None,
            allow_flush: false,
            seed: None,
            max_clients: 10_000,
            max_filters: 100_000,
            templates: Vec::new(),
            keys: KeySpaceOptions::default(),
        }
    }
}

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(crate) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

fn fault<T>(what: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError(what.into()))
}

/// Where snapshots are kept: in systemd's folder for the service, that of the user's programs, or here.
fn default_folder() -> PathBuf {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("STATE_DIRECTORY")
        .or_else(|| Some(variable("XDG_STATE_HOME")?.join("lately/serve")))
        .or_else(|| Some(variable("HOME")?.join(".local/state/lately/serve")))
        .unwrap_or_else(|| "lately-serve".into())
}

impl Config {
    /// Reads a TOML file. What it leaves out is as in [`Config::default`].
    ///
    /// # Errors
    /// What is wrong, with the file and the line or the filter.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(format!("{name}: {error}")))?;
        Self::parse(&text).map_err(|error| ConfigError(format!("{name}: {error}")))
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// What is wrong, with the line or the filter.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)
            .map_err(|error| ConfigError(error.to_string().trim_end().into()))?;
        file.config()
    }

    fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.listen.iter().chain(&self.http)
    }

    /// Who may come in: reads the file of users again, if there is one.
    ///
    /// # Errors
    /// What is wrong with the file; or that it lets everybody in who can reach this server from another machine.
    pub(crate) fn users(&self) -> Result<Users, ConfigError> {
        let password = self.password.as_deref();
        let users = match &self.users_file {
            Some(path) => Users::read(path, password)?,
            None => Users::of_password(password),
        };
        let strangers = self.addresses().find(|address| !address.ip().is_loopback());
        if let (Some(address), Some(_), false) = (strangers, users.anyone(), self.open) {
            let what = match self.users_file {
                None => "set a password (--password-file), name users (--users-file)",
                Some(_) => "give the user \"default\" a password",
            };
            return fault(format!(
                "{address} can be reached from other machines: {what}, or say --open to let everybody in"
            ));
        }
        Ok(users)
    }

    /// Checks what can be checked without opening or making anything: that it does not listen to strangers without a
    /// password, and that every filter it may make can be planned. Returns what these cost, a line for each.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<Vec<String>, ConfigError> {
        if self.listen.is_empty() && self.unix.is_none() && self.http.is_empty() {
            return fault("it listens nowhere: give listen, http or unix");
        }
        if let Some(files) = &self.tls {
            crate::net::check_tls(files)?;
        }
        let users = self.users()?;
        if self.password.as_deref() == Some("") {
            return fault("the password is empty");
        }
        if self.threads == Some(0)
            || self.max_clients == 0
            || self.memory == 0
            || self.save_every.is_zero()
        {
            return fault("threads, max_clients, memory and save_every must be more than 0");
        }
        let mut lines = Vec::new();
        for Template { pattern, options } in &self.templates {
            let planned = options.planned();
            let Planned { what, keys, memory, fpr } =
                planned.map_err(|error| ConfigError(format!("filter {pattern:?}: {error}")))?;
            let bytes = quantity::display_bytes(memory);
            if memory > self.memory {
                let limit = quantity::display_bytes(self.memory);
                return fault(format!("filter {pattern:?}: needs {bytes}, and memory is {limit}"));
            }
            let keys = quantity::display_count(keys);
            lines.push(format!(
                "filter {pattern:?}: {what}, {keys} keys, {bytes}, false positive rate {fpr:e}"
            ));
        }
        if self.users_file.is_some() {
            lines.extend(users.lines());
        }
        Ok(lines)
    }
}

/// A number, or a quantity as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(u64),
    Text(String),
}

impl Amount {
    fn read(
        self,
        what: &str,
        read: impl Fn(&str) -> Result<u64, quantity::QuantityError>,
    ) -> Result<u64, ConfigError> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Text(text) => {
                read(&text).map_err(|error| ConfigError(format!("{what}: {error}")))
            }
        }
    }
}

/// A length of time in milliseconds.
fn milliseconds(text: &str) -> Result<u64, quantity::QuantityError> {
    quantity::duration(text).map(|nanos| nanos.div_ceil(1_000_000))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<Vec<SocketAddr>>,
    http: Option<Vec<SocketAddr>>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    unix: Option<PathBuf>,
    open: Option<bool>,
    threads: Option<usize>,
    dir: Option<PathBuf>,
    durability: Option<Durability>,
    save_every: Option<String>,
    memory: Option<Amount>,
    password_file: Option<PathBuf>,
    users_file: Option<PathBuf>,
    allow_flush: Option<bool>,
    seed: Option<u64>,
    max_clients: Option<usize>,
    max_filters: Option<usize>,
    filter: Vec<FilterPart>,
    keyspace: KeySpacePart,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KeySpacePart {
    capacity: Option<Amount>,
    fpr: Option<f64>,
    ttls: Option<usize>,
    forever: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterPart {
    #[serde(rename = "match")]
    pattern: String,
    window: Option<String>,
    last: Option<Amount>,
    forever: Option<bool>,
    capacity: Option<Amount>,
    fpr: Option<f64>,
    renew: Option<String>,
    slack: Option<String>,
    memory: Option<Amount>,
    on_full: Option<String>,
    structure: Option<String>,
    set: Option<bool>,
    range: Option<String>,
    interval: Option<Amount>,
}

impl File {
    fn config(self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let default = KeySpaceOptions::default();
        // Whoever says where it listens has said all of it.
        config.http = match (self.http, &self.listen) {
            (Some(http), _) => http,
            (None, Some(_)) => Vec::new(),
            (None, None) => config.http,
        };
        config.listen = self.listen.unwrap_or(config.listen);
        config.tls = tls_files(self.tls_cert, self.tls_key, self.tls_ca)?;
        config.unix = self.unix;
        config.open = self.open.unwrap_or(config.open);
        config.threads = self.threads;
        config.folder = self.dir.unwrap_or(config.folder);
        config.durability = self.durability.unwrap_or(config.durability);
        if let Some(every) = self.save_every {
            let nanos = quantity::duration(&every)
                .map_err(|error| ConfigError(format!("save_every: {error}")))?;
            config.save_every = Duration::from_nanos(nanos);
        }
        if let Some(memory) = self.memory {
            config.memory = memory.read("memory", quantity::bytes)?;
        }
        config.password = self.password_file.as_deref().map(password).transpose()?;
        config.users_file = self.users_file;
        config.allow_flush = self.allow_flush.unwrap_or(config.allow_flush);
        config.seed = self.seed;
        config.max_clients = self.max_clients.unwrap_or(config.max_clients);
        config.max_filters = self.max_filters.unwrap_or(config.max_filters);
        config.templates =
            self.filter.into_iter().map(FilterPart::template).collect::<Result<_, _>>()?;
        let keys = self.keyspace;
        config.keys = KeySpaceOptions {
            capacity: keys
                .capacity
                .map_or(Ok(default.capacity), |n| n.read("keyspace.capacity", quantity::count))?,
            fpr: keys.fpr.unwrap_or(default.fpr),
            ttls: keys.ttls.unwrap_or(default.ttls),
            forever: keys.forever.unwrap_or(default.forever),
        };
        if !(config.keys.fpr > 0.0 && config.keys.fpr < 1.0)
            || config.keys.capacity == 0
            || config.keys.ttls > 1024
        {
            return fault(
                "keyspace: fpr is above 0 and below 1, capacity at least 1, ttls at most 1024",
            );
        }
        Ok(config)
    }
}

/// The files for TLS, if any was named; the first two belong together.
///
/// # Errors
/// The one that is missing.
pub fn tls_files(
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
) -> Result<Option<TlsFiles>, ConfigError> {
    match (cert, key, ca) {
        (None, None, None) => Ok(None),
        (Some(cert), Some(key), ca) => Ok(Some(TlsFiles { cert, key, ca })),
        (None, _, _) => fault("TLS takes a certificate: give tls_cert (--tls-cert) too"),
        (_, None, _) => {
            fault("TLS takes the certificate's private key: give tls_key (--tls-key) too")
        }
    }
}

/// Reads a password: the first line of a file.
///
/// # Errors
/// What the file system says, or that the line is empty.
pub fn password(path: &Path) -> Result<String, ConfigError> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError(format!("{name}: {error}")))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.into()),
        _ => fault(format!("{name}: the first line, which is the password, is empty")),
    }
}

/// How keys are spelt, and how long intervals are.
fn numbers(range: &str, interval: Option<Amount>) -> Result<Numbers, ConfigError> {
    let length = interval.map(|interval| match interval {
        Amount::Number(number) => number.to_string(),
        Amount::Text(text) => text,
    });
    let numbers = Numbers::of(range).and_then(|numbers| match length {
        Some(length) => numbers.with_interval(&length),
        None => Ok(numbers),
    });
    numbers.map_err(|what| {
        ConfigError(match what.strip_prefix("bad INTERVAL") {
            // With the length that was given.
            Some(rest) => format!("interval{rest}"),
            None => crate::command::in_members(&what).unwrap_or(&what).into(),
        })
    })
}

impl FilterPart {
    fn template(self) -> Result<Template, ConfigError> {
        let pattern = self.pattern.clone();
        let options =
            self.options().map_err(|error| ConfigError(format!("filter {pattern:?}: {error}")))?;
        crate::command::check_options(&options).map_err(|error| {
            let said = crate::command::in_members(&error);
            let said = said.unwrap_or(error.trim_start_matches("ERR "));
            ConfigError(format!("filter {pattern:?}: {said}"))
        })?;
        Ok(Template { pattern, options })
    }

    fn options(self) -> Result<Options, ConfigError> {
        let mut options = Options { capacity: 100_000, fpr: 1e-6, ..Options::default() };
        if let Some(range) = &self.range {
            options = crate::command::defaults_of_ranges();
            options.family = Family::Intervals(numbers(range, self.interval)?);
            if self.set == Some(true) {
                return fault("a set has no intervals: give one of set and range");
            }
        } else if self.interval.is_some() {
            return fault("interval goes with range");
        }
        let forever = self.forever == Some(true);
        options.reach = match (self.window, self.last, forever) {
            (Some(window), None, false) => match milliseconds(&window) {
                Ok(0) => return fault("window: must be more than 0"),
                Ok(ms) => Reach::Within(ms),
                Err(error) => return fault(format!("window: {error}")),
            },
            (None, Some(last), false) => Reach::Last(last.read("last", quantity::count)?),
            (None, None, true) => Reach::Forever,
            _ => return fault("give one of window, last and forever"),
        };
        if let Some(capacity) = self.capacity {
            options.capacity = capacity.read("capacity", quantity::count)?;
        }
        options.fpr = self.fpr.unwrap_or(options.fpr);
        options.renewal = match self.renew.as_deref() {
            None | Some("always") => Renewal::Always,
            Some("fresh") => Renewal::OnFresh,
            Some(other) => return fault(format!("renew: {other:?} is neither always nor fresh")),
        };
        if let Some(slack) = self.slack {
            let share = slack.contains(['/', '%']);
            let read = |read: fn(&str) -> Result<u64, quantity::QuantityError>| {
                read(&slack).map(Slack::Exactly)
            };
            let read = match options.reach {
                _ if share => quantity::share(&slack).map(Slack::Share),
                Reach::Last(_) => read(quantity::count),
                Reach::Within(_) | Reach::Forever => read(milliseconds),
            };
            options.slack = read.map_err(|error| ConfigError(format!("slack: {error}")))?;
        }
        options.memory =
            self.memory.map(|memory| memory.read("memory", quantity::bytes)).transpose()?;
        options.when_full = match self.on_full.as_deref() {
            None | Some("grow") => WhenFull::Grow,
            Some("forget") => WhenFull::Forget,
            Some("refuse") => WhenFull::Refuse,
            Some(other) => {
                return fault(format!("on_full: {other:?} is none of grow, forget and refuse"));
            }
        };
        if let Some(structure) = self.structure {
            let structure =
                structure.parse().map_err(|error| ConfigError(format!("structure: {error}")))?;
            options.structure = Some(structure);
        }
        if self.set == Some(true) {
            options.family = Family::Set;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file() {
        let config = Config::parse(
            r#"
            listen = ["127.0.0.1:7000", "[::1]:7000"]
            memory = "2GiB"
            save_every = "5m"
            durability = "none"
            [keyspace]
            capacity = "10M"
            [[filter]]
            match = "crawl:*"
            window = "7d"
            capacity = 10_000_000
            fpr = 1e-6
            renew = "fresh"
            slack = "1/64"
            memory = "256MiB"
            on_full = "forget"
            "#,
        )
        .unwrap();
        assert_eq!((config.listen.len(), config.memory), (2, 2 << 30));
        assert_eq!((config.keys.capacity, config.save_every.as_secs()), (10_000_000, 300));
        assert_eq!(config.durability, Durability::None);
        for (word, durability) in
            [("everysec", Durability::EverySec), ("always", Durability::Always)]
        {
            let config = Config::parse(&format!("durability = {word:?}")).unwrap();
            assert!(config.durability == durability && durability.has_journal());
        }
        let [template] = &config.templates[..] else { panic!("one filter") };
        assert_eq!(template.options.reach, Reach::Within(7 * 86_400_000));
        assert_eq!(template.options.memory, Some(256 << 20));
        let lines = config.check().unwrap();
        assert!(lines[0].starts_with("filter \"crawl:*\": aged-table, "), "{lines:?}");
    }

    #[test]
    fn faults_say_where() {
        let cases = [
            ("lsten = []", "unknown field `lsten`"),
            ("memory = \"2 of them\"", "memory: "),
            ("[[filter]]\nmatch = \"a\"", "filter \"a\": give one of window, last and forever"),
            ("[[filter]]\nmatch = \"a\"\nwindow = \"1h\"\nlast = 5", "give one of window"),
            (
                "[[filter]]\nmatch = \"a\"\nwindow = \"10\"",
                "filter \"a\": window: \"10\": 10 of what?",
            ),
            (
                "[[filter]]\nmatch = \"a\"\nforever = true\nrenew = \"x\"",
                "neither always nor fresh",
            ),
            (
                "[[filter]]\nmatch = \"a\"\nforever = true\nstructure = \"scalable-bloom\"",
                "give memory",
            ),
            ("[keyspace]\nfpr = 2.0", "keyspace: fpr"),
            ("password_file = \"/no/such/file\"", "/no/such/file: "),
        ];
        for (text, expected) in cases {
            let error = Config::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = Config::parse("\n\nthreads = \"x\"").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
    }

    #[test]
    fn strangers_need_a_password() {
        let listen = vec!["0.0.0.0:7379".parse().unwrap()];
        let closed = Config { listen, ..Config::default() };
        assert!(closed.check().unwrap_err().to_string().contains("--password-file"));
        Config { open: true, ..closed.clone() }.check().unwrap();
        Config { password: Some("x".into()), ..closed.clone() }.check().unwrap();
        assert!(Config { password: Some(String::new()), ..closed }.check().is_err());
        let absurd = Config::parse(
            "[[filter]]\nmatch = \"a\"\nforever = true\ncapacity = 1_000_000_000_000",
        )
        .unwrap();
        assert!(absurd.check().unwrap_err().to_string().contains("filter \"a\": needs "));
        Config::default().check().unwrap();
    }
}
