//! Device work, as render-stage events.
//!
//! A stage is the name of an event: there is one for each kernel and launch geometry, which is part of its description
//! since every version shows that, and one for each kind of copy, fill or barrier. The properties that a kernel on a
//! queue always has (device, stream, resources) are interned as its kernel description. The tables are bounded: a full
//! table is dropped, and entries still in use are sent again.

use std::io::{self, Write};

use prost::Message;

use super::names::Sent;
use super::packets::{NEEDS_STATE, Packets, Sequence};
use super::schema::field::gpu_render_stage_event::{dim3, extra_data};
use super::schema::gpu_render_stage_event::{ExtraComputeArg, extra_compute_arg};
use super::schema::interned_gpu_render_stage_specification::RenderStageCategory;
use super::schema::{
    InternedComputeKernel, InternedGpuRenderStageSpecification, InternedGraphicsContext,
    TracePacketDefaults, field, interned_graphics_context,
};
use super::wire::{Encoder, Fields, ShortFields};
use crate::model::{Argument, EventId, Launch, Resources, Stage, StageId, Value, WorkKind};
use gputrail_record::number_map::NumberMap;

/// Maximum number of stages and kernels in the tables of one sequence.
const MAX_TABLE_ENTRIES: usize = 4096;

pub use interned_graphics_context::Api as ContextApi;

/// A context of a compute API in one process.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GpuContext(u32);

/// A queue of a device, in one process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct HardwareQueue(u32);

/// The description of a queue.
#[derive(Clone, Debug)]
pub struct QueueDescription {
    /// Its name, unique among the queues of the trace.
    pub name: String,
    /// Further properties, as text.
    pub description: String,
    /// Its device, as an index into the devices of the trace.
    pub gpu: u32,
    /// Its context.
    pub context: GpuContext,
    /// The number of the device in its process, by which new versions of Perfetto group work.
    pub device: u32,
}

/// The queues and contexts of the whole trace.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: Vec<QueueDescription>,
    contexts: Vec<(u32, ContextApi)>,
}

impl Queues {
    pub fn add_context(&mut self, pid: u32, api: ContextApi) -> GpuContext {
        self.contexts.push((pid, api));
        GpuContext(self.contexts.len() as u32 - 1)
    }

    pub fn add_queue(&mut self, queue: QueueDescription) -> HardwareQueue {
        self.queues.push(queue);
        HardwareQueue(self.queues.len() as u32 - 1)
    }
}

/// When work was queued and submitted, in nanoseconds from its start: negative before it. Shown before its details,
/// with the names of OpenCL's profiling.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Submission {
    pub queued: Option<i64>,
    pub submitted: Option<i64>,
}

impl Submission {
    #[inline(always)]
    fn write(&self, packet: &mut ShortFields<'_>) {
        // A name is field 1 and takes six bytes.
        write_detail(packet, *b"\x0a\x06queued", self.queued);
        write_detail(packet, *b"\x0a\x06submit", self.submitted);
    }
}

#[inline(always)]
fn write_detail(packet: &mut ShortFields<'_>, name: [u8; 8], value: Option<i64>) {
    if let Some(value) = value {
        let message = packet.open(field::gpu_render_stage_event::EXTRA_DATA);
        packet.constant(name);
        packet.decimal(extra_data::VALUE, value);
        packet.close(message);
    }
}

/// An argument as a detail, whose value is a text.
fn write_argument(packet: &mut Encoder, argument: &Argument<'_>) {
    let message = packet.open(field::gpu_render_stage_event::EXTRA_DATA);
    packet.string(extra_data::NAME, argument.name);
    match argument.value {
        Value::Text(value) | Value::Json(value) => packet.string(extra_data::VALUE, value),
        Value::Bool(value) => {
            packet.string(extra_data::VALUE, if value { "true" } else { "false" })
        }
        Value::Uint(value) => packet.string(extra_data::VALUE, &value.to_string()),
        Value::Int(value) => packet.short_fields(|fields| fields.decimal(extra_data::VALUE, value)),
        Value::Double(value) => packet.string(extra_data::VALUE, &value.to_string()),
        Value::Pointer(value) => packet.string(extra_data::VALUE, &format!("{value:#x}")),
    }
    packet.close(message);
}

/// A property that every version of Perfetto shows.
#[derive(Copy, Clone, Debug)]
pub struct Detail<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: DetailValue<'a>,
}

/// Value of a [`Detail`].
#[derive(Copy, Clone, Debug)]
pub enum DetailValue<'a> {
    /// A number, shown in decimal.
    Number(i64),
    /// A text.
    Text(&'a str),
}

/// A piece of work of a device.
#[derive(Copy, Clone, Debug)]
pub struct RenderStageEvent<'a> {
    /// Its event id, unique in the trace.
    pub event: EventId,
    /// When it began.
    pub start: u64,
    /// How long it ran, ns; `None` if unknown.
    pub duration: Option<u64>,
    /// The queue on which it ran.
    pub queue: HardwareQueue,
    /// The number of its stream in its process, by which new versions of Perfetto group work.
    pub stream: u32,
    /// Its kernel, or its kind.
    pub stage: Stage<'a>,
    /// The size of the launch, for kernels.
    pub launch: Option<Launch>,
    /// The resources of the device that it used.
    pub resources: Resources,
    /// Correlation id of the call that submitted it; the lower half is shown as the submission id.
    pub correlation: u64,
    /// Event ids of the work that it waited for.
    pub waits: &'a [EventId],
    /// Further properties.
    pub details: &'a [Detail<'a>],
    /// Further values, written behind the details.
    pub arguments: &'a [Argument<'a>],
}

/// The entries of one interning table: keys, and the numbers that were sent.
type Table<K> = NumberMap<K, u64>;

/// The key of a stage's specification.
type StageKey = (StageId, Launch);
/// The key of a kernel's description.
type KernelKey = (StageId, HardwareQueue, u32, Resources);

/// The properties of work that do not differ from one run of a kernel to the next.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    stage: StageId,
    queue: HardwareQueue,
    stream: u32,
    resources: Resources,
    launch: Launch,
}

impl Key {
    fn of(work: &RenderStageEvent<'_>) -> Key {
        Key {
            stage: work.stage.id,
            queue: work.queue,
            stream: work.stream,
            resources: work.resources,
            launch: work.launch.unwrap_or_default(),
        }
    }

    fn stage(&self) -> StageKey {
        (self.stage, self.launch)
    }

    fn kernel(&self) -> KernelKey {
        (self.stage, self.queue, self.stream, self.resources)
    }
}

/// The encoded fields that all work with one key has.
#[derive(Copy, Clone, Debug)]
struct Same {
    /// The numbers of device, queue, stage and kernel.
    numbers: Fields,
    /// The launch, in numbers of workgroups.
    launch: Fields,
}

impl Same {
    fn new(queue: &QueueDescription, work: &RenderStageEvent<'_>, stage: u64, kernel: u64) -> Same {
        let numbers = Fields::new(|fields| {
            fields.uint(field::gpu_render_stage_event::GPU_ID, u64::from(queue.gpu));
            fields.uint(
                field::gpu_render_stage_event::HW_QUEUE_IID,
                queue_iid(work.queue),
            );
            fields.uint(field::gpu_render_stage_event::STAGE_IID, stage);
            fields.uint(field::gpu_render_stage_event::KERNEL_IID, kernel);
        });
        let launch = Fields::new(|fields| {
            if let Some(launch) = &work.launch {
                write_launch(fields, launch);
            }
        });
        Same {
            // Keys of one or two bytes, and numbers of at most 5, 5, 10 and 10 bytes.
            numbers: numbers.expect("35 bytes at most"),
            // Two messages of three numbers of at most 5 bytes, in a third.
            launch: launch.expect("43 bytes at most"),
        }
    }
}

/// The device work of one process.
#[derive(Debug)]
pub(super) struct WorkTrack {
    sequence: Sequence,
    stages: Table<StageKey>,
    kernels: Table<KernelKey>,
    queues: Sent,
    contexts: Sent,
    /// The encoded fields of keys that are in both tables.
    same: NumberMap<Key, Same>,
    /// The key and fields used last: work tends to repeat.
    latest: Option<(Key, Same)>,
}

/// Stages have even numbers and queues odd ones: they share a table of the trace, and queues keep their numbers for the
/// whole trace.
fn queue_iid(queue: HardwareQueue) -> u64 {
    u64::from(queue.0) * 2 + 1
}

fn context_iid(context: GpuContext) -> u64 {
    u64::from(context.0) + 1
}

impl WorkTrack {
    pub fn new(sequence: u32) -> WorkTrack {
        WorkTrack {
            sequence: Sequence::new(sequence),
            stages: Table::default(),
            kernels: Table::default(),
            queues: Sent::default(),
            contexts: Sent::default(),
            same: NumberMap::default(),
            latest: None,
        }
    }

    /// Forgets the state that readers have of the sequence.
    pub fn clear(&mut self) {
        self.sequence.clear();
        self.stages.clear();
        self.kernels.clear();
        self.queues.clear();
        self.contexts.clear();
        self.same.clear();
        self.latest = None;
    }

    /// Writes a piece of work.
    #[inline(always)]
    pub fn work<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        queues: &Queues,
        work: &RenderStageEvent<'_>,
        submission: Submission,
    ) -> io::Result<()> {
        if self.stages.len() + self.kernels.len() >= MAX_TABLE_ENTRIES {
            self.clear();
        }
        if self.sequence.is_cleared() {
            let defaults = TracePacketDefaults::default();
            self.sequence.restart(packets, defaults)?;
        }
        let queue = &queues.queues[work.queue.0 as usize];
        let (begun, ()) = packets.begin(
            &mut self.sequence,
            work.start,
            #[inline(always)]
            |fields| fields.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE),
        );
        let packet = packets.encoder();
        let same = self.same(packet, queues, queue, work);
        let body = packet.short_fields(
            #[inline(always)]
            |fields| {
                let body = fields.open(field::trace_packet::GPU_RENDER_STAGE_EVENT);
                fields.uint(field::gpu_render_stage_event::EVENT_ID, work.event.0);
                if let Some(duration) = work.duration {
                    fields.uint(field::gpu_render_stage_event::DURATION, duration);
                }
                fields.uint(
                    field::gpu_render_stage_event::CONTEXT,
                    context_iid(queue.context),
                );
                if work.correlation != 0 {
                    fields.uint(
                        field::gpu_render_stage_event::SUBMISSION_ID,
                        work.correlation & 0xffff_ffff,
                    );
                }
                body
            },
        );
        packet.fields(&same.numbers);
        for id in work.waits {
            packet.uint(field::gpu_render_stage_event::EVENT_WAIT_IDS, id.0);
        }
        packet.fields(&same.launch);
        packet.short_fields(
            #[inline(always)]
            |fields| submission.write(fields),
        );
        for detail in work.details {
            let message = packet.open(field::gpu_render_stage_event::EXTRA_DATA);
            packet.string(extra_data::NAME, detail.name);
            match detail.value {
                DetailValue::Number(value) => {
                    packet.short_fields(|fields| fields.decimal(extra_data::VALUE, value))
                }
                DetailValue::Text(value) => packet.string(extra_data::VALUE, value),
            }
            packet.close(message);
        }
        for argument in work.arguments {
            write_argument(packet, argument);
        }
        packet.close(body);
        packets.end(begun)
    }

    /// The encoded fields that the work shares with other work of its key. Entries of tables that have not been sent
    /// yet are written as interned data of the packet.
    #[inline(always)]
    fn same(
        &mut self,
        packet: &mut Encoder,
        queues: &Queues,
        queue: &QueueDescription,
        work: &RenderStageEvent<'_>,
    ) -> &Same {
        let key = Key::of(work);
        if self
            .latest
            .as_ref()
            .is_none_or(|(latest, _)| *latest != key)
        {
            let same = match self.same.get(&key) {
                Some(same) => *same,
                None => self.introduce(packet, queues, queue, work),
            };
            self.latest = Some((key, same));
        }
        let (_, same) = self.latest.as_ref().expect("it was just set");
        same
    }

    #[cold]
    fn introduce(
        &mut self,
        packet: &mut Encoder,
        queues: &Queues,
        queue: &QueueDescription,
        work: &RenderStageEvent<'_>,
    ) -> Same {
        let key = Key::of(work);
        let (stage, kernel) = (key.stage(), key.kernel());
        if self.same.len() >= MAX_TABLE_ENTRIES {
            self.same.clear();
        }
        if let (Some(stage), Some(kernel)) = (self.stages.get(&stage), self.kernels.get(&kernel)) {
            let same = Same::new(queue, work, *stage, *kernel);
            self.same.insert(key, same);
            return same;
        }
        let interned = packet.open(field::trace_packet::INTERNED_DATA);
        if !self.contexts.has(queue.context.0) {
            self.contexts.mark(queue.context.0);
            let (pid, api) = queues.contexts[queue.context.0 as usize];
            let context = InternedGraphicsContext {
                iid: Some(context_iid(queue.context)),
                pid: Some(pid as i32),
                api: Some(api as i32),
            };
            packet.raw(
                field::interned_data::GRAPHICS_CONTEXTS,
                &context.encode_to_vec(),
            );
        }
        if !self.queues.has(work.queue.0) {
            self.queues.mark(work.queue.0);
            let specification = InternedGpuRenderStageSpecification {
                iid: Some(queue_iid(work.queue)),
                name: Some(named(&queue.name)),
                description: Some(queue.description.clone()),
                category: None,
            };
            packet.raw(
                field::interned_data::GPU_SPECIFICATIONS,
                &specification.encode_to_vec(),
            );
        }
        let count = self.stages.len() as u64;
        let stage_iid = *self.stages.entry(stage).or_insert_with(|| {
            let iid = (count + 1) * 2;
            let specification = stage_specification(iid, work);
            packet.raw(
                field::interned_data::GPU_SPECIFICATIONS,
                &specification.encode_to_vec(),
            );
            iid
        });
        let count = self.kernels.len() as u64;
        let kernel_iid = *self.kernels.entry(kernel).or_insert_with(|| {
            let iid = count + 1;
            let kernel = kernel_description(iid, queue, work);
            packet.raw(
                field::interned_data::COMPUTE_KERNELS,
                &kernel.encode_to_vec(),
            );
            iid
        });
        packet.close(interned);
        let same = Same::new(queue, work, stage_iid, kernel_iid);
        self.same.insert(key, same);
        same
    }
}

/// The size of a launch, as text.
fn description(launch: &Launch) -> String {
    let [x, y, z] = launch.grid;
    match launch.workgroup {
        [0, ..] | [_, 0, _] | [.., 0] => {
            format!("{x} x {y} x {z} work-items, workgroup chosen by the runtime")
        }
        [a, b, c] => format!("{x} x {y} x {z} work-items in workgroups of {a} x {b} x {c}"),
    }
}

/// A name as people see it: damaged files may have work and queues without one.
fn named(name: &str) -> String {
    match name {
        "" => "(no name)".to_owned(),
        name => name.to_owned(),
    }
}

fn stage_specification(
    iid: u64,
    work: &RenderStageEvent<'_>,
) -> InternedGpuRenderStageSpecification {
    let category = if work.stage.kind == WorkKind::Kernel {
        RenderStageCategory::Compute
    } else {
        RenderStageCategory::Other
    };
    InternedGpuRenderStageSpecification {
        iid: Some(iid),
        name: Some(named(work.stage.name)),
        description: work.launch.as_ref().map(description),
        category: Some(category as i32),
    }
}

fn kernel_description(
    iid: u64,
    queue: &QueueDescription,
    work: &RenderStageEvent<'_>,
) -> InternedComputeKernel {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let resources = work.resources;
    let args = [
        ("device", queue.device, true),
        ("stream", work.stream, true),
        ("registers_per_thread", resources.registers, false),
        ("shared_mem_static", resources.static_local, false),
        ("shared_mem_dynamic", resources.dynamic_local, false),
        ("private_mem_per_thread", resources.private, false),
    ];
    InternedComputeKernel {
        iid: Some(iid),
        name: (work.stage.kind == WorkKind::Kernel).then(|| named(work.stage.name)),
        demangled_name: text(work.stage.demangled),
        arch: text(work.stage.architecture),
        args: args
            .into_iter()
            .filter(|(_, value, always)| *always || *value != 0)
            .map(|(name, value, _)| ExtraComputeArg {
                name_field: Some(extra_compute_arg::NameField::Name(name.to_owned())),
                value: Some(extra_compute_arg::Value::UintValue(u64::from(value))),
            })
            .collect(),
    }
}

fn write_launch(packet: &mut Encoder, launch: &Launch) {
    if let Some(groups) = launch.workgroups() {
        let message = packet.open(field::gpu_render_stage_event::LAUNCH);
        write_size(
            packet,
            field::gpu_render_stage_event::compute_kernel_launch::GRID_SIZE,
            groups,
        );
        write_size(
            packet,
            field::gpu_render_stage_event::compute_kernel_launch::WORKGROUP_SIZE,
            launch.workgroup,
        );
        packet.close(message);
    }
}

fn write_size(packet: &mut Encoder, field: u32, size: [u32; 3]) {
    let message = packet.open(field);
    for (dimension, size) in [dim3::X, dim3::Y, dim3::Z].into_iter().zip(size) {
        packet.uint(dimension, u64::from(size));
    }
    packet.close(message);
}
