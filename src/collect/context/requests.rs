//! The request service: a tool supplies the external id of each call when it begins, instead of pushing and popping ids
//! (rocprofiler-sdk: `rocprofiler_configure_external_correlation_id_request_service`).

use super::{Context, OperationSet, Payload, Phase, Subscriber, ToolError};
use crate::collect::switchboard::INSIDE_CALLS;
use crate::record::{CorrelationId, Domain, ExternalId, Operation, ThreadId};

/// The request of an external id for a call.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct ExternalRequest {
    /// The function.
    pub operation: Operation,
    /// The name of the function.
    pub name: &'static str,
    /// The calling thread.
    pub thread: ThreadId,
    /// The id of the call.
    pub correlation: CorrelationId,
}

impl Context {
    /// Requests the external id of each call of `operations` from `supply`, at its enter, on its thread, while the
    /// context is started. The id is stored in the record of the call, and in those of its work, memory and waits. With
    /// `None` the pushed ids apply ([`crate::collect::external`]), which records of kind `external correlation` always
    /// contain.
    ///
    /// Calls that the runtime makes within the call, and for which no id is supplied, get the id of the outer call. If
    /// several tools supply an id for a call, the one that subscribed first prevails. Operations that are not calls are
    /// ignored. Calls of other operations cost nothing; requests cost as much as callbacks, whose
    /// [rules](super#rules-of-callbacks) apply.
    ///
    /// The result is a subscriber, through which operations are enabled and disabled. Dropping it ends the service.
    ///
    /// # Errors
    ///
    /// As for [`Context::call_back`].
    pub fn supply_external_ids(
        &self,
        mut operations: OperationSet,
        supply: impl Fn(&ExternalRequest) -> Option<ExternalId> + Send + Sync + 'static,
    ) -> Result<Subscriber, ToolError> {
        for domain in INSIDE_CALLS.into_iter().chain([Domain::MARKER]) {
            operations.set_domain(domain, false);
        }
        self.call_back(operations, move |callback| {
            if callback.phase == Phase::Enter && matches!(callback.payload, Payload::Call(_)) {
                callback.external = supply(&ExternalRequest {
                    operation: callback.operation,
                    name: callback.name,
                    thread: callback.thread,
                    correlation: callback.correlation,
                });
            }
        })
    }
}
