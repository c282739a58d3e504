//! Summary of a recording: the time of calls and kernels, and the load of the devices.
//!
//! A [`Summary`] consumes the [model of a trace](gputrail_trace::model) in memory that depends on the number of functions
//! and kernels, not on how often they run.

mod busy;
mod call_stacks;
mod collectives;
mod consume;
mod counters;
mod distribution;
mod host;
mod latency;
mod names;
mod places;
mod ranges;
mod results;
mod roles;
mod roofline;
pub mod steps;
mod sweep;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::{BTreeMap, HashMap};

use gputrail_record::number_map::NumberMap;
use gputrail_record::{Domain, Nanos};
use gputrail_trace::model::{
    AgentIndex, FunctionIndex, ProcessIndex, QueueIndex, StageId, TrackIndex, WorkKind,
};

pub use busy::{Busy, BusyTime, Gaps, Opener};
pub use call_stacks::LaunchStack;
use call_stacks::LaunchStacks;
use collectives::Collectives;
pub use collectives::{CollectiveKey, CollectiveSummary};
pub(crate) use consume::MANY_WORKGROUPS;
use counters::CounterFigures;
pub use counters::{CounterSummary, InvalidCounter, PeriodSummary, RangeCounterSummary};
pub use distribution::Distribution;
use host::Host;
pub use host::Waits;
pub use latency::LaunchParts;
use latency::Launches;
use names::Names;
pub use names::{ProcessLabel, QueueLabel};
use places::Places;
pub use places::{PlaceSummary, SettledPlaces};
pub use ranges::{RangeKernel, RangeSummary};
use ranges::{RangeTrack, SummedRanges};
pub use results::{FailureCode, FunctionSummary, GpuSummary, Occasion, TINY_BYTES, WorkSummary};
pub use roles::FunctionRole;
pub use roofline::Roofline;
use steps::StepPatterns;
pub use sweep::{DeviceTimes, WorkClass};
pub use timeline::{Load, SpanLoads, Timeline};

use crate::stacks::StackTree;

/// Maximum number of functions, and of kernels and kinds of work, that are distinguished; the rest is summed up.
const MAX_ROWS: usize = 1 << 14;
/// Maximum number of return codes of one function that are distinguished.
const MAX_CODES: usize = 64;
/// Maximum number of tracks of ranges.
const MAX_RANGE_TRACKS: usize = 1 << 16;
/// Maximum number of spans in which the recording was off, of all processes, that are kept apart.
const MAX_OFF_SPANS: usize = 1 << 14;
/// Maximum number of reasons why records are missing that are kept apart.
const MAX_MISSING: usize = 64;
/// The name under which the rest is summed up.
const REST: &str = "(others)";

/// A kernel or kind of work, and its name.
#[derive(Debug)]
struct KnownWork {
    /// The index of its name in [`Summary::labels`].
    label: u32,
    class: WorkClass,
    sum: WorkSummary,
}

/// The busy time of a device, in all and by kind of work.
#[derive(Debug, Default)]
struct GpuTime {
    title: String,
    name: String,
    all: BusyTime,
    kernels: BusyTime,
    transfers: BusyTime,
    untimed: u64,
}

/// Sums up a recording.
#[derive(Debug, Default)]
pub struct Summary {
    functions: NumberMap<FunctionIndex, FunctionSummary>,
    work: NumberMap<(ProcessIndex, StageId), KnownWork>,
    /// Names of work that may end a gap.
    labels: Vec<String>,
    gpus: BTreeMap<AgentIndex, GpuTime>,
    ranges: SummedRanges,
    counters: CounterFigures,
    /// Tracks on which ranges are.
    range_tracks: NumberMap<TrackIndex, RangeTrack>,
    /// The keys of the work of each label.
    label_keys: Vec<(ProcessIndex, StageId)>,
    names: Names,
    places: Places,
    step_patterns: StepPatterns,
    /// Device time by process, ranges and kernel, if it is wanted.
    stacks: Option<StackTree>,
    /// Device time by call stack, if it is wanted.
    launch_stacks: Option<LaunchStacks>,
    launches: Launches,
    host: Host,
    collectives: Collectives,
    /// The number of pieces of work that begin before their calls, and by how much the earliest does.
    early: (u64, Option<(Nanos, u64)>),
    span: Option<(Nanos, Nanos)>,
    lost: u64,
    missing: BTreeMap<String, u64>,
    off: BusyTime,
    off_spans: Vec<(Nanos, Nanos)>,
}

impl Summary {
    /// All functions, in descending order of time. Calls of all processes count together.
    pub fn functions(&self) -> Vec<FunctionSummary> {
        let mut by_name: HashMap<(&str, Domain), FunctionSummary> = HashMap::new();
        for function in self.functions.values() {
            let key = (function.name.as_str(), function.domain);
            match by_name.get_mut(&key) {
                None => drop(by_name.insert(key, function.clone())),
                Some(sum) => {
                    sum.times.merge(&function.times);
                    sum.outermost.0 += function.outermost.0;
                    sum.outermost.1 += function.outermost.1;
                    sum.unfinished += function.unfinished;
                    for (code, count) in &function.failures {
                        *sum.failures.entry(*code).or_default() += count;
                    }
                    Occasion::keep_longest(&mut sum.longest, function.longest);
                    let failures = [sum.first_failure, function.first_failure];
                    sum.first_failure = failures.into_iter().flatten().min();
                }
            }
        }
        let mut list: Vec<_> = by_name.into_values().collect();
        list.sort_by(|a, b| {
            b.times
                .total
                .cmp(&a.times.total)
                .then_with(|| a.name.cmp(&b.name))
        });
        list
    }

    /// Functions that failed, in descending order of frequency.
    pub fn failures(&self) -> Vec<FailureCode> {
        let mut list: Vec<FailureCode> = self
            .functions()
            .into_iter()
            .flat_map(|function| {
                let FunctionSummary {
                    name,
                    domain,
                    failures,
                    ..
                } = function;
                let failure = move |(code, count)| FailureCode {
                    name: name.clone(),
                    domain,
                    code,
                    count,
                };
                failures.into_iter().map(failure)
            })
            .collect();
        list.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        list
    }

    /// All kernels, in descending order of time. Kernels with the same name count together.
    pub fn kernels(&self) -> Vec<WorkSummary> {
        self.work_where(|kind| kind == WorkKind::Kernel)
    }

    /// All other work by name, in descending order of time.
    pub fn other_work(&self) -> Vec<WorkSummary> {
        self.work_where(|kind| !matches!(kind, WorkKind::Kernel | WorkKind::Graph))
    }

    /// Launches of graphs, whose nodes are among the kernels and the other work.
    pub fn graph_launches(&self) -> Vec<WorkSummary> {
        self.work_where(|kind| kind == WorkKind::Graph)
    }

    fn work_where(&self, wanted: impl Fn(WorkKind) -> bool) -> Vec<WorkSummary> {
        let mut by_name: HashMap<(&str, WorkKind), WorkSummary> = HashMap::new();
        let work = self.work.values().map(|work| &work.sum);
        for work in work.filter(|work| wanted(work.kind)) {
            let key = (work.name.as_str(), work.kind);
            match by_name.get_mut(&key) {
                None => drop(by_name.insert(key, work.clone())),
                Some(sum) => {
                    sum.times.merge(&work.times);
                    sum.unfinished += work.unfinished;
                    sum.untimed += work.untimed;
                    sum.failed += work.failed;
                    sum.sizes.merge(&work.sizes);
                    sum.sized_time += work.sized_time;
                    sum.tiny_count += work.tiny_count;
                    sum.tiny_time += work.tiny_time;
                    sum.latency.merge(&work.latency);
                    sum.parts.add(&work.parts);
                    Occasion::keep_longest(&mut sum.longest, work.longest);
                    let firsts = [sum.first, work.first].into_iter().flatten();
                    sum.first = firsts.min_by_key(|first| first.start);
                    sum.shape = sum.shape.or(work.shape);
                    sum.occupied += work.occupied;
                    sum.occupancy_time += work.occupancy_time;
                }
            }
        }
        let mut list: Vec<_> = by_name.into_values().collect();
        list.sort_by(|a, b| {
            b.times
                .total
                .cmp(&a.times.total)
                .then_with(|| a.name.cmp(&b.name))
        });
        list
    }

    /// The devices, in the order of the trace.
    pub fn gpus(&self) -> Vec<GpuSummary> {
        let summary = |(agent, time): (&AgentIndex, &GpuTime)| {
            let of = |time: &BusyTime| time.busy().map_or(0, |busy| busy.busy.0);
            let busy = time.all.busy();
            let (kernels, transfers) = (of(&time.kernels), of(&time.transfers));
            let all = busy.as_ref().map_or(0, |busy| busy.busy.0);
            GpuSummary {
                title: time.title.clone(),
                name: time.name.clone(),
                agent: *agent,
                processes: self.places.processes_of(*agent),
                gaps: self.gaps(busy.as_ref()),
                busy,
                untimed: time.untimed,
                kernels: Nanos(kernels),
                transfers: Nanos(transfers),
                overlap: Nanos((kernels + transfers).saturating_sub(all)),
            }
        };
        self.gpus.iter().map(summary).collect()
    }

    /// The gaps of a device by name: kernels of several processes may have the same name.
    fn gaps(&self, busy: Option<&Busy>) -> Vec<(String, Gaps)> {
        let mut by_name: BTreeMap<&str, Gaps> = BTreeMap::new();
        for (label, gaps) in busy.iter().flat_map(|busy| &busy.gaps) {
            let name = self.labels.get(*label as usize).map_or(REST, |name| name);
            let sum = by_name.entry(name).or_default();
            sum.times.merge(&gaps.times);
            sum.host = Nanos(sum.host.0.saturating_add(gaps.host.0));
            sum.waiting = Nanos(sum.waiting.0.saturating_add(gaps.waiting.0));
            Occasion::keep_longest(&mut sum.longest_host, gaps.longest_host);
        }
        let named = |(name, gaps): (&str, Gaps)| (name.to_owned(), gaps);
        let mut list: Vec<_> = by_name.into_iter().map(named).collect();
        list.sort_by_key(|(_, gaps)| std::cmp::Reverse(gaps.times.total));
        list
    }

    /// Ranges of markers by name, in descending order of time.
    pub fn ranges(&self) -> Vec<RangeSummary> {
        self.ranges.list()
    }

    /// The kernels that were launched in ranges, by range and descending time.
    pub fn range_kernels(&self) -> Vec<RangeKernel> {
        let name = |label: u32| self.labels.get(label as usize).map_or(REST, |name| name);
        self.ranges.kernels(name)
    }

    /// The sums of devices, queues and steps.
    pub fn places(&self) -> SettledPlaces {
        self.places.settled()
    }

    /// A process, as people call it.
    pub fn process_label(&self, index: ProcessIndex) -> ProcessLabel {
        self.names.process(index)
    }

    /// A queue, as people call it.
    pub fn queue_label(&self, index: QueueIndex) -> QueueLabel {
        self.names.queue(index)
    }

    /// The short name of a device.
    pub fn device(&self, index: AgentIndex) -> String {
        let gpu = self.gpus.get(&index);
        gpu.map_or(REST.to_owned(), |gpu| gpu.title.clone())
    }

    /// The greatest values of counters of allocated memory: process, name of the counter, bytes, and when.
    pub fn memory_peaks(&self) -> impl Iterator<Item = (ProcessIndex, &str, u64, Nanos)> {
        self.names.memory_peaks()
    }

    /// Communication of kernels by operation and group, in descending order of time.
    pub fn collectives(&self) -> Vec<(CollectiveKey, CollectiveSummary)> {
        self.collectives.list()
    }

    /// The number of pieces of work that begin before the calls that enqueued them; when the earliest does, and by how many ns.
    pub fn early(&self) -> (u64, Option<(Nanos, u64)>) {
        self.early
    }

    /// Has device time summed up by process, ranges and kernel, too.
    pub fn with_stacks(mut self) -> Summary {
        self.stacks = Some(StackTree::default());
        self
    }

    /// Has the load of devices and queues over time kept, too.
    pub fn with_timelines(mut self) -> Summary {
        self.places.has_timelines = true;
        self
    }

    /// Device time, ns, by process, ranges and operators, and kernel or kind of work; `None` unless it was asked for.
    pub fn take_stacks(&mut self) -> Option<StackTree> {
        self.stacks.take()
    }

    /// Has device time summed up by the call stacks of launches, too.
    pub fn with_launch_stacks(mut self) -> Summary {
        self.launch_stacks = Some(LaunchStacks::default());
        self
    }

    /// The call stacks of launches with the name of the work that took most of their time, in descending order of time; `None`
    /// unless they were asked for.
    pub fn launch_stacks(&self) -> Option<Vec<(LaunchStack, &str)>> {
        let list = self.launch_stacks.as_ref()?.list().into_iter();
        let named = list.map(|stack| {
            let name = self.label(stack.label);
            (stack, name)
        });
        Some(named.collect())
    }

    /// Device time, ns, by process, call stack, and kernel or kind of work; `None` unless it was asked for.
    pub fn launch_stack_tree(&self) -> Option<StackTree> {
        let process = |index| self.names.process(index).text();
        let stacks = self.launch_stacks.as_ref()?;
        Some(stacks.tree(process, |label| self.label(label)))
    }

    fn label(&self, label: u32) -> &str {
        self.labels.get(label as usize).map_or(REST, |name| name)
    }

    /// The waits of threads behind launches.
    pub fn waits(&self) -> &Waits {
        &self.host.waits
    }

    /// The shortest call or range that filled half of a time of a process, or the one that filled most, and for how long.
    pub fn host_during(
        &self,
        process: ProcessIndex,
        from: Nanos,
        to: Nanos,
    ) -> Option<(&str, u64)> {
        self.host.during(process, from, to)
    }

    /// Whether ranges with a name are steps.
    pub fn is_step(&self, name: &str) -> bool {
        self.step_patterns.is_step(name, false)
    }

    /// Sums up a recording in which ranges that match the patterns are steps; without patterns, those that are numbered.
    pub fn with_steps(patterns: &[String]) -> Summary {
        Summary {
            step_patterns: StepPatterns::new(patterns),
            ..Summary::default()
        }
    }

    /// The counters of each kernel, by names.
    pub fn counters(&self) -> Vec<CounterSummary> {
        self.counters.list()
    }

    /// The values of counters without a number, by kernel, counter and reason.
    pub fn invalid_counters(&self) -> Vec<InvalidCounter> {
        self.counters.invalid()
    }

    /// The counters of ranges that were counted as a whole, by names.
    pub fn range_counters(&self) -> Vec<RangeCounterSummary> {
        self.counters.ranges()
    }

    /// The counters that were read at a period, by agent and name.
    pub fn period_counters(&self) -> Vec<PeriodSummary> {
        let title = |agent: AgentIndex| {
            let gpu = self.gpus.get(&agent);
            gpu.map_or(String::new(), |gpu| gpu.title.clone())
        };
        self.counters.periods(title)
    }

    /// The arithmetic intensity of the kernels whose counters tell it.
    pub fn rooflines(&self) -> Vec<Roofline> {
        roofline::rooflines(&self.counters.list())
    }

    /// From the first call, work or marker to the end of the last; `None` for an empty recording.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span
    }

    /// The number of lost records.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The reasons why records are missing, other than a want of memory, and how often each was noted: such as an API that
    /// could not be observed, once for each process. How many records are missing is known only where the reason says it.
    pub fn missing(&self) -> &BTreeMap<String, u64> {
        &self.missing
    }

    /// The number of spans in which the recording of some process was switched off, and the time of their union.
    pub fn off(&self) -> (usize, Nanos) {
        let time = self.off.busy().map_or(Nanos(0), |off| off.busy);
        (self.off_spans.len(), time)
    }

    fn add_off(&mut self, start: Nanos, end: Nanos) {
        // Processes of one recording are switched off together.
        self.off.add(start, end, None);
        if self.off_spans.len() < MAX_OFF_SPANS {
            self.off_spans.push((start, end));
            for gpu in self.gpus.values_mut() {
                gpu.all.exclude(start, end);
            }
        }
    }

    fn extend(&mut self, start: Nanos, end: Nanos) {
        let (first, last) = self.span.get_or_insert((start, end));
        *first = start.min(*first);
        *last = end.max(*last);
    }
}
