//! Slices that are no API calls, markers, and the arguments of both.

use super::{FlowId, TrackIndex};
use gputrail_record::{CorrelationId, Nanos};

/// Categories of slices.
pub mod category {
    /// Markers and ranges without a category of their own.
    pub const MARKER: &str = "marker";
    /// Ranges of markers that were counted as a whole; their arguments are the agent and the values.
    pub const COUNTED_RANGE: &str = "counted range";
    /// Time that recording itself took.
    pub const OVERHEAD: &str = "overhead";
    /// Facts about the recording itself.
    pub const RECORDING: &str = "gputrail";
}

/// The value of an [`EventArgument`].
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
    /// A list or an object, as JSON.
    Json(&'a str),
}

impl<'a> Value<'a> {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&'a str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A named value of an event.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct EventArgument<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: Value<'a>,
}

/// A slice or an instant that a flow passes through. Viewers draw an arrow from each point of a flow to the next in time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FlowPoint {
    /// The flow.
    pub flow: FlowId,
    /// Whether the flow ends here. Its id may be used again afterwards.
    pub last: bool,
}

/// A slice of a track.
#[derive(Copy, Clone, Debug, Default)]
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
    pub arguments: &'a [EventArgument<'a>],
    /// The flows that pass through it.
    pub flows: &'a [FlowPoint],
}

impl Slice<'_> {
    /// Name of a slice during which a process was not recorded, in the category [`category::RECORDING`].
    pub const OFF: &'static str = "recording off";

    /// Whether the process was not recorded during the slice.
    pub fn is_off(&self) -> bool {
        self.category == category::RECORDING && self.name == Slice::OFF
    }
}

/// The end of the innermost [open](Slice::open) slice of a track, with what became known of the slice since it began.
#[derive(Copy, Clone, Debug)]
pub struct SliceEnd<'a> {
    /// The track.
    pub track: TrackIndex,
    /// When the slice ends.
    pub time: Nanos,
    /// Further values of the slice.
    pub arguments: &'a [EventArgument<'a>],
    /// Further flows that pass through the slice.
    pub flows: &'a [FlowPoint],
}

/// A marker.
#[derive(Copy, Clone, Debug, Default)]
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
    pub arguments: &'a [EventArgument<'a>],
    /// The flows that pass through it.
    pub flows: &'a [FlowPoint],
}
