//! The fields of a row of columns, as those of any other record are read.

use crate::record::value::{Row, Value};
use crate::record::{Form, Time, append, prefixed};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use std::io::Write;

/// One row of a batch of columns.
pub(super) struct ColumnRow<'a> {
    pub(super) columns: &'a [ArrayRef],
    pub(super) row: usize,
}

/// Nanoseconds of a day.
const DAY: i64 = 86_400 * 1_000_000_000;

/// Can values of this type be read as text?
pub(super) fn is_readable(kind: &DataType) -> bool {
    match kind {
        DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(..)
        | DataType::Map(..)
        | DataType::RunEndEncoded(..) => false,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            is_readable(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| is_readable(field.data_type())),
        DataType::Dictionary(_, values) => is_readable(values),
        _ => true,
    }
}

impl ColumnRow<'_> {
    /// The values of some columns, each with its length, so that no two rows look alike.
    fn joined<'r>(
        &self,
        columns: impl Iterator<Item = usize>,
        form: Form,
        spare: &'r mut Vec<u8>,
    ) -> Value<'r> {
        spare.clear();
        let mut text = Vec::new();
        for column in columns {
            match self.value(column, &mut text) {
                // A length no value has.
                Value::Missing(_) => spare.extend_from_slice(&u64::MAX.to_le_bytes()),
                value => prefixed(spare, |key| append(value, form, key)),
            }
        }
        Value::Text(spare)
    }
}

impl Row for ColumnRow<'_> {
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        match self.columns.get(slot) {
            Some(array) => value(array, self.row, spare),
            None => Value::Missing("there is no such column"),
        }
    }

    fn whole<'r>(&'r self, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.joined(0..self.columns.len(), Form::default(), spare)
    }

    fn rest<'r>(&'r self, first: usize, form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.joined(first..self.columns.len(), form, spare)
    }

    fn all_but<'r>(&'r self, slots: &[usize], form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.joined((0..self.columns.len()).filter(|column| !slots.contains(column)), form, spare)
    }

    fn moment(&self, slot: usize) -> Option<Time> {
        let array = self.columns.get(slot).filter(|array| !array.is_null(self.row))?;
        match array.data_type() {
            DataType::Time32(_) | DataType::Time64(_) => {
                Some(Time::of_day(u64::try_from(time_of_day(array, self.row)?).ok()?))
            }
            _ => {
                let (number, unit) = stamp(array, self.row)?;
                // What programs write for "never", which is read as text, and refused.
                let is_never = matches!(number, 0 | -1 | i64::MAX | i64::MIN);
                Time::since_1970(number.checked_mul(unit)?).filter(|_| !is_never)
            }
        }
    }
}

/// The number that a moment is, and its unit in nanoseconds; `None` for other types.
fn stamp(array: &dyn Array, row: usize) -> Option<(i64, i64)> {
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            (array.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            (array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            (array.as_primitive::<TimestampNanosecondType>().value(row), 1)
        }
        DataType::Date32 => (array.as_primitive::<Date32Type>().value(row).into(), DAY),
        DataType::Date64 => (array.as_primitive::<Date64Type>().value(row), 1_000_000),
        _ => return None,
    })
}

/// Nanoseconds since midnight; `None` for other types.
fn time_of_day(array: &dyn Array, row: usize) -> Option<i64> {
    let (number, unit): (i64, i64) = match array.data_type() {
        DataType::Time32(TimeUnit::Second) => {
            (array.as_primitive::<Time32SecondType>().value(row).into(), 1_000_000_000)
        }
        DataType::Time32(_) => {
            (array.as_primitive::<Time32MillisecondType>().value(row).into(), 1_000_000)
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            (array.as_primitive::<Time64MicrosecondType>().value(row), 1_000)
        }
        DataType::Time64(_) => (array.as_primitive::<Time64NanosecondType>().value(row), 1),
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A value as text, as it would be in CSV; lists and structures as JSON.
fn value<'r>(array: &'r dyn Array, row: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
    if array.is_null(row) {
        return Value::Missing("null");
    }
    if let Some(text) = bytes(array, row) {
        return Value::Text(text);
    }
    if let Some((values, at)) = of_dictionary(array, row) {
        return value(values, at, spare);
    }
    spare.clear();
    match array.data_type() {
        DataType::Null => Value::Missing("null"),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_) => {
            write_json(array, row, spare);
            Value::Json(spare)
        }
        _ => match write_text(array, row, spare) {
            Some(()) => Value::Text(spare),
            None => Value::Missing("its type cannot be read"),
        },
    }
}

/// The bytes of a text, or of any others.
fn bytes(array: &dyn Array, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => return None,
    })
}

/// The values of a dictionary, and which of them this is.
fn of_dictionary(array: &dyn Array, row: usize) -> Option<(&dyn Array, usize)> {
    let DataType::Dictionary(key, _) = array.data_type() else { return None };
    let values = array.as_any_dictionary().values();
    let at = match &**key {
        DataType::Int8 => array.as_dictionary::<Int8Type>().key(row),
        DataType::Int16 => array.as_dictionary::<Int16Type>().key(row),
        DataType::Int32 => array.as_dictionary::<Int32Type>().key(row),
        DataType::Int64 => array.as_dictionary::<Int64Type>().key(row),
        DataType::UInt8 => array.as_dictionary::<UInt8Type>().key(row),
        DataType::UInt16 => array.as_dictionary::<UInt16Type>().key(row),
        DataType::UInt32 => array.as_dictionary::<UInt32Type>().key(row),
        DataType::UInt64 => array.as_dictionary::<UInt64Type>().key(row),
        _ => None,
    };
    Some((&**values, at?))
}

/// Writes a value that is neither text nor made of others; `None` if there is no way to.
fn write_text(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! number {
        ($kind:ty) => {
            write!(out, "{}", array.as_primitive::<$kind>().value(row)).ok()
        };
    }
    macro_rules! decimal {
        ($kind:ty) => {
            write!(out, "{}", array.as_primitive::<$kind>().value_as_string(row)).ok()
        };
    }
    match array.data_type() {
        DataType::Boolean => write!(out, "{}", array.as_boolean().value(row)).ok(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float16 => number!(Float16Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Time32(_) | DataType::Time64(_) => {
            let nanos = time_of_day(array, row)?;
            match u64::try_from(nanos).ok().filter(|nanos| *nanos < DAY.cast_unsigned()) {
                Some(nanos) => write!(out, "{}", Time::of_day(nanos)).ok(),
                None => write!(out, "{nanos} ns").ok(),
            }
        }
        _ => {
            let (number, unit) = stamp(array, row)?;
            let nanos = i128::from(number) * i128::from(unit);
            match jiff::Timestamp::from_nanosecond(nanos) {
                Ok(moment) if unit == DAY => {
                    let text = moment.to_string();
                    out.extend_from_slice(text.get(..10).unwrap_or(&text).as_bytes());
                    Some(())
                }
                Ok(moment) => write!(out, "{moment}").ok(),
                Err(_) => write!(out, "{number} * {unit} ns").ok(),
            }
        }
    }
}

/// Writes any value as JSON.
fn write_json(array: &dyn Array, row: usize, out: &mut Vec<u8>) {
    if array.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    if let Some((values, at)) = of_dictionary(array, row) {
        return write_json(values, at, out);
    }
    let list = match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    };
    if let Some(items) = list {
        out.push(b'[');
        for at in 0..items.len() {
            if at > 0 {
                out.push(b',');
            }
            write_json(&items, at, out);
        }
        return out.push(b']');
    }
    if let DataType::Struct(fields) = array.data_type() {
        out.push(b'{');
        for (at, (field, column)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(field.name().as_bytes(), out);
            out.push(b':');
            write_json(column, row, out);
        }
        return out.push(b'}');
    }
    if let Some(text) = bytes(array, row) {
        return write_string(text, out);
    }
    let mut text = Vec::new();
    let _ = write_text(array, row, &mut text);
    let is_number = array.data_type().is_numeric() || *array.data_type() == DataType::Boolean;
    if is_number { out.extend_from_slice(&text) } else { write_string(&text, out) }
}

/// Writes a string; of bytes that are no text, each stands for itself.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let written = match std::str::from_utf8(text) {
        Ok(text) => serde_json::to_writer(&mut *out, text),
        Err(_) => serde_json::to_writer(&mut *out, text),
    };
    debug_assert!(written.is_ok(), "a buffer takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
        Int64Array, ListArray, NullArray, StringArray, StringViewArray, StructArray,
        Time64MicrosecondArray, TimestampMillisecondArray, UInt8Array,
    };
    use arrow_schema::{Field, Fields};
    use std::sync::Arc;

    fn read(array: ArrayRef, row: usize) -> Option<String> {
        let columns = [array];
        let (row, mut spare) = (ColumnRow { columns: &columns, row }, Vec::new());
        match row.value(0, &mut spare) {
            Value::Missing(_) => None,
            Value::Text(text) | Value::Number(text) | Value::Json(text) => {
                Some(String::from_utf8_lossy(text).into_owned())
            }
        }
    }

    #[test]
    fn values_are_read_as_in_csv() {
        let list = ListArray::from_iter_primitive::<Int8Type, _, _>([Some(vec![Some(1), None])]);
        let fields = Fields::from(vec![Field::new("a\"", DataType::Utf8, true)]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x\n")]));
        let object = StructArray::new(fields, vec![texts], None);
        let dictionary: DictionaryArray<Int8Type> =
            [Some("p"), None, Some("q")].into_iter().collect();
        let decimal = Decimal128Array::from(vec![-1250]).with_precision_and_scale(9, 2).unwrap();
        let cases: [(ArrayRef, usize, Option<&str>); 16] = [
            (Arc::new(StringArray::from(vec!["", "ab"])), 1, Some("ab")),
            (Arc::new(StringArray::from(vec![None, Some("ab")])), 0, None),
            (
                Arc::new(StringViewArray::from(vec!["a text of more than twelve"])),
                0,
                Some("a text of more than twelve"),
            ),
            (Arc::new(BinaryArray::from(vec![&b"b"[..]])), 0, Some("b")),
            (Arc::new(BooleanArray::from(vec![true])), 0, Some("true")),
            (Arc::new(Int64Array::from(vec![i64::MIN])), 0, Some("-9223372036854775808")),
            (Arc::new(UInt8Array::from(vec![7])), 0, Some("7")),
            (Arc::new(Float64Array::from(vec![0.1])), 0, Some("0.1")),
            (Arc::new(decimal), 0, Some("-12.50")),
            (Arc::new(Date32Array::from(vec![-1])), 0, Some("1969-12-31")),
            (
                Arc::new(TimestampMillisecondArray::from(vec![1500])),
                0,
                Some("1970-01-01T00:00:01.5Z"),
            ),
            (Arc::new(Time64MicrosecondArray::from(vec![1])), 0, Some("00:00:00.000001Z")),
            (Arc::new(dictionary), 2, Some("q")),
            (Arc::new(list), 0, Some("[1,null]")),
            (Arc::new(object), 0, Some("{\"a\\\"\":\"x\\n\"}")),
            (Arc::new(NullArray::new(1)), 0, None),
        ];
        for (array, row, expected) in cases {
            assert!(is_readable(array.data_type()));
            assert_eq!(read(Arc::clone(&array), row).as_deref(), expected, "{}", array.data_type());
        }
        assert!(!is_readable(&DataType::Duration(TimeUnit::Second)));
    }

    #[test]
    fn moments_are_read_by_their_unit_and_never_is_none() {
        let moment = |array: ArrayRef| ColumnRow { columns: &[array], row: 0 }.moment(0);
        let millis = |number| moment(Arc::new(TimestampMillisecondArray::from(vec![number])));
        assert_eq!(millis(1_700_000_000_123).unwrap().nanos(), Some(1_700_000_000_123_000_000));
        for never in [0, -1, i64::MAX, i64::MIN, 253_402_300_799_999] {
            assert_eq!(millis(never), None, "{never}");
        }
        let day = moment(Arc::new(Date32Array::from(vec![19_000])));
        assert_eq!(day.map(|day| day.to_string()).as_deref(), Some("2022-01-08T00:00:00Z"));
        let time = moment(Arc::new(Time64MicrosecondArray::from(vec![3_600_000_000])));
        assert_eq!(time, Some(Time::of_day(3_600_000_000_000)));
        assert_eq!(moment(Arc::new(Int64Array::from(vec![1_700_000_000]))), None);
    }
}
