//! The coordinator at a broker.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::guard::{self, Guard};
use crate::link::{Arrived, Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::store::Folder;
use crate::topic::{Address, Office, Sender};
use crate::traffic::Traffic;
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::lease::Standing;
use lately_edge::message::{Outgoing, Peer};
use std::io;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// Its name at the broker: there is one.
const CLIENT: &str = "lately-coordinator";
const STATE: &str = "coordinator";
/// Longest send queue. Whoever misses an answer asks again.
const QUEUE: usize = 1 << 16;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 1_024;
/// How often one that waits is shown.
const SHOW: Duration = Duration::from_secs(1);

/// A coordinator to run.
#[derive(Debug)]
pub struct CoordinatorRun {
    broker: Broker,
    clock: Clock,
    folder: Folder,
    config: CoordinatorConfig,
    role: Coordinator,
    /// Changes of the role that are saved.
    saved: u64,
}

/// Snapshot passed to observers.
#[derive(Debug)]
pub struct CoordinatorView<'a> {
    /// The role.
    pub role: &'a Coordinator,
    /// Its connection.
    pub link: Status<'a>,
    /// The coordinator that acts meanwhile, while this one waits.
    pub other: Option<u64>,
}

/// Why a coordinator acts no more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Asked,
    Yielded,
}

impl CoordinatorRun {
    /// A coordinator that resumes from the state in the folder, if there is one.
    ///
    /// # Errors
    /// What the file system says, or that the state is damaged.
    pub fn new(
        broker: Broker,
        clock: Clock,
        folder: Folder,
        config: CoordinatorConfig,
    ) -> io::Result<Self> {
        let role = match folder.read(STATE)? {
            None => {
                let mut role = Coordinator::new(config);
                role.begin_book(fastrand::u64(..));
                folder.replace(STATE, &role.save())?;
                role
            }
            Some(bytes) => Coordinator::restore(&bytes, config, clock.now()).map_err(|error| {
                let path = folder.file(STATE);
                let what = format!("{}: {error}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?,
        };
        let saved = role.changes();
        Ok(Self { broker, clock, folder, config, role, saved })
    }

    /// Runs until it is asked to stop. `watch` is shown it about once a second.
    ///
    /// While another coordinator acts at this broker, it waits and does nothing; when that one ends or falls silent, it
    /// takes over. One that acts and hears of another that began later yields, and waits.
    ///
    /// What changes processes, squares or tasks is on disk before anybody is told.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        mut self,
        mut stop: Stop,
        mut watch: impl FnMut(&CoordinatorView<'_>),
    ) -> Result<(Coordinator, Traffic), RunError> {
        let mut guard = Guard::open(&self.broker, Office::Coordinator);
        let mut traffic = Traffic::default();
        let mut end = End::Yielded;
        while end == End::Yielded && self.wait(&mut guard, &mut stop, &mut watch).await? {
            let more;
            (end, more) = self.act(&mut guard, &mut stop, &mut watch).await?;
            traffic.add(&more);
        }
        if let Some(guard) = guard {
            guard.close().await;
        }
        Ok((self.role, traffic))
    }

    /// Waits until it is this one's turn; `false` when it is asked to stop.
    async fn wait(
        &mut self,
        guard: &mut Option<Guard>,
        stop: &mut Stop,
        watch: &mut impl FnMut(&CoordinatorView<'_>),
    ) -> Result<bool, RunError> {
        let Some(guard) = guard else { return Ok(true) };
        let (mut waited, mut shown) = (false, Instant::now());
        loop {
            let standing = tokio::select! {
                biased;
                () = stop.asked() => return Ok(false),
                standing = guard.next() => standing?,
            };
            match standing {
                Standing::Acts(_) => break,
                Standing::Waits { holder } => {
                    if !waited || shown.elapsed() >= SHOW {
                        shown = Instant::now();
                        let other = Some(holder);
                        watch(&CoordinatorView { role: &self.role, link: guard.status(), other });
                    }
                    waited = true;
                }
                Standing::Asking => {
                    if guard.status().trouble.is_some() && shown.elapsed() >= SHOW {
                        shown = Instant::now();
                        watch(&CoordinatorView {
                            role: &self.role,
                            link: guard.status(),
                            other: None,
                        });
                    }
                }
            }
        }
        if waited {
            // Another one acted meanwhile: what was known before is not true any more, and is learnt again.
            self.role = Coordinator::new(self.config);
            self.role.begin_book(fastrand::u64(..));
            self.folder.replace(STATE, &self.role.save())?;
            self.saved = self.role.changes();
        }
        Ok(true)
    }

    /// Acts until it is asked to stop, or yields.
    async fn act(
        &mut self,
        guard: &mut Option<Guard>,
        stop: &mut Stop,
        watch: &mut impl FnMut(&CoordinatorView<'_>),
    ) -> Result<(End, Traffic), RunError> {
        let profile = Profile { client: CLIENT, will: None, durable: true, inflight: INFLIGHT };
        let mut link = Link::open(&self.broker, Sender::Coordinator, profile, QUEUE);
        link.subscribe(Peer::Coordinator);
        let mut ticks = interval(self.clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            let mut out = Vec::new();
            tokio::select! {
                biased;
                () = stop.asked() => break End::Asked,
                standing = guard::next(guard) => match standing? {
                    Standing::Acts(_) => {}
                    Standing::Asking | Standing::Waits { .. } => break End::Yielded,
                },
                _ = ticks.tick() => {
                    self.role.tick(self.clock.now(), &mut out);
                    self.commit(&mut link, Vec::new(), &out)?;
                    let link = link.status();
                    watch(&CoordinatorView { role: &self.role, link, other: None });
                }
                event = link.next(None) => match event {
                    Event::Arrived(first) => self.batch(&mut link, first)?,
                    Event::Refused(reason) => return Err(RunError::Refused(reason)),
                    Event::Up => self.up(&link),
                    Event::Down | Event::Room => {}
                }
            }
        };
        Ok((end, link.close(PATIENCE).await))
    }

    /// A broker that came back may have lost messages in flight.
    fn up(&mut self, link: &Link) {
        if link.traffic.connections > 1 {
            self.role.say_again(self.clock.now());
        }
    }

    /// Takes all that has arrived, and saves once.
    fn batch(&mut self, link: &mut Link, first: Arrived) -> Result<(), RunError> {
        let (mut out, mut done) = (Vec::new(), Vec::new());
        let mut next = Some(Event::Arrived(first));
        while let Some(event) = next {
            match event {
                Event::Arrived(arrived) => {
                    match link.read(&arrived) {
                        Some(letter) if letter.to == Address::Peer(Peer::Coordinator) => {
                            self.role.handle(self.clock.now(), letter.message, &mut out);
                        }
                        _ => {}
                    }
                    done.push(arrived);
                }
                // They come again, and are to be confirmed then.
                Event::Down => done.clear(),
                Event::Up => self.up(link),
                Event::Room => {}
                Event::Refused(reason) => return Err(RunError::Refused(reason)),
            }
            next = link.next_arrived();
        }
        Ok(self.commit(link, done, &out)?)
    }

    fn commit(&mut self, link: &mut Link, done: Vec<Arrived>, out: &[Outgoing]) -> io::Result<()> {
        if self.role.changes() != self.saved {
            self.folder.replace(STATE, &self.role.save())?;
            self.saved = self.role.changes();
        }
        done.into_iter().for_each(|arrived| link.confirm(arrived));
        out.iter().for_each(|outgoing| link.send(outgoing));
        Ok(())
    }
}
