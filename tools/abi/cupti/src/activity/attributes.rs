//! The attributes of the Activity API, and the functions that are switches of records.
//!
//! | attribute | here |
//! |---|---|
//! | 0 to 10, 24 | kept, without an effect: no memory of devices is used, and buffers are not those of threads |
//! | `ENABLE_ALLOCATION_SOURCE_TRACKING`, `ENABLE_ALL_SYNC_RECORDS`, `ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS`, `ENABLE_KERNEL_LAUNCH_ATTRIBUTES`, `ENABLE_DEVICE_GRAPH_TRACE`, `ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE` | kept, without an effect: their fields and records are 0 or none |
//! | `ENABLE_KERNEL_LATENCY_TIMESTAMPS`, `THREAD_ID_TYPE`, `TIMESTAMP_CALLBACK` | as the functions for these |
//! | `USER_DEFINED_RECORDS`, `ENABLE_HES`, `ENABLE_CIG_MODE` | 0; another value is `NOT_SUPPORTED` |
//! | `MULTIPLE_SUBSCRIBER_STATE` | 0: there is one subscriber. It cannot be set |
//!
//! An attribute that a version of CUPTI does not have is `INVALID_PARAMETER` in its layout.

use super::translate;
use crate::layout::{LAYOUTS, layout};
use crate::place::{Place, write_attribute};
use crate::result::{Answer, CUptiResult};
use crate::{timestamp, with_gputrail};
use gputrail_abi::lock;
use gputrail_tool::{self as tool, Attributes, ThreadIds};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// The number of attributes in each layout.
const COUNTS: [usize; LAYOUTS] = [5, 9, 11, ATTRIBUTES];
/// The number of all attributes (`CUPTI_ACTIVITY_ATTR_COUNT`).
const ATTRIBUTES: usize = 25;

const USER_DEFINED_RECORDS: usize = 11;
const MULTIPLE_SUBSCRIBER_STATE: usize = 12;
const ENABLE_HES: usize = 13;
const ALLOCATION_SOURCE: usize = 14;
const LATENCY: usize = 15;
const ALL_SYNC_RECORDS: usize = 16;
const EVENT_TIMESTAMPS: usize = 17;
const LAUNCH_ATTRIBUTES: usize = 18;
const DEVICE_GRAPH_TRACE: usize = 19;
const MULTI_SUBSCRIBER_GRAPH_TRACE: usize = 20;
const THREAD_ID_TYPE: usize = 21;
const TIMESTAMP_CALLBACK: usize = 22;
const ENABLE_CIG_MODE: usize = 23;

/// The values that are kept.
static VALUES: Mutex<[usize; ATTRIBUTES]> = {
    let mut values = [0; ATTRIBUTES];
    (values[0], values[1]) = (8 << 20, 8 << 20);
    (values[2], values[3], values[4]) = (100, 65536, 100);
    (values[6], values[7]) = (3, 3);
    (values[9], values[10]) = (1, 16 << 20);
    values[24] = 128;
    Mutex::new(values)
};

/// The bytes of an attribute's value.
fn bytes(attribute: usize) -> usize {
    match attribute {
        0..=4 | 6 | 7 | 10 | 24 | TIMESTAMP_CALLBACK => 8,
        THREAD_ID_TYPE => 4,
        _ => 1,
    }
}

/// The number of an attribute that the library's version has.
fn known(attribute: u32) -> Answer<usize> {
    let number = attribute as usize;
    if number < COUNTS[layout() as usize] {
        Ok(number)
    } else {
        Err(CUptiResult::INVALID_PARAMETER)
    }
}

fn get(attribute: usize) -> Answer<usize> {
    Ok(match attribute {
        LATENCY => usize::from(translate::LATENCY.load(Ordering::Relaxed)),
        THREAD_ID_TYPE => Attributes::get()?.thread_ids as usize,
        TIMESTAMP_CALLBACK => timestamp::registered(),
        _ => lock(&VALUES)[attribute],
    })
}

fn set(attribute: usize, value: usize) -> Answer {
    match attribute {
        USER_DEFINED_RECORDS | ENABLE_HES | ENABLE_CIG_MODE if value != 0 => {
            return Err(CUptiResult::NOT_SUPPORTED);
        }
        MULTIPLE_SUBSCRIBER_STATE => return Err(CUptiResult::INVALID_PARAMETER),
        LATENCY => set_latency(value != 0),
        THREAD_ID_TYPE => return set_thread_ids(value as u32),
        // A flag.
        ALLOCATION_SOURCE..=MULTI_SUBSCRIBER_GRAPH_TRACE => {
            lock(&VALUES)[attribute] = usize::from(value != 0);
        }
        _ => lock(&VALUES)[attribute] = value,
    }
    Ok(())
}

/// The value of an attribute.
///
/// # Safety
///
/// `size` is null or leads to the bytes of `value`, which is null or has as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut u8,
) -> CUptiResult {
    with_gputrail(|| {
        let attribute = known(attribute)?;
        let of = get(attribute)?;
        // SAFETY: `size` is null or leads to the number of the bytes at `value`, which may be null.
        unsafe {
            match bytes(attribute) {
                1 => write_attribute(size, value, of as u8),
                4 => write_attribute(size, value, of as u32),
                _ => write_attribute(size, value, of),
            }
        }
    })
}

/// Sets an attribute.
///
/// # Safety
///
/// As for [`cuptiActivityGetAttribute`]; the value of a function is one, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut u8,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `size` is null or leads to the number of the bytes at `value`.
        let place = unsafe { Place::new(size) }?;
        let attribute = known(attribute)?;
        if value.is_null() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        if place.get() < bytes(attribute) {
            return Err(CUptiResult::PARAMETER_SIZE_NOT_SUFFICIENT);
        }
        if attribute == TIMESTAMP_CALLBACK {
            let place = value.cast::<Option<timestamp::Function>>();
            // SAFETY: there are as many bytes, as the caller says: a function of this type, or null.
            return timestamp::register(unsafe { place.read_unaligned() });
        }
        // SAFETY: there are as many bytes, as the caller says.
        let new = unsafe {
            match bytes(attribute) {
                1 => usize::from(value.read()),
                4 => value.cast::<u32>().read_unaligned() as usize,
                _ => value.cast::<usize>().read_unaligned(),
            }
        };
        set(attribute, new)
    })
}

/// Sets the kind of thread ids, before anything is recorded.
pub fn set_thread_ids(kind: u32) -> Answer {
    let thread_ids = match kind {
        0 => ThreadIds::Pthread,
        1 => ThreadIds::System,
        _ => return Err(CUptiResult::NOT_SUPPORTED),
    };
    let before = Attributes::get()?;
    if before.thread_ids == thread_ids {
        return Ok(());
    }
    let new = Attributes {
        thread_ids,
        ..before
    };
    new.set().map_err(|error| match error.status {
        tool::Status::ATTRIBUTES_LOCKED => CUptiResult::NOT_SUPPORTED,
        _ => error.into(),
    })
}

/// Says whether kernels have the times at which they were queued and submitted.
fn set_latency(on: bool) {
    if on
        && let Ok(attributes) = Attributes::get()
        && !attributes.latency_times
    {
        // Where a context has been started, the times remain unknown.
        let _ = Attributes {
            latency_times: true,
            ..attributes
        }
        .set();
    }
    translate::LATENCY.store(on, Ordering::Relaxed);
}

macro_rules! switches {
    ($($(#[$what:meta])* $name:ident = $attribute:ident;)*) => {
        $(
            $(#[$what])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(enable: u8) -> CUptiResult {
                with_gputrail(|| set($attribute, usize::from(enable != 0)))
            }
        )*
    };
}

switches! {
    /// Says whether kernels have the times at which they were queued and submitted.
    cuptiActivityEnableLatencyTimestamps = LATENCY;
    /// Says whether waits that have failed have records, too. Without an effect.
    cuptiActivityEnableAllSyncRecords = ALL_SYNC_RECORDS;
    /// Says whether allocations have the library that has asked for them. Without an effect: it is null.
    cuptiActivityEnableAllocationSource = ALLOCATION_SOURCE;
    /// Says whether events have a time of their device. Without an effect: it is 0.
    cuptiActivityEnableCudaEventDeviceTimestamps = EVENT_TIMESTAMPS;
    /// Says whether graphs that devices launch have records. Without an effect: there are none.
    cuptiActivityEnableDeviceGraph = DEVICE_GRAPH_TRACE;
    /// `NOT_SUPPORTED` if it is to be enabled: no device has an event system.
    cuptiActivityEnableHWTrace = ENABLE_HES;
    /// Says whether kernels have the attributes of their launches. Without an effect: there are none.
    cuptiActivityEnableLaunchAttributes = LAUNCH_ATTRIBUTES;
}
