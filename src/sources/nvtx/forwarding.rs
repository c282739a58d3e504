//! Calls of NVTX that another tool gets, too: the library that `NVTX_INJECTION64_PATH` named before gputrail took its place.
//!
//! NVTX has one function in each place of its tables. The other library is initialised first and puts its functions there;
//! ours then take their places and call them. The program holds the other library's handles and ids, so that its calls
//! can be passed on as they are, and our objects are known by these handles. A function that the other library does not have
//! returns our result where that is a number; the other library gets 0 for a range that it does not know. Where it is a
//! handle, the program gets ours only if the other library has no function that could take it, and otherwise what the
//! function returns without a tool.

use super::attributes::{EventAttributes, PayloadData, ResourceAttributes, SyncAttributes};
use super::counters::{self, CounterAttributes, CounterBatch};
use super::domain::DomainHandle;
use super::functions::{self, SyncUser};
use super::handles::{DOMAINS, STRINGS, given_range, their_range};
use super::memory::{self, Heap, NvtxHandle, RegionNames};
use super::other_tool::{CORE, CORE2, SYNC, THEIR_EXTENSIONS, THEIR_MODULES, take_none};
use super::payload::{self, EnumAttributes, EventBatch, SchemaAttributes};
use super::registered::{Registered, register_as};
use super::scope::ScopeAttributes;
use super::tables::{FunctionOf, FunctionPointer, functions_at, modules};
use super::time::{self, SyncPoint, TimeDomainAttributes};
use core::ffi::{c_char, c_int, c_void};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::marker::KeptText;
use std::collections::HashMap;
use std::ptr::{null, null_mut};

/// The addresses of our locks, by those of the other tool.
static LOCKS: PerProcess<HashMap<u64, u64>> = PerProcess::new();

/// Our lock for a handle that the program has.
fn lock(handle: *mut SyncUser) -> *mut SyncUser {
    our_lock(LOCKS.lock().get(&(handle.addr() as u64)).copied())
}

fn our_lock(address: Option<u64>) -> *mut SyncUser {
    address.map_or(null_mut(), |address| {
        std::ptr::with_exposed_provenance_mut(address as usize)
    })
}

/// Results of both tools, as the program gets them.
mod result {
    use super::*;

    pub fn number<T>(theirs: Option<T>, ours: T) -> T {
        theirs.unwrap_or(ours)
    }

    pub fn handle<T>(theirs: Option<*const T>, _: *const T) -> *const T {
        theirs.unwrap_or(null())
    }

    pub fn lock(theirs: Option<*mut SyncUser>, ours: *mut SyncUser) -> *mut SyncUser {
        let handle = theirs.unwrap_or(if take_none(&[SYNC]) { ours } else { null_mut() });
        if handle.is_null() {
            // SAFETY: nobody else has it.
            unsafe { functions::sync_destroy(ours) };
        } else {
            let ours = ours.expose_provenance() as u64;
            LOCKS.lock().insert(handle.addr() as u64, ours);
        }
        handle
    }

    pub fn range(theirs: Option<u64>, ours: u64) -> u64 {
        given_range(theirs.unwrap_or(0), ours)
    }

    pub fn timestamp(theirs: Option<i64>, ours: i64) -> i64 {
        theirs.map_or(ours, |theirs| time::other_reading(theirs, ours))
    }

    pub fn is_enabled(theirs: Option<u8>, ours: u8) -> u8 {
        theirs.unwrap_or(0).max(ours)
    }
}

/// Declares functions that call the other tool's function of a place, and then ours. Arguments behind `to` are those that
/// the other tool gets, those behind `as` are ours, where they differ from the program's. The function behind `=>`, or the
/// handles there, make one result of both.
macro_rules! forwarded {
    ($table:expr, $ours:ident: $($place:literal $name:ident($($argument:ident: $type:ty),*)
        $(to($($their:expr),+))? $(as($($our:expr),+))? $(=> $result:tt $kind:ty)?;)*) => {$(
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $kind)? {
            type Theirs = unsafe extern "C" fn($($type),*) $(-> $kind)?;
            // SAFETY: NVTX's function of this place; the program keeps to its documentation.
            unsafe {
                let theirs = $table.get::<Theirs>($place);
                let theirs = theirs.map(|theirs| forwarded!(@call theirs, ($($argument),*) $(with $($their),+)?));
                let ours = forwarded!(@call $ours::$name, ($($argument),*) $(with $($our),+)?);
                forwarded!(@result theirs ours $($result)?)
            }
        }
    )*};
    (@call $function:path, ($($argument:ident),*)) => { $function($($argument),*) };
    (@call $function:path, ($($argument:ident),*) with $($other:expr),+) => { $function($($other),+) };
    (@result $theirs:ident $both:ident) => {{
        let _: Option<()> = $theirs;
        $both
    }};
    (@result $theirs:ident $both:ident [$handles:ident]) => { $handles.give($theirs, $both) };
    (@result $theirs:ident $both:ident $result:ident) => { result::$result($theirs, $both) };
}

forwarded! { THEIR_MODULES[CORE], functions:
    1 mark_ex(attributes: *const EventAttributes);
    2 mark_a(name: *const c_char);
    3 mark_w(name: *const u32);
    4 range_start_ex(attributes: *const EventAttributes) => range u64;
    5 range_start_a(name: *const c_char) => range u64;
    6 range_start_w(name: *const u32) => range u64;
    7 range_end(id: u64) to(their_range(id));
    8 range_push_ex(attributes: *const EventAttributes) => number c_int;
    9 range_push_a(name: *const c_char) => number c_int;
    10 range_push_w(name: *const u32) => number c_int;
    11 range_pop() => number c_int;
    12 name_category_a(id: u32, name: *const c_char);
    13 name_category_w(id: u32, name: *const u32);
    14 name_os_thread_a(thread: u32, name: *const c_char);
    15 name_os_thread_w(thread: u32, name: *const u32);
}

forwarded! { THEIR_MODULES[2], functions:
    1 cu_device_a(handle: c_int, name: *const c_char);
    2 cu_device_w(handle: c_int, name: *const u32);
    3 cu_context_a(handle: usize, name: *const c_char);
    4 cu_context_w(handle: usize, name: *const u32);
    5 cu_stream_a(handle: usize, name: *const c_char);
    6 cu_stream_w(handle: usize, name: *const u32);
    7 cu_event_a(handle: usize, name: *const c_char);
    8 cu_event_w(handle: usize, name: *const u32);
}

forwarded! { THEIR_MODULES[3], functions:
    1 cl_device_a(handle: usize, name: *const c_char);
    2 cl_device_w(handle: usize, name: *const u32);
    3 cl_context_a(handle: usize, name: *const c_char);
    4 cl_context_w(handle: usize, name: *const u32);
    5 cl_queue_a(handle: usize, name: *const c_char);
    6 cl_queue_w(handle: usize, name: *const u32);
    7 cl_memory_a(handle: usize, name: *const c_char);
    8 cl_memory_w(handle: usize, name: *const u32);
    9 cl_sampler_a(handle: usize, name: *const c_char);
    10 cl_sampler_w(handle: usize, name: *const u32);
    11 cl_program_a(handle: usize, name: *const c_char);
    12 cl_program_w(handle: usize, name: *const u32);
    13 cl_event_a(handle: usize, name: *const c_char);
    14 cl_event_w(handle: usize, name: *const u32);
}

forwarded! { THEIR_MODULES[4], functions:
    1 cuda_device_a(handle: c_int, name: *const c_char);
    2 cuda_device_w(handle: c_int, name: *const u32);
    3 cuda_stream_a(handle: usize, name: *const c_char);
    4 cuda_stream_w(handle: usize, name: *const u32);
    5 cuda_event_a(handle: usize, name: *const c_char);
    6 cuda_event_w(handle: usize, name: *const u32);
}

forwarded! { THEIR_MODULES[CORE2], functions:
    1 domain_mark_ex(handle: DomainHandle, attributes: *const EventAttributes);
    2 domain_range_start_ex(handle: DomainHandle, attributes: *const EventAttributes) => range u64;
    3 domain_range_end(handle: DomainHandle, id: u64) to(handle, their_range(id));
    4 domain_range_push_ex(handle: DomainHandle, attributes: *const EventAttributes) => number c_int;
    5 domain_range_pop(handle: DomainHandle) => number c_int;
    6 domain_resource_create(handle: DomainHandle, attributes: *const ResourceAttributes) => handle *const c_void;
    7 domain_resource_destroy(resource: *const c_void);
    8 domain_name_category_a(handle: DomainHandle, id: u32, name: *const c_char);
    9 domain_name_category_w(handle: DomainHandle, id: u32, name: *const u32);
    10 domain_register_string_a(handle: DomainHandle, text: *const c_char) => [STRINGS] *const KeptText;
    11 domain_register_string_w(handle: DomainHandle, text: *const u32) => [STRINGS] *const KeptText;
    12 domain_create_a(name: *const c_char) => [DOMAINS] DomainHandle;
    13 domain_create_w(name: *const u32) => [DOMAINS] DomainHandle;
    14 domain_destroy(handle: DomainHandle);
    15 initialize(reserved: *const c_void);
}

forwarded! { THEIR_MODULES[SYNC], functions:
    1 sync_create(handle: DomainHandle, attributes: *const SyncAttributes) => lock *mut SyncUser;
    3 sync_acquire_start(user: *mut SyncUser) as(lock(user));
    4 sync_acquire_failed(user: *mut SyncUser) as(lock(user));
    5 sync_acquire_success(user: *mut SyncUser) as(lock(user));
    6 sync_releasing(user: *mut SyncUser) as(lock(user));
}

/// Our lock is forgotten first: the other tool may give its handle to a new lock.
unsafe extern "C" fn sync_destroy(user: *mut SyncUser) {
    type Theirs = unsafe extern "C" fn(*mut SyncUser);
    let ours = LOCKS.lock().remove(&(user.addr() as u64));
    // SAFETY: NVTX's function of this place; our lock was made by `sync_create`, and nobody finds it any more.
    unsafe {
        if let Some(theirs) = THEIR_MODULES[SYNC].get::<Theirs>(2) {
            theirs(user);
        }
        functions::sync_destroy(our_lock(ours));
    }
}

/// The functions of each module where another tool gets the calls.
pub(super) static MODULES: [(c_int, &[FunctionOf]); 6] = {
    use super::forwarding;
    modules!(forwarding)
};

const DATA: usize = payload::MODULE as usize;

forwarded! { THEIR_EXTENSIONS[DATA], payload:
    2 mark_payload(handle: DomainHandle, data: *const PayloadData, count: usize);
    3 range_push_payload(handle: DomainHandle, data: *const PayloadData, count: usize) => number c_int;
    4 range_pop_payload(handle: DomainHandle, data: *const PayloadData, count: usize) => number c_int;
    5 range_start_payload(handle: DomainHandle, data: *const PayloadData, count: usize) => range u64;
    6 range_end_payload(handle: DomainHandle, id: u64, data: *const PayloadData, count: usize)
        to(handle, their_range(id), data, count);
    7 domain_is_enabled(handle: DomainHandle) => is_enabled u8;
    16 event_submit(handle: DomainHandle, data: *const PayloadData, count: usize);
    17 event_batch_submit(handle: DomainHandle, batch: *const EventBatch);
}

forwarded! { THEIR_EXTENSIONS[DATA], time:
    8 timestamp_get() => timestamp i64;
    13 time_sync_point(handle: DomainHandle, source: u64, destination: u64, at_source: i64, at_destination: i64);
    14 time_sync_point_table(handle: DomainHandle, source: u64, destination: u64, points: *const SyncPoint, count: usize);
    15 timestamp_conversion_factor(handle: DomainHandle, source: u64, destination: u64, slope: f64, at_source: i64, at_destination: i64);
}

forwarded! { THEIR_EXTENSIONS[counters::MODULE as usize], counters:
    1 sample_int64(handle: DomainHandle, counter: u64, value: i64);
    2 sample_float64(handle: DomainHandle, counter: u64, value: f64);
    3 sample_bytes(handle: DomainHandle, counter: u64, value: *const c_void, size: usize);
    4 sample_no_value(handle: DomainHandle, counter: u64, reason: u8);
    5 batch_submit(handle: DomainHandle, batch: *const CounterBatch);
}

forwarded! { THEIR_EXTENSIONS[memory::MODULE as usize], memory:
    0 heap_register(handle: DomainHandle, given: *const Heap) => handle NvtxHandle;
    6 regions_name(handle: DomainHandle, given: *const RegionNames);
}

/// A function by which the program registers something, in a place of an extension: ours is registered under the other
/// tool's id.
unsafe extern "C" fn register<R: Registered, const EXTENSION: u16, const PLACE: usize>(
    handle: DomainHandle,
    given: *const R,
) -> u64 {
    type Theirs<R> = unsafe extern "C" fn(DomainHandle, *const R) -> u64;
    // SAFETY: NVTX's function of this place; the program keeps to its documentation.
    unsafe {
        let theirs = THEIR_EXTENSIONS[usize::from(EXTENSION)].get::<Theirs<R>>(PLACE);
        let theirs = theirs.map_or(0, |theirs| theirs(handle, given));
        let ours = register_as(handle, given, theirs);
        if theirs == 0 { ours } else { theirs }
    }
}

/// The functions of each extension where another tool gets the calls. Places without one keep the other tool's function.
pub(super) static EXTENSIONS: [(u16, &[Option<FunctionOf>]); 3] = [
    (
        payload::MODULE,
        &functions_at![
            (register::<SchemaAttributes, { payload::MODULE }, 0>),
            (register::<EnumAttributes, { payload::MODULE }, 1>),
            mark_payload,
            range_push_payload,
            range_pop_payload,
            range_start_payload,
            range_end_payload,
            domain_is_enabled,
            timestamp_get,
            (register::<TimeDomainAttributes, { payload::MODULE }, 9>),
            _,
            _,
            (register::<ScopeAttributes, { payload::MODULE }, 12>),
            time_sync_point,
            time_sync_point_table,
            timestamp_conversion_factor,
            event_submit,
            event_batch_submit,
        ],
    ),
    (
        counters::MODULE,
        &functions_at![
            (register::<CounterAttributes, { counters::MODULE }, 0>),
            sample_int64,
            sample_float64,
            sample_bytes,
            sample_no_value,
            batch_submit,
        ],
    ),
    (
        memory::MODULE,
        &functions_at![heap_register, _, _, _, _, _, regions_name],
    ),
];
