//! The client's own ids: each thread's stacks of pushed ids, and the ids supplied for single calls.

use super::{CallInProgress, HostThread, external_record};
use crate::counting::ranges;
use crate::switchboard::{
    ContextSet, ExternalContexts, ExternalScope, ExternalStacks, Interest, Pushed, ReportedPart,
};
use gputrail_record::*;

impl HostThread {
    pub(super) fn with_external<R>(
        &self,
        work: impl FnOnce(&mut ExternalStacks, &ExternalContexts) -> R,
    ) -> Option<R> {
        let all = self.board.external();
        // SAFETY: a `HostThread` is used by its thread alone, as is this part of its state.
        unsafe { self.state.with_external(|stacks| work(stacks, all)) }
    }

    /// Forgets the ids supplied for calls at `depth` and deeper, which have ended.
    #[inline(always)]
    pub(super) fn end_supplied(&mut self, depth: u32) {
        if self.state.has_external() {
            self.with_external(|stacks, _| stacks.end_supplied(depth));
        }
    }

    /// The external id that consumers without ids of their own get with records of this thread's calls: the one
    /// supplied for the call in progress, or the latest pushed on the thread for the process, of any kind, or else the
    /// main thread's.
    #[inline]
    pub fn external(&self) -> ExternalId {
        self.external_of(ContextSet::default(), ReportedPart::Call)
    }

    /// The external id that the consumers of `contexts` get with records of the call in progress, or of its work.
    #[inline(always)]
    pub fn external_of(&self, contexts: ContextSet, within: ReportedPart) -> ExternalId {
        let place = (self.depth.saturating_sub(1), within);
        // SAFETY: a `HostThread` is used by its thread alone, as is this part of its state.
        unsafe { self.state.external(self.board.external(), contexts, place) }
    }

    /// The external id of samples of the kernel that is being enqueued.
    #[cold]
    pub fn external_of_samples(&self) -> ExternalId {
        self.external_of(self.board.external().of_samples(), ReportedPart::Work)
    }

    /// Pushes an id of the client's own for the process. `false` says that the stack is full.
    pub fn push_external(&mut self, kind: ExternalKind, id: ExternalId, now: Ticks) -> bool {
        self.push_external_for(ExternalScope::Process, (kind, id), now)
    }

    /// [`HostThread::push_external`] for the consumers of `scope`.
    pub(crate) fn push_external_for(
        &mut self,
        scope: ExternalScope,
        (kind, id): (ExternalKind, ExternalId),
        now: Ticks,
    ) -> bool {
        let is_main = self.is_main;
        let in_call = scope != ExternalScope::Process && self.depth > 0;
        let pushed = self.with_external(|stacks, all| {
            let pushed = stacks.push(Pushed { scope, kind, id });
            if in_call {
                stacks.push_in_call();
            }
            if is_main && pushed {
                stacks.publish_main(all, scope);
            }
            pushed
        });
        let pushed = pushed == Some(true);
        if pushed {
            self.mark_external(MarkerKind::EXTERNAL_PUSH, scope, (kind, id), now);
        }
        pushed
    }

    /// Takes off the latest id of `kind` that was pushed for the process, or returns `None` if there is none.
    pub fn pop_external(&mut self, kind: ExternalKind, now: Ticks) -> Option<ExternalId> {
        self.pop_external_for(ExternalScope::Process, kind, now)
    }

    /// [`HostThread::pop_external`] for the consumers of `scope`.
    pub(crate) fn pop_external_for(
        &mut self,
        scope: ExternalScope,
        kind: ExternalKind,
        now: Ticks,
    ) -> Option<ExternalId> {
        let is_main = self.is_main;
        let popped = self.with_external(|stacks, all| {
            let popped = stacks.pop(scope, kind);
            if is_main && popped.is_some() {
                stacks.publish_main(all, scope);
            }
            popped
        });
        let id = popped??;
        self.mark_external(MarkerKind::EXTERNAL_POP, scope, (kind, id), now);
        Some(id)
    }

    /// Records a push or pop in the buffers that want markers: all of them for the process, or those of the
    /// context.
    fn mark_external(
        &mut self,
        what: MarkerKind,
        scope: ExternalScope,
        (kind, id): (ExternalKind, ExternalId),
        now: Ticks,
    ) {
        let mut marker = Marker::blank();
        (marker.time, marker.id, marker.what) = (now, id.0, what);
        (marker.thread, marker.external_kind) = (self.thread, kind.0 as u16);
        let mut buffers = self.buffers_for(Kind::MARKER);
        if let ExternalScope::Context(key) = scope {
            buffers = buffers.and(self.board.external().buffers_of(key));
        }
        self.write_to(buffers, marker);
        if ranges::are_counted() {
            for (buffers, value) in self.board.ranges().follow(&self.board, &marker) {
                self.write_to(buffers, value);
            }
        }
    }

    /// Writes the records of the external ids of `call` to the buffers that want them, one for each kind.
    pub(super) fn write_external(&mut self, call: &CallInProgress) {
        let asked = self.buffers_for(Kind::EXTERNAL_CORRELATION);
        for slot in call.interest.buffers().and(asked).slots() {
            let contexts = self.board.external().of_buffer(slot);
            let mut index = 0;
            while let Some(Some(found)) =
                self.with_external(|stacks, all| stacks.latest_of_kind(all, contexts, index))
            {
                if let Some(latest) = found {
                    let buffer = Interest::buffer(slot).buffers();
                    self.write_to(buffer, external_record(call, latest));
                }
                index += 1;
            }
        }
    }
}
