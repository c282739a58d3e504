//! What can be counted of the names of a recording: names that cannot be had are left out, and the others are counted.

use super::{CounterSet, Counting, CountingError, CountingMode, CountingRequest};
use crate::collect::agents::ConfigureError;
use crate::record::AgentId;
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
                | CountingError::System { .. }
        )
    }
}

impl Counting {
    /// As [`Counting::request`], of those of `names` that `agent` can count together, in the order of the names: one
    /// that cannot be had with those before it is left out.
    ///
    /// # Errors
    ///
    /// As for [`Counting::request`]; [`CountingError::None`] if all of several names are left out for several reasons.
    pub fn possible_request(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
        per_pass: Option<NonZeroU32>,
    ) -> Result<(CountingRequest, Vec<LeftOut>), CountingError> {
        let (possible, text) = self.named_configurations(agent)?;
        let Some(first) = possible.first() else {
            return Err(CountingError::NotSupported { agent: text });
        };
        let check = |names: &[&str]| -> Result<CountingRequest, CountingError> {
            let per_pass = per_pass.or(first.per_pass);
            let set = CounterSet::new(&first.architecture, names, per_pass)?;
            let request = CountingRequest {
                set: Arc::new(set),
                mode,
            };
            self.check(agent, &request, &text, possible.clone())?;
            Ok(request)
        };
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        match check(&names) {
            Ok(request) => return Ok((request, Vec::new())),
            Err(error) if !error.is_about_names() => return Err(error),
            Err(_) => {}
        }
        let (mut chosen, mut request, mut left_out) = (Vec::new(), None, Vec::new());
        for name in names {
            chosen.push(name);
            match check(&chosen) {
                Ok(possible) => request = Some(possible),
                Err(reason) => {
                    chosen.pop();
                    leave_out(&mut left_out, name, reason);
                }
            }
        }
        match (request, &mut left_out[..]) {
            (Some(request), _) => Ok((request, left_out)),
            (None, [one]) => Err(one.reason.clone()),
            (None, all) => Err(CountingError::None {
                reasons: all.iter().map(LeftOut::to_string).collect(),
            }),
        }
    }

    /// Checks whether `agent`, called `text`, which can do `possible`, can do this at present.
    fn check(
        &self,
        agent: AgentId,
        request: &CountingRequest,
        text: &str,
        possible: Vec<super::Countable>,
    ) -> Result<(), CountingError> {
        use crate::collect::agents::AgentRequest;
        request.check(text, possible)?;
        let agent_text = || text.to_owned();
        match self.can_configure(agent, request)? {
            Ok(()) => Ok(()),
            Err(ConfigureError::Taken) => Err(CountingError::Taken {
                agent: agent_text(),
            }),
            Err(ConfigureError::System(reason)) => Err(CountingError::System {
                agent: agent_text(),
                reason,
            }),
        }
    }
}
