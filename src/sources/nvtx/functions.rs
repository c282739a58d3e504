//! The functions that replace those of NVTX: modules CORE, CORE2, CUDA, OPENCL, CUDART and SYNC.
//!
//! # Safety
//!
//! All of them are called by NVTX with the arguments of a program, which keep to its documentation: texts end with a
//! zero, structures have the size that they name, and handles come from these functions.

// The contract of all functions stands above, once.
#![allow(clippy::missing_safety_doc)]

use super::attributes::{EventAttributes, ResourceAttributes, SyncAttributes};
use super::domain::{
    DEFAULT, DomainHandle, NO_PUSH_POP_TRACKING, category, create, domain, ended, name_category,
    named, popped, pushed, started,
};
use super::tables::{FunctionOf, FunctionPointer, answer, modules};
use super::text::{ascii, kept, text, wide};
use super::{functions, payload};
use crate::handles::{name_context, name_stream};
use core::ffi::{c_char, c_int, c_void};
use gputrail_buffer::platform::system;
use gputrail_collect::marker::{
    self, KeptText, MarkerDomain, MarkerEvent, MarkerText, name_agent_of, name_queue, name_thread,
    name_thread_of,
};
use gputrail_interface::marker::RangeId;
use gputrail_record::{Domain as Runtime, LockStep, MarkerKind};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs `work` with the marker that `attributes` describe.
#[inline]
unsafe fn with_event<R>(
    domain: &MarkerDomain,
    attributes: *const EventAttributes,
    work: impl FnOnce(&MarkerEvent<'_>) -> R,
) -> R {
    // SAFETY: the program's attributes.
    let Some(attributes) = (unsafe { EventAttributes::read(attributes) }) else {
        return work(&MarkerEvent::default());
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

// CORE

pub(super) unsafe extern "C" fn mark_ex(attributes: *const EventAttributes) {
    // SAFETY: see the module's page.
    unsafe { domain_mark_ex(std::ptr::null(), attributes) }
}

pub(super) unsafe extern "C" fn mark_a(message: *const c_char) {
    // SAFETY: see the module's page.
    answer((), || unsafe { DEFAULT.mark(&named(ascii(message))) });
}

pub(super) unsafe extern "C" fn mark_w(message: *const u32) {
    // SAFETY: see the module's page.
    answer((), || unsafe { DEFAULT.mark(&named(wide(message))) });
}

pub(super) unsafe extern "C" fn range_start_ex(attributes: *const EventAttributes) -> u64 {
    // SAFETY: see the module's page.
    unsafe { domain_range_start_ex(std::ptr::null(), attributes) }
}

pub(super) unsafe extern "C" fn range_start_a(message: *const c_char) -> u64 {
    // SAFETY: see the module's page.
    answer(0, || unsafe { started(&DEFAULT, &named(ascii(message))) })
}

pub(super) unsafe extern "C" fn range_start_w(message: *const u32) -> u64 {
    // SAFETY: see the module's page.
    answer(0, || unsafe { started(&DEFAULT, &named(wide(message))) })
}

pub(super) unsafe extern "C" fn range_end(range: u64) {
    answer((), || ended(&DEFAULT, range, &MarkerEvent::default()));
}

pub(super) unsafe extern "C" fn range_push_ex(attributes: *const EventAttributes) -> c_int {
    // SAFETY: see the module's page.
    unsafe { domain_range_push_ex(std::ptr::null(), attributes) }
}

pub(super) unsafe extern "C" fn range_push_a(message: *const c_char) -> c_int {
    // SAFETY: see the module's page.
    answer(NO_PUSH_POP_TRACKING, || unsafe {
        pushed(&DEFAULT, &named(ascii(message)))
    })
}

pub(super) unsafe extern "C" fn range_push_w(message: *const u32) -> c_int {
    // SAFETY: see the module's page.
    answer(NO_PUSH_POP_TRACKING, || unsafe {
        pushed(&DEFAULT, &named(wide(message)))
    })
}

pub(super) unsafe extern "C" fn range_pop() -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        popped(&DEFAULT, &MarkerEvent::default())
    })
}

pub(super) unsafe extern "C" fn name_category_a(id: u32, name: *const c_char) {
    // SAFETY: see the module's page.
    unsafe { domain_name_category_a(std::ptr::null(), id, name) }
}

pub(super) unsafe extern "C" fn name_category_w(id: u32, name: *const u32) {
    // SAFETY: see the module's page.
    unsafe { domain_name_category_w(std::ptr::null(), id, name) }
}

pub(super) unsafe extern "C" fn name_os_thread_a(thread: u32, name: *const c_char) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_thread_of(thread, &ascii(name).read())
    });
}

pub(super) unsafe extern "C" fn name_os_thread_w(thread: u32, name: *const u32) {
    // SAFETY: see the module's page.
    answer((), || unsafe { name_thread_of(thread, &wide(name).read()) });
}

// CORE2

pub(super) unsafe extern "C" fn domain_mark_ex(
    handle: DomainHandle,
    attributes: *const EventAttributes,
) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| domain.mark(event)) }
    });
}

pub(super) unsafe extern "C" fn domain_range_start_ex(
    handle: DomainHandle,
    attributes: *const EventAttributes,
) -> u64 {
    answer(0, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| started(domain, event)) }
    })
}

pub(super) unsafe extern "C" fn domain_range_end(handle: DomainHandle, range: u64) {
    answer((), || ended(domain(handle), range, &MarkerEvent::default()));
}

pub(super) unsafe extern "C" fn domain_range_push_ex(
    handle: DomainHandle,
    attributes: *const EventAttributes,
) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe { with_event(domain, attributes, |event| pushed(domain, event)) }
    })
}

pub(super) unsafe extern "C" fn domain_range_pop(handle: DomainHandle) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        popped(domain(handle), &MarkerEvent::default())
    })
}

pub(super) unsafe extern "C" fn domain_resource_create(
    handle: DomainHandle,
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

pub(super) unsafe extern "C" fn domain_resource_destroy(_: *const c_void) {}

pub(super) unsafe extern "C" fn domain_name_category_a(
    handle: DomainHandle,
    id: u32,
    name: *const c_char,
) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_category(domain(handle), id, ascii(name))
    });
}

pub(super) unsafe extern "C" fn domain_name_category_w(
    handle: DomainHandle,
    id: u32,
    name: *const u32,
) {
    // SAFETY: see the module's page.
    answer((), || unsafe {
        name_category(domain(handle), id, wide(name))
    });
}

pub(super) unsafe extern "C" fn domain_register_string_a(
    _: DomainHandle,
    text: *const c_char,
) -> *const KeptText {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe {
        registered_string(ascii(text))
    })
}

pub(super) unsafe extern "C" fn domain_register_string_w(
    _: DomainHandle,
    text: *const u32,
) -> *const KeptText {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe {
        registered_string(wide(text))
    })
}

fn registered_string(text: MarkerText<'_>) -> *const KeptText {
    kept(&text.read()).map_or(std::ptr::null(), std::ptr::from_ref)
}

pub(super) unsafe extern "C" fn domain_create_a(name: *const c_char) -> DomainHandle {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { create(ascii(name)) })
}

pub(super) unsafe extern "C" fn domain_create_w(name: *const u32) -> DomainHandle {
    // SAFETY: see the module's page.
    answer(std::ptr::null(), || unsafe { create(wide(name)) })
}

/// A domain that is created again after its destruction is the same one.
pub(super) unsafe extern "C" fn domain_destroy(_: DomainHandle) {}

pub(super) unsafe extern "C" fn initialize(_: *const c_void) {}

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

/// Names an object: threads, devices, contexts, OpenCL queues and CUDA streams in the names store, and all but threads by a
/// marker, which shows when it got its name.
fn resource(domain: &MarkerDomain, kind: (u32, u32), handle: u64, name: MarkerText<'_>) {
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
        (class::CUDA, 1) | (class::CUDART, 0) => {
            name_agent_of(Runtime::CUDA_DRIVER, handle, &text);
            "CUDA device"
        }
        (class::CUDA, 2) => {
            name_context(handle, &text);
            "CUDA context"
        }
        (class::CUDA, 3) | (class::CUDART, 1) => {
            name_stream(handle, &text);
            "CUDA stream"
        }
        (class::CUDA, 4) | (class::CUDART, 2) => "CUDA event",
        (class::OPENCL, 1) => {
            name_agent_of(Runtime::OPENCL, handle, &text);
            "OpenCL device"
        }
        (class::OPENCL, 2) => {
            name_context(handle, &text);
            "OpenCL context"
        }
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
    let event = MarkerEvent {
        category: MarkerText::Plain(kind),
        ..named(name)
    };
    domain.report(MarkerKind::RESOURCE, handle, &event);
}

/// Declares the two functions that name objects of one type.
macro_rules! naming {
    ($($ascii:ident, $wide:ident: $handle:ty, $class:expr, $index:expr;)*) => {$(
        pub(super) unsafe extern "C" fn $ascii(handle: $handle, name: *const c_char) {
            // SAFETY: see the module's page.
            answer((), || unsafe {
                resource(&DEFAULT, ($class, $index), handle as u64, ascii(name))
            });
        }
        pub(super) unsafe extern "C" fn $wide(handle: $handle, name: *const u32) {
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

/// A lock of the program's. A thread that waits for it is in a pushed range of its own, and while it holds the lock there is
/// a started range. Locks of readers have several holders, and recursive ones are held several times by one thread.
pub(super) struct SyncUser {
    domain: &'static MarkerDomain,
    waits: String,
    holds: String,
    /// For each hold, the thread above [`RANGE_BITS`] and the range below; 0 for none.
    holders: [AtomicU64; MAX_HOLDERS],
}

/// Maximum number of holds of a lock that have ranges at a time.
const MAX_HOLDERS: usize = 16;
/// Bits of a range's number. Ids of threads have at most 22 bits.
const RANGE_BITS: u32 = 42;

impl SyncUser {
    /// The calling thread, in the bits of `holders`.
    fn thread() -> u64 {
        u64::from(system::thread_id()) << RANGE_BITS
    }

    /// Begins the range of a hold.
    fn hold(&self) {
        let own = SyncUser::thread();
        let free = self.holders.iter().find(|holder| {
            let taken = holder.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        });
        if let Some(holder) = free {
            let range = started(self.domain, &named(MarkerText::Plain(&self.holds)));
            holder.store(own | range, Ordering::Relaxed);
        }
    }

    /// Ends the range of the calling thread's latest hold, or of another thread's if it has none.
    fn release(&self) {
        let (own, held) = (SyncUser::thread(), |holder: &AtomicU64| {
            holder.load(Ordering::Relaxed)
        });
        let all = || self.holders.iter().rev();
        let of_thread = all().find(|holder| held(holder) >> RANGE_BITS == own >> RANGE_BITS);
        let Some(holder) = of_thread.or_else(|| all().find(|holder| held(holder) != 0)) else {
            return;
        };
        let range = holder.swap(0, Ordering::Relaxed) & !(u64::MAX << RANGE_BITS);
        let _ = marker::end_event(RangeId::from_number(range), &step(LockStep::Release));
    }
}

/// The end of a range by this step.
fn step(lock: LockStep) -> MarkerEvent<'static> {
    MarkerEvent {
        lock,
        ..MarkerEvent::default()
    }
}

pub(super) unsafe extern "C" fn sync_create(
    handle: DomainHandle,
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
            holders: Default::default(),
        }))
    })
}

pub(super) unsafe extern "C" fn sync_destroy(user: *mut SyncUser) {
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

pub(super) unsafe extern "C" fn sync_acquire_start(user: *const SyncUser) {
    sync(user, |user| {
        let waits = MarkerEvent {
            lock: LockStep::Acquire,
            ..named(MarkerText::Plain(&user.waits))
        };
        let _ = user.domain.push(&waits);
    });
}

pub(super) unsafe extern "C" fn sync_acquire_failed(user: *const SyncUser) {
    sync(user, |user| {
        let _ = user.domain.pop(&step(LockStep::Failed));
    });
}

pub(super) unsafe extern "C" fn sync_acquire_success(user: *const SyncUser) {
    sync(user, |user| {
        let _ = user.domain.pop(&step(LockStep::Success));
        user.hold();
    });
}

pub(super) unsafe extern "C" fn sync_releasing(user: *const SyncUser) {
    sync(user, SyncUser::release);
}

// Tables

/// The functions of each module where no other tool gets the calls.
pub(super) static MODULES: [(c_int, &[FunctionOf]); 6] = modules!(functions);
