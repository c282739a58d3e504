//! Slices, calls and instants of a track: complete slices are passed on in the order of their begins.

use std::io;

use super::activity::Activity;
use super::labels::Labels;
use crate::arguments::StoredArguments;
use crate::model::nesting::{Nested, Nesting, NestingStep};
use crate::model::{
    Call, Consumer, CounterValue, EventArgument, EventId, FlowPoint, Instant, Loss, Note,
    ProcessIndex, Slice, SliceEnd, TrackIndex, Value, category,
};
use crate::perfetto::reader::tracks::CounterProperties;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{CorrelationId, ExternalId, Kind, Nanos, ThreadId};

/// The name of instants about lost records.
pub(super) const RECORDS_LOST: &str = "records lost";

/// The parts of a slice that few slices have.
#[derive(Debug, Default)]
pub(super) struct SliceDetails {
    /// Name and category, if they have no number.
    pub own_label: Option<(Box<str>, Box<str>)>,
    pub arguments: StoredArguments,
    pub flows: Vec<FlowPoint>,
    pub submitted: Vec<EventId>,
    pub waited: Vec<EventId>,
    pub external: ExternalId,
    pub error: Option<i32>,
    /// Set if the slice is work of a device.
    pub activity: Option<Activity>,
}

impl SliceDetails {
    pub fn bytes(&self) -> usize {
        let ids = self.flows.len() + self.submitted.len() + self.waited.len();
        let label = self.own_label.as_ref();
        let label = label.map_or(0, |(name, category)| name.len() + category.len());
        size_of::<SliceDetails>() + label + self.arguments.bytes() + 16 * ids
    }
}

/// What an event on a track is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A call of a function.
    Call(u32),
    /// A slice with a label; `None` for one whose label is in its details.
    Slice(Option<u32>),
    /// Work of a device, with a label like a slice.
    Work(Option<u32>),
    /// An instant, likewise.
    Instant(Option<u32>),
}

/// A slice or an instant.
#[derive(Debug)]
pub(super) struct ReplayedSpan {
    /// Its number in the order of the begins.
    pub number: u64,
    /// The number of the enclosing slice; 0 for an outermost one.
    pub parent: u64,
    pub form: Form,
    pub start: Nanos,
    pub end: Option<Nanos>,
    pub correlation: CorrelationId,
    pub details: Option<Box<SliceDetails>>,
}

impl ReplayedSpan {
    /// Bytes of memory that its details take.
    pub fn bytes(&self) -> usize {
        self.details.as_ref().map_or(0, |details| details.bytes())
    }
}

impl Nested for ReplayedSpan {
    fn id(&self) -> u64 {
        self.number
    }

    fn parent(&self) -> u64 {
        self.parent
    }

    fn start(&self) -> Nanos {
        self.start
    }

    fn end(&self) -> Option<Nanos> {
        self.end
    }
}

/// The content of a track.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum LaneContent {
    /// Slices and instants. `thread` is the thread whose calls may be among them.
    Slices {
        thread: Option<(ProcessIndex, ThreadId)>,
    },
    /// The pushed ranges of a thread, whose begins are passed on as they come: calls are attributed to open ranges.
    ThreadRanges,
    /// Facts about the recording of a process.
    Notes(ProcessIndex),
    /// Values of a counter.
    Counter(CounterProperties),
}

/// A track of events.
#[derive(Debug)]
pub(super) struct EventLane {
    /// Its index in the stream; that of notes is not used.
    pub track: TrackIndex,
    pub content: LaneContent,
    /// Whether it is the own track of its thread.
    pub is_thread: bool,
    /// Open slices, outermost first.
    pub open: Vec<ReplayedSpan>,
    nesting: Nesting<ReplayedSpan>,
    /// Bytes that the details of waiting slices and of their ends take.
    waiting_bytes: usize,
    /// What became known at the ends of slices that wait, by their numbers.
    ends: NumberMap<u64, Box<SliceDetails>>,
    /// The sum of the values of an incremental counter, of whole numbers and of others.
    sum: i128,
    sum_of_fractions: f64,
}

impl EventLane {
    pub fn new(track: TrackIndex, content: LaneContent, is_thread: bool) -> EventLane {
        EventLane {
            track,
            content,
            is_thread,
            open: Vec::new(),
            nesting: Nesting::default(),
            waiting_bytes: 0,
            ends: NumberMap::default(),
            sum: 0,
            sum_of_fractions: 0.0,
        }
    }

    /// The number of the innermost open slice; 0 for none. Work is none.
    pub fn innermost(&self) -> u64 {
        let mut open = self.open.iter().rev();
        let slice = open.find(|span| !matches!(span.form, Form::Work(_)));
        slice.map_or(0, |span| span.number)
    }

    /// The number of complete slices that wait for the end of their outermost one, and the bytes of their details.
    pub fn waiting(&self) -> (usize, usize) {
        (self.nesting.len(), self.waiting_bytes)
    }

    /// The value that a counter has after an event with `value`.
    pub fn value(&mut self, value: CounterValue) -> CounterValue {
        let LaneContent::Counter(counter) = self.content else {
            return value;
        };
        match value {
            CounterValue::Int(value) => {
                let mut value = i128::from(value);
                if counter.incremental {
                    self.sum += value;
                    value = self.sum;
                }
                let value = value.saturating_mul(counter.multiplier.into());
                CounterValue::Int(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            CounterValue::Double(mut value) => {
                if counter.incremental {
                    self.sum_of_fractions += value;
                    value = self.sum_of_fractions;
                }
                CounterValue::Double(value * counter.multiplier as f64)
            }
        }
    }

    /// Adds a complete slice or an instant, and passes on what need not wait any more.
    pub fn complete(
        &mut self,
        span: ReplayedSpan,
        end: Option<Box<SliceDetails>>,
        (consumer, labels): (&mut dyn Consumer, &Labels),
    ) -> io::Result<()> {
        if let Some(end) = end {
            self.waiting_bytes += end.bytes();
            self.ends.insert(span.number, end);
        }
        if span.parent == 0 && self.nesting.is_empty() && self.ends.is_empty() {
            return pass_on(consumer, labels, (self.track, self.content), &span, false);
        }
        self.waiting_bytes += span.bytes();
        let (place, ends) = ((self.track, self.content), &mut self.ends);
        self.nesting
            .add(span, |step| take(consumer, labels, place, ends, step))?;
        if self.nesting.is_empty() {
            self.waiting_bytes = 0;
        }
        Ok(())
    }

    /// Passes on all complete slices.
    pub fn pass_on_complete(
        &mut self,
        consumer: &mut dyn Consumer,
        labels: &Labels,
    ) -> io::Result<()> {
        self.waiting_bytes = 0;
        let (place, ends) = ((self.track, self.content), &mut self.ends);
        self.nesting
            .finish(|step| take(consumer, labels, place, ends, step))
    }

    /// Passes on everything, also the slices that did not end.
    pub fn finish(&mut self, consumer: &mut dyn Consumer, labels: &Labels) -> io::Result<()> {
        let begins_passed_on = matches!(
            self.content,
            LaneContent::ThreadRanges | LaneContent::Notes(_)
        );
        // The outermost slice comes last, after all slices inside it.
        while let Some(span) = self.open.pop() {
            if !begins_passed_on {
                self.complete(span, None, (consumer, labels))?;
            }
        }
        self.pass_on_complete(consumer, labels)
    }
}

fn take(
    consumer: &mut dyn Consumer,
    labels: &Labels,
    (track, content): (TrackIndex, LaneContent),
    ends: &mut NumberMap<u64, Box<SliceDetails>>,
    step: NestingStep<'_, ReplayedSpan>,
) -> io::Result<()> {
    match step {
        NestingStep::Begin(span) => {
            let open = span.end.is_some();
            pass_on(consumer, labels, (track, content), span, open)
        }
        // Instants have odd numbers: they have no end.
        NestingStep::End(_, number) if number % 2 == 1 => Ok(()),
        NestingStep::End(time, number) => {
            let details = if ends.is_empty() {
                None
            } else {
                ends.remove(&number)
            };
            end(consumer, track, time, details.as_deref())
        }
    }
}

/// Ends the innermost slice of a track.
pub(super) fn end(
    consumer: &mut dyn Consumer,
    track: TrackIndex,
    time: Nanos,
    details: Option<&SliceDetails>,
) -> io::Result<()> {
    let Some(details) = details else {
        return consumer.end(track, time);
    };
    let arguments: Vec<EventArgument<'_>> = details.arguments.iter().collect();
    consumer.end_slice(&SliceEnd {
        track,
        time,
        arguments: &arguments,
        flows: &details.flows,
    })
}

/// Passes on the begin of a slice, a whole slice, or an instant.
pub(super) fn pass_on(
    consumer: &mut dyn Consumer,
    labels: &Labels,
    (track, content): (TrackIndex, LaneContent),
    span: &ReplayedSpan,
    open: bool,
) -> io::Result<()> {
    let details = span.details.as_deref();
    let own = details.and_then(|details| details.own_label.as_ref());
    let (name, category) = match (span.form, own) {
        (_, Some((name, category))) => (&**name, &**category),
        (Form::Slice(Some(label)) | Form::Instant(Some(label)), None) => {
            let label = labels.get(label);
            (&*label.name, &*label.category)
        }
        _ => ("", ""),
    };
    let arguments: Vec<EventArgument<'_>> =
        details.map_or_else(Vec::new, |details| details.arguments.iter().collect());
    let flows = details.map_or(&[][..], |details| &details.flows);
    match (span.form, content) {
        (Form::Call(function), LaneContent::Slices { thread }) => {
            let (process, thread) = thread.unwrap_or_default();
            let values: Vec<Value<'_>> = arguments.iter().map(|one| one.value).collect();
            consumer.call(&Call {
                process,
                thread,
                track,
                function: labels.function_at(function),
                start: span.start,
                end: span.end,
                open,
                nested: span.parent != 0,
                correlation: span.correlation,
                external: details.map_or(ExternalId::NONE, |details| details.external),
                error: details.and_then(|details| details.error),
                submitted: details.map_or(&[], |details| &details.submitted),
                waited: details.map_or(&[], |details| &details.waited),
                arguments: &values,
                flows,
            })
        }
        (Form::Instant(_), LaneContent::Notes(process)) if category == category::RECORDING => {
            if name == RECORDS_LOST {
                consumer.loss(&loss(Some(process), None, span.start, &arguments))
            } else {
                consumer.note(&Note {
                    process,
                    time: span.start,
                    name,
                    arguments: &arguments,
                })
            }
        }
        (Form::Instant(_), _) if name == RECORDS_LOST && category == category::RECORDING => {
            consumer.loss(&loss(None, Some(track), span.start, &arguments))
        }
        (Form::Instant(_), _) => consumer.instant(&Instant {
            track,
            name,
            category,
            time: span.start,
            arguments: &arguments,
            flows,
        }),
        _ => consumer.slice(&Slice {
            track,
            name,
            category,
            start: span.start,
            end: span.end,
            open,
            correlation: span.correlation,
            arguments: &arguments,
            flows,
        }),
    }
}

/// The loss that an instant is about.
fn loss(
    process: Option<ProcessIndex>,
    track: Option<TrackIndex>,
    time: Nanos,
    arguments: &[EventArgument<'_>],
) -> Loss {
    let argument = |name: &str| {
        let found = arguments.iter().find(|argument| argument.name == name);
        found.map(|argument| argument.value)
    };
    let number = |name| match argument(name) {
        Some(Value::Uint(number)) => number,
        _ => 0,
    };
    Loss {
        process,
        thread: ThreadId::NONE,
        track,
        kind: match argument("kind") {
            Some(Value::Text(name)) => Kind::from_name(name).unwrap_or(Kind(0)),
            _ => Kind(0),
        },
        count: number("count"),
        first: Nanos(number("from")),
        last: Nanos(number("to")),
        time,
    }
}
