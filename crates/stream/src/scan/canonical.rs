//! What checked JSON says, apart from how it is written: values in one canonical spelling, arrays
//! taken apart.

use super::json::{Failed, MAX_DEPTH, Piece, Scanner, Shape as ValueShape, Syntax};
use super::shape::{Name, Shape};
use super::tree::Tree;
use super::unescape::unescape;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Buffers of what is written, used again from value to value.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// The members of the objects that are open, the innermost last.
    members: Vec<Member>,
    /// The shape of each object of the last text, as its objects begin.
    shapes: Vec<Shape>,
    /// That of the object at hand, if it is none of those.
    spare: Shape,
    /// How many objects of the text have begun.
    objects: usize,
    copy: Vec<u8>,
}

/// Of how many objects of a text the shape is remembered.
const SHAPES: usize = 64;

/// How many bytes are copied at once.
const WIDE: usize = 32;

/// One member of an object that is being written. Places are in the text, which is shorter than 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The first bytes of its name, as a number that is in the order of names.
    pub(super) first: u64,
    /// Where its name is.
    name: (u32, u32),
    /// Where its value is; of a value that is not as it is written, where name and value are in what has
    /// been written of the object.
    value: (u32, u32),
    is_written: bool,
    left_out: bool,
}

/// Appends checked JSON in canonical form: no blanks, members sorted by name (of equal names the
/// last one), strings with the fewest escapes, numbers as they were written. Members whose values
/// begin in these places of the text are left out.
pub(crate) fn canonical(text: &[u8], left_out: &[usize], work: &mut Workspace, out: &mut Vec<u8>) {
    work.begin();
    // The text has been checked, so nothing fails here; if it did, the rest would be left out.
    let _ = Writer { scanner: Scanner::new(text), left_out, work }.value(0, out);
}

/// Checks a whole text and appends it in canonical form, in one pass. `plain`: see [`Scanner`].
///
/// # Errors
/// The text is no JSON; then what was appended is of no use.
pub(crate) fn check(
    text: &[u8],
    plain: bool,
    work: &mut Workspace,
    out: &mut Vec<u8>,
) -> Result<(), Syntax> {
    work.begin();
    let mut writer = Writer { scanner: Scanner::new(text).plain(plain), left_out: &[], work };
    let result = writer.value(0, out);
    match result.and_then(|()| writer.scanner.end()) {
        Ok(()) => Ok(()),
        Err(Failed) => Err(writer.scanner.syntax()),
    }
}

const CLOSING: &str = "`,` or the closing bracket expected";

struct Writer<'t, 'w> {
    scanner: Scanner<'t>,
    left_out: &'w [usize],
    work: &'w mut Workspace,
}

impl Writer<'_, '_> {
    /// Checks one value and writes it. Recursion is as deep as values are nested, which has a limit.
    fn value(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<(), Failed> {
        let start = self.scanner.at;
        match self.scanner.peek() {
            Some(b'{') => self.object(depth, out),
            Some(b'[') => self.array(depth, out),
            Some(b'"') => {
                let escaped = self.scanner.string()?;
                let text = &self.scanner.text[start..self.scanner.at];
                if escaped {
                    let mut plain = Vec::new();
                    unescape(&text[1..text.len() - 1], &mut plain);
                    quote(&plain, false, out);
                } else {
                    out.extend_from_slice(text);
                }
                Ok(())
            }
            _ => {
                self.scanner.scalar()?;
                out.extend_from_slice(&self.scanner.text[start..self.scanner.at]);
                Ok(())
            }
        }
    }

    fn open(&mut self, depth: u32) -> Result<(), Failed> {
        if depth >= MAX_DEPTH {
            return self.scanner.fail("nested more than 128 deep");
        }
        self.scanner.at += 1;
        self.scanner.blank();
        Ok(())
    }

    fn array(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<(), Failed> {
        self.open(depth)?;
        out.push(b'[');
        if self.scanner.take(b']') {
            out.push(b']');
            return Ok(());
        }
        loop {
            self.value(depth + 1, out)?;
            if !self.scanner.goes_on(b']', CLOSING)? {
                out.push(b']');
                return Ok(());
            }
            out.push(b',');
        }
    }

    fn object(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<(), Failed> {
        let brace = self.scanner.at;
        self.open(depth)?;
        out.push(b'{');
        if self.scanner.take(b'}') {
            out.push(b'}');
            return Ok(());
        }
        let object = self.work.objects;
        self.work.objects += 1;
        let (base, begin) = (self.work.members.len(), out.len());
        // Has it had the names of the object in this place of the last text so far?
        let mut alike = true;
        loop {
            let (text, at) = (self.scanner.text, self.scanner.at);
            let place = self.work.members.len() - base;
            let known = self.work.shapes.get(object).and_then(|shape| shape.name(place, text, at));
            let (name, first) = if let Some(Name { length, first, .. }) = known {
                self.scanner.at += length;
                self.scanner.blank();
                ((at + 1, at + length - 2), first)
            } else {
                alike = false;
                if self.scanner.name()? {
                    // Sorted as it reads, not as it is written: a rare case of its own.
                    self.work.members.truncate(base);
                    out.truncate(begin);
                    self.scanner.at = brace;
                    return self.object_of_escaped_names(depth, out);
                }
                let name = (at + 1, self.scanner.name_end);
                (name, first_bytes(text, name))
            };
            let member = self.member(name, first, depth, begin, out)?;
            self.work.members.push(member);
            if !self.scanner.goes_on(b'}', CLOSING)? {
                break;
            }
        }
        self.write(base, begin, object, alike, out);
        self.work.members.truncate(base);
        close(begin, out);
        Ok(())
    }

    /// The member of this name. A value that is not as it is written is written at once, with its name.
    #[inline]
    fn member(
        &mut self,
        name: (usize, usize),
        first: u64,
        depth: u32,
        begin: usize,
        out: &mut Vec<u8>,
    ) -> Result<Member, Failed> {
        let text = self.scanner.text;
        let start = self.scanner.at;
        let left_out = !self.left_out.is_empty() && self.left_out.contains(&start);
        let is_written = match self.scanner.peek() {
            Some(b'{' | b'[') => true,
            Some(b'"') => self.scanner.string()?,
            _ => {
                self.scanner.scalar()?;
                false
            }
        };
        let mut value = (start, self.scanner.at);
        if is_written {
            value.0 = out.len() - begin;
            out.extend_from_slice(&text[name.0 - 1..=name.1]);
            out.push(b':');
            self.scanner.at = start;
            self.value(depth + 1, out)?;
            value.1 = out.len() - begin;
        }
        let short = |(start, end): (usize, usize)| (start as u32, end as u32);
        Ok(Member { first, name: short(name), value: short(value), is_written, left_out })
    }

    /// Writes the members from `base` on in their order, those of them that are written from `begin` on
    /// included. `alike`: all had the names that are known of this object, which may have more.
    fn write(&mut self, base: usize, begin: usize, object: usize, alike: bool, out: &mut Vec<u8>) {
        let text = self.scanner.text;
        let Workspace { members, shapes, spare, copy, .. } = &mut *self.work;
        let members = members.get(base..).unwrap_or_default();
        if shapes.len() <= object && object < SHAPES {
            shapes.resize_with(object + 1, Shape::default);
        }
        let shape = shapes.get_mut(object).unwrap_or(spare);
        if !alike || shape.len() != members.len() {
            shape.remember(members, text);
        }
        copy.clear();
        if out.len() > begin {
            copy.extend_from_slice(&out[begin..]);
            out.truncate(begin);
        }
        shape.each(members, text, |member| member.write(text, copy, out));
    }

    #[cold]
    fn object_of_escaped_names(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<(), Failed> {
        let begin = out.len();
        self.open(depth)?;
        let mut members = Vec::new();
        loop {
            let name = self.scanner.name_piece()?;
            let name = (plain(name, self.scanner.text), name.shape);
            let left_out = self.left_out.contains(&self.scanner.at);
            let mut value = Vec::new();
            self.value(depth + 1, &mut value)?;
            members.push((name, left_out, value));
            if !self.scanner.goes_on(b'}', CLOSING)? {
                break;
            }
        }
        members.sort_by(|a, b| a.0.0.cmp(&b.0.0));
        for (at, ((name, shape), left_out, value)) in members.iter().enumerate() {
            if *left_out || members.get(at + 1).is_some_and(|next| next.0.0 == *name) {
                continue;
            }
            quote(name, *shape == ValueShape::String { escaped: false }, out);
            out.push(b':');
            out.extend_from_slice(value);
            out.push(b',');
        }
        close(begin, out);
        Ok(())
    }
}

impl Workspace {
    fn begin(&mut self) {
        self.members.clear();
        self.objects = 0;
    }
}

impl Member {
    fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.name.0 as usize..self.name.1 as usize]
    }

    /// The name with its quotes, and the colon if that follows at once.
    pub(super) fn written_name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.name.0 as usize - 1..self.name.1 as usize + 2]
    }

    /// By their names.
    #[inline]
    pub(super) fn compare(&self, other: &Self, text: &[u8]) -> Ordering {
        self.first.cmp(&other.first).then_with(|| self.name(text).cmp(other.name(text)))
    }

    /// Writes name and value, and a comma.
    #[inline]
    fn write(&self, text: &[u8], copy: &[u8], out: &mut Vec<u8>) {
        if self.left_out {
            return;
        }
        let (name, value) = (self.name, (self.value.0 as usize, self.value.1 as usize));
        let quote = name.0 as usize - 1;
        if self.is_written {
            put(copy, value.0, value.1, out);
        } else if self.value.0 == name.1 + 2 {
            put(text, quote, value.1, out);
        } else {
            put(text, quote, name.1 as usize + 1, out);
            out.push(b':');
            put(text, value.0, value.1, out);
        }
        out.push(b',');
    }
}

/// Appends a part of a text. Most are short, and to copy more and forget it is quicker than a call.
#[inline]
fn put(text: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    let mut at = start;
    while at < end {
        let Some(wide) = text.get(at..).and_then(<[u8]>::first_chunk::<WIDE>) else {
            return out.extend_from_slice(&text[at..end]);
        };
        out.extend_from_slice(wide);
        at += WIDE;
    }
    out.truncate(out.len() - (at - end));
}

/// Closes an object whose members, each with a comma, are written from `begin` on.
fn close(begin: usize, out: &mut Vec<u8>) {
    if out.len() > begin {
        out.pop();
    }
    out.push(b'}');
}

/// The first bytes of the name in this place, in the order of names, as no name has a byte 0.
fn first_bytes(text: &[u8], (start, end): (usize, usize)) -> u64 {
    let most = (end - start).min(8);
    match text.get(start..).and_then(<[u8]>::first_chunk) {
        Some(_) if most == 0 => 0,
        Some(first) => u64::from_be_bytes(*first) & u64::MAX << (64 - 8 * most),
        None => {
            let mut first = [0; 8];
            first[..most].copy_from_slice(&text[start..start + most]);
            u64::from_be_bytes(first)
        }
    }
}

/// The content of a string; a copy only where there are escapes.
fn plain(piece: Piece, text: &[u8]) -> Cow<'_, [u8]> {
    if piece.shape == (ValueShape::String { escaped: true }) {
        let mut plain = Vec::new();
        unescape(piece.of(text), &mut plain);
        return Cow::Owned(plain);
    }
    Cow::Borrowed(piece.of(text))
}

/// Writes a string; `verbatim` if it was valid without an escape and so needs none.
fn quote(plain: &[u8], verbatim: bool, out: &mut Vec<u8>) {
    out.push(b'"');
    if verbatim {
        out.extend_from_slice(plain);
    } else {
        for &c in plain {
            match c {
                b'"' | b'\\' => out.extend([b'\\', c]),
                0..0x20 => out.extend(format!("\\u{c:04x}").bytes()),
                _ => out.push(c),
            }
        }
    }
    out.push(b'"');
}

/// Calls `each` with every string of a checked array; `false` if it holds anything else.
pub(crate) fn each_string(array: &[u8], mut each: impl FnMut(&[u8])) -> bool {
    let mut only_strings = true;
    Tree::default().elements(array, &mut Vec::new(), |piece, _, _| match piece.shape {
        ValueShape::String { .. } => each(&plain(piece, array)),
        _ => only_strings = false,
    });
    only_strings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::json::is_plain;
    use proptest::prelude::*;

    fn written(text: &str, left_out: &[usize]) -> String {
        let (mut work, mut out) = (Workspace::default(), Vec::new());
        canonical(text.as_bytes(), left_out, &mut work, &mut out);
        let mut checked = Vec::new();
        if left_out.is_empty() {
            assert_eq!(check(text.as_bytes(), false, &mut work, &mut checked), Ok(()));
            assert_eq!(checked, out);
        }
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn members_are_sorted_and_blanks_are_gone() {
        for (text, expected) in [
            (r#" { "b" : 1 , "a":[ 1 , {"d":0,"c":{ }} ] } "#, r#"{"a":[1,{"c":{},"d":0}],"b":1}"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (
                r#"{"longer name 2":1,"longer name 1":2}"#,
                r#"{"longer name 1":2,"longer name 2":1}"#,
            ),
            (r#"{"ab":1,"a":2,"":3}"#, r#"{"":3,"a":2,"ab":1}"#),
            (r#"{"z":1,"\u0061":{"y":1,"x":2}}"#, r#"{"a":{"x":2,"y":1},"z":1}"#),
            (r#"{"x":"\u00e9\/\n","\"":1}"#, "{\"\\\"\":1,\"x\":\"é/\\u000a\"}"),
            ("[]", "[]"),
            ("{}", "{}"),
            ("-1.0E5", "-1.0E5"),
        ] {
            assert_eq!(written(text, &[]), expected);
        }
    }

    /// A value without anything that is written in several ways, and how it may be written.
    fn objects() -> impl Strategy<Value = (serde_json::Value, String)> {
        let name = prop::sample::select(vec![
            "",
            "a",
            "ab",
            "b",
            "abcdefgh",
            "abcdefghi",
            "name of 13 ch",
            "name of 14 cha",
            "a longer name",
        ]);
        let scalar = prop_oneof![
            any::<i32>().prop_map(|number| (number.into(), number.to_string())),
            "[a-zé ]{0,40}".prop_map(|text| (text.as_str().into(), format!("\"{text}\""))),
            Just((serde_json::Value::Null, "null".into())),
        ];
        let leaf: BoxedStrategy<(serde_json::Value, String)> = scalar.boxed();
        leaf.prop_recursive(3, 24, 6, move |inner| {
            let member = (name.clone(), inner, any::<bool>());
            prop::collection::vec(member, 0..6).prop_map(|members| {
                let mut object = serde_json::Map::new();
                let mut text = String::from("{");
                for (at, (name, (value, written), wide)) in members.into_iter().enumerate() {
                    let (comma, blank) =
                        (if at > 0 { "," } else { "" }, if wide { " " } else { "" });
                    text += &format!("{comma}\"{name}\"{blank}:{blank}{written}{blank}");
                    object.insert(name.into(), value);
                }
                (object.into(), text + "}")
            })
        })
    }

    proptest! {
        /// Whatever was remembered of the texts before, and whether the text is known to be plain.
        #[test]
        fn what_is_written_does_not_depend_on_what_came_before(
            texts in prop::collection::vec(objects(), 1..4),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        ) {
            let mut work = Workspace::default();
            for index in order {
                let (value, text) = index.get(&texts);
                prop_assert!(is_plain(text.as_bytes()));
                for plain in [true, false] {
                    let mut out = Vec::new();
                    prop_assert_eq!(check(text.as_bytes(), plain, &mut work, &mut out), Ok(()));
                    // A map of `serde_json` is in order, and of equal names it keeps the last.
                    prop_assert_eq!(String::from_utf8_lossy(&out), value.to_string());
                }
            }
        }
    }

    #[test]
    fn members_are_left_out_by_their_place() {
        let text = r#"{"ts":5,"v":{"a":1,"b":2},"u":"x"}"#;
        let at = |part: &str| text.find(part).unwrap_or(0);
        assert_eq!(written(text, &[at("5"), at("\"x\"")]), r#"{"v":{"a":1,"b":2}}"#);
        assert_eq!(written(text, &[at("1"), at("2"), at("5")]), r#"{"u":"x","v":{}}"#);
        // Of members of one name the last counts, whether it is left out or not.
        let twice = r#"{"a":1,"a":2}"#;
        assert_eq!(written(twice, &[twice.find('2').unwrap_or(0)]), "{}");
    }

    #[test]
    fn what_is_no_json_is_refused_in_the_same_place() {
        let tree = Tree::default();
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "[1 2]",
            "{\"a\":1} x",
            "[tru]",
            "[\"a]",
            "[\"\\x\"]",
            "[01]",
            "[1.]",
            "{\"\\u0061\":}",
            "[\"\u{1}\"]",
        ] {
            let expected = tree.scan(text.as_bytes(), false, &mut Vec::new());
            let found = check(text.as_bytes(), false, &mut Workspace::default(), &mut Vec::new());
            assert_eq!(found.map_err(|e| e.at), expected.map(|_| ()).map_err(|e| e.at), "{text}");
        }
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        for n in [128, 129] {
            let found =
                check(deep(n).as_bytes(), false, &mut Workspace::default(), &mut Vec::new());
            assert_eq!(
                found.is_ok(),
                tree.scan(deep(n).as_bytes(), false, &mut Vec::new()).is_ok(),
                "{n}"
            );
        }
    }
}
