//! Stall reasons of sampled waves: the vocabularies of rocprofiler-sdk and CUPTI, and the mapping between them.
//!
//! Samples use rocprofiler-sdk's vocabulary ([`InstructionType`], [`NotIssued`]); aggregates also have CUPTI's
//! ([`StallReason`]). Numbers and names are those of the vendors' documentation.

use super::open_enum;

/// The name of a value in a vendor's API: the given one, or the prefix of the vocabulary before the variant's.
macro_rules! vendor_name {
    ($prefix:literal, $variant:ident) => {
        concat!($prefix, stringify!($variant))
    };
    ($prefix:literal, $variant:ident, $vendor:literal) => {
        $vendor
    };
}

/// An [`open_enum`] whose values also have a name in a vendor's API.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident($int:ty), $prefix:literal {
        $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal $(, $vendor:literal)?;)*
    }) => {
        open_enum! {
            $(#[$meta])* $name($int) { $($(#[$vmeta])* $variant = $value, $text;)* }
        }

        impl $name {
            /// The name in the vendor's API, or `None` for an unknown value.
            pub fn vendor_name(self) -> Option<&'static str> {
                match self {
                    $($name::$variant => Some(vendor_name!($prefix, $variant $(, $vendor)?)),)*
                    _ => None,
                }
            }

            /// The value with this name in the vendor's API.
            pub fn from_vendor_name(name: &str) -> Option<$name> {
                let found = Self::ALL.iter().find(|(value, _)| value.vendor_name() == Some(name));
                found.map(|(value, _)| *value)
            }
        }
    };
}

vocabulary! {
    /// The type of an issued instruction (rocprofiler-sdk: `rocprofiler_pc_sampling_instruction_type_t`).
    InstructionType(u8), "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_" {
        /// Unknown.
        NONE = 0, "none";
        /// A vector ALU instruction.
        VALU = 1, "vector ALU";
        /// A matrix instruction.
        MATRIX = 2, "matrix";
        /// A scalar instruction, including scalar memory reads.
        SCALAR = 3, "scalar";
        /// A texture memory instruction.
        TEX = 4, "texture";
        /// A local memory instruction.
        LDS = 5, "LDS";
        /// A direct local memory instruction.
        LDS_DIRECT = 6, "LDS direct";
        /// A flat memory instruction.
        FLAT = 7, "flat";
        /// An export.
        EXPORT = 8, "export";
        /// A message.
        MESSAGE = 9, "message";
        /// A barrier.
        BARRIER = 10, "barrier";
        /// A branch that was not taken.
        BRANCH_NOT_TAKEN = 11, "branch not taken";
        /// A branch that was taken.
        BRANCH_TAKEN = 12, "branch taken";
        /// A jump.
        JUMP = 13, "jump";
        /// Another instruction.
        OTHER = 14, "other";
        /// No instruction was issued.
        NO_INST = 15, "no instruction";
        /// Two vector ALU instructions at once.
        DUAL_VALU = 16, "dual vector ALU";
    }
}

vocabulary! {
    /// Why a wave did not issue an instruction (rocprofiler-sdk:
    /// `rocprofiler_pc_sampling_instruction_not_issued_reason_t`). 4 bits.
    NotIssued(u8), "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" {
        /// It issued an instruction, or the reason is unknown.
        NONE = 0, "none";
        /// No instruction is available from the instruction cache.
        NO_INSTRUCTION_AVAILABLE = 1, "no instruction available";
        /// An operand is not ready (ALU dependency).
        ALU_DEPENDENCY = 2, "ALU dependency";
        /// It waits for memory operations.
        WAITCNT = 3, "waitcnt";
        /// It executes an internal instruction.
        INTERNAL_INSTRUCTION = 4, "internal instruction";
        /// It waits at a barrier.
        BARRIER_WAIT = 5, "barrier wait";
        /// The arbiter selected another wave.
        ARBITER_NOT_WIN = 6, "arbiter not won";
        /// The arbiter selected it, but the execution pipe was stalled.
        ARBITER_WIN_EX_STALL = 7, "arbiter won, pipe stalled";
        /// It waits for another reason.
        OTHER_WAIT = 8, "other wait";
        /// It sleeps.
        SLEEP_WAIT = 9, "sleep wait";
    }
}

vocabulary! {
    /// The reason for a stall (CUPTI: `CUpti_ActivityPCSamplingStallReason`). From 13 on: those of GPUs of
    /// compute capability 7.0 and later, which CUPTI states by name.
    StallReason(u8), "CUPTI_ACTIVITY_PC_SAMPLING_STALL_" {
        /// Unknown: host-trap samples have no reasons.
        INVALID = 0, "invalid";
        /// Not stalled: an instruction was selected for issue.
        NONE = 1, "none";
        /// The next instruction has not been fetched.
        INST_FETCH = 2, "instruction fetch";
        /// An operand is not ready.
        EXEC_DEPENDENCY = 3, "execution dependency";
        /// It waits for a memory access.
        MEMORY_DEPENDENCY = 4, "memory dependency";
        /// The texture sub-system is fully utilized.
        TEXTURE = 5, "texture";
        /// It waits at a barrier.
        SYNC = 6, "synchronization";
        /// It waits for constant memory.
        CONSTANT_MEMORY_DEPENDENCY = 7, "constant memory dependency";
        /// A compute resource is not available.
        PIPE_BUSY = 8, "pipe busy";
        /// Too many memory operations are pending.
        MEMORY_THROTTLE = 9, "memory throttle";
        /// It was ready, but another wave was selected.
        NOT_SELECTED = 10, "not selected";
        /// Something else.
        OTHER = 11, "other";
        /// It sleeps.
        SLEEPING = 12, "sleeping";
        /// It waits for memory: global, local, surface or texture.
        LONG_SCOREBOARD = 13, "long scoreboard", "smsp__pcsamp_warps_issue_stalled_long_scoreboard";
        /// It waits for shared memory, or for a special function.
        SHORT_SCOREBOARD = 14, "short scoreboard", "smsp__pcsamp_warps_issue_stalled_short_scoreboard";
        /// It waits for the fixed latency of an instruction.
        WAIT = 15, "wait", "smsp__pcsamp_warps_issue_stalled_wait";
        /// It waits for other waves at a barrier.
        BARRIER = 16, "barrier", "smsp__pcsamp_warps_issue_stalled_barrier";
        /// It waits at a memory barrier.
        MEMBAR = 17, "membar", "smsp__pcsamp_warps_issue_stalled_membar";
        /// The next instruction is not in the instruction cache.
        NO_INSTRUCTIONS = 18, "no instructions", "smsp__pcsamp_warps_issue_stalled_no_instructions";
        /// It waits for the target of a branch.
        BRANCH_RESOLVING = 19, "branch resolving", "smsp__pcsamp_warps_issue_stalled_branch_resolving";
        /// The dispatcher holds the instruction back.
        DISPATCH_STALL = 20, "dispatch stall", "smsp__pcsamp_warps_issue_stalled_dispatch_stall";
        /// The unit that computes is busy.
        MATH_PIPE_THROTTLE = 21, "math pipe throttle", "smsp__pcsamp_warps_issue_stalled_math_pipe_throttle";
        /// The queue for local and global memory is full.
        LG_THROTTLE = 22, "LG throttle", "smsp__pcsamp_warps_issue_stalled_lg_throttle";
        /// The queue for shared memory and special functions is full.
        MIO_THROTTLE = 23, "MIO throttle", "smsp__pcsamp_warps_issue_stalled_mio_throttle";
        /// The queue for textures is full.
        TEX_THROTTLE = 24, "tex throttle", "smsp__pcsamp_warps_issue_stalled_tex_throttle";
        /// An immediate constant is not in its cache.
        IMC_MISS = 25, "IMC miss", "smsp__pcsamp_warps_issue_stalled_imc_miss";
        /// It has ended, and waits for its stores.
        DRAIN = 26, "drain", "smsp__pcsamp_warps_issue_stalled_drain";
        /// It waits for the matrix unit.
        GMMA = 27, "GMMA", "smsp__pcsamp_warps_issue_stalled_gmma";
        /// It waits for the other waves of its warpgroup.
        WARPGROUP_ARRIVE = 28, "warpgroup arrive", "smsp__pcsamp_warps_issue_stalled_warpgroup_arrive";
    }
}

/// Maps rocprofiler-sdk's reasons to CUPTI's. Internal instructions and other waits both become [`StallReason::OTHER`].
/// [`StallReason::of`] distinguishes more of CUPTI's reasons, given a complete sample.
impl From<NotIssued> for StallReason {
    fn from(reason: NotIssued) -> StallReason {
        match reason {
            NotIssued::NO_INSTRUCTION_AVAILABLE => StallReason::INST_FETCH,
            NotIssued::ALU_DEPENDENCY => StallReason::EXEC_DEPENDENCY,
            NotIssued::WAITCNT => StallReason::MEMORY_DEPENDENCY,
            NotIssued::BARRIER_WAIT => StallReason::SYNC,
            NotIssued::ARBITER_NOT_WIN => StallReason::NOT_SELECTED,
            NotIssued::ARBITER_WIN_EX_STALL => StallReason::PIPE_BUSY,
            NotIssued::SLEEP_WAIT => StallReason::SLEEPING,
            NotIssued::INTERNAL_INSTRUCTION | NotIssued::OTHER_WAIT => StallReason::OTHER,
            _ => StallReason::INVALID,
        }
    }
}

/// Maps CUPTI's reasons to rocprofiler-sdk's. Everything that waits for memory becomes [`NotIssued::WAITCNT`], whatever
/// waits for a unit or a full queue [`NotIssued::ARBITER_WIN_EX_STALL`].
impl From<StallReason> for NotIssued {
    fn from(reason: StallReason) -> NotIssued {
        match reason {
            StallReason::INST_FETCH
            | StallReason::NO_INSTRUCTIONS
            | StallReason::BRANCH_RESOLVING => NotIssued::NO_INSTRUCTION_AVAILABLE,
            StallReason::EXEC_DEPENDENCY | StallReason::WAIT => NotIssued::ALU_DEPENDENCY,
            StallReason::MEMORY_DEPENDENCY
            | StallReason::CONSTANT_MEMORY_DEPENDENCY
            | StallReason::LONG_SCOREBOARD
            | StallReason::SHORT_SCOREBOARD
            | StallReason::MEMBAR
            | StallReason::IMC_MISS
            | StallReason::DRAIN => NotIssued::WAITCNT,
            StallReason::SYNC | StallReason::BARRIER | StallReason::WARPGROUP_ARRIVE => {
                NotIssued::BARRIER_WAIT
            }
            StallReason::NOT_SELECTED => NotIssued::ARBITER_NOT_WIN,
            StallReason::PIPE_BUSY
            | StallReason::TEXTURE
            | StallReason::MEMORY_THROTTLE
            | StallReason::DISPATCH_STALL
            | StallReason::MATH_PIPE_THROTTLE
            | StallReason::LG_THROTTLE
            | StallReason::MIO_THROTTLE
            | StallReason::TEX_THROTTLE
            | StallReason::GMMA => NotIssued::ARBITER_WIN_EX_STALL,
            StallReason::OTHER => NotIssued::OTHER_WAIT,
            StallReason::SLEEPING => NotIssued::SLEEP_WAIT,
            _ => NotIssued::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_both_ways_in_both_vocabularies() {
        for (value, name) in InstructionType::ALL {
            assert_eq!(InstructionType::from_name(name), Some(*value));
            let vendor = value.vendor_name().unwrap();
            assert_eq!(InstructionType::from_vendor_name(vendor), Some(*value));
        }
        for (value, name) in NotIssued::ALL {
            assert_eq!(NotIssued::from_name(name), Some(*value));
            let vendor = value.vendor_name().unwrap();
            assert_eq!(NotIssued::from_vendor_name(vendor), Some(*value));
        }
        for (value, name) in StallReason::ALL {
            assert_eq!(StallReason::from_name(name), Some(*value));
            let vendor = value.vendor_name().unwrap();
            assert_eq!(StallReason::from_vendor_name(vendor), Some(*value));
        }
        assert_eq!(
            NotIssued::WAITCNT.vendor_name(),
            Some("ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT")
        );
        assert_eq!(
            InstructionType(16).vendor_name(),
            Some("ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_DUAL_VALU")
        );
        assert_eq!(
            StallReason(12).vendor_name(),
            Some("CUPTI_ACTIVITY_PC_SAMPLING_STALL_SLEEPING")
        );
        assert_eq!(
            StallReason(13).vendor_name(),
            Some("smsp__pcsamp_warps_issue_stalled_long_scoreboard")
        );
        assert_eq!(InstructionType(17).vendor_name(), None);
        assert_eq!(NotIssued::from_vendor_name("WAITCNT"), None);
    }

    #[test]
    fn values_are_numbered_without_gaps_and_fit_their_bits() {
        let numbers = |all: Vec<u8>, below: u8| {
            assert!(all.iter().copied().eq(0..all.len() as u8));
            assert!(all.iter().all(|value| *value < below));
        };
        numbers(InstructionType::ALL.iter().map(|(v, _)| v.0).collect(), 32);
        numbers(NotIssued::ALL.iter().map(|(v, _)| v.0).collect(), 16);
        numbers(StallReason::ALL.iter().map(|(v, _)| v.0).collect(), 29);
        assert_eq!(StallReason::ALL.len(), 29);
    }

    #[test]
    fn a_reason_maps_to_the_other_vocabulary_and_back_where_nothing_is_lost() {
        let lost = [NotIssued::INTERNAL_INSTRUCTION];
        for (reason, _) in NotIssued::ALL {
            let there = StallReason::from(*reason);
            assert_eq!(NotIssued::from(there) == *reason, !lost.contains(reason));
        }
        for (reason, _) in StallReason::ALL {
            let known = !matches!(*reason, StallReason::INVALID | StallReason::NONE);
            assert_eq!(NotIssued::from(*reason) != NotIssued::NONE, known);
        }
    }
}
