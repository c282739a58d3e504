//! Files that name the counters of a recording, and the kernels that are counted: ROCProfiler's and rocprofv3's.
//!
//! ```text
//! # ROCProfiler, and rocprofv3's text
//! pmc: SQ_WAVES GRBM_COUNT
//! range: 1:4
//! gpu: 0
//! kernel: gemm
//! ```
//! ```yaml
//! # rocprofv3, also in JSON
//! jobs:
//!   - pmc: [SQ_WAVES, GRBM_COUNT]
//!     kernel_include_regex: gemm
//!     kernel_exclude_regex: warmup
//!     kernel_iteration_range: "[2-4], [8]"
//! ```

use std::fmt;

/// The kernels whose counters are collected. A kernel is counted if all that is set holds for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSelection {
    /// Numbers of devices, in the order in which the process knows those that count, from 0; none for all of them.
    pub devices: Vec<u32>,
    /// Parts of kernels' names, one of which the name has; none for all names.
    pub names: Vec<String>,
    /// A regular expression that finds something in the name.
    pub include: Option<String>,
    /// A regular expression that finds nothing in the name.
    pub exclude: Option<String>,
    /// Numbers of dispatches in the process, from 0; none for all of them.
    pub dispatches: Vec<NumberRange>,
    /// Numbers of the dispatches of each kernel, from 1, of those that the rest holds for; none for all of them.
    pub iterations: Vec<NumberRange>,
}

impl KernelSelection {
    /// Whether all kernels are counted.
    pub fn is_all(&self) -> bool {
        *self == KernelSelection::default()
    }

    /// Whether all kernels of the devices are counted.
    pub fn chooses_devices_alone(&self) -> bool {
        let devices = self.devices.clone();
        let all = KernelSelection::default();
        *self == KernelSelection { devices, ..all }
    }
}

/// Numbers from the first to the last one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl NumberRange {
    /// Whether `number` is one of them.
    pub fn has(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Reads "2", "2-4" or "2-", as [`Display`](fmt::Display) writes them.
    pub fn read(text: &str) -> Option<NumberRange> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (first, last) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((first, last)) if last.trim().is_empty() => (number(first)?, u64::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        (first <= last).then_some(NumberRange { first, last })
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            last if last == self.first => write!(f, "{last}"),
            u64::MAX => write!(f, "{}-", self.first),
            last => write!(f, "{}-{last}", self.first),
        }
    }
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterInput {
    /// Names of counters and metrics, of all lines or jobs.
    pub names: Vec<String>,
    /// The kernels that are counted.
    pub kernels: KernelSelection,
}

/// A line of a file that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {problem}")]
pub struct InputError {
    /// Its number, from 1.
    pub line: usize,
    /// The expectation that the line does not meet.
    pub problem: String,
}

fn wrong(line: usize, problem: impl Into<String>) -> InputError {
    let problem = problem.into();
    InputError { line, problem }
}

/// Reads a file's text. YAML and JSON begin with `{`, or are told by `is_yaml`.
///
/// # Errors
///
/// The first line that cannot be followed.
pub fn read_input(text: &str, is_yaml: bool) -> Result<CounterInput, InputError> {
    match is_yaml || text.trim_start().starts_with('{') {
        true => jobs::read(text),
        false => lines(text),
    }
}

fn lines(text: &str) -> Result<CounterInput, InputError> {
    let mut input = CounterInput::default();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let read = read_line(line, &mut input);
        read.map_err(|problem| wrong(number, problem))?;
    }
    Ok(input)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([' ', '\t', ',']);
    words.filter(|word| !word.is_empty())
}

fn read_line(line: &str, input: &mut CounterInput) -> Result<(), String> {
    let (key, rest) = match line.split_once(':') {
        None => ("pmc", line),
        Some((key, rest)) => (key.trim(), rest),
    };
    let kernels = &mut input.kernels;
    match key {
        "pmc" => {
            for word in words(rest) {
                input.names.push(counter_name(word)?);
            }
        }
        "kernel" => kernels.names.extend(words(rest).map(str::to_owned)),
        "gpu" => {
            for word in words(rest) {
                let number = word.parse();
                let number = number
                    .map_err(|_| format!("gpu: expected numbers of devices, found {word:?}"))?;
                kernels.devices.push(number);
            }
        }
        "range" => kernels.dispatches.push(half_open(rest)?),
        other => {
            return Err(format!(
                "expected names of counters, as in `pmc: A B`, or range, gpu or kernel; found {other:?} before a colon"
            ));
        }
    }
    Ok(())
}

/// The name of a counter.
fn counter_name(word: &str) -> Result<String, String> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
    match !word.is_empty() && word.chars().all(is_of_name) {
        true => Ok(word.to_owned()),
        false => Err(format!("expected the name of a counter, found {word:?}")),
    }
}

/// ROCProfiler's numbers of dispatches: "3:9" are 3 to 8, "3:" all from 3 on, "3" is that one.
fn half_open(text: &str) -> Result<NumberRange, String> {
    let problem = || {
        let text = text.trim();
        format!("range: expected numbers of dispatches as 3:9, 3: or 3, found {text:?}")
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| problem());
    let (first, last) = match text.split_once(':') {
        None => (number(text)?, number(text)?),
        Some((first, end)) if end.trim().is_empty() => (number(first)?, u64::MAX),
        Some((first, end)) => (
            number(first)?,
            number(end)?.checked_sub(1).ok_or_else(problem)?,
        ),
    };
    match first <= last {
        true => Ok(NumberRange { first, last }),
        false => Err(problem()),
    }
}

#[cfg(not(feature = "counters"))]
mod jobs {
    use super::{CounterInput, InputError, wrong};

    pub fn read(_: &str) -> Result<CounterInput, InputError> {
        Err(wrong(1, "this build reads no YAML or JSON"))
    }
}

#[cfg(feature = "counters")]
mod jobs {
    //! rocprofv3's input in YAML, of which JSON is a part.

    use super::{
        CounterInput, InputError, KernelSelection, NumberRange, counter_name, words, wrong,
    };
    use saphyr_parser::{Event, Parser};

    /// The most levels of a file.
    const MAX_DEPTH: usize = 16;

    /// A value and its line.
    struct Value(usize, Content);

    enum Content {
        Scalar(String),
        List(Vec<Value>),
        /// Keys with their values.
        Mapping(Vec<(String, Value)>),
    }

    /// A list or mapping that is open, at its line. The key is that of the value that comes next.
    enum Level {
        List(usize, Vec<Value>),
        Mapping(usize, Vec<(String, Value)>, Option<String>),
    }

    pub fn read(text: &str) -> Result<CounterInput, InputError> {
        let Some(Value(line, top)) = tree(text)? else {
            return Err(wrong(1, "expected jobs, found nothing"));
        };
        let Content::Mapping(top) = top else {
            return Err(wrong(line, "expected `jobs` with a list of jobs"));
        };
        let mut jobs = Vec::new();
        for (key, value) in top {
            match (key.as_str(), value) {
                ("jobs", Value(_, Content::List(list))) => jobs.extend(list),
                ("jobs", Value(line, _)) => return Err(wrong(line, "jobs: expected a list")),
                (_, Value(line, _)) => {
                    return Err(wrong(line, format!("expected `jobs`, found {key:?}")));
                }
            }
        }
        let mut input = CounterInput::default();
        let mut before: Option<KernelSelection> = None;
        for Value(line, job) in jobs {
            let Content::Mapping(job) = job else {
                return Err(wrong(line, "expected a job with `pmc`"));
            };
            let mut kernels = KernelSelection::default();
            for (key, value) in job {
                set(&key, value, &mut input.names, &mut kernels)?;
            }
            if before.as_ref().is_some_and(|before| *before != kernels) {
                let problem = "the job counts other kernels than the job before, which one recording cannot do: write \
                               a file for each";
                return Err(wrong(line, problem));
            }
            before = Some(kernels);
        }
        input.kernels = before.unwrap_or_default();
        Ok(input)
    }

    /// Sets a key of a job.
    fn set(
        key: &str,
        Value(line, value): Value,
        names: &mut Vec<String>,
        kernels: &mut KernelSelection,
    ) -> Result<(), InputError> {
        let scalars = |value: Content| -> Result<Vec<String>, InputError> {
            let one = |value: Value| match value {
                Value(_, Content::Scalar(text)) => Ok(text),
                Value(line, _) => Err(wrong(line, format!("{key}: expected text"))),
            };
            match value {
                Content::Scalar(text) => Ok(vec![text]),
                Content::List(list) => list.into_iter().map(one).collect(),
                Content::Mapping(_) => Err(wrong(line, format!("{key}: expected a list"))),
            }
        };
        let pattern = |value: Content| -> Result<Option<String>, InputError> {
            let Content::Scalar(text) = value else {
                return Err(wrong(line, format!("{key}: expected a regular expression")));
            };
            match regex_lite::Regex::new(&text) {
                Ok(_) => Ok((!text.is_empty()).then_some(text)),
                Err(error) => Err(wrong(line, format!("{key}: {text:?}: {error}"))),
            }
        };
        match key {
            "pmc" => {
                for text in scalars(value)? {
                    for word in words(&text) {
                        names.push(counter_name(word).map_err(|problem| wrong(line, problem))?);
                    }
                }
            }
            "kernel_include_regex" => kernels.include = pattern(value)?,
            "kernel_exclude_regex" => kernels.exclude = pattern(value)?,
            "kernel_iteration_range" => {
                for text in scalars(value)? {
                    let plain: String = text.chars().filter(|of| !"[] ".contains(*of)).collect();
                    for part in plain.split(',').filter(|part| !part.is_empty()) {
                        let range = NumberRange::read(part).filter(|range| range.first > 0);
                        let problem = || {
                            format!("{key}: expected numbers from 1 on as [2-4], found {part:?}")
                        };
                        kernels
                            .iterations
                            .push(range.ok_or_else(|| wrong(line, problem()))?);
                    }
                }
            }
            other => {
                let problem = format!(
                    "expected pmc, kernel_include_regex, kernel_exclude_regex or kernel_iteration_range, found {other:?}; \
                     options of gputrail say what else is recorded, and where"
                );
                return Err(wrong(line, problem));
            }
        }
        Ok(())
    }

    /// The value of the first document; none in an empty file.
    fn tree(text: &str) -> Result<Option<Value>, InputError> {
        let mut open: Vec<Level> = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                wrong(
                    error.marker().line(),
                    format!("no YAML or JSON: {}", error.info()),
                )
            })?;
            let line = span.start.line();
            let ended = match event {
                Event::MappingStart(..) | Event::SequenceStart(..) if open.len() >= MAX_DEPTH => {
                    return Err(wrong(line, format!("expected at most {MAX_DEPTH} levels")));
                }
                Event::MappingStart(..) => {
                    open.push(Level::Mapping(line, Vec::new(), None));
                    continue;
                }
                Event::SequenceStart(..) => {
                    open.push(Level::List(line, Vec::new()));
                    continue;
                }
                Event::Scalar(text, ..) => Value(line, Content::Scalar(text.into_owned())),
                Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                    Some(Level::List(line, list)) => Value(line, Content::List(list)),
                    Some(Level::Mapping(line, all, _)) => Value(line, Content::Mapping(all)),
                    None => continue,
                },
                Event::Alias(..) => return Err(wrong(line, "an alias: write the value itself")),
                _ => continue,
            };
            match open.last_mut() {
                None => return Ok(Some(ended)),
                Some(Level::List(_, list)) => list.push(ended),
                Some(Level::Mapping(_, all, key)) => match (key.take(), ended) {
                    (Some(key), value) => all.push((key, value)),
                    (None, Value(_, Content::Scalar(text))) => *key = Some(text),
                    (None, Value(line, _)) => {
                        return Err(wrong(line, "expected a key, found a list"));
                    }
                },
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> NumberRange {
        NumberRange { first, last }
    }

    #[test]
    fn lines_name_counters_and_choose_kernels() {
        let text = "# waves\npmc : SQ_WAVES, GRBM_COUNT\nVALUInsts\nrange: 3 : 9\nrange:12:\nrange : 1\ngpu: 0 2\n\
                    kernel: gemm Pass1\n";
        let input = read_input(text, false).unwrap();
        assert_eq!(input.names, ["SQ_WAVES", "GRBM_COUNT", "VALUInsts"]);
        let kernels = input.kernels;
        assert_eq!(kernels.devices, [0, 2]);
        assert_eq!(kernels.names, ["gemm", "Pass1"]);
        let expected = [range(3, 8), range(12, u64::MAX), range(1, 1)];
        assert_eq!(kernels.dispatches, expected);
    }

    #[test]
    fn lines_that_cannot_be_followed_are_named() {
        let error = |text: &str| read_input(text, false).unwrap_err().to_string();
        assert_eq!(
            error("pmc: A\nrange: 4:2"),
            "2: range: expected numbers of dispatches as 3:9, 3: or 3, found \"4:2\""
        );
        assert!(error("range: 0:0").starts_with("1: range: expected"));
        assert!(error("range: x").starts_with("1: range: expected"));
        assert!(error("\n\ngpu: all").contains("3: gpu: expected numbers of devices"));
        assert!(error("A-B").contains("expected the name of a counter, found \"A-B\""));
        assert!(error("jobs:").contains("found \"jobs\" before a colon"));
    }

    #[test]
    fn ranges_are_read_as_they_are_written() {
        for one in [range(3, 3), range(0, 7), range(2, u64::MAX)] {
            assert_eq!(NumberRange::read(&one.to_string()), Some(one));
        }
        assert!(range(2, 4).has(4) && !range(2, 4).has(5));
        assert_eq!(NumberRange::read("4-2"), None);
    }

    #[cfg(feature = "counters")]
    mod of_jobs {
        use super::*;

        const YAML: &str = "jobs:\n  - pmc: [SQ_WAVES, GRBM_COUNT]\n    kernel_include_regex: 'gem+'\n    \
                            kernel_iteration_range: \"[2-4], [8]\"\n  - pmc:\n      - VALUInsts\n    \
                            kernel_include_regex: gem+\n    kernel_iteration_range: [\"[2-4]\", 8]\n";

        #[test]
        fn jobs_in_yaml_and_json_are_the_same() {
            let input = read_input(YAML, true).unwrap();
            assert_eq!(input.names, ["SQ_WAVES", "GRBM_COUNT", "VALUInsts"]);
            assert_eq!(input.kernels.include.as_deref(), Some("gem+"));
            assert_eq!(input.kernels.iterations, [range(2, 4), range(8, 8)]);
            let json = "{\"jobs\": [{\"pmc\": [\"SQ_WAVES\", \"GRBM_COUNT\", \"VALUInsts\"],\n\
                        \"kernel_include_regex\": \"gem+\", \"kernel_iteration_range\": \"[2-4],[8]\"}]}";
            assert_eq!(read_input(json, false).unwrap(), input);
        }

        #[test]
        fn jobs_that_cannot_be_followed_are_named_with_their_line() {
            let error = |text: &str| read_input(text, true).unwrap_err().to_string();
            let job = |key: &str| error(&format!("jobs:\n  - pmc: [A]\n    {key}\n"));
            assert!(job("output_file: out").starts_with("3: expected pmc, kernel_include_regex"));
            assert!(
                job("kernel_exclude_regex: '('").starts_with("3: kernel_exclude_regex: \"(\": ")
            );
            assert!(
                job("kernel_iteration_range: 0")
                    .contains("3: kernel_iteration_range: expected numbers")
            );
            assert!(job("kernel_iteration_range: [4-2]").contains("found \"4-2\""));
            let other = error("jobs:\n  - pmc: [A]\n  - pmc: [B]\n    kernel_include_regex: x\n");
            assert!(
                other.starts_with("3: the job counts other kernels"),
                "{other}"
            );
            assert_eq!(error(""), "1: expected jobs, found nothing");
            assert!(error("jobs: 3\n").contains("1: jobs: expected a list"));
            assert!(error("other: 3\n").contains("expected `jobs`, found \"other\""));
            assert!(error("[1, 2]").contains("expected `jobs`"));
            assert!(error("jobs: [\n").contains("no YAML or JSON"));
            assert!(error(&"[".repeat(40)).contains("at most 16 levels"));
            assert!(error("jobs:\n  - pmc: &a [A]\n  - pmc: *a\n").contains("an alias"));
        }
    }
}
