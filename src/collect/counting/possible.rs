//! What can be counted of the names of a recording: names that cannot be had are left out, and the others are counted.

use super::{Countable, CounterSet, CountingError, CountingRequest, CountingService};
use crate::agents::{AgentRequest, ConfigureError};
use gputrail_interface::counting::CountingMode;
use gputrail_record::AgentId;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Counters and metrics that are not counted, while others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Their names.
    pub names: Vec<String>,
    /// The reason.
    pub reason: CountingError,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            // It has the names.
            CountingError::UnknownCounters(_) => write!(f, "{}", self.reason),
            reason => write!(f, "not counted: {}: {reason}", self.names.join(", ")),
        }
    }
}

/// Adds a name that is left out. Names with the same reason stand together.
fn leave_out(left_out: &mut Vec<LeftOut>, name: &str, reason: CountingError) {
    if let CountingError::UnknownCounters(mut new) = reason.clone() {
        let known = left_out.iter_mut().find_map(|one| match &mut one.reason {
            CountingError::UnknownCounters(unknown) => Some((&mut one.names, unknown)),
            _ => None,
        });
        if let Some((names, unknown)) = known {
            names.push(name.to_owned());
            unknown.append(&mut new);
            return;
        }
    }
    match left_out.iter_mut().find(|one| one.reason == reason) {
        Some(same) => same.names.push(name.to_owned()),
        None => left_out.push(LeftOut {
            names: vec![name.to_owned()],
            reason,
        }),
    }
}

impl CountingError {
    /// Whether another set of names may be counted in the same way.
    fn is_about_names(&self) -> bool {
        matches!(
            self,
            CountingError::UnknownCounters(_)
                | CountingError::Impossible(_)
                | CountingError::Passes { .. }
                | CountingError::RangePasses { .. }
                | CountingError::System { .. }
        )
    }
}

/// What one run of a program counts, which runs once for each set of counters that fit one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct OneRun {
    /// The counters of this run; `None` if it is behind the last one.
    pub request: Option<CountingRequest>,
    /// The number of runs.
    pub runs: u32,
    /// Names that no run counts.
    pub left_out: Vec<LeftOut>,
}

/// Attempts to count sets of names on an agent.
struct Attempt<'a> {
    counting: &'a CountingService,
    agent: AgentId,
    /// Its id and name.
    text: String,
    possible: Vec<Countable>,
    mode: CountingMode,
    per_pass: Option<NonZeroU32>,
}

impl Attempt<'_> {
    fn request(&self, names: &[&str]) -> Result<CountingRequest, CountingError> {
        let agent = self.text.clone();
        let Some(first) = self.possible.first() else {
            return Err(CountingError::NotSupported { agent });
        };
        let per_pass = self.per_pass.or(first.per_pass);
        let set = Arc::new(CounterSet::new(&first.architecture, names, per_pass)?);
        let mode = self.mode;
        let request = CountingRequest {
            set,
            mode,
            choice: None,
            range: None,
        };
        request.check(&agent, self.possible.clone())?;
        match self.counting.can_configure(self.agent, &request)? {
            Ok(()) => Ok(request),
            Err(ConfigureError::Taken) => Err(CountingError::Taken { agent }),
            Err(ConfigureError::System(reason) | ConfigureError::Failed(reason)) => {
                Err(CountingError::System { agent, reason })
            }
        }
    }

    /// [`Attempt::request`], of names that fit one pass.
    fn request_of_one_pass(&self, names: &[&str]) -> Result<CountingRequest, CountingError> {
        let request = self.request(names)?;
        match request.set.passes().len() {
            0 | 1 => Ok(request),
            passes => Err(CountingError::Passes {
                agent: self.text.clone(),
                passes,
                possible: 1,
            }),
        }
    }
}

/// Why none of the names is counted.
fn none_of(left_out: Vec<LeftOut>) -> CountingError {
    match &left_out[..] {
        [] => CountingError::NoNames,
        [one] => one.reason.clone(),
        all => CountingError::None {
            reasons: all.iter().map(LeftOut::to_string).collect(),
        },
    }
}

impl CountingService {
    fn attempt(
        &self,
        agent: AgentId,
        mode: CountingMode,
        per_pass: Option<NonZeroU32>,
    ) -> Result<Attempt<'_>, CountingError> {
        let (possible, text) = self.named_configurations(agent)?;
        Ok(Attempt {
            counting: self,
            agent,
            text,
            possible,
            mode,
            per_pass,
        })
    }

    /// A set of counters and metrics that `agent` can count for each dispatch, and this process may.
    ///
    /// # Errors
    ///
    /// As for [`CountingService::request`]; [`CountingError::Passes`], [`CountingError::Mode`], [`CountingError::System`].
    pub fn set(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
    ) -> Result<Arc<CounterSet>, CountingError> {
        let attempt = self.attempt(agent, CountingMode::Dispatch, per_pass)?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Ok(attempt.request(&names)?.set)
    }

    /// As [`CountingService::request`], of those of `names` that `agent` can count together, in the order of the names: one
    /// that cannot be had with those before it is left out.
    ///
    /// # Errors
    ///
    /// As for [`CountingService::request`]; [`CountingError::None`] if all of several names are left out for several
    /// reasons.
    pub fn possible_request(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
        per_pass: Option<NonZeroU32>,
    ) -> Result<(CountingRequest, Vec<LeftOut>), CountingError> {
        let attempt = self.attempt(agent, mode, per_pass)?;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match attempt.request(&names) {
            Ok(request) => return Ok((request, Vec::new())),
            Err(error) if !error.is_about_names() => return Err(error),
            Err(_) => {}
        }
        let (mut chosen, mut request, mut left_out) = (Vec::new(), None, Vec::new());
        for name in names {
            chosen.push(name);
            match attempt.request(&chosen) {
                Ok(possible) => request = Some(possible),
                Err(reason) => {
                    chosen.pop();
                    leave_out(&mut left_out, name, reason);
                }
            }
        }
        match request {
            Some(request) => Ok((request, left_out)),
            None => Err(none_of(left_out)),
        }
    }

    /// What run number `run`, from 0, of a program counts that runs once for each set of `names` that `agent` counts in one
    /// pass. Each name belongs to the first set that has room for it; one that needs several passes alone is left out.
    ///
    /// # Errors
    ///
    /// As for [`CountingService::possible_request`].
    pub fn run_request(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
        run: u32,
    ) -> Result<OneRun, CountingError> {
        let attempt = self.attempt(agent, CountingMode::Dispatch, per_pass)?;
        let mut sets: Vec<Vec<&str>> = Vec::new();
        let mut left_out = Vec::new();
        'names: for name in names {
            let name = name.as_ref();
            match attempt.request_of_one_pass(&[name]) {
                Err(reason) if reason.is_about_names() => {
                    leave_out(&mut left_out, name, reason);
                    continue;
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            for set in &mut sets {
                set.push(name);
                if attempt.request_of_one_pass(set).is_ok() {
                    continue 'names;
                }
                set.pop();
            }
            sets.push(vec![name]);
        }
        if sets.is_empty() {
            return Err(none_of(left_out));
        }
        let set = sets.get(run as usize);
        Ok(OneRun {
            request: set.map(|set| attempt.request(set)).transpose()?,
            runs: sets.len() as u32,
            left_out,
        })
    }
}

/// What a recording notes of the run of a program that it is part of.
pub(crate) fn run_note(run: u32, runs: u32) -> String {
    format!("{RUN_NOTE}{} of {runs}", run + 1)
}

/// The begin of [`run_note`].
const RUN_NOTE: &str = "counters: run ";

/// The number of runs of the program that its counters need, by a note of the first run; `None` for other notes.
pub fn runs_of_note(note: &str) -> Option<u32> {
    let (_, runs) = note.strip_prefix(RUN_NOTE)?.split_once(" of ")?;
    runs.parse().ok()
}
