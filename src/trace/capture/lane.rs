//! A queue on an agent, and the times of the commands of its command buffers.

use super::join::EnqueueFields;
use super::times::KnownTimes;
use crate::model::{EventArgument, QueueIndex, Value};
use gputrail_record::{ContextId, Nanos, QueueId, StringId, WorkId};

/// A queue on an agent.
pub(super) struct QueueLane {
    pub index: QueueIndex,
    pub id: QueueId,
    /// The context of the queue, and the name that the program has given to it.
    pub context: (ContextId, StringId),
    /// The stream of work that names none.
    pub stream: u32,
    /// The end of its latest work.
    pub latest: Nanos,
    /// When the latest work that is known to have ended was enqueued.
    pub last_enqueued: Nanos,
    pub out_of_order: bool,
    /// The latest command buffer, its start and its end.
    pub command_buffer: (WorkId, Nanos, Nanos),
}

/// The times of a command of a command buffer.
pub(super) struct CommandTimes {
    pub interval: (Nanos, Nanos),
    /// "2 of 3".
    pub number: String,
    /// The duration of the whole buffer, ns.
    pub buffer: u64,
}

impl CommandTimes {
    pub fn arguments(&self) -> [EventArgument<'_>; 3] {
        let argument = |name, value| EventArgument { name, value };
        [
            argument("command_of_buffer", Value::Text(&self.number)),
            argument("command_buffer_duration_ns", Value::Uint(self.buffer)),
            argument(
                "times",
                Value::Text("estimated: an equal share of the time of the whole command buffer"),
            ),
        ]
    }
}

impl QueueLane {
    /// The times of `work`, which is a command of a command buffer: an equal share of the time of the whole buffer,
    /// since the runtime measures no command of its own.
    ///
    /// The buffer begins when it could: when the runtime took it, or when the work before it in the queue ended. Some
    /// runtimes measure only the end of a buffer, and say that it was submitted and began shortly before.
    #[cold]
    pub fn command(&mut self, work: &EnqueueFields, times: &KnownTimes) -> Option<CommandTimes> {
        let (start, end) = times.interval()?;
        let (id, begin, before) = self.command_buffer;
        let begin = if id == work.work.id {
            begin
        } else {
            // Completions of other threads come early: a later end is that of work behind the buffer.
            let ends = [before, self.latest].into_iter();
            let ends = ends.filter(|end| !self.out_of_order && *end <= start);
            let queued = times.queued.or(times.enqueued).unwrap_or(start);
            ends.fold(queued, Nanos::max)
        };
        let begin = begin.min(start);
        self.command_buffer = (work.work.id, begin, end);
        let buffer = end.0 - begin.0;
        let commands = u64::from(work.work.commands).max(1);
        let command = u64::from(work.work.command).min(commands - 1);
        let at = |number: u64| {
            let share = u128::from(buffer) * u128::from(number) / u128::from(commands);
            Nanos(begin.0 + share as u64)
        };
        Some(CommandTimes {
            interval: (at(command), at(command + 1)),
            number: format!("{} of {commands}", command + 1),
            buffer,
        })
    }
}
