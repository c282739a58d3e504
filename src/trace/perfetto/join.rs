//! What is kept of an enqueue record until its completion comes ([`crate::trace::model::join`]).

use super::work::{Launch, Resources};
use crate::record::{
    AgentId, CorrelationId, KernelDispatch, KernelId, LaunchType, MemoryCopy, MemorySet, QueueId,
    StreamId, Synchronization, SynchronizationType, ThreadId, Ticks, TransferKind, WorkId, flags,
};
use crate::trace::model::join::Enqueue;

/// What was enqueued.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum What {
    Kernel {
        kernel: KernelId,
        launch: Launch,
        resources: Resources,
        how: LaunchType,
    },
    Copy {
        transfer: TransferKind,
        bytes: u64,
    },
    Set {
        bytes: u64,
    },
    Synchronization {
        what: SynchronizationType,
        /// It names no events, so it waits for all that is in its queue.
        after_all: bool,
    },
}

/// An enqueue record, as far as the trace shows it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Enqueued {
    pub work: WorkId,
    pub correlation: CorrelationId,
    pub enqueued: Ticks,
    pub thread: ThreadId,
    pub agent: AgentId,
    pub queue: QueueId,
    pub stream: StreamId,
    pub untracked: bool,
    /// It is part of a command buffer, and shares its work id and its completion.
    pub shared: bool,
    pub what: What,
    /// Number among the parts of a command buffer, which share their work id.
    pub serial: u32,
}

impl From<&KernelDispatch> for Enqueued {
    #[inline(always)]
    fn from(record: &KernelDispatch) -> Enqueued {
        Enqueued {
            work: record.work,
            correlation: record.correlation,
            enqueued: record.enqueued,
            thread: record.thread,
            agent: record.agent,
            queue: record.queue,
            stream: record.stream,
            untracked: record.header.has(flags::UNTRACKED),
            shared: record.header.has(flags::SHARED) || record.launch == LaunchType::COMMAND_BUFFER,
            what: What::Kernel {
                kernel: record.kernel,
                launch: Launch {
                    grid: record.grid,
                    workgroup: record.workgroup,
                },
                resources: Resources {
                    registers: record.registers,
                    static_local: record.static_local_memory,
                    dynamic_local: record.dynamic_local_memory,
                    private: record.private_memory,
                },
                how: record.launch,
            },
            serial: 0,
        }
    }
}

impl From<&MemoryCopy> for Enqueued {
    #[inline(always)]
    fn from(record: &MemoryCopy) -> Enqueued {
        Enqueued {
            work: record.work,
            correlation: record.correlation,
            enqueued: record.enqueued,
            thread: record.thread,
            agent: record.agent,
            queue: record.queue,
            stream: record.stream,
            untracked: record.header.has(flags::UNTRACKED),
            shared: record.header.has(flags::SHARED),
            what: What::Copy {
                transfer: record.transfer,
                bytes: record.bytes,
            },
            serial: 0,
        }
    }
}

impl From<&MemorySet> for Enqueued {
    #[inline(always)]
    fn from(record: &MemorySet) -> Enqueued {
        Enqueued {
            work: record.work,
            correlation: record.correlation,
            enqueued: record.enqueued,
            thread: record.thread,
            agent: record.agent,
            queue: record.queue,
            stream: record.stream,
            untracked: record.header.has(flags::UNTRACKED),
            shared: record.header.has(flags::SHARED),
            what: What::Set {
                bytes: record.bytes,
            },
            serial: 0,
        }
    }
}

impl From<&Synchronization> for Enqueued {
    #[inline(always)]
    fn from(record: &Synchronization) -> Enqueued {
        Enqueued {
            work: record.work,
            correlation: record.correlation,
            enqueued: record.start,
            thread: record.thread,
            agent: record.agent,
            queue: record.queue,
            stream: record.stream,
            untracked: record.header.has(flags::UNTRACKED),
            shared: record.header.has(flags::SHARED),
            what: What::Synchronization {
                what: record.what,
                after_all: record.events == 0
                    && matches!(
                        record.what,
                        SynchronizationType::BARRIER | SynchronizationType::MARKER
                    ),
            },
            serial: 0,
        }
    }
}

impl Enqueued {
    /// Whether all that is enqueued later waits for it.
    pub fn is_barrier(&self) -> bool {
        let What::Synchronization { what, .. } = self.what else {
            return false;
        };
        what == SynchronizationType::BARRIER
    }
}

impl Enqueue for Enqueued {
    fn work(&self) -> WorkId {
        self.work
    }

    fn is_untracked(&self) -> bool {
        self.untracked
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn serial(&self) -> u32 {
        self.serial
    }

    fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
    }
}

/// Work as far as it is known.
pub(super) type Found = crate::trace::model::join::Found<Enqueued>;
/// The records that wait for their partner.
pub(super) type Join = crate::trace::model::join::Join<Enqueued>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Completion, Unfinished};

    fn enqueued(work: u64) -> Enqueued {
        Enqueued::from(&MemorySet {
            work: WorkId(work),
            bytes: work,
            ..MemorySet::blank()
        })
    }

    fn kernel_of_a_command_buffer(work: u64) -> Enqueued {
        Enqueued::from(&KernelDispatch {
            work: WorkId(work),
            launch: LaunchType::COMMAND_BUFFER,
            ..KernelDispatch::blank()
        })
    }

    fn completion(work: u64) -> Completion {
        Completion {
            work: WorkId(work),
            ..Completion::blank()
        }
    }

    fn complete(join: &mut Join, completion: &Completion, found: &mut Vec<Found>) {
        let work = join.complete(completion, found);
        found.extend(work.map(|work| Found::Both(work, *completion)));
    }

    #[test]
    fn either_order_joins() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        join.enqueue(enqueued(1), &mut found);
        complete(&mut join, &completion(2), &mut found);
        assert_eq!(found, []);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(enqueued(2), &mut found);
        let both = |work| Found::Both(enqueued(work), completion(work));
        assert_eq!(found, [both(1), both(2)]);
        join.finish(&mut found);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn work_that_somebody_asked_after_waits_for_its_real_completion() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        let asked_after = |work| Completion {
            unfinished: Unfinished::AT_FLUSH,
            ..completion(work)
        };
        join.enqueue(enqueued(1), &mut found);
        complete(&mut join, &asked_after(1), &mut found);
        complete(&mut join, &asked_after(2), &mut found);
        join.enqueue(enqueued(2), &mut found);
        complete(&mut join, &completion(1), &mut found);
        join.finish(&mut found);
        let expected = [
            Found::Both(enqueued(1), completion(1)),
            Found::Enqueued(enqueued(2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_of_a_command_buffer_share_one_completion() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        let fill = Enqueued {
            shared: true,
            ..enqueued(1)
        };
        join.enqueue(fill, &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(fill, &mut found);
        join.finish(&mut found);
        let both = |found: &Found| matches!(found, Found::Both(..));
        assert_eq!((found.len(), found.iter().all(both)), (3, true));
    }

    #[test]
    fn what_never_meets_its_partner_is_told_at_the_end() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        join.enqueue(enqueued(1), &mut found);
        complete(&mut join, &completion(2), &mut found);
        join.finish(&mut found);
        let expected = [
            Found::Enqueued(enqueued(1)),
            Found::Completed(completion(2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_full_table_gives_up_the_older_half() {
        let (mut join, mut found) = (Join::of_size(2), Vec::new());
        for work in 1..=3 {
            join.enqueue(enqueued(work), &mut found);
        }
        (4..=6).for_each(|work| complete(&mut join, &completion(work), &mut found));
        let expected = [
            Found::Enqueued(enqueued(1)),
            Found::Completed(completion(4)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn work_that_cannot_be_tracked_does_not_wait() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        let untracked = Enqueued {
            untracked: true,
            ..enqueued(1)
        };
        join.enqueue(untracked, &mut found);
        assert_eq!(found, [Found::Enqueued(untracked)]);
    }

    #[test]
    fn all_kernels_of_a_command_buffer_meet_its_one_completion() {
        let (mut join, mut found) = (Join::default(), Vec::new());
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        join.finish(&mut found);
        assert_eq!(found.len(), 3);
        let serials = found.iter().map(|found| match found {
            Found::Both(work, _) => work.serial,
            other => panic!("{other:?}"),
        });
        assert_eq!(serials.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
