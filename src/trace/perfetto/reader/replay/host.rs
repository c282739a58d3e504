//! Events of the host: begins and ends of slices, instants, values of counters.

use std::io;

use super::declare::thread_of;
use super::held::Enqueuing;
use super::limits::{MAX_DETAIL_BYTES, MAX_EVENT_BYTES, MAX_IDS, TOO_MANY_ARGUMENTS};
use super::order::{HostAction, HostMoment};
use super::replaying::Replaying;
use super::slices::{Form, LaneContent, RECORDS_LOST, ReplayedSpan, SliceDetails, end, pass_on};
use crate::arguments::StoredArguments;
use crate::model::{EventId, Value, category};
use crate::perfetto::reader::tracks::{TrackId, TrackOf};
use crate::perfetto::reader::{AnnotationValue, EventKind, HostEvent, Known, NumberedText, TextId};
use gputrail_record::{CorrelationId, ExternalId, Nanos};

/// Maximum number of slices that are open, and of slices that wait for the end of their outermost one, on all tracks.
const MAX_OPEN: usize = 1 << 20;
/// The category of slices whose times are impossible: they are no calls, which sums would count.
const IMPOSSIBLE: &str = "impossible times";

impl Replaying<'_> {
    pub(super) fn read_event(&mut self, event: &HostEvent<'_>) -> io::Result<()> {
        self.begin(event.time)?;
        for id in event.submitted() {
            let call = Enqueuing {
                thread: thread_of(event.described).unwrap_or_default(),
                start: event.time,
                correlation: CorrelationId(event.correlation.unwrap_or(0)),
            };
            self.submitted(id, call)?;
        }
        let of = event.described.map(|track| track.of);
        if !self.wants_calls && matches!(of, Some(TrackOf::Thread(..))) {
            return Ok(());
        }
        self.count_unread(event);
        for (track, value) in &event.further_values {
            self.pass_on_moment(
                self.moment(event, *track, HostAction::Value(*value), None),
                event.known,
            )?;
        }
        let what = match event.kind {
            EventKind::Begin => HostAction::Begin {
                label: self.label(event),
                correlation: event.correlation,
                api: event.api,
            },
            EventKind::End => HostAction::End,
            EventKind::Instant => HostAction::Instant(self.label(event)),
            EventKind::Counter => match event.value {
                Some(value) => HostAction::Value(value),
                None => return Ok(()),
            },
            EventKind::Other => {
                let reason = if event.is_legacy {
                    "event of Chrome's legacy format"
                } else {
                    "event without a type"
                };
                self.leave_out(reason, 1);
                return Ok(());
            }
        };
        let mut details = self.details(event, &what);
        if event.kind == EventKind::Begin {
            self.note_activity(event, &mut details);
        }
        let moment = self.moment(event, event.track, what, details);
        self.pass_on_moment(moment, event.known)
    }

    fn moment(
        &self,
        event: &HostEvent<'_>,
        track: TrackId,
        what: HostAction,
        details: Option<Box<SliceDetails>>,
    ) -> HostMoment {
        HostMoment {
            time: event.time,
            position: self.position,
            track,
            machine: self.machine,
            what,
            details,
        }
    }

    /// Passes an event on: at once in traces of gputrail, otherwise when earlier ones have come.
    fn pass_on_moment(&mut self, moment: HostMoment, known: &Known) -> io::Result<()> {
        if self.is_own() {
            return self.apply(moment, known);
        }
        if self.window.add(moment) {
            let reason = "event that stands too far behind later ones to be put in order: it comes after them";
            self.late.add(reason, self.position, 1);
        }
        while let Some(moment) = self.window.take_if_full() {
            self.apply_late(moment, known)?;
        }
        Ok(())
    }

    /// Passes on all events that wait for earlier ones.
    pub(super) fn pass_on_window(&mut self, known: &Known) -> io::Result<()> {
        while let Some(moment) = self.window.take() {
            self.apply_late(moment, known)?;
        }
        Ok(())
    }

    /// Passes on an event that is not in the current packet.
    fn apply_late(&mut self, moment: HostMoment, known: &Known) -> io::Result<()> {
        let current = (self.machine, self.position);
        (self.machine, self.position) = (moment.machine, moment.position);
        self.apply(moment, known)?;
        (self.machine, self.position) = current;
        Ok(())
    }

    fn label(&mut self, event: &HostEvent<'_>) -> Option<u32> {
        if event.further_categories.is_empty() {
            return self.labels.number(event.category, event.name);
        }
        let category = categories(event);
        let category = NumberedText {
            id: TextId::OTHER,
            text: &category,
        };
        self.labels.number(category, event.name)
    }

    fn count_unread(&mut self, event: &HostEvent<'_>) {
        if event.unread_fields > 0 {
            let reason =
                "field of an event that is no argument (source location, callstack, typed field)";
            self.leave_out(reason, event.unread_fields.into());
        }
        let unread = |value: &&(&str, AnnotationValue<'_>)| value.1 == AnnotationValue::Unread;
        let unread = event.annotations.iter().filter(unread).count();
        if unread > 0 {
            self.leave_out(
                "argument that is a message of a type of its own, or longer than 16 MiB",
                unread as u64,
            );
        }
    }

    /// The parts of an event that few events have.
    fn details(&mut self, event: &HostEvent<'_>, what: &HostAction) -> Option<Box<SliceDetails>> {
        let label = match what {
            HostAction::Begin { label, .. } | HostAction::Instant(label) => *label,
            HostAction::End | HostAction::Value(_) => Some(0),
        };
        let mut details = SliceDetails::default();
        let ids = event.submitted().map(EventId).take(MAX_IDS);
        details.submitted.extend(ids);
        let ids = event.waited().map(EventId).take(MAX_IDS);
        details.waited.extend(ids);
        let read = details.submitted.len() + details.waited.len();
        if read >= MAX_IDS {
            let more = event.submitted().count() + event.waited().count() - read;
            self.leave_out(
                "id of work of a call with more than 1,048,576 of them",
                more as u64,
            );
        }
        if event.annotations.is_empty()
            && event.flows.is_empty()
            && label.is_some()
            && details.submitted.is_empty()
            && details.waited.is_empty()
        {
            return None;
        }
        if label.is_none() {
            details.own_label = Some((event.name.text.into(), categories(event).into()));
        }
        details.flows.extend_from_slice(&event.flows);
        let mut left_out = 0;
        for (name, value) in &event.annotations {
            let Some(value) = value.value() else {
                continue;
            };
            let arguments = &mut details.arguments;
            left_out += u64::from(!arguments.push_within(MAX_EVENT_BYTES, name, value));
        }
        if left_out > 0 {
            self.leave_out(TOO_MANY_ARGUMENTS, left_out);
        }
        Some(Box::new(details))
    }

    fn apply(&mut self, moment: HostMoment, known: &Known) -> io::Result<()> {
        let Some(place) = self.lane(moment.track, known)? else {
            self.leave_out("event on one of too many tracks", 1);
            return Ok(());
        };
        let HostMoment { time, details, .. } = moment;
        let lane = &mut self.lanes[place];
        let is_counter = matches!(lane.content, LaneContent::Counter(_));
        match moment.what {
            HostAction::Value(_) if !is_counter => {
                self.leave_out("value on a track that is no counter", 1);
                Ok(())
            }
            HostAction::Value(value) => {
                let value = lane.value(value);
                self.stream.consumer.value(lane.track, time, value)
            }
            _ if is_counter => {
                self.leave_out("slice or instant on the track of a counter", 1);
                Ok(())
            }
            HostAction::Begin {
                label,
                correlation,
                api,
            } => {
                if self.open >= MAX_OPEN {
                    self.leave_out("slice beyond the first 1,048,576 that are open", 1);
                    return Ok(());
                }
                let is_work = details.as_ref().is_some_and(|one| one.activity.is_some());
                let form = if is_work {
                    Form::Work(label)
                } else {
                    self.form(place, (label, correlation, api), details.as_deref())
                };
                let mut correlation = correlation;
                let mut details = details.map(|details| self.own_fields(form, details));
                match (form, &mut details) {
                    (Form::Work(_), Some(details)) => {
                        self.place_activity(moment.track, known, details)?;
                    }
                    (Form::Call(_), Some(details)) => {
                        let own = self.tie_activities(place, time, details)?;
                        correlation = correlation.or(own);
                    }
                    _ => {}
                }
                self.open_slice(place, form, time, correlation, details)
            }
            HostAction::End => self.end_slice(place, time, details),
            HostAction::Instant(label) => {
                let (track, content) = (lane.track, lane.content);
                let parent = lane.innermost();
                self.begun += 1;
                let span = ReplayedSpan {
                    number: 2 * self.begun + 1,
                    parent,
                    form: Form::Instant(label),
                    start: time,
                    end: Some(time),
                    correlation: CorrelationId::NONE,
                    details,
                };
                self.count_lost(&span);
                if let LaneContent::Slices { .. } = content {
                    return self.complete(place, span, None);
                }
                let (consumer, labels) = (&mut *self.stream.consumer, &self.labels);
                pass_on(consumer, labels, (track, content), &span, false)
            }
        }
    }

    /// Whether a slice is a call.
    fn form(
        &mut self,
        place: usize,
        (label, correlation, api): (Option<u32>, Option<u64>, u64),
        details: Option<&SliceDetails>,
    ) -> Form {
        let (own, lane) = (self.is_own(), &self.lanes[place]);
        let LaneContent::Slices { thread: Some(_) } = lane.content else {
            return Form::Slice(label);
        };
        let Some(number) = label else {
            return Form::Slice(label);
        };
        // Calls of gputrail have an id. In other traces, all slices of threads are calls.
        let is_call = if own {
            correlation.is_some() && &*self.labels.get(number).category != IMPOSSIBLE
        } else {
            lane.is_thread
        };
        if !is_call {
            return Form::Slice(label);
        }
        let arguments = details.map(|details| split(&details.arguments).2);
        let function = self.labels.function(number, api, arguments.as_ref());
        function.map_or(Form::Slice(label), Form::Call)
    }

    /// Takes the arguments of a call that are fields of it in the model.
    fn own_fields(&self, form: Form, mut details: Box<SliceDetails>) -> Box<SliceDetails> {
        if let Form::Call(_) = form {
            (details.error, details.external, details.arguments) = split(&details.arguments);
        }
        details
    }

    fn open_slice(
        &mut self,
        place: usize,
        form: Form,
        start: Nanos,
        correlation: Option<u64>,
        details: Option<Box<SliceDetails>>,
    ) -> io::Result<()> {
        self.begun += 1;
        let lane = &mut self.lanes[place];
        let mut span = ReplayedSpan {
            number: 2 * self.begun,
            parent: lane.innermost(),
            form,
            start,
            end: None,
            correlation: CorrelationId(correlation.unwrap_or(0)),
            details,
        };
        if let LaneContent::ThreadRanges | LaneContent::Notes(_) = lane.content {
            let (consumer, labels) = (&mut *self.stream.consumer, &self.labels);
            pass_on(consumer, labels, (lane.track, lane.content), &span, true)?;
            span.details = None;
        }
        let leaves_out = self.detail_bytes + span.bytes() > MAX_DETAIL_BYTES;
        if leaves_out {
            span.details = None;
        }
        self.open += 1;
        self.detail_bytes += span.bytes();
        lane.open.push(span);
        if leaves_out {
            let reason = "arguments, ids, flows, and the name if it is one of too many, of a slice: too many slices are open";
            self.leave_out(reason, 1);
        }
        Ok(())
    }

    fn end_slice(
        &mut self,
        place: usize,
        time: Nanos,
        details: Option<Box<SliceDetails>>,
    ) -> io::Result<()> {
        let lane = &mut self.lanes[place];
        let Some(mut span) = lane.open.pop() else {
            self.leave_out("end of a slice whose begin is not in the trace", 1);
            return Ok(());
        };
        self.open -= 1;
        if let LaneContent::ThreadRanges | LaneContent::Notes(_) = lane.content {
            return end(self.stream.consumer, lane.track, time, details.as_deref());
        }
        self.detail_bytes = self.detail_bytes.saturating_sub(span.bytes());
        if let Form::Work(_) = span.form {
            return self.pass_on_activity(span, Some(time), details.as_deref());
        }
        span.end = Some(time);
        self.complete(place, span, details)
    }

    fn complete(
        &mut self,
        place: usize,
        span: ReplayedSpan,
        end: Option<Box<SliceDetails>>,
    ) -> io::Result<()> {
        let lane = &mut self.lanes[place];
        let (count, bytes) = lane.waiting();
        lane.complete(span, end, (&mut *self.stream.consumer, &self.labels))?;
        let after = lane.waiting();
        self.waiting = (self.waiting + after.0).saturating_sub(count);
        self.waiting_bytes = (self.waiting_bytes + after.1).saturating_sub(bytes);
        if self.waiting >= MAX_OPEN || self.waiting_bytes >= MAX_DETAIL_BYTES {
            (self.waiting, self.waiting_bytes) = (0, 0);
            for lane in &mut self.lanes {
                lane.pass_on_complete(self.stream.consumer, &self.labels)?;
            }
        }
        Ok(())
    }

    /// Counts the lost records that an instant is about.
    fn count_lost(&mut self, span: &ReplayedSpan) {
        let Form::Instant(Some(label)) = span.form else {
            return;
        };
        let label = self.labels.get(label);
        if &*label.category != category::RECORDING || &*label.name != RECORDS_LOST {
            return;
        }
        let details = span.details.as_ref();
        let mut arguments = details
            .into_iter()
            .flat_map(|details| details.arguments.iter());
        let count = arguments.find(|argument| argument.name == "count");
        if let Some(Value::Uint(count)) = count.map(|argument| argument.value) {
            self.lost = self.lost.saturating_add(count);
        }
    }
}

/// All categories of an event, as Perfetto shows them.
fn categories(event: &HostEvent<'_>) -> String {
    let further = event.further_categories.iter().copied();
    let all = std::iter::once(event.category.text).chain(further);
    all.collect::<Vec<_>>().join(",")
}

/// The error, the external id and the further arguments of a call.
fn split(arguments: &StoredArguments) -> (Option<i32>, ExternalId, StoredArguments) {
    let (mut error, mut external) = (None, ExternalId::NONE);
    let mut rest = StoredArguments::default();
    for argument in arguments.iter() {
        match (argument.name, argument.value) {
            ("error", Value::Int(code)) if i32::try_from(code).is_ok() => error = Some(code as i32),
            ("external_id", Value::Uint(id)) if id != 0 => external = ExternalId(id),
            (name, value) => rest.push(name, value),
        }
    }
    (error, external, rest)
}
