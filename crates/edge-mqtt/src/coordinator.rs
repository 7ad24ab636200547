//! The coordinator at a broker.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Arrived, Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::store::Folder;
use crate::topic::{Address, Sender};
use crate::traffic::Traffic;
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::message::{Outgoing, Peer};
use std::io;
use tokio::time::{MissedTickBehavior, interval};

/// Its name at the broker: there is one.
const CLIENT: &str = "lately-coordinator";
const STATE: &str = "coordinator";
/// Longest send queue. Whoever misses an answer asks again.
const QUEUE: usize = 1 << 16;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 1_024;

/// A coordinator to run.
#[derive(Debug)]
pub struct CoordinatorRun {
    broker: Broker,
    clock: Clock,
    folder: Folder,
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
            None => Coordinator::new(config),
            Some(bytes) => Coordinator::restore(&bytes, config, clock.now()).map_err(|error| {
                let path = folder.file(STATE);
                let what = format!("{}: {error}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?,
        };
        let saved = role.changes();
        Ok(Self { broker, clock, folder, role, saved })
    }

    /// Runs until it is asked to stop. `watch` is shown it about once a second.
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
        let profile = Profile { client: CLIENT, will: None, durable: true, inflight: INFLIGHT };
        let mut link = Link::open(&self.broker, Sender::Coordinator, profile, QUEUE);
        link.subscribe(Peer::Coordinator);
        let mut ticks = interval(self.clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut out = Vec::new();
            tokio::select! {
                biased;
                () = stop.asked() => break,
                _ = ticks.tick() => {
                    self.role.tick(self.clock.now(), &mut out);
                    self.commit(&mut link, Vec::new(), &out)?;
                    watch(&CoordinatorView { role: &self.role, link: link.status() });
                }
                event = link.next(None) => match event {
                    Event::Arrived(first) => self.batch(&mut link, first)?,
                    Event::Refused(reason) => return Err(RunError::Refused(reason)),
                    Event::Up => self.up(&link),
                    Event::Down | Event::Room => {}
                }
            }
        }
        let traffic = link.close(PATIENCE).await;
        Ok((self.role, traffic))
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
