//! A worker at a broker, and many of them in one process.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Event, Link};
use crate::run::{PATIENCE, RunError, Stop};
use crate::topic::{Address, Sender, topic};
use crate::traffic::Traffic;
use lately_edge::Millis;
use lately_edge::cell::{KmCell, SmallCell};
use lately_edge::element::{Element, Property};
use lately_edge::ids::WorkerId;
use lately_edge::message::{Message, Outgoing, Peer};
use lately_edge::wire;
use lately_edge::worker::{Outcome, Worker, WorkerCounts};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Messages that wait to be sent at most: of more, the oldest are dropped, as new readings are worth more.
const QUEUE: usize = 1_024;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 32;
/// Fixes that wait for the answer of a host at most: of more, the oldest are decided without.
const FIXES: usize = 256;
/// Between the first connects of two workers of one process.
const STAGGER: Duration = Duration::from_millis(3);

/// Where a worker is, and what it could read there.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// When it gets there, by the [`Clock`]. What is read live is of the moment at which it comes.
    pub time: Millis,
    /// Where.
    pub cell: SmallCell,
    /// What its sensors show.
    pub readings: Vec<(Property, f64)>,
}

/// Where fixes come from.
pub enum Source {
    /// A way that is known before.
    Route(Box<dyn Iterator<Item = Fix> + Send>),
    /// Somebody tells. The worker ends when nobody can tell any more.
    Live(mpsc::Receiver<Fix>),
}

/// What the workers of a process have done so far, for observers.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Workers that are connected.
    pub connected: AtomicU64,
    /// Why a connection was lost or could not be made, last.
    pub trouble: Mutex<Option<String>>,
    /// Workers that have begun and not ended.
    pub running: AtomicU64,
    /// Fixes so far.
    pub fixes: AtomicU64,
    /// Readings sent.
    pub sent: AtomicU64,
    /// Readings that others had sent.
    pub skipped: AtomicU64,
    /// Readings that nobody asked for.
    pub unasked: AtomicU64,
}

/// A worker to run.
#[derive(Clone, Debug)]
pub struct WorkerRun {
    /// Which broker.
    pub broker: Broker,
    /// What time it is.
    pub clock: Clock,
    /// Its name.
    pub id: WorkerId,
    /// What it can measure.
    pub properties: Vec<Property>,
    /// How long it waits for the host of a new cell before it decides without.
    pub settle: Millis,
}

/// What workers did.
#[derive(Clone, Debug, Default)]
pub struct FleetSummary {
    /// How many there were.
    pub workers: u64,
    /// Fixes.
    pub fixes: u64,
    /// Their counts together.
    pub counts: WorkerCounts,
    /// What went over their connections.
    pub traffic: Traffic,
}

impl FleetSummary {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.workers += other.workers;
        self.fixes += other.fixes;
        self.traffic.add(&other.traffic);
        self.counts.add(&other.counts);
    }
}

/// A worker that runs.
struct Running {
    clock: Clock,
    settle: Millis,
    role: Worker,
    link: Link,
    fleet: Arc<Fleet>,
    /// The cell whose host has answered.
    assigned: Option<KmCell>,
    /// Fixes that wait for the host's answer, and until when. It is where the first of them is.
    pending: VecDeque<(Fix, Millis)>,
    fixes: u64,
    out: Vec<Outgoing>,
}

impl WorkerRun {
    /// Runs until the source has ended and what it told is decided, or it is asked to stop.
    ///
    /// # Errors
    /// [`RunError::Refused`].
    pub async fn run(
        self,
        mut stop: Stop,
        mut source: Source,
        fleet: Arc<Fleet>,
    ) -> Result<FleetSummary, RunError> {
        let mut running = self.begin(fleet);
        let mut ticks = interval(running.clock.tick().max(Duration::from_millis(250)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = source.next_known();
        let mut ended = false;
        let result = loop {
            let due = next.as_ref().map(|fix| fix.time);
            let deadline = running.pending.front().map(|&(_, until)| until);
            tokio::select! {
                biased;
                () = stop.asked() => break Ok(()),
                event = running.link.next(None) => if let Err(error) = running.hear(event) {
                    break Err(error);
                },
                () = moment(&running.clock, deadline) => running.decide(),
                () = moment(&running.clock, due) => {
                    if let Some(fix) = std::mem::replace(&mut next, source.next_known()) {
                        running.arrive(fix);
                    }
                }
                fix = source.live(), if !ended => match fix {
                    Some(fix) => running.arrive(fix),
                    None => ended = true,
                },
                _ = ticks.tick() => running.role.tick(running.clock.now(), &mut running.out),
            }
            running.flush();
            ended |= next.is_none() && matches!(source, Source::Route(_));
            if ended && running.pending.is_empty() {
                break Ok(());
            }
        };
        let summary = running.end().await;
        result.map(|()| summary)
    }

    fn begin(self, fleet: Arc<Fleet>) -> Running {
        let Self { broker, clock, id, properties, settle } = self;
        let mut will = Vec::new();
        wire::encode(&Message::Leave { worker: id }, &mut will);
        let will = Some((topic(Address::Gone, Sender::Worker), will));
        let client = format!("lately-worker-{id}");
        let profile = Profile { client: &client, will, durable: false, inflight: INFLIGHT };
        let mut link = Link::open(&broker, Sender::Worker, profile, QUEUE);
        link.subscribe(Peer::Worker(id));
        // Beyond what it used before, whenever that was.
        let sequence = Clock::system();
        let role = Worker::new(id, &properties, sequence);
        fleet.running.fetch_add(1, Ordering::Relaxed);
        let (assigned, pending, fixes, out) = (None, VecDeque::new(), 0, Vec::new());
        Running { clock, settle, role, link, fleet, assigned, pending, fixes, out }
    }
}

impl Source {
    fn next_known(&mut self) -> Option<Fix> {
        match self {
            Self::Route(route) => route.next(),
            Self::Live(_) => None,
        }
    }

    /// What is told next; never where nobody tells.
    async fn live(&mut self) -> Option<Fix> {
        match self {
            Self::Live(fixes) => fixes.recv().await,
            Self::Route(_) => std::future::pending().await,
        }
    }
}

/// Waits until then; for ever when there is no moment.
async fn moment(clock: &Clock, moment: Option<Millis>) {
    match moment {
        Some(moment) => sleep(clock.until(moment)).await,
        None => std::future::pending().await,
    }
}

impl Running {
    fn hear(&mut self, event: Event) -> Result<(), RunError> {
        let now = self.clock.now();
        match event {
            Event::Up => {
                self.fleet.connected.fetch_add(1, Ordering::Relaxed);
                if self.link.traffic.connections > 1 {
                    self.role.reconnected(now, &mut self.out);
                }
            }
            Event::Down => {
                self.fleet.connected.fetch_sub(1, Ordering::Relaxed);
                self.tell_trouble();
            }
            Event::Arrived(arrived) => {
                if let Some(letter) = self.link.read(&arrived) {
                    let answered = match &letter.message {
                        Message::Assign { cell, .. } => Some(*cell),
                        _ => None,
                    };
                    self.role.handle(now, letter.message, &mut self.out);
                    if answered.is_some() && answered == self.role.place() {
                        self.assigned = answered;
                        self.decide();
                    }
                }
                self.link.confirm(arrived);
            }
            Event::Room => self.tell_trouble(),
            Event::Refused(reason) => return Err(RunError::Refused(reason)),
        }
        Ok(())
    }

    fn tell_trouble(&self) {
        if let (Some(why), Ok(mut trouble)) =
            (self.link.status().trouble, self.fleet.trouble.lock())
        {
            *trouble = Some(why.into());
        }
    }

    /// It is somewhere.
    fn arrive(&mut self, fix: Fix) {
        self.fixes += 1;
        self.fleet.fixes.fetch_add(1, Ordering::Relaxed);
        if self.pending.len() >= FIXES
            && let Some((first, _)) = self.pending.pop_front()
        {
            self.measure(first);
        }
        let until = self.clock.now().saturating_add(self.settle);
        self.pending.push_back((fix, until));
        self.decide();
    }

    /// Decides about fixes that waited, in order: a reading waits until the host of a new cell has answered, or has
    /// had its time. One from the next cell waits until those from this one are decided.
    fn decide(&mut self) {
        while let Some((cell, until)) =
            self.pending.front().map(|(fix, until)| (fix.cell.km(), *until))
        {
            let now = self.clock.now();
            if self.role.place() != Some(cell) {
                self.go(now, cell);
                if let Some((_, until)) = self.pending.front_mut() {
                    *until = now.saturating_add(self.settle);
                }
            } else if self.assigned == Some(cell) || now >= until {
                let Some((fix, _)) = self.pending.pop_front() else { return };
                self.measure(fix);
            } else {
                return;
            }
        }
    }

    fn go(&mut self, now: Millis, cell: KmCell) {
        // Before the host can hear of it, or its next reset might be missed.
        self.link.subscribe(Peer::Cell(cell));
        let before = self.role.place();
        before.into_iter().for_each(|before| self.link.unsubscribe(Peer::Cell(before)));
        self.assigned = None;
        self.role.go(now, cell, &mut self.out);
    }

    /// Sends what is wanted of a fix.
    fn measure(&mut self, fix: Fix) {
        let now = self.clock.now();
        for (property, value) in fix.readings {
            let element = Element { cell: fix.cell, property };
            let count = match self.role.sense(now, element, value, &mut self.out) {
                Outcome::NoTask => &self.fleet.unasked,
                Outcome::Skipped => &self.fleet.skipped,
                Outcome::Sent | Outcome::Refreshed => &self.fleet.sent,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&mut self) {
        self.out.drain(..).for_each(|outgoing| self.link.send(&outgoing));
    }

    async fn end(mut self) -> FleetSummary {
        std::mem::take(&mut self.pending).into_iter().for_each(|(fix, _)| self.measure(fix));
        self.role.leave(&mut self.out);
        self.flush();
        if self.link.is_up() {
            self.fleet.connected.fetch_sub(1, Ordering::Relaxed);
        }
        self.fleet.running.fetch_sub(1, Ordering::Relaxed);
        let counts = *self.role.counts();
        let traffic = self.link.close(PATIENCE).await;
        FleetSummary { workers: 1, fixes: self.fixes, counts, traffic }
    }
}

/// Runs many workers, each with a connection of its own, until all have ended.
///
/// # Errors
/// The first [`RunError`]; the others are stopped.
pub async fn run_fleet(
    workers: Vec<(WorkerRun, Source)>,
    stop: Stop,
    fleet: Arc<Fleet>,
) -> Result<FleetSummary, RunError> {
    let mut tasks = JoinSet::new();
    for (at, (worker, source)) in (0..).zip(workers) {
        let (stop, fleet) = (stop.clone(), Arc::clone(&fleet));
        tasks.spawn(async move {
            sleep(STAGGER * at).await;
            worker.run(stop, source, fleet).await
        });
    }
    let mut summary = FleetSummary::default();
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.map_err(|error| RunError::Refused(error.to_string()))?;
        summary.add(&ended?);
    }
    Ok(summary)
}
