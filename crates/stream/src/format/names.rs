//! The columns that a header names.

/// The place of the column of this name, or those of `own` names, or of the column of this number, from 1.
///
/// # Errors
/// There is none: which there are, and which may have been meant.
pub(crate) fn find(name: &str, own: &[&str], names: &[String]) -> Result<Vec<usize>, String> {
    let place = |name: &str| names.iter().position(|column| column == name);
    let mut found: Vec<_> = match place(name) {
        Some(column) => vec![column],
        None => own.iter().filter_map(|own| place(own)).collect(),
    };
    if let (true, Ok(column)) = (found.is_empty(), number(name))
        && column < names.len()
    {
        found.push(column);
    }
    if found.is_empty() { Err(no_column(name, names)) } else { Ok(found) }
}

/// The place of a column that has no name but its number, from 1.
pub(crate) fn number(name: &str) -> Result<usize, String> {
    match name.parse::<usize>() {
        Ok(number @ 1..) if !name.starts_with('+') => Ok(number - 1),
        _ => Err(format!("no column `{name}`: without a header, columns are named 1, 2, 3 …")),
    }
}

/// How much of a first line is shown that is no header.
const SHOWN: usize = 60;

fn no_column(name: &str, names: &[String]) -> String {
    if let [line] = names
        && (line.contains(char::is_whitespace) || line.contains([';', '|', '{', '=', '<']))
    {
        return one_column(name, line);
    }
    let columns = names.join(", ");
    let mut message = match nearest(name, names) {
        Some(near) if near.contains(',') => format!(
            "no column `{name}`; did you mean `{near}`? A name with a comma is put in double quotes: '\"{near}\"'. There are {columns}"
        ),
        Some(near) => format!("no column `{name}`; did you mean `{near}`? There are {columns}"),
        None => format!("no column `{name}`; there are {columns}"),
    };
    if let Some(left_out) = name.strip_prefix('-')
        && names.iter().any(|column| column == left_out)
    {
        message += &format!("; all columns but that are written '*,{name}'");
    } else if names.iter().any(|name| is_value(name)) {
        message += "; if that is a row and no header, use --no-header and the numbers of columns, or \
                    --format columns for fields between blanks";
    }
    message
}

/// The first line is one column, and not of the name that is asked for.
fn one_column(name: &str, line: &str) -> String {
    let shown: String = line.chars().take(SHOWN).collect();
    let more = if shown.len() < line.len() { "…" } else { "" };
    let at = line.find([';', '|']).map(|at| &line[at..=at]);
    let remedy = match at.filter(|at| line.split(at).any(|column| column == name)) {
        Some(delimiter) => format!("--delimiter '{delimiter}' gives columns, and `{name}` is one"),
        None => "--format columns takes the fields between blanks, by their numbers; --delimiter \
                 names another separator; --no-header says that the first line is no header"
            .into(),
    };
    format!(
        "no column `{name}`: the first line, `{shown}{more}`, is a single column as CSV; {remedy}"
    )
}

/// Does this look like a value, and not like a name?
fn is_value(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    let is_number = begins && name.chars().all(|c| c.is_ascii_digit() || "+-.:/TZ ".contains(c));
    is_number || name.split_whitespace().count() > 4
}

/// The column a user may have meant.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    if number(name).is_ok() {
        return None;
    }
    let wanted = name.to_lowercase();
    let near = |column: &&String| {
        let column = column.to_lowercase();
        let (short, long) =
            if wanted.len() < column.len() { (&*wanted, &*column) } else { (&*column, &*wanted) };
        let part = short.len() > 1 && long.contains(short);
        let edits = edits(&wanted, &column);
        let allowed = wanted.chars().count() / 3 + 1;
        // A whole line is what nobody means.
        let is_name = column.chars().count() <= SHOWN;
        (is_name && (part || edits <= allowed)).then_some(edits)
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
