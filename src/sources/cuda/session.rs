//! The subscription of this process to CUPTI: what is enabled, the clock, flushes, and the end.
//!
//! Buffers are registered only after subscribing, so that another subscriber keeps its own. Callbacks are enabled one by one, for the
//! functions that a recording or tool wants at the time. The record of a graph as a whole, which CUPTI makes instead of those of its
//! nodes, is not asked for.
//!
//! CUPTI's clock is read between two ticks at the start, at most ten times a second while buffers come, and at the end. An activity
//! that CUPTI refuses is noted at the end with the reason; kernels and copies at once. An error that CUPTI itself reports is a message
//! and a note, a warning a note.

use super::activity;
use super::callbacks;
use super::counting;
use super::counts;
use super::cupti;
use super::ffi::{self, Cupti, call};
use super::functions::{self, callback_domain};
use super::inner;
use super::inside::Inside;
use super::library::CUPTI_VARIABLE;
use super::objects;
use super::records::Strides;
use super::resources;
use super::rounds;
use super::sampling;
use crate::opencl;
use core::ffi::{CStr, c_void};
use gputrail_buffer::clock;
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::{OnceBox, QuietMutex};
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_collect::switchboard::Switchboard;
use gputrail_collect::unified_memory;
use gputrail_interface::operations::resource;
use gputrail_record::{
    Agent, AgentId, ClockPair, DeviceTime, Domain, Kind, NoteKind, Operation, Ticks,
};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Attempts at a narrow reading of the clock.
const TRIES: usize = 4;

/// The activities that CUPTI records, and the kinds of records that are made of them.
const ACTIVITIES: [(u32, Kind, &str); 15] = [
    (ffi::CONCURRENT_KERNEL, Kind::KERNEL_DISPATCH, "kernels"),
    (ffi::STREAM, Kind::KERNEL_DISPATCH, "creations of streams"),
    (ffi::MEMCPY, Kind::MEMORY_COPY, "copies"),
    (
        ffi::MEMCPY_PEER,
        Kind::MEMORY_COPY,
        "copies between devices",
    ),
    (ffi::MEMSET, Kind::MEMORY_SET, "fills"),
    (ffi::MEMORY, Kind::MEMORY_ALLOCATION, "allocations"),
    (ffi::MEMORY_POOL, Kind::MEMORY_ALLOCATION, "memory pools"),
    (ffi::SYNCHRONIZATION, Kind::SYNCHRONIZATION, "waits"),
    (ffi::CUDA_EVENT, Kind::SYNCHRONIZATION, "CUDA events"),
    (
        ffi::UNIFIED_MEMORY_COUNTER,
        Kind::UNIFIED_MEMORY_COUNTER,
        "managed memory",
    ),
    (
        ffi::ENVIRONMENT,
        Kind::ENVIRONMENT,
        "clocks and temperatures",
    ),
    (ffi::FUNCTION, Kind::KERNEL_SYMBOL, "functions of modules"),
    (ffi::OVERHEAD, Kind::OVERHEAD, "overhead"),
    (ffi::JIT, Kind::OVERHEAD, "compilations of kernels"),
    (
        ffi::EXTERNAL_CORRELATION,
        Kind::EXTERNAL_CORRELATION,
        "external ids of the program",
    ),
];

/// The process's use of CUPTI.
pub(super) struct Session {
    pub cupti: Cupti,
    pub strides: Strides,
    /// CUPTI's clock when the session began: what ended before is left out.
    pub begin: u64,
    /// The host's ticks and CUPTI's clock when the session began.
    pub first_reading: Option<Reading>,
    subscriber: Subscriber,
    /// The process that made it. It does not work in forked children.
    process: u32,
    enabled: QuietMutex<Enabled>,
    /// Changes of what is wanted that are not enabled yet. The thread that finds 0 enables them all: CUPTI is not called
    /// with `enabled` locked.
    changes: AtomicU64,
    last_reading: AtomicU64,
}

struct Subscriber(*mut c_void);

// SAFETY: a handle that CUPTI takes on any thread, in one call at a time: `Session::enable` lets one thread in.
unsafe impl Send for Subscriber {}
// SAFETY: as above.
unsafe impl Sync for Subscriber {}

/// What is enabled in CUPTI.
#[derive(Default)]
pub struct Enabled {
    operations: std::collections::HashSet<Operation>,
    told: resources::Wanted,
    activities: [bool; ACTIVITIES.len()],
    /// The statuses with which CUPTI refused activities. Some it records only once the driver is initialised.
    refused: [Option<ffi::Status>; ACTIVITIES.len()],
    /// Whether a refusal has been reported.
    has_complained: bool,
}

static SESSION: OnceBox<Session> = OnceBox::new();

/// The session of this process.
pub(super) fn current_session() -> Option<&'static Session> {
    SESSION
        .get()
        .filter(|session| session.process == std::process::id())
}

/// A reading of CUPTI's clock between two ticks.
#[derive(Copy, Clone, Debug)]
pub(super) struct Reading {
    before: Ticks,
    time: u64,
    after: Ticks,
}

impl Reading {
    /// The reading as a pair of the clock of `agent`.
    pub fn of_agent(self, agent: AgentId) -> ClockPair {
        let mut pair = ClockPair::blank();
        (pair.before, pair.after) = (self.before, self.after);
        (pair.device, pair.agent) = (DeviceTime(self.time), agent);
        pair
    }

    /// The host's ticks at a time of CUPTI's clock, by the `frequency` of ticks.
    pub fn to_ticks(self, time: u64, frequency: u64) -> Ticks {
        const SECOND: i128 = 1_000_000_000;
        let since = i128::from(time) - i128::from(self.time);
        let ticks = since * i128::from(frequency) / SECOND;
        let middle = i128::from(self.before.0) + i128::from(self.after - self.before) / 2;
        Ticks((middle + ticks).clamp(1, i128::from(u64::MAX)) as u64)
    }
}

/// Reads CUPTI's clock: the narrowest of several attempts.
fn read_clock(cupti: &Cupti) -> Option<Reading> {
    let readings = (0..TRIES).filter_map(|_| {
        let mut time = 0;
        let before = clock::now_ordered();
        // SAFETY: CUPTI writes to a local.
        let status = unsafe { call!(cupti, cuptiGetTimestamp(&raw mut time)) }?;
        let after = clock::now_ordered();
        (status == ffi::SUCCESS && time != 0).then_some(Reading {
            before,
            time,
            after,
        })
    });
    readings.min_by_key(|reading| reading.after - reading.before)
}

impl Session {
    /// A reading of the clock, at most ten times a second.
    pub fn reading_if_due(&self) -> Option<Reading> {
        let (now, last) = (clock::now().0, self.last_reading.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(last) > clock::frequency() / 10;
        let taken = is_due
            && self
                .last_reading
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        taken.then(|| self.reading()).flatten()
    }

    /// A reading of the clock.
    pub fn reading(&self) -> Option<Reading> {
        read_clock(&self.cupti)
    }

    /// Enables in CUPTI what `board` wants, and disables the rest: a call that nobody wants costs nothing.
    pub fn enable(&self, board: &Switchboard) {
        // CUPTI may call the driver on this thread.
        let _inside = Inside::begin();
        let any = Operation {
            domain: Domain::CUDA_DRIVER,
            number: 1,
        };
        if board.interest(any).is_late() {
            // The process ends: calls are only counted.
            return;
        }
        if self.changes.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut enabled = std::mem::take(&mut *self.enabled.lock());
        loop {
            let seen = self.changes.load(Ordering::Acquire);
            self.enable_all(board, &mut enabled);
            // Before others may take it.
            *self.enabled.lock() = std::mem::take(&mut enabled);
            let done = self
                .changes
                .compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed);
            if done.is_ok() {
                return;
            }
            enabled = std::mem::take(&mut *self.enabled.lock());
        }
    }

    fn enable_all(&self, board: &Switchboard, enabled: &mut Enabled) {
        for domain in [Domain::CUDA_DRIVER, Domain::CUDA_RUNTIME] {
            for function in functions::all(domain) {
                let operation = function.info.operation;
                let is_needed = counting::is_active() && counting::needs(function.effect);
                let wanted = is_needed || !board.interest(operation).is_none();
                if wanted != enabled.operations.contains(&operation) {
                    self.enable_callback(wanted, callback_domain(domain), operation.number.into());
                    if wanted {
                        enabled.operations.insert(operation)
                    } else {
                        enabled.operations.remove(&operation)
                    };
                }
            }
        }
        resources::enable(self, board, &mut enabled.told);
        for (place, (activity, kind, what)) in ACTIVITIES.into_iter().enumerate() {
            let wanted = match kind {
                // All functions of a module, however many: for those who ask to be told.
                Kind::KERNEL_SYMBOL => board
                    .interest(resource::KERNEL_SYMBOL_REGISTERED)
                    .has_subscribers(),
                kind => !board.buffers_for(kind).is_none(),
            };
            if wanted == enabled.activities[place] {
                continue;
            }
            let status = if wanted {
                self.enable_activity(activity)
            } else {
                // SAFETY: a number alone.
                unsafe { call!(self.cupti, cuptiActivityDisable(activity)) }
            };
            let status = status.unwrap_or(ffi::NOT_IMPLEMENTED);
            enabled.refused[place] = (wanted && status != ffi::SUCCESS).then_some(status);
            if status == ffi::SUCCESS {
                enabled.activities[place] = wanted;
            }
            // Not all devices and versions have the others; a note says so at the end.
            let is_needed = activity == ffi::CONCURRENT_KERNEL || activity == ffi::MEMCPY;
            if is_needed
                && enabled.refused[place].is_some()
                && !std::mem::replace(&mut enabled.has_complained, true)
            {
                message(format_args!("{}", refusal(activity, what, status)));
            }
        }
    }

    fn enable_activity(&self, activity: u32) -> Option<ffi::Status> {
        match activity {
            ffi::UNIFIED_MEMORY_COUNTER => {
                self.configure_unified_memory()?;
            }
            ffi::CUDA_EVENT => {
                // Since 13.0. Without their times, events are no more than the calls that record them.
                // SAFETY: a flag alone.
                let status =
                    unsafe { call!(self.cupti, cuptiActivityEnableCudaEventDeviceTimestamps(1)) }?;
                if status != ffi::SUCCESS {
                    return Some(status);
                }
            }
            _ => {}
        }
        // SAFETY: a number alone. The records come in buffers of ours: the functions for them were registered in
        // `subscribe`.
        unsafe { call!(self.cupti, cuptiActivityEnable(activity)) }
    }

    /// Says which counters of managed memory are wanted on all devices, and on those that differ. Migrations (1, 2, 8) always
    /// are: they are copies.
    fn configure_unified_memory(&self) -> Option<ffi::Status> {
        const ONE_DEVICE: u32 = 1;
        const ALL_DEVICES: u32 = 2;
        const MIGRATIONS: u32 = 1 << 1 | 1 << 2 | 1 << 8;
        let names = process::board().map(|board| board.names());
        let mut counters = unified_memory::with_enabled(|enabled| {
            let devices = enabled.of_agents.iter().filter_map(|(agent, mask)| {
                let agent: Agent = names?.get(agent.0)?;
                (agent.domain == Domain::CUDA_DRIVER).then_some((
                    ONE_DEVICE,
                    agent.handle as u32,
                    *mask,
                ))
            });
            let all = std::iter::once((ALL_DEVICES, 0, enabled.all)).chain(devices);
            let of_mask = |(scope, device, mask): (u32, u32, u32)| {
                (1..=8).map(move |counter| ffi::UnifiedMemoryConfig {
                    scope,
                    counter,
                    device,
                    enable: u32::from((mask | MIGRATIONS) >> counter & 1 == 1),
                })
            };
            all.flat_map(of_mask).collect::<Vec<_>>()
        });
        let count = counters.len() as u32;
        // SAFETY: `counters` has `count` entries, which CUPTI reads in the call.
        unsafe {
            call!(
                self.cupti,
                cuptiActivityConfigureUnifiedMemoryCounter(counters.as_mut_ptr(), count)
            )
        }
    }

    /// The version of CUPTI's interface.
    pub fn version(&self) -> u32 {
        version(&self.cupti)
    }

    pub fn enable_callback(&self, wanted: bool, domain: u32, number: u32) {
        // SAFETY: the subscription never ends; the rest are numbers, which CUPTI checks.
        unsafe {
            call!(
                self.cupti,
                cuptiEnableCallback(wanted.into(), self.subscriber.0, domain, number)
            )
        };
    }
}

/// The sentence about an activity that CUPTI does not record.
fn refusal(activity: u32, what: &str, status: ffi::Status) -> String {
    format!(
        "CUPTI records no {what} (activity {activity}): {}",
        why(status)
    )
}

/// The driver is initialised, or a context was created: names the devices, and enables what CUPTI refused before.
pub(super) fn driver_changed() {
    objects::find_agents();
    if let (Some(session), Some(board)) = (current_session(), process::board()) {
        session.enable(board);
    }
}

/// CUPTI says that it cannot do something: the trace has its words, and the user gets them unless they are a warning.
///
/// # Safety
///
/// `data` is null or CUPTI's description of it (`CUpti_StateData`), valid during the call.
pub(super) unsafe fn state(number: u32, data: *const c_void) {
    const MAX_REPORTED: u64 = 16;
    static REPORTED: AtomicU64 = AtomicU64::new(0);
    // SAFETY: `data` is null or CUPTI's description of the error (`CUpti_StateData`), which is valid during the call.
    let Some(state) = (unsafe { data.cast::<ffi::StateData>().as_ref() }) else {
        return;
    };
    if REPORTED.fetch_add(1, Ordering::Relaxed) >= MAX_REPORTED {
        return;
    }
    let words = match state.message.is_null() {
        true => c"an error without words",
        // SAFETY: CUPTI's text.
        false => unsafe { CStr::from_ptr(state.message) },
    };
    let hint = match number {
        ffi::WARNING => "",
        _ => "; records may be missing from here on",
    };
    let text = format!(
        "CUPTI: {} (CUPTI status {}){hint}",
        words.to_string_lossy(),
        state.status
    );
    if let Some(names) = process::names() {
        names.note(NoteKind::OTHER, &text);
    }
    if number != ffi::WARNING {
        message(format_args!("{text}"));
    }
}

/// Finds libcupti and subscribes.
pub(super) fn begin(board: &Switchboard) -> io::Result<()> {
    if let Some(session) = SESSION.get() {
        // A forked child cannot use CUDA if its parent has initialised it.
        if session.process == std::process::id() {
            watch(board, session);
        }
        return Ok(());
    }
    let session = subscribe().map_err(io::Error::other)?;
    let session = SESSION.get_or_init(|| session);
    watch(board, session);
    rounds::begin();
    Ok(())
}

/// Has CUPTI follow the changes of what is wanted.
fn watch(board: &Switchboard, session: &'static Session) {
    for number in ffi::NEEDED {
        session.enable_callback(true, ffi::RESOURCE, number);
    }
    for number in ffi::STATES {
        session.enable_callback(true, ffi::STATE, number);
    }
    board.on_change(|| {
        if let (Some(session), Some(board)) = (current_session(), process::board()) {
            session.enable(board);
        }
    });
    let names = board.names();
    names.note(NoteKind::OTHER, &describe(session));
}

fn describe(session: &Session) -> String {
    let version = session.version();
    let sizes = session.strides.describe();
    format!("CUPTI API version {version}; sizes of activity records by kind: {sizes}")
}

fn subscribe() -> Result<Session, String> {
    let found = cupti::open().map_err(|error| error.to_string())?;
    // The functions stay valid: the library is never closed.
    let cupti = Cupti::of(&found.library);
    if let Some(named) = &found.overruled {
        message(format_args!(
            "{CUPTI_VARIABLE}={} is not used: the process has loaded {} already, and two copies disturb each other",
            named.display(),
            found.path.display()
        ));
    }
    let path = found.path.display();
    let refused = |what: &str, status: Option<i32>| match status {
        Some(ffi::SUCCESS) => Ok(()),
        Some(status @ (ffi::NOT_COMPATIBLE | ffi::NOT_INITIALIZED | ffi::UNKNOWN)) => Err(format!(
            "{path}: {what}: {}; {}",
            why(status),
            found.describe(version(&cupti))
        )),
        Some(status) => Err(format!("{path}: {what}: {}", why(status))),
        None => Err(format!("{path} is not a CUPTI library: it lacks {what}")),
    };
    let strides = Strides::learn(&cupti);
    let mut subscriber = core::ptr::null_mut();
    // First of all: buffers that are registered while somebody else subscribes would take that one's records.
    // SAFETY: CUPTI writes the handle to a local. `callback` takes what CUPTI calls it with, at any time until the process
    // ends, and does not use the pointer that is null here.
    let status = unsafe {
        call!(
            cupti,
            cuptiSubscribe(
                &raw mut subscriber,
                callbacks::callback,
                core::ptr::null_mut()
            )
        )
    };
    refused("cuptiSubscribe", status)?;
    activity::open().map_err(|error| error.to_string())?;
    // SAFETY: both functions take what CUPTI calls them with, from now on: the memory of the buffers is mapped
    // (`activity::open`) and stays.
    let status = unsafe {
        call!(
            cupti,
            cuptiActivityRegisterCallbacks(activity::requested, activity::completed)
        )
    };
    refused("cuptiActivityRegisterCallbacks", status)?;
    let latency = gputrail_collect::attributes::latency_times();
    // SAFETY: a flag alone.
    unsafe { call!(cupti, cuptiActivityEnableLatencyTimestamps(latency.into())) };
    functions::find(&cupti);
    function_names::find_demangler();
    let first_reading = read_clock(&cupti);
    Ok(Session {
        begin: first_reading.map_or(0, |reading| reading.time),
        first_reading,
        cupti,
        strides,
        subscriber: Subscriber(subscriber),
        process: std::process::id(),
        enabled: QuietMutex::default(),
        changes: AtomicU64::new(0),
        last_reading: AtomicU64::new(0),
    })
}

/// The version of the library's API.
fn version(cupti: &Cupti) -> u32 {
    let mut version = 0;
    // SAFETY: CUPTI writes to a local.
    unsafe { call!(cupti, cuptiGetVersion(&raw mut version)) };
    version
}

/// The meaning of a status of CUPTI.
pub(super) fn why(status: i32) -> String {
    let meaning = match status {
        ffi::NOT_IMPLEMENTED => "this version lacks the function",
        1 => "an argument is not valid",
        ffi::NOT_COMPATIBLE => "it does not fit the driver",
        ffi::NOT_INITIALIZED => "CUDA is not initialized, or there is no GPU",
        21 => "this version does not know the kind",
        7 => "it is not possible now",
        27 | 33 | 42 | 43 | 45 => "the device or its driver does not support it",
        35 | 40 => {
            "the driver allows it to administrators only: run as root or with CAP_SYS_ADMIN, or set \
             NVreg_RestrictProfilingToAdminUsers=0 for the driver's module (`options nvidia \
             NVreg_RestrictProfilingToAdminUsers=0` in a file of /etc/modprobe.d, then restart)"
        }
        ffi::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            "another profiler observes CUDA in this process (PyTorch's profiler, Nsight Systems or Nsight Compute, \
             perhaps by CUDA_INJECTION64_PATH); the program goes on, without CUDA in its trace"
        }
        ffi::UNKNOWN => "an unknown error, such as that of a libcupti that does not fit the driver",
        _ => "an unknown error",
    };
    format!("{meaning} (CUPTI status {status})")
}

/// Has CUPTI deliver the records of completed work.
pub(super) fn flush() {
    flush_with(0);
}

fn flush_with(flag: u32) {
    // CUPTI's own callbacks must not flush.
    if let Some(session) = current_session().filter(|_| !Inside::is_set()) {
        let _inside = Inside::begin();
        // SAFETY: a flag alone. CUPTI returns buffers to `activity::completed`, on this thread too.
        unsafe { call!(session.cupti, cuptiActivityFlushAll(flag)) };
    }
}

/// Notes a fact about the recording. The summary of a recording says what is missing; a process that only tools observe says
/// it itself.
pub(super) fn note(names: &Names, text: &str, is_loss: bool) {
    let what = if is_loss {
        NoteKind::MISSING
    } else {
        NoteKind::OTHER
    };
    names.note(what, text);
    if is_loss && process::recorder().is_none() {
        message(format_args!("{text}"));
    }
}

/// Has CUPTI deliver all records, and notes what is missing from them.
pub(super) fn end() {
    let Some(session) = current_session() else {
        return;
    };
    rounds::end();
    sampling::end(session);
    counting::end(session);
    flush_with(ffi::FLUSH_FORCED);
    if let Some(thread) = process::current() {
        inner::give_up(thread);
    }
    activity::read_clocks();
    let Some(names) = process::names() else {
        return;
    };
    let refused = session.enabled.lock().refused;
    for ((activity, _, what), status) in ACTIVITIES.into_iter().zip(refused) {
        if let Some(status) = status {
            names.note(NoteKind::OTHER, &refusal(activity, what, status));
        }
    }
    for (text, is_loss) in counts::describe() {
        note(names, &text, is_loss);
    }
    // NVIDIA's driver of OpenCL initialises CUDA.
    if let Some(loader) = opencl::loader_without_layers() {
        let loader = loader.display();
        let text = format!(
            "calls of OpenCL: {loader} does not support layers; ocl-icd does since version 2.3.0, Khronos' loader since 2021"
        );
        note(names, &text, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_cupti_become_ticks_by_the_nearest_reading() {
        let reading = Reading {
            before: Ticks(1_000_000_000),
            time: 5_000_000_000,
            after: Ticks(1_000_000_100),
        };
        let ticks = |time| reading.to_ticks(time, 2_000_000_000);
        assert_eq!(ticks(5_000_000_000), Ticks(1_000_000_050));
        assert_eq!(ticks(6_000_000_000), Ticks(3_000_000_050));
        assert_eq!(ticks(0), Ticks(1));
    }

    #[test]
    fn another_profiler_is_named() {
        assert!(why(39).contains("PyTorch"));
        assert!(why(999).contains("999"));
    }
}
