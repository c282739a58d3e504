//! Errors of counter collection.

use super::Countable;
use crate::agents::{AgentRefusal, HeldBy};
use gputrail_counters::{Impossible, the_nearest};
use gputrail_interface::counting::{CountingMode, in_words};
use gputrail_record::{AgentId, Nanos};

/// A name that no counter or metric of the agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCounter {
    /// The name.
    pub counter: String,
    /// Why the metric with this name, if one is defined, cannot be had here.
    pub refused: Option<String>,
    /// The names that are most like it.
    pub nearest: Vec<String>,
}

/// "there is no counter or metric "A"; the nearest is B".
fn all_unknown(unknown: &[UnknownCounter]) -> String {
    let one = |unknown: &UnknownCounter| {
        let name = &unknown.counter;
        match &unknown.refused {
            Some(why) => format!("the metric {name:?} is defined, and cannot be had here: {why}"),
            None => {
                let nearest = the_nearest(&unknown.nearest);
                format!("there is no counter or metric {name:?}{nearest}")
            }
        }
    };
    let all: Vec<String> = unknown.iter().map(one).collect();
    all.join("; ")
}

/// The reason why counters cannot be collected as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountingError {
    /// No agent has this id, or none whose source knows its counters.
    #[error("no agent with counters has the id {0}; `gputrail agents` lists the agents")]
    UnknownAgent(AgentId),
    /// The agent has no counters.
    #[error("{agent} has no counters that can be collected")]
    NotSupported {
        /// Its id and name.
        agent: String,
    },
    /// The set is empty.
    #[error("no counter or metric is named")]
    NoNames,
    /// No counter or metric of the agent has these names.
    #[error("{}", all_unknown(.0))]
    UnknownCounters(Vec<UnknownCounter>),
    /// None of several counters can be collected.
    #[error("none of the counters can be collected: {}", .reasons.join("; "))]
    None {
        /// The reasons, with the names.
        reasons: Vec<String>,
    },
    /// The hardware cannot count one of them.
    #[error(transparent)]
    Impossible(#[from] Impossible),
    /// They need too many passes.
    #[error(
        "the counters need {passes} passes of a kernel, and {agent} can do {possible}; name fewer: `gputrail counters check` \
         tells which go together, or `record --replay application` counts them in several runs of the program"
    )]
    Passes {
        /// Its id and name.
        agent: String,
        /// The number of passes that they need.
        passes: usize,
        /// The number of passes that the agent can do.
        possible: usize,
    },
    /// They need too many passes for ranges.
    #[error(
        "the counters need {passes} passes, and {agent} counts a range in {possible}: name fewer, and record the program once \
         more for the others"
    )]
    RangePasses {
        /// Its id and name.
        agent: String,
        /// The number of passes that they need.
        passes: usize,
        /// The number of passes in which the agent counts ranges.
        possible: usize,
    },
    /// The agent cannot count in this way.
    #[error("{agent} cannot count {mode}")]
    Mode {
        /// Its id and name.
        agent: String,
        /// The way.
        mode: CountingMode,
    },
    /// The period is too short.
    #[error("{agent} cannot be read every {}: the shortest period is {}", in_words(*.period), in_words(*.shortest))]
    Period {
        /// Its id and name.
        agent: String,
        /// The period.
        period: Nanos,
        /// The shortest period.
        shortest: Nanos,
    },
    /// The period is too long.
    #[error("{agent} cannot be read every {}: the longest period is {}", in_words(*.period), in_words(*.longest))]
    LongPeriod {
        /// Its id and name.
        agent: String,
        /// The period.
        period: Nanos,
        /// The longest period.
        longest: Nanos,
    },
    /// The agent counts already, in this process or meanwhile in another one.
    #[error("{agent} counts already")]
    Taken {
        /// Its id and name.
        agent: String,
    },
    /// Another context of the process counts.
    #[error("{0} collects counters: only one context can")]
    OtherContext(HeldBy),
    /// This context or another one of the process samples, which cannot be done together.
    #[error(
        "PC sampling is configured in this process: PC sampling and counter collection exclude each other"
    )]
    Sampling,
    /// Asked from within a buffer's callback, which may be what a source waits for.
    #[error("busy: counters are not available within a buffer's callback")]
    Busy,
    /// The system does not allow it.
    #[error("{agent} cannot count: {reason}")]
    System {
        /// Its id and name.
        agent: String,
        /// The obstacle, and the remedy.
        reason: String,
    },
}

impl From<AgentRefusal<Countable>> for CountingError {
    fn from(refused: AgentRefusal<Countable>) -> CountingError {
        match refused {
            AgentRefusal::UnknownAgent(agent) => CountingError::UnknownAgent(agent),
            AgentRefusal::Taken { agent, .. } => CountingError::Taken { agent },
            AgentRefusal::OtherContext(by) => CountingError::OtherContext(by),
            AgentRefusal::OtherService(_) => CountingError::Sampling,
            AgentRefusal::Busy => CountingError::Busy,
            AgentRefusal::System { agent, reason } | AgentRefusal::Failed { agent, reason } => {
                CountingError::System { agent, reason }
            }
        }
    }
}
