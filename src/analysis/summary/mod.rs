//! What a recording amounts to: which calls and kernels took the time, and how busy the devices were.
//!
//! A [`Summary`] listens while a trace is made ([`perfetto::convert`](crate::trace::perfetto::convert)), in memory
//! that depends on how many functions and kernels there are, not on how often they run.

mod busy;
mod distribution;
mod ranges;

use std::collections::{BTreeMap, HashMap};

use crate::record::number_map::NumberMap;
use crate::record::{Domain, Nanos, OperationGroup, ThreadId};
use crate::trace::perfetto::{
    Call, DeviceWork, GpuIndex, Missing, Observer, ProcessIndex, WorkKind,
};
pub use busy::{Busy, BusyTime, Gaps, Opener};
pub use distribution::Distribution;
pub use ranges::RangeSummary;
use ranges::Ranges;

/// Most functions, and most kernels and kinds of work, that are told apart; the rest is summed up.
const MAX_ROWS: usize = 1 << 14;
/// Most different return codes of one function that are told apart.
const MAX_CODES: usize = 64;
/// What stands for those that are not told apart.
const REST: &str = "(others)";

/// A function of an API.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSummary {
    /// Its name.
    pub name: String,
    /// Whose API.
    pub domain: Domain,
    /// What kind of function it is.
    pub group: OperationGroup,
    /// Its calls that returned, ns each. Those made by other calls count here and in those.
    pub times: Distribution,
    /// Calls that did not return.
    pub unfinished: u64,
    /// Calls that failed, by return code.
    pub failures: BTreeMap<i32, u64>,
}

/// A function that failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its name.
    pub name: String,
    /// Whose API.
    pub domain: Domain,
    /// What it returned.
    pub code: i32,
    /// How often.
    pub count: u64,
}

/// A kernel, or a kind of copy, fill or barrier.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSummary {
    /// Its name.
    pub name: String,
    /// What kind of work it is.
    pub kind: WorkKind,
    /// What completed, ns each.
    pub times: Distribution,
    /// From the begin of the call that enqueued it to its start, ns each, where both are known.
    pub latency: Distribution,
    /// What did not complete, or has no times.
    pub unfinished: u64,
    /// What completed with an error.
    pub failed: u64,
    /// Bytes moved or set, of what has a size.
    pub sizes: Distribution,
}

/// How a device spent its time.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSummary {
    /// Its place in the trace.
    pub index: GpuIndex,
    /// Its name.
    pub name: String,
    /// When it worked; none if it never did.
    pub busy: Option<Busy>,
    /// When kernels ran.
    pub kernels: Nanos,
    /// When copies, fills, and work that is not known ran.
    pub transfers: Nanos,
    /// When both did at once.
    pub overlap: Nanos,
    /// The gaps between its work by the name of the work that ended them, those with most time first.
    pub gaps: Vec<(String, Gaps)>,
}

/// The work of a device, and what it is called.
#[derive(Debug)]
struct KnownWork {
    /// Place of its name in [`Summary::labels`].
    label: u32,
    sum: WorkSummary,
}

/// When a device was busy, and with what.
#[derive(Debug, Default)]
struct GpuTime {
    name: String,
    all: BusyTime,
    kernels: BusyTime,
    transfers: BusyTime,
}

/// Listens to a recording and sums it up.
#[derive(Debug, Default)]
pub struct Summary {
    functions: NumberMap<(ProcessIndex, u32), FunctionSummary>,
    work: NumberMap<(ProcessIndex, u64), KnownWork>,
    /// Names of work that may end a gap.
    labels: Vec<String>,
    gpus: BTreeMap<GpuIndex, GpuTime>,
    ranges: Ranges,
    span: Option<(Nanos, Nanos)>,
    lost: u64,
}

impl Summary {
    /// All functions, those with most time first. Processes are put together.
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

    /// Functions that failed, the most frequent first.
    pub fn failures(&self) -> Vec<Failure> {
        let mut list: Vec<Failure> = self
            .functions()
            .into_iter()
            .flat_map(|function| {
                let FunctionSummary {
                    name,
                    domain,
                    failures,
                    ..
                } = function;
                let failure = move |(code, count)| Failure {
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

    /// All kernels, those with most time first. Kernels of one name are put together.
    pub fn kernels(&self) -> Vec<WorkSummary> {
        self.work_where(|kind| kind == WorkKind::Kernel)
    }

    /// All other work by what it is, that with most time first.
    pub fn other_work(&self) -> Vec<WorkSummary> {
        self.work_where(|kind| kind != WorkKind::Kernel)
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
        let summary = |(index, time): (&GpuIndex, &GpuTime)| {
            let of = |time: &BusyTime| time.busy().map_or(0, |busy| busy.busy.0);
            let busy = time.all.busy();
            let (kernels, transfers) = (of(&time.kernels), of(&time.transfers));
            let all = busy.as_ref().map_or(0, |busy| busy.busy.0);
            GpuSummary {
                index: *index,
                name: time.name.clone(),
                gaps: self.gaps(busy.as_ref()),
                busy,
                kernels: Nanos(kernels),
                transfers: Nanos(transfers),
                overlap: Nanos((kernels + transfers).saturating_sub(all)),
            }
        };
        self.gpus.iter().map(summary).collect()
    }

    /// The gaps of a device by name: kernels of several processes may have the same.
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

    /// Ranges of markers by name, those with most time first.
    pub fn ranges(&self) -> Vec<RangeSummary> {
        self.ranges.list()
    }

    /// From the first call or work to the end of the last; none if there was nothing.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span
    }

    /// Records that are missing.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn extend(&mut self, start: Nanos, end: Nanos) {
        let (first, last) = self.span.get_or_insert((start, end));
        *first = start.min(*first);
        *last = end.max(*last);
    }
}

impl Observer for Summary {
    fn gpu(&mut self, gpu: GpuIndex, name: &str) {
        self.gpus.entry(gpu).or_default().name = name.to_owned();
    }

    fn call(&mut self, call: &Call<'_>) {
        self.extend(call.start, call.end.unwrap_or(call.start));
        let room = self.functions.len() < MAX_ROWS;
        let mut key = (call.process, call.function);
        let mut name = call.name;
        if !room && !self.functions.contains_key(&key) {
            (key, name) = ((ProcessIndex(u32::MAX), u32::MAX), REST);
        }
        let function = self
            .functions
            .entry(key)
            .or_insert_with(|| FunctionSummary {
                name: name.to_owned(),
                domain: call.domain,
                group: call.group,
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
        if call.failed {
            let codes = function.failures.len();
            match function.failures.get_mut(&call.return_code) {
                Some(count) => *count += 1,
                None if codes < MAX_CODES => drop(function.failures.insert(call.return_code, 1)),
                None => *function.failures.entry(i32::MIN).or_default() += 1,
            }
        }
    }

    fn work(&mut self, work: &DeviceWork<'_>) {
        let room = self.work.len() < MAX_ROWS;
        let mut key = (work.process, work.stage);
        let mut name = work.name;
        if !room && !self.work.contains_key(&key) {
            (key, name) = ((ProcessIndex(u32::MAX), work.kind as u64), REST);
        }
        let labels = &mut self.labels;
        let KnownWork { label, sum } = self.work.entry(key).or_insert_with(|| {
            labels.push(name.to_owned());
            KnownWork {
                label: labels.len() as u32 - 1,
                sum: WorkSummary {
                    name: name.to_owned(),
                    kind: work.kind,
                    times: Distribution::default(),
                    latency: Distribution::default(),
                    unfinished: 0,
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
                // A barrier keeps no device busy.
                if work.kind != WorkKind::Synchronization
                    && let Some(gpu) = self.gpus.get_mut(&work.gpu)
                {
                    gpu.all.add(start, end, Some(opener));
                    let of_kind = match work.kind {
                        WorkKind::Kernel => &mut gpu.kernels,
                        _ => &mut gpu.transfers,
                    };
                    of_kind.add(start, end, None);
                }
            }
            None => sum.unfinished += 1,
        }
    }

    fn range_begins(&mut self, process: ProcessIndex, thread: ThreadId, name: &str, start: Nanos) {
        self.ranges.begin(process, thread, name, start);
    }

    fn range_ends(&mut self, process: ProcessIndex, thread: ThreadId, end: Nanos) {
        self.ranges.end(process, thread, end);
    }

    fn range(&mut self, name: &str, start: Nanos, end: Nanos) {
        self.ranges.add(name, start, end);
    }

    fn missing(&mut self, missing: &Missing) {
        self.lost = self.lost.saturating_add(missing.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unfinished;

    fn call(name: &str, function: u32, start: u64, end: u64, code: i32) -> Call<'_> {
        Call {
            process: ProcessIndex(0),
            thread: ThreadId(1),
            function,
            name,
            domain: Domain::OPENCL,
            group: OperationGroup::ENQUEUE,
            start: Nanos(start),
            end: Some(Nanos(end)),
            nested: false,
            failed: code != 0,
            return_code: code,
        }
    }

    fn kernel(name: &str, stage: u64, interval: Option<(u64, u64)>) -> DeviceWork<'_> {
        DeviceWork {
            process: ProcessIndex(0),
            gpu: GpuIndex(0),
            kind: WorkKind::Kernel,
            stage,
            name,
            thread: ThreadId(1),
            enqueued: None,
            interval: interval.map(|(start, end)| (Nanos(start), Nanos(end))),
            unfinished: Unfinished::NO,
            bytes: 0,
            launch: None,
            status: 0,
        }
    }

    #[test]
    fn functions_come_by_time_and_processes_are_put_together() {
        let mut summary = Summary::default();
        summary.call(&call("short", 0, 0, 10, 0));
        summary.call(&call("long", 1, 10, 40, 0));
        let elsewhere = Call {
            process: ProcessIndex(1),
            ..call("short", 7, 100, 105, 0)
        };
        summary.call(&elsewhere);
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
        for code in [-5, -30, -5, 0] {
            summary.call(&call("clX", 0, 0, 1, code));
        }
        let failures: Vec<_> = summary
            .failures()
            .iter()
            .map(|f| (f.code, f.count))
            .collect();
        assert_eq!(failures, [(-5, 2), (-30, 1)]);
    }

    #[test]
    fn work_that_did_not_end_takes_no_time() {
        let mut summary = Summary::default();
        summary.gpu(GpuIndex(0), "gpu");
        summary.work(&kernel("k", 1, Some((10, 20))));
        summary.work(&kernel("k", 2, None));
        let kernels = summary.kernels();
        assert_eq!((kernels[0].times.count, kernels[0].unfinished), (1, 1));
        assert_eq!(summary.gpus()[0].busy.as_ref().unwrap().busy, Nanos(10));
    }

    #[test]
    fn a_device_may_copy_while_it_computes() {
        let mut summary = Summary::default();
        summary.gpu(GpuIndex(0), "gpu");
        let enqueued = Some(Nanos(7));
        summary.work(&DeviceWork {
            enqueued,
            ..kernel("k", 1, Some((10, 20)))
        });
        summary.work(&DeviceWork {
            kind: WorkKind::Copy,
            bytes: 64,
            ..kernel("copy", 2, Some((15, 40)))
        });
        let gpu = &summary.gpus()[0];
        assert_eq!(
            (gpu.kernels, gpu.transfers, gpu.overlap),
            (Nanos(10), Nanos(25), Nanos(5))
        );
        assert_eq!(summary.kernels()[0].latency.total, 3);
        assert_eq!(summary.other_work()[0].sizes.total, 64);
    }

    #[test]
    fn a_device_without_work_has_no_busy_time() {
        let mut summary = Summary::default();
        summary.gpu(GpuIndex(3), "idle");
        assert_eq!(summary.gpus()[0].busy, None);
    }
}
