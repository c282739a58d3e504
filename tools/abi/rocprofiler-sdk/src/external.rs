//! External ids: those that clients push for a thread, and those that they supply for single calls and for work.
//!
//! An id that a thread pushes for itself is one of gputrail's, of the context: the records of the thread carry it, and a thread without
//! ids inherits the main thread's. An id that another thread pushes waits for the next call of OpenCL or of the simulated GPU that
//! the thread makes, or its next push or pop; until then the other thread can take it back. Taking from an empty stack gives 0.

use crate::context::{self, Context};
use crate::kinds;
use crate::place::{array, put_name};
use crate::result::{Answer, api, failed};
use crate::{is_thread, load, thread_id};
use core::ffi::{c_char, c_void};
use gputrail_abi::{WithData, lock};
use gputrail_record::{Domain, ExternalId, ExternalKind};
use gputrail_rocprofiler::{
    ContextId, ExternalCorrelationRequest, ExternalCorrelationRequestKind, Status, ThreadId,
    TracingOperation, UserData,
};
use gputrail_tool::{self as tool, Callback, Subscriber};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The kind of the ids in gputrail.
const KIND: ExternalKind = ExternalKind::CUSTOM0;

/// The service by which a client supplies external ids.
#[derive(Clone, Debug)]
pub struct RequestService {
    client: WithData<ExternalCorrelationRequest>,
    /// All kinds, if there are none.
    kinds: Vec<ExternalCorrelationRequestKind>,
}

impl RequestService {
    /// Whether it supplies ids for a kind.
    pub fn is_for(&self, kind: ExternalCorrelationRequestKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// The id that the client supplies, if it does.
    pub fn supply(
        &self,
        context: ContextId,
        thread: ThreadId,
        (kind, operation): (ExternalCorrelationRequestKind, TracingOperation),
        correlation: u64,
    ) -> Option<ExternalId> {
        let mut id = UserData::from(0);
        // SAFETY: the client's function for this, with a place for the id and its data.
        let refused = unsafe {
            (self.client.function)(
                thread,
                context,
                kind,
                operation,
                correlation,
                &raw mut id,
                self.client.data,
            )
        };
        (refused == 0).then(|| ExternalId(id.value()))
    }
}

/// The ids that wait for a thread, by context and thread, the latest last.
type WaitingIds = HashMap<(u64, ThreadId), Vec<u64>>;

static WAITING: Mutex<Option<WaitingIds>> = Mutex::new(None);
/// How many wait.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The subscriber that gives threads the ids that wait for them.
static WATCH: Mutex<Option<Subscriber>> = Mutex::new(None);

/// Prepares to be told of calls, which is enabled when ids wait.
pub fn prepare(context: &tool::Context) -> Result<(), tool::Error> {
    let subscriber = context.call_back(&[], |callback: Callback<'_>, _| {
        if callback.is_enter() && COUNT.load(Ordering::Relaxed) != 0 {
            for context in context::all() {
                // A full stack of the thread keeps what it has.
                let _ = take_own(&context);
            }
        }
    })?;
    // That of a parent is not its child's to give up.
    std::mem::forget(lock(&WATCH).replace(subscriber));
    Ok(())
}

/// Has `id` wait for `thread`.
fn wait_for(context: ContextId, thread: ThreadId, id: u64) -> Answer {
    let mut waiting = lock(&WAITING);
    let all = waiting.get_or_insert_default();
    all.entry((context.handle, thread)).or_default().push(id);
    COUNT.fetch_add(1, Ordering::Relaxed);
    drop(waiting);
    let watch = lock(&WATCH);
    let watch = watch.as_ref().ok_or(Status::ERROR_NOT_AVAILABLE)?;
    watch.enable_domain(Domain::OPENCL, true).map_err(failed)?;
    watch.enable_domain(Domain::SIM, true).map_err(failed)
}

/// The ids that wait for `thread`, removed by `take`.
fn taken<T>(
    context: ContextId,
    thread: ThreadId,
    take: impl FnOnce(&mut Vec<u64>) -> T,
) -> Option<T> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut waiting = lock(&WAITING);
    let ids = waiting.as_mut()?.get_mut(&(context.handle, thread))?;
    let before = ids.len();
    let taken = take(ids);
    COUNT.fetch_sub(before - ids.len(), Ordering::Relaxed);
    Some(taken)
}

/// Pushes what waits for the calling thread.
fn take_own(context: &Context) -> Answer {
    let ids = taken(context.id, thread_id(), std::mem::take);
    for id in ids.into_iter().flatten() {
        push_own(context, id)?;
    }
    Ok(())
}

fn push_own(context: &Context, id: u64) -> Answer {
    let pushed = context.gputrail.push_external_id(KIND, ExternalId(id));
    pushed.map_err(failed)
}

/// Checks that a thread is one of the process.
fn check(thread: ThreadId) -> Answer {
    is_thread(thread)
        .then_some(())
        .ok_or(Status::ERROR_INVALID_ARGUMENT)
}

/// Pushes an id for a thread.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_push_external_correlation_id(
    context: ContextId,
    thread: ThreadId,
    id: UserData,
) -> Status {
    api(|| {
        check(thread)?;
        let context = context::found(context)?;
        if thread != thread_id() {
            return wait_for(context.id, thread, id.value());
        }
        take_own(&context)?;
        push_own(&context, id.value())
    })
}

/// Takes the latest id of a thread off its stack.
///
/// # Safety
///
/// `id` is null or a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pop_external_correlation_id(
    context: ContextId,
    thread: ThreadId,
    id: *mut UserData,
) -> Status {
    api(|| {
        check(thread)?;
        let context = context::found(context)?;
        let popped = if thread == thread_id() {
            take_own(&context)?;
            match context.gputrail.pop_external_id(KIND) {
                Ok(popped) => popped.0,
                Err(error) if error.status == tool::Status::STACK_EMPTY => 0,
                Err(error) => return Err(failed(error)),
            }
        } else {
            taken(context.id, thread, Vec::pop).flatten().unwrap_or(0)
        };
        if !id.is_null() {
            // SAFETY: not null, so that it is a place for an id.
            unsafe { id.write(UserData::from(popped)) };
        }
        Ok(())
    })
}

/// Has a client asked for the external ids of these kinds, or of all of them without any.
///
/// # Safety
///
/// `kinds` is null or leads to `count` kinds; `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_external_correlation_id_request_service(
    context: ContextId,
    kinds: *const ExternalCorrelationRequestKind,
    count: usize,
    callback: Option<ExternalCorrelationRequest>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let context = context::found(context)?;
        load::configurable()?;
        if !kinds.is_null() && count == 0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        let function = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: `kinds` is null or leads to `count` kinds, which the client leaves alone during the call.
        let kinds = unsafe { array(kinds, count) };
        let is_known = |kind: &ExternalCorrelationRequestKind| {
            *kind != ExternalCorrelationRequestKind::NONE && kinds::request_name(*kind).is_some()
        };
        let mut services = lock(&context.services);
        if services.requests.is_some() {
            return Err(Status::ERROR_SERVICE_ALREADY_CONFIGURED);
        }
        if !kinds.iter().all(is_known) {
            return Err(Status::ERROR_KIND_NOT_FOUND);
        }
        services.requests = Some(RequestService {
            client: WithData { function, data },
            kinds: kinds.to_vec(),
        });
        Ok(())
    })
}

/// The name of a kind of requests and its length, which last for ever. Each place may be null.
///
/// # Safety
///
/// The places are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_external_correlation_id_request_kind_name(
    kind: ExternalCorrelationRequestKind,
    name: *mut *const c_char,
    length: *mut u64,
) -> Status {
    let found = kinds::request_name(kind);
    // SAFETY: the places are null or can be written to.
    api(|| unsafe { put_name(found, name, length, Status::ERROR_KIND_NOT_FOUND) })
}
