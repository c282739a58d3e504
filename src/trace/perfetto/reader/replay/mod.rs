//! Perfetto traces as producers of the [model](crate::model).
//!
//! This works for all traces. Traces of gputrail come back as they were before they were written. In traces of other
//! programs, slices of threads are calls, and render stages are work; their events are brought into the order of their
//! times in a [`ReorderWindow`](order::ReorderWindow), since each sequence of packets is written by itself. What the
//! model cannot hold is counted in [`Replayed::left_out`].
//!
//! Work is joined with its call by the ids that the call names. All that waits takes bounded memory, whatever the trace: texts
//! that a few bytes of a packet refer to count each time that they are held.
//!
//! # Packets
//!
//! | packet | read | not read |
//! |---|---|---|
//! | `TrackEvent` | slices, instants, values of counters, flows, correlation ids, ties of calls to work; categories, joined by commas; arguments with their types, tables and lists as JSON; of units ns, count, bytes, `%`, `B/s` | `proto_value`, `nested_value`, `legacy_event` without a type, source locations, callstacks, log messages, other typed fields: counted |
//! | `TrackEvent` of the categories `rocm_kernel_dispatch`, `rocm_memory_copy`, `rocm_hip_stream` (rocprof-sys), `device_hip`, `device_hsa` (omnitrace), `kernel_dispatch`, `memory_copy` (rocprofv3), on tracks that are of no thread | work of the queue that the track stands for, tied to the call by their flow; of the arguments `begin_ns`, `end_ns`, `corr_id`, `stream_id`, `grid_size`, `workgroup_size`, sizes of segments, registers, bytes; others stay | `delta_ns` |
//! | `TrackDescriptor` | name, parent, order; unit, multiplier and differences of a counter | `process_labels`, `description`, merging of tracks |
//! | `ProcessDescriptor`, `ThreadDescriptor` (in tracks), `ProcessTree` | ids, names, command lines, order | |
//! | `GpuRenderStageEvent` | work with ids and waits (work without an id gets one), times, device, queue, process, API, name, kind, architecture, registers, memory, stream, launch; of `extra_data` times of queueing, bytes, status, samples, reasons; other properties as arguments | `render_target_handle`, `render_pass_handle` and their like of graphics |
//! | `GpuInfo` | devices | `uuid` |
//! | `GpuCounterEvent` | counters; of other programs as counters of tracks `GPU 0 NAME` | values with an interned description: counted |
//! | `StreamingProfilePacket`, counts of samples | those of gputrail's traces | others: counted |
//! | `ClockSnapshot` | the system clocks; clocks of packets become BOOTTIME | |
//! | `SystemInfo`, `TraceUuid`, `TraceAttributes`, `TraceStats` | machine, attributes, lost records | |
//! | `ExtensionDescriptor`, groups compressed with zlib | all | groups compressed with zstd: damage |
//! | others (ftrace, process statistics, heap profiles, `PerfSample`, the configuration, ...) | | counted by kind |
//!
//! # Limits
//!
//! What exceeds these is counted as left out, and so are events that come later than the window allows.
//!
//! | limit | of |
//! |---|---|
//! | 16 MiB | arguments of an event |
//! | 128 MiB | arguments of open slices, of slices that wait for their outermost one, and of work whose call has not come |
//! | 64 MiB each | names of slices and functions; of stages and kernels; names and command lines of processes |
//! | 65 536 | arguments, flows or categories of an event |

mod activity;
#[cfg(test)]
mod activity_tests;
mod counters;
mod declare;
mod held;
mod host;
mod labels;
mod limits;
mod order;
mod processes;
mod replaying;
mod slices;
mod stacks;
mod stages;
mod tally;
#[cfg(test)]
mod tests;
mod work;

use std::io::{self, Read};

pub use tally::CountedParts;

use super::check::{our_version, rare};
use super::findings::{Findings, PacketPosition};
use super::{HostEvent, Known, Packet, ReadOutcome, TraceInput, Visitor, WorkEvent, field, read};
use crate::model::{
    self, Agent, AgentIndex, Consumer, Loss, Producer, SamplerIndex, StackFrame, SystemClocks,
    TraceHeader, UNKNOWN_DEVICE,
};
use crate::perfetto::samples;
use crate::perfetto::schema::gpu_counter_event::GpuCounter;
use crate::perfetto::schema::{
    BuiltinClock, ClockSnapshot, GpuCounterEvent, GpuInfo, PcSamples, SystemInfo, ThreadDescriptor,
    TraceAttributes, TraceStats, TraceUuid, gpu_info, trace_attributes,
};
use counters::OwnBlock;
pub(super) use declare::is_own_track;
use gputrail_record::{Kind, Nanos, ProcessId, ThreadId};
use limits::{MAX_GPUS, MAX_PROCESSES};
use replaying::Replaying;
use stacks::Stacks;

/// The outcome of reading a trace.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Its findings and sizes.
    pub outcome: ReadOutcome,
    /// The version of gputrail that made it; `None` for other traces.
    pub version: Option<String>,
    /// Number of pieces of work that no call in the trace names: their enqueue time is unknown.
    pub untied: u64,
    /// The parts of the trace that the model does not hold.
    pub left_out: Vec<CountedParts>,
    /// The events that the model holds in another order than the trace's times.
    pub late: Vec<CountedParts>,
}

/// A producer that reads a trace to its end.
pub struct TraceReplay<'a> {
    source: TraceInput<'a>,
}

impl<'a> TraceReplay<'a> {
    /// A producer of the trace in `source`.
    pub fn new(source: impl Read + 'a) -> TraceReplay<'a> {
        TraceReplay {
            source: Box::new(source),
        }
    }
}

impl Producer for TraceReplay<'_> {
    type Outcome = Replayed;

    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Replayed> {
        let mut replaying = Replaying::new(consumer);
        let outcome = read(self.source, &mut replaying);
        replaying.guard(|replaying| replaying.finish(&outcome.known));
        match replaying.failed {
            Some(error) => Err(error),
            None => Ok(Replayed {
                outcome,
                version: replaying.version,
                untied: replaying.untied,
                left_out: replaying.left_out.into_list(),
                late: replaying.late.into_list(),
            }),
        }
    }
}

impl Visitor for Replaying<'_> {
    fn packet(&mut self, packet: &Packet<'_>, known: &Known, _: &mut Findings) {
        (self.machine, self.position) = (packet.machine, packet.position);
        self.guard(|replaying| replaying.read_packet(packet, known));
    }

    fn host(&mut self, _: PacketPosition, event: &HostEvent<'_>, _: &mut Findings) {
        self.guard(|replaying| replaying.read_event(event));
    }

    fn work(&mut self, _: PacketPosition, event: &WorkEvent<'_>, _: &mut Findings) {
        self.guard(|replaying| replaying.read_work(event));
    }

    fn stacks(&mut self, packet: &Packet<'_>, frames: &mut dyn FnMut(u64) -> Vec<StackFrame>) {
        self.guard(|replaying| replaying.read_stacks(packet, frames));
    }
}

impl Replaying<'_> {
    /// Runs `pass_on`, unless the consumer has failed.
    #[inline]
    fn guard(&mut self, pass_on: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failed.is_none()
            && let Err(error) = pass_on(self)
        {
            self.failed = Some(error);
        }
    }

    fn read_packet(&mut self, packet: &Packet<'_>, known: &Known) -> io::Result<()> {
        let (kind, data) = packet.data;
        let time = packet.time.unwrap_or_default();
        match kind {
            field::trace_packet::TRACK_EVENT | field::trace_packet::GPU_RENDER_STAGE_EVENT => {}
            field::trace_packet::TRACK_DESCRIPTOR => self.describe(data, known),
            field::trace_packet::PROCESS_TREE => self.describe_commands(data),
            field::trace_packet::CLOCK_SNAPSHOT => return self.read_clocks(data),
            field::trace_packet::SYSTEM_INFO => {
                self.version = our_version(packet).or(self.version.take());
                if let (Some(header), Some(system)) = (&mut self.header, rare(data)) {
                    read_machine(&mut header.0, system);
                }
            }
            field::trace_packet::TRACE_UUID => {
                if let (Some(header), Some(uuid)) = (&mut self.header, rare::<TraceUuid>(data)) {
                    header.0.identity = uuid.msb() as u64;
                }
            }
            field::trace_packet::TRACE_ATTRIBUTES => {
                self.begin(time)?;
                return self.read_attributes(data);
            }
            field::trace_packet::GPU_INFO => {
                self.begin(time)?;
                return self.read_devices(data);
            }
            field::trace_packet::PC_SAMPLES => {
                self.begin(time)?;
                match rare::<PcSamples>(data) {
                    Some(message) => return self.read_samples(packet.sequence, &message),
                    None => self.leave_out("packet of samples that is too long or damaged", 1),
                }
            }
            field::trace_packet::GPU_COUNTER_EVENT => {
                self.begin(time)?;
                return self.read_counters(data, packet.time);
            }
            field::trace_packet::THREAD_DESCRIPTOR => {
                let thread = rare::<ThreadDescriptor>(data).unwrap_or_default();
                if let Some(pid) = Stacks::process_of(&thread) {
                    self.begin(time)?;
                    let process = self.process(pid)?;
                    self.stacks.begin(packet.sequence, process, &thread);
                }
            }
            field::trace_packet::TRACE_STATS => {
                self.begin(time)?;
                return self.read_losses(data);
            }
            // Samples are read with their callstacks. Extensions are declared again when they are written.
            0
            | field::trace_packet::STREAMING_PROFILE_PACKET
            | field::trace_packet::EXTENSION_DESCRIPTOR => {}
            kind => self.left_out.add(packets_of_kind(kind), packet.position, 1),
        }
        Ok(())
    }

    fn read_clocks(&mut self, data: &[u8]) -> io::Result<()> {
        let readings = rare::<ClockSnapshot>(data).unwrap_or_default().clocks;
        // Snapshots with a clock of a sequence's own describe that clock.
        if readings.iter().any(|clock| clock.clock_id() >= 64) {
            return Ok(());
        }
        let reading = |id: BuiltinClock| {
            let clock = readings.iter().find(|clock| clock.clock_id() == id as u32);
            Nanos(clock.and_then(|clock| clock.timestamp).unwrap_or(0))
        };
        let clocks = SystemClocks {
            boottime: reading(BuiltinClock::Boottime),
            monotonic: reading(BuiltinClock::Monotonic),
            monotonic_raw: reading(BuiltinClock::MonotonicRaw),
            realtime: reading(BuiltinClock::Realtime),
        };
        if clocks.boottime == Nanos::NONE || self.machine != 0 {
            return Ok(());
        }
        self.stacks.snapshot(clocks.boottime.0, clocks.monotonic.0);
        match self.header.as_deref_mut() {
            Some((header, _)) if header.clocks == SystemClocks::default() => header.clocks = clocks,
            Some((_, further)) if further.len() < MAX_PROCESSES => further.push(clocks),
            Some(_) => {}
            None => return self.stream.consumer.clocks(&clocks),
        }
        Ok(())
    }

    fn read_attributes(&mut self, data: &[u8]) -> io::Result<()> {
        use trace_attributes::attribute::Value;
        let attributes = rare::<TraceAttributes>(data).unwrap_or_default().attribute;
        let attributes = attributes.into_iter().map(|attribute| {
            let value = match attribute.value {
                Some(Value::StringValue(text)) => text,
                Some(Value::LongValue(number)) => number.to_string(),
                None => String::new(),
            };
            (attribute.key.unwrap_or_default(), value)
        });
        let attributes: Vec<(String, String)> = attributes.collect();
        self.stream.consumer.attributes(&attributes)
    }

    fn read_devices(&mut self, data: &[u8]) -> io::Result<()> {
        let gpus = rare::<GpuInfo>(data).unwrap_or_default().gpus;
        let agents: Vec<Agent> = (0..MAX_GPUS)
            .zip(gpus)
            .map(|(index, gpu)| Agent {
                title: title(&gpu, index),
                name: gpu.name.unwrap_or_default(),
                vendor: gpu.vendor.unwrap_or_default(),
                model: gpu.model.unwrap_or_default(),
                architecture: gpu.architecture.unwrap_or_default(),
                pci_address: gpu.pci_bdf.unwrap_or_default(),
                attributes: gpu
                    .extra_info
                    .into_iter()
                    .map(|entry| {
                        let [key, value] = [entry.key, entry.value].map(Option::unwrap_or_default);
                        (key, value)
                    })
                    .filter(|(key, _)| key != model::TITLE)
                    .collect(),
            })
            .collect();
        self.titles = agents.iter().map(|agent| agent.title.clone()).collect();
        self.stream.consumer.agents(AgentIndex(0), &agents)
    }

    fn read_samples(&mut self, sequence: u32, message: &PcSamples) -> io::Result<()> {
        let mut samples = samples::samples(message);
        samples.sampler = SamplerIndex(sequence);
        if let Some(pid) = message.pid {
            samples.process = Some(self.process(ProcessId(pid as u32))?);
        }
        self.stream.consumer.samples(&samples)
    }

    fn read_counters(&mut self, data: &[u8], time: Option<Nanos>) -> io::Result<()> {
        let Some(event) = rare::<GpuCounterEvent>(data) else {
            self.leave_out("packet of counters that is too long or damaged", 1);
            return Ok(());
        };
        let (gpu, titles) = (event.gpu_id(), &self.titles);
        let title = usize::try_from(gpu).ok().and_then(|gpu| titles.get(gpu));
        let title = match (title, gpu) {
            (Some(title), _) => title.clone(),
            (None, -1) => UNKNOWN_DEVICE.to_owned(),
            (None, gpu) => model::agent_title("", AgentIndex(gpu as u32)),
        };
        if let Some(descriptor) = &event.counter_descriptor {
            match OwnBlock::of(descriptor, &title) {
                Some(own) if self.is_own() => {
                    let process = self.process(own.process)?;
                    self.counters.declare_block(
                        &mut self.stream,
                        (process, gpu),
                        descriptor,
                        &own,
                    )?;
                }
                _ => self
                    .counters
                    .declare_tracks(&mut self.stream, (gpu, &title), descriptor)?,
            }
        }
        if event.counters.is_empty() {
            return Ok(());
        }
        let has_value = |counter: &&GpuCounter| counter.value.is_some();
        let values = event.counters.iter().filter(has_value).count() as u64;
        let absent = event.counters.len() as u64 - values;
        let (left_out, reason) = match time {
            Some(time) => (
                self.counters.values(&mut self.stream, time, &event)?,
                "value of a counter of a device without a description before it",
            ),
            None => (values, "value of a counter of a device without a time"),
        };
        for (count, reason) in [
            (left_out, reason),
            (absent, "counter of a device without a value"),
        ] {
            if count > 0 {
                self.leave_out(reason, count);
            }
        }
        Ok(())
    }

    fn read_stacks(
        &mut self,
        packet: &Packet<'_>,
        frames: &mut dyn FnMut(u64) -> Vec<StackFrame>,
    ) -> io::Result<()> {
        let (_, data) = packet.data;
        self.begin(packet.time.unwrap_or_default())?;
        let left_out = self
            .stacks
            .pass_on(&mut self.stream, packet.sequence, data, frames)?;
        for (count, reason) in [
            (left_out.of_threads, "sample of a thread's stack"),
            (left_out.untimed, "sample of a stack without a time"),
            (left_out.too_many, "sample with one of too many stacks"),
        ] {
            if count > 0 {
                self.leave_out(reason, count);
            }
        }
        Ok(())
    }

    fn read_losses(&mut self, data: &[u8]) -> io::Result<()> {
        let stats = rare::<TraceStats>(data).unwrap_or_default();
        let lost = stats.buffer_stats.iter();
        let all = lost
            .filter_map(|buffer| buffer.trace_writer_packet_loss)
            .fold(0, u64::saturating_add);
        // Losses that instants have reported are part of the sum.
        let count = all.saturating_sub(std::mem::take(&mut self.lost));
        if count == 0 {
            return Ok(());
        }
        self.stream.consumer.loss(&Loss {
            process: None,
            thread: ThreadId::NONE,
            track: None,
            kind: Kind(0),
            count,
            first: Nanos(0),
            last: Nanos(0),
            time: Nanos(0),
        })
    }

    fn finish(&mut self, known: &Known) -> io::Result<()> {
        self.begin(Nanos(0))?;
        self.pass_on_window(known)?;
        self.finish_activities()?;
        self.pass_on_held()?;
        self.declare_rest(known)?;
        for lane in &mut self.lanes {
            lane.finish(self.stream.consumer, &self.labels)?;
        }
        self.stream.consumer.finish()
    }
}

fn read_machine(header: &mut TraceHeader, system: SystemInfo) {
    let name = system.utsname.unwrap_or_default();
    let machine = &mut header.machine;
    machine.host = system.machine_name.unwrap_or_default();
    machine.system = name.sysname.unwrap_or_default();
    machine.release = name.release.unwrap_or_default();
    machine.version = name.version.unwrap_or_default();
    machine.architecture = name.machine.unwrap_or_default();
    machine.processors = system.num_cpus.unwrap_or(0);
}

/// Names packets of a kind that the model does not hold.
fn packets_of_kind(kind: u32) -> String {
    let name = match kind {
        field::trace_packet::FTRACE_EVENTS => "ftrace_events",
        9 => "process_stats",
        33 => "trace_config",
        36 => "synchronization_marker",
        37 => "profile_packet",
        39 => "packages_list",
        43 => "process_descriptor",
        46 => "trigger",
        51 => "chrome_metadata",
        field::trace_packet::PERF_SAMPLE => "perf_sample",
        69 => "service_event",
        70 => "cpu_info",
        71 => "gpu_mem_total_event",
        _ => return format!("packet of kind {kind}"),
    };
    format!("packet of kind {kind} ({name})")
}

/// The short name of a device of the trace.
pub fn title(gpu: &gpu_info::Gpu, index: u32) -> String {
    let value = |key: &str| {
        let mut more = gpu.extra_info.iter();
        let found = more.find(|entry| entry.key.as_deref() == Some(key));
        found.and_then(|entry| entry.value.clone())
    };
    let derived = || model::agent_title(&value(model::KIND).unwrap_or_default(), AgentIndex(index));
    value(model::TITLE).unwrap_or_else(derived)
}
