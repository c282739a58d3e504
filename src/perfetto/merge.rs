//! Several traces in one.
//!
//! Packets are copied; what holds in one trace only is renumbered on the way: sequences, tracks, event ids of device
//! work, devices. Traces of one machine share its BOOTTIME and need nothing else. Those of another
//! machine get a machine id, and an offset ([`place`] tells how it is found and how far it can be
//! trusted).

use std::collections::HashMap;
use std::io::{self, Read, Write};

use prost::Message;

use super::reader::{
    Field, FieldValue, Fields, Finding, Findings, Known, Packet, Visitor, packets_of, rare, read,
};
use super::schema::{
    ClockSnapshot, GpuInfo, SystemInfo, TracePacket, TraceStats, gpu_info, trace_packet,
    trace_stats,
};
use super::wire::Encoder;
use crate::number_map::NumberMap;

/// BOOTTIME and REALTIME among Perfetto's clocks.
const BOOTTIME: u32 = 6;
const REALTIME: u32 = 1;
/// Starts of a machine that are this near are the same start: real-time clocks are set now and then.
const SAME_START_NS: u64 = 1_000_000_000;
/// Bits of an event id below the process's own number.
const OWN_BITS: u32 = 40;
/// Most processes, by the upper bits of event ids.
const MOST_PROCESSES: u64 = 1 << (64 - OWN_BITS);
/// Most sequences.
const MOST_SEQUENCES: usize = 1 << 20;
/// The output is handed on when this much of it is there.
const FLUSH_AT: usize = 128 << 10;

/// Field numbers of `TracePacket`.
mod field {
    pub const PACKET: u32 = 1;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACE_STATS: u32 = 35;
    pub const SYSTEM_INFO: u32 = 45;
    pub const RENDER_STAGE: u32 = 53;
    pub const CLOCK: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const EXTENSIONS: u32 = 72;
    pub const UUID: u32 = 89;
    pub const MACHINE: u32 = 98;
    pub const GPU_INFO: u32 = 128;
}

/// What has to be known of a trace before it is merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The machine's name; empty if it is not told.
    pub host: String,
    /// When the machine was started by its real-time clock, ns; none if the trace does not tell.
    pub started: Option<u64>,
    /// The devices.
    gpus: Vec<gpu_info::Gpu>,
    /// Records lost.
    lost: u64,
    /// Packets.
    pub packets: u64,
    /// What cannot be read.
    pub findings: Vec<Finding>,
}

impl Visitor for Survey {
    fn packet(&mut self, packet: &Packet<'_>, _: &Known, _: &mut Findings) {
        let (kind, data) = packet.data;
        match kind {
            field::SYSTEM_INFO => {
                let system = rare::<SystemInfo>(data).unwrap_or_default();
                if let Some(host) = system.machine_name {
                    self.host = host;
                }
            }
            field::CLOCK_SNAPSHOT if self.started.is_none() => {
                let snapshot = rare::<ClockSnapshot>(data).unwrap_or_default();
                let time = |id: u32| {
                    let clock = snapshot
                        .clocks
                        .iter()
                        .find(|clock| clock.clock_id == Some(id));
                    clock.and_then(|clock| clock.timestamp)
                };
                if let (Some(boottime), Some(realtime)) = (time(BOOTTIME), time(REALTIME)) {
                    self.started = realtime.checked_sub(boottime);
                }
            }
            field::GPU_INFO => self.gpus = rare::<GpuInfo>(data).unwrap_or_default().gpus,
            field::TRACE_STATS => {
                for buffer in rare::<TraceStats>(data).unwrap_or_default().buffer_stats {
                    let lost = buffer.trace_writer_packet_loss.unwrap_or(0);
                    self.lost = self.lost.saturating_add(lost);
                }
            }
            _ => {}
        }
    }
}

/// Reads a trace for what has to be known before it is merged.
pub fn survey<R: Read>(source: R) -> Survey {
    let mut survey = Survey::default();
    let outcome = read(source, &mut survey);
    survey.packets = outcome.packets;
    survey.findings = outcome.findings.list().to_vec();
    survey
}

/// How the times of a trace are put beside those of the first one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It is of the same machine: by one clock, exactly.
    SameMachine,
    /// By both machines' real-time clocks: as good as these agree, which nothing in the traces tells.
    RealTime,
    /// As the user said.
    Given,
}

/// Where a trace stands among the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The machine, numbered from 0, which is that of the first trace.
    pub machine: u32,
    /// What is added to its times, ns.
    pub offset: i64,
    /// How far that can be trusted.
    pub trust: Trust,
}

/// Tells where each trace stands. `given` are offsets that the user gives, ns, for some of them. The error is the
/// place of a trace that has no clock in common with the first one.
pub fn place(surveys: &[Survey], given: &HashMap<usize, i64>) -> Result<Vec<Placement>, usize> {
    let mut placements: Vec<Placement> = Vec::new();
    for (index, survey) in surveys.iter().enumerate() {
        let same = |other: &&(usize, &Survey)| is_same_machine(survey, other.1);
        let before: Vec<_> = surveys[..index].iter().enumerate().collect();
        let machines = placements
            .iter()
            .map(|placement| placement.machine + 1)
            .max();
        let placement = match (given.get(&index), before.iter().find(same)) {
            (Some(offset), other) => Placement {
                machine: other.map_or(machines.unwrap_or(0), |(other, _)| {
                    placements[*other].machine
                }),
                offset: *offset,
                trust: Trust::Given,
            },
            (None, Some((other, _))) => Placement {
                trust: match placements[*other].trust {
                    Trust::Given => Trust::SameMachine,
                    trust => trust,
                },
                ..placements[*other]
            },
            (None, None) if index == 0 => Placement {
                machine: 0,
                offset: 0,
                trust: Trust::SameMachine,
            },
            (None, None) => {
                let (Some(first), Some(started)) = (surveys[0].started, survey.started) else {
                    return Err(index);
                };
                let offset =
                    i128::from(started) - i128::from(first) + i128::from(placements[0].offset);
                Placement {
                    machine: machines.unwrap_or(0),
                    offset: i64::try_from(offset).map_err(|_| index)?,
                    trust: Trust::RealTime,
                }
            }
        };
        placements.push(placement);
    }
    Ok(placements)
}

/// Whether two traces are of one machine since the same start of it.
fn is_same_machine(first: &Survey, second: &Survey) -> bool {
    let names = [&first.host, &second.host];
    if names[0] != names[1] && names.iter().all(|name| !name.is_empty()) {
        return false;
    }
    match (first.started, second.started) {
        (Some(first), Some(second)) => first.abs_diff(second) <= SAME_START_NS,
        // Without a clock to tell, one name is one machine.
        _ => names.iter().all(|name| !name.is_empty()),
    }
}

/// Merges traces into `out`: each with its survey and its place. Returns what could not be read.
pub fn merge<R: Read, W: Write>(
    traces: Vec<(R, &Survey, Placement)>,
    out: W,
) -> io::Result<Vec<Vec<Finding>>> {
    let mut merging = Merging {
        out,
        encoder: Encoder::default(),
        sequences: NumberMap::default(),
        processes: NumberMap::default(),
        extensions: None,
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
    for ((index, (source, _, placement)), map) in (0..).zip(traces).zip(maps) {
        let mut part = Part {
            index,
            placement,
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
    if lost > 0 {
        merging.message(trace_packet::Data::TraceStats(TraceStats {
            buffer_stats: vec![trace_stats::BufferStats {
                trace_writer_packet_loss: Some(lost),
            }],
        }))?;
    }
    merging.flush()?;
    Ok(all)
}

/// The number in the merged trace of each device of a trace. Devices of one machine that are alike are the same,
/// one by one.
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

/// One of the traces.
struct Part {
    index: u32,
    placement: Placement,
    gpus: Vec<u32>,
    /// The clock that each sequence's packets are in by default.
    clocks: NumberMap<u32, u32>,
}

struct Merging<W> {
    out: W,
    encoder: Encoder,
    /// New numbers of the sequences, by trace and number in it.
    sequences: NumberMap<(u32, u32), u32>,
    /// New numbers of the processes in event ids, by trace and number in it.
    processes: NumberMap<(u32, u64), u64>,
    extensions: Option<Vec<u8>>,
}

/// The fields of a message, each with all of its bytes.
fn raw_fields(message: &[u8]) -> impl Iterator<Item = (Field<'_>, &[u8])> {
    let mut fields = Fields::new(message);
    std::iter::from_fn(move || {
        let begin = fields.position();
        let field = fields.next()?;
        Some((field, &message[begin..fields.position()]))
    })
}

fn is_sound(message: &[u8]) -> bool {
    let mut fields = Fields::new(message);
    fields.by_ref().for_each(drop);
    fields.malformed().is_none()
}

impl<W: Write> Merging<W> {
    fn packet(&mut self, part: &mut Part, packet: &[u8]) -> io::Result<()> {
        let (mut sequence, mut clock, mut flags) = (0, None, 0);
        let mut drop = false;
        let mut extensions = None;
        for field in Fields::new(packet) {
            match (field.number, field.value) {
                (field::SEQUENCE, FieldValue::Number(number)) => sequence = number as u32,
                (field::CLOCK, FieldValue::Number(number)) => clock = Some(number as u32),
                (field::SEQUENCE_FLAGS, FieldValue::Number(number)) => flags = number,
                // Told once for all.
                (field::GPU_INFO | field::TRACE_STATS, _) => drop = true,
                (field::UUID, _) => drop |= part.index > 0,
                (field::EXTENSIONS, FieldValue::Bytes(bytes)) => extensions = Some(bytes),
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
            None if self.sequences.len() >= MOST_SEQUENCES => return Ok(()),
            None => {
                let number = self.sequences.len() as u32 + 1;
                self.sequences.insert((part.index, sequence), number);
                number
            }
        };
        let mut out = std::mem::take(&mut self.encoder);
        let open = out.open(field::PACKET);
        let mut timestamp = None;
        for (field, raw) in raw_fields(packet) {
            match (field.number, field.value) {
                (field::SEQUENCE, _) => out.uint(field::SEQUENCE, number.into()),
                (field::MACHINE, _) => {}
                (field::TIMESTAMP, FieldValue::Number(time)) => timestamp = Some(time),
                (field::DEFAULTS, FieldValue::Bytes(defaults)) => {
                    self.defaults(part, sequence, defaults, &mut out);
                }
                (field::CLOCK_SNAPSHOT, FieldValue::Bytes(snapshot)) => {
                    shift_snapshot(part.placement.offset, snapshot, &mut out);
                }
                (field::TRACK_EVENT, FieldValue::Bytes(event)) => {
                    self.host_event(part, event, &mut out);
                }
                (field::RENDER_STAGE, FieldValue::Bytes(event)) => self.work(part, event, &mut out),
                (field::TRACK_DESCRIPTOR, FieldValue::Bytes(track)) => {
                    let open = out.open(field::TRACK_DESCRIPTOR);
                    rewrite(track, &mut out, |field, out| {
                        match (field.number, field.value) {
                            (number @ (1 | 5), FieldValue::Number(uuid)) => {
                                out.uint(number, track_of(part, uuid));
                                true
                            }
                            _ => false,
                        }
                    });
                    out.close(open);
                }
                (field::INTERNED_DATA, FieldValue::Bytes(data)) => {
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
            out.uint(field::TIMESTAMP, time);
        }
        if part.placement.machine > 0 {
            out.uint(field::MACHINE, part.placement.machine.into());
        }
        out.close(open);
        self.encoder = out;
        if self.encoder.len() >= FLUSH_AT {
            self.flush()?;
        }
        Ok(())
    }

    fn defaults(&self, part: &mut Part, sequence: u32, defaults: &[u8], out: &mut Encoder) {
        part.clocks.remove(&sequence);
        let open = out.open(field::DEFAULTS);
        let mut clock = None;
        rewrite(defaults, out, |field, out| {
            match (field.number, field.value) {
                (field::CLOCK, FieldValue::Number(number)) => {
                    clock = Some(number as u32);
                    false
                }
                (field::TRACK_EVENT, FieldValue::Bytes(event)) => {
                    let open = out.open(field::TRACK_EVENT);
                    rewrite(event, out, |field, out| match (field.number, field.value) {
                        (11, FieldValue::Number(uuid)) => {
                            out.uint(11, track_of(part, uuid));
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

    fn host_event(&mut self, part: &Part, event: &[u8], out: &mut Encoder) {
        let open = out.open(field::TRACK_EVENT);
        rewrite(event, out, |field, out| match (field.number, field.value) {
            (11 | 31, _) => {
                for uuid in field.numbers() {
                    out.uint(field.number, track_of(part, uuid));
                }
                true
            }
            (3000, FieldValue::Bytes(correlation)) => {
                let open = out.open(3000);
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

    fn work(&mut self, part: &Part, event: &[u8], out: &mut Encoder) {
        let open = out.open(field::RENDER_STAGE);
        rewrite(event, out, |field, out| match (field.number, field.value) {
            (1 | 18, _) => {
                for id in field.numbers() {
                    out.uint(field.number, self.event_id(part, id));
                }
                true
            }
            (11, FieldValue::Number(gpu)) => {
                let new = usize::try_from(gpu).ok().and_then(|gpu| part.gpus.get(gpu));
                out.uint(11, new.map_or(gpu, |new| u64::from(*new)));
                true
            }
            _ => false,
        });
        out.close(open);
    }

    /// The id of a piece of work in the merged trace.
    fn event_id(&mut self, part: &Part, id: u64) -> u64 {
        let (process, own) = (id >> OWN_BITS, id & ((1 << OWN_BITS) - 1));
        let next = self.processes.len() as u64 + 1;
        if next >= MOST_PROCESSES {
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
        self.encoder.raw(field::PACKET, &packet.encode_to_vec());
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.encoder.bytes())?;
        self.encoder.clear();
        self.out.flush()
    }
}

/// Copies a message, but for the fields that `change` writes itself. What is damaged is copied as it is.
fn rewrite(
    message: &[u8],
    out: &mut Encoder,
    mut change: impl FnMut(Field<'_>, &mut Encoder) -> bool,
) {
    if !is_sound(message) {
        out.append(message);
        return;
    }
    for (field, raw) in raw_fields(message) {
        if !change(field, out) {
            out.append(raw);
        }
    }
}

/// The number of a track in the merged trace; that of the first trace's tracks stays.
fn track_of(part: &Part, uuid: u64) -> u64 {
    if part.index == 0 || uuid == 0 {
        return uuid;
    }
    let salt = u64::from(part.index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match uuid ^ salt {
        0 => salt,
        uuid => uuid,
    }
}

fn shifted(time: u64, offset: i64) -> u64 {
    time.saturating_add_signed(offset)
}

fn shift_snapshot(offset: i64, snapshot: &[u8], out: &mut Encoder) {
    let open = out.open(field::CLOCK_SNAPSHOT);
    rewrite(snapshot, out, |field, out| {
        let (1, FieldValue::Bytes(clock)) = (field.number, field.value) else {
            return false;
        };
        let id = Fields::new(clock).find(|field| field.number == 1);
        let is_boottime = id.and_then(|field| field.number()) == Some(BOOTTIME.into());
        let incremental =
            Fields::new(clock).any(|field| field.number == 3 && field.number() == Some(1));
        let open = out.open(1);
        rewrite(clock, out, |field, out| match (field.number, field.value) {
            (2, FieldValue::Number(time)) if is_boottime || incremental => {
                out.uint(2, shifted(time, offset));
                true
            }
            _ => false,
        });
        out.close(open);
        true
    });
    out.close(open);
}

/// Copies interned data; queues named after their device get the device's new number.
fn interned(part: &Part, data: &[u8], out: &mut Encoder) {
    let open = out.open(field::INTERNED_DATA);
    rewrite(data, out, |field, out| {
        let (24, FieldValue::Bytes(specification)) = (field.number, field.value) else {
            return false;
        };
        let open = out.open(24);
        rewrite(specification, out, |field, out| {
            let (2, FieldValue::Bytes(name)) = (field.number, field.value) else {
                return false;
            };
            let renamed = std::str::from_utf8(name)
                .ok()
                .and_then(|name| rename(part, name));
            if let Some(name) = &renamed {
                out.string(2, name);
            }
            renamed.is_some()
        });
        out.close(open);
        true
    });
    out.close(open);
}

/// `GPU 0 . app 7 . queue 0` as device 2's.
fn rename(part: &Part, name: &str) -> Option<String> {
    let (device, rest) = name.split_once(" . ")?;
    let (title, number) = device.rsplit_once(' ')?;
    let gpu: usize = number.parse().ok()?;
    let new = *part.gpus.get(gpu)?;
    let machine = match part.placement.machine {
        0 => String::new(),
        machine => format!("machine {machine} . "),
    };
    Some(format!("{title} {new} . {machine}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(host: &str, started: Option<u64>) -> Survey {
        Survey {
            host: host.to_owned(),
            started,
            ..Survey::default()
        }
    }

    fn placed(machine: u32, offset: i64, trust: Trust) -> Placement {
        Placement {
            machine,
            offset,
            trust,
        }
    }

    #[test]
    fn traces_of_one_machine_share_its_clock() {
        let surveys = [
            survey("a", Some(5_000)),
            survey("a", Some(9_000)),
            survey("", Some(4_000)),
        ];
        let same = placed(0, 0, Trust::SameMachine);
        assert_eq!(place(&surveys, &HashMap::new()), Ok(vec![same; 3]));
    }

    #[test]
    fn other_machines_are_placed_by_real_time_or_as_told() {
        let second = 1_000_000_000;
        let surveys = [
            survey("a", Some(70 * second)),
            survey("b", Some(50 * second)),
            survey("b", Some(50 * second)),
            survey("a", Some(90 * second)),
        ];
        let by_real_time = placed(1, -20_000_000_000, Trust::RealTime);
        let restarted = placed(2, 20_000_000_000, Trust::RealTime);
        let first = placed(0, 0, Trust::SameMachine);
        assert_eq!(
            place(&surveys, &HashMap::new()),
            Ok(vec![first, by_real_time, by_real_time, restarted])
        );
        let given = HashMap::from([(1, 17)]);
        let placements = place(&surveys[..2], &given).unwrap();
        assert_eq!(placements[1], placed(1, 17, Trust::Given));
    }

    #[test]
    fn without_a_common_clock_there_is_no_place() {
        let surveys = [survey("a", Some(5)), survey("b", None)];
        assert_eq!(place(&surveys, &HashMap::new()), Err(1));
    }

    #[test]
    fn queues_are_named_after_their_devices_new_number() {
        let part = |machine| Part {
            index: 1,
            placement: placed(machine, 0, Trust::RealTime),
            gpus: vec![4],
            clocks: NumberMap::default(),
        };
        assert_eq!(
            rename(&part(0), "GPU 0 . app 7 . queue 1").as_deref(),
            Some("GPU 4 . app 7 . queue 1")
        );
        assert_eq!(
            rename(&part(2), "GPU 0 . app 7").as_deref(),
            Some("GPU 4 . machine 2 . app 7")
        );
        assert_eq!(rename(&part(0), "gemm"), None);
    }
}
