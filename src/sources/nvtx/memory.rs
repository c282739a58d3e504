//! The extension for memory: heaps and regions of allocators, with their names and sizes. They are shown as named objects.
//! Permissions are for tools that check accesses; they get handles, and have no effect.

use super::domain::{DomainHandle, domain, named};
use super::registered::id;
use super::tables::{FunctionOf, FunctionPointer, answer, functions_at};
use super::text::text;
use core::ffi::{c_int, c_void};
use gputrail_collect::marker::{EventValue, MarkerDomain, MarkerEvent, MarkerText};
use gputrail_record::{MarkerKind, PayloadKind};
use std::ptr::without_provenance;

/// The number of this extension.
pub(super) const MODULE: u16 = 1;
/// Memory that is described by an address and a size.
const VIRTUAL_ADDRESS: u32 = 1;
/// Maximum number of regions of one call.
const MAX_REGIONS: usize = 1 << 16;

/// A handle that the program passes back.
pub(super) type NvtxHandle = *const c_void;

#[derive(Copy, Clone)]
#[repr(C)]
pub(super) struct VirtualRange {
    size: usize,
    start: *const c_void,
}

#[repr(C)]
pub(super) struct Heap {
    compatibility: u16,
    size: u16,
    reserved: u32,
    usage: u32,
    kind: u32,
    range_size: usize,
    range: *const VirtualRange,
    category: u32,
    message_type: i32,
    message: *const c_void,
}

#[repr(C)]
pub(super) struct Regions {
    compatibility: u16,
    size: u16,
    kind: u32,
    heap: NvtxHandle,
    count: usize,
    element_size: usize,
    elements: *const u8,
    handles: *mut NvtxHandle,
}

#[derive(Copy, Clone)]
#[repr(C)]
pub(super) struct RegionNames {
    compatibility: u16,
    size: u16,
    reserved: u32,
    count: usize,
    element_size: usize,
    elements: *const u8,
    reserved_too: usize,
}

#[derive(Copy, Clone)]
#[repr(C)]
struct RegionName {
    reference_type: u32,
    message_type: i32,
    region: NvtxHandle,
    message: *const c_void,
    category: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Heap>() == 48 && size_of::<Regions>() == 48);
const _: () = assert!(size_of::<RegionNames>() == 40 && size_of::<RegionName>() == 32);

/// A handle for an object without an address.
fn new_handle() -> NvtxHandle {
    without_provenance(id(0) as usize)
}

/// The elements of an array whose elements may be larger than `T`.
///
/// # Safety
///
/// `start` is null or leads to `count` elements of `size` bytes, each of which begins with a `T`, for as long as the iterator is
/// used.
unsafe fn elements<T: Copy>(
    start: *const u8,
    count: usize,
    size: usize,
) -> impl Iterator<Item = T> {
    let fits = !start.is_null() && size >= size_of::<T>();
    let count = if fits { count.min(MAX_REGIONS) } else { 0 };
    // SAFETY: `start` is read only if it is not null: it leads to at least this many elements, each of which begins with a `T`,
    // aligned or not.
    (0..count).map(move |place| unsafe { start.add(place * size).cast::<T>().read_unaligned() })
}

/// Records the name of a heap or region.
fn report(
    domain: &MarkerDomain,
    kind: &str,
    name: MarkerText<'_>,
    handle: NvtxHandle,
    size: Option<usize>,
) {
    let event = MarkerEvent {
        category: MarkerText::Plain(kind),
        payload: size.map_or(EventValue::None, |size| {
            EventValue::Number(PayloadKind::UNSIGNED, size as u64)
        }),
        ..named(name)
    };
    domain.report(MarkerKind::RESOURCE, handle.addr() as u64, &event);
}

pub(super) unsafe extern "C" fn heap_register(
    handle: DomainHandle,
    given: *const Heap,
) -> NvtxHandle {
    answer(std::ptr::null(), || {
        // SAFETY: null or a program's description.
        let Some(heap) =
            (unsafe { given.as_ref() }).filter(|heap| usize::from(heap.size) >= size_of::<Heap>())
        else {
            return std::ptr::null();
        };
        let is_range = heap.kind == VIRTUAL_ADDRESS && heap.range_size >= size_of::<VirtualRange>();
        // SAFETY: null or a description of that type.
        let range = unsafe { heap.range.as_ref() }.filter(|_| is_range);
        let start = range
            .map(|range| range.start)
            .filter(|start| !start.is_null());
        let start = start.unwrap_or_else(new_handle);
        // SAFETY: a program's message.
        let name = unsafe { text(heap.message_type, heap.message) };
        let size = range.map(|range| range.size);
        report(domain(handle), "memory heap", name, start, size);
        start
    })
}

pub(super) unsafe extern "C" fn regions_register(_: DomainHandle, given: *const Regions) {
    answer((), || {
        // SAFETY: null or a program's description.
        let Some(regions) = (unsafe { given.as_ref() })
            .filter(|regions| usize::from(regions.size) >= size_of::<Regions>())
            .filter(|regions| regions.kind == VIRTUAL_ADDRESS && !regions.handles.is_null())
        else {
            return;
        };
        // SAFETY: an array of that type, and as many places for handles.
        unsafe {
            let ranges =
                elements::<VirtualRange>(regions.elements, regions.count, regions.element_size);
            for (place, range) in ranges.enumerate() {
                *regions.handles.add(place) = range.start;
            }
        }
    });
}

pub(super) unsafe extern "C" fn regions_name(handle: DomainHandle, given: *const RegionNames) {
    answer((), || {
        // SAFETY: null or a program's description.
        let Some(names) = (unsafe { given.as_ref() })
            .filter(|names| usize::from(names.size) >= size_of::<RegionNames>())
        else {
            return;
        };
        // SAFETY: a program's array and its messages.
        unsafe {
            for one in elements::<RegionName>(names.elements, names.count, names.element_size) {
                let name = text(one.message_type, one.message);
                report(domain(handle), "memory region", name, one.region, None);
            }
        }
    });
}

pub(super) unsafe extern "C" fn permissions_create(_: DomainHandle, _: i32) -> NvtxHandle {
    new_handle()
}

pub(super) unsafe extern "C" fn process_permissions(_: DomainHandle) -> NvtxHandle {
    new_handle()
}

pub(super) unsafe extern "C" fn device_permissions(_: DomainHandle, _: c_int) -> NvtxHandle {
    new_handle()
}

/// The functions of this extension by their ids. NVTX does nothing in the others.
pub(super) static FUNCTIONS: [Option<FunctionOf>; 15] = functions_at![
    heap_register,
    _,
    _,
    regions_register,
    _,
    _,
    regions_name,
    _,
    permissions_create,
    _,
    _,
    _,
    _,
    process_permissions,
    device_permissions,
];
