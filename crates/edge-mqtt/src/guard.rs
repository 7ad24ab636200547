//! A connection of its own, over which those that may act only one at a time find out who does.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Event, Link, Status};
use crate::run::{PATIENCE, RunError};
use crate::topic::{Address, Office, Sender, topic};
use lately_edge::Millis;
use lately_edge::lease::{Lease, Standing};
use lately_edge::message::Message;
use lately_edge::wire;
use std::time::{Duration, Instant};
use tokio::time::{Interval, MissedTickBehavior, interval};

const QUEUE: usize = 64;
const INFLIGHT: u16 = 16;
/// How often the lease is told the time.
const TICK: Duration = Duration::from_millis(200);

/// The lease of an office over a broker. Its client name is of this start alone: a second connection under the name of the
/// office would end the first one, and the first one the second.
pub(crate) struct Guard {
    link: Link,
    lease: Lease,
    office: Office,
    begun: Instant,
    wall: Millis,
    ticks: Interval,
}

impl Guard {
    /// Asks for the lease. `None` at a broker in memory, where one process has all roles.
    pub(crate) fn open(broker: &Broker, office: Office) -> Option<Self> {
        if broker.is_in_memory() {
            return None;
        }
        let lease = Lease::new(fastrand::u64(..));
        let by = match office {
            Office::Coordinator => Sender::Coordinator,
            Office::Process(_) => Sender::Process,
        };
        let mut will = Vec::new();
        wire::encode(&lease.farewell(), &mut will);
        let will = Some((topic(Address::Lease(office), by), will));
        let client = format!("lately-guard-{:016x}", lease.me());
        let profile = Profile { client: &client, will, durable: false, inflight: INFLIGHT };
        let mut link = Link::open(broker, by, profile, QUEUE);
        link.subscribe(Address::Lease(office));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (begun, wall) = (Instant::now(), Clock::system());
        Some(Self { link, lease, office, begun, wall, ticks })
    }

    /// A time that no clock that is set makes jump.
    fn now(&self) -> Millis {
        self.wall + self.begun.elapsed().as_millis() as Millis
    }

    /// Its connection, for observers.
    pub(crate) fn status(&self) -> Status<'_> {
        self.link.status()
    }

    /// Waits until it stands differently, or a moment. May be dropped while it waits.
    ///
    /// # Errors
    /// [`RunError::Refused`].
    pub(crate) async fn next(&mut self) -> Result<Standing, RunError> {
        let mut out = Vec::new();
        tokio::select! {
            biased;
            event = self.link.next(None) => match event {
                Event::Up => self.lease.connected(self.now(), &mut out),
                Event::Arrived(arrived) => {
                    if let Some(letter) = self.link.read(&arrived) {
                        self.lease.handle(self.now(), &letter.message, &mut out);
                    }
                    self.link.confirm(arrived);
                }
                Event::Refused(reason) => return Err(RunError::Refused(reason)),
                Event::Down | Event::Room => {}
            },
            _ = self.ticks.tick() => {
                // Without a connection, silence says nothing.
                if self.link.is_up() {
                    self.lease.tick(self.now(), &mut out);
                }
            }
        }
        out.iter().for_each(|message| self.say(message));
        Ok(self.lease.standing())
    }

    fn say(&mut self, message: &Message) {
        self.link.send_to(Address::Lease(self.office), message);
    }

    /// Ends, so that another one can act at once.
    pub(crate) async fn close(mut self) {
        let farewell = self.lease.farewell();
        if matches!(self.lease.standing(), Standing::Acts(_)) {
            self.say(&farewell);
        }
        self.link.close(PATIENCE).await;
    }
}

/// How one stands that may have no guard.
pub(crate) async fn next(guard: &mut Option<Guard>) -> Result<Standing, RunError> {
    match guard {
        Some(guard) => guard.next().await,
        None => std::future::pending().await,
    }
}
