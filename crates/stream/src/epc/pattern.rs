//! EPCs as numbers, and the intervals of numbers that classes of them are.

use super::bits::Bits;
use super::schemes::{Field, Scheme};
use super::{Epc, EpcError, decode, nibble, uri};
use lately::Digester;
use std::ops::RangeInclusive;

/// Bits of the number of an EPC.
const BITS: u32 = 96;

/// Bits of an EPC of more than that which are kept as they are: as many as company prefix and item
/// (or asset type) take with all before them. What follows is a serial, whose order says nothing.
const KEPT: u32 = 58;

/// What is hashed of the rest.
const HASHED: u32 = BITS - KEPT;

/// The number of the tag that `text` spells; `None` if it is no EPC.
pub(crate) fn number(text: &[u8]) -> Option<u128> {
    let mut bytes = Vec::with_capacity(32);
    decode(text, &mut bytes).ok()?;
    Some(of_bytes(&bytes))
}

/// See [`Epc::to_number`].
pub(super) fn of_bytes(bytes: &[u8]) -> u128 {
    let head = bytes.iter().chain(std::iter::repeat(&0)).take(BITS as usize / 8);
    let head = head.fold(0, |number, &byte| number << 8 | u128::from(byte));
    // One that is longer than its scheme was not written to the standard: a prefix of it stays one.
    if bytes.len() * 8 <= BITS as usize || !is_long(head) {
        return head;
    }
    let rest = Digester::new(0).digest(bytes.get(KEPT as usize / 8..).unwrap_or_default());
    head >> HASHED << HASHED | u128::from(rest.hi() >> (64 - HASHED))
}

/// Intervals of numbers that hold every tag which fits `text`, in no particular order:
///
/// - `urn:epc:idpat:sgtin:COMPANY.ITEM.*`: all tags of an identity, whatever their filter value and
///   the length of their encoding. `*` stands at the end only; `urn:epc:id:` names one.
/// - `urn:epc:pat:sgtin-96:FILTER.COMPANY.ITEM.*`: those of one encoding; the filter value may be `*`.
/// - `urn:epc:idpat:sgtin-96:COMPANY.ITEM.*`: those of one encoding, whatever their filter value.
/// - `3034257BF7*`: those that begin with these hex digits; the star may be left out.
/// - A tag in any other spelling: itself.
///
/// *Errors:* what is wrong with the text.
pub(crate) fn pattern(text: &str) -> Result<Vec<RangeInclusive<u128>>, EpcError> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let after =
        |prefix: &str| lower.starts_with(prefix).then(|| text.get(prefix.len()..)).flatten();
    if lower.starts_with("urn:epc:class:") || lower.starts_with("urn:epc:idpat:lgtin") {
        return Err(EpcError::Pattern(
            "a class names a lot of a product, which no tag carries; ask for the product: urn:epc:idpat:sgtin:COMPANY.ITEM.*".into(),
        ));
    }
    if let Some(rest) = after("urn:epc:idpat:").or_else(|| after("urn:epc:id:")) {
        return identity(rest);
    }
    if let Some(rest) = after("urn:epc:pat:") {
        let (name, parts) = rest.split_once(':').unwrap_or((rest, ""));
        let scheme = Scheme::by_name(name).ok_or_else(|| EpcError::UnknownScheme(name.into()))?;
        let parts: Vec<&str> = parts.splitn(scheme.components(), '.').collect();
        return match (scheme.filter_values(), parts.split_first()) {
            (Some(values), Some((&"*", rest))) => with_filters(scheme, rest, values),
            _ => Ok(vec![one(scheme, &parts)?]),
        };
    }
    let (digits, starred) = lower.strip_suffix('*').map_or((&*lower, false), |rest| (rest, true));
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    // As many as an EPC has are an EPC.
    if (starred || digits.len() < BITS as usize / 4)
        && let Some(prefix) = hex_prefix(digits)
    {
        return Ok(vec![prefix]);
    }
    let (epc, _) = Epc::parse(text.as_bytes())?;
    let number = epc.to_number();
    Ok(vec![number..=number])
}

/// All encodings of an identity, or one of them by its name.
fn identity(text: &str) -> Result<Vec<RangeInclusive<u128>>, EpcError> {
    let (name, parts) = text.split_once(':').unwrap_or((text, ""));
    let schemes: Vec<_> = Scheme::of_identity(name).collect();
    if schemes.is_empty() {
        return Err(EpcError::UnknownScheme(name.into()));
    }
    let (mut all, mut fault) = (Vec::new(), None);
    for scheme in schemes {
        let values = scheme.filter_values();
        let components = scheme.components() - usize::from(values.is_some());
        let parts: Vec<&str> = parts.splitn(components, '.').collect();
        let found = match values {
            Some(values) => with_filters(scheme, &parts, values),
            None => one(scheme, &parts).map(|one| vec![one]),
        };
        match found {
            Ok(found) => all.extend(found),
            // A serial of letters has no place in a short encoding, and the like.
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    if all.is_empty() { Err(fault.unwrap_or(EpcError::NotAnEpc)) } else { Ok(all) }
}

fn with_filters(
    scheme: &'static Scheme,
    parts: &[&str],
    values: u32,
) -> Result<Vec<RangeInclusive<u128>>, EpcError> {
    let with = |filter: u32| {
        let filter = filter.to_string();
        let parts: Vec<&str> =
            std::iter::once(filter.as_str()).chain(parts.iter().copied()).collect();
        one(scheme, &parts)
    };
    (0..values).map(with).collect()
}

/// The interval of one encoding and filter value.
fn one(scheme: &'static Scheme, parts: &[&str]) -> Result<RangeInclusive<u128>, EpcError> {
    let open = parts.iter().position(|&part| part == "*");
    let stray = parts.iter().position(|part| part.contains('*') && *part != "*");
    let closed = open.is_some_and(|open| parts.iter().skip(open).any(|&part| part != "*"));
    if closed || stray.is_some() {
        return Err(EpcError::Pattern(
            "`*` stands for all fields from one on to the end, as in sgtin:0614141.812345.*".into(),
        ));
    }
    match open {
        Some(open) => {
            let bits = uri::encode_parts(scheme, parts.iter().copied().take(open), true)?;
            Ok(beginning_with(&bits))
        }
        None => {
            let bits = uri::encode_parts(scheme, parts.iter().copied(), false)?;
            let number = of_bytes(bits.words());
            Ok(number..=number)
        }
    }
}

/// All numbers of EPCs that begin with these bits.
fn beginning_with(bits: &Bits) -> RangeInclusive<u128> {
    let head = bits.words().iter().chain(std::iter::repeat(&0)).take(BITS as usize / 8);
    let head = head.fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
    within(head, u32::try_from(bits.len()).unwrap_or(BITS))
}

fn within(head: u128, known: u32) -> RangeInclusive<u128> {
    // A longer EPC is hashed from there on.
    let known = if known > KEPT && is_long(head) { KEPT } else { known.min(BITS) };
    let rest = (1_u128 << (BITS - known)) - 1;
    head & !rest..=head | rest
}

/// May a tag with this beginning have more than 96 bits?
fn is_long(head: u128) -> bool {
    let header = (head >> (BITS - 8)) as u8;
    Scheme::by_header(header).is_none_or(|scheme| scheme.bits == 0 || scheme.bits > BITS as usize)
}

/// EPCs that begin with these hex digits.
fn hex_prefix(digits: &str) -> Option<RangeInclusive<u128>> {
    if digits.is_empty() || digits.len() > BITS as usize / 4 {
        return None;
    }
    let number = digits
        .bytes()
        .try_fold(0, |number, digit| Some(number << 4_u32 | u128::from(nibble(digit)?)))?;
    let known = digits.len() as u32 * 4;
    Some(within(number << (BITS - known), known))
}

impl Scheme {
    /// How many filter values there are, where there is a filter.
    fn filter_values(&self) -> Option<u32> {
        self.fields.iter().find_map(|field| match field {
            Field::Filter { bits } => Some(1 << bits),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(text: &str, tag: &str) -> bool {
        let number = number(tag.as_bytes()).unwrap();
        pattern(text).unwrap().iter().any(|range| range.contains(&number))
    }

    #[test]
    fn a_product_is_an_interval_for_each_filter_value() {
        let product = "urn:epc:idpat:sgtin:0614141.812345.*";
        // Of 96 and of 198 bits.
        let all = pattern(product).unwrap();
        assert_eq!(all.len(), 16);
        assert!(all.iter().all(|range| range.end() - range.start() == (1 << 38) - 1));
        for tag in [
            "urn:epc:tag:sgtin-96:3.0614141.812345.0",
            "urn:epc:tag:sgtin-96:0.0614141.812345.274877906943",
            "urn:epc:tag:sgtin-96:7.0614141.812345.6789",
            "urn:epc:tag:sgtin-198:3.0614141.812345.32a%2Fb",
            "3074257BF7194E4000001A85",
        ] {
            assert!(holds(product, tag), "{tag}");
            assert!(holds("urn:epc:idpat:sgtin:0614141.*.*", tag), "{tag}");
            assert!(holds("urn:epc:idpat:sgtin:0614141.*", tag), "{tag}");
            assert!(!holds("urn:epc:idpat:sgtin:0614142.*.*", tag), "{tag}");
        }
        for tag in [
            "urn:epc:tag:sgtin-96:3.0614141.812346.0",
            "urn:epc:tag:sgtin-96:3.061414.1812345.0",
            "urn:epc:tag:sgtin-198:3.0614141.812346.32a%2Fb",
            "urn:epc:tag:grai-96:3.0614141.12345.5678",
        ] {
            assert!(!holds(product, tag), "{tag}");
        }
    }

    #[test]
    fn patterns_of_one_encoding() {
        let tag = "urn:epc:tag:sgtin-96:3.0614141.812345.6789";
        let one = pattern("urn:epc:pat:sgtin-96:3.0614141.812345.*").unwrap();
        assert_eq!(one.len(), 1);
        assert!(holds("urn:epc:pat:sgtin-96:3.0614141.812345.*", tag));
        assert!(holds("urn:epc:pat:sgtin-96:*.0614141.812345.*", tag));
        assert!(holds("urn:epc:idpat:sgtin-96:0614141.812345.*", tag));
        assert_eq!(pattern("urn:epc:idpat:sgtin-96:0614141.812345.*").unwrap().len(), 8);
        assert!(!holds("urn:epc:pat:sgtin-96:2.0614141.812345.*", tag));
        assert!(holds("urn:epc:idpat:gid:31415.271828.*", "350007AB70425D4000000586"));
        assert!(holds("urn:epc:idpat:giai:0614141.*", "urn:epc:tag:giai-202:3.0614141.32a%2Fb"));
        assert!(holds("urn:epc:idpat:sscc:0614141.*", "3174257BF4499602D2000000"));
    }

    #[test]
    fn one_thing_whatever_its_tag() {
        let id = "urn:epc:id:sgtin:0614141.812345.6789";
        for tag in ["sgtin-96:3.0614141.812345.6789", "sgtin-198:1.0614141.812345.6789"] {
            assert!(holds(id, &format!("urn:epc:tag:{tag}")));
        }
        assert!(!holds(id, "urn:epc:tag:sgtin-96:3.0614141.812345.6790"));
        // A serial of letters has no place in 96 bits.
        assert_eq!(pattern("urn:epc:id:sgtin:0614141.812345.32a%2Fb").unwrap().len(), 8);
        assert_eq!(pattern("urn:epc:tag:sgtin-96:3.0614141.812345.6789").unwrap().len(), 1);
    }

    #[test]
    fn hex_digits_are_a_prefix() {
        for prefix in [
            "3074257BF7*",
            "0x3074257bf7",
            "3",
            "3074257BF7194E4000001A8",
            "3074257BF7194E4000001A85*",
        ] {
            assert!(holds(prefix, "3074257BF7194E4000001A85"), "{prefix}");
        }
        assert!(!holds("3074257BF8", "3074257BF7194E4000001A85"));
        assert!(holds(
            "3674257BF6B7A659B2C2BF10*",
            "3674257BF6B7A659B2C2BF100000000000000000000000000000"
        ));
        let whole = pattern("3074257BF7194E4000001A85").unwrap();
        assert_eq!(whole, [0x3074_257B_F719_4E40_0000_1A85..=0x3074_257B_F719_4E40_0000_1A85]);
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, words) in [
            ("urn:epc:class:lgtin:0614141.812345.L1", "ask for the product"),
            ("urn:epc:idpat:sgtin:0614141.*.5", "on to the end"),
            ("urn:epc:idpat:sgtin:0614141.81*.*", "on to the end"),
            ("urn:epc:idpat:sgtin:0614141.81234.*", "not 6 digits"),
            ("urn:epc:idpat:sgtin:06141.*.*", "not 6 to 12 digits"),
            ("urn:epc:idpat:nothing:1.2.*", "unknown scheme"),
            ("urn:epc:pat:sgtin:3.0614141.812345.*", "unknown scheme"),
            ("urn:epc:id:sgtin:0614141.812345", "between dots"),
            ("tag", "not an EPC"),
        ] {
            let error = pattern(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        /// Every prefix of a tag's digits holds the tag, however long it is.
        #[test]
        fn a_prefix_holds_the_tag(bytes in prop::collection::vec(any::<u8>(), 1..30), cut in 1_usize..24) {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            let prefix = hex.get(..cut.min(hex.len())).unwrap();
            let epc = Epc::from_bytes(&bytes).unwrap();
            let ranges = pattern(&format!("{prefix}*")).unwrap();
            prop_assert!(ranges.iter().any(|range| range.contains(&epc.to_number())));
        }
    }
}
