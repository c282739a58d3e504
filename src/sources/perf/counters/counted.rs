//! An agent that is counted, and the values of a kernel that it ran.

use super::super::event::explain;
use super::machine::MachineEvents;
use super::threads::{CountedThreads, SetEvents};
use gputrail_capture::names::Names;
use gputrail_collect::agents::ConfigureError;
use gputrail_collect::counting::values::ValueRecords;
use gputrail_collect::counting::{
    Choice, CounterReading, CounterSet, CountingDelivery, CountingRequest, DispatchReadings,
};
use gputrail_collect::process;
use gputrail_counters::Counted;
use gputrail_interface::counting::CountingMode;
use gputrail_record::{AgentId, CorrelationId, CounterInvalid, CounterValue, WorkId};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// An agent that is counted.
pub(super) struct CountedAgent {
    pub(super) agent: AgentId,
    names: Names,
    pub(super) mode: CountingMode,
    /// The tool that chooses the counters of each dispatch, if one does.
    pub(super) choice: Option<Choice>,
    /// Its kernels that have no values yet, by their calls.
    pub(super) chosen: HashMap<CorrelationId, Arc<ValueRecords>>,
    /// The counters that the threads count now.
    pub(super) records: Arc<ValueRecords>,
    pub(super) threads: CountedThreads,
    /// The counters of the whole machine, at a period.
    pub(super) machine: MachineEvents,
    /// Set while counting is started.
    pub(super) delivery: Option<CountingDelivery>,
    /// The number of the start from which it counts; 0 if it is stopped.
    pub(super) start: u64,
    /// The number of the start whose thread reads at a period; 0 if there is none. The thread ends when that is not the
    /// number from which the agent counts.
    pub(super) reader: u64,
    /// The begin of the period in progress.
    pub(super) span_begin: u64,
    /// The number of periods.
    pub(super) spans: u64,
    /// The number of dispatches.
    pub(super) dispatches: u64,
}

impl CountedAgent {
    /// The agent as `request` has it counted, from its start on.
    pub(super) fn new(
        agent: AgentId,
        names: &Names,
        request: &CountingRequest,
        of_program: Vec<u32>,
    ) -> Result<CountedAgent, ConfigureError> {
        let (machine, events) = opened(request)?;
        let (set, properties) = (request.set.clone(), HashMap::new());
        Ok(CountedAgent {
            agent,
            names: names.clone(),
            mode: request.mode,
            choice: request.choice.clone(),
            chosen: HashMap::new(),
            records: Arc::new(ValueRecords::new(set, agent, properties, names)),
            threads: CountedThreads::new(events, of_program),
            machine,
            delivery: None,
            start: 0,
            reader: 0,
            span_begin: 0,
            spans: 0,
            dispatches: 0,
        })
    }

    /// Counts `set` from now on.
    pub(super) fn count_set(&mut self, set: Arc<CounterSet>, of_program: &[u32]) {
        if *self.records.set() == set {
            return;
        }
        let mut events = SetEvents::new(set.architecture(), set.passes());
        // Values of events that the system does not allow are invalid.
        let _ = events.check();
        self.threads = self.threads.with(events, of_program.to_vec());
        self.threads.scan();
        self.records = self.records_of(set);
    }

    pub(super) fn records_of(&self, set: Arc<CounterSet>) -> Arc<ValueRecords> {
        let properties = HashMap::new();
        Arc::new(ValueRecords::new(set, self.agent, properties, &self.names))
    }
}

/// Why `kind` events cannot be counted, and the remedy.
fn explain_counting(error: &io::Error, kind: &str) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => format!(
            "this machine has no {kind} events, as virtual machines often have none; TASK_CLOCK, PAGE_FAULTS, \
             CONTEXT_SWITCHES and CPU_MIGRATIONS work without"
        ),
        _ => format!("{}; TASK_CLOCK works without", explain(error)),
    }
}

/// The events of `request` that are of the whole machine, opened, and those of threads, which this machine can count.
pub(super) fn opened(
    request: &CountingRequest,
) -> Result<(MachineEvents, SetEvents), ConfigureError> {
    let machine = MachineEvents::of(request).map_err(ConfigureError::System)?;
    let mut events = SetEvents::new(request.set.architecture(), request.set.passes());
    events
        .check()
        .map_err(|(error, kind)| ConfigureError::System(explain_counting(&error, kind)))?;
    Ok((machine, events))
}

/// Readings without values, for this reason.
pub(super) fn invalid(
    records: &ValueRecords,
    reason: CounterInvalid,
) -> Vec<(Counted, CounterReading)> {
    let counted = records.set().counted();
    counted
        .map(|counted| (counted, CounterReading::invalid(reason)))
        .collect()
}

/// The values of a kernel, and the tool that has chosen its counters.
#[derive(Default)]
pub(crate) struct CountedKernel {
    pub(super) choice: Option<Choice>,
    pub(super) values: Vec<CounterValue>,
    pub(super) readings: DispatchReadings,
    /// Set if there are no values.
    pub(super) abandoned: Option<CorrelationId>,
}

impl CountedKernel {
    /// Passes the values to the tool. The calling thread's state is not in use, since the tool may use it.
    pub(crate) fn tell(&self) {
        let Some(choice) = &self.choice else {
            return;
        };
        if let Some(call) = self.abandoned {
            choice.abandoned(call, WorkId::NONE);
        } else {
            if !self.values.is_empty() {
                choice.counted(&self.values);
            }
            choice.measured(&self.readings);
        }
        let ready = choice.take_ready();
        if ready.is_empty() {
            return;
        }
        if let Some(thread) = process::current() {
            thread.with(|host| {
                for (buffers, value) in ready {
                    host.write_to(buffers, value);
                }
            });
        }
    }
}
