//! Steps: ranges that repeat, such as those of a training, `ProfilerStep#5` and `step 7`.
//!
//! Without patterns, ranges whose names end in a number behind `step` or `iteration` are steps. The name of a series of steps
//! has `*` in place of the number.

use std::collections::BTreeMap;

use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::ProcessIndex;
use wildmatch::WildMatch;

use super::sweep::DeviceTimes;

/// Maximum number of steps of all processes that are kept.
const MAX_STEPS: usize = 1 << 16;
/// Maximum number of steps of a process that are looked at when a value of a counter comes.
const MAX_OPEN: usize = 8;

/// A step is an outlier if it differs from the median by more than this share of the median, and by more than
/// [`OUTLIER_DEVIATIONS`] median absolute deviations.
pub const OUTLIER_SHARE: f64 = 0.2;
/// See [`OUTLIER_SHARE`].
pub const OUTLIER_DEVIATIONS: u64 = 3;

/// The choice of ranges that are steps.
#[derive(Clone, Debug, Default)]
pub struct StepPatterns(Vec<WildMatch>);

impl StepPatterns {
    /// Ranges whose names match one of these patterns, with `*` and `?`; without patterns those that are numbered.
    pub fn new(patterns: &[String]) -> StepPatterns {
        StepPatterns(patterns.iter().map(|text| WildMatch::new(text)).collect())
    }

    /// Whether a range with this name is a step. Operators are steps only by a pattern.
    pub fn is_step(&self, name: &str, is_operator: bool) -> bool {
        if self.0.is_empty() && is_operator {
            return false;
        }
        if !self.0.is_empty() {
            return self.0.iter().any(|pattern| pattern.matches(name));
        }
        let begin = without_number(name);
        if begin.len() == name.len() {
            return false;
        }
        let word = begin.trim_end_matches([' ', '#', '_', ':', '-', '=']);
        let ends_with = |wanted: &str| {
            let place = word.len().checked_sub(wanted.len());
            place
                .and_then(|place| word.get(place..))
                .is_some_and(|end| end.eq_ignore_ascii_case(wanted))
        };
        ["step", "iteration", "iter"].into_iter().any(ends_with)
    }
}

/// A name without the number at its end.
fn without_number(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// The name of the series of a step.
pub fn series_of(name: &str) -> String {
    match without_number(name) {
        begin if begin.len() < name.len() && !begin.is_empty() => format!("{begin}*"),
        _ => name.to_owned(),
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSummary {
    /// Its process.
    pub process: ProcessIndex,
    /// Its name.
    pub name: Box<str>,
    /// When it began.
    pub start: Nanos,
    /// When it ended; `None` if it did not.
    pub end: Option<Nanos>,
    /// The times of the devices of its process, from its begin to its end; nothing without an end.
    pub times: DeviceTimes,
    /// The greatest value in it of a counter of allocated memory, bytes; `None` without such a counter.
    pub memory_peak: Option<u64>,
    /// The number of devices of its process.
    pub devices: u64,
}

impl StepSummary {
    /// Its duration.
    pub fn duration(&self) -> Option<Nanos> {
        self.end
            .map(|end| Nanos(end.0.saturating_sub(self.start.0)))
    }

    /// The time in which nothing ran on its devices, each counted by itself.
    pub fn idle(&self) -> Option<Nanos> {
        let all = self.duration()?.0.saturating_mul(self.devices);
        Some(Nanos(all.saturating_sub(self.times.busy().0)))
    }
}

/// The steps of one series of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSeries {
    /// The process.
    pub process: ProcessIndex,
    /// Its name: `step *`.
    pub name: String,
    /// The places of its finished steps in the list of all, in the order of their begins.
    pub steps: Vec<usize>,
    /// The median of the durations.
    pub median: Nanos,
    /// The places of the steps that differ much from the median.
    pub outliers: Vec<usize>,
}

/// Groups steps by process and name without number.
pub fn series(steps: &[StepSummary]) -> Vec<StepSeries> {
    let mut groups: BTreeMap<(ProcessIndex, String), Vec<usize>> = BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        if step.end.is_some() {
            let key = (step.process, series_of(&step.name));
            groups.entry(key).or_default().push(place);
        }
    }
    let duration = |place: &usize| steps[*place].duration().map_or(0, |duration| duration.0);
    let series = |((process, name), places): ((ProcessIndex, String), Vec<usize>)| {
        let median = median(places.iter().map(duration).collect());
        let deviations = places.iter().map(|place| duration(place).abs_diff(median));
        let deviation = self::median(deviations.collect());
        let is_outlier = |place: &&usize| {
            let apart = duration(place).abs_diff(median);
            apart as f64 > OUTLIER_SHARE * median as f64
                && apart > deviation.saturating_mul(OUTLIER_DEVIATIONS)
        };
        StepSeries {
            process,
            name,
            outliers: places.iter().filter(is_outlier).copied().collect(),
            steps: places,
            median: Nanos(median),
        }
    };
    groups.into_iter().map(series).collect()
}

/// The median; for an even number of values the mean of the two in the middle.
pub fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    match values.len() {
        0 => 0,
        count if count % 2 == 1 => values[count / 2],
        count => {
            let (low, high) = (values[count / 2 - 1], values[count / 2]);
            low + (high - low) / 2
        }
    }
}

/// All steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    list: Vec<StepSummary>,
    /// The latest steps of each process.
    latest: NumberMap<ProcessIndex, Vec<u32>>,
    left_out: u64,
}

impl Steps {
    /// The mark at the begin of a step.
    pub fn begin_mark(step: u32) -> u32 {
        2 * step
    }

    /// The mark at the end of a step.
    pub fn end_mark(step: u32) -> u32 {
        2 * step + 1
    }

    pub fn begin(&mut self, process: ProcessIndex, name: &str, start: Nanos) -> Option<u32> {
        if self.list.len() >= MAX_STEPS {
            self.left_out += 1;
            return None;
        }
        let number = self.list.len() as u32;
        self.list.push(StepSummary {
            process,
            name: name.into(),
            start,
            end: None,
            times: DeviceTimes::default(),
            memory_peak: None,
            devices: 0,
        });
        let latest = self.latest.entry(process).or_default();
        if latest.len() >= MAX_OPEN {
            latest.remove(0);
        }
        latest.push(number);
        Some(number)
    }

    /// Ends a step; returns its process.
    pub fn end(&mut self, step: u32, end: Nanos) -> Option<ProcessIndex> {
        let step = self.list.get_mut(step as usize)?;
        step.end = Some(end);
        Some(step.process)
    }

    /// The marks of the steps of a process that have come so far.
    pub fn marks(&self, process: ProcessIndex, mut mark: impl FnMut(Nanos, u32)) {
        for (number, step) in (0..).zip(&self.list) {
            if step.process == process {
                mark(step.start, Steps::begin_mark(number));
                if let Some(end) = step.end {
                    mark(end, Steps::end_mark(number));
                }
            }
        }
    }

    /// A device has reached a mark with these sums.
    pub fn passed(&mut self, mark: u32, times: DeviceTimes) {
        if let Some(step) = self.list.get_mut(mark as usize / 2) {
            if mark % 2 == 1 {
                step.times += times;
            } else {
                step.times -= times;
            }
        }
    }

    /// The allocated memory of a process has a value.
    pub fn memory(&mut self, process: ProcessIndex, time: Nanos, bytes: u64) {
        for number in self.latest.get(&process).into_iter().flatten() {
            if let Some(step) = self.list.get_mut(*number as usize)
                && step.start <= time
                && step.end.is_none_or(|end| time < end)
            {
                step.memory_peak = step.memory_peak.max(Some(bytes));
            }
        }
    }

    /// All steps, by process and begin.
    pub fn list(mut self, devices: impl Fn(ProcessIndex) -> usize) -> Vec<StepSummary> {
        for step in &mut self.list {
            step.devices = devices(step.process) as u64;
            if step.end.is_none() {
                step.times = DeviceTimes::default();
            }
        }
        self.list.sort_by_key(|step| (step.process, step.start));
        self.list
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_steps_are_known_by_their_names() {
        let patterns = StepPatterns::default();
        for name in [
            "ProfilerStep#12",
            "step 7",
            "Step:3",
            "train_step_9",
            "iteration 1",
        ] {
            assert!(patterns.is_step(name, false), "{name}");
        }
        for name in ["step", "layer 7", "7", "", "stepped 7", "é7"] {
            assert!(!patterns.is_step(name, false), "{name}");
        }
        let patterns = StepPatterns::new(&["layer *".to_owned(), "forward".to_owned()]);
        assert!(patterns.is_step("layer 7", false) && patterns.is_step("forward", false));
        assert!(!patterns.is_step("step 7", false));
        assert!(patterns.is_step("forward", true));
        assert!(!StepPatterns::default().is_step("aten::step_1", true));
        let series = ["ProfilerStep#12", "forward", "12"].map(series_of);
        assert_eq!(series, ["ProfilerStep#*", "forward", "12"]);
    }

    #[test]
    fn steps_far_from_the_median_are_outliers() {
        let mut steps = Steps::default();
        for (number, duration) in [100, 102, 98, 130, 101, 110].into_iter().enumerate() {
            let start = 1000 * number as u64;
            let step = steps.begin(ProcessIndex(0), &format!("step {number}"), Nanos(start));
            steps.end(step.unwrap(), Nanos(start + duration));
        }
        steps.begin(ProcessIndex(0), "step 9", Nanos(9000));
        let list = steps.list(|_| 1);
        let series = series(&list);
        // 98, 100, 101, 102, 110, 130: the median is 101, the median deviation 2.
        let [one] = &series[..] else {
            panic!("{series:?}");
        };
        assert_eq!((&*one.name, one.median), ("step *", Nanos(101)));
        assert_eq!((one.steps.len(), &one.outliers[..]), (6, &[3][..]));
    }

    #[test]
    fn memory_belongs_to_the_steps_that_are_open() {
        let mut steps = Steps::default();
        let process = ProcessIndex(0);
        let first = steps.begin(process, "step 1", Nanos(10)).unwrap();
        steps.memory(process, Nanos(12), 7);
        steps.memory(process, Nanos(13), 5);
        steps.end(first, Nanos(20));
        steps.memory(process, Nanos(20), 100);
        steps.begin(process, "step 2", Nanos(30));
        steps.memory(ProcessIndex(1), Nanos(35), 9);
        let peaks = steps.list(|_| 1);
        let peaks: Vec<_> = peaks.iter().map(|step| step.memory_peak).collect();
        assert_eq!(peaks, [Some(7), None]);
    }
}
