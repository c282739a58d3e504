//! The device work of one process: clocks, queues, and the work itself.

use std::collections::{HashMap, HashSet};
use std::io;

use super::StreamOutput;
use super::children::{ChildOf, Children};
use super::counters::{self, CounterTracks};
use super::functions;
use super::graphs::{Graphs, NodeRun};
use super::join::{EnqueueFields, FoundWork, WorkNature};
use super::lane::{CommandTimes, QueueLane};
use super::report::WorkEnd;
use super::stages::ProcessStages;
use super::times::{AgentView, KnownTimes};
use super::waits::Waits;
use crate::directory::Directory;
use crate::model::gauges::{GaugedWork, Gauges};
use crate::model::{
    AgentIndex, Consumer, EventArgument, EventId, Launch, ProcessIndex, Queue, Resources, Stage,
    Stream, UNKNOWN_DEVICE, Value, Work, WorkKind, WorkSamples,
};
use gputrail_buffer::clock::{self, HostClock};
use gputrail_capture::Metadata;
use gputrail_capture::join::Enqueue;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    self as record, AgentId, ClockPair, Completion, ContextId, CorrelationId, CounterValue,
    DeviceTime, Domain, GraphNode, Kind, Nanos, Preemption, QueueId, StreamId, StringId, ThreadId,
    Unfinished, WorkId, queue_properties,
};

/// The bit of an event id that is set for parts of a command buffer, which share their work id.
const SHARED: u64 = 1 << 39;

/// The state of a process with which its records are read: its names, and the clock of its host.
#[derive(Copy, Clone)]
pub(super) struct ProcessState<'a> {
    pub metadata: &'a Metadata,
    pub host: &'a HostClock,
}

/// Data about a piece of work from records of their own.
#[derive(Copy, Clone, Default)]
pub(super) struct About<'a> {
    pub samples: Option<&'a WorkSamples>,
    /// The values of its counters.
    pub counters: &'a [CounterValue],
}

/// The devices and queues of one process.
pub(super) struct Devices {
    process: ProcessIndex,
    /// The agents, in the order of their ids.
    agents: Vec<AgentView>,
    lanes: Vec<QueueLane>,
    /// The index of each queue in `lanes`.
    places: Directory<(QueueId, AgentId)>,
    stages: ProcessStages,
    /// The dependencies between pieces of work.
    pub waits: Waits,
    nodes: NumberMap<WorkId, GraphNode>,
    /// Kernels that kernels launched, and preemptions.
    pub children: Children,
    /// Launches of graphs, and what happened to graphs.
    pub graphs: Graphs,
    gauges: Gauges,
    counters: CounterTracks,
    /// Values of spans of time from before the clock of their agent was known, while a recording is followed.
    early: HashMap<AgentId, Vec<Vec<CounterValue>>>,
    /// See [`ProcessStream::may_lack_completions`](super::process::ProcessStream); known at the end.
    may_lack_completions: bool,
}

/// The most spans of an agent that wait for its clock.
const MAX_EARLY: usize = 1 << 16;

impl Devices {
    pub fn new(
        metadata: &Metadata,
        process: ProcessIndex,
        host: &HostClock,
        agents: HashMap<AgentId, AgentIndex>,
    ) -> Devices {
        let view = |agent: &record::Agent| {
            let pairs = pairs(metadata, agent.id);
            AgentView::new(agent, metadata, agents[&agent.id], host, &pairs)
        };
        Devices {
            process,
            may_lack_completions: false,
            agents: metadata.agents.values().map(view).collect(),
            lanes: Vec::new(),
            places: Directory::default(),
            stages: ProcessStages::default(),
            waits: Waits::default(),
            nodes: NumberMap::default(),
            children: Children::new(process),
            graphs: Graphs::new(process),
            gauges: Gauges::new(process),
            counters: CounterTracks::default(),
            early: HashMap::new(),
        }
    }

    /// Keeps the node that a piece of work is until the work is passed on.
    pub fn add_node(&mut self, node: &GraphNode) {
        const MAX_NODES: usize = 1 << 16;
        if self.nodes.len() >= MAX_NODES {
            // Nodes of work that was dropped.
            self.nodes.clear();
        }
        self.nodes.insert(node.work, *node);
    }

    /// Passes on a preemption at `time`.
    pub fn preempted(
        &mut self,
        stream: &mut Stream<'_>,
        record: &Preemption,
        time: Nanos,
    ) -> io::Result<()> {
        let place = self
            .agents
            .binary_search_by_key(&record.agent, |view| view.id);
        let title = place.map_or("", |place| &self.agents[place].title);
        self.children.preempted(stream, title, record, time)
    }

    /// Fits the agents' clocks again, with `host` and all readings in `metadata`.
    pub fn set_clocks(&mut self, metadata: &Metadata, host: &HostClock) {
        for view in &mut self.agents {
            view.set_clock(host, &pairs(metadata, view.id));
        }
    }

    /// Reacts to a new record of `kind` in the names store.
    pub fn learn(&mut self, kind: Kind) {
        if matches!(kind, Kind::STRING | Kind::KERNEL_SYMBOL) {
            self.stages.clear();
        }
    }

    fn agent(&self, id: AgentId) -> Option<&AgentView> {
        let place = self.agents.binary_search_by_key(&id, |view| view.id).ok()?;
        Some(&self.agents[place])
    }

    /// The clock of each agent.
    pub fn domains(&self) -> Vec<(AgentId, clock::ClockDomain)> {
        let domain = |view: &AgentView| (view.id, view.clock.domain());
        self.agents.iter().map(domain).collect()
    }

    /// The clock of each agent, as text: "GPU 0: CLOCK_MONOTONIC, ...".
    pub fn clocks(&self) -> impl Iterator<Item = (ProcessIndex, AgentIndex, String)> {
        self.agents.iter().map(|agent| {
            let clock = format!("{}: {}", agent.title, agent.clock.describe());
            (self.process, agent.index, clock)
        })
    }

    /// The kind and index of an agent, "GPU 0"; `None` if it is unknown.
    pub fn title(&self, agent: AgentId) -> Option<&str> {
        self.agent(agent).map(|view| &view.title[..])
    }

    /// A time of an agent's clock, converted to the clock of the trace; `None` if that clock is unknown.
    pub fn time(&self, agent: AgentId, time: DeviceTime) -> Option<Nanos> {
        let told = self.agent(agent)?.clock.to_boottime(time)?;
        told.is_some().then_some(told)
    }

    /// The name of a queue among those of the process: "GPU 0 · queue 1".
    pub fn queue_title(&self, metadata: &Metadata, id: QueueId) -> String {
        let record = metadata.queues.get(&id);
        let title = record.and_then(|queue| self.title(queue.agent));
        let title = title.unwrap_or(UNKNOWN_DEVICE);
        format!("{title} · {}", queue_name(metadata, record))
    }

    /// The id of a piece of work in the trace, unique over all processes. `serial` distinguishes the parts of a command
    /// buffer.
    pub fn event(&self, work: WorkId, serial: u32) -> EventId {
        event(self.process, work, serial)
    }

    /// Passes on a piece of work from the records that are `known`. It lasts at least until `hangs`.
    #[inline(never)]
    pub fn pass_on(
        &mut self,
        output: &mut StreamOutput<'_>,
        source: ProcessState<'_>,
        known: (Option<&EnqueueFields>, Option<&Completion>),
        about: About<'_>,
        hangs: Option<Nanos>,
    ) -> io::Result<()> {
        self.work(output, source, known, about, hangs)
    }

    /// [`Devices::pass_on`] for most work: both records have come, and there is nothing else about it.
    pub fn pass_on_complete(
        &mut self,
        output: &mut StreamOutput<'_>,
        source: ProcessState<'_>,
        work: &EnqueueFields,
        completion: &Completion,
    ) -> io::Result<()> {
        let both = (Some(work), Some(completion));
        self.work(output, source, both, About::default(), None)
    }

    /// Passes on the values of an agent's counters in a span of time.
    pub fn counted(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        values: &[CounterValue],
    ) -> io::Result<()> {
        output.report.count_values(counters::count(values));
        let Some(first) = values.first() else {
            return Ok(());
        };
        if !self.is_shown(first) {
            let early = self.early.entry(first.agent).or_default();
            if early.len() < MAX_EARLY {
                early.push(values.to_vec())
            } else {
                output.report.left_out_counter_values += values.len() as u64
            }
            return Ok(());
        }
        let early = self.early.remove(&first.agent).unwrap_or_default();
        for values in early.iter().map(Vec::as_slice).chain([values]) {
            self.show_span(output, metadata, values)?;
        }
        Ok(())
    }

    /// Passes on the values of an agent's counters in a range of markers to the tracks of the counters. Returns the agent
    /// in the trace, if it is known.
    pub fn counted_range(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        times: (Nanos, Nanos),
        values: &[CounterValue],
    ) -> io::Result<Option<AgentIndex>> {
        output.report.count_values(counters::count(values));
        let first = values.first();
        let Some(view) = first.and_then(|first| self.agent(first.agent)) else {
            output.report.left_out_counter_values += values.len() as u64;
            return Ok(None);
        };
        let index = view.index;
        let agent = (self.process, index);
        output.report.left_out_counter_values +=
            self.counters
                .add(&mut output.stream, metadata, agent, times, values)?;
        Ok(Some(index))
    }

    /// Whether the time and the agent of a span are known.
    fn is_shown(&self, first: &CounterValue) -> bool {
        self.time(first.agent, first.start).is_some() && self.time(first.agent, first.end).is_some()
    }

    /// Passes on the values of a span.
    fn show_span(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        values: &[CounterValue],
    ) -> io::Result<()> {
        let Some(first) = values.first() else {
            return Ok(());
        };
        let time = |time| self.time(first.agent, time);
        let (Some(start), Some(end), Some(view)) =
            (time(first.start), time(first.end), self.agent(first.agent))
        else {
            output.report.left_out_counter_values += values.len() as u64;
            return Ok(());
        };
        let agent = (self.process, view.index);
        output.report.left_out_counter_values += self.counters.add(
            &mut output.stream,
            metadata,
            agent,
            (start, end.max(start)),
            values,
        )?;
        Ok(())
    }

    /// The number of values of spans whose time never became known.
    pub fn take_early(&mut self) -> u64 {
        let early = std::mem::take(&mut self.early);
        let spans = early.values().flatten();
        spans.map(|values| values.len() as u64).sum()
    }

    /// Passes on the work without a completion: it had not completed at the `end`, unless completions may be missing. The
    /// oldest work of a queue was running and lasts until the end, unless later work of the queue has completed. The other
    /// work is behind it.
    pub fn pass_on_unfinished(
        &mut self,
        output: &mut StreamOutput<'_>,
        source: ProcessState<'_>,
        found: &mut [FoundWork],
        end: Nanos,
        may_lack_completions: bool,
    ) -> io::Result<()> {
        self.may_lack_completions = may_lack_completions;
        let enqueued = |found: &FoundWork| match found {
            FoundWork::Both(work, _) | FoundWork::Enqueued(work) => work.work.enqueued,
            FoundWork::Completed(completion) => completion.completed,
        };
        found.sort_by_key(enqueued);
        let latest = self.lanes.iter().map(|lane| lane.latest).max();
        let end = latest.map_or(end, |latest| latest.max(end));
        let end = (!may_lack_completions).then_some(end);
        let mut hanging = HashSet::new();
        for found in &*found {
            let hangs = match found {
                FoundWork::Enqueued(work) if hanging.insert((work.work.queue, work.work.agent)) => {
                    end
                }
                _ => None,
            };
            self.pass_on(output, source, found.parts(), About::default(), hangs)?;
        }
        Ok(())
    }

    /// Passes on the remaining values of the counters.
    pub fn finish(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        self.counters.flush(consumer)?;
        self.gauges.finish(consumer)
    }

    /// Passes on the values of counters that were held back for work that comes late.
    pub fn flush(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        self.counters.flush(consumer)?;
        self.gauges.flush(consumer)
    }

    /// Passes on a piece of work: compiled once for all work, and once for the most frequent kind.
    #[inline(always)]
    fn work(
        &mut self,
        output: &mut StreamOutput<'_>,
        ProcessState { metadata, host }: ProcessState<'_>,
        (work, completion): (Option<&EnqueueFields>, Option<&Completion>),
        about: About<'_>,
        hangs: Option<Nanos>,
    ) -> io::Result<()> {
        let agents = [
            work.map(|work| work.work.agent),
            completion.map(|completion| completion.agent),
        ];
        let mut known = agents.into_iter().flatten().filter_map(|id| {
            let place = self.agents.binary_search_by_key(&id, |view| view.id);
            place.ok()
        });
        let agent = known.next();
        let queue = work.map(|work| work.work.queue).unwrap_or_default();
        let lane = self.lane(&mut output.stream, metadata, queue, agent)?;
        let lane = &mut self.lanes[lane];

        let view = agent.map(|place| &self.agents[place]);
        let times = KnownTimes::new(view, host, work, completion, &mut output.report);
        let command = match work {
            Some(work) if work.is_shared() => lane.command(work, &times),
            _ => None,
        };
        output.report.commands += u64::from(command.is_some());
        let interval = match &command {
            Some(command) => Some(command.interval),
            None => times.interval(),
        };
        let stage = self.stages.of(metadata, work);
        let (launch, resources, bytes) = sizes(work);
        let end = match (work, completion) {
            (Some(work), None) if work.is_untracked() => WorkEnd::Untracked,
            (_, Some(_)) if times.unfinished == Unfinished::NO_TIMES => WorkEnd::Untimed,
            (Some(_), None) if self.may_lack_completions => WorkEnd::Unrecorded,
            _ => WorkEnd::Unknown,
        };
        output.report.count(stage.kind, interval, end);
        if let (Some(view), Some(interval)) = (view, interval) {
            let running = match stage.kind {
                WorkKind::Kernel => Some(GaugedWork::Kernel(groups(launch))),
                WorkKind::Copy if bytes > 0 => Some(GaugedWork::Copy(bytes)),
                _ => None,
            };
            if let Some(running) = running {
                let agent = (view.index, view.compute_units);
                self.gauges
                    .add(&mut output.stream, agent, running, interval)?;
            }
        }
        let (mut start, mut duration) = (times.begin(), times.duration());
        if let Some(CommandTimes { interval, .. }) = &command {
            (start, duration) = (Some(interval.0), Some(interval.1.0 - interval.0.0));
        }
        match (hangs, interval, start) {
            (Some(end), _, Some(begin)) if begin >= lane.last_enqueued => {
                let begin = begin.max(lane.latest);
                (start, duration) = (Some(begin), Some(end.0.saturating_sub(begin.0)));
            }
            (None, Some((_, end)), _) => {
                lane.latest = end.max(lane.latest);
                lane.last_enqueued = times.enqueued.unwrap_or_default().max(lane.last_enqueued);
            }
            _ => {}
        }
        let (correlation, id, serial) = match (work, completion) {
            (Some(work), _) => (work.work.correlation, work.work.id, work.serial),
            (None, Some(completion)) => (completion.correlation, completion.work, 0),
            (None, None) => return Ok(()),
        };
        let shared = work.is_some_and(|work| work.is_shared());
        let waits = self.waits.take(id, shared);
        let of_command = command.as_ref().map(CommandTimes::arguments);
        let mut arguments = of_command.as_ref().map_or(&[][..], |arguments| arguments);
        let (names, counted): (counters::ValueNames<'_>, Vec<EventArgument<'_>>);
        if !about.counters.is_empty() {
            let values = about.counters;
            output.report.count_values(counters::count(values));
            // CUPTI has no times of kernels that it counts.
            let moment = || start.map(|start| (start, start));
            if let (Some(view), Some(interval)) = (view, interval.or_else(moment)) {
                let agent = (self.process, view.index);
                // Before the work: consumers tell counters among its arguments by their declarations.
                let stream = &mut output.stream;
                output.report.left_out_counter_values += self
                    .counters
                    .add(stream, metadata, agent, interval, values)?;
            }
            names = counters::ValueNames::of(metadata, values);
            let of_command = arguments.iter().copied();
            counted = of_command.chain(names.arguments(values)).collect();
            arguments = &counted;
        }
        let range = work.and_then(|work| metadata.range_name(work.work.external));
        let range = range.map(|range| (functions::RANGE, Value::Text(range)));
        // That of a command buffer is of all its commands: the first one takes it.
        let takes_node = !(self.nodes.is_empty() || work.is_some_and(|work| work.work.command > 0));
        let node = takes_node.then(|| self.nodes.remove(&id)).flatten();
        let launched = match (view, interval, work) {
            (Some(view), Some(interval), Some(work)) => {
                let graph = node.as_ref().map(|node| node.graph.into());
                let launched = match (&command, work.work.command) {
                    (None, _) if graph.is_some() => Some((interval, 1)),
                    // A command buffer, all of which is known.
                    (Some(_), 0) => {
                        let (_, begin, end) = lane.command_buffer;
                        Some(((begin, end), work.work.commands.into()))
                    }
                    _ => None,
                };
                launched.map(|(interval, nodes)| NodeRun {
                    agent: (view.id, view.index),
                    call: correlation,
                    graph,
                    is_whole: command.is_some(),
                    domain: view.domain,
                    thread: work.work.thread,
                    stream: lane.stream,
                    interval,
                    nodes,
                })
            }
            _ => None,
        };
        let node = node.filter(|_| command.is_none()).map(|node| {
            let graph = ("graph", Value::Uint(node.graph.into()));
            [graph, ("graph_node", Value::Uint(node.node))]
        });
        let child = self.children.take(metadata, id);
        let child = child.as_ref().map(ChildOf::arguments);
        let context = lane.context.1;
        let context = context
            .is_some()
            .then(|| ("context", Value::Text(metadata.string(context))));
        let further: Vec<EventArgument<'_>>;
        if range.is_some() || node.is_some() || child.is_some() || context.is_some() {
            let own = range.into_iter().chain(node.into_iter().flatten());
            let own = own.chain(child.into_iter().flatten()).chain(context);
            let own = own.map(|(name, value)| EventArgument { name, value });
            further = own.chain(arguments.iter().copied()).collect();
            arguments = &further;
        }
        output.stream.consumer.work(&Work {
            process: self.process,
            thread: work.map_or(ThreadId::NONE, |work| work.work.thread),
            correlation,
            event: Some(match correlation {
                CorrelationId::NONE => event_of_runtime(self.process, id),
                _ => event(self.process, id, serial),
            }),
            agent: view.map_or(AgentIndex::UNKNOWN, |view| view.index),
            queue: lane.index,
            stream: match work.map_or(StreamId::NONE, |work| work.work.stream) {
                StreamId::NONE => lane.stream,
                StreamId(stream) => stream,
            },
            stage: Stage {
                architecture: view.map_or("", |view| &view.architecture),
                ..stage
            },
            enqueued: times.enqueued.filter(|_| correlation.is_some()),
            queued: times.queued,
            submitted: times.submitted,
            interval,
            start,
            duration,
            unfinished: match interval {
                Some(_) => None,
                None => Some(reason(
                    work,
                    completion,
                    times.unfinished,
                    self.may_lack_completions,
                )),
            },
            launch,
            resources,
            bytes,
            status: completion.map_or(0, |completion| completion.status.min(0)),
            waits: &waits,
            samples: about.samples,
            arguments,
        })?;
        match launched {
            None => Ok(()),
            Some(launched) if launched.is_whole => {
                self.graphs.pass_on(&mut output.stream, &launched)
            }
            Some(launched) => self.graphs.add(&mut output.stream, launched),
        }
    }

    /// The index of a queue on a device, given the device's index.
    #[inline(always)]
    fn lane(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        queue: QueueId,
        agent: Option<usize>,
    ) -> io::Result<usize> {
        let id = agent.map_or(AgentId::NONE, |place| self.agents[place].id);
        match self.places.get(queue.0, (queue, id)) {
            Some(lane) => Ok(lane),
            None => self.look_up(stream, metadata, queue, id),
        }
    }

    #[cold]
    fn look_up(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        queue: QueueId,
        agent: AgentId,
    ) -> io::Result<usize> {
        // Queues without a record in the names store count as one queue: the tables grow with names only.
        let known = metadata.queues.contains_key(&queue);
        let queue = if known { queue } else { QueueId::NONE };
        if let Some(lane) = self.places.get(queue.0, (queue, agent)) {
            return Ok(lane);
        }
        let lane = self.new_lane(stream, metadata, queue, agent)?;
        self.lanes.push(lane);
        self.places.insert((queue, agent), self.lanes.len() - 1);
        Ok(self.lanes.len() - 1)
    }

    fn new_lane(
        &self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        id: QueueId,
        agent: AgentId,
    ) -> io::Result<QueueLane> {
        let record = metadata.queues.get(&id);
        let view = self.agent(agent);
        let context = record.map_or(ContextId::NONE, |queue| queue.context);
        let context_name = metadata.contexts.get(&context);
        let context_name = context_name.map_or(StringId::NONE, |context| context.name);
        let properties = record.map_or(0, |queue| queue.properties);
        let out_of_order = properties & queue_properties::OUT_OF_ORDER != 0;
        let index = stream.new_queue(&Queue {
            process: self.process,
            agent: view.map_or(AgentIndex::UNKNOWN, |view| view.index),
            context,
            domain: view.map_or(Domain::default(), |view| view.domain),
            name: &queue_name(metadata, record),
            out_of_order,
        })?;
        Ok(QueueLane {
            index,
            id,
            context: (context, context_name),
            stream: record.map_or(0, |queue| queue.number),
            latest: Nanos::NONE,
            last_enqueued: Nanos::NONE,
            out_of_order,
            command_buffer: (WorkId::NONE, Nanos::NONE, Nanos::NONE),
        })
    }

    /// Whether work in queues of this context has been passed on with another name of the context.
    pub(super) fn has_shown_context(&self, context: &record::Context) -> bool {
        let shown = (context.id, context.name);
        let mut lanes = self.lanes.iter();
        lanes.any(|lane| lane.context.0 == shown.0 && lane.context != shown)
    }

    /// Whether the queue has been passed on.
    pub(super) fn has_shown_queue(&self, queue: QueueId) -> bool {
        self.lanes.iter().any(|lane| lane.id == queue)
    }
}

fn event(process: ProcessIndex, work: WorkId, serial: u32) -> EventId {
    let own = match serial {
        0 => work.0 & (SHARED - 1),
        serial => SHARED | u64::from(serial),
    };
    EventId(u64::from(process.0) << EventId::OWN_BITS | own)
}

/// The id in the trace of work that no call enqueued.
fn event_of_runtime(process: ProcessIndex, work: WorkId) -> EventId {
    let own = EventId::OF_RUNTIME | work.0 & u64::from(u32::MAX);
    EventId(u64::from(process.0) << EventId::OWN_BITS | own)
}

/// The name of a queue on its agent.
fn queue_name(metadata: &Metadata, record: Option<&record::Queue>) -> String {
    let own_name = record.map_or("", |queue| metadata.string(queue.name));
    match (own_name, record) {
        ("", Some(queue)) if queue.properties & queue_properties::COPY_ENGINE != 0 => {
            format!("copy engine {}", queue.number)
        }
        ("", Some(queue)) => format!("queue {}", queue.number),
        ("", None) => "unknown queue".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// The readings of an agent's clock.
fn pairs(metadata: &Metadata, agent: AgentId) -> Vec<ClockPair> {
    let its_own = |pair: &&ClockPair| pair.agent == agent;
    metadata.pairs.iter().filter(its_own).copied().collect()
}

fn sizes(work: Option<&EnqueueFields>) -> (Option<Launch>, Resources, u64) {
    match work.map(|work| work.what) {
        Some(WorkNature::Kernel {
            launch, resources, ..
        }) => (Some(launch), resources, 0),
        Some(WorkNature::Copy { bytes, .. } | WorkNature::Set { bytes }) => {
            (None, Resources::default(), bytes)
        }
        _ => (None, Resources::default(), 0),
    }
}

/// The number of workgroups of a launch, if known.
fn groups(launch: Option<Launch>) -> Option<u64> {
    let groups = launch?.workgroups()?;
    let product = groups.iter().map(|groups| u64::from(*groups));
    Some(product.fold(1, u64::saturating_mul))
}

fn reason(
    work: Option<&EnqueueFields>,
    completion: Option<&Completion>,
    unfinished: Unfinished,
    may_lack_completions: bool,
) -> &'static str {
    match (work, completion) {
        (Some(work), None) if work.is_untracked() => "its completion could not be tracked",
        (Some(_), None) if may_lack_completions => Work::UNRECORDED,
        (_, None) => "no completion was recorded",
        _ => unfinished.name().unwrap_or("not finished"),
    }
}
