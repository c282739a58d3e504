//! The tracks of a trace, from their descriptors, and the names beside them.

use super::fields::{FieldValue, MessageFields};
use super::findings::{Findings, PacketPosition};
use super::texts::{TextId, Texts};
use crate::model::CounterUnit;
use crate::perfetto::schema::counter_descriptor::Unit;
use crate::perfetto::schema::field::{
    counter_descriptor, process_descriptor, thread_descriptor, track_descriptor,
};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ProcessId, ThreadId};

/// Maximum number of tracks that are held.
const MAX_TRACKS: usize = 1 << 20;

/// A track's uuid, which is unique in the whole trace.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u64);

/// The subject of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TrackOf {
    /// A process.
    Process(ProcessId),
    /// A thread.
    Thread(ProcessId, ThreadId),
    /// A counter.
    Counter,
    /// Something else.
    Other,
}

/// A track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its number.
    pub id: TrackId,
    /// The parent track; 0 if there is none.
    pub parent: TrackId,
    /// Its subject.
    pub of: TrackOf,
    /// Its own name, or that of its process or thread; may be empty.
    pub name: TextId,
    /// Its place among the tracks beside it, lowest first.
    pub order: Option<i32>,
    /// The properties of its counter, if it has one.
    pub counter: CounterProperties,
    /// The position of its first description.
    pub position: PacketPosition,
}

/// The properties of a counter's values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CounterProperties {
    /// Their unit.
    pub unit: CounterUnit,
    /// The factor to apply to them.
    pub multiplier: i64,
    /// Whether each value is the difference from the value before it.
    pub incremental: bool,
}

impl Default for CounterProperties {
    fn default() -> CounterProperties {
        CounterProperties {
            unit: CounterUnit::Unspecified,
            multiplier: 1,
            incremental: false,
        }
    }
}

/// All tracks.
#[derive(Debug, Default)]
pub struct Tracks {
    list: NumberMap<u64, Track>,
    left_out: u64,
}

impl Tracks {
    /// The track `id`, if it has been described.
    #[inline]
    pub fn get(&self, id: TrackId) -> Option<&Track> {
        self.list.get(&id.0)
    }

    /// All tracks, in the order of their first descriptions.
    pub fn iter(&self) -> impl Iterator<Item = &Track> {
        let mut tracks: Vec<&Track> = self.list.values().collect();
        tracks.sort_unstable_by_key(|track| (track.position, track.id));
        tracks.into_iter()
    }

    /// Number of descriptions that were left out because there are too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn add(
        &mut self,
        bytes: &[u8],
        texts: &mut Texts,
        position: PacketPosition,
        findings: &mut Findings,
    ) {
        let mut track = Track {
            id: TrackId::default(),
            parent: TrackId::default(),
            of: TrackOf::Other,
            name: TextId::EMPTY,
            order: None,
            counter: CounterProperties::default(),
            position,
        };
        let mut text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => texts.add(text),
            Err(_) => TextId::EMPTY,
        };
        let mut fields = MessageFields::new(bytes);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (track_descriptor::UUID, FieldValue::Number(id)) => track.id = TrackId(id),
                (track_descriptor::PARENT_UUID, FieldValue::Number(id)) => {
                    track.parent = TrackId(id)
                }
                (
                    track_descriptor::NAME | track_descriptor::STATIC_NAME,
                    FieldValue::Bytes(name),
                ) => track.name = text(name),
                (track_descriptor::PROCESS, FieldValue::Bytes(process)) => {
                    let owner = TrackOwner::read(process, process_descriptor::PROCESS_NAME);
                    track.of = TrackOf::Process(owner.pid);
                    (track.name, track.order) = (text(owner.name), owner.order);
                }
                (track_descriptor::THREAD, FieldValue::Bytes(thread)) => {
                    let owner = TrackOwner::read(thread, thread_descriptor::THREAD_NAME);
                    track.of = TrackOf::Thread(owner.pid, owner.tid);
                    (track.name, track.order) = (text(owner.name), owner.order);
                }
                (track_descriptor::COUNTER, FieldValue::Bytes(counter)) => {
                    track.of = TrackOf::Counter;
                    track.counter = counter_properties(counter);
                }
                (track_descriptor::SIBLING_ORDER_RANK, FieldValue::Number(rank)) => {
                    track.order = Some(rank as i32)
                }
                _ => {}
            }
        }
        if let Some(what) = fields.malformed() {
            findings.add(position, || format!("track descriptor: {what}"));
        }
        let room = self.list.len() < MAX_TRACKS;
        match self.list.get_mut(&track.id.0) {
            // Descriptions of a track add up; that it is a counter may come later.
            Some(known) => {
                if known.of == TrackOf::Other {
                    (known.of, known.counter) = (track.of, track.counter);
                }
                known.order = track.order.or(known.order);
                if track.name != TextId::EMPTY {
                    known.name = track.name;
                }
                if track.parent.0 != 0 {
                    known.parent = track.parent;
                }
            }
            None if room => drop(self.list.insert(track.id.0, track)),
            None => self.left_out += 1,
        }
    }
}

/// The names and tracks of the whole trace, as far as it has been read.
#[derive(Debug, Default)]
pub struct Known {
    /// Names.
    pub texts: Texts,
    /// Tracks.
    pub tracks: Tracks,
}

/// A process or a thread, from its descriptor.
struct TrackOwner<'a> {
    pid: ProcessId,
    tid: ThreadId,
    name: &'a [u8],
    order: Option<i32>,
}

impl<'a> TrackOwner<'a> {
    /// Reads a descriptor whose name is in field `name_field`. Both kinds have the same numbers for ids and order, which
    /// is field 3.
    fn read(bytes: &'a [u8], name_field: u32) -> TrackOwner<'a> {
        let mut owner = TrackOwner {
            pid: ProcessId(0),
            tid: ThreadId(0),
            name: &[],
            order: None,
        };
        for field in MessageFields::new(bytes) {
            match (field.number, field.value) {
                (thread_descriptor::PID, FieldValue::Number(id)) => owner.pid.0 = id as u32,
                (thread_descriptor::TID, FieldValue::Number(id)) => owner.tid.0 = id as u32,
                (thread_descriptor::LEGACY_SORT_INDEX, FieldValue::Number(order)) => {
                    owner.order = Some(order as i32)
                }
                (number, FieldValue::Bytes(bytes)) if number == name_field => owner.name = bytes,
                _ => {}
            }
        }
        owner
    }
}

fn counter_properties(bytes: &[u8]) -> CounterProperties {
    let mut properties = CounterProperties::default();
    for field in MessageFields::new(bytes) {
        match (field.number, field.value) {
            (counter_descriptor::UNIT, FieldValue::Number(unit)) => {
                properties.unit = match Unit::try_from(unit as i32) {
                    Ok(Unit::TimeNs) => CounterUnit::Nanoseconds,
                    Ok(Unit::Count) => CounterUnit::Count,
                    Ok(Unit::SizeBytes) => CounterUnit::Bytes,
                    _ => CounterUnit::Unspecified,
                }
            }
            (counter_descriptor::UNIT_NAME, FieldValue::Bytes(name)) => match name {
                b"%" => properties.unit = CounterUnit::Percent,
                b"B/s" => properties.unit = CounterUnit::BytesPerSecond,
                _ => {}
            },
            (counter_descriptor::UNIT_MULTIPLIER, FieldValue::Number(factor)) => {
                properties.multiplier = (factor as i64).max(1)
            }
            (counter_descriptor::IS_INCREMENTAL, FieldValue::Number(yes)) => {
                properties.incremental = yes != 0
            }
            _ => {}
        }
    }
    properties
}
