//! Errors of the tool API.

use crate::counting::CountingError;
use crate::sampling::SamplingError;
use crate::switchboard::{CONTEXTS, ServiceError, TooMany};
use gputrail_buffer::{LayoutError, MappingError};
use gputrail_record::{Kind, Operation};

/// An error of the tool API. The library continues to work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The process has forked, the library is being finalised, or memory is exhausted.
    #[error("gputrail is not available in this process now")]
    NotAvailable,
    /// The context has been destroyed.
    #[error("the context has been destroyed")]
    NoSuchContext,
    /// The buffer has been destroyed, or belongs to another process or switchboard.
    #[error("the buffer has been destroyed, or is not of this process")]
    NoSuchBuffer,
    /// The services of a context are locked by its first start.
    #[error("the context has been started before: its services are locked")]
    Locked,
    /// The context already has a service for this buffer.
    #[error("the context has such a service already")]
    Conflict,
    /// The context has no service for this buffer or subscriber.
    #[error("the context has no such service")]
    NoSuchService,
    /// The context is started already.
    #[error("the context is started already")]
    Started,
    /// The context is not started.
    #[error("the context is not started")]
    Stopped,
    /// A kind that nothing produces for buffers.
    #[error("nothing produces records of kind {0} for buffers")]
    UnknownKind(Kind),
    /// An operation or domain out of range.
    #[error("unknown {0}")]
    UnknownOperation(Operation),
    /// A kind that complements others, without any of them (CUPTI: `CUPTI_ERROR_NOT_COMPATIBLE`).
    #[error(
        "records of kind {0} come only together with the calls or the work that they belong to"
    )]
    NotAlone(Kind),
    /// Not allowed within a callback.
    #[error(
        "busy: a callback cannot flush buffers, nor a buffer's callback start and stop sampling"
    )]
    Busy,
    /// The signal cannot trigger dumps.
    #[error("signal {signal} cannot be used: {source}")]
    Signal {
        /// The signal.
        signal: i32,
        /// The reason, for example that the program has a handler for it.
        source: std::io::Error,
    },
    /// Attributes apply to the whole process and are locked by the first start of a context.
    #[error("a context has been started: attributes are set before that")]
    AttributesLocked,
    /// The sizes of the buffer are invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The memory of the buffer could not be allocated.
    #[error(transparent)]
    Memory(#[from] MappingError),
    /// The buffer's thread could not be started.
    #[error("cannot start the thread that delivers records: {0}")]
    Thread(#[source] std::io::Error),
    /// An error of PC sampling.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// Counters cannot be collected as requested.
    #[error(transparent)]
    Counting(#[from] CountingError),
    /// A limit is reached.
    #[error("too many {what}: the maximum is {most}")]
    TooMany {
        /// The kind of object.
        what: &'static str,
        /// The limit.
        most: usize,
    },
}

impl From<TooMany> for ToolError {
    fn from(TooMany { what, most }: TooMany) -> ToolError {
        ToolError::TooMany { what, most }
    }
}

impl ToolError {
    /// The error for a callback thread that could not be started.
    pub(super) fn of_thread(error: std::io::Error) -> ToolError {
        match error.kind() {
            std::io::ErrorKind::QuotaExceeded => ToolError::TooMany {
                what: "callback threads",
                most: gputrail_buffer::CALLBACK_THREADS,
            },
            _ => ToolError::Thread(error),
        }
    }
}

impl From<ServiceError> for ToolError {
    fn from(error: ServiceError) -> ToolError {
        match error {
            ServiceError::NoSuchContext => ToolError::NoSuchContext,
            ServiceError::Locked => ToolError::Locked,
            ServiceError::Conflict => ToolError::Conflict,
            ServiceError::NoSuchService => ToolError::NoSuchService,
            ServiceError::Started => ToolError::Started,
            ServiceError::Stopped => ToolError::Stopped,
            ServiceError::Busy => ToolError::Busy,
            ServiceError::TooMany => ToolError::TooMany {
                what: "contexts",
                most: CONTEXTS,
            },
        }
    }
}
