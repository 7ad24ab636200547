//! Memory in huge pages: a large filter is read all over, and with pages of 4 KiB most reads first wait for their page's
//! address.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

/// How glibc's allocator is told. It reads this when a program starts.
const TUNABLES: &str = "GLIBC_TUNABLES";
const ADVISE: &str = "glibc.malloc.hugetlb=1";

/// Set for the program that is started: whatever has become of the tunables, as in programs of another user's rights, it
/// does not start once more.
const STARTED: &str = "LATELY_HUGE_PAGES";

/// Whether the system gives huge pages to those who ask.
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Has this process allocate in huge pages, for which it starts again under the same number: to be called before anything is
/// opened. Where that cannot be it returns, and nothing has changed.
pub fn ask_for() {
    let tunables = std::env::var_os(TUNABLES).unwrap_or_default();
    // Whoever has set this has their way.
    let is_set = tunables.to_string_lossy().contains("glibc.malloc.hugetlb");
    let was_started = std::env::var_os(STARTED).is_some();
    let is_glibc = cfg!(all(target_os = "linux", target_env = "gnu"));
    if is_glibc && !is_set && !was_started && are_given_on_request() {
        start_again(&with_advice(&tunables));
    }
}

/// Does the system give them to those who ask, and to nobody else?
fn are_given_on_request() -> bool {
    fs::read_to_string(ENABLED).is_ok_and(|enabled| enabled.contains("[madvise]"))
}

fn with_advice(tunables: &OsStr) -> OsString {
    let mut with = tunables.to_owned();
    if !with.is_empty() {
        with.push(":");
    }
    with.push(ADVISE);
    with
}

/// Returns only if it does not succeed.
#[cfg(unix)]
fn start_again(tunables: &OsStr) {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "lately".into());
    // Where a loader was called by hand with this program as its argument, it is the loader that would be started.
    let is_loader = |program: &Path| {
        program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-"))
    };
    if let Ok(program) = std::env::current_exe()
        && !is_loader(&program)
    {
        let mut again = Command::new(program);
        again.arg0(name).args(arguments).env(TUNABLES, tunables).env(STARTED, "asked");
        // Without them everything works as well, so nobody needs to know why there are none.
        let _ = again.exec();
    }
}

#[cfg(not(unix))]
fn start_again(_: &OsStr) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_tuned_stays() {
        assert_eq!(with_advice(OsStr::new("")), ADVISE);
        let with = with_advice(OsStr::new("glibc.malloc.arena_max=1"));
        assert_eq!(with, OsString::from(format!("glibc.malloc.arena_max=1:{ADVISE}")));
    }
}
