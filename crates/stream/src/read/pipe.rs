//! Pipes and what is like them: read without waiting in a read, so that the end of a run is never waited
//! for in vain, and so that nothing is taken of a pipe that nobody is there any more to judge.

use super::rest::{Patience, Quiet, Rest};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A pipe that is open.
#[derive(Debug)]
pub(super) struct Pipe {
    file: File,
    /// It is told to never wait in a read. Else it is only asked whether a read would: should another
    /// process take what was there, the read waits after all.
    never_waits: bool,
    /// What tells it from other pipes, as long as the machine runs.
    name: Option<String>,
}

impl Pipe {
    /// A pipe of its own, opened by its name, or one that came open and may be shared with others, to
    /// whom nothing must change.
    pub(super) fn new(file: File, is_own: bool) -> Self {
        let name = name_of(&file);
        let (file, never_waits) = match own(&file, is_own && name.is_some(), name.is_some()) {
            Some(own) => (own, true),
            None => (file, false),
        };
        Self { file, never_waits, name }
    }

    /// What tells it from other pipes; nothing for what is no pipe.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// May a read wait after all?
    pub(super) fn may_wait(&self) -> bool {
        !self.never_waits
    }

    /// Is a read worth while? One that never waits tells by itself.
    pub(super) fn is_ready(&self) -> bool {
        self.never_waits || is_ready(&self.file)
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing, which may be another process's doing.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }

    /// Waits until there may be bytes; `false` if the run is to end first. With a `part` of a record at
    /// hand it waits a little longer for the rest.
    pub(super) fn wait(&self, rest: &Rest, part: bool) -> bool {
        loop {
            let patience = rest.patience(part);
            if matches!(patience, Patience::Over) {
                return false;
            }
            if wait(&self.file, &patience) {
                return true;
            }
        }
    }
}

/// What is in a compressed pipe: it ends, to what decompresses it, when the run is to end. So all that was
/// read is decompressed, and nothing more is read.
pub(super) struct Gate {
    pub(super) pipe: Pipe,
    pub(super) rest: Rest,
    pub(super) quiet: Quiet,
    /// It has ended so.
    pub(super) shut: Arc<AtomicBool>,
}

impl Read for Gate {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.rest.is_stopping() {
                self.shut.store(true, Ordering::Relaxed);
                return Ok(0);
            }
            let read = if self.pipe.is_ready() {
                self.pipe.read(into)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.quiet.tell();
                    self.pipe.wait(&self.rest, false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// The same pipe, opened for this process alone, and told never to wait.
#[cfg(unix)]
fn own(file: &File, is_own: bool, is_pipe: bool) -> Option<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    if is_own {
        rustix::io::ioctl_fionbio(file, true).ok()?;
        return file.try_clone().ok();
    }
    // What is set for a pipe that others have open, too, is set for them as well; Linux opens it again.
    if !is_pipe || !cfg!(target_os = "linux") {
        return None;
    }
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).custom_flags(flags as i32).open(again).ok()
}

/// Device and number of a pipe, and when the machine was started: then all pipes are new.
#[cfg(unix)]
fn name_of(file: &File) -> Option<String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = file.metadata().ok()?;
    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let name = || format!("{}:{}:{}", metadata.dev(), metadata.ino(), start.trim_ascii());
    metadata.file_type().is_fifo().then(name)
}

/// Waits for bytes, as long as that has patience; are there any? Whatever is wrong shows itself when it is
/// read.
#[cfg(unix)]
fn wait(file: &File, patience: &Patience<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let pipe = PollFd::new(file, PollFlags::IN);
    match patience {
        Patience::Bell(bell) => {
            let mut fds = [pipe, PollFd::new(*bell, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => !fds[0].revents().is_empty(),
                Err(error) => error != rustix::io::Errno::INTR,
            }
        }
        Patience::For(most) => {
            let tv_sec = most.as_secs().try_into().unwrap_or(i64::MAX);
            let timeout = Timespec { tv_sec, tv_nsec: most.subsec_nanos().into() };
            poll(&mut [pipe], Some(&timeout))
                .map_or_else(|error| error != rustix::io::Errno::INTR, |ready| ready > 0)
        }
        Patience::Over => false,
    }
}

#[cfg(unix)]
fn is_ready(file: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)) != Ok(0)
}

#[cfg(not(unix))]
fn own(_: &File, _: bool, _: bool) -> Option<File> {
    None
}

#[cfg(not(unix))]
fn name_of(_: &File) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn wait(_: &File, _: &Patience<'_>) -> bool {
    true
}

#[cfg(not(unix))]
fn is_ready(_: &File) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    /// Another process may take what was there when the pipe was asked: then a read that waits would keep
    /// the run from ending.
    #[test]
    fn a_read_of_a_pipe_never_waits_and_a_wait_ends_with_the_run() {
        let (reader, mut writer) = io::pipe().unwrap();
        let shared = File::from(OwnedFd::from(reader));
        let mut pipe = Pipe::new(shared.try_clone().unwrap(), false);
        assert!(!pipe.may_wait() && pipe.is_ready());
        let mut into = [0; 8];
        assert_eq!(pipe.read(&mut into).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // Whoever else has it open is not concerned.
        let flags = rustix::fs::fcntl_getfl(&shared).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        writer.write_all(b"ab").unwrap();
        let rest = Rest::default();
        assert!(pipe.wait(&rest, false));
        assert_eq!(pipe.read(&mut into).unwrap(), 2);
        // Told while it waits, and before.
        let pipe = Arc::new(pipe);
        let (waits, told) = (Arc::clone(&pipe), rest.clone());
        let waiting = std::thread::spawn(move || waits.wait(&told, false));
        std::thread::sleep(Duration::from_millis(20));
        rest.stop();
        assert!(!waiting.join().unwrap());
        assert!(!pipe.wait(&rest, false) && !pipe.wait(&rest, true));
        drop(writer);
    }
}
