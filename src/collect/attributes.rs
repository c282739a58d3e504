//! Attributes of the process that concern how threads and completions are recorded. Tools set them by
//! [`Attributes`](super::context::Attributes).

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether records call a thread by the low half of pthread_self(3), and not by gettid(2).
static PTHREAD_IDS: AtomicBool = AtomicBool::new(false);
/// Whether completions leave out when work was queued and submitted.
static NO_LATENCY: AtomicBool = AtomicBool::new(false);

/// The id by which records call the calling thread, whose id the system gives as `system`.
pub(crate) fn thread_id(system: u32) -> u32 {
    match has_pthread_ids() {
        // SAFETY: it has no conditions.
        true => unsafe { libc::pthread_self() as u32 },
        false => system,
    }
}

/// Whether records call a thread by the low half of pthread_self(3).
pub(super) fn has_pthread_ids() -> bool {
    PTHREAD_IDS.load(Ordering::Relaxed)
}

/// Whether completions say when work was queued and submitted.
pub(crate) fn latency_times() -> bool {
    !NO_LATENCY.load(Ordering::Relaxed)
}

/// Sets both.
pub(super) fn set(pthread_ids: bool, latency_times: bool) {
    PTHREAD_IDS.store(pthread_ids, Ordering::Relaxed);
    NO_LATENCY.store(!latency_times, Ordering::Relaxed);
}
