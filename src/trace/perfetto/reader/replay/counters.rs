//! Counters of devices.

use std::io;

use crate::model::ProcessIndex;
use crate::model::{
    AgentIndex, CounterBlock, CounterDescription, CounterIndex, CounterValue, Parent, Stream,
    Track, TrackIndex, TrackKind,
};
use crate::perfetto::counters::{OVER_TIME, described, described_block};
use crate::perfetto::rows;
use crate::perfetto::schema::gpu_counter_descriptor::{GpuCounterGroup, GpuCounterSpec};
use crate::perfetto::schema::gpu_counter_event::gpu_counter::Value;
use crate::perfetto::schema::{GpuCounterDescriptor, GpuCounterEvent};
use gputrail_record::Nanos;
use gputrail_record::ProcessId;
use gputrail_record::number_map::NumberMap;

/// Maximum number of counters.
const MAX_COUNTERS: usize = 1 << 16;

/// Where the values of a counter go.
#[derive(Copy, Clone, Debug)]
enum Destination {
    /// A counter of a block: its place there.
    Block(CounterIndex, usize),
    /// A track.
    Track(TrackIndex),
}

/// A block of gputrail.
#[derive(Copy, Clone, Debug)]
struct DescribedBlock {
    counters: usize,
    /// Whether the next values are those from which the time of a period is counted, and no values of a period.
    opens: bool,
}

/// The counters that have been described.
#[derive(Debug, Default)]
pub(super) struct DescribedCounters {
    /// By device and number: traces of other programs number the counters of each device from the beginning.
    places: NumberMap<(i32, u32), Destination>,
    /// The blocks of gputrail.
    blocks: NumberMap<CounterIndex, DescribedBlock>,
}

/// A block of counters as gputrail describes it: the name of each begins with that of its device.
pub(super) struct OwnBlock<'a> {
    pub process: ProcessId,
    over_time: bool,
    names: Vec<&'a str>,
}

impl<'a> OwnBlock<'a> {
    /// `None` for a description by another program.
    pub fn of(descriptor: &'a GpuCounterDescriptor, title: &str) -> Option<OwnBlock<'a>> {
        let [block] = &descriptor.blocks[..] else {
            return None;
        };
        let (process, over_time) = match described_block(block.description()) {
            Some(described) => described,
            // Once, each name ended with the process.
            None => {
                let (_, process) = rows::counter_parts(descriptor.specs.first()?.name());
                let over_time = block.description() == OVER_TIME;
                (ProcessId(process.parse().ok()?), over_time)
            }
        };
        let names = descriptor.specs.iter().map(|spec| {
            let (counter, _) = rows::counter_parts(spec.name());
            counter.strip_prefix(title)?.strip_prefix(' ')
        });
        let names = names.collect::<Option<Vec<_>>>()?;
        Some(OwnBlock {
            process,
            over_time,
            names,
        })
    }
}

impl DescribedCounters {
    /// Declares the counters of a block of a process.
    pub fn declare_block(
        &mut self,
        stream: &mut Stream<'_>,
        (process, gpu): (ProcessIndex, i32),
        descriptor: &GpuCounterDescriptor,
        own: &OwnBlock<'_>,
    ) -> io::Result<()> {
        let index = stream.new_counters();
        for (place, spec) in descriptor.specs.iter().enumerate() {
            self.add((gpu, spec.counter_id()), Destination::Block(index, place));
        }
        let memory =
            |spec: &GpuCounterSpec| spec.groups.contains(&(GpuCounterGroup::Memory as i32));
        let counters: Vec<_> = descriptor
            .specs
            .iter()
            .zip(&own.names)
            .map(|(spec, name)| {
                let (description, unit) = described(spec);
                CounterDescription {
                    name: (*name).to_owned(),
                    description: description.to_owned(),
                    unit,
                }
            })
            .collect();
        let over_time = own.over_time;
        let block = DescribedBlock {
            counters: counters.len(),
            opens: over_time,
        };
        self.blocks.insert(index, block);
        stream.consumer.counters(
            index,
            &CounterBlock {
                name: descriptor.blocks[0].name().to_owned(),
                process,
                agent: AgentIndex(gpu as u32),
                memory: descriptor.specs.iter().any(memory),
                over_time,
                counters,
            },
        )
    }

    /// Declares counters of no process as tracks.
    pub fn declare_tracks(
        &mut self,
        stream: &mut Stream<'_>,
        (gpu, title): (i32, &str),
        descriptor: &GpuCounterDescriptor,
    ) -> io::Result<()> {
        for spec in &descriptor.specs {
            let id = (gpu, spec.counter_id());
            if self.places.contains_key(&id) || self.places.len() >= MAX_COUNTERS {
                continue;
            }
            let name = format!("{title} {}", spec.name());
            let track = stream.new_track(&Track {
                parent: Parent::Trace,
                name: &name,
                kind: TrackKind::Counter(described(spec).1),
                order: None,
            })?;
            self.add(id, Destination::Track(track));
        }
        Ok(())
    }

    fn add(&mut self, id: (i32, u32), place: Destination) {
        if self.places.len() < MAX_COUNTERS {
            self.places.insert(id, place);
        }
    }

    /// Passes on the values of an event. Returns the number of values of counters that have not been described. Counters without
    /// a value are passed over.
    pub fn values(
        &mut self,
        stream: &mut Stream<'_>,
        time: Nanos,
        event: &GpuCounterEvent,
    ) -> io::Result<u64> {
        let mut left_out = 0;
        let mut block: Option<(CounterIndex, Vec<CounterValue>)> = None;
        for counter in &event.counters {
            let value = match counter.value {
                Some(Value::IntValue(value)) => CounterValue::Int(value),
                Some(Value::DoubleValue(value)) => CounterValue::Double(value),
                None => continue,
            };
            match self.places.get(&(event.gpu_id(), counter.counter_id())) {
                Some(Destination::Track(track)) => stream.consumer.value(*track, time, value)?,
                Some(Destination::Block(index, place)) => {
                    let (known, values) = block.get_or_insert_with(|| (*index, Vec::new()));
                    if *known == *index && values.len() == *place {
                        values.push(value)
                    } else {
                        left_out += 1
                    }
                }
                None => left_out += 1,
            }
        }
        if let Some((index, values)) = block {
            match self.blocks.get_mut(&index) {
                Some(block) if block.counters == values.len() => {
                    if std::mem::take(&mut block.opens) {
                        stream.consumer.derived_values(index, time, &values)?
                    } else {
                        stream.consumer.counter_values(index, time, &values)?
                    }
                }
                _ => left_out += values.len() as u64,
            }
        }
        Ok(left_out)
    }
}
