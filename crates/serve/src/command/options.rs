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
