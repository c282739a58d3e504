//! Counters of a simulated device: exact numbers of what the model does.
//!
//! For each dispatch: work of the compute units then runs one piece after the other, so that each has its own counts, and a
//! kernel runs once for each pass that the counters need. Its memory is restored in between, which takes no time here.
//! At a period: the counts of a kernel are spread over the time in which it ran by its progress.

use super::code::LoadedKernel;
use super::compute_units::COMPUTE_UNITS;
use super::events::{self, CountedEvent, EventCounts};
use super::host::keep_room;
use super::machine::{FinishedCommand, ShareSpan};
use super::recent::WorkIndex;
use super::time::{Moment, SimClock};
use super::waves::SIMDS;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_capture::names::Names;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::counting::values::{Subject, ValueRecords};
use gputrail_collect::counting::{
    Choice, Countable, CounterReading, CountingDelivery, CountingRequest, DispatchReadings,
    ReadyValues,
};
use gputrail_collect::recorder::Recorder;
use gputrail_counters::{
    self as counters, Architecture, Catalogue, Counted, HardwareBlock, Property, Sources,
};
use gputrail_interface::counting::CountingMode;
use gputrail_record::{
    AgentId, CorrelationId, CounterValue, DeviceTime, KernelDispatch, Nanos, QueueId, WorkId,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tests;

/// The shortest period at which a device is read.
const SHORTEST_PERIOD: Nanos = Nanos(10_000);
/// Groups of compute units: each has an instance of the blocks TA and TCP for each of its compute units, and a counter is the
/// sum over all of them.
const SHADER_ENGINES: u64 = COMPUTE_UNITS / 16;
/// The most passes of a kernel.
const MAX_PASSES: usize = 64;
/// The architecture of devices, unless another one is chosen.
pub const ARCHITECTURE: &str = "gfx9";
/// The architectures of devices.
pub(super) const ARCHITECTURES: [&str; 2] = [ARCHITECTURE, "gfx11"];

/// The blocks, with their instances and the number of events that they count at a time.
const BLOCKS: [(&str, u32, u32); 6] = [
    ("GRBM", 1, 2),
    ("SQ", 1, 8),
    ("TA", 16, 2),
    ("TCP", 16, 4),
    ("TCC", 16, 4),
    ("GL2C", 16, 4),
];

/// The counters of the devices, of the architecture called `name`.
pub(super) fn architecture(name: &str) -> Arc<Architecture> {
    let mut sources = Sources::default();
    let text = include_str!("simulated.xml");
    let mut none = |_: &str| Err("nothing is included".to_owned());
    counters::read_text("simulated.xml", text, &mut none, &mut sources);
    for definitions in sources.architectures.values_mut() {
        let block = |(name, instances, capacity): (&str, u32, u32)| HardwareBlock {
            name: name.to_owned(),
            instances: Some(instances),
            capacity: Some(capacity),
        };
        definitions.blocks = BLOCKS.map(block).into();
    }
    let mut catalogue = Catalogue::from(sources);
    let own = catalogue.architectures.remove(name).unwrap_or_default();
    counters::with_added(name, Arc::new(own.with_properties(properties())))
}

/// What devices of the architecture called `name` count, and how.
pub(super) fn countable(name: &str) -> Countable {
    Countable {
        architecture: architecture(name),
        dispatches: true,
        shortest_period: Some(SHORTEST_PERIOD),
        passes: MAX_PASSES,
        range_passes: MAX_PASSES,
        per_pass: None,
    }
}

fn properties() -> HashMap<Property, f64> {
    HashMap::from([
        (Property::ComputeUnits, COMPUTE_UNITS as f64),
        (Property::Simds, (COMPUTE_UNITS * SIMDS as u64) as f64),
        (Property::SimdsPerComputeUnit, SIMDS as f64),
        (Property::ShaderEngines, SHADER_ENGINES as f64),
        (Property::ShaderArrays, 1.0),
        (Property::ArraysPerEngine, 1.0),
        (Property::Dies, 1.0),
        (Property::WaveSize, 64.0),
        (Property::Clock, 1.5e9),
    ])
}

/// A kernel launch, as far as counters depend on it.
pub(super) struct CountedLaunch {
    pub(super) work: WorkId,
    pub(super) correlation: CorrelationId,
    pub(super) queue: QueueId,
    pub(super) code: Arc<LoadedKernel>,
    pub(super) groups: u64,
    pub(super) waves_per_group: u64,
    /// Workgroups per compute unit.
    pub(super) resident: u64,
    /// Its demand on the compute units, in thousandths of a unit times nanoseconds.
    pub(super) demand: u64,
}

/// The counters of one device, offered to the counter collection service.
pub(super) struct DeviceCounters(Mutex<CountersState>);

struct CountersState {
    agent: AgentId,
    architecture: &'static str,
    names: Names,
    configured: Option<Configured>,
    /// Set while counting is started.
    delivery: Option<CountingDelivery>,
    host: Option<(HostThread, Option<Recorder>)>,
    /// The latest work of the compute units.
    latest: Option<WorkIndex>,
    dispatches: BTreeMap<WorkIndex, CountedDispatch>,
    /// The period in progress; none before the first work.
    period: Option<Period>,
}

/// A period in progress.
struct Period {
    begin: Moment,
    begin_time: DeviceTime,
    /// What has been counted.
    counts: EventCounts,
    /// The end of the latest span of work.
    until: Moment,
    until_time: DeviceTime,
}

impl Period {
    fn new(begin: Moment, clock: &mut SimClock) -> Period {
        let time = clock.read(begin);
        Period {
            begin,
            begin_time: time,
            counts: EventCounts::default(),
            until: begin,
            until_time: time,
        }
    }
}

struct Configured {
    mode: CountingMode,
    /// The tool that chooses the counters of each dispatch, if one does.
    choice: Option<Choice>,
    records: Arc<ValueRecords>,
}

/// The counters of one dispatch; none if it is not counted for itself.
#[derive(Clone, Default)]
pub(super) struct DispatchCounters {
    records: Option<Arc<ValueRecords>>,
    choice: Option<Choice>,
}

impl DispatchCounters {
    /// The number of times that the kernel runs.
    pub(super) fn passes(&self) -> u64 {
        let passes = |records: &Arc<ValueRecords>| records.set().passes().len() as u64;
        self.records.as_ref().map_or(1, passes).max(1)
    }
}

/// A dispatch that has not ended.
struct CountedDispatch {
    launch: CountedLaunch,
    counters: DispatchCounters,
    /// The counts that follow from its program.
    counts: EventCounts,
    /// Its progress, in the unit of its demand.
    done: u64,
    /// The part of `counts` that periods have got.
    reported: EventCounts,
}

impl CountedDispatch {
    /// The cycles of compute units and waves that `done` stands for.
    fn unit_cycles(&self, done: u64) -> [(CountedEvent, u64); 2] {
        let units = events::cycles(Nanos(done / 1_000));
        let waves = self.launch.resident * self.launch.waves_per_group;
        [
            (CountedEvent::UnitCycle, units),
            (CountedEvent::WaveCycle, units * waves),
        ]
    }
}

impl DeviceCounters {
    pub(super) fn new(agent: AgentId, names: Names) -> DeviceCounters {
        DeviceCounters(Mutex::new(CountersState {
            agent,
            architecture: ARCHITECTURE,
            names,
            configured: None,
            delivery: None,
            host: None,
            latest: None,
            dispatches: BTreeMap::new(),
            period: None,
        }))
    }

    /// Makes the device one of another architecture, before its counters are configured.
    pub(super) fn set_architecture(&self, name: &'static str) {
        lock_std(&self.0).architecture = name;
    }

    pub(super) fn is_configured(&self) -> bool {
        lock_std(&self.0).configured.is_some()
    }

    /// Whether a thread writes the records.
    pub(super) fn has_writer(&self) -> bool {
        lock_std(&self.0).host.is_some()
    }

    /// Sets the thread that writes the records.
    pub(super) fn set_writer(&self, host: HostThread, recorder: Option<Recorder>) {
        lock_std(&self.0).host = Some((host, recorder));
    }

    /// The counters of a kernel that is about to be enqueued, described by `dispatch`. The state of the calling thread is
    /// not in use: a tool may choose them.
    pub(super) fn of_dispatch(
        &self,
        dispatch: impl FnOnce() -> KernelDispatch,
    ) -> DispatchCounters {
        let (choice, records) = {
            let state = lock_std(&self.0);
            match &state.configured {
                Some(configured) if configured.mode.is_of_dispatches() => {
                    let choice = configured.choice.clone();
                    if choice.is_some() && state.delivery.is_none() {
                        return DispatchCounters::default();
                    }
                    (choice, configured.records.clone())
                }
                _ => return DispatchCounters::default(),
            }
        };
        let Some(choice) = choice else {
            let records = Some(records);
            return DispatchCounters {
                records,
                choice: None,
            };
        };
        let Some(set) = choice.choose(&dispatch()) else {
            return DispatchCounters::default();
        };
        let state = lock_std(&self.0);
        let records = ValueRecords::new(set, state.agent, properties(), &state.names);
        DispatchCounters {
            records: Some(Arc::new(records)),
            choice: Some(choice),
        }
    }

    /// The work that has to end before new work of the compute units starts, which has the index `next`.
    pub(super) fn serialize(&self, next: WorkIndex) -> Option<WorkIndex> {
        let mut state = lock_std(&self.0);
        let configured = state.configured.as_ref()?;
        match configured.mode {
            CountingMode::Dispatch | CountingMode::Range => state.latest.replace(next),
            CountingMode::Device { .. } => None,
        }
    }

    /// Adds a launched kernel.
    pub(super) fn launched(
        &self,
        index: WorkIndex,
        counters: DispatchCounters,
        launch: impl FnOnce() -> CountedLaunch,
    ) {
        if !self.is_configured() && counters.choice.is_none() {
            return;
        }
        let launch = launch();
        // A kernel ends after its children, which the same call enqueues after it.
        if let Some(choice) = &counters.choice {
            choice.enqueued(launch.correlation, launch.work);
        }
        let mut state = lock_std(&self.0);
        if state.configured.is_none() {
            // Released since the tool chose its counters.
            drop(state);
            if let Some(choice) = &counters.choice {
                choice.abandoned(launch.correlation, launch.work);
            }
        } else {
            let program = launch.code.program();
            let counts = EventCounts::of_launch(program, launch.groups, launch.waves_per_group);
            let dispatch = CountedDispatch {
                launch,
                counters,
                counts,
                done: 0,
                reported: EventCounts::default(),
            };
            state.dispatches.insert(index, dispatch);
        }
    }

    /// Counts a span of use of the compute units.
    pub(super) fn ran(&self, span: &ShareSpan, clock: &mut SimClock) {
        let state = &mut *lock_std(&self.0);
        let period = match &state.configured {
            Some(configured) => match configured.mode {
                CountingMode::Device { period } => Some(period),
                CountingMode::Dispatch | CountingMode::Range => None,
            },
            None => return,
        };
        let Some(period) = period else {
            return state.progress(span, span.from, span.to);
        };
        let mut from = span.from;
        let current = state.period.get_or_insert_with(|| Period::new(from, clock));
        let mut begin = current.begin;
        // Periods in which nothing ran.
        while begin + period <= from {
            begin = begin + period;
            state.end_period(begin, clock);
        }
        while from < span.to {
            let to = (begin + period).min(span.to);
            state.progress(span, from, to);
            if let Some(current) = &mut state.period {
                let cycles = events::cycles(to - from);
                current.counts.add(CountedEvent::ActiveCycle, cycles);
                (current.until, current.until_time) = (to, clock.read(to));
            }
            if to == begin + period {
                begin = to;
                state.end_period(to, clock);
            }
            from = to;
        }
    }

    /// Ends a dispatch: writes its values.
    pub(super) fn ended(&self, finished: &FinishedCommand) {
        let mut state = lock_std(&self.0);
        let Some(dispatch) = state.dispatches.remove(&finished.work) else {
            return;
        };
        let counters = &dispatch.counters;
        let Some(records) = &counters.records else {
            return;
        };
        // A pass is one of several equal parts of the time that the kernel had.
        let passes = counters.passes();
        let duration = Nanos((finished.end - finished.start).0 / passes);
        let mut counts = dispatch.counts;
        for event in [CountedEvent::Cycle, CountedEvent::ActiveCycle] {
            counts.add(event, events::cycles(duration));
        }
        for (event, cycles) in dispatch.unit_cycles(dispatch.done / passes) {
            counts.add(event, cycles);
        }
        let subject = Subject {
            work: dispatch.launch.work,
            correlation: dispatch.launch.correlation,
            queue: dispatch.launch.queue,
            duration: Some(duration.0),
            ..Subject::default()
        };
        let readings = readings(records, &counts);
        let values = state.write(records, &subject, &readings);
        drop(state);
        if let Some(choice) = &counters.choice {
            if !values.is_empty() {
                choice.counted(&values);
            }
            choice.measured(&DispatchReadings {
                call: subject.correlation,
                work: subject.work,
                duration: Some(duration),
                readings,
                properties: records.properties().clone(),
            });
            let ready = choice.take_ready();
            lock_std(&self.0).write_ready(ready);
        }
    }
}

impl CountersState {
    /// Adds the progress that work made between two moments of a span.
    fn progress(&mut self, span: &ShareSpan, from: Moment, to: Moment) {
        for (work, share) in &span.shares {
            let Some(dispatch) = self.dispatches.get_mut(work) else {
                continue;
            };
            let before = dispatch.unit_cycles(dispatch.done);
            dispatch.done += share * (to - from).0;
            let counts = dispatch.counts.part(dispatch.done, dispatch.launch.demand);
            let mut new = counts.minus(dispatch.reported);
            dispatch.reported = counts;
            let after = dispatch.unit_cycles(dispatch.done);
            for ((event, before), (_, after)) in before.into_iter().zip(after) {
                new.add(event, after - before);
            }
            if let Some(current) = &mut self.period {
                current.counts = current.counts.plus(new);
            }
        }
    }

    /// Ends the period in progress at `to`, where the next one begins.
    fn end_period(&mut self, to: Moment, clock: &mut SimClock) {
        let next = Period::new(to, clock);
        if let Some(mut ended) = self.period.replace(next) {
            (ended.until, ended.until_time) = (to, clock.read(to));
            self.write_period(ended);
        }
    }

    /// Writes the values of `period` from its begin to the end of its latest span.
    fn write_period(&mut self, period: Period) {
        let mut counts = period.counts;
        let duration = period.until - period.begin;
        counts.add(CountedEvent::Cycle, events::cycles(duration));
        let subject = Subject {
            span: (period.begin_time, period.until_time),
            duration: Some(duration.0),
            ..Subject::default()
        };
        if let Some(configured) = &self.configured {
            let records = configured.records.clone();
            self.write(&records, &subject, &readings(&records, &counts));
        }
    }

    /// Writes the values of ranges.
    fn write_ready(&mut self, ready: ReadyValues) {
        let Some((host, recorder)) = &mut self.host else {
            return;
        };
        for (buffers, record) in ready {
            keep_room(recorder.as_ref());
            host.write_to(buffers, record);
        }
    }

    /// Writes the values of `subject`, and returns them.
    fn write(
        &mut self,
        records: &ValueRecords,
        subject: &Subject,
        readings: &[(Counted, CounterReading)],
    ) -> Vec<CounterValue> {
        let is_of_range = |configured: &Configured| configured.mode == CountingMode::Range;
        let (Some(delivery), Some((host, recorder)), false) = (
            self.delivery,
            &mut self.host,
            self.configured.as_ref().is_some_and(is_of_range),
        ) else {
            return Vec::new();
        };
        let values = records.of(subject, readings);
        for record in &values {
            keep_room(recorder.as_ref());
            host.write_to(delivery.buffers, *record);
        }
        values
    }
}

/// The readings of the counters of `records`.
fn readings(records: &ValueRecords, counts: &EventCounts) -> Vec<(Counted, CounterReading)> {
    let set = records.set();
    let read = |counted: Counted| {
        let name = &set.architecture().counter(counted.0).name;
        let mut reading = CounterReading::of(0);
        reading.instances = events::values(name, counts);
        (counted, reading)
    };
    set.counted().map(read).collect()
}

impl Provider<CountingRequest> for DeviceCounters {
    fn configurations(&self) -> Vec<Countable> {
        vec![countable(lock_std(&self.0).architecture)]
    }

    fn configure(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        let mut state = lock_std(&self.0);
        let records =
            ValueRecords::new(request.set.clone(), state.agent, properties(), &state.names);
        state.configured = Some(Configured {
            mode: request.mode,
            choice: request.choice.clone(),
            records: Arc::new(records),
        });
        state.period = None;
        Ok(())
    }

    fn release(&self) {
        lock_std(&self.0).configured = None;
    }

    fn start(&self, to: CountingDelivery) {
        let mut state = lock_std(&self.0);
        (state.delivery, state.period) = (Some(to), None);
    }

    fn stop(&self) {
        let mut state = lock_std(&self.0);
        // The period in progress ends early.
        if let Some(last) = state.period.take()
            && last.begin < last.until
        {
            state.write_period(last);
        }
        state.delivery = None;
    }

    fn flush(&self) {
        // The period in progress ends early. The next one begins where work last ran.
        let state = &mut *lock_std(&self.0);
        let Some(current) = &mut state.period else {
            return;
        };
        if current.begin < current.until {
            let next = Period {
                begin: current.until,
                begin_time: current.until_time,
                counts: EventCounts::default(),
                ..*current
            };
            let ended = std::mem::replace(current, next);
            state.write_period(ended);
        }
    }
}
