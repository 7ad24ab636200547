//! The messages of topics, through a group that the cluster keeps.
//!
//! Of each partition a prefix is dealt with, and its end is committed. Several processes of one group share the
//! partitions. One that is to give some away deals with what it has of them first, so that who gets them begins after that.

use super::assigned::{Assigned, Partition};
use super::options::{BYTES, Reader};
use super::trouble::{Watch, no_topic};
use crate::address::Address;
use crate::error::ConnectError;
use crate::queue::{Arrivals, Inbox};
use crate::settings::Settings;
use lately_stream::read::message::Message;
use lately_stream::record::Envelope;
use rdkafka::client::{Client, ClientContext};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

/// How long a cluster that never answered is tried.
const FIRST: Duration = Duration::from_secs(10);

/// How long one question about topics may take.
const QUESTION: Duration = Duration::from_millis(500);

/// Things that may go wrong between two questions.
const TROUBLES: usize = 100;

/// How long an answer about partitions may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a message is waited for before it is looked what is dealt with.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long to wait for room before pausing partitions: pausing makes the client drop what it has fetched ahead, and
/// getting more takes most of a second.
const PATIENT: Duration = Duration::from_secs(1);

/// How often to check for room.
const ROOM: Duration = Duration::from_millis(2);

/// Between two commits.
const COMMITS: Duration = Duration::from_millis(200);

/// How long partitions are kept that another process is to have, until what is there of them is dealt with.
const HANDOVER: Duration = Duration::from_secs(10);

/// How long partitions may be in the course of being shared out. Nothing can be committed meanwhile.
const SHARING: Duration = Duration::from_secs(15);

/// How soon it is tried again to commit then, if nothing is heard of the group.
const RETRY: Duration = Duration::from_secs(3);

/// How long a connection may take to end.
const FAREWELL: Duration = Duration::from_secs(3);

/// A thread with a consumer. It ends when nobody can acknowledge anything any more; who drops this waits a while for that.
pub(super) struct Link {
    // Whoever drops it last waits; the lock only lets threads share it.
    ended: Mutex<Receiver<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(SHARING + FAREWELL);
    }
}

/// Reads the topics that an address names.
pub(super) fn open(address: &Address, settings: &Settings) -> Result<Inbox<Link>, ConnectError> {
    let reader = Reader::new(address, settings)?;
    let config = reader.config(address, settings)?;
    let failed = |why: &str| ConnectError::Broker(format!("{address}: {why}"));
    Inbox::open(|arrivals, told| {
        let watch = Watch::new(address.to_string(), settings.tell.clone());
        let (only_new, group) = (reader.only_new, Mutex::new(Group::new(told)));
        let member = Member { watch, only_new, group };
        let consumer: BaseConsumer<Member> =
            config.create_with_context(member).map_err(|error| failed(&error.to_string()))?;
        // What goes wrong is told to the member, one thing at a time.
        let hear = || (0..TROUBLES).for_each(|_| drop(consumer.poll(Duration::ZERO)));
        for topic in &reader.topics {
            find_topic(consumer.client(), &consumer.context().watch, topic, hear)
                .map_err(|why| failed(&why))?;
        }
        let topics: Vec<_> = reader.topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics).map_err(|error| failed(&error.to_string()))?;
        let (tell_end, ended) = mpsc::channel();
        let run = move || {
            if let Err(why) = read(&consumer, reader.inflight, &arrivals) {
                arrivals.fail(&why);
            }
            drop(consumer);
            let _ = tell_end.send(());
        };
        let thread = thread::Builder::new().name("kafka".into()).spawn(run);
        thread.map_err(|error| failed(&error.to_string()))?;
        Ok(Link { ended: Mutex::new(ended) })
    })
}

/// Waits until the cluster says that it has the topic. `hear` lets the client tell what it has to tell.
pub(super) fn find_topic<C: ClientContext>(
    client: &Client<C>,
    watch: &Watch,
    topic: &str,
    hear: impl Fn(),
) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let found = client.fetch_metadata(Some(topic), QUESTION);
        let code = match &found {
            Ok(metadata) => {
                let error = metadata.topics().first().and_then(|topic| topic.error());
                error.map(RDKafkaErrorCode::from)
            }
            Err(error) => Some(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        };
        match code {
            None => return Ok(()),
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                return Err(no_topic(topic));
            }
            Some(code) if found.is_ok() => {
                watch.hear(code, "");
                thread::sleep(QUESTION / 5);
            }
            Some(_) => {}
        }
        hear();
        if let Some(why) = watch.lasting() {
            return Err(why);
        }
        if begun.elapsed() >= FIRST {
            let why = watch.reason().or(code.map(|code| code.to_string()));
            return Err(format!("it cannot be reached: {}", why.unwrap_or_default()));
        }
    }
}

/// We as a member of a group.
struct Member {
    watch: Watch,
    /// A partition is read from its end on where nothing is committed.
    only_new: bool,
    group: Mutex<Group>,
}

struct Group {
    /// What is dealt with,
    told: UnboundedReceiver<u64>,
    /// and nobody will tell any more of.
    is_over: bool,
    assigned: Assigned,
    /// Other partitions are ours.
    has_changed: bool,
    /// When it was last refused to commit, as partitions were being shared out. Who tries often meets the moment at which
    /// that is over, is taken for one that missed it, and loses all partitions.
    refused: Option<Instant>,
}

impl Group {
    fn new(told: UnboundedReceiver<u64>) -> Self {
        let assigned = Assigned::default();
        Self { told, is_over: false, assigned, has_changed: false, refused: None }
    }

    /// Takes note of what is dealt with by now.
    fn listen(&mut self) {
        loop {
            match self.told.try_recv() {
                Ok(token) => self.assigned.acknowledge(token),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// Is there hope that what is committed is taken?
    fn may_commit(&self) -> bool {
        self.refused.is_none_or(|refused| refused.elapsed() >= RETRY)
    }

    /// What can be committed of our partitions; `None` if there is nothing.
    fn to_commit(&self) -> Option<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        for ((topic, number), offset) in self.assigned.to_commit() {
            list.add_partition_offset(topic, *number, Offset::Offset(offset)).ok()?;
        }
        (list.count() > 0).then_some(list)
    }

    /// These offsets are committed.
    fn committed(&mut self, list: &TopicPartitionList) {
        for one in list.elements() {
            if let (Ok(()), Offset::Offset(offset)) = (one.error(), one.offset()) {
                self.assigned.committed(&(one.topic().into(), one.partition()), offset);
            }
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    list.elements().iter().map(|one| (one.topic().into(), one.partition())).collect()
}

impl Member {
    fn group(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits what is dealt with of our partitions, and waits for that: of commits in the background the client does not
    /// tell what became of them.
    fn commit(&self, consumer: &BaseConsumer<Self>) -> KafkaResult<()> {
        let list = self.group().to_commit();
        if let Some(list) = list {
            let committed = consumer.commit(&list, CommitMode::Sync);
            let mut group = self.group();
            group.refused = committed.as_ref().is_err_and(is_being_shared).then(Instant::now);
            committed?;
            group.committed(&list);
            drop(group);
            self.watch.works();
        }
        Ok(())
    }

    /// The same, before partitions are somebody else's: tries as long as this, while they are being shared out. `pause` passes
    /// the time.
    fn commit_at_last(&self, consumer: &BaseConsumer<Self>, most: Duration, pause: impl Fn()) {
        let begun = Instant::now();
        loop {
            let is_last = begun.elapsed() >= most;
            if is_last || self.group().may_commit() {
                let Err(error) = self.commit(consumer) else { return };
                if is_last || !is_being_shared(&error) {
                    return self.watch.say(&format!(
                        "it could not be committed how far was read ({error}): some messages are delivered again"
                    ));
                }
            }
            pause();
        }
    }

    /// Commits the ends of partitions of which nothing is committed, so that nothing that comes from now on is missed.
    fn begin_at_ends(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let known = consumer.committed_offsets(list.clone(), ANSWER);
        let mut ends = TopicPartitionList::new();
        let found = known.and_then(|known| {
            for one in known.elements().iter().filter(|one| one.offset() == Offset::Invalid) {
                let (_, end) = consumer.fetch_watermarks(one.topic(), one.partition(), ANSWER)?;
                ends.add_partition_offset(one.topic(), one.partition(), Offset::Offset(end))?;
            }
            if ends.count() > 0 { consumer.commit(&ends, CommitMode::Sync) } else { Ok(()) }
        });
        if let Err(error) = found {
            self.watch.say(&format!(
                "it could not be found out where the topic ends ({error}): what it has is read from the beginning"
            ));
        }
    }
}

/// Do the members of the group still share out the partitions?
fn is_being_shared(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{IllegalGeneration, RebalanceInProgress};
    matches!(error.rdkafka_error_code(), Some(RebalanceInProgress | IllegalGeneration))
}

impl ClientContext for Member {
    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }

    fn stats_raw(&self, _: &[u8]) {}
}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance
            && self.only_new
        {
            self.begin_at_ends(consumer, list);
        }
        let Rebalance::Revoke(list) = rebalance else { return };
        let leaving = partitions(list);
        // Of partitions that somebody else has already, nothing can be committed.
        if !consumer.assignment_lost() {
            // They are shared out.
            self.group().refused = None;
            let begun = Instant::now();
            loop {
                let mut group = self.group();
                group.listen();
                let is_done = group.is_over || !group.assigned.awaits(&leaving);
                if is_done || begun.elapsed() >= HANDOVER {
                    break;
                }
                drop(group);
                thread::sleep(Duration::from_millis(5));
            }
            self.commit_at_last(consumer, FAREWELL, || thread::sleep(PATIENCE));
        } else if self.group().assigned.uncommitted() > 0 {
            self.watch.say(
                "others have our partitions, as the group did not hear from us in time: some messages are delivered again",
            );
        }
        let mut group = self.group();
        leaving.iter().for_each(|partition| group.assigned.take_away(partition));
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            let mut group = self.group();
            partitions(list).iter().for_each(|partition| group.assigned.give(partition));
            (group.has_changed, group.refused) = (true, None);
        }
    }
}

/// Reads until nobody acknowledges any more.
fn read(
    consumer: &BaseConsumer<Member>,
    inflight: usize,
    arrivals: &Arrivals,
) -> Result<(), String> {
    let member = consumer.context();
    let (mut is_paused, mut topic, mut committed) = (false, Arc::from(""), Instant::now());
    let (mut had_room, mut has_changed) = (Instant::now(), false);
    loop {
        let mut group = member.group();
        group.listen();
        if group.is_over {
            break;
        }
        let is_full = group.assigned.uncommitted() >= inflight || group.assigned.bytes() >= BYTES;
        has_changed |= std::mem::take(&mut group.has_changed);
        let may_commit = group.may_commit();
        drop(group);
        if may_commit && committed.elapsed() >= if is_full { PATIENCE } else { COMMITS } {
            // What fails is committed with what comes next.
            member.commit(consumer).unwrap_or_else(|error| hear(&member.watch, &error));
            committed = Instant::now();
        }
        if !is_full {
            had_room = Instant::now();
        } else if !is_paused && had_room.elapsed() < PATIENT {
            thread::sleep(ROOM);
            continue;
        }
        // A partition is given back as it was taken away: it may have been paused then.
        if is_full != is_paused || has_changed {
            pause(consumer, is_full)?;
            (is_paused, has_changed) = (is_full, false);
        }
        match consumer.poll(PATIENCE) {
            Some(Ok(message)) => {
                member.watch.works();
                if *topic != *message.topic() {
                    topic = message.topic().into();
                }
                hand_over(&message, Arc::clone(&topic), member, arrivals);
            }
            Some(Err(KafkaError::MessageConsumptionFatal(code))) => return Err(code.to_string()),
            Some(Err(error)) => hear(&member.watch, &error),
            None => {}
        }
        if let Some(why) = member.watch.lasting() {
            return Err(why);
        }
    }
    // What comes now is delivered again, to whoever is next. Partitions that are not ours any more are taken from us meanwhile.
    member.commit_at_last(consumer, SHARING, || drop(consumer.poll(PATIENCE)));
    Ok(())
}

/// No more messages are to come for now, or again.
fn pause(consumer: &BaseConsumer<Member>, is_full: bool) -> Result<(), String> {
    let done = consumer.assignment().and_then(|all| match is_full {
        true => consumer.pause(&all),
        false => consumer.resume(&all),
    });
    done.map_err(|error| error.to_string())
}

/// Something went wrong that may pass; the member has been told of it, with its reason. What is not a lost connection is
/// told to people, too: a partition may stand still.
fn hear(watch: &Watch, error: &KafkaError) {
    use RDKafkaErrorCode as Code;
    match error.rdkafka_error_code() {
        None
        | Some(
            Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::OperationTimedOut
            | Code::Resolve
            // Partitions are being shared out.
            | Code::RebalanceInProgress
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::WaitingForCoordinator,
        ) => {}
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => {
            watch.say_once("a topic is gone; waiting until it is there again");
        }
        Some(code) => watch.say_once(&code.to_string()),
    }
}

fn hand_over(message: &BorrowedMessage<'_>, topic: Arc<str>, member: &Member, arrivals: &Arrivals) {
    let (partition, offset) = (message.partition(), message.offset());
    let published = message.timestamp().to_millis();
    let payload = message.payload().unwrap_or_default();
    let mut group = member.group();
    let delivered = group.assigned.deliver(&(topic, partition), offset, published, payload.len());
    drop(group);
    let Some(token) = delivered else { return };
    let headers = headers(message).unwrap_or_else(|| {
        let at = format!("{}/{partition}/{offset}", message.topic());
        member.watch.say(&format!("the headers of message {at} are left out: a name is not UTF-8"));
        Vec::new()
    });
    let envelope = Envelope {
        topic: message.topic().into(),
        partition: Some(partition.to_string()),
        key: message.key().map(Into::into),
        headers,
        // The moment tells it from one of a topic that had this name before.
        id: format!("{}/{partition}/{offset}/{}", message.topic(), published.unwrap_or(-1)),
    };
    arrivals.hand_over(Message { payload: payload.into(), envelope: Arc::new(envelope), token });
}

/// The headers of a message; `None` if the client cannot read them. Values that are not UTF-8 get replacement characters.
fn headers(message: &BorrowedMessage<'_>) -> Option<Vec<(String, String)>> {
    let read = || {
        let all = message.headers().into_iter().flat_map(Headers::iter);
        let text =
            |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        all.map(|header| (header.key.to_owned(), text(header.value))).collect()
    };
    // The client takes it for granted that names are UTF-8.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok()
}
