//! `lately serve`: arguments only; `lately_serve` does the rest.

use crate::Failure;
use clap::{Args, ValueEnum};
use lately_serve::{Bound, Config, Durability, Reload, ServeError, Stop};
use lately_stream::quantity;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Seen lately?, for many processes: a server that speaks the Redis protocol and HTTP
///
/// Clients of Redis ask it as they ask Redis: `SET key value NX EX seconds` is answered OK once per key and time to
/// live, and the commands of RedisBloom (`BF.ADD`, `BF.EXISTS`, …) work with filters that may forget (`BF.RESERVE name
/// error capacity WINDOW 10m`). It keeps no values and is not a lock server: with a small, stated probability a fresh
/// key is taken for one that was seen. docs/serve.md has the commands.
///
/// Over HTTP it takes and gives JSON (/openapi.json says what), has metrics for Prometheus (/metrics), and a page that
/// shows its filters.
///
/// What it remembers is saved as a snapshot every --save-every and when it ends. A crash loses what came after the last one,
/// so that duplicates of it may pass; with --durability everysec or always every change is written to a journal, too.
#[derive(Args)]
#[command(after_help = "\
Try:
  lately serve                                      # on 127.0.0.1:7379; http://127.0.0.1:7380 shows what it does
  redis-cli -p 7379 set order:17 1 nx ex 600        # OK once in ten minutes, then nil
  redis-cli -p 7379 bf.reserve seen 1e-6 1000000 window 1h
  redis-cli -p 7379 lately.reserve hosts window 10m range ip interval /24    # then lately.range hosts 10.1.2.0 10.1.2.255
  lately serve --config serve.toml --check          # what the file amounts to")]
pub struct Arguments {
    /// A TOML file; arguments win over what it says
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Check the configuration, say what it amounts to, and end
    #[arg(long)]
    check: bool,

    /// An address to listen on, `IP:PORT`; may be given several times [default: 127.0.0.1:7379]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,

    /// An address for HTTP, `IP:PORT`; may be given several times [default: 127.0.0.1:7380, or none with --listen]
    #[arg(long, value_name = "ADDRESS")]
    http: Vec<SocketAddr>,

    /// A certificate in PEM, and those that vouch for it: all addresses then speak TLS, and nothing else; SIGHUP reads
    /// it again
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// Authorities in PEM, one of which must have signed the certificate of each client
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    /// A unix socket to listen on, too; only its owner may use it
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Listen on other addresses than loopback without a password
    #[arg(long)]
    open: bool,

    /// A file whose first line is the password that clients must give (AUTH)
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// A TOML file of users: a password for each, what it may do, and with which names; SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    users_file: Option<PathBuf>,

    /// The most memory that all filters together may take [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    memory: Option<u64>,

    /// What outlives the process [default: snapshot]
    #[arg(long, value_enum)]
    durability: Option<Kept>,

    /// Leave out damaged parts of a journal, instead of not starting with it
    #[arg(long)]
    recover: bool,

    /// The folder for snapshots and journals [default: $STATE_DIRECTORY, or lately/serve in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,

    /// How often a snapshot is taken, if anything was asked meanwhile [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    save_every: Option<u64>,

    /// Threads that answer [default: one for each core]
    #[arg(long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,

    /// The seed of the hash, for servers that are to answer alike [default: random, and kept with the snapshots]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// `--durability`.
#[derive(Clone, Copy, ValueEnum)]
enum Kept {
    /// Nothing
    None,
    /// All that was remembered at the last snapshot
    Snapshot,
    /// All that was answered; if the machine itself stops, all but the last second
    Everysec,
    /// All that was answered: replies wait for the disk
    Always,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = arguments.config()?;
    if arguments.check {
        return check(&config);
    }
    let folder = config.folder.clone();
    let scheme = scheme(&config);
    let server = Bound::new(config).map_err(failure)?;
    follow_signals(server.stop(), server.reload())?;
    for address in server.addresses() {
        eprintln!("lately: listening on {address}");
    }
    for address in server.http_addresses() {
        eprintln!("lately: listening on {scheme}://{address}");
    }
    if let Some(path) = &arguments.unix {
        eprintln!("lately: listening on {}", path.display());
    }
    match server.restored() {
        Some(found) => {
            let filters = crate::many(found.filters as u64, "filter");
            let changes = crate::many(found.changes, "change");
            let folder = folder.display();
            eprintln!("lately: {filters} and {changes} in the journal taken up from {folder}");
            if found.torn > 0 {
                let bytes = crate::many(found.torn, "byte");
                eprintln!(
                    "lately: {bytes} at the end of the journal were half written, and cut off"
                );
            }
            if found.damaged > 0 {
                let bytes = crate::many(found.damaged, "byte");
                eprintln!("lately: {bytes} of the journal are damaged, and left out (--recover)");
            }
        }
        None if server.is_kept() => {
            eprintln!("lately: what it remembers is kept in {}", folder.display());
        }
        None => eprintln!("lately: nothing outlives this process (--durability none)"),
    }
    server.run(&|said| eprintln!("lately: {said}")).map_err(failure)?;
    eprintln!("lately: ended");
    Ok(())
}

fn failure(error: ServeError) -> Failure {
    match error {
        ServeError::Config(error) => Failure::Usage(error.to_string()),
        other => Failure::Trouble(other.to_string()),
    }
}

impl Arguments {
    /// The file, and the arguments over it.
    fn config(&self) -> Result<Config, Failure> {
        let usage = |error: lately_serve::ConfigError| Failure::Usage(error.to_string());
        let mut config = match &self.config {
            Some(path) => Config::read(path).map_err(usage)?,
            None => Config::default(),
        };
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
            // Whoever says where it listens has said all of it.
            config.http.clear();
        }
        if !self.http.is_empty() {
            config.http.clone_from(&self.http);
        }
        let file = config.tls.take();
        let named = |given: &Option<PathBuf>, file: Option<PathBuf>| given.clone().or(file);
        config.tls = lately_serve::tls_files(
            named(&self.tls_cert, file.as_ref().map(|file| file.cert.clone())),
            named(&self.tls_key, file.as_ref().map(|file| file.key.clone())),
            named(&self.tls_ca, file.and_then(|file| file.ca)),
        )
        .map_err(usage)?;
        if let Some(path) = &self.password_file {
            config.password = Some(lately_serve::password(path).map_err(usage)?);
        }
        config.users_file = self.users_file.clone().or(config.users_file);
        config.unix = self.unix.clone().or(config.unix);
        config.open |= self.open;
        config.memory = self.memory.unwrap_or(config.memory);
        config.folder = self.dir.clone().unwrap_or(config.folder);
        config.save_every = self.save_every.map_or(config.save_every, Duration::from_nanos);
        config.threads = self.threads.or(config.threads);
        config.seed = self.seed.or(config.seed);
        config.durability = match self.durability {
            Some(Kept::None) => Durability::None,
            Some(Kept::Snapshot) => Durability::Snapshot,
            Some(Kept::Everysec) => Durability::EverySec,
            Some(Kept::Always) => Durability::Always,
            None => config.durability,
        };
        config.recover = self.recover;
        Ok(config)
    }
}

fn scheme(config: &Config) -> &'static str {
    if config.tls.is_some() { "https" } else { "http" }
}

/// Says what a configuration amounts to.
fn check(config: &Config) -> Result<(), Failure> {
    let lines = config.check().map_err(|error| Failure::Usage(error.to_string()))?;
    for address in &config.listen {
        println!("listens on {address}");
    }
    for address in &config.http {
        println!("listens on {}://{address}", scheme(config));
    }
    match &config.tls {
        Some(files) if files.ca.is_some() => {
            println!("speaks TLS with clients that have a certificate");
        }
        Some(_) => println!("speaks TLS"),
        None => {}
    }
    if let Some(path) = &config.unix {
        println!("listens on {}", path.display());
    }
    match (&config.users_file, &config.password) {
        (Some(path), None) => println!("clients come in as users of {}", path.display()),
        (Some(path), Some(_)) => {
            println!("clients come in with a password, or as users of {}", path.display());
        }
        (None, Some(_)) => println!("clients come in with a password"),
        (None, None) => println!("clients come in without a password"),
    }
    match config.durability {
        Durability::None => println!("nothing outlives the process"),
        Durability::Snapshot => println!("snapshots are kept in {}", config.folder.display()),
        Durability::EverySec | Durability::Always => {
            println!("snapshots and a journal are kept in {}", config.folder.display());
        }
    }
    println!("memory: at most {}", quantity::display_bytes(config.memory));
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Reads certificates and users again, and says how that went.
#[cfg(unix)]
fn read_again(reload: &Reload) {
    use lately_serve::Files;
    let done = reload.reload();
    if done.is_empty() {
        eprintln!("lately: SIGHUP: there are no certificates and no users to read again");
    }
    for (files, done) in done {
        let what = match files {
            Files::Certificates => "certificates",
            Files::Users => "users",
        };
        match done {
            Ok(()) => eprintln!("lately: the {what} were read again"),
            Err(error) => eprintln!("lately: {error}; the {what} stay as they were"),
        }
    }
}

/// The first SIGINT or SIGTERM ends the server in good order, the second at once. SIGHUP reads certificates and users
/// again.
#[cfg(unix)]
fn follow_signals(stop: Stop, reload: Reload) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let take = move || {
        let mut is_ending = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => read_again(&reload),
                signal if is_ending => signal_hook::low_level::exit(128 + signal),
                _ => {
                    is_ending = true;
                    stop.stop();
                }
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(take)?;
    Ok(())
}

/// There are no such signals here.
#[cfg(not(unix))]
fn follow_signals(_: Stop, _: Reload) -> Result<(), Failure> {
    Ok(())
}
