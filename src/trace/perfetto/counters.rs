//! Counters of devices, as GpuCounterEvents.
//!
//! Counters that change together form a block with a packet sequence of its own. Its first packet describes them in the
//! form that every version of Perfetto shows: the description is part of the event, once, and the numbers of counters
//! and blocks are unique in the whole trace. A value covers the time since the value before it: so versions that do not
//! know the direction of values read them.

use std::io::{self, Write};

use super::packets::{NEEDS_STATE, PacketWriter, WrittenSequence};
use super::schema::gpu_counter_descriptor::{
    GpuCounterBlock, GpuCounterGroup, GpuCounterSpec, MeasureUnit, ValueDirection, gpu_counter_spec,
};
use super::schema::trace_packet::Data;
use super::schema::{
    GpuCounterDescriptor, GpuCounterEvent, TracePacket, TracePacketDefaults, field,
};
use crate::model::{CounterBlock, CounterDescription, CounterUnit, CounterValue};
use gputrail_record::ProcessId;

/// A block of counters, and its packet sequence.
#[derive(Debug)]
pub(super) struct CounterTrack {
    sequence: WrittenSequence,
    gpu: u32,
    /// The number of its first counter in the trace.
    first: u32,
}

impl CounterTrack {
    /// Describes block `number` of a process, whose first counter has the number `first`.
    pub fn new<W: Write>(
        packets: &mut PacketWriter<W>,
        mut sequence: WrittenSequence,
        (number, first): (u32, u32),
        process: ProcessId,
        block: &CounterBlock,
    ) -> io::Result<CounterTrack> {
        sequence.restart(packets, TracePacketDefaults::default())?;
        let group = if block.memory {
            GpuCounterGroup::Memory
        } else {
            GpuCounterGroup::Compute
        };
        let specs = (first..).zip(&block.counters);
        let descriptor = GpuCounterDescriptor {
            specs: specs.map(|(id, one)| spec(id, one, group)).collect(),
            blocks: vec![GpuCounterBlock {
                block_id: Some(number),
                block_capacity: Some(block.counters.len() as u32),
                name: Some(block.name.clone()),
                description: Some(block_description(process, block.over_time)),
                counter_ids: (first..).take(block.counters.len()).collect(),
            }],
        };
        packets.message(&TracePacket {
            trusted_packet_sequence_id: Some(sequence.id()),
            // No time has passed since the sequence began.
            timestamp: Some(0),
            sequence_flags: Some(NEEDS_STATE as u32),
            data: Some(Data::GpuCounterEvent(GpuCounterEvent {
                counter_descriptor: Some(descriptor),
                counters: Vec::new(),
                gpu_id: Some(block.agent.0 as i32),
            })),
            ..TracePacket::default()
        })?;
        Ok(CounterTrack {
            sequence,
            gpu: block.agent.0,
            first,
        })
    }

    /// Writes the values of all counters of the block for the time up to `time`.
    pub fn values<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        time: u64,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let (begun, ()) = packets.begin(&mut self.sequence, time, |fields| {
            fields.uint(field::trace_packet::SEQUENCE_FLAGS, NEEDS_STATE);
        });
        let packet = packets.encoder();
        let body = packet.open(field::trace_packet::GPU_COUNTER_EVENT);
        for (id, value) in (self.first..).zip(values) {
            let counter = packet.open(field::gpu_counter_event::COUNTERS);
            packet.uint(field::gpu_counter_event::gpu_counter::COUNTER_ID, id.into());
            match *value {
                CounterValue::Int(value) => {
                    packet.int(field::gpu_counter_event::gpu_counter::INT_VALUE, value)
                }
                CounterValue::Double(value) => {
                    packet.double(field::gpu_counter_event::gpu_counter::DOUBLE_VALUE, value)
                }
            }
            packet.close(counter);
        }
        packet.uint(field::gpu_counter_event::GPU_ID, self.gpu.into());
        packet.close(body);
        packets.end(begun)
    }
}

/// The description of blocks that are read at a period, before the process.
pub(super) const OVER_TIME: &str = "Read at a period";
/// The description of other blocks, before the process.
const OF_DISPATCHES: &str = "Counted";
/// Before the id of a block's process.
const PROCESS: &str = " in process ";

fn block_description(process: ProcessId, over_time: bool) -> String {
    let what = if over_time { OVER_TIME } else { OF_DISPATCHES };
    format!("{what}{PROCESS}{}", process.0)
}

/// The process of a block with this description, and whether it is read at a period. `None` for those of other programs.
pub(super) fn described_block(description: &str) -> Option<(ProcessId, bool)> {
    let (what, process) = description.split_once(PROCESS)?;
    let is_own = [OVER_TIME, OF_DISPATCHES].contains(&what);
    let process = process.parse().ok().filter(|_| is_own)?;
    Some((ProcessId(process), what == OVER_TIME))
}

/// Between the description of a counter and its unit, where Perfetto has none for it.
const UNIT: &str = "; unit: ";

/// Perfetto's units of a value: above and below the line.
fn measures(unit: CounterUnit) -> (Option<MeasureUnit>, Option<MeasureUnit>) {
    match unit {
        CounterUnit::Percent => (Some(MeasureUnit::Percent), None),
        CounterUnit::Bytes => (Some(MeasureUnit::Byte), None),
        CounterUnit::Kilobytes => (Some(MeasureUnit::Kilobyte), None),
        CounterUnit::BytesPerSecond => (Some(MeasureUnit::Byte), Some(MeasureUnit::Second)),
        CounterUnit::Nanoseconds => (Some(MeasureUnit::Nanosecond), None),
        CounterUnit::Milliseconds => (Some(MeasureUnit::Millisecond), None),
        CounterUnit::Unspecified
        | CounterUnit::Count
        | CounterUnit::Cycles
        | CounterUnit::Ratio
        | CounterUnit::Microjoules => (None, None),
    }
}

/// All units.
const UNITS: [CounterUnit; 11] = [
    CounterUnit::Unspecified,
    CounterUnit::Count,
    CounterUnit::Percent,
    CounterUnit::Bytes,
    CounterUnit::BytesPerSecond,
    CounterUnit::Nanoseconds,
    CounterUnit::Kilobytes,
    CounterUnit::Milliseconds,
    CounterUnit::Cycles,
    CounterUnit::Ratio,
    CounterUnit::Microjoules,
];

/// The description and unit of a counter that [`spec`] has described.
pub(super) fn described(spec: &GpuCounterSpec) -> (&str, CounterUnit) {
    let text = spec.description();
    let named = text.rsplit_once(UNIT).and_then(|(text, name)| {
        let unit = UNITS.iter().find(|unit| unit.name() == name)?;
        Some((text, *unit))
    });
    if let Some(named) = named {
        return named;
    }
    let list =
        |unit: Option<MeasureUnit>| -> Vec<i32> { unit.iter().map(|one| *one as i32).collect() };
    let is_that = |unit: &&CounterUnit| {
        let (above, below) = measures(**unit);
        list(above) == spec.numerator_units && list(below) == spec.denominator_units
    };
    let unit = UNITS.iter().find(is_that).copied();
    // Percentages may only have their peak.
    let unit = match (unit, spec.peak_value) {
        (Some(CounterUnit::Unspecified), Some(gpu_counter_spec::PeakValue::IntPeakValue(100))) => {
            CounterUnit::Percent
        }
        (unit, _) => unit.unwrap_or(CounterUnit::Unspecified),
    };
    (text, unit)
}

fn spec(id: u32, counter: &CounterDescription, group: GpuCounterGroup) -> GpuCounterSpec {
    let peak = (counter.unit == CounterUnit::Percent).then_some(100);
    let (above, below) = measures(counter.unit);
    let description = match (above, counter.unit.name()) {
        (Some(_), _) | (_, "") => counter.description.clone(),
        (None, unit) => format!("{}{UNIT}{unit}", counter.description),
    };
    let list = |unit: Option<MeasureUnit>| unit.iter().map(|one| *one as i32).collect();
    GpuCounterSpec {
        counter_id: Some(id),
        name: Some(counter.name.clone()),
        description: Some(description),
        // Viewers before v55 show the numbers of units.
        numerator_units: list(above),
        denominator_units: list(below),
        select_by_default: Some(true),
        groups: vec![group as i32],
        value_direction: Some(ValueDirection::BackwardsLooking as i32),
        peak_value: peak.map(gpu_counter_spec::PeakValue::IntPeakValue),
    }
}
