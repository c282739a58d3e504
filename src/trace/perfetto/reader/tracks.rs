//! The tracks of a trace, from their descriptors.

use super::fields::{FieldValue, Fields};
use super::findings::{Findings, PacketPosition};
use super::texts::{TextId, Texts};
use crate::record::number_map::NumberMap;
use crate::record::{ProcessId, ThreadId};
use crate::trace::perfetto::schema::field::{
    process_descriptor, thread_descriptor, track_descriptor,
};

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
    /// The position of its first description.
    pub position: PacketPosition,
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
            position,
        };
        let mut text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => texts.add(text),
            Err(_) => TextId::EMPTY,
        };
        let mut fields = Fields::new(bytes);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (track_descriptor::UUID, FieldValue::Number(id)) => track.id = TrackId(id),
                (track_descriptor::PARENT_UUID, FieldValue::Number(id)) => {
                    track.parent = TrackId(id)
                }
                (track_descriptor::NAME, FieldValue::Bytes(name)) => track.name = text(name),
                (track_descriptor::PROCESS, FieldValue::Bytes(process)) => {
                    let (pid, _, name) = owner(process, process_descriptor::PROCESS_NAME);
                    track.of = TrackOf::Process(pid);
                    track.name = text(name);
                }
                (track_descriptor::THREAD, FieldValue::Bytes(thread)) => {
                    let (pid, tid, name) = owner(thread, thread_descriptor::THREAD_NAME);
                    track.of = TrackOf::Thread(pid, tid);
                    track.name = text(name);
                }
                (track_descriptor::COUNTER, FieldValue::Bytes(_)) => track.of = TrackOf::Counter,
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
                    known.of = track.of;
                }
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

/// Process id, thread id, and the name in field `name_field` of a process or thread descriptor.
fn owner(bytes: &[u8], name_field: u32) -> (ProcessId, ThreadId, &[u8]) {
    let (mut pid, mut tid, mut name) = (0, 0, &[][..]);
    for field in Fields::new(bytes) {
        match (field.number, field.value) {
            (thread_descriptor::PID, FieldValue::Number(number)) => pid = number as u32,
            (thread_descriptor::TID, FieldValue::Number(number)) => tid = number as u32,
            (number, FieldValue::Bytes(bytes)) if number == name_field => name = bytes,
            _ => {}
        }
    }
    (ProcessId(pid), ThreadId(tid), name)
}
