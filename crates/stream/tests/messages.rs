//! Messages of a broker through a pipeline that crashes at any moment: nothing is lost, and what repeats is bounded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately::Digester;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::options::{Format, Options};
use lately_stream::pipeline::{Observer, Pipeline};
use lately_stream::read::message::{Acknowledge, Message, MessageInput, Received};
use lately_stream::record::Envelope;
use lately_stream::session::DedupSpec;
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use lately_stream::state::file::StateFile;
use lately_stream::write::message::{About, MessageOutput};
use lately_stream::write::output::Output;
use lately_stream::write::report::Report;
use lately_stream::write::sink::Sink;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A broker: what it is to deliver, and what was published to it.
#[derive(Default)]
struct Broker {
    messages: Vec<(String, String)>,
    /// So many of them were acknowledged.
    acknowledged: usize,
    /// Messages that may be unacknowledged.
    inflight: usize,
    published: Vec<Published>,
    /// Publications after which the process crashes.
    crash_after: Option<usize>,
    sent: usize,
}

/// A record, its class, why, and which record it was in a message of which topic.
type Published = (String, Class, Option<String>, Option<(String, u32)>);

type Shared = Arc<Mutex<Broker>>;

struct Input {
    broker: Shared,
    /// The first message of this run, and the next one.
    first: usize,
    next: usize,
}

impl MessageInput for Input {
    fn next(&mut self, patience: Duration) -> Received {
        let broker = self.broker.lock().unwrap();
        let may = broker.acknowledged + broker.inflight;
        let Some((topic, payload)) = broker.messages.get(self.next).filter(|_| self.next < may)
        else {
            drop(broker);
            std::thread::sleep(patience.min(Duration::from_millis(1)));
            return Received::Nothing;
        };
        self.next += 1;
        let envelope = Envelope { topic: topic.clone(), ..Envelope::default() };
        let token = (self.next - self.first) as u64;
        let payload = payload.clone().into_bytes();
        Received::Message(Message { payload, envelope: Arc::new(envelope), token })
    }

    fn acknowledger(&self) -> Box<dyn Acknowledge> {
        Box::new(Acknowledger { broker: Arc::clone(&self.broker), first: self.first })
    }
}

struct Acknowledger {
    broker: Shared,
    first: usize,
}

impl Acknowledge for Acknowledger {
    fn acknowledge(&mut self, token: u64) {
        let mut broker = self.broker.lock().unwrap();
        broker.acknowledged = broker.acknowledged.max(self.first + token as usize);
    }
}

struct Publisher(Shared);

impl MessageOutput for Publisher {
    fn send(&mut self, record: &[u8], about: &About) -> std::io::Result<()> {
        let mut broker = self.0.lock().unwrap();
        broker.sent += 1;
        if broker.crash_after.is_some_and(|after| broker.sent > after) {
            return Err(std::io::Error::other("a crash"));
        }
        let record = String::from_utf8(record.to_vec()).unwrap();
        let from = about.from.as_ref().map(|(envelope, part)| (envelope.topic.clone(), *part));
        broker.published.push((record, about.class, about.reason.clone(), from));
        Ok(())
    }

    fn confirm(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Ends a run when all messages are acknowledged.
struct UntilDone(Shared);

impl Observer for UntilDone {
    fn progress(&mut self, _: &Report) {}

    fn stop(&self) -> bool {
        let broker = self.0.lock().unwrap();
        broker.acknowledged == broker.messages.len()
    }
}

fn options(format: Format, key: &[&str]) -> Options {
    let zone: Zone = "UTC".parse().unwrap();
    let stamps = StampParser::new(TimeFormat::Auto, zone).unwrap();
    let read_time = move |text: &[u8]| stamps.parse(text).map_err(|error| error.to_string());
    let mut options = Options::new(Digester::new(0), Arc::new(read_time));
    options.format = format;
    options.key = key.iter().map(|key| (*key).into()).collect();
    options
}

/// Runs to the end, or to a crash.
fn run(broker: &Shared, options: Options, state: Option<&Path>) -> Result<Report, String> {
    let spec = DedupSpec { expect: Some(1_000), ..DedupSpec::ever() };
    let resumed = state.and_then(|path| spec.resume(path).unwrap());
    let saved = resumed.as_ref().map(Decide::changes);
    let judge = resumed.unwrap_or_else(|| spec.build().unwrap());
    let publisher = |of: &Shared| Box::new(Publisher(Arc::clone(of)));
    let sink = Sink::new(Output::of_messages("out", publisher(broker)))
        .invalid(Some(Output::of_messages("dead", publisher(broker))));
    let state = state.map(|path| StateFile::new(path.into(), Duration::from_secs(60), saved));
    let mut pipeline = Pipeline::new(judge, sink, None, state);
    let first = broker.lock().unwrap().acknowledged;
    let input = Input { broker: Arc::clone(broker), first, next: first };
    let source = Source::of_messages("in", Box::new(input), options);
    let result = pipeline.run(source, 2, &mut UntilDone(Arc::clone(broker)));
    result.map(|()| pipeline.report).map_err(|error| error.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_crash_loses_nothing_and_repeats_what_was_in_flight(
        keys in prop::collection::vec(0..60_u32, 1..200),
        crashes in prop::collection::vec(0..80_usize, 0..5),
        inflight in 1..40_usize,
        saves in any::<bool>(),
    ) {
        let folder = std::env::temp_dir().join(format!("lately-messages-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state");
        let state = saves.then_some(path.as_path());
        let messages = keys.iter().map(|key| ("t".into(), format!("key {key}"))).collect();
        let broker = Broker { messages, inflight, ..Broker::default() };
        let broker = Arc::new(Mutex::new(broker));
        let mut crashed = 0;
        let mut forgotten = 0;
        for after in crashes {
            {
                let mut broker = broker.lock().unwrap();
                (broker.crash_after, broker.sent) = (Some(after), 0);
            }
            let ended = run(&broker, options(Format::Lines, &[]), state);
            crashed += usize::from(ended.is_err());
            // Without a state a run knows nothing of what was acknowledged before it.
            forgotten = if saves { 0 } else { broker.lock().unwrap().acknowledged };
        }
        broker.lock().unwrap().crash_after = None;
        run(&broker, options(Format::Lines, &[]), state).unwrap();
        let broker = broker.lock().unwrap();
        let published: Vec<_> = broker.published.iter().map(|one| one.0.clone()).collect();
        let distinct: BTreeSet<_> = published.iter().collect();
        let expected: BTreeSet<_> = broker.messages.iter().map(|(_, payload)| payload).collect();
        prop_assert_eq!(&distinct, &expected);
        prop_assert_eq!(broker.acknowledged, broker.messages.len());
        if forgotten == 0 {
            let repeated = published.len() - distinct.len();
            prop_assert!(repeated <= crashed * inflight, "{} in {} crashes", repeated, crashed);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn each_message_is_read_by_itself() {
    let messages = [
        ("a", r#"{"id":1,"#),
        ("a", r#"{"id":1}"#),
        ("b", "{\"id\":1}\n{\"id\":2}\n"),
        ("b", ""),
        ("c", "[{\"id\":3},\n {\"id\":3}]"),
        ("c", r#"{"id":3}"#),
    ];
    let messages = messages.map(|(topic, payload)| (topic.into(), payload.into())).into();
    let broker = Broker { messages, inflight: 10, ..Broker::default() };
    let broker = Arc::new(Mutex::new(broker));
    let report = run(&broker, options(Format::Json, &["@topic", "id"]), None).unwrap();
    let published = std::mem::take(&mut broker.lock().unwrap().published);
    let clean: Vec<_> = published.iter().filter(|one| one.1 == Class::Fresh).collect();
    let clean: Vec<_> =
        clean.into_iter().map(|one| (one.0.as_str(), one.3.clone().unwrap())).collect();
    let from = |topic: &str, part| (topic.to_owned(), part);
    assert_eq!(
        clean,
        [
            (r#"{"id":1}"#, from("a", 0)),
            (r#"{"id":1}"#, from("b", 0)),
            (r#"{"id":2}"#, from("b", 1)),
            (r#"{"id":3}"#, from("c", 0)),
        ]
    );
    let dead: Vec<_> = published.iter().filter(|one| one.1 == Class::Invalid).collect();
    assert_eq!((dead.len(), dead[0].0.as_str()), (1, r#"{"id":1,"#));
    assert!(dead[0].2.is_some() && dead[0].3 == Some(from("a", 0)));
    assert_eq!(report.counts.of(Class::Duplicate), 2);
    assert!(report.invalid[0].starts_with("in:1:"), "{:?}", report.invalid);
}

#[test]
fn messages_with_headers_and_messages_that_are_none() {
    let messages = [("a", "id,v\n1,x\n1,y\n"), ("a", "v,id\nx,2\n"), ("a", "v,w\n1,1\n")];
    let messages = messages.map(|(topic, payload)| (topic.into(), payload.into())).into();
    let broker = Broker { messages, inflight: 10, ..Broker::default() };
    let broker = Arc::new(Mutex::new(broker));
    run(&broker, options(Format::Csv, &["id"]), None).unwrap();
    let published = std::mem::take(&mut broker.lock().unwrap().published);
    let records: Vec<_> = published.iter().map(|one| (one.0.as_str(), one.1)).collect();
    assert_eq!(records[..2], [("1,x", Class::Fresh), ("x,2", Class::Fresh)]);
    // What has no such column is a dead letter as a whole.
    assert_eq!(records[2], ("v,w\n1,1", Class::Invalid));
    assert!(published[2].2.as_ref().unwrap().contains("id"), "{published:?}");
}
