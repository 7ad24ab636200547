//! What a run has done so far, for Prometheus: `--metrics ADDRESS`.

use crate::Failure;
use lately_stream::judge::class::Class;
use lately_stream::write::report::Report;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long somebody who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const REQUEST: usize = 8 << 10;

/// Numbers of a run, which a thread of their own hands out.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    records: [u64; Class::FINAL.len()],
    bytes: u64,
    forgotten: u64,
    refused: u64,
    failed_saves: u64,
    /// When something was judged last, in seconds since 1970.
    last: f64,
}

impl Metrics {
    /// Listens at this address until the program ends.
    pub fn listen(at: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Trouble(format!("--metrics {at}: {error}"));
        let listener = TcpListener::bind(at).map_err(failed)?;
        let metrics = Self::default();
        let served = metrics.clone();
        let serve = move || {
            // One after another: a scrape takes no time to speak of.
            listener.incoming().flatten().for_each(|stream| drop(served.answer(stream)));
        };
        thread::Builder::new().name("metrics".into()).spawn(serve).map_err(failed)?;
        Ok(metrics)
    }

    /// Notes how far the run has come.
    pub fn note(&self, report: &Report) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let records = Class::FINAL.map(|class| report.counts.of(class));
        if records != numbers.records {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            numbers.last = now.map_or(0.0, |now| now.as_secs_f64());
        }
        numbers.records = records;
        numbers.bytes = report.counts.bytes_in;
        (numbers.forgotten, numbers.refused) = (report.overload.forgotten, report.overload.refused);
        numbers.failed_saves = report.state_errors.0;
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut request = Vec::new();
        let mut piece = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST {
            match stream.read(&mut piece)? {
                0 => break,
                read => request.extend_from_slice(&piece[..read]),
            }
        }
        let is_asked = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET / ");
        let (status, body) =
            if is_asked { ("200 OK", self.text()) } else { ("404 Not Found", String::new()) };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    fn text(&self) -> String {
        let numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut say = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP lately_{name} {help}\n# TYPE lately_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "lately_{name}{labels} {value}");
            }
        };
        let label = |class: Class| format!("{{class=\"{}\"}}", class.name());
        let records = Class::FINAL.into_iter().zip(numbers.records);
        let records: Vec<_> = records.map(|(class, count)| (label(class), count as f64)).collect();
        let one = |number: f64| [(String::new(), number)];
        say("records_total", "counter", "Records by what became of them.", &records);
        say("read_bytes_total", "counter", "Bytes read.", &one(numbers.bytes as f64));
        say(
            "forgotten_keys_total",
            "counter",
            "Keys forgotten before their time, to make room.",
            &one(numbers.forgotten as f64),
        );
        say(
            "refused_keys_total",
            "counter",
            "Keys not remembered, as there was no room.",
            &one(numbers.refused as f64),
        );
        say(
            "failed_saves_total",
            "counter",
            "Saves of the state that failed.",
            &one(numbers.failed_saves as f64),
        );
        say(
            "last_record_seconds",
            "gauge",
            "When a record was judged last, since 1970.",
            &one(numbers.last),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(at: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn numbers_are_handed_out() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Metrics::listen(free).ok().unwrap();
        let mut report = Report::default();
        report.counts.add(Class::Fresh, 3);
        report.counts.add(Class::Duplicate, 2);
        metrics.note(&report);
        let answer = ask(free, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        for line in [
            "lately_records_total{class=\"fresh\"} 3",
            "{class=\"duplicate\"} 2",
            "{class=\"late\"} 0",
        ] {
            assert!(answer.contains(line), "{line} in {answer}");
        }
        assert!(ask(free, "/other").starts_with("HTTP/1.1 404"));
        assert!(Metrics::listen(free).is_err());
    }
}
