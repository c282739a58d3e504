//! Slices and instants on tracks of the host.
//!
//! Each track has a packet sequence of its own: its events need not name the track, and the sequence's clock counts
//! from event to event.

use std::io::{self, Write};

use super::names::{Name, NumberedNames, Sent};
use super::packets::{NEEDS_STATE, PacketWriter, WrittenSequence};
use super::schema::{TracePacketDefaults, TrackEventDefaults, field, track_event};
use super::wire::{Encoder, MessageStart, OpenMessage, ShortFields};
use crate::model::{CounterValue, EventId, FlowPoint, Value};

/// The name of an event.
#[derive(Copy, Clone, Debug)]
pub(super) enum EventLabel<'a> {
    /// An interned name.
    Name(Name),
    /// A text, written in full.
    Text(&'a str),
}

impl EventLabel<'_> {
    fn number(self) -> Option<Name> {
        match self {
            EventLabel::Name(name) => Some(name),
            EventLabel::Text(_) => None,
        }
    }
}

/// A named value of an event.
#[derive(Copy, Clone, Debug)]
pub(super) struct Annotation<'a> {
    /// Its name.
    pub name: EventLabel<'a>,
    /// Its value.
    pub value: Value<'a>,
    /// The name that stands for its value, if that is a text which many events have.
    pub shared: Option<Name>,
}

/// The fields of a slice or an instant.
#[derive(Copy, Clone, Debug)]
pub(super) struct EventFields<'a> {
    /// Its name.
    pub label: EventLabel<'a>,
    /// The category, by which viewers filter.
    pub category: Name,
    /// The correlation id of the call.
    pub correlation: Option<u64>,
    /// Event ids of device work that it submitted.
    pub submitted: &'a [EventId],
    /// Event ids of device work that it waited for.
    pub waited: &'a [EventId],
    /// The API of the call.
    pub api: Option<super::schema::GpuApi>,
    /// Further values.
    pub annotations: &'a [Annotation<'a>],
    /// Its color: viewers choose one for all events that have the same text here.
    pub color: Option<&'a str>,
    /// The flows that pass through it.
    pub flows: &'a [FlowPoint],
}

/// The constant fields at the begin of each call of one function, encoded once.
#[derive(Copy, Clone, Debug)]
pub(super) struct Heading {
    category: Name,
    name: Name,
    /// The fields after the time, up to the correlation id.
    start: MessageStart,
}

impl Heading {
    /// `None` if the fields are too long. They never are, given the maximum number of names.
    pub fn new(category: Name, name: Name) -> Option<Heading> {
        let start = MessageStart::new(|packet| {
            packet.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE);
            let body = packet.open(field::trace_packet::TRACK_EVENT);
            packet.uint(
                field::track_event::TYPE,
                track_event::Type::SliceBegin as u64,
            );
            packet.uint(field::track_event::CATEGORY_IIDS, category.iid());
            packet.uint(field::track_event::NAME_IID, name.iid());
            body
        });
        Some(Heading {
            category,
            name,
            start: start?,
        })
    }

    /// Begins a call after the time of its packet.
    #[inline(always)]
    fn begin(&self, packet: &mut ShortFields<'_>, correlation: u64) -> OpenMessage {
        let body = packet.start(&self.start);
        write_correlation(packet, correlation);
        body
    }
}

/// The fields in which calls of one function differ.
#[derive(Copy, Clone, Debug)]
pub(super) struct LinkedCall<'a> {
    pub correlation: u64,
    /// As in [`EventFields`].
    pub submitted: &'a [EventId],
    pub waited: &'a [EventId],
    /// The API of the call, if the call has links to device work.
    pub api: Option<super::schema::GpuApi>,
}

/// The only piece of work that a call submitted or waited for.
#[derive(Copy, Clone, Debug)]
pub(super) struct WorkLink {
    /// Its event id.
    pub event: EventId,
    /// Whether the call waited for the work; otherwise it submitted it.
    pub waited: bool,
    /// As in [`EventFields`].
    pub api: Option<super::schema::GpuApi>,
}

impl WorkLink {
    /// Writes the same fields as [`write_links`].
    #[inline(always)]
    fn write(&self, packet: &mut ShortFields<'_>) {
        let correlation = packet.open(field::track_event::GPU_CORRELATION);
        if self.waited {
            packet.uint(
                field::gpu_correlation::RENDER_STAGE_WAIT_EVENT_IDS,
                self.event.0,
            )
        } else {
            packet.uint(
                field::gpu_correlation::RENDER_STAGE_SUBMISSION_EVENT_IDS,
                self.event.0,
            )
        }
        packet.close(correlation);
        if let Some(api) = self.api {
            packet.uint(field::track_event::GPU_API, api as u64);
        }
    }
}

/// A complete `TrackEvent` that ends a slice, as a field of its packet.
const SLICE_END: [u8; 4] = [
    (field::trace_packet::TRACK_EVENT << 3 | 2) as u8,
    2,
    (field::track_event::TYPE << 3) as u8,
    track_event::Type::SliceEnd as u8,
];

/// A track and its packet sequence.
#[derive(Debug)]
pub(super) struct EventTrack {
    sequence: WrittenSequence,
    uuid: u64,
    categories: Sent,
    names: Sent,
    annotations: Sent,
    annotation_texts: Sent,
}

impl EventTrack {
    pub fn new(sequence: u32, uuid: u64) -> EventTrack {
        EventTrack {
            sequence: WrittenSequence::new(sequence),
            uuid,
            categories: Sent::default(),
            names: Sent::default(),
            annotations: Sent::default(),
            annotation_texts: Sent::default(),
        }
    }

    pub fn uuid(&self) -> u64 {
        self.uuid
    }

    /// Writes a begin or an instant.
    pub fn event<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        names: &NumberedNames,
        kind: track_event::Type,
        time: u64,
        event: &EventFields<'_>,
    ) -> io::Result<()> {
        self.ready(packets)?;
        let known = self.knows(event);
        let (packet, body) = packets.begin(&mut self.sequence, time, |fields| {
            fields.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE);
            known.then(|| begin(fields, kind, event))
        });
        let encoder = packets.encoder();
        let body = body.unwrap_or_else(|| {
            self.introduce(encoder, names, event);
            encoder.short_fields(|fields| begin(fields, kind, event))
        });
        if let EventLabel::Text(text) = event.label {
            encoder.string(field::track_event::NAME, text);
        }
        for annotation in event.annotations {
            write_annotation(encoder, annotation);
        }
        if let Some(color) = event.color {
            encoder.string(field::track_event::CORRELATION_ID_STR, color);
        }
        write_flows(encoder, event.flows);
        write_links(encoder, event.submitted, event.waited, event.api);
        encoder.close(body);
        packets.end(packet)
    }

    /// Ends the innermost open slice, with further values of the slice.
    pub fn end_with<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        names: &NumberedNames,
        time: u64,
        annotations: &[Annotation<'_>],
        flows: &[FlowPoint],
    ) -> io::Result<()> {
        self.ready(packets)?;
        let (packet, ()) = packets.begin(&mut self.sequence, time, |fields| {
            fields.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE);
        });
        let encoder = packets.encoder();
        let numbered = annotations.iter().filter_map(|one| one.name.number());
        if !numbered.clone().all(|name| self.annotations.has_name(name)) {
            let interned = encoder.open(field::trace_packet::INTERNED_DATA);
            for name in numbered {
                if !self.annotations.has_name(name) {
                    self.annotations.mark_name(name);
                    names.entry(encoder, field::interned_data::DEBUG_ANNOTATION_NAMES, name);
                }
            }
            encoder.close(interned);
        }
        let body = encoder.open(field::trace_packet::TRACK_EVENT);
        encoder.uint(field::track_event::TYPE, track_event::Type::SliceEnd as u64);
        for annotation in annotations {
            write_annotation(encoder, annotation);
        }
        write_flows(encoder, flows);
        encoder.close(body);
        packets.end(packet)
    }

    /// Whether the names of a function have been sent on this sequence.
    #[inline(always)]
    pub fn knows_heading(&self, heading: &Heading) -> bool {
        self.categories.has_name(heading.category)
            && self.names.has_name(heading.name)
            && self.annotations.has_name(Name::CORRELATION)
    }

    /// Writes a complete call without inner calls and with at most one link, of a function whose names have been sent.
    #[inline(always)]
    pub fn call<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        (start, end): (u64, u64),
        heading: &Heading,
        correlation: u64,
        link: Option<WorkLink>,
    ) -> io::Result<()> {
        if packets.nearly_full() {
            return self.call_by_packets(packets, (start, end), heading, correlation, link);
        }
        packets.two_packets(
            &mut self.sequence,
            (start, end),
            #[inline(always)]
            |packet| {
                let body = heading.begin(packet, correlation);
                if let Some(link) = link {
                    link.write(packet);
                }
                packet.close(body);
            },
            #[inline(always)]
            |packet| packet.constant(SLICE_END),
        );
        Ok(())
    }

    #[cold]
    fn call_by_packets<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        (start, end): (u64, u64),
        heading: &Heading,
        correlation: u64,
        link: Option<WorkLink>,
    ) -> io::Result<()> {
        let all = link.as_ref().map(|link| &link.event);
        let all = all.map_or(&[][..], std::slice::from_ref);
        let (submitted, waited) = match link {
            Some(WorkLink { waited: true, .. }) => (&[][..], all),
            _ => (all, &[][..]),
        };
        let call = LinkedCall {
            correlation,
            submitted,
            waited,
            api: link.and_then(|link| link.api),
        };
        self.begin_call(packets, start, heading, &call)?;
        self.end(packets, end)
    }

    /// Begins a call without annotations, of a function whose names have been sent.
    pub fn begin_call<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        time: u64,
        heading: &Heading,
        call: &LinkedCall<'_>,
    ) -> io::Result<()> {
        let (packet, body) = packets.begin(&mut self.sequence, time, |packet| {
            heading.begin(packet, call.correlation)
        });
        let encoder = packets.encoder();
        write_links(encoder, call.submitted, call.waited, call.api);
        encoder.close(body);
        packets.end(packet)
    }

    /// Ends the innermost open slice.
    #[inline(always)]
    pub fn end<W: Write>(&mut self, packets: &mut PacketWriter<W>, time: u64) -> io::Result<()> {
        self.ready(packets)?;
        packets.short_packet(
            &mut self.sequence,
            time,
            #[inline(always)]
            |packet| packet.constant(SLICE_END),
        )
    }

    /// Writes the value that a counter has from `time` on.
    pub fn value<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        time: u64,
        value: CounterValue,
    ) -> io::Result<()> {
        self.ready(packets)?;
        let (packet, ()) = packets.begin(&mut self.sequence, time, |_| ());
        let encoder = packets.encoder();
        let body = encoder.open(field::trace_packet::TRACK_EVENT);
        encoder.uint(field::track_event::TYPE, track_event::Type::Counter as u64);
        match value {
            CounterValue::Int(value) => encoder.int(field::track_event::COUNTER_VALUE, value),
            CounterValue::Double(value) => {
                encoder.double(field::track_event::DOUBLE_COUNTER_VALUE, value)
            }
        }
        encoder.close(body);
        packets.end(packet)
    }

    #[inline]
    fn ready<W: Write>(&mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        if self.sequence.is_cleared() {
            self.restart(packets)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn restart<W: Write>(&mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let defaults = TracePacketDefaults {
            track_event_defaults: Some(TrackEventDefaults {
                track_uuid: Some(self.uuid),
            }),
            ..TracePacketDefaults::default()
        };
        self.sequence.restart(packets, defaults)
    }

    /// Whether all names of the event have been sent on this sequence.
    #[inline]
    fn knows(&self, event: &EventFields<'_>) -> bool {
        self.categories.has_name(event.category)
            && match event.label {
                EventLabel::Name(name) => self.names.has_name(name),
                EventLabel::Text(_) => true,
            }
            && (event.correlation.is_none() || self.annotations.has_name(Name::CORRELATION))
            && event.annotations.iter().all(|annotation| {
                let name = annotation.name.number();
                name.is_none_or(|name| self.annotations.has_name(name))
                    && annotation
                        .shared
                        .is_none_or(|text| self.annotation_texts.has_name(text))
            })
    }

    #[cold]
    fn introduce(&mut self, packet: &mut Encoder, names: &NumberedNames, event: &EventFields<'_>) {
        let interned = packet.open(field::trace_packet::INTERNED_DATA);
        let mut send = |sent: &mut Sent, table, name| {
            if !sent.has_name(name) {
                sent.mark_name(name);
                names.entry(packet, table, name);
            }
        };
        send(
            &mut self.categories,
            field::interned_data::EVENT_CATEGORIES,
            event.category,
        );
        if let EventLabel::Name(name) = event.label {
            send(&mut self.names, field::interned_data::EVENT_NAMES, name);
        }
        let correlation = event.correlation.map(|_| Name::CORRELATION);
        let annotations = event.annotations.iter();
        let annotations = annotations.filter_map(|annotation| annotation.name.number());
        for name in correlation.into_iter().chain(annotations) {
            send(
                &mut self.annotations,
                field::interned_data::DEBUG_ANNOTATION_NAMES,
                name,
            );
        }
        for text in event.annotations.iter().filter_map(|one| one.shared) {
            send(
                &mut self.annotation_texts,
                field::interned_data::DEBUG_ANNOTATION_STRING_VALUES,
                text,
            );
        }
        packet.close(interned);
    }
}

/// Begins an event with its numeric fields; the name is one of them if it has a number.
#[inline(always)]
fn begin(
    fields: &mut ShortFields<'_>,
    kind: track_event::Type,
    event: &EventFields<'_>,
) -> OpenMessage {
    let body = fields.open(field::trace_packet::TRACK_EVENT);
    fields.uint(field::track_event::TYPE, kind as u64);
    fields.uint(field::track_event::CATEGORY_IIDS, event.category.iid());
    if let EventLabel::Name(name) = event.label {
        fields.uint(field::track_event::NAME_IID, name.iid());
    }
    if let Some(correlation) = event.correlation {
        write_correlation(fields, correlation);
    }
    body
}

/// Writes the annotation with the correlation id.
#[inline(always)]
fn write_correlation(fields: &mut ShortFields<'_>, correlation: u64) {
    let annotation = fields.open(field::track_event::DEBUG_ANNOTATIONS);
    fields.uint(field::debug_annotation::NAME_IID, Name::CORRELATION.iid());
    fields.uint(field::debug_annotation::UINT_VALUE, correlation);
    fields.close(annotation);
}

/// Writes the fields that link an event to device work.
fn write_links(
    packet: &mut Encoder,
    submitted: &[EventId],
    waited: &[EventId],
    api: Option<super::schema::GpuApi>,
) {
    if !(submitted.is_empty() && waited.is_empty()) {
        let correlation = packet.open(field::track_event::GPU_CORRELATION);
        for id in submitted {
            packet.uint(
                field::gpu_correlation::RENDER_STAGE_SUBMISSION_EVENT_IDS,
                id.0,
            );
        }
        for id in waited {
            packet.uint(field::gpu_correlation::RENDER_STAGE_WAIT_EVENT_IDS, id.0);
        }
        packet.close(correlation);
    }
    if let Some(api) = api {
        packet.uint(field::track_event::GPU_API, api as u64);
    }
}

/// The flows that pass through an event.
fn write_flows(packet: &mut Encoder, flows: &[FlowPoint]) {
    for FlowPoint { flow, last } in flows {
        let field = if *last {
            field::track_event::TERMINATING_FLOW_IDS
        } else {
            field::track_event::FLOW_IDS
        };
        packet.fixed64(field, flow.0);
    }
}

fn write_annotation(packet: &mut Encoder, annotation: &Annotation<'_>) {
    let message = packet.open(field::track_event::DEBUG_ANNOTATIONS);
    match annotation.name {
        EventLabel::Name(name) => packet.uint(field::debug_annotation::NAME_IID, name.iid()),
        EventLabel::Text(name) => packet.string(field::debug_annotation::NAME, name),
    }
    if let Some(text) = annotation.shared {
        packet.uint(field::debug_annotation::STRING_VALUE_IID, text.iid());
        packet.close(message);
        return;
    }
    match annotation.value {
        Value::Bool(value) => packet.bool(field::debug_annotation::BOOL_VALUE, value),
        Value::Uint(value) => packet.uint(field::debug_annotation::UINT_VALUE, value),
        Value::Int(value) => packet.int(field::debug_annotation::INT_VALUE, value),
        Value::Double(value) => packet.double(field::debug_annotation::DOUBLE_VALUE, value),
        Value::Text(value) => packet.string(field::debug_annotation::STRING_VALUE, value),
        Value::Pointer(value) => packet.uint(field::debug_annotation::POINTER_VALUE, value),
        Value::Json(value) => packet.string(field::debug_annotation::LEGACY_JSON_VALUE, value),
    }
    packet.close(message);
}

#[cfg(test)]
mod tests {
    use super::super::names::NumberedNames;
    use super::super::schema::GpuApi;
    use super::*;

    /// Writes many more calls than fit into the buffer, with `write`.
    fn many(
        write: impl Fn(
            &mut EventTrack,
            &mut PacketWriter<&mut Vec<u8>>,
            (u64, u64),
            &Heading,
            u64,
            Option<WorkLink>,
        ),
    ) -> Vec<u8> {
        let mut names = NumberedNames::default();
        let mut name = |text| names.intern(text).unwrap();
        let heading = Heading::new(name("opencl"), name("clFinish")).unwrap();
        let mut bytes = Vec::new();
        let (mut packets, mut track) = (PacketWriter::new(&mut bytes), EventTrack::new(2, 3));
        track.end(&mut packets, 10).unwrap();
        for number in 0..20_000 {
            let link = WorkLink {
                event: EventId(number << 30),
                waited: number % 2 == 0,
                api: (number % 5 == 0).then_some(GpuApi::OpenCl),
            };
            let link = (number % 3 > 0).then_some(link);
            // Some begin before the latest has ended.
            let times = (number * 1_000, number * 1_000 + 1_400);
            write(&mut track, &mut packets, times, &heading, number, link);
        }
        packets.flush().unwrap();
        bytes
    }

    #[test]
    fn a_call_in_one_piece_is_the_one_written_in_two() {
        let whole = many(|track, packets, times, heading, correlation, link| {
            track
                .call(packets, times, heading, correlation, link)
                .unwrap();
        });
        let pieces = many(|track, packets, times, heading, correlation, link| {
            let written = track.call_by_packets(packets, times, heading, correlation, link);
            written.unwrap();
        });
        assert!(whole == pieces && whole.len() > 1 << 19);
    }
}
