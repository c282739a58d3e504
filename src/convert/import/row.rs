//! Rows of tables, whatever file they stand in.
//!
//! [`rows`] describes a type of row once: its fields, their types and the columns that hold them. A reader of CSV, JSON or
//! SQLite looks the columns up in its table and offers each row as a [`Row`]; the type takes its fields from there.

#![cfg_attr(not(feature = "sqlite"), allow(dead_code))] // Only databases have some types of fields.

use std::borrow::Cow;

/// A value, a row or a table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// The offset of the row in the file, where that is known.
    pub offset: Option<u64>,
    pub found: String,
    pub expected: Cow<'static, str>,
}

impl Damage {
    pub fn new(found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Damage {
        Damage {
            offset: None,
            found: found.into(),
            expected: expected.into(),
        }
    }
}

/// A field of a row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum RowField<'r> {
    /// No value, or a column that the table lacks.
    Null,
    Int(i64),
    Real(f64),
    /// A text. CSV and JSON have numbers as texts too.
    Text(&'r str),
    /// Bytes that are no text.
    Bytes(&'r [u8]),
}

/// A row of a table.
pub(super) trait Row {
    /// The field of a column, by the column's place in the type of the row.
    fn field(&self, place: usize) -> RowField<'_>;
    /// The name of this column in the file.
    fn column(&self, place: usize) -> &str;
    /// The offset of the row in the file, if that is known, and its place in words.
    fn position(&self) -> (Option<u64>, String);
    /// The fields of columns that the type of the row does not have, with their names.
    fn rest(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }
}

/// A row without its first columns.
pub(super) struct RowRest<'r>(pub &'r dyn Row, pub usize);

impl Row for RowRest<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        self.0.field(place + self.1)
    }

    fn column(&self, place: usize) -> &str {
        self.0.column(place + self.1)
    }

    fn position(&self) -> (Option<u64>, String) {
        self.0.position()
    }
}

impl<'r> dyn Row + 'r {
    /// The damage of a field.
    pub fn damage(&self, place: usize, expected: impl Into<Cow<'static, str>>) -> Damage {
        let found = match self.field(place) {
            RowField::Null => "NULL".to_owned(),
            RowField::Int(value) => value.to_string(),
            RowField::Real(value) => value.to_string(),
            RowField::Text(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
            RowField::Bytes(bytes) => format!("{} bytes", bytes.len()),
        };
        let (offset, position) = self.position();
        Damage {
            offset,
            found: format!("{found} in {position}, column {}", self.column(place)),
            expected: expected.into(),
        }
    }

    /// A whole number; `None` for no value.
    fn int<T: TryFrom<i128>>(
        &self,
        place: usize,
        expected: &'static str,
    ) -> Result<Option<T>, Damage> {
        let number = match self.field(place) {
            RowField::Null => return Ok(None),
            RowField::Int(value) => i128::from(value),
            RowField::Text(text) => match text.trim() {
                "" => return Ok(None),
                text => whole_number(text).ok_or_else(|| self.damage(place, "a whole number"))?,
            },
            RowField::Real(_) | RowField::Bytes(_) => {
                return Err(self.damage(place, "a whole number"));
            }
        };
        let number = T::try_from(number).map_err(|_| self.damage(place, expected))?;
        Ok(Some(number))
    }
}

/// A whole number, in decimal or with `0x` in hexadecimal.
pub(super) fn whole_number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}

/// The type of a field.
pub(super) trait ParsedField<'r>: Sized {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage>;
}

/// Unsigned numbers: no value is 0.
macro_rules! numbers {
    ($($type:ty: $expected:literal;)*) => {$(
        impl<'r> ParsedField<'r> for Option<$type> {
            fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
                row.int(place, $expected)
            }
        }

        impl<'r> ParsedField<'r> for $type {
            fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
                Ok(row.int(place, $expected)?.unwrap_or(0))
            }
        }
    )*};
}

numbers! {
    u64: "a number from 0 on";
    u32: "a number below 4294967296";
    u8: "a number below 256";
}

impl<'r> ParsedField<'r> for Option<i64> {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        row.int(place, "a number of 64 bits")
    }
}

/// A signed number has to be there.
impl<'r> ParsedField<'r> for i64 {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        let number = row.int(place, "a number of 64 bits")?;
        number.ok_or_else(|| row.damage(place, "a whole number"))
    }
}

impl<'r> ParsedField<'r> for Option<f64> {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        match row.field(place) {
            RowField::Null | RowField::Text("") => Ok(None),
            RowField::Int(value) => Ok(Some(value as f64)),
            RowField::Real(value) => Ok(Some(value)),
            RowField::Text(text) => match text.trim().parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(row.damage(place, "a number")),
            },
            RowField::Bytes(_) => Err(row.damage(place, "a number")),
        }
    }
}

/// A floating-point number has to be there.
impl<'r> ParsedField<'r> for f64 {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        Option::<f64>::parse(row, place)?.ok_or_else(|| row.damage(place, "a number"))
    }
}

impl<'r> ParsedField<'r> for Option<&'r str> {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        match row.field(place) {
            RowField::Null => Ok(None),
            RowField::Text(text) => Ok(Some(text)),
            _ => Err(row.damage(place, "a text")),
        }
    }
}

/// A text: no value is the empty text.
impl<'r> ParsedField<'r> for &'r str {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        Ok(Option::parse(row, place)?.unwrap_or(""))
    }
}

impl<'r> ParsedField<'r> for RowField<'r> {
    fn parse(row: &'r (dyn Row + 'r), place: usize) -> Result<Self, Damage> {
        Ok(row.field(place))
    }
}

/// Types of rows. Each field has a type and the name of its column, or several names after one another, with `|` between
/// them, of which a file has one.
macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($field:ident: $type:ty = $column:literal,)* })*) => {$(
        $crate::import::row::rows!(@struct $(#[$doc])* $name $(<$life>)? { $($field: $type = $column,)* });
    )*};
    (@struct $(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $column:literal,)* }) => {
        $(#[$doc])*
        struct $name { $($field: $type,)* }

        impl $name {
            /// The columns.
            const COLUMNS: &'static [&'static str] = &[$($column,)*];

            /// The fields of a row whose places are those of [`COLUMNS`](Self::COLUMNS).
            fn read<'r>(row: &'r (dyn $crate::import::row::Row + 'r)) -> Result<Self, $crate::import::row::Damage> {
                let mut place = 0;
                $(let $field = <$type as $crate::import::row::ParsedField<'r>>::parse(row, place)?; place += 1;)*
                let _ = place;
                Ok($name { $($field,)* })
            }
        }
    };
    (@struct $(#[$doc:meta])* $name:ident <$life:lifetime> { $($field:ident: $type:ty = $column:literal,)* }) => {
        $(#[$doc])*
        struct $name<$life> { $($field: $type,)* }

        impl<$life> $name<$life> {
            /// The columns.
            const COLUMNS: &'static [&'static str] = &[$($column,)*];

            /// The fields of a row whose places are those of [`COLUMNS`](Self::COLUMNS).
            fn read(row: &$life (dyn $crate::import::row::Row + $life)) -> Result<Self, $crate::import::row::Damage> {
                let mut place = 0;
                $(let $field = <$type as $crate::import::row::ParsedField<$life>>::parse(row, place)?; place += 1;)*
                let _ = place;
                Ok($name { $($field,)* })
            }
        }
    };
}
pub(super) use rows;
