//! Waits, markers and barriers (CUPTI: `CUpti_ActivitySynchronization`).

use super::*;

open_enum! {
    /// What waits for what (CUPTI: `CUpti_ActivitySynchronizationType`, same values up to 4).
    SynchronizationType(u8) {
        /// Not known.
        UNKNOWN = 0, "synchronization";
        /// The host waits for events.
        EVENT_SYNCHRONIZE = 1, "wait for event";
        /// A queue waits for events.
        STREAM_WAIT_EVENT = 2, "queue waits for event";
        /// The host waits for a queue.
        STREAM_SYNCHRONIZE = 3, "wait for queue";
        /// The host waits for everything in a context.
        CONTEXT_SYNCHRONIZE = 4, "wait for context";
        /// A barrier in a queue: work of the queue.
        BARRIER = 16, "barrier";
        /// A marker in a queue: work of the queue.
        MARKER = 17, "marker";
        /// Semaphores are waited for or signalled: work of the queue.
        SEMAPHORE = 18, "semaphore";
    }
}

/// A wait of the host, from `work.enqueued` to `end`; or a marker or barrier put into a queue, which is work with a
/// completion of its own. 104 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Synchronization {
    /// Kind [`Kind::SYNCHRONIZATION`].
    pub header: Header,
    /// The marker or barrier, and where it was put. Of waits of the host: the call, and the queue it waits for.
    pub work: WorkHeader,
    /// When the host's wait ended; 0 for markers and barriers.
    pub end: Ticks,
    /// Handle of the (first) event waited for, 0 if none.
    pub event_handle: u64,
    /// The last work of the queue that a wait of the host waited for, if known.
    pub waited_for: WorkId,
    /// Number of events waited for.
    pub events: u32,
    /// The event waited for, where events are named.
    pub event: EventId,
    /// What waits for what.
    pub what: SynchronizationType,
    /// 0.
    pub reserved: [u8; 7],
}
work_record!(Synchronization, Kind::SYNCHRONIZATION, 104);
