//! Samples with stacks, which gputrail writes as those of an invented thread of their process.

use std::io;

use crate::record::number_map::NumberMap;
use crate::record::{Nanos, ProcessId};
use crate::trace::model::{
    Parent, ProcessIndex, StackFrame, StackIndex, StackSamples, Stream, Track, TrackIndex,
    TrackKind,
};
use crate::trace::perfetto::reader::{Fields, field};
use crate::trace::perfetto::schema::ThreadDescriptor;
use crate::trace::perfetto::schema::field::streaming_profile_packet as profile;
use crate::trace::perfetto::stacks::INVENTED;

/// Maximum number of sequences with samples.
const MAX_SEQUENCES: usize = 1 << 12;
/// Maximum number of snapshots of the clocks that are kept.
const MAX_SNAPSHOTS: usize = 1 << 16;

/// A sequence of samples.
#[derive(Debug)]
struct SampleLane {
    process: ProcessIndex,
    name: String,
    track: Option<TrackIndex>,
    /// CLOCK_MONOTONIC of its latest sample, us.
    now: i64,
    /// Stacks that have been declared, by the numbers of their callstacks.
    stacks: NumberMap<u64, StackIndex>,
}

/// All samples with stacks.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    lanes: NumberMap<u32, SampleLane>,
    /// BOOTTIME and MONOTONIC of the snapshots, ns.
    snapshots: Vec<(u64, u64)>,
}

impl Stacks {
    /// Adds a reading of both clocks.
    pub fn snapshot(&mut self, boottime: u64, monotonic: u64) {
        if monotonic != 0 && self.snapshots.len() < MAX_SNAPSHOTS {
            self.snapshots.push((boottime, monotonic));
        }
    }

    /// The process of the samples of a sequence, if gputrail has invented their thread.
    pub fn process_of(thread: &ThreadDescriptor) -> Option<ProcessId> {
        let invented = thread.tid() & i64::from(INVENTED) != 0;
        invented.then(|| ProcessId(thread.pid() as u32))
    }

    /// Begins the samples of a sequence.
    pub fn begin(&mut self, sequence: u32, process: ProcessIndex, thread: &ThreadDescriptor) {
        if self.lanes.len() < MAX_SEQUENCES {
            self.lanes.insert(
                sequence,
                SampleLane {
                    process,
                    name: thread.thread_name().to_owned(),
                    track: None,
                    now: thread.reference_timestamp_us(),
                    stacks: NumberMap::default(),
                },
            );
        }
    }

    /// Passes on the samples of a packet. Returns whether its sequence has begun; otherwise they are left out.
    pub fn pass_on(
        &mut self,
        stream: &mut Stream<'_>,
        sequence: u32,
        data: &[u8],
        frames: &mut dyn FnMut(u64) -> Vec<StackFrame>,
    ) -> io::Result<bool> {
        let Some(lane) = self.lanes.get_mut(&sequence) else {
            return Ok(false);
        };
        let track = match lane.track {
            Some(track) => track,
            None => *lane.track.insert(stream.new_track(&Track {
                parent: Parent::Process(lane.process),
                name: &lane.name,
                kind: TrackKind::Samples,
                order: None,
            })?),
        };
        let [stacks, deltas] = columns(data);
        let mut samples = Vec::with_capacity(stacks.len());
        for (stack, delta) in stacks.into_iter().zip(deltas) {
            lane.now = lane.now.wrapping_add(delta as i64);
            let time = boottime(&self.snapshots, (lane.now as u64).wrapping_mul(1000));
            let next = StackIndex(lane.stacks.len() as u32);
            let index = match lane.stacks.get(&stack) {
                Some(index) => *index,
                None => {
                    stream.consumer.stack(track, next, &frames(stack))?;
                    lane.stacks.insert(stack, next);
                    next
                }
            };
            samples.push((time, index));
        }
        stream.consumer.stack_samples(&StackSamples {
            track,
            samples: &samples,
        })?;
        Ok(true)
    }
}

/// The numbers of the callstacks of a packet's samples, and the times between these, us.
pub(super) fn columns(data: &[u8]) -> [Vec<u64>; 2] {
    [profile::CALLSTACK_IID, profile::TIMESTAMP_DELTA_US].map(|wanted| {
        let fields = Fields::new(data).filter(|field| field.number == wanted);
        fields.flat_map(|field| field.numbers()).collect()
    })
}

/// The time in BOOTTIME of a time in MONOTONIC: by the last snapshot before it.
fn boottime(snapshots: &[(u64, u64)], monotonic: u64) -> Nanos {
    let after = snapshots.partition_point(|(_, own)| *own <= monotonic);
    let snapshot = snapshots.get(after.saturating_sub(1));
    let (boottime, own) = snapshot.copied().unwrap_or_default();
    Nanos(monotonic.wrapping_sub(own).wrapping_add(boottime))
}

/// The message of a packet with the thread of a sequence.
pub(super) const THREAD: u32 = field::trace_packet::THREAD_DESCRIPTOR;
