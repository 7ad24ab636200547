//! `lately edge requester`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, summary_of};
use crate::{Failure, many};
use clap::Args;
use lately::Digester;
use lately_edge::element::Property;
use lately_edge::ids::{RequesterId, TaskId};
use lately_edge::requester::{Arrived, TaskState};
use lately_edge::senml;
use lately_edge::task::{Area, AreaCell, Task};
use lately_edge_mqtt::requester::RequesterRun;
use lately_edge_mqtt::store::at;
use lately_store::sync_folder;
use lately_stream::quantity;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write, stdout};
use std::path::{Path, PathBuf};

/// Post a task and print its readings
///
/// Prints one line of JSON per reading, a SenML record (RFC 8428): {"n":"mgrs:33TWL759737/noise","t":1.5e9,"v":57.5},
/// where the name is the cell of 100 m and the property, and the time is in seconds. Hosts keep readings until
/// this requester confirms that they are written; after a crash some may arrive twice. The task is withdrawn when
/// the requester ends, unless it has a --name and is stopped by a signal.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately edge requester --property noise --for 1h
  lately edge requester --property pm2.5 --area 33TWL77,33TWL7673 --wanted 3 --output readings.ndjson")]
pub struct Arguments {
    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    /// Property to measure
    #[arg(long, default_value = "noise")]
    property: Property,

    /// Area: MGRS cells of 10 km, 1 km or 100 m (33TWL77, 33TWL7573, 33TWL759737) [default: everywhere]
    #[arg(long, value_name = "CELLS", value_delimiter = ',', value_parser = area_cell)]
    area: Vec<AreaCell>,

    /// Duration of the task
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = quantity::duration)]
    length: u64,

    /// Also take readings that devices have buffered, up to this long before now
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = quantity::duration)]
    back: u64,

    /// Readings wanted in each cell of 100 m in each window
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    wanted: u16,

    /// Name under which the requester resumes after a restart: if it is stopped by a signal or killed, its task
    /// stays until its time is over, and the readings kept in the meantime are delivered on the next start. Must be
    /// unique among running requesters [default: a new name each time]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Stop after this many readings
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    most: Option<u64>,

    /// Append readings to this file instead of writing them to standard output; they are synced before
    /// hosts are told that they are safe
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn area_cell(name: &str) -> Result<AreaCell, String> {
    let small = name.parse().map(AreaCell::Small);
    let cell = small.or_else(|_| name.parse().map(AreaCell::Km));
    let cell = cell.or_else(|_| name.parse().map(AreaCell::Square));
    cell.map_err(|error: lately_edge::cell::CellError| error.to_string())
}

/// Where readings go.
enum Sink {
    Output,
    File(File, PathBuf),
}

impl Sink {
    /// A file to append to. What a crash has cut off gets an end, so that it spoils no other reading.
    fn append_to(path: &Path) -> io::Result<Self> {
        let open = || {
            let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
            // A pipe has no end that could be looked at, and no name to be made safe.
            if file.metadata()?.is_file() {
                if !ends_with_a_line(&mut file)? {
                    file.write_all(b"\n")?;
                }
                file.sync_all()?;
            }
            Ok(file)
        };
        let file = open().map_err(at(path))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_folder(folder.unwrap_or(Path::new(".")))?;
        Ok(Self::File(file, path.into()))
    }

    fn write(&mut self, arrived: &[Arrived]) -> io::Result<()> {
        let mut text = String::new();
        for reading in arrived.iter().flat_map(|batch| &batch.readings) {
            // A pack of one record, without the brackets around it.
            let pack = senml::write(std::slice::from_ref(reading));
            text += pack.trim_start_matches('[').trim_end_matches(']');
            text.push('\n');
        }
        match self {
            Self::Output => {
                let mut out = stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Self::File(file, path) => {
                file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(at(path))
            }
        }
    }
}

fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The id for a name, or a random one.
fn number(name: Option<&String>) -> u64 {
    match name {
        Some(name) => Digester::new(1).digest(name.as_bytes()).lo(),
        None => fastrand::u64(..),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let mut sink = match &arguments.output {
        None => Sink::Output,
        Some(path) => Sink::append_to(path).map_err(|error| Failure::Trouble(error.to_string()))?,
    };
    let area = if arguments.area.is_empty() {
        Area::Everywhere
    } else {
        Area::Cells(arguments.area.clone())
    };
    let (now, id) = (clock.now(), number(arguments.name.as_ref()));
    let task = Task {
        id: TaskId(id),
        property: arguments.property,
        area,
        from: now.saturating_sub(arguments.back / 1_000_000),
        until: now.saturating_add(arguments.length / 1_000_000),
        wanted: arguments.wanted,
    };
    task.check(now).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut line = Line::new(&broker, arguments.output.is_none());
    let id = RequesterId(id);
    let (most, stays) = (arguments.most, arguments.name.is_some());
    let run = RequesterRun { broker, clock, id, task, most, stays };
    let mut told = TaskState::Waiting;
    let (role, traffic) = block_on(|stop| async {
        let watch = run.run(
            stop,
            |arrived| sink.write(arrived),
            |view| {
                if let TaskState::Active(hosts) = view.task
                    && told != view.task
                {
                    line.say(&format!("task accepted, {} so far", many(u64::from(hosts), "host")));
                }
                told = view.task;
                line.show(view.link, || many(view.role.counts().readings, "reading"));
            },
        );
        Ok(watch.await?)
    })?;
    line.finish();
    let counts = role.counts();
    eprintln!(
        "lately: {}, {} more were duplicates\nlately: {}",
        many(counts.readings, "reading"),
        quantity::display_count(counts.repeated),
        summary_of(&traffic)
    );
    Ok(())
}
