//! Subcommands and their flags.

use clap::{Args, Subcommand, ValueEnum};
use lately_bench::figures::{paper1, paper2, paper3, paper4, paper5};
use lately_bench::programs::{self, Settings, page};
#[cfg(target_os = "linux")]
use lately_bench::serve;
use lately_bench::workload::events::{Events, Format};
use lately_bench::workload::lines::Lines;
use lately_bench::workload::{Summary, zipf};
use lately_bench::{late, range, window};
use lately_stream::quantity;
use lately_stream::simulate::rfid::{RfidModel, RfidReads, write_csv, write_ndjson};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(crate) enum Workload {
    /// Lines of 25 bytes (including the newline) with an exact number of distinct ones
    Lines {
        /// Total number of lines
        #[arg(long, value_parser = quantity::count, default_value = "8M")]
        records: u64,
        /// Number of distinct lines
        #[arg(long, value_parser = quantity::count, default_value = "4.4M")]
        distinct: u64,
        /// Same seed, same lines
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Events of devices, some delivered twice, one JSON object per line
    Ndjson(EventFlags),
    /// The same events as CSV with a header
    Csv(EventFlags),
    /// Integers by Zipf's law, one per line
    Zipf {
        /// Total number of numbers
        #[arg(long, value_parser = quantity::count, default_value = "10M")]
        records: u64,
        /// Numbers to choose from: 1 to this
        #[arg(long, value_parser = quantity::count, default_value = "100k")]
        universe: u64,
        /// The law's exponent; 0 is uniform
        #[arg(long, default_value_t = 1.0)]
        exponent: f64,
        /// Same seed, same numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Reads of RFID tags that pass readers in groups
    Rfid(RfidFlags),
}

#[derive(Subcommand)]
pub(crate) enum Figures {
    /// Lee & Chung (2011), Figures 14 to 23: 60 million reads, twenty minutes, 4 GB
    Paper1 {
        /// Scale of the reads, tags and bits, for a quick look
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Each time is the best of this many runs
        #[arg(long, default_value_t = 3)]
        repeats: u32,
        /// Measure only this; the other tables stay as they are
        #[arg(long, value_enum)]
        only: Vec<paper1::Experiment>,
        /// Measure only with this data
        #[arg(long, value_enum)]
        kind: Vec<paper1::Kind>,
        /// Where tables and plots go; the page goes next to it
        #[arg(long, default_value = "docs/results/paper1")]
        out: PathBuf,
        /// Do not measure: draw plots and page from the tables that are there
        #[arg(long)]
        redraw: bool,
    },
    /// The time-decaying cuckoo paper (2013), Figures 4 to 14
    Paper2(FigureFlags<paper2::Experiment>),
    /// The Accommodative Bloom filter (2018), Figures 6 to 9 and Table 2
    Paper3(FigureFlags<paper3::Experiment>),
    /// Range emptiness over sliding windows (2019), Figures 3 to 6 and Table 2
    Paper4(FigureFlags<paper4::Experiment>),
    /// Crowdsensing at the edge (2022), Figures 4 to 12 and Tables 1 to 3
    Paper5 {
        #[command(flatten)]
        flags: FigureFlags<paper5::Experiment>,
        /// Simulate only the days that the tables lack
        #[arg(long)]
        add: bool,
        /// Begin no further day after this many minutes; `--add` continues from there
        #[arg(long)]
        minutes: Option<u64>,
    },
}

#[derive(Args)]
pub(crate) struct FigureFlags<E: ValueEnum + Send + Sync + 'static> {
    /// A share of the stream or the keys, for a quick look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Measure only this; the other tables stay as they are
    #[arg(long, value_enum)]
    only: Vec<E>,
    /// The folder with the real traces
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Where tables and plots go; the page goes next to it [default: docs/results/ and the name]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Do not measure: draw plots and page from the tables that are there
    #[arg(long)]
    redraw: bool,
}

/// What a page is drawn from.
struct Tables {
    folder: PathBuf,
    /// Files that were measured now.
    measured: Vec<&'static str>,
    /// All files that the page needs.
    needed: Vec<&'static str>,
}

impl Tables {
    /// Draws plots and page, and says what was written. A folder in which other tables have never been measured gets
    /// no page yet.
    fn draw(&self, draw: fn(&Path) -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
        let folder = self.folder.display();
        for file in &self.measured {
            eprintln!("wrote {folder}/{file}");
        }
        let missing: Vec<&str> =
            self.needed.iter().copied().filter(|file| !self.folder.join(file).exists()).collect();
        if !self.measured.is_empty() && !missing.is_empty() {
            eprintln!(
                "drew no page: {folder} has no {}; measure these too (without --only)",
                missing.join(", ")
            );
            return Ok(());
        }
        draw(&self.folder)?;
        eprintln!("wrote {} and the plots in {folder}", self.folder.with_extension("md").display());
        Ok(())
    }
}

impl<E: ValueEnum + Send + Sync + 'static> FigureFlags<E> {
    /// Measures, unless what is there is to be drawn again, and tells the tables that the page needs.
    fn measure(
        self,
        name: &str,
        file: fn(E) -> &'static str,
        run: impl FnOnce(f64, &[E], &Path, &Path) -> Result<(), Box<dyn Error>>,
    ) -> Result<Tables, Box<dyn Error>> {
        let Self { scale, only, data, out, redraw } = self;
        let folder = out.unwrap_or_else(|| Path::new("docs/results").join(name));
        let files = |experiments: &[E]| experiments.iter().cloned().map(file).collect::<Vec<_>>();
        let needed = files(E::value_variants());
        let mut measured = Vec::new();
        if !redraw {
            sensible(scale)?;
            let experiments = if only.is_empty() { E::value_variants() } else { &only };
            run(scale, experiments, &data, &folder)?;
            measured = files(experiments);
        }
        Ok(Tables { folder, measured, needed })
    }
}

fn sensible(scale: f64) -> Result<(), Box<dyn Error>> {
    let fits = scale > 0.0 && scale <= 1.0;
    if fits { Ok(()) } else { Err("the scale must lie between 0 and 1".into()) }
}

impl Figures {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Paper1 { scale, repeats, only, kind, out, redraw } => {
                let all = paper1::Experiment::ALL;
                let needed = all.iter().flat_map(|experiment| experiment.files()).collect();
                let mut measured = Vec::new();
                if !redraw {
                    sensible(scale)?;
                    let experiments = if only.is_empty() { all.to_vec() } else { only };
                    let kinds = if kind.is_empty() { paper1::Kind::ALL.to_vec() } else { kind };
                    let size = paper1::Size { scale, repeats };
                    paper1::run(size, &experiments, &kinds, &out)?;
                    measured = experiments
                        .iter()
                        .flat_map(|&experiment| kinds.iter().map(move |&kind| (experiment, kind)))
                        .map(|(experiment, kind)| experiment.file(kind))
                        .collect();
                }
                Tables { folder: out, measured, needed }.draw(paper1::page::draw)
            }
            Self::Paper2(flags) => flags
                .measure("paper2", paper2::Experiment::file, |scale, experiments, data, folder| {
                    let size = paper2::Size { scale };
                    paper2::run(size, experiments, data, folder, paper2::structures::build)
                })?
                .draw(paper2::page::draw),
            Self::Paper3(flags) => flags
                .measure("paper3", paper3::Experiment::file, |scale, experiments, data, folder| {
                    let size = paper3::Size { scale };
                    paper3::run(size, experiments, data, folder, paper3::structures::build)
                })?
                .draw(paper3::page::draw),
            // Its data are generated, all of them.
            Self::Paper4(flags) => flags
                .measure("paper4", paper4::Experiment::file, |scale, experiments, _, folder| {
                    let size = paper4::Size { scale };
                    paper4::run(size, experiments, folder, paper4::structures::build)
                })?
                .draw(paper4::page::draw),
            Self::Paper5 { flags, add, minutes } => flags
                .measure("paper5", paper5::Experiment::file, |scale, experiments, data, folder| {
                    let adding = paper5::Adding { add, minutes };
                    paper5::run(paper5::Size { scale }, experiments, adding, data, folder)
                })?
                .draw(paper5::page::draw),
        }
    }
}

#[derive(Args)]
pub(crate) struct Programs {
    /// Timed runs of each program
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// A share of the inputs' size, for a quick look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// The program `lately`
    #[arg(long, default_value = "target/release/lately")]
    lately: PathBuf,
    /// A folder with other programs, as of `cargo install --root`; PATH is looked through too
    #[arg(long)]
    tools: Option<PathBuf>,
    /// Where inputs are written, and removed again [default: a folder for temporary files]
    #[arg(long)]
    work: Option<PathBuf>,
    /// Where the page goes
    #[arg(long, default_value = "docs/results/programs.md")]
    out: PathBuf,
}

impl Programs {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let own = || std::env::temp_dir().join(format!("lately-programs-{}", std::process::id()));
        let Self { runs, scale, lately, tools, .. } = self;
        if runs == 0 || !(scale > 0.0 && scale <= 10.0) {
            return Err("there must be a run, and the scale must lie between 0 and 10".into());
        }
        let work = self.work.unwrap_or_else(own);
        let settings = Settings { runs, scale, lately, tools, work: work.clone() };
        let comparisons = programs::compare(&settings);
        // Removes it only if it is empty: it may have been somebody's own.
        let _ = fs::remove_dir(work);
        let comparisons = comparisons?;
        if let Some(folder) = self.out.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.out, page::page(&comparisons, runs))?;
        match page::failures(&comparisons).as_slice() {
            [] => Ok(()),
            wrong => Err(format!("wrong output: {}", wrong.join(", ")).into()),
        }
    }
}

#[derive(Args)]
pub(crate) struct EventFlags {
    /// Stop at the record that reaches this size
    #[arg(long, value_parser = quantity::bytes, default_value = "1GB")]
    bytes: u64,
    /// Share of records that are repeats
    #[arg(long, default_value_t = 0.3)]
    repeats: f64,
    /// Repeats are of one of this many newest events
    #[arg(long, value_parser = quantity::count, default_value = "1M")]
    within: u64,
    /// Same seed, same events
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
pub(crate) struct RfidFlags {
    /// Total number of reads
    #[arg(long, value_parser = quantity::count, default_value = "1M")]
    reads: u64,
    /// Readers at each location
    #[arg(long, default_value_t = 1)]
    readers: u32,
    /// Detection locations on the line
    #[arg(long, default_value_t = 5)]
    locations: u32,
    /// Tags in a group: at least..at most
    #[arg(long, value_parser = range, default_value = "5..35")]
    group_tags: (u32, u32),
    /// JSON objects instead of CSV
    #[arg(long)]
    ndjson: bool,
    /// Same seed, same reads
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Workload {
    pub(crate) fn run(self) -> io::Result<()> {
        let out = io::stdout().lock();
        let summary = match self {
            Self::Lines { records, distinct, seed } => Lines { records, distinct, seed }.write(out),
            Self::Ndjson(flags) => flags.events()?.write(Format::Ndjson, out),
            Self::Csv(flags) => flags.events()?.write(Format::Csv, out),
            Self::Zipf { records, universe, exponent, seed } => {
                if universe == 0 || !exponent.is_finite() || exponent < 0.0 {
                    return Err(unusable(
                        "the universe must not be empty, nor the exponent negative",
                    ));
                }
                zipf::write(zipf::Zipf::new(universe, exponent, seed), records, out)
            }
            Self::Rfid(flags) => return flags.write(out),
        };
        let Summary { records, distinct, bytes } = summary?;
        eprintln!("{records} records, {distinct} distinct, {bytes} bytes");
        Ok(())
    }
}

impl EventFlags {
    fn events(&self) -> io::Result<Events> {
        let Self { bytes, repeats, within, seed } = *self;
        if !(0.0..1.0).contains(&repeats) || within == 0 {
            return Err(unusable("repeats must lie in 0..1, and within must be positive"));
        }
        Ok(Events { bytes, repeats, within, seed, ..Events::default() })
    }
}

impl RfidFlags {
    fn write(self, out: impl io::Write) -> io::Result<()> {
        let model = RfidModel {
            seed: self.seed,
            readers_per_location: self.readers,
            locations: self.locations,
            group_tags: self.group_tags,
            ..RfidModel::default()
        };
        let reads = RfidReads::new(model).map_err(|error| unusable(&error.to_string()))?;
        let reads = reads.take(usize::try_from(self.reads).unwrap_or(usize::MAX));
        if self.ndjson { write_ndjson(out, reads) } else { write_csv(out, reads) }
    }
}

fn range(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
    let (least, most) = text.split_once("..").ok_or("a range is written 1..6")?;
    Ok((number(least)?, number(most)?))
}

fn unusable(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[derive(Args)]
pub(crate) struct Files {
    /// The folder with the files
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Timed runs of each
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The program `lately`
    #[arg(long, default_value = "target/release/lately")]
    lately: PathBuf,
    /// Where the page goes
    #[arg(long, default_value = "docs/results/files.md")]
    out: PathBuf,
}

impl Files {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let page = lately_bench::files::run(&self.data, &self.lately, self.runs.max(1))?;
        fs::write(&self.out, page)?;
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct Windows {
    /// What to measure [default: check, speed, rates and exact]
    #[arg(value_enum)]
    experiments: Vec<window::Experiment>,
    /// A share of keys and operations, for a quick look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Only structures whose names contain this
    #[arg(long)]
    structure: Vec<String>,
    /// Where tables and plots go; the page goes next to it
    #[arg(long, default_value = "docs/results/window")]
    out: PathBuf,
    /// Do not measure: draw plots and page from the tables that are there
    #[arg(long)]
    redraw: bool,
}

impl Windows {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let Self { experiments, scale, structure: structures, out, redraw } = self;
        if !redraw {
            sensible(scale)?;
            let all = window::Experiment::TABLE.to_vec();
            let experiments = if experiments.is_empty() { all } else { experiments };
            let settings = window::Settings { scale, structures, folder: out.clone() };
            window::run(&settings, &experiments)?;
        }
        window::page::draw(&out)
    }
}

#[derive(Args)]
pub(crate) struct Late {
    /// Keys per window
    #[arg(long, value_parser = quantity::count, default_value = "1M")]
    keys: u64,
    /// Windows that are timed; the quietest counts
    #[arg(long, default_value_t = 3)]
    passes: u64,
}

impl Late {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        print!("{}", late::table(self.keys.max(1_000), self.passes.max(1))?);
        Ok(())
    }
}

/// What is measured of servers.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measured {
    /// All of it
    All,
    /// Processor time, throughput and latency
    Speed,
    /// What the journal costs
    Journal,
    /// Memory per key
    Memory,
    /// Latency while a snapshot is taken
    Saving,
}

#[cfg(target_os = "linux")]
#[derive(Args)]
pub(crate) struct Serve {
    what: Measured,
    /// The program `lately`, with the feature `serve`
    #[arg(long, default_value = "target/release/lately")]
    lately: PathBuf,
    /// Redis
    #[arg(long, default_value = "redis-server")]
    redis: PathBuf,
    /// RedisBloom's library (redisbloom.so); without it, `BF.*` is left out
    #[arg(long)]
    module: Option<PathBuf>,
    /// The Redis that the library is loaded into
    #[arg(long, default_value = "redis-server")]
    module_server: PathBuf,
    /// The structure of `lately`'s filters that never forget, if not what it chooses itself
    #[arg(long)]
    structure: Option<String>,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each load lasts
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Keys for `memory` and `saving`
    #[arg(long, value_parser = quantity::count, default_value = "10M")]
    keys: u64,
    /// Only pairs whose names contain this, for `speed`
    #[arg(long, default_value = "")]
    only: String,
    /// Puts the tables into this page, between their marks
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
}

#[cfg(target_os = "linux")]
impl Serve {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let Self { lately, redis, structure, rounds, seconds, keys, .. } = self;
        if rounds == 0 || !(seconds > 0.0 && seconds <= 60.0) || keys == 0 {
            return Err("there must be a round, keys, and up to 60 seconds".into());
        }
        let server = self.module_server;
        let bloom = self.module.map(|module| serve::RedisBloom { server, module });
        let settings = serve::Settings {
            lately,
            redis,
            bloom,
            structure,
            huge_pages: true,
            rounds,
            seconds,
            keys,
        };
        let page = self.into.map(serve::Page::new);
        let parts = match self.what {
            Measured::All => &serve::Measured::ALL[..],
            Measured::Speed => &[serve::Measured::Speed],
            Measured::Journal => &[serve::Measured::Journal],
            Measured::Memory => &[serve::Measured::Memory],
            Measured::Saving => &[serve::Measured::Saving],
        };
        for part in parts {
            let table = part.run(&settings, &self.only)?;
            println!("{table}");
            if let Some(page) = &page {
                page.replace(part.name(), &table)?;
            }
        }
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct Ranges {
    /// What to measure [default: all of it]
    #[arg(value_enum)]
    experiments: Vec<range::Experiment>,
    /// A share of keys and questions, for a quick look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// The folder with real files
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Where tables and plots go; the page goes next to it
    #[arg(long, default_value = "docs/results/range")]
    out: PathBuf,
    /// Do not measure: draw plots and page from the tables that are there
    #[arg(long)]
    redraw: bool,
}

impl Ranges {
    pub(crate) fn run(self) -> Result<(), Box<dyn Error>> {
        let Self { experiments, scale, data, out, redraw } = self;
        if !redraw {
            sensible(scale)?;
            let all = range::Experiment::value_variants();
            let experiments = if experiments.is_empty() { all } else { &experiments };
            range::run(&range::Settings { scale, data, folder: out.clone() }, experiments)?;
        }
        range::page::draw(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table measured into a new folder is written; a page needs the others too, and says so only when it is asked for.
    #[test]
    fn one_table_alone_makes_no_page() {
        let folder = std::env::temp_dir().join(format!("lately-one-{}", std::process::id()));
        let out = folder.join("paper3");
        let figures = |redraw| {
            Figures::Paper3(FigureFlags {
                scale: 0.01,
                only: vec![paper3::Experiment::PartHashes],
                data: folder.join("nowhere"),
                out: Some(out.clone()),
                redraw,
            })
        };
        figures(false).run().unwrap();
        assert!(out.join("figure-09.csv").exists() && !folder.join("paper3.md").exists());
        assert!(figures(true).run().is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
