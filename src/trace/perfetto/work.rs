//! Device work, as render-stage events.
//!
//! A stage is the name of an event: there is one for each kernel and launch geometry, which is part of its description
//! since every version shows that, and one for each kind of copy, fill or barrier. The properties that a kernel on a
//! queue always has (device, stream, resources) are interned as its kernel description. The tables are bounded: a full
//! table is dropped, and entries still in use are sent again.

use std::fmt::Write as _;
use std::io::{self, Write};

use prost::Message;

use super::names::Sent;
use super::packets::{NEEDS_STATE, PacketWriter, WrittenSequence};
use super::schema::field::gpu_render_stage_event::{dim3, extra_data};
use super::schema::gpu_render_stage_event::{ExtraComputeArg, extra_compute_arg};
use super::schema::interned_gpu_render_stage_specification::RenderStageCategory;
use super::schema::{
    InternedComputeKernel, InternedGpuRenderStageSpecification, InternedGraphicsContext,
    TracePacketDefaults, field, interned_graphics_context,
};
use super::wire::{EncodedFields, Encoder, ShortFields};
use crate::model::{EventId, Launch, QueueIndex, Resources, StageId, Value, Work, WorkKind};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ProcessId};

/// Maximum number of stages and kernels in the tables of one sequence.
const MAX_TABLE_ENTRIES: usize = 4096;

pub(super) use interned_graphics_context::Api as ContextApi;

/// A context of a compute API in one process.
#[derive(Copy, Clone, Debug)]
pub(super) struct GpuContext {
    /// Its number in the trace.
    pub number: u32,
    pub process: ProcessId,
    pub api: ContextApi,
}

/// A queue of a device, in one process.
#[derive(Clone, Debug)]
pub(super) struct HardwareQueue {
    /// The name of its row, unique among those of the trace.
    pub name: String,
    /// Further properties, as text.
    pub description: &'static str,
    /// Its device, as an index into the devices of the trace. By its number in its process new versions of Perfetto group
    /// work; the number is the same.
    pub gpu: u32,
    /// Its context.
    pub context: GpuContext,
}

#[inline(always)]
fn write_detail(packet: &mut ShortFields<'_>, name: [u8; 8], value: Option<i64>) {
    if let Some(value) = value {
        let message = packet.open(field::gpu_render_stage_event::EXTRA_DATA);
        packet.constant(name);
        packet.nanoseconds(extra_data::VALUE, value);
        packet.close(message);
    }
}

/// Writes the properties of work that have no fields of their own.
fn write_properties(packet: &mut Encoder, work: &Work<'_>) {
    if work.bytes > 0 {
        write_property(packet, "bytes", Value::Int(work.bytes as i64));
    }
    if work.status != 0 {
        write_property(packet, "status", Value::Int(work.status.into()));
    }
    if let Some(samples) = work.samples {
        write_property(packet, "samples", Value::Int(samples.samples as i64));
        if samples.dropped as i64 > 0 {
            write_property(
                packet,
                "samples dropped",
                Value::Int(samples.dropped as i64),
            );
        }
        if !samples.leading.is_empty() {
            write_property(packet, "waves", Value::Text(&samples.leading));
        }
    }
    // Older versions of Perfetto show no arrows, and event ids only beside calls.
    let mut waits_for = String::new();
    for event in work.waits {
        let comma = if waits_for.is_empty() { "" } else { ", " };
        write!(waits_for, "{comma}{}", event.0).expect("a string can be written to");
    }
    if !work.waits.is_empty() {
        write_property(packet, "waits_for", Value::Text(&waits_for));
    }
    if let Some(why) = work.unfinished {
        write_property(packet, "unfinished", Value::Text(why));
    }
    for argument in work.arguments {
        write_property(packet, argument.name, argument.value);
    }
}

/// Writes a property that every version shows: its value is a text.
fn write_property(packet: &mut Encoder, name: &str, value: Value<'_>) {
    let message = packet.open(field::gpu_render_stage_event::EXTRA_DATA);
    packet.string(extra_data::NAME, name);
    match value {
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

/// The entries of one interning table: keys, and the numbers that were sent.
type InternTable<K> = NumberMap<K, u64>;

/// The key of a stage's specification.
type StageKey = (StageId, Launch);
/// The key of a kernel's description.
type KernelKey = (StageId, QueueIndex, u32, Resources);

/// The properties of work that do not differ from one run of a kernel to the next.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct ConstantProperties {
    stage: StageId,
    queue: QueueIndex,
    stream: u32,
    resources: Resources,
    launch: Launch,
}

impl ConstantProperties {
    fn of(work: &Work<'_>) -> ConstantProperties {
        ConstantProperties {
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
    numbers: EncodedFields,
    /// The launch, in numbers of workgroups.
    launch: EncodedFields,
}

impl Same {
    fn new(queue: &HardwareQueue, work: &Work<'_>, stage: u64, kernel: u64) -> Same {
        let numbers = EncodedFields::new(|fields| {
            fields.uint(field::gpu_render_stage_event::GPU_ID, u64::from(queue.gpu));
            fields.uint(
                field::gpu_render_stage_event::HW_QUEUE_IID,
                queue_iid(work.queue),
            );
            fields.uint(field::gpu_render_stage_event::STAGE_IID, stage);
            fields.uint(field::gpu_render_stage_event::KERNEL_IID, kernel);
        });
        let launch = EncodedFields::new(|fields| {
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
    sequence: WrittenSequence,
    stages: InternTable<StageKey>,
    kernels: InternTable<KernelKey>,
    queues: Sent,
    contexts: Sent,
    /// The encoded fields of keys that are in both tables.
    same: NumberMap<ConstantProperties, Same>,
    /// The key and fields used last: work tends to repeat.
    latest: Option<(ConstantProperties, Same)>,
}

/// Stages have even numbers and queues odd ones: they share a table of the trace, and queues keep their numbers for the
/// whole trace.
fn queue_iid(queue: QueueIndex) -> u64 {
    u64::from(queue.0) * 2 + 1
}

fn context_iid(context: GpuContext) -> u64 {
    u64::from(context.number) + 1
}

impl WorkTrack {
    pub fn new(sequence: u32) -> WorkTrack {
        WorkTrack {
            sequence: WrittenSequence::new(sequence),
            stages: InternTable::default(),
            kernels: InternTable::default(),
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

    /// Writes a piece of work with an event id, which is unique in the trace, and a begin.
    #[inline(always)]
    pub fn work<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        queue: &HardwareQueue,
        (event, start): (EventId, Nanos),
        work: &Work<'_>,
    ) -> io::Result<()> {
        if self.stages.len() + self.kernels.len() >= MAX_TABLE_ENTRIES {
            self.clear();
        }
        if self.sequence.is_cleared() {
            let defaults = TracePacketDefaults::default();
            self.sequence.restart(packets, defaults)?;
        }
        let (begun, ()) = packets.begin(
            &mut self.sequence,
            start.0,
            #[inline(always)]
            |fields| fields.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE),
        );
        let packet = packets.encoder();
        let same = self.same(packet, queue, work);
        let body = packet.short_fields(
            #[inline(always)]
            |fields| {
                let body = fields.open(field::trace_packet::GPU_RENDER_STAGE_EVENT);
                fields.uint(field::gpu_render_stage_event::EVENT_ID, event.0);
                if let Some(duration) = work.duration {
                    fields.uint(field::gpu_render_stage_event::DURATION, duration);
                }
                fields.uint(
                    field::gpu_render_stage_event::CONTEXT,
                    context_iid(queue.context),
                );
                if work.correlation.is_some() {
                    fields.uint(
                        field::gpu_render_stage_event::SUBMISSION_ID,
                        work.correlation.0 & 0xffff_ffff,
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
            |fields| {
                // Negative before the start, with the names of OpenCL's profiling. A name is field 1 and takes six bytes.
                let since_start = |time: Nanos| time.0.wrapping_sub(start.0) as i64;
                write_detail(fields, *b"\x0a\x06queued", work.queued.map(since_start));
                write_detail(fields, *b"\x0a\x06submit", work.submitted.map(since_start));
            },
        );
        write_properties(packet, work);
        packet.close(body);
        packets.end(begun)
    }

    /// The encoded fields that the work shares with other work of its key. Entries of tables that have not been sent
    /// yet are written as interned data of the packet.
    #[inline(always)]
    fn same(&mut self, packet: &mut Encoder, queue: &HardwareQueue, work: &Work<'_>) -> &Same {
        let key = ConstantProperties::of(work);
        if self
            .latest
            .as_ref()
            .is_none_or(|(latest, _)| *latest != key)
        {
            let same = match self.same.get(&key) {
                Some(same) => *same,
                None => self.introduce(packet, queue, work),
            };
            self.latest = Some((key, same));
        }
        let (_, same) = self.latest.as_ref().expect("it was just set");
        same
    }

    #[cold]
    fn introduce(&mut self, packet: &mut Encoder, queue: &HardwareQueue, work: &Work<'_>) -> Same {
        let key = ConstantProperties::of(work);
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
        if !self.contexts.has(queue.context.number) {
            self.contexts.mark(queue.context.number);
            let context = InternedGraphicsContext {
                iid: Some(context_iid(queue.context)),
                pid: Some(queue.context.process.0 as i32),
                api: Some(queue.context.api as i32),
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
                description: Some(queue.description.to_owned()),
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

fn stage_specification(iid: u64, work: &Work<'_>) -> InternedGpuRenderStageSpecification {
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

fn kernel_description(iid: u64, queue: &HardwareQueue, work: &Work<'_>) -> InternedComputeKernel {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let resources = work.resources;
    let args = [
        ("device", queue.gpu, true),
        ("stream", work.stream, true),
        ("registers_per_thread", resources.registers, false),
        ("accum_vgpr_count", resources.accumulation_registers, false),
        ("sgpr_count", resources.scalar_registers, false),
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
