//! Reading of Perfetto traces, by gputrail or any other program, packet by packet.
//!
//! [`read`] reads a trace once, in memory that depends on the number of names, tracks and sequences, and calls a
//! [`Visitor`] with its contents: all references are resolved and all times are in CLOCK_BOOTTIME. Any bytes are
//! accepted: those that cannot be read become a [`Finding`] with the packet's position, and the rest is read.
//!
//! Traces that were put one behind the other (`cat`) are read as one: their sequences and ids are kept apart.
//!
//! [`check`] looks for defects, [`info`] lists the contents, and [`TraceReplay`] produces the [model](crate::model)
//! of the recording, as if the trace had just been made.

mod annotations;
mod check;
mod fields;
mod findings;
mod host_event;
mod id_set;
mod info;
mod packets;
mod parts;
mod replay;
mod resolving;
mod samples;
mod sequences;
mod texts;
mod tracks;
mod window;
mod work_event;

use std::io::Read;

pub use annotations::AnnotationValue;
pub use check::check;
pub(super) use check::rare;
pub(super) use fields::number_of;
pub use fields::{FieldValue, MessageField, MessageFields};
pub use findings::{Finding, Findings, PacketPosition};
pub use host_event::{EventKind, HostEvent};
pub use info::{ClockInfo, ProcessInfo, TraceContents, TraceDevice, info};
pub use replay::{CountedParts, Replayed, TraceReplay};
pub use resolving::NumberedText;
pub use texts::{TextId, Texts};
pub use tracks::{CounterProperties, Known, Track, TrackId, TrackOf, Tracks};
pub use work_event::WorkEvent;

use super::schema::field;
use super::schema::trace_packet::SequenceFlags;
use crate::model::StackFrame;
use fields::key;
use gputrail_record::Nanos;
use packets::PacketReader;
use parts::TraceParts;
use resolving::Resolving;
use sequences::Sequences;

/// Whether a field of a packet accompanies its data rather than being the data.
fn accompanies(number: u32) -> bool {
    matches!(
        number,
        field::trace_packet::INTERNED_DATA | field::trace_packet::TRACE_PACKET_DEFAULTS
    )
}

const CLEARED: u64 = SequenceFlags::SeqIncrementalStateCleared as u64;
const NEEDS_STATE: u64 = SequenceFlags::SeqNeedsIncrementalState as u64;

/// A packet and the kind of its data.
#[derive(Copy, Clone, Debug, Default)]
pub struct Packet<'a> {
    /// Its position.
    pub position: PacketPosition,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its sequence; 0 if it has none.
    pub sequence: u32,
    /// Its time in BOOTTIME ns, if it has one that can be converted.
    pub time: Option<Nanos>,
    /// The field number of its data, and that message; 0 if it has no data.
    pub data: (u32, &'a [u8]),
    /// Whether it says that packets of its sequence before it were dropped.
    pub dropped: bool,
    /// Whether it says that it is the first of its sequence.
    pub first: bool,
    /// The machine that it comes from; 0 is the machine on which the trace was written.
    pub machine: u32,
}

/// Receives the contents of a trace.
pub trait Visitor {
    /// A packet of any kind. If it is an event or work, the specific method is called afterwards.
    fn packet(&mut self, packet: &Packet<'_>, known: &Known, findings: &mut Findings) {
        let _ = (packet, known, findings);
    }

    /// An event of the host.
    fn host(&mut self, position: PacketPosition, event: &HostEvent<'_>, findings: &mut Findings) {
        let _ = (position, event, findings);
    }

    /// Work of a device.
    fn work(&mut self, position: PacketPosition, event: &WorkEvent<'_>, findings: &mut Findings) {
        let _ = (position, event, findings);
    }

    /// Samples with stacks. `frames` returns the frames of the callstack with a number, outermost first.
    fn stacks(&mut self, packet: &Packet<'_>, frames: &mut dyn FnMut(u64) -> Vec<StackFrame>) {
        let _ = (packet, frames);
    }
}

/// The outcome of reading a trace.
#[derive(Debug, Default)]
pub struct ReadOutcome {
    /// Its defects.
    pub findings: Findings,
    /// Number of bytes read; after decompression, if the trace is gzipped as a whole.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u64,
    /// Number of packet sequences.
    pub sequences: u64,
    /// Whether it is gzipped as a whole.
    pub gzipped: bool,
    /// Number of compressed groups of packets.
    pub groups: u64,
    /// Its names and tracks.
    pub known: Known,
    /// What [`check`] could not check, and why.
    pub unchecked: Vec<String>,
}

/// The input of a trace. A trait object, so that the readers of traces are compiled once, with the library.
pub(in crate::perfetto) type TraceInput<'a> = Box<dyn Read + 'a>;

/// The packets of a trace as bytes.
pub(super) fn packets_of<R: Read>(source: R) -> PacketReader<R> {
    PacketReader::new(source)
}

/// Reads a trace to its end.
pub fn read<R: Read>(source: R, visitor: &mut impl Visitor) -> ReadOutcome {
    let mut packets = PacketReader::new(source);
    let mut findings = Findings::default();
    let mut reading = ReadState::default();
    let mut count = 0;
    while let Some(packet) = packets.next(&mut findings) {
        count += 1;
        reading.packet(packet.position, packet.bytes, visitor, &mut findings);
    }
    if count == 0 {
        let bytes = packets.position();
        findings.add(PacketPosition::default(), || match bytes {
            0 => "the trace is empty".into(),
            _ => format!("no packet in {bytes} bytes: this is not a Perfetto trace"),
        });
    }
    ReadOutcome {
        findings,
        bytes: packets.position(),
        packets: count,
        sequences: reading.sequences.len() as u64,
        gzipped: packets.gzipped(),
        groups: packets.groups(),
        known: reading.known,
        unchecked: Vec::new(),
    }
}

#[derive(Debug, Default)]
struct ReadState {
    parts: TraceParts,
    sequences: Sequences,
    known: Known,
}

/// The fields of a packet that are read.
#[derive(Default)]
struct PacketHead<'a> {
    packet: Packet<'a>,
    flags: u64,
    time: Option<u64>,
    clock: Option<u32>,
    interned: Option<&'a [u8]>,
    defaults: Option<&'a [u8]>,
}

impl<'a> PacketHead<'a> {
    // Inlined, since the result is large.
    #[inline(always)]
    fn read(position: PacketPosition, bytes: &'a [u8], findings: &mut Findings) -> PacketHead<'a> {
        const TIMESTAMP: u8 = key::number(field::trace_packet::TIMESTAMP);
        const SEQUENCE: u8 = key::number(field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID);
        const FLAGS: u8 = key::number(field::trace_packet::SEQUENCE_FLAGS);
        const TRACK_EVENT: u8 = key::bytes(field::trace_packet::TRACK_EVENT);
        let mut head = PacketHead::default();
        let mut left = bytes;
        while let Some(key) = left.first() {
            let behind = match *key {
                TIMESTAMP => key::split_number(left).map(|(time, rest)| {
                    head.time = Some(time);
                    rest
                }),
                SEQUENCE => key::split_number(left).map(|(id, rest)| {
                    head.packet.sequence = id as u32;
                    rest
                }),
                FLAGS => key::split_number(left).map(|(flags, rest)| {
                    head.flags = flags;
                    rest
                }),
                TRACK_EVENT => key::split_bytes(left).map(|(data, rest)| {
                    head.packet.data = (field::trace_packet::TRACK_EVENT, data);
                    rest
                }),
                _ => None,
            };
            if let Some(rest) = behind {
                left = rest;
                continue;
            }
            let mut fields = MessageFields::new(left);
            let Some(field) = fields.next() else {
                let offset = bytes.len() - left.len();
                let what = fields.malformed().unwrap_or_default();
                findings.add(position, || format!("packet, at its byte {offset}: {what}"));
                break;
            };
            left = fields.rest();
            match (field.number, field.value) {
                (field::trace_packet::TIMESTAMP, FieldValue::Number(time)) => {
                    head.time = Some(time)
                }
                (field::trace_packet::TIMESTAMP_CLOCK_ID, FieldValue::Number(clock)) => {
                    head.clock = Some(clock as u32)
                }
                (field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID, FieldValue::Number(id)) => {
                    head.packet.sequence = id as u32
                }
                (field::trace_packet::SEQUENCE_FLAGS, FieldValue::Number(flags)) => {
                    head.flags = flags
                }
                (field::trace_packet::PREVIOUS_PACKET_DROPPED, FieldValue::Number(yes)) => {
                    head.packet.dropped = yes != 0;
                }
                (field::trace_packet::FIRST_PACKET_ON_SEQUENCE, FieldValue::Number(yes)) => {
                    head.packet.first = yes != 0
                }
                (field::trace_packet::MACHINE_ID, FieldValue::Number(id)) => {
                    head.packet.machine = id as u32
                }
                (field::trace_packet::INTERNED_DATA, FieldValue::Bytes(data)) => {
                    head.interned = Some(data)
                }
                (field::trace_packet::TRACE_PACKET_DEFAULTS, FieldValue::Bytes(data)) => {
                    head.defaults = Some(data)
                }
                (number, FieldValue::Bytes(data)) if !accompanies(number) => {
                    head.packet.data = (number, data);
                }
                _ => {}
            }
        }
        head.packet.position = position;
        head.packet.bytes = bytes.len();
        head
    }
}

impl ReadState {
    #[inline]
    fn packet(
        &mut self,
        position: PacketPosition,
        bytes: &[u8],
        visitor: &mut impl Visitor,
        findings: &mut Findings,
    ) {
        let mut head = PacketHead::read(position, bytes, findings);
        self.parts.packet(&mut head.packet);
        let sequence = match head.packet.sequence {
            0 => None,
            number => {
                let sequence = self.sequences.index_of(number);
                if sequence.is_none() {
                    findings.add(position, || {
                        "too many sequences: the packet is skipped".into()
                    });
                    return;
                }
                sequence
            }
        };
        let readable = sequence.is_none_or(|sequence| self.state(sequence, &head, findings));
        let (kind, data) = head.packet.data;
        if kind == field::trace_packet::CLOCK_SNAPSHOT {
            self.sequences.snapshot(sequence, data);
        }
        if let Some(time) = head.time
            && readable
        {
            head.packet.time = self.sequences.time(sequence, head.clock, time).map(Nanos);
            if head.packet.time.is_none() {
                findings.add(position, || {
                    let clock = head
                        .clock
                        .map_or("of its sequence".into(), |clock| clock.to_string());
                    format!("a time in clock {clock}, which no snapshot tells")
                });
            }
        }
        if kind == field::trace_packet::TRACK_DESCRIPTOR {
            let Known { texts, tracks } = &mut self.known;
            tracks.add(data, texts, position, findings);
        }
        visitor.packet(&head.packet, &self.known, findings);
        if readable {
            self.events(&head.packet, sequence, visitor, findings);
        }
    }

    /// Applies the changes that a packet makes to its sequence. Returns whether references to the state can be
    /// resolved.
    #[inline]
    fn state(&mut self, index: usize, head: &PacketHead<'_>, findings: &mut Findings) -> bool {
        let sequence = self.sequences.at_mut(index);
        if head.packet.dropped && sequence.begun {
            sequence.sound = false;
        }
        sequence.begun = true;
        if head.flags & CLEARED != 0 {
            self.sequences.clear(index);
        }
        if let Some(defaults) = head.defaults {
            let sequence = self.sequences.at_mut(index);
            sequence.default_clock = None;
            sequence.default_track = 0;
            for field in MessageFields::new(defaults) {
                match (field.number, field.value) {
                    (field::trace_packet::TIMESTAMP_CLOCK_ID, FieldValue::Number(clock)) => {
                        sequence.default_clock = Some(clock as u32);
                    }
                    (field::trace_packet::TRACK_EVENT, FieldValue::Bytes(event)) => {
                        sequence.default_track = number_of(event, 11).unwrap_or(0);
                    }
                    _ => {}
                }
            }
        }
        if let Some(data) = head.interned {
            let texts = &mut self.known.texts;
            self.sequences
                .intern(index, texts, data, head.packet.position, findings);
        }
        let sequence = self.sequences.at_mut(index);
        let readable = sequence.sound || head.flags & NEEDS_STATE == 0;
        if !readable && !sequence.reported {
            sequence.reported = true;
            let number = head.packet.sequence;
            findings.add(head.packet.position, || {
                format!("sequence {number} needs state that it has lost or never had: packets like this one are skipped")
            });
        }
        readable
    }

    #[inline]
    fn events(
        &mut self,
        packet: &Packet<'_>,
        sequence: Option<usize>,
        visitor: &mut impl Visitor,
        findings: &mut Findings,
    ) {
        let (kind, data) = packet.data;
        let sequence = sequence.map(|index| self.sequences.at(index));
        let default_track = sequence.map_or(0, |sequence| sequence.default_track);
        let mut resolving = Resolving {
            sequence,
            texts: &self.known.texts,
            position: packet.position,
            findings,
            incomplete: self.sequences.full,
            json_bytes: 0,
            part: self.parts.ids(),
        };
        match (kind, packet.time) {
            (field::trace_packet::TRACK_EVENT, Some(time)) => {
                let mut event = HostEvent::at(time, TrackId(default_track), &self.known);
                event.part = resolving.part;
                resolving.host(data, &mut event);
                if !event.further_values.is_empty() {
                    host_event::read_further_values(data, &mut event);
                }
                event.described = self.known.tracks.get(event.track);
                visitor.host(packet.position, &event, findings);
            }
            (field::trace_packet::GPU_RENDER_STAGE_EVENT, Some(time)) => {
                let event = resolving.work(data, time);
                visitor.work(packet.position, &event, findings);
            }
            (field::trace_packet::STREAMING_PROFILE_PACKET, _) => {
                resolving.callstacks(data, field::streaming_profile_packet::CALLSTACK_IID);
                visitor.stacks(packet, &mut |stack| resolving.frames(stack));
            }
            (field::trace_packet::PERF_SAMPLE, _) => {
                resolving.callstacks(data, field::perf_sample::CALLSTACK_IID)
            }
            (
                field::trace_packet::TRACK_EVENT | field::trace_packet::GPU_RENDER_STAGE_EVENT,
                None,
            ) => {
                findings.add(packet.position, || "an event without a time".into());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
