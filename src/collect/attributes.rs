//! Attributes of the process that concern how threads and completions are recorded. Tools set them by
//! [`ProcessAttributes`](super::context::ProcessAttributes).

use super::scope::Scope;
use gputrail_record::Nanos;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether records call a thread by the low half of pthread_self(3), and not by gettid(2).
static PTHREAD_IDS: AtomicBool = AtomicBool::new(false);
/// Whether completions leave out when work was queued and submitted.
static NO_LATENCY: AtomicBool = AtomicBool::new(false);

/// The period at which tools want the environment of agents to be read, in nanoseconds; 0 if none does.
static ENVIRONMENT_PERIOD: AtomicU64 = AtomicU64::new(0);

/// The id by which records call the calling thread, whose id the system gives as `system`.
pub fn thread_id(system: u32) -> u32 {
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
#[inline]
pub fn latency_times() -> bool {
    !NO_LATENCY.load(Ordering::Relaxed)
}

/// The period at which tools want the environment of agents to be read.
pub(super) fn environment_period_of_tools() -> Option<Nanos> {
    let period = ENVIRONMENT_PERIOD.load(Ordering::Relaxed);
    (period != 0).then_some(Nanos(period))
}

/// The period at which the environment of agents is read: the shorter one of the recording's, whose scope is given, and
/// the tools'; `None` if nobody has set one.
pub fn environment_period(scope: Option<&Scope>) -> Option<Nanos> {
    let of_scope = scope.and_then(|scope| scope.environment_period);
    let of_scope =
        of_scope.map(|period| Nanos(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)));
    of_scope
        .into_iter()
        .chain(environment_period_of_tools())
        .min()
}

/// Sets all of them.
pub(super) fn set(pthread_ids: bool, latency_times: bool, environment_period: Option<Nanos>) {
    let period = environment_period.map_or(0, |period| period.0);
    ENVIRONMENT_PERIOD.store(period, Ordering::Relaxed);
    PTHREAD_IDS.store(pthread_ids, Ordering::Relaxed);
    NO_LATENCY.store(!latency_times, Ordering::Relaxed);
}
