//! Options that several commands have in common.

use super::{Words, text};
use crate::resp::integer;
use crate::store::{Options, Reach, Slack};
use lately::{Renewal, WhenFull};
use lately_stream::quantity;

/// A length of time in milliseconds, more than 0: `10m`, `200ms`, or a number of seconds. Parts of a millisecond count
/// as one.
pub(crate) fn duration(word: &[u8]) -> Option<u64> {
    if let Some(seconds) = integer(word) {
        return u64::try_from(seconds).ok()?.checked_mul(1000).filter(|&ms| ms > 0);
    }
    let nanos = quantity::duration(std::str::from_utf8(word).ok()?).ok()?;
    Some(nanos.div_ceil(1_000_000)).filter(|&ms| ms > 0)
}

/// A number as C reads it.
pub(crate) fn float(word: &[u8]) -> Option<f64> {
    let word = std::str::from_utf8(word).ok()?;
    if word.is_empty() || word.starts_with(char::is_whitespace) {
        return None;
    }
    word.parse().ok().filter(|value: &f64| !value.is_nan())
}

/// A number of milliseconds since 1970.
pub(crate) fn moment(word: &[u8]) -> Option<u64> {
    integer(word).and_then(|at| u64::try_from(at).ok())
}

/// Reads the options of the window at this word, if they are that: the number of the word behind them.
///
/// # Errors
/// The reply.
pub(crate) fn window(
    words: Words<'_>,
    at: usize,
    options: &mut Options,
) -> Result<Option<usize>, String> {
    let value = |error: &str| words.get(at + 1).ok_or_else(|| error.to_owned());
    let bad = |error: &'static str| move || error.to_owned();
    const SYNTAX: &str = "ERR syntax error";
    if words.is(at, "window") {
        let span = duration(value("ERR bad window")?).ok_or_else(bad("ERR bad window"))?;
        options.reach = Reach::Within(span);
    } else if words.is(at, "last") {
        let last = integer(value("ERR bad window")?).and_then(|n| u64::try_from(n).ok());
        options.reach = Reach::Last(last.filter(|&n| n > 0).ok_or_else(bad("ERR bad window"))?);
    } else if words.is(at, "renew") {
        options.renewal = match &value(SYNTAX)?.to_ascii_lowercase()[..] {
            b"always" => Renewal::Always,
            b"fresh" => Renewal::OnFresh,
            _ => return Err("ERR bad renewal: ALWAYS or FRESH".into()),
        };
    } else if words.is(at, "slack") {
        options.slack = slack(value(SYNTAX)?, options.reach).ok_or_else(bad("ERR bad slack"))?;
    } else if words.is(at, "memory") {
        let bytes = quantity::bytes(&text(value(SYNTAX)?)).ok().filter(|&bytes| bytes > 0);
        options.memory = Some(bytes.ok_or_else(bad("ERR bad memory"))?);
    } else if words.is(at, "onfull") {
        options.when_full = match &value(SYNTAX)?.to_ascii_lowercase()[..] {
            b"grow" => WhenFull::Grow,
            b"forget" => WhenFull::Forget,
            b"refuse" => WhenFull::Refuse,
            _ => return Err("ERR bad ONFULL: GROW, FORGET or REFUSE".into()),
        };
    } else if words.is(at, "structure") {
        let name = text(value(SYNTAX)?).to_ascii_lowercase();
        options.structure = Some(name.parse().map_err(|error| format!("ERR {error}"))?);
    } else {
        return Ok(None);
    }
    Ok(Some(at + 2))
}

/// A slack: a length of time, or for a window of arrivals a number. Stands behind the window that it is of.
fn slack(word: &[u8], reach: Reach) -> Option<Slack> {
    let zero = || (integer(word) == Some(0)).then_some(0);
    let exactly = match reach {
        Reach::Last(_) => integer(word).and_then(|n| u64::try_from(n).ok()),
        Reach::Within(_) | Reach::Forever => duration(word).or_else(zero),
    };
    exactly.map(Slack::Exactly)
}

/// Checks what the options amount to together.
///
/// # Errors
/// The reply.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    options.check().map_err(|what| format!("ERR {what}"))
}

/// What errors of `LATELY.RESERVE` begin with, and the same where options are members: of a body, or of a `[[filter]]`.
const MEMBERS: &[(&str, &str)] = &[
    ("bad window", "window is a length of time such as \"10m\", last a number above 0"),
    ("bad slack", "slack is a length of time such as \"1m\", or with last a number of arrivals"),
    ("bad memory", "memory is a number of bytes or a size such as \"64MiB\", above 0"),
    ("bad renewal", "renew is \"always\" or \"fresh\""),
    ("bad ONFULL", "on_full is \"grow\", \"forget\" or \"refuse\""),
    ("bad error rate", "fpr is a number above 0 and below 1"),
    ("bad capacity", "capacity is a number of keys below 2^63"),
    ("(capacity", "capacity is a number of keys above 0"),
    ("bad RANGE", "range is \"number\", \"ip\" or \"epc\""),
    ("INTERVAL must come", "interval goes with range"),
    (
        "bad INTERVAL",
        "interval is a number of keys above 0, a power such as \"2^38\", or for addresses a prefix such as \"/16\"",
    ),
    (
        "a filter with RANGE has a window",
        "a filter with range has a window of time: give window or forever, not last",
    ),
    (
        "a filter with RANGE remembers",
        "a filter with range remembers when a key was last seen: renew is \"always\"",
    ),
    (
        "a filter with RANGE has a structure",
        "a filter with range has a structure of its own: leave out structure",
    ),
    ("this structure grows by itself", "this structure grows by itself: give memory"),
];

/// What an error of `LATELY.RESERVE` says, in the names that its options have as members of a body or of a `[[filter]]`.
pub(crate) fn in_members(error: &str) -> Option<&'static str> {
    let rest = error.trim_start_matches("ERR ");
    MEMBERS.iter().find(|(begin, _)| rest.starts_with(begin)).map(|(_, said)| *said)
}
