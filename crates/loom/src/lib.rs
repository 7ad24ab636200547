//! The shared filter of the library, source and all, over loom's locks instead of the standard library's.

pub use lately::*;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

#[path = "../../../src/shared.rs"]
mod shared;

/// Not the library's, but the same source over loom.
pub use shared::Shared as Checked;

#[cfg(test)]
mod tests {
    use crate::{Checked, Digest, Digester, Spec, Tick, Verdict, Window};
    use loom::sync::Arc;
    use loom::thread;

    fn key(n: u64) -> Digest {
        Digester::new(0).digest_integer(n.into())
    }

    fn filter(window: Window, shards: usize) -> Arc<Checked> {
        Arc::new(Checked::new(Spec::new(window).fpr(0.01), shards).unwrap())
    }

    /// Two threads bring one key: one of them is first, in whatever order they meet.
    #[test]
    fn a_key_is_fresh_for_exactly_one_thread() {
        loom::model(|| {
            let seen = filter(Window::time(10, 4), 2);
            let other = Arc::clone(&seen);
            let theirs = thread::spawn(move || other.observe(key(1), Tick(3)));
            let ours = seen.observe(key(1), Tick(4));
            let theirs = theirs.join().unwrap();
            assert_ne!(ours, theirs);
            assert!(seen.contains(key(1), Tick(9)));
        });
    }

    /// Arrivals are numbered without gaps, in every shard upwards: a key is found for as many of them as the window
    /// has, and no more.
    #[test]
    fn a_window_of_arrivals_counts_those_of_all_threads() {
        let shard = |n: u64| key(n).shard(2);
        let same = (1..).find(|&n| shard(n) == shard(0)).unwrap();
        let other = (1..).find(|&n| shard(n) != shard(0)).unwrap();
        loom::model(move || {
            let seen = filter(Window::count(2), 2);
            assert_eq!(seen.observe(key(0), Tick(0)), Verdict::Fresh);
            let theirs = {
                let seen = Arc::clone(&seen);
                thread::spawn(move || seen.observe(key(other), Tick(0)))
            };
            let _ = seen.observe(key(same), Tick(0));
            let _ = theirs.join().unwrap();
            // The fourth arrival: the first is three ago.
            assert_eq!(seen.observe(key(0), Tick(0)), Verdict::Fresh);
            // The fifth: the key of the other thread is two or three ago.
            assert!(!seen.contains(key(same), Tick(0)) || !seen.contains(key(other), Tick(0)));
        });
    }

    /// A snapshot that is taken meanwhile holds a key whole or not at all, and nobody waits for ever.
    #[test]
    fn a_snapshot_meets_an_arrival() {
        loom::model(|| {
            let seen = filter(Window::time(10, 4), 2);
            let other = Arc::clone(&seen);
            // Loom's own stacks are small.
            let saver = thread::Builder::new().stack_size(1 << 18);
            let saver = saver.spawn(move || saved_and_restored(&other)).unwrap();
            let _ = seen.observe(key(1), Tick(1));
            let _ = seen.observe(key(2), Tick(2));
            let restored_with = saver.join().unwrap();
            assert!(restored_with <= 2);
        });
    }

    /// How many keys a restored snapshot holds: those that it finds.
    fn saved_and_restored(seen: &Checked) -> u64 {
        let mut bytes: Vec<u8> = Vec::new();
        let sink = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok::<_, ()>(())
        };
        seen.snapshot_to(sink).unwrap();
        let (len, mut source) = (bytes.len() as u64, &bytes[..]);
        let read = |into: &mut [u8]| std::io::Read::read(&mut source, into);
        let restored = Checked::restore_from(len, read).unwrap();
        let found = [1, 2].into_iter().filter(|&n| restored.contains(key(n), Tick(2))).count();
        assert_eq!(restored.len(), found as u64);
        restored.len()
    }
}
