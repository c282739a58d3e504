//! The kinds whose records the Event and Metric APIs and the samples of the program counter are about.

use super::kind::ActivityKind;
use crate::counting::engine;
use crate::result::{Answer, CUptiResult};
use crate::{pc_sampling, sampling};
use gputrail_record::ContextId;

/// Whether records of `kind` come from there.
pub fn has(kind: ActivityKind) -> bool {
    matches!(
        kind,
        ActivityKind::EVENT
            | ActivityKind::EVENT_INSTANCE
            | ActivityKind::METRIC
            | ActivityKind::METRIC_INSTANCE
            | ActivityKind::INSTANTANEOUS_EVENT
            | ActivityKind::INSTANTANEOUS_EVENT_INSTANCE
            | ActivityKind::INSTANTANEOUS_METRIC
            | ActivityKind::INSTANTANEOUS_METRIC_INSTANCE
            | ActivityKind::SOURCE_LOCATOR
            | ActivityKind::GLOBAL_ACCESS
            | ActivityKind::BRANCH
            | ActivityKind::INSTRUCTION_EXECUTION
            | ActivityKind::SHARED_ACCESS
            | ActivityKind::PC_SAMPLING
            | ActivityKind::PC_SAMPLING_RECORD_INFO
            | ActivityKind::INSTRUCTION_CORRELATION
    )
}

/// Enables or disables a kind, in one context or in all. Called without a lock held.
///
/// # Errors
///
/// The results of `cuptiActivityEnable` and its like.
pub fn enable(kind: ActivityKind, context: Option<ContextId>, on: bool) -> Answer {
    match kind {
        ActivityKind::SOURCE_LOCATOR
        | ActivityKind::GLOBAL_ACCESS
        | ActivityKind::BRANCH
        | ActivityKind::INSTRUCTION_EXECUTION
        | ActivityKind::SHARED_ACCESS
        | ActivityKind::PC_SAMPLING
        | ActivityKind::PC_SAMPLING_RECORD_INFO
        | ActivityKind::INSTRUCTION_CORRELATION => sampling::enable(kind, context, on),
        // Profilers make those of events and metrics themselves.
        _ if on => Err(CUptiResult::NOT_COMPATIBLE),
        _ => Err(CUptiResult::INVALID_KIND),
    }
}

/// Puts what has been produced into the sink: called within a flush, before the program's buffer is given back.
pub fn flush(_forced: bool) {
    sampling::flush();
}

/// Ends all, as `cuptiFinalize` does.
pub fn finish() {
    pc_sampling::finish();
    sampling::finish();
    engine::finish();
}
