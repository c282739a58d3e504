//! Graphs: commands that are put together once and launched many times (CUDA: graphs; OpenCL: command buffers).

use super::*;

open_enum! {
    /// What happened to a graph (CUPTI: `CUpti_CallbackIdResource`, `GRAPH_CREATED` to `GRAPHNODE_CLONED`).
    GraphOperation(u8) {
        /// A graph was created.
        CREATED = 1, "graph created";
        /// A graph is going to be destroyed.
        DESTROYED = 2, "graph destroyed";
        /// A graph was cloned: instantiation clones graphs, too.
        CLONED = 3, "graph cloned";
        /// A node was added to a graph.
        NODE_CREATED = 4, "graph node created";
        /// A node of a graph is going to be removed.
        NODE_DESTROYED = 5, "graph node destroyed";
        /// A node was cloned with its graph.
        NODE_CLONED = 6, "graph node cloned";
        /// A node waits for another one from now on.
        DEPENDENCY_CREATED = 7, "graph dependency created";
        /// A node will no longer wait for another one.
        DEPENDENCY_DESTROYED = 8, "graph dependency destroyed";
        /// An executable graph was made of a graph.
        INSTANTIATED = 9, "graph instantiated";
        /// An executable graph is going to be destroyed.
        EXECUTABLE_DESTROYED = 10, "executable graph destroyed";
        /// An executable graph was put into a queue.
        LAUNCHED = 11, "graph launched";
    }
}

open_enum! {
    /// The type of a node of a graph (CUDA: `CUgraphNodeType`).
    GraphNodeType(u8) {
        /// Unknown, or the change is not about a node.
        UNKNOWN = 0, "node";
        /// A kernel.
        KERNEL = 1, "kernel";
        /// A copy.
        COPY = 2, "copy";
        /// A fill.
        FILL = 3, "fill";
        /// A function of the host.
        HOST = 4, "host function";
        /// Another graph.
        GRAPH = 5, "graph";
        /// Nothing: other nodes wait for it.
        EMPTY = 6, "empty";
        /// A wait for an event.
        WAIT_EVENT = 7, "wait for event";
        /// The record of an event.
        RECORD_EVENT = 8, "record of event";
        /// A signal to an external semaphore.
        SIGNAL_SEMAPHORE = 9, "semaphore signal";
        /// A wait for an external semaphore.
        WAIT_SEMAPHORE = 10, "semaphore wait";
        /// An allocation of memory.
        ALLOCATE = 11, "allocate";
        /// A release of memory.
        FREE = 12, "free";
        /// Operations on words of memory.
        BATCH_MEMORY_OPERATION = 13, "memory operations";
        /// A graph that is executed under a condition.
        CONDITIONAL = 14, "conditional";
    }
}

/// A change of a graph, or its launch. 64 bytes.
///
/// Numbers of graphs are those of the API: a graph and an executable graph may have the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct GraphChange {
    /// Kind [`Kind::GRAPH_CHANGE`].
    pub header: Header,
    /// When it happened.
    pub time: Ticks,
    /// The call that made it, or none.
    pub correlation: CorrelationId,
    /// The handle in the runtime of the graph, node or executable graph that it is about.
    pub handle: u64,
    /// The node, unique in its graph, or 0 (CUPTI: `cuptiGetGraphNodeId`).
    pub node: u64,
    /// Of a dependency, the node that waits for `node`; of a clone, the node of which `node` is the clone; else 0.
    pub other_node: u64,
    /// The graph, or the executable graph of `INSTANTIATED`, `EXECUTABLE_DESTROYED` and `LAUNCHED` (CUPTI:
    /// `cuptiGetGraphId`, `cuptiGetGraphExecId`).
    pub graph: u32,
    /// The graph of which it is a clone, or was made; else 0.
    pub other_graph: u32,
    /// The thread.
    pub thread: ThreadId,
    /// The API.
    pub domain: Domain,
    /// What happened.
    pub what: GraphOperation,
    /// The type of the node.
    pub node_type: GraphNodeType,
}
record!(GraphChange, Kind::GRAPH_CHANGE, 64);

/// The node of a graph that a piece of work is, or the command buffer. 32 bytes. It precedes the record of the
/// work or of its completion on the same lane.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct GraphNode {
    /// Kind [`Kind::GRAPH_NODE`].
    pub header: Header,
    /// The work.
    pub work: WorkId,
    /// The node, unique in the process (CUPTI: graphNodeId); 0 for a whole command buffer, whose commands are one piece of
    /// work.
    pub node: u64,
    /// The executable graph that was launched (CUPTI: graphId).
    pub graph: u32,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(GraphNode, Kind::GRAPH_NODE, 32);
