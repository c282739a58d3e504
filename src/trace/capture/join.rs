//! The fields of an enqueue record that are kept until its completion comes ([`gputrail_capture::join`]).

use crate::model::{Launch, Resources};
use gputrail_capture::join::Enqueue;
use gputrail_record::{
    KernelDispatch, KernelId, LaunchType, MemoryCopy, MemorySet, Nanos, Synchronization,
    SynchronizationType, TransferKind, WorkHeader, WorkId, WorkRecord, flags,
};

/// The kind of a piece of work, with its properties.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum WorkNature {
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
        /// Whether it names no events, so that it waits for all earlier work in its queue.
        after_all: bool,
    },
}

/// The fields of an enqueue record that the trace shows.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct EnqueueFields {
    /// When the call that enqueued the work began, as the trace shows that call. Later readings of the clocks may
    /// convert its ticks to other nanoseconds, and no work may begin before its call.
    pub began: Nanos,
    /// The fields that all work records share.
    pub work: WorkHeader,
    /// Bits of [`flags`].
    pub flags: u8,
    /// Its number among the parts of a command buffer, which share their work id.
    pub serial: u32,
    pub what: WorkNature,
}

/// A work record that the trace shows.
pub(super) trait ShownWork: WorkRecord {
    /// The fields of this kind of work.
    fn what(&self) -> WorkNature;
}

impl<R: ShownWork> From<&R> for EnqueueFields {
    #[inline(always)]
    fn from(record: &R) -> EnqueueFields {
        EnqueueFields {
            began: Nanos::NONE,
            work: *record.work(),
            flags: record.header().flags,
            serial: 0,
            what: record.what(),
        }
    }
}

/// An enqueue record, and the time at which its call began.
#[derive(Copy, Clone)]
pub(super) struct At<'r, R>(pub &'r R, pub Nanos);

impl<R: ShownWork + Copy> From<At<'_, R>> for EnqueueFields {
    #[inline(always)]
    fn from(At(record, began): At<'_, R>) -> EnqueueFields {
        EnqueueFields {
            began,
            ..EnqueueFields::from(record)
        }
    }
}

impl ShownWork for KernelDispatch {
    #[inline(always)]
    fn what(&self) -> WorkNature {
        WorkNature::Kernel {
            kernel: self.kernel,
            launch: Launch {
                grid: self.grid,
                workgroup: self.workgroup,
            },
            resources: Resources {
                registers: self.registers,
                accumulation_registers: self.accumulation_registers.into(),
                scalar_registers: self.scalar_registers.into(),
                static_local: self.static_local_memory,
                dynamic_local: self.dynamic_local_memory,
                private: self.private_memory,
            },
            how: self.launch,
        }
    }
}

impl ShownWork for MemoryCopy {
    #[inline(always)]
    fn what(&self) -> WorkNature {
        WorkNature::Copy {
            transfer: self.transfer,
            bytes: self.bytes,
        }
    }
}

impl ShownWork for MemorySet {
    #[inline(always)]
    fn what(&self) -> WorkNature {
        WorkNature::Set { bytes: self.bytes }
    }
}

impl ShownWork for Synchronization {
    #[inline(always)]
    fn what(&self) -> WorkNature {
        let in_queue = [SynchronizationType::BARRIER, SynchronizationType::MARKER];
        WorkNature::Synchronization {
            what: self.what,
            after_all: self.events == 0 && in_queue.contains(&self.what),
        }
    }
}

impl EnqueueFields {
    pub fn is_kernel(&self) -> bool {
        matches!(self.what, WorkNature::Kernel { .. })
    }

    /// Whether all work that is enqueued later waits for it.
    pub fn is_barrier(&self) -> bool {
        let WorkNature::Synchronization { what, .. } = self.what else {
            return false;
        };
        what == SynchronizationType::BARRIER
    }
}

impl Enqueue for EnqueueFields {
    fn work(&self) -> WorkId {
        self.work.id
    }

    fn is_untracked(&self) -> bool {
        self.flags & flags::UNTRACKED != 0
    }

    fn is_shared(&self) -> bool {
        self.flags & flags::SHARED != 0
    }

    fn serial(&self) -> u32 {
        self.serial
    }

    fn set_serial(&mut self, serial: u32) {
        let WorkHeader {
            command, commands, ..
        } = self.work;
        // A wait for a command buffer is a wait for its last command, which has the id of the work itself.
        let is_last = commands > 0 && command == commands - 1;
        self.serial = if is_last { 0 } else { serial };
    }
}

/// The records of a piece of work that have been found.
pub(super) type FoundWork = gputrail_capture::join::Found<EnqueueFields>;

/// Whether the enqueue record was found and is that of a kernel.
pub(super) fn is_kernel(found: &FoundWork) -> bool {
    found.parts().0.is_some_and(EnqueueFields::is_kernel)
}

/// The records that wait for their partner.
pub(super) type WorkJoin = gputrail_capture::join::Join<EnqueueFields>;

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::{Completion, Unfinished};

    fn enqueued(work: u64) -> EnqueueFields {
        let mut record = MemorySet::blank();
        (record.work.id, record.bytes) = (WorkId(work), work);
        EnqueueFields::from(&record)
    }

    fn kernel_of_a_command_buffer(work: u64) -> EnqueueFields {
        let mut record = KernelDispatch::blank();
        record.header = record.header.with(flags::SHARED);
        (record.work.id, record.launch) = (WorkId(work), LaunchType::COMMAND_BUFFER);
        EnqueueFields::from(&record)
    }

    fn completion(work: u64) -> Completion {
        Completion {
            work: WorkId(work),
            ..Completion::blank()
        }
    }

    fn complete(join: &mut WorkJoin, completion: &Completion, found: &mut Vec<FoundWork>) {
        let work = join.complete(completion, found);
        found.extend(work.map(|work| FoundWork::Both(work, *completion)));
    }

    #[test]
    fn either_order_joins() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
        join.enqueue(enqueued(1), &mut found);
        complete(&mut join, &completion(2), &mut found);
        assert_eq!(found, []);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(enqueued(2), &mut found);
        let both = |work| FoundWork::Both(enqueued(work), completion(work));
        assert_eq!(found, [both(1), both(2)]);
        join.finish(&mut found);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn work_that_somebody_asked_after_waits_for_its_real_completion() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
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
            FoundWork::Both(enqueued(1), completion(1)),
            FoundWork::Enqueued(enqueued(2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_of_a_command_buffer_share_one_completion() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
        let fill = EnqueueFields {
            flags: flags::SHARED,
            ..enqueued(1)
        };
        join.enqueue(fill, &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(fill, &mut found);
        join.finish(&mut found);
        let both = |found: &FoundWork| matches!(found, FoundWork::Both(..));
        assert_eq!((found.len(), found.iter().all(both)), (3, true));
    }

    #[test]
    fn records_without_a_partner_are_found_at_the_end() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
        join.enqueue(enqueued(1), &mut found);
        complete(&mut join, &completion(2), &mut found);
        join.finish(&mut found);
        let expected = [
            FoundWork::Enqueued(enqueued(1)),
            FoundWork::Completed(completion(2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_full_table_gives_up_the_older_half() {
        let (mut join, mut found) = (WorkJoin::of_size(2), Vec::new());
        for work in 1..=3 {
            join.enqueue(enqueued(work), &mut found);
        }
        (4..=6).for_each(|work| complete(&mut join, &completion(work), &mut found));
        let expected = [
            FoundWork::Enqueued(enqueued(1)),
            FoundWork::Completed(completion(4)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn work_that_cannot_be_tracked_does_not_wait() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
        let untracked = EnqueueFields {
            flags: flags::UNTRACKED,
            ..enqueued(1)
        };
        join.enqueue(untracked, &mut found);
        assert_eq!(found, [FoundWork::Enqueued(untracked)]);
    }

    #[test]
    fn all_kernels_of_a_command_buffer_meet_its_one_completion() {
        let (mut join, mut found) = (WorkJoin::default(), Vec::new());
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        complete(&mut join, &completion(1), &mut found);
        join.enqueue(kernel_of_a_command_buffer(1), &mut found);
        join.finish(&mut found);
        assert_eq!(found.len(), 3);
        let serials = found.iter().map(|found| match found {
            FoundWork::Both(work, _) => work.serial,
            other => panic!("{other:?}"),
        });
        assert_eq!(serials.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
