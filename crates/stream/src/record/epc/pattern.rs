//! EPCs as numbers, and the intervals of numbers that classes of them are.

use super::bits::Bits;
use super::schemes::{COMPANY_BITS, Field, Scheme};
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

/// The number of the tag that `text` spells, or of the thing that it names as `urn:epc:id:…`; `None`
/// if it is no EPC.
pub(crate) fn number(text: &[u8]) -> Option<u128> {
    let mut bytes = Vec::with_capacity(32);
    match decode(text, &mut bytes) {
        Ok(_) => Some(of_bytes(&bytes)),
        Err(EpcError::IdUri) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            of_identity(text.get(ID.len()..)?).ok()
        }
        Err(_) => None,
    }
}

/// What the URI of an identity begins with.
const ID: &str = "urn:epc:id:";

/// See [`Epc::to_number`].
pub(super) fn of_bytes(bytes: &[u8]) -> u128 {
    let head = beginning(bytes);
    // One that is longer than its scheme was not written to the standard: a prefix of it stays one.
    if bytes.len() * 8 <= BITS as usize || !is_long(head) {
        return without_filter(head);
    }
    // What a short encoding can say is the same thing in a long one.
    let identity = uri::decode(bytes, false).ok();
    let short = identity.and_then(|uri| of_identity(uri.get(ID.len()..)?).ok());
    short.unwrap_or_else(|| hashed(head, bytes))
}

/// The number of an EPC of more bits than a number has.
fn hashed(head: u128, bytes: &[u8]) -> u128 {
    let rest = Digester::new(0).digest(bytes.get(KEPT as usize / 8..).unwrap_or_default());
    without_filter(head >> HASHED << HASHED | u128::from(rest.hi() >> (64 - HASHED)))
}

/// The first bits, filled up with zeros.
fn beginning(bytes: &[u8]) -> u128 {
    let bytes = bytes.iter().chain(std::iter::repeat(&0)).take(BITS as usize / 8);
    bytes.fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// A filter value says what kind of thing a tag is on, not which: it stands between the scheme and the
/// company, and would part every product into as many intervals as there are values.
fn without_filter(number: u128) -> u128 {
    let scheme = Scheme::by_header((number >> (BITS - 8)) as u8);
    let width = scheme.and_then(Scheme::filter).unwrap_or(0);
    number & !(((1 << width) - 1) << (BITS - 8 - width))
}

/// The number of a thing: by the shortest encoding that it fits into.
fn of_identity(text: &str) -> Result<u128, EpcError> {
    let (name, parts) = text.split_once(':').unwrap_or((text, ""));
    let mut fault = EpcError::UnknownScheme(name.into());
    for (at, scheme) in Scheme::of_identity(name).enumerate() {
        match scheme.encode_identity(parts, false) {
            Ok(bits) if bits.len() <= BITS as usize => {
                return Ok(without_filter(beginning(bits.words())));
            }
            Ok(bits) => return Ok(hashed(beginning(bits.words()), bits.words())),
            // A serial of letters has no place in a short encoding, and the like.
            Err(error) if at == 0 => fault = error,
            Err(_) => {}
        }
    }
    Err(fault)
}

/// Intervals of numbers that hold every tag which fits `text`, in no particular order:
///
/// - `urn:epc:idpat:sgtin:COMPANY.ITEM.*`: all tags of an identity, in each encoding it has. `*`
///   stands at the end only; `urn:epc:id:` names one thing.
/// - `urn:epc:pat:sgtin-96:*.COMPANY.ITEM.*`, `urn:epc:idpat:sgtin-96:COMPANY.ITEM.*`: those of one
///   encoding. Its filter value must be open, as numbers do not have it.
/// - `3034257BF7*`: those that begin with these hex digits, whatever their filter value; the star may be
///   left out.
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
    if let Some(rest) = after("urn:epc:idpat:") {
        return identity(rest);
    }
    if let Some(rest) = after("urn:epc:pat:") {
        let (name, parts) = rest.split_once(':').unwrap_or((rest, ""));
        let scheme = Scheme::by_name(name).ok_or_else(|| EpcError::UnknownScheme(name.into()))?;
        let parts = match (scheme.filter(), parts.split_once('.')) {
            (Some(_), Some(("*", parts))) => parts,
            (Some(_), _) => {
                return Err(EpcError::Pattern(format!(
                    "tags are not told apart by their filter values here; write `*` for it, as in urn:epc:pat:{name}:*.{}",
                    parts.split_once('.').map_or("", |(_, rest)| rest)
                )));
            }
            (None, _) => parts,
        };
        return one(scheme, parts).map(|one| vec![one]);
    }
    let (digits, starred) = lower.strip_suffix('*').map_or((&*lower, false), |rest| (rest, true));
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    // As many as an EPC has are an EPC.
    if (starred || digits.len() < BITS as usize / 4)
        && let Some(prefix) = hex_prefix(digits)
    {
        return Ok(prefix);
    }
    match number(text.as_bytes()) {
        Some(number) => Ok(vec![number..=number]),
        None => Err(fault(text)),
    }
}

/// What is wrong with a text that is no EPC.
pub(crate) fn fault(text: &str) -> EpcError {
    match Epc::parse(text.as_bytes()) {
        Err(EpcError::IdUri) => {
            let identity = text.trim().get(ID.len()..).unwrap_or_default();
            of_identity(identity).err().unwrap_or(EpcError::NotAnEpc)
        }
        Err(error) => error,
        Ok(_) => EpcError::NotAnEpc,
    }
}

/// All encodings of an identity, or one of them by its name.
fn identity(text: &str) -> Result<Vec<RangeInclusive<u128>>, EpcError> {
    let (name, parts) = text.split_once(':').unwrap_or((text, ""));
    if !parts.contains('*') {
        return of_identity(text).map(|number| vec![number..=number]);
    }
    let (mut all, mut fault) = (Vec::new(), None);
    for scheme in Scheme::of_identity(name) {
        match one(scheme, parts) {
            Ok(found) => all.push(found),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    if all.is_empty() {
        Err(fault.unwrap_or(EpcError::UnknownScheme(name.into())))
    } else {
        Ok(all)
    }
}

/// The interval of one encoding: all tags with these components, the last of which may be open.
fn one(scheme: &'static Scheme, parts: &str) -> Result<RangeInclusive<u128>, EpcError> {
    let open = parts.find('*').unwrap_or(parts.len());
    let (known, rest) = parts.split_at(open);
    let whole = known.is_empty() || known.ends_with('.') || rest.is_empty();
    if !whole || rest.split('.').any(|part| !matches!(part, "*" | "")) {
        return Err(EpcError::Pattern(
            "`*` stands for all fields from one on to the end, as in sgtin:0614141.812345.*".into(),
        ));
    }
    let known = if rest.is_empty() { known } else { known.strip_suffix('.').unwrap_or(known) };
    let bits = scheme.encode_identity(known, !rest.is_empty())?;
    let known = u32::try_from(bits.len()).unwrap_or(BITS);
    Ok(within(without_filter(beginning(bits.words())), known))
}

/// All numbers of EPCs of which so many bits are known.
fn within(head: u128, known: u32) -> RangeInclusive<u128> {
    // A longer EPC is hashed from there on.
    let known = if known > KEPT && is_long(head) { KEPT } else { known.min(BITS) };
    let rest = (1_u128 << (BITS - known)) - 1;
    head & !rest..=head | rest
}

/// May a tag with this beginning have more than 96 bits?
fn is_long(head: u128) -> bool {
    let header = (head >> (BITS - 8)) as u8;
    Scheme::by_header(header).is_none_or(Scheme::is_long)
}

/// Intervals that hold the EPCs which begin with these hex digits.
fn hex_prefix(digits: &str) -> Option<Vec<RangeInclusive<u128>>> {
    if digits.is_empty() || digits.len() > BITS as usize / 4 {
        return None;
    }
    let number = digits
        .bytes()
        .try_fold(0, |number, digit| Some(number << 4_u32 | u128::from(nibble(digit)?)))?;
    let known = digits.len() as u32 * 4;
    let head = number << (BITS - known);
    let mut all = vec![within(without_filter(head), known)];
    // What a long encoding says may have the number of a shorter one: the header is another there, and
    // the same from there to the end of the company prefix.
    let begins = |scheme: &&Scheme| {
        let header = u32::from(scheme.header) << 24;
        scheme.is_long() && (header ^ (head >> (BITS - 32)) as u32) >> (32 - known.min(8)) == 0
    };
    for scheme in Scheme::all().filter(begins) {
        let partition = (head >> (BITS - PARTITION)) as usize & 7;
        let same = match COMPANY_BITS.get(partition) {
            Some(company) if known >= PARTITION => known.min(PARTITION + company),
            _ => 8,
        };
        let shorter = |other: &&Scheme| other.header < scheme.header;
        for short in Scheme::of_identity(scheme.identity()).filter(shorter) {
            let rest = head & ((1 << (BITS - 8)) - 1);
            let head = u128::from(short.header) << (BITS - 8) | rest;
            all.push(within(without_filter(head), same));
        }
    }
    Some(all)
}

/// Where the partition value ends, behind header and filter value.
const PARTITION: u32 = 14;

impl Scheme {
    /// Has it more bits than a number has, or may it have?
    fn is_long(&self) -> bool {
        self.bits == 0 || self.bits > BITS as usize
    }

    /// The width of the filter value, where there is one.
    fn filter(&self) -> Option<u32> {
        self.fields.iter().find_map(|field| match field {
            Field::Filter { bits } => Some(*bits),
            _ => None,
        })
    }

    /// The bits of a thing, with a filter value of 0. Where it may end early, `open`, no component at
    /// all is the scheme alone.
    fn encode_identity(&self, parts: &str, open: bool) -> Result<Bits, EpcError> {
        let filter = self.filter().map(|_| "0");
        let components = self.components() - usize::from(filter.is_some());
        let parts = parts.splitn(components, '.').filter(|part| !(open && part.is_empty()));
        uri::encode_parts(self, filter.into_iter().chain(parts), open)
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
    fn a_product_is_an_interval_of_each_encoding() {
        let product = "urn:epc:idpat:sgtin:0614141.812345.*";
        // Of 96 and of 198 bits.
        let all = pattern(product).unwrap();
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|range| range.end() - range.start() == (1 << 38) - 1));
        for tag in [
            "urn:epc:tag:sgtin-96:3.0614141.812345.0",
            "urn:epc:tag:sgtin-96:0.0614141.812345.274877906943",
            "urn:epc:tag:sgtin-96:7.0614141.812345.6789",
            "urn:epc:tag:sgtin-198:3.0614141.812345.32a%2Fb",
            "urn:epc:tag:sgtin-198:3.0614141.812345.0007",
            "urn:epc:id:sgtin:0614141.812345.6789",
            "urn:epc:id:sgtin:0614141.812345.32a%2Fb",
            "3074257BF7194E4000001A85",
        ] {
            for pattern in [
                product,
                "urn:epc:idpat:sgtin:0614141.*.*",
                "urn:epc:idpat:sgtin:0614141.*",
                "urn:epc:idpat:sgtin:*.*.*",
                "URN:EPC:IDPAT:sgtin:*",
            ] {
                assert!(holds(pattern, tag), "{pattern} {tag}");
            }
            assert!(!holds("urn:epc:idpat:sgtin:0614142.*.*", tag), "{tag}");
        }
        for tag in [
            "urn:epc:tag:sgtin-96:3.0614141.812346.0",
            "urn:epc:tag:sgtin-96:3.061414.1812345.0",
            "urn:epc:tag:sgtin-198:3.0614141.812346.32a%2Fb",
            "urn:epc:tag:grai-96:3.0614141.12345.5678",
            "urn:epc:id:sgtin:0614141.812344.6789",
        ] {
            assert!(!holds(product, tag), "{tag}");
        }
    }

    #[test]
    fn patterns_of_one_encoding() {
        let tag = "urn:epc:tag:sgtin-96:3.0614141.812345.6789";
        for text in [
            "urn:epc:pat:sgtin-96:*.0614141.812345.*",
            "urn:epc:pat:sgtin-96:*.*.*.*",
            "urn:epc:idpat:sgtin-96:0614141.812345.*",
        ] {
            assert_eq!(pattern(text).unwrap().len(), 1, "{text}");
            assert!(holds(text, tag), "{text}");
            assert!(!holds(text, "urn:epc:tag:sgtin-198:3.0614141.812345.32a%2Fb"), "{text}");
        }
        assert!(holds("urn:epc:idpat:gid:31415.271828.*", "350007AB70425D4000000586"));
        assert!(holds("urn:epc:pat:gid-96:31415.271828.*", "350007AB70425D4000000586"));
        assert!(holds("urn:epc:idpat:giai:0614141.*", "urn:epc:tag:giai-202:3.0614141.32a%2Fb"));
        assert!(holds("urn:epc:idpat:sscc:0614141.*", "3174257BF4499602D2000000"));
        assert!(holds("urn:epc:idpat:adi:35962.*", "3B0E0CF5E76C9047759AD00373DC7602E7200000"));
    }

    #[test]
    fn one_thing_has_one_number_whatever_its_tag() {
        let of = |text: &str| number(text.as_bytes()).unwrap();
        let id = "urn:epc:id:sgtin:0614141.812345.6789";
        for tag in [
            "sgtin-96:3.0614141.812345.6789",
            "sgtin-96:0.0614141.812345.6789",
            "sgtin-198:1.0614141.812345.6789",
        ] {
            assert_eq!(of(&format!("urn:epc:tag:{tag}")), of(id), "{tag}");
        }
        assert_ne!(of("urn:epc:tag:sgtin-96:3.0614141.812345.6790"), of(id));
        // Its leading zeros make it another serial, for which there is no short encoding.
        assert_ne!(of("urn:epc:tag:sgtin-198:3.0614141.812345.06789"), of(id));
        let letters = ["id:sgtin:", "tag:sgtin-198:5."]
            .map(|head| of(&format!("urn:epc:{head}0614141.812345.32a%2Fb")));
        assert_eq!(letters[0], letters[1]);
        assert_eq!(pattern(id).unwrap(), [of(id)..=of(id)]);
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
        // Without its filter value, 3.
        let whole = pattern("3074257BF7194E4000001A85").unwrap();
        assert_eq!(whole, [0x3014_257B_F719_4E40_0000_1A85..=0x3014_257B_F719_4E40_0000_1A85]);
        // An unknown scheme has none.
        let whole = pattern("E2801191A5030065F26CCBFF").unwrap();
        assert_eq!(whole, [0xE280_1191_A503_0065_F26C_CBFF..=0xE280_1191_A503_0065_F26C_CBFF]);
    }

    #[test]
    fn the_beginning_of_a_long_tag_holds_it_whatever_its_number() {
        for tag in [
            "sgtin-198:3.0614141.812345.6789",
            "sgtin-198:3.0614141.812345.32a%2Fb",
            "grai-170:1.061414112345..5678",
            "giai-202:2.0614141.5678",
            "sgln-195:3.0614141.12345.400",
            "gdti-113:3.0614141.12345.006847",
            "gdti-174:7.0614141.12345.6847",
            "cpi-var:3.0614141.98765.12345",
            "itip-212:3.0614141.812345.01.02.6789",
            "adi-var:3.35962.PQ7VZ4.M37GXB92",
        ] {
            let tag = format!("urn:epc:tag:{tag}");
            let hex = tag.parse::<Epc>().unwrap().to_hex();
            for digits in 1..=24 {
                let prefix = format!("{}*", &hex[..digits]);
                assert!(holds(&prefix, &tag), "{prefix} {tag}");
            }
        }
        assert!(!holds("36742*", "urn:epc:tag:sgtin-96:3.0514141.812345.6789"));
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
            ("urn:epc:pat:sgtin-96:3.0614141.812345.*", "sgtin-96:*.0614141.812345.*"),
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
