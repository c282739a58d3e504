//! Summary of a recording: the time of calls and kernels, and the load of the devices.
//!
//! A [`Summary`] consumes the [model of a trace](gputrail_trace::model) in memory that depends on the number of functions
//! and kernels, not on how often they run.

mod busy;
mod counters;
mod distribution;
mod ranges;
mod roofline;

use std::collections::{BTreeMap, HashMap};
use std::io;

pub use busy::{Busy, BusyTime, Gaps, Opener};
use counters::CounterFigures;
pub use counters::{CounterSummary, InvalidCounter, PeriodSummary, RangeCounterSummary};
pub use distribution::Distribution;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Domain, Nanos, OperationGroup, ThreadId, Unfinished};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, FunctionIndex,
    Instant, Loss, Note, ProcessIndex, Slice, StageId, Track, TrackIndex, TrackKind, Work,
    WorkKind, category,
};
pub use ranges::RangeSummary;
use ranges::{RangePlace, SummedRanges};
pub use roofline::Roofline;

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

/// A function of an API.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSummary {
    /// Its name.
    pub name: String,
    /// Its API.
    pub domain: Domain,
    /// Its group.
    pub group: OperationGroup,
    /// The durations of its calls that returned, ns. Calls made by other calls count here and in their callers.
    pub times: Distribution,
    /// The number of calls that did not return.
    pub unfinished: u64,
    /// The number of failed calls, by return code.
    pub failures: BTreeMap<i32, u64>,
}

/// A return code of a function that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCode {
    /// Its name.
    pub name: String,
    /// Its API.
    pub domain: Domain,
    /// The return code.
    pub code: i32,
    /// The number of calls that returned it.
    pub count: u64,
}

/// A kernel, or a kind of copy, fill or barrier.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSummary {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: WorkKind,
    /// The durations of work, ns: of completed work, and of work that was running at the end. Work without an end whose
    /// start was not measured may never have started, and is not among them.
    pub times: Distribution,
    /// The times from the begin of the call that enqueued it to its start, ns, if both are known.
    pub latency: Distribution,
    /// The number of pieces of work that did not complete, or have no times.
    pub unfinished: u64,
    /// The number of those that are not in `times`.
    pub untimed: u64,
    /// The number of pieces of work that completed with an error.
    pub failed: u64,
    /// The sizes of copies and fills in bytes, if known.
    pub sizes: Distribution,
}

/// The use of a device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSummary {
    /// Its short name, as its tracks have it: "GPU 0".
    pub title: String,
    /// Its name.
    pub name: String,
    /// Its busy time; `None` if it did no work, or none with times.
    pub busy: Option<Busy>,
    /// The number of pieces of its work whose times the runtime did not give.
    pub untimed: u64,
    /// The time in which kernels ran.
    pub kernels: Nanos,
    /// The time in which copies, fills, and unknown work ran.
    pub transfers: Nanos,
    /// The time in which both ran.
    pub overlap: Nanos,
    /// The gaps between its work by the name of the work that ended them, in descending order of time.
    pub gaps: Vec<(String, Gaps)>,
}

/// A kernel or kind of work, and its name.
#[derive(Debug)]
struct KnownWork {
    /// The index of its name in [`Summary::labels`].
    label: u32,
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
    /// The thread of each track of ranges.
    range_tracks: NumberMap<TrackIndex, Option<(ProcessIndex, ThreadId)>>,
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
                    sum.unfinished += function.unfinished;
                    for (code, count) in &function.failures {
                        *sum.failures.entry(*code).or_default() += count;
                    }
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
                    sum.latency.merge(&work.latency);
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
        let summary = |time: &GpuTime| {
            let of = |time: &BusyTime| time.busy().map_or(0, |busy| busy.busy.0);
            let busy = time.all.busy();
            let (kernels, transfers) = (of(&time.kernels), of(&time.transfers));
            let all = busy.as_ref().map_or(0, |busy| busy.busy.0);
            GpuSummary {
                title: time.title.clone(),
                name: time.name.clone(),
                gaps: self.gaps(busy.as_ref()),
                busy,
                untimed: time.untimed,
                kernels: Nanos(kernels),
                transfers: Nanos(transfers),
                overlap: Nanos((kernels + transfers).saturating_sub(all)),
            }
        };
        self.gpus.values().map(summary).collect()
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

impl Consumer for Summary {
    gputrail_trace::leave_out!(clocks attributes process queue value samples stack stack_samples);

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        for (index, agent) in (first.0..).zip(agents) {
            let time = self.gpus.entry(AgentIndex(index)).or_default();
            (time.title, time.name) = (agent.title.clone(), agent.name.clone());
            for (start, end) in &self.off_spans {
                time.all.exclude(*start, *end);
            }
        }
        Ok(())
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let thread = match track.kind {
            TrackKind::ThreadRanges(process, thread) => Some((process, thread)),
            TrackKind::Ranges => None,
            _ => return Ok(()),
        };
        if self.range_tracks.len() < MAX_RANGE_TRACKS {
            self.range_tracks.insert(index, thread);
        }
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        self.counters.declare(index, block);
        Ok(())
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        _: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.counters.add_period(block, values);
        Ok(())
    }

    fn derived_values(&mut self, _: CounterIndex, _: Nanos, _: &[CounterValue]) -> io::Result<()> {
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.extend(call.start, call.end.unwrap_or(call.start));
        let room = self.functions.len() < MAX_ROWS;
        let mut key = call.function.index;
        let mut name = &*call.function.name;
        if !room && !self.functions.contains_key(&key) {
            (key, name) = (FunctionIndex(u32::MAX), REST);
        }
        let function = self
            .functions
            .entry(key)
            .or_insert_with(|| FunctionSummary {
                name: name.to_owned(),
                domain: call.function.domain,
                group: call.function.group,
                times: Distribution::default(),
                unfinished: 0,
                failures: BTreeMap::new(),
            });
        if let (false, Some(end)) = (call.nested, call.end) {
            let took = end.0.saturating_sub(call.start.0);
            self.ranges
                .call(call.process, call.thread, call.start, took);
        }
        match call.end {
            Some(end) => function.times.add(end.0.saturating_sub(call.start.0)),
            None => function.unfinished += 1,
        }
        if let Some(code) = call.error {
            let codes = function.failures.len();
            match function.failures.get_mut(&code) {
                Some(count) => *count += 1,
                None if codes < MAX_CODES => drop(function.failures.insert(code, 1)),
                None => *function.failures.entry(i32::MIN).or_default() += 1,
            }
        }
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        self.counters.add(work);
        let kind = work.stage.kind;
        let room = self.work.len() < MAX_ROWS;
        let mut key = (work.process, work.stage.id);
        let mut name = work.stage.name;
        if !room && !self.work.contains_key(&key) {
            let rest = StageId(kind as u64);
            (key, name) = ((ProcessIndex(u32::MAX), rest), REST);
        }
        let labels = &mut self.labels;
        let KnownWork { label, sum } = self.work.entry(key).or_insert_with(|| {
            labels.push(name.to_owned());
            KnownWork {
                label: labels.len() as u32 - 1,
                sum: WorkSummary {
                    name: name.to_owned(),
                    kind,
                    times: Distribution::default(),
                    latency: Distribution::default(),
                    unfinished: 0,
                    untimed: 0,
                    failed: 0,
                    sizes: Distribution::default(),
                },
            }
        });
        if work.bytes > 0 {
            sum.sizes.add(work.bytes);
        }
        sum.failed += u64::from(work.status < 0);
        match work.interval {
            Some((start, end)) => {
                sum.times.add(end.0.saturating_sub(start.0));
                if let Some(enqueued) = work.enqueued {
                    sum.latency.add(start.0.saturating_sub(enqueued.0));
                    let ran = end.0.saturating_sub(start.0);
                    self.ranges.work(work.process, work.thread, enqueued, ran);
                }
                let opener = Opener {
                    label: *label,
                    enqueued: work.enqueued,
                };
                self.extend(start, end);
                if kind.is_busy()
                    && let Some(gpu) = self.gpus.get_mut(&work.agent)
                {
                    gpu.all.add(start, end, Some(opener));
                    let of_kind = match kind {
                        WorkKind::Kernel => &mut gpu.kernels,
                        _ => &mut gpu.transfers,
                    };
                    of_kind.add(start, end, None);
                }
            }
            None if work.unfinished == Unfinished::NO_TIMES.name() => {
                sum.untimed += 1;
                if let Some(gpu) = self.gpus.get_mut(&work.agent) {
                    gpu.untimed += 1;
                }
            }
            None if work.unfinished == Some(Work::UNRECORDED) => {
                sum.untimed += 1;
            }
            None => {
                sum.unfinished += 1;
                // It was running until the end, or it is not known to have started.
                if let Some((start, end)) = work.measured() {
                    sum.times.add(end.0.saturating_sub(start.0));
                    self.extend(start, end);
                    if let Some(gpu) = self.gpus.get_mut(&work.agent)
                        && kind.is_busy()
                    {
                        gpu.all.add(start, end, None);
                        let of_kind = match kind {
                            WorkKind::Kernel => &mut gpu.kernels,
                            _ => &mut gpu.transfers,
                        };
                        of_kind.add(start, end, None);
                    }
                } else {
                    sum.untimed += 1;
                }
            }
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        if slice.is_off() {
            self.add_off(slice.start, slice.end.unwrap_or(slice.start));
        }
        if slice.category == category::COUNTED_RANGE {
            self.counters.add_range(slice);
        }
        match (self.range_tracks.get(&slice.track), slice.end) {
            (Some(Some((process, thread))), _) => {
                let place = RangePlace {
                    process: *process,
                    thread: *thread,
                    track: slice.track,
                };
                self.ranges.begin(place, slice.name, slice.start);
            }
            (Some(None), end) => self.ranges.add(slice.name, slice.start, end),
            (None, _) => return Ok(()),
        }
        self.extend(slice.start, slice.end.unwrap_or(slice.start));
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        if self.range_tracks.contains_key(&instant.track) {
            self.extend(instant.time, instant.time);
        }
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        if let Some(Some((process, thread))) = self.range_tracks.get(&track) {
            let place = RangePlace {
                process: *process,
                thread: *thread,
                track,
            };
            self.ranges.end(place, end);
            self.extend(end, end);
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.lost = self.lost.saturating_add(loss.count);
        Ok(())
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        if let Some(reason) = note.missing() {
            let is_known = self.missing.contains_key(reason);
            let reason = if is_known || self.missing.len() < MAX_MISSING {
                reason
            } else {
                REST
            };
            *self.missing.entry(reason.to_owned()).or_default() += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::{CorrelationId, ExternalId};
    use gputrail_trace::model::{
        CounterDescription, CounterUnit, EventArgument, EventId, Function, QueueIndex, Resources,
        Stage, Value,
    };

    fn function(name: &str, index: u32) -> Function {
        Function {
            index: FunctionIndex(index),
            name: name.into(),
            domain: Domain::OPENCL,
            category: None,
            group: OperationGroup::ENQUEUE,
            parameters: Vec::new(),
        }
    }

    fn call(function: &Function, start: u64, end: u64, error: Option<i32>) -> Call<'_> {
        Call {
            process: ProcessIndex(0),
            thread: ThreadId(1),
            track: TrackIndex(0),
            function,
            start: Nanos(start),
            end: Some(Nanos(end)),
            open: false,
            nested: false,
            correlation: CorrelationId(1),
            external: ExternalId::NONE,
            error,
            submitted: &[],
            waited: &[],
            arguments: &[],
            flows: &[],
        }
    }

    fn kernel(name: &str, stage: u64, interval: Option<(u64, u64)>) -> Work<'_> {
        Work {
            process: ProcessIndex(0),
            thread: ThreadId(1),
            correlation: CorrelationId(1),
            event: Some(EventId(1)),
            agent: AgentIndex(0),
            queue: QueueIndex(0),
            stream: 0,
            stage: Stage {
                id: StageId(stage),
                kind: WorkKind::Kernel,
                name,
                demangled: "",
                architecture: "",
            },
            enqueued: None,
            queued: None,
            submitted: None,
            interval: interval.map(|(start, end)| (Nanos(start), Nanos(end))),
            start: None,
            duration: None,
            unfinished: None,
            launch: None,
            resources: Resources::default(),
            bytes: 0,
            status: 0,
            waits: &[],
            samples: None,
            arguments: &[],
        }
    }

    fn agent(name: &str) -> Agent {
        Agent {
            name: name.into(),
            ..Agent::default()
        }
    }

    #[test]
    fn functions_come_by_time_and_processes_are_put_together() {
        let mut summary = Summary::default();
        let [short, long, elsewhere] =
            [("short", 0), ("long", 1), ("short", 7)].map(|(name, index)| function(name, index));
        summary.call(&call(&short, 0, 10, None)).unwrap();
        summary.call(&call(&long, 10, 40, None)).unwrap();
        let elsewhere = Call {
            process: ProcessIndex(1),
            ..call(&elsewhere, 100, 105, None)
        };
        summary.call(&elsewhere).unwrap();
        let functions = summary.functions();
        assert_eq!(functions[0].name, "long");
        let times = &functions[1].times;
        assert_eq!(
            (times.count, times.total, times.least, times.most),
            (2, 15, 5, 10)
        );
        assert_eq!(times.mean(), 7);
        assert_eq!(summary.span(), Some((Nanos(0), Nanos(105))));
    }

    #[test]
    fn failures_are_counted_by_code() {
        let mut summary = Summary::default();
        let function = function("clX", 0);
        for error in [Some(-5), Some(-30), Some(-5), None] {
            summary.call(&call(&function, 0, 1, error)).unwrap();
        }
        let failures: Vec<_> = summary
            .failures()
            .iter()
            .map(|f| (f.code, f.count))
            .collect();
        assert_eq!(failures, [(-5, 2), (-30, 1)]);
    }

    #[test]
    fn reasons_of_missing_records_are_counted_up_to_a_limit() {
        let mut summary = Summary::default();
        let mut note = |name, text: &str| {
            let value = Value::Text(text);
            let arguments = [EventArgument {
                name: "detail",
                value,
            }];
            let note = Note {
                process: ProcessIndex(0),
                time: Nanos(1),
                name,
                arguments: &arguments,
            };
            summary.note(&note).unwrap();
        };
        for reason in 0..MAX_MISSING + 2 {
            note("records missing", &reason.to_string());
        }
        note("records missing", "7");
        note("recording", "of something else");
        let missing = summary.missing();
        assert_eq!(missing.len(), MAX_MISSING + 1);
        assert_eq!((missing["7"], missing[REST]), (2, 2));
    }

    #[test]
    fn work_that_did_not_end_takes_no_time() {
        let mut summary = Summary::default();
        summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
        summary.work(&kernel("k", 1, Some((10, 20)))).unwrap();
        summary.work(&kernel("k", 2, None)).unwrap();
        let kernels = summary.kernels();
        assert_eq!((kernels[0].times.count, kernels[0].unfinished), (1, 1));
        assert_eq!(summary.gpus()[0].busy.as_ref().unwrap().busy, Nanos(10));
    }

    #[test]
    fn work_without_an_end_takes_time_only_if_its_start_was_measured() {
        let shown = |why| Work {
            start: Some(Nanos(20)),
            duration: Some(5),
            unfinished: why,
            ..kernel("k", 1, None)
        };
        // Not known to have started; running at the end.
        let reasons = [
            (Some("no completion was recorded"), 0),
            (Unfinished::AT_END.name(), 5),
        ];
        for (why, ran) in reasons {
            let mut summary = Summary::default();
            summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
            summary.work(&kernel("k", 1, Some((10, 20)))).unwrap();
            summary.work(&shown(why)).unwrap();
            let k = &summary.kernels()[0];
            let sums = (k.times.total, k.unfinished, k.untimed);
            assert_eq!(sums, (10 + ran, 1, u64::from(ran == 0)));
            let gpu = &summary.gpus()[0];
            assert_eq!(gpu.busy.as_ref().unwrap().busy, Nanos(10 + ran));
            assert_eq!(gpu.kernels, Nanos(10 + ran));
        }
    }

    #[test]
    fn a_device_may_copy_while_it_computes() {
        let mut summary = Summary::default();
        summary.agents(AgentIndex(0), &[agent("gpu")]).unwrap();
        let enqueued = Some(Nanos(7));
        let work = Work {
            enqueued,
            ..kernel("k", 1, Some((10, 20)))
        };
        summary.work(&work).unwrap();
        let mut copy = kernel("copy", 2, Some((15, 40)));
        (copy.stage.kind, copy.bytes) = (WorkKind::Copy, 64);
        summary.work(&copy).unwrap();
        let gpu = &summary.gpus()[0];
        assert_eq!(
            (gpu.kernels, gpu.transfers, gpu.overlap),
            (Nanos(10), Nanos(25), Nanos(5))
        );
        assert_eq!(summary.kernels()[0].latency.total, 3);
        assert_eq!(summary.other_work()[0].sizes.total, 64);
    }

    #[test]
    fn counters_of_a_kernel_have_their_extremes_and_median() {
        let mut summary = Summary::default();
        let block = CounterBlock {
            name: "SQ".to_owned(),
            process: ProcessIndex(0),
            agent: AgentIndex(0),
            memory: false,
            over_time: false,
            counters: vec![CounterDescription {
                name: "SQ_WAVES".to_owned(),
                description: String::new(),
                unit: CounterUnit::Count,
            }],
        };
        Consumer::counters(&mut summary, CounterIndex(0), &block).unwrap();
        for value in [2.0, 0.25, 16.0] {
            let argument = |name, value| EventArgument { name, value };
            let arguments = [
                argument("SQ_WAVES", Value::Double(value)),
                argument("not declared", Value::Double(value)),
            ];
            let work = Work {
                arguments: &arguments,
                ..kernel("k", 1, Some((10, 20)))
            };
            summary.work(&work).unwrap();
        }
        let invalid = [EventArgument {
            name: "SQ_WAVES",
            value: Value::Text("overflow"),
        }];
        let work = Work {
            arguments: &invalid,
            ..kernel("k", 1, Some((10, 20)))
        };
        summary.work(&work).unwrap();
        let [waves] = &summary.counters()[..] else {
            panic!("{:?}", summary.counters());
        };
        assert_eq!((&*waves.kernel, &*waves.counter), ("k", "SQ_WAVES"));
        assert_eq!((waves.dispatches, waves.min, waves.max), (3, 0.25, 16.0));
        assert!((waves.median - 2.0).abs() < 0.02, "{}", waves.median);
        assert_eq!(waves.total, Some(18.25));
        let reason = InvalidCounter {
            kernel: "k".to_owned(),
            counter: "SQ_WAVES".to_owned(),
            reason: "overflow".to_owned(),
            values: 1,
        };
        assert_eq!(summary.invalid_counters(), [reason]);
        assert_eq!(summary.period_counters(), []);
    }

    #[test]
    fn counters_of_a_period_are_summed_up_by_agent_and_percentages_have_no_sum() {
        let mut summary = Summary::default();
        let counter = |name: &str, unit| CounterDescription {
            name: name.to_owned(),
            description: String::new(),
            unit,
        };
        let block = CounterBlock {
            name: "SQ".to_owned(),
            process: ProcessIndex(0),
            agent: AgentIndex(0),
            memory: false,
            over_time: true,
            counters: vec![
                counter("SQ_WAVES", CounterUnit::Count),
                counter("VALUBusy", CounterUnit::Percent),
            ],
        };
        let title = Agent {
            title: "GPU 0".to_owned(),
            ..agent("a")
        };
        summary.agents(AgentIndex(0), &[title]).unwrap();
        Consumer::counters(&mut summary, CounterIndex(4), &block).unwrap();
        let zeros = [CounterValue::Int(0); 2];
        summary
            .derived_values(CounterIndex(4), Nanos(1), &zeros)
            .unwrap();
        for (time, value) in [(2, 5), (3, 7), (4, 100)] {
            let values = [CounterValue::Int(value), CounterValue::Double(50.0)];
            summary
                .counter_values(CounterIndex(4), Nanos(time), &values)
                .unwrap();
        }
        let [waves, busy] = &summary.period_counters()[..] else {
            panic!("{:?}", summary.period_counters());
        };
        assert_eq!((&*waves.agent, &*waves.counter), ("GPU 0", "SQ_WAVES"));
        assert_eq!((waves.periods, waves.min, waves.max), (3, 5.0, 100.0));
        assert_eq!((waves.median, waves.total), (7.0, Some(112.0)));
        assert_eq!((busy.median, busy.total), (50.0, None));
    }

    #[test]
    fn a_device_without_work_has_no_busy_time() {
        let mut summary = Summary::default();
        summary.agents(AgentIndex(3), &[agent("idle")]).unwrap();
        assert_eq!(summary.gpus()[0].busy, None);
    }
}
