//! Every EPC scheme as a row of fields, and the characters the fields may hold.
//!
//! *Reference:* GS1, EPC Tag Data Standard 1.13 (2019), section 14 (binary encoding, with the
//! partition tables) and appendices A and G (character sets).

use super::EpcError;

/// One binary encoding.
#[derive(Debug)]
pub(super) struct Scheme {
    /// As in `urn:epc:tag:NAME:`; up to the dash it is the name of the pure identity.
    pub(super) name: &'static str,
    pub(super) header: u8,
    /// The bits of the whole EPC; 0 if they vary.
    pub(super) bits: usize,
    pub(super) fields: &'static [Field],
}

#[derive(Debug)]
pub(super) enum Field {
    /// What kind of object; part of the tag URI, not of the identity.
    Filter { bits: u32 },
    /// Partition value (3 bits), GS1 company prefix, and the reference its owner assigned:
    /// `bits` and `digits` (or characters) are shared by the two as the partition says.
    Company { name: &'static str, bits: u32, digits: u32, reference: Reference },
    /// A number without leading zeros.
    Number { name: &'static str, bits: u32 },
    /// A number of exactly so many digits.
    Digits { name: &'static str, bits: u32, digits: u32 },
    /// Digits whose leading zeros count, stored as the number "1" + digits.
    NumericString { name: &'static str, bits: u32, max: u32 },
    /// Characters of 7 bits, filled up with zeros.
    Text7 { name: &'static str, bits: u32 },
    /// Characters of 6 bits, ended by six zero bits.
    Text6 { name: &'static str, min: usize, max: usize },
    /// CAGE code (5 characters, after a space) or DoDAAC (6), of so many bits a character.
    Cage { width: u32 },
    /// Zeros.
    Reserved { bits: u32 },
}

/// How the reference after a company prefix is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// All its digits.
    Digits,
    /// A number without leading zeros.
    Number,
    /// As [`Field::Text7`].
    Text7,
    /// As [`Field::Text6`].
    Text6,
}

/// The bits of a company prefix of 12, 11, … 6 digits: the same in every partition table.
pub(super) const COMPANY_BITS: [u32; 7] = [40, 37, 34, 30, 27, 24, 20];

const FILTER: Field = Field::Filter { bits: 3 };

const fn company(name: &'static str, bits: u32, digits: u32) -> Field {
    Field::Company { name, bits, digits, reference: Reference::Digits }
}

const fn serial(bits: u32) -> Field {
    Field::Number { name: "serial", bits }
}

const fn text(bits: u32) -> Field {
    Field::Text7 { name: "serial", bits }
}

const fn scheme(name: &'static str, header: u8, bits: usize, fields: &'static [Field]) -> Scheme {
    Scheme { name, header, bits, fields }
}

/// Ascending by header.
static SCHEMES: [Scheme; 22] = [
    scheme("gdti-96", 0x2C, 96, &[FILTER, company("document type", 41, 12), serial(41)]),
    scheme(
        "gsrn-96",
        0x2D,
        96,
        &[FILTER, company("service reference", 58, 17), Field::Reserved { bits: 24 }],
    ),
    scheme(
        "gsrnp-96",
        0x2E,
        96,
        &[FILTER, company("service reference", 58, 17), Field::Reserved { bits: 24 }],
    ),
    scheme(
        "usdod-96",
        0x2F,
        96,
        &[Field::Filter { bits: 4 }, Field::Cage { width: 8 }, serial(36)],
    ),
    scheme("sgtin-96", 0x30, 96, &[FILTER, company("item reference", 44, 13), serial(38)]),
    scheme(
        "sscc-96",
        0x31,
        96,
        &[FILTER, company("serial reference", 58, 17), Field::Reserved { bits: 24 }],
    ),
    scheme(
        "sgln-96",
        0x32,
        96,
        &[
            FILTER,
            company("location reference", 41, 12),
            Field::Number { name: "extension", bits: 41 },
        ],
    ),
    scheme("grai-96", 0x33, 96, &[FILTER, company("asset type", 44, 12), serial(38)]),
    scheme(
        "giai-96",
        0x34,
        96,
        &[
            FILTER,
            Field::Company {
                name: "asset reference",
                bits: 82,
                digits: 25,
                reference: Reference::Number,
            },
        ],
    ),
    scheme(
        "gid-96",
        0x35,
        96,
        &[
            Field::Number { name: "general manager number", bits: 28 },
            Field::Number { name: "object class", bits: 24 },
            serial(36),
        ],
    ),
    scheme("sgtin-198", 0x36, 198, &[FILTER, company("item reference", 44, 13), text(140)]),
    scheme("grai-170", 0x37, 170, &[FILTER, company("asset type", 44, 12), text(112)]),
    scheme(
        "giai-202",
        0x38,
        202,
        &[
            FILTER,
            Field::Company {
                name: "asset reference",
                bits: 188,
                digits: 30,
                reference: Reference::Text7,
            },
        ],
    ),
    scheme(
        "sgln-195",
        0x39,
        195,
        &[
            FILTER,
            company("location reference", 41, 12),
            Field::Text7 { name: "extension", bits: 140 },
        ],
    ),
    scheme(
        "gdti-113",
        0x3A,
        113,
        &[
            FILTER,
            company("document type", 41, 12),
            Field::NumericString { name: "serial", bits: 58, max: 17 },
        ],
    ),
    scheme(
        "adi-var",
        0x3B,
        0,
        &[
            Field::Filter { bits: 6 },
            Field::Cage { width: 6 },
            Field::Text6 { name: "part number", min: 0, max: 32 },
            Field::Text6 { name: "serial", min: 1, max: 30 },
        ],
    ),
    scheme(
        "cpi-96",
        0x3C,
        96,
        &[
            FILTER,
            Field::Company {
                name: "part reference",
                bits: 51,
                digits: 15,
                reference: Reference::Number,
            },
            serial(31),
        ],
    ),
    scheme(
        "cpi-var",
        0x3D,
        0,
        &[
            FILTER,
            Field::Company {
                name: "part reference",
                bits: 0,
                digits: 30,
                reference: Reference::Text6,
            },
            serial(40),
        ],
    ),
    scheme("gdti-174", 0x3E, 174, &[FILTER, company("document type", 41, 12), text(119)]),
    scheme(
        "sgcn-96",
        0x3F,
        96,
        &[
            FILTER,
            company("coupon reference", 41, 12),
            Field::NumericString { name: "serial", bits: 41, max: 12 },
        ],
    ),
    scheme(
        "itip-110",
        0x40,
        110,
        &[
            FILTER,
            company("item reference", 44, 13),
            Field::Digits { name: "piece", bits: 7, digits: 2 },
            Field::Digits { name: "total", bits: 7, digits: 2 },
            serial(38),
        ],
    ),
    scheme(
        "itip-212",
        0x41,
        212,
        &[
            FILTER,
            company("item reference", 44, 13),
            Field::Digits { name: "piece", bits: 7, digits: 2 },
            Field::Digits { name: "total", bits: 7, digits: 2 },
            text(140),
        ],
    ),
];

impl Scheme {
    /// The scheme with this header byte.
    pub(super) fn by_header(header: u8) -> Option<&'static Scheme> {
        let first = SCHEMES[0].header;
        SCHEMES.get(usize::from(header.checked_sub(first)?))
    }

    pub(super) fn by_name(name: &str) -> Option<&'static Scheme> {
        SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name))
    }

    /// The encodings of an identity, such as `sgtin`; or one encoding by its own name.
    pub(super) fn of_identity(name: &str) -> impl Iterator<Item = &'static Scheme> {
        Self::all().filter(move |scheme| {
            scheme.identity().eq_ignore_ascii_case(name) || scheme.name.eq_ignore_ascii_case(name)
        })
    }

    /// The name of the identity that it encodes.
    pub(super) fn identity(&self) -> &'static str {
        self.name.split_once('-').map_or(self.name, |(identity, _)| identity)
    }

    pub(super) fn all() -> impl Iterator<Item = &'static Scheme> {
        SCHEMES.iter()
    }

    /// All names, for messages.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        SCHEMES.iter().map(|scheme| scheme.name)
    }

    /// Whether an EPC of so many bytes lacks just the last byte of its last 16-bit word.
    pub(super) fn lacks_a_byte(&self, bytes: usize) -> bool {
        let last = self.bits.div_ceil(8);
        bytes % 2 == 1 && (self.bits == 0 || bytes == last)
    }

    /// Components in the tag URI.
    pub(super) fn components(&self) -> usize {
        self.fields.iter().map(Field::components).sum()
    }

    pub(super) fn fault(&self, field: &'static str, reason: String) -> EpcError {
        EpcError::Field { scheme: self.name, field, reason }
    }
}

impl Field {
    fn components(&self) -> usize {
        match self {
            Field::Company { .. } => 2,
            Field::Reserved { .. } => 0,
            _ => 1,
        }
    }
}

// ---- characters ----

/// The character set of GS1 serials (table A-1).
pub(super) fn is_text7(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'!' | b'"' | b'%'..=b'/' | b':'..=b'?' | b'_')
}

/// The character set of parts (table G): its six bits are the low ones of ASCII.
pub(super) fn is_text6(c: u8) -> bool {
    c.is_ascii_digit() || c.is_ascii_uppercase() || matches!(c, b'#' | b'-' | b'/')
}

pub(super) fn is_cage(c: u8) -> bool {
    (c.is_ascii_digit() || c.is_ascii_uppercase()) && c != b'I' && c != b'O'
}

/// ASCII of a code of 6 bits; codes of 8 bits are ASCII.
pub(super) fn unfold6(code: u8, width: u32) -> u8 {
    if width == 6 && code < 0x20 { code | 0x40 } else { code }
}
