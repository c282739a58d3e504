//! Graphs: kernels that are put together once, each after the one before it, and launched together by one call.

use super::callbacks;
use super::kernels::{SimLaunch, SimModule};
use super::operations::SimFunction;
use super::runtime::SimStream;
use super::thread::{CallStatus, SimThread};
use gputrail_collect::correlation::CallInProgress;
use gputrail_record::{Domain, GraphChange, GraphNode, GraphNodeType, GraphOperation};

/// A graph, or an executable graph: its number, and its nodes in order.
#[derive(Debug)]
pub(super) struct Graph {
    number: u32,
    nodes: Vec<KernelNode>,
}

/// A kernel of a graph.
#[derive(Copy, Clone, Debug)]
struct KernelNode {
    id: u64,
    kernel: usize,
    launch: SimLaunch,
}

/// The handles of graphs and nodes.
const HANDLE: u64 = 0x5581_4a00_0000;

impl SimThread {
    pub(super) async fn graph_create(&mut self) -> Graph {
        let call = self.enter(SimFunction::GraphCreate, &[0]).await;
        let number = self.runtime.graphs.graph();
        self.returns(number.into());
        self.graph_changed(&call, GraphOperation::CREATED, number, |_| {});
        let _ = self.exit(call, Ok(())).await;
        Graph {
            number,
            nodes: Vec::new(),
        }
    }

    /// Adds kernel `index` of `module` to `graph`, after the latest node.
    pub(super) async fn graph_add_kernel_node(
        &mut self,
        graph: &mut Graph,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
    ) {
        let kernel = module.kernel_id(index);
        let arguments = [graph.number.into(), kernel.0.into()];
        let call = self
            .enter(SimFunction::GraphAddKernelNode, &arguments)
            .await;
        let id = self.runtime.graphs.node();
        self.node_changed(&call, GraphOperation::NODE_CREATED, graph.number, [id, 0]);
        if let Some(before) = graph.nodes.last().map(|node| node.id) {
            let what = GraphOperation::DEPENDENCY_CREATED;
            self.node_changed(&call, what, graph.number, [before, id]);
        }
        graph.nodes.push(KernelNode {
            id,
            kernel: index,
            launch,
        });
        let _ = self.exit(call, Ok(())).await;
    }

    /// Makes an executable graph, whose nodes are clones.
    pub(super) async fn graph_instantiate(&mut self, graph: &Graph, module: &SimModule) -> Graph {
        let arguments = [graph.number.into()];
        let call = self.enter(SimFunction::GraphInstantiate, &arguments).await;
        let number = self.runtime.graphs.graph();
        self.returns(number.into());
        let mut executable = Graph {
            number,
            nodes: graph.nodes.clone(),
        };
        for node in &mut executable.nodes {
            self.compile_once(&call, module, node.kernel).await;
            let original = node.id;
            node.id = self.runtime.graphs.node();
            let what = GraphOperation::NODE_CLONED;
            self.node_changed(&call, what, number, [node.id, original]);
        }
        self.graph_changed(&call, GraphOperation::INSTANTIATED, number, |change| {
            change.other_graph = graph.number;
        });
        let _ = self.exit(call, Ok(())).await;
        executable
    }

    /// Launches the nodes of an executable graph in `stream`.
    pub(super) async fn graph_launch(
        &mut self,
        executable: &Graph,
        module: &SimModule,
        stream: SimStream,
    ) -> Result<(), CallStatus> {
        let arguments = [executable.number.into(), self.stream_id(stream)];
        let call = self.enter(SimFunction::GraphLaunch, &arguments).await;
        for node in &executable.nodes {
            let launch = SimLaunch {
                stream,
                ..node.launch
            };
            let mut record = GraphNode::blank();
            (record.node, record.graph) = (node.id, executable.number);
            self.enqueue_kernel(&call, module, node.kernel, launch, Some(record));
        }
        let launched = GraphOperation::LAUNCHED;
        self.graph_changed(&call, launched, executable.number, |_| {});
        self.exit(call, Ok(())).await
    }

    pub(super) async fn graph_exec_destroy(&mut self, executable: &Graph) {
        let (function, what) = (
            SimFunction::GraphExecDestroy,
            GraphOperation::EXECUTABLE_DESTROYED,
        );
        self.destroy(function, what, executable).await;
    }

    pub(super) async fn graph_destroy(&mut self, graph: &Graph) {
        let (function, what) = (SimFunction::GraphDestroy, GraphOperation::DESTROYED);
        self.destroy(function, what, graph).await;
    }

    async fn destroy(&mut self, function: SimFunction, what: GraphOperation, graph: &Graph) {
        let call = self.enter(function, &[graph.number.into()]).await;
        self.graph_changed(&call, what, graph.number, |_| {});
        let _ = self.exit(call, Ok(())).await;
    }

    /// Reports a change of the first of two nodes, both kernels, or of a dependency.
    fn node_changed(
        &mut self,
        call: &CallInProgress,
        what: GraphOperation,
        graph: u32,
        [node, other]: [u64; 2],
    ) {
        self.graph_changed(call, what, graph, |change| {
            change.handle = HANDLE + 0x80_0000 + 0x40 * node;
            (change.node, change.other_node) = (node, other);
            change.node_type = GraphNodeType::KERNEL;
        });
    }

    /// Records a change of a graph, and reports it to subscribers.
    fn graph_changed(
        &mut self,
        call: &CallInProgress,
        what: GraphOperation,
        graph: u32,
        complete: impl FnOnce(&mut GraphChange),
    ) {
        let mut change = GraphChange::blank();
        change.time = self.runtime.ticks();
        (change.what, change.graph) = (what, graph);
        (change.domain, change.handle) = (Domain::SIM, HANDLE + 0x100 * u64::from(graph));
        complete(&mut change);
        self.host().graph_changed(&mut change);
        callbacks::graph_changed(&self.site(), call, &change);
    }
}
