//! A file is replaced as a whole, whatever is in the way and whenever the process ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately_store::{Replacement, replace};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> (TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    (folder, move |name: &str| path.join(name))
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_old_contents_stay_until_the_commit() {
    let (folder, path) = folder();
    replace(&path("state"), b"old").unwrap();
    let mut new = Replacement::begin(&path("state")).unwrap();
    new.write_all(&[7; 100_000]).unwrap();
    assert_eq!(fs::read(path("state")).unwrap(), b"old");
    new.commit().unwrap();
    assert_eq!(fs::read(path("state")).unwrap(), [7; 100_000]);
    assert_eq!(names(folder.path()), ["state"]);
}

#[test]
fn without_a_commit_nothing_is_left() {
    let (folder, path) = folder();
    fs::write(path("state"), "old").unwrap();
    for name in ["state", "not-there"] {
        let mut new = Replacement::begin(&path(name)).unwrap();
        new.write_all(b"half of the").unwrap();
        new.flush().unwrap();
        drop(new);
    }
    assert_eq!(names(folder.path()), ["state"]);
    assert_eq!(fs::read(path("state")).unwrap(), b"old");
}

#[test]
fn it_may_be_written_by_another_thread() {
    let (_folder, path) = folder();
    let mut new = Replacement::begin(&path("state")).unwrap();
    let writer = std::thread::spawn(move || {
        new.write_all(b"from there").unwrap();
        new.commit().unwrap();
    });
    writer.join().unwrap();
    assert_eq!(fs::read(path("state")).unwrap(), b"from there");
}

#[test]
fn what_a_crash_left_is_removed_and_what_another_writes_is_not() {
    let (folder, path) = folder();
    fs::write(path("state.new"), "left by a crash").unwrap();
    let mut new = Replacement::begin(&path("state")).unwrap();
    new.write_all(b"first").unwrap();
    let busy = Replacement::begin(&path("state")).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy, "{busy}");
    assert!(busy.to_string().contains("state.new"), "{busy}");
    new.commit().unwrap();
    assert_eq!(fs::read(path("state")).unwrap(), b"first");
    assert_eq!(names(folder.path()), ["state"]);
}

#[test]
fn what_is_no_file_is_neither_replaced_nor_removed() {
    let (folder, path) = folder();
    fs::create_dir(path("state.new")).unwrap();
    let error = replace(&path("state"), b"new").unwrap_err();
    assert!(error.to_string().contains("state.new: "), "{error}");
    fs::create_dir(path("folder")).unwrap();
    let error = replace(&path("folder"), b"new").unwrap_err();
    assert!(error.to_string().contains("folder: not a regular file"), "{error}");
    let error = replace(&path("no/such/state"), b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("no/such/state.new"), "{error}");
    assert_eq!(names(folder.path()), ["folder", "state.new"]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Hardening case 6: `ln -s victim s.new` made a save overwrite the victim, change its mode, and leave `s` as a
    /// link to it.
    #[test]
    fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
        let (_folder, path) = folder();
        for (at, there) in [true, false].into_iter().enumerate() {
            let [state, victim] = ["s", "victim"].map(|name| path(&format!("{name}{at}")));
            let temporary = path(&format!("s{at}.new"));
            fs::write(&state, "old").unwrap();
            set_mode(&state, 0o644);
            if there {
                fs::write(&victim, "precious").unwrap();
                set_mode(&victim, 0o600);
            }
            symlink(&victim, &temporary).unwrap();
            let error = replace(&state, b"new").unwrap_err();
            assert!(error.to_string().contains(temporary.to_str().unwrap()), "{error}");
            assert!(error.to_string().contains("in the way"), "{error}");
            assert_eq!(fs::read(&state).unwrap(), b"old");
            assert!(fs::symlink_metadata(&state).unwrap().is_file());
            assert!(fs::symlink_metadata(&temporary).unwrap().is_symlink());
            assert_eq!(victim.exists(), there);
            if there {
                assert_eq!(fs::read(&victim).unwrap(), b"precious");
                assert_eq!(mode(&victim), 0o600);
            }
        }
    }

    #[test]
    fn a_second_name_of_another_file_is_not_taken_for_left_behind() {
        let (_folder, path) = folder();
        fs::write(path("victim"), "precious").unwrap();
        fs::hard_link(path("victim"), path("state.new")).unwrap();
        assert!(replace(&path("state"), b"new").is_err());
        assert!(path("state.new").exists());
        assert_eq!(fs::read(path("victim")).unwrap(), b"precious");
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let (folder, path) = folder();
        fs::create_dir(path("there")).unwrap();
        symlink("there/link", path("state")).unwrap();
        symlink("file", path("there/link")).unwrap();
        // Before the file exists, and after.
        for text in ["first", "second"] {
            replace(&path("state"), text.as_bytes()).unwrap();
            assert!(fs::symlink_metadata(path("state")).unwrap().is_symlink());
            assert!(fs::symlink_metadata(path("there/link")).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(path("there/file")).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["state", "there"]);
        assert_eq!(names(&path("there")), ["file", "link"]);
        assert_eq!(Replacement::path(&path("state")).unwrap(), path("there/file.new"));
    }

    #[test]
    fn permissions_stay_and_are_never_wider_meanwhile() {
        let (_folder, path) = folder();
        for bits in [0o600, 0o644, 0o664, 0o400] {
            let state = path(&format!("state-{bits:o}"));
            fs::write(&state, "old").unwrap();
            set_mode(&state, bits);
            let mut new = Replacement::begin(&state).unwrap();
            new.write_all(b"new").unwrap();
            assert_eq!(mode(&Replacement::path(&state).unwrap()), 0o600);
            new.commit().unwrap();
            assert_eq!(mode(&state), bits);
        }
        // A file that was not there gets what any new file gets.
        fs::write(path("usual"), "").unwrap();
        replace(&path("made"), b"new").unwrap();
        assert_eq!(mode(&path("made")), mode(&path("usual")));
    }

    /// Only the superuser may give files away; others keep the owner they are.
    #[test]
    fn owner_and_group_stay() {
        let (_folder, path) = folder();
        fs::write(path("state"), "old").unwrap();
        set_mode(&path("state"), 0o640);
        let given = chown(path("state"), Some(12_345), Some(23_456)).is_ok();
        let before = fs::metadata(path("state")).unwrap();
        replace(&path("state"), b"new").unwrap();
        let after = fs::metadata(path("state")).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert!(!given || after.uid() == 12_345);
        assert_eq!(after.mode() & 0o777, 0o640);
        assert_ne!(after.ino(), before.ino());
    }

    /// Where the child of [`a_killed_process_leaves_the_old_or_the_new`] writes.
    const CHILD: &str = "LATELY_STORE_TEST_CHILD";
    const LEN: usize = 1 << 20;

    /// No test, but the process that is killed: replaces a file again and again, each time by bytes of one value.
    #[test]
    fn child() {
        let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
        for value in (1..=u8::MAX).cycle() {
            replace(&path, &vec![value; LEN]).unwrap();
        }
    }

    #[test]
    fn a_killed_process_leaves_the_old_or_the_new() {
        use std::process::{Command, Stdio};
        use std::time::Duration;
        let (folder, path) = folder();
        let state = path("state");
        replace(&state, &vec![0; LEN]).unwrap();
        let mut left = 0;
        for round in 0..50_u64 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "unix::child"])
                .env(CHILD, &state)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(2_000 + round * 7_919 % 20_000));
            child.kill().unwrap();
            child.wait().unwrap();
            left += usize::from(path("state.new").exists());
            let bytes = fs::read(&state).unwrap();
            assert_eq!(bytes.len(), LEN, "round {round}");
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "round {round}");
        }
        // Some were killed while they wrote, and what they left is in nobody's way.
        assert!(left > 0, "no process was killed at the right moment");
        replace(&state, b"last").unwrap();
        assert_eq!(names(folder.path()), ["state"]);
    }
}
