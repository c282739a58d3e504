//! Command buffers: commands that are recorded once and enqueued many times. One event covers all of them, so they
//! share a work id and a completion.

use super::call::ObservedCall;
use super::callbacks::CommandDescription;
use super::ffi::*;
use super::kernels;
use super::work::{CommandRecord, Commands, Enqueue, EnqueueInfo, KernelLaunch, list};
use crate::collect::correlation::HostThread;
use crate::collect::switchboard::{Buffers, Interest};
use crate::platform::sync::PerProcess;
use crate::record::*;
use std::collections::HashMap;

/// A recorded command.
#[derive(Copy, Clone)]
pub(super) enum Command {
    Kernel(KernelDispatch),
    Copy(MemoryCopy),
    Set(MemorySet),
}

impl From<KernelLaunch> for Command {
    fn from(launch: KernelLaunch) -> Command {
        let mut kernel = launch.record();
        kernel.launch = LaunchType::COMMAND_BUFFER;
        Command::Kernel(kernel)
    }
}

impl From<MemoryCopy> for Command {
    fn from(copy: MemoryCopy) -> Command {
        Command::Copy(copy)
    }
}

impl From<MemorySet> for Command {
    fn from(set: MemorySet) -> Command {
        Command::Set(set)
    }
}

struct RecordedBuffer {
    /// The queue to which it is enqueued by default.
    queue: cl_command_queue,
    references: u32,
    commands: Vec<Command>,
}

// SAFETY: a handle is a number to us.
unsafe impl Send for RecordedBuffer {}

type Known = HashMap<u64, RecordedBuffer>;

/// The command buffers that the program holds.
static BUFFERS: PerProcess<Known> = PerProcess::new();

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
/// `queues` leads to `count` queues.
pub(super) unsafe fn created(
    call: &mut ObservedCall,
    buffer: cl_command_buffer_khr,
    count: cl_uint,
    queues: *const cl_command_queue,
) {
    call.end();
    // SAFETY: the caller's promise.
    let queue = unsafe { list(queues, count) }
        .first()
        .copied()
        .unwrap_or(cl_command_queue::NULL);
    let new = RecordedBuffer {
        queue,
        references: 1,
        commands: Vec::new(),
    };
    BUFFERS.lock().insert(buffer.into(), new);
}

pub(super) fn retained(_: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    with(buffer, |buffer| buffer.references += 1);
}

pub(super) fn released(_: &mut ObservedCall, buffer: cl_command_buffer_khr) {
    let mut buffers = BUFFERS.lock();
    if let Some(known) = buffers.get_mut(&buffer.into()) {
        known.references = known.references.saturating_sub(1);
        if known.references == 0 {
            buffers.remove(&buffer.into());
        }
    }
}

/// Adds a command to `buffer`.
pub(super) fn record(
    call: &mut ObservedCall,
    buffer: cl_command_buffer_khr,
    command: impl Into<Command>,
) {
    call.end();
    with(buffer, |buffer| buffer.commands.push(command.into()));
}

/// The work of an enqueued command buffer.
#[derive(Copy, Clone)]
pub(super) struct CommandBuffer(pub cl_command_buffer_khr);

impl Enqueue for CommandBuffer {
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
        self.each(info, |command, info| match command {
            Command::Kernel(kernel) => one(kernel, host, info),
            Command::Copy(copy) => one(copy, host, info),
            Command::Set(set) => one(set, host, info),
        });
    }

    fn describe(&self, info: &EnqueueInfo, notify: &mut dyn FnMut(CommandDescription<'_>)) {
        self.each(info, |command, info| match command {
            Command::Kernel(kernel) => kernel.describe(info, notify),
            Command::Copy(copy) => copy.describe(info, notify),
            Command::Set(set) => set.describe(info, notify),
        });
    }
}

impl CommandBuffer {
    /// Calls `work` with each command and its place in the buffer; a buffer whose commands were not observed, or that has
    /// more than records can number, is one command.
    fn each(self, info: &EnqueueInfo, mut work: impl FnMut(Command, &EnqueueInfo)) {
        let mut commands = with(self.0, |buffer| buffer.commands.clone()).unwrap_or_default();
        if commands.is_empty() || commands.len() > usize::from(u16::MAX) {
            commands.clear();
            commands.push(Command::Kernel(whole()));
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
