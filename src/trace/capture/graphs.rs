//! Graphs: each launch as a piece of work that lasts from its first node to its last one, in rows of the agent above which
//! the nodes have their own; and what happened to graphs, where that was recorded.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::model::{
    AgentIndex, EventArgument, EventId, Instant, Parent, ProcessIndex, Queue, QueueIndex,
    Resources, Stage, StageId, Stream, Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use gputrail_record::{
    AgentId, ContextId, CorrelationId, Domain, GraphChange, GraphNodeType, Nanos, ThreadId,
};

/// Launches whose nodes come, at most.
const MAX_OPEN: usize = 1024;
/// Rows of an agent for launches that overlap, at most.
const MAX_ROWS: usize = 64;

/// A node of a launch that has run, or a command buffer as a whole.
#[derive(Copy, Clone, Debug)]
pub(super) struct NodeRun {
    /// The agent, and its index in the trace.
    pub agent: (AgentId, AgentIndex),
    /// The call that launched the graph.
    pub call: CorrelationId,
    /// The executable graph, if it is known.
    pub graph: Option<u64>,
    /// Whether it is a whole command buffer.
    pub is_whole: bool,
    /// The API.
    pub domain: Domain,
    pub thread: ThreadId,
    pub stream: u32,
    pub interval: (Nanos, Nanos),
    /// The number of nodes that this is: 1, or all of a command buffer.
    pub nodes: u64,
}

/// Rows for the launches of an agent: queues, with the end of the latest launch of each.
type LaunchRows = Vec<(QueueIndex, Nanos)>;

/// The graphs of one process.
#[derive(Debug)]
pub(super) struct Graphs {
    process: ProcessIndex,
    /// Launches whose nodes come.
    open: BTreeMap<(AgentId, CorrelationId), NodeRun>,
    rows: HashMap<AgentId, LaunchRows>,
    /// Launches that were passed on.
    launches: u64,
    /// The track of what happened to graphs.
    changes: Option<TrackIndex>,
}

impl Graphs {
    pub fn new(process: ProcessIndex) -> Graphs {
        Graphs {
            process,
            open: BTreeMap::new(),
            rows: HashMap::new(),
            launches: 0,
            changes: None,
        }
    }

    /// Adds a node to its launch. The launch before it of the same graph is complete: launches of one executable graph run
    /// one after the other.
    #[cold]
    pub fn add(&mut self, stream: &mut Stream<'_>, node: NodeRun) -> io::Result<()> {
        let key = (node.agent.0, node.call);
        if let Some(launch) = self.open.get_mut(&key) {
            let (start, end) = &mut launch.interval;
            *start = node.interval.0.min(*start);
            *end = node.interval.1.max(*end);
            launch.nodes += node.nodes;
            return Ok(());
        }
        let same = |(key, launch): &(&(AgentId, CorrelationId), &NodeRun)| {
            (key.0, launch.graph) == (node.agent.0, node.graph)
        };
        let earlier = self.open.iter().find(same).map(|(key, _)| *key);
        if let Some(earlier) = earlier.and_then(|key| self.open.remove(&key)) {
            self.pass_on(stream, &earlier)?;
        }
        if self.open.len() >= MAX_OPEN
            && let Some((_, oldest)) = self.open.pop_first()
        {
            self.pass_on(stream, &oldest)?;
        }
        self.open.insert(key, node);
        Ok(())
    }

    /// Passes on the launches whose nodes came last.
    pub fn finish(&mut self, stream: &mut Stream<'_>) -> io::Result<()> {
        let mut launches: Vec<NodeRun> = std::mem::take(&mut self.open).into_values().collect();
        launches.sort_by_key(|launch| launch.interval);
        launches
            .iter()
            .try_for_each(|launch| self.pass_on(stream, launch))
    }

    /// Passes on a launch.
    pub fn pass_on(&mut self, stream: &mut Stream<'_>, launch: &NodeRun) -> io::Result<()> {
        let (start, end) = launch.interval;
        let queue = self.row(stream, launch)?;
        let argument = |name, value| EventArgument { name, value };
        let nodes = argument("nodes", Value::Uint(launch.nodes));
        let graph = launch
            .graph
            .map(|graph| argument("graph", Value::Uint(graph)));
        let arguments: Vec<EventArgument<'_>> = graph.into_iter().chain([nodes]).collect();
        stream.consumer.work(&Work {
            process: self.process,
            thread: launch.thread,
            correlation: launch.call,
            event: Some(event_of_launch(self.process, self.launches)),
            agent: launch.agent.1,
            queue,
            stream: launch.stream,
            stage: Stage {
                id: StageId(6 << 32),
                kind: WorkKind::Graph,
                name: WorkKind::GRAPH,
                demangled: "",
                architecture: "",
            },
            // The nodes have the wait for the agent.
            enqueued: None,
            queued: None,
            submitted: None,
            interval: Some(launch.interval),
            start: Some(start),
            duration: Some(end.0 - start.0),
            unfinished: None,
            launch: None,
            resources: Resources::default(),
            bytes: 0,
            status: 0,
            waits: &[],
            samples: None,
            arguments: &arguments,
        })?;
        self.launches += 1;
        Ok(())
    }

    /// The first row of the agent in which nothing runs at the start of `launch`.
    fn row(&mut self, stream: &mut Stream<'_>, launch: &NodeRun) -> io::Result<QueueIndex> {
        let (start, end) = launch.interval;
        let rows = self.rows.entry(launch.agent.0).or_default();
        let mut free = rows.iter().position(|(_, latest)| *latest <= start);
        if free.is_none() && rows.len() == MAX_ROWS {
            free = Some(MAX_ROWS - 1);
        }
        let place = match free {
            Some(place) => place,
            None => {
                // Viewers sort rows by name: these are above the nodes, which are in rows "CUDA graphs" and of queues.
                let name = match launch.domain {
                    Domain::CUDA_DRIVER => "CUDA graph launches",
                    Domain::OPENCL => "command buffers",
                    _ => "graph launches",
                };
                let name = match rows.len() {
                    0 => name.to_owned(),
                    more => format!("{name} ({})", more + 1),
                };
                let queue = stream.new_queue(&Queue {
                    process: self.process,
                    agent: launch.agent.1,
                    context: ContextId::NONE,
                    domain: launch.domain,
                    name: &name,
                    out_of_order: false,
                })?;
                rows.push((queue, Nanos::default()));
                rows.len() - 1
            }
        };
        rows[place].1 = end.max(rows[place].1);
        Ok(rows[place].0)
    }

    /// Passes on what happened to a graph at `time`.
    pub fn changed(
        &mut self,
        stream: &mut Stream<'_>,
        change: &GraphChange,
        time: Nanos,
    ) -> io::Result<()> {
        let track = match self.changes {
            Some(track) => track,
            None => *self.changes.insert(stream.new_track(&Track {
                parent: Parent::Process(self.process),
                name: "graphs",
                kind: TrackKind::Ranges,
                order: None,
            })?),
        };
        let number = |name, number: u64| {
            let value = Value::Uint(number);
            (number != 0).then_some(EventArgument { name, value })
        };
        let kind = change.node_type.name();
        let kind = kind.filter(|_| change.node != 0 && change.node_type != GraphNodeType::UNKNOWN);
        let arguments: Vec<EventArgument<'_>> = [
            number("graph", change.graph.into()),
            number("of_graph", change.other_graph.into()),
            number("node", change.node),
            number("other_node", change.other_node),
            kind.map(|kind| EventArgument {
                name: "node_type",
                value: Value::Text(kind),
            }),
            number("correlation", change.correlation.0),
        ]
        .into_iter()
        .flatten()
        .collect();
        stream.consumer.instant(&Instant {
            track,
            name: change.what.name().unwrap_or("graph"),
            category: "graph",
            time,
            arguments: &arguments,
            flows: &[],
        })
    }
}

/// The id of the launch of a graph in the trace, by its number in the process from 0.
fn event_of_launch(process: ProcessIndex, number: u64) -> EventId {
    let own = EventId::GRAPH_LAUNCH | number & u64::from(u32::MAX);
    EventId(u64::from(process.0) << EventId::OWN_BITS | own)
}
