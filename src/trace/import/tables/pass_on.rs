//! Passes tables on: sorted, tied, and with a row for each event.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::rows::{Rows, order};
use super::samples::Sampled;
use super::{
    AgentHandle, ArgumentRow, ArgumentValue, CounterNumber, Counts, HostKind, HostRow, Lane,
    MAX_DURATION, NO_END, ProcessHandle, QueueHandle, Tables, TextId, WorkRow, group_of,
};
use crate::record::{
    ArgumentType, ContextId, CorrelationId, ExternalId, Nanos, ProcessId, ThreadId,
};
use crate::trace::import::Report;
use crate::trace::model::gauges::{Gauges, Running};
use crate::trace::model::{
    AgentIndex, Argument, Call, Consumer, CounterBlock, CounterDescription, CounterIndex,
    CounterUnit, CounterValue, EventId, Function, Instant, Parameter, Parent, Process,
    ProcessIndex, Queue, QueueIndex, Slice, Stage, StageId, Stream, Track, TrackIndex, TrackKind,
    Value, Work, WorkKind,
};

/// Bits of an event id below the number of its process.
const EVENT_BITS: u32 = 40;
/// The category of events whose times cannot be.
const IMPOSSIBLE: &str = "impossible times";

/// The tracks and rows of a lane.
#[derive(Default)]
struct LanePlace {
    rows: Rows,
    tracks: Vec<TrackIndex>,
}

/// The rows of a queue.
#[derive(Default)]
struct QueuePlace {
    rows: Rows,
    queues: Vec<QueueIndex>,
}

/// The call that submitted work.
#[derive(Copy, Clone)]
struct Submitter {
    /// Its place among the rows of the host.
    row: usize,
    start: u64,
    thread: u32,
}

/// A process and a correlation id.
type CallKey = (ProcessHandle, u64);

/// Tables that are being passed on.
struct Passing<'r, 'c> {
    tables: &'r Tables,
    stream: Stream<'c>,
    lanes: Vec<LanePlace>,
    queues: Vec<QueuePlace>,
    functions: Vec<Function>,
    gauges: Vec<Gauges>,
    /// Work by the call that submitted it, sorted.
    submitted: Vec<(CallKey, EventId)>,
    submitters: HashMap<CallKey, Submitter>,
    /// Counters that were counted during dispatches.
    dispatch_counters: HashMap<(ProcessHandle, u64), Vec<(TextId, f64)>>,
    /// Places of the work that took counters, and these.
    counted: Vec<(u32, Vec<(TextId, f64)>)>,
    sampled: Sampled,
    counts: Counts,
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
    /// The earliest time of a row.
    fn first_time(&self) -> u64 {
        let host = self.host.iter().map(|row| row.start);
        let work = self.work.iter().map(|row| row.start);
        let samples = self.samples.iter().map(|row| row.time);
        let values = self.values.iter().map(|row| row.time);
        let all = host.chain(work).chain(samples).chain(values);
        all.filter(|time| *time != 0).min().unwrap_or(1)
    }

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
        ];
        for (count, reason) in remarks {
            report.remarks(file, reason, count);
        }
        let reason = "values of counters of dispatches that no table has";
        report.unrepresented_many(file, reason, counts.without_dispatch);
        Ok(())
    }

    fn produce(mut self, consumer: &mut dyn Consumer) -> io::Result<Counts> {
        if self.header.clocks.boottime == 0 {
            self.header.clocks.boottime = self.first_time();
        }
        let clocks = &mut self.header.clocks;
        if clocks.monotonic == 0 {
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
        self.host
            .sort_by_key(|row| (order(row.start, row.end), row.lane));
        self.work.sort_by_key(|row| (row.start, row.end));
        self.values.sort_by_key(|row| row.time);
        self.memory.sort_by_key(|row| row.time);
        self.samples.sort_by_key(|row| row.time);
        let mut passing = Passing::new(&self, consumer);
        passing.events()?;
        passing.values()?;
        passing.dispatch_counters()?;
        passing.memory()?;
        for gauges in &mut passing.gauges {
            gauges.finish(passing.stream.consumer)?;
        }
        passing.samples()?;
        let counts = passing.counts;
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
            submitted: Vec::new(),
            submitters: HashMap::new(),
            dispatch_counters: HashMap::new(),
            counted: Vec::new(),
            sampled: Sampled::new(tables),
            counts: Counts::default(),
        };
        passing
            .lanes
            .resize_with(tables.lanes.all.len(), LanePlace::default);
        passing
            .queues
            .resize_with(tables.queues.all.len(), QueuePlace::default);
        for row in &tables.dispatch_counters {
            let counters = passing
                .dispatch_counters
                .entry((row.process, row.dispatch))
                .or_default();
            counters.push((row.counter, row.value));
        }
        passing.tie();
        passing
    }

    /// Finds the call that submitted each piece of work: the outermost one with its correlation id.
    fn tie(&mut self) {
        let numbered = (0..).zip(&self.tables.work);
        let with_call = numbered.filter(|(_, row)| row.correlation != 0 && row.start != 0);
        self.submitted = with_call
            .map(|(number, row)| ((row.process, row.correlation), event_id(row, number)))
            .collect();
        self.submitted.sort_unstable();
        for (number, row) in self.tables.host.iter().enumerate() {
            let HostKind::Call(..) = row.kind else {
                continue;
            };
            let (Some(process), thread) = self.owner(row) else {
                continue;
            };
            let key = (process, row.correlation);
            if row.correlation != 0 && !self.submitted_by(key).is_empty() {
                self.submitters.entry(key).or_insert(Submitter {
                    row: number,
                    start: row.start,
                    thread,
                });
            }
        }
    }

    fn submitted_by(&self, key: CallKey) -> &[(CallKey, EventId)] {
        let first = self.submitted.partition_point(|(one, _)| *one < key);
        let rest = &self.submitted[first..];
        &rest[..rest.partition_point(|(one, _)| *one == key)]
    }

    /// The process and the thread of a row.
    fn owner(&self, row: &HostRow) -> (Option<ProcessHandle>, u32) {
        match self.tables.lanes.get(row.lane.0) {
            Some(
                Lane::Thread(process, thread)
                | Lane::ThreadRanges(process, thread)
                | Lane::OfThread(process, thread, _),
            ) => (Some(*process), *thread),
            Some(Lane::Ranges(process) | Lane::Process(process, _)) => (Some(*process), 0),
            None => (None, 0),
        }
    }

    /// Passes on calls, ranges, markers and work, by their starts.
    fn events(&mut self) -> io::Result<()> {
        let wants_calls = self.stream.consumer.wants_calls();
        let tables = self.tables;
        let mut work = (0..).zip(&tables.work).peekable();
        for (number, row) in tables.host.iter().enumerate() {
            while let Some((number, row)) = work.next_if(|(_, work)| work.start <= row.start) {
                self.work(number, row)?;
            }
            if wants_calls || !matches!(row.kind, HostKind::Call(..)) {
                self.host(number, row)?;
            }
        }
        for (number, row) in work {
            self.work(number, row)?;
        }
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
    fn host(&mut self, number: usize, row: &HostRow) -> io::Result<()> {
        let tables = self.tables;
        let impossible = is_impossible(row.start, row.end);
        let end = if impossible { row.start } else { row.end };
        let (track, nested) = self.place(row, end)?;
        let texts = &tables.texts;
        let arguments = arguments(texts, tables.arguments_of(row.arguments));
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
            self.counts.impossible += 1;
            let name = match row.kind {
                HostKind::Call(function, _) => &*self.functions[function.0 as usize].name,
                HostKind::Slice(name, _) | HostKind::Instant(name, _) => texts.get(name),
            };
            let mut arguments = arguments;
            arguments.push(Argument {
                name: "end",
                value: Value::Uint(row.end),
            });
            let slice = slice(name, IMPOSSIBLE, &arguments[..]);
            return self.stream.consumer.slice(&slice);
        }
        match (row.kind, process) {
            (HostKind::Call(function, error), Some(process)) => {
                self.counts.calls += 1;
                let key = (process, row.correlation);
                let is_submitter = self
                    .submitters
                    .get(&key)
                    .is_some_and(|submitter| submitter.row == number);
                let submitted: Vec<EventId> = match is_submitter {
                    true => self.submitted_by(key).iter().map(|(_, id)| *id).collect(),
                    false => Vec::new(),
                };
                self.counts.ties += submitted.len() as u64;
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
                self.counts.slices += 1;
                let slice = slice(texts.get(name), texts.get(category), &arguments[..]);
                self.stream.consumer.slice(&slice)
            }
            (HostKind::Instant(name, category), _) => {
                self.counts.instants += 1;
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
            Lane::Thread(process, thread) => match row {
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
            Lane::ThreadRanges(process, thread) => {
                let parent = Parent::Track(self.thread_track(process, thread)?);
                let kind = match row {
                    0 => TrackKind::ThreadRanges(process_index(process), ThreadId(thread)),
                    _ => TrackKind::Ranges,
                };
                (parent, numbered("markers"), kind)
            }
            Lane::Ranges(process) => (of_process(process), numbered("ranges"), TrackKind::Ranges),
            Lane::Process(process, name) => (
                of_process(process),
                numbered(tables.texts.get(name)),
                TrackKind::Slices,
            ),
            Lane::OfThread(process, thread, name) => {
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
        let lane = Lane::Thread(process, thread);
        let place = self.tables.lanes.places.get(&lane);
        let place = place.ok_or_else(|| io::Error::other("a thread has no lane"))?;
        self.track(*place as usize, 0)
    }

    /// Passes on work.
    fn work(&mut self, number: u32, row: &WorkRow) -> io::Result<()> {
        let tables = self.tables;
        let unmeasured = row.start == 0 && row.end == 0;
        let impossible = is_impossible(row.start, row.end) || row.end == NO_END;
        self.counts.work += 1;
        self.counts.unmeasured += u64::from(unmeasured);
        self.counts.impossible += u64::from(impossible);
        let end = if impossible { row.start } else { row.end };
        let Some(queue_row) = tables.queues.get(row.queue.0).copied() else {
            return Ok(());
        };
        let queue = match unmeasured {
            true => self.queue(row.queue, 0)?,
            false => {
                let place = self.queues[row.queue.0 as usize]
                    .rows
                    .follow(row.start, end);
                self.counts.overlapping += u64::from(place > 0);
                self.queue(row.queue, place)?
            }
        };
        let process = process_index(row.process);
        let agent = agent_index(queue_row.agent);
        let Some(stage) = tables.stages.get(row.stage.0).copied() else {
            return Ok(());
        };
        let texts = &tables.texts;
        let mut arguments = arguments(texts, tables.arguments_of(row.arguments));
        // Only one piece of work has the number of a dispatch.
        let counters = match row.dispatch {
            0 => None,
            dispatch => self.dispatch_counters.remove(&(row.process, dispatch)),
        };
        if let Some(counters) = counters {
            arguments.extend(counters.iter().map(|(name, value)| Argument {
                name: texts.get(*name),
                value: Value::Double(*value),
            }));
            self.counted.push((number, counters));
        }
        let submitter = self.submitters.get(&(row.process, row.correlation));
        self.counts.early += u64::from(
            !unmeasured && submitter.is_some_and(|submitter| row.start < submitter.start),
        );
        let interval = (!unmeasured && !impossible).then_some((time(row.start), time(end)));
        let samples = self.sampled.of(row.process, row.dispatch);
        let thread = match (row.thread, submitter) {
            (0, Some(submitter)) => submitter.thread,
            (thread, _) => thread,
        };
        self.stream.consumer.work(&Work {
            process,
            thread: ThreadId(thread),
            correlation: CorrelationId(row.correlation),
            event: Some(event_id(row, number)),
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
            enqueued: submitter.map(|submitter| time(submitter.start)),
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
            WorkKind::Kernel => Running::Kernel(row.launch.and_then(|launch| {
                let [x, y, z] = launch.workgroups()?.map(u64::from);
                Some(x.saturating_mul(y).saturating_mul(z))
            })),
            WorkKind::Copy => Running::Copy(row.bytes),
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

    /// Passes on the values of counters that stand by themselves.
    fn values(&mut self) -> io::Result<()> {
        let tables = self.tables;
        let mut tracks: Vec<Option<TrackIndex>> = vec![None; tables.counters.all.len()];
        for row in &tables.values {
            let place = row.counter.0 as usize;
            let track = match tracks[place] {
                Some(track) => track,
                None => {
                    let counter = tables.counters.all[place];
                    let track = self.stream.new_track(&Track {
                        parent: match counter.process {
                            Some(process) => Parent::Process(process_index(process)),
                            None => Parent::Trace,
                        },
                        name: tables.texts.get(counter.name),
                        kind: TrackKind::Counter(counter.unit),
                        order: None,
                    })?;
                    *tracks[place].insert(track)
                }
            };
            self.counts.values += 1;
            let value = match row.value {
                CounterNumber::Int(value) => CounterValue::Int(value),
                CounterNumber::Double(value) => CounterValue::Double(value),
            };
            self.stream.consumer.value(track, time(row.time), value)?;
        }
        Ok(())
    }

    /// Passes on what was counted during dispatches, as counters of their device: the value while the dispatch ran, and 0
    /// between dispatches.
    fn dispatch_counters(&mut self) -> io::Result<()> {
        let tables = self.tables;
        let mut blocks: HashMap<(ProcessHandle, AgentHandle, TextId), (CounterIndex, u64)> =
            HashMap::new();
        for (number, counters) in std::mem::take(&mut self.counted) {
            let row = &tables.work[number as usize];
            let Some(queue) = tables.queues.get(row.queue.0) else {
                continue;
            };
            for (name, value) in &counters {
                if row.start == 0 || is_impossible(row.start, row.end) {
                    continue;
                }
                let stream = &mut self.stream;
                let key = (row.process, queue.agent, *name);
                let (block, latest) = match blocks.get_mut(&key) {
                    Some(known) => known,
                    None => {
                        let index = stream.new_counters();
                        let name = tables.texts.get(*name).to_owned();
                        stream.consumer.counters(
                            index,
                            &CounterBlock {
                                name: name.clone(),
                                process: process_index(row.process),
                                agent: agent_index(queue.agent),
                                memory: false,
                                counters: vec![CounterDescription {
                                    name,
                                    description: "Counted while a dispatch ran".to_owned(),
                                    unit: CounterUnit::Count,
                                }],
                            },
                        )?;
                        blocks.entry(key).or_insert((index, 0))
                    }
                };
                if row.start >= *latest {
                    let none = [CounterValue::Double(0.0)];
                    stream
                        .consumer
                        .counter_values(*block, time(row.start), &none)?;
                }
                *latest = row.end.max(*latest);
                let value = [CounterValue::Double(*value)];
                stream
                    .consumer
                    .counter_values(*block, time(*latest), &value)?;
                self.counts.values += 1;
            }
        }
        let left = self.dispatch_counters.values().map(Vec::len);
        self.counts.without_dispatch = left.sum::<usize>() as u64;
        Ok(())
    }

    /// Passes on the memory in use, as a counter of each device.
    fn memory(&mut self) -> io::Result<()> {
        let tables = self.tables;
        let mut tracks: HashMap<(ProcessHandle, AgentHandle), (TrackIndex, u64)> = HashMap::new();
        let mut live: HashMap<(ProcessHandle, u64), (AgentHandle, u64)> = HashMap::new();
        for row in &tables.memory {
            let allocation = (row.process, row.address);
            // A free gives back what was allocated at its address; what was allocated before the recording is not counted.
            let (agent, bytes) = match row.freed {
                false => {
                    live.insert(allocation, (row.agent, row.bytes));
                    (row.agent, row.bytes)
                }
                true => match live.remove(&allocation) {
                    Some(known) => known,
                    None => continue,
                },
            };
            let (track, in_use) = match tracks.get_mut(&(row.process, agent)) {
                Some(known) => known,
                None => {
                    let agent_row = tables.agents.get(agent.0 as usize);
                    let name = match agent_row {
                        Some(agent) => format!("{} memory in use", agent.agent.title),
                        None => "memory in use".to_owned(),
                    };
                    let track = self.stream.new_track(&Track {
                        parent: Parent::Process(process_index(row.process)),
                        name: &name,
                        kind: TrackKind::Counter(CounterUnit::Bytes),
                        order: None,
                    })?;
                    tracks.entry((row.process, agent)).or_insert((track, 0))
                }
            };
            *in_use = match row.freed {
                true => in_use.saturating_sub(bytes),
                false => in_use.saturating_add(bytes),
            };
            let value = CounterValue::Int(i64::try_from(*in_use).unwrap_or(i64::MAX));
            self.stream.consumer.value(*track, time(row.time), value)?;
        }
        Ok(())
    }

    /// Passes on samples.
    fn samples(&mut self) -> io::Result<()> {
        self.counts.samples = self.tables.samples.len() as u64;
        self.sampled.pass_on(self.tables, &mut self.stream)
    }
}

/// The event id of the piece of work with this number among the work of the tables.
fn event_id(row: &WorkRow, number: u32) -> EventId {
    EventId(u64::from(row.process.0) << EVENT_BITS | (u64::from(number) + 1))
}

fn arguments<'r>(texts: &'r super::Texts, rows: &[ArgumentRow]) -> Vec<Argument<'r>> {
    let argument = |row: &ArgumentRow| Argument {
        name: texts.get(row.name),
        value: match row.value {
            ArgumentValue::Uint(value) => Value::Uint(value),
            ArgumentValue::Int(value) => Value::Int(value),
            ArgumentValue::Double(value) => Value::Double(value),
            ArgumentValue::Text(value) => Value::Text(texts.get(value)),
            ArgumentValue::Pointer(value) => Value::Pointer(value),
        },
    };
    rows.iter().map(argument).collect()
}
