//! Tests of captures and of the exporter: traces are written, and read back with the schema's messages.

mod asked;
mod calls;
mod counters;
mod exporter;
mod foreign;
mod losses;
mod making;
mod round_trip;
mod sampling;
mod work;

use std::collections::HashMap;

use prost::Message;

use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{
    GpuRenderStageEvent, InternedData, Trace, TracePacket, TrackEvent,
};

/// Decodes a trace and resolves times and names, as readers of the format do.
struct Reader {
    packets: Vec<TracePacket>,
}

/// The state that a reader keeps of a sequence.
#[derive(Default)]
struct ReadState {
    clock: u64,
    track: u64,
    interned: InternedData,
}

/// A host event with resolved names and absolute times.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    track: u64,
    time: u64,
    kind: i32,
    name: String,
}

impl Reader {
    fn new(bytes: &[u8]) -> Reader {
        let trace = Trace::decode(bytes).expect("a whole trace");
        // The schema knows all fields, and none takes more bytes than with prost.
        assert_eq!(trace.encoded_len(), bytes.len());
        Reader {
            packets: trace.packet,
        }
    }

    /// Calls `visit` for each packet that has a body, with its time and the state of its sequence.
    fn walk(&self, mut visit: impl FnMut(&TracePacket, u64, &ReadState)) {
        let mut states: HashMap<u32, ReadState> = HashMap::new();
        for packet in &self.packets {
            let sequence = packet.trusted_packet_sequence_id.expect("a sequence id");
            let flags = packet.sequence_flags.unwrap_or(0);
            if flags & 1 != 0 {
                states.remove(&sequence);
            }
            assert!(
                flags & 2 == 0 || states.contains_key(&sequence),
                "a packet that needs state has none"
            );
            let state = states.entry(sequence).or_default();
            if let Some(defaults) = &packet.trace_packet_defaults {
                assert_eq!(defaults.timestamp_clock_id, Some(64));
                if let Some(track) = &defaults.track_event_defaults {
                    state.track = track.track_uuid();
                }
            }
            if let (1, Some(Data::ClockSnapshot(snapshot))) = (flags, &packet.data) {
                assert_eq!(snapshot.clocks[0].timestamp, snapshot.clocks[1].timestamp);
                state.clock = snapshot.clocks[1].timestamp();
            }
            if let Some(interned) = &packet.interned_data {
                state.interned.merge(&*interned.encode_to_vec()).unwrap();
            }
            let time = match (packet.timestamp, packet.timestamp_clock_id) {
                (Some(time), Some(6)) => time,
                (Some(delta), None) if sequence != 1 => {
                    state.clock += delta;
                    state.clock
                }
                (time, _) => time.unwrap_or(0),
            };
            visit(packet, time, state);
        }
    }

    fn events(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.walk(|packet, time, state| {
            if let Some(Data::TrackEvent(event)) = &packet.data {
                seen.push(Seen {
                    track: state.track,
                    time,
                    kind: event.r#type.unwrap(),
                    name: name_of(event, &state.interned),
                });
            }
        });
        seen
    }

    fn stages(&self) -> Vec<(u64, GpuRenderStageEvent, InternedData)> {
        let mut stages = Vec::new();
        self.each_stage(|time, event, interned| {
            stages.push((time, event.clone(), interned.clone()));
        });
        stages
    }

    fn each_stage(&self, mut visit: impl FnMut(u64, &GpuRenderStageEvent, &InternedData)) {
        self.walk(|packet, time, state| {
            if let Some(Data::GpuRenderStageEvent(event)) = &packet.data {
                visit(time, event, &state.interned);
            }
        });
    }

    fn track_events(&self) -> Vec<TrackEvent> {
        let bodies = self.packets.iter().filter_map(|packet| match &packet.data {
            Some(Data::TrackEvent(event)) => Some(event.clone()),
            _ => None,
        });
        bodies.collect()
    }
}

fn name_of(event: &TrackEvent, interned: &InternedData) -> String {
    use gputrail_trace::perfetto::schema::track_event::NameField;
    match &event.name_field {
        Some(NameField::NameIid(iid)) => {
            let mut names = interned.event_names.iter();
            let name = names.find(|name| name.iid == Some(*iid));
            name.expect("an interned name").name().to_owned()
        }
        Some(NameField::Name(name)) => name.clone(),
        None => String::new(),
    }
}
