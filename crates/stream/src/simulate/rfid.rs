//! RFID tags that pass readers in groups, and what the readers report.
//!
//! The model of Lee & Chung (2011, section 8.1), after Jeffery et al. (2006). Tags start at a
//! departure in groups. A group moves in a straight line with a velocity of its own, past
//! detection locations a fixed distance apart, and is gone when it reaches the destination. Each
//! location has one reader or several. A reader asks once an epoch; it detects a tag in its
//! *major* region with a constant probability, and in the *minor* region around that with one that
//! falls linearly to 0 at the edge. So a tag is read tens of times at each location.
//!
//! *Reference:* C.-H. Lee, C.-W. Chung, "An approximate duplicate elimination in RFID data
//! streams", Data & Knowledge Engineering 70 (2011), section 8.1; S. R. Jeffery, M. Garofalakis,
//! M. J. Franklin, "Adaptive cleaning for RFID data streams", VLDB 2006, section 3.
//!
//! *Differs from the paper,* which names no numbers: every parameter of [`RfidModel`] has a default
//! of ours. The readers of one location share the epoch among them and ask one after the other, as
//! readers that stand close together must; so their reads have different times.
//!
//! ```
//! use lately_stream::simulate::rfid::{RfidModel, RfidReads};
//! let model = RfidModel { readers_per_location: 3, ..RfidModel::default() };
//! let mut csv = Vec::new();
//! lately_stream::simulate::rfid::write_csv(&mut csv, RfidReads::new(model)?.take(2))?;
//! assert!(csv.starts_with(b"timestamp,reader,antenna,rssi,epc,location\n2025-01-06T08:00:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use oorandom::Rand64;
use std::fmt;
use std::io::{self, Write};

/// One report of one reader: this tag was here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// The tag's SGTIN-96 id, in the low 96 bits.
    pub epc: u128,
    /// The detection location, counted from 1 at the departure.
    pub location: u32,
    /// The reader, counted from 1 over all locations.
    pub reader: u32,
    /// The reader's antenna: 1 faces tags that approach, 2 tags that leave.
    pub antenna: u8,
    /// Signal strength in dBm: falls with the distance, with a little noise.
    pub rssi: i8,
}

/// The parameters of the simulation. Lengths are in metres, times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RfidModel {
    /// Same seed and parameters, same reads. Tags and their movement depend on nothing else than
    /// the seed and the parameters of departure: more readers see the same tags.
    pub seed: u64,
    /// When the first group departs, since 1970.
    pub start: u64,
    /// Detection locations on the line.
    pub locations: u32,
    /// Readers at each location: 1 is the paper's SData, 3 its MData.
    pub readers_per_location: u32,
    /// From the departure to the first location, from one to the next, and from the last to the
    /// destination.
    pub spacing: f64,
    /// How far from the reader the major detection region reaches, in both directions.
    pub major_radius: f64,
    /// How far the minor region reaches, and so the reader at all.
    pub minor_radius: f64,
    /// Chance that a reader detects a tag in its major region, each time it asks.
    pub major_probability: f64,
    /// How often each reader asks.
    pub epoch: u64,
    /// Time between the departures of two groups.
    pub departure_interval: u64,
    /// Tags in a group: at least and at most, evenly distributed.
    pub group_tags: (u32, u32),
    /// Velocity of a group in metres a second: at least and at most, evenly distributed.
    pub velocity: (f64, f64),
}

impl Default for RfidModel {
    /// Boxes on a conveyor: five locations 20 m apart, tags in sight for 4 to 12 s at each and read
    /// some 17 times by each reader, then out of sight for 9 s or more. A window of 5 s tells
    /// visits apart.
    fn default() -> Self {
        Self {
            seed: 1,
            start: 1_736_150_400_000_000_000,
            locations: 5,
            readers_per_location: 1,
            spacing: 20.0,
            major_radius: 1.5,
            minor_radius: 3.0,
            major_probability: 0.95,
            epoch: 250_000_000,
            departure_interval: 10_000_000_000,
            group_tags: (5, 35),
            velocity: (0.5, 1.5),
        }
    }
}

/// A parameter of [`RfidModel`] that makes no sense, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidModel {
    /// The parameter's name.
    pub parameter: &'static str,
    /// What it must be.
    pub must: &'static str,
}

impl fmt::Display for InvalidModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must {}", self.parameter, self.must)
    }
}

impl std::error::Error for InvalidModel {}

impl RfidModel {
    /// The chance that a reader detects a tag at this distance, each time it asks.
    pub fn detection_probability(&self, distance: f64) -> f64 {
        if distance <= self.major_radius {
            self.major_probability
        } else if distance < self.minor_radius {
            let depth = (self.minor_radius - distance) / (self.minor_radius - self.major_radius);
            self.major_probability * depth
        } else {
            0.0
        }
    }

    /// The shortest time a tag can be out of every reader's sight between two locations, in
    /// nanoseconds; 0 where regions overlap. A window below it tells visits apart.
    pub fn shortest_gap(&self) -> u64 {
        let dark = (self.spacing - 2.0 * self.minor_radius).max(0.0);
        (dark / self.velocity.1 * 1e9) as u64
    }

    fn check(&self) -> Result<(), InvalidModel> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let (slow, fast) = self.velocity;
        let step = fast * self.epoch as f64 / 1e9;
        let rules = [
            (self.locations >= 1, "locations", "be at least 1"),
            (self.readers_per_location >= 1, "readers_per_location", "be at least 1"),
            (
                self.locations.checked_mul(self.readers_per_location).is_some(),
                "locations × readers_per_location",
                "be less than 2^32",
            ),
            (positive(self.spacing), "spacing", "be positive"),
            (positive(self.minor_radius), "minor_radius", "be positive"),
            (
                (0.0..=self.minor_radius).contains(&self.major_radius),
                "major_radius",
                "lie between 0 and minor_radius",
            ),
            (
                self.major_probability > 0.0 && self.major_probability <= 1.0,
                "major_probability",
                "lie in (0, 1]",
            ),
            (
                self.epoch >= u64::from(self.readers_per_location),
                "epoch",
                "be 1 ns a reader or more",
            ),
            (self.departure_interval >= 1, "departure_interval", "be positive"),
            (
                self.group_tags.0 >= 1 && self.group_tags.0 <= self.group_tags.1,
                "group_tags",
                "be a range from 1 or more",
            ),
            (
                positive(slow) && positive(fast) && slow <= fast,
                "velocity",
                "be a range of positive numbers",
            ),
            // Else a group might jump over every region, and the stream might never yield a read.
            (
                step < 2.0 * self.minor_radius,
                "epoch",
                "be shorter than the fastest group takes to pass a reader",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, parameter, must)) => Err(InvalidModel { parameter, must }),
        }
    }
}

/// A group on its way.
#[derive(Clone, Debug)]
struct Group {
    departed: u64,
    velocity: f64,
    first_epc: u128,
    tags: u32,
}

/// The endless stream of reads, in order of time; `take` as many as wanted.
///
/// *Cost:* some 10 ns a read. Memory: one entry a group in flight, and one instant's reads.
/// Ends only when the last group that could depart before time overflows has arrived.
#[derive(Clone, Debug)]
pub struct RfidReads {
    model: RfidModel,
    /// Decides sizes and velocities only, so that tags do not depend on the readers.
    departures: Rand64,
    detections: Rand64,
    in_flight: Vec<Group>,
    groups: u64,
    tags: u64,
    next_departure: Option<u64>,
    epoch_start: u64,
    /// Which of a location's readers asks next.
    turn: u32,
    /// Reads of the present instant, not yet handed out from `handed` on.
    instant: Vec<Read>,
    handed: usize,
}

impl RfidReads {
    /// The stream for this model.
    ///
    /// # Errors
    /// When a parameter makes no sense.
    pub fn new(model: RfidModel) -> Result<Self, InvalidModel> {
        model.check()?;
        Ok(Self {
            departures: Rand64::new(u128::from(model.seed)),
            detections: Rand64::new(u128::from(model.seed) | 1 << 64),
            in_flight: Vec::new(),
            groups: 0,
            tags: 0,
            next_departure: Some(model.start),
            epoch_start: model.start,
            turn: 0,
            instant: Vec::new(),
            handed: 0,
            model,
        })
    }

    /// Plays instants until one has reads. `None` when time overflows.
    fn play(&mut self) -> Option<()> {
        self.instant.clear();
        self.handed = 0;
        while self.instant.is_empty() {
            if self.in_flight.is_empty() && self.turn == 0 {
                self.wait_for_departure()?;
            }
            let readers = self.model.readers_per_location;
            let offset = self.model.epoch / u64::from(readers) * u64::from(self.turn);
            let now = self.epoch_start.checked_add(offset)?;
            self.depart_until(now);
            self.detect(now);
            self.turn += 1;
            if self.turn == readers {
                self.turn = 0;
                self.epoch_start = self.epoch_start.checked_add(self.model.epoch)?;
                self.arrive(now);
            }
        }
        Some(())
    }

    /// Skips the epochs in which there is nothing to detect.
    fn wait_for_departure(&mut self) -> Option<()> {
        let wait = self.next_departure?.saturating_sub(self.epoch_start);
        let epochs = wait / self.model.epoch * self.model.epoch;
        self.epoch_start = self.epoch_start.checked_add(epochs)?;
        Some(())
    }

    fn depart_until(&mut self, now: u64) {
        while let Some(departed) = self.next_departure.filter(|&t| t <= now) {
            let (fewest, most) = self.model.group_tags;
            let (slow, fast) = self.model.velocity;
            let tags = self.departures.rand_range(u64::from(fewest)..u64::from(most) + 1) as u32;
            let velocity = slow + (fast - slow) * self.departures.rand_float();
            let first_epc = sgtin96(self.groups, self.tags);
            self.in_flight.push(Group { departed, velocity, first_epc, tags });
            self.groups += 1;
            self.tags += u64::from(tags);
            self.next_departure = departed.checked_add(self.model.departure_interval);
        }
    }

    /// Takes the groups out that have reached the destination.
    fn arrive(&mut self, now: u64) {
        let destination = self.model.spacing * (f64::from(self.model.locations) + 1.0);
        self.in_flight.retain(|group| group.position(now) < destination);
    }

    /// One reader of every location asks.
    fn detect(&mut self, now: u64) {
        let Self { model, detections, in_flight, instant, .. } = self;
        let reach = model.minor_radius / model.spacing;
        for group in in_flight.iter() {
            let position = group.position(now);
            let at = position / model.spacing;
            let nearest = (at - reach).ceil().max(1.0) as u32;
            let farthest = (at + reach).floor().min(f64::from(model.locations)) as u32;
            for location in nearest..=farthest {
                let offset = position - model.spacing * f64::from(location);
                let chance = model.detection_probability(offset.abs());
                // Saturates at a chance of 1, where the comparison still fails once in 2^64.
                let threshold = (chance * 18_446_744_073_709_551_616.0) as u64;
                let faintness = 25.0 * offset.abs() / model.minor_radius;
                let report = Read {
                    time: now,
                    epc: 0,
                    location,
                    reader: (location - 1) * model.readers_per_location + self.turn + 1,
                    antenna: if offset < 0.0 { 1 } else { 2 },
                    rssi: -47 - faintness as i8,
                };
                for tag in 0..group.tags {
                    let dice = detections.rand_u64();
                    if dice < threshold {
                        let epc = group.first_epc + u128::from(tag);
                        let noise = (dice % 5) as i8;
                        instant.push(Read { epc, rssi: report.rssi + noise, ..report });
                    }
                }
            }
        }
    }
}

impl Group {
    fn position(&self, now: u64) -> f64 {
        self.velocity * (now - self.departed) as f64 / 1e9
    }
}

impl Iterator for RfidReads {
    type Item = Read;

    #[inline]
    fn next(&mut self) -> Option<Read> {
        if self.handed == self.instant.len() {
            self.play()?;
        }
        let read = self.instant[self.handed];
        self.handed += 1;
        Some(read)
    }
}

/// The id of a tag: an SGTIN-96 (GS1 tag data standard) with filter value 1, the example company
/// prefix 0614141, one item reference a group, and the tag's number as serial number.
///
/// Serial numbers repeat after 2^38 tags, not before.
fn sgtin96(group: u64, tag: u64) -> u128 {
    const HEADER: u128 = 0x30;
    const FILTER: u128 = 1;
    /// A company prefix of 7 digits in 24 bits, an item reference of 6 digits in 20.
    const PARTITION: u128 = 5;
    const COMPANY: u128 = 614_141;
    let item = u128::from(100_000 + group % 900_000);
    let serial = u128::from(tag & ((1 << 38) - 1));
    HEADER << 88 | FILTER << 85 | PARTITION << 82 | COMPANY << 58 | item << 38 | serial
}

/// Writes reads as CSV with the header `timestamp,reader,antenna,rssi,epc,location`; times as
/// RFC 3339 in UTC with milliseconds, ids as 24 hexadecimal digits.
///
/// # Errors
/// Those of the writer.
pub fn write_csv(out: impl Write, reads: impl IntoIterator<Item = Read>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 18, out);
    out.write_all(b"timestamp,reader,antenna,rssi,epc,location\n")?;
    let mut stamp = Stamp::default();
    for Read { time, epc, location, reader, antenna, rssi } in reads {
        let time = stamp.of(time);
        writeln!(out, "{time},reader-{reader},{antenna},{rssi},{epc:024X},loc-{location}")?;
    }
    out.flush()
}

/// Writes reads as one JSON object a line, with the names and values of [`write_csv`].
///
/// # Errors
/// Those of the writer.
pub fn write_ndjson(out: impl Write, reads: impl IntoIterator<Item = Read>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 18, out);
    let mut stamp = Stamp::default();
    for Read { time, epc, location, reader, antenna, rssi } in reads {
        let time = stamp.of(time);
        writeln!(
            out,
            "{{\"timestamp\":\"{time}\",\"reader\":\"reader-{reader}\",\"antenna\":{antenna},\
             \"rssi\":{rssi},\"epc\":\"{epc:024X}\",\"location\":\"loc-{location}\"}}"
        )?;
    }
    out.flush()
}

/// The text of the last time asked for: whole instants of reads share it.
#[derive(Default)]
struct Stamp {
    time: u64,
    text: String,
}

impl Stamp {
    fn of(&mut self, time: u64) -> &str {
        if self.text.is_empty() || self.time != time {
            self.time = time;
            // jiff's range ends in the year 9999, beyond that of 64 bits of nanoseconds.
            let stamp = jiff::Timestamp::from_nanosecond(i128::from(time)).unwrap_or_default();
            self.text = format!("{stamp:.3}");
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};

    fn reads(model: &RfidModel) -> RfidReads {
        RfidReads::new(model.clone()).unwrap()
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ids_are_sgtin_96() {
        // The standard's own example: urn:epc:tag:sgtin-96:1.0614141.812345.6789.
        assert_eq!(format!("{:024X}", sgtin96(712_345, 6_789)), "3034257BF7194E4000001A85");
    }

    #[test]
    fn times_are_sorted_and_start_with_the_model() {
        let model = RfidModel { readers_per_location: 3, ..RfidModel::default() };
        let all: Vec<Read> = reads(&model).take(50_000).collect();
        assert!(all.is_sorted_by_key(|read| read.time));
        assert!(all[0].time > model.start);
    }

    #[test]
    fn a_seed_decides_everything() {
        let model = RfidModel::default();
        let other = RfidModel { seed: 2, ..model.clone() };
        assert!(reads(&model).take(10_000).eq(reads(&model).take(10_000)));
        assert!(!reads(&model).take(10_000).eq(reads(&other).take(10_000)));
    }

    #[test]
    fn detection_falls_off_linearly() {
        let model = RfidModel::default();
        assert_eq!(model.detection_probability(0.0), 0.95);
        assert_eq!(model.detection_probability(1.5), 0.95);
        assert!((model.detection_probability(2.25) - 0.475).abs() < 1e-12);
        assert_eq!(model.detection_probability(3.0), 0.0);
    }

    /// One group at one known velocity: how often it was asked for at each distance is known too.
    #[test]
    fn regions_detect_as_often_as_they_should() {
        let model = RfidModel {
            group_tags: (20_000, 20_000),
            velocity: (1.0, 1.0),
            departure_interval: u64::MAX,
            locations: 1,
            major_probability: 0.8,
            ..RfidModel::default()
        };
        let mut detected = HashMap::<u64, u32>::new();
        for read in reads(&model) {
            *detected.entry(read.time).or_default() += 1;
        }
        assert!(detected.len() >= 22);
        for (time, count) in detected {
            let distance = ((time - model.start) as f64 / 1e9 - 20.0).abs();
            let p = model.detection_probability(distance);
            let sigma = (20_000.0 * p * (1.0 - p)).sqrt();
            assert!((f64::from(count) - 20_000.0 * p).abs() < 5.0 * sigma, "{distance}: {count}");
        }
    }

    #[test]
    fn three_readers_see_the_same_tags_three_times_as_often() {
        let single = RfidModel::default();
        let multiple = RfidModel { readers_per_location: 3, ..single.clone() };
        let hour = single.start + 3_600_000_000_000;
        let run = |model: &RfidModel| {
            let mut tags = BTreeSet::new();
            let count = reads(model)
                .take_while(|read| read.time < hour)
                .inspect(|read| _ = tags.insert(read.epc))
                .count();
            (tags, count as f64)
        };
        let (tags_s, count_s) = run(&single);
        let (tags_m, count_m) = run(&multiple);
        // Readers that ask later in an epoch may just see the newest group before the hour is over.
        assert!(tags_s.is_subset(&tags_m) && tags_m.len() - tags_s.len() <= 35);
        assert!((count_m / count_s - 3.0).abs() < 0.05, "{count_s} {count_m}");
    }

    #[test]
    fn visits_are_apart_and_have_tens_of_reads() {
        let model = RfidModel::default();
        let mut last = HashMap::<u128, Read>::new();
        let (mut visits, mut count) = (0, 0);
        for read in reads(&model).take(100_000) {
            count += 1;
            match last.insert(read.epc, read) {
                Some(before) if before.location == read.location => {
                    assert!(read.time - before.time <= 5_000_000_000);
                }
                Some(before) => {
                    assert!(read.time - before.time >= model.shortest_gap());
                    visits += 1;
                }
                None => visits += 1,
            }
        }
        assert!((10..30).contains(&(count / visits)), "{count} reads, {visits} visits");
    }

    #[test]
    fn overlapping_regions_report_a_tag_at_both() {
        let model = RfidModel { spacing: 2.0, ..RfidModel::default() };
        let places: BTreeSet<(u64, u32)> =
            reads(&model).take(1_000).map(|read| (read.time, read.location)).collect();
        let times: BTreeSet<u64> = places.iter().map(|place| place.0).collect();
        assert!(places.len() > times.len());
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |model: RfidModel| RfidReads::new(model).unwrap_err().parameter;
        let model = RfidModel::default;
        assert_eq!(refused(RfidModel { locations: 0, ..model() }), "locations");
        assert_eq!(refused(RfidModel { major_radius: 9.0, ..model() }), "major_radius");
        assert_eq!(refused(RfidModel { major_probability: 0.0, ..model() }), "major_probability");
        assert_eq!(refused(RfidModel { velocity: (1.0, f64::NAN), ..model() }), "velocity");
        assert_eq!(refused(RfidModel { group_tags: (2, 1), ..model() }), "group_tags");
        assert_eq!(refused(RfidModel { epoch: 60_000_000_000, ..model() }), "epoch");
    }

    #[test]
    fn csv_and_json_say_the_same() {
        let read = Read {
            time: 1_736_150_400_250_000_000,
            epc: sgtin96(0, 7),
            location: 2,
            reader: 5,
            antenna: 1,
            rssi: -60,
        };
        assert_eq!(
            text(|out| write_csv(out, [read])),
            "timestamp,reader,antenna,rssi,epc,location\n\
             2025-01-06T08:00:00.250Z,reader-5,1,-60,3034257BF461A80000000007,loc-2\n"
        );
        assert_eq!(
            text(|out| write_ndjson(out, [read])),
            "{\"timestamp\":\"2025-01-06T08:00:00.250Z\",\"reader\":\"reader-5\",\"antenna\":1,\
             \"rssi\":-60,\"epc\":\"3034257BF461A80000000007\",\"location\":\"loc-2\"}\n"
        );
    }
}
