//! Counters of each kernel of CUDA's devices, and of ranges of markers, by CUPTI's range profiler.
//!
//! While an agent is counted, CUPTI lets kernels of a context run one after the other, and each as often as its metrics take
//! passes. Launches are let through one at a time: a thread owns the counters from the enter of its launch, where the profiler
//! begins, to the exit, where it ends and the values of the kernel are read. Several kernels from begin to end took a fifth less
//! time on an H200, and are not safe: CUPTI 13.0 corrupted the heap of a program of PyTorch whose kernels it recorded as well, and had values of kernels that
//! nobody launched.
//!
//! A range of markers that is counted becomes a range of CUPTI's in each context that launches a kernel within: it is pushed
//! before the first launch, and popped and read when the range ends.
//!
//! Devices that are too old for it are counted by the Event and Metric APIs (`events`): groups of events are enabled at the enter
//! of a launch, and read at its exit, when the kernel has ended. CUPTI computes metrics from them, and rates from the time of the
//! kernel, which comes later with its activity record ([`note_time`]).
//!
//! Kernels whose calls and dispatches nobody records have values with a correlation id and a work id of their own.
//!
//! As in `sampling`, CUPTI is called with the state locked, and callbacks wait no longer than [`PATIENCE`].

mod device;
pub(super) mod ffi;
pub(super) mod host;
mod range;
#[cfg(test)]
mod tests;

pub(super) use device::offer;

use super::cupti;
use super::enabling::is_counting;
use super::events::groups::{EventGroups, EventValues};
use super::events::{CuptiCounter, DeviceEvents};
use super::ffi::{CONTEXT_DESTROYED, CallData, Cuda, SUCCESS, call};
use super::functions::{CudaFunction, Effect};
use super::inner;
use super::inside::InsideCupti;
use super::objects::OBJECTS;
use super::recent::{RECENT, note_unrecorded};
use super::sampling::ffi::Resource;
use super::session::{CuptiSession, current_session};
use core::ffi::{CStr, c_void};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::system::thread_id;
use gputrail_collect::counting::CountingDelivery;
use gputrail_collect::counting::values::{Subject, ValueRecords};
use gputrail_collect::process;
use gputrail_record::{AgentId, CounterInvalid, NoteKind, count};
use range::{ProfiledRanges, RangeProfiler};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The longest time that a launch waits for that of another thread: CUPTI saves and restores memory for each pass.
const LONGEST_LAUNCH: Duration = Duration::from_secs(10);
/// The longest time that a callback about a context waits.
const PATIENCE: Duration = Duration::from_secs(1);

static STATE: PerProcess<CountingState> = PerProcess::new();
/// The most kernels whose values wait for their times.
const MOST_READ: usize = 4096;

/// The times of kernels that were counted by events, by CUPTI's ids of their calls. Locked after the state, and never while CUPTI
/// is called.
static TIMES: PerProcess<HashMap<u32, u64>> = PerProcess::new();
/// Whether a device is counted by events.
static COUNTS_EVENTS: AtomicBool = AtomicBool::new(false);
/// The thread whose launch is in progress; 0 if there is none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The counting of this process.
#[derive(Default)]
struct CountingState {
    agents: HashMap<AgentId, ProfiledAgent>,
    contexts: Vec<CountedContext>,
    /// Kernels that were counted by events.
    read: Vec<ReadKernel>,
    /// Launches of graphs, which were not counted.
    graphs: u64,
    /// Kernels whose values did not come.
    missing: u64,
    has_complained: bool,
}

struct ProfiledAgent {
    ranges: ProfiledRanges,
    /// The name of the range that is counted now.
    range: Option<CString>,
    /// The values of contexts that were destroyed in this range.
    ended: Vec<RangeValues>,
    records: Arc<ValueRecords>,
    names: Vec<CString>,
    by: CountedBy,
    started: Option<CountingDelivery>,
}

/// The interface of CUPTI that counts on a device.
#[derive(Clone)]
enum CountedBy {
    /// The range profiler, for metrics of this chip.
    Ranges(CString),
    /// The Event and Metric APIs.
    Events(Arc<DeviceEvents>),
    /// None.
    Nothing,
}

impl ProfiledAgent {
    /// The chip of a device that the range profiler counts on.
    fn chip(&self) -> &CStr {
        match &self.by {
            CountedBy::Ranges(chip) => chip,
            CountedBy::Events(_) | CountedBy::Nothing => c"",
        }
    }

    /// The events and metrics of the Event and Metric APIs that are counted, in the order of the set's names.
    fn counted(&self, device: &DeviceEvents) -> Vec<CuptiCounter> {
        let names = self.names.iter().filter_map(|name| name.to_str().ok());
        let found = names.filter_map(|name| device.find(name));
        found.map(|found| found.counted.clone()).collect()
    }
}

/// A kernel whose events have been read, and whose metrics wait for its time.
struct ReadKernel {
    /// CUPTI's id of the call.
    call: u32,
    agent: AgentId,
    subject: Subject,
    values: EventValues,
}

struct CountedContext {
    handle: usize,
    agent: AgentId,
    /// `None` if CUPTI refuses, and where the groups count.
    profiler: Option<RangeProfiler>,
    /// The groups of events of a device that is counted by them.
    groups: Option<EventGroups>,
}

/// The values of a range, or why there are none.
type RangeValues = Result<Vec<f64>, CounterInvalid>;

/// Takes the turn to launch or to read values. `false`: another thread has not given it back in time.
fn acquire() -> bool {
    let (me, begin) = (thread_id(), Instant::now());
    loop {
        let taken = OWNER.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
        match taken {
            Ok(_) => return true,
            Err(owner) if owner == me => return true,
            Err(_) if begin.elapsed() > LONGEST_LAUNCH => return false,
            Err(_) => std::thread::sleep(Duration::from_micros(20)),
        }
    }
}

fn release() {
    let _ = OWNER.compare_exchange(thread_id(), 0, Ordering::Release, Ordering::Relaxed);
}

/// The functions of the driver.
fn driver() -> Option<&'static Cuda> {
    static DRIVER: OnceLock<Option<Cuda>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let library = cupti::driver()?;
        let driver = Cuda::of(&library);
        // The program has loaded it, and it stays.
        let _ = library.into_raw();
        Some(driver)
    });
    driver.as_ref()
}

/// Waits for the stream that a call has launched work into.
fn wait_for_stream(function: &CudaFunction, data: &CallData) {
    // SAFETY: CUPTI's description of a call of this function.
    let stream = unsafe { inner::launch_stream(function, data) };
    let stream = core::ptr::without_provenance_mut(stream as usize);
    if let Some(driver) = driver() {
        // SAFETY: the stream of a launch that has succeeded and has not returned to the program.
        unsafe { call!(driver, cuStreamSynchronize(stream)) };
    }
}

/// Whether a call launches a kernel into a stream that is being captured: it becomes a node of a graph, and does not run.
fn is_captured(function: &CudaFunction, data: &CallData) -> bool {
    let driver = driver();
    // SAFETY: CUPTI's description of a call of this function.
    let stream = unsafe { inner::launch_stream(function, data) };
    let stream = core::ptr::without_provenance_mut(stream as usize);
    let mut status = 0;
    let asked = driver.and_then(|driver| {
        // SAFETY: the stream that the program passes to the driver in this call; the driver writes to a local.
        unsafe { call!(driver, cuStreamIsCapturing(stream, &raw mut status)) }
    });
    asked == Some(SUCCESS) && status != 0
}

/// A launch begins.
#[cold]
pub(super) fn before(function: &CudaFunction, data: &CallData) {
    let Some(session) = current_session() else {
        return;
    };
    let effect = function.effect;
    if effect != Effect::LaunchGraph && is_captured(function, data) {
        return;
    }
    note_unrecorded(data.correlation_id);
    if !acquire() {
        // The owner has left its call by an exception or a longjmp, or waits.
        OWNER.store(thread_id(), Ordering::Relaxed);
    }
    let mut state = STATE.lock();
    let state = &mut *state;
    let Some(place) = state.context(session, data.context) else {
        return;
    };
    let agent = state.contexts[place].agent;
    let Some(counted) = state.agents.get(&agent) else {
        return;
    };
    let name = match (counted.ranges, &counted.range) {
        (ProfiledRanges::Kernels, _) if effect == Effect::LaunchGraph => {
            state.graphs += 1;
            return;
        }
        (ProfiledRanges::Kernels, _) => c"",
        (ProfiledRanges::Pushed, Some(name)) => name,
        (ProfiledRanges::Pushed, None) => return,
    };
    let context = &mut state.contexts[place];
    if let Some(groups) = &mut context.groups {
        if let Err(refused) = groups.enable() {
            context.groups = None;
            state.complain(&host::FailedStep::from(refused).to_string());
        }
        return state.write_read(false);
    }
    if let Some(profiler) = context.profiler.as_mut().filter(|one| !one.is_begun)
        && let Err(failed) = profiler.begin(&session.cupti, name)
    {
        give_up(&mut state.contexts[place].profiler, session);
        state.complain(&failed.to_string());
    }
}

/// Disables a profiler that has failed. Its memory is CUPTI's to write to until then.
fn give_up(profiler: &mut Option<RangeProfiler>, session: &CuptiSession) {
    if let Some(profiler) = profiler.take() {
        profiler.disable(&session.cupti);
    }
}

/// A launch has ended.
#[cold]
pub(super) fn after(function: &CudaFunction, data: &CallData) {
    if OWNER.load(Ordering::Relaxed) != thread_id() {
        return;
    }
    // SAFETY: null, or the place of the function's status, which the call has stored.
    let status = unsafe { data.return_value.cast::<i32>().as_ref() };
    let status = status.copied().unwrap_or(0);
    if let Some(session) = current_session() {
        let mut state = STATE.lock();
        let handle = data.context as usize;
        let found = state.contexts.iter().position(|one| one.handle == handle);
        let is_kernel = function.effect != Effect::LaunchGraph;
        if let Some(place) = found
            && state.contexts[place].groups.is_some()
        {
            // Work that is not counted does not run beside a kernel that is.
            if status == 0 {
                wait_for_stream(function, data);
            }
            state.read_groups(place, data.correlation_id, is_kernel && status == 0);
        }
        if let Some(place) = found {
            let call = RECENT.get(data.correlation_id).unwrap_or_default();
            let kernel = Subject {
                work: call.work,
                correlation: call.correlation,
                ..Subject::default()
            };
            let has_run = is_kernel && status == 0;
            state.read_kernel(session, place, has_run.then_some(kernel));
        }
    }
    release();
}

/// A callback of CUPTI about a context.
///
/// # Safety
///
/// `data` is null or what CUPTI passes with this number, valid during the call.
pub(super) unsafe fn resource(number: u32, data: *const c_void) {
    if number != CONTEXT_DESTROYED || !is_counting() {
        return;
    }
    // SAFETY: `data` is null or a `CUpti_ResourceData`, as CUPTI passes when a context is destroyed; it is valid during the
    // call.
    let resource = unsafe { data.cast::<Resource>().as_ref() };
    if let (Some(resource), Some(session)) = (resource, current_session()) {
        let handle = resource.context as usize;
        let begin = Instant::now();
        // The driver may hold locks that CUPTI waits for on a thread that reads values.
        let locked = loop {
            match STATE.try_lock() {
                Some(state) => break Some(state),
                None if begin.elapsed() > PATIENCE => break None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        match locked {
            Some(mut state) => state.disable(session, |context| context.handle == handle),
            None => report("values of kernels of a context that is destroyed may be missing"),
        }
    }
}

impl CountingState {
    /// The place of a context whose agent is counted.
    fn context(&mut self, session: &CuptiSession, handle: *mut c_void) -> Option<usize> {
        let known = self
            .contexts
            .iter()
            .position(|one| one.handle == handle as usize);
        if known.is_some() || handle.is_null() {
            return known;
        }
        // SAFETY: the context of the call in progress.
        let device = unsafe { session.cupti.device_of(handle) }.unwrap_or(0);
        let agent = OBJECTS.lock().agent(process::names()?, device);
        let counted = self
            .agents
            .get(&agent)
            .filter(|one| one.started.is_some())?;
        let (names, ranges) = (counted.names.clone(), counted.ranges);
        let (mut profiler, mut groups) = (None, None);
        let made = match &counted.by {
            CountedBy::Ranges(chip) => {
                RangeProfiler::enable(&session.cupti, handle, chip, names, ranges)
                    .map(|made| profiler = Some(made))
            }
            CountedBy::Events(device) => {
                let wanted = counted.counted(device);
                EventGroups::create(device, handle, &wanted)
                    .map(|made| groups = Some(made))
                    .map_err(host::FailedStep::from)
            }
            CountedBy::Nothing => Ok(()),
        };
        if let Err(failed) = made {
            self.complain(&failed.to_string());
        }
        self.contexts.push(CountedContext {
            handle: handle as usize,
            agent,
            profiler,
            groups,
        });
        Some(self.contexts.len() - 1)
    }

    /// Says once why kernels are not counted.
    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            report(&format!("kernels of CUDA are not counted: {why}"));
        }
    }

    /// Ends the profiler of a context after a launch, and writes the values of its kernel, unless the launch has failed.
    fn read_kernel(&mut self, session: &CuptiSession, place: usize, kernel: Option<Subject>) {
        let context = &mut self.contexts[place];
        let of_kernel =
            |one: &&mut RangeProfiler| one.is_begun && one.ranges() == ProfiledRanges::Kernels;
        let (Some(profiler), Some(counted)) = (
            context.profiler.as_mut().filter(of_kernel),
            self.agents.get(&context.agent),
        ) else {
            return;
        };
        let ended = profiler.end(&session.cupti, counted.chip());
        let values = match &ended {
            Ok(values) if values.len() == 1 => Ok(&values[0][..]),
            // Another one was launched unseen: nothing tells which is whose.
            Ok(values) if values.len() > 1 => Err(CounterInvalid::NOT_SERIALIZED),
            _ => Err(CounterInvalid::PASS_FAILED),
        };
        if let (Some(kernel), Some(delivery), Some(thread)) =
            (kernel, counted.started, process::current())
        {
            self.missing += u64::from(values.is_err());
            thread.with(|host| {
                for record in counted.records.of_numbers(&kernel, values) {
                    host.write_to(delivery.buffers, record);
                }
            });
        }
        if let Err(failed) = ended {
            give_up(&mut context.profiler, session);
            self.complain(&failed.to_string());
        }
    }

    /// Reads the groups of a context after a call, which has launched a kernel or not.
    fn read_groups(&mut self, place: usize, call: u32, is_kernel: bool) {
        let context = &mut self.contexts[place];
        let Some(groups) = context.groups.as_mut().filter(|one| one.is_enabled) else {
            return;
        };
        let read = groups.read();
        if !is_kernel {
            return;
        }
        let recent = RECENT.get(call).unwrap_or_default();
        let subject = Subject {
            work: recent.work,
            correlation: recent.correlation,
            ..Subject::default()
        };
        match read {
            Ok(values) => self.read.push(ReadKernel {
                call,
                agent: context.agent,
                subject,
                values,
            }),
            Err(refused) => {
                context.groups = None;
                self.missing += 1;
                self.complain(&host::FailedStep::from(refused).to_string());
            }
        }
    }

    /// Writes the values of kernels whose times are known, or of all of them.
    fn write_read(&mut self, all: bool) {
        if self.read.is_empty() {
            return;
        }
        let times = TIMES.lock();
        let agents = &self.agents;
        let mut ready = Vec::new();
        let more = self.read.len() > MOST_READ;
        self.read.retain(|kernel| {
            let time = times.get(&kernel.call).copied();
            let Some(counted) = agents
                .get(&kernel.agent)
                .filter(|_| time.is_some() || all || more)
            else {
                return agents.contains_key(&kernel.agent);
            };
            if let (CountedBy::Events(device), Some(delivery)) = (&counted.by, counted.started) {
                let values: Vec<_> = counted
                    .counted(device)
                    .iter()
                    .map(|one| EventGroups::value(device, one, &kernel.values, time))
                    .collect();
                let records = counted.records.of_results(&kernel.subject, &values);
                ready.extend(records.into_iter().map(|record| (delivery.buffers, record)));
            }
            false
        });
        drop(times);
        if self.read.is_empty() {
            TIMES.lock().clear();
        }
        if let Some(thread) = process::current() {
            thread.with(|host| {
                for (buffers, record) in ready {
                    host.write_to(buffers, record);
                }
            });
        }
    }

    /// Ends the range of a context, if it has begun, and keeps its values for the end of the range.
    fn read_range(&mut self, session: &CuptiSession, place: usize) {
        let context = &mut self.contexts[place];
        let (Some(profiler), Some(counted)) = (
            context.profiler.as_mut().filter(|one| one.is_begun),
            self.agents.get_mut(&context.agent),
        ) else {
            return;
        };
        match profiler.end(&session.cupti, counted.chip()) {
            Ok(mut values) if values.len() == 1 => counted.ended.extend(values.pop().map(Ok)),
            Ok(_) => counted.ended.push(Err(CounterInvalid::PASS_FAILED)),
            Err(failed) => {
                counted.ended.push(Err(CounterInvalid::PASS_FAILED));
                give_up(&mut context.profiler, session);
                self.complain(&failed.to_string());
            }
        }
    }

    /// Writes the values of contexts, and gives up their profilers.
    fn disable(&mut self, session: &CuptiSession, which: impl Fn(&CountedContext) -> bool) {
        for place in (0..self.contexts.len()).rev() {
            if which(&self.contexts[place]) {
                self.read_kernel(session, place, None);
                self.read_range(session, place);
                if let Some(profiler) = self.contexts.swap_remove(place).profiler {
                    profiler.disable(&session.cupti);
                }
            }
        }
    }
}

/// Notes the time of a kernel, whose activity record has come: metrics that are rates wait for it.
pub(super) fn note_time(call: u32, nanos: u64) {
    if COUNTS_EVENTS.load(Ordering::Relaxed) && nanos > 0 {
        let mut times = TIMES.lock();
        if times.len() < 2 * MOST_READ {
            times.insert(call, nanos);
        }
    }
}

/// Says in a message and in a note what the matter is.
fn report(text: &str) {
    message(format_args!("{text}"));
    if let Some(names) = process::names() {
        names.note(NoteKind::OTHER, &format!("counters: {text}"));
    }
}

/// The process ends: writes the last values, and notes what is missing.
pub(super) fn end(session: &CuptiSession) {
    let _inside = InsideCupti::begin();
    acquire();
    flush_times();
    let mut state = STATE.lock();
    state.disable(session, |_| true);
    state.write_read(true);
    if state.graphs > 0 {
        let launches = count(state.graphs, "launch");
        report(&format!(
            "{launches} of CUDA graphs not counted: graphs run without counters"
        ));
    }
    if state.missing > 0 {
        report(&format!(
            "{} without values: CUPTI had none, or those of another kernel beside them",
            count(state.missing, "kernel")
        ));
    }
    drop(state);
    release();
}

/// Has CUPTI deliver the times of kernels that were counted by events. The state is not locked: records come on this thread.
fn flush_times() {
    if COUNTS_EVENTS.load(Ordering::Relaxed)
        && let Some(session) = current_session()
    {
        // SAFETY: a flag alone. CUPTI returns buffers to `activity::completed`, on this thread too.
        unsafe { call!(session.cupti, cuptiActivityFlushAll(0)) };
    }
}
