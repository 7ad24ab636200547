//! What was found: the format of one input and where its fields are.
//!
//! A [`Schema`] is made once from the first bytes of an input and then only read, so that any number of
//! threads can parse with it.

use crate::format::head::Head;
use crate::format::layout::{Description, Layout, Places};
use crate::format::profile::{ANTENNA, STRENGTH};
use crate::format::sniff::sniff;
use crate::format::{Format, is_epcis};
use crate::options::{ALL_FIELDS, KeyFormat, Options, WHOLE_RECORD};
use crate::record::field::{Field, Fields, Part};
use crate::record::number::NumberReader;
use crate::record::texts::Columns;
use crate::record::{ENVELOPE, EnvelopeField, Form, Mark};
use std::fmt;
use std::sync::Arc;

/// The format of one input and where its fields are.
pub struct Schema {
    format: Format,
    pub(crate) layout: Box<dyn Layout>,
    pub(crate) fields: Fields,
    /// The input begins with a header line.
    pub(crate) header: bool,
    pub(crate) max_line: usize,
}

/// What the first bytes of an input tell.
pub(crate) enum Resolved {
    Schema(Box<Schema>),
    /// Nothing yet: more bytes are needed.
    More,
}

impl Schema {
    /// Resolves the format from the first bytes of an input; `ended` when there are no more.
    pub(crate) fn resolve(
        options: &Options,
        bytes: &[u8],
        ended: bool,
    ) -> Result<Resolved, String> {
        // What surrounds a message says nothing about its format.
        let inside = |name: &&str| !options.messages || EnvelopeField::named(name).is_none();
        let names: Vec<_> = options.names().filter(inside).collect();
        let (max_line, max_document) = options.limits();
        let head = Head {
            bytes,
            ended,
            names: &names,
            fields_wanted: options.fields_wanted,
            no_header: options.no_header,
            delimiter: options.delimiter,
            records: options.records.as_deref(),
            null: options.null,
            max_line,
            max_document,
        };
        let found = match options.format {
            Format::Auto if options.delimiter.is_some() => Some(Format::Csv),
            Format::Auto if options.records.is_some() => Some(Format::Json),
            Format::Auto if options.null => Some(Format::Lines),
            // Lines of a document are no records.
            Format::Auto if !options.look_inside() => match is_epcis(&head) {
                Some(true) => Some(Format::EpcisXml),
                Some(false) => Some(Format::Lines),
                None => None,
            },
            Format::Auto => sniff(&head),
            format => Some(format),
        };
        let Some(format) = found else { return Ok(Resolved::More) };
        let Some(description) = format.description() else { return Ok(Resolved::More) };
        let Some(layout) = (description.open)(&head)? else { return Ok(Resolved::More) };
        Self::of(format, layout, options).map(|schema| Resolved::Schema(Box::new(schema)))
    }

    fn of(format: Format, mut layout: Box<dyn Layout>, options: &Options) -> Result<Self, String> {
        let fields = fields(format.description(), &mut *layout, options)?;
        let (header, max_line) = (layout.has_header(), options.limits().0);
        Ok(Self { format, layout, fields, header, max_line })
    }

    /// The same format from here on, if `bytes` begin with another header in mid-stream.
    pub(crate) fn renewed(&self, bytes: &[u8], options: &Options) -> Option<Self> {
        let layout = self.layout.renewed(bytes)?;
        Self::of(self.format, layout, options).ok()
    }

    /// Raw lines without fields: for an input that broke off before its format could be told.
    pub(crate) fn raw(options: &Options) -> Result<Self, String> {
        let bare = Options {
            format: Format::Lines,
            key: Vec::new(),
            by: Vec::new(),
            place: None,
            key_format: KeyFormat::Text,
            key_regex: None,
            time: Vec::new(),
            change: Vec::new(),
            bands: Vec::new(),
            rank: None,
            source: Vec::new(),
            ..options.clone()
        };
        match Self::resolve(&bare, &[], true)? {
            Resolved::Schema(schema) => Ok(*schema),
            Resolved::More => Err("its format cannot be told".into()),
        }
    }

    /// The format found; never [`Format::Auto`].
    pub fn format(&self) -> Format {
        self.format
    }

    /// How a record of this format is marked with its class.
    pub fn mark(&self) -> Mark {
        self.layout.mark()
    }

    /// The fields the time is read from; none when records carry no time.
    pub fn time_fields(&self) -> impl Iterator<Item = &str> {
        self.fields.time.iter().map(|field| field.name.as_str())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("format", &self.format)
            .field("layout", &self.layout)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

/// Where everything is that is wanted.
pub(crate) fn fields(
    description: Option<&Description>,
    layout: &mut dyn Places,
    options: &Options,
) -> Result<Fields, String> {
    let mut key = key(layout, description, options)?;
    let mut find =
        |name: &str| around(name, options).map_or_else(|| find(name, layout, description), Ok);
    for name in &options.by {
        key.push(find(name)?);
    }
    let mut time: Vec<_> = options.time.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    if let Some(format) = description.filter(|_| time.is_empty() && options.time_wanted) {
        let own = format.time.iter().map(|name| find(name)).collect::<Result<_, _>>();
        time = if format.profile.is_some() { own? } else { own.unwrap_or_default() };
    }
    let change = options.change.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    let bands = options.bands.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    let mut rank = options.rank.as_ref().map(|name| find(name)).transpose()?;
    let mut place = options.place.as_ref().map(|name| find(name)).transpose()?;
    if let Some(profile) = description.and_then(|format| format.profile).filter(|_| options.texts) {
        // A reader's format may lack them, and so may a file of it.
        let mut own = |name| {
            let found = find(name).ok().filter(|field| !field.is_nowhere());
            found.filter(|_| !profile.own(name).is_empty())
        };
        rank = rank.or_else(|| own(STRENGTH));
        place = place.or_else(|| own(ANTENNA));
    }
    place = place.filter(|place| key.iter().all(|field| field.name != place.name));
    let columns = options.texts.then(|| {
        let name = |field: &Field| field.name.clone();
        Arc::new(Columns {
            key: key.iter().map(name).collect(),
            strength: rank.as_ref().map(name),
            place: place.as_ref().map(name),
        })
    });
    let source = options.source.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    let drop_untimed = options.drop_untimed;
    let read_time = Arc::clone(&options.read_time);
    let numbers = options.numbers.map(|format| NumberReader::new(format, Arc::clone(&read_time)));
    let (digester, regex) = (options.digester.clone(), options.key_regex.clone());
    Ok(Fields {
        key,
        time,
        change,
        bands,
        rank,
        columns,
        place,
        source,
        envelope: envelope_fields(options),
        drop_untimed,
        digester,
        read_time,
        numbers,
        regex,
    })
}

/// The fields of the key.
fn key(
    layout: &mut dyn Places,
    description: Option<&Description>,
    options: &Options,
) -> Result<Vec<Field>, String> {
    let mut key = match &*options.key {
        [] => {
            let own = description.map_or(&[][..], |format| format.key);
            own.iter().map(|name| find(name, layout, description)).collect::<Result<_, _>>()?
        }
        names if names.iter().any(|name| name == ALL_FIELDS) => {
            vec![all_but(names, layout, description)?]
        }
        names => {
            let mut key = Vec::new();
            for name in names {
                match columns(name, layout) {
                    Some(found) => key.extend(found?),
                    None => {
                        let found = around(name, options);
                        key.push(found.map_or_else(|| find(name, layout, description), Ok)?);
                    }
                }
            }
            key
        }
    };
    if key.is_empty() {
        key.push(Field::whole());
    }
    for field in &mut key {
        let own = field.form.format;
        let format = if own == KeyFormat::Text { options.key_format } else { own };
        field.form = Form { format, fold: options.fold_case };
    }
    match (&options.key_regex, &*key) {
        (Some(_), [_, second, ..]) => {
            let second = &second.name;
            Err(format!(
                "a regular expression is for one key field, and `{second}` is a second one"
            ))
        }
        (Some(regex), _) if options.numbers.is_some() && regex.groups() > 1 => {
            Err(format!("a number is one group of a regular expression, not {}", regex.groups()))
        }
        _ => Ok(key),
    }
}

/// The fields of the envelopes of messages that are named, in the order of their places.
fn envelope_fields(options: &Options) -> Vec<EnvelopeField> {
    let names = if options.messages { Some(options.names()) } else { None };
    names.into_iter().flatten().filter_map(EnvelopeField::named).collect()
}

/// The field of the envelope of a message that has this name, if one has.
fn around(name: &str, options: &Options) -> Option<Field> {
    let named = EnvelopeField::named(name)?;
    let at = envelope_fields(options).into_iter().position(|field| field == named)?;
    Some(Field::new(name, Part::Slots(vec![ENVELOPE + at])))
}

/// All fields but those that are named with a `-` before them.
fn all_but(
    names: &[String],
    layout: &mut dyn Places,
    description: Option<&Description>,
) -> Result<Field, String> {
    let mut slots = Vec::new();
    for name in names.iter().filter(|name| *name != ALL_FIELDS) {
        let Some(left_out) = name.strip_prefix('-') else {
            return Err(format!(
                "`{name}` is one of all the fields that `*` stands for; only fields to leave out can follow it, such as -{name}"
            ));
        };
        match find(left_out, layout, description)?.part {
            Part::Slots(found) => slots.extend(found),
            _ => return Err(format!("`{left_out}` is no field that can be left out")),
        }
    }
    Ok(Field::new(&names.join(","), Part::AllBut(slots)))
}

/// Several columns by their numbers, `2-4` or `6-`; `None` if the name says nothing of that kind, or
/// there is a column of that name.
fn columns(name: &str, layout: &mut dyn Places) -> Option<Result<Vec<Field>, String>> {
    let (first, last) = name.split_once('-').filter(|_| layout.is_table())?;
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let (first, open) = (number(first)?, last.is_empty());
    let last = if open { first } else { number(last).filter(|last| *last >= first)? };
    if layout.find(name, &[]).is_ok_and(|slots| !slots.is_empty()) {
        return None;
    }
    if let Some(width) = layout.width().filter(|width| last > *width) {
        return Some(Err(format!("no column {last} for `{name}`; there are {width}")));
    }
    Some(Ok(if open {
        vec![Field::new(name, Part::From(first - 1))]
    } else {
        let column = |number: usize| Field::new(&number.to_string(), Part::Slots(vec![number - 1]));
        (first..=last).map(column).collect()
    }))
}

fn find(
    name: &str,
    layout: &mut dyn Places,
    description: Option<&Description>,
) -> Result<Field, String> {
    if name == WHOLE_RECORD {
        return Ok(Field::whole());
    }
    let profile = description.and_then(|format| format.profile);
    let own = profile.map_or(&[][..], |profile| profile.own(name));
    let mut field = Field::new(name, Part::Slots(layout.find(name, own)?));
    if profile.is_some_and(|profile| profile.is_epc(name)) {
        field.form.format = KeyFormat::Epc;
    }
    field.hint = layout.hint(name);
    Ok(field)
}
