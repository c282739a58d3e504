//! Command buffers: commands that are recorded once and enqueued many times. One event covers all of them, so they
//! share a work id and a completion. To tools they are graphs: a buffer is a graph and, once it is final, the executable
//! graph that was made of it, with the same number.

use super::call::ObservedCall;
use super::ffi::*;
use super::kernels;
use super::work::{
    CommandDescription, CommandRecord, Commands, EnqueueInfo, EnqueuedRecords, KernelLaunch, list,
};
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::switchboard::{Buffers, Interest};
use gputrail_record::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// A recorded command.
#[derive(Copy, Clone)]
pub(super) enum RecordedCommand {
    Kernel(KernelDispatch),
    Copy(MemoryCopy),
    Set(MemorySet),
}

impl From<KernelLaunch> for RecordedCommand {
    fn from(launch: KernelLaunch) -> RecordedCommand {
        let mut kernel = launch.record();
        kernel.launch = LaunchType::COMMAND_BUFFER;
        RecordedCommand::Kernel(kernel)
    }
}

impl From<MemoryCopy> for RecordedCommand {
    fn from(copy: MemoryCopy) -> RecordedCommand {
        RecordedCommand::Copy(copy)
    }
}

impl From<MemorySet> for RecordedCommand {
    fn from(set: MemorySet) -> RecordedCommand {
        RecordedCommand::Set(set)
    }
}

impl RecordedCommand {
    fn node_type(&self) -> GraphNodeType {
        match self {
            RecordedCommand::Kernel(_) => GraphNodeType::KERNEL,
            RecordedCommand::Copy(_) => GraphNodeType::COPY,
            RecordedCommand::Set(_) => GraphNodeType::FILL,
        }
    }
}

struct RecordedBuffer {
    /// Its number as a graph.
    graph: u32,
    /// The commands that have been added, with barriers.
    nodes: u64,
    /// The queue to which it is enqueued by default.
    queue: cl_command_queue,
    references: u32,
    commands: Vec<RecordedCommand>,
}

// SAFETY: a handle is a number to us.
unsafe impl Send for RecordedBuffer {}

type KnownBuffers = HashMap<u64, RecordedBuffer>;

/// The command buffers that the program holds.
static BUFFERS: PerProcess<KnownBuffers> = PerProcess::new();

fn with<R>(
    buffer: cl_command_buffer_khr,
    change: impl FnOnce(&mut RecordedBuffer) -> R,
) -> Option<R> {
    BUFFERS.lock().get_mut(&buffer.into()).map(change)
}

/// A command buffer was created.
///
/// # Safety
///
/// `queues` is null or leads to `count` queues.
pub(super) unsafe fn created(
    call: &mut ObservedCall,
    buffer: cl_command_buffer_khr,
    count: cl_uint,
    queues: *const cl_command_queue,
) {
    call.end();
    // SAFETY: `queues` is null or leads to `count` queues, and the program keeps the list during the call.
    let queue = unsafe { list(queues, count) }
        .first()
        .copied()
        .unwrap_or(cl_command_queue::NULL);
    static GRAPHS: AtomicU32 = AtomicU32::new(0);
    let graph = GRAPHS.fetch_add(1, Ordering::Relaxed) + 1;
    let new = RecordedBuffer {
        graph,
        nodes: 0,
        queue,
        references: 1,
        commands: Vec::new(),
    };
    BUFFERS.lock().insert(buffer.into(), new);
    changed(call, GraphOperation::CREATED, buffer, graph, |_| {});
}

/// Tells what has happened to the graph that `buffer` is.
fn changed(
    call: &mut ObservedCall,
    what: GraphOperation,
    buffer: cl_command_buffer_khr,
    graph: u32,
    complete: impl FnOnce(&mut GraphChange),
) {
    let mut change = GraphChange::blank();
    change.time = match call.end() {
        Ticks::NONE => clock::now(),
        end => end,
    };
    (change.what, change.graph) = (what, graph);
    (change.domain, change.handle) = (Domain::OPENCL, buffer.into());
    complete(&mut change);
    if call.host(|host| host.graph_changed(&mut change)).is_some() {
        call.notify_graph(&change);
    }
}

/// A node was added to `buffer`.
fn added(call: &mut ObservedCall, buffer: cl_command_buffer_khr, node_type: GraphNodeType) {
    let number = with(buffer, |buffer| {
        buffer.nodes += 1;
        (buffer.graph, buffer.nodes)
    });
    if let Some((graph, node)) = number {
        changed(
            call,
            GraphOperation::NODE_CREATED,
            buffer,
            graph,
            |change| {
                (change.node, change.node_type) = (node, node_type);
            },
        );
    }
}

pub(super) fn barrier(call: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    added(call, buffer, GraphNodeType::EMPTY);
}

pub(super) fn finalized(call: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    if let Some(graph) = with(buffer, |buffer| buffer.graph) {
        changed(
            call,
            GraphOperation::INSTANTIATED,
            buffer,
            graph,
            |change| {
                change.other_graph = graph;
            },
        );
    }
}

pub(super) fn retained(_: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    with(buffer, |buffer| buffer.references += 1);
}

pub(super) fn released(call: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    let mut buffers = BUFFERS.lock();
    let Some(known) = buffers.get_mut(&buffer.into()) else {
        return;
    };
    known.references = known.references.saturating_sub(1);
    if known.references == 0 {
        let graph = known.graph;
        buffers.remove(&buffer.into());
        // Subscribers may make calls of their own.
        drop(buffers);
        changed(call, GraphOperation::DESTROYED, buffer, graph, |_| {});
    }
}

/// Adds a command to `buffer`.
pub(super) fn record(
    call: &mut ObservedCall,
    buffer: cl_command_buffer_khr,
    command: impl Into<RecordedCommand>,
) {
    call.end();
    let command = command.into();
    with(buffer, |buffer| buffer.commands.push(command));
    added(call, buffer, command.node_type());
}

/// The work of an enqueued command buffer.
#[derive(Copy, Clone)]
pub(super) struct CommandBuffer(pub cl_command_buffer_khr);

impl EnqueuedRecords for CommandBuffer {
    fn own_queue(&self) -> cl_command_queue {
        with(self.0, |buffer| buffer.queue).unwrap_or(cl_command_queue::NULL)
    }

    fn wanted_by(&self, host: &HostThread, call: Interest, context: ContextId) -> Buffers {
        [Kind::KERNEL_DISPATCH, Kind::MEMORY_COPY, Kind::MEMORY_SET]
            .into_iter()
            .fold(Buffers::NONE, |all, kind| {
                all.or(host.board().buffers_of(call, kind, context))
            })
    }

    fn enqueue(&self, host: &mut HostThread, info: &EnqueueInfo) {
        if let Some(graph) = with(self.0, |buffer| buffer.graph) {
            let mut whole = GraphNode::blank();
            (whole.work, whole.graph) = (info.work.id, graph);
            let wanted = host.buffers_for(Kind::GRAPH_NODE);
            host.write_to(info.buffers.and(wanted), whole);
        }
        self.each(info, |command, info| match command {
            RecordedCommand::Kernel(kernel) => one(kernel, host, info),
            RecordedCommand::Copy(copy) => one(copy, host, info),
            RecordedCommand::Set(set) => one(set, host, info),
        });
    }

    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>)) {
        self.each(info, |command, info| match command {
            RecordedCommand::Kernel(kernel) => kernel.describe(info, notify),
            RecordedCommand::Copy(copy) => copy.describe(info, notify),
            RecordedCommand::Set(set) => set.describe(info, notify),
        });
    }

    fn taken(&self, call: &mut ObservedCall) {
        if let Some(graph) = with(self.0, |buffer| buffer.graph) {
            changed(call, GraphOperation::LAUNCHED, self.0, graph, |_| {});
        }
    }
}

impl CommandBuffer {
    /// Calls `work` with each command and its place in the buffer; a buffer whose commands were not observed, or that has
    /// more than records can number, is one command.
    fn each(self, info: &EnqueueInfo, mut work: impl FnMut(RecordedCommand, &EnqueueInfo)) {
        let mut commands = with(self.0, |buffer| buffer.commands.clone()).unwrap_or_default();
        if commands.is_empty() || commands.len() > usize::from(u16::MAX) {
            commands.clear();
            commands.push(RecordedCommand::Kernel(whole()));
        }
        let mut info = EnqueueInfo {
            flags: info.flags | flags::SHARED,
            ..*info
        };
        info.work.commands = u16::try_from(commands.len()).unwrap_or(1);
        for (number, command) in commands.into_iter().enumerate() {
            info.work.command = u16::try_from(number).unwrap_or(u16::MAX);
            work(command, &info);
        }
    }
}

/// The record of a command buffer whose commands were not observed.
fn whole() -> KernelDispatch {
    let mut whole = Commands::native(None);
    (whole.kernel, whole.launch) = (kernels::command_buffer(), LaunchType::COMMAND_BUFFER);
    whole
}

/// Writes the record of one command to the buffers that want its kind.
fn one<P: CommandRecord>(command: P, host: &mut HostThread, info: &EnqueueInfo) {
    let call = Interest::of(info.buffers);
    let wanted = command.wanted_by(host, call, info.work.context);
    let info = &EnqueueInfo {
        buffers: info.buffers.and(wanted),
        ..*info
    };
    command.enqueue(host, info);
}
