//! Callbacks: subscribers in C, and the data of their callbacks.

use super::buffer::format_from;
use super::caller::Caller;
use super::context::these_operations;
use super::kinds::list;
use super::library::{self, Subscribed};
use super::objects::destroy;
use super::owner::ToolPointer;
use super::status::FailedCall;
use super::text::kept;
use super::{Answer, done, place, time};
use crate::nanos;
use core::ffi::{c_char, c_void};
use gputrail_collect::context::{CallArguments, CallbackArguments, Payload, Subscriber};
use gputrail_interface::c::{
    CallbackData, CallbackFunction, ContextHandle, SizedStruct, Status, SubscriberHandle,
};
use gputrail_interface::joined::RecordFormat;
use gputrail_record::{Domain, Header, Operation, RecordRef};
use gputrail_sources::operations;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

thread_local! {
    /// The data of the callback that the thread is in, and the arguments of its call.
    static CURRENT: Cell<(*const CallbackData, *const c_void)> =
        const { Cell::new((std::ptr::null(), std::ptr::null())) };
}

/// Configures callback tracing: `callback` is called for the operations while the context is started. A null
/// `operations` with a count of 0 asks for every operation of every domain.
///
/// Errors: `GPUTRAIL_LOCKED` after the context's first start; `GPUTRAIL_TOO_MANY` with 23 subscribers in the process;
/// `GPUTRAIL_UNKNOWN_OPERATION`, `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `operations` is null or leads to `operation_count` of them, `callback` is null or such a function, `subscriber` is
/// null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_subscribe(
    context: ContextHandle,
    operations: *const Operation,
    operation_count: usize,
    callback: CallbackFunction,
    user_data: *mut c_void,
    subscriber: *mut SubscriberHandle,
) -> Status {
    done(|| {
        // SAFETY: `subscriber` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(subscriber, "subscriber") }?;
        let function =
            callback.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "callback is null"))?;
        // SAFETY: `operations` leads to `operation_count` of them, or is null (the caller's promise); `these_operations`
        // copies them.
        let operations = unsafe { these_operations(operations, operation_count) }?;
        let of = library::context(context)?;
        let (user_data, caller) = (ToolPointer(user_data), Caller::of_subscriber());
        let is_raw = Arc::<AtomicBool>::default();
        let is_raw_now = is_raw.clone();
        let subscriber = of.call_back(operations, move |callback| {
            with_data(callback, &is_raw_now, |data| {
                // SAFETY: a function of the tool's, which the tool gave for this.
                caller.run(|| unsafe { function(data, user_data.get()) });
            });
        })?;
        place.write(keep(context, subscriber, is_raw)?);
        Ok(())
    })
}

/// Sets the format of the records in the callbacks of a subscriber: `GPUTRAIL_RECORD_FORMAT_JOINED`, the usual one, whose
/// times are nanoseconds of CLOCK_BOOTTIME, or `GPUTRAIL_RECORD_FORMAT_RAW`, whose times are as they were read, host times in ticks
/// and those of agents in the units of their clocks. A raw record costs less.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for an unknown format; `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_subscriber_format(subscriber: SubscriberHandle, format: u32) -> Status {
    done(|| {
        let is_raw = format_from(format)? == RecordFormat::Raw;
        let subscribed = library::subscriber(subscriber)?;
        subscribed.is_raw.store(is_raw, Ordering::Relaxed);
        Ok(())
    })
}

/// Gives a subscriber of `context` its id.
pub(super) fn keep(
    context: ContextHandle,
    subscriber: Subscriber,
    is_raw: Arc<AtomicBool>,
) -> Answer<SubscriberHandle> {
    let mut state = library::state()?;
    let id = state.subscribers.new_handle();
    let subscribed = Subscribed {
        context,
        subscriber,
        is_raw,
    };
    state.subscribers.insert(id, Arc::new(subscribed));
    Ok(SubscriberHandle { handle: id })
}

/// Calls `show` with `record`: as it is, or with its times in nanoseconds.
fn in_format(record: RecordRef<'_>, is_raw: &AtomicBool, show: impl FnOnce(*const Header)) {
    let bytes = record.bytes();
    let is_raw = is_raw.load(Ordering::Relaxed);
    if is_raw || !nanos::has_times(record.kind()) || bytes.len() > nanos::MAX_BYTES {
        return show(bytes.as_ptr().cast());
    }
    let mut words = [0u64; nanos::MAX_BYTES / 8];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    // It fails in a process that ends, whose times are of no use any more.
    let _ = time::with_times(|times| nanos::convert(&mut words[..bytes.len() / 8], times));
    show(words.as_ptr().cast());
}

fn with_data(
    callback: &mut CallbackArguments<'_>,
    is_raw: &AtomicBool,
    call_back: impl FnOnce(&mut CallbackData),
) {
    match callback.payload {
        Payload::Record(record) => in_format(record, is_raw, |record| {
            with_record(callback, record, call_back);
        }),
        Payload::Code(object, _) => with_record(callback, (&raw const *object).cast(), call_back),
        Payload::Call(_) | Payload::Replay { .. } | Payload::None => {
            with_record(callback, std::ptr::null(), call_back);
        }
    }
}

fn with_record(
    callback: &mut CallbackArguments<'_>,
    record: *const Header,
    call_back: impl FnOnce(&mut CallbackData),
) {
    let arguments = match callback.payload {
        Payload::Call(arguments) => arguments,
        _ => CallArguments::default(),
    };
    let code: &[u8] = match callback.payload {
        Payload::Code(_, code) => code,
        _ => &[],
    };
    let (passes_done, passes) = match callback.payload {
        Payload::Replay { done, passes } => (done, passes),
        _ => (0, 0),
    };
    let mut data = CallbackData {
        operation: callback.operation,
        phase: callback.phase as u32,
        name: name_of(callback.operation, callback.name),
        correlation: callback.correlation,
        thread: callback.thread,
        return_code: callback.return_code.unwrap_or(0),
        has_return_code: u32::from(callback.return_code.is_some()),
        arguments: arguments.len() as u32,
        record,
        user_data: callback.user_data,
        kernel: callback.kernel,
        code: if code.is_empty() {
            std::ptr::null()
        } else {
            code.as_ptr()
        },
        code_bytes: code.len(),
        external: callback.external,
        passes_done,
        passes,
        return_value: callback.return_value,
        runtime_correlation: callback.runtime_correlation,
        runtime_context: callback.runtime_context,
        ..CallbackData::blank()
    };
    let current = (&raw const data, (&raw const arguments).cast());
    let before = CURRENT.try_with(|place| place.replace(current));
    call_back(&mut data);
    if let Ok(before) = before {
        let _ = CURRENT.try_with(|place| place.set(before));
    }
    callback.user_data = data.user_data;
}

const DOMAINS: usize = 16;
const OPERATIONS: usize = 1024;

/// `name`, which is that of `operation`, for C: found without a lock once it has been asked for.
pub(super) fn name_of(operation: Operation, name: &'static str) -> *const c_char {
    static NAMES: [[AtomicPtr<c_char>; OPERATIONS]; DOMAINS] =
        [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; OPERATIONS] }; DOMAINS];
    let domain = NAMES.get(operation.domain.0 as usize);
    let Some(place) = domain.and_then(|domain| domain.get(operation.number as usize)) else {
        return kept(name);
    };
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let text = kept(name);
    place.store(text.cast_mut(), Ordering::Release);
    text
}

/// Ends a subscription. When this returns, its callback is running on no thread and will not be called again; but from
/// within a callback it does not wait for other threads.
///
/// Errors: `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_unsubscribe(subscriber: SubscriberHandle) -> Status {
    done(|| {
        let gone = library::state()?.subscribers.remove(subscriber.handle)?;
        destroy(gone);
        Ok(())
    })
}

/// Enables (`on` is not 0) or disables callbacks for one operation, also while the context is started.
///
/// Errors: `GPUTRAIL_UNKNOWN_OPERATION`, `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_enable_callback(
    subscriber: SubscriberHandle,
    operation: Operation,
    on: i32,
) -> Status {
    done(|| {
        let subscribed = library::subscriber(subscriber)?;
        let context = library::context(subscribed.context)?;
        Ok(context.enable_callback(&subscribed.subscriber, operation, on != 0)?)
    })
}

/// Enables (`on` is not 0) or disables callbacks for every operation of a domain, also while the context is started.
///
/// Errors: as for `gputrail_enable_callback`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_enable_domain(
    subscriber: SubscriberHandle,
    domain: Domain,
    on: i32,
) -> Status {
    done(|| {
        let subscribed = library::subscriber(subscriber)?;
        let context = library::context(subscribed.context)?;
        Ok(context.enable_domain(&subscribed.subscriber, domain, on != 0)?)
    })
}

/// Tells whether callbacks for an operation are enabled, 1 or 0; the context need not be started.
///
/// Errors: `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `enabled` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_callback_is_enabled(
    subscriber: SubscriberHandle,
    operation: Operation,
    enabled: *mut i32,
) -> Status {
    done(|| {
        // SAFETY: `enabled` is null or a place for a number (the caller's promise).
        let enabled = unsafe { place(enabled, "enabled") }?;
        let subscribed = library::subscriber(subscriber)?;
        let context = library::context(subscribed.context)?;
        let is = context.callback_is_enabled(&subscribed.subscriber, operation)?;
        enabled.write(i32::from(is));
        Ok(())
    })
}

/// Enables (`on` is not 0) or disables callbacks for every operation of every domain, also while the context is started
/// (CUPTI: `cuptiEnableAllDomains`).
///
/// Errors: `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_enable_all_callbacks(subscriber: SubscriberHandle, on: i32) -> Status {
    done(|| {
        let subscribed = library::subscriber(subscriber)?;
        let context = library::context(subscribed.context)?;
        Ok(context.enable_all_callbacks(&subscribed.subscriber, on != 0)?)
    })
}

/// The operations, of those that this version knows, for which callbacks are enabled; the context need not be started.
/// As `gputrail_kinds`.
///
/// Errors: also `GPUTRAIL_NO_SUCH_SUBSCRIBER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `operations` is null or leads to room for `capacity` operations, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_enabled_callbacks(
    subscriber: SubscriberHandle,
    operations: *mut Operation,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let subscribed = library::subscriber(subscriber)?;
        let context = library::context(subscribed.context)?;
        let enabled = context.enabled_callbacks(&subscribed.subscriber)?;
        let domains = operations::domains().iter();
        let all: Vec<Operation> = domains
            .flat_map(|(domain, _)| operations::of(*domain))
            .map(|info| info.operation)
            .filter(|operation| enabled.has(*operation))
            .collect();
        // SAFETY: `operations` is null or has room for `capacity` operations, `count` is null or a place for a number (the
        // caller's promises).
        unsafe { list(&all, operations, capacity, count) }
    })
}

/// Does `work` with the arguments of the call that `callback`, in which the calling thread is, is about.
pub(super) fn with_arguments<R>(
    callback: *const CallbackData,
    work: impl FnOnce(&CallArguments<'_>) -> Answer<R>,
) -> Answer<R> {
    let (current, arguments) = CURRENT
        .try_with(Cell::get)
        .unwrap_or((std::ptr::null(), std::ptr::null()));
    if callback.is_null() {
        return Err(FailedCall::new(Status::NULL_POINTER, "callback is null"));
    }
    if !std::ptr::eq(current, callback) {
        let text = "not the callback that this thread is in";
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    // SAFETY: set by `with_data`, which is further up this thread's stack, to arguments that it holds.
    work(unsafe { &*arguments.cast::<CallArguments<'_>>() })
}
