//! A requester at a broker.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::topic::{Address, Office, Sender};
use crate::traffic::Traffic;
use lately_edge::Millis;
use lately_edge::ids::{RequesterId, TaskId};
use lately_edge::message::{Message, Peer};
use lately_edge::requester::{Arrived, Requester, TaskState};
use lately_edge::task::Task;
use std::io;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

const QUEUE: usize = 4_096;
const INFLIGHT: u16 = 64;
/// How long after the end of its task a requester waits for readings that are on their way.
const LINGER: Millis = 10_000;

/// A requester to run.
#[derive(Clone, Debug)]
pub struct RequesterRun {
    /// Which broker.
    pub broker: Broker,
    /// What time it is.
    pub clock: Clock,
    /// Its name.
    pub id: RequesterId,
    /// What it wants.
    pub task: Task,
    /// It ends after this many readings.
    pub most: Option<u64>,
    /// Its task stays when it is asked to stop: hosts keep readings until it starts again under the same names, or the
    /// task is over.
    pub stays: bool,
}

/// Snapshot passed to observers.
#[derive(Debug)]
pub struct RequesterView<'a> {
    /// The role.
    pub role: &'a Requester,
    /// How its task stands.
    pub task: TaskState,
    /// Its connection.
    pub link: Status<'a>,
}

impl RequesterRun {
    /// Posts the task and passes arriving readings to `sink`, until there are enough, the task is over, or it is
    /// asked to stop; then the task is withdrawn, unless it was asked to stop and [stays](Self::stays). Readings are
    /// confirmed to hosts when `sink` returns, so it must make them durable.
    ///
    /// # Errors
    /// [`RunError`], also for a task that nobody would take, or that the coordinator does not take.
    pub async fn run(
        self,
        mut stop: Stop,
        mut sink: impl FnMut(&[Arrived]) -> io::Result<()>,
        mut watch: impl FnMut(&RequesterView<'_>),
    ) -> Result<(Requester, Traffic), RunError> {
        let Self { broker, clock, id, task, most, stays } = self;
        let client = format!("lately-requester-{id}");
        let profile = Profile { client: &client, will: None, durable: false, inflight: INFLIGHT };
        let mut link = Link::open(&broker, Sender::Requester, profile, QUEUE);
        link.subscribe(Peer::Requester(id));
        link.subscribe(Address::Lease(Office::Coordinator));
        let mut role = Requester::new(id);
        let (name, end) = (task.id, task.until.saturating_add(LINGER));
        let mut out = Vec::new();
        role.post(clock.now(), task, &mut out)
            .map_err(|error| RunError::Refused(error.to_string()))?;
        let mut ticks = interval(clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let withdraw = loop {
            tokio::select! {
                biased;
                () = stop.asked() => break !stays,
                _ = ticks.tick() => {
                    role.tick(clock.now(), &mut out);
                    let task = role.state(name).unwrap_or(TaskState::Waiting);
                    watch(&RequesterView { role: &role, task, link: link.status() });
                }
                event = link.next(None) => match event {
                    Event::Arrived(arrived) => {
                        match link.read(&arrived) {
                            Some(letter)
                                if [
                                    Address::Peer(Peer::Requester(id)),
                                    Address::Lease(Office::Coordinator),
                                ]
                                .contains(&letter.to) =>
                            {
                                role.handle(clock.now(), letter.message, &mut out);
                            }
                            _ => {}
                        }
                        // Hosts resend what was not confirmed to them, so the broker need not.
                        link.confirm(arrived);
                    }
                    Event::Refused(reason) => return Err(RunError::Refused(reason)),
                    Event::Up | Event::Down | Event::Room => {}
                }
            }
            let mut confirmations = Vec::new();
            let readings = role.take_readings(&mut confirmations);
            if !readings.is_empty() {
                sink(&readings)?;
            }
            out.append(&mut confirmations);
            out.drain(..).for_each(|outgoing| link.send(&outgoing));
            if let Some(TaskState::Refused(error)) = role.state(name) {
                return Err(RunError::Refused(format!(
                    "the coordinator refuses the task: {error}"
                )));
            }
            if clock.now() >= end || most.is_some_and(|most| role.counts().readings >= most) {
                break true;
            }
        };
        if withdraw {
            role.withdraw(name, &mut out);
        }
        out.drain(..).for_each(|outgoing| link.send(&outgoing));
        let traffic = link.close(PATIENCE).await;
        Ok((role, traffic))
    }
}

/// Asks the coordinator for all tasks, and ends some: what was there before. `None` when no coordinator answers in
/// time.
///
/// # Errors
/// [`RunError::Refused`].
pub async fn tasks(
    broker: &Broker,
    withdraw: &[TaskId],
    patience: Duration,
) -> Result<Option<Vec<(RequesterId, Task)>>, RunError> {
    let id = RequesterId(fastrand::u64(..));
    let client = format!("lately-requester-{id}");
    let profile = Profile { client: &client, will: None, durable: false, inflight: INFLIGHT };
    let mut link = Link::open(broker, Sender::Requester, profile, QUEUE);
    link.subscribe(Peer::Requester(id));
    let (mut role, mut out) = (Requester::new(id), Vec::new());
    role.list(&mut out);
    let ask = async {
        loop {
            out.drain(..).for_each(|outgoing| link.send(&outgoing));
            match link.next(None).await {
                Event::Arrived(arrived) => {
                    if let Some(letter) = link.read(&arrived) {
                        role.handle(0, letter.message, &mut out);
                    }
                    link.confirm(arrived);
                }
                Event::Refused(reason) => return Err(RunError::Refused(reason)),
                Event::Up | Event::Down | Event::Room => {}
            }
            if let Some(tasks) = role.take_list() {
                return Ok(tasks);
            }
        }
    };
    let tasks = match timeout(patience, ask).await {
        Ok(tasks) => Some(tasks?),
        Err(_) => None,
    };
    if tasks.is_some() {
        for &task in withdraw {
            link.send_to(Peer::Coordinator, &Message::Withdraw { task });
        }
    }
    link.close(PATIENCE).await;
    Ok(tasks)
}
