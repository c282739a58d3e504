//! Graphs that are made, changed, launched and destroyed: CUPTI's callbacks about them, as records and for subscribers.

use super::ffi::{self, call};
use super::functions::{self, CudaFunction, MAX_ARGUMENTS};
use super::sampling::ffi::Resource;
use super::session::CuptiSession;
use crate::calls;
use core::ffi::c_void;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::notify::Notifier;
use gputrail_collect::operations;
use gputrail_collect::process::Current;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::{Domain, GraphChange, GraphNodeType, GraphOperation, Kind};

/// What CUPTI reports, each with its number in the domain of resources.
pub(super) const REPORTED: [(GraphOperation, u32); 10] = [
    (GraphOperation::CREATED, ffi::GRAPH_CREATED),
    (GraphOperation::DESTROYED, ffi::GRAPH_DESTROYED),
    (GraphOperation::CLONED, ffi::GRAPH_CLONED),
    (GraphOperation::NODE_CREATED, ffi::GRAPH_NODE_CREATED),
    (GraphOperation::NODE_DESTROYED, ffi::GRAPH_NODE_DESTROYED),
    (GraphOperation::NODE_CLONED, ffi::GRAPH_NODE_CLONED),
    (
        GraphOperation::DEPENDENCY_CREATED,
        ffi::GRAPH_DEPENDENCY_CREATED,
    ),
    (
        GraphOperation::DEPENDENCY_DESTROYED,
        ffi::GRAPH_DEPENDENCY_DESTROYED,
    ),
    (GraphOperation::INSTANTIATED, ffi::GRAPH_INSTANTIATED),
    (
        GraphOperation::EXECUTABLE_DESTROYED,
        ffi::GRAPH_EXECUTABLE_DESTROYED,
    ),
];

/// CUPTI's description of a change (`CUpti_GraphData`).
#[repr(C)]
pub(super) struct GraphData {
    pub graph: *mut c_void,
    pub original_graph: *mut c_void,
    pub node: *mut c_void,
    pub original_node: *mut c_void,
    pub node_type: i32,
    pub dependency: *mut c_void,
    pub executable: *mut c_void,
}

/// Whether somebody wants to know of a change: a subscriber, or a buffer.
pub(super) fn is_wanted(board: &Switchboard, what: GraphOperation) -> bool {
    let interest = board.interest(operations::of_graph_change(what));
    interest.has_subscribers() || !board.buffers_for(Kind::GRAPH_CHANGE).is_none()
}

/// Whether calls need to know of a change: one that makes a node, in a stream that is captured, enqueues nothing.
pub(super) fn is_needed(board: &Switchboard, what: GraphOperation) -> bool {
    what == GraphOperation::NODE_CREATED && !board.buffers_for(Kind::DEPENDENCY).is_none()
}

/// CUPTI reports a change of a graph.
///
/// # Safety
///
/// `data` is null or what CUPTI passes with a change of a graph, valid during the call.
pub(super) unsafe fn changed(
    session: &CuptiSession,
    thread: Current,
    what: GraphOperation,
    data: *const c_void,
) {
    // SAFETY: `data` is null or a `CUpti_ResourceData`, and its descriptor null or a `CUpti_GraphData`, as CUPTI passes with
    // changes of graphs; both are valid during the call.
    let described = unsafe {
        data.cast::<Resource>()
            .as_ref()
            .and_then(|resource| resource.descriptor.cast::<GraphData>().as_ref())
    };
    let Some(data) = described else {
        return;
    };
    if what == GraphOperation::NODE_CREATED {
        calls::captured(thread);
    }
    if !thread.board().is_some_and(|board| is_wanted(board, what)) {
        return;
    }
    let mut change = GraphChange::blank();
    change.what = what;
    let is_executable = matches!(
        what,
        GraphOperation::INSTANTIATED | GraphOperation::EXECUTABLE_DESTROYED
    );
    let (handle, other_graph) = match what {
        _ if is_executable => (data.executable, data.graph),
        GraphOperation::CREATED | GraphOperation::DESTROYED | GraphOperation::CLONED => {
            (data.graph, data.original_graph)
        }
        _ => (data.node, data.original_graph),
    };
    change.handle = handle.addr() as u64;
    change.graph = if is_executable {
        executable(session, data.executable)
    } else {
        graph(session, data.graph)
    };
    if matches!(
        what,
        GraphOperation::INSTANTIATED | GraphOperation::CLONED | GraphOperation::NODE_CLONED
    ) {
        change.other_graph = graph(session, other_graph);
    }
    let (of_node, other_node) = match what {
        GraphOperation::NODE_CREATED | GraphOperation::NODE_DESTROYED => {
            (true, core::ptr::null_mut())
        }
        GraphOperation::NODE_CLONED => (true, data.original_node),
        GraphOperation::DEPENDENCY_CREATED | GraphOperation::DEPENDENCY_DESTROYED => {
            (true, data.dependency)
        }
        _ => (false, core::ptr::null_mut()),
    };
    if of_node {
        change.node = node(session, data.node);
        change.other_node = node(session, other_node);
        change.node_type = u8::try_from(data.node_type.saturating_add(1))
            .map_or(GraphNodeType::UNKNOWN, GraphNodeType);
    }
    tell(thread, change);
}

/// A call of `function` has launched a graph.
///
/// # Safety
///
/// `parameters` is null or CUPTI's structure with the arguments of the function.
#[cold]
pub(super) unsafe fn launched(
    session: &CuptiSession,
    thread: Current,
    function: &CudaFunction,
    parameters: *const c_void,
) {
    let board = thread.board();
    if !board.is_some_and(|board| is_wanted(board, GraphOperation::LAUNCHED)) {
        return;
    }
    let mut values = [0; MAX_ARGUMENTS];
    // SAFETY: `parameters` is null or leads to the structure of `function` (`# Safety`).
    unsafe { functions::arguments(function, parameters, &mut values) };
    let mut change = GraphChange::blank();
    change.what = GraphOperation::LAUNCHED;
    change.handle = values[0];
    change.graph = executable(session, values[0] as *mut c_void);
    tell(thread, change);
}

/// Writes the record of a change in the innermost call of the thread, and tells subscribers of it.
fn tell(thread: Current, mut change: GraphChange) {
    change.domain = Domain::CUDA_DRIVER;
    let Some(board) = thread.board() else {
        return;
    };
    let depth = thread.with(|host: &mut HostThread| host.graph_changed(&mut change));
    let Some(depth) = depth else {
        return;
    };
    let notifier = Notifier {
        board,
        state: thread.state(),
        correlation: change.correlation,
        depth,
    };
    notifier.graph_changed(&change);
}

fn graph(session: &CuptiSession, graph: *mut c_void) -> u32 {
    let mut number = 0;
    if !graph.is_null() {
        // SAFETY: the graph of a change that CUPTI describes exists during the callback; CUPTI writes to a local.
        unsafe { call!(session.cupti, cuptiGetGraphId(graph, &raw mut number)) };
    }
    number
}

fn executable(session: &CuptiSession, executable: *mut c_void) -> u32 {
    let mut number = 0;
    if !executable.is_null() {
        // SAFETY: as in `graph`; or a call has launched the executable, and is about to return.
        unsafe {
            call!(
                session.cupti,
                cuptiGetGraphExecId(executable, &raw mut number)
            )
        };
    }
    number
}

fn node(session: &CuptiSession, node: *mut c_void) -> u64 {
    let mut number = 0;
    if !node.is_null() {
        // SAFETY: as in `graph`.
        unsafe { call!(session.cupti, cuptiGetGraphNodeId(node, &raw mut number)) };
    }
    number
}
