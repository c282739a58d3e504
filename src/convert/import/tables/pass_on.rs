//! Passes tables on: sorted, tied, and with a row for each event.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use super::join::{HostEntry, SorterEntry, WorkEntry};
use super::rows::TrackRows;
use super::samples::DispatchCounts;
use super::texts::arguments;
use super::{
    AgentHandle, CounterNumber, HostKind, HostLane, HostRow, MAX_DURATION, MemoryRow, NO_END,
    ProcessHandle, QueueHandle, RowCounts, Tables, TextHandle, ValueRow, group_of,
};
use crate::import::Report;
use gputrail_record::{
    ArgumentType, ContextId, CorrelationId, ExternalId, Nanos, ProcessId, ThreadId,
};
use gputrail_trace::model::LATEST;
use gputrail_trace::model::gauges::{GaugedWork, Gauges};
use gputrail_trace::model::{
    AgentIndex, Call, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, EventArgument, EventId, Function, Instant, Parameter, Parent, Process,
    ProcessIndex, Queue, QueueIndex, Slice, Stage, StageId, Stream, Track, TrackIndex, TrackKind,
    Value, Work, WorkKind, WorkSamples,
};

/// The category of events whose times cannot be.
const IMPOSSIBLE: &str = "impossible times";

/// The tracks and rows of a lane.
#[derive(Default)]
struct LanePlace {
    rows: TrackRows,
    tracks: Vec<TrackIndex>,
}

/// The rows of a queue.
#[derive(Default)]
struct QueueRows {
    rows: TrackRows,
    queues: Vec<QueueIndex>,
}

/// A counter of dispatches, and the end of the latest of them.
type DispatchCounter = (CounterIndex, u64);
/// The memory in use: its track and bytes.
type MemoryInUse = (TrackIndex, u64);

/// Tables that are being passed on.
struct Passing<'r, 'c> {
    tables: &'r Tables,
    stream: Stream<'c>,
    lanes: Vec<LanePlace>,
    queues: Vec<QueueRows>,
    functions: Vec<Function>,
    gauges: Vec<Gauges>,
    /// Tracks of the counters that stand by themselves.
    values: Vec<Option<TrackIndex>>,
    dispatch_counters: HashMap<(ProcessHandle, AgentHandle, TextHandle), DispatchCounter>,
    memory: HashMap<(ProcessHandle, AgentHandle), MemoryInUse>,
    /// The device and the size of what is allocated at an address.
    allocated: HashMap<(ProcessHandle, u64), (AgentHandle, u64)>,
    sampled: DispatchCounts,
    /// Long texts that have been shown.
    shown: HashSet<TextHandle>,
}

pub(super) fn time(of: u64) -> Nanos {
    Nanos(of)
}

pub(super) fn process_index(process: ProcessHandle) -> ProcessIndex {
    ProcessIndex(process.0)
}

pub(super) fn agent_index(agent: AgentHandle) -> AgentIndex {
    match agent {
        AgentHandle::UNKNOWN => AgentIndex::UNKNOWN,
        AgentHandle(place) => AgentIndex(place),
    }
}

/// Whether no event can have lasted so.
fn is_impossible(start: u64, end: u64) -> bool {
    end != NO_END && (end < start || end - start > MAX_DURATION)
}

impl Tables {
    /// Passes the tables on to `consumer`, from the beginning of its stream to the end, and reports what could not be shown
    /// as it is. Problems are reported of `file`.
    pub fn pass_on(
        self,
        file: &Path,
        consumer: &mut dyn Consumer,
        report: &mut Report,
    ) -> io::Result<()> {
        let counts = self.produce(consumer)?;
        let remarks = [
            (
                counts.unmeasured,
                "work with start = end = 0, which was not measured: counted, and not drawn",
            ),
            (
                counts.impossible,
                "events that end before they start or last longer than a day: flagged, and in no sum",
            ),
            (
                counts.overlapping,
                "work that overlaps other work of its queue: on rows of its own",
            ),
            (
                counts.early,
                "work that starts before the call that submitted it: kept as measured",
            ),
            (
                counts.cut_texts,
                "text of more than 4 KiB among the arguments of several events: whole in the first of them",
            ),
        ];
        for (count, reason) in remarks {
            report.remarks(file, reason, count);
        }
        let reason = "values of counters of dispatches that no table has";
        report.unrepresented_many(file, reason, counts.without_dispatch);
        let reason = "events whose times are beyond 146 years";
        report.unrepresented_many(file, reason, counts.too_late);
        let reason = "samples taken outside the dispatch with their number, perhaps of another run: shown without a kernel";
        report.remarks(file, reason, counts.of_other_runs);
        Ok(())
    }

    fn produce(mut self, consumer: &mut dyn Consumer) -> io::Result<RowCounts> {
        if self.header.clocks.boottime == Nanos::NONE {
            self.header.clocks.boottime = Nanos(self.rows.first_time());
        }
        let clocks = &mut self.header.clocks;
        if clocks.monotonic == Nanos::NONE {
            // Samples are placed by this clock.
            clocks.monotonic = clocks.boottime;
        }
        consumer.begin(&self.header)?;
        consumer.attributes(&self.attributes)?;
        let agents: Vec<_> = self.agents.iter().map(|row| row.agent.clone()).collect();
        consumer.agents(AgentIndex(0), &agents)?;
        for (index, process) in (0..).zip(&self.processes) {
            let command: Vec<&str> = process.command.iter().map(|word| &word[..]).collect();
            consumer.process(
                ProcessIndex(index),
                &Process {
                    pid: ProcessId(process.pid),
                    name: &process.name,
                    rank: &process.rank,
                    command: &command,
                    order: None,
                },
            )?;
        }
        let rows = std::mem::take(&mut self.rows);
        let mut counts = RowCounts {
            without_dispatch: self.without_dispatch,
            ..RowCounts::default()
        };
        let mut passing = Passing::new(&self, consumer);
        let samples = rows.join(&mut counts, |entry, counts| passing.entry(entry, counts))?;
        passing.end_lanes()?;
        for gauges in &mut passing.gauges {
            gauges.finish(passing.stream.consumer)?;
        }
        let Passing {
            stream, sampled, ..
        } = &mut passing;
        sampled.pass_on(&self, samples, stream, &mut counts)?;
        consumer.finish()?;
        Ok(counts)
    }
}

impl<'r, 'c> Passing<'r, 'c> {
    fn new(tables: &'r Tables, consumer: &'c mut dyn Consumer) -> Passing<'r, 'c> {
        let processes = 0..tables.processes.len() as u32;
        let mut stream = Stream::new(consumer);
        let functions = tables.functions.all.iter().map(|row| {
            let name = tables.texts.get(row.name);
            Function {
                index: stream.new_function(),
                name: name.into(),
                domain: row.domain,
                group: group_of(name),
                parameters: tables
                    .texts
                    .get(row.parameters)
                    .lines()
                    .map(|name| Parameter {
                        name: name.into(),
                        kind: ArgumentType::STRING,
                    })
                    .collect(),
                category: None,
            }
        });
        let functions = functions.collect();
        let mut passing = Passing {
            tables,
            stream,
            lanes: Vec::new(),
            queues: Vec::new(),
            functions,
            gauges: processes
                .map(|process| Gauges::new(ProcessIndex(process)))
                .collect(),
            values: vec![None; tables.counters.all.len()],
            dispatch_counters: HashMap::new(),
            memory: HashMap::new(),
            allocated: HashMap::new(),
            sampled: DispatchCounts::default(),
            shown: HashSet::new(),
        };
        passing
            .lanes
            .resize_with(tables.lanes.all.len(), LanePlace::default);
        passing
            .queues
            .resize_with(tables.queues.all.len(), QueueRows::default);
        passing
    }

    /// The process and the thread of a row.
    fn owner(&self, row: &HostRow) -> (Option<ProcessHandle>, u32) {
        let lane = self.tables.lanes.get(row.lane.0).map(HostLane::owner);
        lane.map_or((None, 0), |(process, thread)| (Some(process), thread))
    }

    /// Passes on an event.
    fn entry(&mut self, entry: SorterEntry, counts: &mut RowCounts) -> io::Result<()> {
        let start = match &entry {
            SorterEntry::Host(entry) => entry.row.start,
            SorterEntry::Work(entry) => entry.row.start,
            _ => 0,
        };
        if start > LATEST {
            counts.too_late += 1;
            return Ok(());
        }
        match entry {
            SorterEntry::Host(entry) => self.host(&entry, counts),
            SorterEntry::Work(entry) => self.work(&entry, counts),
            SorterEntry::Value(row) => self.value(&row, counts),
            SorterEntry::Memory(row) => self.memory(&row),
            SorterEntry::Counter(..) | SorterEntry::Sample(..) => Ok(()),
        }
    }

    /// Ends the events that are open.
    fn end_lanes(&mut self) -> io::Result<()> {
        for lane in &mut self.lanes {
            let tracks = &lane.tracks;
            let consumer = &mut self.stream.consumer;
            lane.rows.finish(|row, end| match end {
                NO_END => Ok(()),
                end => consumer.end(tracks[row], time(end)),
            })?;
        }
        Ok(())
    }

    /// Passes on a row of the host.
    fn host(&mut self, entry: &HostEntry, counts: &mut RowCounts) -> io::Result<()> {
        let (tables, row) = (self.tables, &entry.row);
        if matches!(row.kind, HostKind::Call(..)) && !self.stream.consumer.wants_calls() {
            return Ok(());
        }
        let impossible = is_impossible(row.start, row.end);
        let end = if impossible { row.start } else { row.end };
        let (track, nested) = self.place(row, end)?;
        let texts = &tables.texts;
        let arguments = arguments(texts, &entry.arguments, &mut self.shown, counts);
        let (process, thread) = self.owner(row);
        let known_end = (end != NO_END).then_some(time(end));
        let slice = |name, category, arguments| Slice {
            track,
            name,
            category,
            start: time(row.start),
            end: known_end,
            open: true,
            correlation: CorrelationId(row.correlation),
            arguments,
            flows: &[],
        };
        if impossible {
            counts.impossible += 1;
            let name = match row.kind {
                HostKind::Call(function, _) => &*self.functions[function.0 as usize].name,
                HostKind::Slice(name, _) | HostKind::Instant(name, _) => texts.get(name),
            };
            let mut arguments = arguments;
            arguments.push(EventArgument {
                name: "end",
                value: Value::Uint(row.end),
            });
            let slice = slice(name, IMPOSSIBLE, &arguments[..]);
            return self.stream.consumer.slice(&slice);
        }
        match (row.kind, process) {
            (HostKind::Call(function, error), Some(process)) => {
                counts.calls += 1;
                let submitted = entry.submitted.iter().map(|id| EventId(*id));
                let submitted: Vec<EventId> = submitted.collect();
                self.stream.consumer.call(&Call {
                    process: process_index(process),
                    thread: ThreadId(thread),
                    track,
                    function: &self.functions[function.0 as usize],
                    start: time(row.start),
                    end: known_end,
                    open: true,
                    nested,
                    correlation: CorrelationId(row.correlation),
                    external: ExternalId(row.external),
                    error,
                    submitted: &submitted,
                    waited: &[],
                    arguments: &arguments.iter().map(|one| one.value).collect::<Vec<_>>(),
                    flows: &[],
                })
            }
            (HostKind::Slice(name, category), _) => {
                counts.slices += 1;
                let slice = slice(texts.get(name), texts.get(category), &arguments[..]);
                self.stream.consumer.slice(&slice)
            }
            (HostKind::Instant(name, category), _) => {
                counts.instants += 1;
                self.stream.consumer.instant(&Instant {
                    track,
                    name: texts.get(name),
                    category: texts.get(category),
                    time: time(row.start),
                    arguments: &arguments,
                    flows: &[],
                })
            }
            (HostKind::Call(..), None) => Ok(()),
        }
    }

    /// The track of a row that ends at `end`, and whether it is inside another event there.
    fn place(&mut self, row: &HostRow, end: u64) -> io::Result<(TrackIndex, bool)> {
        let place = row.lane.0 as usize;
        if let HostKind::Instant(..) = row.kind {
            return Ok((self.track(place, 0)?, false));
        }
        let lane = &mut self.lanes[place];
        let (consumer, tracks) = (&mut self.stream.consumer, &lane.tracks);
        let (index, depth) = lane.rows.nest(row.start, end, |row, end| match end {
            NO_END => Ok(()),
            end => consumer.end(tracks[row], time(end)),
        })?;
        Ok((self.track(place, index)?, depth > 0))
    }

    /// The track of a row of a lane, which is declared with its first event.
    fn track(&mut self, place: usize, row: usize) -> io::Result<TrackIndex> {
        while self.lanes[place].tracks.len() <= row {
            let track = self.declare(place)?;
            self.lanes[place].tracks.push(track);
        }
        Ok(self.lanes[place].tracks[row])
    }

    /// Declares the next track of a lane.
    fn declare(&mut self, place: usize) -> io::Result<TrackIndex> {
        let tables = self.tables;
        let row = self.lanes[place].tracks.len();
        let numbered = |name: &str| match row {
            0 => name.to_owned(),
            row => format!("{name} row {}", row + 1),
        };
        let of_process = |process| Parent::Process(process_index(process));
        let (parent, name, kind) = match tables.lanes.all[place] {
            HostLane::Thread(process, thread) => match row {
                0 => {
                    let name = tables.threads.get(&(process, thread));
                    let name = name.cloned().unwrap_or_default();
                    let kind = TrackKind::Thread(process_index(process), ThreadId(thread));
                    (of_process(process), name, kind)
                }
                _ => {
                    let parent = Parent::Track(self.lanes[place].tracks[0]);
                    (parent, numbered("calls"), TrackKind::Slices)
                }
            },
            HostLane::ThreadRanges(process, thread) => {
                let parent = Parent::Track(self.thread_track(process, thread)?);
                let kind = match row {
                    0 => TrackKind::ThreadRanges(process_index(process), ThreadId(thread)),
                    _ => TrackKind::Ranges,
                };
                (parent, numbered("markers"), kind)
            }
            HostLane::Ranges(process) => {
                (of_process(process), numbered("ranges"), TrackKind::Ranges)
            }
            HostLane::Process(process, name) => (
                of_process(process),
                numbered(tables.texts.get(name)),
                TrackKind::Slices,
            ),
            HostLane::OfThread(process, thread, name) => {
                let parent = Parent::Track(self.thread_track(process, thread)?);
                let name = numbered(tables.texts.get(name));
                (parent, name, TrackKind::Slices)
            }
        };
        self.stream.new_track(&Track {
            parent,
            name: &name,
            kind,
            order: None,
        })
    }

    /// The track of a thread.
    fn thread_track(&mut self, process: ProcessHandle, thread: u32) -> io::Result<TrackIndex> {
        let lane = HostLane::Thread(process, thread);
        let place = self.tables.lanes.places.get(&lane);
        let place = place.ok_or_else(|| io::Error::other("a thread has no lane"))?;
        self.track(*place as usize, 0)
    }

    /// Passes on work.
    fn work(&mut self, entry: &WorkEntry, counts: &mut RowCounts) -> io::Result<()> {
        let (tables, row) = (self.tables, &entry.row);
        let unmeasured = row.start == 0 && row.end == 0;
        let impossible = is_impossible(row.start, row.end) || row.end == NO_END;
        counts.work += 1;
        counts.unmeasured += u64::from(unmeasured);
        counts.impossible += u64::from(impossible);
        let end = if impossible { row.start } else { row.end };
        let Some(queue_row) = tables.queues.get(row.queue.0).copied() else {
            return Ok(());
        };
        let queue = if unmeasured {
            self.queue(row.queue, 0)?
        } else {
            let place = self.queues[row.queue.0 as usize]
                .rows
                .follow(row.start, end);
            counts.overlapping += u64::from(place > 0);
            self.queue(row.queue, place)?
        };
        let process = process_index(row.process);
        let agent = agent_index(queue_row.agent);
        let Some(stage) = tables.stages.get(row.stage.0).copied() else {
            return Ok(());
        };
        let texts = &tables.texts;
        let mut arguments = arguments(texts, &entry.arguments, &mut self.shown, counts);
        arguments.extend(entry.counters.iter().map(|(name, value)| EventArgument {
            name: texts.get(*name),
            value: Value::Double(*value),
        }));
        let submitter = entry.submitter;
        let interval = (!unmeasured && !impossible).then_some((time(row.start), time(end)));
        let outcomes = Some(&entry.outcomes).filter(|outcomes| !outcomes.is_empty());
        let samples = outcomes.map(|outcomes| WorkSamples::of(0, outcomes));
        let of_call = submitter.and_then(|(_, lane)| tables.lanes.get(lane.0));
        let thread = match (row.thread, of_call) {
            (0, Some(lane)) => lane.owner().1,
            (thread, _) => thread,
        };
        self.sampled.ran(tables, row);
        // Before the work: some consumers tell its counters among its arguments by their declarations.
        self.dispatch_counters(entry, queue_row.agent, counts)?;
        self.stream.consumer.work(&Work {
            process,
            thread: ThreadId(thread),
            correlation: CorrelationId(row.correlation),
            event: Some(EventId(entry.event)),
            agent,
            queue,
            stream: queue_row.stream,
            stage: Stage {
                id: StageId(u64::from(row.stage.0) + 1),
                kind: stage.kind,
                name: texts.get(stage.name),
                demangled: texts.get(stage.demangled),
                architecture: match tables.agents.get(queue_row.agent.0 as usize) {
                    Some(agent) if stage.kind == WorkKind::Kernel => &agent.agent.architecture,
                    _ => "",
                },
            },
            enqueued: submitter.map(|(start, _)| time(start)),
            queued: None,
            submitted: None,
            interval,
            start: (!unmeasured).then_some(time(row.start)),
            duration: (!unmeasured).then_some(end - row.start),
            unfinished: match (unmeasured, impossible) {
                (true, _) => Some("the profiler did not measure it: start and end are 0"),
                (_, true) => Some("impossible times: it ends before it starts, or lasts for days"),
                _ => None,
            },
            launch: row.launch,
            resources: row.resources,
            bytes: row.bytes,
            status: 0,
            waits: &[],
            samples: samples.as_ref(),
            arguments: &arguments,
        })?;
        let running = match stage.kind {
            WorkKind::Kernel => GaugedWork::Kernel(row.launch.and_then(|launch| {
                let [x, y, z] = launch.workgroups()?.map(u64::from);
                Some(x.saturating_mul(y).saturating_mul(z))
            })),
            WorkKind::Copy => GaugedWork::Copy(row.bytes),
            _ => return Ok(()),
        };
        let units = tables.agents.get(queue_row.agent.0 as usize);
        let units = units.map_or(0, |agent| agent.compute_units);
        let known = interval.zip(self.gauges.get_mut(row.process.0 as usize));
        match known {
            Some((interval, gauges)) if row.bytes > 0 || stage.kind == WorkKind::Kernel => {
                gauges.add(&mut self.stream, (agent, units), running, interval)
            }
            _ => Ok(()),
        }
    }

    /// A row of a queue, which is declared with its first work.
    fn queue(&mut self, queue: QueueHandle, row: usize) -> io::Result<QueueIndex> {
        let tables = self.tables;
        let place = &mut self.queues[queue.0 as usize];
        while place.queues.len() <= row {
            let declared = tables.queues.all[queue.0 as usize];
            let name = tables.texts.get(declared.name);
            let name = match place.queues.len() {
                0 => name.to_owned(),
                before => format!("{name} row {}", before + 1),
            };
            let index = self.stream.new_queue(&Queue {
                process: process_index(declared.process),
                agent: agent_index(declared.agent),
                context: ContextId(declared.context),
                domain: declared.domain,
                name: &name,
                out_of_order: false,
            })?;
            place.queues.push(index);
        }
        Ok(place.queues[row])
    }

    /// Passes on a value of a counter that stands by itself.
    fn value(&mut self, row: &ValueRow, counts: &mut RowCounts) -> io::Result<()> {
        let place = row.counter.0 as usize;
        let track = match self.values[place] {
            Some(track) => track,
            None => {
                let counter = self.tables.counters.all[place];
                let track = self.stream.new_track(&Track {
                    parent: match counter.process {
                        Some(process) => Parent::Process(process_index(process)),
                        None => Parent::Trace,
                    },
                    name: self.tables.texts.get(counter.name),
                    kind: TrackKind::Counter(counter.unit),
                    order: None,
                })?;
                *self.values[place].insert(track)
            }
        };
        counts.values += 1;
        let value = match row.value {
            CounterNumber::Int(value) => CounterValue::Int(value),
            CounterNumber::Double(value) => CounterValue::Double(value),
        };
        self.stream.consumer.value(track, time(row.time), value)
    }

    /// Passes on the values of counters during a dispatch, as counters of its device: the value while the dispatch ran, and
    /// 0 between dispatches.
    fn dispatch_counters(
        &mut self,
        entry: &WorkEntry,
        agent: AgentHandle,
        counts: &mut RowCounts,
    ) -> io::Result<()> {
        let (tables, row) = (self.tables, &entry.row);
        if row.start == 0 || is_impossible(row.start, row.end) {
            return Ok(());
        }
        let stream = &mut self.stream;
        for (name, value) in &entry.counters {
            let key = (row.process, agent, *name);
            let (block, latest) = match self.dispatch_counters.get_mut(&key) {
                Some(known) => known,
                None => {
                    let index = stream.new_counters();
                    let name = tables.texts.get(*name).to_owned();
                    let block = CounterBlock {
                        name: name.clone(),
                        process: process_index(row.process),
                        agent: agent_index(agent),
                        memory: false,
                        over_time: false,
                        counters: vec![CounterDescription {
                            name,
                            description: "Counted while a dispatch ran".to_owned(),
                            unit: CounterUnit::Count,
                        }],
                    };
                    stream.consumer.counters(index, &block)?;
                    self.dispatch_counters.entry(key).or_insert((index, 0))
                }
            };
            let [zero, value] = [0.0, *value].map(CounterValue::Double);
            let consumer = &mut *stream.consumer;
            if row.start >= *latest {
                consumer.derived_values(*block, time(row.start), &[zero])?;
            }
            *latest = row.end.max(*latest);
            consumer.counter_values(*block, time(*latest), &[value])?;
            counts.values += 1;
        }
        Ok(())
    }

    /// Passes on a change of the memory in use, as a counter of its device.
    fn memory(&mut self, row: &MemoryRow) -> io::Result<()> {
        let allocation = (row.process, row.address);
        // A free gives back what was allocated at its address; what was allocated before the recording is not counted.
        let (agent, bytes) = if row.freed {
            match self.allocated.remove(&allocation) {
                Some(known) => known,
                None => return Ok(()),
            }
        } else {
            self.allocated.insert(allocation, (row.agent, row.bytes));
            (row.agent, row.bytes)
        };
        let (track, in_use) = match self.memory.get_mut(&(row.process, agent)) {
            Some(known) => known,
            None => {
                let name = match self.tables.agents.get(agent.0 as usize) {
                    Some(agent) => format!("{} memory in use", agent.agent.title),
                    None => "memory in use".to_owned(),
                };
                let track = self.stream.new_track(&Track {
                    parent: Parent::Process(process_index(row.process)),
                    name: &name,
                    kind: TrackKind::Counter(CounterUnit::Bytes),
                    order: None,
                })?;
                self.memory
                    .entry((row.process, agent))
                    .or_insert((track, 0))
            }
        };
        *in_use = if row.freed {
            in_use.saturating_sub(bytes)
        } else {
            in_use.saturating_add(bytes)
        };
        let value = CounterValue::Int(i64::try_from(*in_use).unwrap_or(i64::MAX));
        self.stream
            .consumer
            .derived_value(*track, time(row.time), value)
    }
}
