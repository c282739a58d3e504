//! Calls and slices as one row each: an open one is held in memory until its end comes.
//!
//! At most [`MAX_HELD`] are held, a few hundred bytes each with their arguments; further ones are written without an end.

use std::borrow::Cow;

use gputrail_record::{CorrelationId, ExternalId, Nanos, ThreadId};
use gputrail_trace::json;
use gputrail_trace::model::{
    Call, EventArgument, EventId, ProcessIndex, Slice, SliceEnd, TrackIndex,
};

/// Maximum number of open spans that are held. Further ones are passed on without their ends.
const MAX_HELD: usize = 1 << 20;

/// A call or a slice.
#[derive(Clone, Debug)]
pub(super) struct Span<'a> {
    /// Its track.
    pub track: TrackIndex,
    /// The part that only calls have.
    pub call: Option<CallPart>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its category; the API of a call.
    pub category: Cow<'a, str>,
    /// When it begins.
    pub start: Nanos,
    /// When it ends, if that is known.
    pub end: Option<Nanos>,
    /// The number of spans around it on its track.
    pub depth: u32,
    /// The id of the call, or of the call that a slice belongs to.
    pub correlation: CorrelationId,
    /// Its arguments as a JSON object; empty if it has none.
    pub arguments: String,
}

/// The part of a span that only calls have.
#[derive(Clone, Debug)]
pub(super) struct CallPart {
    pub process: ProcessIndex,
    pub thread: ThreadId,
    /// The API.
    pub domain: &'static str,
    pub group: &'static str,
    pub external: ExternalId,
    pub error: Option<i32>,
    /// The device work that it submitted.
    pub submitted: Vec<EventId>,
    /// The device work that it waited for.
    pub waited: Vec<EventId>,
}

impl<'a> Span<'a> {
    /// A call.
    pub fn of_call(call: &Call<'a>) -> Span<'a> {
        let function = call.function;
        let category = function.category.as_deref().or(function.domain.name());
        let names = function.parameters.iter().map(|parameter| &*parameter.name);
        let arguments = names.zip(call.arguments);
        let arguments = arguments.map(|(name, value)| EventArgument {
            name,
            value: *value,
        });
        Span {
            track: call.track,
            call: Some(CallPart {
                process: call.process,
                thread: call.thread,
                domain: function.domain.name().unwrap_or("other"),
                group: function.group.name().unwrap_or("other"),
                external: call.external,
                error: call.error,
                submitted: call.submitted.to_vec(),
                waited: call.waited.to_vec(),
            }),
            name: Cow::Borrowed(&function.name),
            category: Cow::Borrowed(category.unwrap_or("other")),
            start: call.start,
            end: call.end,
            depth: 0,
            correlation: call.correlation,
            arguments: json::object(arguments),
        }
    }

    /// A slice.
    pub fn of_slice(slice: &Slice<'a>) -> Span<'a> {
        Span {
            track: slice.track,
            call: None,
            name: Cow::Borrowed(slice.name),
            category: Cow::Borrowed(slice.category),
            start: slice.start,
            end: slice.end,
            depth: 0,
            correlation: slice.correlation,
            arguments: json::object(slice.arguments.iter().copied()),
        }
    }

    /// Its duration in nanoseconds.
    pub fn duration(&self) -> Option<u64> {
        Some(self.end?.0.saturating_sub(self.start.0))
    }

    fn into_owned(self) -> Span<'static> {
        Span {
            name: Cow::Owned(self.name.into_owned()),
            category: Cow::Owned(self.category.into_owned()),
            ..self
        }
    }
}

/// The open spans of all tracks.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    /// For each track its open spans, outermost first; `None` where one was passed on already.
    tracks: Vec<Vec<Option<Span<'static>>>>,
    held: usize,
}

impl OpenSpans {
    /// Begins a span. The result is to be written now; without one, the span is held until it ends.
    pub fn begin<'a>(&mut self, mut span: Span<'a>, open: bool) -> Option<Span<'a>> {
        let place = span.track.0 as usize;
        if place >= self.tracks.len() {
            self.tracks.resize_with(place + 1, Vec::new);
        }
        let track = &mut self.tracks[place];
        span.depth = track.len() as u32;
        if !open {
            return Some(span);
        }
        if self.held >= MAX_HELD {
            track.push(None);
            return Some(span);
        }
        self.held += 1;
        track.push(Some(span.into_owned()));
        None
    }

    /// Ends the innermost open span of a track. The result is to be written.
    pub fn end(&mut self, end: &SliceEnd<'_>) -> Option<Span<'static>> {
        let mut span = self.tracks.get_mut(end.track.0 as usize)?.pop()??;
        self.held -= 1;
        span.end = Some(end.time);
        if !end.arguments.is_empty() {
            let more = json::object(end.arguments.iter().copied());
            match span.arguments.pop() {
                Some(_) => span.arguments = format!("{},{}", span.arguments, &more[1..]),
                None => span.arguments = more,
            }
        }
        Some(span)
    }

    /// The spans that have not ended.
    pub fn rest(&mut self) -> impl Iterator<Item = Span<'static>> {
        std::mem::take(&mut self.tracks)
            .into_iter()
            .flatten()
            .flatten()
    }
}
