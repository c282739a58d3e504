//! Kernels for which the program's callback was called, until they have ended: their times, and the values of their group.

use crate::context::{Context, Value};
use crate::record::Record;
use crate::trace;
use crate::types::DispatchRecord;
use gputrail_abi::lock;
use gputrail_record::{AgentId, Completion, CorrelationId, CounterValue, WorkId};
use gputrail_tool::counting::PoolEntry;
use gputrail_tool::{device_time_to_nanos, to_nanos};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// A kernel.
pub struct Flight {
    /// Its times, which the program may read at any time; none if none are awaited.
    record: Option<Record>,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// The context and the number of the group that get the values.
    target: Option<(Arc<Context>, usize)>,
    is_timed: bool,
    /// Whether the context has a trace of it.
    is_traced: bool,
    /// Itself, once it is enqueued; none while it is not.
    work: WorkId,
    /// What has been counted; nothing while it is awaited.
    values: Option<Vec<Value>>,
}

/// The kernels whose callback has been called, and that have not been enqueued, by their calls. Those that are launched by
/// kernels are never told to be.
static CHOSEN: LazyLock<Mutex<HashMap<CorrelationId, Vec<Arc<Flight>>>>> =
    LazyLock::new(Mutex::default);
/// The enqueued kernels whose times have not come.
static UNTIMED: LazyLock<Mutex<HashMap<WorkId, Arc<Flight>>>> = LazyLock::new(Mutex::default);
/// The kernels whose values have not come, by the entries that count them.
static UNCOUNTED: LazyLock<Mutex<HashMap<u64, Arc<Flight>>>> = LazyLock::new(Mutex::default);

impl Flight {
    /// A kernel that is enqueued at `dispatch`. It `has_times` if those are awaited.
    pub fn new(dispatch: u64, has_times: bool) -> Arc<Flight> {
        let record = has_times.then(|| Record::new(dispatch)).flatten();
        Arc::new(Flight {
            parts: Mutex::new(Parts {
                is_timed: record.is_none(),
                ..Parts::default()
            }),
            record,
        })
    }

    /// Its times; null if none are awaited.
    pub fn record(&self) -> *const DispatchRecord {
        let record = self.record.as_ref();
        record.map_or(std::ptr::null(), Record::address)
    }

    /// Gives the kernel to a group of a context; it is counted in `entry`, if it is counted.
    pub fn begin(self: &Arc<Self>, context: Arc<Context>, group: usize, entry: Option<PoolEntry>) {
        let mut parts = lock(&self.parts);
        parts.is_traced = group == 0 && context.has_traces();
        parts.target = Some((context, group));
        match entry {
            Some(entry) => {
                lock(&UNCOUNTED).insert(entry.handle().handle, self.clone());
            }
            None => parts.values = Some(Vec::new()),
        }
    }

    /// Awaits its times, once it is enqueued by `call`.
    pub fn await_times(self: &Arc<Self>, call: CorrelationId) {
        if self.record.is_some() {
            lock(&CHOSEN).entry(call).or_default().push(self.clone());
        }
    }

    /// Itself, if it has been enqueued.
    pub fn work(&self) -> WorkId {
        lock(&self.parts).work
    }

    /// Its context is closed: nobody gets its values.
    pub fn forget(&self) {
        let (target, work) = {
            let mut parts = lock(&self.parts);
            (parts.target.take(), parts.work)
        };
        trace::forget(work);
        drop(target);
    }

    /// Notes a part of what is awaited. When all has come, the context gets it.
    fn note(&self, part: impl FnOnce(&mut Parts)) {
        let ready = {
            let mut parts = lock(&self.parts);
            part(&mut parts);
            match (parts.is_timed, parts.values.is_some()) {
                (true, true) => parts.target.take().zip(parts.values.take()),
                _ => None,
            }
        };
        if let Some(((context, group), values)) = ready {
            context.ended(group, self, values);
        }
    }
}

/// The kernel of `call` whose callback was called last has been enqueued.
pub fn enqueued(call: CorrelationId, work: WorkId) {
    let kernel = {
        let mut chosen = lock(&CHOSEN);
        let Some(kernels) = chosen.get_mut(&call) else {
            return;
        };
        let kernel = kernels.pop();
        if kernels.is_empty() {
            chosen.remove(&call);
        }
        kernel
    };
    if let Some(kernel) = kernel {
        {
            let mut parts = lock(&kernel.parts);
            parts.work = work;
            if parts.is_traced {
                trace::want(work);
            }
        }
        lock(&UNTIMED).insert(work, kernel);
    }
}

/// The kernel of an entry has ended: its values, or none if it did not run.
pub fn counted(entry: PoolEntry, values: &[CounterValue]) {
    let flight = lock(&UNCOUNTED).remove(&entry.handle().handle);
    let Some(flight) = flight else {
        return;
    };
    // No times come of a kernel that did not run, or that was not told to be enqueued.
    let is = |one: &Arc<Flight>| Arc::ptr_eq(one, &flight);
    let mut ends = values.is_empty();
    lock(&CHOSEN).retain(|_, kernels| {
        let before = kernels.len();
        kernels.retain(|one| !is(one));
        ends |= kernels.len() < before;
        !kernels.is_empty()
    });
    if ends {
        lock(&UNTIMED).retain(|_, one| !is(one));
    }
    flight.note(|parts| {
        parts.values = Some(values.iter().map(Value::of).collect());
        parts.is_timed |= ends;
    });
}

/// A kernel has ended.
pub fn completed(completion: &Completion) {
    let flight = lock(&UNTIMED).remove(&completion.work);
    let Some(flight) = flight else {
        return;
    };
    if let Some(record) = &flight.record {
        let complete = to_nanos(completion.completed).map_or(0, |time| time.0);
        // Clocks of devices are converted with a small error, which does not change the order of times.
        let complete = complete.max(record.dispatch());
        let (begin, end) = run(completion.agent, completion, complete);
        record.fill(begin, end, complete);
    }
    flight.note(|parts| parts.is_timed = true);
}

/// When a kernel began and ended. Until the clock of its device is known, it ended when that was known.
fn run(agent: AgentId, completion: &Completion, complete: u64) -> (u64, u64) {
    let of = |time| device_time_to_nanos(agent, time);
    match (of(completion.start), of(completion.end)) {
        (Ok(start), Ok(end)) => (start.0, end.0),
        _ => {
            let took = completion.end.0.saturating_sub(completion.start.0);
            (complete.saturating_sub(took), complete)
        }
    }
}

/// Nothing comes any more for the kernels that have not ended: they get what there is.
pub fn abandon() {
    let chosen = std::mem::take(&mut *lock(&CHOSEN));
    let untimed = std::mem::take(&mut *lock(&UNTIMED));
    let uncounted = std::mem::take(&mut *lock(&UNCOUNTED));
    let untimed = untimed.into_values();
    for flight in chosen.into_values().flatten().chain(untimed) {
        flight.note(|parts| parts.is_timed = true);
    }
    for flight in uncounted.into_values() {
        flight.note(|parts| parts.values = Some(Vec::new()));
    }
}
