//! The functions that replace those of NVTX: modules CORE, CORE2, CUDA, OPENCL, CUDART and SYNC.
//!
//! # Safety
//!
//! All of them are called by NVTX with the arguments of a program, which keep to its documentation: texts end with a
//! zero, structures have the size that they name, and handles come from these functions.

// The contract of all functions stands above, once.
#![allow(clippy::missing_safety_doc)]

use super::abi::{
    EventAttributes, Function, ResourceAttributes, SyncAttributes, ascii, text, wide,
};
use super::payload;
use crate::collect::marker::{
    self, Event, KeptText, MarkerDomain, NoLevel, RangeId, Registry, Text, name_queue, name_thread,
    name_thread_of, start_event,
};
use crate::platform::inside::contain;
use crate::record::MarkerKind;
use core::ffi::{c_char, c_int, c_void};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// A push or pop whose level is not counted.
const NO_PUSH_POP_TRACKING: c_int = -2;
/// A pop without a push.
const NOTHING_PUSHED: c_int = -1;

/// The domain of calls that name none.
static DEFAULT: MarkerDomain = MarkerDomain::built_in("NVTX", 0);
static DOMAINS: Registry<Box<str>, MarkerDomain> = Registry::new();
static STRINGS: Registry<Box<str>, KeptText> = Registry::new();
/// Names of categories, by the number of the domain and the id.
static CATEGORIES: Registry<(u32, u32), KeptText> = Registry::new();

/// The handle of a domain.
pub(super) type Domain = *const MarkerDomain;

/// The domain with this handle.
#[inline]
pub(super) fn domain(handle: Domain) -> &'static MarkerDomain {
    // SAFETY: null, or a handle that was given out, which lives for ever.
    unsafe { handle.as_ref() }.unwrap_or(&DEFAULT)
}

/// Runs `work`, and returns `default` if it panics.
#[inline]
pub(super) fn answer<R>(default: R, work: impl FnOnce() -> R) -> R {
    let mut result = default;
    contain(|| result = work());
    result
}

/// Runs `work` with the marker that `attributes` describe.
#[inline]
unsafe fn with_event<R>(
    domain: &MarkerDomain,
    attributes: *const EventAttributes,
    work: impl FnOnce(&Event<'_>) -> R,
) -> R {
    // SAFETY: the program's attributes.
    let Some(attributes) = (unsafe { EventAttributes::read(attributes) }) else {
        return work(&Event::default());
    };
    // SAFETY: as above.
    let mut event = unsafe { attributes.event() };
    if attributes.category != 0 {
        event.category = category(domain, attributes.category);
    }
    match attributes.extended() {
        None => work(&event),
        // SAFETY: the payloads are an array of this length.
        Some((data, count)) => unsafe { payload::with(domain, data, count, event, work) },
    }
}

/// The name of a category, or its number.
#[inline]
pub(super) fn category(domain: &MarkerDomain, id: u32) -> Text<'static> {
    let unnamed = || KeptText::new(Cow::Owned(id.to_string()));
    let name = CATEGORIES.get_or_put((domain.number(), id), unnamed);
    name.map_or(Text::None, Text::Kept)
}

/// The text, kept for ever; `None` if there are too many.
pub(super) fn kept(text: &str) -> Option<&'static KeptText> {
    STRINGS.get_or_put(text.into(), || KeptText::new(Cow::Owned(text.to_owned())))
}

fn level(level: Result<u32, NoLevel>) -> c_int {
    match level {
        Ok(level) => c_int::try_from(level).unwrap_or(c_int::MAX),
        Err(NoLevel::Uncounted) => NO_PUSH_POP_TRACKING,
        Err(NoLevel::Empty) => NOTHING_PUSHED,
    }
}

/// A marker that has only a name.
fn named(name: Text<'_>) -> Event<'_> {
    Event {
        name,
        ..Event::default()
    }
}

pub(super) fn pushed(domain: &MarkerDomain, event: &Event<'_>) -> c_int {
    level(domain.push(event))
}

pub(super) fn popped(domain: &MarkerDomain, event: &Event<'_>) -> c_int {
    level(domain.pop(event))
}

pub(super) fn started(domain: &MarkerDomain, event: &Event<'_>) -> u64 {
    let domain = Text::Kept(domain.name());
    start_event(&Event { domain, ..*event }).number()
}

pub(super) fn ended(domain: &MarkerDomain, range: u64, event: &Event<'_>) {
    if range != 0 {
        domain.report(MarkerKind::END, range, event);
    }
}

// CORE

unsafe extern "C" fn mark_ex(attributes: *const EventAttributes) {
    // SAFETY: see the module's page.
    unsafe { domain_mark_ex(std::ptr::null(), attributes) }
}

unsafe extern "C" fn mark_a(message: *const c_char) {
    // SAFETY: see the module's page.
    answer((), || unsafe { DEFAULT.mark(&named(ascii(message))) });
}

unsafe extern "C" fn mark_w(message: *const u32) {
    // SAFETY: see the module's page.
    answer((), || unsafe { DEFAULT.mark(&named(wide(message))) });
}

unsafe extern "C" fn range_start_ex(attributes: *const EventAttributes) -> u64 {
    // SAFETY: see the module's page.
    unsafe { domain_range_start_ex(std::ptr::null(), attributes) }
}

unsafe extern "C" fn range_start_a(message: *const c_char) -> u64 {
    // SAFETY: see the module's page.
    answer(0, || unsafe { started(&DEFAULT, &named(ascii(message))) })
}

unsafe extern "C" fn range_start_w(message: *const u32) -> u64 {
    // SAFETY: see the module's page.
    answer(0, || unsafe { started(&DEFAULT, &named(wide(message))) })
}

unsafe extern "C" fn range_end(range: u64) {
    answer((), || ended(&DEFAULT, range, &Event::default()));
}

unsafe extern "C" fn range_push_ex(attributes: *const EventAttributes) -> c_int {
    // SAFETY: see the module's page.
    unsafe { domain_range_push_ex(std::ptr::null(), attributes) }
}

unsafe extern "C" fn range_push_a(message: *const c_char) -> c_int {
    // SAFETY: see the module's page.
    answer(NO_PUSH_POP_TRACKING, || unsafe {
        pushed(&DEFAULT, &named(ascii(message)))
    })
}

unsafe extern "C" fn range_push_w(message: *const u32) -> c_int {
    // SAFETY: see the module's page.
    answer(NO_PUSH_POP_TRACKING, || unsafe {
        pushed(&DEFAULT, &named(wide(message)))
    })
}

unsafe extern "C" fn range_pop() -> c_int {
    answer(NO_PUSH_POP_TRACKING, || popped(&DEFAULT, &Event::default()))
}

unsafe extern "C" fn name_category_a(id: u32, name: *const c_char) {
    // SAFETY: see the module's page.
    unsafe { domain_name_category_a(std::ptr::null(), id, name) }
}

unsafe extern "C" fn name_category_w(id: u32, name: *const u32) {
    // SAFETY: see the module's page.
    unsafe { domain_name_category_w(std::ptr::null(), id, name) }
}

unsafe extern "C" fn name_os_thread_a(thread: u32, name: *const c_char) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_thread_of(thread, &ascii(name).read())
    });
}

unsafe extern "C" fn name_os_thread_w(thread: u32, name: *const u32) {
    // SAFETY: see the module's page.
    answer((), || unsafe { name_thread_of(thread, &wide(name).read()) });
}

// CORE2

unsafe extern "C" fn domain_mark_ex(handle: Domain, attributes: *const EventAttributes) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| domain.mark(event)) }
    });
}

unsafe extern "C" fn domain_range_start_ex(
    handle: Domain,
    attributes: *const EventAttributes,
) -> u64 {
    answer(0, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| started(domain, event)) }
    })
}

unsafe extern "C" fn domain_range_end(handle: Domain, range: u64) {
    answer((), || ended(domain(handle), range, &Event::default()));
}

unsafe extern "C" fn domain_range_push_ex(
    handle: Domain,
    attributes: *const EventAttributes,
) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| pushed(domain, event)) }
    })
}

unsafe extern "C" fn domain_range_pop(handle: Domain) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        popped(domain(handle), &Event::default())
    })
}

unsafe extern "C" fn domain_resource_create(
    handle: Domain,
    attributes: *const ResourceAttributes,
) -> *const c_void {
    answer(std::ptr::null(), || {
        // SAFETY: see the module's page.
        let attributes = unsafe { attributes.as_ref() };
        let Some(given) =
            attributes.filter(|given| usize::from(given.size) >= size_of::<ResourceAttributes>())
        else {
            return std::ptr::null();
        };
        // SAFETY: see the module's page.
        let name = unsafe { text(given.message_type, given.message) };
        let kind = given.identifier_type as u32;
        resource(
            domain(handle),
            (kind >> 16, kind & 0xffff),
            given.identifier,
            name,
        );
        // Any handle that is not null will do: nothing is kept of a resource.
        std::ptr::from_ref(domain(handle)).cast()
    })
}

unsafe extern "C" fn domain_resource_destroy(_: *const c_void) {}

unsafe extern "C" fn domain_name_category_a(handle: Domain, id: u32, name: *const c_char) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_category(domain(handle), id, ascii(name))
    });
}

unsafe extern "C" fn domain_name_category_w(handle: Domain, id: u32, name: *const u32) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_category(domain(handle), id, wide(name))
    });
}

fn name_category(domain: &MarkerDomain, id: u32, name: Text<'_>) {
    let (key, name) = ((domain.number(), id), name.read());
    let known = CATEGORIES.get(&key);
    if !name.is_empty() && known.is_none_or(|known| known.text() != name) {
        CATEGORIES.put(key, KeptText::new(Cow::Owned(name.into_owned())));
    }
}

unsafe extern "C" fn domain_register_string_a(_: Domain, text: *const c_char) -> *const KeptText {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { register(ascii(text)) })
}

unsafe extern "C" fn domain_register_string_w(_: Domain, text: *const u32) -> *const KeptText {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { register(wide(text)) })
}

fn register(text: Text<'_>) -> *const KeptText {
    kept(&text.read()).map_or(std::ptr::null(), std::ptr::from_ref)
}

unsafe extern "C" fn domain_create_a(name: *const c_char) -> Domain {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { create(ascii(name)) })
}

unsafe extern "C" fn domain_create_w(name: *const u32) -> Domain {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { create(wide(name)) })
}

/// The domain with this name: domains with equal names are one.
fn create(name: Text<'_>) -> Domain {
    let name = name.read();
    if name == DEFAULT.name().text() {
        return &DEFAULT;
    }
    let new = || MarkerDomain::new(name.clone().into_owned());
    let domain = DOMAINS.get_or_put((*name).into(), new);
    domain.map_or(std::ptr::null(), std::ptr::from_ref)
}

/// A domain that is created again after its destruction is the same one.
unsafe extern "C" fn domain_destroy(_: Domain) {}

unsafe extern "C" fn initialize(_: *const c_void) {}

// Names of objects

/// Classes of resources.
mod class {
    pub const GENERIC: u32 = 1;
    pub const SYNC_OS: u32 = 2;
    pub const SYNC_PTHREAD: u32 = 3;
    pub const CUDA: u32 = 4;
    pub const CUDART: u32 = 5;
    pub const OPENCL: u32 = 6;
}

/// Names an object: a thread in the names store, and all others by a marker, which shows when it got its name.
fn resource(domain: &MarkerDomain, kind: (u32, u32), handle: u64, name: Text<'_>) {
    let text = name.read();
    let kind = match kind {
        (class::GENERIC, 1) => "pointer",
        (class::GENERIC, 2) => "handle",
        (class::GENERIC, 3) => {
            return name_thread_of(u32::try_from(handle).unwrap_or_default(), &text);
        }
        // SAFETY: always allowed.
        (class::GENERIC, 4) if handle == unsafe { libc::pthread_self() } as u64 => {
            return name_thread(&text);
        }
        (class::GENERIC, 4) => "pthread",
        (class::SYNC_OS, 1) | (class::SYNC_PTHREAD, 1) => "mutex",
        (class::SYNC_OS, 2) => "futex",
        (class::SYNC_OS, 3) => "semaphore",
        (class::SYNC_PTHREAD, 2) => "condition",
        (class::SYNC_PTHREAD, 3) => "rwlock",
        (class::SYNC_PTHREAD, 4) => "barrier",
        (class::SYNC_OS | class::SYNC_PTHREAD, 5) => "spinlock",
        (class::SYNC_PTHREAD, 6) => "once",
        (class::CUDA, 1) | (class::CUDART, 0) => "CUDA device",
        (class::CUDA, 2) => "CUDA context",
        (class::CUDA, 3) | (class::CUDART, 1) => "CUDA stream",
        (class::CUDA, 4) | (class::CUDART, 2) => "CUDA event",
        (class::OPENCL, 1) => "OpenCL device",
        (class::OPENCL, 2) => "OpenCL context",
        (class::OPENCL, 3) => {
            name_queue(handle, &text);
            "OpenCL queue"
        }
        (class::OPENCL, 4) => "OpenCL memory object",
        (class::OPENCL, 5) => "OpenCL sampler",
        (class::OPENCL, 6) => "OpenCL program",
        (class::OPENCL, 7) => "OpenCL event",
        _ => "resource",
    };
    let event = Event {
        category: Text::Plain(kind),
        ..named(name)
    };
    domain.report(MarkerKind::RESOURCE, handle, &event);
}

/// Declares the two functions that name objects of one type.
macro_rules! naming {
    ($($ascii:ident, $wide:ident: $handle:ty, $class:expr, $index:expr;)*) => {$(
        unsafe extern "C" fn $ascii(handle: $handle, name: *const c_char) {
            // SAFETY: see the module's page.
            answer((), || unsafe {
                resource(&DEFAULT, ($class, $index), handle as u64, ascii(name))
            });
        }
        unsafe extern "C" fn $wide(handle: $handle, name: *const u32) {
            // SAFETY: see the module's page.
            answer((), || unsafe {
                resource(&DEFAULT, ($class, $index), handle as u64, wide(name))
            });
        }
    )*};
}

naming! {
    cu_device_a, cu_device_w: c_int, class::CUDA, 1;
    cu_context_a, cu_context_w: usize, class::CUDA, 2;
    cu_stream_a, cu_stream_w: usize, class::CUDA, 3;
    cu_event_a, cu_event_w: usize, class::CUDA, 4;
    cuda_device_a, cuda_device_w: c_int, class::CUDART, 0;
    cuda_stream_a, cuda_stream_w: usize, class::CUDART, 1;
    cuda_event_a, cuda_event_w: usize, class::CUDART, 2;
    cl_device_a, cl_device_w: usize, class::OPENCL, 1;
    cl_context_a, cl_context_w: usize, class::OPENCL, 2;
    cl_queue_a, cl_queue_w: usize, class::OPENCL, 3;
    cl_memory_a, cl_memory_w: usize, class::OPENCL, 4;
    cl_sampler_a, cl_sampler_w: usize, class::OPENCL, 5;
    cl_program_a, cl_program_w: usize, class::OPENCL, 6;
    cl_event_a, cl_event_w: usize, class::OPENCL, 7;
}

// SYNC

/// A lock of the program's. A thread that waits for it is in a pushed range of its own, and the lock is held during a
/// started range.
pub(super) struct SyncUser {
    domain: &'static MarkerDomain,
    waits: String,
    holds: String,
    /// The range in which it is held, or 0.
    held: AtomicU64,
}

unsafe extern "C" fn sync_create(
    handle: Domain,
    attributes: *const SyncAttributes,
) -> *mut SyncUser {
    answer(std::ptr::null_mut(), || {
        // SAFETY: see the module's page.
        let name = unsafe { attributes.as_ref() }
            .filter(|given| usize::from(given.size) >= size_of::<SyncAttributes>())
            // SAFETY: as above.
            .map(|given| unsafe { text(given.message_type, given.message) }.read())
            .filter(|name| !name.is_empty())
            .unwrap_or(Cow::Borrowed("lock"));
        Box::into_raw(Box::new(SyncUser {
            domain: domain(handle),
            waits: format!("wait for {name}"),
            holds: format!("hold {name}"),
            held: AtomicU64::new(0),
        }))
    })
}

unsafe extern "C" fn sync_destroy(user: *mut SyncUser) {
    answer((), || {
        if !user.is_null() {
            // SAFETY: made by `sync_create`, and destroyed once.
            drop(unsafe { Box::from_raw(user) });
        }
    });
}

/// Runs `work` on a lock that is not null.
fn sync(user: *const SyncUser, work: impl FnOnce(&SyncUser)) {
    // SAFETY: null, or made by `sync_create` and not destroyed.
    answer((), || unsafe { user.as_ref() }.map_or((), work));
}

unsafe extern "C" fn sync_acquire_start(user: *const SyncUser) {
    sync(user, |user| {
        let _ = user.domain.push(&named(Text::Plain(&user.waits)));
    });
}

unsafe extern "C" fn sync_acquire_failed(user: *const SyncUser) {
    sync(user, |user| {
        let _ = user.domain.pop(&Event::default());
    });
}

unsafe extern "C" fn sync_acquire_success(user: *const SyncUser) {
    sync(user, |user| {
        let _ = user.domain.pop(&Event::default());
        let range = started(user.domain, &named(Text::Plain(&user.holds)));
        user.held.store(range, Ordering::Relaxed);
    });
}

unsafe extern "C" fn sync_releasing(user: *const SyncUser) {
    sync(user, |user| {
        let range = user.held.swap(0, Ordering::Relaxed);
        if range != 0 {
            let _ = marker::end(RangeId::from_number(range));
        }
    });
}

// Tables

/// A function of a table, whatever its type.
macro_rules! table {
    ($($function:ident),* $(,)?) => {
        &[$(FunctionOf($function as Function)),*]
    };
}

/// A function, shared by threads.
#[repr(transparent)]
pub(super) struct FunctionOf(pub Function);
// SAFETY: the address of a function.
unsafe impl Sync for FunctionOf {}

/// The functions of each module, from id 1 on.
pub(super) static MODULES: [(c_int, &[FunctionOf]); 6] = [
    (
        1,
        table![
            mark_ex,
            mark_a,
            mark_w,
            range_start_ex,
            range_start_a,
            range_start_w,
            range_end,
            range_push_ex,
            range_push_a,
            range_push_w,
            range_pop,
            name_category_a,
            name_category_w,
            name_os_thread_a,
            name_os_thread_w,
        ],
    ),
    (
        2,
        table![
            cu_device_a,
            cu_device_w,
            cu_context_a,
            cu_context_w,
            cu_stream_a,
            cu_stream_w,
            cu_event_a,
            cu_event_w,
        ],
    ),
    (
        3,
        table![
            cl_device_a,
            cl_device_w,
            cl_context_a,
            cl_context_w,
            cl_queue_a,
            cl_queue_w,
            cl_memory_a,
            cl_memory_w,
            cl_sampler_a,
            cl_sampler_w,
            cl_program_a,
            cl_program_w,
            cl_event_a,
            cl_event_w,
        ],
    ),
    (
        4,
        table![
            cuda_device_a,
            cuda_device_w,
            cuda_stream_a,
            cuda_stream_w,
            cuda_event_a,
            cuda_event_w,
        ],
    ),
    (
        5,
        table![
            domain_mark_ex,
            domain_range_start_ex,
            domain_range_end,
            domain_range_push_ex,
            domain_range_pop,
            domain_resource_create,
            domain_resource_destroy,
            domain_name_category_a,
            domain_name_category_w,
            domain_register_string_a,
            domain_register_string_w,
            domain_create_a,
            domain_create_w,
            domain_destroy,
            initialize,
        ],
    ),
    (
        6,
        table![
            sync_create,
            sync_destroy,
            sync_acquire_start,
            sync_acquire_failed,
            sync_acquire_success,
            sync_releasing,
        ],
    ),
];
