//! Slices that are no API calls, markers, and the arguments of both.

use super::TrackIndex;
use crate::record::{CorrelationId, Nanos};

/// Categories of slices.
pub mod category {
    /// Markers and ranges without a category of their own.
    pub const MARKER: &str = "marker";
    /// Time that recording itself took.
    pub const OVERHEAD: &str = "overhead";
}

/// The value of an [`Argument`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Yes or no.
    Bool(bool),
    /// An unsigned number.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    Text(&'a str),
    /// An address or handle, shown in hexadecimal.
    Pointer(u64),
}

/// A named value of an event.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Argument<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: Value<'a>,
}

/// A slice of a track.
#[derive(Copy, Clone, Debug)]
pub struct Slice<'a> {
    /// The track.
    pub track: TrackIndex,
    /// Its name.
    pub name: &'a str,
    /// Its category, which viewers filter by.
    pub category: &'a str,
    /// When it begins.
    pub start: Nanos,
    /// When it ends; `None` if that is not known (yet).
    pub end: Option<Nanos>,
    /// Whether other slices may begin before it ends. If so, [`Consumer::end`](super::Consumer::end) is called when it
    /// ends.
    pub open: bool,
    /// The call to which it belongs.
    pub correlation: CorrelationId,
    /// Further values.
    pub arguments: &'a [Argument<'a>],
}

/// A marker.
#[derive(Copy, Clone, Debug)]
pub struct Instant<'a> {
    /// The track.
    pub track: TrackIndex,
    /// Its name.
    pub name: &'a str,
    /// Its category, which viewers filter by.
    pub category: &'a str,
    /// Its time.
    pub time: Nanos,
    /// Further values.
    pub arguments: &'a [Argument<'a>],
}
