use super::*;
use base64::prelude::{
    BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD,
};
use proptest::prelude::*;

fn key(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut key = Vec::new();
    normalise(text.as_ref(), &mut key);
    key
}

/// Hex ↔ tag URI, and the identity.
fn pin(hex: &str, tag: &str, id: &str) {
    let epc: Epc = hex.parse().unwrap();
    assert_eq!(epc.to_hex(), hex, "hex of {tag}");
    assert_eq!(epc.to_tag_uri().as_deref(), Ok(format!("urn:epc:tag:{tag}").as_str()));
    assert_eq!(epc.to_id_uri().as_deref(), Ok(format!("urn:epc:id:{id}").as_str()));
    let back: Epc = format!("urn:epc:tag:{tag}").parse().unwrap();
    assert_eq!(back.to_hex(), hex, "encoding {tag}");
}

#[test]
fn case_K9_one_tag_one_key() {
    for spelling in [
        "b'300833b2ddd9014000000000'",
        "b\"300833b2ddd9014000000000\"",
        "300833b2ddd9014000000000",
        "300833B2DDD9014000000000",
        "0x300833B2DDD9014000000000",
        " 300833B2DDD9014000000000\r\n",
        "30 08 33 b2 dd d9 01 40 00 00 00 00",
        "3008-33b2-ddd9-0140-0000-0000",
        "MAgzst3ZAUAAAAAA",
        "333030383333623264646439303134303030303030303030",
        "b'333030383333623264646439303134303030303030303030'",
        "urn:epc:raw:96.x300833B2DDD9014000000000",
        r"b'0\x083\xb2\xdd\xd9\x01@\x00\x00\x00\x00'",
    ] {
        assert_eq!(key(spelling), key("300833b2ddd9014000000000"), "{spelling}");
        assert_eq!(key(spelling)[0], BINARY);
    }
    assert_eq!(key("4oARkaUDAGXybMv_"), key("e2801191a5030065f26ccbff"));
    assert_eq!(key("4oARkaUDAGXybMv/"), key("e2801191a5030065f26ccbff"));
    assert_eq!(key("ikUCJA=="), key("8a450224"));
    assert_eq!(key("ikUCJA"), key("8a450224"));
    assert_eq!(key("urn:epc:tag:sgtin-96:3.0614141.812345.6789"), key("3074257BF7194E4000001A85"));
}

#[test]
fn case_K9_uris() {
    pin("3074257BF7194E4000001A85", "sgtin-96:3.0614141.812345.6789", "sgtin:0614141.812345.6789");
    pin(
        "302396D12A475094A080AD3B",
        "sgtin-96:1.986572296660.2.88592133435",
        "sgtin:986572296660.2.88592133435",
    );
    pin(
        "305887668C7F5160AA3CB66F",
        "sgtin-96:2.138650.3276101.140295059055",
        "sgtin:138650.3276101.140295059055",
    );
}

#[test]
fn examples_of_the_standard() {
    pin("3174257BF4499602D2000000", "sscc-96:3.0614141.1234567890", "sscc:0614141.1234567890");
    pin("3274257BF46072000000162E", "sgln-96:3.0614141.12345.5678", "sgln:0614141.12345.5678");
    pin("3374257BF40C0E400000162E", "grai-96:3.0614141.12345.5678", "grai:0614141.12345.5678");
    pin("3474257BF40000000000162E", "giai-96:3.0614141.5678", "giai:0614141.5678");
    pin("2D74257BF4499602D2000000", "gsrn-96:3.0614141.1234567890", "gsrn:0614141.1234567890");
    pin("2E74257BF4499602D2000000", "gsrnp-96:3.0614141.1234567890", "gsrnp:0614141.1234567890");
    pin("2C74257BF46072000000162E", "gdti-96:3.0614141.12345.5678", "gdti:0614141.12345.5678");
    pin("3C74257BF400C0E680003039", "cpi-96:3.0614141.98765.12345", "cpi:0614141.98765.12345");
    pin("350007AB70425D4000000586", "gid-96:31415.271828.1414", "gid:31415.271828.1414");
    pin("2F320434147455900000162E", "usdod-96:3.CAGEY.5678", "usdod:CAGEY.5678");
    pin(
        "3674257BF6B7A659B2C2BF100000000000000000000000000000",
        "sgtin-198:3.0614141.712345.32a%2Fb",
        "sgtin:0614141.712345.32a%2Fb",
    );
    pin(
        "3974257BF46072CD9615F8800000000000000000000000000000",
        "sgln-195:3.0614141.12345.32a%2Fb",
        "sgln:0614141.12345.32a%2Fb",
    );
    pin(
        "3774257BF40C0E59B2C2BF10000000000000000000000000"[..44].into(),
        "grai-170:3.0614141.12345.32a%2Fb",
        "grai:0614141.12345.32a%2Fb",
    );
    pin(
        "3874257BF59B2C2BF10000000000000000000000000000000000",
        "giai-202:3.0614141.32a%2Fb",
        "giai:0614141.32a%2Fb",
    );
    pin(
        "3D74257BF75411DEF6B4CC00000003039000",
        "cpi-var:3.0614141.5PQ7%2FZ43.12345",
        "cpi:0614141.5PQ7%2FZ43.12345",
    );
    pin(
        "3B0E0CF5E76C9047759AD00373DC7602E7200000",
        "adi-var:3.35962.PQ7VZ4.M37GXB92",
        "adi:35962.PQ7VZ4.M37GXB92",
    );
    pin(
        "3A74257BF460720000000007AE7F8000",
        "gdti-113:3.0614141.12345.006847",
        "gdti:0614141.12345.006847",
    );
}

/// A company prefix of 12 digits leaves no digit for a location, and a serial may hold dots.
#[test]
fn odd_fields() {
    let epc: Epc = "urn:epc:tag:sgln-96:3.061414112345..400".parse().unwrap();
    assert_eq!(epc.to_id_uri().unwrap(), "urn:epc:id:sgln:061414112345..400");
    let epc: Epc = "urn:epc:tag:sgtin-198:3.0614141.712345.a.b.c".parse().unwrap();
    assert_eq!(epc.to_tag_uri().unwrap(), "urn:epc:tag:sgtin-198:3.0614141.712345.a.b.c");
    let epc: Epc = "urn:epc:tag:adi-var:3.35962..%23M37".parse().unwrap();
    assert_eq!(epc.to_tag_uri().unwrap(), "urn:epc:tag:adi-var:3.35962..%23M37");
    let epc: Epc = "URN:EPC:TAG:SGCN-96:4.4012345.67890.04711".parse().unwrap();
    assert_eq!(epc.to_id_uri().unwrap(), "urn:epc:id:sgcn:4012345.67890.04711");
}

/// A scheme printed to the byte (200 bits for 198) is the tag that is printed to the word.
#[test]
fn last_word() {
    let whole = "3674257BF6B7A659B2C2BF100000000000000000000000000000";
    assert_eq!(key(whole), key(&whole[..50]));
    assert_ne!(key("3074257BF7194E4000001A"), key("3074257BF7194E4000001A00"));
    assert_eq!(
        key("urn:epc:raw:208.x3674257BF6B7A659B2C2BF100000000000000000000000000000"),
        key(whole)
    );
    // A length that is no multiple of four: the digits are one number.
    assert_eq!(
        key("urn:epc:raw:198.x0D9D095EFDADE9966CB0AFC400000000000000000000000000"),
        key(whole)
    );
    assert_eq!(key("urn:epc:raw:96.1"), key("000000000000000000000001"));
    assert_eq!(key("urn:epc:raw:32.xA1.x8A450224"), key("8a450224"));
}

#[test]
fn what_is_no_epc_is_its_own_text() {
    for text in [
        "",
        "Pallet 17",
        "urn:epc:id:sgtin:0614141.812345.6789",
        "abc",
        "12-34",
        "2020-01-01",
        "0x",
        "urn:epc:tag:sgtin-96:3.0614141.812345",
        "urn:epc:raw:8.xFFF",
        "ä",
        "b'",
        "b''",
        "b'\\'",
        "=",
        "====",
        "'",
        "\"\"",
        "urn:epc:raw:",
        "urn:epc:raw:99999999999.x0",
        "-",
        "--",
        ":::::",
    ] {
        let mut expected = vec![TEXT];
        expected.extend_from_slice(text.as_bytes());
        assert_eq!(key(text), expected, "{text}");
    }
    assert_eq!(key(" Pallet 17 "), key("Pallet 17"));
    assert_eq!(key([0xFF, 0xFE]), [TEXT, 0xFF, 0xFE]);
    // Longer than any tag.
    assert_eq!(key("ab".repeat(63))[0], TEXT);
    assert_eq!(key("ab".repeat(62))[0], BINARY);
    // Appends, and leaves what was there.
    let mut out = b"before".to_vec();
    assert!(normalise(b"0xABCD", &mut out));
    assert_eq!(out, b"beforeE\xAB\xCD");
}

#[test]
fn errors_say_what_is_expected() {
    let error = |text: &str| Epc::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        error("urn:epc:tag:sgtin-96:3.0614141.81234.6789"),
        "sgtin-96: item reference: \"81234\" is not 6 digits, because company prefix and item \
         reference have 13 together"
    );
    assert_eq!(
        error("urn:epc:tag:sgtin-96:3.0614141.812345"),
        "sgtin-96: has 4 components between dots, not 3"
    );
    assert_eq!(
        error("urn:epc:tag:sgtin-96:8.0614141.812345.6789"),
        "sgtin-96: filter: \"8\" is not a number from 0 to 7 without leading zeros"
    );
    assert!(error("urn:epc:tag:sgtin-64:3.1.1").starts_with("unknown scheme \"sgtin-64\""));
    assert!(error("hello").starts_with("not an EPC: expected hex"));
    let epc: Epc = "e2801191a5030065f26ccbff".parse().unwrap();
    assert!(epc.to_tag_uri().unwrap_err().to_string().contains("header E2"));
    let epc: Epc = "3074257BF7194E4000001A850000".parse().unwrap();
    assert_eq!(
        epc.to_tag_uri().unwrap_err().to_string(),
        "sgtin-96: has 96 bits, in whole 16-bit words, not 112"
    );
    let epc: Epc = "307C257BF7194E4000001A85".parse().unwrap();
    assert!(epc.to_tag_uri().unwrap_err().to_string().contains("partition"));
}

fn company() -> impl Strategy<Value = String> {
    "[0-9]{6,12}"
}

fn serial7(max: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            "[0-9A-Za-z_!'()*+,.:;=-]",
            proptest::sample::select(vec!["%22", "%25", "%26", "%2F", "%3C", "%3E", "%3F"])
                .prop_map(String::from)
        ],
        1..=max,
    )
    .prop_map(|parts| parts.concat())
}

/// Company prefix and reference with so many digits together.
fn pair(total: usize) -> impl Strategy<Value = String> {
    (company(), "[0-9]{13}").prop_map(move |(company, digits)| {
        let reference = &digits[..total - company.len()];
        format!("{company}.{reference}")
    })
}

/// Company prefix and a number or text that fits beside it.
fn open_pair(numeric: bool, max: usize) -> impl Strategy<Value = String> {
    (company(), 0u64..2048, "[0-9A-Z]{24}", 1usize..=24).prop_map(move |(c, n, text, len)| {
        let reference =
            if numeric { (n % 1000).to_string() } else { text[..len.min(max - c.len())].into() };
        format!("{c}.{reference}")
    })
}

fn tag() -> impl Strategy<Value = String> {
    let serial = |bits: u32| 0..1u64 << bits;
    prop_oneof![
        (0..8u8, pair(13), serial(38)).prop_map(|(f, p, s)| format!("sgtin-96:{f}.{p}.{s}")),
        (0..8u8, pair(13), serial7(20)).prop_map(|(f, p, s)| format!("sgtin-198:{f}.{p}.{s}")),
        (0..8u8, pair(17)).prop_map(|(f, p)| format!("sscc-96:{f}.{p}")),
        (0..8u8, pair(12), serial(41)).prop_map(|(f, p, s)| format!("sgln-96:{f}.{p}.{s}")),
        (0..8u8, pair(12), serial7(20)).prop_map(|(f, p, s)| format!("sgln-195:{f}.{p}.{s}")),
        (0..8u8, pair(12), serial(38)).prop_map(|(f, p, s)| format!("grai-96:{f}.{p}.{s}")),
        (0..8u8, pair(12), serial7(16)).prop_map(|(f, p, s)| format!("grai-170:{f}.{p}.{s}")),
        (0..8u8, open_pair(true, 0)).prop_map(|(f, p)| format!("giai-96:{f}.{p}")),
        (0..8u8, open_pair(false, 30)).prop_map(|(f, p)| format!("giai-202:{f}.{p}")),
        (0..8u8, pair(17)).prop_map(|(f, p)| format!("gsrn-96:{f}.{p}")),
        (0..8u8, pair(17)).prop_map(|(f, p)| format!("gsrnp-96:{f}.{p}")),
        (0..8u8, pair(12), serial(41)).prop_map(|(f, p, s)| format!("gdti-96:{f}.{p}.{s}")),
        (0..8u8, pair(12), "[0-9]{1,17}").prop_map(|(f, p, s)| format!("gdti-113:{f}.{p}.{s}")),
        (0..8u8, pair(12), serial7(17)).prop_map(|(f, p, s)| format!("gdti-174:{f}.{p}.{s}")),
        (0..8u8, open_pair(true, 0), serial(31))
            .prop_map(|(f, p, s)| format!("cpi-96:{f}.{p}.{s}")),
        (0..8u8, open_pair(false, 30), serial(40))
            .prop_map(|(f, p, s)| format!("cpi-var:{f}.{p}.{s}")),
        (0..8u8, pair(12), "[0-9]{1,12}").prop_map(|(f, p, s)| format!("sgcn-96:{f}.{p}.{s}")),
        (0..8u8, pair(13), "[0-9]{2}\\.[0-9]{2}", serial(38))
            .prop_map(|(f, p, n, s)| format!("itip-110:{f}.{p}.{n}.{s}")),
        (0..8u8, pair(13), "[0-9]{2}\\.[0-9]{2}", serial7(20))
            .prop_map(|(f, p, n, s)| format!("itip-212:{f}.{p}.{n}.{s}")),
        (serial(28), serial(24), serial(36)).prop_map(|(m, c, s)| format!("gid-96:{m}.{c}.{s}")),
        (0..16u8, "[0-9A-HJ-NP-Z]{5,6}", serial(36))
            .prop_map(|(f, c, s)| format!("usdod-96:{f}.{c}.{s}")),
        (0..64u8, "[0-9A-HJ-NP-Z]{5,6}", "[0-9A-Z-]{0,32}", "[0-9A-Z-]{1,30}")
            .prop_map(|(f, c, p, s)| format!("adi-var:{f}.{c}.{p}.{s}")),
    ]
}

/// Separators, cases and wrappings of the same bytes.
fn spellings(bytes: &[u8]) -> Vec<String> {
    let upper: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    let lower = upper.to_lowercase();
    let spaced: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let ascii: String = lower.bytes().map(|b| format!("{b:02x}")).collect();
    let escaped: String = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
    vec![
        format!("b'{lower}'"),
        format!("b\"{upper}\""),
        format!("\"{upper}\""),
        format!("0x{lower}"),
        spaced.join(" "),
        spaced.join("-"),
        spaced.join(":"),
        BASE64_STANDARD.encode(bytes),
        BASE64_STANDARD_NO_PAD.encode(bytes),
        BASE64_URL_SAFE.encode(bytes),
        BASE64_URL_SAFE_NO_PAD.encode(bytes),
        BASE64_STANDARD.encode(&lower),
        format!("b'{ascii}'"),
        format!("b'{escaped}'"),
        format!("urn:epc:raw:{}.x{upper}", bytes.len() * 8),
        ascii,
        lower,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn tag_uris_round_trip(tag in tag()) {
        let uri = format!("urn:epc:tag:{tag}");
        let (epc, spelling) = Epc::parse(uri.as_bytes()).unwrap();
        prop_assert_eq!(spelling, Spelling::TagUri);
        prop_assert_eq!(epc.to_tag_uri().unwrap(), uri.clone());
        prop_assert!(epc.to_id_uri().is_ok());
        prop_assert_eq!(epc.as_bytes().len() % 2, 0);
        prop_assert_eq!(key(&uri), key(epc.to_hex()));
    }

    /// What the bits decode to, encodes to the same bits.
    #[test]
    fn bits_round_trip(header in 0x2Cu8..=0x41, rest in proptest::collection::vec(any::<u8>(), 11..30)) {
        let bytes: Vec<u8> = std::iter::once(header).chain(rest).collect();
        let epc = Epc::from_bytes(&bytes).unwrap();
        if let Ok(uri) = epc.to_tag_uri() {
            prop_assert_eq!(uri.parse::<Epc>().unwrap(), epc);
        }
    }

    #[test]
    fn random_96_bits_round_trip(header in proptest::sample::select(vec![0x2Cu8, 0x30, 0x32, 0x33, 0x34, 0x35]), rest: [u8; 11]) {
        let bytes: Vec<u8> = std::iter::once(header).chain(rest).collect();
        let epc = Epc::from_bytes(&bytes).unwrap();
        if let Ok(uri) = epc.to_tag_uri() {
            prop_assert_eq!(uri.parse::<Epc>().unwrap(), epc);
        }
    }

    #[test]
    fn spellings_are_one_key(words in proptest::collection::vec(any::<u16>(), 6..16)) {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        bytes[0] |= 0x80; // not all ASCII digits
        let expected = [&[BINARY], bytes.as_slice()].concat();
        for text in spellings(&bytes) {
            prop_assert_eq!(key(&text), expected.clone(), "{}", text);
        }
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let key = key(&bytes);
        prop_assert!(key[0] == BINARY || key[1..] == *bytes.trim_ascii());
        if let Ok(epc) = Epc::from_bytes(&bytes) {
            let _ = (epc.to_tag_uri(), epc.to_id_uri());
        }
    }

    #[test]
    fn any_text(text in "(b'|\"|urn:epc:(raw|tag):|0x)?(sgtin-96:|sgln-195:|adi-var:|96\\.x|[0-9]{1,3}\\.)?[0-9a-fA-F.%x:= '\\\\_-]{0,60}") {
        let key = key(&text);
        prop_assert!(key[0] == BINARY || &key[1..] == text.trim_ascii().as_bytes());
    }
}
