//! The envelope: what goes in comes out, through any sink and source, and nothing else does.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately::codec::{self, Format, Reader, Writer};
use lately::range::{RangeSpec, RangeWindow};
use lately::{AnyFilter, Digest, RestoreError, SnapshotError, Spec, Structure, Tick, WindowFilter};
use std::io::{self, Read, Write};
use support::{Chance, growable, key, time};

const OUTER: Format = Format::new(*b"\x89OUTER\r\n", 3).since(2);
const INNER: Format = Format::new(*b"\x89INNER\r\n", 1).kind(7);

/// Filters of every structure, of several tables each, and some larger than a block.
fn filters() -> Vec<AnyFilter> {
    let mut filters = Vec::new();
    for &structure in Structure::ALL {
        for keys in [20, 30_000] {
            let Some(window) = growable(structure, 600, keys) else { continue };
            let mut filter =
                Spec::new(window).fpr(0.01).structure(structure).plan().unwrap().build();
            for n in 0..300 {
                let _ = filter.observe(key(n), Tick(n));
            }
            filters.push(filter);
        }
    }
    filters
}

fn window() -> RangeWindow {
    let mut window = RangeSpec::new(time(40_000, 30_000)).plan().unwrap().build();
    (0..60_000u64).for_each(|n| window.insert(u128::from(n * 977), Tick(n)));
    window
}

/// Gives as many bytes at a time as chance has it.
struct Dripping<'a>(&'a [u8], Chance);

impl Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = [1, 9, 5_000, 1 << 20][self.1.below(4) as usize];
        let some = into.len().min(most);
        self.0.read(&mut into[..some])
    }
}

#[test]
fn a_filter_streams_the_bytes_of_its_snapshot() {
    for filter in filters() {
        let bytes = filter.snapshot();
        assert_eq!(filter.snapshot_len(), bytes.len() as u64);
        let (mut streamed, mut largest) = (Vec::new(), 0);
        let taken = filter.snapshot_to(|part| {
            largest = part.len().max(largest);
            streamed.write_all(part)
        });
        taken.unwrap();
        assert!(streamed == bytes && largest <= 1 << 16, "{} {largest}", filter.structure());
        let mut source = Dripping(&bytes, Chance(largest as u64));
        let restored = AnyFilter::restore_from(bytes.len() as u64, |into| source.read(into));
        assert!(restored.unwrap() == filter, "{}", filter.structure());
    }
}

#[test]
fn a_range_window_streams_the_bytes_of_its_snapshot() {
    let window = window();
    let (bytes, mut streamed) = (window.snapshot(), Vec::new());
    window.snapshot_to(|part| streamed.write_all(part)).unwrap();
    assert!(streamed == bytes && window.snapshot_len() == bytes.len() as u64);
    let mut source = Dripping(&bytes, Chance(1));
    let restored = RangeWindow::restore_from(bytes.len() as u64, |into| source.read(into));
    assert!(restored.unwrap().snapshot() == bytes);
}

/// All that a body can hold, envelopes and filters among it.
fn write_all(out: &mut Writer<'_>, filters: &[AnyFilter], window: &RangeWindow) {
    out.u8(1);
    out.u16(2);
    out.u32(3);
    out.u64(u64::MAX >> 1);
    out.u128(u128::MAX);
    out.f64(-0.5);
    out.flag(true);
    out.block("grün".as_bytes());
    filters.iter().for_each(|filter| filter.write(out));
    out.envelope(INNER, |out| {
        window.write(out);
        out.block(&[9; 100_000]);
    });
    out.words(&[5, 6, 7]);
    out.bytes(b"end");
}

/// Reads it again; gives the lengths of the blocks.
fn read_all(
    input: &mut Reader<'_>,
    filters: &[AnyFilter],
    window: &RangeWindow,
) -> Result<usize, SnapshotError> {
    let same = |is: bool| is.then_some(()).ok_or(SnapshotError::Invalid("another value"));
    same(input.version() == 3)?;
    same((input.u8()?, input.u16()?, input.u32()?) == (1, 2, 3))?;
    same((input.count()?, input.u128()?) == (u64::MAX >> 1, u128::MAX))?;
    same(input.f64()? == -0.5 && input.flag()? && input.text()? == "grün")?;
    for filter in filters {
        same(AnyFilter::read(input)? == *filter)?;
    }
    let len = input.envelope(INNER, |input| {
        same(RangeWindow::read(input)?.snapshot() == window.snapshot())?;
        Ok::<_, SnapshotError>(input.block()?.len())
    })?;
    same(input.words(Some(3))? == [5, 6, 7] && input.left() == 3)?;
    same(input.bytes(Some(3))? == b"end")?;
    Ok(len)
}

#[test]
fn envelopes_lie_within_envelopes() {
    let (filters, window) = (filters(), window());
    let body = |out: &mut Writer<'_>| write_all(out, &filters, &window);
    let bytes = codec::to_vec(OUTER, body);
    assert_eq!(codec::length(body), bytes.len() as u64);
    let mut source = Dripping(&bytes, Chance(2));
    let read = codec::read(
        OUTER,
        bytes.len() as u64,
        |into| source.read(into),
        |input| read_all(input, &filters, &window),
    );
    assert_eq!(read.unwrap(), 100_000);
}

/// Wherever it is cut off or damaged, also within what it holds, that is what is said.
#[test]
fn damage_anywhere_is_said_to_be_damage() {
    let filters = &filters()[..3];
    let window = RangeSpec::new(time(40, 30)).plan().unwrap().build();
    let mut bytes = codec::to_vec(OUTER, |out| write_all(out, filters, &window));
    let read =
        |bytes: &[u8]| codec::from_slice(OUTER, bytes, |input| read_all(input, filters, &window));
    let mut chance = Chance(3);
    for _ in 0..3_000 {
        let bit = chance.below((bytes.len() as u64 - 20) * 8) as usize + 20 * 8;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&bytes).unwrap_err(), SnapshotError::Checksum, "{bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    for _ in 0..1_000 {
        let len = chance.below(bytes.len() as u64) as usize;
        let error = read(&bytes[..len]).unwrap_err();
        let cut = matches!(error, SnapshotError::Foreign | SnapshotError::Length { .. });
        assert!(cut, "{len} {error}");
    }
    assert_eq!(read(&bytes).unwrap(), 100_000);
}

#[test]
fn a_source_that_ends_early_is_cut_off() {
    let bytes = codec::to_vec(OUTER, |out| out.bytes(&[1; 300_000]));
    for end in [0, 5, 19, 20, 100, 70_000, bytes.len() - 1] {
        let mut source = &bytes[..end];
        let read = codec::read(
            OUTER,
            bytes.len() as u64,
            |into| source.read(into),
            |input| input.bytes(Some(300_000)),
        );
        let expected = bytes.len() as u64;
        let length = SnapshotError::Length { expected, found: end as u64 };
        match read.unwrap_err() {
            RestoreError::Content(error) => assert_eq!(error, length),
            RestoreError::Source(error) => panic!("{error}"),
        }
    }
}

#[test]
fn errors_of_sinks_and_sources_come_back_as_they_are() {
    let filter = &filters()[1];
    let bytes = filter.snapshot();
    for after in [0, 1, 2, 5] {
        let mut calls = 0;
        let result = filter.snapshot_to(|_| {
            calls += 1;
            if calls > after { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
        });
        // A sink that has failed is left alone.
        match result {
            Ok(()) => assert!(calls <= after),
            Err(error) => assert_eq!((error.raw_os_error(), calls), (Some(28), after + 1)),
        }
        let (mut calls, mut source) = (0, &bytes[..]);
        let result = AnyFilter::restore_from(bytes.len() as u64, |into| {
            calls += 1;
            let few = into.len().min(3_000);
            if calls > after {
                Err(io::Error::from_raw_os_error(5))
            } else {
                source.read(&mut into[..few])
            }
        });
        match result.unwrap_err() {
            RestoreError::Source(error) => {
                assert_eq!((error.raw_os_error(), calls), (Some(5), after + 1));
            }
            RestoreError::Content(error) => panic!("{error}"),
        }
    }
}

/// No memory is taken for what the bytes do not back up, whatever they announce.
#[test]
fn what_is_announced_must_be_there() {
    for len in [1u64 << 40, 1 << 60, u64::MAX] {
        let bytes = codec::to_vec(OUTER, |out| out.u64(len));
        let block = codec::from_slice(OUTER, &bytes, |input| input.block());
        assert!(matches!(block, Err(SnapshotError::Invalid(_))));
        let words = codec::from_slice(OUTER, &bytes, |input| {
            let words = usize::try_from(input.u64()?).ok();
            input.words(words).map(|words| words.len())
        });
        assert!(matches!(words, Err(SnapshotError::Invalid(_))));
        let mut outer = codec::to_vec(OUTER, |out| out.envelope(INNER, |out| out.u64(1)));
        outer[20 + 12..20 + 20].copy_from_slice(&len.to_le_bytes());
        let sum = xxhash_rust::xxh3::xxh3_64(&outer[..outer.len() - 8]);
        let end = outer.len() - 8;
        outer[end..].copy_from_slice(&sum.to_le_bytes());
        let inner =
            codec::from_slice(OUTER, &outer, |input| input.envelope(INNER, |input| input.u64()));
        assert!(matches!(inner, Err(SnapshotError::Length { .. })), "{inner:?}");
    }
}

#[test]
fn formats_are_known_by_magic_version_and_kind() {
    let bytes = codec::to_vec(INNER, |out| out.u8(4));
    assert_eq!(&bytes[..12], b"\x89INNER\r\n\x01\0\x07\0");
    assert!(INNER.begins(&bytes) && !OUTER.begins(&bytes));
    assert_eq!((INNER.version_in(&bytes), INNER.version_in(&bytes[..9])), (Some(1), None));
    let read = |format| codec::from_slice(format, &bytes, |input| input.u8());
    assert_eq!(read(INNER), Ok(4));
    assert_eq!(read(OUTER), Err(SnapshotError::Foreign));
    assert_eq!(read(INNER.kind(8)), Err(SnapshotError::Foreign));
    assert!(matches!(read(INNER.kind(0)), Err(SnapshotError::Invalid(_))));
    let later = Format::new(*b"\x89INNER\r\n", 3).kind(7);
    assert_eq!(read(later.since(1)), Ok(4));
    assert_eq!(read(later.since(2)), Err(SnapshotError::Version { found: 1, newest: 3 }));
    // All of the body must be read.
    let unread = codec::from_slice(INNER, &bytes, |_| Ok::<_, SnapshotError>(()));
    assert!(matches!(unread, Err(SnapshotError::Invalid(_))));
}

/// Magic, version, body, and the low half of the XXH3-128 of all before.
#[test]
fn what_has_no_envelope_is_read_as_well() {
    for body in [vec![], vec![8; 3], vec![8; 200_000]] {
        let mut bytes = [&b"\x89OUTER\r\n\x02\0"[..], &body].concat();
        let sum = lately::Digester::new(0).digest(&bytes).lo();
        bytes.extend(sum.to_le_bytes());
        let read = |bytes: &[u8]| {
            let (len, mut source) = (bytes.len() as u64, bytes);
            codec::read_unframed(
                OUTER,
                len,
                |into| source.read(into),
                |input| {
                    assert_eq!(input.version(), 2);
                    let left = input.left() as usize;
                    input.bytes(Some(left))
                },
            )
        };
        assert_eq!(read(&bytes).unwrap(), body);
        for at in [0, 9, 12, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert!(matches!(read(&bytes), Err(RestoreError::Content(_))));
            bytes[at] ^= 1;
        }
        for len in 0..bytes.len().min(30) {
            assert!(matches!(read(&bytes[..len]), Err(RestoreError::Content(_))));
        }
    }
}

/// What a body makes of damaged bytes is its own error, but that they are damaged goes before.
#[test]
fn a_body_has_errors_of_its_own() {
    #[derive(Debug, PartialEq)]
    enum Wrong {
        Snapshot(SnapshotError),
        Odd(u64),
    }
    impl From<SnapshotError> for Wrong {
        fn from(error: SnapshotError) -> Self {
            Self::Snapshot(error)
        }
    }
    let even = |input: &mut Reader<'_>| match input.u64()? {
        odd if odd % 2 == 1 => Err(Wrong::Odd(odd)),
        even => Ok(Digest::new(even, 0)),
    };
    let mut bytes = codec::to_vec(INNER, |out| out.u64(7));
    assert_eq!(codec::from_slice(INNER, &bytes, even), Err(Wrong::Odd(7)));
    bytes[21] = 1;
    let damaged = Err(Wrong::Snapshot(SnapshotError::Checksum));
    assert_eq!(codec::from_slice(INNER, &bytes, even), damaged);
}
