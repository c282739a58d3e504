//! Markers and ranges: their attributes, and the number of a range.

/// The payload of a marker.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Value {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Unsigned(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Signed(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

/// The attributes of a marker or range. A string converts to its name.
#[derive(Copy, Clone, Default, PartialEq, Debug)]
pub struct Mark<'a> {
    /// The text.
    pub name: &'a str,
    /// The domain; empty for the default one.
    pub domain: &'a str,
    /// The category; empty for none.
    pub category: &'a str,
    /// The colour as ARGB; 0 for none.
    pub color: u32,
    /// A value.
    pub payload: Option<Value>,
}

impl<'a> Mark<'a> {
    /// A mark with a name only.
    pub const fn named(name: &'a str) -> Mark<'a> {
        Mark {
            name,
            domain: "",
            category: "",
            color: 0,
            payload: None,
        }
    }

    /// Sets the domain, such as the name of a library.
    pub const fn domain(mut self, domain: &'a str) -> Mark<'a> {
        self.domain = domain;
        self
    }

    /// Sets the category.
    pub const fn category(mut self, category: &'a str) -> Mark<'a> {
        self.category = category;
        self
    }

    /// Sets the colour: alpha, red, green and blue, one byte each, from the most significant.
    pub const fn color(mut self, argb: u32) -> Mark<'a> {
        self.color = argb;
        self
    }

    /// Sets the payload.
    pub fn payload(mut self, value: impl Into<Value>) -> Mark<'a> {
        self.payload = Some(value.into());
        self
    }
}

impl<'a> From<&'a str> for Mark<'a> {
    fn from(name: &'a str) -> Mark<'a> {
        Mark::named(name)
    }
}

/// A started range, unique in the process.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct RangeId(u64);

impl RangeId {
    /// The number that identifies the range in records.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The range with this number, for C programs. The end of a range checks that it exists.
    pub fn from_number(number: u64) -> RangeId {
        RangeId(number)
    }
}
