//! From the shape of an input and the names of the fields wanted to places in a record.

use super::Layout;
use super::profile::{self, Profile};
use super::table::Delimited;
use super::values::{Json, Unpack};
use crate::options::{Format, KeyFormat, Options, WHOLE_RECORD};
use crate::record::field::{Field, Wanted};
use crate::scan::json::Tree;

/// What the beginning of an input shows of it.
#[derive(Debug)]
pub(crate) enum Shape {
    Lines,
    Columns,
    Table {
        separator: u8,
        quoted: bool,
        /// The names in the header, or numbers where there is none.
        names: Vec<String>,
        /// Zeek's text for an unset field.
        unset: Option<Vec<u8>>,
        /// Names that are not there are missing from every record instead of an error: for a
        /// header in the midst of a stream, which must go on.
        lenient: bool,
    },
    Json {
        documents: bool,
        unpack: Unpack,
    },
}

/// Finds places for names.
enum Finder<'a> {
    /// There are no fields.
    None,
    Numbered,
    Named {
        names: &'a [String],
        lenient: bool,
    },
    Json(Tree),
}

impl Shape {
    /// Where everything is that is wanted.
    pub(crate) fn resolve(
        self,
        format: Format,
        options: &Options,
    ) -> Result<(Layout, Wanted), String> {
        let mut finder = match &self {
            Self::Lines => Finder::None,
            Self::Columns => Finder::Numbered,
            Self::Table { names, lenient, .. } => Finder::Named { names, lenient: *lenient },
            Self::Json { .. } => Finder::Json(Tree::default()),
        };
        let wanted = wanted(format, options, &mut finder)?;
        let tree = if let Finder::Json(tree) = finder { tree } else { Tree::default() };
        let layout = match self {
            Self::Lines => Layout::Lines,
            Self::Columns => Layout::Columns,
            Self::Table { separator, quoted, names, unset, .. } => {
                Layout::Delimited(Delimited { separator, quoted, columns: names.len(), unset })
            }
            Self::Json { documents, unpack } => Layout::Json(Json { tree, documents, unpack }),
        };
        Ok((layout, wanted))
    }
}

fn wanted(format: Format, options: &Options, finder: &mut Finder<'_>) -> Result<Wanted, String> {
    let profile = profile::of(format);
    let mut key = Vec::new();
    for name in &options.key {
        let mut field = finder.field(name, profile)?;
        field.epc |= options.key_format == KeyFormat::Epc;
        key.push(field);
    }
    if key.is_empty() {
        key.push(match profile {
            Some(_) => finder.field(profile::KEY, profile)?,
            None => Field {
                epc: options.key_format == KeyFormat::Epc,
                ..finder.field(WHOLE_RECORD, None)?
            },
        });
    }
    let time = match &options.time {
        Some(name) => Some(finder.field(name, profile)?),
        None if !options.time_wanted => None,
        None if profile.is_some() => Some(finder.field(profile::TIME, profile)?),
        None if format == Format::Zeek => finder.field("ts", None).ok(),
        None => None,
    };
    let change =
        options.change.iter().map(|name| finder.field(name, profile)).collect::<Result<_, _>>()?;
    let rank = options.rank.as_ref().map(|name| finder.field(name, profile)).transpose()?;
    Ok(Wanted { key, time, change, rank })
}

impl Finder<'_> {
    fn field(&mut self, name: &str, profile: Option<&Profile>) -> Result<Field, String> {
        if name == WHOLE_RECORD {
            return Ok(Field::whole());
        }
        let own = profile.map_or(&[][..], |profile| profile.own(name));
        let slots = match self {
            Self::None => {
                return Err(format!("raw lines have no field `{name}`; name a format that has"));
            }
            Self::Numbered => match name.parse::<usize>() {
                Ok(number @ 1..) => vec![number - 1],
                _ => {
                    return Err(format!(
                        "no column `{name}`: without a header, columns are named 1, 2, 3 …"
                    ));
                }
            },
            Self::Named { names, lenient } => {
                let place = |name: &str| names.iter().position(|column| column == name);
                let found: Vec<_> = match place(name) {
                    Some(column) => vec![column],
                    None => own.iter().filter_map(|own| place(own)).collect(),
                };
                if found.is_empty() && !*lenient {
                    return Err(no_column(name, names));
                }
                found
            }
            Self::Json(tree) if own.is_empty() => vec![tree.slot(path(name).iter().map(|p| &**p))],
            Self::Json(tree) => {
                own.iter().map(|own| tree.slot(path(own).iter().map(|p| &**p))).collect()
            }
        };
        let epc = profile.is_some_and(|profile| profile.is_epc(name));
        Ok(Field { name: name.into(), slots, epc })
    }
}

/// The path of a JSON field: a pointer (RFC 6901) if it begins with `/`, else one member's name.
fn path(name: &str) -> Vec<Vec<u8>> {
    match name.strip_prefix('/') {
        Some(pointer) => pointer
            .split('/')
            .map(|part| part.replace("~1", "/").replace("~0", "~").into_bytes())
            .collect(),
        None => vec![name.as_bytes().to_vec()],
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
