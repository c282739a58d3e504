//! The packets of a trace at the level of its contents: processes, threads, calls, queues, work, losses.
//!
//! [`Exporter`](super::Exporter) decides where an event is shown; this module turns the decision into packets. Packets
//! reach the file whole and in order, so that the file is a readable trace at any moment. Memory is bounded by the
//! number of tracks, queues and names.

use std::io::{self, Write};

use super::counters::CounterTrack;
use super::events::{Annotation, Event, EventTrack, Heading, Link, LinkedCall};
use super::header;
use super::names::{Name, Names};
use super::packets::{CLEARED, NEEDS_STATE, Packets, Sequence};
use super::schema::trace_packet::Data;
use super::schema::{
    CounterDescriptor, GpuInfo, InternedData, ProcessDescriptor, ProcessTree, SystemInfo,
    ThreadDescriptor, TraceAttributes, TracePacket, TraceStats, TraceUuid, TrackDescriptor,
    Utsname, counter_descriptor, gpu_info, process_tree, trace_attributes, trace_stats,
    track_event,
};
use super::work::{
    ContextApi, GpuContext, HardwareQueue, QueueDescription, Queues, RenderStageEvent, Submission,
    WorkTrack,
};
use crate::model::{
    Agent, AgentIndex, CounterBlock, CounterIndex, CounterUnit, CounterValue, FlowPoint, Machine,
    SystemClocks,
};

/// The sequence of the packets that describe the trace itself.
const DESCRIPTIONS: u32 = 1;

/// A track of the host: that of a thread, or one of our own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Track(u32);

/// The device work of one process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device(u32);

/// A process of the trace.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ProcessTrack {
    uuid: u64,
    pid: u32,
}

impl ProcessTrack {
    /// The process's id.
    pub(super) fn pid(self) -> u32 {
        self.pid
    }
}

/// A sequence of packets about samples.
#[derive(Debug)]
pub(super) struct SampleSequence {
    number: u32,
    begun: bool,
}

/// A writer of traces.
#[derive(Debug)]
pub struct TraceWriter<W> {
    packets: Packets<W>,
    names: Names,
    queues: Queues,
    tracks: Vec<EventTrack>,
    devices: Vec<WorkTrack>,
    /// Blocks of counters; `None` until they are described.
    counters: Vec<Option<CounterTrack>>,
    /// The number of the last counter.
    last_counter: u32,
    /// The number of the last sequence.
    sequences: u32,
    /// Mixed into the ids of tracks, so that the tracks of merged traces stay distinct.
    seed: u64,
    lost: u64,
    /// Whether a recording in the trace ended early.
    ended_early: bool,
    /// BOOTTIME and MONOTONIC, read at the same instants.
    monotonic: Vec<(u64, u64)>,
}

impl<W: Write> TraceWriter<W> {
    /// A trace that begins at `clocks`, on `machine`. `seed` distinguishes it from other traces.
    pub fn new(
        out: W,
        seed: u64,
        clocks: &SystemClocks,
        machine: &Machine,
    ) -> io::Result<TraceWriter<W>> {
        let mut writer = TraceWriter::blank(out);
        writer.begin_trace(seed, clocks, machine)?;
        Ok(writer)
    }

    /// A trace that has yet to be [begun](TraceWriter::begin_trace).
    pub(super) fn blank(out: W) -> TraceWriter<W> {
        TraceWriter {
            packets: Packets::new(out),
            names: Names::default(),
            queues: Queues::default(),
            tracks: Vec::new(),
            devices: Vec::new(),
            counters: Vec::new(),
            last_counter: 0,
            sequences: DESCRIPTIONS,
            seed: 0,
            lost: 0,
            ended_early: false,
            monotonic: Vec::new(),
        }
    }

    /// Begins a [`blank`](TraceWriter::blank) trace, as [`TraceWriter::new`] does. Must be called first.
    pub(super) fn begin_trace(
        &mut self,
        seed: u64,
        clocks: &SystemClocks,
        machine: &Machine,
    ) -> io::Result<()> {
        self.seed = seed;
        self.packets.set_start(clocks.boottime);
        self.describe(Data::ExtensionDescriptor(header::extensions()))?;
        self.describe(Data::TraceUuid(TraceUuid {
            msb: Some(mix(seed) as i64),
            lsb: Some(mix(seed ^ clocks.boottime) as i64),
        }))?;
        self.clocks(clocks)?;
        self.describe(Data::SystemInfo(SystemInfo {
            utsname: Some(Utsname {
                sysname: known(&machine.system),
                version: known(&machine.version),
                release: known(&machine.release),
                machine: known(&machine.architecture),
            }),
            tracing_service_version: Some(concat!("gputrail ", env!("CARGO_PKG_VERSION")).into()),
            num_cpus: (machine.processors != 0).then_some(machine.processors),
            machine_name: known(&machine.host),
        }))
    }

    /// Compresses the trace from here on, group by group. Must be called first.
    pub fn compress(&mut self) {
        self.packets.compress();
    }

    /// Writes the system clocks, read at one instant. No time in the trace is converted with them: they serve to merge
    /// it with other traces.
    pub fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        if clocks.monotonic != 0 {
            self.monotonic.push((clocks.boottime, clocks.monotonic));
        }
        self.packets.message(&TracePacket {
            timestamp: Some(clocks.boottime),
            trusted_packet_sequence_id: Some(DESCRIPTIONS),
            data: Some(Data::ClockSnapshot(header::snapshot(clocks))),
            ..TracePacket::default()
        })
    }

    /// Writes facts about the trace, for new versions of Perfetto.
    pub fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        use trace_attributes::{Attribute, attribute};
        self.describe(Data::TraceAttributes(TraceAttributes {
            attribute: attributes
                .iter()
                .map(|(key, value)| Attribute {
                    key: Some(key.clone()),
                    value: Some(attribute::Value::StringValue(value.clone())),
                })
                .collect(),
        }))
    }

    /// Describes all devices at once, in the place of those described before; queues name them by their index in this list.
    pub fn gpus(&mut self, gpus: &[Agent]) -> io::Result<()> {
        self.describe(Data::GpuInfo(GpuInfo {
            gpus: gpus
                .iter()
                .zip(0..)
                .map(|(gpu, index)| gpu_info::Gpu {
                    name: known(&gpu.name),
                    vendor: known(&gpu.vendor),
                    model: known(&gpu.model),
                    architecture: known(&gpu.architecture),
                    uuid: None,
                    extra_info: gpu
                        .attributes
                        .iter()
                        .map(|(key, value)| (&key[..], &value[..]))
                        .chain(gpu.own_title(AgentIndex(index)))
                        .map(|(key, value)| gpu_info::KeyValue {
                            key: Some(key.to_owned()),
                            value: Some(value.to_owned()),
                        })
                        .collect(),
                    pci_bdf: known(&gpu.pci_address),
                })
                .collect(),
        }))
    }

    /// Declares a process. Viewers sort processes by `order`, lowest first.
    pub fn process(
        &mut self,
        pid: u32,
        name: &str,
        command: &[&str],
        order: Option<i32>,
    ) -> io::Result<ProcessTrack> {
        let uuid = self.uuid(Kind::Process, pid, 0);
        if let [_, arguments @ ..] = command
            && !name.contains(' ')
        {
            // Trace processor reads command lines from here, and calls the process by the first word, up to a space.
            let words = [&name].into_iter().chain(arguments);
            self.describe(Data::ProcessTree(ProcessTree {
                processes: vec![process_tree::Process {
                    pid: Some(pid as i32),
                    cmdline: words.map(|&word| word.to_owned()).collect(),
                }],
            }))?;
        }
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            process: Some(ProcessDescriptor {
                pid: Some(pid as i32),
                cmdline: command
                    .iter()
                    .map(|&argument| argument.to_owned())
                    .collect(),
                legacy_sort_index: order,
                process_name: known(name),
                ..ProcessDescriptor::default()
            }),
            ..TrackDescriptor::default()
        }))?;
        Ok(ProcessTrack { uuid, pid })
    }

    /// Declares the track of a thread. `name` may be empty. Viewers sort the threads of a process by `order`, lowest first.
    pub fn thread(
        &mut self,
        process: ProcessTrack,
        tid: u32,
        name: &str,
        order: Option<i32>,
    ) -> io::Result<Track> {
        let uuid = self.uuid(Kind::Thread, process.pid, tid);
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: Some(process.uuid),
            thread: Some(ThreadDescriptor {
                pid: Some(process.pid as i32),
                tid: Some(i64::from(tid)),
                legacy_sort_index: order,
                thread_name: known(name),
                reference_timestamp_us: None,
            }),
            ..TrackDescriptor::default()
        }))?;
        Ok(self.add_track(uuid))
    }

    /// Declares a track below another one, for slices that do not nest with the calls on it.
    pub fn child(&mut self, parent: Track, name: &str) -> io::Result<Track> {
        let parent = self.tracks[parent.0 as usize].uuid();
        self.named_track(Some(parent), name)
    }

    /// Declares a track below a process.
    pub fn process_child(&mut self, parent: ProcessTrack, name: &str) -> io::Result<Track> {
        self.named_track(Some(parent.uuid), name)
    }

    /// Declares a track of the whole trace.
    pub fn global(&mut self, name: &str) -> io::Result<Track> {
        self.named_track(None, name)
    }

    /// Declares a counter below a process.
    pub fn process_counter(
        &mut self,
        parent: ProcessTrack,
        name: &str,
        unit: CounterUnit,
    ) -> io::Result<Track> {
        self.counter(Some(parent.uuid), name, unit)
    }

    /// Declares a counter below another track.
    pub fn child_counter(
        &mut self,
        parent: Track,
        name: &str,
        unit: CounterUnit,
    ) -> io::Result<Track> {
        self.counter(Some(self.tracks[parent.0 as usize].uuid()), name, unit)
    }

    /// Declares a counter of the whole trace.
    pub fn global_counter(&mut self, name: &str, unit: CounterUnit) -> io::Result<Track> {
        self.counter(None, name, unit)
    }

    fn counter(
        &mut self,
        parent_uuid: Option<u64>,
        name: &str,
        unit: CounterUnit,
    ) -> io::Result<Track> {
        use counter_descriptor::Unit;
        let (unit, unit_name) = match unit {
            CounterUnit::Unspecified => (None, None),
            CounterUnit::Count => (Some(Unit::Count), None),
            CounterUnit::Percent => (None, Some("%")),
            CounterUnit::Bytes => (Some(Unit::SizeBytes), None),
            CounterUnit::BytesPerSecond => (None, Some("B/s")),
            CounterUnit::Nanoseconds => (Some(Unit::TimeNs), None),
            other => (None, Some(other.name())),
        };
        let uuid = self.uuid(Kind::Other, self.tracks.len() as u32, 0);
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid,
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor {
                unit: unit.map(|unit| unit as i32),
                unit_name: unit_name.map(str::to_owned),
            }),
            ..TrackDescriptor::default()
        }))?;
        Ok(self.add_track(uuid))
    }

    /// A time of the trace in CLOCK_MONOTONIC, as Perfetto converts it back; `None` if no snapshot contains that clock.
    pub(super) fn monotonic(&self, boottime: u64) -> Option<u64> {
        let after = self.monotonic.partition_point(|(own, _)| *own <= boottime);
        let (own, monotonic) = self.monotonic.get(after.saturating_sub(1))?;
        Some(boottime.wrapping_sub(*own).wrapping_add(*monotonic))
    }

    /// Creates a sequence for packets about samples.
    pub(super) fn sample_sequence(&mut self) -> SampleSequence {
        self.sequences += 1;
        SampleSequence {
            number: self.sequences,
            begun: false,
        }
    }

    /// Writes a packet about samples, with its interned data.
    pub(super) fn sample_packet(
        &mut self,
        sequence: &mut SampleSequence,
        interned_data: Option<InternedData>,
        data: Data,
    ) -> io::Result<()> {
        let first = !std::mem::replace(&mut sequence.begun, true);
        self.packets.message(&TracePacket {
            trusted_packet_sequence_id: Some(sequence.number),
            sequence_flags: Some(if first { CLEARED } else { NEEDS_STATE as u32 }),
            first_packet_on_sequence: first.then_some(true),
            interned_data,
            data: Some(data),
            ..TracePacket::default()
        })
    }

    fn named_track(&mut self, parent: Option<u64>, name: &str) -> io::Result<Track> {
        let uuid = self.uuid(Kind::Other, self.tracks.len() as u32, 0);
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: parent,
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        }))?;
        Ok(self.add_track(uuid))
    }

    /// Creates the track for the device work of a process.
    pub fn device(&mut self) -> Device {
        self.sequences += 1;
        self.devices.push(WorkTrack::new(self.sequences));
        Device(self.devices.len() as u32 - 1)
    }

    /// Describes a block of counters, before its first values. Names of counters are unique in the trace.
    pub fn describe_counters(
        &mut self,
        index: CounterIndex,
        block: &CounterBlock,
    ) -> io::Result<()> {
        self.sequences += 1;
        let sequence = Sequence::new(self.sequences);
        let first = self.last_counter + 1;
        self.last_counter += block.counters.len() as u32;
        let track = CounterTrack::new(&mut self.packets, sequence, index.0 + 1, first, block)?;
        let place = index.0 as usize;
        if place >= self.counters.len() {
            self.counters.resize_with(place + 1, || None);
        }
        self.counters[place] = Some(track);
        Ok(())
    }

    /// Writes the values that the counters of a block had since the time before this one. A block that has not been
    /// described has no values.
    pub fn counter_values(
        &mut self,
        index: CounterIndex,
        time: u64,
        values: &[CounterValue],
    ) -> io::Result<()> {
        match self.counters.get_mut(index.0 as usize) {
            Some(Some(track)) => track.values(&mut self.packets, time, values),
            _ => Ok(()),
        }
    }

    /// Declares a context of a compute API.
    pub fn context(&mut self, pid: u32, api: ContextApi) -> GpuContext {
        self.queues.add_context(pid, api)
    }

    /// Declares a queue.
    pub fn queue(&mut self, queue: QueueDescription) -> HardwareQueue {
        self.queues.add_queue(queue)
    }

    /// The number of a name; `None` if too many names have one, and the name has to be written in full.
    pub fn name(&mut self, text: &str) -> Option<Name> {
        self.names.intern(text)
    }

    /// Begins a slice.
    #[inline]
    pub fn begin(&mut self, track: Track, time: u64, event: &Event<'_>) -> io::Result<()> {
        self.event(track, track_event::Type::SliceBegin, time, event)
    }

    /// Whether the names of a function have been sent on a track.
    #[inline(always)]
    pub(super) fn knows_heading(&self, track: Track, heading: &Heading) -> bool {
        self.tracks[track.0 as usize].knows_heading(heading)
    }

    /// Writes a complete call without inner calls and with at most one link, of a function whose names have been sent on
    /// the track.
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        track: Track,
        times: (u64, u64),
        heading: &Heading,
        correlation: u64,
        link: Option<Link>,
    ) -> io::Result<()> {
        self.tracks[track.0 as usize].call(&mut self.packets, times, heading, correlation, link)
    }

    /// Begins a call without annotations, of a function whose names have been sent on the track.
    pub(super) fn begin_call(
        &mut self,
        track: Track,
        time: u64,
        heading: &Heading,
        call: &LinkedCall<'_>,
    ) -> io::Result<()> {
        self.tracks[track.0 as usize].begin_call(&mut self.packets, time, heading, call)
    }

    /// Ends the innermost open slice of a track.
    #[inline(always)]
    pub fn end(&mut self, track: Track, time: u64) -> io::Result<()> {
        self.tracks[track.0 as usize].end(&mut self.packets, time)
    }

    /// Ends the innermost open slice of a track, with further values of the slice.
    pub fn end_with(
        &mut self,
        track: Track,
        time: u64,
        annotations: &[Annotation<'_>],
        flows: &[FlowPoint],
    ) -> io::Result<()> {
        let track = &mut self.tracks[track.0 as usize];
        track.end_with(&mut self.packets, &self.names, time, annotations, flows)
    }

    /// Writes the value that a counter has from `time` on.
    pub fn value(&mut self, counter: Track, time: u64, value: CounterValue) -> io::Result<()> {
        self.tracks[counter.0 as usize].value(&mut self.packets, time, value)
    }

    /// Writes an event without duration.
    pub fn instant(&mut self, track: Track, time: u64, event: &Event<'_>) -> io::Result<()> {
        self.event(track, track_event::Type::Instant, time, event)
    }

    #[inline]
    fn event(
        &mut self,
        track: Track,
        kind: track_event::Type,
        time: u64,
        event: &Event<'_>,
    ) -> io::Result<()> {
        self.tracks[track.0 as usize].event(&mut self.packets, &self.names, kind, time, event)
    }

    /// Writes a piece of device work.
    pub fn work(&mut self, device: Device, work: &RenderStageEvent<'_>) -> io::Result<()> {
        self.submitted_work(device, work, Submission::default())
    }

    /// Writes a piece of device work, and when it was queued and submitted.
    #[inline(always)]
    pub(super) fn submitted_work(
        &mut self,
        device: Device,
        work: &RenderStageEvent<'_>,
        submission: Submission,
    ) -> io::Result<()> {
        let track = &mut self.devices[device.0 as usize];
        track.work(&mut self.packets, &self.queues, work, submission)
    }

    /// Counts lost records. The count becomes part of the statistics that every version of Perfetto shows.
    pub fn lost(&mut self, records: u64) {
        self.lost = self.lost.saturating_add(records);
    }

    /// Notes that a recording is incomplete by an unknown number of records. Perfetto shows this as a failed final
    /// flush, which it counts as a loss of data.
    pub fn ended_early(&mut self) {
        self.ended_early = true;
    }

    /// Sends all state of the sequences again before their next use.
    pub fn reset(&mut self) {
        self.tracks.iter_mut().for_each(EventTrack::clear);
        self.devices.iter_mut().for_each(WorkTrack::clear);
        let counters = self.counters.iter_mut().flatten();
        counters.for_each(CounterTrack::clear);
    }

    /// The size of the trace so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.packets.total()
    }

    /// The number of bytes of complete packets in the file: the length to cut it to after an error.
    pub fn written(&self) -> u64 {
        self.packets.written()
    }

    /// Ends the trace. Only [`TraceWriter::finish`] may follow.
    pub fn end_trace(&mut self) -> io::Result<()> {
        let lost = std::mem::take(&mut self.lost);
        let ended_early = std::mem::take(&mut self.ended_early);
        if let Some(stats) = loss_statistics(lost, ended_early) {
            self.describe(Data::TraceStats(stats))?;
        }
        self.packets.flush()
    }

    /// Writes all packets to the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.packets.flush()
    }

    /// Ends the trace and returns the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_trace()?;
        self.packets.into_inner()
    }

    fn describe(&mut self, data: Data) -> io::Result<()> {
        self.packets.message(&TracePacket {
            trusted_packet_sequence_id: Some(DESCRIPTIONS),
            data: Some(data),
            ..TracePacket::default()
        })
    }

    fn add_track(&mut self, uuid: u64) -> Track {
        self.sequences += 1;
        self.tracks.push(EventTrack::new(self.sequences, uuid));
        Track(self.tracks.len() as u32 - 1)
    }

    fn uuid(&self, kind: Kind, first: u32, second: u32) -> u64 {
        mix(mix(self.seed ^ kind as u64) ^ u64::from(first) << 32 ^ u64::from(second))
    }
}

/// The text, or `None` if it is empty: unknown properties are left out.
fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The kind of a track, for its id.
#[derive(Copy, Clone)]
enum Kind {
    Process = 1,
    Thread = 2,
    Other = 3,
}

/// Spreads a number over 64 bits, never to 0 (the finaliser of splitmix64).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ value >> 31).max(1)
}

/// The statistics that show a loss of data, or `None` without one: `lost` records, and whether recordings ended early.
pub(super) fn loss_statistics(lost: u64, ended_early: bool) -> Option<TraceStats> {
    let outcome = trace_stats::FinalFlushOutcome::FinalFlushFailed;
    let buffer = trace_stats::BufferStats {
        trace_writer_packet_loss: Some(lost),
    };
    (lost > 0 || ended_early).then(|| TraceStats {
        buffer_stats: (lost > 0).then_some(buffer).into_iter().collect(),
        final_flush_outcome: ended_early.then_some(outcome.into()),
    })
}
