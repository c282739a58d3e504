//! The external ids of a context: pushed by its tool, or supplied on request when a call or its work begins
//! (rocprofiler-sdk: `rocprofiler_push_external_correlation_id`,
//! `rocprofiler_configure_external_correlation_id_request_service`).

use super::{Context, OperationSet, Payload, Subscriber, ToolError};
use crate::external::{self, ExternalError};
use crate::process;
use crate::switchboard::{ExternalScope, ReportedPart};
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::{kernel_dispatch, memory_copy};
use gputrail_record::{
    CorrelationId, Domain, ExternalId, ExternalKind, KernelId, Operation, ThreadId,
};
use std::sync::Arc;

/// The request of an external id for a call, or for work that a call enqueues.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct ExternalRequest {
    /// The function, or the enqueue, allocation or free within it.
    pub operation: Operation,
    /// The name of the operation.
    pub name: &'static str,
    /// The calling thread.
    pub thread: ThreadId,
    /// The id of the call.
    pub correlation: CorrelationId,
    /// The kernel that is launched, if any.
    pub kernel: KernelId,
}

impl Context {
    /// Pushes `id` on the calling thread's stack of `kind` in this context. Records in the buffers of the context, its
    /// samples and its callbacks carry the id that was pushed there last, of any kind. Consumers of other contexts do
    /// not get it.
    ///
    /// Where the context has no id on a thread, its consumers get the id that the main thread has pushed for the
    /// context, or else that of the process ([`crate::external::push`]).
    ///
    /// # Errors
    ///
    /// As for [`crate::external::push`].
    pub fn push_external_id(
        &self,
        kind: ExternalKind,
        id: ExternalId,
    ) -> Result<(), ExternalError> {
        let scope = self.external_scope()?;
        let own = self.board.set_own_ids(self.key);
        own.map_err(|_| ExternalError::NotAvailable)?;
        external::push_for(scope, kind, id)
    }

    /// Pops the latest id of `kind` that the calling thread has pushed for this context.
    ///
    /// # Errors
    ///
    /// As for [`crate::external::pop`].
    pub fn pop_external_id(&self, kind: ExternalKind) -> Result<ExternalId, ExternalError> {
        external::pop_for(self.external_scope()?, kind)
    }

    /// The id that records of the calling thread carry in buffers of this context, or none.
    pub fn external_id(&self) -> ExternalId {
        let contexts = self.board.external().of(self.key);
        let id = process::current()
            .and_then(|thread| thread.with(|host| host.external_of(contexts, ReportedPart::Call)));
        id.unwrap_or_default()
    }

    /// The scope of this context's ids, if the threads of the process use its switchboard.
    fn external_scope(&self) -> Result<ExternalScope, ExternalError> {
        if process::board().is_some_and(|board| Arc::ptr_eq(board, &self.board)) {
            Ok(ExternalScope::Context(self.key))
        } else {
            Err(ExternalError::NotAvailable)
        }
    }

    /// Requests external ids from `supply` while the context is started: for each call of `operations` at its enter,
    /// and for kernels, copies, fills, allocations and frees ([`kernel_dispatch::ENQUEUE`] and so on) at theirs, on the
    /// calling thread. The id of a call is stored in its record, and in those of its work, memory and waits. An id that
    /// is supplied for the work itself replaces it there. With `None` the pushed ids apply
    /// ([`crate::external`]), which records of kind `external correlation` always contain.
    ///
    /// The ids are for the buffers, samples and callbacks of this context, so that several tools do not disturb each
    /// other. Consumers of contexts that neither push nor supply ids, such as the recording of `gputrail record`, get
    /// them too: those of the service that subscribed first, if there are several.
    ///
    /// Calls that the runtime makes within the call, and for which no id is supplied, get the id of the outer call. The
    /// commands of a command buffer share the first id that is supplied for one of them. All other operations are
    /// ignored. Calls of operations that are not selected cost nothing; requests cost as much as callbacks, whose
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
        for domain in [Domain::RESOURCE, Domain::SYNCHRONIZATION, Domain::MARKER] {
            operations.set_domain(domain, false);
        }
        for completion in [
            kernel_dispatch::COMPLETE,
            memory_copy::COPY_COMPLETE,
            memory_copy::FILL_COMPLETE,
        ] {
            operations.set(completion, false);
        }
        let subscriber = self.call_back(operations, move |callback| {
            let has_id = match callback.payload {
                Payload::Call(_) => true,
                Payload::Record(record) => ReportedPart::of(record.kind()) == ReportedPart::Work,
                Payload::Code(..) | Payload::Replay { .. } | Payload::None => false,
            };
            if callback.phase == Phase::Enter && has_id {
                callback.supplied = supply(&ExternalRequest {
                    operation: callback.operation,
                    name: callback.name,
                    thread: callback.thread,
                    correlation: callback.correlation,
                    kernel: callback.kernel,
                });
            }
        })?;
        self.board.set_own_ids(self.key)?;
        Ok(subscriber)
    }
}
