//! The columns that a header names.

/// The place of the column of this name, or those of `own` names.
///
/// # Errors
/// There is none: which there are, and which may have been meant.
pub(crate) fn find(name: &str, own: &[&str], names: &[String]) -> Result<Vec<usize>, String> {
    let place = |name: &str| names.iter().position(|column| column == name);
    let found: Vec<_> = match place(name) {
        Some(column) => vec![column],
        None => own.iter().filter_map(|own| place(own)).collect(),
    };
    if found.is_empty() { Err(no_column(name, names)) } else { Ok(found) }
}

/// The place of a column that has no name but its number, from 1.
pub(crate) fn number(name: &str) -> Result<usize, String> {
    match name.parse::<usize>() {
        Ok(number @ 1..) => Ok(number - 1),
        _ => Err(format!("no column `{name}`: without a header, columns are named 1, 2, 3 …")),
    }
}

fn no_column(name: &str, names: &[String]) -> String {
    let columns = names.join(", ");
    match nearest(name, names) {
        Some(near) => format!("no column `{name}`; did you mean `{near}`? There are {columns}"),
        None => format!("no column `{name}`; there are {columns}"),
    }
}

/// The column a user may have meant.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let near = |column: &&String| {
        let column = column.to_lowercase();
        let (short, long) =
            if wanted.len() < column.len() { (&*wanted, &*column) } else { (&*column, &*wanted) };
        let part = short.len() > 1 && long.contains(short);
        let edits = edits(&wanted, &column);
        let allowed = wanted.chars().count() / 3 + 1;
        (part || edits <= allowed).then_some(edits)
    };
    let best = names.iter().filter(|column| near(column).is_some()).min_by_key(near);
    best.map(String::as_str)
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<_> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
