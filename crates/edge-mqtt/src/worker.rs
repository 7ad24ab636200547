//! A worker at a broker, and many of them in one process.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Event, Link};
use crate::run::{PATIENCE, RunError, Stop};
use crate::topic::{Address, Office, Sender, topic};
use crate::traffic::Traffic;
use lately_edge::Millis;
use lately_edge::cell::{KmCell, SmallCell, Square};
use lately_edge::element::{Element, Property};
use lately_edge::ids::WorkerId;
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::tally::{Tally, first_of};
use lately_edge::wire;
use lately_edge::worker::{Lack, Outcome, Worker, WorkerCounts};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout_at};

/// Messages that wait to be sent at most: of more, the oldest are dropped, as new readings are worth more.
const QUEUE: usize = 1_024;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 32;
/// Fixes that wait for the answer of a host at most: further ones wait in their source.
const FIXES: usize = 256;
/// While more messages than this wait to be sent, no more fixes of the past are taken: what was buffered can wait.
const PACED: usize = QUEUE / 2;
/// A fix older than this was buffered.
const BUFFERED: Millis = 60_000;
/// Between the first connects of two workers of one process.
const STAGGER: Duration = Duration::from_millis(3);

/// Where a worker is, and what it could read there.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// When it gets there, by the [`Clock`]; in a [`Source::Live`], when its readings were taken.
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
    /// What became of what they sent, as far as hosts have told.
    pub tally: Tally,
    /// Submissions that no host has said anything about: they wait at the broker, or are lost with it.
    pub unanswered: u64,
    /// Readings by property: all, and those that no task asked for although the host had answered.
    pub properties: BTreeMap<Property, (u64, u64)>,
    /// Workers that never had a connection.
    pub unconnected: u64,
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
        self.tally.add(&other.tally);
        self.unanswered += other.unanswered;
        self.unconnected += other.unconnected;
        for (&property, (all, unasked)) in &other.properties {
            let sum = self.properties.entry(property).or_default();
            *sum = (sum.0 + all, sum.1 + unasked);
        }
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
    /// The square whose resets it listens to.
    square: Option<Square>,
    /// Fixes that wait for the host's answer, and until when. It is where the first of them is.
    pending: VecDeque<(Fix, Millis)>,
    fixes: u64,
    /// Fixes carry the time of their readings.
    is_live: bool,
    /// A fix was taken that was buffered.
    is_buffered: bool,
    properties: BTreeMap<Property, (u64, u64)>,
    coordinator: Option<(u64, u64)>,
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
        let mut running = self.begin(fleet, matches!(source, Source::Live(_)));
        let mut ticks = interval(running.clock.tick().max(Duration::from_millis(250)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = source.next_known();
        let mut ended = false;
        let result = loop {
            let has_room = running.has_room();
            let room = (running.link.waiting() >= PACED).then_some(PACED / 2);
            let due = next.as_ref().map(|fix| fix.time).filter(|_| has_room);
            let deadline = running.pending.front().map(|&(_, until)| until);
            tokio::select! {
                biased;
                () = stop.asked() => break Ok(()),
                event = running.link.next(room) => if let Err(error) = running.hear(event) {
                    break Err(error);
                },
                () = moment(&running.clock, deadline) => running.decide(),
                () = moment(&running.clock, due) => {
                    if let Some(fix) = std::mem::replace(&mut next, source.next_known()) {
                        running.arrive(fix);
                    }
                }
                fix = source.live(), if !ended && has_room => match fix {
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

    fn begin(self, fleet: Arc<Fleet>, is_live: bool) -> Running {
        let Self { broker, clock, id, properties, settle } = self;
        let mut will = Vec::new();
        wire::encode(&Message::Leave { worker: id }, &mut will);
        let will = Some((topic(Address::Gone, Sender::Worker), will));
        let life = fastrand::u32(..);
        // Another worker of this id, or the connection of an earlier start, is not to be ended.
        let client = format!("lately-worker-{id}-{life:08x}");
        let profile = Profile { client: &client, will, durable: false, inflight: INFLIGHT };
        let mut link = Link::open(&broker, Sender::Worker, profile, QUEUE);
        link.subscribe(Peer::Worker(id));
        link.subscribe(Address::Lease(Office::Coordinator));
        let role = Worker::new(id, &properties, first_of(life));
        fleet.running.fetch_add(1, Ordering::Relaxed);
        Running {
            clock,
            settle,
            role,
            link,
            fleet,
            assigned: None,
            square: None,
            pending: VecDeque::new(),
            fixes: 0,
            is_live,
            is_buffered: false,
            properties: BTreeMap::new(),
            coordinator: None,
            out: Vec::new(),
        }
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
                    if let Message::Lease { holder, epoch, held: true } = letter.message {
                        if self.coordinator.replace((holder, epoch)) != Some((holder, epoch)) {
                            self.role.coordinator_acts(now, &mut self.out);
                        }
                        self.link.confirm(arrived);
                        return Ok(());
                    }
                    let answered = match &letter.message {
                        Message::Assign { cell, .. } => Some(*cell),
                        _ => None,
                    };
                    self.role.handle(now, letter.message, &mut self.out);
                    self.listen();
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
        self.is_buffered |= self.is_live && fix.time.saturating_add(BUFFERED) < self.clock.now();
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
        self.listen();
    }

    /// Subscribes to the resets of the square in which it has a task. The broker keeps the newest one, so none is missed
    /// although the host knows of the worker already.
    fn listen(&mut self) {
        let square = self.role.square_of_task();
        let before = std::mem::replace(&mut self.square, square);
        if before != square {
            before.into_iter().for_each(|before| self.link.unsubscribe(Peer::Square(before)));
            square.into_iter().for_each(|square| self.link.subscribe(Peer::Square(square)));
        }
    }

    /// Sends what is wanted of a fix.
    fn measure(&mut self, fix: Fix) {
        let now = self.clock.now();
        let time = if self.is_live { fix.time } else { now };
        for (property, value) in fix.readings {
            let element = Element { cell: fix.cell, property };
            let reading = Reading { element, value, time };
            let (all, unasked) = self.properties.entry(property).or_default();
            *all += 1;
            let count = match self.role.sense_buffered(now, reading, &mut self.out) {
                Outcome::NoTask => {
                    *unasked += u64::from(self.role.lack() == Lack::Task);
                    &self.fleet.unasked
                }
                Outcome::Skipped => &self.fleet.skipped,
                Outcome::Sent | Outcome::Refreshed => &self.fleet.sent,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Is there room for another fix?
    fn has_room(&self) -> bool {
        self.pending.len() < FIXES && !(self.is_buffered && self.link.waiting() >= PACED)
    }

    fn flush(&mut self) {
        self.out.drain(..).for_each(|outgoing| self.link.send(&outgoing));
    }

    async fn end(mut self) -> FleetSummary {
        std::mem::take(&mut self.pending).into_iter().for_each(|(fix, _)| self.measure(fix));
        self.role.leave(&mut self.out);
        self.flush();
        self.hear_answers().await;
        if self.link.is_up() {
            self.fleet.connected.fetch_sub(1, Ordering::Relaxed);
        }
        self.fleet.running.fetch_sub(1, Ordering::Relaxed);
        let (counts, tally) = (*self.role.counts(), self.role.tally());
        let unanswered = self.role.unanswered();
        let traffic = self.link.close(PATIENCE).await;
        let unconnected = u64::from(traffic.connections == 0);
        let (fixes, properties) = (self.fixes, self.properties);
        FleetSummary {
            workers: 1,
            fixes,
            counts,
            traffic,
            tally,
            unanswered,
            properties,
            unconnected,
        }
    }

    /// Waits for a while for hosts to say what became of what was sent.
    async fn hear_answers(&mut self) {
        let end = tokio::time::Instant::now() + PATIENCE;
        while self.link.is_up() && self.role.unanswered() > 0 {
            let Ok(event) = timeout_at(end, self.link.next(None)).await else { return };
            if self.hear(event).is_err() {
                return;
            }
            self.flush();
        }
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
