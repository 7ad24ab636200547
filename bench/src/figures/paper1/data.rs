//! The data sets SData and MData, with the exact answer for every read.

use crate::oracle::LastSeen;
use lately::{Digest, Digester, Tick};
use lately_stream::simulate::rfid::{InvalidModel, RfidModel, RfidReads};
use std::collections::HashSet;

/// τ in ticks of a millisecond.
///
/// Longer than any tag takes to pass a reader (1.5 s at most), so that all reads of a visit are one
/// chain; shorter than the way to the next location (62 s at least), so that each visit is new.
pub const SPAN: u64 = 5_000;

/// Which of the paper's two kinds of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One reader a location.
    #[value(name = "sdata")]
    Single,
    /// Three readers a location.
    #[value(name = "mdata")]
    Multiple,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Single, Self::Multiple];

    /// The paper's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "SData",
            Self::Multiple => "MData",
        }
    }

    /// The simulation's parameters. `scale` thins the groups out: the movement stays the same.
    pub fn model(self, scale: f64) -> RfidModel {
        let tags = |full: f64| (full * scale).round().max(1.0) as u32;
        RfidModel {
            seed: 2011,
            locations: 4,
            readers_per_location: if self == Self::Single { 1 } else { 3 },
            spacing: 600.0,
            major_radius: 1.5,
            minor_radius: 3.0,
            major_probability: 0.95,
            epoch: 500_000_000,
            departure_interval: 100_000_000,
            group_tags: (tags(340.0), tags(1_020.0)),
            velocity: (4.0, 8.0),
            ..RfidModel::default()
        }
    }
}

/// Reads as the filters take them, and what is true of them.
#[derive(Clone, Debug)]
pub struct Data {
    /// The digests of the tag ids.
    pub digests: Vec<Digest>,
    /// Milliseconds since the first departure.
    pub ticks: Vec<Tick>,
    /// Is this read no duplicate?
    pub fresh: Vec<bool>,
    /// Is it the first read ever of its tag?
    first: Vec<bool>,
    /// Distinct tags within τ, one sample every [`SAMPLE`] reads.
    live: Vec<usize>,
}

const SAMPLE: usize = 1_000;

impl Data {
    /// The first `reads` reads of the model, judged exactly.
    ///
    /// # Errors
    /// For a model that makes no sense.
    pub fn generate(model: RfidModel, reads: usize) -> Result<Self, InvalidModel> {
        let start = model.start;
        let digester = Digester::new(0);
        let mut oracle = LastSeen::new(SPAN);
        let mut tags = HashSet::new();
        let mut data = Self {
            digests: Vec::with_capacity(reads),
            ticks: Vec::with_capacity(reads),
            fresh: Vec::with_capacity(reads),
            first: Vec::with_capacity(reads),
            live: Vec::new(),
        };
        for (at, read) in RfidReads::new(model)?.take(reads).enumerate() {
            let tick = (read.time - start) / 1_000_000;
            data.digests.push(digester.digest(&read.epc.to_be_bytes()[4..]));
            data.ticks.push(Tick(tick));
            data.fresh.push(!oracle.observe(read.epc, tick));
            data.first.push(tags.insert(read.epc));
            if at % SAMPLE == 0 {
                data.live.push(oracle.live());
            }
        }
        Ok(data)
    }

    /// Distinct tags among the first `reads` reads.
    pub fn distinct(&self, reads: usize) -> usize {
        self.first[..reads].iter().filter(|&&first| first).count()
    }

    /// Non-duplicates among the first `reads` reads, |S'|.
    pub fn fresh(&self, reads: usize) -> usize {
        self.fresh[..reads].iter().filter(|&&fresh| fresh).count()
    }

    /// Distinct tags within τ, n': their mean over the first `reads` reads, and the most.
    pub fn live(&self, reads: usize) -> (usize, usize) {
        let samples = &self.live[..reads.div_ceil(SAMPLE)];
        let mean = samples.iter().sum::<usize>() / samples.len().max(1);
        (mean, samples.iter().copied().max().unwrap_or(0))
    }
}
