//! Merging of several traces into one.
//!
//! The packets of a single trace are [copied](copy) as they are. Those of several are copied, too, but ids that are valid in one trace only are renumbered: sequences, tracks, counters, event ids of
//! device work, devices. Traces of one machine share its BOOTTIME and need nothing else. Traces of another machine get
//! a machine id and an offset; [`place`] says how it is found and how far it can be trusted.

mod ftrace;
mod place;
mod rewrite;
mod survey;

use std::io::{self, Read, Write};

use prost::Message;

pub use place::{Placement, Trust, place};
pub use survey::{Survey, survey};

use super::packets::BOOTTIME;
use super::reader::{
    FieldValue, Finding, Findings, MessageField, MessageFields, TraceInput, packets_of,
};
use super::schema::field::gpu_counter_descriptor::{
    self as descriptor, gpu_counter_block as block, gpu_counter_spec as spec,
};
use super::schema::field::{gpu_counter_event as counter, gpu_render_stage_event as stage};
use super::schema::{GpuInfo, TracePacket, field, gpu_info, trace_packet};
use super::trace_file::loss_statistics;
use super::wire::Encoder;
use gputrail_record::number_map::NumberMap;
use rewrite::{
    TracePart, interned, is_sound, of_machine, raw_fields, renamed_counter, renamed_device,
    rewrite, shift_snapshot, shifted, track_of, write_renamed,
};

/// Bits of an event id below the process's own number.
const OWN_BITS: u32 = 40;
/// Maximum number of processes: the upper bits of event ids.
const MAX_PROCESSES: u64 = 1 << (64 - OWN_BITS);
/// Maximum number of sequences.
const MAX_SEQUENCES: usize = 1 << 20;
/// The output is written when it has this many bytes.
const FLUSH_AT: usize = 128 << 10;

/// Merges traces into `out`, each with its survey and its placement. Returns the bytes that could not be read, as
/// findings.
pub fn merge(
    traces: Vec<(impl Read, &Survey, Placement)>,
    mut out: impl Write,
) -> io::Result<Vec<Vec<Finding>>> {
    let boxed = traces.into_iter().map(|(source, survey, placement)| {
        let source: TraceInput<'_> = Box::new(source);
        (source, survey, placement)
    });
    merge_all(boxed.collect(), &mut out)
}

/// Copies all packets of a trace to `out`, byte for byte: also those of kinds that gputrail does not know, with their
/// sequences and what is interned there. Compressed groups are unpacked. Returns the bytes that could not be read, as
/// findings.
pub fn copy(source: impl Read, mut out: impl Write) -> io::Result<Vec<Finding>> {
    copy_all(Box::new(source), &mut out)
}

fn copy_all(source: TraceInput<'_>, out: &mut dyn Write) -> io::Result<Vec<Finding>> {
    let (mut packets, mut findings) = (packets_of(source), Findings::default());
    let mut encoder = Encoder::default();
    while let Some(packet) = packets.next(&mut findings) {
        encoder.raw(field::trace::PACKET, packet.bytes);
        if encoder.len() >= FLUSH_AT {
            out.write_all(encoder.bytes())?;
            encoder.clear();
        }
    }
    if !encoder.is_empty() {
        out.write_all(encoder.bytes())?;
    }
    out.flush()?;
    Ok(findings.list().to_vec())
}

fn merge_all(
    traces: Vec<(TraceInput<'_>, &Survey, Placement)>,
    out: &mut dyn Write,
) -> io::Result<Vec<Vec<Finding>>> {
    let mut merging = Merging {
        out,
        encoder: Encoder::default(),
        sequences: NumberMap::default(),
        processes: NumberMap::default(),
        counters: NumberMap::default(),
        blocks: NumberMap::default(),
        snapshots: NumberMap::default(),
        extensions: None,
    };
    let traces = match <[_; 1]>::try_from(traces) {
        Ok([(source, _, placement)]) if placement.offset == 0 && placement.machine == 0 => {
            return Ok(vec![copy_all(source, merging.out)?]);
        }
        Ok(one) => Vec::from(one),
        Err(several) => several,
    };
    let mut gpus: Vec<(u32, gpu_info::Gpu)> = Vec::new();
    let mut maps = Vec::new();
    for (_, survey, placement) in &traces {
        maps.push(map_gpus(&mut gpus, survey, placement.machine));
    }
    let mut all: Vec<Vec<Finding>> = Vec::new();
    let lost: u64 = traces
        .iter()
        .map(|(_, survey, _)| survey.lost)
        .fold(0, u64::saturating_add);
    let ended_early = traces.iter().any(|(_, survey, _)| survey.ended_early);
    let of = traces.len() as u32;
    for ((index, (source, survey, placement)), map) in (0..).zip(traces).zip(maps) {
        let mut part = TracePart {
            index,
            of,
            placement,
            process: survey.process,
            gpus: map,
            clocks: NumberMap::default(),
        };
        let mut packets = packets_of(source);
        let mut findings = Findings::default();
        let mut first = true;
        while let Some(packet) = packets.next(&mut findings) {
            merging.packet(&mut part, packet.bytes)?;
            if std::mem::take(&mut first) && index == 0 && !gpus.is_empty() {
                let gpus = gpus.iter().map(|(_, gpu)| gpu.clone()).collect();
                merging.message(trace_packet::Data::GpuInfo(GpuInfo { gpus }))?;
            }
        }
        all.push(findings.list().to_vec());
    }
    if let Some(stats) = loss_statistics(lost, ended_early) {
        merging.message(trace_packet::Data::TraceStats(stats))?;
    }
    merging.flush()?;
    Ok(all)
}

/// The numbers in the merged trace of the devices of a trace. Equal devices of one machine are the same device: the
/// first ones, the second ones, and so on.
fn map_gpus(known: &mut Vec<(u32, gpu_info::Gpu)>, survey: &Survey, machine: u32) -> Vec<u32> {
    let mut taken = Vec::new();
    for gpu in &survey.gpus {
        let same = (0..).zip(known.iter()).find(|(index, (other, candidate))| {
            *other == machine && candidate == gpu && !taken.contains(index)
        });
        let index = match same {
            Some((index, _)) => index,
            None => {
                known.push((machine, gpu.clone()));
                known.len() as u32 - 1
            }
        };
        taken.push(index);
    }
    taken
}

/// Maximum number of counters, and of blocks of counters, that are renumbered.
const MAX_COUNTERS: usize = 1 << 20;

/// The number in the merged trace of `id`.
fn renumbered(numbers: &mut NumberMap<(u32, u64), u64>, part: &TracePart, id: u64) -> u64 {
    let next = numbers.len() as u64 + 1;
    match numbers.get(&(part.index, id)) {
        Some(number) => *number,
        None if numbers.len() >= MAX_COUNTERS => id,
        None => *numbers.entry((part.index, id)).or_insert(next),
    }
}

struct Merging<W> {
    out: W,
    encoder: Encoder,
    /// New numbers of the sequences, by trace and number in it.
    sequences: NumberMap<(u32, u32), u32>,
    /// New numbers of the processes in event ids, by trace and number in it.
    processes: NumberMap<(u32, u64), u64>,
    /// New numbers of counters and of blocks of them, by trace and number in it.
    counters: NumberMap<(u32, u64), u64>,
    blocks: NumberMap<(u32, u64), u64>,
    /// BOOTTIME of the latest snapshot of each machine's clocks.
    snapshots: NumberMap<u32, u64>,
    extensions: Option<Vec<u8>>,
}

impl<W: Write> Merging<W> {
    fn packet(&mut self, part: &mut TracePart, packet: &[u8]) -> io::Result<()> {
        let (mut sequence, mut clock, mut flags) = (0, None, 0);
        let mut drop = false;
        let mut extensions = None;
        for field in MessageFields::new(packet) {
            match (field.number, field.value) {
                (field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID, FieldValue::Number(number)) => {
                    sequence = number as u32
                }
                (field::trace_packet::TIMESTAMP_CLOCK_ID, FieldValue::Number(number)) => {
                    clock = Some(number as u32)
                }
                (field::trace_packet::SEQUENCE_FLAGS, FieldValue::Number(number)) => flags = number,
                // Written once for all traces.
                (field::trace_packet::GPU_INFO | field::trace_packet::TRACE_STATS, _) => {
                    drop = true
                }
                (field::trace_packet::TRACE_UUID, _) => drop |= part.index > 0,
                (field::trace_packet::CLOCK_SNAPSHOT, FieldValue::Bytes(snapshot)) => {
                    drop |= !self.goes_on(part, snapshot);
                }
                (field::trace_packet::EXTENSION_DESCRIPTOR, FieldValue::Bytes(bytes)) => {
                    extensions = Some(bytes)
                }
                _ => {}
            }
        }
        if let Some(bytes) = extensions {
            match &self.extensions {
                Some(known) => drop |= known == bytes,
                None => self.extensions = Some(bytes.to_vec()),
            }
        }
        if flags & 1 != 0 {
            part.clocks.remove(&sequence);
        }
        if drop || !is_sound(packet) {
            return Ok(());
        }
        let number = match self.sequences.get(&(part.index, sequence)) {
            _ if sequence == 0 => 0,
            Some(number) => *number,
            None if self.sequences.len() >= MAX_SEQUENCES => return Ok(()),
            None => {
                let number = self.sequences.len() as u32 + 1;
                self.sequences.insert((part.index, sequence), number);
                number
            }
        };
        let mut out = std::mem::take(&mut self.encoder);
        let open = out.open(field::trace::PACKET);
        let mut timestamp = None;
        for (field, raw) in raw_fields(packet) {
            match (field.number, field.value) {
                (field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID, _) => out.uint(
                    field::trace_packet::TRUSTED_PACKET_SEQUENCE_ID,
                    number.into(),
                ),
                (field::trace_packet::MACHINE_ID, _) => {}
                (field::trace_packet::TIMESTAMP, FieldValue::Number(time)) => {
                    timestamp = Some(time)
                }
                (field::trace_packet::TRACE_PACKET_DEFAULTS, FieldValue::Bytes(defaults)) => {
                    self.defaults(part, sequence, defaults, &mut out);
                }
                (field::trace_packet::CLOCK_SNAPSHOT, FieldValue::Bytes(snapshot)) => {
                    shift_snapshot(part.placement.offset, snapshot, &mut out);
                }
                (field::trace_packet::FTRACE_EVENTS, FieldValue::Bytes(bundle)) => {
                    ftrace::shift_bundle(part.placement.offset, bundle, &mut out);
                }
                (field::trace_packet::TRACK_EVENT, FieldValue::Bytes(event)) => {
                    self.host_event(part, event, &mut out);
                }
                (field::trace_packet::GPU_RENDER_STAGE_EVENT, FieldValue::Bytes(event)) => {
                    self.work(part, event, &mut out)
                }
                (field::trace_packet::GPU_COUNTER_EVENT, FieldValue::Bytes(event)) => {
                    self.counter_event(part, event, &mut out);
                }
                (field::trace_packet::TRACK_DESCRIPTOR, FieldValue::Bytes(track)) => {
                    let open = out.open(field::trace_packet::TRACK_DESCRIPTOR);
                    rewrite(track, &mut out, |field, out| {
                        match (field.number, field.value) {
                            (
                                number @ (field::track_descriptor::UUID
                                | field::track_descriptor::PARENT_UUID),
                                FieldValue::Number(uuid),
                            ) => {
                                out.uint(number, track_of(part, uuid));
                                true
                            }
                            (field::track_descriptor::NAME, FieldValue::Bytes(name)) => {
                                let renamed = renamed_device(part, name);
                                write_renamed(renamed, field::track_descriptor::NAME, out)
                            }
                            _ => false,
                        }
                    });
                    out.close(open);
                }
                (field::trace_packet::INTERNED_DATA, FieldValue::Bytes(data)) => {
                    interned(part, data, &mut out);
                }
                _ => out.append(raw),
            }
        }
        if let Some(time) = timestamp {
            let clock = clock
                .or(part.clocks.get(&sequence).copied())
                .unwrap_or(BOOTTIME);
            let time = match clock {
                BOOTTIME => shifted(time, part.placement.offset),
                _ => time,
            };
            out.uint(field::trace_packet::TIMESTAMP, time);
        }
        if part.placement.machine > 0 {
            out.uint(
                field::trace_packet::MACHINE_ID,
                part.placement.machine.into(),
            );
        }
        out.close(open);
        self.encoder = out;
        if self.encoder.len() >= FLUSH_AT {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether a snapshot of a machine's clocks is later than those before it: readers reject others.
    fn goes_on(&mut self, part: &TracePart, snapshot: &[u8]) -> bool {
        let Some(boottime) = of_machine(snapshot) else {
            return true;
        };
        let boottime = shifted(boottime, part.placement.offset);
        let latest = self.snapshots.entry(part.placement.machine).or_default();
        let later = boottime > *latest;
        *latest = boottime.max(*latest);
        later
    }

    fn defaults(&self, part: &mut TracePart, sequence: u32, defaults: &[u8], out: &mut Encoder) {
        part.clocks.remove(&sequence);
        let open = out.open(field::trace_packet::TRACE_PACKET_DEFAULTS);
        let mut clock = None;
        rewrite(defaults, out, |field, out| {
            match (field.number, field.value) {
                (field::trace_packet_defaults::TIMESTAMP_CLOCK_ID, FieldValue::Number(number)) => {
                    clock = Some(number as u32);
                    false
                }
                (field::trace_packet_defaults::TRACK_EVENT_DEFAULTS, FieldValue::Bytes(event)) => {
                    let open = out.open(field::trace_packet_defaults::TRACK_EVENT_DEFAULTS);
                    rewrite(event, out, |field, out| match (field.number, field.value) {
                        (field::track_event_defaults::TRACK_UUID, FieldValue::Number(uuid)) => {
                            out.uint(
                                field::track_event_defaults::TRACK_UUID,
                                track_of(part, uuid),
                            );
                            true
                        }
                        _ => false,
                    });
                    out.close(open);
                    true
                }
                _ => false,
            }
        });
        out.close(open);
        if let Some(clock) = clock {
            part.clocks.insert(sequence, clock);
        }
    }

    fn host_event(&mut self, part: &TracePart, event: &[u8], out: &mut Encoder) {
        let open = out.open(field::trace_packet::TRACK_EVENT);
        rewrite(event, out, |field, out| match (field.number, field.value) {
            (field::track_event::TRACK_UUID | field::track_event::EXTRA_COUNTER_TRACK_UUIDS, _) => {
                for uuid in field.numbers() {
                    out.uint(field.number, track_of(part, uuid));
                }
                true
            }
            (field::track_event::GPU_CORRELATION, FieldValue::Bytes(correlation)) => {
                let open = out.open(field::track_event::GPU_CORRELATION);
                rewrite(correlation, out, |field, out| {
                    for id in field.numbers() {
                        out.uint(field.number, self.event_id(part, id));
                    }
                    true
                });
                out.close(open);
                true
            }
            _ => false,
        });
        out.close(open);
    }

    fn work(&mut self, part: &TracePart, event: &[u8], out: &mut Encoder) {
        let open = out.open(field::trace_packet::GPU_RENDER_STAGE_EVENT);
        rewrite(event, out, |field, out| match (field.number, field.value) {
            (stage::EVENT_ID | stage::EVENT_WAIT_IDS, _) => {
                for id in field.numbers() {
                    out.uint(field.number, self.event_id(part, id));
                }
                true
            }
            (number @ (stage::HW_QUEUE_IID | stage::STAGE_IID), FieldValue::Number(iid)) => {
                out.uint(number, part.specification(iid));
                true
            }
            (stage::GPU_ID, FieldValue::Number(gpu)) => {
                out.uint(stage::GPU_ID, part.gpu(gpu));
                true
            }
            _ => false,
        });
        out.close(open);
    }

    /// Copies a counter event. The numbers of counters are renumbered, and counters of devices are renamed with the
    /// number of the device.
    fn counter_event(&mut self, part: &TracePart, event: &[u8], out: &mut Encoder) {
        let open = out.open(field::trace_packet::GPU_COUNTER_EVENT);
        rewrite(event, out, |field, out| {
            match (field.number, field.value) {
                (counter::COUNTER_DESCRIPTOR, FieldValue::Bytes(descriptor)) => {
                    let open = out.open(counter::COUNTER_DESCRIPTOR);
                    self.counter_descriptor(part, descriptor, out);
                    out.close(open);
                }
                (counter::COUNTERS, FieldValue::Bytes(value)) => {
                    let open = out.open(counter::COUNTERS);
                    rewrite(value, out, |field, out| self.counter_id(part, field, out));
                    out.close(open);
                }
                (counter::GPU_ID, FieldValue::Number(gpu)) => {
                    out.uint(counter::GPU_ID, part.gpu(gpu))
                }
                _ => return false,
            }
            true
        });
        out.close(open);
    }

    fn counter_descriptor(&mut self, part: &TracePart, descriptor: &[u8], out: &mut Encoder) {
        rewrite(descriptor, out, |field, out| {
            let (number @ (descriptor::SPECS | descriptor::BLOCKS), FieldValue::Bytes(message)) =
                (field.number, field.value)
            else {
                return false;
            };
            let open = out.open(number);
            rewrite(message, out, |field, out| {
                match (number, field.number, field.value) {
                    (descriptor::SPECS, spec::COUNTER_ID, _) => {
                        return self.counter_id(part, field, out);
                    }
                    (descriptor::SPECS, spec::NAME, FieldValue::Bytes(name)) => {
                        return write_renamed(renamed_counter(part, name), spec::NAME, out);
                    }
                    (descriptor::BLOCKS, block::BLOCK_ID, FieldValue::Number(id)) => {
                        out.uint(block::BLOCK_ID, renumbered(&mut self.blocks, part, id));
                    }
                    (descriptor::BLOCKS, block::COUNTER_IDS, _) => {
                        for id in field.numbers() {
                            out.uint(block::COUNTER_IDS, renumbered(&mut self.counters, part, id));
                        }
                    }
                    _ => return false,
                }
                true
            });
            out.close(open);
            true
        });
    }

    fn counter_id(&mut self, part: &TracePart, field: MessageField<'_>, out: &mut Encoder) -> bool {
        let (counter::gpu_counter::COUNTER_ID, FieldValue::Number(id)) =
            (field.number, field.value)
        else {
            return false;
        };
        out.uint(field.number, renumbered(&mut self.counters, part, id));
        true
    }

    /// The id of a piece of work in the merged trace.
    fn event_id(&mut self, part: &TracePart, id: u64) -> u64 {
        let (process, own) = (id >> OWN_BITS, id & ((1 << OWN_BITS) - 1));
        let next = self.processes.len() as u64;
        if next >= MAX_PROCESSES {
            return id;
        }
        let process = *self.processes.entry((part.index, process)).or_insert(next);
        process << OWN_BITS | own
    }

    fn message(&mut self, data: trace_packet::Data) -> io::Result<()> {
        let number = self.sequences.len() as u32 + 1;
        self.sequences.insert((u32::MAX, number), number);
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(number),
            data: Some(data),
            ..TracePacket::default()
        };
        self.encoder
            .raw(field::trace::PACKET, &packet.encode_to_vec());
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.encoder.bytes())?;
        self.encoder.clear();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
