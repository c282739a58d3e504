//! Processes, threads and tracks of a trace, declared when they are first used, or at its end.

use std::io;

use super::processes::ProcessDescription;
use super::replaying::Replaying;
use super::slices::{EventLane, LaneContent};
use crate::model::{Parent, ProcessIndex, Track, TrackIndex, TrackKind};
use crate::perfetto::reader::check::rare;
use crate::perfetto::reader::fields::{MessageFields, number_of};
use crate::perfetto::reader::tracks::{self, Known, TrackId, TrackOf};
use crate::perfetto::schema::{ProcessTree, TrackDescriptor, field};
use gputrail_record::{ProcessId, ThreadId};

/// Maximum number of tracks.
const MAX_LANES: usize = 1 << 18;
/// Maximum number of ancestors of a track that are followed.
const MAX_DEPTH: u32 = 32;
impl Replaying<'_> {
    /// Reads what the description of a track says of a process.
    pub(super) fn describe(&mut self, descriptor: &[u8], known: &Known) {
        if self.machine != 0 {
            let id = number_of(descriptor, field::track_descriptor::UUID);
            if let Some(id) = id
                && known.tracks.get(TrackId(id)).is_some()
            {
                self.processes.machines.insert(TrackId(id), self.machine);
            }
        }
        let is_process = |number| number == field::track_descriptor::PROCESS;
        if !MessageFields::new(descriptor).any(|field| is_process(field.number)) {
            return;
        }
        let process = rare::<TrackDescriptor>(descriptor).and_then(|track| track.process);
        let Some(process) = process else {
            return;
        };
        let key = (self.machine, process.pid() as u32);
        self.describe_process(key, |known| {
            if let Some(name) = process.process_name {
                known.name = name;
            }
            if !process.cmdline.is_empty() {
                known.command = process.cmdline;
            }
            known.order = process.legacy_sort_index.or(known.order);
        });
    }

    /// Reads command lines of processes.
    pub(super) fn describe_commands(&mut self, data: &[u8]) {
        for process in rare::<ProcessTree>(data).unwrap_or_default().processes {
            let key = (self.machine, process.pid.unwrap_or(0) as u32);
            self.describe_process(key, |known| {
                if known.command.is_empty() {
                    known.command = process.cmdline;
                }
            });
        }
    }

    /// Changes the description of a process, if there is room for it.
    fn describe_process(&mut self, key: (u32, u32), change: impl FnOnce(&mut ProcessDescription)) {
        if !self.processes.describe(key, change) {
            let reason =
                "name and command line of a process: there are too many, or they are too long";
            self.leave_out(reason, 1);
        }
    }

    /// The process of the current packet's machine with this id.
    #[inline]
    pub(super) fn process(&mut self, pid: ProcessId) -> io::Result<ProcessIndex> {
        let key = (self.machine, pid.0);
        self.processes.get(key, self.stream.consumer)
    }

    /// The place of a track among the lanes; `None` if there are too many.
    #[inline]
    pub(super) fn lane(&mut self, id: TrackId, known: &Known) -> io::Result<Option<usize>> {
        match self.latest_lane {
            Some((latest, place)) if latest == id => Ok(Some(place)),
            _ => {
                let place = self.find_lane(id, known, 0)?;
                self.latest_lane = place.map(|place| (id, place));
                Ok(place)
            }
        }
    }

    fn find_lane(&mut self, id: TrackId, known: &Known, depth: u32) -> io::Result<Option<usize>> {
        if let Some(place) = self.places.get(&id) {
            return Ok(Some(*place));
        }
        if self.lanes.len() >= MAX_LANES || depth > MAX_DEPTH {
            return Ok(None);
        }
        let machine = self.machine;
        self.machine = self.processes.machines.get(&id).copied().unwrap_or(0);
        let lane = self.declare_lane(known.tracks.get(id), known, depth);
        self.machine = machine;
        let lane = lane?;
        // A track below itself has been declared meanwhile.
        let place = *self.places.entry(id).or_insert(self.lanes.len());
        if place == self.lanes.len() {
            self.lanes.push(lane);
        }
        Ok(Some(place))
    }

    fn declare_lane(
        &mut self,
        track: Option<&tracks::Track>,
        known: &Known,
        depth: u32,
    ) -> io::Result<EventLane> {
        let slices = LaneContent::Slices { thread: None };
        let Some(track) = track else {
            let track = self.stream.new_track(&Track {
                parent: Parent::Trace,
                name: "",
                kind: TrackKind::Slices,
                order: None,
            })?;
            return Ok(EventLane::new(track, slices, false));
        };
        let name = known.texts.get(track.name);
        let parent = known.tracks.get(track.parent);
        let mut declared = Track {
            parent: Parent::Trace,
            name,
            kind: TrackKind::Slices,
            order: track.order,
        };
        if let TrackOf::Thread(pid, tid) = track.of {
            let process = self.process(pid)?;
            declared.parent = Parent::Process(process);
            declared.kind = TrackKind::Thread(process, tid);
            let track = self.stream.new_track(&declared)?;
            let thread = Some((process, tid));
            return Ok(EventLane::new(track, LaneContent::Slices { thread }, true));
        }
        if let TrackOf::Process(pid) = track.of {
            // Events on the process itself.
            (declared.parent, declared.name) = (Parent::Process(self.process(pid)?), "");
            let track = self.stream.new_track(&declared)?;
            return Ok(EventLane::new(track, slices, false));
        }
        let mut content = slices;
        match parent.map(|parent| (parent.of, parent.id)) {
            Some((TrackOf::Process(pid), _)) => {
                let process = self.process(pid)?;
                declared.parent = Parent::Process(process);
                if self.is_own() && name == NOTES {
                    return Ok(EventLane::new(
                        TrackIndex(u32::MAX),
                        LaneContent::Notes(process),
                        false,
                    ));
                }
                if is_row_of(name, "ranges") || is_own_track(name, "ranges") {
                    declared.kind = TrackKind::Ranges;
                }
            }
            Some((of, id)) => {
                if let Some(place) = self.find_lane(id, known, depth + 1)? {
                    declared.parent = Parent::Track(self.lanes[place].track);
                }
                if let TrackOf::Thread(pid, tid) = of {
                    let process = self.process(pid)?;
                    match name {
                        _ if is_own_track(name, "markers") => {
                            declared.kind = TrackKind::ThreadRanges(process, tid);
                            content = LaneContent::ThreadRanges;
                        }
                        _ if is_row_of(name, "markers") => declared.kind = TrackKind::Ranges,
                        _ if CALL_ROWS.iter().any(|row| is_row_of(name, row)) => {
                            content = LaneContent::Slices {
                                thread: Some((process, tid)),
                            };
                        }
                        _ => {}
                    }
                }
            }
            None => {}
        }
        if track.of == TrackOf::Counter {
            declared.kind = TrackKind::Counter(track.counter.unit);
            content = LaneContent::Counter(track.counter);
        }
        let track = self.stream.new_track(&declared)?;
        Ok(EventLane::new(track, content, false))
    }

    /// Declares the processes and tracks that have no events.
    pub(super) fn declare_rest(&mut self, known: &Known) -> io::Result<()> {
        for track in known.tracks.iter() {
            match track.of {
                TrackOf::Process(pid) => {
                    let machine = self.processes.machines.get(&track.id);
                    self.machine = machine.copied().unwrap_or(0);
                    self.process(pid)?;
                }
                _ => drop(self.find_lane(track.id, known, 0)?),
            }
        }
        Ok(())
    }
}

/// The name of the tracks with facts about the recordings of processes.
const NOTES: &str = "gputrail";

/// Names of tracks below a thread for calls that do not nest in its own ones.
const CALL_ROWS: [&str; 2] = ["calls", "overlapping"];

/// Whether a track is one of all domains or of one domain of markers: "markers", "markers: NCCL".
pub(in crate::perfetto::reader) fn is_own_track(name: &str, of: &str) -> bool {
    let rest = name.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// Whether a track is a row of tracks with this name: "ranges", "ranges row 2".
fn is_row_of(name: &str, of: &str) -> bool {
    let rest = name.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" row "))
}

/// The thread of a track, if it is that of a thread.
pub(super) fn thread_of(track: Option<&tracks::Track>) -> Option<ThreadId> {
    match track.map(|track| track.of) {
        Some(TrackOf::Thread(_, tid)) => Some(tid),
        _ => None,
    }
}
