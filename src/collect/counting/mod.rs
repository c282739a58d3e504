//! Counter collection: what kernels did, in numbers.
//!
//! Counter collection is a [service of agents](crate::agents): a context names counters and metrics of an agent
//! ([`CounterSet`]), says when they are read ([`CountingMode`]), and which buffer gets the
//! [`CounterValue`](gputrail_record::CounterValue)s. Semantics are those of rocprofiler-sdk's dispatch and device counting. It
//! excludes PC sampling in the same process.
//!
//! A source offers each agent with its counters ([`Countable`]). It reads basic counters; metrics are computed here
//! (`values`) from the readings and from properties of the agent.

mod choice;
mod chosen;
mod countable;
mod error;
mod possible;
pub mod ranges;
mod reading;
mod selected;
mod set;
mod sum;
#[cfg(test)]
mod tests;
pub mod values;

pub use choice::{Choice, is_choosing};
pub use choice::{DispatchCounting, DispatchReadings, ReadyValues};
pub use countable::Countable;
pub use error::{CountingError, UnknownCounter};
pub(crate) use possible::run_note;
pub use possible::{LeftOut, OneRun, runs_of_note};
pub use reading::CounterReading;
pub(crate) use selected::{CountSelected, SelectedKernels};
pub use set::CounterSet;
pub(crate) use sum::Sum;

use super::agents::{self, AgentRequest, AgentService, ServiceKind};
use gputrail_counters::KernelSelection;
use gputrail_interface::counting::CountingMode;
use gputrail_record::Nanos;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The counter collection service.
pub type CountingService = AgentService<CountingRequest>;
/// Where the values of an agent's counters go.
pub type CountingDelivery = agents::Delivery<()>;

/// The longest period at which agents are read: one hour.
const LONGEST_PERIOD: Nanos = Nanos(3_600_000_000_000);

/// A request to count.
#[derive(Clone, Debug, PartialEq)]
pub struct CountingRequest {
    /// The counters and metrics.
    pub set: Arc<CounterSet>,
    /// When they are read.
    pub mode: CountingMode,
    /// A tool that chooses the counters of each dispatch instead; `set` is empty then, unless ranges are counted.
    pub choice: Option<Choice>,
    /// The pattern of the names of ranges that are counted; `None` for the outermost ones, whatever their names.
    pub(crate) range: Option<String>,
}

impl CountingRequest {
    /// The request, of at most so many instances of each block, the first ones; `None` for all of them.
    pub fn with_instances(self, instances: Option<NonZeroU32>) -> CountingRequest {
        let set = (*self.set).clone().with_instances(instances);
        CountingRequest {
            set: Arc::new(set),
            ..self
        }
    }

    /// The request, with a value for each instance of a block if `each` is set.
    pub fn with_each_instance(self, each: bool) -> CountingRequest {
        let set = (*self.set).clone().with_each_instance(each);
        CountingRequest {
            set: Arc::new(set),
            ..self
        }
    }

    /// The request, of what `tool` chooses for each dispatch: the set of the request, or nothing.
    pub(crate) fn chosen_by(self, tool: Arc<dyn DispatchCounting>) -> CountingRequest {
        CountingRequest {
            set: Arc::new(CounterSet::empty(self.set.architecture())),
            choice: Some(Choice::new(tool, self.set.passes().len())),
            ..self
        }
    }

    /// The request, of ranges with names of this pattern.
    pub fn of_ranges(self, range: Option<String>) -> CountingRequest {
        CountingRequest { range, ..self }
    }

    /// The request, whose dispatches `tool` assigns to ranges.
    fn assigned_by(self, tool: Arc<dyn DispatchCounting>) -> CountingRequest {
        let choice = Some(Choice::new(tool, self.set.passes().len()));
        CountingRequest { choice, ..self }
    }
}

/// The counters of a recording: names, and when they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterChoice {
    /// Names of counters and metrics.
    pub names: Vec<String>,
    /// When they are read.
    pub mode: CountingMode,
    /// The pattern of the names of ranges that are counted, if ranges are.
    pub range: Option<String>,
    /// The most counters of a pass, if the blocks' capacities are not to be used in full.
    pub per_pass: Option<NonZeroU32>,
    /// Which run of the program this is, if the program runs once for each pass in place of its kernels.
    pub run: Option<u32>,
    /// The kernels that are counted, of those that are recorded.
    pub kernels: KernelSelection,
}

impl AgentRequest for CountingRequest {
    const SERVICE: ServiceKind = ServiceKind::Counters;
    type Configuration = Countable;
    type Deliver = ();
    type Error = CountingError;

    fn active(&self, _: &[Countable]) -> Countable {
        Countable {
            architecture: self.set.architecture().clone(),
            dispatches: self.mode == CountingMode::Dispatch,
            shortest_period: match self.mode {
                CountingMode::Dispatch | CountingMode::Range => None,
                CountingMode::Device { period } => Some(period),
            },
            range_passes: match self.mode {
                CountingMode::Range => self.set.passes().len(),
                _ => 0,
            },
            passes: match &self.choice {
                Some(choice) => choice.passes,
                None => self.set.passes().len(),
            },
            per_pass: self.set.per_pass(),
        }
    }

    fn end(&self) {
        if let Some(choice) = &self.choice {
            choice.end();
        }
    }

    fn check(&self, agent: &str, possible: Vec<Countable>) -> Result<(), CountingError> {
        let agent = agent.to_owned();
        let Some(possible) = possible.first() else {
            return Err(CountingError::NotSupported { agent });
        };
        let passes = self.set.passes().len();
        match (self.mode, possible.shortest_period) {
            (CountingMode::Dispatch, _) if !possible.dispatches => Err(CountingError::Mode {
                agent,
                mode: self.mode,
            }),
            (CountingMode::Dispatch, _) if passes > possible.passes => Err(CountingError::Passes {
                agent,
                passes,
                possible: possible.passes,
            }),
            (CountingMode::Dispatch, _) => Ok(()),
            (CountingMode::Range, _) if possible.range_passes == 0 => Err(CountingError::Mode {
                agent,
                mode: self.mode,
            }),
            (CountingMode::Range, _) if passes > possible.range_passes => {
                Err(CountingError::RangePasses {
                    agent,
                    passes,
                    possible: possible.range_passes,
                })
            }
            (CountingMode::Range, _) => Ok(()),
            (mode, None) => Err(CountingError::Mode { agent, mode }),
            (CountingMode::Device { period }, Some(shortest)) if period < shortest => {
                Err(CountingError::Period {
                    agent,
                    period,
                    shortest,
                })
            }
            (CountingMode::Device { period }, _) if period > LONGEST_PERIOD => {
                Err(CountingError::LongPeriod {
                    agent,
                    period,
                    longest: LONGEST_PERIOD,
                })
            }
            // Time does not come again: there is one pass.
            _ if passes > 1 => Err(CountingError::Passes {
                agent,
                passes,
                possible: 1,
            }),
            _ => Ok(()),
        }
    }
}

impl CountingService {
    /// The request that counts `names` on `agent`, with at most `per_pass` counters in each pass.
    ///
    /// # Errors
    ///
    /// As for [`AgentService::configurations`] and [`CounterSet::new`].
    pub fn request(
        &self,
        agent: gputrail_record::AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
        per_pass: Option<NonZeroU32>,
    ) -> Result<CountingRequest, CountingError> {
        let (possible, agent) = self.named_configurations(agent)?;
        let Some(possible) = possible.first() else {
            return Err(CountingError::NotSupported { agent });
        };
        let set = Arc::new(CounterSet::new(
            &possible.architecture,
            names,
            per_pass.or(possible.per_pass),
        )?);
        Ok(CountingRequest {
            set,
            mode,
            choice: None,
            range: None,
        })
    }

    /// The request that counts on `agent` what `tool` chooses for each dispatch.
    ///
    /// # Errors
    ///
    /// As for [`AgentService::configurations`]; [`CountingError::NotSupported`].
    pub fn request_of(
        &self,
        agent: gputrail_record::AgentId,
        tool: Arc<dyn DispatchCounting>,
    ) -> Result<CountingRequest, CountingError> {
        let (possible, agent) = self.named_configurations(agent)?;
        let Some(possible) = possible.first() else {
            return Err(CountingError::NotSupported { agent });
        };
        Ok(CountingRequest {
            set: Arc::new(CounterSet::empty(&possible.architecture)),
            mode: CountingMode::Dispatch,
            choice: Some(Choice::new(tool, possible.passes)),
            range: None,
        })
    }
}
