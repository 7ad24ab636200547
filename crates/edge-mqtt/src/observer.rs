//! One who looks on at a broker: subscribes to everything, and says nothing.

use crate::broker::{Broker, Profile};
use crate::clock::Clock;
use crate::link::{Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::topic::Sender;
use lately_edge::observer::Observer;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

const QUEUE: usize = 16;
const INFLIGHT: u16 = 16;
/// How often it is shown.
const SHOW: Duration = Duration::from_secs(1);

/// Runs until it is asked to stop; `watch` is shown it once a second. Its user at the broker must be allowed to read all
/// topics.
///
/// # Errors
/// [`RunError::Refused`].
pub async fn observe(
    broker: &Broker,
    clock: Clock,
    mut stop: Stop,
    mut watch: impl FnMut(&Observer, Status<'_>),
) -> Result<Observer, RunError> {
    let client = format!("lately-view-{:016x}", fastrand::u64(..));
    let profile = Profile { client: &client, will: None, durable: false, inflight: INFLIGHT };
    // It sends nothing, so as whom does not matter.
    let mut link = Link::open(broker, Sender::Requester, profile, QUEUE);
    link.subscribe_to_all();
    let mut role = Observer::default();
    let mut ticks = interval(SHOW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.asked() => break,
            _ = ticks.tick() => {
                role.tick(clock.now());
                watch(&role, link.status());
            }
            event = link.next(None) => match event {
                Event::Arrived(arrived) => {
                    if let Some(letter) = link.read(&arrived) {
                        role.see(clock.now(), &letter.message);
                    }
                    link.confirm(arrived);
                }
                Event::Refused(reason) => return Err(RunError::Refused(reason)),
                Event::Up | Event::Down | Event::Room => {}
            }
        }
    }
    link.close(PATIENCE).await;
    Ok(role)
}
