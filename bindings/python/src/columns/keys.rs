//! Arrays as keys.

use super::{Column, elements, fixed};
use crate::errors::{Kind, raise};
use crate::key;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray};
use arrow_schema::DataType;
use lately::{Digest, Digester};
use pyo3::prelude::*;
use std::ops::Range;

/// An array of keys, or of a part of each key, which needs no interpreter to be read.
pub(crate) enum Keys {
    /// Arrays of Arrow, and at which row each begins.
    Chunks(Vec<(usize, Part)>, usize),
    /// Whole numbers of NumPy.
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    /// Texts of NumPy: of so many bytes or code points each, zeros at their end not counted.
    Bytes(Vec<u8>, usize, usize),
    Points(Vec<u32>, usize, usize),
    /// What Python's objects are as bytes.
    Texts(Vec<Option<Vec<u8>>>),
    /// Digests of what is a key by itself.
    Digests(Vec<Option<Digest>>),
}

/// One array of Arrow.
pub(crate) enum Part {
    Plain(ArrayRef),
    /// Its values, and for each row which of them it has.
    Dictionary(ArrayRef, Vec<Option<usize>>),
}

impl Keys {
    /// The keys of an array. `digester` hashes objects at once, where they are keys by themselves.
    pub(crate) fn new(
        array: &Bound<'_, PyAny>,
        digester: &Digester,
        alone: bool,
    ) -> PyResult<Self> {
        match Column::new(array)? {
            Column::Arrow(chunks) => Self::of_chunks(chunks),
            Column::Numpy(array, kind) => Self::of_numpy(&array, kind),
            Column::Objects(objects) if alone => {
                let digests = objects.iter().map(|object| key::digest(object, digester));
                Ok(Self::Digests(digests.collect::<PyResult<_>>()?))
            }
            Column::Objects(objects) => {
                let texts = objects.iter().map(key::text);
                Ok(Self::Texts(texts.collect::<PyResult<_>>()?))
            }
        }
    }

    fn of_chunks(chunks: Vec<ArrayRef>) -> PyResult<Self> {
        let mut parts = Vec::with_capacity(chunks.len());
        let mut rows = 0;
        for chunk in chunks {
            let len = chunk.len();
            parts.push((rows, Part::new(chunk)?));
            rows += len;
        }
        Ok(Self::Chunks(parts, rows))
    }

    fn of_numpy(array: &Bound<'_, PyAny>, kind: char) -> PyResult<Self> {
        let rows: usize = array.len()?;
        match kind {
            'i' | 'u' => numbers(array).ok_or_else(|| {
                raise(Kind::Key, "an array of whole numbers that NumPy does not have")
            }),
            'S' => fixed(array, "u1").map(|(bytes, width)| Self::Bytes(bytes, width, rows)),
            'U' => fixed(array, "u4").map(|(points, width)| Self::Points(points, width, rows)),
            _ => {
                let dtype = array.getattr("dtype")?.str()?;
                Err(no_keys(dtype.to_str()?))
            }
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Chunks(_, rows) | Self::Bytes(_, _, rows) | Self::Points(_, _, rows) => *rows,
            Self::Signed(numbers) => numbers.len(),
            Self::Unsigned(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
            Self::Digests(digests) => digests.len(),
        }
    }

    /// Calls `take` with the bytes of each key of these rows, in order; `None` where one is missing.
    fn each(&self, rows: Range<usize>, mut take: impl FnMut(Option<&[u8]>)) {
        let mut text = itoa::Buffer::new();
        match self {
            Self::Chunks(parts, _) => {
                for (begin, part) in parts {
                    let own = rows.start.max(*begin)..rows.end.min(begin + part.len());
                    if own.start < own.end {
                        part.each(own.start - begin..own.end - begin, &mut take);
                    }
                }
            }
            Self::Signed(numbers) => {
                numbers[rows].iter().for_each(|number| take(Some(text.format(*number).as_bytes())));
            }
            Self::Unsigned(numbers) => {
                numbers[rows].iter().for_each(|number| take(Some(text.format(*number).as_bytes())));
            }
            Self::Bytes(bytes, width, _) => {
                for row in rows {
                    let one = &bytes[row * width..(row + 1) * width];
                    take(Some(&one[..trimmed(one)]));
                }
            }
            Self::Points(points, width, _) => {
                let mut text = String::new();
                for row in rows {
                    let one = &points[row * width..(row + 1) * width];
                    text.clear();
                    // NumPy has no other code points in a text.
                    text.extend(
                        one[..trimmed(one)].iter().filter_map(|&point| char::from_u32(point)),
                    );
                    take(Some(text.as_bytes()));
                }
            }
            Self::Texts(texts) => texts[rows].iter().for_each(|text| take(text.as_deref())),
            // They are asked for their digests.
            Self::Digests(_) => {}
        }
    }

    /// Appends the digests of these rows; `missing` gets those that have no key, counted from the first.
    pub(crate) fn digests(
        &self,
        rows: Range<usize>,
        digester: &Digester,
        digests: &mut Vec<Digest>,
        missing: &mut Vec<usize>,
    ) {
        let mut row = 0;
        let mut put = |digest: Option<Digest>| {
            match digest {
                Some(digest) => digests.push(digest),
                None => missing.push(row),
            }
            row += 1;
        };
        match self {
            Self::Digests(all) => all[rows].iter().for_each(|digest| put(*digest)),
            _ => self.each(rows, |key| put(key.map(|key| digester.digest(key)))),
        }
    }

    /// The same, for keys of several parts.
    pub(crate) fn digests_of_parts(
        parts: &[Self],
        rows: Range<usize>,
        digester: &Digester,
        digests: &mut Vec<Digest>,
        missing: &mut Vec<usize>,
    ) {
        let len = rows.len();
        // The bytes of all parts, part by part, and where each ends.
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(len * parts.len()));
        for part in parts {
            part.each(rows.clone(), |key| {
                bytes.extend_from_slice(key.unwrap_or_default());
                ends.push((bytes.len(), key.is_some()));
            });
        }
        for row in 0..len {
            let places = (0..parts.len()).map(|part| part * len + row);
            if places.clone().any(|at| !ends[at].1) {
                missing.push(row);
                continue;
            }
            let field = |at: usize| {
                let begin = at.checked_sub(1).map_or(0, |before| ends[before].0);
                &bytes[begin..ends[at].0]
            };
            digests.push(digester.digest_fields(places.map(field)));
        }
    }
}

/// Whole numbers of NumPy, of any width.
fn numbers(array: &Bound<'_, PyAny>) -> Option<Keys> {
    fn wide<T: Copy, W: From<T>>(numbers: &[T]) -> Vec<W> {
        numbers.iter().map(|&number| number.into()).collect()
    }
    elements(array)
        .map(Keys::Signed)
        .or_else(|| elements(array).map(Keys::Unsigned))
        .or_else(|| Some(Keys::Signed(wide(&elements::<i32>(array)?))))
        .or_else(|| Some(Keys::Unsigned(wide(&elements::<u32>(array)?))))
        .or_else(|| Some(Keys::Signed(wide(&elements::<i16>(array)?))))
        .or_else(|| Some(Keys::Unsigned(wide(&elements::<u16>(array)?))))
        .or_else(|| Some(Keys::Signed(wide(&elements::<i8>(array)?))))
        .or_else(|| Some(Keys::Unsigned(wide(&elements::<u8>(array)?))))
}

/// The length of a text of fixed width without the zeros at its end.
fn trimmed<T: Default + PartialEq>(text: &[T]) -> usize {
    let zero = T::default();
    text.iter().rposition(|unit| *unit != zero).map_or(0, |last| last + 1)
}

fn no_keys(kind: &str) -> PyErr {
    raise(
        Kind::Key,
        format!(
            "an array of {kind} has no keys: keys are texts, bytes or whole numbers; cast it to text as the input has it"
        ),
    )
}

impl Part {
    fn new(array: ArrayRef) -> PyResult<Self> {
        match array.data_type() {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {}
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {}
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {}
            DataType::FixedSizeBinary(_) | DataType::Null => {}
            DataType::Dictionary(indices, _) => return Self::of_dictionary(&array, indices),
            other => return Err(no_keys(&other.to_string())),
        }
        Ok(Self::Plain(array))
    }

    fn of_dictionary(array: &ArrayRef, indices: &DataType) -> PyResult<Self> {
        fn taken<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> Vec<Option<usize>> {
            (0..array.len()).map(|row| array.key(row)).collect()
        }
        let taken = match indices {
            DataType::Int8 => taken(array.as_dictionary::<Int8Type>()),
            DataType::Int16 => taken(array.as_dictionary::<Int16Type>()),
            DataType::Int32 => taken(array.as_dictionary::<Int32Type>()),
            DataType::Int64 => taken(array.as_dictionary::<Int64Type>()),
            DataType::UInt8 => taken(array.as_dictionary::<UInt8Type>()),
            DataType::UInt16 => taken(array.as_dictionary::<UInt16Type>()),
            DataType::UInt32 => taken(array.as_dictionary::<UInt32Type>()),
            DataType::UInt64 => taken(array.as_dictionary::<UInt64Type>()),
            other => return Err(no_keys(&other.to_string())),
        };
        let values = array.as_any_dictionary().values().clone();
        match Self::new(values)? {
            Self::Plain(values) => Ok(Self::Dictionary(values, taken)),
            Self::Dictionary(..) => Err(no_keys("dictionaries of dictionaries")),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Plain(array) => array.len(),
            Self::Dictionary(_, taken) => taken.len(),
        }
    }

    fn each(&self, rows: Range<usize>, take: &mut impl FnMut(Option<&[u8]>)) {
        match self {
            Self::Plain(array) => each(array, rows, take),
            Self::Dictionary(values, taken) => {
                for row in &taken[rows] {
                    match *row {
                        Some(value) => each(values, value..value + 1, take),
                        None => take(None),
                    }
                }
            }
        }
    }
}

/// Calls `take` with the bytes of each of these rows.
fn each(array: &ArrayRef, rows: Range<usize>, take: &mut impl FnMut(Option<&[u8]>)) {
    let mut text = itoa::Buffer::new();
    // The nulls are looked at once for each row, and not at all where there are none.
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    macro_rules! rows {
        ($values:expr, $value:ident => $bytes:expr) => {{
            let values = $values;
            for row in rows {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    take(None);
                } else {
                    let $value = values.value(row);
                    take(Some($bytes));
                }
            }
        }};
    }
    macro_rules! numbers {
        ($kind:ty) => {
            rows!(array.as_primitive::<$kind>(), number => text.format(number).as_bytes())
        };
    }
    match array.data_type() {
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Utf8 => rows!(array.as_string::<i32>(), text => text.as_bytes()),
        DataType::LargeUtf8 => rows!(array.as_string::<i64>(), text => text.as_bytes()),
        DataType::Utf8View => rows!(array.as_string_view(), text => text.as_bytes()),
        DataType::Binary => rows!(array.as_binary::<i32>(), bytes => bytes),
        DataType::LargeBinary => rows!(array.as_binary::<i64>(), bytes => bytes),
        DataType::BinaryView => rows!(array.as_binary_view(), bytes => bytes),
        DataType::FixedSizeBinary(_) => rows!(array.as_fixed_size_binary(), bytes => bytes),
        // `Part::new` lets no other in.
        _ => rows.for_each(|_| take(None)),
    }
}
