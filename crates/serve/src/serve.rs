//! A whole server: bind, run, stop.

use crate::auth::Auth;
use crate::command::{Keeper, Nothing, Server, Stats};
use crate::config::{Config, ConfigError, Durability};
use crate::durable::{Folder, Journal, Recovered, Saved};
use crate::http::Board;
use crate::net::{Crew, Language, Listeners, Service, Tls, clock, deal, wall};
use crate::store::{Clock, Store};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Why a server does not start, or ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration is wrong.
    Config(ConfigError),
    /// It failed at run time: an address that is taken, a snapshot that is damaged, a disk that is full.
    Trouble(String),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Trouble(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ServeError {}

/// Ends a server in good order: clients get the replies to what they have asked, and a snapshot is taken.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Tells the server to end. It takes at most some seconds and the time of a snapshot.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// What a server took up from an earlier run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Filters in the last snapshot.
    pub filters: usize,
    /// Changes after it, from the journal.
    pub changes: u64,
    /// Bytes at the end of the journal that a crash had left half written: no reply had left for them.
    pub torn: u64,
    /// Bytes of the journal that were left out because they are damaged ([`Config::recover`]).
    pub damaged: u64,
}

/// Makes a server read files again.
#[derive(Clone, Debug)]
pub struct Reload {
    service: Arc<Service>,
    config: Config,
}

/// What a server can read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Certificates: clients that come from now on get what they say.
    Certificates,
    /// Users: clients that are connected become what they say at their next command.
    Users,
}

impl Reload {
    /// Reads again what the server has of files, and says of each how that went: where something is wrong, that file is named, and
    /// what is in use stays in use.
    pub fn reload(&self) -> Vec<(Files, Result<(), ConfigError>)> {
        let mut done = Vec::new();
        if let Some(tls) = &self.service.tls {
            done.push((Files::Certificates, tls.reload()));
        }
        if self.config.users_file.is_some() {
            let users = self.config.users();
            let replaced = users.map(|users| self.service.server.auth.replace(users));
            done.push((Files::Users, replaced));
        }
        done
    }
}

/// A server that has its sockets and its memory, and answers nobody yet.
///
/// # Example
/// ```
/// use lately_serve::{Bound, Config, Durability};
/// use std::io::{Read, Write};
/// let mut config = Config::default();
/// config.listen = vec!["127.0.0.1:0".parse()?];
/// config.http.clear();
/// config.durability = Durability::None;
/// let server = Bound::new(config)?;
/// let (address, stop) = (server.addresses()[0], server.stop());
/// let running = std::thread::spawn(move || server.run(&|said| eprintln!("{said}")));
///
/// let mut client = std::net::TcpStream::connect(address)?;
/// client.write_all(b"SET order:17 1 NX EX 600\r\nSET order:17 1 NX EX 600\r\nQUIT\r\n")?;
/// let mut replies = String::new();
/// client.read_to_string(&mut replies)?;
/// assert_eq!(replies, "+OK\r\n$-1\r\n+OK\r\n");
///
/// stop.stop();
/// running.join().expect("no panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Bound {
    config: Config,
    listeners: Listeners,
    service: Arc<Service>,
    folder: Option<Arc<Folder>>,
    restored: Option<Restored>,
    stop: Stop,
}

impl Bound {
    /// Checks the configuration, opens the sockets, and takes up the last snapshot.
    ///
    /// # Errors
    /// [`ServeError`], before anybody was answered.
    pub fn new(config: Config) -> Result<Self, ServeError> {
        config.check().map_err(ServeError::Config)?;
        let users = config.users().map_err(ServeError::Config)?;
        let tls = config.tls.clone().map(Tls::load).transpose().map_err(ServeError::Config)?;
        let listeners = Listeners::bind(&config.listen, &config.http, config.unix.as_deref())
            .map_err(ServeError::Trouble)?;
        let trouble = ServeError::Trouble;
        let (folder, saved, journaled) = match config.durability {
            Durability::None => (None, None, None),
            _ => {
                let folder = Folder::open(&config.folder, wall()).map_err(trouble)?;
                let saved = folder.look().map_err(|fault| trouble(fault.to_string()))?;
                let journaled = folder.seed_of_journals(saved.as_ref()).map_err(trouble)?;
                (Some(Arc::new(folder)), saved, journaled)
            }
        };
        let seed = seed(&config, saved.as_ref().map(|saved| saved.seed).or(journaled))?;
        let store = Store::new(
            seed,
            config.memory,
            config.max_filters,
            config.templates.clone(),
            config.keys,
        );
        let mut moment = saved.as_ref().map_or(0, |saved| saved.moment);
        let mut recovered = Recovered::default();
        if let Some(folder) = &folder {
            let load = || {
                if let Some(saved) = &saved {
                    folder.restore(saved, &store).map_err(|fault| fault.to_string())?;
                }
                let (recovered, newest) = folder.replay(saved.as_ref(), config.recover, &store)?;
                Ok((recovered, moment.max(newest)))
            };
            (recovered, moment) = store.load(load).map_err(trouble)?;
            if config.durability.has_journal() {
                let is_always = config.durability == Durability::Always;
                folder.begin_journal(&store.changes, seed, is_always).map_err(trouble)?;
            }
        }
        let is_first = saved.is_none() && journaled.is_none();
        let restored = (!is_first).then(|| Restored {
            filters: saved.as_ref().map_or(0, Saved::len),
            changes: recovered.changes,
            torn: recovered.torn,
            damaged: recovered.damaged,
        });
        let keeper: Arc<dyn Keeper> = match &folder {
            Some(folder) => Arc::clone(folder) as Arc<dyn Keeper>,
            None => Arc::new(Nothing { since: wall() }),
        };
        let server = Server {
            store,
            clock: Clock::new(wall(), moment, 0),
            auth: Auth::new(users),
            allow_flush: config.allow_flush,
            stats: Stats::begun(wall()),
            keeper,
        };
        let stop = Stop(Arc::new(watch::Sender::new(false)));
        let is_local = !config.open;
        let server = Arc::new(server);
        let service = Service { server, tls, board: Board::default(), is_local };
        Ok(Self { config, listeners, service: Arc::new(service), folder, restored, stop })
    }

    /// Where it listens to clients of Redis, with the ports that the system chose.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses(Language::Resp)
    }

    /// Where it speaks HTTP, with the ports that the system chose.
    pub fn http_addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses(Language::Http)
    }

    /// What makes it read its certificates and its users again.
    pub fn reload(&self) -> Reload {
        Reload { service: Arc::clone(&self.service), config: self.config.clone() }
    }

    /// What was taken up from an earlier run; `None` where there was none.
    pub fn restored(&self) -> Option<Restored> {
        self.restored
    }

    /// Does what it remembers outlive it?
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Answers until it is told to stop; then takes a snapshot.
    ///
    /// What goes wrong meanwhile and does not end it, such as a snapshot that cannot be written, is said to `log`.
    ///
    /// # Errors
    /// [`ServeError::Trouble`]: threads could not be started, or the last snapshot could not be written.
    pub fn run(self, log: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
        let Self { config, listeners, service, folder, stop, .. } = self;
        let server = Arc::clone(&service.server);
        let trouble = |error: std::io::Error| ServeError::Trouble(error.to_string());
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = config.threads.unwrap_or_else(cores);
        let signal = stop.0.subscribe();
        // Who shows filters measures how full they are, and their clients wait meanwhile.
        let shows = !listeners.addresses(Language::Http).is_empty();
        let crew = Crew::start(threads, &service, &signal).map_err(trouble)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(trouble)?;
        let dealt = std::thread::scope(|scope| {
            if let Some(folder) = &folder {
                let (folder, server) = (Arc::clone(folder), Arc::clone(&server));
                scope
                    .spawn(move || folder.keep(&server, config.save_every, || clock(&server), log));
            }
            if let Some(folder) = &folder
                && let Some(journal) = folder.journal()
            {
                // A snapshot can always be asked for.
                scope.spawn(|| journal.keep(log, &|| drop(folder.save_soon())));
            }
            let dealt = runtime.block_on(async {
                let tidying = tidy(&service, shows, &signal, log);
                let dealing = deal(&listeners, &crew, &server, config.max_clients, &signal);
                tokio::join!(tidying, dealing).1
            });
            stop.stop();
            drop(listeners);
            crew.join();
            folder.iter().for_each(|folder| folder.end());
            folder.iter().filter_map(|folder| folder.journal()).for_each(Journal::end);
            dealt
        });
        dealt.map_err(trouble)?;
        match &folder {
            Some(_) => {
                let saved = server.keeper.save(&server.store, clock(&server));
                saved.map_err(|error| ServeError::Trouble(error.trim_start_matches("ERR ").into()))
            }
            None => Ok(()),
        }
    }
}

/// Drops what has expired, and looks at what has been done if that is shown, every second, until told to stop.
async fn tidy(
    service: &Service,
    shows: bool,
    stop: &watch::Receiver<bool>,
    log: &(dyn Fn(&str) + Sync),
) {
    let (mut stop, server) = (stop.clone(), &service.server);
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            _ = seconds.tick() => {}
        }
        let now = clock(server);
        server.store.tidy(now);
        if shows {
            service.board.sample(server, now);
        }
        server.stats.take_notices().iter().for_each(|notice| log(notice));
    }
}

/// The seed that was kept, the one that was asked for, or a random one: with a seed that everybody knows, anybody
/// can find keys that the filters take for one another.
fn seed(config: &Config, kept: Option<u64>) -> Result<u64, ServeError> {
    match (config.seed, kept) {
        (Some(asked), Some(kept)) if asked != kept => Err(ServeError::Trouble(format!(
            "{}: what is kept there has the seed {kept}, and {asked} was asked for; leave it out, or name another folder",
            config.folder.display(),
        ))),
        (_, Some(kept)) => Ok(kept),
        (Some(asked), None) => Ok(asked),
        (None, None) => getrandom::u64().map_err(|error| {
            ServeError::Trouble(format!("no random numbers from the system: {error}"))
        }),
    }
}
