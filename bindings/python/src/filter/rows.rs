//! Rows of arrays, judged or looked up block by block.

use crate::columns::Keys;
use lately::{Digest, Digester};
use lately_stream::judge::class::Class;
use lately_stream::session::Dedup;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Rows whose digests are in memory at a time.
const BLOCK: usize = 8192;

/// The keys that these columns are, or their parts.
pub(super) fn parts(columns: &[Bound<'_, PyAny>], digester: &Digester) -> PyResult<Vec<Keys>> {
    let alone = columns.len() == 1;
    let parts = columns.iter().map(|column| Keys::new(column, digester, alone));
    let parts: Vec<Keys> = parts.collect::<PyResult<_>>()?;
    let rows = parts.first().map(Keys::len);
    let Some(rows) = rows else {
        return Err(PyValueError::new_err("a key has at least one column"));
    };
    if let Some(other) = parts.iter().map(Keys::len).find(|len| *len != rows) {
        return Err(PyValueError::new_err(format!(
            "the columns of a key have one length, not {rows} and {other}"
        )));
    }
    Ok(parts)
}

/// Judges rows, block by block.
pub(super) fn judge(
    session: &mut Dedup,
    parts: &[Keys],
    rows: usize,
    times: Option<&[i64]>,
) -> Vec<Class> {
    let digester = session.digester();
    let mut classes = Vec::with_capacity(rows);
    let (mut digests, mut missing) = (Vec::with_capacity(BLOCK), Vec::new());
    let mut dense = Vec::new();
    // All of them happen at one moment, so they are one batch.
    let mut begin = 0;
    while begin < rows {
        let block = begin..rows.min(begin + BLOCK);
        read_digests(parts, block.clone(), &digester, &mut digests, &mut missing);
        // Later times than those of the block are looked at, too, before a leap is believed.
        let later = times.map(|times| &times[begin..]);
        if missing.is_empty() {
            session.observe_batch(&digests, later, &mut classes);
        } else {
            let later = later.map(|later| {
                let skipped = &mut missing.iter().copied().peekable();
                dense.clear();
                let kept = |row: &(usize, &i64)| skipped.next_if_eq(&row.0).is_none();
                dense.extend(later.iter().enumerate().filter(kept).map(|(_, time)| *time));
                &dense[..]
            });
            let mut found = Vec::with_capacity(digests.len());
            session.observe_batch(&digests, later, &mut found);
            scatter(&found, &missing, block.len(), &mut classes, Class::KeyMissing);
        }
        begin = block.end;
    }
    classes
}

/// Which of these keys are known; with `any` only as far as one is.
pub(super) fn known(
    session: &mut Dedup,
    parts: &[Keys],
    time: Option<i64>,
    any: bool,
) -> Vec<bool> {
    let rows = parts[0].len();
    let (mut digests, mut missing) = (Vec::with_capacity(BLOCK.min(rows)), Vec::new());
    let mut all = Vec::with_capacity(if any { 0 } else { rows });
    let mut begin = 0;
    while begin < rows {
        let block = begin..rows.min(begin + BLOCK);
        read_digests(parts, block.clone(), &session.digester(), &mut digests, &mut missing);
        let mut found = Vec::with_capacity(digests.len());
        session.are_known(&digests, time, &mut found);
        if any && found.contains(&true) {
            return found;
        }
        if !any {
            scatter(&found, &missing, block.len(), &mut all, false);
        }
        begin = block.end;
    }
    all
}

/// The digests of a block of rows.
fn read_digests(
    parts: &[Keys],
    block: std::ops::Range<usize>,
    digester: &Digester,
    digests: &mut Vec<Digest>,
    missing: &mut Vec<usize>,
) {
    digests.clear();
    missing.clear();
    match parts {
        [keys] => keys.digests(block, digester, digests, missing),
        parts => Keys::digests_of_parts(parts, block, digester, digests, missing),
    }
}

/// Puts what was found of the rows that have a key among those that have none.
fn scatter<T: Copy>(found: &[T], missing: &[usize], rows: usize, into: &mut Vec<T>, none: T) {
    let (mut found, mut missing) = (found.iter(), missing.iter().peekable());
    for row in 0..rows {
        into.push(match missing.next_if(|&&at| at == row) {
            Some(_) => none,
            None => found.next().copied().unwrap_or(none),
        });
    }
}
