//! A thread in a call, from which subscribers are called back: about memory, waits, graphs and objects.
//!
//! Callbacks about completed work come from the runtime's own callback, on a thread of its choice and perhaps under its
//! locks. On a thread that is already in a callback they are postponed: they wait in the work's slot until that callback has
//! returned.

use super::call::ObservedCall;
use super::completion::{self, OUTSTANDING};
use super::ffi::cl_int;
use gputrail_buffer::clock;
use gputrail_collect::notify::Notifier;
use gputrail_collect::process::Current;
use gputrail_collect::switchboard::{Payload, ReportedPart, Switchboard};
use gputrail_interface::operations::{memory_allocation, synchronization};
use gputrail_record::*;
use std::sync::Arc;

/// A thread in a call, from which subscribers are called back.
pub(super) struct CallSite {
    pub thread: Current,
    board: &'static Arc<Switchboard>,
    pub id: ThreadId,
    correlation: CorrelationId,
    depth: u32,
}

impl CallSite {
    /// The call site on `thread`. `None` within a callback, and after the end of recording.
    #[inline]
    pub fn new(thread: Current, correlation: CorrelationId, depth: u32) -> Option<CallSite> {
        if thread.state().is_in_callback() {
            return None;
        }
        Some(CallSite {
            thread,
            board: thread.board()?,
            id: thread.state().thread(),
            correlation,
            depth,
        })
    }

    pub fn notifier(&self) -> Notifier<'_> {
        Notifier {
            board: self.board,
            state: self.thread.state(),
            correlation: self.correlation,
            depth: self.depth,
        }
    }

    /// Notifies subscribers of an operation without duration.
    pub fn instant(&self, operation: Operation, payload: Payload<'_>) {
        self.notifier().instant(operation, payload);
        self.notify_postponed();
    }

    /// Notifies the followers of work that completed while this thread was in a callback.
    pub fn notify_postponed(&self) {
        if OUTSTANDING.any_parked() {
            completion::notify_postponed(self.thread);
        }
    }
}

impl ObservedCall {
    #[inline]
    fn site(&self) -> Option<CallSite> {
        CallSite::new(self.thread?, self.core.correlation, self.core.depth)
    }

    /// The call site, if subscribers want operations inside the call.
    #[inline]
    pub fn inner_call_site(&self) -> Option<CallSite> {
        if !self.core.interest.has_inner_callbacks() {
            return None;
        }
        self.site()
    }

    /// Notifies subscribers that memory is going to be allocated or freed.
    pub(super) fn notify_allocation(&self, site: &CallSite, mut record: Allocation) {
        (record.correlation, record.start) = (self.core.correlation, self.core.start);
        record.thread = site.id;
        let operation = allocation(record.operation);
        let record = RecordRef::of(&record);
        site.notifier()
            .enter(ReportedPart::Work, operation, record, KernelId::NONE);
    }

    /// Notifies subscribers that memory has been allocated or freed.
    pub(super) fn notify_allocated(&self, record: &Allocation) {
        if let Some(site) = self.inner_call_site() {
            let operation = allocation(record.operation);
            let payload = Payload::Record(RecordRef::of(record));
            site.notifier()
                .exit(ReportedPart::Work, operation, payload, KernelId::NONE, 0);
            site.notifier().end(ReportedPart::Work);
        }
    }

    /// Notifies subscribers that the host is going to wait.
    pub(super) fn notify_wait(&mut self, mut record: Synchronization) {
        if let Some(site) = self.inner_call_site() {
            let work = &mut record.work;
            (work.correlation, work.enqueued) = (self.core.correlation, self.core.start);
            work.thread = site.id;
            let record_ref = RecordRef::of(&record);
            let operation = wait(record.what);
            site.notifier()
                .enter(ReportedPart::Wait, operation, record_ref, KernelId::NONE);
            self.core.start = clock::now();
        }
    }

    /// Notifies subscribers that the host has waited.
    pub(super) fn notify_waited(&self, record: &Synchronization, status: cl_int) {
        if let Some(site) = self.inner_call_site() {
            let payload = Payload::Record(RecordRef::of(record));
            let operation = wait(record.what);
            site.notifier().exit(
                ReportedPart::Wait,
                operation,
                payload,
                KernelId::NONE,
                status,
            );
            site.notifier().end(ReportedPart::Wait);
        }
    }

    /// Notifies subscribers of a change of a graph.
    pub(super) fn notify_graph(&self, change: &GraphChange) {
        if let Some(site) = self.inner_call_site() {
            site.notifier().graph_changed(change);
            site.notify_postponed();
        }
    }

    /// Notifies subscribers that an object has been created or is going to be destroyed. `id` is the id of an `R`.
    pub(super) fn notify_object<R: Record>(&self, operation: Operation, id: u32) {
        if let Some(site) = self.inner_call_site() {
            site.notifier().object::<R>(operation, id);
            site.notify_postponed();
        }
    }
}

fn allocation(operation: AllocationOperation) -> Operation {
    match operation {
        AllocationOperation::FREE => memory_allocation::FREE,
        _ => memory_allocation::ALLOCATE,
    }
}

/// The operation under which subscribers see a wait, or a marker or barrier.
pub(super) fn wait(what: SynchronizationType) -> Operation {
    Operation {
        number: what.0.into(),
        ..synchronization::COMPLETE
    }
}
