//! Contexts: features of a device, divided into groups whose values come from a kernel, or from what ran between a start
//! and a stop.

use crate::errors::callee;
use crate::flight::Flight;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::trace::{self, Entry};
use crate::types::{
    AgentHandle, Answer, ContextHandler, Data, DataKind, DataUnion, Failure, Feature, FeatureKind,
    Group, Handle, ResultBytes, Status, mode,
};
use crate::{agents, intercept, settings, within};
use core::ffi::c_void;
use gputrail_abi::counting::LONGEST_PERIOD;
use gputrail_abi::{Handles, given, lock};
use gputrail_record::{AgentId, CounterInvalid, CounterValue, CounterValueType, WorkId};
use gputrail_tool as tool;
use gputrail_tool::counting::{CounterGroup, CountingMode, GroupOptions, GroupValue, Number};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The contexts that are open.
pub static CONTEXTS: Handles<Context> = Handles::new();

/// The handle of a context or pool with this number.
pub fn handle(number: usize) -> Handle {
    std::ptr::without_provenance_mut(number)
}

/// Memory of the program's.
#[derive(Copy, Clone)]
pub struct Theirs<T>(pub *mut T);

// SAFETY: the program lends it to the library until the context or the callbacks are gone, and expects it to be used on
// any thread.
unsafe impl<T> Send for Theirs<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Theirs<T> {}

/// Who is told that the data of a group is ready.
pub enum Told {
    Nobody,
    Handler(ContextHandler, Theirs<c_void>),
    /// The pool that the context is an entry of, and its place there.
    Pool(Weak<Pool>, usize),
}

/// A value of a counter or metric.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Value {
    Uint(u64),
    Double(f64),
    /// There is none, for this reason.
    None(CounterInvalid),
}

impl Value {
    /// The value that a record has.
    pub fn of(record: &CounterValue) -> Value {
        match record.value_type {
            _ if record.invalid != CounterInvalid::NO => Value::None(record.invalid),
            CounterValueType::DOUBLE => Value::Double(f64::from_bits(record.value)),
            _ => Value::Uint(record.value),
        }
    }

    fn of_group(value: &GroupValue) -> Value {
        match value.value {
            _ if value.readings == 0 && value.invalid > 0 => Value::None(value.reason),
            Number::Uint(value) => Value::Uint(value),
            Number::Double(value) => Value::Double(value),
        }
    }

    fn data(self) -> Data {
        let (kind, of) = match self {
            Value::Uint(int64) => (DataKind::INT64, DataUnion { int64 }),
            Value::Double(double) => (DataKind::DOUBLE, DataUnion { double }),
            Value::None(_) => (DataKind::UNINIT, DataUnion { int64: 0 }),
        };
        Data { kind, of }
    }
}

/// The state of a group.
#[derive(Default)]
enum State {
    /// It has no data.
    #[default]
    Empty,
    /// Its kernel has not ended.
    Running,
    /// The values of its counters; none if its kernel did not run.
    Ready(Vec<Value>),
}

#[derive(Default)]
struct GroupData {
    state: State,
    /// Its latest kernel, whose times the program may read.
    kernel: Option<Arc<Flight>>,
}

struct OneGroup {
    /// The program's features.
    features: Box<[Theirs<Feature>]>,
    data: Mutex<GroupData>,
    changed: Condvar,
    /// Counts between a start and a stop.
    sampling: Mutex<Sampling>,
}

#[derive(Default)]
struct Sampling {
    group: Option<CounterGroup>,
    is_started: bool,
}

/// The features of a context: the names of the metrics and the places of both kinds.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<String>,
    metrics: Vec<usize>,
    traces: Vec<(usize, String)>,
}

/// A context.
pub struct Context {
    number: usize,
    /// The program's features that are traces; they belong to the first group.
    traces: Vec<Theirs<Feature>>,
    /// The latest trace that the program has asked for, and its kernel.
    traced: Mutex<(WorkId, Vec<Entry>)>,
    plan: Arc<Plan>,
    is_standalone: bool,
    groups: Vec<OneGroup>,
    told: Told,
}

/// The names of features, and which of them are traces.
///
/// # Safety
///
/// `features` is null or leads to `count` features, whose names are null or end with a 0.
pub unsafe fn names(features: *mut Feature, count: u32) -> Answer<Names> {
    if features.is_null() && count > 0 {
        return Err(Failure::null("features"));
    }
    let mut all = Names::default();
    for place in 0..count as usize {
        // SAFETY: `features` is not null, so that it leads to `count` features, and `place` is less than `count`.
        let feature = unsafe { features.add(place).read() };
        let is_trace = match feature.kind {
            FeatureKind::METRIC => false,
            FeatureKind::TRACE => true,
            FeatureKind(bits) if bits & FeatureKind::TRACE.0 != 0 => {
                let text = format!("feature {place} is a trace with modifiers: no device has any");
                return Err(Failure::argument(text));
            }
            FeatureKind(other) => {
                let text = format!("feature {place} is of the kind {other}, which is none");
                return Err(Failure::argument(text));
            }
        };
        // SAFETY: the name in the union is null or ends with a 0.
        let name = unsafe { given(feature.of.name) };
        let name = name.ok_or_else(|| Failure::null("the name of a feature"))?;
        if is_trace {
            all.traces.push((place, name.into_owned()));
        } else if name.trim().is_empty() || name.contains(',') {
            return Err(Failure::argument(format!("{name:?} is no name")));
        } else {
            all.names.push(name.into_owned());
            all.metrics.push(place);
        }
    }
    Ok(all)
}

/// Begins to record traces, if a context has some that its device has.
fn check_traces(agent: AgentId, traces: &[(usize, String)]) -> Answer {
    for (place, name) in traces {
        if !trace::has(agent) {
            let text = format!("feature {place} is a trace: the device has none");
            return Err(Failure::argument(text));
        }
        if name.as_bytes() != trace::NAME.to_bytes() {
            let known = trace::NAME.to_string_lossy();
            let text = format!("{name} is no trace of the device: it has {known}");
            return Err(Failure::argument(text));
        }
    }
    if traces.is_empty() {
        Ok(())
    } else {
        trace::record()
    }
}

/// Why something cannot be counted, where another use of counters is in the way: the tool's own, if it has one. The caller
/// holds no lock of a context or of the callbacks.
pub fn refused(error: tool::Error) -> Failure {
    if error.status != tool::Status::CONTEXT_CONFLICT {
        return error.into();
    }
    if intercept::counts() {
        let text = "the callbacks on dispatches count: remove them before (rocprofiler_remove_queue_callbacks)";
        return Failure::state(text);
    }
    if CONTEXTS.any(Context::is_started) {
        return Failure::state("a context is started: stop it before (rocprofiler_stop)");
    }
    error.into()
}

impl Context {
    /// A context with these features, which the program keeps.
    ///
    /// # Safety
    ///
    /// `features` leads to as many features as `names` has, until the context is closed; it may be null if there are none.
    /// The function that is told keeps to its type until then.
    pub unsafe fn new(
        agent: AgentId,
        (features, given): (*mut Feature, Names),
        modes: u32,
        told: Told,
    ) -> Answer<Context> {
        if modes & !mode::ALL != 0 {
            return Err(Failure::argument(format!(
                "no mode has the bits {modes:#x}"
            )));
        }
        check_traces(agent, &given.traces)?;
        let plan = Plan::new(agent, given.names)?;
        let passes: u32 = plan.groups.iter().map(|group| group.passes).sum();
        if modes & mode::SINGLEGROUP != 0 && passes > 1 {
            let text = format!("the features need {passes} runs, and one group is allowed");
            return Err(Failure::state(text));
        }
        // SAFETY: `place` is that of one of the features of the array, or `features` is null and there is no place.
        let feature = |place: usize| Theirs(unsafe { features.add(place) });
        let traces: Vec<Theirs<Feature>> = given.traces.iter().map(|one| feature(one.0)).collect();
        let groups = plan
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| OneGroup {
                features: {
                    let metrics = group
                        .features
                        .iter()
                        .map(|name| feature(given.metrics[*name]));
                    let traces = traces.iter().copied().filter(|_| index == 0);
                    metrics.chain(traces).collect()
                },
                data: Mutex::default(),
                changed: Condvar::new(),
                sampling: Mutex::default(),
            });
        Ok(Context {
            number: Handles::<Context>::number(),
            groups: groups.collect(),
            traces,
            traced: Mutex::default(),
            plan,
            is_standalone: modes & mode::STANDALONE != 0,
            told,
        })
    }

    /// Whether it has a trace of its kernels.
    pub fn has_traces(&self) -> bool {
        !self.traces.is_empty()
    }

    /// Writes the trace of the latest kernel of the first group to the features, and calls `each` with its bytes. The bytes last until
    /// the trace of another kernel is asked for, or the context is closed.
    pub fn trace(&self, each: impl FnOnce(ResultBytes) -> Answer) -> Answer {
        if !self.has_traces() {
            return Ok(());
        }
        let kernel = {
            let data = lock(&self.of(0)?.data);
            match (&data.state, &data.kernel) {
                (State::Ready(_), Some(kernel)) => kernel.clone(),
                _ => return Err(self.nothing(0)),
            }
        };
        let work = kernel.work();
        let bytes = {
            let mut traced = lock(&self.traced);
            if traced.0 != work || !work.is_some() {
                *traced = (work, trace::take(work)?);
            }
            ResultBytes {
                ptr: traced.1.as_mut_ptr().cast(),
                size: size_of_val(traced.1.as_slice()) as u32,
                instance_count: 1,
                copy: false,
            }
        };
        for feature in &self.traces {
            let data = Data {
                kind: DataKind::BYTES,
                of: DataUnion { bytes },
            };
            // SAFETY: a feature of the program's, which keeps it until the context is closed.
            unsafe { (&raw mut (*feature.0).data).write(data) };
        }
        each(bytes)
    }

    /// The context of a handle.
    pub fn found(context: Handle) -> Answer<Arc<Context>> {
        if context.is_null() {
            return Err(Failure::null("the context"));
        }
        let found = CONTEXTS.get(context.addr());
        found.ok_or_else(|| Failure::argument("this is no context that is open"))
    }

    /// Makes the context known by its handle, which is returned.
    pub fn register(self: Arc<Self>) -> Handle {
        let number = self.number;
        CONTEXTS.add(number, self);
        handle(number)
    }

    pub fn handle(&self) -> Handle {
        handle(self.number)
    }

    pub fn told(&self) -> &Told {
        &self.told
    }

    /// The handle of its device.
    pub fn agent(&self) -> Answer<AgentHandle> {
        agents::handle(self.plan.agent)
    }

    pub fn group_count(&self) -> u32 {
        self.groups.len() as u32
    }

    /// The group with this number, for the program.
    pub fn group(&self, index: u32) -> Answer<Group> {
        let of = self.of(index)?;
        Ok(Group {
            index,
            features: of.features.as_ptr().cast_mut().cast(),
            feature_count: of.features.len() as u32,
            context: self.handle(),
        })
    }

    fn of(&self, index: u32) -> Answer<&OneGroup> {
        self.groups.get(index as usize).ok_or_else(|| {
            let count = self.groups.len();
            let text = format!("no group {index}: the context has {count}");
            Failure::new(Status::INVALID_INDEX, text)
        })
    }

    /// Has a group count a kernel. Returns the handle of its counters, if it has any.
    pub fn begin(
        self: &Arc<Self>,
        index: u32,
        kernel: &Arc<Flight>,
    ) -> Answer<Option<gputrail_tool::counting::PoolEntry>> {
        let (of, planned) = (self.of(index)?, &self.plan.groups);
        let planned = &planned[index as usize];
        let mut data = lock(&of.data);
        if matches!(data.state, State::Running) {
            return Err(Failure::state("the group counts another kernel"));
        }
        let entry = if planned.counters.is_empty() {
            None
        } else {
            Some(planned.fetch(self.plan.agent)?)
        };
        kernel.begin(self.clone(), index as usize, entry);
        *data = GroupData {
            state: State::Running,
            kernel: Some(kernel.clone()),
        };
        Ok(entry)
    }

    /// The kernel of a group has ended.
    pub fn ended(self: &Arc<Self>, group: usize, kernel: &Flight, values: Vec<Value>) {
        let of = &self.groups[group];
        {
            let mut data = lock(&of.data);
            let is_it = |own: &Arc<Flight>| std::ptr::eq(Arc::as_ptr(own), kernel);
            if !data.kernel.as_ref().is_some_and(is_it) {
                return;
            }
            data.state = State::Ready(values);
        }
        of.changed.notify_all();
        match &self.told {
            Told::Nobody => {}
            Told::Handler(handler, arg) => {
                if let Ok(group) = self.group(group as u32) {
                    let _within = within::enter();
                    // SAFETY: the program's function for this, with its argument.
                    let call = || unsafe { handler(group, arg.0) };
                    callee("rocprofiler_open", *handler as *const ()).call(call);
                }
            }
            Told::Pool(pool, place) => {
                if let Some(pool) = pool.upgrade() {
                    pool.ended(*place);
                }
            }
        }
    }

    /// Waits for the data of a group, and writes to its features the values that there are, as ROCm's library does.
    pub fn data(&self, index: u32) -> Answer {
        let of = self.of(index)?;
        let limit = match within::is() {
            true => Duration::ZERO,
            false => settings::timeout().unwrap_or(Duration::MAX),
        };
        let runs = |data: &mut GroupData| matches!(data.state, State::Running);
        let awaited = of.changed.wait_timeout_while(lock(&of.data), limit, runs);
        let (data, _) = awaited.unwrap_or_else(PoisonError::into_inner);
        match &data.state {
            State::Ready(values) => {
                // `metrics` tells which features have no value.
                let _ = self.write(index as usize, values);
                Ok(())
            }
            State::Empty => Err(self.nothing(index)),
            State::Running => Err(Failure::state(match within::is() {
                true => "the kernel has not ended, and a callback cannot wait for it",
                false => "the kernel did not end within the timeout",
            })),
        }
    }

    fn nothing(&self, index: u32) -> Failure {
        Failure::state(format!(
            "group {index} has no data: no kernel has been given to it, and it has not been read or stopped"
        ))
    }

    /// Writes the values of all groups to the features.
    pub fn metrics(&self) -> Answer {
        let mut failed = None;
        for (index, of) in self.groups.iter().enumerate() {
            let written = match &lock(&of.data).state {
                State::Ready(values) => self.write(index, values),
                _ => Err(self.nothing(index as u32)),
            };
            failed = failed.or(written.err());
        }
        failed = failed.or(self.trace(|_| Ok(())).err());
        failed.map_or(Ok(()), Err)
    }

    /// Writes the values of a group to its features, all that there are.
    fn write(&self, index: usize, values: &[Value]) -> Answer {
        let (of, planned) = (&self.groups[index], &self.plan.groups[index]);
        let mut failed = None;
        for (place, feature) in planned.features.iter().zip(&of.features) {
            let name = self.plan.counters[*place];
            let counter = planned.counters.iter().position(|one| *one == name);
            let value = counter.and_then(|counter| values.get(counter).copied());
            let value = value.unwrap_or(Value::None(CounterInvalid::MISSING));
            if let Value::None(reason) = value {
                let why = if values.is_empty() {
                    "its kernel was not counted".to_owned()
                } else {
                    reason
                        .name()
                        .unwrap_or("for a reason that is not known")
                        .to_owned()
                };
                failed.get_or_insert_with(|| Failure::state(format!("{name} has no value: {why}")));
            }
            // SAFETY: a feature of the program's, which keeps it until the context is closed.
            unsafe { (&raw mut (*feature.0).data).write(value.data()) };
        }
        failed.map_or(Ok(()), Err)
    }

    /// Counts what runs from now on.
    pub fn start(&self, index: u32) -> Answer {
        let (of, planned) = (self.of(index)?, &self.plan.groups[index as usize]);
        let mut sampling = lock(&of.sampling);
        if sampling.is_started {
            return Err(Failure::state(format!("group {index} is started")));
        }
        if planned.counters.is_empty() {
            return Err(Failure::state("the context has no features"));
        }
        let group = match &mut sampling.group {
            Some(group) => {
                group.reset()?;
                group
            }
            none => none.insert(self.sampler(&planned.counters)?),
        };
        if let Err(error) = group.start() {
            drop(sampling);
            return Err(refused(error));
        }
        sampling.is_started = true;
        *lock(&of.data) = GroupData::default();
        Ok(())
    }

    fn sampler(&self, counters: &[&str]) -> Answer<CounterGroup> {
        let mode = if self.is_standalone {
            CountingMode::Device {
                period: LONGEST_PERIOD,
            }
        } else {
            CountingMode::Dispatch
        };
        let options = GroupOptions {
            mode,
            ..GroupOptions::default()
        };
        Ok(CounterGroup::new(self.plan.agent, counters, options)?)
    }

    /// Ends counting, with the values of what has run since the start.
    pub fn stop(&self, index: u32) -> Answer {
        self.sample(index, |_| Ok(()))
    }

    /// Takes the values of what has run since the start.
    pub fn read(&self, index: u32) -> Answer {
        self.sample(index, |sampling| {
            if let Some(group) = &sampling.group {
                group.start()?;
            }
            sampling.is_started = true;
            Ok(())
        })
    }

    /// Stops, reads, and goes on with `after`.
    fn sample(&self, index: u32, after: impl FnOnce(&mut Sampling) -> Answer) -> Answer {
        let of = self.of(index)?;
        let mut sampling = lock(&of.sampling);
        let group = match &sampling.group {
            Some(group) if sampling.is_started => group,
            _ => return Err(Failure::state(format!("group {index} is not started"))),
        };
        group.stop()?;
        let values = group.read();
        sampling.is_started = false;
        after(&mut sampling)?;
        let values = values?.iter().map(Value::of_group).collect();
        lock(&of.data).state = State::Ready(values);
        of.changed.notify_all();
        Ok(())
    }

    /// Forgets what has been counted.
    pub fn reset(&self, index: u32) -> Answer {
        let of = self.of(index)?;
        if let Some(group) = &lock(&of.sampling).group {
            group.reset()?;
        }
        let mut data = lock(&of.data);
        match data.state {
            State::Running => Err(Failure::state("the kernel of the group has not ended")),
            _ => {
                data.state = State::Empty;
                Ok(())
            }
        }
    }

    /// Whether a group is started.
    fn is_started(&self) -> bool {
        self.groups.iter().any(|of| lock(&of.sampling).is_started)
    }

    /// Whether a kernel of the context has not ended.
    pub fn is_running(&self) -> bool {
        let running = |of: &OneGroup| matches!(lock(&of.data).state, State::Running);
        self.groups.iter().any(running)
    }

    /// Forgets all data, and the kernels that have not ended.
    pub fn clear(&self) {
        for of in &self.groups {
            let data = std::mem::take(&mut *lock(&of.data));
            if let Some(kernel) = data.kernel {
                kernel.forget();
            }
        }
    }

    /// Ends all use of the context, whose handle is gone.
    pub fn close(&self) {
        self.clear();
        for of in &self.groups {
            let sampling = std::mem::take(&mut *lock(&of.sampling));
            drop(sampling);
        }
    }
}
