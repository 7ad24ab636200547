//! `lately ask`: was any key of an interval seen lately?

use crate::ranges::{self, Question};
use crate::{Failure, many};
use clap::{ArgGroup, Args};
use lately::Window;
use lately::range::{Answer, RangeFilter};
use lately_stream::number::NumberReader;
use lately_stream::options::read_time;
use lately_stream::quantity;
use lately_stream::session::Index;
use lately_stream::stamp::{StampParser, TimeFormat, TimeOptionError, Zone};
use std::io::Write;
use std::path::PathBuf;

/// Ask whether any key of an interval was seen lately
///
/// Reads a file written by `lately index`, even while that is running, and prints one line per question:
/// the interval, `perhaps` or `no`, and the probability that the answer is wrong, separated by tabs. `no`
/// is always correct unless the index ran out of room and forgot keys, in which case a warning is
/// printed. `perhaps` is wrong with at most this probability if no key of the interval was seen within
/// the window and its slack.
///
/// If records brought times, the window ends at the newest of them; otherwise at the time of day.
#[derive(Args)]
#[command(group = ArgGroup::new("question").args(["range", "key", "prefix", "ranges"]).required(true).multiple(true))]
#[command(after_help = "\
Examples:
  lately ask ids.index --range 1000..1999              # any id of these, both ends included?
  lately ask tags.index --key 3074257BF7194E4000001A85 --within 2m
  lately ask tags.index --prefix 'urn:epc:idpat:sgtin:0614141.812345.*'   # any tag of a product
  lately ask hosts.index --prefix 10.1.0.0/16 --quiet && echo seen
  lately ask hosts.index --ranges watchlist.txt        # one per line: A..B, a key or a prefix

Exit status:
  0  perhaps seen (of several questions, at least one)
  1  certainly not seen
  2  failure or wrong usage")]
pub struct Arguments {
    /// A file written by `lately index`
    state: PathBuf,

    /// From A to B, both included, in the format of the keys; either end may be left out
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    range: Vec<String>,

    /// One key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    key: Vec<String>,

    /// A block of addresses (10.1.0.0/16, 2001:db8::/32), a pattern of EPCs
    /// (urn:epc:idpat:sgtin:COMPANY.ITEM.*, urn:epc:pat:sgtin-96:*.COMPANY.ITEM.*), or the
    /// first hex digits of EPCs (3034257BF7)
    #[arg(long, value_name = "PREFIX")]
    prefix: Vec<String>,

    /// A file of intervals, one per line: A..B, a key or a prefix; `-` means standard input
    #[arg(long, value_name = "FILE")]
    ranges: Vec<String>,

    /// Ask about keys seen at most this long ago, which must not exceed the window of the index
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, conflicts_with = "last")]
    within: Option<u64>,

    /// Ask about the last COUNT records only
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    last: Option<u64>,

    /// The zone of times without one, if keys are times [default: that of the index]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<Zone>,

    /// Print nothing; the exit status is the answer
    #[arg(long, short)]
    quiet: bool,
}

/// Answers. Failures are status 2 here, as 1 is an answer.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    answer(arguments).map_err(|failure| match failure {
        Failure::Trouble(message) => Failure::Usage(message),
        other => other,
    })
}

fn answer(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.state;
    let index = Index::load(path).map_err(|error| Failure::Trouble(error.to_string()))?;
    let index = index.ok_or_else(|| {
        Failure::Trouble(format!(
            "{}: no such file; `lately index --state` creates one",
            path.display()
        ))
    })?;
    let within = arguments.within(&index)?;
    let stamps = arguments.stamps(&index).map_err(|error| Failure::Usage(error.to_string()))?;
    let questions = arguments.questions(&NumberReader::new(index.format(), read_time(stamps)))?;
    let overload = index.window().overload();
    if overload.forgotten + overload.refused > 0 {
        eprintln!(
            "lately: the window in {} was full: {} forgotten early, {} not remembered, and the answer may be `no` for them; begin a new state with more --memory",
            path.display(),
            many(overload.forgotten, "key"),
            quantity::display_count(overload.refused),
        );
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut any = false;
    for Question { text, intervals } in questions {
        let (perhaps, fpr) = ask(&index, &intervals, within);
        any |= perhaps;
        if !arguments.quiet {
            let (answer, chance) = if perhaps { ("perhaps", fpr) } else { ("no", 0.0) };
            writeln!(out, "{text}\t{answer}\t{chance:.2e}")?;
        }
    }
    out.flush()?;
    if any { Ok(()) } else { Err(Failure::No) }
}

/// Was any key of any of these intervals seen? And the probability that `perhaps` is wrong.
fn ask(
    index: &Index,
    intervals: &[std::ops::RangeInclusive<u128>],
    within: Option<u64>,
) -> (bool, f64) {
    // As a logarithm: a small probability is lost next to 1.
    let (mut perhaps, mut right) = (false, 0.0);
    for keys in intervals {
        let length = (keys.end() - keys.start()).saturating_add(1);
        let answer = index.any(keys.clone(), within);
        let wrong = match answer {
            Answer::Perhaps { fpr } => fpr,
            Answer::No => index.window().fpr_of(length),
        };
        right += f64::ln_1p(-wrong);
        perhaps |= answer.is_perhaps();
    }
    (perhaps, -f64::exp_m1(right))
}

impl Arguments {
    /// Reads keys that are times as the index read them.
    fn stamps(&self, index: &Index) -> Result<StampParser, TimeOptionError> {
        let setting = |name| {
            let reading = index.identity().reading.as_ref();
            reading.and_then(|reading| reading.get(name).first()).map(String::as_str)
        };
        let format = setting("time-format").map_or(Ok(TimeFormat::Auto), str::parse)?;
        let saved = || setting("time-zone").map_or(Ok(Zone::default()), str::parse);
        let zone = self.time_zone.clone().map_or_else(saved, Ok)?;
        StampParser::new(format, zone)
    }

    /// Everything that is asked, in the order of the flags in the help.
    fn questions(&self, reader: &NumberReader) -> Result<Vec<Question>, Failure> {
        let usage = |flag: &str, error: String| Failure::Usage(format!("{flag}: {error}"));
        let mut questions = Vec::new();
        for text in &self.range {
            if !text.contains("..") {
                let error = format!("`{text}` is not A..B, such as 1000..1999");
                return Err(usage("--range", error));
            }
            let intervals = reader.intervals(text).map_err(|error| usage("--range", error))?;
            questions.push(Question { text: text.clone(), intervals });
        }
        for text in &self.key {
            let key = reader.key(text.as_bytes()).map_err(|error| usage("--key", error))?;
            questions.push(Question { text: text.clone(), intervals: vec![key..=key] });
        }
        for text in &self.prefix {
            let intervals = reader.prefix(text).map_err(|error| usage("--prefix", error))?;
            questions.push(Question { text: text.clone(), intervals });
        }
        for path in &self.ranges {
            questions.extend(ranges::read(path, reader)?);
        }
        Ok(questions)
    }

    /// The shorter window that is asked for.
    fn within(&self, index: &Index) -> Result<Option<u64>, Failure> {
        let usage = |message: String| Err(Failure::Usage(message));
        match (index.window().window(), self.within, self.last) {
            (_, None, None) => Ok(None),
            (Window::Time { span, .. }, Some(within), _) if within > span.get() => usage(format!(
                "--within: the index only remembers {}",
                quantity::display_duration(span.get())
            )),
            (Window::Count(n), _, Some(last)) if last > n.get() => usage(format!(
                "--last: the index only remembers the last {}",
                many(n.get(), "record")
            )),
            (Window::Time { .. }, Some(within), _) => Ok(Some(within)),
            (Window::Count(_), _, Some(last)) => Ok(Some(last)),
            (Window::Time { .. }, None, Some(_)) => {
                usage("--last: the index has a window in time; ask with --within".into())
            }
            (Window::Count(_), Some(_), _) => {
                usage("--within: the index has a window in records; ask with --last".into())
            }
            (Window::Unbounded { .. }, ..) => usage("the index has no window".into()),
        }
    }
}
