//! Counters.

use super::{AgentIndex, ProcessIndex};

/// The unit of a counter.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CounterUnit {
    /// The recording gives none.
    Unspecified,
    /// A number of things.
    Count,
    /// Percent, up to 100.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Kilobytes.
    Kilobytes,
    /// Milliseconds.
    Milliseconds,
    /// Cycles of a clock.
    Cycles,
    /// A share or quotient.
    Ratio,
    /// Millionths of a joule.
    Microjoules,
}

impl CounterUnit {
    /// Whether values add up: percentages, ratios and rates do not.
    pub fn adds_up(self) -> bool {
        !matches!(
            self,
            CounterUnit::Percent | CounterUnit::Ratio | CounterUnit::BytesPerSecond
        )
    }

    /// Its name; empty if there is none.
    pub fn name(self) -> &'static str {
        match self {
            CounterUnit::Unspecified => "",
            CounterUnit::Count => "count",
            CounterUnit::Percent => "percent",
            CounterUnit::Bytes => "bytes",
            CounterUnit::BytesPerSecond => "bytes/s",
            CounterUnit::Nanoseconds => "ns",
            CounterUnit::Kilobytes => "kilobytes",
            CounterUnit::Milliseconds => "ms",
            CounterUnit::Cycles => "cycles",
            CounterUnit::Ratio => "ratio",
            CounterUnit::Microjoules => "uJ",
        }
    }
}

/// A counter of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterDescription {
    /// Its name, unique among the counters of its process and agent.
    pub name: String,
    /// An explanation.
    pub description: String,
    /// Its unit.
    pub unit: CounterUnit,
}

/// Counters of one agent that change together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterBlock {
    /// Its name.
    pub name: String,
    /// The process whose work is counted.
    pub process: ProcessIndex,
    /// The agent.
    pub agent: AgentIndex,
    /// Whether they are about memory; otherwise they are about computing.
    pub memory: bool,
    /// Whether they are read at a period, whatever runs.
    pub over_time: bool,
    /// The counters.
    pub counters: Vec<CounterDescription>,
}

/// A value of a counter.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum CounterValue {
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
}
