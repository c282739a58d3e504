//! The OpenCL devices of this machine, for listing what can be recorded on them.
//!
//! The loader is opened by name, as programs find it. Each device gets a queue and a few markers, whose times show by
//! which clock the device stamps its work.

use super::device::{self, ClDevice, is_measured};
use super::ffi::*;
use super::functions::{AnyFunction, DispatchTable, FUNCTIONS, ask};
use super::loader::LIBRARY;
use core::ptr;
use gputrail_buffer::clock::{self, AgentClock, HostClock};
use gputrail_buffer::platform::system::loader_reason;
use gputrail_record::{AgentId, ClockPair, ClockSnapshot, DeviceTime, Ticks};
use libloading::os::unix::Library;

/// Number of markers from which a device's clock is determined.
const MARKERS: usize = 16;

/// A device, and the clock of its work.
#[derive(Clone, Debug)]
pub struct FoundDevice {
    /// Its description.
    pub device: ClDevice,
    /// The clock of its times, or the reason why work on it would have none: then only its calls can be recorded.
    pub clock: Result<AgentClock, NoTimes>,
}

/// The reason why a device's work has no times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTimes {
    /// The loader has no such function.
    #[error("the OpenCL library lacks {0}")]
    Missing(&'static str),
    /// A function failed.
    #[error("{0} failed with {1}")]
    Failed(&'static str, i32),
    /// The runtime's times of events are no readings of a clock.
    #[error("its OpenCL runtime gives numbers for times that it has not measured")]
    NotMeasured,
    /// The host's clocks could not be read together.
    #[error("the clocks of this machine cannot be compared")]
    Host,
}

/// The reason why there are no devices to list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnumerateError {
    /// There is no loader.
    #[error(
        "{0} (on Debian: apt install ocl-icd-libopencl1, and a driver such as pocl-opencl-icd)"
    )]
    NoLibrary(String),
    /// The loader lacks a function that every OpenCL has.
    #[error("{LIBRARY:?} is not an OpenCL library: it lacks {0}")]
    NotOpenCl(&'static str),
}

/// All devices of all platforms, with their clocks.
pub fn enumerate() -> Result<Vec<FoundDevice>, EnumerateError> {
    let api = load()?;
    let found = all(&api)?.into_iter().map(|handle| {
        let device = device::describe(&api, handle);
        let clock = find_clock(&api, handle, &device);
        FoundDevice { device, clock }
    });
    Ok(found.collect())
}

/// The descriptions of all devices of all platforms.
pub fn all_devices() -> Result<Vec<ClDevice>, EnumerateError> {
    let api = load()?;
    let devices = all(&api)?.into_iter();
    Ok(devices
        .map(|device| device::describe(&api, device))
        .collect())
}

pub(super) fn all(api: &DispatchTable) -> Result<Vec<cl_device_id>, EnumerateError> {
    let platforms = list(
        api.clGetPlatformIDs,
        "clGetPlatformIDs",
        |function, room, to, count| {
            // SAFETY: room for as many platforms as it says.
            unsafe { function(room, to, count) }
        },
    )?;
    let mut found = Vec::new();
    for platform in platforms {
        let devices = list(
            api.clGetDeviceIDs,
            "clGetDeviceIDs",
            |function, room, to, count| {
                // SAFETY: a platform of the loader, and room for as many devices as it says.
                unsafe { function(platform, CL_DEVICE_TYPE_ALL, room, to, count) }
            },
        )?;
        found.extend(devices);
    }
    Ok(found)
}

/// Opens the loader and asks it for its platforms, by which it begins: it reads which runtimes and layers there are.
pub(super) fn start_loader() -> Result<(), EnumerateError> {
    let api = load()?;
    let ask = api
        .clGetPlatformIDs
        .ok_or(EnumerateError::NotOpenCl("clGetPlatformIDs"))?;
    let mut count = 0;
    // SAFETY: no room for platforms, and a place for their number.
    unsafe { ask(0, ptr::null_mut(), &raw mut count) };
    Ok(())
}

/// The loader's functions; `None` for each that it lacks.
fn load() -> Result<DispatchTable, EnumerateError> {
    // SAFETY: opening a library runs its constructors: those of the loader that every program uses.
    let library = unsafe { Library::new(LIBRARY) }
        .map_err(|error| EnumerateError::NoLibrary(loader_reason(&error)))?;
    // SAFETY: optional function pointers, for which zeros are `None`.
    let mut api: DispatchTable = unsafe { core::mem::zeroed() };
    let entries = (&raw mut api).cast::<AnyFunction>();
    for (place, function) in FUNCTIONS.iter().enumerate() {
        // SAFETY: a function of that name has the type of its place, which is one of the table's.
        unsafe {
            let found = library.get::<AnyFunction>(function.name);
            *entries.add(place) = found.ok().and_then(|found| *found);
        }
    }
    // The functions stay valid: the library is never closed.
    let _ = library.into_raw();
    Ok(api)
}

/// A list that OpenCL returns in two calls, for its length and its elements. An error means that the list is empty.
fn list<F, T: Copy>(
    function: Option<F>,
    name: &'static str,
    ask: impl Fn(&F, cl_uint, *mut T, *mut cl_uint) -> cl_int,
) -> Result<Vec<T>, EnumerateError> {
    let function = function.ok_or(EnumerateError::NotOpenCl(name))?;
    let mut count = 0;
    if ask(&function, 0, ptr::null_mut(), &raw mut count) != CL_SUCCESS || count == 0 {
        return Ok(Vec::new());
    }
    let mut values: Vec<T> = Vec::with_capacity(count as usize);
    if ask(&function, count, values.as_mut_ptr(), &raw mut count) != CL_SUCCESS {
        return Ok(Vec::new());
    }
    // SAFETY: the function filled in the first `count` values, and no more than there is room for.
    unsafe { values.set_len((count as usize).min(values.capacity())) };
    Ok(values)
}

/// The clock that stamps the work of `device`.
fn find_clock(
    api: &DispatchTable,
    device: cl_device_id,
    known: &ClDevice,
) -> Result<AgentClock, NoTimes> {
    if !known.has_version(1, 2) {
        return Err(NoTimes::Missing("clEnqueueMarkerWithWaitList"));
    }
    let mut snapshots = vec![clock::snapshot()];
    let pairs: Result<Vec<ClockPair>, NoTimes> = with_queue(api, device, |queue| {
        (0..MARKERS).map(|_| marker(api, queue)).collect()
    })?;
    let pairs = pairs?;
    snapshots.push(clock::snapshot());
    let host = host(&snapshots)?;
    Ok(AgentClock::new(&host, &pairs))
}

fn host(snapshots: &[ClockSnapshot]) -> Result<HostClock, NoTimes> {
    HostClock::new(clock::init(), clock::frequency(), snapshots).map_err(|_| NoTimes::Host)
}

/// A function of the loader.
macro_rules! function {
    ($api:ident.$name:ident) => {
        $api.$name.ok_or(NoTimes::Missing(stringify!($name)))?
    };
}

/// Does `work` with a profiling queue of its own.
fn with_queue<R>(
    api: &DispatchTable,
    device: cl_device_id,
    work: impl FnOnce(cl_command_queue) -> R,
) -> Result<R, NoTimes> {
    let (create_context, release_context) = (
        function!(api.clCreateContext),
        function!(api.clReleaseContext),
    );
    let (create, release) = (
        function!(api.clCreateCommandQueue),
        function!(api.clReleaseCommandQueue),
    );
    let mut status = CL_SUCCESS;
    let (none, data) = (ptr::null(), ptr::null_mut());
    // SAFETY: one device, and a place for the status.
    let context =
        unsafe { create_context(none, 1, &raw const device, None, data, &raw mut status) };
    if context.is_null() {
        return Err(NoTimes::Failed("clCreateContext", status));
    }
    let profiling = cl_bitfield(CL_QUEUE_PROFILING_ENABLE);
    // SAFETY: a context with that device.
    let queue = unsafe { create(context, device, profiling, &raw mut status) };
    let result = if queue.is_null() {
        Err(NoTimes::Failed("clCreateCommandQueue", status))
    } else {
        let result = work(queue);
        // SAFETY: our queue, for the last time.
        unsafe { release(queue) };
        Ok(result)
    };
    // SAFETY: our context, for the last time.
    unsafe { release_context(context) };
    result
}

/// Puts a marker into `queue`, and pairs the time at which it was taken with the host's.
fn marker(api: &DispatchTable, queue: cl_command_queue) -> Result<ClockPair, NoTimes> {
    let (enqueue, finish) = (
        function!(api.clEnqueueMarkerWithWaitList),
        function!(api.clFinish),
    );
    let mut event = cl_event::NULL;
    let before = clock::now_ordered();
    // SAFETY: our queue, no events to wait for, a place for the marker's.
    let status = unsafe { enqueue(queue, 0, ptr::null(), &raw mut event) };
    let after = clock::now_ordered();
    if status != CL_SUCCESS {
        return Err(NoTimes::Failed("clEnqueueMarkerWithWaitList", status));
    }
    // SAFETY: our queue.
    unsafe { finish(queue) };
    let queued = ask!(api, clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED) -> u64);
    let end = ask!(api, clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END) -> u64);
    // SAFETY: our event, for the last time.
    unsafe { function!(api.clReleaseEvent)(event) };
    let queued = queued.ok_or(NoTimes::Failed(
        "clGetEventProfilingInfo",
        CL_PROFILING_INFO_NOT_AVAILABLE,
    ))?;
    if end.is_some_and(|end| !is_measured(end)) {
        return Err(NoTimes::NotMeasured);
    }
    Ok(pair(before, after, DeviceTime(queued)))
}

fn pair(before: Ticks, after: Ticks, device: DeviceTime) -> ClockPair {
    let mut pair = ClockPair::blank();
    (pair.before, pair.after, pair.device, pair.agent) = (before, after, device, AgentId(1));
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_with_their_clocks_or_it_is_said_why_not() {
        match enumerate() {
            Ok(found) => {
                for found in found {
                    assert!(!found.device.name.is_empty());
                    println!(
                        "{}: {:?}",
                        found.device.name,
                        found.clock.map(|clock| clock.describe())
                    );
                }
            }
            Err(error) => assert!(error.to_string().contains("OpenCL"), "{error}"),
        }
    }
}
