//! Exact counts of executed instructions (CUPTI: source-level results: `CUpti_ActivityInstructionExecution`,
//! `CUpti_ActivityBranch2`, `CUpti_ActivityGlobalAccess3`, `CUpti_ActivitySharedAccess`).

use super::*;

open_enum! {
    /// What an instruction does, as far as it is counted in a way of its own.
    InstructionClass(u8) {
        /// It computes, or waits (CUPTI: `CUpti_ActivityInstructionExecution`).
        EXECUTION = 0, "execution";
        /// A branch (CUPTI: `CUpti_ActivityBranch2`).
        BRANCH = 1, "branch";
        /// An access to global memory (CUPTI: `CUpti_ActivityGlobalAccess3`).
        GLOBAL_ACCESS = 2, "global access";
        /// An access to local memory (CUPTI: `CUpti_ActivitySharedAccess`).
        LOCAL_ACCESS = 3, "local access";
    }
}

open_enum! {
    /// The direction of an access to memory.
    AccessDirection(u8) {
        /// No access.
        NONE = 0, "no access";
        /// A load.
        LOAD = 1, "load";
        /// A store, or an atomic operation.
        STORE = 2, "store";
    }
}

/// How often one instruction was executed in one dispatch. 96 bytes. Instructions that were never executed have no record.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct InstructionCount {
    /// Kind [`Kind::INSTRUCTION_COUNT`].
    pub header: Header,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// The dispatch.
    pub work: WorkId,
    /// The instruction as the offset from the code object's load base.
    pub offset: u64,
    /// The number of times that a wave executed it.
    pub executed: u64,
    /// The sum of the active lanes over these times (CUPTI: threadsExecuted).
    pub threads: u64,
    /// Branches: the number of times after which lanes of one wave went different ways.
    pub diverged: u64,
    /// Accesses: requests to global memory, or cycles of local memory.
    pub transactions: u64,
    /// Accesses: the fewest transactions in which these bytes can be had
    /// (CUPTI: theoreticalL2Transactions, theoreticalSharedTransactions).
    pub ideal_transactions: u64,
    /// The code object.
    pub code_object: CodeObjectId,
    /// The kernel (CUPTI: functionId).
    pub kernel: KernelId,
    /// The agent.
    pub agent: AgentId,
    /// The source line, or none.
    pub source_locator: SourceLocatorId,
    /// What the instruction does.
    pub class: InstructionClass,
    /// The type of the instruction.
    pub instruction: InstructionType,
    /// Accesses: the direction.
    pub access: AccessDirection,
    /// Accesses: bytes for each lane.
    pub bytes: u8,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(InstructionCount, Kind::INSTRUCTION_COUNT, 96);
