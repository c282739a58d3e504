//! Errors of sessions of counters.

use super::super::ToolError;
use gputrail_record::CounterInvalid;

/// Why a session of counters could not be used as asked. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No counter has this index.
    #[error("there is no counter {counter}: they are numbered from 0, and there are {counters}")]
    OutOfRange {
        /// The index.
        counter: u32,
        /// The number of counters.
        counters: u32,
    },
    /// The counter is enabled already.
    #[error("the counter {0} is enabled already")]
    AlreadyEnabled(String),
    /// The counter is not enabled.
    #[error("the counter {0} is not enabled")]
    NotEnabled(String),
    /// No counter is enabled.
    #[error("no counter is enabled: enable some before a session begins")]
    NoCounters,
    /// A session is in progress.
    #[error("a session is in progress: end it first")]
    Sampling,
    /// No session is in progress.
    #[error("no session has begun")]
    NotSampling,
    /// A pass has not been ended.
    #[error("a pass has begun and not ended")]
    PassStarted,
    /// No pass has begun.
    #[error("no pass has begun")]
    PassNotStarted,
    /// A sample has not been ended.
    #[error("a sample has begun and not ended")]
    SampleStarted,
    /// No sample has begun.
    #[error("no sample has begun")]
    SampleNotStarted,
    /// The pass has had a sample with this id.
    #[error("the pass has a sample {0} already: each needs an id of its own")]
    SampleExists(u32),
    /// The pass has another number of samples than the first one.
    #[error("the pass has {samples} samples, and the first one has {first}")]
    OtherSamples {
        /// Its number of samples.
        samples: usize,
        /// That of the first pass.
        first: usize,
    },
    /// The session has not been ended, never began, or is no longer kept.
    #[error("there are no results of session {0}: it has not ended, or too many have since")]
    NoSession(u32),
    /// Not all passes of the session have the sample.
    #[error("sample {0} is not in all passes of the session")]
    NotInAllPasses(u32),
    /// The value could not be measured or computed.
    #[error("{counter} has no value: {reason}")]
    Invalid {
        /// The counter.
        counter: String,
        /// The reason.
        reason: CounterInvalid,
    },
    /// The value of a metric follows from what kernels counted, and there were none.
    #[error("{0} has no value: the sample had no kernel")]
    NoKernel(String),
    /// The service refused it.
    #[error(transparent)]
    Tool(#[from] ToolError),
}
