//! The client's own ids: each thread's stack of pushed ids, and the ids supplied for single calls.

use super::{CallInProgress, HostThread};
use crate::collect::switchboard::Buffers;
use crate::record::*;
use std::sync::atomic::Ordering;

/// External ids that a thread's stack holds.
const MAX_EXTERNAL: usize = 1024;

/// The record that an id of this kind was the latest at the end of `call`.
pub(super) fn external_record(
    call: &CallInProgress,
    (kind, external): (ExternalKind, ExternalId),
) -> ExternalCorrelation {
    ExternalCorrelation {
        header: Header::of::<ExternalCorrelation>(),
        correlation: call.correlation,
        external,
        kind,
        reserved: 0,
    }
}

impl HostThread {
    /// Supplies the external id of `call`: its records and those of its work carry `id` instead of the latest pushed
    /// one.
    #[cold]
    pub(crate) fn supply_external(&mut self, call: &CallInProgress, id: ExternalId) {
        self.remove_supplied(call.depth);
        self.supplied.push((call.depth, id));
        self.update_external();
    }

    /// Removes the ids of calls at `depth` and deeper, which have ended.
    #[inline(always)]
    pub(super) fn end_supplied(&mut self, depth: u32) {
        if !self.supplied.is_empty() {
            self.remove_supplied(depth);
        }
    }

    #[cold]
    fn remove_supplied(&mut self, depth: u32) {
        self.supplied.retain(|(of, _)| *of < depth);
        self.update_external();
    }

    /// Updates the fields that follow from `external` and `supplied`.
    fn update_external(&mut self) {
        self.latest_external = self.innermost_external();
        self.has_external = !(self.external.is_empty() && self.supplied.is_empty());
    }

    fn pushed_external(&self) -> ExternalId {
        self.external.last().map_or(ExternalId::NONE, |(_, id)| *id)
    }

    fn innermost_external(&self) -> ExternalId {
        let supplied = self.supplied.last().map(|(_, id)| *id);
        supplied.unwrap_or_else(|| self.pushed_external())
    }

    /// The external id that records of this thread carry: the one supplied for the call in progress, or the latest
    /// pushed on the thread, of any kind, or else the main thread's.
    #[inline]
    pub fn external(&self) -> ExternalId {
        if self.latest_external.is_some() || self.is_main {
            self.latest_external
        } else {
            self.board.ids().main_external()
        }
    }

    /// Pushes an id of the client's own. `false` says that the stack is full.
    pub fn push_external(&mut self, kind: ExternalKind, id: ExternalId, now: Ticks) -> bool {
        if self.external.len() == MAX_EXTERNAL {
            return false;
        }
        self.external.push((kind, id));
        self.publish_external();
        self.mark_external(MarkerKind::EXTERNAL_PUSH, kind, id, now);
        true
    }

    /// Takes off the latest id of `kind`, or `None` if there is none.
    pub fn pop_external(&mut self, kind: ExternalKind, now: Ticks) -> Option<ExternalId> {
        let place = self.external.iter().rposition(|(of, _)| *of == kind)?;
        let (_, id) = self.external.remove(place);
        self.publish_external();
        self.mark_external(MarkerKind::EXTERNAL_POP, kind, id, now);
        Some(id)
    }

    fn mark_external(&mut self, what: MarkerKind, kind: ExternalKind, id: ExternalId, now: Ticks) {
        let mut marker = Marker::blank();
        (marker.time, marker.id, marker.what) = (now, id.0, what);
        (marker.thread, marker.external_kind) = (self.thread, kind.0 as u16);
        self.write(marker);
    }

    /// The buffers that want records of the external ids of a call.
    pub(super) fn external_for(&self, call: &CallInProgress) -> Buffers {
        let asked = self.buffers_for(Kind::EXTERNAL_CORRELATION);
        call.interest.buffers().and(asked)
    }

    /// Updates the fields that follow from `external`, and what other threads inherit.
    pub(super) fn publish_external(&mut self) {
        self.update_external();
        let pushed = &self.external;
        let is_latest = |place: &usize| {
            let (kind, _) = pushed[*place];
            pushed[*place + 1..].iter().all(|(of, _)| *of != kind)
        };
        self.latest.clear();
        let latest = (0..pushed.len()).filter(is_latest);
        self.latest.extend(latest.map(|place| pushed[place]));
        if self.is_main {
            // Other threads do not inherit ids that were supplied for a call.
            self.board
                .ids()
                .main_external
                .store(self.pushed_external().0, Ordering::Relaxed);
        }
    }
}
