//! Dispatch counting: the client chooses the counters of each kernel when it is enqueued, and gets their values when it has ended.
//!
//! The client is called on the thread that enqueues the kernel. The number of the dispatch is not known then, and is 0 there; in what
//! is delivered it is that of the records of dispatches. A kernel of which no set is chosen is not counted, nor is one whose set is
//! that of another agent. Values come when the kernel's times are known as well, on the thread that has learnt of its end: to the
//! client's function, or to the buffer, the dispatch before its values. Each value has the word that the client has chosen for the
//! dispatch. Values that could not be counted (`docs/counters.md` says why) are left out.
//!
//! On processors, the enqueue of a kernel waits for the work before, and returns when a counted kernel has ended.

use super::configs::{Config, config};
use super::readings::of_dispatch;
use super::{devices, failed};
use crate::context::{self, AgentService, Context};
use crate::payload::dispatch_info;
use crate::result::{Answer, api};
use crate::{agents, buffer, sampling};
use core::ffi::c_void;
use gputrail_abi::counting::{CounterSetHandle, Counts, Engine};
use gputrail_abi::{Watch, WithData, lock};
use gputrail_record::{
    AgentId as DeviceId, Completion, CorrelationId, CounterValue, KernelDispatch,
    ThreadId as RecordThread, WorkId,
};
use gputrail_rocprofiler::*;
use gputrail_tool::events::{kernel_dispatch, resource};
use gputrail_tool::{self as tool, Callback, Subscriber};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// The most kernels that wait for what may never come.
const MOST_LOST: usize = 1024;

/// The receiver of the values.
enum Taker {
    Buffer(Arc<buffer::Buffer>),
    Function(WithData<DispatchCountingRecordCallback>),
}

/// A kernel that is counted.
struct Flight {
    data: DispatchCountingData,
    user: UserData,
    config: Arc<Config>,
    is_timed: bool,
    values: Option<Vec<CounterValue>>,
}

// SAFETY: what is no number in it are words of the client's, which are handed back.
unsafe impl Send for Flight {}

/// The kernels of a call, in the order in which they were chosen for, and not enqueued yet; none for those that are not counted.
#[derive(Default)]
struct OpenCall {
    call: CorrelationId,
    kernels: Vec<Option<Flight>>,
}

/// The kernels that have not been delivered.
#[derive(Default)]
struct Flights {
    /// By thread: the call that it makes.
    open: HashMap<RecordThread, OpenCall>,
    /// Kernels that were never told to be enqueued, as kernels that kernels launch, by their calls.
    lost: Vec<(CorrelationId, Flight)>,
    enqueued: HashMap<WorkId, Flight>,
    /// The times of kernels that ended before they were told to be enqueued.
    early: HashMap<WorkId, (Timestamp, Timestamp)>,
}

impl Flights {
    fn chosen(&mut self, thread: RecordThread, call: CorrelationId, flight: Option<Flight>) {
        let open = self.open.entry(thread).or_default();
        if open.call != call {
            let before = std::mem::take(open);
            open.call = call;
            let left = before.kernels.into_iter().flatten();
            self.lost.extend(left.map(|flight| (before.call, flight)));
            if self.lost.len() > MOST_LOST {
                self.lost.drain(..MOST_LOST / 2);
            }
        }
        let open = self.open.entry(thread).or_default();
        open.kernels.push(flight);
    }

    /// The kernel of a call that was chosen for last has been enqueued.
    fn enqueued(&mut self, kernel: &KernelDispatch, external: u64) {
        let work = &kernel.work;
        if !self.enqueued.contains_key(&work.id) {
            let open = self.open.get_mut(&work.thread);
            let open = open.filter(|open| open.call == work.correlation);
            let Some(flight) = open.and_then(|open| open.kernels.pop()).flatten() else {
                return;
            };
            self.enqueued.insert(work.id, flight);
        }
        let times = self.early.remove(&work.id);
        if let Some(flight) = self.enqueued.get_mut(&work.id) {
            flight.data.dispatch_info = dispatch_info(kernel);
            flight.data.correlation_id.external = UserData::from(external);
            if let Some((start, end)) = times {
                (flight.data.start_timestamp, flight.data.end_timestamp) = (start, end);
                flight.is_timed = true;
            }
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let times = (completion.start.0, completion.end.0);
        if let Some(flight) = self.enqueued.get_mut(&completion.work) {
            (flight.data.start_timestamp, flight.data.end_timestamp) = times;
            flight.is_timed = true;
        } else if self.open.values().any(|open| !open.kernels.is_empty()) {
            self.early.insert(completion.work, times);
        } else {
            self.early.clear();
        }
    }

    /// A kernel has been counted.
    fn counted(&mut self, values: &[CounterValue]) {
        let Some(first) = values.first() else {
            return;
        };
        if !self.enqueued.contains_key(&first.work) {
            let call = first.correlation;
            let mut open = self.open.values_mut();
            let open = open.find(|open| open.call == call && !open.kernels.is_empty());
            let flight = match open {
                Some(open) => open.kernels.pop().flatten(),
                None => {
                    let place = self.lost.iter().position(|(of, _)| *of == call);
                    place.map(|place| {
                        let (_, mut flight) = self.lost.remove(place);
                        // No times come of a kernel that was not told to be enqueued.
                        flight.is_timed = true;
                        flight
                    })
                }
            };
            let Some(mut flight) = flight else {
                return;
            };
            flight.data.dispatch_info.dispatch_id = first.work.0;
            self.enqueued.insert(first.work, flight);
        }
        if let Some(flight) = self.enqueued.get_mut(&first.work) {
            flight.values = Some(values.to_vec());
        }
    }

    /// The kernel of `work`, if all that is awaited of it has come.
    fn ready(&mut self, work: WorkId) -> Option<Flight> {
        let flight = self.enqueued.get(&work)?;
        let is_ready = flight.is_timed && flight.values.is_some();
        is_ready.then(|| self.enqueued.remove(&work)).flatten()
    }

    /// All that has values: nothing more is awaited of it.
    fn take_counted(&mut self) -> Vec<Flight> {
        let has_values = |flight: &Flight| flight.values.is_some();
        let works: Vec<WorkId> = self
            .enqueued
            .iter()
            .filter(|(_, flight)| has_values(flight))
            .map(|(work, _)| *work)
            .collect();
        let taken = works.iter().filter_map(|work| self.enqueued.remove(work));
        taken.collect()
    }
}

/// The counting of a context.
struct Dispatches {
    context: ContextId,
    choose: WithData<DispatchCountingCallback>,
    taker: Taker,
    flights: Mutex<Flights>,
    /// Told of kernels, with the external ids of the context.
    told: Mutex<Option<Subscriber>>,
    /// Told of agents that gputrail has come to know, while the context is started.
    watch: Mutex<Option<Watch>>,
    engine: Mutex<Engine<Counting>>,
    own: Counting,
}

/// The counting of a context as that for which gputrail counts.
#[derive(Clone)]
struct Counting(Weak<Dispatches>);

impl Counts for Counting {
    const IS_RESERVED: bool = true;

    // An agent that cannot be counted may stand beside others that can.
    fn is_left_out(reason: &tool::Error) -> bool {
        reason.status != tool::Status::CONTEXT_CONFLICT
    }

    fn choose(&self, _: DeviceId, kernel: &KernelDispatch) -> Option<CounterSetHandle> {
        let config = self.0.upgrade()?.choose(kernel)?;
        Some(config.set.handle())
    }

    fn kernel(&self, values: &[CounterValue]) {
        if let Some(this) = self.0.upgrade() {
            this.counted(values);
        }
    }
}

/// The contexts that count dispatches.
static DISPATCHES: Mutex<Vec<Arc<Dispatches>>> = Mutex::new(Vec::new());

/// Keeps the records of a dispatch together in a buffer.
static ORDER: Mutex<()> = Mutex::new(());

/// Whether a context counts dispatches.
pub fn is_configured(context: ContextId) -> bool {
    lock(&DISPATCHES).iter().any(|one| one.context == context)
}

impl Dispatches {
    fn new(
        context: ContextId,
        choose: WithData<DispatchCountingCallback>,
        taker: Taker,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Dispatches {
            context,
            choose,
            taker,
            flights: Mutex::default(),
            told: Mutex::default(),
            watch: Mutex::default(),
            engine: Mutex::new(Engine::new(Counting(own.clone()))),
            own: Counting(own.clone()),
        })
    }

    /// Is told of kernels in the client's context.
    fn listen(&self, context: &Context) -> Result<Subscriber, tool::Error> {
        let of = self.own.clone();
        let operations = [kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE];
        let told = move |callback: Callback<'_>, _: &mut u64| {
            let Some(this) = of.0.upgrade() else {
                return;
            };
            if callback.operation() == kernel_dispatch::COMPLETE {
                if let Some(completion) = callback.record::<Completion>() {
                    lock(&this.flights).completed(completion);
                    this.deliver(completion.work);
                }
            } else if !callback.is_enter()
                && let Some(kernel) = callback.record::<KernelDispatch>()
                && kernel.work.id.is_some()
            {
                lock(&this.flights).enqueued(kernel, callback.external().0);
                this.deliver(kernel.work.id);
            }
        };
        context.gputrail.call_back(&operations, told)
    }

    /// Has the client choose for a kernel.
    fn choose(&self, kernel: &KernelDispatch) -> Option<Arc<Config>> {
        let context = context::found(self.context).ok()?;
        let work = &kernel.work;
        let mut info = dispatch_info(kernel);
        info.dispatch_id = 0;
        let data = DispatchCountingData {
            size: size_of::<DispatchCountingData>() as u64,
            correlation_id: AsyncCorrelationId {
                internal: work.correlation.0,
                external: UserData::from(context.gputrail.external_id().0),
            },
            start_timestamp: 0,
            end_timestamp: 0,
            dispatch_info: info,
        };
        let (mut chosen, mut user) = (CounterConfigId::default(), UserData::from(0));
        let WithData {
            function,
            data: own,
        } = self.choose;
        // SAFETY: the client's function for this, with places for its answers and its data.
        unsafe { function(data, &raw mut chosen, &raw mut user, own) };
        let config = config(chosen).ok();
        let config = config.filter(|config| config.device == work.agent);
        let flight = config.clone().map(|config| Flight {
            data,
            user,
            config,
            is_timed: false,
            values: None,
        });
        lock(&self.flights).chosen(work.thread, work.correlation, flight);
        config
    }

    /// Gives the values of a kernel to the client, if all of it is there.
    fn deliver(&self, work: WorkId) {
        let ready = lock(&self.flights).ready(work);
        if let Some(flight) = ready {
            self.give(flight);
        }
    }

    fn give(&self, flight: Flight) {
        let (mut data, values) = (flight.data, flight.values.unwrap_or_default());
        let dispatch = data.dispatch_info.dispatch_id;
        let mut records = of_dispatch(&flight.config, &values, dispatch, flight.user);
        if data.end_timestamp < data.start_timestamp {
            data.end_timestamp = data.start_timestamp;
        }
        match &self.taker {
            Taker::Function(client) => {
                let WithData {
                    function,
                    data: own,
                } = *client;
                // SAFETY: the client's function for this, with as many records as are said and its data.
                unsafe { function(data, records.as_mut_ptr(), records.len(), flight.user, own) };
            }
            Taker::Buffer(buffer) => {
                let header = DispatchCountingRecord {
                    size: size_of::<DispatchCountingRecord>() as u64,
                    num_records: records.len() as u64,
                    correlation_id: data.correlation_id,
                    start_timestamp: data.start_timestamp,
                    end_timestamp: data.end_timestamp,
                    dispatch_info: data.dispatch_info,
                };
                let _order = lock(&ORDER);
                let kind = CounterRecordKind::PROFILE_COUNTING_DISPATCH_HEADER;
                buffer.put(BufferCategory::COUNTERS, kind.0, &header);
                for record in &records {
                    let kind = CounterRecordKind::VALUE;
                    buffer.put(BufferCategory::COUNTERS, kind.0, record);
                }
            }
        }
    }

    /// A kernel has been counted.
    fn counted(&self, values: &[CounterValue]) {
        if let Some(first) = values.first() {
            lock(&self.flights).counted(values);
            self.deliver(first.work);
        }
    }

    /// Counts on all agents that gputrail knows.
    fn count(&self) -> Answer {
        lock(&self.engine).count_kernels().map_err(failed)
    }

    /// Counts on agents, too, that gputrail comes to know.
    fn watch(&self) -> Answer {
        let of = self.own.clone();
        let watch = Watch::new(&[resource::AGENT_KNOWN], move |_| {
            if let Some(this) = of.0.upgrade() {
                let _ = this.count();
            }
        });
        *lock(&self.watch) = Some(watch.map_err(failed)?);
        Ok(())
    }

    fn give_counted(&self) {
        let counted = lock(&self.flights).take_counted();
        counted.into_iter().for_each(|flight| self.give(flight));
    }
}

impl AgentService for Dispatches {
    fn start(&self) -> Answer {
        // Later an agent may come to be known in a callback, in which nobody is told of it.
        agents::refresh(false);
        let begun = self.count().and_then(|()| self.watch());
        if begun.is_err() {
            lock(&self.engine).stop();
        }
        begun
    }

    fn stop(&self) {
        let watch = lock(&self.watch).take();
        drop(watch);
        lock(&self.engine).stop();
        self.give_counted();
    }

    fn collect(&self) -> bool {
        self.give_counted();
        true
    }
}

/// Has dispatches counted while a context is started.
fn configure(
    context: ContextId,
    choose: Option<DispatchCountingCallback>,
    data: *mut c_void,
    taker: Taker,
) -> Answer {
    let function = choose.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let of = context::found(context).map_err(|_| Status::ERROR_CONTEXT_INVALID)?;
    if devices::is_configured(context) {
        return Err(Status::ERROR_AGENT_DISPATCH_CONFLICT);
    }
    if sampling::is_configured(context) {
        return Err(Status::ERROR_CONTEXT_CONFLICT);
    }
    if is_configured(context) {
        return Err(Status::ERROR_SERVICE_ALREADY_CONFIGURED);
    }
    let new = Dispatches::new(context, WithData { function, data }, taker);
    let told = new.listen(&of).map_err(failed)?;
    *lock(&new.told) = Some(told);
    lock(&DISPATCHES).push(new.clone());
    lock(&of.services).agents.push(new);
    Ok(())
}

/// Has dispatches counted while a context is started, into a buffer.
///
/// `CONTEXT_INVALID`, `BUFFER_NOT_FOUND`; `INVALID_ARGUMENT` without a callback; `AGENT_DISPATCH_CONFLICT` if the context counts agents,
/// `CONTEXT_CONFLICT` if it samples; `SERVICE_ALREADY_CONFIGURED`; `CONFIGURATION_LOCKED` once the context has been started.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_buffer_dispatch_counting_service(
    context: ContextId,
    buffer: BufferId,
    callback: Option<DispatchCountingCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        context::found(context).map_err(|_| Status::ERROR_CONTEXT_INVALID)?;
        let taker = Taker::Buffer(buffer::found(buffer)?);
        configure(context, callback, data, taker)
    })
}

/// Has dispatches counted while a context is started, for a function.
///
/// Statuses as of `rocprofiler_configure_buffer_dispatch_counting_service`.
///
/// # Safety
///
/// The functions do what their types say, with their data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_callback_dispatch_counting_service(
    context: ContextId,
    callback: Option<DispatchCountingCallback>,
    data: *mut c_void,
    record_callback: Option<DispatchCountingRecordCallback>,
    record_data: *mut c_void,
) -> Status {
    api(|| {
        let function = record_callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        let taker = Taker::Function(WithData {
            function,
            data: record_data,
        });
        configure(context, callback, data, taker)
    })
}
