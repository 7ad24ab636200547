//! Parquet and Arrow files, in and out, against an exact program over their rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use lately::Digester;
use lately_stream::columnar::ColumnFormat;
use lately_stream::judge::class::Class;
use lately_stream::options::Options;
use lately_stream::pipeline::{Observer, Pipeline};
use lately_stream::session::{DedupSpec, Span};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use lately_stream::write::output::Output;
use lately_stream::write::report::Report;
use lately_stream::write::sink::Sink;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WITHIN: i64 = 5_000;

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lately-columns-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Undisturbed;

impl Observer for Undisturbed {
    fn progress(&mut self, _: &Report) {}

    fn stop(&self) -> bool {
        false
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A read, as the exact program sees it.
#[derive(Clone)]
struct Read {
    tag: Option<String>,
    antenna: i64,
    /// Milliseconds since 1970.
    at: Option<i64>,
    list: Vec<Option<i8>>,
}

fn reads(random: &mut Random, count: usize) -> Vec<Read> {
    let mut now = 1_700_000_000_000;
    (0..count)
        .map(|n| {
            now += random.below(200).cast_signed();
            let late = if random.below(4) == 0 { random.below(9_000).cast_signed() } else { 0 };
            Read {
                tag: (random.below(20) > 0).then(|| format!("tag-{}", random.below(60))),
                antenna: random.below(3).cast_signed(),
                at: (random.below(30) > 0 || n == 0).then_some(now - late),
                list: (0..random.below(3)).map(|n| (n > 0).then_some(n as i8)).collect(),
            }
        })
        .collect()
}

fn rows(reads: &[Read]) -> RecordBatch {
    let tags = StringArray::from_iter(reads.iter().map(|read| read.tag.as_deref()));
    let antennas = Int64Array::from_iter_values(reads.iter().map(|read| read.antenna));
    let times = TimestampMillisecondArray::from_iter(reads.iter().map(|read| read.at));
    let lists = reads.iter().map(|read| Some(read.list.iter().copied()));
    let lists = ListArray::from_iter_primitive::<Int8Type, _, _>(lists);
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("tag", Arc::new(tags), true),
        ("antenna", Arc::new(antennas), false),
        ("t", Arc::new(times.with_timezone("UTC")), true),
        ("list", Arc::new(lists), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The classes of the reads, by the law: the key is tag and antenna, the lateness the window.
fn exact(reads: &[Read]) -> Vec<Class> {
    let mut clock: Option<i64> = None;
    let mut judged: Vec<(&str, i64, i64)> = Vec::new();
    let mut classes = Vec::new();
    for read in reads {
        let newest = clock.max(read.at);
        let is_late = read.at.zip(newest).is_some_and(|(at, newest)| at < newest - WITHIN);
        clock = newest;
        let Some(tag) = &read.tag else {
            classes.push(Class::KeyMissing);
            continue;
        };
        if is_late {
            classes.push(Class::Late);
            continue;
        }
        // Without a time, by when it arrives.
        let at = read.at.or(clock).unwrap();
        let is_like = |&(other, antenna, then): &(&str, i64, i64)| {
            other == tag && antenna == read.antenna && (at - then).abs() <= WITHIN
        };
        let seen = judged.iter().rev().any(is_like);
        judged.push((tag, read.antenna, at));
        classes.push(if seen { Class::Duplicate } else { Class::Fresh });
    }
    classes
}

fn write(path: &Path, format: ColumnFormat, batches: &[RecordBatch]) {
    let (file, schema) = (File::create(path).unwrap(), batches[0].schema());
    match format {
        ColumnFormat::Parquet => {
            let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.close().unwrap();
        }
        ColumnFormat::Arrow => {
            let mut writer = FileWriter::try_new(file, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
}

fn read(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap();
    let (schema, batches): (SchemaRef, Vec<_>) = match ColumnFormat::of_file(path.to_str().unwrap())
    {
        Some(ColumnFormat::Parquet) => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            (Arc::clone(builder.schema()), builder.build().unwrap().map(Result::unwrap).collect())
        }
        Some(ColumnFormat::Arrow) => {
            let reader = FileReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
        None => panic!("{} is neither", path.display()),
    };
    concat_batches(&schema, &batches).unwrap()
}

fn options(key: &[&str], time: &[&str]) -> Options {
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default()).unwrap();
    let read_time = move |text: &[u8]| stamps.parse(text).map_err(|error| error.to_string());
    let mut options = Options::new(Digester::new(0), Arc::new(read_time));
    options.key = key.iter().map(|name| (*name).into()).collect();
    options.time = time.iter().map(|name| (*name).into()).collect();
    options
}

fn output(path: &Path) -> Output {
    let file = File::create(path).unwrap();
    Output::new(path.display().to_string(), Box::new(file))
        .of_columns(ColumnFormat::of_extension(path))
}

/// Deduplicates files into three, and returns what there is to report.
fn dedup(inputs: &[&Path], options: Options, spec: &DedupSpec, outputs: [&Path; 3]) -> Report {
    let [main, dropped, late] = outputs.map(output);
    let sink = Sink::new(main).dropped(Some(dropped)).late(Some(late));
    let names = inputs.iter().map(|path| path.to_str().unwrap().into()).collect();
    let mut pipeline = Pipeline::new(spec.build().unwrap(), sink, None, None);
    pipeline.run(Source::new(names, options), 2, &mut Undisturbed).unwrap();
    pipeline.report
}

fn spec() -> DedupSpec {
    let span = Span::Within(WITHIN.cast_unsigned() * 1_000_000);
    DedupSpec { span, fpr: Some(1e-9), ..DedupSpec::default() }
}

#[test]
fn rows_are_judged_as_an_exact_program_does_and_keep_their_types() {
    let folder = Folder::new("exact");
    let mut random = Random(11);
    let formats = [(ColumnFormat::Parquet, "parquet"), (ColumnFormat::Arrow, "arrow")];
    for (from, _) in formats {
        for (_, to) in formats {
            // More than a batch of rows, in several batches; and a few rows.
            for sizes in [&[1, 9_000, 0, 300, 8_192][..], &[7], &[0]] {
                let reads = reads(&mut random, sizes.iter().sum());
                let mut batches = Vec::new();
                let mut start = 0;
                for size in sizes {
                    batches.push(rows(&reads[start..start + size]));
                    start += size;
                }
                let input = folder.path("in");
                write(&input, from, &batches);
                let outputs =
                    ["out", "twice", "late"].map(|name| folder.path(&format!("{name}.{to}")));
                let [out, twice, late] = [0, 1, 2].map(|at| &*outputs[at]);
                let report = dedup(
                    &[&input],
                    options(&["tag", "antenna"], &["t"]),
                    &spec(),
                    [out, twice, late],
                );
                assert!(report.inputs.is_empty(), "{:?}", report.inputs);
                let (all, classes) = (rows(&reads), exact(&reads));
                let of = |wanted: &[Class]| {
                    let mask: BooleanArray =
                        classes.iter().map(|class| Some(wanted.contains(class))).collect();
                    filter_record_batch(&all, &mask).unwrap()
                };
                assert_eq!(read(out).schema(), all.schema());
                assert_eq!(read(out), of(&[Class::Fresh, Class::KeyMissing]));
                assert_eq!(read(twice), of(&[Class::Duplicate]));
                assert_eq!(read(late), of(&[Class::Late]));
                for class in [Class::Fresh, Class::Duplicate, Class::Late, Class::KeyMissing] {
                    let count = classes.iter().filter(|other| **other == class).count();
                    assert_eq!(report.counts.of(class), count as u64, "{class:?}");
                    assert!(count > 0 || sizes.len() < 3, "{class:?}");
                }
            }
        }
    }
}

#[test]
fn whole_rows_and_all_columns_but_some_are_keys() {
    let folder = Folder::new("whole");
    let input = folder.path("in.parquet");
    let names: DictionaryArray<Int32Type> = ["a", "b", "a", "a", "a"].into_iter().collect();
    let lists: [Option<Vec<Option<i8>>>; 5] =
        [Some(vec![Some(1)]), Some(vec![]), Some(vec![Some(1)]), None, Some(vec![Some(1)])];
    let columns: [(&str, ArrayRef); 3] = [
        ("name", Arc::new(names)),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int8Type, _, _>(lists))),
        ("n", Arc::new(Int64Array::from(vec![1, 1, 1, 1, 2]))),
    ];
    let all = RecordBatch::try_from_iter(columns).unwrap();
    write(&input, ColumnFormat::Parquet, std::slice::from_ref(&all));
    let outputs = ["out.parquet", "twice.parquet", "late.parquet"].map(|name| folder.path(name));
    let kept = |key: &[&str]| {
        let [out, twice, late] = [0, 1, 2].map(|at| &*outputs[at]);
        let spec = DedupSpec { fpr: Some(1e-9), ..DedupSpec::default() };
        let report = dedup(&[&input], options(key, &[]), &spec, [out, twice, late]);
        assert!(report.inputs.is_empty(), "{:?}", report.inputs);
        let kept = read(out);
        assert_eq!(kept.schema(), all.schema());
        kept.num_rows()
    };
    assert_eq!([kept(&[]), kept(&["*", "-n"]), kept(&["name"]), kept(&["2-3"])], [4, 3, 2, 4]);
}

#[test]
fn what_cannot_be_read_is_told_and_nothing_else_is_lost() {
    let folder = Folder::new("broken");
    let (one, other) = (folder.path("1.parquet"), folder.path("2.parquet"));
    let mut random = Random(3);
    let reads = reads(&mut random, 500);
    write(&one, ColumnFormat::Parquet, &[rows(&reads)]);
    let outputs = ["out.parquet", "twice.parquet", "late.parquet"].map(|name| folder.path(name));
    let [out, twice, late] = [0, 1, 2].map(|at| &*outputs[at]);
    let run = |options| dedup(&[&one, &other], options, &spec(), [out, twice, late]);
    // Other columns.
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    write(&other, ColumnFormat::Parquet, &[RecordBatch::try_from_iter([("n", numbers)]).unwrap()]);
    let report = run(options(&["tag"], &["t"]));
    assert_eq!((report.counts.read(), report.inputs.len()), (500, 1));
    assert!(report.inputs[0].to_string().contains("are not those of the first input"));
    // No such column.
    let report = run(options(&["tga"], &[]));
    assert!(report.inputs[0].to_string().contains("did you mean `tag`?"), "{:?}", report.inputs);
    // Damaged anywhere: an error or other rows, and an end in any case.
    let whole = std::fs::read(&one).unwrap();
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            let at = 4 + random.below(bytes.len() as u64 - 10) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        std::fs::write(&other, &bytes).unwrap();
        let report = run(options(&["tag", "antenna"], &["t"]));
        assert!(report.counts.read() >= 500);
    }
}

/// The file that the tests of the program read, once in columns and once as CSV.
#[test]
fn the_files_of_the_program_s_tests_are_these() {
    let mut reads = reads(&mut Random(5), 400);
    reads.retain(|read| read.tag.is_some() && read.at.is_some());
    let mut csv = String::from("tag,antenna,t\n");
    for read in &reads {
        let (seconds, millis) = (read.at.unwrap() / 1000, read.at.unwrap() % 1000);
        csv +=
            &format!("{},{},{seconds}.{millis:03}\n", read.tag.as_deref().unwrap(), read.antenna);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden");
    let (columns, lines) = (folder.join("reads.parquet"), folder.join("reads.csv"));
    if std::env::var_os("LATELY_BLESS").is_some() {
        write(&columns, ColumnFormat::Parquet, &[rows(&reads)]);
        std::fs::write(&lines, &csv).unwrap();
    }
    assert_eq!(read(&columns), rows(&reads));
    assert_eq!(std::fs::read_to_string(&lines).unwrap(), csv);
}
