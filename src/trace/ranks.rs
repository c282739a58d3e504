//! Ranks of a parallel program, and the collective operations in which they take part.

use crate::model::{EventArgument, Process, Value};

/// The rank of processes for which the recording gives none.
pub const NO_RANK: i64 = -1;

/// The rank of a process: `rank 3`, or a name that ends in `(rank 3)` or `(rank 3 of 8)`.
pub fn rank_of(process: &Process<'_>) -> i64 {
    let text = match process.rank {
        "" => process.name.rsplit_once('(').map_or("", |(_, rest)| rest),
        rank => rank,
    };
    let digits = text.strip_prefix("rank ").unwrap_or_default();
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits.parse().unwrap_or(NO_RANK)
}

/// The text of an argument; `None` if there is none of this name, or it is no text.
pub fn text_argument<'v>(arguments: &[EventArgument<'v>], name: &str) -> Option<&'v str> {
    let found = arguments.iter().find(|argument| argument.name == name)?;
    match found.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether a kernel moves data between ranks, by its name.
pub fn is_communication(name: &str) -> bool {
    /// Libraries for communication; their names stand at the beginning of a word of a kernel's name.
    const LIBRARIES: [&str; 5] = ["nccl", "rccl", "oneccl", "nvshmem", "mscclpp"];
    let starts_word = |place: usize| {
        let before = name[..place].chars().next_back();
        before.is_none_or(|letter| !letter.is_ascii_alphanumeric())
    };
    LIBRARIES.iter().any(|library| {
        let mut places = name.match_indices(*library);
        places.any(|(place, _)| starts_word(place))
    })
}

/// The collective operation that a kernel executes, and the name of the group of ranks, as PyTorch
/// says them beside the kernel or as NCCL and RCCL name their kernels.
pub fn collective<'v>(
    name: &'v str,
    arguments: &[EventArgument<'v>],
) -> Option<(&'v str, &'v str)> {
    if let Some(collective) = text_argument(arguments, "Collective name") {
        let group = text_argument(arguments, "Process Group Name");
        return Some((collective, group.unwrap_or("")));
    }
    let kernels = ["ncclDevKernel_", "ncclKernel_"];
    let rest = kernels.iter().find_map(|known| name.strip_prefix(known))?;
    let rest = rest.strip_prefix("Generic_").unwrap_or(rest);
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
    Some((&rest[..end.unwrap_or(rest.len())], ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::ProcessId;

    #[test]
    fn a_rank_is_read_from_its_text_or_from_the_name_of_the_process() {
        let rank = |name, rank| {
            rank_of(&Process {
                pid: ProcessId(1),
                name,
                rank,
                command: &[],
                order: None,
            })
        };
        assert_eq!(rank("python", "rank 12"), 12);
        assert_eq!(rank("python", "rank 3 of 8"), 3);
        assert_eq!(rank("python (rank 5)", ""), 5);
        assert_eq!(rank("python (rank 5 of 64)", ""), 5);
        for name in ["python", "rank 3", "python (rank x)", "python (rank )"] {
            assert_eq!(rank(name, ""), NO_RANK, "{name}");
        }
    }

    #[test]
    fn kernels_of_libraries_for_communication_are_known_by_their_names() {
        for name in [
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
            "void rccl_Generic",
            "void nvshmem::barrier_all()",
        ] {
            assert!(is_communication(name), "{name}");
        }
        for name in ["gemm", "syncclear", "add_kernel(float*)"] {
            assert!(!is_communication(name), "{name}");
        }
    }

    #[test]
    fn collectives_are_known_by_their_kernels() {
        let found = |name| collective(name, &[]).map(|(name, _)| name);
        assert_eq!(
            found("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"),
            Some("AllReduce")
        );
        assert_eq!(found("ncclDevKernel_Generic(x)"), Some("Generic"));
        assert_eq!(found("gemm"), None);
    }
}
