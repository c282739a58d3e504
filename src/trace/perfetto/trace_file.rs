//! The packets that describe a whole trace: its clocks, its machine and devices, processes and tracks.
//!
//! Packets reach the file whole and in order, so that the file is a readable trace at any moment.

use std::io::{self, Write};

use super::events::EventTrack;
use super::header;
use super::packets::{CLEARED, NEEDS_STATE, PacketWriter};
use super::schema::trace_packet::Data;
use super::schema::{
    CounterDescriptor, GpuInfo, InternedData, ProcessDescriptor, ProcessTree, SystemInfo,
    ThreadDescriptor, TraceAttributes, TracePacket, TraceStats, TraceUuid, TrackDescriptor,
    Utsname, counter_descriptor, gpu_info, process_tree, trace_attributes, trace_stats,
};
use crate::model::{Agent, AgentIndex, CounterUnit, Process, SystemClocks, TraceHeader};
use gputrail_record::{ProcessId, ThreadId};

/// The sequence of the packets that describe the trace itself.
const DESCRIPTIONS: u32 = 1;

/// The output of a trace. A trait object, so that the code that makes traces is compiled once, with the library.
pub(super) type Out<'a> = Box<dyn Write + Send + 'a>;

/// A process of the trace.
#[derive(Copy, Clone, Debug)]
pub(super) struct ProcessTrack {
    pub uuid: u64,
    pub pid: ProcessId,
}

/// A sequence of packets about samples.
#[derive(Debug)]
pub(super) struct SampleSequence {
    number: u32,
    begun: bool,
}

/// A trace that is being written.
pub(super) struct TraceFile<'a> {
    pub packets: PacketWriter<Out<'a>>,
    /// The number of tracks of events.
    tracks: u32,
    /// The number of the last sequence.
    sequences: u32,
    /// Mixed into the ids of tracks, so that the tracks of merged traces stay distinct.
    seed: u64,
    /// The number of lost records. It becomes part of the statistics that every version of Perfetto shows.
    pub lost: u64,
    /// Whether a recording in the trace is incomplete by an unknown number of records. Perfetto shows this as a failed
    /// final flush, which it counts as a loss of data.
    pub ended_early: bool,
    /// BOOTTIME and MONOTONIC, read at the same instants.
    monotonic: Vec<(u64, u64)>,
}

impl<'a> TraceFile<'a> {
    /// A trace that has yet to be [begun](TraceFile::begin).
    pub fn new(out: Out<'a>) -> TraceFile<'a> {
        TraceFile {
            packets: PacketWriter::new(out),
            tracks: 0,
            sequences: DESCRIPTIONS,
            seed: 0,
            lost: 0,
            ended_early: false,
            monotonic: Vec::new(),
        }
    }

    /// Begins the trace. Its identity distinguishes it from other traces.
    pub fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        let TraceHeader {
            identity,
            clocks,
            machine,
            ..
        } = header;
        self.seed = *identity;
        self.packets.set_start(clocks.boottime.0);
        self.describe(Data::ExtensionDescriptor(header::extensions()))?;
        self.describe(Data::TraceUuid(TraceUuid {
            msb: Some(mix(self.seed) as i64),
            lsb: Some(mix(self.seed ^ clocks.boottime.0) as i64),
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

    /// Writes the system clocks, read at one instant. No time in the trace is converted with them: they serve to merge
    /// it with other traces.
    pub fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        if clocks.monotonic.is_some() {
            self.monotonic.push((clocks.boottime.0, clocks.monotonic.0));
        }
        self.packets.message(&TracePacket {
            timestamp: Some(clocks.boottime.0),
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
    pub fn agents(&mut self, agents: &[Agent]) -> io::Result<()> {
        self.describe(Data::GpuInfo(GpuInfo {
            gpus: agents
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

    /// Declares a process, under `name`. Viewers sort processes by their order, lowest first.
    pub fn process(&mut self, process: &Process<'_>, name: &str) -> io::Result<ProcessTrack> {
        let pid = process.pid;
        let uuid = self.uuid(IdSpace::Process, pid.0, 0);
        if let [_, arguments @ ..] = process.command
            && !name.contains(' ')
        {
            // Trace processor reads command lines from here, and calls the process by the first word, up to a space.
            let words = [&name].into_iter().chain(arguments);
            self.describe(Data::ProcessTree(ProcessTree {
                processes: vec![process_tree::Process {
                    pid: Some(pid.0 as i32),
                    cmdline: words.map(|&word| word.to_owned()).collect(),
                }],
            }))?;
        }
        let command = process.command.iter();
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            process: Some(ProcessDescriptor {
                pid: Some(pid.0 as i32),
                cmdline: command.map(|&argument| argument.to_owned()).collect(),
                legacy_sort_index: process.order,
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
        tid: ThreadId,
        name: &str,
        order: Option<i32>,
    ) -> io::Result<EventTrack> {
        let uuid = self.uuid(IdSpace::Thread, process.pid.0, tid.0);
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: Some(process.uuid),
            thread: Some(ThreadDescriptor {
                pid: Some(process.pid.0 as i32),
                tid: Some(i64::from(tid.0)),
                legacy_sort_index: order,
                thread_name: known(name),
                reference_timestamp_us: None,
            }),
            ..TrackDescriptor::default()
        }))?;
        Ok(self.event_track(uuid))
    }

    /// Declares a track of slices, or of a counter with a unit, below the track with an id or of the whole trace.
    pub fn track(
        &mut self,
        parent_uuid: Option<u64>,
        name: &str,
        counter: Option<CounterUnit>,
    ) -> io::Result<EventTrack> {
        let uuid = self.uuid(IdSpace::Other, self.tracks, 0);
        self.describe(Data::TrackDescriptor(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid,
            name: Some(name.to_owned()),
            counter: counter.map(counter_of),
            ..TrackDescriptor::default()
        }))?;
        Ok(self.event_track(uuid))
    }

    fn event_track(&mut self, uuid: u64) -> EventTrack {
        self.tracks += 1;
        EventTrack::new(self.next_sequence(), uuid)
    }

    /// The number of another sequence.
    pub fn next_sequence(&mut self) -> u32 {
        self.sequences += 1;
        self.sequences
    }

    /// A time of the trace in CLOCK_MONOTONIC, as Perfetto converts it back; `None` if no snapshot contains that clock.
    pub fn monotonic(&self, boottime: u64) -> Option<u64> {
        let after = self.monotonic.partition_point(|(own, _)| *own <= boottime);
        let (own, monotonic) = self.monotonic.get(after.saturating_sub(1))?;
        Some(boottime.wrapping_sub(*own).wrapping_add(*monotonic))
    }

    /// Creates a sequence for packets about samples.
    pub fn sample_sequence(&mut self) -> SampleSequence {
        SampleSequence {
            number: self.next_sequence(),
            begun: false,
        }
    }

    /// Writes a packet about samples, with its interned data.
    pub fn sample_packet(
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

    /// Ends the trace.
    pub fn end(&mut self) -> io::Result<()> {
        let lost = std::mem::take(&mut self.lost);
        let ended_early = std::mem::take(&mut self.ended_early);
        if let Some(stats) = loss_statistics(lost, ended_early) {
            self.describe(Data::TraceStats(stats))?;
        }
        self.packets.flush()
    }

    fn describe(&mut self, data: Data) -> io::Result<()> {
        self.packets.message(&TracePacket {
            trusted_packet_sequence_id: Some(DESCRIPTIONS),
            data: Some(data),
            ..TracePacket::default()
        })
    }

    fn uuid(&self, kind: IdSpace, first: u32, second: u32) -> u64 {
        mix(mix(self.seed ^ kind as u64) ^ u64::from(first) << 32 ^ u64::from(second))
    }
}

/// The properties of a counter with this unit.
fn counter_of(unit: CounterUnit) -> CounterDescriptor {
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
    CounterDescriptor {
        unit: unit.map(|unit| unit as i32),
        unit_name: unit_name.map(str::to_owned),
    }
}

/// The text, or `None` if it is empty: unknown properties are left out.
fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The kind of a track, for its id.
#[derive(Copy, Clone)]
enum IdSpace {
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
