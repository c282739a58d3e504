//! The contents of a trace, and how complete it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::check::{RECORDING, our_version, rare};
use super::findings::{Findings, PacketPosition};
use super::replay;
use super::tracks::{TrackId, TrackOf};
use super::{
    EventKind, FieldValue, HostEvent, Known, MessageFields, Packet, ReadOutcome, TraceInput,
    Visitor, WorkEvent, field, read,
};
use crate::model::{self, AgentIndex, category};
use crate::perfetto::schema::{
    BuiltinClock, ClockSnapshot, GpuInfo, PcSamples, SystemInfo, TraceAttributes, TraceStats,
    gpu_info, trace_attributes,
};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, NoteKind, ProcessId};

/// Maximum number of devices, clock descriptions, attributes and notes in the list.
const MAX_ENTRIES: usize = 1000;
/// Maximum number of tracks whose open slices are counted.
const MAX_TRACKS: usize = 1 << 20;

/// A process of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: ProcessId,
    /// Its name; may be empty.
    pub name: String,
    /// Number of its threads that have tracks.
    pub threads: u64,
}

/// A device of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDevice {
    /// Its short name, as its tracks have it: "GPU 0".
    pub title: String,
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// The number of pieces of work that ran on it.
    pub work: u64,
    /// Its address on the PCI bus; empty if unknown.
    pub address: String,
    /// Its links: the other end, and the link in words.
    pub links: Vec<(String, String)>,
}

/// A clock in the trace's clock snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockInfo {
    /// Its name.
    pub name: String,
    /// Number of snapshots that contain it.
    pub snapshots: u64,
}

/// The contents of a trace.
#[derive(Debug, Default)]
pub struct TraceContents {
    /// The outcome of reading it.
    pub outcome: ReadOutcome,
    /// The version of gputrail that made it; `None` for other traces.
    pub version: Option<String>,
    /// The program that wrote it; empty if unknown.
    pub writer: String,
    /// The machine's name; empty if unknown.
    pub host: String,
    /// From the first event of the program to the end of the last, BOOTTIME ns, without what is said about its recording;
    /// `None` without events.
    pub span: Option<(Nanos, Nanos)>,
    /// Number and bytes of the packets, by the kind of their data (its field number).
    pub packets: BTreeMap<u32, (u64, u64)>,
    /// The processes.
    pub processes: Vec<ProcessInfo>,
    /// The devices, by index.
    pub devices: Vec<TraceDevice>,
    /// The system clocks in the clock snapshots.
    pub clocks: Vec<ClockInfo>,
    /// The statements of the trace about the clocks of devices in each process, and their errors.
    pub device_clocks: Vec<String>,
    /// Number of slices.
    pub slices: u64,
    /// Number of slices without an end.
    pub open_slices: u64,
    /// Number of those that are calls, in traces by gputrail.
    pub open_calls: u64,
    /// Number of those that are ranges of markers.
    pub open_ranges: u64,
    /// Number of instants.
    pub instants: u64,
    /// Number of values of counters, also of those of devices.
    pub values: u64,
    /// Number of kernels, and of other work of category COMPUTE or GRAPHICS.
    pub kernels: u64,
    /// Number of other pieces of work.
    pub other_work: u64,
    /// Number of pieces of work without an end, apart from those without times.
    pub unfinished: u64,
    /// Number of pieces of work that completed without times.
    pub untimed: u64,
    /// Number of pieces of work of which no completion is recorded, in a recording that lacks some.
    pub unrecorded: u64,
    /// Number of records that were lost while recording.
    pub lost: u64,
    /// Number of samples of the program counter.
    pub samples: u64,
    /// Number of instructions that waves executed, where they are counted.
    pub executed_instructions: u64,
    /// Number of samples that their agent could not complete.
    pub invalid_samples: u64,
    /// Number of dropped samples, by the totals of their dispatches.
    pub dropped_samples: u64,
    /// How many samples one sample of the flame graph stands for; 0 if unknown.
    pub samples_shown_one_of: u64,
    /// Facts that the trace contains about itself.
    pub attributes: Vec<(String, String)>,
    /// The times at which recordings ended early, BOOTTIME ns, and the reasons.
    pub ended_early: Vec<(Nanos, String)>,
    /// How processes ended that did not end their recordings themselves.
    pub ends: Vec<String>,
    /// What is missing, and why, as recordings say.
    pub missing: Vec<String>,
    /// Our instants about losses and other observations, and the number of each.
    pub notes: BTreeMap<String, u64>,
}

/// Reads a trace to its end.
pub fn info(source: impl Read) -> TraceContents {
    info_of(Box::new(source))
}

fn info_of(source: TraceInput<'_>) -> TraceContents {
    let mut reading = InfoReader::default();
    let outcome = read(source, &mut reading);
    let mut info = reading.info;
    for (id, OpenSlices { open, .. }) in reading.open {
        info.open_slices += open;
        let track = outcome.known.tracks.get(id);
        let name = track.map_or("", |track| outcome.known.texts.get(track.name));
        match track.map(|track| track.of) {
            Some(TrackOf::Thread(..)) if info.version.is_some() => info.open_calls += open,
            Some(TrackOf::Thread(..)) => {}
            _ if ["markers", "ranges"]
                .iter()
                .any(|of| replay::is_own_track(name, of)) =>
            {
                info.open_ranges += open;
            }
            _ => {}
        }
    }
    for (gpu, count) in reading.work {
        let gpu = gpu as usize;
        if gpu < MAX_ENTRIES {
            while info.devices.len() <= gpu {
                info.devices.push(TraceDevice {
                    title: model::agent_title("", AgentIndex(info.devices.len() as u32)),
                    name: String::new(),
                    vendor: String::new(),
                    work: 0,
                    address: String::new(),
                    links: Vec::new(),
                });
            }
            info.devices[gpu].work = count;
        }
    }
    info.span = reading.of_program.or(reading.span);
    info.clocks = clocks(&reading.snapshots);
    info.processes = processes(&outcome.known);
    info.outcome = outcome;
    info
}

/// The links among the properties of a device.
fn links(gpu: &gpu_info::Gpu) -> Vec<(String, String)> {
    let properties = gpu.extra_info.iter().take(MAX_ENTRIES);
    let links = properties.filter_map(|property| {
        let other_end = property.key.as_deref()?.strip_prefix(model::LINK)?;
        Some((other_end.to_owned(), property.value.clone()?))
    });
    links.collect()
}

#[derive(Debug, Default)]
struct InfoReader {
    info: TraceContents,
    /// The time of all events, and that of the program's own.
    span: Span,
    of_program: Span,
    /// The open slices of each track.
    open: NumberMap<TrackId, OpenSlices>,
    /// The number of pieces of work of each device.
    work: NumberMap<u32, u64>,
    snapshots: BTreeMap<u32, u64>,
}

/// The open slices of a track.
#[derive(Debug, Default)]
struct OpenSlices {
    open: u64,
    /// Whether they say how the program was recorded, and not what it did.
    about_recording: bool,
}

type Span = Option<(Nanos, Nanos)>;

fn extend(span: &mut Span, start: Nanos, end: Nanos) {
    let (first, last) = span.get_or_insert((start, end));
    *first = start.min(*first);
    *last = end.max(*last);
}

impl Visitor for InfoReader {
    fn packet(&mut self, packet: &Packet<'_>, _: &Known, _: &mut Findings) {
        let (kind, data) = packet.data;
        // A hostile trace may have any number of kinds.
        if self.info.packets.len() < MAX_ENTRIES || self.info.packets.contains_key(&kind) {
            let (count, bytes) = self.info.packets.entry(kind).or_default();
            *count += 1;
            *bytes += packet.bytes as u64;
        }
        let info = &mut self.info;
        match kind {
            field::trace_packet::SYSTEM_INFO => {
                info.version = our_version(packet).or(info.version.take());
                let system = rare::<SystemInfo>(data).unwrap_or_default();
                if let Some(writer) = system.tracing_service_version {
                    info.writer = writer;
                }
                if let Some(host) = system.machine_name {
                    info.host = host;
                }
            }
            field::trace_packet::GPU_INFO => {
                let gpus = rare::<GpuInfo>(data).unwrap_or_default().gpus;
                let gpus = gpus.into_iter().take(MAX_ENTRIES);
                info.devices = (0..)
                    .zip(gpus)
                    .map(|(index, gpu)| TraceDevice {
                        title: replay::title(&gpu, index),
                        links: links(&gpu),
                        address: gpu.pci_bdf.unwrap_or_default(),
                        name: gpu.name.unwrap_or_default(),
                        vendor: gpu.vendor.unwrap_or_default(),
                        work: 0,
                    })
                    .collect();
            }
            field::trace_packet::TRACE_STATS => {
                for buffer in rare::<TraceStats>(data).unwrap_or_default().buffer_stats {
                    let lost = buffer.trace_writer_packet_loss.unwrap_or(0);
                    info.lost = info.lost.saturating_add(lost);
                }
            }
            field::trace_packet::PC_SAMPLES => {
                let samples = rare::<PcSamples>(data).unwrap_or_default();
                let counted = samples.counts.iter();
                let counted = counted.flat_map(|count| count.outcomes.chunks_exact(3));
                for outcome in counted {
                    info.samples = info.samples.saturating_add(outcome[1]);
                }
                for count in &samples.executions {
                    let all = &mut info.executed_instructions;
                    *all = all.saturating_add(count.executed());
                }
                for totals in &samples.totals {
                    info.dropped_samples = info.dropped_samples.saturating_add(totals.dropped());
                }
                info.invalid_samples = info.invalid_samples.saturating_add(samples.invalid());
                info.samples_shown_one_of = info.samples_shown_one_of.max(samples.shown_one_of());
            }
            field::trace_packet::TRACE_ATTRIBUTES => {
                for attribute in rare::<TraceAttributes>(data).unwrap_or_default().attribute {
                    use trace_attributes::attribute::Value;
                    let (Some(key), Some(Value::StringValue(value))) =
                        (attribute.key, attribute.value)
                    else {
                        continue;
                    };
                    if info.attributes.len() < MAX_ENTRIES {
                        info.attributes.push((key, value));
                    }
                }
            }
            field::trace_packet::GPU_COUNTER_EVENT => info.values += counter_values(data),
            field::trace_packet::CLOCK_SNAPSHOT => {
                let clocks = rare::<ClockSnapshot>(data).unwrap_or_default().clocks;
                let ids: BTreeSet<u32> = clocks.iter().filter_map(|clock| clock.clock_id).collect();
                // Snapshots with a clock of a sequence's own describe that clock.
                if ids.iter().all(|id| *id < 64) {
                    for id in ids {
                        *self.snapshots.entry(id).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
    }

    fn host(&mut self, _: PacketPosition, event: &HostEvent<'_>, _: &mut Findings) {
        extend(&mut self.span, event.time, event.time);
        let mut about_recording =
            [category::RECORDING, category::OVERHEAD].contains(&event.category.text);
        let info = &mut self.info;
        match event.kind {
            EventKind::Begin => {
                info.slices += 1;
                if self.open.len() < MAX_TRACKS || self.open.contains_key(&event.track) {
                    let slices = self.open.entry(event.track).or_default();
                    slices.open += 1;
                    slices.about_recording = about_recording;
                }
            }
            EventKind::End => {
                if let Some(slices) = self.open.get_mut(&event.track) {
                    slices.open = slices.open.saturating_sub(1);
                    about_recording = slices.about_recording;
                }
            }
            EventKind::Instant => {
                info.instants += 1;
                self.note(event);
            }
            EventKind::Counter => info.values += 1,
            EventKind::Other => {}
        }
        let is_counter = matches!(event.kind, EventKind::Counter | EventKind::Other);
        if !(about_recording || is_counter) {
            extend(&mut self.of_program, event.time, event.time);
        }
    }

    fn work(&mut self, _: PacketPosition, event: &WorkEvent<'_>, _: &mut Findings) {
        let end = Nanos(event.start.0.saturating_add(event.duration.unwrap_or(0)));
        extend(&mut self.span, event.start, end);
        extend(&mut self.of_program, event.start, end);
        if event.details.untimed {
            self.info.untimed += 1;
        } else if event.details.unrecorded {
            self.info.unrecorded += 1;
        } else if event.duration.is_none() || event.details.unfinished {
            self.info.unfinished += 1;
        }
        match event.category {
            Some(1 | 2) => self.info.kernels += 1,
            _ => self.info.other_work += 1,
        }
        if self.work.len() < MAX_ENTRIES || self.work.contains_key(&event.gpu) {
            *self.work.entry(event.gpu).or_default() += 1;
        }
    }
}

impl InfoReader {
    /// Counts an instant that gputrail wrote about the recording.
    fn note(&mut self, event: &HostEvent<'_>) {
        if event.category.text != "gputrail" {
            return;
        }
        if event.name.text == RECORDING {
            if let Some(clock) = event.text("clock")
                && self.info.device_clocks.len() < MAX_ENTRIES
            {
                self.info.device_clocks.push(clock.to_owned());
            }
            return;
        }
        let detail = event.text("detail");
        if NoteKind::ENDED_EARLY.name() == Some(event.name.text)
            && self.info.ended_early.len() < MAX_ENTRIES
        {
            let reason = detail.unwrap_or_default().to_owned();
            self.info.ended_early.push((event.time, reason));
        }
        if NoteKind::MISSING.name() == Some(event.name.text)
            && self.info.missing.len() < MAX_ENTRIES
        {
            let what = detail.unwrap_or_default().to_owned();
            return self.info.missing.push(what);
        }
        let ends = NoteKind::PROCESS_ENDS;
        if ends.iter().any(|end| end.name() == Some(event.name.text))
            && self.info.ends.len() < MAX_ENTRIES
        {
            self.info.ends.push(detail.unwrap_or_default().to_owned());
        }
        let note = match detail {
            Some(detail) => format!("{}: {detail}", event.name.text),
            None => event.name.text.to_owned(),
        };
        if self.info.notes.len() < MAX_ENTRIES || self.info.notes.contains_key(&note) {
            *self.info.notes.entry(note).or_default() += 1;
        }
    }
}

/// The number of values in a `GpuCounterEvent`.
fn counter_values(event: &[u8]) -> u64 {
    use field::gpu_counter_event::{COUNTERS, gpu_counter};
    let is_value = |number| matches!(number, gpu_counter::INT_VALUE | gpu_counter::DOUBLE_VALUE);
    let counters = MessageFields::new(event).filter(|field| field.number == COUNTERS);
    let with_value = counters.filter(|counter| match counter.value {
        FieldValue::Bytes(counter) => {
            MessageFields::new(counter).any(|field| is_value(field.number))
        }
        _ => false,
    });
    with_value.count() as u64
}

fn clocks(snapshots: &BTreeMap<u32, u64>) -> Vec<ClockInfo> {
    let clock = |(id, count): (&u32, &u64)| {
        let name = BuiltinClock::try_from(*id as i32);
        let name = name.map(|clock| clock.as_str_name().trim_start_matches("BUILTIN_CLOCK_"));
        ClockInfo {
            name: name.map_or_else(|_| format!("clock {id}"), str::to_owned),
            snapshots: *count,
        }
    };
    snapshots.iter().map(clock).collect()
}

fn processes(known: &Known) -> Vec<ProcessInfo> {
    let mut processes: BTreeMap<ProcessId, (String, u64)> = BTreeMap::new();
    for track in known.tracks.iter() {
        match track.of {
            TrackOf::Process(pid) => {
                processes.entry(pid).or_default().0 = known.texts.get(track.name).to_owned();
            }
            TrackOf::Thread(pid, _) => processes.entry(pid).or_default().1 += 1,
            _ => {}
        }
    }
    processes
        .into_iter()
        .map(|(pid, (name, threads))| ProcessInfo { pid, name, threads })
        .collect()
}
