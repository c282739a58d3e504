//! Samples with stacks, which gputrail writes as those of an invented thread of their process.

use std::io;

use crate::model::{
    Parent, ProcessIndex, StackFrame, StackIndex, StackSamples, Stream, Track, TrackIndex,
    TrackKind,
};
use crate::perfetto::reader::fields::numbers_of;
use crate::perfetto::schema::ThreadDescriptor;
use crate::perfetto::schema::field::streaming_profile_packet as profile;
use crate::perfetto::stacks::INVENTED;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ProcessId};

/// Maximum number of sequences with samples.
const MAX_SEQUENCES: usize = 1 << 12;
/// Maximum number of stacks of all sequences.
const MAX_STACKS: usize = 1 << 20;
/// Number of samples that are passed on at a time.
const SAMPLES_AT_A_TIME: usize = 1 << 12;
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

/// Numbers of samples that were left out.
#[derive(Debug, Default)]
pub(super) struct LeftOutSamples {
    /// Samples of threads: their sequence has not begun as one of gputrail.
    pub of_threads: u64,
    /// Samples without a time.
    pub untimed: u64,
    /// Samples whose stack is one of too many.
    pub too_many: u64,
}

/// All samples with stacks.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    lanes: NumberMap<u32, SampleLane>,
    /// Number of stacks that have been declared.
    stacks: usize,
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

    /// Passes on the samples of a packet, and returns how many were left out.
    pub fn pass_on(
        &mut self,
        stream: &mut Stream<'_>,
        sequence: u32,
        data: &[u8],
        frames: &mut dyn FnMut(u64) -> Vec<StackFrame>,
    ) -> io::Result<LeftOutSamples> {
        let mut left_out = LeftOutSamples::default();
        let mut deltas = numbers_of(data, profile::TIMESTAMP_DELTA_US);
        let Some(lane) = self.lanes.get_mut(&sequence) else {
            left_out.of_threads = numbers_of(data, profile::CALLSTACK_IID).count() as u64;
            return Ok(left_out);
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
        let mut samples = Vec::new();
        for stack in numbers_of(data, profile::CALLSTACK_IID) {
            let Some(delta) = deltas.next() else {
                left_out.untimed += 1;
                continue;
            };
            lane.now = lane.now.wrapping_add(delta as i64);
            let time = boottime(&self.snapshots, (lane.now as u64).wrapping_mul(1000));
            let next = StackIndex(lane.stacks.len() as u32);
            let index = match lane.stacks.get(&stack) {
                Some(index) => *index,
                None if self.stacks >= MAX_STACKS => {
                    left_out.too_many += 1;
                    continue;
                }
                None => {
                    stream.consumer.stack(track, next, &frames(stack))?;
                    lane.stacks.insert(stack, next);
                    self.stacks += 1;
                    next
                }
            };
            samples.push((time, index));
            if samples.len() == SAMPLES_AT_A_TIME {
                pass_on_samples(stream, track, &mut samples)?;
            }
        }
        pass_on_samples(stream, track, &mut samples)?;
        Ok(left_out)
    }
}

fn pass_on_samples(
    stream: &mut Stream<'_>,
    track: TrackIndex,
    samples: &mut Vec<(Nanos, StackIndex)>,
) -> io::Result<()> {
    if !samples.is_empty() {
        stream
            .consumer
            .stack_samples(&StackSamples { track, samples })?;
        samples.clear();
    }
    Ok(())
}

/// The time in BOOTTIME of a time in MONOTONIC: by the last snapshot before it.
fn boottime(snapshots: &[(u64, u64)], monotonic: u64) -> Nanos {
    let after = snapshots.partition_point(|(_, own)| *own <= monotonic);
    let snapshot = snapshots.get(after.saturating_sub(1));
    let (boottime, own) = snapshot.copied().unwrap_or_default();
    Nanos(monotonic.wrapping_sub(own).wrapping_add(boottime))
}
