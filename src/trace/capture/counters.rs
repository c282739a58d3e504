//! Values of counters: of dispatches, of spans of time, and of ranges of markers.
//!
//! The values of a dispatch come before or after its completion, on any lane. In a process that counts, a kernel is held
//! back ([`Hold`]) until the last of its values has come, but no longer than [`MAX_HELD`] others. It is then passed on with
//! them ([`Devices`](super::devices::Devices)), and each block of the hardware has tracks ([`CounterTracks`]) whose counters
//! have a value while a kernel runs, and 0 between kernels.

use std::borrow::Cow;
use std::io;

use super::join::{EnqueueFields, FoundWork};
use crate::model::hold::Hold;
use crate::model::{
    AgentIndex, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, EventArgument, ProcessIndex, Stream, Value,
};
use gputrail_capture::Metadata;
use gputrail_capture::join::Enqueue as _;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    self as record, AgentId, CounterInvalid, CounterUsage, CounterValueType, Kind, Nanos, NoteKind,
    StringId,
};

/// Maximum number of kernels that are held back until their values come.
const MAX_HELD: usize = 1 << 14;
/// Maximum number of values of one dispatch or span.
const MAX_VALUES: usize = 1 << 12;
/// Maximum number of blocks of counters in a process. Further ones have no tracks.
const MAX_BLOCKS: usize = 1 << 10;
/// Maximum number of intervals that are passed on at a time; twice as many are held back.
const MAX_INTERVALS: usize = 1 << 14;

/// The values of one dispatch or span, in the order of their records.
pub(super) type CounterValues = Vec<record::CounterValue>;
/// Kernels that may be passed on, with their values.
pub(super) type CountedKernels = Vec<(FoundWork, CounterValues)>;

/// The values of a process, until the last value of their dispatch or span has come.
pub(super) struct HeldCounters {
    /// Whether there are, or may be, values.
    active: bool,
    held: Hold<FoundWork, CounterValues>,
    /// By agent, and for ranges by their names.
    spans: NumberMap<(AgentId, StringId), CounterValues>,
    /// The number of values that are passed on with no dispatch and no span.
    left_out: u64,
}

impl HeldCounters {
    /// The state of a process with `metadata`.
    pub fn new(metadata: &Metadata) -> HeldCounters {
        let counts = |note: &record::Note| note.what == NoteKind::COUNTERS;
        HeldCounters {
            active: metadata.notes.iter().any(counts),
            held: Hold::new(MAX_HELD),
            spans: NumberMap::default(),
            left_out: 0,
        }
    }

    /// Reacts to a note of the names store.
    pub fn learn(&mut self, what: NoteKind) {
        self.active |= what == NoteKind::COUNTERS;
    }

    /// Whether completed work waits for values: kernels do, and what follows them in their command buffers, whose parts
    /// stay together.
    #[inline(always)]
    pub fn concern(&self, work: &EnqueueFields) -> bool {
        self.active && (work.is_kernel() || work.is_shared() && self.held.holds(work.work.id))
    }

    /// Adds work that [waits for values](HeldCounters::concern). Work that no longer waits is moved to `ready`.
    pub fn found(&mut self, found: FoundWork, ready: &mut CountedKernels) {
        let FoundWork::Both(work, _) = &found else {
            return;
        };
        ready.extend(self.held.add(work.work.id, work.serial, found));
        if self.held.is_over_limit() {
            self.take_oldest(ready);
        }
    }

    fn take_oldest(&mut self, ready: &mut CountedKernels) -> bool {
        let oldest = self.held.take_oldest();
        let found = oldest.map(|(found, values)| (found, values.unwrap_or_default()));
        let any = found.is_some();
        ready.extend(found);
        any
    }

    /// Adds a value. Returns the values of a span or range whose last one it is; kernels that no longer wait are moved to `ready`.
    pub fn add(
        &mut self,
        value: &record::CounterValue,
        ready: &mut CountedKernels,
    ) -> Option<CounterValues> {
        debug_assert_eq!(value.header.kind, Kind::COUNTER_VALUE);
        self.active = true;
        if value.work.is_some() {
            let dropped = self.held.make_room(value.work).unwrap_or_default();
            let values = self.held.data(value.work);
            self.left_out += dropped.len() as u64 + add(values, value);
            if value.remaining == 0 {
                ready.extend(self.held.complete(value.work));
            }
            return None;
        }
        let values = self.spans.entry((value.agent, value.range)).or_default();
        let is_other =
            |first: &record::CounterValue| (first.start, first.end) != (value.start, value.end);
        if values.first().is_some_and(is_other) {
            // The rest of the span before is lost.
            self.left_out += values.len() as u64;
            values.clear();
        }
        self.left_out += add(values, value);
        (value.remaining == 0).then(|| std::mem::take(values))
    }

    /// Moves all kernels that wait to `ready`. Returns the number of values that were left out.
    pub fn finish(&mut self, ready: &mut CountedKernels) -> u64 {
        while self.take_oldest(ready) {}
        let unmet = self.held.take_data();
        let unended = std::mem::take(&mut self.spans).into_values();
        let waiting = unmet.chain(unended).map(|values| values.len() as u64);
        std::mem::take(&mut self.left_out) + waiting.sum::<u64>()
    }
}

/// Adds a value to those of its dispatch or span. Returns the number of values for which there was no room.
fn add(values: &mut CounterValues, value: &record::CounterValue) -> u64 {
    let has_room = values.len() < MAX_VALUES;
    if has_room {
        values.push(*value);
    }
    u64::from(!has_room)
}

/// The name of a value: "SQ_WAVES", or "TCC_HIT[3]" for one instance of its block.
fn name<'m>(metadata: &'m Metadata, value: &record::CounterValue) -> Cow<'m, str> {
    let name = metadata.string(value.counter);
    match value.instance {
        record::ALL_INSTANCES => Cow::Borrowed(name),
        instance => Cow::Owned(format!("{name}[{instance}]")),
    }
}

/// The names of values beside their kernel, and the shares of time of those that did not count all the time.
pub(super) struct ValueNames<'m>(Vec<(Cow<'m, str>, Option<String>)>);

impl<'m> ValueNames<'m> {
    pub fn of(metadata: &'m Metadata, values: &[record::CounterValue]) -> ValueNames<'m> {
        let names = values.iter().map(|value| {
            let name = name(metadata, value);
            let scaled = value.scheduled < record::ALWAYS_SCHEDULED;
            let share = scaled.then(|| format!("{name} share of time counted"));
            (name, share)
        });
        ValueNames(names.collect())
    }

    /// The values as arguments of their kernel.
    pub fn arguments<'a>(
        &'a self,
        values: &'a [record::CounterValue],
    ) -> impl Iterator<Item = EventArgument<'a>> {
        self.0
            .iter()
            .zip(values)
            .flat_map(|((name, share), value)| {
                let shown = match value.number() {
                    None => Value::Text(value.invalid.name().unwrap_or("invalid")),
                    Some(_) if value.value_type == CounterValueType::UINT64 => {
                        Value::Uint(value.value)
                    }
                    Some(number) => Value::Double(number),
                };
                let argument = |name, value| EventArgument { name, value };
                let share = share.as_ref().map(|name| {
                    let share = f64::from(value.scheduled) / f64::from(record::ALWAYS_SCHEDULED);
                    argument(name, Value::Double(share))
                });
                std::iter::once(argument(name, shown)).chain(share)
            })
    }
}

/// The tracks of one block of the hardware of an agent.
struct BlockTracks {
    agent: AgentIndex,
    block: StringId,
    counters: Vec<(StringId, u32)>,
    index: CounterIndex,
    /// The end of the latest values.
    latest: Nanos,
}

/// Values of the counters of a block, from the begin of a kernel or span to its end. Those of a kernel without times last
/// until the next ones.
struct CounterInterval {
    place: usize,
    start: Nanos,
    end: Nanos,
    numbers: Vec<CounterValue>,
}

/// The counters of a process's agents over time. Kernels are passed on as they complete, but counters need the order of
/// time: so their intervals are held back and sorted, many at a time.
#[derive(Default)]
pub(super) struct CounterTracks {
    blocks: Vec<BlockTracks>,
    intervals: Vec<CounterInterval>,
}

impl CounterTracks {
    /// Adds the values of `agent` in the interval, by block. Returns the number of values whose block has no tracks.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        (process, agent): (ProcessIndex, AgentIndex),
        (start, end): (Nanos, Nanos),
        values: &[record::CounterValue],
    ) -> io::Result<u64> {
        let mut left_out = 0;
        let mut rest: Vec<&record::CounterValue> = values.iter().collect();
        while let Some(first) = rest.first() {
            let block = first.block;
            let (of_block, others) = rest.into_iter().partition(|value| value.block == block);
            rest = others;
            let of_block: Vec<&record::CounterValue> = of_block;
            let Some(place) = self.block(stream, metadata, (process, agent), &of_block)? else {
                left_out += of_block.len() as u64;
                continue;
            };
            // Ranges that were not counted overlap the one that was.
            let is_counted = |value: &&record::CounterValue| {
                value.range == StringId::NONE || value.invalid != CounterInvalid::OTHER_RANGE
            };
            if !of_block.iter().any(is_counted) {
                continue;
            }
            self.intervals.push(CounterInterval {
                place,
                start,
                end,
                numbers: of_block.iter().map(|value| number(value)).collect(),
            });
        }
        if self.intervals.len() >= 2 * MAX_INTERVALS {
            self.pass_on(stream.consumer, MAX_INTERVALS)?;
        }
        Ok(left_out)
    }

    /// Passes on the intervals that are held back.
    pub fn flush(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        self.pass_on(consumer, self.intervals.len())
    }

    /// Passes on the first `count` intervals. Later arrivals are passed on at the time that their block has reached.
    fn pass_on(&mut self, consumer: &mut dyn Consumer, count: usize) -> io::Result<()> {
        self.intervals.sort_by_key(|interval| interval.start);
        for interval in self.intervals.drain(..count) {
            let block = &mut self.blocks[interval.place];
            let has_length = interval.end > interval.start;
            if has_length && interval.start > block.latest {
                let zeros = vec![CounterValue::Int(0); interval.numbers.len()];
                consumer.derived_values(block.index, interval.start, &zeros)?;
            }
            block.latest = interval.end.max(block.latest);
            consumer.counter_values(block.index, block.latest, &interval.numbers)?;
        }
        Ok(())
    }

    /// The place of the tracks of `values`, which are of one block.
    fn block(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        (process, agent): (ProcessIndex, AgentIndex),
        values: &[&record::CounterValue],
    ) -> io::Result<Option<usize>> {
        let block = values.first().map_or(StringId::NONE, |value| value.block);
        let counters = || values.iter().map(|value| (value.counter, value.instance));
        let is_known = |known: &BlockTracks| {
            (known.agent, known.block) == (agent, block)
                && known.counters.iter().copied().eq(counters())
        };
        if let Some(place) = self.blocks.iter().position(is_known) {
            return Ok(Some(place));
        }
        if self.blocks.len() >= MAX_BLOCKS {
            return Ok(None);
        }
        let index = stream.new_counters();
        let title = match metadata.string(block) {
            "" => "metrics",
            name => name,
        };
        let describe = |value: &&record::CounterValue| CounterDescription {
            name: name(metadata, value).into_owned(),
            description: match (value.work.is_some(), value.range.is_some()) {
                (true, _) => "Counted while a kernel ran".to_owned(),
                (_, true) => "Counted in a range of markers".to_owned(),
                (false, false) => "Counted over time".to_owned(),
            },
            unit: unit(value.usage),
        };
        let described = CounterBlock {
            name: title.to_owned(),
            process,
            agent,
            memory: is_of_memory(title),
            over_time: values
                .first()
                .is_some_and(|value| !value.work.is_some() && !value.range.is_some()),
            counters: values.iter().map(describe).collect(),
        };
        stream.consumer.counters(index, &described)?;
        self.blocks.push(BlockTracks {
            agent,
            block,
            counters: counters().collect(),
            index,
            latest: Nanos(0),
        });
        Ok(Some(self.blocks.len() - 1))
    }
}

/// Whether a block of this name serves memory: caches, their address and data paths, the memory controllers.
fn is_of_memory(block: &str) -> bool {
    ["TA", "TC", "TD", "GL", "EA", "MC", "UTCL"]
        .iter()
        .any(|prefix| block.starts_with(prefix))
}

fn number(value: &record::CounterValue) -> CounterValue {
    match value.number() {
        None => CounterValue::Int(0),
        Some(number) => match i64::try_from(value.value) {
            Ok(integer) if value.value_type == CounterValueType::UINT64 => {
                CounterValue::Int(integer)
            }
            _ => CounterValue::Double(number),
        },
    }
}

fn unit(usage: CounterUsage) -> CounterUnit {
    match usage {
        CounterUsage::PERCENTAGE => CounterUnit::Percent,
        CounterUsage::BYTES => CounterUnit::Bytes,
        CounterUsage::NANOSECONDS => CounterUnit::Nanoseconds,
        CounterUsage::ITEMS => CounterUnit::Count,
        CounterUsage::RATIO => CounterUnit::Ratio,
        CounterUsage::KILOBYTES => CounterUnit::Kilobytes,
        CounterUsage::MILLISECONDS => CounterUnit::Milliseconds,
        CounterUsage::CYCLES => CounterUnit::Cycles,
        CounterUsage::MICROJOULES => CounterUnit::Microjoules,
        _ => CounterUnit::Unspecified,
    }
}

/// The number of valid and of invalid values among `values`.
pub(super) fn count(values: &[record::CounterValue]) -> (u64, u64) {
    let invalid = |value: &&record::CounterValue| value.invalid != CounterInvalid::NO;
    let invalid = values.iter().filter(invalid).count() as u64;
    (values.len() as u64 - invalid, invalid)
}
