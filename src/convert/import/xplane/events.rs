//! Events: work of devices, calls, slices and instants.

use std::io;

use super::messages::{Span, SpanFields, SpanValue};
use super::planes::{Destination, Line, PlaneDetails};
use super::{Details, EARLIEST_DATE, Space, field};
use crate::import::tables::{
    ArgumentValue, HostKind, HostLane, HostRow, QueueHandle, TextHandle, WorkRow, api_of_function,
};
use gputrail_trace::capture::short_name;
use gputrail_trace::model::WorkKind;
use gputrail_trace::perfetto::reader::{FieldValue, MessageFields};

/// Picoseconds of a nanosecond.
const PICOS: i128 = 1000;

/// An event.
struct Event {
    /// The full name, and the one to be shown.
    name: TextHandle,
    display: TextHandle,
    /// Start and end, ps.
    picos: (i128, i128),
    /// Start and end, ns.
    start: u64,
    end: u64,
    /// Whether it has no duration.
    is_instant: bool,
    correlation: u64,
    program: Option<u64>,
    operation: TextHandle,
    kernel: TextHandle,
    copy: TextHandle,
    set: TextHandle,
    arguments: Vec<(TextHandle, ArgumentValue)>,
}

impl Event {
    /// Whether `other`, which comes next on the line, is inside.
    fn contains(&self, other: &Event) -> bool {
        other.picos.0 < self.picos.1 && other.picos.1 <= self.picos.1
    }
}

/// A number of a statistic.
fn number(value: ArgumentValue) -> Option<u64> {
    match value {
        ArgumentValue::Uint(value) => Some(value),
        ArgumentValue::Int(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

impl Space<'_> {
    /// Passes on the events of a line.
    pub(super) fn events(
        &mut self,
        span: Span,
        line: Line,
        details: &PlaneDetails,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        // An operation, until the next event tells whether it contains others.
        let mut last: Option<Event> = None;
        let mut fields = SpanFields::new(span);
        while let Some(one) = self.next_again(&mut fields)? {
            let (field::line::EVENTS, SpanValue::Bytes(event)) = (one.number, one.value) else {
                continue;
            };
            if !self.message(event, &mut buffer)? {
                continue;
            }
            let Some(event) = self.event(event.from, &buffer, line.start, details) else {
                continue;
            };
            match line.destination {
                Destination::Track(lane, category) => self.slice(lane, category, event),
                Destination::Queue(queue) => self.work(queue, event),
                Destination::Operations(queue, lane, category) => {
                    if let Some(last) = last.take() {
                        if last.contains(&event) {
                            self.slice(lane, category, last);
                        } else {
                            self.work(queue, last);
                        }
                    }
                    last = Some(event);
                }
            }
        }
        if let (Some(last), Destination::Operations(queue, ..)) = (last, line.destination) {
            self.work(queue, last);
        }
        Ok(())
    }

    /// Reads an event; none if it is damaged, which is reported, or has no time, which is counted.
    fn event(
        &mut self,
        at: u64,
        bytes: &[u8],
        line_start: i64,
        details: &PlaneDetails,
    ) -> Option<Event> {
        let (mut description, mut offset, mut duration) = (0, None, 0);
        let mut occurrences = None;
        let mut statistics = Vec::new();
        let mut fields = MessageFields::new(bytes);
        for own in fields.by_ref() {
            match (own.number, own.value) {
                (field::event::DESCRIPTION, FieldValue::Number(id)) => description = id as i64,
                (field::event::OFFSET, FieldValue::Number(picos)) => offset = Some(picos as i64),
                (field::event::DURATION, FieldValue::Number(picos)) => duration = picos,
                (field::event::OCCURRENCES, FieldValue::Number(count)) => occurrences = Some(count),
                (field::event::STATISTICS, FieldValue::Bytes(bytes)) => {
                    statistics.extend(self.statistic(bytes, &details.statistics));
                }
                _ => {}
            }
        }
        if self.malformed(at, &fields) {
            return None;
        }
        if offset.is_none() && occurrences.is_some() {
            let reason = "events that stand for several occurrences, whose times are not told";
            self.report.unrepresented(self.name, reason, Some(at));
            return None;
        }
        let start = self.nanos(line_start) * PICOS + i128::from(offset.unwrap_or(0));
        let picos = (start, start + i128::from(duration));
        let nanos = |picos: i128| u64::try_from(picos.div_euclid(PICOS)).ok();
        let (Some(start), Some(end)) = (nanos(picos.0), nanos(picos.1)) else {
            let reason = "events before 1970";
            self.report.unrepresented(self.name, reason, Some(at));
            return None;
        };
        let is_exact = picos.0 % PICOS == 0 && picos.1 % PICOS == 0;
        self.rounded += u64::from(!is_exact);
        let described = details.events.get(&description);
        let (name, display) = described.map_or_else(
            || {
                let name = self.tables.text(&format!("event {description}"));
                (name, TextHandle::default())
            },
            |one| (one.name, one.display),
        );
        let mut event = Event {
            name,
            display: if display == TextHandle::default() {
                name
            } else {
                display
            },
            picos,
            start,
            end,
            is_instant: duration == 0,
            correlation: 0,
            program: None,
            operation: TextHandle::default(),
            kernel: TextHandle::default(),
            copy: TextHandle::default(),
            set: TextHandle::default(),
            arguments: Vec::new(),
        };
        let of_description = described.map_or(&[][..], |one| &one.statistics);
        for (name, value) in of_description.iter().copied() {
            if self.may_repeat(value) {
                self.take(&mut event, name, value);
            }
        }
        for (name, value) in statistics {
            // Numbers stand in the event; texts may stand elsewhere.
            if !matches!(value, ArgumentValue::Text(_)) || self.may_repeat(value) {
                self.take(&mut event, name, value);
            }
        }
        Some(event)
    }

    /// The time of the start of a line, ns.
    fn nanos(&mut self, line_start: i64) -> i128 {
        if line_start < EARLIEST_DATE {
            return i128::from(self.start) + i128::from(line_start);
        }
        let first = self
            .first_date
            .map_or(line_start, |first| first.min(line_start));
        self.first_date = Some(first);
        i128::from(line_start)
    }

    /// Whether an event may repeat a statistic that stands elsewhere. If not, it is counted.
    fn may_repeat(&mut self, value: ArgumentValue) -> bool {
        let text = match value {
            ArgumentValue::Text(text) => self.tables.texts.get(text).len(),
            _ => 0,
        };
        let size = (size_of::<ArgumentValue>() + text) as u64;
        let left = self.repeatable.checked_sub(size);
        self.repeatable = left.unwrap_or(self.repeatable);
        self.not_repeated += u64::from(left.is_none());
        left.is_some()
    }

    /// Takes a statistic of an event.
    fn take(&self, event: &mut Event, name: TextHandle, value: ArgumentValue) {
        let known = &self.known;
        match value {
            ArgumentValue::Text(text) if name == known.kernel => event.kernel = text,
            ArgumentValue::Text(text) if name == known.copy => event.copy = text,
            ArgumentValue::Text(text) if name == known.set => event.set = text,
            _ if name == known.correlation && number(value).is_some() => {
                event.correlation = number(value).unwrap_or(0);
            }
            _ => {
                if name == known.program {
                    event.program = number(value);
                }
                if let ArgumentValue::Text(text) = value
                    && name == known.operation
                {
                    event.operation = text;
                }
                event.arguments.push((name, value));
            }
        }
    }

    /// Passes on an event of a track.
    fn slice(&mut self, lane: HostLane, category: TextHandle, mut event: Event) {
        let known = &self.known;
        for (name, text) in [
            (known.kernel, event.kernel),
            (known.copy, event.copy),
            (known.set, event.set),
        ] {
            if text != TextHandle::default() {
                event.arguments.push((name, ArgumentValue::Text(text)));
            }
        }
        let api = api_of_function(self.tables.texts.get(event.name));
        let api = api.filter(|_| event.correlation != 0 && matches!(lane, HostLane::Thread(..)));
        if api.is_none() && event.correlation != 0 {
            let correlation = ArgumentValue::Uint(event.correlation);
            event.arguments.push((known.correlation, correlation));
            event.correlation = 0;
        }
        let full = ArgumentValue::Text(event.name);
        if event.display != event.name && self.may_repeat(full) {
            let long = self.tables.text("long_name");
            event.arguments.push((long, full));
        }
        self.origin_of(&mut event);
        let arguments = self.tables.arguments(event.arguments);
        let kind = match api {
            Some(api) => {
                let parameters = self.tables.names_of(arguments);
                HostKind::Call(self.tables.function_with(event.name, api, parameters), None)
            }
            None if event.is_instant => HostKind::Instant(event.display, category),
            None => HostKind::Slice(event.display, category),
        };
        self.tables.add_host_in(
            lane,
            HostRow {
                kind,
                start: event.start,
                end: event.end,
                correlation: event.correlation,
                arguments,
                ..HostRow::default()
            },
        );
    }

    /// Passes on work.
    fn work(&mut self, queue: QueueHandle, mut event: Event) {
        let none = TextHandle::default();
        let name = self.tables.texts.get(event.name).to_owned();
        let lower = name.to_ascii_lowercase();
        let kind = match (event.kernel != none, event.copy != none, event.set != none) {
            (true, ..) => WorkKind::Kernel,
            (_, true, _) => WorkKind::Copy,
            (.., true) => WorkKind::Set,
            _ if lower.starts_with("memcpy") => WorkKind::Copy,
            _ if lower.starts_with("memset") => WorkKind::Set,
            _ => WorkKind::Kernel,
        };
        let text = [event.kernel, event.copy, event.set]
            .map(|text| self.tables.texts.get(text))
            .join(" ");
        let details = Details::read(&text);
        for (name, value) in &details.rest {
            let value = match value.parse() {
                Ok(number) => ArgumentValue::Int(number),
                Err(_) => ArgumentValue::Text(self.tables.text(value)),
            };
            event.arguments.push((self.tables.text(name), value));
        }
        self.origin_of(&mut event);
        let stage = match kind {
            WorkKind::Kernel => {
                let full = name.strip_suffix(".kd").unwrap_or(&name);
                let short = if event.display == event.name {
                    short_name(full).to_owned()
                } else {
                    self.tables.texts.get(event.display).to_owned()
                };
                self.tables.kernel(&short, full)
            }
            WorkKind::Copy => {
                let direction = details.direction(&name).name();
                self.tables.stage(kind, direction.unwrap_or("copy"), "")
            }
            _ => self.tables.stage(kind, &name, ""),
        };
        let arguments = self.tables.arguments(event.arguments);
        self.tables.add_work(WorkRow {
            process: self.process,
            queue,
            stage,
            correlation: event.correlation,
            start: event.start,
            end: event.end,
            bytes: details.bytes,
            launch: details.launch,
            resources: details.resources,
            arguments,
            ..WorkRow::default()
        });
    }

    /// Adds what the program in HLO says about an event's operation.
    fn origin_of(&mut self, event: &mut Event) {
        let Some(program) = event.program else {
            return;
        };
        let operation = if event.operation == TextHandle::default() {
            event.display
        } else {
            event.operation
        };
        let Some(known) = self.operations.get(&(program, operation)).copied() else {
            return;
        };
        for (name, text) in [
            ("hlo_opcode", known.opcode),
            ("hlo_scope", known.scope),
            ("source", known.source),
        ] {
            let name = self.tables.text(name);
            let is_there = event.arguments.iter().any(|(own, _)| *own == name);
            let text = (text != TextHandle::default()).then_some(ArgumentValue::Text(text));
            let text = text.filter(|text| !is_there && self.may_repeat(*text));
            event.arguments.extend(text.map(|text| (name, text)));
        }
    }
}
