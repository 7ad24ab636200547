//! EPCIS 1.2 documents (XML). Each event is a record; what is around the events is forwarded as it is, so
//! that of a document a document remains.
//!
//! Fields are elements of an event by their names without a namespace: `eventTime`, or `/readPoint/id`
//! for one within another. An element with several values, such as `epcList`, is the list of them.
//!
//! Source: GS1, "EPC Information Services (EPCIS) Standard", release 1.2, section 9.5.

use super::emit::Emit;
use super::head::{Head, Signs};
use super::layout::{Buffers, Description, Layout, Opened, Places, Progress};
use super::profile::{KEY, Profile, TIME};
use crate::record::value::{Row, Value};
use crate::record::{Kind, Mark};
use crate::scan::lines::Span;
use memchr::{memchr, memchr_iter, memmem};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Line(|line, head| match line.first() {
        Some(b'<') => Some(match root(head)? {
            Root::Epcis => true,
            // To be named.
            Root::Other(_) => head.wants_fields() && line.starts_with(b"<?xml"),
            Root::None => false,
        }),
        _ => Some(false),
    }),
    open,
    key: &[KEY],
    time: &[TIME],
    profile: Some(&PROFILE),
    sample: (
        "<epcis:EPCISDocument xmlns:epcis=\"urn:epcglobal:epcis:xsd:1\"><EPCISBody><EventList>\n\
         <ObjectEvent><eventTime>5</eventTime><epcList><epc>urn:epc:id:sgtin:0614141.107346.1</epc></epcList></ObjectEvent>\n",
        KEY,
    ),
};

static PROFILE: Profile = Profile {
    epc: &["/epcList"],
    tid: &[],
    antenna: &[],
    rssi: &[],
    reader: &["/readPoint"],
    time: &["/eventTime"],
};

/// What events are called.
const EVENTS: [&[u8]; 5] = [
    b"ObjectEvent",
    b"AggregationEvent",
    b"TransactionEvent",
    b"TransformationEvent",
    b"QuantityEvent",
];

/// The first element of a document.
enum Root {
    /// Of EPCIS.
    Epcis,
    /// Of something else.
    Other(&'static str),
    /// It does not begin as XML does.
    None,
}

/// Whether the input is an EPCIS document; `None` if more bytes are needed to tell.
pub(crate) fn is_epcis(head: &Head<'_>) -> Option<bool> {
    let bytes = head.bytes.trim_ascii_start();
    match bytes.first() {
        None if !head.ended => None,
        Some(b'<') => Some(matches!(root(&Head { bytes, ..*head })?, Root::Epcis)),
        _ => Some(false),
    }
}

fn open(head: &Head<'_>) -> Opened {
    let bytes = head.bytes.trim_ascii_start();
    match root(&Head { bytes, ..*head }) {
        None => Ok(None),
        Some(Root::Epcis) => {
            Ok(Some(Box::new(Events { paths: Vec::new(), longest: head.max_document })))
        }
        Some(Root::Other(what)) => Err(format!(
            "it is {what}, of which only EPCIS documents are read; write it as NDJSON or CSV first, or treat its lines as records with --format lines"
        )),
        Some(Root::None) => Err("it does not begin with the root of an EPCIS document".into()),
    }
}

/// The first element; `None` if more bytes are needed.
fn root(head: &Head<'_>) -> Option<Root> {
    let mut at = 0;
    loop {
        let rest = head.bytes.get(at..)?;
        let blank = rest.iter().take_while(|c| c.is_ascii_whitespace()).count();
        let rest = &rest[blank..];
        let none = head.ended.then_some(Root::None);
        let end = match rest {
            [b'<', b'?' | b'!', ..] => match markup(rest) {
                Some(end) => at + blank + end,
                None => return none,
            },
            [b'<', c, ..] if c.is_ascii_alphabetic() || *c == b'_' => {
                let Some(end) = memchr(b'>', rest) else { return none };
                let tag = &rest[..end];
                let name = local(name(tag));
                let is_epcis = name.starts_with(b"EPCIS") && name.ends_with(b"Document");
                let is_llrp = memmem::find(tag, b"llrp").is_some() || name == b"RO_ACCESS_REPORT";
                return Some(match (is_epcis, is_llrp) {
                    (true, _) => Root::Epcis,
                    (false, true) => Root::Other("LLRP messages as XML"),
                    (false, false) => Root::Other("XML"),
                });
            }
            [] | [b'<'] => return none,
            _ => return Some(Root::None),
        };
        at = end;
    }
}

/// Where the comment, instruction or section that the bytes begin with ends, if they hold its end.
fn markup(bytes: &[u8]) -> Option<usize> {
    let end: &[u8] = if bytes.starts_with(b"<!--") {
        b"-->"
    } else if bytes.starts_with(b"<![CDATA[") {
        b"]]>"
    } else if bytes.starts_with(b"<?") {
        b"?>"
    } else {
        b">"
    };
    memmem::find(bytes, end).map(|at| at + end.len())
}

/// The name in a tag that begins with `<`.
fn name(tag: &[u8]) -> &[u8] {
    let name = tag.get(1..).unwrap_or_default();
    let end = name.iter().position(|c| c.is_ascii_whitespace() || matches!(c, b'>' | b'/'));
    &name[..end.unwrap_or(name.len())]
}

/// A name without its namespace.
fn local(name: &[u8]) -> &[u8] {
    memchr(b':', name).map_or(name, |at| &name[at + 1..])
}

/// What comes next in the bytes of a document.
enum Next {
    /// An event, with the blanks before it and the line end behind it.
    Event { start: usize, end: usize },
    /// The beginning of one.
    Open { start: usize },
    /// None.
    Nothing,
}

/// The next event from `at` on. `ended` when no more bytes will follow.
fn next(bytes: &[u8], at: usize, ended: bool) -> Next {
    let mut from = at;
    while let Some(tag) = memchr(b'<', &bytes[from..]).map(|n| from + n) {
        let rest = &bytes[tag..];
        if let [b'<', b'?' | b'!', ..] = rest {
            match markup(rest) {
                Some(end) => from = tag + end,
                None => return Next::Nothing,
            }
            continue;
        }
        let whole = name(rest);
        if !EVENTS.contains(&local(whole)) || rest.len() == whole.len() + 1 {
            from = tag + 1;
            continue;
        }
        let line = bytes[at..tag].iter().rposition(|c| !matches!(c, b' ' | b'\t'));
        let start = line.map_or(at, |n| at + n + 1);
        let start = if start == at || bytes[start - 1] == b'\n' { start } else { tag };
        let Some(end) = close(rest, whole).map(|n| tag + n) else { return Next::Open { start } };
        let blanks = bytes[end..].iter().take_while(|c| matches!(c, b' ' | b'\t' | b'\r')).count();
        return match bytes.get(end + blanks) {
            Some(b'\n') => Next::Event { start, end: end + blanks + 1 },
            None if !ended => Next::Open { start },
            _ => Next::Event { start, end },
        };
    }
    Next::Nothing
}

/// Where the element of this name ends that the bytes begin with.
fn close(bytes: &[u8], name: &[u8]) -> Option<usize> {
    let closing = [b"</", name].concat();
    let mut at = 0;
    loop {
        at += memmem::find(&bytes[at..], &closing)? + closing.len();
        let blanks = bytes[at..].iter().take_while(|c| c.is_ascii_whitespace()).count();
        if *bytes.get(at + blanks)? == b'>' {
            return Some(at + blanks + 1);
        }
    }
}

/// The events of a document.
#[derive(Debug)]
struct Events {
    /// The elements that are wanted, as paths from the event: `/readPoint/id`.
    paths: Vec<Vec<u8>>,
    longest: usize,
}

struct EventRow<'a> {
    text: &'a [u8],
    /// The texts of each element that is wanted.
    found: &'a [Vec<Vec<u8>>],
}

impl Row for EventRow<'_> {
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        match self.found.get(slot).map(Vec::as_slice) {
            None | Some([]) => Value::Missing("absent"),
            Some([text]) => Value::Text(text),
            Some(texts) => {
                spare.clear();
                let strings = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned());
                let list = serde_json::Value::from_iter(strings);
                spare.extend_from_slice(list.to_string().as_bytes());
                Value::Json(spare)
            }
        }
    }

    fn whole<'r>(&'r self, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Text(self.text.trim_ascii())
    }
}

impl Events {
    /// The texts of the elements that are wanted of an event.
    fn read(&self, text: &[u8], found: &mut Vec<Vec<Vec<u8>>>) -> Result<(), String> {
        found.iter_mut().for_each(Vec::clear);
        found.resize(self.paths.len(), Vec::new());
        let broken = |error: &dyn std::fmt::Display| format!("not well-formed XML: {error}");
        let text = std::str::from_utf8(text)
            .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
        let mut reader = Reader::from_str(text);
        let (mut path, mut depths): (Vec<u8>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut content = Vec::new();
        loop {
            match reader.read_event().map_err(|error| broken(&error))? {
                Event::Start(element) => {
                    depths.push(path.len());
                    // The event itself is where paths begin.
                    if depths.len() > 1 {
                        path.push(b'/');
                        path.extend_from_slice(element.local_name().as_ref().as_bytes());
                    }
                    content.clear();
                }
                Event::End(_) => {
                    self.take(&path, content.trim_ascii(), found);
                    content.clear();
                    path.truncate(depths.pop().unwrap_or(0));
                }
                Event::Text(part) => content.extend_from_slice(part.as_bytes()),
                Event::CData(part) => content.extend_from_slice(part.as_bytes()),
                Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                    Ok(Some(c)) => {
                        content.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    _ => {
                        let text = resolve_predefined_entity(&entity)
                            .ok_or_else(|| broken(&format!("unknown entity `{}`", &*entity)))?;
                        content.extend_from_slice(text.as_bytes());
                    }
                },
                Event::Eof if depths.is_empty() => return Ok(()),
                Event::Eof => return Err(broken(&"an element is not closed")),
                _ => {}
            }
        }
    }

    fn take(&self, path: &[u8], text: &[u8], found: &mut [Vec<Vec<u8>>]) {
        if text.is_empty() {
            return;
        }
        for (wanted, texts) in self.paths.iter().zip(found) {
            let rest = path.strip_prefix(&**wanted);
            if rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..])) {
                texts.push(text.to_vec());
            }
        }
    }
}

impl Places for Events {
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String> {
        let mut slot = |name: &str| {
            let path = if name.starts_with('/') { name.into() } else { format!("/{name}") };
            let known = self.paths.iter().position(|known| known == path.as_bytes());
            known.unwrap_or_else(|| {
                self.paths.push(path.into_bytes());
                self.paths.len() - 1
            })
        };
        Ok(if own.is_empty() {
            vec![slot(name)]
        } else {
            own.iter().map(|own| slot(own)).collect()
        })
    }
}

impl Layout for Events {
    fn longest(&self) -> usize {
        self.longest
    }

    fn cut(&self, bytes: &[u8], _examined: usize, _progress: &mut Progress) -> usize {
        let mut cut = 0;
        while let Next::Event { end, .. } = next(bytes, cut, false) {
            cut = end;
        }
        // No event is as long as this: it is given up.
        if cut == 0 && bytes.len() > self.longest { bytes.len() } else { cut }
    }

    fn parse(&self, bytes: &[u8], _header: bool, _buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let mut found = Vec::new();
        let (mut at, mut line) = (0, 0);
        let lines = |from: usize, to: usize| memchr_iter(b'\n', &bytes[from..to]).count() as u32;
        while at < bytes.len() {
            let (start, end, is_whole) = match next(bytes, at, true) {
                Next::Event { start, end } => (start, end, true),
                Next::Open { start } => (start, bytes.len(), false),
                Next::Nothing => (bytes.len(), bytes.len(), false),
            };
            if start > at {
                emit.other(Span { start: at, end: start, line }, Kind::Aside);
                line += lines(at, start);
            }
            let span = Span { start, end, line };
            let text = &bytes[start..end];
            if text.len() > self.longest {
                emit.overlong(span, text.len());
            } else if !is_whole && start < end {
                emit.dead(span, "the document ends within this event".into());
            } else if is_whole {
                match self.read(text.trim_ascii(), &mut found) {
                    Ok(()) => emit.row(span, &EventRow { text, found: &found }),
                    Err(reason) => emit.dead(span, reason),
                }
            }
            line += lines(start, end);
            at = end;
        }
    }

    fn mark(&self) -> Mark {
        Mark::Attribute
    }
}
