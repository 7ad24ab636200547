//! Any bytes in any format: every byte is in exactly one record, in order, and the records are the
//! same however the input is cut into chunks.
#![no_main]

use lately::Digester;
use lately_stream::options::{Format, KeyFormat, Options, read_time};
use lately_stream::read::Parser;
use lately_stream::record::{Batch, Kind, Time};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use libfuzzer_sys::{arbitrary, fuzz_target};
use std::io::Cursor;

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    format: u8,
    fields: u8,
    epc: bool,
    time: bool,
    no_header: bool,
    max_line: u16,
    chunk: u16,
    bytes: Vec<u8>,
}

type Seen = (Vec<u8>, Kind, u64, u64, Option<Time>);

fn parse(input: &Input, chunk: usize) -> Option<Vec<Seen>> {
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default()).ok()?;
    let mut options = Options::new(Digester::new(0), read_time(stamps));
    options.format = Format::NAMES[usize::from(input.format) % Format::NAMES.len()].1;
    options.fields_wanted = true;
    options.key_format = if input.epc { KeyFormat::Epc } else { KeyFormat::Text };
    options.no_header = input.no_header;
    options.max_line = usize::from(input.max_line).max(1);
    options.max_document = 4 * options.max_line;
    options.chunk = chunk.max(1);
    options.key = match input.fields % 5 {
        0 => vec![],
        1 => vec!["1".into()],
        2 => vec!["a".into()],
        3 => vec!["/a/b".into(), "c".into()],
        _ => vec![".".into()],
    };
    if input.time {
        options.time = match input.fields {
            128.. => vec!["d".into(), "t".into()],
            fields if fields % 5 == 1 => vec!["2".into()],
            _ => vec!["t".into()],
        };
    }
    let mut source =
        Source::from_reader("fuzz", Box::new(Cursor::new(input.bytes.clone())), options);
    let (mut parser, mut batch, mut seen) = (Parser::new(), Batch::default(), Vec::new());
    loop {
        match source.next_chunk(Vec::new()) {
            Ok(Some(chunk)) => {
                parser.parse(chunk, &mut batch);
                check(&batch);
                seen.extend(batch.records.iter().map(|record| {
                    let digest = record.digest;
                    let bytes = batch.bytes_of(record).to_vec();
                    (bytes, record.kind, digest.hi(), digest.lo(), record.time)
                }));
            }
            Ok(None) => return Some(seen),
            // What a header lacks is said once; what comes after it is another matter.
            Err(_) => return None,
        }
    }
}

fn check(batch: &Batch) {
    let mut at = 0;
    for record in &batch.records {
        assert!(record.start <= record.end && record.start as usize >= at);
        assert!(batch.detached || record.start as usize == at);
        at = record.end as usize;
    }
    assert!(batch.detached || at == batch.bytes.len());
    for (index, _) in &batch.faults {
        assert!((*index as usize) < batch.records.len());
    }
}

fuzz_target!(|input: Input| {
    let whole = parse(&input, 1 << 20);
    let cut = parse(&input, usize::from(input.chunk % 64));
    assert_eq!(whole, cut);
});
