//! Exact counts of executed instructions, summed over the dispatches of a kernel.

use crate::model::Executions;
use gputrail_code::aggregate::Address;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{AgentId, InstructionCount, KernelId};

/// Sums by agent, kernel and address, since they were last taken.
#[derive(Debug, Default)]
pub(super) struct ExecutionSums(NumberMap<(AgentId, KernelId, Address), Executions>);

impl ExecutionSums {
    pub fn add(&mut self, count: &InstructionCount) {
        let address = Address {
            code_object: count.code_object,
            offset: count.offset,
        };
        let key = (count.agent, count.kernel, address);
        self.0.entry(key).or_default().add(&Executions {
            executed: count.executed,
            threads: count.threads,
            diverged: count.diverged,
            transactions: count.transactions,
            ideal_transactions: count.ideal_transactions,
        });
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the sums, in the order of their places.
    pub fn take(&mut self) -> Vec<((AgentId, KernelId, Address), Executions)> {
        let mut all: Vec<_> = std::mem::take(&mut self.0).into_iter().collect();
        all.sort_by_key(|(place, _)| *place);
        all
    }
}
