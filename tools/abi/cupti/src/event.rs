//! The Event API.
//!
//! Devices with the same counters share the ids of events, which last as long as the process. A group belongs to its context's
//! first device.
//!
//! * Mode *kernel* (the default): a value is that of the context's kernel that ended last since the previous read. Kernels of the
//!   device run one after the other while a group is enabled. On processors a kernel has ended when its enqueue returns;
//!   elsewhere wait for it.
//! * Mode *continuous*: a value is the sum of the context's kernels that have ended since the previous read. Of a group whose scope
//!   is set to `DEVICE` before it has events, it is what the device counted since then, also within a kernel, and kernels do not run one after the other; in a
//!   callback, that of the last read outside of one. Read in another thread, as `examples/abi/cupti_event_sampling.c` does.
//! * Several groups and devices count together, in one mode per device, if all events of a device's groups fit one pass. In replay
//!   mode, kernels run as often as their events need.
//! * Instances: the first of the domain (`..._INSTANCE_COUNT` is 1); with `..._PROFILE_ALL_DOMAIN_INSTANCES`, a value for each.
//! * Invalid values, such as of a kernel that could not be waited for, are `CUPTI_EVENT_INVALID`, never `CUPTI_EVENT_OVERFLOW`.
//! * `HARDWARE_BUSY`: another context of gputrail's counts, or the device's program counter is sampled.
//! * Texts that are too long for their place are cut there, without a NUL.
//!
//! All functions may be called in callbacks. Attributes answer `INVALID_PARAMETER`
//! without a place for them or where there is no such attribute, and `PARAMETER_SIZE_NOT_SUFFICIENT` where the place is too small
//! for a number. Statuses are those of CUPTI's text, without `CUPTI_ERROR_`.
//!
//! | function | here | statuses |
//! |---|---|---|
//! | `cuptiDeviceGetAttribute` | numbers of events and domains; what the runtime tells of memory bandwidth, instructions of a cycle, PCI Express, local memory, peer links; 0 of everything else. The class is `TESLA` | `INVALID_DEVICE` |
//! | `cuptiDeviceGetTimestamp` | the time now, in the clock of records | `INVALID_CONTEXT`, `INVALID_PARAMETER` |
//! | `cuptiDeviceGetNumEventDomains`, `cuptiDeviceEnumEventDomains` | those of the device | `INVALID_DEVICE`, `INVALID_PARAMETER` |
//! | `cuptiGetNumEventDomains`, `cuptiEnumEventDomains` | those of all devices that the process knows | `INVALID_PARAMETER` |
//! | `cuptiDeviceGetEventDomainAttribute` | the name of the block, all of its instances, the method `PM` | `INVALID_DEVICE`, `INVALID_EVENT_DOMAIN_ID` |
//! | `cuptiEventDomainGetAttribute` | without the instances | `INVALID_EVENT_DOMAIN_ID` |
//! | `cuptiEventDomainGetNumEvents`, `cuptiEventDomainEnumEvents` | as the text says | `INVALID_EVENT_DOMAIN_ID`, `INVALID_PARAMETER` |
//! | `cuptiEventGetAttribute` | both descriptions are gputrail's; the scope is `BOTH` | `INVALID_EVENT_ID` |
//! | `cuptiEventGetIdFromName` | exact names | `INVALID_DEVICE`, `INVALID_EVENT_NAME`, `INVALID_PARAMETER` |
//! | `cuptiEventGroupCreate` | `flags` have to be 0 | `INVALID_CONTEXT`, `INVALID_PARAMETER` |
//! | `cuptiEventGroupDestroy` | | `INVALID_OPERATION` of an enabled group; `INVALID_PARAMETER` of a handle that is none, here and below |
//! | `cuptiEventGroupGetAttribute`, `cuptiEventGroupSetAttribute` | user data are a pointer; the scope is `CONTEXT` unless it is set before there are events | `INVALID_OPERATION` for the scope afterwards |
//! | `cuptiEventGroupAddEvent` | | `INVALID_EVENT_ID`, `INVALID_OPERATION`; `NOT_COMPATIBLE` of another domain, `MAX_LIMIT_REACHED` where the block counts no more at a time |
//! | `cuptiEventGroupRemoveEvent`, `cuptiEventGroupRemoveAllEvents` | without events the group is of no domain | `INVALID_EVENT_ID`, `INVALID_OPERATION` |
//! | `cuptiEventGroupEnable`, `cuptiEventGroupSetEnable` | an enabled group begins from 0 | `NOT_READY` without events; `NOT_COMPATIBLE` with those that are enabled; `HARDWARE_BUSY`; `HARDWARE` where this machine does not have the events, or the system does not allow them |
//! | `cuptiEventGroupDisable`, `cuptiEventGroupSetDisable`, `cuptiEventGroupResetAllEvents` | as the text says | |
//! | `cuptiEventGroupReadEvent`, `cuptiEventGroupReadAllEvents` | as the text says; what has been read is 0 | `INVALID_EVENT_ID`, `INVALID_OPERATION`, `PARAMETER_SIZE_NOT_SUFFICIENT` |
//! | `cuptiEventGroupSetsCreate`, `cuptiMetricCreateEventGroupSets` | as many events of each domain in a pass as its block counts at a time | `INVALID_CONTEXT`, `INVALID_EVENT_ID`, `INVALID_METRIC_ID`, `INVALID_PARAMETER` |
//! | `cuptiEventGroupSetsDestroy` | with its groups | `INVALID_OPERATION` where one is enabled |
//! | `cuptiSetEventCollectionMode` | also of groups that are enabled | `INVALID_CONTEXT`; `INVALID_OPERATION` in the replay mode; `NOT_SUPPORTED` of an unknown mode, or where the device counts nothing; `NOT_COMPATIBLE` where enabled groups of the device count in the other mode |
//! | `cuptiEnableKernelReplayMode`, `cuptiDisableKernelReplayMode` | as the text says | `INVALID_CONTEXT` |
//! | `cuptiKernelReplaySubscribeUpdate` | called within the enqueue after each run of a kernel of OpenCL that needs several. The simulated GPU runs the passes of a kernel after its enqueue, and calls for each of them when the kernel has completed | |
//!
//! Statuses of the text that are not returned: `OUT_OF_MEMORY`, since memory that the system refuses ends the process; `HARDWARE` of
//! functions that read, reset and disable, which do not fail. `tests/programs/abi/cupti_counting.c` calls each function, and
//! provokes the statuses but for `HARDWARE_BUSY`, `HARDWARE` and `MAX_LIMIT_REACHED`.

mod group;

use crate::clock;
use crate::counting::catalogue::{self, Family};
use crate::counting::values::{listed, write_array, write_text};
use crate::counting::{device, engine, groups, replay};
use crate::objects::{self, CUcontext, CUdevice};
use crate::place::{Place, write_attribute};
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use core::ffi::{c_char, c_int, c_void};
use gputrail_abi::{given, kept};
use gputrail_tool::{now, to_nanos};
use groups::Mode;

/// `CUPTI_EVENT_PROFILING_SCOPE_BOTH`
const SCOPE_BOTH: u32 = 2;

/// The category of an event (`CUpti_EventCategory`), by the block that counts it.
fn category(block: &str, name: &str) -> u32 {
    let (instruction, memory, cache) = (0, 1, 2);
    let name = name.to_ascii_uppercase();
    if ["TCP", "TCC", "GL2C"].contains(&block) || name.contains("CACHE") {
        return cache;
    }
    if block == "TA" || name.contains("FAULT") || name.contains("IMC") {
        memory
    } else {
        instruction
    }
}

/// Reads an attribute of a device.
///
/// # Safety
///
/// `size` is null or leads to a number; `value` is null or leads to that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceGetAttribute(
    device: CUdevice,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        let found = device::attribute(device, attribute)?;
        // SAFETY: `size` is null or leads to a number; `value` is null or leads to that many bytes.
        unsafe {
            match found {
                device::Attribute::Small(found) => write_attribute(size, value.cast(), found),
                device::Attribute::Large(found) => write_attribute(size, value.cast(), found),
            }
        }
    })
}

/// The time of a context's device, in nanoseconds of the clock of records.
///
/// # Safety
///
/// `timestamp` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceGetTimestamp(
    context: CUcontext,
    timestamp: *mut u64,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `timestamp` is null or a place for a number.
        let place = unsafe { Place::new(timestamp) }?;
        objects::context(context)?;
        place.put(clock::told(to_nanos(now())?.0));
        Ok(())
    })
}

listed! {
    /// The domains of a device, as many as there is room for.
    cuptiDeviceGetNumEventDomains, cuptiDeviceEnumEventDomains(device: CUdevice) => {
        let family = catalogue::of_device(device)?;
        family.ids(family.domains.len()).collect()
    };
    /// The domains of all devices, each once, as many as there is room for.
    cuptiGetNumEventDomains, cuptiEnumEventDomains() => catalogue::all_ids(|family| family.domains.len())?;
    /// The events of a domain, as many as there is room for.
    cuptiEventDomainGetNumEvents, cuptiEventDomainEnumEvents(domain: u32) => {
        let (family, place) = catalogue::domain(domain)?;
        let events = family.domains[place].events.iter();
        events.map(|event| family.id(*event)).collect()
    };
}

/// Reads an attribute of a domain; the numbers of instances only of a `device`.
///
/// # Safety
///
/// As for [`cuptiDeviceGetAttribute`].
unsafe fn domain_attribute(
    device: Option<&Family>,
    domain: u32,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> Answer {
    let (family, place) = catalogue::domain(domain)?;
    if device.is_some_and(|device| !device.is_same(&family)) {
        return Err(CUptiResult::INVALID_EVENT_DOMAIN_ID);
    }
    let of = &family.domains[place];
    // SAFETY: `size` is null or leads to a number; `value` is null or leads to that many bytes.
    unsafe {
        match (attribute, device) {
            // CUPTI_EVENT_DOMAIN_ATTR_NAME
            (0, _) => write_text(size, value.cast(), kept(of.name)),
            // _INSTANCE_COUNT, _TOTAL_INSTANCE_COUNT: all are counted
            (1 | 3, Some(_)) => write_attribute(size, value.cast(), of.instances),
            // _COLLECTION_METHOD: CUPTI_EVENT_COLLECTION_METHOD_PM
            (4, _) => write_attribute(size, value.cast(), 0u32),
            _ => Err(CUptiResult::INVALID_PARAMETER),
        }
    }
}

/// Reads an attribute of a domain of a device.
///
/// # Safety
///
/// As for [`cuptiDeviceGetAttribute`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceGetEventDomainAttribute(
    device: CUdevice,
    domain: u32,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        let family = catalogue::of_device(device)?;
        // SAFETY: `size` is null or leads to the number of bytes at `value`, as `domain_attribute` asks.
        unsafe { domain_attribute(Some(&family), domain, attribute, size, value) }
    })
}

/// Reads an attribute of a domain, which is none of a device.
///
/// # Safety
///
/// As for [`cuptiDeviceGetAttribute`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventDomainGetAttribute(
    domain: u32,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    // SAFETY: `size` is null or leads to the number of bytes at `value`, as `domain_attribute` asks.
    with_gputrail(|| unsafe { domain_attribute(None, domain, attribute, size, value) })
}

/// Reads an attribute of an event.
///
/// # Safety
///
/// As for [`cuptiDeviceGetAttribute`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGetAttribute(
    event: u32,
    attribute: c_int,
    size: *mut usize,
    value: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| {
        let (family, place) = catalogue::event(event)?;
        let of = &family.events[place];
        // SAFETY: `size` is null or leads to a number; `value` is null or leads to that many bytes.
        unsafe {
            match attribute {
                // CUPTI_EVENT_ATTR_NAME
                0 => write_text(size, value.cast(), kept(of.name)),
                // _SHORT_DESCRIPTION, _LONG_DESCRIPTION
                1 | 2 => write_text(size, value.cast(), kept(of.description)),
                // _CATEGORY
                3 => {
                    let category = category(family.domain_of(place).name, of.name);
                    write_attribute(size, value.cast(), category)
                }
                // _PROFILING_SCOPE
                5 => write_attribute(size, value.cast(), SCOPE_BOTH),
                _ => Err(CUptiResult::INVALID_PARAMETER),
            }
        }
    })
}

/// The event of a device with this name.
///
/// # Safety
///
/// `name` is null or ends with a 0; `event` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiEventGetIdFromName(
    device: CUdevice,
    name: *const c_char,
    event: *mut u32,
) -> CUptiResult {
    let find = |family: &Family, name: &str| family.event_named(name);
    // SAFETY: `name` is null or ends with a 0; `event` is null or a place for the id.
    unsafe { id_named(device, name, event, find, CUptiResult::INVALID_EVENT_NAME) }
}

/// The id of the event or metric of a device that `find` finds the place of by its name; `unknown` is the status if there is none.
///
/// # Safety
///
/// `name` is null or ends with a 0; `id` is null or a place for the id.
pub unsafe fn id_named(
    device: CUdevice,
    name: *const c_char,
    id: *mut u32,
    find: impl Fn(&Family, &str) -> Option<usize>,
    unknown: CUptiResult,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `id` is null or a place for an id.
        let place = unsafe { Place::new(id) }?;
        // SAFETY: `name` is null or ends with a 0, and the program leaves it alone during the call.
        let name = unsafe { given(name) }.ok_or(CUptiResult::INVALID_PARAMETER)?;
        let family = catalogue::of_device(device)?;
        place.put(family.id(find(&family, &name).ok_or(unknown)?));
        Ok(())
    })
}

/// Says when the groups of a context count.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetEventCollectionMode(context: CUcontext, mode: c_int) -> CUptiResult {
    with_gputrail(|| {
        let (id, _, family) = groups::of_context(context)?;
        if groups::table().manner(id).is_replaying {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        let mode = match mode {
            0 => Mode::Continuous,
            1 => Mode::Kernel,
            _ => return Err(CUptiResult::NOT_SUPPORTED),
        };
        if family.events.is_empty() {
            return Err(CUptiResult::NOT_SUPPORTED);
        }
        engine::change(id, |manner| (manner.mode, manner.was_set) = (mode, true))
    })
}

/// Has kernels of a context run as many times as the events of its enabled groups need.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableKernelReplayMode(context: CUcontext) -> CUptiResult {
    with_gputrail(|| {
        let (id, ..) = groups::of_context(context)?;
        engine::change(id, |manner| {
            (manner.mode, manner.is_replaying) = (Mode::Kernel, true);
        })
    })
}

/// Has kernels of a context run once, and disables its groups.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiDisableKernelReplayMode(context: CUcontext) -> CUptiResult {
    with_gputrail(|| {
        let (id, ..) = groups::of_context(context)?;
        engine::disable(|table| {
            let groups = table.groups.values_mut();
            for group in groups.filter(|group| group.context == id) {
                group.is_enabled = false;
            }
            let manner = table.manners.entry(id).or_default();
            (manner.mode, manner.is_replaying) = (Mode::Kernel, false);
            Ok(())
        })
    })
}

/// Has `function` called after each run of a kernel that runs several times, in the place of the function before; a null one
/// ends that.
///
/// # Safety
///
/// `function` does what its type says, with `data`, until another one takes its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiKernelReplaySubscribeUpdate(
    function: Option<replay::UpdateFunction>,
    data: *mut c_void,
) -> CUptiResult {
    with_gputrail(|| replay::subscribe(function, data))
}
