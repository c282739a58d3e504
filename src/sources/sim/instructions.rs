//! Exact counts of the instructions of a kernel, which the device tells when the kernel has ended.

use super::code::LoadedKernel;
use super::waves::Executed;
use gputrail_capture::names::Names;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::sampling::lines::{InstructionPlace, WrittenLines};
use gputrail_record::{AgentId, CodeObjectId, CorrelationId, InstructionCount, KernelId, WorkId};
use std::sync::Arc;

/// A launch whose instructions are counted.
pub(super) struct CountedInstructions {
    pub(super) code: Arc<LoadedKernel>,
    pub(super) code_object: CodeObjectId,
    pub(super) kernel: KernelId,
    pub(super) groups: u64,
    pub(super) waves_per_group: u64,
}

impl CountedInstructions {
    /// Writes the counts of the instructions that were executed, with the lines that are new.
    pub(super) fn record(
        &self,
        host: &mut HostThread,
        names: &Names,
        lines: &mut WrittenLines,
        (agent, work, correlation): (AgentId, WorkId, CorrelationId),
    ) {
        let program = self.code.program();
        let executed = program.executed(self.groups, self.waves_per_group);
        for (index, (line, Executed { times, diverged })) in
            program.lines.iter().zip(executed).enumerate()
        {
            if times == 0 {
                continue;
            }
            let mut record = InstructionCount::blank();
            (record.correlation, record.work, record.agent) = (correlation, work, agent);
            (record.kernel, record.code_object) = (self.kernel, self.code_object);
            record.offset = self.code.offset(index);
            (record.executed, record.diverged) = (times, diverged);
            record.threads = times * u64::from(line.lanes);
            record.instruction = line.operation.instruction_type();
            let access = line.access();
            (record.class, record.access) = (access.class, access.direction);
            record.bytes = access.bytes as u8;
            record.transactions = times * access.transactions;
            record.ideal_transactions = times * access.ideal_transactions;
            let place = InstructionPlace {
                code_object: self.code_object,
                offset: record.offset,
                kernel: self.kernel,
            };
            record.source_locator = lines.locate(names, host, place, &|offset| {
                self.code.instruction_type(offset)
            });
            host.write(record);
        }
    }
}
