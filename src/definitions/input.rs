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
//!
//! | line of text | meaning |
//! |---|---|
//! | `pmc: A B`, or `A B` | names |
//! | `range: 3:9`, `3:`, `3` | dispatches by number in their process, from 0: 3 to 8, from 3 on, 3 only; lines add up |
//! | `gpu: 0 1` | devices by number, from 0, among those that can count, in the order in which the process came to know them |
//! | `kernel: A B` | kernels whose name contains one of these |
//! | `# ...` | a comment |
//!
//! Files that end in `.yaml`, `.yml` or `.json`, or begin with `{`, are rocprofv3's: `jobs`, each with `pmc` (a list or text),
//! `kernel_include_regex`, `kernel_exclude_regex` and `kernel_iteration_range` (dispatches of each kernel, from 1, ends
//! included). All jobs are counted in one run, and must choose the same kernels; other keys are refused.

use gputrail_counters::{KernelSelection, NumberRange};

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

pub(crate) fn wrong(line: usize, problem: impl Into<String>) -> InputError {
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
        true => crate::jobs::read(text),
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

pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
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
pub(crate) fn counter_name(word: &str) -> Result<String, String> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
    if !word.is_empty() && word.chars().all(is_of_name) {
        Ok(word.to_owned())
    } else {
        Err(format!("expected the name of a counter, found {word:?}"))
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
    if first <= last {
        Ok(NumberRange { first, last })
    } else {
        Err(problem())
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
