//! Counter collection: the counters of agents. [`Context::count`](super::Context::count) collects them;
//! [`crate::collect::counting`] explains the service.

use super::Error;
use super::functions::list;
use crate::record::AgentId;
use crate::tool::c::CounterDefinition;
use core::ffi::{CStr, c_char};

pub use crate::collect::counting::CountingMode;

/// A counter or metric of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// A description.
    pub description: &'static str,
    /// The block of hardware that counts it, or the formula of a metric.
    pub from: &'static str,
    /// Whether it is a metric, which is computed from counters.
    pub is_metric: bool,
}

/// The agents whose sources know their counters: those that the program has asked about.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn agents() -> Result<Vec<AgentId>, Error> {
    list!(gputrail_counting_agents())
}

/// The counters and metrics of an agent.
///
/// # Errors
///
/// `NO_SUCH_AGENT`.
pub fn counters(agent: AgentId) -> Result<Vec<Counter>, Error> {
    let all = list!(gputrail_counters(agent))?;
    let of = |one: CounterDefinition| Counter {
        name: text(one.name),
        description: text(one.description),
        from: text(one.from),
        is_metric: one.is_metric != 0,
    };
    Ok(all.into_iter().map(of).collect())
}

/// A text of the library.
fn text(kept: *const c_char) -> &'static str {
    if kept.is_null() {
        return "";
    }
    // SAFETY: the library's text, which ends with a 0 and is never freed.
    unsafe { CStr::from_ptr(kept) }.to_str().unwrap_or_default()
}
