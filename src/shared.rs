//! A filter that threads share: keys are spread over shards, each behind a lock of its own.

use crate::codec::{self, Format, Reader, Writer};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::{
    AnyFilter, Digest, Digester, Filter, Overload, PlanError, RestoreError, SnapshotError, Spec,
    Tick, Verdict, Window, WindowFilter,
};
use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::vec::Vec;

/// Begins the snapshots of shared filters.
const SHARED: Format = Format::new(*b"\x89LATESH\n", 1);

/// Standard deviations by which a shard may be fuller than the mean of all.
const MARGIN: f64 = 5.0;

/// The most shards.
const MOST_SHARDS: usize = 1 << 16;

/// A filter whose methods take `&self`, for threads to share.
///
/// A key belongs to one of several *shards* ([`Digest::shard`]), and each shard is an [`AnyFilter`] behind a lock.
/// Threads wait for each other only where their keys are of one shard at the same time: with four shards a thread, seldom.
///
/// # Guarantee
/// That of an [`AnyFilter`] of the same [`Spec`], for some order of the arrivals in which those that did not overlap in
/// time are as they were. A key that two threads bring at once is fresh for exactly one of them. In a window of time a shard
/// judges an arrival by the newest moment that *it* has seen; a moment that another thread has overtaken is taken for
/// the newest of its shard, as late arrivals are.
///
/// A window of arrivals counts those of all shards together. Each shard then has room for its part of them and some more; where
/// chance gives one more than that, it grows.
///
/// The false positive rate is that of a single filter: a key is looked for in its shard alone. A memory limit is
/// divided among the shards.
///
/// # Cost
/// That of the filter, and one lock a call, or one a shard in [`Shared::observe_batch`]. Shards are planned for their part of the keys and
/// five standard deviations more, which is 5 % with ten thousand keys a shard and half a percent with a million.
///
/// # Errors
/// A thread that panics while it holds a lock leaves the shard as it was at that moment, and the others continue: filters do
/// not panic in between.
///
/// # Example
/// ```
/// use lately::{Shared, Spec, Tick, Window};
/// let seen = Shared::new(Spec::new(Window::count(100_000)).fpr(1e-4), 16)?;
/// let fresh: usize = std::thread::scope(|scope| {
///     let workers: Vec<_> = (0..4)
///         .map(|_| scope.spawn(|| {
///             let keys = (0..1_000u64).map(|key| seen.digester().digest_hash(&key));
///             keys.filter(|&key| !seen.observe(key, Tick(0)).is_duplicate()).count()
///         }))
///         .collect();
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// assert!(fresh <= 1_000 && fresh >= 990);
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Debug)]
pub struct Shared {
    shards: Vec<Shard>,
    digester: Digester,
    window: Window,
    /// Arrivals so far, in a window that counts them.
    arrivals: AtomicU64,
}

/// Each in cache lines of its own, so that threads do not fight for the lock next door.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Mutex<AnyFilter>);

impl Shared {
    /// An empty filter of so many shards (1 to 65,536): four a thread or more.
    ///
    /// # Errors
    /// [`PlanError`], as [`Spec::plan`] and [`Plan::try_build`](crate::Plan::try_build) have it for a shard.
    pub fn new(spec: Spec, shards: usize) -> Result<Self, PlanError> {
        let shards = shards.clamp(1, MOST_SHARDS);
        let plan = shard_of(spec, shards as u64).plan()?;
        let mut built = Vec::with_capacity(shards);
        for _ in 0..shards {
            built.push(Shard(Mutex::new(plan.try_build()?)));
        }
        Ok(Self {
            shards: built,
            digester: Digester::new(plan.seed()),
            window: spec.window(),
            arrivals: AtomicU64::new(0),
        })
    }

    /// The digester whose digests this filter is to be given.
    pub fn digester(&self) -> &Digester {
        &self.digester
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    fn is_counting(&self) -> bool {
        matches!(self.window, Window::Count(_))
    }

    fn lock(&self, digest: Digest) -> MutexGuard<'_, AnyFilter> {
        lock(&self.shards[digest.shard(self.shards.len())])
    }

    /// One arrival: was the key seen within the window? It is now (or is renewed, as the spec says).
    pub fn observe(&self, digest: Digest, now: Tick) -> Verdict {
        let mut shard = self.lock(digest);
        let now = if self.is_counting() { self.next_arrival() } else { now };
        shard.observe(digest, now)
    }

    /// Numbers an arrival: with its shard locked, so that the numbers of a shard ascend.
    fn next_arrival(&self) -> Tick {
        Tick(self.arrivals.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// [`Shared::observe`] for many arrivals: each shard is locked once, and later keys' memory is fetched early. In a window of
    /// arrivals, where their order is what counts, it is one after the other.
    ///
    /// Goes as far as the shortest of the three slices.
    pub fn observe_batch(&self, digests: &[Digest], now: &[Tick], verdicts: &mut [Verdict]) {
        let len = digests.len().min(now.len()).min(verdicts.len());
        if self.is_counting() {
            for at in 0..len {
                verdicts[at] = self.observe(digests[at], now[at]);
            }
            return;
        }
        // By shard, and within one in the order they came in.
        let shard_of = |at: usize| digests[at].shard(self.shards.len());
        let mut order: Vec<(usize, usize)> = (0..len).map(|at| (shard_of(at), at)).collect();
        order.sort_unstable();
        let (mut theirs, mut moments, mut judged) = (Vec::new(), Vec::new(), Vec::new());
        for run in order.chunk_by(|one, other| one.0 == other.0) {
            theirs.clear();
            theirs.extend(run.iter().map(|&(_, at)| digests[at]));
            moments.clear();
            moments.extend(run.iter().map(|&(_, at)| now[at]));
            judged.clear();
            judged.resize(run.len(), Verdict::Fresh);
            lock(&self.shards[run[0].0]).observe_batch(&theirs, &moments, &mut judged);
            for (&(_, at), &verdict) in run.iter().zip(&judged) {
                verdicts[at] = verdict;
            }
        }
    }

    /// Was this key seen within the window that ends now? Changes nothing.
    pub fn contains(&self, digest: Digest, now: Tick) -> bool {
        let shard = self.lock(digest);
        let now =
            if self.is_counting() { Tick(self.arrivals.load(Ordering::Relaxed) + 1) } else { now };
        shard.contains(digest, now)
    }

    /// Marks the key as seen now, whatever was known of it, and counts as no arrival.
    pub fn remember(&self, digest: Digest, now: Tick) {
        let mut shard = self.lock(digest);
        let now =
            if self.is_counting() { Tick(self.arrivals.load(Ordering::Relaxed)) } else { now };
        shard.remember(digest, now);
    }

    /// Forgets one key before it expires: [`AnyFilter::forget`].
    pub fn forget(&self, digest: Digest) -> bool {
        let mut shard = self.lock(digest);
        if self.is_counting() {
            // Those of other shards have passed too.
            shard.advance(Tick(self.arrivals.load(Ordering::Relaxed) + 1));
        }
        shard.forget(digest)
    }

    /// Lets time pass in all shards.
    pub fn advance(&self, now: Tick) {
        if !self.is_counting() {
            self.each(|shard| shard.advance(now));
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.each(AnyFilter::clear);
    }

    fn each(&self, mut act: impl FnMut(&mut AnyFilter)) {
        self.shards.iter().for_each(|shard| act(&mut lock(shard)));
    }

    fn sum(&self, of: impl Fn(&AnyFilter) -> u64) -> u64 {
        self.shards.iter().map(|shard| of(&lock(shard))).fold(0, u64::saturating_add)
    }

    /// About how many keys it holds: the sum of [`AnyFilter::len`], shard after shard.
    pub fn len(&self) -> u64 {
        self.sum(AnyFilter::len)
    }

    /// Does no shard hold a key, as far as it knows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes allocated by the shards.
    pub fn memory(&self) -> u64 {
        self.sum(|shard| shard.memory() as u64)
    }

    /// What became of keys beyond the planned capacity, in all shards.
    pub fn overload(&self) -> Overload {
        let shards = self.shards.iter().map(|shard| lock(shard).overload());
        shards.fold(Overload::default(), Overload::plus)
    }

    /// The false positive rate promised.
    pub fn fpr(&self) -> f64 {
        self.shards.first().map_or(0.0, |shard| lock(shard).fpr())
    }

    /// The false positive rate estimated from the present fill: the mean of the shards.
    pub fn estimated_fpr(&self) -> f64 {
        let rates = self.shards.iter().map(|shard| lock(shard).estimated_fpr());
        rates.sum::<f64>() / self.shards.len().max(1) as f64
    }

    /// Hands the filter as bytes to a sink, a part at a time. All shards stay locked meanwhile.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn snapshot_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        // In one order for all callers, and with no other lock held: nobody waits in a circle.
        let shards: Vec<_> = self.shards.iter().map(lock).collect();
        let arrivals = self.arrivals.load(Ordering::Relaxed);
        codec::write(SHARED, sink, |out| self.write_body(&shards, arrivals, out))
    }

    fn write_body(
        &self,
        shards: &[MutexGuard<'_, AnyFilter>],
        arrivals: u64,
        out: &mut Writer<'_>,
    ) {
        out.flag(self.is_counting());
        out.u64(if self.is_counting() { self.window.capacity() } else { 0 });
        out.u64(arrivals);
        out.u32(shards.len() as u32);
        shards.iter().for_each(|shard| shard.write(out));
    }

    /// A filter from a source that has a snapshot of `len` bytes, and works as `std::io::Read::read` does.
    ///
    /// # Errors
    /// The source's own error, or [`SnapshotError`].
    pub fn restore_from<E>(
        len: u64,
        source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, RestoreError<E>> {
        codec::read(SHARED, len, source, Self::read_body)
    }

    fn read_body(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (counting, span, arrivals) = (input.flag()?, input.u64()?, input.u64()?);
        let count = input.u32()?;
        if count == 0 || count as usize > MOST_SHARDS || arrivals > 1 << 62 {
            return Err(SnapshotError::Invalid("a shared filter of no or too many shards"));
        }
        let mut filters: Vec<AnyFilter> = Vec::new();
        for _ in 0..count {
            filters.push(AnyFilter::read(input)?);
        }
        let plan = *filters[0].plan();
        if filters.iter().any(|filter| filter.plan() != &plan) {
            return Err(SnapshotError::Invalid("shards of different plans"));
        }
        let window = match (counting, plan.window()) {
            (true, Window::Time { span: shard, .. }) if shard.get() == span => Window::Count(shard),
            (false, window @ (Window::Time { .. } | Window::Unbounded { .. })) if span == 0 => {
                whole(window, u64::from(count))
            }
            _ => return Err(SnapshotError::Invalid("shards that do not keep their window")),
        };
        let shards = filters.into_iter().map(|filter| Shard(Mutex::new(filter))).collect();
        let digester = Digester::new(plan.seed());
        Ok(Self { shards, digester, window, arrivals: AtomicU64::new(arrivals) })
    }
}

/// What was asked for, from what its shards were.
fn whole(window: Window, shards: u64) -> Window {
    let keys = window.capacity().saturating_mul(shards);
    window.with_capacity(NonZeroU64::new(keys).unwrap_or(NonZeroU64::MIN))
}

fn lock(shard: &Shard) -> MutexGuard<'_, AnyFilter> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What each of so many shards is asked for.
fn shard_of(spec: Spec, shards: u64) -> Spec {
    if shards == 1 && !matches!(spec.window(), Window::Count(_)) {
        return spec;
    }
    let mean = spec.window().capacity() as f64 / shards as f64;
    let most = (mean + MARGIN * mean.sqrt()).ceil() as u64 + 8;
    let keys = NonZeroU64::new(most.min(spec.window().capacity())).unwrap_or(NonZeroU64::MIN);
    let window = match spec.window() {
        // The numbers of arrivals are moments to a shard, which sees a part of them.
        Window::Count(n) => Window::Time { span: n, capacity: keys },
        window => window.with_capacity(keys),
    };
    // The gaps between the numbers that a shard sees are no leaps.
    let spec = if let Window::Count(_) = spec.window() { spec.any_leap() } else { spec };
    let spec = spec.over(window);
    match spec.terms().memory {
        Some(limit) => spec.memory(limit / shards),
        None => spec,
    }
}
