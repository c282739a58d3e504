//! The model as rows of the tables of [`schema`](super::schema).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use super::schema::{self, RowValue, TableSchema};
use super::spans::{OpenSpans, Span};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{AgentId, CodeObjectId, KernelId, Nanos, SamplingMethod, ThreadId};
use gputrail_trace::json;
use gputrail_trace::model::{
    Agent, AgentIndex, Call, CodeAddress, Consumer, CounterBlock, CounterIndex, CounterUnit,
    CounterValue, EventArgument, EventId, FlowPoint, Instant, Loss, Note, Parent, Process,
    ProcessIndex, Queue, QueueIndex, SamplerIndex, Samples, Slice, SliceEnd, StackSamples, Track,
    TrackIndex, TrackKind, Work, WorkKind,
};
use gputrail_trace::ranks::{NO_RANK, collective, rank_of};

/// Takes rows.
pub trait RowSink: Send {
    /// A row of `table` about a process of rank `rank`.
    fn row(
        &mut self,
        table: &'static TableSchema,
        rank: i64,
        cells: &[RowValue<'_>],
    ) -> io::Result<()>;

    /// There are no more rows.
    fn finish(&mut self) -> io::Result<()>;
}

/// Takes rows and keeps none, to count what the tables leave out.
#[derive(Copy, Clone, Debug)]
pub struct NoRows;

impl RowSink for NoRows {
    fn row(&mut self, _: &'static TableSchema, _: i64, _: &[RowValue<'_>]) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes the model on as rows.
#[derive(Debug)]
pub struct RowWriter<R> {
    rows: R,
    /// Ranks of the processes.
    processes: Vec<i64>,
    /// Rank of the process that was declared last.
    rank: i64,
    tracks: Vec<RowTrack>,
    agents: Vec<Agent>,
    /// Agents that have a row, by rank.
    known_agents: BTreeSet<(i64, u32)>,
    blocks: BTreeMap<CounterIndex, CounterBlock>,
    open: OpenSpans,
    samplers: HashMap<SamplerIndex, DeclaredSampler>,
    /// Attributes that have come before the process of their recording.
    attributes: Vec<(String, String)>,
    left_out: u64,
}

/// A track.
#[derive(Clone, Debug)]
struct RowTrack {
    rank: i64,
    process: Option<ProcessIndex>,
    thread: Option<ThreadId>,
    name: String,
    unit: Option<CounterUnit>,
}

/// The declarations of a sampler.
#[derive(Debug, Default)]
struct DeclaredSampler {
    process: Option<ProcessIndex>,
    texts: HashMap<u32, String>,
    agents: HashMap<AgentId, String>,
    kernels: HashMap<KernelId, String>,
    addresses: HashMap<u32, CodeAddress>,
}

impl DeclaredSampler {
    fn declare(&mut self, part: &Samples) {
        self.process = part.process.or(self.process);
        self.texts.extend(part.texts.iter().cloned());
        self.agents.extend(part.agents.iter().cloned());
        self.kernels.extend(part.kernels.iter().cloned());
        let addresses = part.addresses.iter();
        self.addresses
            .extend(addresses.map(|address| (address.id, address.clone())));
    }

    fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", |text| text)
    }

    /// Function, file and line of an address.
    fn source(&self, address: Option<&CodeAddress>) -> [RowValue<'_>; 3] {
        let Some(frame) = address.and_then(|address| address.frames.first()) else {
            return [RowValue::Null; 3];
        };
        [
            RowValue::Text(self.text(frame.function)),
            frame
                .file
                .map_or(RowValue::Null, |file| RowValue::Text(self.text(file))),
            frame
                .line
                .map_or(RowValue::Null, |line| RowValue::Int(line.into())),
        ]
    }
}

/// A name for the state of a sampled wave.
fn state(outcome: WaveOutcome) -> &'static str {
    match outcome {
        outcome if outcome.method != SamplingMethod::STOCHASTIC => "unknown",
        outcome if outcome.issued() => "issued",
        outcome => outcome.reason.name().unwrap_or("other"),
    }
}

fn whole(number: impl Into<u64>) -> RowValue<'static> {
    RowValue::Int(number.into() as i64)
}

fn maybe(number: Option<impl Into<u64>>) -> RowValue<'static> {
    number.map_or(RowValue::Null, whole)
}

/// A number for which 0 stands for none.
fn known(number: impl Into<u64>) -> RowValue<'static> {
    Some(number.into())
        .filter(|number| *number != 0)
        .map_or(RowValue::Null, whole)
}

fn time(time: Option<Nanos>) -> RowValue<'static> {
    maybe(time.map(|time| time.0))
}

/// A text; no value if it is empty.
fn text(text: &str) -> RowValue<'_> {
    match text {
        "" => RowValue::Null,
        text => RowValue::Text(text),
    }
}

fn agent_cell(agent: AgentIndex) -> RowValue<'static> {
    match agent {
        AgentIndex::UNKNOWN => RowValue::Null,
        agent => whole(agent.0),
    }
}

fn process_cell(process: Option<ProcessIndex>) -> RowValue<'static> {
    maybe(process.map(|process| process.0))
}

fn value_cells(value: CounterValue) -> [RowValue<'static>; 2] {
    match value {
        CounterValue::Int(value) => [RowValue::Double(value as f64), RowValue::Int(value)],
        CounterValue::Double(value) => [RowValue::Double(value), RowValue::Null],
    }
}

fn object(arguments: &[EventArgument<'_>]) -> String {
    json::object(arguments.iter().copied())
}

impl<R: RowSink> RowWriter<R> {
    /// Passes rows on to `rows`.
    pub fn new(rows: R) -> RowWriter<R> {
        RowWriter {
            rows,
            processes: Vec::new(),
            rank: NO_RANK,
            tracks: Vec::new(),
            agents: Vec::new(),
            known_agents: BTreeSet::new(),
            blocks: BTreeMap::new(),
            open: OpenSpans::default(),
            samplers: HashMap::new(),
            attributes: Vec::new(),
            left_out: 0,
        }
    }

    /// Number of events that no table holds.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Where the rows went.
    pub fn into_inner(self) -> R {
        self.rows
    }

    fn rank_of(&self, process: ProcessIndex) -> i64 {
        let rank = self.processes.get(process.0 as usize);
        rank.copied().unwrap_or(self.rank)
    }

    fn place(&self, track: TrackIndex) -> io::Result<RowTrack> {
        let place = self.tracks.get(track.0 as usize);
        place
            .cloned()
            .ok_or_else(|| io::Error::other("an event refers to a track that was not declared"))
    }

    /// Makes sure that an agent has a row for this rank.
    fn agent(&mut self, rank: i64, index: AgentIndex) -> io::Result<()> {
        let Some(agent) = self.agents.get(index.0 as usize) else {
            return Ok(());
        };
        if !self.known_agents.insert((rank, index.0)) {
            return Ok(());
        }
        self.rows.row(
            &schema::AGENTS,
            rank,
            &[
                whole(index.0),
                RowValue::Text(&agent.title),
                RowValue::Text(&agent.name),
                text(&agent.vendor),
                text(&agent.model),
                text(&agent.architecture),
                text(&agent.pci_address),
            ],
        )
    }

    fn write_attributes(&mut self) -> io::Result<()> {
        for (key, value) in std::mem::take(&mut self.attributes) {
            let cells = [RowValue::Text(&key), RowValue::Text(&value)];
            self.rows.row(&schema::RECORDINGS, self.rank, &cells)?;
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>) -> io::Result<()> {
        let (name, category) = (RowValue::Text(&span.name), RowValue::Text(&span.category));
        let (start, end, duration) = (whole(span.start.0), time(span.end), maybe(span.duration()));
        let depth = whole(span.depth);
        let correlation = known(span.correlation.0);
        let arguments = text(&span.arguments);
        let track = whole(span.track.0);
        let Some(call) = &span.call else {
            let place = self.place(span.track)?;
            let process = process_cell(place.process);
            let thread = maybe(place.thread.map(|thread| thread.0));
            let cells = [
                process,
                thread,
                track,
                name,
                category,
                start,
                end,
                duration,
                depth,
                correlation,
                arguments,
            ];
            return self.rows.row(&schema::SLICES, place.rank, &cells);
        };
        let rank = self.rank_of(call.process);
        let process = whole(call.process.0);
        let cells = [
            process,
            whole(call.thread.0),
            track,
            name,
            category,
            RowValue::Text(call.group),
            start,
            end,
            duration,
            depth,
            correlation,
            known(call.external.0),
            call.error
                .map_or(RowValue::Null, |error| RowValue::Int(error.into())),
            arguments,
        ];
        self.rows.row(&schema::CALLS, rank, &cells)?;
        for (kind, list) in [("submits", &call.submitted), ("waits", &call.waited)] {
            for event in list {
                let cells = [
                    RowValue::Text(kind),
                    process,
                    correlation,
                    RowValue::Null,
                    whole(event.0),
                ];
                self.rows.row(&schema::DEPENDENCIES, rank, &cells)?;
            }
        }
        Ok(())
    }

    fn flows(&mut self, track: TrackIndex, time: Nanos, flows: &[FlowPoint]) -> io::Result<()> {
        if flows.is_empty() {
            return Ok(());
        }
        let rank = self.place(track)?.rank;
        for point in flows {
            let cells = [
                whole(point.flow.0),
                whole(track.0),
                whole(time.0),
                RowValue::Bool(point.last),
            ];
            self.rows.row(&schema::FLOWS, rank, &cells)?;
        }
        Ok(())
    }

    /// Rows of the counts and of the single samples of one part.
    fn sample_rows(&mut self, part: &Samples, sampler: &DeclaredSampler) -> io::Result<()> {
        let rank = sampler.process.map_or(self.rank, |p| self.rank_of(p));
        let process = process_cell(sampler.process);
        let name = |found: Option<&String>| found.map_or("", |name| name).to_owned();
        for count in &part.counts {
            let agent = name(sampler.agents.get(&count.agent));
            let kernel = name(sampler.kernels.get(&count.kernel));
            let address = sampler.addresses.get(&count.address);
            let [function, file, line] = sampler.source(address);
            for outcome in &count.outcomes {
                let cells = [
                    process,
                    RowValue::Text(&agent),
                    RowValue::Text(&kernel),
                    RowValue::Text(address.map_or("", |address| sampler.text(address.symbol))),
                    function,
                    file,
                    line,
                    RowValue::Text(address.map_or("", |address| sampler.text(address.instruction))),
                    address
                        .filter(|address| address.code_object != CodeObjectId::default())
                        .map_or(RowValue::Null, |address| whole(address.code_object.0)),
                    whole(address.map_or(0, |address| address.offset)),
                    RowValue::Text(outcome.outcome.method.name().unwrap_or("unknown")),
                    RowValue::Text(state(outcome.outcome)),
                    whole(outcome.samples),
                ];
                self.rows.row(&schema::SAMPLES, rank, &cells)?;
            }
        }
        for sample in &part.raw {
            let agent = name(sampler.agents.get(&sample.agent));
            let kernel = name(sampler.kernels.get(&sample.kernel));
            let address = sampler.addresses.get(&sample.address);
            let [function, file, line] = sampler.source(address);
            let cells = [
                process,
                whole(sample.time.0),
                RowValue::Text(&agent),
                RowValue::Text(&kernel),
                RowValue::Text(address.map_or("", |address| sampler.text(address.instruction))),
                function,
                file,
                line,
                RowValue::Text(state(sample.outcome)),
                known(sample.work.0),
                known(sample.correlation.0),
                known(sample.external.0),
                whole(sample.exec_mask.count_ones()),
            ];
            self.rows.row(&schema::SINGLE_SAMPLES, rank, &cells)?;
        }
        Ok(())
    }
}

impl<R: RowSink> Consumer for RowWriter<R> {
    gputrail_trace::leave_out!(clocks stack);

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.attributes.extend_from_slice(attributes);
        Ok(())
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        self.agents.extend_from_slice(agents);
        Ok(())
    }

    fn process(&mut self, index: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.rank = rank_of(process);
        self.processes.push(self.rank);
        self.write_attributes()?;
        let command = process.command.join(" ");
        self.rows.row(
            &schema::PROCESSES,
            self.rank,
            &[
                whole(index.0),
                whole(process.pid.0),
                RowValue::Text(process.name),
                text(process.rank),
                text(&command),
            ],
        )
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let (kind, own, thread, unit) = match track.kind {
            TrackKind::Thread(process, thread) => ("thread", Some(process), Some(thread), None),
            TrackKind::ThreadRanges(process, thread) => {
                ("ranges of a thread", Some(process), Some(thread), None)
            }
            TrackKind::Ranges => ("ranges", None, None, None),
            TrackKind::Slices => ("slices", None, None, None),
            TrackKind::Counter(unit) => ("counter", None, None, Some(unit)),
            TrackKind::Samples => ("samples", None, None, None),
        };
        let parent = match track.parent {
            Parent::Track(parent) => Some((parent, self.place(parent)?)),
            _ => None,
        };
        let above = parent.as_ref().map(|(_, place)| place);
        let process = match track.parent {
            Parent::Process(process) => Some(process),
            _ => own.or(above.and_then(|place| place.process)),
        };
        let place = RowTrack {
            rank: process.map_or(self.rank, |process| self.rank_of(process)),
            process,
            thread: thread.or(above.and_then(|place| place.thread)),
            name: track.name.to_owned(),
            unit,
        };
        let cells = [
            whole(index.0),
            process_cell(process),
            maybe(place.thread.map(|thread| thread.0)),
            maybe(parent.as_ref().map(|(parent, _)| parent.0)),
            RowValue::Text(kind),
            RowValue::Text(track.name),
        ];
        self.rows.row(&schema::TRACKS, place.rank, &cells)?;
        self.tracks.push(place);
        Ok(())
    }

    fn queue(&mut self, index: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let rank = self.rank_of(queue.process);
        self.agent(rank, queue.agent)?;
        let cells = [
            whole(index.0),
            whole(queue.process.0),
            agent_cell(queue.agent),
            RowValue::Text(queue.domain.name().unwrap_or("other")),
            RowValue::Text(queue.name),
            RowValue::Bool(queue.out_of_order),
        ];
        self.rows.row(&schema::QUEUES, rank, &cells)
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        self.agent(self.rank_of(block.process), block.agent)?;
        self.blocks.insert(index, block.clone());
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.flows(call.track, call.start, call.flows)?;
        match self.open.begin(Span::of_call(call), call.open) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.flows(slice.track, slice.start, slice.flows)?;
        match self.open.begin(Span::of_slice(slice), slice.open) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        self.end_slice(&SliceEnd {
            track,
            time: end,
            arguments: &[],
            flows: &[],
        })
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.flows(end.track, end.time, end.flows)?;
        match self.open.end(end) {
            Some(span) => self.span(&span),
            None => Ok(()),
        }
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.flows(instant.track, instant.time, instant.flows)?;
        let place = self.place(instant.track)?;
        let arguments = object(instant.arguments);
        let cells = [
            process_cell(place.process),
            maybe(place.thread.map(|thread| thread.0)),
            whole(instant.track.0),
            RowValue::Text(instant.name),
            RowValue::Text(instant.category),
            whole(instant.time.0),
            text(&arguments),
        ];
        self.rows.row(&schema::MARKERS, place.rank, &cells)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let rank = self.rank_of(work.process);
        self.agent(rank, work.agent)?;
        let kind = match work.stage.kind {
            WorkKind::Kernel => "kernel",
            WorkKind::Copy => "copy",
            WorkKind::Set => "fill",
            WorkKind::Synchronization => "synchronization",
            WorkKind::Graph => "graph",
            WorkKind::Unknown => "unknown",
        };
        let ran = work.measured();
        let launch = work.launch;
        let grid = |axis: usize| maybe(launch.map(|launch| launch.grid[axis]));
        let group = |axis: usize| match launch {
            Some(launch) => known(launch.workgroup[axis]),
            None => RowValue::Null,
        };
        let collective = match work.stage.kind {
            WorkKind::Kernel => collective(work.stage.name, work.arguments),
            _ => None,
        };
        let arguments = object(work.arguments);
        let resources = work.resources;
        let cells = [
            whole(work.process.0),
            known(work.thread.0),
            agent_cell(work.agent),
            whole(work.queue.0),
            whole(work.stream),
            RowValue::Text(kind),
            RowValue::Text(work.stage.name),
            text(work.stage.demangled),
            time(ran.map(|(start, _)| start)),
            time(ran.map(|(_, end)| end)),
            maybe(ran.map(|(start, end)| end.0.saturating_sub(start.0))),
            time(work.enqueued),
            time(work.queued),
            time(work.submitted),
            maybe(work.event.map(|event| event.0)),
            known(work.correlation.0),
            known(work.bytes),
            grid(0),
            grid(1),
            grid(2),
            group(0),
            group(1),
            group(2),
            known(resources.registers),
            known(resources.static_local),
            known(resources.dynamic_local),
            known(resources.private),
            collective.map_or(RowValue::Null, |(name, _)| RowValue::Text(name)),
            collective.map_or(RowValue::Null, |(_, group)| text(group)),
            RowValue::Int(work.status.into()),
            work.unfinished.map_or(RowValue::Null, RowValue::Text),
            text(&arguments),
        ];
        self.rows.row(&schema::WORK, rank, &cells)?;
        for EventId(other) in work.waits {
            let cells = [
                RowValue::Text("after"),
                whole(work.process.0),
                RowValue::Null,
                maybe(work.event.map(|event| event.0)),
                whole(*other),
            ];
            self.rows.row(&schema::DEPENDENCIES, rank, &cells)?;
        }
        Ok(())
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let place = self.place(track)?;
        let [double, exact] = value_cells(value);
        let cells = [
            process_cell(place.process),
            RowValue::Null,
            whole(track.0),
            RowValue::Text(&place.name),
            RowValue::Text(place.unit.map_or("", CounterUnit::name)),
            whole(time.0),
            double,
            exact,
        ];
        self.rows.row(&schema::COUNTERS, place.rank, &cells)
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let Some(block) = self.blocks.get(&block) else {
            self.left_out += values.len() as u64;
            return Ok(());
        };
        let rank = self.rank_of(block.process);
        for (counter, value) in block.counters.iter().zip(values) {
            let [double, exact] = value_cells(*value);
            let cells = [
                whole(block.process.0),
                agent_cell(block.agent),
                RowValue::Null,
                RowValue::Text(&counter.name),
                RowValue::Text(CounterUnit::name(counter.unit)),
                whole(time.0),
                double,
                exact,
            ];
            self.rows.row(&schema::COUNTERS, rank, &cells)?;
        }
        Ok(())
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let mut sampler = self.samplers.remove(&samples.sampler).unwrap_or_default();
        sampler.declare(samples);
        let written = self.sample_rows(samples, &sampler);
        self.samplers.insert(samples.sampler, sampler);
        written
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        self.left_out += samples.samples.len() as u64;
        Ok(())
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        let rank = loss.process.map_or(self.rank, |p| self.rank_of(p));
        let cells = [
            process_cell(loss.process),
            known(loss.thread.0),
            RowValue::Text(loss.kind.name().unwrap_or("")),
            whole(loss.count),
            whole(loss.first.0),
            whole(loss.last.0),
        ];
        self.rows.row(&schema::LOSSES, rank, &cells)
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        let arguments = object(note.arguments);
        let cells = [
            whole(note.process.0),
            whole(note.time.0),
            RowValue::Text(note.name),
            text(&arguments),
        ];
        self.rows
            .row(&schema::NOTES, self.rank_of(note.process), &cells)
    }

    fn finish(&mut self) -> io::Result<()> {
        let rest: Vec<_> = self.open.rest().collect();
        for span in rest {
            self.span(&span)?;
        }
        self.write_attributes()?;
        self.rows.finish()
    }
}
