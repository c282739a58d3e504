//! Work of devices that stands in a trace as slices of tracks: rocprof-sys (omnitrace before) and rocprofv3 write it so.
//!
//! Such slices are known by their categories, on tracks that are of no thread. A flow leads to them from the call that submitted
//! them. Calls come earlier by time, and often earlier in the file: which flows lead to work is noted when packets are
//! read, before the window of events passes the calls on. Work whose packets come later than the window allows has no call.
//! Slices of one track that overlap are ended in the wrong order by the packets: where a slice tells its begin and its end
//! among its arguments, these say how long it lasted.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use super::held::{Enqueuing, HeldWork, WorkDetails};
use super::limits::{MAX_EVENT_BYTES, MAX_GPUS, TOO_MANY_ARGUMENTS};
use super::replaying::Replaying;
use super::slices::{Form, LaneContent, ReplayedSpan, SliceDetails};
use super::stages::StageOfWork;
use crate::arguments::StoredArguments;
use crate::capture::short_name;
use crate::model::{
    AgentIndex, EventId, Launch, ProcessIndex, Queue, QueueIndex, Resources, Value, WorkKind,
};
use crate::perfetto::reader::HostEvent;
use crate::perfetto::reader::tracks::{Known, TrackId, TrackOf};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ContextId, CorrelationId, Domain, Nanos, ProcessId, TransferKind};

/// Categories of such slices: of rocprof-sys, of omnitrace, and of rocprofv3.
const CATEGORIES: [&str; 7] = [
    "rocm_kernel_dispatch",
    "rocm_memory_copy",
    "rocm_hip_stream",
    "device_hip",
    "device_hsa",
    "kernel_dispatch",
    "memory_copy",
];
/// Event ids of such work count from here.
const FIRST_EVENT: u64 = 1 << 61;
/// Most flows to such work that are remembered.
const MAX_FLOWS: usize = 1 << 20;

/// The queue of a track.
#[derive(Copy, Clone, Debug)]
pub(super) struct ActivityQueue {
    process: ProcessIndex,
    agent: AgentIndex,
    queue: QueueIndex,
    stream: u32,
}

/// The fields of a slice that is work beside those of other slices.
#[derive(Copy, Clone, Debug)]
pub(super) struct Activity {
    event: EventId,
    /// Set when the slice is opened.
    queue: Option<ActivityQueue>,
}

/// The work of a trace that stands in slices.
#[derive(Debug, Default)]
pub(super) struct Activities {
    count: u64,
    /// The work that a flow leads to.
    flows: NumberMap<u64, Vec<EventId>>,
    queues: HashMap<TrackId, ActivityQueue>,
}

/// The kind of work of a slice.
fn kind_of(category: &str, name: &str) -> WorkKind {
    match category {
        "rocm_kernel_dispatch" | "kernel_dispatch" => return WorkKind::Kernel,
        "rocm_memory_copy" | "memory_copy" => return WorkKind::Copy,
        _ => {}
    }
    // Kernels may have any name: operations are told by the begin of theirs.
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if begins(&["MEMORY_COPY", "Copy", "hipMemcpy", "async-copy"]) {
        WorkKind::Copy
    } else if begins(&["Fill", "hipMemset"]) {
        WorkKind::Set
    } else if begins(&["Marker", "<barrier"]) {
        WorkKind::Synchronization
    } else {
        WorkKind::Kernel
    }
}

/// The direction of a copy, by its name.
fn direction(name: &str) -> TransferKind {
    let name = name.to_ascii_lowercase().replace('_', "");
    let named = [
        ("hosttodevice", TransferKind::HOST_TO_DEVICE),
        ("devicetohost", TransferKind::DEVICE_TO_HOST),
        ("devicetodevice", TransferKind::DEVICE_TO_DEVICE),
        ("hosttohost", TransferKind::HOST_TO_HOST),
    ];
    let found = named.iter().find(|(word, _)| name.contains(word));
    found.map_or(TransferKind::UNKNOWN, |(_, kind)| *kind)
}

/// The first number in a text.
fn number_in(text: &str) -> Option<u32> {
    let begin = text.find(|letter: char| letter.is_ascii_digit())?;
    let digits = &text[begin..];
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// The device and the number of the queue of a track, as far as its name tells them: "GPU Kernel Dispatch [0] Queue 1", "HIP Activity
/// Device 0, Queue 1", "COMPUTE GPU [0] QUEUE [1]", "HIP Activity Stream 2".
fn place_in(name: &str) -> (Option<u32>, u32) {
    let lower = name.to_ascii_lowercase();
    let behind = |word: &str| lower.split_once(word).map(|(_, rest)| rest);
    let is_of_device = ["kernel dispatch [", "activity device ", "compute "]
        .iter()
        .find_map(|word| behind(word));
    let queue = behind("queue ").or_else(|| behind("stream "));
    (
        is_of_device.and_then(number_in),
        queue.and_then(number_in).unwrap_or(0),
    )
}

/// Three numbers: `(256,1,1)`.
fn three(text: &str) -> Option<[u64; 3]> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let numbers: Option<Vec<u64>> = inner
        .split(',')
        .map(|one| one.trim().parse().ok())
        .collect();
    numbers?.try_into().ok()
}

fn uint(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Uint(value) | Value::Pointer(value) => Some(value),
        Value::Int(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

impl Replaying<'_> {
    /// Notes a slice that is work, when its packet is read.
    pub(super) fn note_activity(
        &mut self,
        event: &HostEvent<'_>,
        details: &mut Option<Box<SliceDetails>>,
    ) {
        let is_of_thread = matches!(
            event.described.map(|track| track.of),
            Some(TrackOf::Thread(..))
        );
        if self.is_own() || is_of_thread || !CATEGORIES.contains(&event.category.text) {
            return;
        }
        let activities = &mut self.activities;
        activities.count += 1;
        let event_id = EventId(FIRST_EVENT + activities.count);
        for point in &event.flows {
            if activities.flows.len() < MAX_FLOWS {
                activities
                    .flows
                    .entry(point.flow.0)
                    .or_default()
                    .push(event_id);
            }
        }
        let details = details.get_or_insert_default();
        details.flows.clear();
        details.activity = Some(Activity {
            event: event_id,
            queue: None,
        });
    }

    /// Finds the queue of a slice that is work, when it is opened.
    pub(super) fn place_activity(
        &mut self,
        track: TrackId,
        known: &Known,
        details: &mut SliceDetails,
    ) -> io::Result<()> {
        let Some(activity) = &mut details.activity else {
            return Ok(());
        };
        let queue = match self.activities.queues.get(&track) {
            Some(queue) => *queue,
            None => {
                let queue = self.activity_queue(track, known)?;
                self.activities.queues.insert(track, queue);
                queue
            }
        };
        activity.queue = Some(queue);
        Ok(())
    }

    fn activity_queue(&mut self, track: TrackId, known: &Known) -> io::Result<ActivityQueue> {
        let described = known.tracks.get(track);
        let parent = described.and_then(|track| known.tracks.get(track.parent));
        let of = [described, parent].map(|track| track.map(|track| track.of));
        let pid = of.into_iter().find_map(|of| match of {
            Some(TrackOf::Process(pid)) => Some(pid),
            _ => None,
        });
        let process = self.process(pid.unwrap_or(ProcessId(0)))?;
        let name = described.map_or("", |track| known.texts.get(track.name));
        let (device, stream) = place_in(name);
        let agent = match device.filter(|device| *device < MAX_GPUS) {
            Some(device) => self.agent(device)?,
            None => AgentIndex::UNKNOWN,
        };
        let queue = self.stream.new_queue(&Queue {
            process,
            agent,
            context: ContextId::default(),
            domain: Domain::HIP,
            name,
            out_of_order: false,
        })?;
        Ok(ActivityQueue {
            process,
            agent,
            queue,
            stream,
        })
    }

    /// Ties a call to the work that its flows lead to. Returns the correlation id that it has among its arguments.
    pub(super) fn tie_activities(
        &mut self,
        place: usize,
        start: Nanos,
        details: &mut SliceDetails,
    ) -> io::Result<Option<u64>> {
        if self.activities.flows.is_empty() || details.flows.is_empty() {
            return Ok(None);
        }
        let LaneContent::Slices {
            thread: Some((_, thread)),
        } = self.lanes[place].content
        else {
            return Ok(None);
        };
        let (flows, submitted) = (&mut self.activities.flows, &mut details.submitted);
        let before = submitted.len();
        details
            .flows
            .retain(|point| match flows.remove(&point.flow.0) {
                Some(events) => {
                    submitted.extend(events);
                    false
                }
                None => true,
            });
        if submitted.len() == before {
            return Ok(None);
        }
        let arguments = &details.arguments;
        let correlation = arguments.iter().find(|argument| argument.name == "corr_id");
        let correlation = correlation.and_then(|argument| uint(argument.value));
        let call = Enqueuing {
            thread,
            start,
            correlation: CorrelationId(correlation.unwrap_or(0)),
        };
        for event in &details.submitted[before..] {
            self.submitted(event.0, call)?;
        }
        Ok(correlation)
    }

    /// Passes on work whose slice has ended; none of a slice that did not end.
    pub(super) fn pass_on_activity(
        &mut self,
        span: ReplayedSpan,
        end: Option<Nanos>,
        further: Option<&SliceDetails>,
    ) -> io::Result<()> {
        let details = span.details.unwrap_or_default();
        let placed = details.activity;
        let placed = placed.and_then(|activity| Some((activity, activity.queue?)));
        let Some((activity, queue)) = placed else {
            self.leave_out("work whose slice is one of too many that are open", 1);
            return Ok(());
        };
        if self.stages.are_full() {
            self.pass_on_held()?;
            self.stages.clear();
        }
        let (name, category) = match (&details.own_label, span.form) {
            (Some((name, category)), _) => (name.clone(), category.clone()),
            (None, Form::Work(Some(label))) => {
                let label = self.labels.get(label);
                (label.name.clone(), label.category.clone())
            }
            _ => (Box::default(), Box::default()),
        };
        let kind = kind_of(&category, &name);
        let mut read = ActivityArguments::default();
        let further = further
            .into_iter()
            .flat_map(|details| details.arguments.iter());
        let mut left_out = 0;
        for argument in details.arguments.iter().chain(further) {
            left_out += u64::from(!read.take(argument.name, argument.value));
        }
        if left_out > 0 {
            self.leave_out(TOO_MANY_ARGUMENTS, left_out);
        }
        let measured = read.begin.zip(read.end);
        let measured = measured.and_then(|(begin, end)| end.checked_sub(begin));
        let duration = end.map(|end| end.0.saturating_sub(span.start.0));
        let launch = read.items.zip(read.group).map(|(grid, group)| Launch {
            grid,
            workgroup: group.map(|size| u32::try_from(size).unwrap_or(u32::MAX)),
        });
        let (shown, demangled): (&str, &str) = match kind {
            WorkKind::Copy => (direction(&name).name().unwrap_or("copy"), ""),
            WorkKind::Set => (WorkKind::FILL, ""),
            WorkKind::Kernel if short_name(&name) != &*name => (short_name(&name), &name),
            _ => (&name, ""),
        };
        let stage = StageOfWork {
            id: self.stages.id(kind, [shown, demangled, ""]),
            kind,
            name: shown.into(),
            demangled: demangled.into(),
            architecture: Box::default(),
            launch,
            resources: read.resources,
            stream: read.stream.unwrap_or(queue.stream),
            arguments: StoredArguments::default(),
        };
        let held = HeldWork {
            event: activity.event,
            process: queue.process,
            agent: queue.agent,
            queue: queue.queue,
            stage: Rc::new(stage),
            submission: read.correlation,
            start: span.start,
            duration: measured.or(duration),
            queued: None,
            submitted: None,
            bytes: read.bytes,
            status: 0,
            details: Some(Box::new(WorkDetails {
                arguments: read.rest,
                ..WorkDetails::default()
            })),
        };
        self.place_work(held)
    }

    /// Passes on work whose slices did not end.
    pub(super) fn finish_activities(&mut self) -> io::Result<()> {
        for place in 0..self.lanes.len() {
            let open = std::mem::take(&mut self.lanes[place].open);
            let is_work = |span: &ReplayedSpan| matches!(span.form, Form::Work(_));
            let (work, others): (Vec<_>, Vec<_>) = open.into_iter().partition(is_work);
            self.lanes[place].open = others;
            for span in work {
                self.pass_on_activity(span, None, None)?;
            }
        }
        Ok(())
    }
}

/// The arguments of a slice that are fields of work, and the others.
#[derive(Default)]
struct ActivityArguments {
    begin: Option<u64>,
    end: Option<u64>,
    correlation: u64,
    stream: Option<u32>,
    items: Option<[u64; 3]>,
    group: Option<[u64; 3]>,
    resources: Resources,
    bytes: u64,
    rest: StoredArguments,
}

impl ActivityArguments {
    /// Takes an argument; `false` if there is no room for it.
    fn take(&mut self, name: &str, value: Value<'_>) -> bool {
        let number = uint(value);
        let small = number.and_then(|number| u32::try_from(number).ok());
        let sizes = match value {
            Value::Text(text) => three(text),
            _ => None,
        };
        match (name, number, small) {
            ("begin_ns", Some(time), _) => self.begin = Some(time),
            ("end_ns", Some(time), _) => self.end = Some(time),
            ("delta_ns", Some(_), _) => {}
            ("corr_id", Some(id), _) => self.correlation = id,
            ("stream_id" | "stream_ID", _, Some(stream)) => self.stream = Some(stream),
            ("grid_size", ..) if sizes.is_some() => self.items = sizes,
            ("workgroup_size", ..) if sizes.is_some() => self.group = sizes,
            ("private_segment_size" | "Scratch_Size", _, Some(size)) => {
                self.resources.private = size;
            }
            ("group_segment_size" | "LDS_Block_Size", _, Some(size)) => {
                self.resources.static_local = size;
            }
            ("VGPR_Count", _, Some(count)) => self.resources.registers = count,
            ("copy_bytes", Some(bytes), _) => self.bytes = bytes,
            _ => return self.rest.push_within(MAX_EVENT_BYTES, name, value),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tracks_tell_device_and_queue() {
        for (name, place) in [
            ("GPU Kernel Dispatch [1] Queue 3", (Some(1), 3)),
            ("HIP Activity Device 2, Queue 4", (Some(2), 4)),
            ("ROCm GPU Activity Device 0, Queue 1", (Some(0), 1)),
            ("HIP Activity Stream 5", (None, 5)),
            ("COMPUTE GPU [2] QUEUE [1] GPU", (Some(2), 1)),
            ("STREAM [\" 6 \"] ", (None, 6)),
            ("GPU Memory Copy to Agent [1] Thread 0", (None, 0)),
            ("", (None, 0)),
        ] {
            assert_eq!(place_in(name), place, "{name}");
        }
    }

    #[test]
    fn operations_on_streams_are_told_by_the_begin_of_their_names() {
        for (name, kind) in [
            ("MEMORY_COPY_HOST_TO_DEVICE", WorkKind::Copy),
            ("CopyDeviceToHost", WorkKind::Copy),
            ("FillBuffer", WorkKind::Set),
            ("copy_kernel(float*)", WorkKind::Kernel),
            ("void fill<float>(float*)", WorkKind::Kernel),
        ] {
            assert_eq!(kind_of("rocm_hip_stream", name), kind, "{name}");
        }
    }
}
