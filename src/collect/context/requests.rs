//! The request service: a tool is asked for the external id of each call as it begins, instead of pushing and popping ids
//! (rocprofiler-sdk: `rocprofiler_configure_external_correlation_id_request_service`).

use super::{Context, OperationSet, Payload, Phase, Subscriber, ToolError};
use crate::collect::switchboard::INSIDE_CALLS;
use crate::record::{CorrelationId, Domain, ExternalId, Operation, ThreadId};

/// A call that begins, and needs an external id.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct ExternalRequest {
    /// The function.
    pub operation: Operation,
    /// Its name.
    pub name: &'static str,
    /// The thread that calls it, which is the calling one.
    pub thread: ThreadId,
    /// The call's id.
    pub correlation: CorrelationId,
}

impl Context {
    /// Has `supply` asked for the external id of each call of `operations`, at its enter, on the thread that makes it,
    /// while the context is started. The id stands in the call's record, and in those of the work, the memory and
    /// the waits in it. `None` leaves it to the ids that are pushed ([`crate::collect::external`]), which are also what the
    /// records of kind `external correlation` go on to tell.
    ///
    /// Calls that the runtime itself makes within the call, and for which nobody supplies an id, have the outer call's.
    /// Of several tools that supply one for the same call, the one that asked for the service first is heard.
    /// Operations that are no calls are not asked for. Calls of other operations pay nothing; those that are asked
    /// for cost what callbacks cost, whose [rules](super#rules-of-callbacks) hold.
    ///
    /// The result is a subscriber: operations are enabled and disabled by it, and dropping it ends the service.
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
