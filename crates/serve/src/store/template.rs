//! What filters are made with, and which names get what.

use super::Refusal;
use super::numbers::Numbers;
use lately::codec::{Reader, Writer};
use lately::range::RangeSpec;
use lately::{PlanError, Renewal, SnapshotError, Spec, Structure, Terms, WhenFull, Window};
use std::num::NonZeroU64;

/// How far back a filter remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Forever,
    /// Milliseconds.
    Within(u64),
    /// Arrivals.
    Last(u64),
}

/// How much longer than its window a filter may remember.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Slack {
    /// A share of the window.
    Share(f64),
    /// Milliseconds, or arrivals.
    Exactly(u64),
}

/// As what clients know a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    #[default]
    Bloom,
    /// `CF.*`: single keys can be deleted.
    Cuckoo,
    /// `SADD`: the same.
    Set,
    /// `LATELY.RESERVE … RANGE`: keys are numbers, and it is asked for intervals of them.
    Intervals(Numbers),
}

impl Family {
    /// What `TYPE` says.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Bloom => "MBbloom--",
            Self::Cuckoo => "MBbloomCF",
            Self::Set => "set",
            Self::Intervals(_) => "range",
        }
    }

    /// How its keys are spelt, if it is asked for intervals.
    pub(crate) fn numbers(self) -> Option<Numbers> {
        match self {
            Self::Intervals(numbers) => Some(numbers),
            Self::Bloom | Self::Cuckoo | Self::Set => None,
        }
    }

    /// Do filters of this one move in chunks by the commands of that family? Those that are asked for intervals have none of their
    /// own.
    pub(crate) fn moves_as(self, family: Self) -> bool {
        self == family || self.numbers().is_some() && family == Self::Bloom
    }

    /// Why commands of another family do nothing with a filter of this one.
    pub(crate) fn wrong_type(self) -> Refusal {
        self.numbers().map_or(Refusal::WrongType, |_| Refusal::Intervals)
    }

    fn number(self) -> u8 {
        match self {
            Self::Bloom => 0,
            Self::Cuckoo => 1,
            Self::Set => 2,
            Self::Intervals(_) => 3,
        }
    }
}

/// For how long that is kept at least which is kept for ever and can be taken out, in milliseconds: 69 years. Structures that
/// never forget cannot forget a single key either.
pub(crate) const AN_AGE: NonZeroU64 = NonZeroU64::new(1 << 41).unwrap();

/// What a filter is made with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) family: Family,
    pub(crate) reach: Reach,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
    pub(crate) renewal: Renewal,
    pub(crate) slack: Slack,
    pub(crate) memory: Option<u64>,
    pub(crate) when_full: WhenFull,
    pub(crate) structure: Option<Structure>,
    /// Told by `BF.INFO`, as clients expect. `None`: `NONSCALING`.
    pub(crate) expansion: Option<u32>,
}

/// What options amount to.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// The structure, and what is particular about it.
    pub(crate) what: String,
    pub(crate) keys: u64,
    pub(crate) memory: u64,
    pub(crate) fpr: f64,
}

/// What the structure of filters is called that are asked for intervals.
pub(super) const RANGE_WINDOW: &str = "range-window";

impl Default for Options {
    /// RedisBloom's defaults.
    fn default() -> Self {
        Self {
            family: Family::Bloom,
            reach: Reach::Forever,
            capacity: 100,
            fpr: 0.01,
            renewal: Renewal::Always,
            slack: Slack::Share(1.0 / 64.0),
            memory: None,
            when_full: WhenFull::Grow,
            structure: None,
            expansion: Some(2),
        }
    }
}

impl Options {
    /// What is asked of the library. The whole is not planned yet.
    pub(crate) fn spec(&self, seed: u64) -> Result<Spec, Refusal> {
        let terms = self.terms(seed)?;
        let spec = Spec::of(terms).renewal(self.renewal);
        // What never forgets is compared with RedisBloom by its size, of which a blocked filter takes up to 40 % more.
        let smallest = terms.window.span().is_none().then_some(Structure::Bloom);
        let structure = self.structure.or(smallest);
        Ok(structure.map_or(spec, |structure| spec.structure(structure)))
    }

    /// The same where keys are numbers, and it is asked for intervals of them.
    pub(crate) fn range_spec(&self, numbers: Numbers, seed: u64) -> Result<RangeSpec, Refusal> {
        Ok(RangeSpec::of(self.terms(seed)?).interval(numbers.interval))
    }

    fn terms(&self, seed: u64) -> Result<Terms, Refusal> {
        let positive = |n| NonZeroU64::new(n).ok_or(Refusal::Capacity);
        let capacity = positive(self.capacity)?;
        let window = match self.reach {
            Reach::Forever if self.forgets_single_keys() => Window::Time { span: AN_AGE, capacity },
            Reach::Forever => Window::Unbounded { capacity },
            Reach::Within(span) => Window::Time { span: positive(span)?, capacity },
            Reach::Last(n) => Window::Count(positive(n)?),
        };
        let mut terms = Terms::new(window, self.fpr);
        terms.slack = match (window.span(), self.slack) {
            (None, _) => 0,
            (Some(span), _) if self.reach == Reach::Forever => span,
            (Some(span), Slack::Share(share)) => (span as f64 * share) as u64,
            (Some(_), Slack::Exactly(slack)) => slack,
        };
        terms.memory = self.memory;
        terms.when_full = self.when_full;
        terms.seed = seed;
        Ok(terms)
    }

    /// What it amounts to, planned but not made.
    ///
    /// # Errors
    /// Why it cannot be planned.
    pub(crate) fn planned(&self) -> Result<Planned, String> {
        let text = |error: PlanError| error.to_string();
        let said = |refusal: Refusal| refusal.to_string();
        if let Family::Intervals(numbers) = self.family {
            let plan = self.range_spec(numbers, 0).map_err(said)?.plan().map_err(text)?;
            let Numbers { format, interval } = numbers;
            let what =
                format!("{RANGE_WINDOW} of keys of format {format}, intervals of {interval}");
            let (memory, fpr) = (plan.most_memory(), plan.fpr());
            return Ok(Planned { what, keys: plan.window().capacity(), memory, fpr });
        }
        let plan = self.spec(0).map_err(said)?.plan().map_err(text)?;
        let (what, keys) = (plan.structure().to_string(), plan.capacity());
        Ok(Planned { what, keys, memory: plan.memory(), fpr: plan.fpr() })
    }

    /// Do clients expect that single keys can be taken out?
    fn forgets_single_keys(&self) -> bool {
        matches!(self.family, Family::Cuckoo | Family::Set)
    }

    /// What cannot be together, if anything.
    ///
    /// # Errors
    /// Which, and what to do.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.family.numbers().is_some() {
            if let Reach::Last(_) = self.reach {
                return Err(
                    "a filter with RANGE has a window of time: give WINDOW or FOREVER, not LAST",
                );
            }
            if self.renewal == Renewal::OnFresh {
                return Err(
                    "a filter with RANGE remembers when a key was last seen: leave out RENEW, or give RENEW ALWAYS",
                );
            }
            if self.structure.is_some() {
                return Err("a filter with RANGE has a structure of its own: leave out STRUCTURE");
            }
        }
        match self.is_bounded() {
            true => Ok(()),
            false => Err("this structure grows by itself: give MEMORY"),
        }
    }

    /// As bytes.
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        let (kind, length) = match self.reach {
            Reach::Forever => (0, 0),
            Reach::Within(ms) => (1, ms),
            Reach::Last(n) => (2, n),
        };
        out.u8(kind | self.family.number() << 4);
        out.u64(length);
        out.u64(self.capacity);
        out.f64(self.fpr);
        out.flag(self.renewal == Renewal::OnFresh);
        match self.slack {
            Slack::Share(share) => {
                out.u8(0);
                out.f64(share);
            }
            Slack::Exactly(slack) => {
                out.u8(1);
                out.u64(slack);
            }
        }
        optional(self.memory, out);
        out.u8(match self.when_full {
            WhenFull::Grow => 0,
            WhenFull::Forget => 1,
            // Options name no other.
            _ => 2,
        });
        out.block(self.structure.map_or("", Structure::name).as_bytes());
        optional(self.expansion.map(u64::from), out);
        // Only here, so that others are what they were before there were intervals.
        if let Family::Intervals(numbers) = self.family {
            numbers.write(out);
        }
    }

    /// From the bytes of [`Options::write`].
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let invalid = SnapshotError::Invalid("no such options of a filter");
        let kind = input.u8()?;
        let reach = match (kind & 0xf, input.u64()?) {
            (0, 0) => Reach::Forever,
            (1, ms) => Reach::Within(ms),
            (2, n) => Reach::Last(n),
            _ => return Err(invalid),
        };
        let (capacity, fpr) = (input.u64()?, input.f64()?);
        let renewal = if input.flag()? { Renewal::OnFresh } else { Renewal::Always };
        let slack = match input.u8()? {
            0 => Slack::Share(input.f64()?),
            1 => Slack::Exactly(input.u64()?),
            _ => return Err(invalid),
        };
        let memory = read_optional(input)?;
        let when_full = match input.u8()? {
            0 => WhenFull::Grow,
            1 => WhenFull::Forget,
            2 => WhenFull::Refuse,
            _ => return Err(invalid),
        };
        let structure = match &input.text()?[..] {
            "" => None,
            name => Some(name.parse().map_err(|_| invalid.clone())?),
        };
        let expansion =
            read_optional(input)?.map(u32::try_from).transpose().map_err(|_| invalid.clone())?;
        let family = match kind >> 4 {
            0 => Family::Bloom,
            1 => Family::Cuckoo,
            2 => Family::Set,
            3 => Family::Intervals(Numbers::read(input)?),
            _ => return Err(invalid),
        };
        let read = Self {
            family,
            reach,
            capacity,
            fpr,
            renewal,
            slack,
            memory,
            when_full,
            structure,
            expansion,
        };
        // Of others, dumps are looked at by themselves.
        match read.family.numbers().map(|_| read.check()) {
            Some(Err(_)) => Err(invalid),
            _ => Ok(read),
        }
    }

    /// Is there an end to what it may take? Structures that grow by themselves need a limit.
    pub(crate) fn is_bounded(&self) -> bool {
        use Structure::{AccommodativeBloom, DynamicBloom, ScalableBloom};
        let grows =
            matches!(self.structure, Some(DynamicBloom | ScalableBloom | AccommodativeBloom));
        !grows || self.memory.is_some()
    }

    /// Full at its capacity, as RedisBloom's `NONSCALING`.
    pub(crate) fn is_fixed(&self) -> bool {
        self.expansion.is_none()
    }
}

fn optional(value: Option<u64>, out: &mut Writer<'_>) {
    out.flag(value.is_some());
    out.u64(value.unwrap_or(0));
}

fn read_optional(input: &mut Reader<'_>) -> Result<Option<u64>, SnapshotError> {
    let (is_there, value) = (input.flag()?, input.u64()?);
    Ok(is_there.then_some(value))
}

/// Options for the names that match a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) pattern: String,
    pub(crate) options: Options,
}

/// The options for a name: those of the first template that matches.
pub(crate) fn options_for(templates: &[Template], name: &[u8]) -> Option<Options> {
    let found = templates.iter().find(|template| is_match(template.pattern.as_bytes(), name));
    found.map(|template| template.options.clone())
}

/// Does a name match a pattern, as Redis' do: `*`, `?`, `[abc]`, `[^a-c]`, `\` before any of them?
///
/// *Cost:* at most the product of both lengths.
pub(crate) fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to resume after the last `*`: behind it, and one character of the name further on each time.
    let mut star = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        let matched = match (name.get(n), pattern.get(p)) {
            (None, None) => return true,
            (None, Some(_)) => return false,
            (Some(&byte), Some(_)) => one(&pattern[p..], byte),
            (Some(_), None) => None,
        };
        match (matched, star) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((behind, at))) => {
                (p, n) = (behind, at + 1);
                star = Some((behind, n));
            }
            (None, None) => return false,
        }
    }
}

/// The length of the pattern's first element, if that matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            // Without a closing bracket, all that follows is in the class.
            let end = end_of_class(class);
            let (members, is_negated) = match &class[..end] {
                [b'^', members @ ..] => (members, true),
                members => (members, false),
            };
            let length = (1 + end + 1).min(pattern.len());
            (is_in(members, byte) != is_negated).then_some(length)
        }
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Where the bracket closes.
fn end_of_class(class: &[u8]) -> usize {
    let mut at = 0;
    while at < class.len() && class[at] != b']' {
        at += if class[at] == b'\\' { 2 } else { 1 };
    }
    at.min(class.len())
}

fn is_in(members: &[u8], byte: u8) -> bool {
    match members {
        [b'\\', escaped, rest @ ..] => *escaped == byte || is_in(rest, byte),
        [from, b'-', to, rest @ ..] => {
            (*from.min(to)..=*from.max(to)).contains(&byte) || is_in(rest, byte)
        }
        [member, rest @ ..] => *member == byte || is_in(rest, byte),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        let yes = [
            ("*", ""),
            ("", ""),
            ("crawl:*", "crawl:x"),
            ("a*b*c", "aXXbYbc"),
            ("a?c", "abc"),
            ("[ab]c", "bc"),
            ("[^a]", "b"),
            ("[a-c]*", "cat"),
            ("[c-a]", "b"),
            ("\\*", "*"),
            ("[\\]]", "]"),
            ("[abc", "b"),
            ("**", "abc"),
        ];
        let no = [
            ("", "a"),
            ("a", ""),
            ("crawl:*", "crawl"),
            ("a?c", "ac"),
            ("[ab]", "c"),
            ("[^a]", "a"),
            ("\\*", "a"),
            ("a*b", "aXbX"),
            ("?", ""),
        ];
        yes.iter().for_each(|(p, n)| assert!(is_match(p.as_bytes(), n.as_bytes()), "{p} {n}"));
        no.iter().for_each(|(p, n)| assert!(!is_match(p.as_bytes(), n.as_bytes()), "{p} {n}"));
        // Takes no time, where a search that backtracks to every star takes for ever.
        assert!(!is_match(&b"a*".repeat(100), &[b'a'; 5_000].map(|_| b'b')));
        assert!(!is_match(&[b"*a".repeat(50), b"b".to_vec()].concat(), &[b'a'; 5_000]));
    }

    /// What was saved before there were intervals is read, and is written as it was; what is asked for intervals has its keys behind
    /// that, and cannot be what is refused when it is asked for.
    #[test]
    fn options_as_bytes() {
        use lately::codec::{self, Format};
        const FORMAT: Format = Format::new(*b"\x89TESTS\r\n", 1);
        let written = |options: &Options| codec::to_vec(FORMAT, |out| options.write(out));
        let read = |bytes: &[u8]| codec::from_slice(FORMAT, bytes, Options::read);
        let set = Options { family: Family::Set, reach: Reach::Within(7), ..Options::default() };
        let before = codec::to_vec(FORMAT, |out| {
            out.u8(0x21);
            [7, 100].into_iter().for_each(|n| out.u64(n));
            out.f64(0.01);
            [0, 0].into_iter().for_each(|n| out.u8(n));
            out.f64(1.0 / 64.0);
            out.flag(false);
            out.u64(0);
            out.u8(0);
            out.block(b"");
            out.flag(true);
            out.u64(2);
        });
        assert_eq!((written(&set), read(&before)), (before, Ok(set)));
        let numbers = Numbers::of("epc").unwrap().with_interval("2^100").unwrap();
        let intervals = Options { family: Family::Intervals(numbers), ..Options::default() };
        assert_eq!(read(&written(&intervals)), Ok(intervals.clone()));
        for wrong in [
            Options { reach: Reach::Last(5), ..intervals.clone() },
            Options { renewal: Renewal::OnFresh, ..intervals.clone() },
            Options { structure: Some(Structure::Bloom), ..intervals },
        ] {
            assert!(read(&written(&wrong)).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in prop::collection::vec(prop::sample::select(b"*?[]^-\\ab".to_vec()), 0..12),
                             name in prop::collection::vec(prop::sample::select(b"ab]^-".to_vec()), 0..8)) {
            let _ = is_match(&pattern, &name);
        }

        #[test]
        fn a_name_matches_itself_escaped(name in prop::collection::vec(any::<u8>(), 0..12)) {
            let escaped: Vec<u8> = name.iter().flat_map(|&byte| [b'\\', byte]).collect();
            prop_assert!(is_match(&escaped, &name));
            let inside = [b"*".as_slice(), &escaped, b"*"].concat();
            prop_assert!(is_match(&inside, &[b"x", &name[..], b"y"].concat()));
        }
    }
}
