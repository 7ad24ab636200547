//! The aged table: a key in one of two cache lines, in the order of its age.

mod fine;
mod line;
mod marks;

use self::line::{LANE, TURNS};
use crate::codec::{Reader, Writer};
use crate::plan::formulas::TOO_LOW;
use crate::table::{Contract, Recipe, Windows};
use crate::window::slots::core::Slotted;
use crate::window::slots::keeps::Keeps;
use crate::window::slots::paired::paired_fpr;
use crate::window::slots::recency;
use crate::window::traits::window_traits;
use crate::{
    Digest, MergeError, Overload, PlanError, Seen, SnapshotError, Spec, Tick, Verdict, Window,
};

/// A hash table of cache lines, in each of which fingerprints lie in the order of their last sighting: the fast
/// window, and with a slack of an eighteenth a small one.
///
/// A key is a duplicate when one of its two lines has a live entry with its fingerprint; one compare
/// answers for a line. A new key is put into the emptier line. As the order tells the age, a line keeps only
/// where in it generations begin, instead of a stamp for each entry.
///
/// Where the slack is an eighteenth of the window or more (window and lateness together), generations are all the time
/// a line tells. The youngest entry comes first, a key that is seen again moves to the front, and all lines grow older
/// together, so that nobody has to look at ages in between. At finer resolutions there are eight generations, and
/// entries have the bits that are missing: slower, and the oldest entry comes first.
///
/// # Guarantee
/// A key remembered within the window is always found: one for which moving others makes no room is
/// kept in a stash. One last remembered more than `window + slack` ago is found with probability at
/// most [`Filter::fpr`](crate::Filter::fpr): `1 - (1 - 2^-f)^(2n/l)` for `n` keys in `l` lines and
/// fingerprints of `f` bits. Should the stash be full too, keys are not remembered, and
/// [`AgedTable::overload`] counts them.
///
/// # Late arrivals
/// With [`Keeps::lateness`] an entry is kept for window and lateness (with generations alone until its generation has
/// expired: a burst gives no room back before), and an arrival compares its own moment
/// with those of its key's entries. As long as the lateness is no longer than the window, a key has one
/// entry, that of its newest sighting. Beyond that it has two for each block of two windows that it was seen
/// in, and an arrival looks in two blocks, which are four places. `docs/late.md` has the proof.
///
/// # Cost
/// Two cache lines a question. Of 512 bits of a line 48 are its head's; an entry takes `f` bits (16 at
/// least), and at resolutions below an eighteenth `log2` of the grains an eighth of a window has. With generations alone
/// every arrival at the beginning of one has up to 96 lines grow older, whatever the gap before it was. With finer
/// moments a sweep looks at a line about four times in three windows, a few at a time; after a pause at as many as fell
/// due meanwhile and may hold entries, and after one as long as the window at none, as all is cleared then, page by page
/// when it is used again.
///
/// `AVX-512`, `AVX2`, `SSE2` and `NEON` are used where a processor has them; verdicts and snapshots are the same without.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Spec, Structure, Tick, Verdict, Window, WindowFilter};
/// let million = NonZeroU64::new(1_000_000).unwrap();
/// let spec = Spec::new(Window::Count(million)).structure(Structure::AgedTable);
/// let plan = spec.fpr(1e-3).slack(125_000).plan()?;
/// assert!(plan.bits_per_key() < 20.6);
/// let mut seen = plan.build();
/// let tag = seen.digester().digest(b"tag");
/// assert_eq!(seen.observe(tag, Tick(0)), Verdict::Fresh);
/// assert_eq!(seen.observe(tag, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// Ours. A fingerprint a key and a time for it are what papers 2 and 4 have in common (see
/// [`CuckooWindow`](super::CuckooWindow) and [`DleftWindow`](super::DleftWindow)); two lines of which
/// one follows from the other and the fingerprint: B. Fan, D. G. Andersen, M. Kaminsky,
/// M. D. Mitzenmacher, "Cuckoo filter: practically better than Bloom", CoNEXT 2014, section 3;
/// the emptier of two cache lines: P. Pandey, A. Conway, J. Durie, M. A. Bender, M. Farach-Colton,
/// R. Johnson, "Vector quotient filters", SIGMOD 2021, section 5.
#[derive(Clone, Debug, PartialEq)]
pub struct AgedTable(Core);

/// How lines tell ages.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a table")]
enum Core {
    /// By generations alone, the youngest entry first.
    Recency(Slotted<recency::Table>),
    /// By eight generations and moments within them, the oldest entry first: for finer moments, and in snapshots of
    /// before there was the other.
    Fine(Slotted<fine::Table>),
}

/// Generations that a window and its lateness have where the slack allows so many. More take less space, and more time
/// to age by: 19.6 bits per key at 18 and a rate of 0.1 %, 20.1 at 12.
const GENERATIONS: u64 = 18;

/// Begins tables of [`Core::Recency`] in snapshots, where others say whether they count arrivals.
const RECENCY: u8 = 2;

/// The same call on whichever core it is.
macro_rules! each {
    ($core:expr, $table:ident => $call:expr) => {
        match $core {
            Core::Recency($table) => $call,
            Core::Fine($table) => $call,
        }
    };
}

impl AgedTable {
    /// An empty window of so many lines, and fingerprints of so many bits (16 to 64).
    ///
    /// # Errors
    /// [`PlanError`] for sizes that cannot be, or that there is no memory for.
    pub fn new(keeps: Keeps, lines: u64, fingerprint_bits: u32) -> Result<Self, PlanError> {
        keeps.check()?;
        if !is_size(lines, fingerprint_bits) {
            return Err(PlanError::TooLarge(
                "an aged table has 1 to 2^50 lines and fingerprints of 16 to 64 bits",
            ));
        }
        if recency::tells(&keeps, fingerprint_bits) {
            let table = recency::Table::new(&keeps, lines, fingerprint_bits)?;
            return Ok(Self(Core::Recency(Slotted::new(keeps, table))));
        }
        let table = fine::Table::new(&keeps, lines, fingerprint_bits)?;
        Ok(Self(Core::Fine(Slotted::new(keeps, table))))
    }

    /// The window, and how it is kept.
    pub fn keeps(&self) -> &Keeps {
        each!(&self.0, table => &table.keeps)
    }

    /// Cache lines.
    pub fn lines(&self) -> u64 {
        each!(&self.0, table => table.slots.lines())
    }

    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        each!(&self.0, table => table.slots.fingerprint_bits())
    }

    /// Keys that found no slot and are kept outside the table.
    pub fn stashed(&self) -> u64 {
        each!(&self.0, table => table.stashed())
    }

    /// Keys that were not remembered, as neither table nor stash had room for them.
    pub fn overload(&self) -> Overload {
        self.0.overload()
    }

    /// Forgets a key: it is not found any more until it is seen again. Was it known?
    ///
    /// Keys with its fingerprint and its lines are forgotten with it: see [`AnyFilter::forget`](crate::AnyFilter::forget).
    pub fn forget(&mut self, digest: Digest) -> bool {
        self.0.forget(digest)
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let core = match input.u8()? {
            RECENCY => Core::Recency(Slotted::read(input, recency::Table::read)?),
            counts @ (0 | 1) => {
                let keeps = Keeps::read_of(counts == 1, input)?;
                Core::Fine(Slotted::read_of(keeps, input, fine::Table::read)?)
            }
            _ => return Err(SnapshotError::Invalid("an aged table of an unknown kind")),
        };
        Ok(Self(core))
    }
}

/// Calls that both cores take.
macro_rules! both {
    ($($(#[$inline:meta])* fn $name:ident(&self $(, $arg:ident: $of:ty)*) $(-> $result:ty)?;)*) => {
        $($(#[$inline])* fn $name(&self $(, $arg: $of)*) $(-> $result)? {
            each!(self, table => table.$name($($arg),*))
        })*
    };
    (mut $($(#[$inline:meta])* fn $name:ident(&mut self $(, $arg:ident: $of:ty)*) $(-> $result:ty)?;)*) => {
        $($(#[$inline])* fn $name(&mut self $(, $arg: $of)*) $(-> $result)? {
            each!(self, table => table.$name($($arg),*))
        })*
    };
}

impl Core {
    both! {
        #[inline]
        fn contains(&self, digest: Digest, now: Tick) -> bool;
        fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool;
        fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen>;
        #[inline]
        fn contains_run(&self, digests: &[Digest], now: Tick, found: &mut [bool]) -> bool;
        #[inline]
        fn prefetch(&self, digest: Digest);
        #[inline]
        fn prefetch_at(&self, digest: Digest, at: Tick);
        #[inline]
        fn prefetch_more(&self, digest: Digest);
        #[inline]
        fn is_full(&self) -> bool;
        fn notes_ends(&self) -> bool;
        fn look_at_fill(&self, digest: Digest) -> Option<(f64, f64)>;
        fn overload(&self) -> Overload;
        fn newest(&self) -> Tick;
        fn fill(&self) -> f64;
        fn window(&self) -> Window;
        fn slack(&self) -> u64;
        fn capacity(&self) -> u64;
        fn fpr(&self) -> f64;
        fn fpr_at_capacity(&self) -> f64;
        fn estimated_fpr(&self) -> f64;
        fn suits(&self, spec: &Spec) -> bool;
        fn memory(&self) -> usize;
        fn keys_now(&self) -> u64;
    }
    both! {
        mut
        #[inline]
        fn observe(&mut self, digest: Digest, now: Tick) -> Verdict;
        fn remember(&mut self, digest: Digest, now: Tick);
        #[inline]
        fn advance(&mut self, now: Tick);
        fn sample(&mut self, digest: Digest);
        fn resume(&mut self, fill: f64);
        fn forget(&mut self, digest: Digest) -> bool;
        fn is_full_now(&mut self) -> bool;
        fn clear(&mut self);
    }

    #[inline(always)]
    fn observe_quickly(&mut self, digest: Digest, now: Tick) -> Option<Verdict> {
        match self {
            Self::Recency(table) => table.observe_quickly(digest, now),
            Self::Fine(_) => None,
        }
    }

    #[inline(always)]
    fn contains_quickly(&self, digest: Digest, now: Tick) -> Option<bool> {
        match self {
            Self::Recency(table) => table.contains_quickly(digest, now),
            Self::Fine(_) => None,
        }
    }

    #[inline]
    fn observe_run(
        &mut self,
        digests: &[Digest],
        moment: impl Fn(usize) -> Tick,
        verdicts: &mut [Verdict],
    ) -> usize {
        each!(self, table => table.observe_run(digests, moment, verdicts))
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        match (self, other) {
            (Self::Recency(ours), Self::Recency(theirs)) => ours.merge(theirs),
            (Self::Fine(ours), Self::Fine(theirs)) => ours.merge(theirs),
            _ => Err(MergeError::Shape),
        }
    }

    fn write(&self, out: &mut Writer<'_>) {
        if let Self::Recency(_) = self {
            out.u8(RECENCY);
        }
        each!(self, table => table.write(out));
    }
}

impl Recipe for AgedTable {
    type Table = Self;
    /// Lines, bits of a fingerprint.
    type Size = (Keeps, u64, u32);

    const WINDOWS: Windows = Windows::Any;
    const LATE: bool = true;
    const FORGETS: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        let coarse = Keeps::coarsest(spec, capacity)?;
        if let Some(size) = recency_size(coarse, spec.terms.slack, fpr) {
            return Ok(size);
        }
        // The finest grain that has the bits of the coarsest one which the slack allows.
        let steps = coarse.pace().steps().div_ceil(TURNS).next_power_of_two().saturating_mul(TURNS);
        let fine = coarse.in_steps(steps);
        let better = fine.grain < coarse.grain && fine.slack() <= spec.terms.slack;
        let keeps = if better { fine } else { coarse };
        let (lines, bits) = size_for(&keeps, fpr).ok_or(TOO_LOW)?;
        Ok((keeps, lines, bits))
    }

    fn contract((keeps, ..): &Self::Size) -> Contract {
        keeps.contract()
    }

    fn memory(&(ref keeps, lines, bits): &Self::Size) -> Option<u64> {
        let in_order = recency::tells(keeps, bits);
        let table = if in_order { recency::bytes_for(lines) } else { fine::bytes_for(lines) };
        Some(table? + keeps.stash_memory())
    }

    fn cell_bits_and_hashes(&(ref keeps, _, bits): &Self::Size) -> (u32, u32) {
        // With its share of the head, rounded up.
        (512u32.div_ceil(slots(keeps, bits)), 2)
    }

    fn limit_stash((keeps, ..): &mut Self::Size, bytes: u64) {
        keeps.limit_stash(bytes);
    }

    fn build((keeps, lines, bits): Self::Size) -> Result<Self, PlanError> {
        Self::new(keeps, lines, bits)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

window_traits!(AgedTable, runs, forgets);

fn is_size(lines: u64, fingerprint_bits: u32) -> bool {
    (1..=1 << 50).contains(&lines) && (LANE..=64).contains(&fingerprint_bits)
}

/// Entries of a line.
fn slots(keeps: &Keeps, fingerprint_bits: u32) -> u32 {
    if recency::tells(keeps, fingerprint_bits) {
        recency::slots_for(fingerprint_bits)
    } else {
        fine::slots_for(keeps, fingerprint_bits)
    }
}

/// A table whose generations are all the time it tells; none where the slack is finer than those can be.
fn recency_size(coarse: Keeps, slack: u64, fpr: f64) -> Option<(Keeps, u64, u32)> {
    // The more bits a fingerprint has, the fewer entries a line, and the more generations.
    [GENERATIONS, 19, 24, 30, 36, u64::from(recency::most_steps(64))].into_iter().find_map(
        |steps| {
            let keeps = coarse.in_steps(steps);
            if keeps.slack() > slack || keeps.pace().steps() > steps || keeps.check().is_err() {
                return None;
            }
            let (lines, bits) = size_for(&keeps, fpr)?;
            recency::tells(&keeps, bits).then_some((keeps, lines, bits))
        },
    )
}

/// Lines, and bits of a fingerprint, of the smallest table that keeps a rate for its entries; none if there is no such
/// table.
fn size_for(keeps: &Keeps, fpr: f64) -> Option<(u64, u32)> {
    let keys = keeps.full_at();
    let sizes = (LANE..=64).filter_map(|bits| {
        let in_order = recency::tells(keeps, bits);
        // The fewer slots a line has, the less even lines are, and the more moves are needed.
        let load = match slots(keeps, bits) {
            16.. if in_order => 0.95,
            16.. => 0.97,
            8.. => 0.93,
            _ => 0.85,
        };
        // A few more, as chance fills small tables less evenly.
        let lines =
            (libm::ceil(keys / (f64::from(slots(keeps, bits)) * load)) as u64).saturating_add(1);
        if in_order {
            // Where they are a little too full for the rate, a few more lines take less than another bit for each entry.
            let lines = lines.max(recency::lines_for(fpr, bits, keys)?);
            return (recency::fpr(lines, bits, keys) <= fpr).then_some((lines, bits));
        }
        (paired_fpr(lines, bits, keys) <= fpr).then_some((lines, bits))
    });
    // The first of those that are as small: it has more slots.
    sizes.min_by_key(|&(lines, _)| lines)
}
