//! `lately simulate`: streams to try things out with.

use crate::Failure;
use clap::{Args, Subcommand, ValueEnum};
use lately_stream::quantity;
use lately_stream::simulate::rfid::{RfidModel, RfidReads, write_csv, write_ndjson};
use std::io::{BufWriter, stdout};

/// Generate a stream of records to try things out with
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Rfid(RfidArguments),
}

/// RFID reads: groups of tags that pass readers along a line
///
/// The model of Lee & Chung 2011: a reader detects a tag with a constant probability in its major region,
/// and with one that decreases with the distance in the minor region around it. The same seed gives
/// the same reads.
#[derive(Args)]
struct RfidArguments {
    /// Number of reads
    #[arg(long, default_value = "100k", value_parser = quantity::count)]
    reads: u64,

    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Readers at each location: 1 (SData in the paper) or 3 (MData)
    #[arg(long, default_value_t = 1)]
    readers: u32,

    /// Detection locations along the line
    #[arg(long, default_value_t = RfidModel::default().locations)]
    locations: u32,

    /// How often each reader polls [default: 250ms]
    #[arg(long, value_parser = quantity::duration)]
    epoch: Option<u64>,

    /// Time between the departures of two groups [default: 10s]
    #[arg(long, value_parser = quantity::duration)]
    departures: Option<u64>,

    /// Format of the records
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Csv,
    Ndjson,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let What::Rfid(rfid) = arguments.what;
    let default = RfidModel::default();
    let model = RfidModel {
        seed: rfid.seed,
        readers_per_location: rfid.readers,
        locations: rfid.locations,
        epoch: rfid.epoch.unwrap_or(default.epoch),
        departure_interval: rfid.departures.unwrap_or(default.departure_interval),
        ..default
    };
    let reads = RfidReads::new(model).map_err(|error| Failure::Usage(error.to_string()))?;
    let reads = reads.take(usize::try_from(rfid.reads).unwrap_or(usize::MAX));
    let out = BufWriter::with_capacity(1 << 18, stdout().lock());
    match rfid.format {
        Form::Csv => write_csv(out, reads)?,
        Form::Ndjson => write_ndjson(out, reads)?,
    }
    Ok(())
}
