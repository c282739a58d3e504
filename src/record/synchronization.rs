//! Waits, markers and barriers (CUPTI: `CUpti_ActivitySynchronization`).

use super::*;

open_enum! {
    /// The type of a synchronization (CUPTI: `CUpti_ActivitySynchronizationType`, same values up to 4).
    SynchronizationType(u8) {
        /// Unknown.
        UNKNOWN = 0, "synchronization";
        /// The host waits for events.
        EVENT_SYNCHRONIZE = 1, "wait for event";
        /// A queue waits for events.
        STREAM_WAIT_EVENT = 2, "queue waits for event";
        /// The host waits for a queue.
        STREAM_SYNCHRONIZE = 3, "wait for queue";
        /// The host waits for all work in a context.
        CONTEXT_SYNCHRONIZE = 4, "wait for context";
        /// A barrier in a queue, which is work of the queue.
        BARRIER = 16, "barrier";
        /// A marker in a queue, which is work of the queue.
        MARKER = 17, "marker";
        /// Semaphores waited for or signalled by a queue, which is work of the queue.
        SEMAPHORE = 18, "semaphore";
    }
}

/// A wait of the host from `work.enqueued` to `end`, or a marker or barrier in a queue, which is work with its own
/// completion. 104 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Synchronization {
    /// Kind [`Kind::SYNCHRONIZATION`].
    pub header: Header,
    /// The fields of all work records. For waits of the host: the call, the context if it is known, and the queue that it waits
    /// for.
    pub work: WorkHeader,
    /// When the host's wait ended; 0 for markers and barriers.
    pub end: Ticks,
    /// The handle of the (first) event waited for; 0: none.
    pub event_handle: u64,
    /// The last work waited for by the host, or none.
    pub waited_for: WorkId,
    /// The number of events waited for.
    pub events: u32,
    /// The event waited for, if events have ids.
    pub event: EventId,
    /// The type.
    pub what: SynchronizationType,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}
work_record!(Synchronization, Kind::SYNCHRONIZATION, 104);
