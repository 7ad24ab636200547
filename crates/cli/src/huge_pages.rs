//! Memory in huge pages: a large filter is read all over, and with pages of 4 KiB most reads first wait for their page's
//! address.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::process::Command;

/// How glibc's allocator is told. It reads this when a program starts.
const TUNABLES: &str = "GLIBC_TUNABLES";
const ADVISE: &str = "glibc.malloc.hugetlb=1";

/// Whether the system gives huge pages to those who ask.
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Has this process allocate in huge pages, for which it starts again under the same number. Where that cannot be, it says so
/// and continues.
pub fn ask_for() {
    let tunables = std::env::var_os(TUNABLES).unwrap_or_default();
    if tunables.to_string_lossy().contains("glibc.malloc.hugetlb") {
        return;
    }
    let why = if cfg!(all(target_os = "linux", target_env = "gnu")) {
        match fs::read_to_string(ENABLED) {
            Ok(enabled) if enabled.contains("[never]") => {
                format!("the system gives none: {ENABLED} is never")
            }
            Ok(_) => start_again(&with_advice(&tunables)),
            Err(error) => format!("the system has none: {ENABLED}: {error}"),
        }
    } else {
        "only Linux with glibc has them for this program".to_owned()
    };
    eprintln!("lately: --huge-pages: {why}; continuing without them");
}

fn with_advice(tunables: &OsStr) -> OsString {
    let mut with = tunables.to_owned();
    if !with.is_empty() {
        with.push(":");
    }
    with.push(ADVISE);
    with
}

/// Returns only if it does not succeed, with the reason.
#[cfg(unix)]
fn start_again(tunables: &OsStr) -> String {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "lately".into());
    match std::env::current_exe() {
        Ok(program) => {
            let mut again = Command::new(program);
            again.arg0(name).args(arguments).env(TUNABLES, tunables).exec().to_string()
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(not(unix))]
fn start_again(_: &OsStr) -> String {
    "this system has no way to start a program again in its place".to_owned()
}

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
