//! Counter collection: the counters of agents. [`Context::count`](super::Context::count) collects them, as
//! rocprofiler-sdk's dispatch and device counting does. One context of a process counts at a time, and none while one samples.
//!
//! | to count | here | C |
//! |---|---|---|
//! | dispatches, periods | [`Context::count`](super::Context::count) | `gputrail_context_count` |
//! | ranges (the context traces markers, too) | [`Context::count_ranges`](super::Context::count_ranges) | option `range` |
//! | with few counters in a pass | [`Context::count_in_passes`](super::Context::count_in_passes) | option `per_pass` |
//! | each instance of a block | [`Context::count_each_instance`](super::Context::count_each_instance), [`CounterSet::of_each_instance`] | option `each_instance` |
//! | counters chosen for each kernel (rocprofiler-sdk: dispatch counting) | [`Context::count_chosen`](super::Context::count_chosen), [`CounterSet`] | `gputrail_context_count_chosen` |
//! | the same in few reused entries (ROCProfiler v1: pools) | [`CounterPool`] | `gputrail_counter_pool_*` |
//! | sums between a start and a stop (CUPTI: event groups) | [`CounterGroup`] | `gputrail_counter_group_*` |
//! | parts of work that the program repeats (GPUPerfAPI) | [`CounterSessions`] | `gputrail_counter_sessions_*` |
//! | metrics from totals (CUPTI: metrics) | [`metric_parts`], [`metric_value`] | `gputrail_metric_parts`, `gputrail_metric_value` |
//!
//! A group counts while kernels run, which then run one after the other; with a period, all the time. It takes no metrics that use
//! properties of the agent, kernel times or single instances: read the counters of their formula. Groups may be started in
//! callbacks, and not read, stopped or reset there.

use super::Error;
use super::functions::{act, ask, c_string, call, check, list};
use core::ffi::{CStr, c_char};
use core::num::NonZeroU32;
use gputrail_interface::c::{
    CounterDefinition, CounterGroupHandle, CounterGroupOptions, CounterGroupValue,
    CounterSetHandle, CounterSetOptions, SizedStruct, Status,
};
use gputrail_record::{AgentId, CounterInvalid, CounterUsage, CounterValueType};

pub use super::counter_pool::{CounterPool, PoolEntry};
pub use super::counter_sessions::{CounterSessions, SessionCounter};
pub use super::metric::{MetricParts, metric_parts, metric_value};
pub use gputrail_interface::counting::CountingMode;
pub use gputrail_interface::counting::{
    GroupOptions, GroupValue, Number, PoolOptions, SampleNumber, SessionOptions, WrongType,
};

/// A counter or metric of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// A description.
    pub description: &'static str,
    /// The block of hardware that counts it, or the formula of a metric.
    pub from: &'static str,
    /// Whether it is a metric, which is computed from counters.
    pub is_metric: bool,
    /// The unit of its values.
    pub usage: CounterUsage,
    /// The number of events that the block counts at a time; 0 if it is not known, and of metrics.
    pub capacity: u16,
    /// The number of instances of the block; 0 if it is not known, and 1 of metrics.
    pub instances: u32,
}

/// The agents whose sources know their counters: those that the program has asked about.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn agents() -> Result<Vec<AgentId>, Error> {
    list!(gputrail_counting_agents())
}

/// The counters and metrics of an agent.
///
/// # Errors
///
/// `NO_SUCH_AGENT`.
pub fn counters(agent: AgentId) -> Result<Vec<Counter>, Error> {
    let all = list!(gputrail_counters(agent))?;
    let of = |one: CounterDefinition| Counter {
        name: text(one.name),
        description: text(one.description),
        from: text(one.from),
        is_metric: one.is_metric != 0,
        usage: one.usage,
        capacity: one.capacity,
        instances: one.instances,
    };
    Ok(all.into_iter().map(of).collect())
}

/// Adds the metrics of a file of definitions to those of the agents, for all counters that are asked for from now on. Returns
/// the number of definitions that were refused, which are told on the standard error.
///
/// # Errors
///
/// `NOT_FOUND` if the file cannot be read; `NOT_INITIALISED` after the tool's end.
pub fn add(path: &str) -> Result<u32, Error> {
    let (path, mut refused) = (c_string(path)?, 0);
    // SAFETY: a text that ends with a 0, and a place for the number.
    check(unsafe { call!(gputrail_counters_add(path.as_ptr(), &mut refused)) })?;
    Ok(refused)
}

/// A text of the library.
pub(super) fn text(kept: *const c_char) -> &'static str {
    if kept.is_null() {
        return "";
    }
    // SAFETY: the library's text, which ends with a 0 and is never freed.
    unsafe { CStr::from_ptr(kept) }.to_str().unwrap_or_default()
}

/// A set of counters and metrics that an agent can count for each kernel, for
/// [`Context::count_chosen`](super::Context::count_chosen).
#[derive(Debug)]
pub struct CounterSet(CounterSetHandle);

impl CounterSet {
    /// A set of `names`, with at most `per_pass` counters in a pass. Also when a kernel is about to be chosen for.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` for an unknown name, with the nearest ones; `INVALID_ARGUMENT` for counters that need more passes than
    /// the agent can do; `COUNTERS_NOT_AVAILABLE`, `NO_SUCH_AGENT`; `BUSY` within a buffer's callback.
    pub fn new(
        agent: AgentId,
        names: &[&str],
        per_pass: Option<NonZeroU32>,
    ) -> Result<CounterSet, Error> {
        let asked = CounterSetOptions {
            per_pass: per_pass.map_or(0, NonZeroU32::get),
            ..CounterSetOptions::blank()
        };
        CounterSet::with(agent, names, asked)
    }

    /// A set of `names` that has a value for each instance of a block in the place of their sum.
    ///
    /// # Errors
    ///
    /// As for [`CounterSet::new`].
    pub fn of_each_instance(agent: AgentId, names: &[&str]) -> Result<CounterSet, Error> {
        let asked = CounterSetOptions {
            each_instance: 1,
            ..CounterSetOptions::blank()
        };
        CounterSet::with(agent, names, asked)
    }

    fn with(agent: AgentId, names: &[&str], asked: CounterSetOptions) -> Result<CounterSet, Error> {
        let names = c_string(&names.join(","))?;
        let asked = CounterSetOptions {
            counters: names.as_ptr(),
            ..asked
        };
        let mut handle = CounterSetHandle::default();
        // SAFETY: options with a text that ends with a 0, and a place for the handle.
        check(unsafe { call!(gputrail_counter_set_create(agent, &asked, &mut handle)) })?;
        Ok(CounterSet(handle))
    }

    /// Its handle, by which a kernel's counters are chosen.
    pub fn handle(&self) -> CounterSetHandle {
        self.0
    }

    /// The number of passes of a kernel that it needs.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn passes(&self) -> Result<u32, Error> {
        ask!(gputrail_counter_set_passes(self.0))
    }
}

impl Drop for CounterSet {
    fn drop(&mut self) {
        // The library may have ended.
        let _ = act!(gputrail_counter_set_destroy(self.0));
    }
}

/// A group of counters and metrics of one agent that code starts, stops, reads and resets. One group of a process is started
/// at a time, and none while a context counts or samples. Dropping it stops it.
#[derive(Debug)]
pub struct CounterGroup(CounterGroupHandle);

impl CounterGroup {
    /// A group of `names`, stopped.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` for an unknown name, with the nearest ones; `INVALID_ARGUMENT` for percentages and ratios that the
    /// sums of their counters do not tell; as for [`Context::count`](super::Context::count).
    pub fn new(
        agent: AgentId,
        names: &[&str],
        options: GroupOptions,
    ) -> Result<CounterGroup, Error> {
        if options.mode == CountingMode::Range {
            return Err(Error {
                status: Status::INVALID_ARGUMENT,
                text:
                    "a group has a begin and an end of its own: it cannot count ranges of markers"
                        .to_owned(),
            });
        }
        let names = c_string(&names.join(","))?;
        let asked = CounterGroupOptions {
            size: size_of::<CounterGroupOptions>(),
            counters: names.as_ptr(),
            period: match options.mode {
                CountingMode::Dispatch | CountingMode::Range => 0,
                CountingMode::Device { period } => period.0.max(1),
            },
            per_pass: options.per_pass.map_or(0, |limit| limit.get()),
            instances: options.instances.map_or(0, |most| most.get()),
        };
        let mut handle = CounterGroupHandle::default();
        // SAFETY: options with a text that ends with a 0, and a place for the handle.
        check(unsafe { call!(gputrail_counter_group_create(agent, &asked, &mut handle)) })?;
        Ok(CounterGroup(handle))
    }

    /// Starts counting; what has been counted before stays.
    ///
    /// # Errors
    ///
    /// `STARTED`; `CONTEXT_CONFLICT` if another group or context counts.
    pub fn start(&self) -> Result<(), Error> {
        act!(gputrail_counter_group_start(self.0))
    }

    /// Stops counting.
    ///
    /// # Errors
    ///
    /// `STOPPED`; `BUSY` within callbacks.
    pub fn stop(&self) -> Result<(), Error> {
        act!(gputrail_counter_group_stop(self.0))
    }

    /// What has been counted so far, in the order of the names.
    ///
    /// # Errors
    ///
    /// `BUSY` within callbacks.
    pub fn read(&self) -> Result<Vec<GroupValue>, Error> {
        let all: Vec<CounterGroupValue> = list!(gputrail_counter_group_read(self.0))?;
        let of = |one: CounterGroupValue| GroupValue {
            name: text(one.name).to_owned(),
            value: match one.value_type {
                CounterValueType::DOUBLE => Number::Double(f64::from_bits(one.value)),
                _ => Number::Uint(one.value),
            },
            readings: one.readings,
            invalid: one.invalid,
            reason: CounterInvalid(one.reason.0),
            sampled_instances: one.sampled_instances,
            total_instances: one.total_instances,
        };
        Ok(all.into_iter().map(of).collect())
    }

    /// Forgets what has been counted.
    ///
    /// # Errors
    ///
    /// `BUSY` within callbacks.
    pub fn reset(&self) -> Result<(), Error> {
        act!(gputrail_counter_group_reset(self.0))
    }
}

impl Drop for CounterGroup {
    fn drop(&mut self) {
        // It may be gone, with the tool's end.
        let _ = act!(gputrail_counter_group_destroy(self.0));
    }
}
