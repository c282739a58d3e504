//! rocprofv3's input in YAML, of which JSON is a part.

use crate::input::{CounterInput, InputError, counter_name, words, wrong};
use gputrail_counters::{KernelSelection, NumberRange};
use saphyr_parser::{Event, Parser};

/// The most levels of a file.
const MAX_DEPTH: usize = 16;

/// A value and its line.
struct YamlValue(usize, YamlContent);

enum YamlContent {
    Scalar(String),
    List(Vec<YamlValue>),
    /// Keys with their values.
    Mapping(Vec<(String, YamlValue)>),
}

/// A list or mapping that is open, at its line. The key is that of the value that comes next.
enum OpenLevel {
    List(usize, Vec<YamlValue>),
    Mapping(usize, Vec<(String, YamlValue)>, Option<String>),
}

pub fn read(text: &str) -> Result<CounterInput, InputError> {
    let Some(YamlValue(line, top)) = tree(text)? else {
        return Err(wrong(1, "expected jobs, found nothing"));
    };
    let YamlContent::Mapping(top) = top else {
        return Err(wrong(line, "expected `jobs` with a list of jobs"));
    };
    let mut jobs = Vec::new();
    for (key, value) in top {
        match (key.as_str(), value) {
            ("jobs", YamlValue(_, YamlContent::List(list))) => jobs.extend(list),
            ("jobs", YamlValue(line, _)) => return Err(wrong(line, "jobs: expected a list")),
            (_, YamlValue(line, _)) => {
                return Err(wrong(line, format!("expected `jobs`, found {key:?}")));
            }
        }
    }
    let mut input = CounterInput::default();
    let mut before: Option<KernelSelection> = None;
    for YamlValue(line, job) in jobs {
        let YamlContent::Mapping(job) = job else {
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
    YamlValue(line, value): YamlValue,
    names: &mut Vec<String>,
    kernels: &mut KernelSelection,
) -> Result<(), InputError> {
    let scalars = |value: YamlContent| -> Result<Vec<String>, InputError> {
        let one = |value: YamlValue| match value {
            YamlValue(_, YamlContent::Scalar(text)) => Ok(text),
            YamlValue(line, _) => Err(wrong(line, format!("{key}: expected text"))),
        };
        match value {
            YamlContent::Scalar(text) => Ok(vec![text]),
            YamlContent::List(list) => list.into_iter().map(one).collect(),
            YamlContent::Mapping(_) => Err(wrong(line, format!("{key}: expected a list"))),
        }
    };
    let pattern = |value: YamlContent| -> Result<Option<String>, InputError> {
        let YamlContent::Scalar(text) = value else {
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
                    let problem =
                        || format!("{key}: expected numbers from 1 on as [2-4], found {part:?}");
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
fn tree(text: &str) -> Result<Option<YamlValue>, InputError> {
    let mut open: Vec<OpenLevel> = Vec::new();
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
                open.push(OpenLevel::Mapping(line, Vec::new(), None));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push(OpenLevel::List(line, Vec::new()));
                continue;
            }
            Event::Scalar(text, ..) => YamlValue(line, YamlContent::Scalar(text.into_owned())),
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(OpenLevel::List(line, list)) => YamlValue(line, YamlContent::List(list)),
                Some(OpenLevel::Mapping(line, all, _)) => {
                    YamlValue(line, YamlContent::Mapping(all))
                }
                None => continue,
            },
            Event::Alias(..) => return Err(wrong(line, "an alias: write the value itself")),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(Some(ended)),
            Some(OpenLevel::List(_, list)) => list.push(ended),
            Some(OpenLevel::Mapping(_, all, key)) => match (key.take(), ended) {
                (Some(key), value) => all.push((key, value)),
                (None, YamlValue(_, YamlContent::Scalar(text))) => *key = Some(text),
                (None, YamlValue(line, _)) => {
                    return Err(wrong(line, "expected a key, found a list"));
                }
            },
        }
    }
    Ok(None)
}
